//! Reading a journal from whatever gives its bytes, one frame in memory at a time.

use std::io::Read;

use memchr::memmem;

use super::{
    Entry, FramePlace, JournalError, JournalHeader, MAGIC, VERSION,
    frame::{add_to_header, decode_payload, is_frame},
    head::{Head, MARK, MARK_LENGTH, Passed, payload_of},
};

/// Length of magic and version.
const BEGIN: usize = MAGIC.len() + 4;
/// Where the first frame stands.
const BEGIN_PLACE: u64 = BEGIN as u64;
/// So many frames belong to the header at most, itself among them.
const HEAD_FRAMES: usize = 3;
/// How much is read at once.
const CHUNK: usize = 64 << 10;
/// How many bytes a search behind damage checks before it gives up: a file that is full of marks must not cost the
/// square of its length.
const SEARCH_LIMIT: u64 = 2 << 30;

/// A part of a journal that could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Where whole frames end.
    pub at: u64,
    /// How long the part is.
    pub bytes: u64,
}

/// What recovery skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// Bytes that are no frame any more.
    Bytes(Loss),
    /// The same, where only the header stood.
    Header(Loss),
    /// Frames that are not there: the next one has a higher number.
    Missing {
        /// Where they stood.
        at: u64,
        /// How many there were.
        frames: u32,
    },
    /// A whole frame that is out of place: it stands there twice, or before or behind where it belongs.
    Displaced(Loss),
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
    losses: Vec<Damage>,
    /// The number that the next frame should have.
    number: u32,
    /// Which of the frames that belong to the header are known although something may stand before them.
    head: [bool; HEAD_FRAMES],
    /// What is no whole frame at the end, and whether its writer's end can have made it so.
    end: Option<(Loss, bool)>,
}

impl<R: Read> JournalReader<R> {
    /// Reads magic, version and header. Damage before a whole frame will be an error.
    ///
    /// # Errors
    /// When this is no journal, or one whose header is not whole.
    pub fn new(source: R) -> Result<Self, JournalError> {
        let mut reader = Self::begin(source);
        match reader.read_begin() {
            Err(error) if is_damaged_begin(&error) => {
                let resumes = reader.frame_behind_begin()?.ok_or(error)?;
                return Err(JournalError::Damaged { at: 0, resumes });
            }
            begins => begins?,
        }
        let at = reader.base_at();
        match reader.frame_at(reader.next)? {
            Found::Whole(frame) => {
                let payload = &reader.buffer[frame.payload..frame.end];
                if !add_to_header(payload, true, &mut reader.header) {
                    return Err(misplaced(payload, at));
                }
                reader.take(frame);
                reader.read_behind_header()?;
                Ok(reader)
            }
            Found::End => Err(JournalError::NoHeader),
            Found::Broken => match reader.search()? {
                Behind::Whole { at: resumes } => Err(JournalError::Damaged { at, resumes }),
                Behind::Nothing { is_torn: true, .. } => Err(JournalError::NoHeader),
                Behind::Nothing { .. } => Err(JournalError::EndDamaged { at }),
            },
        }
    }

    /// Like [`Self::new`], but skips damage wherever a whole frame follows and tells it by [`Self::losses`]. The source is
    /// given twice: what should stand at its begin may stand behind something else. Where the header itself is lost,
    /// `header` is used.
    ///
    /// # Errors
    /// When this is no journal at all, or of another version.
    pub fn recover(mut source: impl FnMut() -> R, header: JournalHeader) -> Result<Self, JournalError> {
        let mut ahead = Self { skips_damage: true, header, ..Self::begin(source()) };
        let (next, losses) = match ahead.read_begin() {
            // A damaged begin is believed where a frame follows.
            Err(error) if is_damaged_begin(&error) => match ahead.frame_behind_begin()?.ok_or(error)? {
                BEGIN_PLACE => (BEGIN, vec![Damage::Bytes(Loss { at: 0, bytes: MAGIC.len() as u64 })]),
                _ => (0, Vec::new()),
            },
            begins => begins.map(|()| (BEGIN, Vec::new()))?,
        };
        let head = ahead.find_head()?;
        let Self { header, .. } = ahead;
        Ok(Self { skips_damage: true, header, losses, head, next, ..Self::begin(source()) })
    }

