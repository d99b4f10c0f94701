//! What waits to be written to a pipe, and how it is written without ever waiting there.
//!
//! The descriptor is not made non-blocking (it is shared with whoever started us). A write takes at most what a pipe
//! that polls writable, or is empty, has room for.

use std::{collections::VecDeque, io, os::fd::BorrowedFd};

use rustix::io::{Errno, ioctl_fionread, write};

use crate::{cassette::model::End, replay::Output};

/// The room a pipe that polls writable has at least (`PIPE_BUF`).
const PIPE_ROOM: usize = 4096;

/// What a peer has not taken yet.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    /// Pieces that must not share a write; of the first one `written` bytes have gone.
    waiting: VecDeque<Vec<u8>>,
    written: usize,
    size: usize,
    /// How much the descriptor holds, where it is a pipe.
    pipe_size: Option<usize>,
    /// The stream ends behind what waits.
    pub closes: bool,
    /// The process ends behind what waits.
    pub end: Option<End>,
}

impl Outbox {
    /// For what goes to a descriptor.
    pub(super) fn to(output: BorrowedFd<'_>) -> Self {
        Self { pipe_size: pipe_size(output), ..Self::default() }
    }

    /// Whether all has been written.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// How many bytes wait.
    pub(super) const fn size(&self) -> usize {
        self.size
    }

    /// Nobody reads: what waits goes nowhere.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
        (self.written, self.size) = (0, 0);
    }

    /// Takes what is to be done towards a client that speaks in lines. Behind an end nothing counts.
    pub(super) fn say(&mut self, output: Output) {
        if self.closes || self.end.is_some() {
            return;
        }
        match output {
            Output::Raw { bytes, .. } => self.push(bytes),
            Output::EndLane { partial, .. } => {
                self.closes = true;
                self.push(partial);
            }
            Output::Send { bytes, apart, .. } => self.line(bytes, apart),
            Output::End { end, .. } => {
                self.push(end.partial.clone().unwrap_or_default());
                self.end = Some(end);
            }
            // Who is told of lines speaks in lines.
            Output::Head { .. }
            | Output::Event { .. }
            | Output::Body { .. }
            | Output::HalfClose { .. }
            | Output::Upstream { .. }
            | Output::EndUpstream { .. } => {}
        }
    }

    /// Adds a line, which may share a write with what stands before it unless it goes `apart`.
    pub(super) fn line(&mut self, mut bytes: Vec<u8>, apart: bool) {
        self.size += bytes.len() + 1;
        match self.waiting.back_mut() {
            Some(last) if !apart => last.append(&mut bytes),
            _ => self.waiting.push_back(bytes),
        }
        self.waiting.back_mut().expect("it was put there").push(b'\n');
    }

    /// Adds bytes as they are.
    pub(super) fn push(&mut self, bytes: Vec<u8>) {
        if !bytes.is_empty() {
            self.size += bytes.len();
            self.waiting.push_back(bytes);
        }
    }

    /// Writes what waits for a pipe that is empty: it takes all that it can hold without being waited for, and waking its
    /// reader once for that is much cheaper. False when nobody reads there any more; none where that is not known.
    pub(super) fn write_at_once(&mut self, output: BorrowedFd<'_>) -> io::Result<Option<bool>> {
        match self.empty_room(output) {
            Some(room) => self.write_up_to(output, room).map(Some),
            None => Ok(None),
        }
    }

    /// Writes what a descriptor that polls writable has room for; false when nobody reads there any more.
    pub(super) fn write(&mut self, output: BorrowedFd<'_>) -> io::Result<bool> {
        let room = self.empty_room(output).unwrap_or(PIPE_ROOM);
        self.write_up_to(output, room)
    }

    /// How much an empty pipe takes of what waits.
    fn empty_room(&self, output: BorrowedFd<'_>) -> Option<usize> {
        self.pipe_size.filter(|_| !self.waiting.is_empty() && ioctl_fionread(output) == Ok(0))
    }

    fn write_up_to(&mut self, output: BorrowedFd<'_>, room: usize) -> io::Result<bool> {
        // It polls although nothing waits: it has no reader.
        let Some(piece) = self.waiting.front() else { return Ok(false) };
        let rest = &piece[self.written..];
        match write(output, &rest[..rest.len().min(room)]) {
            Ok(count) => {
                self.written += count;
                self.size -= count;
            }
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(Errno::PIPE | Errno::CONNRESET) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        if self.waiting.front().is_some_and(|piece| self.written == piece.len()) {
            self.waiting.pop_front();
            self.written = 0;
        }
        Ok(true)
    }
}

#[cfg(target_os = "linux")]
fn pipe_size(output: BorrowedFd<'_>) -> Option<usize> {
    rustix::pipe::fcntl_getpipe_size(output).ok()
}

/// Elsewhere a pipe does not tell, and may change its size.
#[cfg(not(target_os = "linux"))]
const fn pipe_size(_: BorrowedFd<'_>) -> Option<usize> {
    None
}
