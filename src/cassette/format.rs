//! The format's version, and how older ones become the present one.
//!
//! A change that old readers can leave out (a new member) does not need a new version: unknown members are a warning
//! and survive a rewrite. A change of meaning does: raise [`VERSION`], describe it in its changelog, add the step to
//! [`UPGRADES`] with a golden file of the version before.

use super::error::LoadError;

/// The version that is written.
///
/// # Changelog
///
/// - **1**: the first.
pub const VERSION: u32 = 1;

/// One step up: from the version named to the next. It turns text into text, so that nothing else needs to know of
/// old versions.
type Upgrade = (u32, fn(Vec<u8>) -> Result<Vec<u8>, LoadError>);

/// Every step from the first version to [`VERSION`], in order.
const UPGRADES: &[Upgrade] = &[];

/// A cassette of a version that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this cassette has format {found}, and mcp-tapedeck {} reads formats 1 to {VERSION}; use one that reads format {found}", env!("CARGO_PKG_VERSION"))]
pub struct Incompatible {
    /// The version it says it has.
    pub found: u64,
}

/// Whether a version can be read.
pub(super) fn check(found: u64) -> Result<(), Incompatible> {
    if (1..=u64::from(VERSION)).contains(&found) { Ok(()) } else { Err(Incompatible { found }) }
}

/// Upgrades a text of the version `from`, which was checked, to the present one.
pub(super) fn upgrade(mut text: Vec<u8>, from: u32) -> Result<Vec<u8>, LoadError> {
    for (_, step) in UPGRADES.iter().filter(|(version, _)| *version >= from) {
        text = step(text)?;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_step_for_every_version_before_this_one() {
        let from: Vec<u32> = UPGRADES.iter().map(|(from, _)| *from).collect();
        assert_eq!(from, (1..VERSION).collect::<Vec<_>>());
    }

    #[test]
    fn a_newer_version_is_refused_with_the_version_needed() {
        assert!(check(1).is_ok() && check(0).is_err());
        let error = check(7).unwrap_err().to_string();
        assert!(error.contains("has format 7") && error.contains("reads format 7"), "{error}");
    }
}
