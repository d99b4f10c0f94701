//! The two ways of a session: what one peer sends is read, tapped, and passed on to the other.
//!
//! One thread serves both ways as long as no write would wait. While it is at one, the peers go on, so that it finds
//! more in each read than a thread for each way would, and waits and is woken less often (measured: a tenth to a third
//! more messages a second). With the first write that would wait, each way has a thread of its own for the rest of the
//! session, which blocks where the system makes it wait: no peer holds up the other way.

use std::{
    io,
    ops::Range,
    os::fd::{AsFd, OwnedFd},
    sync::{
        Arc,
        atomic::Ordering,
        mpsc::{self, Sender},
    },
    thread,
};

use memchr::memchr;
use rustix::io::Errno;

use super::{BUSY, Happened, Session, passes, tell};
use crate::{
    proxy::{linger::Looks, recorder::Sink},
    traffic::Direction,
    transport::stdio::{self, Outlet, nowait},
};

/// The most that is read at once while messages are short. What is read together is written together, and goes on only
/// then: in full flow the next one in line has to wait for it, with nothing to do.
const READ: usize = 8 << 10;

/// The most that is read at once in the middle of a longer message: what a pipe holds, and more.
const LONG_READ: usize = 128 << 10;

/// Passes on what comes both ways, until both are over.
pub(super) fn pass<S: Sink + 'static>(to_server: Way<S>, to_client: Way<S>) {
    // Started now: later there may be no room for it.
    let (hand_over, handed_over) = mpsc::channel::<Way<S>>();
    thread::spawn(move || handed_over.iter().for_each(Way::pass));
    thread::spawn(move || pass_both(to_server, to_client, &hand_over));
}

/// Passes on what comes both ways as long as nothing waits, and then hands one of them over.
fn pass_both<S: Sink>(mut to_server: Way<S>, mut to_client: Way<S>, hand_over: &Sender<Way<S>>) {
    let mut looks = Looks::default();
    loop {
        match (to_server.turn(), to_client.turn()) {
            (Turn::Nothing, Turn::Nothing) if looks.again() => {}
            (Turn::Nothing, Turn::Nothing) => stdio::wait_for_input(&[&to_server.from, &to_client.from]),
            (Turn::Nothing | Turn::Passed, Turn::Nothing | Turn::Passed) => looks.renew(),
            (turn_to_server, turn_to_client) => {
                match turn_to_client {
                    Turn::Over => drop(to_client),
                    // It ends with us alone.
                    _ => drop(hand_over.send(to_client)),
                }
                if turn_to_server != Turn::Over {
                    to_server.pass();
                }
                return;
            }
        }
    }
}

/// One way of a session.
pub(super) struct Way<S> {
    session: Arc<Session<S>>,
    direction: Direction,
    from: Arc<OwnedFd>,
    reads: Reads,
    happened: Sender<Happened>,
}

/// What came of a try that waits for nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// There is nothing to read now.
    Nothing,
    /// What was there went on.
    Passed,
    /// To go on is to wait, or to find out whether it is.
    Waits,
    /// Nothing passes here any more.
    Over,
}

impl<S: Sink> Way<S> {
    pub(super) fn new(
        session: &Arc<Session<S>>,
        direction: Direction,
        from: Arc<OwnedFd>,
        happened: &Sender<Happened>,
    ) -> Self {
        Self {
            session: Arc::clone(session),
            direction,
            from,
            reads: Reads::new(),
            happened: happened.clone(),
        }
    }

    /// Passes on what can be read and written without a wait.
    fn turn(&mut self) -> Turn {
        match nowait::read(self.from.as_fd(), self.reads.room()) {
            Err(Errno::AGAIN | Errno::INTR) => return Turn::Nothing,
            // Whatever it is, a read that waits finds it, too.
            Err(_) => return Turn::Waits,
            Ok(length) if !self.take_in(length) => return Turn::Over,
            Ok(_) => {}
        }
        match self.outlet().write_at_once(self.reads.rest()) {
            Ok(written) => self.reads.went_on(written),
            Err(error) => {
                self.wrote(Err(error));
                return Turn::Over;
            }
        }
        match self.reads.rest() {
            [] if self.wrote(Ok(())) => Turn::Passed,
            [] => Turn::Over,
            _ => Turn::Waits,
        }
    }

    /// Passes on what comes, however long it takes, until it is over.
    fn pass(mut self) {
        loop {
            if !self.reads.rest().is_empty() && !self.wrote(self.outlet().write(self.reads.rest())) {
                return;
            }
            // A stream that is broken is one that ends.
            let length = stdio::read(&self.from, self.reads.room()).unwrap_or(0);
            if !self.take_in(length) {
                return;
            }
        }
    }

    /// Has what was read written by the tap; whether it goes on. Nothing read is the end of the stream.
    fn take_in(&mut self, length: usize) -> bool {
        if length == 0 {
            self.close();
            return false;
        }
        if self.direction == Direction::ToClient {
            self.session.quiet_since.store(BUSY, Ordering::Relaxed);
        }
        let chunk = self.reads.came(length);
        passes(self.session.tap.chunk(self.direction, chunk), &self.happened)
    }

    /// Takes in how it went on; whether more may follow.
    fn wrote(&self, written: io::Result<()>) -> bool {
        match (self.direction, written) {
            (Direction::ToServer, Ok(())) => true,
            // A server that reads no more leaves the client with a closed pipe, as it would without us.
            (Direction::ToServer, Err(_)) => false,
            (Direction::ToClient, Ok(())) => {
                self.session.quiet_since.store(self.session.tap.now(), Ordering::Relaxed);
                true
            }
            (Direction::ToClient, Err(error)) => {
                self.outlet().close();
                tell(&self.happened, Happened::ClientGone(error));
                false
            }
        }
    }

    /// Passes on the end of the stream.
    fn close(&self) {
        passes(self.session.tap.close(self.direction, true), &self.happened);
        // Told before it is done: whatever the peer makes of it comes later, if it were to close its side at once.
        tell(
            &self.happened,
            match self.direction {
                Direction::ToServer => Happened::InputClosed,
                Direction::ToClient => Happened::OutputClosed,
            },
        );
        self.outlet().close();
    }

    fn outlet(&self) -> &Outlet {
        match self.direction {
            Direction::ToServer => &self.session.to_server,
            Direction::ToClient => &self.session.to_client,
        }
    }
}

/// Reads one after another.
struct Reads {
    bytes: Vec<u8>,
    /// How much the next one takes.
    size: usize,
    /// Of the last one, what has not gone on.
    rest: Range<usize>,
}

impl Reads {
    fn new() -> Self {
        Self { bytes: vec![0; LONG_READ], size: READ, rest: 0..0 }
    }

    /// Where the next one goes.
    fn room(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.size]
    }

    /// The bytes that have come.
    fn came(&mut self, length: usize) -> &[u8] {
        self.rest = 0..length;
        let chunk = &self.bytes[..length];
        self.size = if memchr(b'\n', chunk).is_some() { READ } else { LONG_READ };
        chunk
    }

    fn rest(&self) -> &[u8] {
        &self.bytes[self.rest.clone()]
    }

    const fn went_on(&mut self, length: usize) {
        self.rest.start += length;
    }
}
