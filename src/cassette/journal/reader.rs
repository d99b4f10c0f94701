//! Reading a journal from whatever gives its bytes, one frame in memory at a time.

use std::io::Read;

use memchr::memmem;

use super::{
    Entry, FramePlace, JournalError, JournalHeader, MAGIC, VERSION,
    frame::{HEAD, MARK, decode_behind_header, decode_header, decode_payload, is_whole, payload_length},
};

/// Length of magic and version.
const BEGIN: usize = MAGIC.len() + 4;
/// How much is read at once.
const CHUNK: usize = 64 << 10;
/// How many bytes a search behind damage checks before it gives up: a file that is full of marks must not cost the
/// square of its length.
const SEARCH_LIMIT: u64 = 2 << 30;

/// Bytes that recovery had to skip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Where whole frames end.
    pub at: u64,
    /// How many bytes were skipped.
    pub bytes: u64,
}

/// Yields the entries of one journal.
#[derive(Debug)]
pub struct JournalReader<R> {
    source: R,
    header: JournalHeader,
    buffer: Vec<u8>,
    /// Offset in the buffer of the next frame.
    next: usize,
    /// Offset in the journal of the buffer's first byte.
    base: u64,
    skips_damage: bool,
    losses: Vec<Loss>,
    torn: Option<Loss>,
}

impl<R: Read> JournalReader<R> {
    /// Reads magic, version and header. Damage before a whole frame will be an error.
    ///
    /// # Errors
    /// When this is no journal, or one whose header is not whole.
    pub fn new(source: R) -> Result<Self, JournalError> {
        let mut reader = Self::begin(source);
        reader.read_begin()?;
        let at = reader.base_at();
        match reader.frame_at(reader.next)? {
            Found::Whole(end) => {
                let payload = &reader.buffer[reader.next + HEAD..end];
                reader.header = decode_header(payload).ok_or(JournalError::Unknown { at })?;
                reader.next = end;
                reader.read_behind_header()?;
                Ok(reader)
            }
            Found::End => Err(JournalError::NoHeader),
            Found::Broken => match reader.search()? {
                Behind::Whole { at: resumes } => Err(JournalError::Damaged { at, resumes }),
                Behind::Nothing { .. } => Err(JournalError::NoHeader),
            },
        }
    }

    /// Like [`Self::new`], but skips damage wherever a whole frame follows and tells it by [`Self::losses`]. Where
    /// the header itself is lost, `header` is used.
    ///
    /// # Errors
    /// When this is no journal at all, or of another version.
    pub fn recover(source: R, header: JournalHeader) -> Result<Self, JournalError> {
        let mut reader = Self::begin(source);
        let begins = reader.read_begin();
        reader.skips_damage = true;
        reader.header = header;
        reader.next = BEGIN;
        let found = match reader.frame_at(BEGIN)? {
            Found::Whole(end) => Some(end).zip(decode_header(&reader.buffer[BEGIN + HEAD..end])),
            Found::End | Found::Broken => None,
        };
        // Magic bytes that are damaged are believed where a header follows.
        match (found, begins) {
            (Some((end, header)), Ok(()) | Err(JournalError::NoJournal)) => {
                let named = std::mem::replace(&mut reader.header, header).continues;
                reader.next = end;
                reader.read_behind_header()?;
                reader.header.continues = reader.header.continues.take().or(named);
            }
            (_, begins) => begins?,
        }
        Ok(reader)
    }

    fn begin(source: R) -> Self {
        let header = JournalHeader::default();
        let (buffer, losses) = (Vec::new(), Vec::new());
        Self { source, header, buffer, next: 0, base: 0, skips_damage: false, losses, torn: None }
    }

    /// Reads magic and version.
    fn read_begin(&mut self) -> Result<(), JournalError> {
        self.fill(BEGIN)?;
        let magic = &self.buffer[..self.buffer.len().min(MAGIC.len())];
        if !MAGIC.starts_with(magic) {
            return Err(JournalError::NoJournal);
        }
        let Some(version) = self.buffer.get(MAGIC.len()..BEGIN) else { return Err(JournalError::NoHeader) };
        let found = u32::from_le_bytes(version.try_into().expect("four bytes"));
        if found != VERSION {
            return Err(JournalError::Version { found });
        }
        self.next = BEGIN;
        Ok(())
    }

    /// Reads what stands behind its header and belongs to that.
    fn read_behind_header(&mut self) -> Result<(), JournalError> {
        while let Found::Whole(end) = self.frame_at(self.next)? {
            let payload = &self.buffer[self.next + HEAD..end];
            if !decode_behind_header(payload, &mut self.header) {
                break;
            }
            self.next = end;
        }
        Ok(())
    }

    /// The journal's header.
    pub const fn header(&self) -> &JournalHeader {
        &self.header
    }

    /// What recovery skipped so far.
    pub fn losses(&self) -> &[Loss] {
        &self.losses
    }

    /// The unfinished frame at the end, once the end was reached: its writer was killed, or is about to go on.
    pub const fn torn(&self) -> Option<Loss> {
        self.torn
    }

