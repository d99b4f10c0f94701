//! One request and its response, between their heads.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use hyper::{
    HeaderMap, Method, Request, Response, StatusCode, Uri, Version,
    body::{Body, Bytes, Incoming},
    header::{
        ACCEPT_ENCODING, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderName, HeaderValue, LOCATION,
        UPGRADE, WWW_AUTHENTICATE,
    },
    http::{request, response},
};

use super::{
    Cut, Upstream,
    connection::Link,
    endpoint::Endpoint,
    heads::{moved, recorded_request, recorded_response, values},
    inbound::Inbound,
    is_reset,
    item::{Heads, Item},
    metadata,
    request::RequestBody,
    response::{ResponseBody, is_events, read_on_from_head},
    tape::{Lane, Odd},
};
use crate::{
    transport::http::{
        body::next_data,
        headers::{all_go_on, is_coded, pairs, pass_on},
        origin::Origin,
        upstream::{Answer, in_other_version},
    },
    wire::{
        http::{LAST_EVENT_ID, SESSION_ID},
        jsonrpc::{self, Kind, Message},
        lines::Unfinished,
    },
};

/// What the client is answered.
///
/// # Errors
/// When the server cut the connection off, so that the client's is to be cut off as well.
pub(super) async fn handle(
    link: Arc<Link>,
    request: Request<Incoming>,
) -> Result<Response<ResponseBody>, Cut> {
    link.control.head_is_read();
    let outcome = match refusal(&link, &request) {
        Some((status, text)) => {
            link.control.awaits_head();
            Ok(own(status, "text/plain; charset=utf-8", text.into()))
        }
        None => forward(&link, request.map(Inbound::Coming)).await,
    };
    if outcome.is_ok() {
        link.control.writes();
    } else {
        // Answers to earlier requests may still be on their way.
        std::future::poll_fn(|cx| link.control.poll_written(cx)).await;
    }
    outcome
}

/// Why a request goes no further.
pub(super) fn refusal(link: &Link, request: &Request<Incoming>) -> Option<(StatusCode, String)> {
    let front = &link.front;
    front.guard.refusal(request).inspect(|(_, why)| front.refusals.add(why))
}

/// What the server answers.
///
/// # Errors
/// When it cut the connection off.
pub(super) async fn forward(
    link: &Arc<Link>,
    request: Request<Inbound>,
) -> Result<Response<ResponseBody>, Cut> {
    let (mut head, body) = request.into_parts();
    let lane = link.front.tape.lane(head.method != Method::GET, link.opens());
    let asked = Asked::new(&head);
    lane.note(|| {
        let headers = recorded_request(&pairs(&head.headers), || asked.ours(link));
        Item::Request(head.method.clone(), target(&head.uri), Arc::new(headers))
    });
    let is_coded = is_coded(&head.headers);
    if head.method == Method::GET {
        let value = |name| head.headers.get(name).map(HeaderValue::as_bytes);
        link.front.tape.absent.let_go(value(SESSION_ID), value(LAST_EVENT_ID)).await;
    }
    if !link.connect().await {
        return unreachable(link, &lane, RequestBody::new(body, Arc::clone(&lane), is_coded)).await;
    }
    if body.is_end_stream() && !lane.write() {
        return Err(Cut);
    }
    head.headers = request_headers(head.headers, &link.front.upstream);
    let request = Request::from_parts(head, RequestBody::new(body, Arc::clone(&lane), is_coded));
    let answer = link.send(request).await;
    let waiting = Waiting { answer: Some(answer), lane: Arc::clone(&lane), link: Arc::clone(link) };
    match waiting.await {
        Ok(response) => pass_back(response, &asked, &lane, link).await,
        Err(error) => {
            let reset = is_reset(&error);
            if error.is_parse() {
                lane.tell(Odd::Response);
            } else if in_other_version(&error).is_some() {
                lane.tell(Odd::Http2);
            }
            lane.note(|| Item::Broken { reset });
            let _ = lane.write();
            if reset {
                link.control.reset_at_end();
            }
            Err(Cut)
        }
    }
}

