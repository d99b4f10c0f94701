//! Sessions with the outside world: the only place that waits, reads the clock and moves bytes.
//!
//! - [`record`]: a client and a server that is a child process, with a tap between them
//! - [`live`]: faults between a client and either of those; `outbox`, what waits to be written to a pipe
//! - [`replay`]: a client and a cassette in place of the server
//! - [`listen`]: clients on HTTP, and such that join, and cassettes in place of servers
//! - [`join`]: a client on stdio that is served by another process of ours; [`run`]: the command such a process is for
//! - [`reverse`]: clients and a server on HTTP, with a tap between them
//! - [`shutdown`]: when a session ends, how a server is told, and how we end ourselves
//! - [`stop`]: a signal as something to wait for
//! - [`bridge`]: a client on stdio and a server on HTTP, with a tap between them
//! - [`upstream`]: the real servers behind a replay
//! - [`front`]: what speaks where a session cannot start
//! - `linger`: looking again before waiting
//! - `pace`: when a report is told again
//! - `refusals`: what came over HTTP and was refused

#[cfg(unix)]
use std::sync::{Mutex, MutexGuard, PoisonError};

#[cfg(unix)]
pub mod bridge;
pub mod front;
#[cfg(unix)]
pub mod join;
#[cfg(unix)]
pub mod listen;
#[cfg(unix)]
pub mod live;
#[cfg(unix)]
pub mod record;
#[cfg(unix)]
pub mod replay;
#[cfg(unix)]
pub mod reverse;
#[cfg(unix)]
pub mod run;
#[cfg(unix)]
pub mod shutdown;
#[cfg(unix)]
pub mod stop;
#[cfg(unix)]
pub mod upstream;

/// Locks what a panic elsewhere cannot have left half done.
#[cfg(unix)]
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(unix)]
mod child;
#[cfg(unix)]
mod hide;
#[cfg(unix)]
mod linger;
#[cfg(unix)]
mod outbox;
#[cfg(unix)]
mod pace;
#[cfg(unix)]
mod recorder;
#[cfg(unix)]
mod refusals;
#[cfg(unix)]
mod reply;
#[cfg(unix)]
mod signals;
#[cfg(unix)]
mod tap;
