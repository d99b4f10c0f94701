//! The replaying front on stdio: one thread that waits for the client, for the next due time, or for a signal.
//!
//! Neither descriptor is made non-blocking, and no write waits, so a client that sends while it does not read cannot
//! lock us up: we go on reading, and what it has not read waits in memory. What a client has sent ahead is read without
//! asking whether it is there: a poll costs as much as the read.

use std::{
    collections::HashMap,
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    time::Instant,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::{Errno, read},
};

use super::{
    outbox::Outbox,
    pace::Pace,
    upstream::{Heard, Link, Mailbox, Upstreams},
};
use crate::{
    cassette::model::End,
    replay::{Input, Output, Replayer},
    report::{Report, events::Event},
    traffic::{Lane, Micros},
    transport::stdio::nowait,
    wire::lines::{Line, LineSplitter},
};

/// How much is read at once.
const READ: usize = 64 * 1024;

/// So often input is read without a look at all else that is waited for: a signal, say.
const MOST_UNPOLLED: u32 = 16;

/// How a replay ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The client closed its side, or left.
    ByClient,
    /// The recorded server ended here by itself.
    AsRecorded(End),
    /// We were told to stop.
    Stopped,
}

/// How a client is served.
#[derive(Clone, Copy, Debug)]
pub struct ServeOptions<'a> {
    /// Readable when a signal has come.
    pub stop: Option<BorrowedFd<'a>>,
    /// Longer lines are not looked at.
    pub max_message: usize,
    /// Where requests go that are no misses for it; none where they stay misses.
    pub upstreams: Option<&'a Upstreams>,
}

/// Serves one client on a pair of pipes until it leaves, the recorded server ends, or a signal comes.
///
/// `tell` gets the report as it stands when a new miss has come, so that one on disk can be kept up to date, but is given
/// at most a tenth of the time, and what came meanwhile together; and that of the end where a fault lets us stay although
/// we should end, since who waits for that may lose patience. `happened` gets the events of what has become of messages
/// (the last ones the replayer still has). Where a fault closes the output, the client is heard until it leaves.
///
/// # Errors
/// When reading from the client or waiting fails. A client that no longer reads has left, which is no error.
pub fn serve(
    replayer: &mut Replayer,
    input: BorrowedFd<'_>,
    output: OwnedFd,
    options: ServeOptions<'_>,
    tell: &mut dyn FnMut(&Report),
    happened: &mut dyn FnMut(Vec<Event>),
) -> io::Result<Ended> {
    let ServeOptions { stop, max_message, upstreams } = options;
    let mut front = Front {
        start: Instant::now(),
        lines: LineSplitter::new(max_message),
        outbox: Outbox::default(),
        buffer: vec![0; READ],
        input_open: true,
        unpolled: 0,
        should_end: None,
        is_gone: false,
        real: upstreams.map(Real::new).transpose()?,
        pace: Pace::default(),
    };
    let mut output = Some(output);
    let mut misses = 0;
    replayer.handle(front.now(), Input::Opened { lane: Lane(0) });
    loop {
        front.collect(replayer);
        if replayer.misses() > misses {
            misses = replayer.misses();
            front.pace.note();
        }
        let start = front.start;
        front.pace.tell(|| since(start), || tell(&replayer.report()));
        let events = replayer.take_events(false);
        if !events.is_empty() {
            happened(events);
        }
        if front.outbox.is_empty() {
            if let Some(end) = front.outbox.end.take() {
                return Ok(Ended::AsRecorded(end));
            }
            if replayer.is_done(Lane(0)) || (!front.input_open && output.is_none()) {
                front.should_end(Ended::ByClient, replayer, tell);
            }
            output.take_if(|_| front.outbox.closes);
        }
        if let Some((since, ended)) = &front.should_end
            && front.now() >= since.saturating_add(replayer.lingers())
        {
            return Ok(ended.clone());
        }
        let writable = output.as_ref().map(|output| output.as_fd()).filter(|_| !front.is_gone);
        if let Some(ended) = front.turn(replayer, input, writable, stop)? {
            front.is_gone |= ended == Ended::ByClient;
            front.should_end(ended, replayer, tell);
        }
    }
}