/// What of a request its response depends on.
struct Asked {
    /// Where it is a `GET`, of what.
    got: Option<Uri>,
    /// By what name the client knows us.
    host: Option<HeaderValue>,
}

impl Asked {
    fn new(head: &request::Parts) -> Self {
        let got = (head.method == Method::GET).then(|| head.uri.clone());
        Self { got, host: head.headers.get(HOST).cloned() }
    }

    /// Our origin as this client knows it.
    fn ours(&self, link: &Link) -> String {
        link.front.origin(self.host.as_ref().map(HeaderValue::as_bytes))
    }
}

async fn pass_back(
    response: Response<Incoming>,
    asked: &Asked,
    lane: &Arc<Lane>,
    link: &Arc<Link>,
) -> Result<Response<ResponseBody>, Cut> {
    let (mut head, body) = response.into_parts();
    let upstream = &link.front.upstream.origin;
    let challenges = values(&head.headers, "www-authenticate");
    metadata::note_challenges(challenges, upstream, &link.front.documents);
    lane.note(|| recorded(&head, upstream));
    let got = asked.got.as_ref();
    let is_document =
        got.is_some_and(|got| head.status == StatusCode::OK && link.front.is_document(got.path()));
    let may_have_endpoint = got.is_some() && is_events(&head.headers) && !is_coded(&head.headers);
    let wanted = head.headers.get_all(UPGRADE).iter().filter(|_| head.status == StatusCode::UPGRADE_REQUIRED);
    let wanted: Vec<_> = wanted.cloned().collect();
    head.headers = rewritten(head.headers, upstream, || asked.ours(link));
    if !wanted.is_empty() {
        head.headers.append(CONNECTION, HeaderValue::from_static("Upgrade"));
        for value in wanted {
            head.headers.append(UPGRADE, value);
        }
    }
    if is_document {
        return metadata::pass_back(head, body, &asked.ours(link), lane, link).await;
    }
    let endpoint = may_have_endpoint.then(|| Endpoint::new(upstream, &asked.ours(link)));
    let body = ResponseBody::passing(body, Arc::clone(lane), Arc::clone(link), &head.headers, endpoint)?;
    if may_have_endpoint {
        head.headers = pass_on(&head.headers, |name, value| (*name != CONTENT_LENGTH).then(|| value.clone()));
    }
    head.version = Version::HTTP_11;
    Ok(Response::from_parts(head, body))
}

/// A response's head as it is recorded.
fn recorded(head: &response::Parts, upstream: &Origin) -> Item {
    Item::Response(
        head.status.as_u16(),
        Arc::new(recorded_response(head.status.as_u16(), &pairs(&head.headers), upstream)),
    )
}

/// A response nobody waits for any more.
pub(super) fn record(
    response: Response<Incoming>,
    lane: &Arc<Lane>,
    link: &Arc<Link>,
) -> Result<ResponseBody, Cut> {
    let (head, body) = response.into_parts();
    let upstream = &link.front.upstream.origin;
    lane.note(|| recorded(&head, upstream));
    ResponseBody::passing(body, Arc::clone(lane), Arc::clone(link), &head.headers, None)
}

/// What the server is sent: its own authority as the host, and no coding that we could not read.
fn request_headers(headers: HeaderMap, upstream: &Upstream) -> HeaderMap {
    let mut has_coding = false;
    let mut each = |name: &HeaderName, value: &HeaderValue| {
        if *name == HOST {
            Some(upstream.host.clone())
        } else if *name == ACCEPT_ENCODING {
            let is_first = !std::mem::replace(&mut has_coding, true);
            is_first.then(|| HeaderValue::from_static("identity"))
        } else {
            Some(value.clone())
        }
    };
    let codings = headers.get_all(ACCEPT_ENCODING).iter().count();
    let mut passed = if codings <= 1 && all_go_on(&headers) {
        let mut passed = headers;
        for (name, value) in &mut passed {
            if *name == HOST || *name == ACCEPT_ENCODING {
                each(name, value).into_iter().for_each(|changed| *value = changed);
            }
        }
        passed
    } else {
        pass_on(&headers, each)
    };
    if !passed.contains_key(HOST) {
        passed.insert(HOST, upstream.host.clone());
    }
    for (name, value) in &upstream.headers {
        passed.insert(name, value.clone());
    }
    passed
}

