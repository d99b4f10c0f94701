//! Whom a request is for: its target names a take, and where there are several servers, one of them.

use std::sync::Arc;

use super::{
    Front,
    deck::{Deck, TOO_MANY_TAKES},
    take::Take,
};

/// Whom a request is for.
pub(super) struct Route<'a> {
    pub(super) take: Arc<Take>,
    /// What names it in the target.
    pub(super) prefix: &'a str,
    /// The rest of the target.
    pub(super) target: &'a str,
}

/// Why it is for nobody, with the status that says so.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NoRoute {
    pub(super) status: u16,
    pub(super) sentence: String,
}

impl Front {
    pub(super) fn route<'a>(&self, target: &'a str) -> Result<Route<'a>, NoRoute> {
        let (take, behind_take) = take_of(target)?;
        let (deck, rest) = match self.decks.as_slice() {
            [deck] if self.is_at_root => (deck, behind_take),
            decks => server_of(decks, behind_take)?,
        };
        let take =
            deck.take(&take).ok_or_else(|| NoRoute { status: 503, sentence: TOO_MANY_TAKES.into() })?;
        let prefix = &target[..target.len() - rest.len()];
        Ok(Route { take, prefix, target: if rest.is_empty() { "/" } else { rest } })
    }

    /// The server of this name, or the only one.
    pub(super) fn server(&self, name: Option<&str>) -> Result<&Deck, String> {
        match (name, self.decks.as_slice()) {
            (None, [deck]) => Ok(deck),
            (None, decks) => Err(format!("name a server: this run has {}", names(decks))),
            (Some(name), decks) => decks
                .iter()
                .find(|deck| deck.name == name)
                .ok_or_else(|| format!("this run has no server `{name}`; it has {}", names(decks))),
        }
    }
}

/// The name of the take in a target, and the rest.
fn take_of(target: &str) -> Result<(String, &str), NoRoute> {
    let Some(rest) = target.strip_prefix("/take/") else { return Ok((String::new(), target)) };
    let (name, rest) = segment(rest);
    // Clients take the other two out of a path, so requests of one and the same would go to different takes.
    if matches!(&*name, "" | "." | "..") {
        let sentence = "`/take/` stands before the name of a take, as in `/take/a/mcp`".to_owned();
        return Err(NoRoute { status: 404, sentence });
    }
    Ok((name, rest))
}

/// The server that a path begins with, and the rest.
fn server_of<'a, 'd>(decks: &'d [Deck], path: &'a str) -> Result<(&'d Deck, &'a str), NoRoute> {
    let (name, rest) = segment(path.strip_prefix('/').unwrap_or(path));
    decks.iter().find(|deck| deck.name == name).map(|deck| (deck, rest)).ok_or_else(|| NoRoute {
        status: 404,
        sentence: format!("no server is called so here; the path begins with one of: {}", names(decks)),
    })
}

fn names(decks: &[Deck]) -> String {
    decks.iter().map(|deck| &*deck.name).collect::<Vec<_>>().join(", ")
}

/// The first segment of a path without its percent signs, and the rest.
fn segment(path: &str) -> (String, &str) {
    let (segment, behind) = path.split_at(path.find(['/', '?']).unwrap_or(path.len()));
    (unescaped(segment), behind)
}

/// A part of an address without its percent signs; what is wrong in it stays.
pub(super) fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        let digits =
            behind.get(..2).filter(|_| byte == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(decoded) => {
                bytes.push(decoded);
                rest = &behind[2..];
            }
            None => {
                bytes.push(byte);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_take_is_named_by_any_segment_that_says_something() {
        for (target, take, rest) in [
            ("/mcp?a=1", "", "/mcp?a=1"),
            ("/take/a%2Fb%20c/mcp?x", "a/b c", "/mcp?x"),
            ("/take/t", "t", ""),
            ("/take/t?x", "t", "?x"),
            ("/take/50%/mcp", "50%", "/mcp"),
            ("/take/...", "...", ""),
            ("/take", "", "/take"),
        ] {
            assert_eq!(take_of(target), Ok((take.to_owned(), rest)), "{target}");
        }
        for target in ["/take/", "/take//mcp", "/take/../mcp", "/take/./mcp", "/take/%2e%2E/mcp", "/take/?x"]
        {
            let refused = take_of(target).unwrap_err();
            assert_eq!(refused.status, 404, "{target}");
        }
    }
}
