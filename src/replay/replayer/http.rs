//! HTTP requests: which session they belong to, and what they ask for.

use super::{
    AtHand, Found, Replayer,
    lives::Live,
    streams::{Stream, is_line},
};
use crate::{
    cassette::model::{Cassette, EventType, Header, Item, On, Unanswered},
    replay::{
        exchange::HttpRequest,
        miss,
        play::Play,
        script::{Step, client_message},
    },
    traffic::{Lane, Micros},
    wire::jsonrpc::{self, Kind, Message},
};

/// A recorded request that is equal in all that is looked at.
pub(super) const FITS: u8 = PATH | VERSION | ACCEPT | RESUMES | AUTH;

// The more it tells, the heavier.
const PATH: u8 = 0b1111_0000;
const VERSION: u8 = 8;
const ACCEPT: u8 = 4;
const RESUMES: u8 = 2;
const AUTH: u8 = 1;

const SSE_PATH: &str = "/sse";
const EVENT_STREAM: &[u8] = b"text/event-stream";

/// Until when a recorded stream was open.
enum Until {
    /// To the end, or to a bad one.
    Open,
    /// The server ended it behind this item.
    Item(u32, u32),
    /// The server ended it before anything of the session's was sent on it.
    Now,
}

/// What the answer to an HTTP request can depend on beside its message.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    path: Box<str>,
    version: Vec<Box<[u8]>>,
    accept: Vec<Box<[u8]>>,
    last_event_id: Vec<Box<[u8]>>,
    has_credentials: bool,
    is_get: bool,
    /// Challenges, and what leads on from them, are left out.
    skips_auth: bool,
}

impl Facts {
    fn of(request: &HttpRequest<'_>, skips_auth: bool) -> Self {
        let all = |name: &str| {
            let values = request.headers.iter().filter(|(known, _)| *known == name);
            values.map(|(_, value)| Box::from(*value)).collect()
        };
        Self {
            path: request.target.into(),
            version: all("mcp-protocol-version"),
            accept: all("accept"),
            last_event_id: all("last-event-id"),
            has_credentials: request.headers.iter().any(|(name, _)| is_credential(name)),
            is_get: request.method == "GET",
            skips_auth,
        }
    }

    /// How well a recorded request fits, [`FITS`] at most; none where its answer is not for this one.
    pub(super) fn fit(&self, cassette: &Cassette, exchange: u32) -> Option<u8> {
        let entry = &cassette.exchanges[exchange as usize];
        let session = &cassette.sessions[entry.session as usize];
        let http = entry.http.as_deref();
        if http.is_none() && !session.is_http() {
            return Some(FITS);
        }
        let refuses = http.and_then(|http| http.status).is_some_and(|status| matches!(status, 401 | 403));
        let had_credentials = http.is_some_and(|http| http.auth);
        if refuses && (self.skips_auth || had_credentials != self.has_credentials) {
            return None;
        }
        let is_line = is_line(entry);
        let recorded = |name: &str| {
            let headers = http.map_or(&[][..], |http| &http.request);
            headers.iter().find(|header| &*header.name == name).map(|header: &Header| &header.values)
        };
        let mut fit = 0;
        let path = http.and_then(|http| http.path.as_deref()).or(session.path.as_deref());
        fit |= if is_line || path.is_none_or(|path| path == &*self.path) { PATH } else { 0 };
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
        fit |= match recorded("last-event-id") {
            Some(id) if *id == self.last_event_id => RESUMES,
            None if self.last_event_id.is_empty() => RESUMES,
            _ => 0,
        };
        fit |= if had_credentials == self.has_credentials { AUTH } else { 0 };
        Some(fit)
    }

    /// Whether path and credentials are those of a recorded request.
    pub(super) fn is_alike(&self, cassette: &Cassette, exchange: u32) -> bool {
        self.fit(cassette, exchange).is_some_and(|fit| fit & (PATH | AUTH) == PATH | AUTH)
    }