    fn begin(source: R) -> Self {
        Self {
            source,
            header: JournalHeader::default(),
            buffer: Vec::new(),
            next: 0,
            base: 0,
            skips_damage: false,
            losses: Vec::new(),
            number: 0,
            head: [false; HEAD_FRAMES],
            end: None,
        }
    }

    /// Where the first whole frame stands, whatever stands before it.
    fn frame_behind_begin(&mut self) -> Result<Option<u64>, JournalError> {
        Ok(match self.search()? {
            Behind::Whole { at } => Some(at),
            Behind::Nothing { .. } => None,
        })
    }

    /// Reads the frames that belong to the header, wherever they stand; which of them are there.
    fn find_head(&mut self) -> Result<[bool; HEAD_FRAMES], JournalError> {
        let mut head = [false; HEAD_FRAMES];
        loop {
            self.discard();
            let frame = match self.frame_at(self.next)? {
                Found::Whole(frame) => frame,
                Found::Broken if self.pass_over()?.is_some() => continue,
                Found::Broken | Found::End => return Ok(head),
            };
            let payload = &self.buffer[frame.payload..frame.end];
            let next = head.iter().position(|is_there| !is_there).unwrap_or(HEAD_FRAMES);
            let number = frame.number.map_or(next, |number| number as usize);
            match head.get_mut(number) {
                Some(is_there) if !*is_there && add_to_header(payload, number == 0, &mut self.header) => {
                    *is_there = true;
                }
                // What stands behind the header does not come any more.
                _ if number == next && next > 0 => return Ok(head),
                _ => {}
            }
            self.next = frame.end;
        }
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
        if !(1..=VERSION).contains(&found) {
            return Err(JournalError::Version { found });
        }
        self.next = BEGIN;
        Ok(())
    }

    /// Reads what stands behind its header and belongs to that.
    fn read_behind_header(&mut self) -> Result<(), JournalError> {
        while let Found::Whole(frame) = self.frame_at(self.next)? {
            let payload = &self.buffer[frame.payload..frame.end];
            if self.frames_before(frame) != 0 || !add_to_header(payload, false, &mut self.header) {
                break;
            }
            self.take(frame);
        }
        Ok(())
    }

    /// Moves on behind a frame.
    fn take(&mut self, frame: Whole) {
        self.next = frame.end;
        self.number = frame.number.unwrap_or(self.number).wrapping_add(1);
    }

    /// How many frames are missing before one; less than none where it should have come before.
    const fn frames_before(&self, frame: Whole) -> i32 {
        match frame.number {
            Some(number) => number.wrapping_sub(self.number).cast_signed(),
            None => 0,
        }
    }

    /// Whether a frame that should come later stands before one that should not: it is out of place, and what follows is
    /// not.
    fn is_early(&mut self, frame: Whole) -> Result<bool, JournalError> {
        let Found::Whole(next) = self.frame_at(frame.end)? else { return Ok(false) };
        Ok((0..self.frames_before(frame)).contains(&self.frames_before(next)))
    }

    /// The journal's header.
    pub const fn header(&self) -> &JournalHeader {
        &self.header
    }

    /// What recovery skipped so far.
    pub fn losses(&self) -> &[Damage] {
        &self.losses
    }

    /// The unfinished frame at the end, once the end was reached: its writer was killed, or is about to go on.
    pub fn torn(&self) -> Option<Loss> {
        self.end.filter(|(_, is_torn)| *is_torn).map(|(torn, _)| torn)
    }

    /// The damage at the end, once the end was reached, where no end of a writer leaves that. A writer that lives may be
    /// about to write there. When recovering it is among [`Self::losses`].
    pub fn damaged_end(&self) -> Option<Loss> {
        self.end.filter(|(_, is_torn)| !is_torn).map(|(damaged, _)| damaged)
    }

