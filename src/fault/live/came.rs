//! What goes into live traffic's faults, and what comes out.

use std::{
    borrow::Cow,
    sync::{Arc, atomic::AtomicU64},
};

use crate::{fault::step::Output, traffic::Lane, wire::jsonrpc::Message};

/// How a message is seen by rules, events and reports.
pub trait Look: Send {
    /// The message without what must not be told of.
    fn message<'a>(&mut self, bytes: &'a [u8]) -> Cow<'a, [u8]>;

    /// A request's headers, their names in lower case: credentials in them may stand in messages too.
    fn headers(&mut self, headers: &[(&str, &[u8])]);

    /// A request's header without what must not be told of; the name is in lower case.
    fn header(&mut self, name: &str, value: &[u8]) -> String;

    /// The canonical form of a message: equal for requests that ask the same.
    fn form(&mut self, message: &Message<'_>) -> Vec<u8>;
}

/// One thing that a client sends.
#[derive(Clone, Copy, Debug)]
pub struct Came<'a> {
    /// 0 on stdio; over HTTP that of its response, which nothing else has.
    pub lane: Lane,
    /// The line without its end, or the body: none for `GET`, `DELETE` and the like.
    pub bytes: &'a [u8],
    /// What carried it, over HTTP.
    pub http: Option<Http<'a>>,
}

/// What carries a message over HTTP.
#[derive(Clone, Copy, Debug)]
pub struct Http<'a> {
    /// Header names in lower case, and values.
    pub headers: &'a [(&'a str, &'a [u8])],
    /// Over HTTP+SSE, the lane of the stream that answers go on, and the endpoint that it was posted to.
    pub stream: Option<(Lane, &'a str)>,
    /// Whether it is the first request on its connection.
    pub opens_connection: bool,
}

impl<'a> Http<'a> {
    pub(super) fn header(&self, name: &str) -> Option<&'a [u8]> {
        self.headers.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    /// What names the session that it is in.
    pub(super) fn session(&self) -> Option<&'a str> {
        let by_header = || std::str::from_utf8(self.header("mcp-session-id")?).ok();
        self.stream.map(|(_, endpoint)| endpoint).or_else(by_header)
    }
}

/// What becomes of what a client sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passing {
    /// It is passed on now.
    Now,
    /// A fault holds it back: it is passed on when [`Live::poll`](super::Live::poll) says [`Do::Pass`].
    Later,
    /// It is not passed on: something else answers, or nothing does.
    Never,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Do {
    /// Say this to the client.
    Say(Output),
    /// Pass on what was held back.
    Pass {
        /// The lane that it came on.
        lane: Lane,
        /// It, as it came.
        bytes: Vec<u8>,
    },
}

/// How live traffic is looked at.
pub struct Options {
    /// What the report calls it.
    pub name: String,
    /// How rules, events and reports see messages.
    pub look: Box<dyn Look>,
    /// Events are collected, for [`Live::take_events`](super::Live::take_events): so many there are by now.
    pub events: Option<Arc<AtomicU64>>,
}

impl Came<'_> {
    /// Over HTTP+SSE, the lane of what carried it, on which no answer goes.
    pub(super) fn post(&self) -> Option<Lane> {
        self.http.and_then(|http| http.stream).map(|_| self.lane)
    }

    /// The lane that answers go on.
    pub(super) fn own_lane(&self) -> Lane {
        self.http.and_then(|http| http.stream).map_or(self.lane, |(lane, _)| lane)
    }
}
