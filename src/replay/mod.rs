//! Replay: a cassette in place of the server.
//!
//! [`Replayer`] is a pure state machine: it takes what the client sent and the time, and says what to send and when
//! to ask again. It owns no socket and no clock; `proxy` performs. Inside:
//!
//! - `exchange`: what goes in and what comes out
//! - `clock`: the times of what happens and of what is played
//! - `script`: a recorded session, indexed by what its requests ask and ordered by when things happened
//! - `clear`: how a cassette is seen that was recorded without redaction
//! - `lens`: how faults see live traffic
//! - `index`: which steps of a script a message asks for
//! - [`matcher`]: which recorded exchange a live message asks for
//! - `numbers`: maps by numbers of ours
//! - `methods`: the methods of a script's steps
//! - `play`: a live session playing a script: what goes next and what it waits for
//! - `rewrite`: recorded bytes made to fit the live ids and tokens
//! - `own`: what is answered without a recording
//! - `miss`: why there is no answer
//! - `moved`: under `--strict`, what came in another place than recorded

mod choice;
#[doc(hidden)]
pub mod clear;
mod clock;
mod exchange;
#[doc(hidden)]
pub mod fuzz;
mod index;
mod lens;
pub mod matcher;
mod methods;
mod miss;
mod moved;
mod numbers;
mod options;
mod own;
mod play;
mod replayer;
mod rewrite;
mod script;
mod spellings;

pub use clock::{Due, Now};
pub use exchange::{Headers, HttpRequest, Input, KEEP_ALIVE, Output, ResponseHead, Seed};
pub(crate) use exchange::{Pace, Wants};
pub use lens::Lens;
pub use options::{Options, Order, Repeat, Timing};
pub(crate) use own::is_lookup;
pub use replayer::{ReplayError, Replayer};
