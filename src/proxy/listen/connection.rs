//! A client's connection to the replaying front.

use std::{
    borrow::Cow,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use hyper::{
    HeaderMap, Method, Request, Response, StatusCode,
    body::{Bytes, Incoming},
    header::{ACCESS_CONTROL_REQUEST_HEADERS, HOST, HeaderValue, ORIGIN},
    service::service_fn,
};
use tokio::net::TcpStream;

use super::{
    super::{
        lock,
        reply::{self, Cut, Reply, ResponseBody, own},
    },
    Front,
    early::{self, Came, Patience},
    route::NoRoute,
};
use crate::{
    replay::{HttpRequest, Wants},
    transport::http::{
        HEAD_TIME,
        body::next_data,
        headers::with_host,
        server,
        shortcut::{Plain, Shortcut, Told},
        socket::{Control, Socket},
    },
    wire::lines::Unfinished,
};

/// What a page of another origin may send and read (F10.21).
const CORS_REQUEST: &str = "content-type, authorization, mcp-protocol-version, mcp-session-id, mcp-method, mcp-name, \
                            last-event-id";
const CORS_RESPONSE: &str = "mcp-session-id, www-authenticate, last-event-id, mcp-protocol-version";

/// What is told of a request whose body cannot be read.
const BROKEN_BODY: &str =
    "tapedeck: the body of this request is in chunks that are none; send them as RFC 9112 (7.1) has it";

struct Link {
    front: Arc<Front>,
    control: Arc<Control>,
    /// A request has come already.
    is_used: AtomicBool,
    /// What comes of the next request: it was asked already.
    asked: Mutex<Option<Reply>>,
}

/// Answers the plain requests of a connection.
struct Direct {
    link: Arc<Link>,
    /// The head of which was found that it is served, the host that it names, and our origin by that.
    head: Option<u64>,
    host: String,
    origin: String,
}

/// Serves a client until it leaves, or the front ends.
pub(super) async fn serve(stream: TcpStream, front: Arc<Front>) {
    let is_refused = |why: &str| front.tell(|unserved| unserved.was_refused(why));
    let Some(stream) = server::open(stream, front.acceptor.as_ref(), is_refused).await else { return };
    let closing = front.closing.subscribe();
    let is_used = AtomicBool::new(false);
    let link = |control| Arc::new(Link { front, control, is_used, asked: Mutex::default() });
    if stream.is_http2() {
        let link = link(Control::of_shared());
        let service = service_fn(move |request| handle(Arc::clone(&link), with_host(request)));
        return server::serve_http2(stream, service, closing).await;
    }
    let (socket, control) = Socket::new(stream);
    let link = link(Arc::clone(&control));
    // What waits for a whole request answers none before.
    let socket = match link.front.answers_early {
        true => socket,
        false => {
            let (head, host, origin) = Default::default();
            let direct = Direct { link: Arc::clone(&link), head, host, origin };
            socket.with_shortcut(Box::new(direct), link.front.max_message)
        }
    };
    let front = Arc::clone(&link.front);
    let service = service_fn(move |request| handle(Arc::clone(&link), request));
    let ends = (socket, Arc::clone(&control));
    server::serve_http1(&server::http1(), ends, service, closing, HEAD_TIME, || false).await;
    if let Some(sentence) = control.refusal() {
        front.tell(|unserved| unserved.was_refused(sentence));
    }
}

impl Shortcut for Direct {
    /// Whether a request is served, and says once and plainly whom it is for.
    fn serves(&mut self, request: &Plain<'_>) -> bool {
        if self.head == Some(request.head) {
            return true;
        }
        let mut host = None;
        for (name, value) in &request.headers {
            match *name {
                "host" if host.is_some() => return false,
                "host" => host = Some(*value),
                // Whoever sends it is no client in a hurry.
                "origin" => return false,
                _ => {}
            }
        }
        let Some(host) = host else { return false };
        if !self.host.is_empty() && self.host.as_bytes() == host {
            self.head = Some(request.head);
            return true;
        }
        let is_plain = !host.is_empty() && host.iter().all(u8::is_ascii_graphic);
        let host = String::from_utf8_lossy(host);
        if !is_plain || self.link.front.guard.check(Some(host.as_bytes()), None).is_err() {
            return false;
        }
        self.origin = [self.link.front.scheme, "://", &host].concat();
        (self.head, self.host) = (Some(request.head), host.into_owned());
        true
    }

    fn answer(&mut self, request: &Plain<'_>, response: &mut Vec<u8>) -> bool {
        let is_served = self.serves(request);
        let front = &self.link.front;
        if !is_served || front.cors {
            return false;
        }
        let Ok(route) = front.route(request.target) else { return false };
        let origin = match route.prefix {
            "" => Cow::Borrowed(&self.origin),
            prefix => Cow::Owned([&self.origin, prefix].concat()),
        };
        let request = HttpRequest {
            method: "POST",
            target: route.target,
            origin: &origin,
            headers: &request.headers,
            body: request.body,
            is_whole: true,
            opens_connection: !self.link.is_used.swap(true, Ordering::Relaxed),
        };
        let asked = route.take.ask_directly(&request, response);
        let is_answered = asked.is_none();
        if !is_answered {
            *lock(&self.link.asked) = asked;
        }
        is_answered
    }
}

async fn handle(link: Arc<Link>, request: Request<Incoming>) -> Result<Response<Told<ResponseBody>>, Cut> {
    link.control.head_is_read();
    let asked = lock(&link.asked).take();
    let mut response = match asked {
        Some(reply) => {
            read(request.into_body(), usize::MAX).await?;
            reply::respond(reply, &link.control).await?
        }
        None => match refusal(&link.front, &request) {
            Some((status, text)) => {
                link.front.tell(|unserved| unserved.was_refused(&text));
                own(status, text)
            }
            None => answer(&link, request).await?,
        },
    };
    if link.front.cors {
        allow_pages(response.headers_mut());
    }
    link.control.awaits_head();
    link.control.writes();
    Ok(response.map(|body| Told::new(body, Arc::clone(&link.control))))
}

/// Why a request goes no further.
fn refusal(front: &Front, request: &Request<Incoming>) -> Option<(StatusCode, String)> {
    let is_preflight =
        front.cors && *request.method() == Method::OPTIONS && request.headers().contains_key(ORIGIN);
    let refusal = front.guard.refusal(request);
    refusal.filter(|(status, _)| !is_preflight || *status == StatusCode::BAD_REQUEST)
}

async fn answer(link: &Arc<Link>, request: Request<Incoming>) -> Result<Response<ResponseBody>, Cut> {
    let (head, body) = request.into_parts();
    if link.front.cors && head.method == Method::OPTIONS {
        return Ok(preflight(&head.headers));
    }
    let target = head.uri.path_and_query().map_or("*", |target| target.as_str());
    let route = link.front.route(target);
    let headers: Vec<(&str, &[u8])> =
        head.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
    let asks = HttpRequest {
        method: head.method.as_str(),
        target,
        origin: "",
        headers: &headers,
        body: &[],
        is_whole: false,
        opens_connection: false,
    };
    let limit = link.front.max_message;
    let wants = |body: &_, pace| match &route {
        Ok(route) if link.front.answers_early => {
            route.take.wants(&HttpRequest { target: route.target, body, ..asks }, pace)
        }
        _ => Wants::All,
    };
    let expects = asks.header("expect").is_some_and(|value| value.eq_ignore_ascii_case(b"100-continue"));
    let (body, rest) = match early::read(body, expects, limit, &Patience::USUAL, wants).await? {
        Came::Body(body, rest) => (body, rest),
        Came::TooLong(rest) => {
            let mut sentence = String::new();
            link.front.tell(|unserved| sentence = unserved.was_too_long(head.method.as_str(), target, limit));
            rest.goes_nowhere();
            return Ok(last(link, StatusCode::PAYLOAD_TOO_LARGE, &sentence));
        }
        Came::Broken => {
            link.front.tell(|unserved| unserved.was_refused(BROKEN_BODY));
            return Ok(last(link, StatusCode::BAD_REQUEST, BROKEN_BODY));
        }
    };
    let route = match route {
        Ok(route) => route,
        Err(NoRoute { status, sentence }) => {
            link.front.tell(|unserved| unserved.went_astray(head.method.as_str(), target, &sentence));
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::NOT_FOUND);
            return Ok(own(status, format!("{sentence}\n")));
        }
    };
    let host = head.headers.get(HOST).and_then(|host| host.to_str().ok()).filter(|host| !host.is_empty());
    let (scheme, address) = (link.front.scheme, host.unwrap_or(&link.front.address));
    let origin = [scheme, "://", address, route.prefix].concat();
    let request = HttpRequest {
        target: route.target,
        origin: &origin,
        body: &body,
        is_whole: rest.is_none(),
        opens_connection: !link.is_used.swap(true, Ordering::Relaxed),
        ..asks
    };
    let (reply, is_behind) = route.take.ask(&request);
    if is_behind {
        // What ended first is heard first: its task has been woken.
        tokio::task::yield_now().await;
    }
    let is_early = rest.is_some();
    rest.into_iter().for_each(early::Rest::goes_nowhere);
    let mut response = reply::respond(reply, &link.control).await?;
    if is_early {
        early::is_last(&mut response, &link.control);
    }
    Ok(response)
}

