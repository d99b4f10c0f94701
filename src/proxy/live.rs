//! Faults between a client on stdio and a session with a real server: one thread that waits for whatever comes first.
//!
//! The session gets pipes of ours in the place of the client's, so what it records is what the peers really said. No
//! write waits; who sends faster than the other side reads is not read from until that has caught up.

mod lines;

use std::{
    fs::File,
    io::{self, Write as _},
    mem,
    os::fd::{AsFd, OwnedFd},
    sync::mpsc::{self, Receiver, Sender},
    thread::{self, JoinHandle},
    time::Instant,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::{Errno, read},
    pipe::{PipeFlags, pipe_with},
};
use signal_hook::consts::SIGTERM;

use self::lines::{Lines, Piece};
use super::{
    outbox::Outbox,
    shutdown::{Forwarding, Signals},
};
use crate::{
    cassette::model::End,
    fault::{
        live::{Came, Do, Live, Passing},
        step::Output,
    },
    report::{Report, events::Event},
    traffic::{Lane, Micros},
    transport::stdio::Client,
    wire::jsonrpc::{Kind, Message},
};

/// How much is read at once.
const READ: usize = 64 << 10;

/// While so many bytes wait for one side, the other one is not read from.
const FULL: usize = 1 << 20;

/// Both of a client's pipes.
const PIPE: Lane = Lane(0);

/// How faults act between a client and a session.
pub struct FaultOptions {
    /// Longer messages pass, and no fault acts on them.
    pub max_message: usize,
    /// Signals that ask us to end: passed on to the session, unless a fault lets the server stay.
    pub signals: Option<Signals>,
    /// Told of events as they come.
    pub happened: Box<dyn FnMut(Vec<Event>) + Send>,
    /// Told the report of the end where a fault lets the server stay although it should end: who waits for that may
    /// lose patience.
    pub tell: Box<dyn FnMut(&Report) + Send>,
}

/// Faults at work between a client and a session.
#[derive(Debug)]
pub struct Faults {
    thread: JoinHandle<Ended>,
    over: File,
    signals: Option<Forwarding>,
}

/// What faults leave behind.
#[derive(Debug)]
pub struct Ended {
    /// What they know: the last events and the report are still to be taken.
    pub live: Live,
    /// How a fault has ended the server, as the client is to see it.
    pub end: Option<End>,
    /// Why the client did not take all that it was told, where that is so.
    pub gone: Option<io::Error>,
}

impl Faults {
    /// Lets faults act on what a client and a session say. What comes with it is the session's client, and the signals
    /// that are to be passed on to its server.
    ///
    /// # Errors
    /// When the system gives no pipe.
    pub fn between(
        live: Live,
        client: Client,
        options: FaultOptions,
    ) -> io::Result<(Self, Client, Receiver<i32>)> {
        let FaultOptions { max_message, signals, mut happened, tell } = options;
        let pipe = || pipe_with(PipeFlags::CLOEXEC);
        let (input, to_server) = pipe()?;
        let (from_server, output) = pipe()?;
        let (over, tell_over) = pipe()?;
        let (asked, ask) = pipe()?;
        let (ends, ended) = mpsc::channel();
        let mut ask = File::from(ask);
        let signals = signals.map(|signals| {
            signals.forward(move |signal| {
                u8::try_from(signal).is_ok_and(|signal| ask.write_all(&[signal]).is_ok())
            })
        });
        let mut relay = Relay {
            start: Instant::now(),
            live,
            client: Side::new(client.input, client.output, max_message),
            server: Side::new(from_server, to_server, max_message),
            over: Some(over),
            asked: Some(asked),
            is_over: false,
            is_abandoned: false,
            leaving: None,
            has_left: false,
            end: None,
            gone: None,
            ends,
            tell,
            buffer: vec![0; READ],
        };
        let thread = thread::spawn(move || {
            while relay.turn(&mut *happened) {}
            Ended { live: relay.live, end: relay.end, gone: relay.gone }
        });
        Ok((Self { thread, over: tell_over.into(), signals }, Client { input, output }, ended))
    }

