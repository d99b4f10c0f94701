//! When a session ends, how a server is told, and how we end ourselves.
//!
//! [`Ending`] holds the rules and nothing else: it is told what happened and asked what is to be done now. What it
//! decides is done by [`super::record`].

use std::{
    io, mem,
    process::exit,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use rustix::process::{Resource, Rlimit};
use signal_hook::{
    SigId,
    consts::signal::{SIGCHLD, SIGHUP, SIGINT, SIGKILL, SIGTERM, SIGXFSZ},
    flag, low_level,
};

use crate::traffic::Exit;

/// How long each step of an ending may take.
#[derive(Clone, Copy, Debug)]
pub struct Grace {
    /// From the end of the server's input to SIGTERM; while a request is unanswered, from the last output.
    pub input: Duration,
    /// From SIGTERM to SIGKILL.
    pub term: Duration,
    /// How long an output that outlives its server must be silent to count as ended; and how long a server may
    /// outlive its output before its input is closed.
    pub silence: Duration,
    /// From a signal that we pass on to SIGKILL.
    pub signal: Duration,
    /// From a signal that we pass on to our own end, whatever is still open.
    pub limit: Duration,
}

impl Default for Grace {
    fn default() -> Self {
        Self {
            input: Duration::from_secs(3),
            term: Duration::from_secs(1),
            silence: Duration::from_secs(1),
            signal: Duration::from_millis(1200),
            limit: Duration::from_millis(1600),
        }
    }
}

/// How often the group of a server that we have signalled is looked at: nobody tells when a member leaves it.
const LOOK: Duration = Duration::from_millis(20);

/// Something that matters to how a session ends.
#[derive(Debug)]
pub(super) enum Happened {
    /// The client closed its side, and the server's input is closed.
    InputClosed,
    /// The client takes no more output: what the system said.
    ClientGone(io::Error),
    /// The server's output ended.
    OutputClosed,
    /// The server's process ended.
    Exited,
    /// We are to end: a signal to pass on.
    Signal(i32),
    /// The sink failed for the first time, and the session goes on.
    SinkFailed(io::Error),
    /// The sink failed, and the session must not go on.
    SinkRefused(io::Error),
}

/// How the traffic stands at the moment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pulse {
    /// Since when no output has been on its way; none while some is.
    pub(super) quiet_since: Option<Instant>,
    /// Whether a request of the client is unanswered.
    pub(super) is_owing: bool,
    /// When the last unanswered request was answered.
    pub(super) settled: Option<Instant>,
    /// Whether the server's process group has members beside the server.
    pub(super) has_others: bool,
}

/// What is to be done now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Close the server's input.
    CloseInput,
    /// Send a signal to the server's process group.
    Signal(i32),
    /// Nothing, until then or until something happens.
    Wait(Option<Instant>),
    /// The session is over.
    End,
}

/// The rules of ending.
#[derive(Debug)]
pub(super) struct Ending {
    grace: Grace,
    input_closed: Option<Instant>,
    /// The server's input is to be closed by us although the client has not closed its side.
    must_close: bool,
    output_closed: Option<Instant>,
    exited: Option<Instant>,
    /// The output ended, or the process, before the input was closed and before any signal of ours.
    by_itself: bool,
    /// Nobody hears the server any more.
    is_unheard: bool,
    /// A signal to pass on.
    received: Option<i32>,
    /// Whether a signal of ours went to the group.
    signalled: bool,
    /// When SIGKILL is due.
    kill_at: Option<Instant>,
    /// When it went to the group.
    killed: Option<Instant>,
    /// When we end, whatever is still open.
    give_up_at: Option<Instant>,
}

impl Ending {
    pub(super) const fn new(grace: Grace) -> Self {
        Self {
            grace,
            input_closed: None,
            must_close: false,
            output_closed: None,
            exited: None,
            by_itself: false,
            is_unheard: false,
            received: None,
            signalled: false,
            kill_at: None,
            give_up_at: None,
            killed: None,
        }
    }

    /// Whether the server ended by itself, as far as is known.
    pub(super) const fn by_itself(&self) -> bool {
        self.by_itself
    }

    /// Whether [`Pulse::has_others`] matters now.
    pub(super) const fn asks_for_others(&self) -> bool {
        self.signalled && self.exited.is_some()
    }

