//! A recorder in memory: what was seen on the wire becomes the text of a cassette.

use std::{borrow::Cow, io};

use super::{EMPTY, Fold, Plan};
use crate::{
    cassette::{
        blob::{BlobSink, BlobSource, NoBlobs},
        journal::{Encoder, FramePlace, JournalHeader},
        model::Cassette,
    },
    traffic::{Direction, Event, Lane, Micros, Payload},
};

/// Records one conversation in memory.
///
/// It is a pure function of what it is told: the same events give the same text. Programs that must not lose a
/// recording write a journal as they go instead (`tapedeck record` does) and fold it at the end; the result is the
/// same.
///
/// ```
/// use mcp_tapedeck::{Recorder, cassette::blob::MemoryBlobs, traffic::Direction::{ToClient, ToServer}};
///
/// let mut recorder = Recorder::new(Default::default());
/// recorder.message(0, ToServer, br#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#);
/// recorder.message(3_000, ToClient, br#"{"jsonrpc":"2.0","id":0,"result":{}}"#);
/// let text = String::from_utf8(recorder.finish(None, &mut MemoryBlobs::default())?)?;
/// assert!(text.contains(r#""key": "ping @1""#) && text.contains(r#""after_ms": 3"#));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Recorder {
    fold: Fold,
    frames: Encoder,
}

impl Recorder {
    /// A recorder of one process; `header` says which and since when.
    pub fn new(header: JournalHeader) -> Self {
        Self { fold: Fold::new(header), frames: Encoder::default() }
    }

    /// Takes in one thing that happened.
    pub fn event(&mut self, event: &Event<'_>) {
        let at = self.frames.bytes.len();
        self.frames.event(event);
        let len = (self.frames.bytes.len() - at) as u32;
        self.fold.event(event, FramePlace { at: at as u64, len });
    }

    /// Takes in one line of stdio, without its `\n`, at `at` microseconds since the start.
    pub fn message(&mut self, at: Micros, direction: Direction, line: &[u8]) {
        let payload = Payload::Message(Cow::Borrowed(line));
        self.event(&Event { at, direction, lane: Lane(0), payload });
    }

    /// The text of a cassette with this recording in it: a new one, or `into` with one recording more. Long strings
    /// go to `blobs`.
    ///
    /// # Errors
    /// When `blobs` fails.
    pub fn finish(
        mut self,
        into: Option<(&Cassette, &dyn BlobSource)>,
        blobs: &mut dyn BlobSink,
    ) -> io::Result<Vec<u8>> {
        self.fold.end();
        let (tapes, frames) = ([self.fold.finish()], [self.frames.bytes]);
        let empty = Cassette::load(EMPTY.to_vec(), &NoBlobs).map_err(io::Error::other)?;
        let (base, old) = into.unwrap_or((&empty, &NoBlobs));
        let mut text = Vec::new();
        Plan::new(base, &tapes).write(&mut &frames[..], old, blobs, &mut text)?;
        Ok(text)
    }
}
