//! One message of the client's, and what comes back of it.

use std::sync::{Arc, atomic::Ordering};

use hyper::{HeaderMap, Method, StatusCode, body::Bytes};

use super::{
    super::lock,
    failure::Failure,
    headers::SESSION,
    shared::{Call, Core, Mode, Reply, with_id},
};
use crate::wire::jsonrpc::{Kind, Message};

/// Sends it, and gives the client all that comes of it.
pub(super) async fn post(core: Arc<Core>, line: Bytes, headers: HeaderMap, mut call: Call) {
    if let Err(failure) = core.exchange(line, headers, &mut call).await {
        core.fail(&mut call, &failure).await;
    }
}

impl Core {
    async fn exchange(
        self: &Arc<Self>,
        line: Bytes,
        headers: HeaderMap,
        call: &mut Call,
    ) -> Result<(), Failure> {
        let mode = lock(&self.mode).clone();
        let path = match mode {
            Mode::Streamable => lock(&self.path).clone(),
            Mode::Sse(endpoint) => endpoint,
            Mode::SseOver => return Err(Failure::StreamOver),
        };
        let reply = self.send(Method::POST, path, headers.clone(), line.clone()).await?;
        if call.is_initialize && may_be_older(reply.head.status) && *lock(&self.mode) == Mode::Streamable {
            let (head, body) = self.read_whole(reply).await?;
            if Message::read(&body).kind == Kind::Noise {
                // Only a server of the older transport answers so (F5).
                let Some(endpoint) = self.open_sse().await else {
                    return Err(Failure::http(head.status, &head.headers, &body));
                };
                let reply = self.send(Method::POST, endpoint, headers, line).await?;
                return self.take(reply, call).await;
            }
            return self.refuse(head.status, &head.headers, &body, call).await;
        }
        self.take(reply, call).await
    }

    async fn take(self: &Arc<Self>, reply: Reply, call: &mut Call) -> Result<(), Failure> {
        let status = reply.head.status;
        if !status.is_success() {
            let (head, body) = self.read_whole(reply).await?;
            return self.refuse(head.status, &head.headers, &body, call).await;
        }
        if call.is_initialize {
            lock(&self.agreed).session = reply.head.headers.get(SESSION).cloned();
        }
        if call.requests.is_empty() {
            call.lets_go();
        }
        if reply.is_event_stream() {
            return self.stream(reply, call).await;
        }
        let (head, body) = self.read_whole(reply).await?;
        if call.requests.is_empty() {
            return Ok(());
        }
        let kind = Message::read(&body).kind;
        if kind.is_response() || kind == Kind::Batch {
            self.deliver(&body, Some(call)).await;
            let is_unanswered = call.requests.iter().any(|request| self.flight.is_waited_for(&request.key));
            return if is_unanswered { Err(Failure::stranger(status, &body)) } else { Ok(()) };
        }
        // The answer may come on another stream (F10.5), unless there is none; in the modern era there is no other.
        let may_be_elsewhere = !call.is_modern && status != StatusCode::NO_CONTENT;
        let is_elsewhere =
            body.trim_ascii().is_empty() && may_be_elsewhere || *lock(&self.mode) != Mode::Streamable;
        let is_streamable = *lock(&self.mode) == Mode::Streamable;
        match is_elsewhere {
            true if !is_streamable => Ok(()),
            true if self.has_stream.load(Ordering::Relaxed) => self.come_elsewhere(call).await,
            _ => Err(Failure::http(head.status, &head.headers, &body)),
        }
    }

    /// The server answered with an error of HTTP.
    async fn refuse(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        body: &[u8],
        call: &mut Call,
    ) -> Result<(), Failure> {
        let message = Message::read(body);
        let request = call.requests.first().filter(|_| !call.is_batch && message.kind == Kind::Error);
        let Some(request) = request else { return Err(Failure::http(status, headers, body)) };
        if message.id_key().as_deref() == Some(&request.key) {
            self.deliver(body, Some(call)).await;
        } else {
            // Whatever id it has, or none, this is what it answers (F4.4, F10.2).
            let line = with_id(&request.id, &message);
            self.deliver(&line, Some(call)).await;
        }
        Ok(())
    }
}

fn may_be_older(status: StatusCode) -> bool {
    matches!(status, StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED)
}
