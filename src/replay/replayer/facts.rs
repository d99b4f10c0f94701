//! What an HTTP request tells beside its message, and how well a recorded one fits it.

use super::{
    Replayer,
    paths::{self, Scope},
    streams::is_line,
};
use crate::{
    cassette::model::{Cassette, Header},
    redact::is_credential,
    replay::{exchange::HttpRequest, matcher::canonical::without_numbers},
    wire::{
        http::{LAST_EVENT_ID, decoded, names_type},
        jsonrpc::{Message, text},
    },
};

/// A recorded request that is equal in all that is looked at.
pub(super) const FITS: u8 = PATH | VERSION | ACCEPT | RESUMES | AUTH;

// The more it tells, the heavier.
const PATH: u8 = 0b1111_0000;
const VERSION: u8 = 8;
const ACCEPT: u8 = 4;
const RESUMES: u8 = 2;
const AUTH: u8 = 1;

/// What the official SDKs accept.
const USUAL_ACCEPT: &[u8] = b"application/json, text/event-stream";

/// What the answer to an HTTP request can depend on beside its message.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    path: Box<str>,
    scope: Scope,
    version: Vec<Box<[u8]>>,
    accept: Vec<Box<[u8]>>,
    last_event_id: Vec<Box<[u8]>>,
    has_credentials: bool,
    is_get: bool,
    /// Challenges, and what leads on from them, are left out.
    skips_auth: bool,
}

impl Facts {
    /// Those of a request. Most of them are `before`, those of the request before it.
    /// `target` is that of the request, from which what is secret is removed.
    pub(super) fn of(
        request: &HttpRequest<'_>,
        target: &str,
        scope: Scope,
        skips_auth: bool,
        before: Self,
    ) -> Self {
        let mut has_credentials = false;
        let [mut version, mut accept, mut last_event_id] =
            [before.version, before.accept, before.last_event_id].map(Values::instead_of);
        for (name, value) in request.headers {
            match *name {
                // All requests have these.
                "host" | "content-type" | "content-length" => {}
                "accept" => accept.push(value),
                "mcp-protocol-version" => version.push(value),
                LAST_EVENT_ID => last_event_id.push(value),
                name => has_credentials |= is_credential(name),
            }
        }
        Self {
            path: if *before.path == *target { before.path } else { paths::comparable(target).into() },
            scope,
            version: version.end(),
            accept: accept.end(),
            last_event_id: last_event_id.end(),
            has_credentials,
            is_get: request.method == "GET",
            skips_auth,
        }
    }

    /// Takes out of the event it goes on behind what recordings do not have of it.
    pub(super) fn hide(&mut self, mut hide: impl FnMut(&str, &[u8]) -> String) {
        for id in &mut self.last_event_id {
            *id = without_numbers(hide(LAST_EVENT_ID, id).as_bytes()).into();
        }
    }

    /// Whether it carries credentials.
    pub(super) const fn has_credentials(&self) -> bool {
        self.has_credentials
    }

    /// Where what answers it was recorded.
    pub(super) const fn scope(&self) -> &Scope {
        &self.scope
    }

    /// The revisions that its headers name.
    pub(super) fn version(&self) -> &[Box<[u8]>] {
        &self.version
    }

