//! What a recorded session does that the protocol does not allow, or that its other side will not understand.
//!
//! A rule is a function over one session, in the order of the wire. To add one: the function in the file of its noun,
//! with its test, and one line in [`RULES`]; the help page and `cassettes/README.md` list them too. A rule speaks only
//! where the recording proves the fault. What may have gone unrecorded, may be an extension of both sides, or may be
//! chance between two streams is no finding: a rule that looks at more than one message and its answer says nothing of a
//! session with a gap, in which any message may be missing, a handshake too.

mod batch;
mod capability;
mod dialogue;
mod era;
mod handshake;
mod headers;
mod ids;
mod methods;
mod progress;
mod response;
mod schema;
mod session_header;
mod structured;
mod version;

use self::dialogue::{Dialogue, Known, Lines};
pub(crate) use self::methods::{tool_as_method, unknown_method};
use crate::cassette::{blob::BlobSource, model::Cassette};

/// One rule.
#[derive(Debug)]
pub struct Rule {
    /// Its name, as findings have it.
    pub id: &'static str,
    /// What it asks for.
    pub says: &'static str,
    /// Where the specification says so: revision and page.
    pub source: &'static str,
    /// Whether a message that is missing can make what is there look wrong.
    is_across: bool,
    find: fn(&Dialogue<'_>, &mut Vec<Fault>),
}

/// Something that a rule found in a session.
#[derive(Debug)]
struct Fault {
    /// Offset in the cassette's text.
    at: usize,
    /// Index of the exchange.
    exchange: u32,
    text: String,
    /// It is no fault: something that could not be looked at.
    is_note: bool,
}

/// Something in a cassette that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Offset in the cassette's text.
    pub at: usize,
    /// The rule's id.
    pub rule: &'static str,
    /// The key of the exchange.
    pub key: Box<str>,
    /// What was found, and what to do about it.
    pub text: String,
    /// Revision and page of the specification.
    pub source: &'static str,
    /// Nothing is wrong: the rule says what it could not look at.
    pub is_note: bool,
}