struct Front<'r> {
    start: Instant,
    lines: LineSplitter,
    /// What the client has not taken yet.
    outbox: Outbox,
    buffer: Vec<u8>,
    input_open: bool,
    /// How often input was read since the last poll.
    unpolled: u32,
    /// Since when we should have ended, and why. Of what we are told from then on only the first counts.
    should_end: Option<(Micros, Ended)>,
    /// Nobody reads what we write.
    is_gone: bool,
    real: Option<Real<'r>>,
    /// When the report is told again.
    pace: Pace,
}

/// The real servers behind the cassette.
struct Real<'r> {
    upstreams: &'r Upstreams,
    links: HashMap<u32, Link>,
    mailbox: Mailbox,
}

impl<'r> Real<'r> {
    fn new(upstreams: &'r Upstreams) -> io::Result<Self> {
        Ok(Self { upstreams, links: HashMap::new(), mailbox: Mailbox::new()? })
    }

    /// Says a line to one of them.
    ///
    /// # Errors
    /// When the system gives no way to it.
    fn say(&mut self, replayer: &Replayer, upstream: u32, line: Vec<u8>) -> io::Result<()> {
        if !self.links.contains_key(&upstream) {
            let continues = replayer.continues(upstream);
            self.links.insert(upstream, self.upstreams.open(continues, self.mailbox.slot(upstream))?);
        }
        self.links[&upstream].say(line);
        Ok(())
    }

    /// Takes in what they have done.
    fn hear(&mut self, replayer: &mut Replayer, now: Micros) {
        for (upstream, heard) in self.mailbox.take() {
            replayer.handle(
                now,
                match &heard {
                    Heard::Line(line) => Input::Upstream { upstream, line },
                    Heard::Ended(why) => Input::UpstreamEnded { upstream, why },
                },
            );
        }
    }
}

