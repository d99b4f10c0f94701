//! All faults, one line and one file each. Toxiproxy, WireMock and Envoy lend their names where they mean the same.

mod ahead;
mod answer;
mod auth_expired;
mod bandwidth;
mod breaking;
mod cancelled;
mod close_early;
mod cut_after;
mod dribble;
mod drop;
mod duplicate;
mod error;
mod exit;
pub(super) mod framing;
mod garbage;
mod half_close;
mod heads;
mod ignore_shutdown;
mod input_required_loop;
mod invalid_utf8;
mod latency;
mod list_changed;
mod lost_answer;
mod malformed_json;
mod missing_header;
mod noise_line;
mod null_id;
mod oversize;
#[cfg(test)]
pub(in crate::fault) mod parameters;
mod progress;
mod refuse;
mod reorder;
mod reset_peer;
mod schema_violation;
mod server_request;
mod session_expired;
mod slow_start;
pub(super) mod speak;
mod status;
#[cfg(test)]
mod testing;
mod timeout;
mod tool_error;
mod truncate;
mod wrong_content_type;
mod wrong_id;
mod wrong_version;

use std::sync::Arc;

pub(super) use self::server_request::SERVER_REQUEST;
use super::{Fault, PlanError, Request, error::list, plan::Scope, value::Object};

/// How a fault takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acts {
    /// It delays or adds; the server answers all the same, and other faults may act too.
    Beside,
    /// It damages or loses the server's answer, which is used up.
    Answer,
    /// It answers in the server's place: no recorded answer is used up, or needed.
    Instead,
}

/// Where a fault can exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Where {
    /// On all transports, in all revisions.
    Everywhere,
    /// Over HTTP.
    Http,
    /// On stdio.
    Stdio,
    /// Before 2026-07-28.
    Legacy,
    /// Since 2026-07-28.
    Modern,
}

/// On which requests a fault can do anything; a rule passes others by, and does not count them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    /// All of them.
    Any,
    /// Those of these methods.
    Methods(&'static [&'static str]),
    /// Those with a progress token.
    Tokens,
}