    /// The next entry with its place; `None` at the end of what is whole.
    ///
    /// # Errors
    /// Damage before a whole frame (not when recovering), frames of another version, a source that fails.
    #[expect(clippy::should_implement_trait, reason = "entries borrow from the reader")]
    pub fn next(&mut self) -> Result<Option<(FramePlace, Entry<'_>)>, JournalError> {
        let (start, end) = loop {
            self.discard();
            let start = self.next;
            match self.frame_at(start)? {
                Found::End => return Ok(None),
                Found::Broken => {
                    let at = self.base_at();
                    let resumes = match self.search()? {
                        Behind::Whole { at } => at,
                        Behind::Nothing { end } => {
                            self.torn = (end > at).then(|| Loss { at, bytes: end - at });
                            return Ok(None);
                        }
                    };
                    if !self.skips_damage {
                        return Err(JournalError::Damaged { at, resumes });
                    }
                    self.losses.push(Loss { at, bytes: resumes - at });
                }
                Found::Whole(end) => {
                    self.next = end;
                    // Decoded twice when recovering, since the borrow checker does not see that this loop ends here.
                    let payload = &self.buffer[start + HEAD..end];
                    if !self.skips_damage || decode_payload(payload).is_some() {
                        break (start, end);
                    }
                    // Its header alone is lost.
                    if decode_behind_header(payload, &mut self.header) {
                        continue;
                    }
                    self.losses.push(Loss { at: self.base + start as u64, bytes: (end - start) as u64 });
                }
            }
        };
        let place = FramePlace { at: self.base + start as u64, len: (end - start) as u32 };
        match decode_payload(&self.buffer[start + HEAD..end]) {
            Some(entry) => Ok(Some((place, entry))),
            None => Err(JournalError::Unknown { at: place.at }),
        }
    }

    /// Where in the journal it reads on.
    pub const fn place(&self) -> u64 {
        self.base_at()
    }

    /// Offset in the journal of the next frame.
    const fn base_at(&self) -> u64 {
        self.base + self.next as u64
    }

    /// What stands at an offset of the buffer, reading on as needed.
    fn frame_at(&mut self, at: usize) -> Result<Found, JournalError> {
        if !self.fill(at + HEAD)? {
            return Ok(if self.buffer.len() == at { Found::End } else { Found::Broken });
        }
        let Some(length) = payload_length(&self.buffer[at..]) else { return Ok(Found::Broken) };
        let end = at + HEAD + length;
        let whole = self.fill(end)? && is_whole(&self.buffer[at..end]);
        Ok(if whole { Found::Whole(end) } else { Found::Broken })
    }

    /// Moves on to the next whole frame behind a broken one, or to the journal's end.
    fn search(&mut self) -> Result<Behind, JournalError> {
        let broken = self.base_at();
        let mut end = broken;
        let mut checked = 0;
        self.pass(1, &mut end);
        loop {
            self.discard();
            let Some(found) = memmem::find(&self.buffer[self.next..], &MARK) else {
                // A mark may be cut by the end of what has been read.
                self.pass((self.buffer.len() + 1).saturating_sub(self.next + MARK.len()), &mut end);
                if !self.fill(self.buffer.len() + 1)? {
                    self.pass(self.buffer.len() - self.next, &mut end);
                    return Ok(Behind::Nothing { end });
                }
                continue;
            };
            self.pass(found, &mut end);
            if let Found::Whole(_) = self.frame_at(self.next)? {
                return Ok(Behind::Whole { at: self.base_at() });
            }
            checked += payload_length(&self.buffer[self.next..]).unwrap_or_default() as u64;
            if checked > SEARCH_LIMIT {
                return Err(JournalError::Hopeless { at: broken });
            }
            self.pass(1, &mut end);
        }
    }

    /// Passes over bytes; `end` is moved behind the last of them that is no zero.
    fn pass(&mut self, count: usize, end: &mut u64) {
        let passed = &self.buffer[self.next..self.next + count];
        if let Some(last) = passed.iter().rposition(|byte| *byte != 0) {
            *end = self.base_at() + last as u64 + 1;
        }
        self.next += count;
    }

    /// Drops what has been read, once that is as much as what has not: what is moved was read at least once since.
    fn discard(&mut self) {
        if self.next < CHUNK.max(self.buffer.len() / 2) {
            return;
        }
        self.buffer.drain(..self.next);
        self.base += self.next as u64;
        self.next = 0;
        // Room that one long message needed is given back.
        if self.buffer.capacity() > 16 * CHUNK && self.buffer.len() < CHUNK {
            self.buffer.shrink_to(2 * CHUNK);
        }
    }

    /// Reads until the buffer holds `length` bytes; whether it does. Room grows with what is there, not with what a
    /// length says.
    fn fill(&mut self, length: usize) -> Result<bool, JournalError> {
        while self.buffer.len() < length {
            let room = (length - self.buffer.len()).clamp(CHUNK, 16 * CHUNK);
            if self.source.by_ref().take(room as u64).read_to_end(&mut self.buffer)? == 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// What stands behind a broken frame.
enum Behind {
    /// A whole one, at this offset of the journal.
    Whole { at: u64 },
    /// None. The broken one ends here: behind it are only zeros, the room that a writer makes ahead.
    Nothing { end: u64 },
}

enum Found {
    /// A whole frame that ends at this offset of the buffer.
    Whole(usize),
    /// The end of the journal.
    End,
    /// No whole frame.
    Broken,
}

#[cfg(test)]
mod tests;
