//! The client's side: lines in, lines out, each written down before it goes on.

use std::{io, os::fd::OwnedFd, sync::Arc, thread};

use tokio::sync::{
    mpsc::{Receiver, Sender, UnboundedSender},
    oneshot,
};

use super::{
    super::{record::Sink, recorder::Tapped},
    tape::{Said, Tape},
};
use crate::{
    traffic::{Direction, Lane},
    transport::stdio::{self, Outlet},
    wire::{
        jsonrpc::{Kind, Message},
        lines::{Line, LineSplitter},
    },
};

/// The room of one read.
const READ: usize = 128 << 10;

/// Something that whoever runs the session has to know.
#[derive(Debug)]
pub(super) enum Told {
    /// The sink failed for the first time, and the session goes on.
    Failed(io::Error),
    /// The sink failed, and the session must not go on.
    Refused(io::Error),
    /// The client takes no more output: what the system said.
    Gone(io::Error),
    /// Something is wrong that no request is told of.
    Wrong(String),
    /// The server could not be reached: why.
    Unreached(String),
}

/// Reads the client's lines and gives them on, until it closes its side. What it gives ends then.
pub(super) fn read<S: Sink + 'static>(
    tape: Arc<Tape<S>>,
    input: OwnedFd,
    lines: Sender<Said>,
    told: UnboundedSender<Told>,
) -> oneshot::Receiver<()> {
    let (open, is_closed) = oneshot::channel::<()>();
    thread::spawn(move || {
        let _open = open;
        // Whatever its length, a line has to be sent whole.
        let mut splitter = LineSplitter::new(usize::MAX);
        let mut room = vec![0; READ];
        let mut lane = Lane(0);
        let mut numbered = |line: Vec<u8>| {
            lane.0 += 1;
            (lane, line)
        };
        while let Ok(length @ 1..) = stdio::read(&input, &mut room) {
            let mut ended: Vec<Said> = Vec::new();
            splitter.feed(&room[..length], |line| {
                if let Line::Whole(line) = line {
                    ended.push(numbered(line.to_vec()));
                }
            });
            let written = ended.iter().map(|(lane, line)| (*lane, &line[..]));
            if !ended.is_empty() && !passes(tape.lines(Direction::ToServer, written), &told) {
                return;
            }
            for line in ended {
                if lines.blocking_send(line).is_err() {
                    return;
                }
            }
        }
        let rest = splitter.finish().map(numbered);
        passes(tape.closed(Direction::ToServer, rest.as_ref()), &told);
        // A message whose line end is missing is one all the same.
        if let Some(rest) = rest
            && Message::read(&rest.1).kind != Kind::Noise
        {
            let _ = lines.blocking_send(rest);
        }
    });
    is_closed
}

/// Writes lines to the client until there are no more, then closes its output. What it gives is told when that is done.
pub(super) fn write<S: Sink + 'static>(
    tape: Arc<Tape<S>>,
    output: OwnedFd,
    mut lines: Receiver<Said>,
    told: UnboundedSender<Told>,
) -> oneshot::Receiver<()> {
    let (done, is_done) = oneshot::channel();
    thread::spawn(move || {
        let output = Outlet::new(output);
        // One write a line: some clients lose a notification that comes with the answer behind it (F10.12).
        while let Some((lane, mut line)) = lines.blocking_recv() {
            if !passes(tape.lines(Direction::ToClient, [(lane, &line[..])].into_iter()), &told) {
                return;
            }
            line.push(b'\n');
            if let Err(error) = output.write(&line) {
                let _ = told.send(Told::Gone(error));
                return;
            }
        }
        passes(tape.closed(Direction::ToClient, None), &told);
        output.close();
        let _ = done.send(());
    });
    is_done
}

/// Whether what was tapped goes on.
fn passes(tapped: Tapped, told: &UnboundedSender<Told>) -> bool {
    // Nobody listens once the session is over.
    match tapped {
        Tapped::Pass => true,
        Tapped::PassUnwritten(error) => {
            let _ = told.send(Told::Failed(error));
            true
        }
        Tapped::Refuse(error) => {
            let _ = told.send(Told::Refused(error));
            false
        }
        Tapped::Over => false,
    }
}
