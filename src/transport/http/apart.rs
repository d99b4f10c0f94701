//! Futures that share a task, each polled only when it was woken itself.
//!
//! What moves the bytes of a connection is woken by its socket, and by whoever is behind it. Where several of them, and
//! what seldom happens, are one task, most of them would be polled in vain whenever one of them has something to do.

use std::{
    future::poll_fn,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

/// A future beside others in a task.
pub struct Apart<F> {
    /// Until it has ended.
    future: Option<F>,
    bell: Arc<Bell>,
    waker: Waker,
}

struct Bell {
    is_rung: AtomicBool,
    task: Waker,
}

impl<F: Future + Unpin> Apart<F> {
    /// In the task that this waker wakes, which polls it from then on each time that it is woken.
    pub fn new(future: F, task: Waker) -> Self {
        let bell = Arc::new(Bell { is_rung: AtomicBool::new(false), task });
        bell.wake_by_ref();
        Self { future: Some(future), waker: Waker::from(Arc::clone(&bell)), bell }
    }

    /// What comes of it, once: polled if it was woken since it was polled last.
    pub fn poll(&mut self) -> Poll<F::Output> {
        let Some(future) = &mut self.future else { return Poll::Pending };
        if !self.bell.is_rung.swap(false, Ordering::AcqRel) {
            return Poll::Pending;
        }
        let polled = Pin::new(future).poll(&mut Context::from_waker(&self.waker));
        if polled.is_ready() {
            self.future = None;
        }
        polled
    }

    /// Whether there is something for it to do.
    pub fn is_woken(&self) -> bool {
        self.future.is_some() && self.bell.is_rung.load(Ordering::Acquire)
    }

    /// Tells it something, upon which it is woken.
    pub fn tell(&mut self, what: impl FnOnce(&mut F)) {
        if let Some(future) = &mut self.future {
            what(future);
            self.bell.wake_by_ref();
        }
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_rung.store(true, Ordering::Release);
        self.task.wake_by_ref();
    }
}

/// What wakes the task that asks.
pub async fn this_task() -> Waker {
    poll_fn(|cx| Poll::Ready(cx.waker().clone())).await
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, future::pending};

    use super::*;

    #[test]
    fn a_future_is_polled_when_it_was_woken_and_ends_once() {
        let (polled, waker) = (Cell::new(0), Cell::new(None));
        let future = poll_fn(|cx| {
            polled.set(polled.get() + 1);
            waker.set(Some(cx.waker().clone()));
            if polled.get() < 3 { Poll::Pending } else { Poll::Ready("over") }
        });
        let mut apart = Apart::new(future, Waker::noop().clone());
        assert!(apart.is_woken() && apart.poll().is_pending());
        assert!(!apart.is_woken() && apart.poll().is_pending());
        assert_eq!(polled.get(), 1);
        waker.take().unwrap().wake();
        assert!(apart.is_woken() && apart.poll().is_pending());
        apart.tell(|_| ());
        assert_eq!(apart.poll(), Poll::Ready("over"));
        waker.take().unwrap().wake();
        assert!(!apart.is_woken() && apart.poll().is_pending());
        apart.tell(|_| unreachable!("it has ended"));
        assert_eq!(polled.get(), 3);
    }

    #[test]
    fn its_task_is_woken_with_it() {
        struct Task(AtomicBool);
        impl Wake for Task {
            fn wake(self: Arc<Self>) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let task = Arc::new(Task(AtomicBool::new(false)));
        let is_woken = || task.0.swap(false, Ordering::Relaxed);
        let mut apart = Apart::new(pending::<()>(), Waker::from(Arc::clone(&task)));
        assert!(is_woken() && apart.poll().is_pending() && !is_woken());
        apart.tell(|_| ());
        assert!(is_woken());
    }
}
