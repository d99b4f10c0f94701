//! Faults: what goes wrong on purpose.
//!
//! A matched request yields outputs; a fault turns them into others ([`Effect`]), or speaks in the server's place
//! ([`Fault::instead`]). So a fault is a function of what it is given, in a file of its own:
//!
//! 1. `src/fault/catalogue/<name>.rs`: a struct with the fault's parameters that implements [`Fault`], a function
//!    `read` that takes them from an [`Object`], and its tests.
//! 2. One line in [`catalogue::TABLE`], which is the list that users see.
//! 3. A connection or byte fault, `physical` in the table: a test at the socket and one at the pipe, where it exists,
//!    named in the list `TESTED` of `tests/it/faults/{socket,pipe}.rs`.
//!
//! - `plan`, `rule`, `when`, `value`, `error`: a plan's text becomes rules
//! - `assert`: what has to be so at the end; `freeze`: what chance has decided becomes rules
//! - `stranger`: rules that name what nobody has recorded
//! - `engine`: which rules act on a request; `chance`: on which of many
//! - `live`: all of it on traffic that is not recorded yet
//! - `stage`: affected requests under way, and when what they send is due; `work`: whether a fault has acted on one;
//!   `pieces`: messages that go in pieces

mod assert;
pub mod catalogue;
mod chance;
mod engine;
mod error;
mod freeze;
pub mod live;
mod pieces;
mod plan;
mod rule;
mod short;
mod stage;
pub mod step;
mod stranger;
mod value;
mod when;
mod work;

use std::fmt::Debug;

use self::step::{Output, Step};
pub use self::{
    engine::{Chosen, Decision, Engine, Fired, Request},
    error::PlanError,
    freeze::{Frozen, freeze},
    plan::{Plan, Plans, Scope, of_cassette},
    stage::{Acting, Origin, Stage},
    stranger::Stranger,
    value::{Object, Value},
    work::Work,
};
use crate::traffic::{Lane, Micros};

/// What is told where a batch has come under a plan.
pub(crate) const BATCH: &str = "a batch of messages passed as it is: faults act on requests that stand alone";

/// A request that a fault acts on, and how its client is answered.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// The lane that its messages go on.
    pub lane: Lane,
    /// Over HTTP+SSE, the lane of the request that carried it.
    pub post: Option<Lane>,
    /// Whether it came over HTTP; else on stdio.
    pub is_http: bool,
    /// Its method.
    pub method: &'a str,
    /// Its id, raw.
    pub id: &'a [u8],
    /// Whether it is of 2026-07-28 or later.
    pub is_modern: bool,
    /// Its progress token, raw.
    pub token: Option<&'a [u8]>,
    /// How often the fault's rule has fired, this time included.
    pub count: u64,
    /// From 0 to 1 without 1: the same for the same request and seed, whatever else has happened.
    pub roll: f64,
}

/// What goes wrong, with its parameters.
pub trait Fault: Debug + Send + Sync {
    /// What is said in the server's place; none where the fault acts on what the server says.
    fn instead(&self, _of: &Target<'_>) -> Option<Vec<Step>> {
        None
    }

    /// What acts on all that is said because of the request.
    fn effect(&self, _of: &Target<'_>) -> Option<Box<dyn Effect>> {
        None
    }

    /// How long from now on a server on stdio stays although it is told to end.
    fn lingers(&self) -> Option<Micros> {
        None
    }

    /// Whether the client's session is gone after it.
    fn ends_session(&self) -> bool {
        false
    }
}

/// Acts on all that is said because of one request. That it has acted is seen by what it makes of that: see [`Work`].
pub trait Effect: Debug + Send {
    /// What becomes of one output.
    fn pass(&mut self, output: Output, out: &mut Vec<Step>);

    /// Whether it may act behind the answer too, where that has passed as it was.
    fn acts_behind(&self) -> bool {
        false
    }
}
