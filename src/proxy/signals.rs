//! The signals that end a front, for what waits without a thread of its own.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that end a front.
#[derive(Debug)]
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

impl Signals {
    /// From now on they do not end the process by themselves.
    pub(super) fn install() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// The next one, by its number; never, where none are listened for.
    pub(super) async fn next(signals: &mut Option<Self>) -> i32 {
        let Some(signals) = signals else { return std::future::pending().await };
        let kind = tokio::select! {
            _ = signals.terminate.recv() => SignalKind::terminate(),
            _ = signals.interrupt.recv() => SignalKind::interrupt(),
            _ = signals.hang_up.recv() => SignalKind::hangup(),
        };
        kind.as_raw_value()
    }
}
