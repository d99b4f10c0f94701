//! Memory that is read soon, fetched while other work is done.
//!
//! A big cassette does not fit into a processor's caches, and what answers a request stands in several places of it.
//! To wait for one after the other took as long as half of all else that an answer takes.

use std::ptr;

/// A line of the caches on the machines that count.
const LINE: usize = 64;

/// More of one value is not fetched: once it is read, the processor itself sees what follows.
const MOST: usize = 8 * LINE;

/// Begins to fetch the memory in which a value stands. This is a hint: nothing waits for it, and where the processor
/// takes no such hints nothing is done.
#[inline]
pub(crate) fn fetch<T: ?Sized>(value: &T) {
    let (start, length) = (ptr::from_ref(value).cast::<u8>(), size_of_val(value).min(MOST));
    for at in (0..length).step_by(LINE) {
        hint(start.wrapping_add(at));
    }
    if length > 0 {
        hint(start.wrapping_add(length - 1));
    }
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[expect(unsafe_code, reason = "the instruction takes a bare address")]
fn hint(address: *const u8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

    // SAFETY: the instruction reads nothing that the program could see, and no address is wrong for it.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
}

#[cfg(not(target_arch = "x86_64"))]
const fn hint(_: *const u8) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_any_size_stay_as_they_are() {
        for length in [0, 1, LINE, LINE + 1, MOST, 2 * MOST] {
            let value = vec![7u8; length];
            fetch(&value[..]);
            assert_eq!(value, vec![7; length]);
        }
        fetch(&());
    }
}
