//! The signals that ask us to end, as something to wait for beside other descriptors.

use std::{
    io,
    os::{
        fd::{AsFd, BorrowedFd},
        unix::net::UnixStream,
    },
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use signal_hook::{flag, low_level::pipe};

use super::shutdown::{IS_HEEDED, heeded_signals};

/// Becomes readable when a signal has come that asks us to end.
#[derive(Debug)]
pub struct Stop {
    woken: UnixStream,
    signal: Arc<AtomicUsize>,
}

impl Stop {
    /// From now on SIGTERM, SIGINT and SIGHUP no longer end this process by themselves. What was ignored when we
    /// were started stays so (`nohup`).
    ///
    /// # Errors
    /// When the system refuses.
    pub fn install() -> io::Result<Self> {
        let stop = Self::listen(heeded_signals())?;
        IS_HEEDED.store(true, Ordering::SeqCst);
        Ok(stop)
    }

    fn listen(signals: impl IntoIterator<Item = i32>) -> io::Result<Self> {
        let (woken, wake) = UnixStream::pair()?;
        let signal = Arc::new(AtomicUsize::new(0));
        for number in signals {
            let note = usize::try_from(number).map_err(io::Error::other)?;
            // In this order: who is woken finds the number.
            flag::register_usize(number, Arc::clone(&signal), note)?;
            pipe::register(number, wake.try_clone()?)?;
        }
        Ok(Self { woken, signal })
    }

    /// The signal that came.
    pub fn signal(&self) -> Option<i32> {
        i32::try_from(self.signal.load(Ordering::Relaxed)).ok().filter(|signal| *signal != 0)
    }
}

impl AsFd for Stop {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.woken.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use signal_hook::{consts::SIGUSR2, low_level::raise};

    use super::*;

    #[test]
    fn a_signal_wakes_and_is_known_by_its_number() {
        let mut stop = Stop::listen([SIGUSR2]).unwrap();
        assert_eq!(stop.signal(), None);
        raise(SIGUSR2).unwrap();
        stop.woken.read_exact(&mut [0]).unwrap();
        assert_eq!(stop.signal(), Some(SIGUSR2));
    }
}
