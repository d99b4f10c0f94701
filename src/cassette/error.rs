//! What may be wrong with a cassette's text, and what to do about it.

use std::fmt;

use super::{format::Incompatible, model::line_column};
use crate::wire::scan;

/// A cassette that cannot be read, with the place of the first thing that is wrong.
#[derive(Debug)]
pub struct LoadError {
    /// Offset in the text.
    pub at: usize,
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1, in characters.
    pub column: usize,
    /// What is wrong.
    pub kind: LoadErrorKind,
}

/// What is wrong with a cassette.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadErrorKind {
    /// Offsets are 32 bits wide.
    #[error("a cassette over 4 GiB cannot be read; split it")]
    TooLarge,
    /// A byte that is not UTF-8.
    #[error("expected UTF-8, found a byte that is not; save the file as UTF-8")]
    NotUtf8,
    /// The text is not JSON.
    #[error("expected {expected}, found {found}; a cassette is JSON, without comments and trailing commas")]
    Syntax {
        /// What would have fitted.
        expected: &'static str,
        /// What stands there.
        found: String,
    },
    /// Something else.
    #[error("expected a cassette, an object with `\"cassette\": 1` as its first member, found {found}")]
    NotACassette {
        /// What stands there.
        found: String,
    },
    /// A cassette of another format version.
    #[error(transparent)]
    Version(#[from] Incompatible),
    /// A member of ours with a value that it cannot have.
    #[error("`{member}` must be {expected}, found {found}")]
    Member {
        /// The member.
        member: &'static str,
        /// What it must be.
        expected: &'static str,
        /// What stands there.
        found: String,
    },
    /// A member of ours that stands twice.
    #[error("`{name}` stands twice in {place}; remove one of them")]
    Twice {
        /// The member.
        name: String,
        /// The object it stands in.
        place: &'static str,
    },
    /// A member that has to be there.
    #[error("{place} needs {expected}")]
    Missing {
        /// The object.
        place: &'static str,
        /// What it lacks.
        expected: &'static str,
    },
    /// Members that exclude each other.
    #[error("{place} has `{first}` and `{second}`; keep one of them")]
    Both {
        /// The object.
        place: &'static str,
        /// A member.
        first: String,
        /// The other.
        second: String,
    },
    /// A member in a place where it has no meaning.
    #[error("{place} cannot have `{member}`; {instead}")]
    Misplaced {
        /// The object.
        place: &'static str,
        /// The member.
        member: String,
        /// What to write instead.
        instead: &'static str,
    },
    /// A condition that this version does not know: leaving it out would let a rule match too much.
    #[error("`when` does not know `{name}`; it knows method, tool, prompt, uri and key")]
    Condition {
        /// The condition's name.
        name: String,
    },
    /// A regular expression that does not compile.
    #[error("`{pattern}` is no regular expression: {reason}")]
    Pattern {
        /// The expression.
        pattern: String,
        /// Why not.
        reason: String,
    },
    /// Two exchanges with one key.
    #[error("the key `{key}` is taken by an exchange before this one; give this one another")]
    KeyTaken {
        /// The key.
        key: String,
    },
    /// Two sessions with one number.
    #[error("session {number} is listed twice; give this one another number")]
    SessionTaken {
        /// The number.
        number: u32,
    },
    /// An exchange of a session that is not listed.
    #[error(
        "session {number} is not listed; add {{\"session\": {number}}} to `sessions`, or correct the number"
    )]
    NoSession {
        /// The number.
        number: u32,
    },
    /// An `after` or `same_as` that names nothing.
    #[error("`{member}` names `{name}`, and {reason}")]
    Reference {
        /// The member.
        member: &'static str,
        /// What it says.
        name: String,
        /// Why that names nothing.
        reason: String,
    },
    /// A marker whose value is not as that marker wants it.
    #[error(
        "`{marker}` takes {expected}; to mean an object with this member, put it into {{\"$literal\": …}}"
    )]
    Marker {
        /// The marker.
        marker: &'static str,
        /// What it takes.
        expected: &'static str,
    },
    /// `$json` inside `$json`, too often.
    #[error("`$json` stands in `$json` more than {limit} deep; write the inner ones as strings")]
    TooDeep {
        /// How deep it may stand.
        limit: usize,
    },
    /// A message that grows beyond all measure when its markers are written out.
    #[error("with its markers written out the message is over {limit} bytes; shorten it")]
    TooLong {
        /// The longest message.
        limit: usize,
    },
    /// A blob's name that is not of the one form that is allowed.
    #[error(
        "`{name}` is no blob's name; it must be sha256-<64 hex digits>.bin or .txt, in the cassette's .blobs folder"
    )]
    BlobName {
        /// The name.
        name: String,
    },
    /// A blob that cannot be read.
    #[error("cannot read the blob `{name}`; bring the cassette's .blobs folder along with it")]
    Blob {
        /// The name.
        name: String,
        /// Why not.
        source: std::io::Error,
    },
    /// A blob with other bytes than its name says.
    #[error(
        "the blob `{name}` does not hold what its name says; restore it, or put the text into the cassette"
    )]
    BlobHash {
        /// The name.
        name: String,
    },
    /// A message over `--max-message`, of which only size and hash were recorded.
    #[error("this message was not recorded, being over --max-message; record it again with a higher limit")]
    Omitted,
}