    /// The session is over: waits until the client has got what it is owed, unless the session `was_asked` to end.
    ///
    /// # Panics
    /// Where the thread did.
    pub fn finish(mut self, was_asked: bool) -> Ended {
        if was_asked {
            // A thread that does not listen has ended.
            let _ = self.over.write_all(b"!");
        }
        drop(self.over);
        let ended = self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        if let Some(signals) = self.signals {
            signals.stop();
        }
        ended
    }
}

/// One side: what it says, and what it is told.
struct Side {
    input: Option<OwnedFd>,
    lines: Lines,
    output: Option<OwnedFd>,
    outbox: Outbox,
}

impl Side {
    fn new(input: OwnedFd, output: OwnedFd, max_message: usize) -> Self {
        let (lines, outbox) = (Lines::new(max_message), Outbox::default());
        Self { input: Some(input), lines, output: Some(output), outbox }
    }

    /// It takes nothing more.
    fn is_gone(&mut self) {
        self.output = None;
        self.outbox.clear();
    }
}

struct Relay {
    start: Instant,
    live: Live,
    client: Side,
    server: Side,
    /// Ends when the session does; a byte before that: nobody waits.
    over: Option<OwnedFd>,
    /// Each byte is a signal.
    asked: Option<OwnedFd>,
    is_over: bool,
    is_abandoned: bool,
    /// Since when the server should end, as far as it is told; and that it was told so by a signal.
    leaving: Option<Leaving>,
    has_left: bool,
    end: Option<End>,
    gone: Option<io::Error>,
    ends: Sender<i32>,
    tell: Box<dyn FnMut(&Report) + Send>,
    buffer: Vec<u8>,
}

/// The server is told to end. Of what it is told as long as a fault lets it stay only the first counts.
#[derive(Clone, Copy, Debug)]
struct Leaving {
    since: Micros,
    /// The signal that is to be passed on; none: the client has closed its side, or it was passed on at once.
    signal: Option<i32>,
}

impl Relay {
    fn now(&self) -> Micros {
        u64::try_from(self.start.elapsed().as_micros()).unwrap_or(Micros::MAX)
    }

    /// Does what is to be done and waits for more; false at the end.
    fn turn(&mut self, happened: &mut dyn FnMut(Vec<Event>)) -> bool {
        self.collect();
        let events = self.live.take_events(false);
        if !events.is_empty() {
            happened(events);
        }
        // Taken once: what is not due here is waited for below.
        let now = self.now();
        self.close(now);
        if self.is_over && (self.is_abandoned || self.client.output.is_none() || !self.owes()) {
            return false;
        }
        // The system does not let us wait: there is nothing to be done any more.
        self.wait(now).is_ok()
    }

    fn collect(&mut self) {
        let now = self.now();
        while self.end.is_none()
            && self.client.outbox.end.is_none()
            && let Some(next) = self.live.poll(now)
        {
            match next {
                Do::Pass { bytes, .. } => self.pass_on(bytes),
                Do::Say(output) if self.client.output.is_some() || self.client.outbox.closes => {
                    self.client.outbox.say(output)
                }
                Do::Say(_) => {}
            }
        }
    }

    fn pass_on(&mut self, line: Vec<u8>) {
        if self.server.output.is_some() {
            self.server.outbox.line(line, false);
        }
    }

    /// Whether the client is still to get something.
    fn owes(&self) -> bool {
        self.server.input.is_some() || !self.client.outbox.is_empty() || self.live.owes(PIPE)
    }

