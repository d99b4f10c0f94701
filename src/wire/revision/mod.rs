//! One row of facts for each protocol revision.
//!
//! To add a revision: one file beside this one with its [`Revision`], one line in [`REVISIONS`]. Code never compares
//! revision names; it asks the row. A name no row has is an unknown revision, which is no error: the newest row
//! that is not newer than the name answers for it.

pub mod capability;
pub mod methods;
mod v2024_11_05;
mod v2025_03_26;
mod v2025_06_18;
mod v2025_11_25;
mod v2026_07_28;

/// What a revision says, as far as recording and replaying depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Revision {
    /// Its name on the wire, a date.
    pub name: &'static str,
    /// Its era: whether a session begins with `initialize`.
    pub handshake: bool,
    /// Whether several messages may be sent as one array.
    pub batches: bool,
    /// Whether the server may send requests of its own.
    pub server_requests: bool,
}

/// Every known revision, oldest first.
pub const REVISIONS: &[Revision] = &[
    v2024_11_05::REVISION,
    v2025_03_26::REVISION,
    v2025_06_18::REVISION,
    v2025_11_25::REVISION,
    v2026_07_28::REVISION,
];

/// The row that answers for a revision's name: its own, else that of the newest one not newer than it.
pub fn revision(name: &str) -> &'static Revision {
    REVISIONS.iter().rev().find(|row| row.name <= name).unwrap_or(&REVISIONS[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_revision_answers_for_its_own_name_and_stands_in_order() {
        for row in REVISIONS {
            assert_eq!(revision(row.name), row);
        }
        assert!(REVISIONS.is_sorted_by_key(|row| row.name));
    }

    #[test]
    fn an_unknown_revision_is_answered_for_by_the_newest_before_it() {
        assert_eq!(revision("2024-10-07").name, "2024-11-05");
        assert_eq!(revision("2025-07-01").name, "2025-06-18");
        assert_eq!(revision("2099-01-01").name, "2026-07-28");
    }
}
