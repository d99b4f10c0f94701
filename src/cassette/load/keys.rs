//! The index of each key while a cassette is read.
//!
//! Of a key a number stands there, and not the text: a big cassette's first answer waits for all of its keys to be
//! compared with each other, and that takes as long as the memory that is looked at for it is far.

use super::super::model::Exchange;

/// Exchanges by their keys.
#[derive(Debug)]
pub(super) struct Keys<'e> {
    exchanges: &'e [Exchange],
    /// Each is free (0), or an exchange's number from 1 below the upper half of its key's hash. It stands in the first
    /// one that was free, from where the lower half leads.
    slots: Vec<u64>,
}

impl<'e> Keys<'e> {
    /// With room for the keys of these exchanges, none of which is in it yet.
    pub(super) fn of(exchanges: &'e [Exchange]) -> Self {
        // A quarter stays free, so that a search ends soon.
        let room = (exchanges.len() + exchanges.len() / 3 + 1).next_power_of_two();
        Self { exchanges, slots: vec![0; room] }
    }

    /// Takes in the key of an exchange; false where another one has it.
    pub(super) fn insert(&mut self, exchange: u32) -> bool {
        let (slot, entry) = self.search(&self.exchanges[exchange as usize].key);
        let is_new = self.slots[slot] == 0;
        if is_new {
            self.slots[slot] = entry | u64::from(exchange + 1);
        }
        is_new
    }

    /// The exchange with this key.
    pub(super) fn find(&self, key: &str) -> Option<u32> {
        (self.slots[self.search(key).0] as u32).checked_sub(1)
    }

    /// The slot in which a key stands or would stand, and the upper half of what it would be.
    fn search(&self, key: &str) -> (usize, u64) {
        let hash = hash(key.as_bytes());
        let (upper, mask) = (hash & !u64::from(u32::MAX), self.slots.len() - 1);
        let mut slot = hash as usize & mask;
        loop {
            let found = self.slots[slot];
            let is_it = || *self.exchanges[found as u32 as usize - 1].key == *key;
            if found == 0 || ((found ^ upper) >> 32 == 0 && is_it()) {
                return (slot, upper);
            }
            slot = (slot + 1) & mask;
        }
    }
}

/// Whoever writes a cassette chooses its keys, and gains nothing by making its own loading slow: so there is no secret
/// in this.
fn hash(key: &[u8]) -> u64 {
    let fold = |hash: u64, word: u64| {
        let product = u128::from(hash ^ word) * 0xd1b5_4a32_d192_ed03;
        product as u64 ^ (product >> 64) as u64
    };
    let (words, rest) = key.as_chunks();
    let hash = words
        .iter()
        .fold(key.len() as u64 ^ 0x9e37_79b9_7f4a_7c15, |hash, word| fold(hash, u64::from_le_bytes(*word)));
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    fold(fold(hash, u64::from_le_bytes(last)), 0xa076_1d64_78bd_642f)
}
