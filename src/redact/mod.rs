//! Secrets never reach the disk, a log or a report: what is removed from messages before they are stored or shown.
//!
//! [`Rules`] say what is secret, a [`Redactor`] (one for each session) replaces it by `<redacted:kind-n>`, and
//! [`Pairing`] tells in replay which live secret stands for which recorded one. Live traffic is never touched.
//!
//! What is secret is listed in two tables, each of which begins with how to add a line: `names` (values of members,
//! variables and parameters with such a name) and `shapes` (tokens with such a look); `ordinary` and `references` say
//! which values are none all the same. Values that were found once are found again wherever they stand, also encoded
//! (`secrets`). From the message inward:
//!
//! - `search` walks the message: its strings, the JSON inside them, the places that options name
//! - `layers` carries what is found in decoded strings back to the message's bytes
//! - `finder` reads one text in one pass: where `filter` and `clues` see that something can begin, it asks the tables,
//!   `assignment` (`"password": "x"`, `API_KEY=x`), `address`, `login` (`curl -u user:x`, `sshpass -p x`) and `secrets`
//! - `clean` knows headers that were looked at
//! - [`Met`] has one session find what another has met
//! - [`vars`] hides values that people named, and shows them again
//! - `places` says where something stood, for the counts at the end of a recording

mod address;
mod assignment;
mod clean;
mod clues;
mod disguise;
mod filter;
mod finder;
mod forms;
#[doc(hidden)]
pub mod fuzz;
mod layers;
mod login;
mod met;
mod names;
mod ordinary;
pub mod pairing;
mod placeholder;
mod places;
mod pointer;
pub mod redactor;
mod references;
pub mod rules;
mod search;
mod secrets;
mod shapes;
#[cfg(test)]
mod tests;
pub mod vars;

pub(crate) use address::form_decoded;
pub(crate) use disguise::is_disguised_look;
pub use met::Met;
pub use names::is_credential;
pub use pairing::{Broken, Exempt, Pairing, Pairs};
pub use placeholder::Placeholder;
pub(crate) use placeholder::{is_spelled, placeholders};
pub use redactor::{Count, Redactor};
pub use rules::{Options, RuleError, Rules};
pub(crate) use secrets::{alike, entity};
pub(crate) use shapes::{is_look, is_of_looks_alone};
pub use vars::{VarError, Vars};
