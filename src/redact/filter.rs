//! The first look at every byte of a message: can something begin here?
//!
//! Everything that is looked for has windows of four bytes that are seldom in ordinary traffic, one at an even and
//! one at an odd offset. So it is enough to look at every second place of a text: the four bytes there, with the
//! bit folded that tells small letters from capitals, are hashed into a table, and only where that says yes does
//! anybody look closer. A pass costs the same for ten windows as for thousands, and a secret met in traffic is
//! added in no time. (Automata that find many literals at once would have to be built anew for it; their vectorised
//! form takes 64 literals at most, and without it they were measured at a quarter of this speed.)

use std::hash::{BuildHasherDefault, Hasher};

/// Slots in each table, as a power of two.
const SIZE: u32 = 17;
const SLOTS: usize = 1 << SIZE;

/// How many bytes are looked at with one branch, and with the bytes behind that belong to their windows.
const BLOCK: usize = 32;
const READ: usize = BLOCK + Window::LENGTH - 2;

/// A bit for each window of a block, the highest for the first one.
type Hints = u32;
const FIRST_OF_BLOCK: Hints = 1 << (BLOCK / 2 - 1);

/// Four bytes with the case of letters folded, as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Window(u32);

impl Window {
    /// How many bytes a window has.
    pub(super) const LENGTH: usize = 4;

    pub(super) const fn new(bytes: [u8; Self::LENGTH]) -> Self {
        Self(u32::from_le_bytes(bytes) | 0x2020_2020)
    }

    /// The window at `at`.
    ///
    /// # Panics
    /// Panics where the text has no four bytes from there on.
    pub(super) fn at(text: &[u8], at: usize) -> Self {
        Self::new([text[at], text[at + 1], text[at + 2], text[at + 3]])
    }

    const fn slot(self, factor: u32) -> usize {
        (self.0.wrapping_mul(factor) >> (32 - SIZE)) as usize
    }
}

/// Which windows are looked for.
#[derive(Clone, Debug)]
pub(super) struct Filter {
    /// Asked for every window. Of bytes, as a byte is read and joined to others in one instruction.
    first: Box<[u8; SLOTS]>,
    /// Bits, asked where the first table says yes, by another hash: most of that is chance.
    second: Box<[u64; SLOTS / 64]>,
}

const FIRST: u32 = 0x9e37_79b1;
const SECOND: u32 = 0x85eb_ca77;

impl Filter {
    pub(super) fn new() -> Self {
        // From vectors: an array this large does not belong on the stack.
        let first = vec![0; SLOTS].into_boxed_slice().try_into().expect("as many slots");
        let second = vec![0; SLOTS / 64].into_boxed_slice().try_into().expect("as many slots");
        Self { first, second }
    }

    pub(super) fn add(&mut self, window: Window) {
        self.first[window.slot(FIRST)] = 1;
        let slot = window.slot(SECOND);
        self.second[slot / 64] |= 1 << (slot % 64);
    }

    /// The next even place from the even place `from` on whose window may be one of those looked for.
    pub(super) fn next(&self, text: &[u8], from: usize) -> Option<usize> {
        let mut at = from;
        while let Some(block) = text.get(at..).and_then(<[u8]>::first_chunk) {
            let hints = self.hints(block);
            if hints != 0
                && let Some(found) = self.find(block, hints)
            {
                return Some(at + found);
            }
            at += BLOCK;
        }
        let rest = text.get(at..).filter(|rest| rest.len() >= Window::LENGTH)?;
        let mut block = [0; READ];
        block[..rest.len()].copy_from_slice(rest);
        let windows = (rest.len() - Window::LENGTH) / 2 + 1;
        let hints = self.hints(&block) & !((2 * FIRST_OF_BLOCK - 1) >> windows);
        self.find(&block, hints).map(|found| at + found)
    }

    /// Which of a block's windows the first table knows, the first one highest: five instructions for each of them.
    /// (Folding the whole block first spares one, but what was just written had to be waited for: it took longer.)
    #[inline]
    fn hints(&self, block: &[u8; READ]) -> Hints {
        let mut hints = 0;
        for at in (0..BLOCK).step_by(2) {
            hints = 2 * hints + Hints::from(self.first[Window::at(block, at).slot(FIRST)]);
        }
        hints
    }

    /// Where in a block a window may be one of those looked for, of those that the first table knows. Not inlined: what
    /// it reads would be kept at hand for it in every block.
    #[cold]
    #[inline(never)]
    fn find(&self, block: &[u8; READ], mut hints: Hints) -> Option<usize> {
        while hints != 0 {
            let before = hints.leading_zeros() - FIRST_OF_BLOCK.leading_zeros();
            let at = 2 * before as usize;
            let slot = Window::at(block, at).slot(SECOND);
            if self.second[slot / 64] >> (slot % 64) & 1 != 0 {
                return Some(at);
            }
            hints &= !(FIRST_OF_BLOCK >> before);
        }
        None
    }
}

/// Hashes windows for maps; windows come from our tables and from secrets, and a lookup has to cost next to nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WindowHasher(u64);

/// Builds [`WindowHasher`]s.
pub(super) type WindowHash = BuildHasherDefault<WindowHasher>;

impl Hasher for WindowHasher {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u32(byte.into());
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.0 = (self.0.rotate_left(32) ^ u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_found_at_every_even_place_and_in_either_case() {
        let mut filter = Filter::new();
        filter.add(Window::new(*b"ecre"));
        for length in 4..110 {
            for at in (0..=length - 4).step_by(2) {
                for window in [b"ecre", b"ECRE", b"eCrE"] {
                    let mut text = vec![b'.'; length];
                    text[at..at + 4].copy_from_slice(window);
                    assert_eq!(filter.next(&text, 0), Some(at), "{at} of {length}");
                    assert_eq!(filter.next(&text, at + 2), None);
                }
            }
        }
        assert_eq!(filter.next(b"ecr", 0), None);
        assert_eq!(filter.next(b"", 0), None);
        assert_eq!(filter.next(b"ecre", 10), None);
    }

    #[test]
    fn no_window_is_passed_over_however_many_stand_in_a_block() {
        let mut state = 1u32;
        let mut letters = |count: usize| -> Vec<u8> {
            let letter = || {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                b"aBcdeF-9"[(state >> 29) as usize]
            };
            std::iter::repeat_with(letter).take(count).collect()
        };
        // Nearly all blocks have several, and what chance takes for one.
        let wanted: Vec<Window> = (0..400).map(|_| Window::at(&letters(4), 0)).collect();
        let mut filter = Filter::new();
        wanted.iter().for_each(|window| filter.add(*window));
        for length in 0..200 {
            let text = letters(length);
            let mut found = Vec::new();
            while let Some(at) = filter.next(&text, found.last().map_or(0, |last| last + 2)) {
                found.push(at);
            }
            let places = (0..(length + 1).saturating_sub(Window::LENGTH)).step_by(2);
            let missing = |at: &usize| wanted.contains(&Window::at(&text, *at)) && !found.contains(at);
            assert_eq!(places.clone().find(missing), None, "{length}");
            assert!(found.iter().all(|at| places.clone().any(|place| place == *at)), "{found:?} of {length}");
            assert!(length < 100 || !found.is_empty());
        }
    }
}