    fn accepts_as_usual(&self) -> bool {
        let accepts = |wanted: &[u8]| {
            self.accept
                .iter()
                .any(|accept| memchr::memmem::find(&accept.to_ascii_lowercase(), wanted).is_some())
        };
        accepts(EVENT_STREAM) && (self.is_get || accepts(b"application/json"))
    }
}

fn is_credential(name: &str) -> bool {
    matches!(name, "authorization" | "proxy-authorization" | "cookie" | "x-api-key" | "api-key")
}

impl Replayer {
    /// Takes in one HTTP request.
    pub(super) fn http(&mut self, now: Micros, lane: Lane, request: &HttpRequest<'_>) {
        self.over_http = true;
        self.report.connections += u64::from(request.opens_connection);
        let posted = if request.method == "POST" { self.posted_to(request.target) } else { None };
        let by_header = || request.header("mcp-session-id").and_then(|id| self.live_of(id));
        let live = posted.or_else(by_header).unwrap_or_default();
        self.at_hand = AtHand {
            live,
            facts: Some(Facts::of(request, self.options.skip_auth)),
            post: posted.map(|_| lane),
            ..AtHand::default()
        };
        self.streams.insert(lane.0, Stream::new(live, request.origin));
        for (name, value) in request.headers.iter().filter(|(name, _)| is_credential(name)) {
            // A server may have repeated it in what it sent, and a client may send it in its messages too.
            let _ = self.redactor.header_value(name, &String::from_utf8_lossy(value));
        }
        let message = Message::read(request.body);
        match request.method {
            "POST" if message.kind != Kind::Noise => {
                if message.is_modern() && posted.is_none() {
                    self.check_headers(request, &message);
                }
                self.message(now, lane, request.body);
            }
            "GET" => self.get(now, lane, request),
            _ => self.line(now, lane, request),
        }
    }

    /// The live session whose messages are posted there, over HTTP+SSE.
    fn posted_to(&self, target: &str) -> Option<usize> {
        self.lives.iter().position(|live| live.sse.as_ref().is_some_and(|(_, endpoint)| endpoint == target))
    }

    /// The client closed the connection before the response had ended.
    pub(super) fn left(&mut self, now: Micros, lane: Lane) {
        let Some(stream) = self.streams.remove(&lane.0) else { return };
        for live in &mut self.lives {
            live.get.take_if(|get| *get == lane);
            live.resumed.retain(|(_, resumed)| *resumed != lane);
            if live.sse.take_if(|(sse, _)| *sse == lane).is_some() {
                live.is_over = true;
            }
        }
        let Some((play, run)) = stream.run else { return };
        let scene = scene!(self, play, now);
        // Closing the response is how a client of 2026-07-28 cancels; an older one may come back for it (F10.10).
        if stream.is_modern {
            self.plays[play].cancel(scene, run);
        } else if self.plays[play].is_silent(run) {
            self.plays[play].remove(scene, run);
        }
    }

    /// A request that is no message.
    fn line(&mut self, now: Micros, lane: Lane, request: &HttpRequest<'_>) {
        let line = self.request_line(request);
        let found = self.find(&Message::read(line.as_bytes()));
        let live = self.at_hand.live;
        let Some(found) = found else { return self.unknown_line(lane, request, &line) };
        self.play_line(now, lane, &line, found);
        let exchange = self.exchange_of(found);
        let http = self.cassette.exchanges[exchange as usize].http.as_ref();
        let is_accepted = http.and_then(|http| http.status).is_none_or(|status| status < 300);
        if request.method == "DELETE" && live > 0 && is_accepted {
            self.is_over(live);
        }
    }

    fn request_line(&mut self, request: &HttpRequest<'_>) -> String {
        let target = self.redactor.url(request.target);
        let line = format!("{} {target}", request.method);
        match self.options.vars.hide(line.as_bytes()) {
            std::borrow::Cow::Borrowed(_) => line,
            std::borrow::Cow::Owned(hidden) => String::from_utf8_lossy(&hidden).into_owned(),
        }
    }

    fn exchange_of(&self, found: Found) -> u32 {
        self.scripts[self.plays[found.play].script].steps[found.step as usize].exchange
    }

