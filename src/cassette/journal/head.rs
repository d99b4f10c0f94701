//! What a frame begins with: by it a reader knows how long the frame is, whether it is whole, and which one it is.

use super::ROOM_STEP;

/// What each frame begins with: bytes that no UTF-8 text holds. One more behind them says what its head has.
pub(super) const MARK: [u8; 3] = [0xf7, 0xa5, 0xfe];
/// Length and sum; frames of version 1.
const PLAIN: u8 = 0xc3;
/// Length, number and sum.
const NUMBERED: u8 = 0xc4;
/// Length of a mark with what stands behind it.
pub(super) const MARK_LENGTH: usize = MARK.len() + 1;
const ZEROS: [u8; 4096] = [0; 4096];
/// Length of the heads that are written.
pub(super) const HEAD: usize = MARK_LENGTH + 12;
/// The longest payload: a length beyond it is damage, so that no length makes a reader allocate without end.
pub(super) const MAX_PAYLOAD: usize = 1 << 30;

/// The head of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// Its own length.
    pub(super) length: usize,
    /// That of the payload.
    pub(super) payload: usize,
    /// Which frame of the journal it is; version 1 did not say.
    pub(super) number: Option<u32>,
    sum: u32,
}

impl Head {
    /// Length of the head that begins with this mark; none where it is no mark.
    pub(super) fn length(mark: &[u8]) -> Option<usize> {
        match *mark.get(..MARK_LENGTH)?.strip_prefix(&MARK)? {
            [PLAIN] => Some(HEAD - 4),
            [NUMBERED] => Some(HEAD),
            _ => None,
        }
    }

    /// Reads a head; none where it is the head of no frame.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let length = Self::length(bytes)?;
        let at = |at| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let payload = at(MARK_LENGTH)? as usize;
        let number = if length == HEAD { Some(at(MARK_LENGTH + 4)?) } else { None };
        (payload <= MAX_PAYLOAD).then_some(Self { length, payload, number, sum: at(length - 4)? })
    }
}

/// Appends a frame with this number and the payload that `push` appends.
pub(super) fn push(number: u32, out: &mut Vec<u8>, push: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&MARK);
    out.push(NUMBERED);
    out.extend_from_slice(&[0; HEAD - MARK_LENGTH]);
    push(out);
    let (head, payload) = out[start..].split_at_mut(HEAD);
    let length = u32::try_from(payload.len()).expect("messages are cut to what a frame holds");
    head[4..8].copy_from_slice(&length.to_le_bytes());
    head[8..12].copy_from_slice(&number.to_le_bytes());
    let sum = sum(&head[..HEAD], payload);
    head[12..].copy_from_slice(&sum.to_le_bytes());
}

/// The sum of what a head says and of the payload.
fn sum(head: &[u8], payload: &[u8]) -> u32 {
    let mut hash = crc32fast::Hasher::new();
    hash.update(&head[MARK_LENGTH..head.len() - 4]);
    hash.update(payload);
    hash.finalize()
}

/// The payload of these bytes where they are one frame, whole and undamaged.
pub(super) fn payload_of(frame: &[u8]) -> Option<&[u8]> {
    let head = Head::read(frame)?;
    let (bytes, payload) = frame.split_at(head.length);
    (payload.len() == head.payload && head.sum == sum(bytes, payload)).then_some(payload)
}

/// What is passed from the beginning of a broken frame on, in search of a whole one.
#[derive(Debug, Default)]
pub(super) struct Passed {
    head: Vec<u8>,
    /// Of what stands behind a head.
    sum: crc32fast::Hasher,
    /// How much there is up to the last byte that is no zero.
    length: u64,
    /// How many zeros stand behind that.
    zeros: u64,
}

impl Passed {
    pub(super) fn add(&mut self, bytes: &[u8]) {
        let Some(last) = bytes.iter().rposition(|byte| *byte != 0) else {
            self.zeros += bytes.len() as u64;
            return;
        };
        let mut zeros = std::mem::replace(&mut self.zeros, (bytes.len() - last - 1) as u64);
        while zeros > 0 {
            let some = zeros.min(ZEROS.len() as u64);
            self.push(&ZEROS[..some as usize]);
            zeros -= some;
        }
        self.push(&bytes[..=last]);
    }

    fn push(&mut self, bytes: &[u8]) {
        self.length += bytes.len() as u64;
        let (head, payload) = bytes.split_at(bytes.len().min(HEAD - self.head.len()));
        self.head.extend_from_slice(head);
        self.sum.update(payload);
    }

    /// How much there is before the zeros at the end.
    pub(super) const fn length(&self) -> u64 {
        self.length
    }

    /// Whether this can be the beginning of what a writer was about to append at `at` of a file when it was killed: what is
    /// there is right then, as far as it goes, and behind it is the file's end, or zeros up to there.
    pub(super) fn is_torn(&self, at: u64) -> bool {
        let mark = &self.head[..self.head.len().min(MARK_LENGTH)];
        let is_mark = mark.iter().zip(MARK).all(|(byte, of_mark)| *byte == of_mark);
        if !is_mark || mark.len() < MARK_LENGTH {
            return is_mark;
        }
        let Some(length) = Head::length(mark) else { return false };
        if self.length < length as u64 {
            return true;
        }
        let Some(head) = Head::read(&self.head) else { return false };
        let (needs, is_there) = ((length + head.payload) as u64, self.length + self.zeros);
        // Room that a writer made ends at a border: zeros up to another place are the frame's own.
        let is_room = (at + is_there).is_multiple_of(ROOM_STEP);
        let own_zeros = if is_room { 0 } else { self.zeros };
        let is_all_there = is_there == needs && !is_room;
        self.length < needs && !is_all_there && !self.is_whole_but_for_its_length(head, own_zeros)
    }

    /// Whether the sum fits what is there, and the length alone is damaged, which makes the file too short.
    fn is_whole_but_for_its_length(&self, head: Head, zeros: u64) -> bool {
        let payload = self.length + zeros - head.length as u64;
        let (Some(_), Ok(length), true) = (head.number, u32::try_from(payload), zeros <= ZEROS.len() as u64)
        else {
            return false;
        };
        let mut hash = crc32fast::Hasher::new();
        hash.update(&length.to_le_bytes());
        hash.update(&self.head[MARK_LENGTH + 4..HEAD - 4]);
        hash.combine(&self.sum);
        hash.update(&ZEROS[..zeros as usize]);
        hash.finalize() == head.sum
    }
}
