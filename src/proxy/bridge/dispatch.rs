//! The client's messages, each on its way when it may be.

use std::sync::{Arc, atomic::Ordering};

use hyper::{Method, body::Bytes};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Duration, timeout},
};

use super::{
    super::lock,
    flight::Cancelled,
    headers, post,
    shared::{Call, Core, Mode},
    tape::Said,
};
use crate::{
    traffic::Lane,
    wire::jsonrpc::{Kind, Message, id_key},
};

/// How long what follows a notification waits for the server to take it.
const ACCEPTANCE: Duration = Duration::from_secs(2);
/// How long what follows `notifications/initialized` waits for the server's own stream.
const OPENING: Duration = Duration::from_millis(250);

/// Sends all of the client's messages on their way.
pub(super) async fn dispatch_all(core: &Arc<Core>, mut lines: mpsc::Receiver<Said>) {
    while let Some((lane, line)) = lines.recv().await {
        if !line.trim_ascii().is_empty() {
            core.dispatch(lane, line).await;
        }
    }
}

impl Core {
    /// Sends one of the client's messages on its way; returns when the next one may follow.
    async fn dispatch(self: &Arc<Self>, lane: Lane, line: Vec<u8>) {
        let message = Message::read(&line);
        // On HTTP+SSE a request has no connection that could be closed.
        if let Some(id) = message.cancelled_id()
            && self.flight.cancel(&id_key(id)) == Cancelled::Closed
            && *lock(&self.mode) == Mode::Streamable
        {
            return;
        }
        let holds = message.kind == Kind::Notification || is_initialize(&message);
        let (go, gone) = oneshot::channel();
        let call = Call::new(lane, &message, holds.then_some(go));
        let is_initialize = call.is_initialize;
        let is_initialized =
            message.kind == Kind::Notification && message.method() == "notifications/initialized";
        if is_initialize {
            self.begin_session();
        }
        let headers = lock(&self.agreed).post(&message);
        let requests = call.requests.clone();
        requests.iter().for_each(|request| self.flight.begins(request));
        let posted = tokio::spawn(post::post(Arc::clone(self), Bytes::from(line), headers, call));
        requests.iter().for_each(|request| self.flight.is_carried(request, &posted.abort_handle()));
        if !holds {
            // It gets under way before the next one does.
            tokio::task::yield_now().await;
            return;
        }
        if is_initialize {
            // It ends with the request, however that ends.
            let _ = gone.await;
            return;
        }
        let was_taken = matches!(timeout(ACCEPTANCE, gone).await, Ok(Ok(())));
        if is_initialized && was_taken && *lock(&self.mode) == Mode::Streamable {
            let (opened, is_open) = oneshot::channel();
            self.has_stream.store(true, Ordering::Relaxed);
            let listening = tokio::spawn(Arc::clone(self).listen(opened));
            *lock(&self.listening) = Some(listening.abort_handle());
            let _ = timeout(OPENING, is_open).await;
        }
    }

    /// What was agreed on before is over.
    fn begin_session(&self) {
        if let Some(listening) = lock(&self.listening).take() {
            listening.abort();
        }
        self.stream_is_over();
        *lock(&self.agreed) = headers::Agreed::default();
        *lock(&self.mode) = Mode::Streamable;
    }

    /// Tells the server that the session is over, where it began one.
    pub(super) async fn delete(&self) {
        let headers = {
            let agreed = lock(&self.agreed);
            if agreed.session.is_none() {
                return;
            }
            agreed.delete()
        };
        let path = lock(&self.path).clone();
        // Servers may have no use for it (405), and nothing is left to be done where it fails.
        let _ = self.send(Method::DELETE, path, headers, Bytes::new()).await;
    }
}

fn is_initialize(message: &Message<'_>) -> bool {
    message.kind == Kind::Request && message.method() == "initialize"
}