    pub(super) fn play_line(&mut self, now: Micros, lane: Lane, line: &str, found: Found) {
        let exchange = self.exchange_of(found);
        let run = self.begin(lane, &Message::read(line.as_bytes()), exchange);
        self.respond(lane, exchange, false);
        self.start(now, found, run, None);
    }

    /// What nobody recorded: a session's end and what clients look for are answered, all else is a miss.
    fn unknown_line(&mut self, lane: Lane, request: &HttpRequest<'_>, line: &str) {
        let live = self.at_hand.live;
        let path = request.target.split('?').next().unwrap_or_default();
        match request.method {
            "DELETE" if live > 0 => {
                self.count_own("DELETE");
                self.is_over(live);
                self.plain(lane, 200, "");
            }
            "HEAD" | "OPTIONS" | "DELETE" => {
                self.count_own(request.method);
                self.refuse_method(lane);
            }
            // Clients look for metadata in several places.
            "GET" if path.starts_with("/.well-known/") => {
                self.count_own(line);
                self.plain(lane, 404, "");
            }
            _ => {
                let miss = miss::describe_line(line);
                let status = if request.method == "POST" { 400 } else { 404 };
                self.plain(lane, status, &format!("{}\n", miss.message));
                self.remember(miss);
            }
        }
    }

    fn count_own(&mut self, what: &str) {
        *self.report.self_answered.entry(what.to_owned()).or_default() += 1;
    }

    /// `GET`: the rest of a stream, a recorded document or stream, or a stream of ours.
    fn get(&mut self, now: Micros, lane: Lane, request: &HttpRequest<'_>) {
        let accept = request.header("accept").unwrap_or_default().to_ascii_lowercase();
        let wants_stream = memchr::memmem::find(&accept, EVENT_STREAM).is_some();
        let line = self.request_line(request);
        let found = self.find(&Message::read(line.as_bytes()));
        if !wants_stream {
            return match found {
                Some(found) => self.play_line(now, lane, &line, found),
                None => self.unknown_line(lane, request, &line),
            };
        }
        if let Some(id) = request.header("last-event-id")
            && self.resume(now, lane, id, &line, found)
        {
            return;
        }
        if let Some(script) = self.sse_script(&line) {
            return self.open_sse(now, lane, &line, script);
        }
        match found {
            Some(found) if !self.opens_stream(found) => self.play_line(now, lane, &line, found),
            Some(found) if !found.repeat => {
                let until = self.until(found);
                self.play_line(now, lane, &line, found);
                match until {
                    Until::Open => self.is_get(lane, None),
                    Until::Item(exchange, item) => self.is_get(lane, Some((exchange, item))),
                    Until::Now => {}
                }
            }
            // It comes back to a stream that it had.
            Some(found) => {
                let exchange = self.exchange_of(found);
                self.respond(lane, exchange, false);
                self.is_get(lane, None);
            }
            None if request.target.split('?').next() == Some(SSE_PATH) && self.legacy_recording => {
                self.open_own_sse(lane);
            }
            None if self.may_open() => {
                self.count_own("GET");
                self.stream_head(lane);
                self.is_get(lane, None);
            }
            None => {
                self.count_own("GET");
                self.refuse_method(lane);
            }
        }
    }

    /// The session over HTTP+SSE that begins with this request: the first not yet played, else the last.
    fn sse_script(&self, line: &str) -> Option<usize> {
        let begins = |script: &usize| {
            let script = &self.scripts[*script];
            let is_sse = script.session.is_some_and(|at| self.cassette.sessions[at as usize].is_sse());
            is_sse
                && script.steps.iter().any(|step| {
                    let entry = &self.cassette.exchanges[step.exchange as usize];
                    is_line(entry) && self.recorded_request(step.exchange) == line.as_bytes()
                })
        };
        let all = 1..self.scripts.len();
        all.clone().filter(|script| !self.played[*script]).find(begins).or_else(|| all.rev().find(begins))
    }

