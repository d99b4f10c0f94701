//! Maps by numbers of ours: nobody outside chooses them, so they need no hash that withstands anybody.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
};

/// A map by lanes, exchanges or digests.
pub(super) type ByNumber<K, V> = HashMap<K, V, BuildHasherDefault<Scattered>>;

/// Scatters numbers that follow each other.
#[derive(Debug, Default)]
pub(super) struct Scattered(u64);

impl Hasher for Scattered {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