    /// Closes what has come to its end.
    fn close(&mut self, now: Micros) {
        if self.client.outbox.is_empty() {
            if let Some(end) = self.client.outbox.end.take() {
                // To the client the server is dead; to the server its client is, and it is to end too.
                self.end = Some(end);
                (self.client.input, self.client.output) = (None, None);
                self.server.is_gone();
                let _ = self.ends.send(SIGTERM);
            }
            let has_ended = self.server.input.is_none() && !self.live.owes(PIPE);
            if self.client.outbox.closes || has_ended {
                self.client.output = None;
            }
        }
        if !self.leaves(now) {
            return;
        }
        if let Some(signal) = self.leaving.and_then(|leaving| leaving.signal) {
            // What the client did since then, the server was to hear nothing of.
            if !mem::replace(&mut self.has_left, true) {
                let _ = self.ends.send(signal);
            }
            return;
        }
        if self.client.input.is_none() && self.server.outbox.is_empty() && !self.live.holds() {
            self.server.output = None;
        }
    }

    /// The server is told to end: by its client, or by a signal.
    fn is_told_to_end(&mut self, signal: Option<i32>) {
        if self.live.lingers() == 0 || self.leaves(self.now()) {
            if let Some(signal) = signal {
                // Nobody else would hear of it.
                self.is_abandoned |= self.is_over;
                let _ = self.ends.send(signal);
            }
        } else if self.leaving.is_none() {
            (self.tell)(&self.live.finish());
            self.leaving = Some(Leaving { since: self.now(), signal });
            return;
        }
        self.leaving = self.leaving.or(Some(Leaving { since: self.now(), signal: None }));
    }

    /// When no fault lets the server stay any longer.
    fn leaves_at(&self) -> Option<Micros> {
        self.leaving.map(|leaving| leaving.since.saturating_add(self.live.lingers()))
    }

    fn leaves(&self, now: Micros) -> bool {
        self.leaves_at().is_some_and(|at| at <= now)
    }

    fn wait(&mut self, now: Micros) -> io::Result<()> {
        let ready = self.poll(now)?;
        if ready.over {
            self.hear_of_the_end();
        }
        if ready.asked {
            self.hear_signals();
        }
        if ready.client_takes
            && let Err(error) = written(&mut self.client)
        {
            // The session learns of it as it would without us.
            self.gone = Some(error).filter(|_| !self.client.outbox.is_empty());
            self.client.is_gone();
            self.server.input = None;
        }
        if ready.server_takes && written(&mut self.server).is_err() {
            self.server.is_gone();
            self.client.input = None;
        }
        if ready.client_says {
            self.hear_client();
        }
        if ready.server_says {
            self.hear_server();
        }
        Ok(())
    }