    /// How well a recorded request fits, [`FITS`] at most; none where its answer is not for this one.
    pub(super) fn fit(&self, cassette: &Cassette, exchange: u32) -> Option<u8> {
        let entry = &cassette.exchanges[exchange as usize];
        let session = &cassette.sessions[entry.session as usize];
        let http = entry.http.as_deref();
        if http.is_none() && !session.is_http() {
            return Some(FITS);
        }
        if !self.scope.has(paths::target(cassette, entry)) {
            return None;
        }
        let refuses = http.and_then(|http| http.status).is_some_and(|status| matches!(status, 401 | 403));
        let had_credentials = http.is_some_and(|http| http.auth);
        if refuses && (self.skips_auth || had_credentials != self.has_credentials) {
            return None;
        }
        let is_line = is_line(entry);
        if self.skips_auth && is_line && self.path.starts_with("/.well-known/") {
            return None;
        }
        let recorded = |name: &str| {
            let headers = http.map_or(&[][..], |http| &http.request);
            headers.iter().find(|header| &*header.name == name).map(|header: &Header| &header.values)
        };
        // What goes on behind an event goes on behind no other.
        let goes_on_behind = |ids: &[Box<[u8]>]| {
            ids.iter().map(|id| without_numbers(id)).eq(self.last_event_id.iter().map(|id| &**id))
        };
        if is_line && self.is_get && !goes_on_behind(recorded(LAST_EVENT_ID).map_or(&[][..], |id| id)) {
            return None;
        }
        let mut fit = 0;
        let path = http.and_then(|http| http.path.as_deref()).or(session.path.as_deref());
        let is_here = |path: &str| *path == *self.path || *paths::comparable(path) == *self.path;
        fit |= if is_line || path.is_none_or(is_here) { PATH } else { 0 };
        fit |= match (recorded("mcp-protocol-version"), session.protocol.as_deref()) {
            (Some(version), _) if *version == self.version => VERSION,
            (None, Some(usual)) if self.version.iter().all(|version| **version == *usual.as_bytes()) => {
                // Not sent at all may be as usual, or what another one is recorded for.
                if self.version.is_empty() { 0 } else { VERSION }
            }
            (None, None) => VERSION,
            _ => 0,
        };
        fit |= match recorded("accept") {
            Some(accept) if *accept == self.accept => ACCEPT,
            None if self.accepts_as_usual() => ACCEPT,
            _ => 0,
        };
        fit |= match recorded(LAST_EVENT_ID) {
            Some(id) if goes_on_behind(id) => RESUMES,
            None if self.last_event_id.is_empty() => RESUMES,
            _ => 0,
        };
        fit |= if had_credentials == self.has_credentials { AUTH } else { 0 };
        Some(fit)
    }

    /// Takes the request for one that goes on with nothing.
    pub(super) fn resumes_nothing(&mut self) {
        self.last_event_id.clear();
    }

    /// Whether path and credentials are those of a recorded request.
    pub(super) fn is_alike(&self, cassette: &Cassette, exchange: u32) -> bool {
        self.fit(cassette, exchange).is_some_and(|fit| fit & (PATH | AUTH) == PATH | AUTH)
    }

    /// Whether the client takes an answer as JSON.
    pub(super) fn accepts_json(&self) -> bool {
        ["application/json", "*/*"].iter().any(|wanted| names_type(&self.accept, wanted))
    }

    /// Whether it asks for an event stream.
    pub(super) fn wants_events(&self) -> bool {
        self.is_get && names_type(&self.accept, "text/event-stream")
    }

    fn accepts_as_usual(&self) -> bool {
        if matches!(&*self.accept, [accept] if **accept == *USUAL_ACCEPT) {
            return true;
        }
        let accepts = |wanted: &str| names_type(&self.accept, wanted);
        accepts("text/event-stream") && (self.is_get || accepts("application/json"))
    }
}

/// The values of a request's header, in the place of those of the request before it, which are mostly the same.
struct Values {
    values: Vec<Box<[u8]>>,
    /// So many of them are the new ones.
    count: usize,
}

impl Values {
    const fn instead_of(values: Vec<Box<[u8]>>) -> Self {
        Self { values, count: 0 }
    }

    fn push(&mut self, value: &[u8]) {
        if self.values.get(self.count).is_none_or(|known| **known != *value) {
            self.values.truncate(self.count);
            self.values.push(value.into());
        }
        self.count += 1;
    }

    fn end(mut self) -> Vec<Box<[u8]>> {
        self.values.truncate(self.count);
        self.values
    }
}

impl Replayer {
    /// Tells where the headers of a request of 2026-07-28 say something else than its message (F4.2, F10.22).
    pub(super) fn check_headers(&mut self, request: &HttpRequest<'_>, message: &Message<'_>) {
        let version = message.meta("io.modelcontextprotocol/protocolVersion").map(text);
        let name = message.name();
        let expected =
            [("mcp-protocol-version", version), ("mcp-method", Some(message.method())), ("mcp-name", name)];
        for (header, expected) in expected {
            let Some(expected) = expected else { continue };
            let found = request.header(header);
            if found.is_none_or(|found| *decoded(found) != *expected.as_bytes()) {
                let found = found.map_or_else(
                    || "is missing".to_owned(),
                    |found| format!("is `{}`", String::from_utf8_lossy(found)),
                );
                self.warn(format!(
                    "a request `{}` has `{expected}` in its message, and its header {header} {found}; \
                     a server of 2026-07-28 refuses that",
                    message.method()
                ));
            }
        }
    }
}