/// One kind of fault.
#[derive(Debug)]
pub struct Kind {
    /// Its name in plans and on the command line.
    pub name: &'static str,
    /// What it does, and its parameters.
    pub about: &'static str,
    /// How it takes part.
    pub acts: Acts,
    /// Where it can exist.
    pub exists: Where,
    /// On which requests.
    pub on: On,
    /// It can act on what goes to the server.
    pub to_server: bool,
    /// It rolls.
    pub by_chance: bool,
    /// It is about bytes or connections, so a socket and a pipe have to show it.
    pub is_physical: bool,
    /// Of those that act beside the answer, a higher layer acts later: 0 on messages, more on their bytes.
    pub layer: u8,
    /// Takes its parameters from a rule.
    pub read: fn(&mut Object<'_>) -> Result<Arc<dyn Fault>, PlanError>,
}

const fn kind(
    name: &'static str,
    acts: Acts,
    exists: Where,
    read: fn(&mut Object<'_>) -> Result<Arc<dyn Fault>, PlanError>,
    about: &'static str,
) -> Kind {
    Kind {
        name,
        about,
        acts,
        exists,
        on: On::Any,
        to_server: false,
        by_chance: false,
        is_physical: false,
        layer: 0,
        read,
    }
}

const fn physical(kind: Kind) -> Kind {
    Kind { is_physical: true, ..kind }
}

const fn only(on: On, kind: Kind) -> Kind {
    Kind { on, ..kind }
}

/// Requests that call a tool.
const CALLS: On = On::Methods(&["tools/call"]);

/// Requests that may be answered by a question (specification 2026-07-28, basic/patterns/mrtr).
const ASKS: On = On::Methods(&["tools/call", "prompts/get", "resources/read"]);

/// Requests by which a client and a server agree on a revision.
const HANDSHAKES: On = On::Methods(&["initialize", "server/discover"]);

use Acts::{Answer, Beside, Instead};
use Where::{Everywhere, Http, Legacy, Modern, Stdio};

/// The whole list.
pub static TABLE: &[Kind] = &[
    Kind {
        to_server: true,
        by_chance: true,
        ..kind(
            "latency",
            Beside,
            Everywhere,
            latency::read,
            "the first thing said comes late: `ms`, `uniform` (`min_ms`, `max_ms`) or `lognormal` (`median_ms`, `sigma`, `max_ms`)",
        )
    },
    kind("timeout", Instead, Everywhere, timeout::read, "nothing is ever said"),
    Kind {
        to_server: true,
        ..kind(
            "slow_start",
            Beside,
            Everywhere,
            slow_start::read,
            "the first request waits `ms`, each later one half as long as the one before it",
        )
    },
    Kind {
        layer: 2,
        ..kind(
            "bandwidth",
            Beside,
            Everywhere,
            bandwidth::read,
            "what is said comes at `bytes_per_second`, ten slices a second",
        )
    },
    Kind {
        layer: 1,
        ..kind(
            "dribble",
            Beside,
            Everywhere,
            dribble::read,
            "the answer comes in so many pieces, `chunks`, over so much time, `ms`",
        )
    },
    physical(kind(
        "refuse",
        Instead,
        Http,
        refuse::read,
        "the connection is reset before any byte of a response",
    )),
    physical(kind(
        "reset_peer",
        Answer,
        Http,
        reset_peer::read,
        "the connection is reset in the response's place, or behind its head and `bytes` bytes of the answer",
    )),
    physical(kind(
        "close_early",
        Answer,
        Everywhere,
        close_early::read,
        "the connection is closed behind the head and `bytes` (0) bytes of the answer; on stdio, stdout is; over HTTP a client that resumes a live stream may get it",
    )),
    physical(kind(
        "cut_after",
        Answer,
        Everywhere,
        cut_after::read,
        "the response is cut off behind `events` messages or `bytes` bytes; on stdio, stdout is closed, and \
         a shorter one passes",
    )),
    physical(kind(
        "half_close",
        Answer,
        Everywhere,
        half_close::read,
        "behind the answer our side of the connection ends in good order, on stdio stdout; the client is still heard",
    )),
    physical(kind(
        "exit",
        Answer,
        Everywhere,
        exit::read,
        "the server ends in the answer's place: `status` (1) or `signal`, `partial` text before it",
    )),
    physical(kind(
        "ignore_shutdown",
        Beside,
        Stdio,
        ignore_shutdown::read,
        "when its input has closed or a signal tells it to end, the server stays for `ms`",
    )),
    physical(kind(
        "garbage",
        Answer,
        Everywhere,
        garbage::read,
        "`bytes` (64) bytes of noise, or `text`, in the answer's place",
    )),
    physical(kind(
        "truncate",
        Answer,
        Everywhere,
        truncate::read,
        "only `bytes` bytes of the answer's text come",
    )),
    physical(kind(
        "malformed_json",
        Answer,
        Everywhere,
        malformed_json::read,
        "the answer's last brace is a bracket",
    )),
    physical(kind(
        "invalid_utf8",
        Answer,
        Everywhere,
        invalid_utf8::read,
        "the byte FF ends the last string of what is answered",
    )),
    physical(kind(
        "noise_line",
        Beside,
        Stdio,
        noise_line::read,
        "a line that is no message, `text`, comes before the answer",
    )),
    physical(kind(
        "oversize",
        Answer,
        Everywhere,
        oversize::read,
        "the answer grows to `bytes` bytes, by white space in it",
    )),
    physical(kind(
        "wrong_content_type",
        Answer,
        Http,
        wrong_content_type::read,
        "the response's content type is `value` (text/html)",
    )),
    kind(
        "status",
        Instead,
        Http,
        status::read,
        "an HTTP `status`, with `retry_after`, `challenge`, `headers` and `body`",
    ),
    physical(kind(
        "missing_header",
        Answer,
        Http,
        missing_header::read,
        "the header `name` is left out of the response",
    )),
    kind("error", Instead, Everywhere, error::read, "a JSON-RPC error: `code` (-32603), `message`, `data`"),
    kind(
        "wrong_id",
        Answer,
        Everywhere,
        wrong_id::read,
        "the answer has an id that no request has; over HTTP a client that resumes a live stream may get the right one",
    ),
    kind("duplicate", Answer, Everywhere, duplicate::read, "the answer comes `copies` (2) times"),
    kind(
        "drop",
        Answer,
        Everywhere,
        drop::read,
        "the answer is lost; what else the server says comes; over HTTP a client that resumes a live stream may get it",
    ),
    kind(
        "reorder",
        Beside,
        Everywhere,
        reorder::read,
        "the answer comes after the next other one, or after `ms` (1000)",
    ),
    kind("null_id", Answer, Everywhere, null_id::read, "the answer's id is null"),
    only(
        CALLS,
        kind(
            "tool_error",
            Answer,
            Everywhere,
            tool_error::read,
            "the result of a call says that the tool failed: `text`",
        ),
    ),
    kind(
        "session_expired",
        Instead,
        Legacy,
        session_expired::read,
        "the session is gone: `style` (`http_404`, `http_400`, `error`), `message`",
    ),
    only(
        On::Tokens,
        kind(
            "progress",
            Beside,
            Everywhere,
            progress::read,
            "progress that cannot be, where it was asked for: `how` (`backwards`, `after_result`)",
        ),
    ),
    kind(
        "list_changed",
        Beside,
        Everywhere,
        list_changed::read,
        "before the answer the server tells that a `list` (`tools`, `prompts`, `resources`) has changed",
    ),
    kind(
        "server_request",
        Beside,
        Legacy,
        server_request::read,
        "before the answer the server asks the client: `method` (`ping`), `params`",
    ),
    only(
        CALLS,
        kind(
            "schema_violation",
            Answer,
            Everywhere,
            schema_violation::read,
            "`structuredContent` breaks the tool's `outputSchema`; a result without it passes",
        ),
    ),
    only(
        HANDSHAKES,
        kind(
            "wrong_version",
            Answer,
            Everywhere,
            wrong_version::read,
            "the handshake answers with another `version` (`1999-01-01`)",
        ),
    ),
    only(
        ASKS,
        kind(
            "input_required_loop",
            Instead,
            Modern,
            input_required_loop::read,
            "the server asks for input again and again",
        ),
    ),
    kind(
        "cancelled",
        Instead,
        Everywhere,
        cancelled::read,
        "the server gives the request up by `notifications/cancelled` and never answers",
    ),
    kind("auth_expired", Instead, Http, auth_expired::read, "401: the access token expired"),
    kind(
        "lost_answer",
        Answer,
        Everywhere,
        lost_answer::read,
        "the server did it, and its answer never comes; over HTTP the response is cut off, and \
         a client that resumes a live one may get it",
    ),
];

/// The fault with this name.
pub fn find(name: &str) -> Option<&'static Kind> {
    TABLE.iter().find(|kind| kind.name == name)
}

/// All names.
pub fn names() -> String {
    list(TABLE.iter().map(|kind| kind.name))
}

impl On {
    /// Whether it can do anything to a request.
    pub(super) fn fits(self, request: &Request<'_>) -> bool {
        match self {
            Self::Any => true,
            Self::Methods(methods) => methods.contains(&request.method),
            Self::Tokens => request.message.progress_token().is_some(),
        }
    }
}

impl Kind {
    /// Why it does nothing to the requests of a selector, which are of this method where that is known; a script
    /// (`in_order`) has to name one.
    pub(super) fn passes_by(&self, method: Option<&str>, in_order: bool) -> Option<String> {
        match method {
            Some(method) => Some(format!("{}, and `when` is about {method}", self.not_on(method)?)),
            None if in_order => {
                Some(format!("{}; a script with it names the method in its `when`", self.not_on("")?))
            }
            None => None,
        }
    }

    /// That it does nothing to requests of this method.
    pub(super) fn not_on(&self, method: &str) -> Option<String> {
        let On::Methods(methods) = self.on else { return None };
        (!methods.contains(&method))
            .then(|| format!("`{}` acts on {} only", self.name, methods.join(" and ")))
    }

    /// Why it cannot exist on what is served.
    pub(super) fn cannot(&self, scope: Scope) -> Option<&'static str> {
        match self.exists {
            Http if !scope.is_http => Some(
                "it needs HTTP, and clients are on stdio here; `--listen` serves HTTP (live traffic: with `--url`)",
            ),
            Stdio if scope.is_http => Some("it needs stdio, and this process serves HTTP"),
            Legacy if !scope.is_legacy => Some("it needs a revision before 2026-07-28"),
            Modern if !scope.is_modern => Some("it needs revision 2026-07-28 or later"),
            _ => None,
        }
    }
}
