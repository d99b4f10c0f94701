//! The journal: the binary, append-only file of wire events that a recorder writes.
//!
//! ```text
//! magic (8 bytes)  version (u32)  frame  frame  frame …
//! frame: mark (4 bytes)  length (u32)  number (u32)  crc32 of length, number and payload (u32)  payload (bincode)
//! ```
//!
//! Numbers are little-endian, frames are numbered from 0. The first frame is the [`JournalHeader`], with up to two
//! more behind it that belong to it (where it goes on, and how many messages are missing, which alone is written over
//! later); the others are [`Entry`]s. A recorder appends whole frames and is killed at any byte: [`JournalReader`]
//! takes what stands before a torn last frame, refuses damage before a whole one, and skips it only when asked to
//! recover. Frames that are missing, doubled or in another order are damage, too. Behind the last frame there may be
//! zeros: room that the recorder made and did not fill. A last frame that is broken although all of it is there, or
//! something else behind it, was not torn by the end of its writer; while that still lives it may be about to be
//! written, which the reader leaves to who knows.
//!
//! A journal can also be an [`Archive`] made from a cassette.
//!
//! This is the only module that knows bincode, which stores no types: the frame structs are the journal's own and
//! payloads are bytes. Nothing here touches files; a source of bytes is whatever reads.

mod archive;
mod fields;
mod frame;
mod head;
mod reader;

use std::io;

use sha2::{Digest, Sha256};

pub use archive::{Archive, encode_archive};
pub use frame::{CutMessage, Encoder, Entry, MAX_MESSAGE, decode};
pub use reader::{Damage, JournalReader, Loss, is_journal};

/// What a journal begins with. The first byte is no text, the line ends show transfers that rewrite them.
pub const MAGIC: [u8; 8] = *b"\x93tape\r\n\x1a";

/// The version of the format.
///
/// - 1: frames have no numbers. It is read as it always was.
/// - 2: each frame has its number.
pub const VERSION: u32 = 2;

/// The room that a recorder makes behind its frames ends at a multiple of this length.
pub const ROOM_STEP: u64 = 128 << 10;

/// Who wrote a journal, and for whom.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JournalHeader {
    /// Its name for ever, 12 hexadecimal digits: the sessions folded from it keep it.
    pub id: String,
    /// Process id of the recorder's parent: of the client, or of what started the recorder for it.
    pub parent: u32,
    /// When that process started, in a unit of its system's; 0 where that is not known.
    pub parent_start: u64,
    /// Which run of that system this was, since process ids and starts begin again with each.
    pub boot: String,
    /// When the recording began, in milliseconds since 1970 UTC.
    pub started_ms: u64,
    /// The program that records, with its version.
    pub by: String,
    /// The transport, as a session of the cassette names it.
    pub transport: String,
    /// The names of `--var`.
    pub vars: Vec<String>,
    /// Whether redaction was on.
    pub redacted: bool,
    /// Whether the recording is to take the place of the cassette's older ones once it ended well.
    pub replace: bool,
    /// The cassette's path, only where the journal could not be written beside it.
    pub cassette: Option<String>,
    /// Where it belongs, where it is no recording of its own.
    pub continues: Option<Continues>,
    /// How many messages its recorder could not write. Where its gaps tell of fewer, the others passed behind what
    /// stands last in it: the disk took nothing more.
    pub missed: u64,
}

impl JournalHeader {
    /// What tells the recorder's parent process from any other: equal for the sessions of one recording. None where
    /// the start of the parent is not known, since a process id alone comes back.
    pub fn parent_key(&self) -> Option<String> {
        let known = self.parent_start != 0;
        let text = format!("{} {} {}", self.parent, self.parent_start, self.boot);
        known.then(|| Sha256::digest(text).iter().take(6).map(|byte| format!("{byte:02x}")).collect())
    }
}

/// Where the messages of a journal belong that goes on with what was recorded before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Continues {
    /// The recording.
    pub recording: u32,
    /// Its session that they stand behind; none where they are a further session of it.
    pub session: Option<u32>,
    /// The journal that this session came from: a number alone may come back.
    pub journal: Option<String>,
}

/// Where a frame stands in its journal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FramePlace {
    /// Offset of its mark.
    pub at: u64,
    /// Length of the whole frame.
    pub len: u32,
}

impl JournalError {
    /// Whether a part of the journal is not as its recorder wrote it, and another may be.
    pub const fn is_damage(&self) -> bool {
        matches!(
            self,
            Self::Damaged { .. }
                | Self::EndDamaged { .. }
                | Self::Disordered { .. }
                | Self::Hopeless { .. }
                | Self::Unknown { .. }
        )
    }
}

/// A journal cannot be read, or not further.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// The file does not begin as a journal does.
    #[error("this is no journal of tapedeck: it does not begin with its magic bytes")]
    NoJournal,
    /// The file ends before its header does: its recorder was killed before it wrote a message.
    #[error("the journal ends before its header does: it holds no message")]
    NoHeader,
    /// Written in a format this program does not know.
    #[error(
        "the journal says that it has version {found}, and this program reads versions up to {VERSION}; a newer tapedeck is \
         needed, or the file is damaged there"
    )]
    Version {
        /// The version it says.
        found: u32,
    },
    /// A frame is damaged although a whole one follows, so this is no torn end.
    #[error("the journal is damaged at byte {at} and whole again at byte {resumes}")]
    Damaged {
        /// Where whole frames end.
        at: u64,
        /// Where the next whole frame begins.
        resumes: u64,
    },
    /// The last frame is damaged, and it is none that was torn by the end of its writer.
    #[error("the journal is damaged from byte {at} on, up to its end")]
    EndDamaged {
        /// Where whole frames end.
        at: u64,
    },
    /// A whole frame has not the number that comes next.
    #[error(
        "the journal is damaged at byte {at}: whole messages are missing there, stand there twice, or in another order"
    )]
    Disordered {
        /// Where that frame begins.
        at: u64,
    },
    /// Behind a damaged place so much looks like frames and is none that the search was given up.
    #[error("the journal is damaged at byte {at} and no whole frame was found behind it")]
    Hopeless {
        /// Where whole frames end.
        at: u64,
    },
    /// A frame came through whole but is none that this version has.
    #[error("the journal holds a frame at byte {at} that this program does not know")]
    Unknown {
        /// Where that frame begins.
        at: u64,
    },
    /// An archive where a recording is needed.
    #[error(
        "this journal is an archive that was made from a cassette; `tapedeck convert` makes the cassette again"
    )]
    IsArchive,
    /// An archive whose end is missing, or which is not in order.
    #[error("this archive of a cassette is not whole")]
    NoArchive,
    /// The source failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}
