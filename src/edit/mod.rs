//! Edits of a cassette's text that change what they address, and leave every other byte as a person wrote it.
//!
//! An edit becomes replacements of places in the text ([`sheet`]). An entry that stood in its canonical form stands
//! in it again afterwards; one that was laid out by hand keeps its lines, but for those with the new value. What
//! other exchanges say is not changed by an edit of this one:
//!
//! - who has the same answer by `same_as` keeps that answer ([`same`])
//! - who names a moment that goes, in `after`, is told of the one that came before it ([`order`])
//! - a request that is named by its id somewhere in its session keeps that id ([`ids`])
//!
//! The result is read again before anybody gets it: an edit never makes a cassette that does not load.
//!
//! To add an edit: a variant of [`Edit`], its file here, a subcommand in `cli/edit`.

mod answer;
mod error;
mod exchange;
mod ids;
mod order;
mod parts;
mod pointer;
mod rename;
mod same;
mod set;
mod sheet;
#[cfg(test)]
mod tests;

pub use answer::{Fault, Response};
pub use error::EditError;
pub use exchange::Position;
pub use pointer::Pointer;

use crate::{
    cassette::{
        blob::BlobSource,
        model::{Cassette, Exchange},
    },
    fault::of_cassette,
};
use error::Result;
use sheet::Sheet;

/// One change of a cassette. JSON is strict, and is text of the file: markers count in it.
#[derive(Clone, Debug)]
pub enum Edit {
    /// Gives a place a value; one that is missing becomes the last of its object or array.
    Set {
        /// The exchange.
        key: String,
        /// The place in its entry.
        pointer: Pointer,
        /// The new value.
        value: Value,
    },
    /// Takes an exchange away, or a place in it.
    Remove {
        /// The exchange.
        key: String,
        /// The place in its entry; none for all of it.
        pointer: Option<Pointer>,
    },
    /// Adds an exchange.
    Insert {
        /// Its entry, JSON; `key` may be missing, and `session`, which is then that of its neighbour.
        entry: Vec<u8>,
        /// Where.
        position: Position,
    },
    /// Adds a copy of an exchange behind it.
    Duplicate {
        /// The exchange.
        key: String,
        /// The copy's key; none for the next number.
        name: Option<String>,
    },
    /// Gives an exchange another answer. What the server sent before it stays.
    Answer {
        /// The exchange.
        key: String,
        /// The answer.
        response: Response,
    },
    /// Sets an exchange's `fault`.
    Fault {
        /// The exchange.
        key: String,
        /// The fault.
        fault: Fault,
    },
    /// Sets how long the answer takes.
    Delay {
        /// The exchange.
        key: String,
        /// Milliseconds since what came before it.
        ms: u32,
    },
    /// Sets an exchange's `note`.
    Note {
        /// The exchange.
        key: String,
        /// The note.
        text: String,
    },
}

/// A value to be set.
#[derive(Clone, Debug)]
pub enum Value {
    /// JSON.
    Json(Vec<u8>),
    /// A string, by its text.
    Text(String),
}

/// What came of an edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edited {
    /// The cassette's new text.
    pub text: Vec<u8>,
    /// What a person should know: keys that were made, and what was done to other entries. One sentence each.
    pub told: Vec<String>,
}

/// Makes an edit.
///
/// # Errors
/// When there is no such exchange or place, when the exchange cannot have what it is to be given, or when the result
/// would be no cassette.
pub fn apply(cassette: &Cassette, blobs: &dyn BlobSource, edit: &Edit) -> Result<Edited> {
    if let Edit::Set { key, pointer, .. } | Edit::Remove { key, pointer: Some(pointer) } = edit {
        // A place in an answer that stands elsewhere: the exchange first gets an answer of its own.
        let mut sheet = Sheet::new(cassette);
        if same::own_answer(&mut sheet, find(cassette, key)?, pointer) {
            let own = finish(sheet, cassette, blobs)?;
            let cassette = Cassette::load(own.text, blobs)?;
            let edited = apply(&cassette, blobs, edit)?;
            return Ok(Edited { told: [own.told, edited.told].concat(), ..edited });
        }
    }
    let mut sheet = Sheet::new(cassette);
    match edit {
        Edit::Set { key, pointer, value } => set::set(&mut sheet, find(cassette, key)?, pointer, value)?,
        Edit::Remove { key, pointer: Some(pointer) } => {
            set::remove(&mut sheet, find(cassette, key)?, pointer)?;
        }
        Edit::Remove { key, pointer: None } => exchange::remove(&mut sheet, find(cassette, key)?),
        Edit::Insert { entry, position } => exchange::insert(&mut sheet, blobs, entry, position)?,
        Edit::Duplicate { key, name } => {
            exchange::duplicate(&mut sheet, find(cassette, key)?, name.as_deref())
        }
        Edit::Answer { key, response } => {
            answer::answer(&mut sheet, blobs, find(cassette, key)?, response)?;
        }
        Edit::Fault { key, fault } => answer::fault(&mut sheet, find(cassette, key)?, fault),
        Edit::Delay { key, ms } => answer::delay(&mut sheet, blobs, find(cassette, key)?, *ms)?,
        Edit::Note { key, text } => answer::note(&mut sheet, find(cassette, key)?, text),
    }
    finish(sheet, cassette, blobs)
}

/// Writes the changes, and sees to it that the result loads and that ids are what they were.
fn finish(sheet: Sheet<'_>, before: &Cassette, blobs: &dyn BlobSource) -> Result<Edited> {
    let (text, mut told) = sheet.finish();
    let after = Cassette::load(text, blobs)?;
    if of_cassette(before).is_ok() {
        of_cassette(&after)?;
    }
    let text = match ids::keep(before, &after, &mut told) {
        Some(text) => Cassette::load(text, blobs)?.text,
        None => after.text,
    };
    Ok(Edited { text, told })
}

/// The index of the exchange with this key.
fn find(cassette: &Cassette, key: &str) -> Result<usize> {
    let is_it = |exchange: &Exchange| *exchange.key == *key;
    cassette.exchanges.iter().position(is_it).ok_or_else(|| EditError::no_key(cassette, key))
}
