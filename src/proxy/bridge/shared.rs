//! What all requests of a session share, and how one is sent.

use std::{
    error::Error,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use hyper::{
    HeaderMap, Method, Request, StatusCode,
    body::{Bytes, Incoming},
    header::{CONTENT_TYPE, HOST, HeaderName, HeaderValue, LOCATION},
    http::{response, uri::PathAndQuery},
};
use tokio::{
    sync::{mpsc, oneshot},
    task::AbortHandle,
};

use super::{
    super::lock,
    failure::Failure,
    flight::{Flight, Request as Waiting, Teaches},
    headers::Agreed,
    pipes::Told,
    pool::{Pool, Whole},
    tape::{COMMON, Said},
};
use crate::{
    traffic::Lane,
    transport::http::{
        body,
        coding::Decoder,
        headers::{is_coded, is_type},
        origin::Origin,
        upstream::{Sender, in_other_version},
    },
    wire::{
        jsonrpc::{Kind, Message},
        lines::one_line,
    },
};

/// How often a request follows the server to another path of its own.
const REDIRECTS: usize = 5;

/// One session, as its requests see it.
pub(super) struct Core {
    pub(super) pool: Arc<Pool>,
    pub(super) path: Mutex<PathAndQuery>,
    pub(super) mode: Mutex<Mode>,
    pub(super) agreed: Mutex<Agreed>,
    pub(super) flight: Flight,
    /// What reads the server's own stream.
    pub(super) listening: Mutex<Option<AbortHandle>>,
    /// The server has a stream of its own, as far as is known, on which answers may come.
    pub(super) has_stream: AtomicBool,
    /// What every request carries beside its own headers.
    pub(super) extra: Vec<(HeaderName, HeaderValue)>,
    /// Lines for the client, until the session is over.
    pub(super) out: Mutex<Option<mpsc::Sender<Said>>>,
    pub(super) told: mpsc::UnboundedSender<Told>,
    /// The server has answered a request with a result.
    pub(super) has_answered: AtomicBool,
    pub(super) max_message: usize,
}

/// Which transport the server speaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Streamable HTTP.
    Streamable,
    /// HTTP+SSE (2024-11-05): all answers come on one stream, all messages are posted there.
    Sse(PathAndQuery),
    /// The one stream is over.
    SseOver,
}

/// A message on its way, and whose answers it is to bring.
pub(super) struct Call {
    /// The lane of its line.
    pub(super) lane: Lane,
    pub(super) requests: Vec<Waiting>,
    pub(super) is_batch: bool,
    pub(super) is_modern: bool,
    pub(super) is_initialize: bool,
    /// What it is, for a person.
    pub(super) name: String,
    /// Lets later messages go.
    pub(super) go: Option<oneshot::Sender<()>>,
}

impl Call {
    pub(super) fn new(lane: Lane, message: &Message<'_>, go: Option<oneshot::Sender<()>>) -> Self {
        let is_batch = message.kind == Kind::Batch;
        let requests = match is_batch {
            true => message.members().filter_map(|member| Waiting::new(&member)).collect(),
            false => Waiting::new(message).into_iter().collect(),
        };
        Self {
            lane,
            requests,
            is_batch,
            is_modern: message.is_modern(),
            is_initialize: message.kind == Kind::Request && message.method() == "initialize",
            name: match message.kind {
                Kind::Request | Kind::Notification => format!("`{}`", message.method()),
                Kind::Result | Kind::Error => "an answer".to_owned(),
                Kind::Batch => "a batch".to_owned(),
                Kind::Noise => "a line that is no JSON-RPC message".to_owned(),
            },
            go,
        }
    }

    pub(super) fn lets_go(&mut self) {
        if let Some(go) = self.go.take() {
            // Whoever waited may have lost patience.
            let _ = go.send(());
        }
    }
}

/// The head of a response, and what is still to come.
pub(super) struct Reply {
    pub(super) head: response::Parts,
    pub(super) body: Incoming,
    pub(super) sender: Sender<Whole>,
}

impl Reply {
    pub(super) fn is_event_stream(&self) -> bool {
        is_type(self.head.headers.get(CONTENT_TYPE), "text/event-stream")
    }
}

impl Core {
    pub(super) fn origin(&self) -> &Origin {
        self.pool.origin()
    }

    /// Says that something is wrong of which no request is told.
    pub(super) fn warn(&self, text: String) {
        let _ = self.told.send(Told::Wrong(text));
    }

