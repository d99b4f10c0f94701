//! The recording session of a stdio server: two pipes with a tap between them, and the end of it all.
//!
//! What comes is read, written by the tap as far as the read ended it, and passed on (see `ways`). The thread that
//! called [`record`] waits for what matters to the ending and does what [`Ending`](super::shutdown) says.

mod ways;

use std::{
    io,
    os::fd::OwnedFd,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
        mpsc::{self, Receiver, Sender},
    },
    thread,
    time::{Duration, Instant},
};

use self::ways::Way;
use super::{
    child::Child,
    recorder::Tapped,
    shutdown::{Ending, Grace, Happened, Pulse, Signals, Step},
    tap::Tap,
};
use crate::{
    traffic::{Direction, Exit, Micros, Payload},
    transport::stdio::{self, Client, Outlet, Server},
};

pub use super::{
    hide::{Hide, Part},
    recorder::Sink,
};

/// How long the last events may take to be written when a signal's limit has been reached.
const LAST_WRITE: Duration = Duration::from_millis(200);

/// Value of [`Session::quiet_since`] while a read is on its way to the client.
const BUSY: Micros = Micros::MAX;

/// How a session is recorded.
pub struct RecordOptions {
    /// Longer messages pass, and are recorded as envelope, size and hash.
    pub max_message: usize,
    /// A sink that fails ends the session.
    pub require_recording: bool,
    /// How long each step of an ending may take.
    pub grace: Grace,
    /// Signals to pass on to the server.
    pub signals: Option<Signals>,
    /// Signals from elsewhere that are passed on to the server as those are.
    pub ends: Option<Receiver<i32>>,
    /// What is hidden from the sink.
    pub hide: Box<dyn Hide>,
    /// Told once, in the middle of the session, when the sink has failed: one sentence.
    pub warn: Box<dyn FnMut(&str) + Send>,
}

impl Default for RecordOptions {
    fn default() -> Self {
        Self {
            max_message: 64 << 20,
            require_recording: false,
            grace: Grace::default(),
            signals: None,
            ends: None,
            hide: Box::new(()),
            warn: Box::new(|_| ()),
        }
    }
}

/// How a session ended.
#[derive(Debug)]
pub struct Ended<S> {
    /// How the server ended. Neither status nor signal: it could not be ended.
    pub exit: Exit,
    /// The signal that asked us to end, and when: the caller has until two seconds after that.
    pub asked: Option<(i32, Instant)>,
    /// Why the client did not take all that the server said, where that is so: how the server ended then, who ran into
    /// the same or noticed nothing of it, is a matter of chance.
    pub gone: Option<io::Error>,
    /// How many messages the sink did not take; where it is none, nobody knows.
    pub missed: u64,
    /// The sink, with all events in it. None: it still held the last of them up when we had to end.
    pub sink: Option<S>,
}

/// A session that was broken off.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The sink failed, and `require_recording` says that this is fatal.
    #[error("the recording cannot be written, and the session was ended because of it: {0}")]
    Sink(#[source] io::Error),
}

/// Passes bytes both ways between a client and a server that has just been started, until it is over, and has every
/// message written to the sink before it is passed on whole.
///
/// When it returns, a thread may still wait for the client's next bytes; it passes nothing on.
///
/// # Errors
/// When the sink fails and that is fatal.
pub fn record<S: Sink + 'static>(
    server: Server,
    client: Client,
    sink: S,
    options: RecordOptions,
) -> Result<Ended<S>, RecordError> {
    let RecordOptions { max_message, require_recording, grace, signals, ends, hide, warn } = options;
    let (happened, happenings) = mpsc::channel();
    let signals = signals.map(|signals| {
        let happened = happened.clone();
        signals.forward(move |signal| happened.send(Happened::Signal(signal)).is_ok())
    });
    if let Some(ends) = ends {
        let happened = happened.clone();
        thread::spawn(move || ends.iter().for_each(|signal| tell(&happened, Happened::Signal(signal))));
    }
    let output = Arc::new(server.output);
    let session = Arc::new(Session {
        tap: Tap::new(sink, hide, max_message, require_recording),
        to_server: Outlet::new(server.input),
        to_client: Outlet::new(client.output),
        quiet_since: AtomicU64::new(0),
        output: Arc::downgrade(&output),
    });
    let child = Child::watch(server.child, happened.clone());
    ways::pass(
        Way::new(&session, Direction::ToServer, Arc::new(client.input), &happened),
        Way::new(&session, Direction::ToClient, output, &happened),
    );
    drop(happened);
    let mut supervisor = Supervisor {
        session,
        child,
        happenings,
        ending: Ending::new(grace),
        warn,
        asked: None,
        failure: None,
        gone: None,
        limit: grace.limit,
    };
    supervisor.run();
    if let Some(signals) = signals {
        signals.stop();
    }
    supervisor.finish()
}

