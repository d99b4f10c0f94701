//! The cassette: the JSON file people read, edit and commit.

pub mod model;
pub mod spelling;
