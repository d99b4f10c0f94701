//! The cassette: the JSON file people read, edit and commit.

pub mod blob;
pub mod draft;
pub mod error;
mod expand;
mod fmt;
pub mod format;
#[doc(hidden)]
pub mod fuzz;
pub mod journal;
pub mod key;
mod layout;
mod load;
mod mark;
pub mod model;
pub mod order;
mod print;
mod reader;
mod rebuild;
mod shape;
mod spacing;
pub mod spelling;

pub(crate) use error::found;
pub use error::{LoadError, LoadErrorKind};
pub use fmt::format;
pub use print::Printer;
pub(crate) use shape::nearest;

/// That a text is one JSON value, with nothing but white space around it; where it stands.
///
/// # Errors
/// With the place of the first thing that is wrong, and what was expected there.
pub(crate) fn check_json(text: &[u8]) -> Result<crate::wire::Span, (usize, String)> {
    let told = |error: LoadError| {
        let text = match &error.kind {
            LoadErrorKind::Syntax { expected, found } => format!("expected {expected}, found {found}"),
            other => other.to_string(),
        };
        (error.at, text)
    };
    if let Err(error) = std::str::from_utf8(text) {
        return Err(told(LoadError::new(error.valid_up_to(), LoadErrorKind::NotUtf8)));
    }
    let mut reader = reader::Reader::new(text, crate::wire::scan::trim(text).start);
    let value = reader.value().map_err(told)?;
    reader.skip_space();
    match reader.at == text.len() {
        true => Ok(value),
        false => Err(told(LoadError::syntax(text, reader.at, "the end of the text"))),
    }
}

#[cfg(test)]
mod tests;
