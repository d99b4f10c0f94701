//! Why an edit was not made.

use crate::{
    cassette::{LoadError, model::Cassette, nearest},
    fault::PlanError,
};

pub(super) type Result<T> = std::result::Result<T, EditError>;

/// An edit that cannot be made. Nothing was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EditError {
    /// No exchange has the key.
    #[error("no exchange has the key `{key}`")]
    NoKey {
        /// The key that was given.
        key: String,
        /// Keys like it, at most five.
        alike: Vec<String>,
    },
    /// The text is no JSON Pointer.
    #[error("`{pointer}` is no JSON Pointer: {reason}; such as `/server/0/result/content/0/text`")]
    Pointer {
        /// What was given.
        pointer: String,
        /// Why it is none.
        reason: &'static str,
    },
    /// There is nothing at a pointer.
    #[error("`{key}` has nothing at `{pointer}`: {place} {there}{meant}")]
    NoPlace {
        /// The exchange.
        key: String,
        /// The pointer.
        pointer: String,
        /// The deepest part of it that is there, to be shown.
        place: String,
        /// What that part is.
        there: String,
        /// What was meant perhaps, behind a semicolon.
        meant: String,
    },
    /// The text that was given is no JSON of the kind that is needed.
    #[error("expected {expected}, found {found}")]
    Json {
        /// What was expected.
        expected: &'static str,
        /// What was found.
        found: &'static str,
    },
    /// The exchange is none that can be given this.
    #[error("`{key}` {reason}")]
    Unfit {
        /// The exchange.
        key: String,
        /// Why not, and what to do instead.
        reason: &'static str,
    },
    /// The cassette would not load.
    #[error(
        "{0} (line and column count in the cassette as it would be after the edit; it was left as it is)"
    )]
    Invalid(#[from] LoadError),
    /// The edited cassette would have a fault that cannot be used.
    #[error("the cassette would have a mistake at {0}; nothing was written")]
    Fault(#[from] PlanError),
}

impl EditError {
    /// No exchange has this key; those that look like it are named.
    pub(super) fn no_key(cassette: &Cassette, key: &str) -> Self {
        let keys = || cassette.exchanges.iter().map(|exchange| &*exchange.key);
        let lowered = key.to_lowercase();
        let holds = keys().filter(|known| !lowered.is_empty() && known.to_lowercase().contains(&lowered));
        let mut alike: Vec<_> = nearest(key, keys()).into_iter().chain(holds).map(str::to_owned).collect();
        alike.dedup();
        if alike.is_empty() {
            // Another number, or a name that is half right.
            let begins = |known: &&str| {
                let common = known.chars().zip(key.chars()).take_while(|(a, b)| a == b).count();
                common > 3 && 2 * common >= key.chars().count()
            };
            alike = keys().filter(begins).map(str::to_owned).collect();
        }
        alike.truncate(5);
        Self::NoKey { key: key.to_owned(), alike }
    }
}
