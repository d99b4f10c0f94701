//! Calls that are read on although their client hears nothing more of them, and for which it comes back.
//!
//! A server sends the rest of a stream to a `GET` with `Last-Event-ID` only where it knows that the stream is broken: it
//! refuses one while the connection is there that carries the stream. So that connection ends before the `GET` goes on.

use std::{
    sync::{Arc, Mutex, Weak},
    time::Duration,
};

use tokio::{sync::Notify, time::sleep};

use super::super::lock;

/// How long a server has to notice that a connection has ended. Without us it would have had since its client left.
const NOTICED: Duration = Duration::from_millis(50);

/// How long it takes until it is known that a client has left.
const SEEN: Duration = Duration::from_millis(5);

/// Such calls.
#[derive(Debug, Default)]
pub(super) struct Absent(Mutex<Vec<Call>>);

#[derive(Debug)]
struct Call {
    session: Box<[u8]>,
    /// Gone when it is no longer read on.
    back: Weak<Notify>,
}

/// Tells when the client of a call comes back.
#[derive(Debug)]
pub(super) struct Back(Option<Arc<Notify>>);

impl Absent {
    /// A call of this session is read on.
    pub(super) fn add(&self, session: Option<&[u8]>) -> Back {
        let Some(session) = session else { return Back(None) };
        let back = Arc::new(Notify::new());
        let mut calls = lock(&self.0);
        calls.retain(|call| call.back.strong_count() > 0);
        calls.push(Call { session: session.into(), back: Arc::downgrade(&back) });
        Back(Some(back))
    }

    /// A request comes that names this session and this event. If it goes on with a stream, those that are read on of its
    /// session are let go first.
    pub(super) async fn let_go(&self, session: Option<&[u8]>, event: Option<&[u8]>) {
        let Some(session) = session.filter(|_| event.is_some()) else { return };
        // The end of a connection that came just before may not have been seen yet.
        sleep(SEEN).await;
        let calls: Vec<_> = {
            let calls = lock(&self.0);
            let of_session = calls.iter().filter(|call| *call.session == *session);
            of_session.filter_map(|call| call.back.upgrade()).collect()
        };
        if calls.is_empty() {
            return;
        }
        calls.iter().for_each(|call| call.notify_one());
        drop(calls);
        sleep(NOTICED).await;
    }
}

impl Back {
    /// Waits until it does.
    pub(super) async fn comes(&self) {
        match &self.0 {
            Some(back) => back.notified().await,
            None => std::future::pending().await,
        }
    }
}
