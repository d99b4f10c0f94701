//! What a live client does that the protocol does not allow, as far as its messages alone prove it.
//!
//! The rules are some of those by which recordings are checked ([`crate::lint::RULES`]), under the same names. They
//! change nothing in what is answered: a client's fault is told in the report, where a miss may be its consequence.

use super::{Replayer, ids::Ids};
use crate::{
    lint,
    report::ProtocolReport,
    wire::{
        jsonrpc::{Kind, Message},
        revision::methods,
    },
};

/// What a session's client has done.
#[derive(Debug, Default)]
pub(super) struct Conduct {
    has_said_initialized: bool,
    /// The first request behind `initialize` that is none of the handshake.
    asked: Option<String>,
    ids: Ids,
}

impl Replayer {
    /// Looks at a request or notification before it is dealt with.
    pub(super) fn observe(&mut self, message: &Message<'_>) {
        let method = message.method();
        let is_request = message.kind == Kind::Request;
        let live = self.at_hand.live;
        let in_session = self.lives[live].ordinal > 0 && !self.lives[live].is_over;
        let is_http = self.at_hand.facts.is_some();
        if self.lives[live].is_over && method != "initialize" {
            // Its client is told that by the answer.
            return;
        }
        if method == "initialize" && !message.is_modern() {
            let was_lost = self.faults.as_ref().is_some_and(super::faulty::Faults::has_lost);
            let is_again = in_session && !was_lost && (self.at_hand.is_known || !is_http);
            if is_again && is_request {
                self.tell("handshake-twice", &method, "a second `initialize` in its session; a new session needs a new process, or over HTTP a request without `mcp-session-id`".to_owned());
            }
            return;
        }
        if message.is_modern() || matches!(&*method, "ping" | "server/discover" | "subscriptions/listen") {
            if in_session && message.is_modern() && self.lives[live].play.is_some() {
                self.tell("era", &method, format!("`{method}` is a message of 2026-07-28 or later, in a session that `initialize` began; speak one of both"));
            }
            return;
        }
        if !in_session || (is_http && !self.at_hand.is_known && self.at_hand.post.is_none()) {
            return self.observe_outside(message, &method);
        }
        self.observe_version(&method);
        let conduct = &mut self.lives[live].conduct;
        if !is_request {
            conduct.has_said_initialized |= method == "notifications/initialized";
            return;
        }
        if conduct.asked.is_none() && !conduct.has_said_initialized {
            conduct.asked = Some(method.clone().into_owned());
        }
        if !self.note_id(message) {
            let id = String::from_utf8_lossy(message.id().unwrap_or_default()).into_owned();
            let text =
                format!("the id {id} was used before in its session; give each request an id of its own");
            self.tell("reused-id", &method, text);
        }
    }

    /// Takes in a request's id: whether it is new in its session, as far as that is known.
    pub(super) fn note_id(&mut self, message: &Message<'_>) -> bool {
        let ids = &mut self.lives[self.at_hand.live].conduct.ids;
        let id = message.id().filter(|id| *id != b"null");
        id.is_none_or(|id| ids.insert(id))
    }

    /// A message of the older revisions that is in no session.
    fn observe_outside(&mut self, message: &Message<'_>, method: &str) {
        let is_http = self.at_hand.facts.is_some();
        // Who was told that the session is over does not send a dropped header.
        let has_id = |live: &super::Live| live.id.is_some() && !live.is_over && live.sse.is_none();
        if is_http && self.lives.iter().skip(1).any(has_id) && self.at_hand.live == 0 {
            self.tell("session-header", method, format!(
                "`{method}` did not carry the `mcp-session-id` of any session, although `initialize` was given one; send that \
                 header with every later request"
            ));
        } else if message.kind == Kind::Request && self.scripts.len() > 1 && self.report.sessions == 0 {
            self.tell(
                "handshake-first",
                method,
                format!("`{method}` was sent before `initialize`; send `initialize` first"),
            );
        } else if message.kind == Kind::Request && !self.legacy_recording {
            self.tell("era", method, format!(
                "`{method}` names no revision, and there is no `initialize`; since 2026-07-28 each request has \
                 `io.modelcontextprotocol/protocolVersion` in its `_meta`"
            ));
        }
    }

    /// Whether a request in a session says the revision that was agreed on.
    fn observe_version(&mut self, method: &str) {
        let live = &self.lives[self.at_hand.live];
        let Some(facts) = self.at_hand.facts.as_ref().filter(|_| self.at_hand.post.is_none()) else { return };
        let script = live.play.map(|play| &self.scripts[self.plays[play].script]);
        let session = script.and_then(|script| script.session).map(|at| &self.cassette.sessions[at as usize]);
        let Some(agreed) = session.and_then(|session| session.protocol.as_deref()) else { return };
        let found = match facts.version() {
            [value] if **value == *agreed.as_bytes() => return,
            [] if agreed < "2025-06-18" => return,
            [] => "was not sent".to_owned(),
            [value] => format!("was {}", String::from_utf8_lossy(value)),
            values => format!("was sent {} times", values.len()),
        };
        let text = format!(
            "`mcp-protocol-version` {found}; send `mcp-protocol-version: {agreed}`, which the session agreed on"
        );
        self.tell("version-header", method, text);
    }

    /// Looks at a request that nothing was recorded for.
    pub(super) fn observe_unmatched(&mut self, method: &str) {
        if methods::find(method).is_some() || self.has_told("tool-as-method", method) {
            return;
        }
        if lint::is_tool(&self.cassette, &*self.blobs, method) {
            self.tell("tool-as-method", method, lint::tool_as_method(method));
        } else {
            self.tell("unknown-method", method, lint::unknown_method(method));
        }
    }

    /// A fault answers a request in the server's place: the client may send it again as it was.
    pub(super) fn may_come_again(&mut self, message: &Message<'_>) {
        if let Some(id) = message.id() {
            self.lives[self.at_hand.live].conduct.ids.forget(id);
        }
    }

    /// What is known only at the end: clients that never said that they are initialized.
    pub(super) fn never_said(&self) -> Vec<ProtocolReport> {
        let silent = self.lives.iter().filter(|live| !live.conduct.has_said_initialized);
        let mut told = Vec::new();
        for method in silent.filter_map(|live| live.conduct.asked.as_deref()) {
            let text = format!(
                "`{method}` was sent, and the client never said `notifications/initialized`; send it once `initialize` is \
                 answered"
            );
            note(&mut told, "handshake-initialized", method, text);
        }
        told
    }

    fn has_told(&self, rule: &str, method: &str) -> bool {
        self.report.protocol.iter().any(|told| told.rule == rule && told.method == method)
    }

    fn tell(&mut self, rule: &str, method: &str, text: String) {
        note(&mut self.report.protocol, rule, method, text);
    }
}

/// Equal findings are counted.
fn note(told: &mut Vec<ProtocolReport>, rule: &str, method: &str, text: String) {
    match told.iter_mut().find(|known| known.rule == rule && known.method == method) {
        Some(known) => known.count += 1,
        None => told.push(ProtocolReport {
            server: None,
            rule: rule.to_owned(),
            method: method.to_owned(),
            text,
            source: lint::source(rule).to_owned(),
            count: 1,
        }),
    }
}