    pub(super) fn happened(&mut self, now: Instant, what: &Happened) {
        let untouched = self.input_closed.is_none() && !self.signalled && !self.is_unheard;
        match what {
            Happened::InputClosed => self.input_closed = self.input_closed.or(Some(now)),
            Happened::ClientGone(_) => {
                self.is_unheard = true;
                self.must_close = self.input_closed.is_none();
                self.output_closed = self.output_closed.or(Some(now));
            }
            Happened::OutputClosed => {
                self.by_itself |= untouched;
                self.output_closed = self.output_closed.or(Some(now));
            }
            Happened::Exited => {
                self.by_itself = (self.by_itself || untouched) && !self.signalled;
                self.exited = Some(now);
            }
            Happened::Signal(signal) => self.received = Some(*signal),
            Happened::SinkFailed(_) => {}
            Happened::SinkRefused(_) => self.received = self.received.or(Some(SIGTERM)),
        }
    }

    /// What is to be done now. Each call's step is taken as done.
    pub(super) fn next(&mut self, now: Instant, pulse: &Pulse) -> Step {
        if let Some(signal) = self.received.take() {
            return self.pass_on(now, signal);
        }
        if self.must_close {
            self.must_close = false;
            self.input_closed = Some(now);
            return Step::CloseInput;
        }
        if reached(self.give_up_at, now) {
            return Step::End;
        }
        let step =
            if self.signalled { self.after_signal(now, pulse) } else { self.before_signal(now, pulse) };
        match (step, self.give_up_at) {
            (Step::Wait(until), Some(limit)) => {
                Step::Wait(Some(until.map_or(limit, |until| until.min(limit))))
            }
            (step, _) => step,
        }
    }

    /// A server that has ended leaves its children alone; all others hear of it at once.
    fn pass_on(&mut self, now: Instant, signal: i32) -> Step {
        if self.exited.is_some() && !self.signalled {
            return Step::End;
        }
        self.give_up_at = self.give_up_at.or(Some(now + self.grace.limit));
        self.signal(signal, now + self.grace.signal)
    }

    fn signal(&mut self, signal: i32, kill_at: Instant) -> Step {
        self.signalled = true;
        self.kill_at = Some(self.kill_at.map_or(kill_at, |planned| planned.min(kill_at)));
        Step::Signal(signal)
    }

    fn before_signal(&mut self, now: Instant, pulse: &Pulse) -> Step {
        if let Some(exited) = self.exited {
            return self.drain(now, exited, pulse);
        }
        if let (Some(closed), None) = (self.output_closed, self.input_closed) {
            let due = closed + self.grace.silence;
            self.must_close = due <= now;
            return if self.must_close { self.next(now, pulse) } else { Step::Wait(Some(due)) };
        }
        match self.input_due(now, pulse) {
            Some(due) if due <= now => self.signal(SIGTERM, now + self.grace.term),
            due => Step::Wait(due),
        }
    }

    /// The server has ended; what it wrote last may be on its way, and whoever else holds its output may speak.
    fn drain(&self, now: Instant, exited: Instant, pulse: &Pulse) -> Step {
        if self.output_closed.is_some() {
            return Step::End;
        }
        // What is on its way to the client arrives, however slowly the client reads.
        let Some(quiet_since) = pulse.quiet_since else { return Step::Wait(Some(now + self.grace.silence)) };
        let silent = quiet_since.max(exited) + self.grace.silence;
        let patience = self.input_due(now, pulse).map(|due| due.max(exited + self.grace.input));
        let due = patience.map_or(silent, |patience| patience.min(silent));
        if due <= now { Step::End } else { Step::Wait(Some(due)) }
    }

    /// When the patience that follows the end of input is over.
    fn input_due(&self, now: Instant, pulse: &Pulse) -> Option<Instant> {
        let closed = self.input_closed?;
        let last = match (pulse.is_owing, pulse.quiet_since) {
            (true, None) => Some(now),
            (true, since) => since,
            (false, _) => pulse.settled,
        };
        Some(last.map_or(closed, |last| last.max(closed)) + self.grace.input)
    }

    fn after_signal(&mut self, now: Instant, pulse: &Pulse) -> Step {
        if let Some(exited) = self.exited
            && (self.killed.is_some() || !pulse.has_others)
        {
            return self.drain(now, exited, pulse);
        }
        match self.killed {
            None if reached(self.kill_at, now) => {
                self.killed = Some(now);
                Step::Signal(SIGKILL)
            }
            // Members of the group leave it unheard.
            None => Step::Wait(self.exited.map(|_| now + LOOK).or(self.kill_at)),
            // Not even that ends a process that the system itself holds.
            Some(killed) if reached(Some(killed + self.grace.silence), now) => Step::End,
            Some(killed) => Step::Wait(Some(killed + self.grace.silence)),
        }
    }
}