/// What both directions' threads and the supervisor share.
struct Session<S> {
    tap: Tap<S>,
    to_server: Outlet,
    to_client: Outlet,
    /// Since when nothing is on its way to the client, in the tap's time; [`BUSY`] while something is.
    quiet_since: AtomicU64,
    /// What the server sends, as long as it is read.
    output: Weak<OwnedFd>,
}

impl<S: Sink> Session<S> {
    /// Writes the end of it all.
    fn finish(&self, exit: Exit) -> Option<(S, u64)> {
        for direction in [Direction::ToServer, Direction::ToClient] {
            self.tap.close(direction, false);
        }
        self.tap.finish(Payload::Exit(exit))
    }

    fn pulse(&self) -> Pulse {
        let quiet_since = self.quiet_since.load(Ordering::Relaxed);
        let has_more = self.output.upgrade().is_some_and(|output| stdio::is_readable(&output));
        let (is_owing, settled) = self.tap.owing();
        Pulse {
            quiet_since: (quiet_since != BUSY && !has_more).then(|| self.tap.instant(quiet_since)),
            is_owing,
            settled,
            has_others: false,
        }
    }
}

/// Whether what was tapped goes on.
fn passes(tapped: Tapped, happened: &Sender<Happened>) -> bool {
    match tapped {
        Tapped::Pass => true,
        Tapped::PassUnwritten(error) => {
            tell(happened, Happened::SinkFailed(error));
            true
        }
        Tapped::Refuse(error) => {
            tell(happened, Happened::SinkRefused(error));
            false
        }
        Tapped::Over => false,
    }
}

fn tell(happened: &Sender<Happened>, what: Happened) {
    // Nobody listens once the session is over.
    let _ = happened.send(what);
}

/// Waits for what matters to the ending, and does it.
struct Supervisor<S> {
    session: Arc<Session<S>>,
    child: Child,
    happenings: Receiver<Happened>,
    ending: Ending,
    warn: Box<dyn FnMut(&str) + Send>,
    asked: Option<(i32, Instant)>,
    failure: Option<io::Error>,
    gone: Option<io::Error>,
    /// See [`Grace::limit`].
    limit: Duration,
}

impl<S: Sink + 'static> Supervisor<S> {
    fn run(&mut self) {
        loop {
            let mut pulse = self.session.pulse();
            pulse.has_others = self.ending.asks_for_others() && self.child.has_others();
            match self.ending.next(Instant::now(), &pulse) {
                Step::CloseInput => self.session.to_server.close(),
                Step::Signal(signal) => self.child.signal(signal),
                Step::Wait(until) => self.wait(until),
                Step::End => return,
            }
        }
    }

    fn wait(&mut self, until: Option<Instant>) {
        let Some(what) = receive(&self.happenings, until) else { return };
        let now = Instant::now();
        self.ending.happened(now, &what);
        match what {
            Happened::Signal(signal) => self.asked = self.asked.or(Some((signal, now))),
            Happened::SinkFailed(error) => (self.warn)(&format!(
                "the recording has a gap, the session goes on: the journal cannot be written ({error})"
            )),
            Happened::SinkRefused(error) => self.failure = self.failure.take().or(Some(error)),
            Happened::ClientGone(error) => self.gone = Some(error),
            Happened::InputClosed | Happened::OutputClosed | Happened::Exited => {}
        }
    }

    fn finish(mut self) -> Result<Ended<S>, RecordError> {
        let (status, signal) = self.child.end();
        let exit = Exit { status, signal, by_itself: self.ending.by_itself() };
        // A disk that stalls holds this up, but not longer than the signal allows that asked us to end.
        let (done, finished) = mpsc::channel();
        let session = Arc::clone(&self.session);
        thread::spawn(move || done.send(session.finish(exit)));
        let last = self.asked.map(|(_, at)| at + self.limit + LAST_WRITE);
        let (sink, missed) = receive(&finished, last).flatten().unzip();
        self.session.to_client.close();
        self.session.to_server.close();
        match self.failure {
            Some(error) => Err(RecordError::Sink(error)),
            None => Ok(Ended { exit, asked: self.asked, gone: self.gone, missed: missed.unwrap_or(0), sink }),
        }
    }
}

/// The next of them, or none when it has not come by then.
fn receive<T>(from: &Receiver<T>, until: Option<Instant>) -> Option<T> {
    match until {
        None => from.recv().ok(),
        Some(until) => from.recv_timeout(until.saturating_duration_since(Instant::now())).ok(),
    }
}

#[cfg(test)]
mod tests;