    /// The next entry with its place; `None` at the end of what is whole.
    ///
    /// # Errors
    /// Damage before a whole frame (not when recovering), frames of another version, a source that fails.
    #[expect(clippy::should_implement_trait, reason = "entries borrow from the reader")]
    pub fn next(&mut self) -> Result<Option<(FramePlace, Entry<'_>)>, JournalError> {
        let (start, frame) = loop {
            self.discard();
            let start = self.next;
            let at = self.base_at();
            match self.frame_at(start)? {
                Found::End => return Ok(None),
                Found::Broken => match self.pass_over()? {
                    Some(damage) => return Ok(Some(self.lost(damage))),
                    None => return Ok(None),
                },
                Found::Whole(frame) => {
                    let missing = self.frames_before(frame);
                    if missing != 0 && !self.skips_damage {
                        return Err(JournalError::Disordered { at });
                    }
                    let loss = Loss { at, bytes: (frame.end - start) as u64 };
                    if missing < 0 || missing > 0 && self.is_early(frame)? {
                        self.next = frame.end;
                        return Ok(Some(self.lost(Damage::Displaced(loss))));
                    }
                    // What belongs to the header is known, wherever it stands.
                    if missing > 0 && self.head.get(self.number as usize) == Some(&true) {
                        self.number += 1;
                        continue;
                    }
                    if missing > 0 {
                        self.number = self.number.wrapping_add(missing.cast_unsigned());
                        return Ok(Some(self.lost(Damage::Missing { at, frames: missing.cast_unsigned() })));
                    }
                    self.take(frame);
                    // Decoded twice when recovering, since the borrow checker does not see that this loop ends here.
                    let payload = &self.buffer[frame.payload..frame.end];
                    if !self.skips_damage || decode_payload(payload).is_some() {
                        break (start, frame);
                    }
                    // What belongs to the header has been read.
                    if is_frame(payload) {
                        continue;
                    }
                    return Ok(Some(self.lost(Damage::Bytes(loss))));
                }
            }
        };
        let place = FramePlace { at: self.base + start as u64, len: (frame.end - start) as u32 };
        match decode_payload(&self.buffer[frame.payload..frame.end]) {
            Some(entry) => Ok(Some((place, entry))),
            None => Err(misplaced(&self.buffer[frame.payload..frame.end], place.at)),
        }
    }

    /// Moves on behind damage, which is what is given, or to the end.
    fn pass_over(&mut self) -> Result<Option<Damage>, JournalError> {
        let at = self.base_at();
        match self.search()? {
            Behind::Whole { at: resumes } if self.skips_damage => {
                let loss = Loss { at, bytes: resumes - at };
                let Found::Whole(frame) = self.frame_at(self.next)? else {
                    return Ok(Some(Damage::Bytes(loss)));
                };
                let missing = self.frames_before(frame).max(0);
                let is_header = (self.number, missing) == (0, 1) && !self.head[0];
                // What is missing here has been told.
                self.number = self.number.wrapping_add(missing.cast_unsigned());
                Ok(Some(if is_header { Damage::Header(loss) } else { Damage::Bytes(loss) }))
            }
            Behind::Whole { at: resumes } => Err(JournalError::Damaged { at, resumes }),
            Behind::Nothing { end, is_torn } => {
                let end = (end > at).then(|| Loss { at, bytes: end - at });
                self.end = end.map(|end| (end, is_torn));
                Ok(end.filter(|_| self.skips_damage && !is_torn).map(Damage::Bytes))
            }
        }
    }