    fn poll(&self, now: Micros) -> io::Result<Ready> {
        // Output is watched without any event too: that it has no reader any more is always told.
        let out = |side: &Side| if side.outbox.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
        let watched = [
            (self.client.output.as_ref(), out(&self.client)),
            (self.server.output.as_ref(), out(&self.server)),
            (self.client.input.as_ref().filter(|_| self.server.outbox.size() < FULL), PollFlags::IN),
            (self.server.input.as_ref().filter(|_| self.client.outbox.size() < FULL), PollFlags::IN),
            (self.over.as_ref(), PollFlags::IN),
            (self.asked.as_ref(), PollFlags::IN),
        ];
        let mut fds = Vec::with_capacity(watched.len());
        let places = watched.map(|(fd, flags)| {
            fds.extend(fd.map(|fd| PollFd::new(fd, flags)));
            fd.map(|_| fds.len() - 1)
        });
        // Behind the end of the server nothing is due any more, and what is told to end is told once.
        let is_ending = self.end.is_some() || self.client.outbox.end.is_some();
        let due = self.live.deadline().filter(|_| !is_ending);
        let leaves_at = self.leaves_at().filter(|at| *at > now);
        let timeout =
            due.into_iter().chain(leaves_at).min().map(|due| timespec(due.saturating_sub(self.now())));
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(Ready::default()),
            Err(error) => return Err(error.into()),
        }
        let [client_takes, server_takes, client_says, server_says, over, asked] =
            places.map(|place| place.is_some_and(|at| !fds[at].revents().is_empty()));
        Ok(Ready { client_takes, server_takes, client_says, server_says, over, asked })
    }

    fn hear_of_the_end(&mut self) {
        let mut told = [0];
        match self.over.as_ref().map(|over| read(over, &mut told)) {
            Some(Err(Errno::INTR | Errno::AGAIN)) => {}
            Some(Ok(1..)) => self.is_abandoned = true,
            _ => (self.over, self.is_over) = (None, true),
        }
    }

    fn hear_signals(&mut self) {
        let mut signals = [0; 16];
        match read_some(self.asked.as_ref(), &mut signals) {
            None => {}
            Some(0) => self.asked = None,
            Some(count) => {
                signals[..count].iter().for_each(|signal| self.is_told_to_end(Some((*signal).into())));
            }
        }
    }

    fn hear_client(&mut self) {
        let mut buffer = mem::take(&mut self.buffer);
        let now = self.now();
        match read_some(self.client.input.as_ref(), &mut buffer) {
            None => {}
            Some(0) => {
                self.client.input = None;
                self.is_told_to_end(None);
                self.hear_last_line(now);
            }
            Some(count) => {
                let Self { live, client, server, .. } = self;
                let is_heard = server.output.is_some();
                client.lines.feed(&buffer[..count], |piece| match piece {
                    _ if !is_heard => {}
                    Piece::Part { bytes, .. } => server.outbox.push(bytes.to_vec()),
                    Piece::Line(bytes) => {
                        if live.client(now, &Came { lane: PIPE, bytes, http: None }) == Passing::Now {
                            server.outbox.line(bytes.to_vec(), false);
                        }
                    }
                });
            }
        }
        self.buffer = buffer;
    }

    /// What stands behind the client's last line end: a server reads a message there all the same.
    fn hear_last_line(&mut self, now: Micros) {
        let rest = self.client.lines.finish();
        if self.server.output.is_none() {
            return;
        }
        let is_message = Message::read(&rest).kind != Kind::Noise;
        let came = Came { lane: PIPE, bytes: &rest, http: None };
        if !is_message || self.live.client(now, &came) == Passing::Now {
            self.server.outbox.push(rest);
        }
    }

    fn hear_server(&mut self) {
        let mut buffer = mem::take(&mut self.buffer);
        let now = self.now();
        let raw = |bytes: &[u8], goes_on| Output::Raw { lane: PIPE, bytes: bytes.to_vec(), goes_on };
        match read_some(self.server.input.as_ref(), &mut buffer) {
            None => {}
            Some(0) => {
                self.server.input = None;
                let rest = self.server.lines.finish();
                self.live.server_ended(now, rest);
            }
            Some(count) => {
                let Self { live, server, .. } = self;
                server.lines.feed(&buffer[..count], |piece| match piece {
                    Piece::Part { bytes, goes_on } => live.server(now, raw(bytes, goes_on)),
                    Piece::Line(bytes) => {
                        live.server(now, Output::Send { lane: PIPE, bytes: bytes.to_vec(), apart: false });
                    }
                });
            }
        }
        self.buffer = buffer;
    }
}

const fn timespec(wait: Micros) -> Timespec {
    Timespec { tv_sec: (wait / 1_000_000) as i64, tv_nsec: (wait % 1_000_000 * 1_000) as i64 }
}

#[derive(Default)]
struct Ready {
    client_takes: bool,
    server_takes: bool,
    client_says: bool,
    server_says: bool,
    over: bool,
    asked: bool,
}

/// What one read brings: 0 at the end, and where it is broken; none where it has to be tried again.
fn read_some(input: Option<&OwnedFd>, buffer: &mut [u8]) -> Option<usize> {
    match read(input?, buffer) {
        Err(Errno::INTR | Errno::AGAIN) => None,
        Ok(count) => Some(count),
        Err(_) => Some(0),
    }
}

/// Writes what there is room for; an error where nobody takes it.
fn written(side: &mut Side) -> io::Result<()> {
    let Side { output: Some(output), outbox, .. } = side else { return Ok(()) };
    match outbox.write(output.as_fd())? {
        true => Ok(()),
        false => Err(io::ErrorKind::BrokenPipe.into()),
    }
}
