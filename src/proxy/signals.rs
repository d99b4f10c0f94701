//! The signals that end a front, for what waits without a thread of its own.

use std::{future::poll_fn, io, task::Poll};

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that end a front.
#[derive(Debug)]
pub(super) struct Signals(Vec<(SignalKind, Signal)>);

impl Signals {
    /// From now on they do not end the process by themselves.
    pub(super) fn install() -> io::Result<Self> {
        Self::listen(&[SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()])
    }

    /// Those that are passed on to a command as well.
    pub(super) fn install_all() -> io::Result<Self> {
        let mut signals = Self::install()?;
        let further = [SignalKind::quit(), SignalKind::user_defined1(), SignalKind::user_defined2()];
        signals.0.extend(Self::listen(&further)?.0);
        Ok(signals)
    }

    fn listen(kinds: &[SignalKind]) -> io::Result<Self> {
        kinds.iter().map(|&kind| Ok((kind, signal(kind)?))).collect::<io::Result<_>>().map(Self)
    }

    /// The next one, by its number; never, where none are listened for.
    pub(super) async fn next(signals: &mut Option<Self>) -> i32 {
        let Some(Self(signals)) = signals else { return std::future::pending().await };
        let come = poll_fn(|cx| {
            let come = signals
                .iter_mut()
                .find_map(|(kind, signal)| signal.poll_recv(cx).is_ready().then_some(*kind));
            come.map_or(Poll::Pending, Poll::Ready)
        });
        come.await.as_raw_value()
    }
}