    fn lost(&mut self, damage: Damage) -> (FramePlace, Entry<'static>) {
        self.losses.push(damage);
        let at = match damage {
            Damage::Bytes(Loss { at, .. })
            | Damage::Header(Loss { at, .. })
            | Damage::Displaced(Loss { at, .. })
            | Damage::Missing { at, .. } => at,
        };
        (FramePlace { at, len: 0 }, Entry::Lost(damage))
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
        if !self.fill(at + MARK_LENGTH)? {
            return Ok(if self.buffer.len() == at { Found::End } else { Found::Broken });
        }
        let Some(length) = Head::length(&self.buffer[at..]) else { return Ok(Found::Broken) };
        if !self.fill(at + length)? {
            return Ok(Found::Broken);
        }
        let Some(head) = Head::read(&self.buffer[at..]) else { return Ok(Found::Broken) };
        let payload = at + head.length;
        let end = payload + head.payload;
        let is_whole = self.fill(end)? && payload_of(&self.buffer[at..end]).is_some();
        Ok(if is_whole { Found::Whole(Whole { payload, end, number: head.number }) } else { Found::Broken })
    }

    /// Moves on to the next whole frame behind a broken one, or to the journal's end.
    fn search(&mut self) -> Result<Behind, JournalError> {
        let broken = self.base_at();
        let (mut passed, mut checked) = (Passed::default(), 0);
        self.pass(1, &mut passed);
        loop {
            self.discard();
            let Some(found) = memmem::find(&self.buffer[self.next..], &MARK) else {
                // A mark may be cut by the end of what has been read.
                self.pass((self.buffer.len() + 1).saturating_sub(self.next + MARK.len()), &mut passed);
                if !self.fill(self.buffer.len() + 1)? {
                    self.pass(self.buffer.len() - self.next, &mut passed);
                    let end = broken + passed.length();
                    return Ok(Behind::Nothing { end, is_torn: passed.is_torn(broken) });
                }
                continue;
            };
            self.pass(found, &mut passed);
            if let Found::Whole(_) = self.frame_at(self.next)? {
                return Ok(Behind::Whole { at: self.base_at() });
            }
            checked += Head::read(&self.buffer[self.next..]).map_or(0, |head| head.payload as u64);
            if checked > SEARCH_LIMIT {
                return Err(JournalError::Hopeless { at: broken });
            }
            self.pass(1, &mut passed);
        }
    }

    fn pass(&mut self, count: usize, passed: &mut Passed) {
        passed.add(&self.buffer[self.next..self.next + count]);
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

/// Whether this is a journal, perhaps one whose first bytes are damaged.
pub fn is_journal(source: impl Read) -> bool {
    let mut reader = JournalReader::begin(source);
    if !reader.fill(MAGIC.len()).is_ok_and(|is_there| is_there) {
        return false;
    }
    let begin = &reader.buffer[..MAGIC.len()];
    // A cassette need not be looked through.
    let is_text = begin.trim_ascii_start().first().is_none_or(|first| *first == b'{');
    begin == MAGIC
        || matches!(reader.frame_at(BEGIN), Ok(Found::Whole(_)))
        || !is_text && matches!(reader.frame_behind_begin(), Ok(Some(_)))
}

/// Whether what a journal begins with may only be damaged. There never was a version 0: the file was cut off before it, and
/// its recorder went on.
const fn is_damaged_begin(error: &JournalError) -> bool {
    matches!(error, JournalError::NoJournal | JournalError::Version { found: 0 })
}

/// What is wrong where a whole frame stands that does not belong there.
fn misplaced(payload: &[u8], at: u64) -> JournalError {
    if is_frame(payload) { JournalError::Disordered { at } } else { JournalError::Unknown { at } }
}

/// What stands behind a broken frame.
enum Behind {
    /// A whole one, at this offset of the journal.
    Whole { at: u64 },
    /// None. The broken one ends here: behind it are only zeros, the room that a writer makes ahead.
    Nothing {
        end: u64,
        /// Whether its writer can have left it so.
        is_torn: bool,
    },
}

enum Found {
    Whole(Whole),
    /// The end of the journal.
    End,
    /// No whole frame.
    Broken,
}

/// A whole frame: offsets of the buffer.
#[derive(Clone, Copy)]
struct Whole {
    payload: usize,
    end: usize,
    number: Option<u32>,
}

#[cfg(test)]
mod tests;
