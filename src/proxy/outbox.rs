//! What waits to be written to a pipe, and how it is written without ever waiting there.
//!
//! The system is asked not to wait ([`nowait`]); where it cannot be asked, a write takes at most what a pipe that polls
//! writable has room for.

use std::{collections::VecDeque, io, os::fd::BorrowedFd};

use rustix::io::{Errno, write};

use crate::{cassette::model::End, replay::Output, transport::stdio::nowait};

/// The room a pipe that polls writable has at least (`PIPE_BUF`).
const PIPE_ROOM: usize = 4096;

/// What a peer has not taken yet.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    /// Pieces that must not share a write; of the first one `written` bytes have gone.
    waiting: VecDeque<Vec<u8>>,
    written: usize,
    size: usize,
    /// The system cannot be asked for a write there that does not wait.
    must_be_polled: bool,
    /// The stream ends behind what waits.
    pub closes: bool,
    /// The process ends behind what waits.
    pub end: Option<End>,
}

impl Outbox {
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

    /// Takes what is to be done towards a client that speaks in lines. Behind the end of the process nothing counts,
    /// and behind that of the stream nothing but how the process ends.
    pub(super) fn say(&mut self, output: Output) {
        match output {
            _ if self.end.is_some() => {}
            Output::End { end, .. } if self.closes => self.end = Some(end),
            _ if self.closes => {}
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

    /// Writes what is taken without a wait; false when nobody reads there any more. None where nothing is, or where that
    /// cannot be asked for.
    pub(super) fn write_at_once(&mut self, output: BorrowedFd<'_>) -> io::Result<Option<bool>> {
        let Some(rest) = self.rest().filter(|_| !self.must_be_polled) else { return Ok(None) };
        match nowait::write(output, rest) {
            Err(Errno::AGAIN) => Ok(None),
            Err(Errno::OPNOTSUPP) => {
                self.must_be_polled = true;
                Ok(None)
            }
            written => self.note(written).map(Some),
        }
    }

    /// Writes what a descriptor that polls writable has room for; false when nobody reads there any more.
    pub(super) fn write(&mut self, output: BorrowedFd<'_>) -> io::Result<bool> {
        if let Some(is_read) = self.write_at_once(output)? {
            return Ok(is_read);
        }
        // It polls although nothing waits: it has no reader.
        let Some(rest) = self.rest() else { return Ok(false) };
        if !self.must_be_polled {
            return Ok(true);
        }
        let written = write(output, &rest[..rest.len().min(PIPE_ROOM)]);
        self.note(written)
    }

    /// What is left of the first piece.
    fn rest(&self) -> Option<&[u8]> {
        self.waiting.front().map(|piece| &piece[self.written..])
    }

    /// Takes in how a write went; false when nobody reads there any more.
    fn note(&mut self, written: Result<usize, Errno>) -> io::Result<bool> {
        match written {
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
