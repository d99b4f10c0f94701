//! The files: the only module that touches them.
//!
//! Beside a cassette `C` stand the journals of its recorders, `C.<start>-<id>.journal`, and while it is written
//! `C.lock` and `C.tmp`. A recorder holds an exclusive lock on its journal as long as it lives: a journal nobody
//! holds is dead, and whoever comes next may fold it into the cassette.
//!
//! - [`Journal`]: what a recorder writes to

mod disk;
mod journal;
mod lock;
mod origin;
mod paths;

pub use journal::Journal;
pub use origin::new_header;