/// A response's headers with another origin in the place of the server's.
fn rewritten(headers: HeaderMap, upstream: &Origin, by: impl Fn() -> String) -> HeaderMap {
    if all_go_on(&headers) && !headers.contains_key(LOCATION) && !headers.contains_key(WWW_AUTHENTICATE) {
        return headers;
    }
    pass_on(&headers, |name, value| {
        let moved = moved(name.as_str(), value.as_bytes(), upstream, &by);
        // Both parts were headers' values.
        let moved = moved.and_then(|value| HeaderValue::from_bytes(&value).ok());
        Some(moved.unwrap_or_else(|| value.clone()))
    })
}

/// The target as it is recorded.
fn target(uri: &Uri) -> Vec<u8> {
    uri.path_and_query().map_or("*", |target| target.as_str()).as_bytes().to_vec()
}

/// Waits for a response; dropped before it came, it reads on where the call does.
struct Waiting {
    answer: Option<Answer>,
    lane: Arc<Lane>,
    link: Arc<Link>,
}

impl Future for Waiting {
    type Output = hyper::Result<Response<Incoming>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = self.answer.as_mut().expect("polled after it was ready");
        let response = std::task::ready!(answer.as_mut().poll(cx));
        self.answer = None;
        Poll::Ready(response)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let Some(answer) = self.answer.take() else { return };
        if self.lane.client_left() && !self.link.is_closing() {
            self.link.reads_on();
            tokio::spawn(read_on_from_head(answer, Arc::clone(&self.lane), Arc::clone(&self.link)));
        }
    }
}

/// Says that the server cannot be reached, to a caller in the words of JSON-RPC.
async fn unreachable(link: &Link, lane: &Lane, mut body: RequestBody) -> Result<Response<ResponseBody>, Cut> {
    let mut bytes = Unfinished::new(lane.max_message());
    let is_whole = loop {
        match next_data(&mut body).await {
            Ok(Some(data)) => bytes.keep(&data),
            end => break end.is_ok(),
        }
    };
    // What came of the request is noted before its end is.
    drop(body);
    if !is_whole {
        lane.note(|| Item::Broken { reset: false });
        let _ = lane.write();
        return Err(Cut);
    }
    let text = link.why_unreachable();
    let told = bytes.end().ok().and_then(|body| {
        let message = Message::read(&body);
        let id = message.id().filter(|_| message.kind == Kind::Request)?;
        Some(jsonrpc::error(id, jsonrpc::NO_ANSWER, &text, Some(jsonrpc::FROM_TAPEDECK)))
    });
    let (kind, body) = match told {
        Some(error) => ("application/json", error),
        None => ("text/plain; charset=utf-8", format!("{text}\n").into_bytes()),
    };
    let status = StatusCode::BAD_GATEWAY;
    let mut heads = Heads::default();
    heads.push(CONTENT_TYPE.as_str(), kind.as_bytes());
    // It is what the client hears, so a replay has to say it too.
    lane.note(|| Item::Response(status.as_u16(), Arc::new(heads)));
    lane.note(|| Item::ResponseBody(body.clone()));
    lane.note(|| Item::End);
    if !lane.write() {
        return Err(Cut);
    }
    link.control.awaits_head();
    Ok(own(status, kind, body.into()))
}

/// A response of our own.
fn own(status: StatusCode, content_type: &'static str, body: Bytes) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::Own(Some(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