    /// Until when a recorded `GET` stream was open.
    fn until(&self, found: Found) -> Until {
        let exchange = self.exchange_of(found);
        let http = self.cassette.exchanges[exchange as usize].http.as_ref();
        if self.stays_open(exchange) || http.is_some_and(|http| http.end.is_some()) {
            return Until::Open;
        }
        let script = &self.scripts[self.plays[found.play].script];
        let began = script.steps[found.step as usize].rank;
        let is_get = |step: &&Step| {
            let entry = &self.cassette.exchanges[step.exchange as usize];
            is_line(entry) && entry.http.as_ref().is_some_and(|http| http.stream)
        };
        let next =
            script.steps.iter().filter(is_get).map(|step| step.rank).filter(|rank| *rank > began).min();
        let items = script.steps.iter().flat_map(|step| {
            let server = &self.cassette.exchanges[step.exchange as usize].server;
            let items = (0..).zip(script.items(step)).zip(server);
            items
                .filter(|(_, item)| item.on == Some(On::Get))
                .map(|((at, item), _)| (item.rank, step.exchange, at))
        });
        let within = |(rank, ..): &(u32, u32, u32)| *rank > began && next.is_none_or(|next| *rank < next);
        match items.filter(within).max() {
            Some((_, exchange, item)) => Until::Item(exchange, item),
            None => Until::Now,
        }
    }

    /// Whether what was found is a `GET` that was answered by an event stream.
    pub(super) fn opens_stream(&self, found: Found) -> bool {
        let http = self.cassette.exchanges[self.exchange_of(found) as usize].http.as_ref();
        http.is_some_and(|http| http.stream && http.status.is_none_or(|status| status == 200))
    }

    /// Whether a stream is opened that was not recorded: other transports have none, and send pushes all the same.
    fn may_open(&self) -> bool {
        let has_session = self.at_hand.live > 0 || self.lives.iter().any(|live| live.play.is_some());
        let session =
            self.playing(self.at_hand.live).and_then(|play| self.scripts[self.plays[play].script].session);
        let is_other = session
            .is_some_and(|at| self.cassette.sessions[at as usize].transport.as_deref() != Some("http"));
        self.legacy_recording && has_session && is_other
    }

    /// The recorded event stream of HTTP+SSE: a live session of its own, which plays the session that began so.
    fn open_sse(&mut self, now: Micros, lane: Lane, line: &str, script: usize) {
        self.played[script] = true;
        let (id, play) = (self.mint(), self.begin_play(script));
        let live = self.begin_live(Live { id: Some(id), play: Some(play), ..Live::default() });
        self.at_hand.live = live;
        if let Some(stream) = self.streams.get_mut(&lane.0) {
            stream.live = live;
        }
        let Some(found) = self.find_in(play, &Message::read(line.as_bytes())) else { return };
        let exchange = self.exchange_of(found);
        let endpoint = self.endpoint(exchange, live).unwrap_or_else(|| self.own_endpoint(live));
        self.lives[live].sse = Some((lane, endpoint));
        self.play_line(now, lane, line, found);
    }

    /// The event stream for clients of 2024-11-05 of a recording over another transport.
    fn open_own_sse(&mut self, lane: Lane) {
        let id = self.mint();
        let live = self.begin_live(Live { id: Some(id), ..Live::default() });
        if let Some(stream) = self.streams.get_mut(&lane.0) {
            stream.live = live;
        }
        let endpoint = self.own_endpoint(live);
        self.stream_head(lane);
        self.event(lane, b"endpoint", endpoint.as_bytes());
        self.lives[live].sse = Some((lane, endpoint));
    }

    fn own_endpoint(&self, live: usize) -> String {
        format!("/messages?sessionId={}", self.lives[live].id.as_deref().unwrap_or_default())
    }

    /// Begins a play of a script.
    pub(super) fn begin_play(&mut self, script: usize) -> usize {
        self.plays.push(Play::new(script, &self.scripts[script]));
        self.pairings.push(crate::redact::Pairing::new());
        self.plays.len() - 1
    }

