//! The client's requests that have no answer yet.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard},
};

use tokio::{
    sync::{Notify, futures::Notified},
    task::AbortHandle,
    time::{Duration, timeout},
};

use super::super::lock;
use crate::wire::jsonrpc::{Kind, Message};

/// One request.
#[derive(Clone, Debug)]
pub(super) struct Request {
    /// Its id as it stands, and as it is compared.
    pub(super) id: Vec<u8>,
    pub(super) key: Vec<u8>,
    /// What its answer tells beside what the client asked.
    pub(super) teaches: Teaches,
    is_modern: bool,
    /// The stream it asks for stays open, so nobody waits for its end.
    is_endless: bool,
}

/// What an answer tells us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Teaches {
    Nothing,
    /// The revision of the session.
    Revision,
    /// Which arguments are repeated in headers.
    Tools {
        is_first_page: bool,
    },
}

impl Request {
    pub(super) fn new(message: &Message<'_>) -> Option<Self> {
        if message.kind != Kind::Request {
            return None;
        }
        let id = message.id()?.to_vec();
        let method = message.method();
        Some(Self {
            key: crate::wire::jsonrpc::id_key(&id).into_owned(),
            id,
            teaches: match method.as_ref() {
                "initialize" => Teaches::Revision,
                "tools/list" => Teaches::Tools { is_first_page: message.param("/cursor").is_none() },
                _ => Teaches::Nothing,
            },
            is_modern: message.is_modern(),
            is_endless: method == "subscriptions/listen",
        })
    }

    /// Whether an answer names it, in whatever type the server gives ids: clients accept `"3"` for `3`.
    pub(super) fn is_named_by(&self, answer: &Message<'_>) -> bool {
        fn bare(key: &[u8]) -> &[u8] {
            key.strip_prefix(b"\"").unwrap_or(key)
        }
        answer.id_key().is_some_and(|key| bare(&key) == bare(&self.key))
    }
}

/// What came of a cancel.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Cancelled {
    /// Its connection is closed, and that is all a server of its era hears.
    Closed,
    /// The server is to be told; it is of the era that tells.
    Tell,
}

/// By their ids, with what their connections can be closed by.
type Requests = HashMap<Vec<u8>, (Request, Option<AbortHandle>)>;

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Flight {
    requests: Mutex<Requests>,
    changed: Notify,
}

impl Flight {
    fn lock(&self) -> MutexGuard<'_, Requests> {
        lock(&self.requests)
    }

    /// A request is about to be sent.
    pub(super) fn begins(&self, request: &Request) {
        self.lock().insert(request.key.clone(), (request.clone(), None));
    }

    /// What its connection can be closed by.
    pub(super) fn is_carried(&self, request: &Request, by: &AbortHandle) {
        if let Some((_, carried)) = self.lock().get_mut(&request.key) {
            *carried = Some(by.clone());
        }
    }

    /// Its answer has come, or never will. Gives the request where it was still waited for.
    pub(super) fn ends(&self, key: &[u8]) -> Option<Request> {
        let ended = self.lock().remove(key);
        // Whoever waits for output wants to hear of any.
        self.changed.notify_waiters();
        ended.map(|(request, _)| request)
    }

    /// No answer will come to any of them.
    pub(super) fn all_end(&self) -> Vec<Request> {
        let ended = std::mem::take(&mut *self.lock());
        self.changed.notify_waiters();
        ended.into_values().map(|(request, _)| request).collect()
    }

    pub(super) fn is_waited_for(&self, key: &[u8]) -> bool {
        self.lock().contains_key(key)
    }

    /// The client waits no longer for the request with this id.
    pub(super) fn cancel(&self, key: &[u8]) -> Cancelled {
        let cancelled = self.lock().remove(key);
        self.changed.notify_waiters();
        match cancelled {
            Some((Request { is_modern: true, .. }, carried)) => {
                if let Some(carried) = carried {
                    carried.abort();
                }
                Cancelled::Closed
            }
            // Its answer may come all the same.
            _ => Cancelled::Tell,
        }
    }

    /// Ends with the next change of any kind.
    pub(super) fn changes(&self) -> Notified<'_> {
        self.changed.notified()
    }

    /// Something else was said.
    pub(super) fn speaks(&self) {
        self.changed.notify_waiters();
    }

    /// Waits until no request is unanswered that is to be answered.
    pub(super) async fn settle(&self) {
        loop {
            let changed = self.changed.notified();
            if self.lock().values().all(|(request, _)| request.is_endless) {
                return;
            }
            changed.await;
        }
    }

    /// Waits until nothing at all came for so long.
    pub(super) async fn falls_silent(&self, patience: Duration) {
        while timeout(patience, self.changed.notified()).await.is_ok() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(text: &str) -> Request {
        Request::new(&Message::read(text.as_bytes())).unwrap()
    }

    #[test]
    fn a_cancel_closes_in_one_era_and_is_told_in_the_other() {
        let flight = Flight::default();
        let legacy = request(r#"{"jsonrpc":"2.0","id":1,"method":"x"}"#);
        let modern = request(
            r#"{"jsonrpc":"2.0","id":"a","method":"x","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#,
        );
        flight.begins(&legacy);
        flight.begins(&modern);
        assert_eq!(flight.cancel(&legacy.key), Cancelled::Tell);
        assert_eq!(flight.cancel(&modern.key), Cancelled::Closed);
        assert!(!flight.is_waited_for(&legacy.key) && !flight.is_waited_for(&modern.key));
        assert_eq!(flight.cancel(b"9"), Cancelled::Tell);
    }

    #[test]
    fn a_list_with_a_cursor_is_not_the_first_page() {
        let teaches = |text| request(text).teaches;
        assert_eq!(
            teaches(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"c"}}"#),
            Teaches::Tools { is_first_page: false }
        );
        assert_eq!(
            teaches(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#),
            Teaches::Tools { is_first_page: true }
        );
        assert!(Request::new(&Message::read(br#"{"jsonrpc":"2.0","method":"x"}"#)).is_none());
    }
}