/// Our own answer to what is not read whole, behind which the connection ends.
fn last(link: &Link, status: StatusCode, sentence: &str) -> Response<ResponseBody> {
    let mut response = own(status, format!("{sentence}\n"));
    early::is_last(&mut response, &link.control);
    response
}

/// A request's body; none where it is too long.
pub(super) async fn read(mut body: Incoming, limit: usize) -> Result<Option<Bytes>, Cut> {
    let first = next_data(&mut body).await.map_err(|_| Cut)?.unwrap_or_default();
    let Some(next) = next_data(&mut body).await.map_err(|_| Cut)? else {
        // Most come in one piece.
        return Ok(Some(first).filter(|body| body.len() <= limit));
    };
    let mut bytes = Unfinished::new(limit);
    bytes.keep(&first);
    bytes.keep(&next);
    while let Some(data) = next_data(&mut body).await.map_err(|_| Cut)? {
        bytes.keep(&data);
    }
    Ok(bytes.end().ok().map(Bytes::from))
}

/// What a page may send: the headers of the protocol, and those that mirror arguments (F4.2), which it names.
fn preflight(asked: &HeaderMap) -> Response<ResponseBody> {
    let asked = asked.get_all(ACCESS_CONTROL_REQUEST_HEADERS).iter().filter_map(|value| value.to_str().ok());
    let mirrors = asked
        .flat_map(|names| names.split(','))
        .map(str::trim)
        .filter(|name| name.get(..10).is_some_and(|start| start.eq_ignore_ascii_case("mcp-param-")));
    let names = mirrors.fold(CORS_REQUEST.to_owned(), |names, name| format!("{names}, {name}"));
    let names = HeaderValue::from_str(&names).unwrap_or(HeaderValue::from_static(CORS_REQUEST));
    let mut response = Response::new(ResponseBody::Whole(None));
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert("access-control-allow-methods", HeaderValue::from_static("GET, POST, DELETE, OPTIONS"));
    headers.insert("access-control-allow-headers", names);
    headers.insert("access-control-max-age", HeaderValue::from_static("600"));
    response
}

fn allow_pages(headers: &mut HeaderMap) {
    for (name, value) in
        [("access-control-allow-origin", "*"), ("access-control-expose-headers", CORS_RESPONSE)]
    {
        if !headers.contains_key(name) {
            headers.insert(name, HeaderValue::from_static(value));
        }
    }
}
