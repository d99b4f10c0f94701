//! The files: the only module that touches them.
//!
//! Beside a cassette `C` stand the journals of its recorders, `C.<start>-<id>.journal`, and while it is written
//! `C.lock` and `C.tmp`; beside a journal, while its recorder takes out of it what it met late, the same with `.tmp`
//! behind it. A recorder holds an exclusive lock on its journal as long as it lives: a journal nobody
//! holds is dead, and whoever comes next may fold it into the cassette.
//!
//! - [`Journal`]: what a recorder writes to
//! - [`load()`]: a cassette and its journals, read together
//! - [`rewrite()`]: puts another text in a cassette's place; [`write_variant()`]: puts it elsewhere
//! - [`EventLog`]: what became of the messages of a replay
//! - [`shell`]: paths in commands that people are told to run
//! - [`fold()`]: puts the journals of recorders that ended into their cassette

mod blobs;
mod convert;
mod disk;
mod error;
mod event_log;
mod fold;
mod journal;
mod load;
mod lock;
mod origin;
mod other;
mod paths;
mod recover;
mod rewrite;
pub mod shell;
mod siblings;

pub use blobs::Blobs;
pub use convert::convert;
pub use error::{StoreError, advice, way_out};
pub use event_log::EventLog;
pub use fold::{FoldOptions, FoldOutcome, fold};
pub use journal::Journal;
pub use load::{Loaded, faults, load, recorders};
pub use origin::new_header;
pub use other::open_other;
pub use recover::{LeftJournal, left_journals, recover};
pub use rewrite::{load_file, rewrite, write_variant};

#[cfg(test)]
mod tests;