    /// Sends a request, to whichever path of the server's own it is sent on.
    pub(super) async fn send(
        &self,
        method: Method,
        mut path: PathAndQuery,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Reply, Failure> {
        for _ in 0..REDIRECTS {
            let reply = self.send_once(method.clone(), path.clone(), headers.clone(), body.clone()).await?;
            // For a POST these two alone mean that it goes there as it is (F10.20).
            let status = reply.head.status;
            if !matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT) {
                return Ok(reply);
            }
            let location = reply.head.headers.get(LOCATION).map(HeaderValue::as_bytes).unwrap_or_default();
            let Some(next) = resolve(location, self.origin(), &path) else {
                let location = String::from_utf8_lossy(location).into_owned();
                return Err(Failure::Elsewhere { status, location });
            };
            if status == StatusCode::PERMANENT_REDIRECT && *lock(&self.path) == path {
                *lock(&self.path) = next.clone();
            }
            path = next;
            self.read_whole(reply).await?;
        }
        let location = path.to_string();
        Err(Failure::Elsewhere { status: StatusCode::TEMPORARY_REDIRECT, location })
    }

    async fn send_once(
        &self,
        method: Method,
        path: PathAndQuery,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Reply, Failure> {
        let mut request = Request::new(Whole::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = path.into();
        // It was parsed as a part of a URL, so it is a header's value.
        let host = HeaderValue::from_str(self.origin().authority()).unwrap_or(HeaderValue::from_static(""));
        request.headers_mut().insert(HOST, host);
        request.headers_mut().extend(headers);
        for (name, value) in &self.extra {
            request.headers_mut().insert(name, value.clone());
        }
        let mut sender = self.pool.take().await.map_err(|error| {
            let _ = self.told.send(Told::Unreached(error.to_string()));
            Failure::Unreachable(error)
        })?;
        sender.ready().await;
        let response = sender.send(request).await.map_err(|error| broken(&error))?;
        let (head, body) = response.into_parts();
        Ok(Reply { head, body, sender })
    }

    /// Reads a body to its end; the connection can be used again then.
    pub(super) async fn read_whole(&self, reply: Reply) -> Result<(response::Parts, Vec<u8>), Failure> {
        let Reply { head, mut body, sender } = reply;
        let mut decoder = Decoder::of(&head.headers);
        let mut bytes = Vec::new();
        while let Some(data) = next_data(&mut body).await? {
            match &mut decoder {
                None => bytes.extend_from_slice(&data),
                Some(decoder) => {
                    let left = self.max_message.saturating_sub(bytes.len());
                    let decoded = decoder.decode(&data, left);
                    bytes.extend(decoded.map_err(|_| Failure::TooLarge(self.max_message))?);
                }
            }
        }
        if decoder.is_none() && is_coded(&head.headers) {
            // Nobody asked for that, and nobody here can read it.
            bytes.clear();
        }
        self.pool.give_back(sender);
        Ok((head, bytes))
    }

    /// Gives the client a message of the server's. `call` is the one on whose own response it came.
    pub(super) async fn deliver(&self, bytes: &[u8], call: Option<&mut Call>) {
        let message = Message::read(bytes);
        let mut line = one_line(bytes);
        if matches!(message.kind, Kind::Result | Kind::Batch) {
            self.has_answered.store(true, Ordering::Relaxed);
        }
        match message.kind {
            Kind::Noise => {
                return self.warn(
                    "the server sent something that is no JSON-RPC message; it was left out".to_owned(),
                );
            }
            Kind::Batch if call.as_ref().is_some_and(|call| !call.is_batch) => {
                // No client on stdio expects a list where it asked one thing (F3.2).
                let members: Vec<_> = message.members().map(|member| member.bytes.to_vec()).collect();
                let mut call = call;
                for member in members {
                    Box::pin(self.deliver(&member, call.as_deref_mut())).await;
                }
                return;
            }
            Kind::Batch => {
                message.members().for_each(|member| self.answered(member.id_key().as_deref(), &member))
            }
            Kind::Result | Kind::Error => match call.as_deref() {
                // An error that could not be told whose it is (F2.1); a result always can.
                Some(Call { requests, is_batch: false, .. })
                    if !requests.is_empty() && message.kind == Kind::Error && message.id_key().is_none() =>
                {
                    line = with_id(&requests[0].id, &message);
                    self.answered(Some(&requests[0].key), &message);
                }
                Some(Call { requests, .. })
                    if let Some(request) = requests.iter().find(|request| request.is_named_by(&message)) =>
                {
                    self.answered(Some(&request.key), &message);
                }
                _ => self.answered(message.id_key().as_deref(), &message),
            },
            Kind::Request | Kind::Notification => {}
        }
        self.say(call.as_ref().map_or(COMMON, |call| call.lane), line).await;
        if let Some(call) = call
            && !call.requests.iter().any(|request| self.flight.is_waited_for(&request.key))
        {
            call.lets_go();
        }
    }

    /// A line for the client, without its end.
    pub(super) async fn say(&self, lane: Lane, line: Vec<u8>) {
        self.flight.speaks();
        let out = lock(&self.out).clone();
        if let Some(out) = out {
            // It may be gone.
            let _ = out.send((lane, line)).await;
        }
    }

    fn answered(&self, key: Option<&[u8]>, answer: &Message<'_>) {
        let Some(request) = key.and_then(|key| self.flight.ends(key)) else { return };
        if answer.kind != Kind::Result {
            return;
        }
        match request.teaches {
            Teaches::Nothing => {}
            Teaches::Revision => {
                let revision = answer.outcome().and_then(|result| {
                    let span = crate::wire::scan::member(result, 0, "protocolVersion")?;
                    HeaderValue::from_str(&crate::wire::jsonrpc::text(span.of(result))).ok()
                });
                lock(&self.agreed).revision = revision;
            }
            Teaches::Tools { is_first_page } => lock(&self.agreed).tools.learn(answer, is_first_page),
        }
    }

    /// Answers what is still unanswered of a call with an error.
    pub(super) async fn fail(&self, call: &mut Call, failure: &Failure) {
        let failed = call.requests.iter().filter_map(|request| self.flight.ends(&request.key));
        let mut lines: Vec<_> = failed.map(|request| failure.line(&request.id, self.origin())).collect();
        if call.requests.is_empty() {
            self.warn(format!("{} was not taken: {}", call.name, failure.told(self.origin())));
        }
        if call.is_batch && !lines.is_empty() {
            lines = vec![[b"[", &lines.join(&b","[..])[..], b"]"].concat()];
        }
        for line in lines {
            self.say(call.lane, line).await;
        }
        call.lets_go();
    }
}

/// An error with the id of the request that it answers.
pub(super) fn with_id(id: &[u8], error: &Message<'_>) -> Vec<u8> {
    let outcome = error.outcome().unwrap_or(b"{}");
    one_line(&[b"{\"jsonrpc\":\"2.0\",\"id\":", id, b",\"error\":", outcome, b"}"].concat())
}

/// The next bytes of a body; none at its end.
pub(super) async fn next_data(body: &mut Incoming) -> Result<Option<Bytes>, Failure> {
    body::next_data(body).await.map_err(|error| broken(&error))
}

fn broken(error: &hyper::Error) -> Failure {
    let why = match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    };
    Failure::Broken(match in_other_version(error) {
        Some(advice) => format!("{why}; {advice}"),
        None => why,
    })
}

/// What an address in a response means; none where it is on another origin.
pub(super) fn resolve(address: &[u8], origin: &Origin, base: &PathAndQuery) -> Option<PathAndQuery> {
    let text = std::str::from_utf8(address).ok()?.trim_ascii();
    let text = text.split('#').next().unwrap_or_default();
    let is_absolute = text.starts_with("//") || text.contains("://");
    let path = match origin.strip(text.as_bytes()) {
        Some(rest) => std::str::from_utf8(rest).ok()?.to_owned(),
        None if is_absolute || text.is_empty() => return None,
        None if text.starts_with('/') => text.to_owned(),
        None if text.starts_with('?') => format!("{}{text}", base.path()),
        None => format!("{}{text}", &base.path()[..=base.path().rfind('/').unwrap_or(0)]),
    };
    let path = if path.starts_with('/') { path } else { format!("/{path}") };
    path.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_from_where_they_stand() {
        let origin = Origin::new(false, "127.0.0.1:9000").unwrap();
        let base = PathAndQuery::from_static("/a/sse?x=1");
        let resolved =
            |address: &str| resolve(address.as_bytes(), &origin, &base).map(|path| path.to_string());
        for (address, expected) in [
            ("/messages/?session_id=1", Some("/messages/?session_id=1")),
            ("messages?s=1", Some("/a/messages?s=1")),
            ("?s=1", Some("/a/sse?s=1")),
            ("http://127.0.0.1:9000/m?s=1#x", Some("/m?s=1")),
            ("//127.0.0.1:9000", Some("/")),
            ("http://127.0.0.1:9001/m", None),
            ("https://127.0.0.1:9000/m", None),
            ("//elsewhere.example/m", None),
            ("", None),
        ] {
            assert_eq!(resolved(address).as_deref(), expected, "{address}");
        }
    }

    #[test]
    fn whatever_was_not_taken_has_a_name() {
        for (line, name) in [
            (r#"{"jsonrpc":"2.0","method":"notifications/a"}"#, "`notifications/a`"),
            (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, "an answer"),
            (r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}"#, "an answer"),
            (r#"[{"jsonrpc":"2.0","method":"notifications/a"}]"#, "a batch"),
            ("hello", "a line that is no JSON-RPC message"),
            ("{}", "a line that is no JSON-RPC message"),
            ("[]", "a line that is no JSON-RPC message"),
        ] {
            assert_eq!(Call::new(COMMON, &Message::read(line.as_bytes()), None).name, name, "{line}");
        }
    }

    #[test]
    fn an_error_gets_the_id_of_its_request() {
        let error =
            br#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"Session not found"},"id":"server-error"}"#;
        let line = with_id(b"7", &Message::read(error));
        assert_eq!(
            line,
            b"{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":-32600,\"message\":\"Session not found\"}}"
        );
    }
}
