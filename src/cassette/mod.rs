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

#[doc(hidden)]
pub use error::found;
pub use error::{LoadError, LoadErrorKind};
pub use fmt::{format, format_exchange, lay_out};
pub use print::Printer;
pub use reader::check_json;
pub(crate) use shape::nearest;

#[cfg(test)]
mod tests;