fn reached(due: Option<Instant>, now: Instant) -> bool {
    due.is_some_and(|due| due <= now)
}

/// The signals that ask us to end, passed on to a session instead. When this is dropped, which a session does at its
/// end, they end the process again as they did before, unless a [`Stop`](super::stop::Stop) heeds them.
#[derive(Debug)]
pub struct Signals {
    incoming: signal_hook::iterator::Signals,
    is_over: Arc<AtomicBool>,
    /// What ends the process once it is over.
    defaults: Vec<SigId>,
}

/// Somebody heeds them for as long as the process runs.
pub(super) static IS_HEEDED: AtomicBool = AtomicBool::new(false);

/// Defaults of signals that nobody listens to any more.
static OVER: Mutex<Vec<SigId>> = Mutex::new(Vec::new());

impl Signals {
    /// From now on SIGTERM, SIGINT and SIGHUP do not end this process by themselves. What was ignored when we were
    /// started stays so (`nohup`), and a server inherits that; but where the end of children was ignored, it is no
    /// longer: nobody could tell how a server ended.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn install() -> io::Result<Self> {
        if is_ignored(SIGCHLD) {
            flag::register(SIGCHLD, Arc::default())?;
        }
        Self::listen(heeded_signals())
    }

    pub(super) fn listen(signals: impl IntoIterator<Item = i32> + Clone) -> io::Result<Self> {
        for id in mem::take(&mut *OVER.lock().unwrap_or_else(PoisonError::into_inner)) {
            low_level::unregister(id);
        }
        let is_over = Arc::<AtomicBool>::default();
        let default = |signal| flag::register_conditional_default(signal, Arc::clone(&is_over));
        // What is done for a signal is done in the order of registration. The default first: else the session could hear
        // of the signal, and be over, before this looks whether it is, and then the signal would end us after all.
        let defaults = signals.clone().into_iter().map(default).collect::<io::Result<_>>()?;
        Ok(Self { incoming: signal_hook::iterator::Signals::new(signals)?, is_over, defaults })
    }

    /// Tells `to` of each, until that says false or this is stopped.
    pub(super) fn forward(mut self, mut to: impl FnMut(i32) -> bool + Send + 'static) -> Forwarding {
        let handle = self.incoming.handle();
        let thread = thread::spawn(move || {
            for signal in self.incoming.forever() {
                if !to(signal) {
                    break;
                }
            }
        });
        Forwarding { handle, thread }
    }
}

/// Signals on their way to a session.
#[derive(Debug)]
pub(super) struct Forwarding {
    handle: signal_hook::iterator::Handle,
    thread: JoinHandle<()>,
}

impl Forwarding {
    /// From here on they do what they did before.
    pub(super) fn stop(self) {
        self.handle.close();
        // It panics nowhere; and if it did, nobody listens any more.
        let _ = self.thread.join();
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.is_over.store(!IS_HEEDED.load(Ordering::SeqCst), Ordering::SeqCst);
        OVER.lock().unwrap_or_else(PoisonError::into_inner).append(&mut self.defaults);
    }
}

/// From now on a limit on the size of files is an error of the write that meets it, and not the end of this process.
///
/// # Errors
/// When the system refuses.
pub fn outlive_size_limit() -> io::Result<()> {
    // A handler, since a child would inherit it as ignored; and where it was ignored before, it stays so for children.
    if !is_ignored(SIGXFSZ) {
        flag::register(SIGXFSZ, Arc::default())?;
    }
    Ok(())
}

/// The signals that ask us to end and that were not ignored when we were started.
pub(super) fn heeded_signals() -> Vec<i32> {
    [SIGTERM, SIGINT, SIGHUP].into_iter().filter(|signal| !is_ignored(*signal)).collect()
}

/// Whether a signal was ignored when we were started, where the system tells that (Linux).
fn is_ignored(signal: i32) -> bool {
    let status = fs_err::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// Ends this process as the server ended: by the same status, or by the same signal. A core dump would be ours, not
/// the server's, and is not written.
pub fn end_like(end: Exit) -> ! {
    let Some(signal) = end.signal else { exit(end.status.unwrap_or(1)) };
    let limit = rustix::process::getrlimit(Resource::Core);
    let none = Rlimit { current: Some(0), maximum: limit.maximum };
    // Where these fail a core file is the worst that can happen.
    let _ = rustix::process::setrlimit(Resource::Core, none);
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
    let _ = low_level::emulate_default_handler(signal);
    // Signals it does not know have no handler of ours.
    let _ = low_level::raise(signal);
    exit(128 + signal)
}

#[cfg(test)]
mod tests;