impl Front<'_> {
    fn now(&self) -> Micros {
        since(self.start)
    }

    /// We are to end, at once unless a fault lets us stay.
    fn should_end(&mut self, ended: Ended, replayer: &Replayer, tell: &mut dyn FnMut(&Report)) {
        if self.should_end.is_none() {
            self.should_end = Some((self.now(), ended));
            if replayer.lingers() > 0 {
                tell(&replayer.finish());
            }
        }
    }

    /// Takes all that the replayer wants sent now.
    fn collect(&mut self, replayer: &mut Replayer) {
        let now = self.now();
        while self.outbox.end.is_none()
            && let Some(output) = replayer.poll(now)
        {
            match output {
                Output::Upstream { upstream, line, .. } => {
                    let Some(real) = &mut self.real else { continue };
                    if let Err(error) = real.say(replayer, upstream, line) {
                        let why = format!("the real server cannot be reached: {error}");
                        replayer.handle(now, Input::UpstreamEnded { upstream, why: &why });
                    }
                }
                Output::EndUpstream { upstream, .. } => {
                    self.real.iter_mut().for_each(|real| drop(real.links.remove(&upstream)));
                }
                output => self.outbox.say(output),
            }
        }
    }

    /// Waits for whatever comes first and does it.
    fn turn(
        &mut self,
        replayer: &mut Replayer,
        input: BorrowedFd<'_>,
        output: Option<BorrowedFd<'_>>,
        stop: Option<BorrowedFd<'_>>,
    ) -> io::Result<Option<Ended>> {
        if let Some(output) = output
            && let Some(is_read) = self.outbox.write_at_once(output)?
        {
            return Ok((!is_read).then_some(Ended::ByClient));
        }
        if self.may_read_at_once() {
            match nowait::read(input, &mut self.buffer) {
                Err(Errno::AGAIN | Errno::OPNOTSUPP) => {}
                read => {
                    self.unpolled += 1;
                    return self.take_in(replayer, read).map(|()| None);
                }
            }
        }
        self.unpolled = 0;
        let ready = self.poll(replayer, input, output, stop)?;
        if ready.stop {
            return Ok(Some(Ended::Stopped));
        }
        if let Some(output) = output.filter(|_| ready.output)
            && !self.outbox.write(output)?
        {
            return Ok(Some(Ended::ByClient));
        }
        if ready.heard {
            let now = self.now();
            self.real.iter_mut().for_each(|real| real.hear(replayer, now));
        }
        if ready.input {
            let read = read(input, &mut self.buffer);
            self.take_in(replayer, read)?;
        }
        Ok(None)
    }

    /// Whether it is worth a try to read without asking first what has come: not where it is about more than input.
    fn may_read_at_once(&self) -> bool {
        let is_all = self.should_end.is_none() && self.outbox.end.is_none() && self.real.is_none();
        self.input_open && is_all && self.unpolled < MOST_UNPOLLED
    }

    fn poll(
        &self,
        replayer: &Replayer,
        input: BorrowedFd<'_>,
        output: Option<BorrowedFd<'_>>,
        stop: Option<BorrowedFd<'_>>,
    ) -> io::Result<Ready> {
        // Output is watched without any event too: that it has no reader any more is always told.
        let wants_output = if self.outbox.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
        let mut fds: Vec<PollFd<'_>> =
            output.map(|output| PollFd::from_borrowed_fd(output, wants_output)).into_iter().collect();
        let output_at = (!fds.is_empty()).then_some(0);
        let stop_at = stop.filter(|_| self.should_end.is_none()).map(|stop| {
            fds.push(PollFd::from_borrowed_fd(stop, PollFlags::IN));
            fds.len() - 1
        });
        let input_at = (self.input_open && self.outbox.end.is_none()).then(|| {
            fds.push(PollFd::from_borrowed_fd(input, PollFlags::IN));
            fds.len() - 1
        });
        let heard_at = self.real.as_ref().map(|real| {
            fds.push(PollFd::from_borrowed_fd(real.mailbox.as_fd(), PollFlags::IN));
            fds.len() - 1
        });
        let ends = self.should_end.as_ref().map(|(since, _)| since.saturating_add(replayer.lingers()));
        let due = replayer.deadline().into_iter().chain(ends).chain(self.pace.due());
        let timeout = due.min().map(|deadline| {
            let wait = deadline.saturating_sub(self.now());
            Timespec { tv_sec: (wait / 1_000_000) as i64, tv_nsec: (wait % 1_000_000 * 1_000) as i64 }
        });
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(Ready::default()),
            Err(error) => return Err(error.into()),
        }
        let come = |at: Option<usize>| at.is_some_and(|at| !fds[at].revents().is_empty());
        Ok(Ready {
            output: come(output_at),
            stop: come(stop_at),
            input: come(input_at),
            heard: come(heard_at),
        })
    }

    /// Takes in what one read brought.
    fn take_in(&mut self, replayer: &mut Replayer, read: Result<usize, Errno>) -> io::Result<()> {
        let count = match read {
            Ok(count) => count,
            Err(Errno::INTR | Errno::AGAIN) => return Ok(()),
            // A socket whose peer has gone.
            Err(Errno::CONNRESET) => 0,
            Err(error) => return Err(error.into()),
        };
        let now = self.now();
        let come = if count == 0 { self.lines.end() } else { &self.buffer[..count] };
        self.lines.feed(come, |line| match line {
            Line::Whole(bytes) => replayer.handle(now, Input::Message { lane: Lane(0), bytes }),
            Line::Oversize(line) => replayer.handle(now, Input::Message { lane: Lane(0), bytes: &line.head }),
        });
        if count == 0 {
            self.input_open = false;
            replayer.handle(now, Input::Closed { lane: Lane(0) });
        }
        Ok(())
    }
}

fn since(start: Instant) -> Micros {
    start.elapsed().as_micros() as Micros
}

#[derive(Default)]
struct Ready {
    input: bool,
    output: bool,
    stop: bool,
    heard: bool,
}
