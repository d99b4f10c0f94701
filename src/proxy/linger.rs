//! Looking again before waiting.
//!
//! A peer on the same machine answers within microseconds, and to be woken by the system takes longer than that where
//! it has put the peer on another core (measured: a round trip takes half the time). So whoever has just passed
//! something on looks a few times more, with everybody else running in between who is ready to, and waits only then.
//! After each message that costs some tens of microseconds of a core that has nothing else to do.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    thread,
};

use tokio::{sync::Notify, task};

/// How often it is looked again. A look takes about a microsecond.
const LOOKS: u32 = 32;

/// The looks of a thread.
#[derive(Debug, Default)]
pub(super) struct Looks {
    left: u32,
}

impl Looks {
    /// Something has passed.
    pub(super) const fn renew(&mut self) {
        self.left = LOOKS;
    }

    /// Nothing has come; whether it is worth another look. Others may have run meanwhile.
    pub(super) fn again(&mut self) -> bool {
        let is_left = self.left > 0;
        if is_left {
            self.left -= 1;
            thread::yield_now();
        }
        is_left
    }
}

/// The looks of a runtime of one thread. A runtime that is busy does not look: where several things pass between two
/// looks, what comes next is there already, and looking would take from their time.
#[derive(Debug, Default)]
pub(super) struct Linger {
    left: AtomicU32,
    /// How much has passed since the last look.
    passed: AtomicU32,
    renewed: Notify,
}

impl Linger {
    /// Something has passed.
    pub(super) fn renew(&self) {
        self.passed.fetch_add(1, Ordering::Relaxed);
        if self.left.swap(LOOKS, Ordering::Relaxed) == 0 {
            self.renewed.notify_one();
        }
    }

    /// Has the runtime look for what has come, and not wait for it, as long as there are looks left. Never ends.
    pub(super) async fn keep_looking(&self) {
        loop {
            let is_busy = self.passed.swap(0, Ordering::Relaxed) > 1;
            match self.left.load(Ordering::Relaxed) {
                0 => self.renewed.notified().await,
                _ if is_busy => self.left.store(0, Ordering::Relaxed),
                left => {
                    self.left.store(left - 1, Ordering::Relaxed);
                    thread::yield_now();
                    task::yield_now().await;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        iter,
        pin::pin,
        sync::{Arc, atomic::AtomicBool},
        task::{Context, Wake, Waker},
    };

    use super::*;

    #[test]
    fn a_thread_looks_again_so_often_after_what_passed_last() {
        let mut looks = Looks::default();
        assert!(!looks.again());
        looks.renew();
        assert!(looks.again());
        looks.renew();
        let again = iter::repeat_with(|| looks.again()).take_while(|again| *again);
        assert_eq!(again.count(), LOOKS as usize);
    }

    #[test]
    fn a_runtime_looks_again_so_often_and_then_waits_for_what_passes_next() {
        struct Task(AtomicBool);
        impl Wake for Task {
            fn wake(self: Arc<Self>) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let task = Arc::new(Task(AtomicBool::new(true)));
        let waker = Waker::from(Arc::clone(&task));
        let linger = Linger::default();
        let mut looking = pin!(linger.keep_looking());
        // How often it wants to be polled again.
        let mut looks = || {
            let mut polled = || looking.as_mut().poll(&mut Context::from_waker(&waker)).is_pending();
            iter::repeat_with(|| task.0.swap(false, Ordering::Relaxed) && polled())
                .take_while(|again| *again)
                .count()
        };
        assert_eq!(looks(), 1);
        for _ in 0..2 {
            linger.renew();
            assert_eq!(looks(), 1 + LOOKS as usize);
        }
        // Several things at once: it is busy.
        linger.renew();
        linger.renew();
        assert_eq!(looks(), 1);
        linger.renew();
        assert_eq!(looks(), 1 + LOOKS as usize);
    }
}