pub(super) type Result<T> = std::result::Result<T, LoadError>;

impl LoadError {
    /// Whether the file is something else than a cassette.
    pub const fn is_no_cassette(&self) -> bool {
        matches!(self.kind, LoadErrorKind::NotACassette { .. })
    }

    /// An error whose line and column are not known yet: see [`LoadError::locate`].
    pub(super) const fn new(at: usize, kind: LoadErrorKind) -> Self {
        Self { at, line: 0, column: 0, kind }
    }

    /// Expected JSON of some kind at `at`, and found what stands there.
    #[cold]
    pub(super) fn syntax(text: &[u8], at: usize, expected: &'static str) -> Self {
        Self::new(at, LoadErrorKind::Syntax { expected, found: found(text, at) })
    }

    /// A member with a value that it cannot have.
    #[cold]
    pub(super) fn member(text: &[u8], at: usize, member: &'static str, expected: &'static str) -> Self {
        Self::new(at, LoadErrorKind::Member { member, expected, found: found(text, at) })
    }

    /// Something else than a cassette.
    #[cold]
    pub(super) fn no_cassette(text: &[u8], at: usize) -> Self {
        Self::new(at, LoadErrorKind::NotACassette { found: found(text, at) })
    }

    /// Fills in line and column.
    pub(super) fn locate(self, text: &[u8]) -> Self {
        let (line, column) = line_column(text, self.at);
        Self { line, column, ..self }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.kind)
    }
}

impl std::error::Error for LoadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        std::error::Error::source(&self.kind)
    }
}

/// The beginning of what stands at `at`, to be shown.
pub fn found(text: &[u8], at: usize) -> String {
    const LONGEST: usize = 24;
    let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) else {
        return "the end of the text".into();
    };
    let end = match scan::skip_value(text, at) {
        Ok(end) => end - at,
        Err(_) => rest.iter().take_while(|byte| !matches!(byte, b'\n' | b'\r' | b',' | b' ')).count().max(1),
    };
    let shown = String::from_utf8_lossy(&rest[..end.min(4 * LONGEST)]);
    let (cut, dots) = match shown.char_indices().nth(LONGEST) {
        Some((cut, _)) => (cut, "…"),
        None => (shown.len(), ""),
    };
    let visible =
        |char: char| if char.is_control() { char.escape_default().to_string() } else { char.into() };
    format!("`{}{dots}`", shown[..cut].chars().map(visible).collect::<String>())
}
