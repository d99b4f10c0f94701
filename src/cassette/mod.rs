//! The cassette: the JSON file people read, edit and commit.

pub mod blob;
pub mod draft;
pub mod journal;
pub mod key;
pub mod model;
pub mod spelling;