/// A rule about a message, or about one and its answer.
const fn rule(
    id: &'static str,
    says: &'static str,
    source: &'static str,
    find: fn(&Dialogue<'_>, &mut Vec<Fault>),
) -> Rule {
    Rule { id, says, source, is_across: false, find }
}

/// A rule about what was said before, too.
const fn across(
    id: &'static str,
    says: &'static str,
    source: &'static str,
    find: fn(&Dialogue<'_>, &mut Vec<Fault>),
) -> Rule {
    Rule { is_across: true, ..rule(id, says, source, find) }
}

/// All rules.
pub const RULES: &[Rule] = &[
    across(
        "handshake-first",
        "before 2026-07-28 a session begins with `initialize`, perhaps after pings",
        "2025-11-25/basic/lifecycle",
        handshake::first,
    ),
    across(
        "handshake-early",
        "until `initialize` is answered the client asks for nothing but pings, and does not say `notifications/initialized`",
        "2025-11-25/basic/lifecycle",
        handshake::early,
    ),
    across(
        "handshake-initialized",
        "the client says `notifications/initialized` once `initialize` is answered",
        "2025-11-25/basic/lifecycle",
        handshake::initialized,
    ),
    across(
        "handshake-twice",
        "a session has one `initialize`",
        "2025-11-25/basic/lifecycle",
        handshake::twice,
    ),
    rule(
        "version",
        "client and server agree on a revision that there is",
        "2025-11-25/basic/lifecycle",
        version::agreed,
    ),
    across(
        "version-header",
        "requests over HTTP carry the agreed revision in `mcp-protocol-version`",
        "2025-11-25/basic/transports",
        headers::version,
    ),
    across(
        "session-header",
        "requests over HTTP carry the `mcp-session-id` that the server gave",
        "2025-11-25/basic/transports",
        session_header::dropped,
    ),
    rule(
        "method-header",
        "`mcp-method` and `mcp-name` say what the message says (2026-07-28 on)",
        "2026-07-28/basic/transports/streamable-http",
        headers::method,
    ),
    rule(
        "tool-as-method",
        "a tool is called by `tools/call`, not as a method",
        "2025-11-25/server/tools",
        methods::tool,
    ),
    rule(
        "unknown-method",
        "a method that the other side refuses is one that the protocol has",
        "2025-11-25/schema",
        methods::unknown,
    ),
    rule(
        "foreign-method",
        "a method is sent by the side, in the form and in the revisions that have it",
        "2025-11-25/schema",
        methods::foreign,
    ),
    across(
        "era",
        "messages of 2026-07-28 and of older revisions do not mix in a session",
        "2026-07-28/basic/versioning",
        era::mixed,
    ),
    across(
        "batch",
        "messages are sent as one array in 2025-03-26 only, and `initialize` never",
        "2025-06-18/changelog",
        batch::outside,
    ),
    across(
        "reused-id",
        "a side never uses the id of a request again in its session",
        "2025-11-25/basic",
        ids::reused,
    ),
    across(
        "response-id",
        "a response has the id of its request, of the same type",
        "2025-11-25/basic",
        ids::response,
    ),
    across(
        "progress-token",
        "progress is told for tokens that a request gave",
        "2025-11-25/basic/utilities/progress",
        progress::token,
    ),
    across(
        "progress-order",
        "progress grows with each notification",
        "2025-11-25/basic/utilities/progress",
        progress::order,
    ),
    across(
        "progress-late",
        "no progress follows the response",
        "2025-11-25/basic/utilities/progress",
        progress::late,
    ),
    rule(
        "response-form",
        "a response has either a `result`, which is an object, or an `error`",
        "2025-11-25/basic",
        response::form,
    ),
    across("response-once", "a request is answered by one response", "2025-11-25/basic", response::once),
    rule(
        "error-form",
        "an error has a whole number as `code` and a string as `message`",
        "2025-11-25/basic",
        response::error,
    ),
    rule(
        "is-error",
        "`isError` of a tool's result is true or false",
        "2025-11-25/server/tools",
        response::is_error,
    ),
    rule(
        "result-type",
        "a result has a `resultType` (2026-07-28 on)",
        "2026-07-28/basic",
        response::result_type,
    ),
    across(
        "output-schema",
        "`structuredContent` is there and fits where the tool has an `outputSchema`",
        "2025-11-25/server/tools",
        structured::fits,
    ),
    across(
        "client-capability",
        "the server asks for what the client declared",
        "2025-11-25/basic/lifecycle",
        capability::of_client,
    ),
    across(
        "server-capability",
        "the client uses what the server declared",
        "2025-11-25/basic/lifecycle",
        capability::of_server,
    ),
];

/// What is wrong with the sessions of a cassette, in the order in which it stands in the file.
pub fn lint(cassette: &Cassette, blobs: &dyn BlobSource) -> Vec<Finding> {
    let known = Known::of(cassette, blobs);
    let mut findings = Vec::new();
    let (mut exchanges, mut faults) = (vec![Vec::new(); cassette.sessions.len()], Vec::new());
    for (exchange, index) in cassette.exchanges.iter().zip(0..) {
        exchanges[exchange.session as usize].push(index);
    }
    for (session, exchanges) in (0..).zip(&exchanges) {
        let lines = Lines::of(cassette, session, exchanges, blobs);
        let dialogue = Dialogue::new(cassette, session, &lines, &known);
        for rule in RULES.iter().filter(|rule| !(dialogue.has_gap && rule.is_across)) {
            (rule.find)(&dialogue, &mut faults);
            findings.extend(faults.drain(..).map(|fault| Finding {
                at: fault.at,
                rule: rule.id,
                key: cassette.exchanges[fault.exchange as usize].key.clone(),
                text: fault.text,
                source: rule.source,
                is_note: fault.is_note,
            }));
        }
    }
    findings.sort_by_cached_key(|finding| finding.at);
    findings
}

/// Where the specification says what a rule asks for.
pub(crate) fn source(rule: &str) -> &'static str {
    RULES.iter().find(|known| known.id == rule).map_or("", |known| known.source)
}

/// Whether a cassette's lists of tools have one of this name.
pub(crate) fn is_tool(cassette: &Cassette, blobs: &dyn BlobSource, name: &str) -> bool {
    let known = Known::of(cassette, blobs);
    cassette.sessions.iter().any(|session| known.is_tool(session.recording, name))
}

#[cfg(test)]
mod tests;