    /// Where the recorded endpoint event has this live session's messages posted.
    fn endpoint(&mut self, exchange: u32, live: usize) -> Option<String> {
        let entry = &self.cassette.exchanges[exchange as usize];
        let item = (0..).zip(&entry.server).find(|(_, item)| is_endpoint_event(item))?.0;
        let line = self.cassette.at(entry.client.as_ref()?.place);
        let base = crate::wire::jsonrpc::text(line).into_owned();
        let base = base.split(' ').nth(1).unwrap_or("/").to_owned();
        let bytes = self.recorded(exchange, item);
        let data = self.filled(&bytes, "", live);
        Some(resolve(&String::from_utf8_lossy(&data), &base))
    }

    /// An ended session: its streams end, and what comes for it is refused unless it was answered then.
    fn is_over(&mut self, live: usize) {
        self.lives[live].is_over = true;
        if let Some(lane) = self.lives[live].get.take() {
            self.end(lane, None, &[]);
        }
    }

    pub(super) fn session_not_found(&mut self, lane: Lane, message: &Message<'_>) {
        let error = jsonrpc::error(message.id().unwrap_or(b"null"), -32001, "Session not found", None);
        self.count_own("session not found");
        self.set_status(lane, 404);
        self.say(lane, error, false);
        self.end(lane, None, &[]);
    }

    /// Tells where the headers of a request of 2026-07-28 say something else than its message (F4.2, F10.22).
    fn check_headers(&mut self, request: &HttpRequest<'_>, message: &Message<'_>) {
        let version = message.meta("io.modelcontextprotocol/protocolVersion").map(crate::wire::jsonrpc::text);
        let name = message.name();
        let expected =
            [("mcp-protocol-version", version), ("mcp-method", Some(message.method())), ("mcp-name", name)];
        for (header, expected) in expected {
            let Some(expected) = expected else { continue };
            let found = request.header(header);
            if found.is_none_or(|found| decoded(found) != expected.as_bytes()) {
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

    /// Whether the recording's stream is one that stays open.
    pub(super) fn stays_open(&self, exchange: u32) -> bool {
        self.cassette.exchanges[exchange as usize].unanswered == Some(Unanswered::Open)
    }

    /// The client's message of an exchange, for a miss.
    pub(super) fn recorded_request(&self, exchange: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        client_message(&self.cassette, &*self.blobs, &self.cassette.exchanges[exchange as usize], &mut bytes);
        bytes
    }
}

pub(super) fn is_endpoint_event(item: &Item) -> bool {
    item.sse.as_ref().is_some_and(|sse| matches!(&sse.event, EventType::Named(name) if &**name == "endpoint"))
}

/// A header's value, which may be in base64 (specification 2026-07-28, basic/transports/streamable-http).
fn decoded(value: &[u8]) -> Vec<u8> {
    use base64::{Engine, engine::general_purpose::STANDARD};
    let inside = value.strip_prefix(b"=?base64?").and_then(|rest| rest.strip_suffix(b"?="));
    inside.and_then(|inside| STANDARD.decode(inside).ok()).unwrap_or_else(|| value.to_vec())
}

/// A URI seen from a path, as a path with its query.
fn resolve(uri: &str, base: &str) -> String {
    if let Some((_, rest)) = uri.split_once("://") {
        return rest.find('/').map_or("/", |at| &rest[at..]).to_owned();
    }
    if uri.starts_with('/') {
        return uri.to_owned();
    }
    let path = base.split('?').next().unwrap_or_default();
    if uri.starts_with('?') {
        return format!("{path}{uri}");
    }
    let folder = path.rfind('/').map_or("/", |at| &path[..=at]);
    format!("{folder}{uri}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_resolved_from_its_stream() {
        for (uri, expected) in [
            ("/messages/?s=1", "/messages/?s=1"),
            ("http://h:1/m?s=1%2F2", "/m?s=1%2F2"),
            ("https://h", "/"),
            ("m?s=1", "/base/m?s=1"),
            ("?s=1", "/base/sse?s=1"),
        ] {
            assert_eq!(resolve(uri, "/base/sse?x=/y"), expected, "{uri}");
        }
    }

    #[test]
    fn values_in_base64_are_read() {
        assert_eq!(decoded(b"=?base64?w6k=?="), "é".as_bytes());
        assert_eq!(decoded(b"plain"), b"plain");
    }
}
