//! Tokens that are known by their look, in a spelling that hides it.

use super::{
    address::decoded,
    secrets::{from_hex, sextets, without_padding},
    shapes::is_look,
};

/// Longer texts are no spellings of such tokens.
const LONGEST: usize = 16 << 10;

/// Whether all of a text is a spelling of a token with a look: percent-encoded, in hexadecimal digits, or the base64
/// digits that it decides, wherever in a longer text it stood.
pub(crate) fn is_disguised_look(text: &[u8]) -> bool {
    if text.len() > LONGEST {
        return false;
    }
    text.contains(&b'%') && is_look(&decoded(text))
        || from_hex(text).is_some_and(|value| is_look(&value))
        || sextets(without_padding(text))
            .is_some_and(|sextets| [0, 2, 4].iter().any(|&bit| is_look_from(&sextets, bit)))
}

/// Whether these digits of base64 are those that a token decides which began so many bits before the first of them.
fn is_look_from(sextets: &[u8], bit: usize) -> bool {
    let bits = bit + 6 * sextets.len();
    let missing = bits.next_multiple_of(8) - bits;
    // Digits that a value decides in part only are left out: of six bits at most five are missing.
    if missing > 5 {
        return false;
    }
    (0..1_u8 << bit).any(|before| {
        (0..1_u8 << missing).any(|behind| {
            let value = bytes(before, bit, sextets, behind, missing);
            is_look(&value)
        })
    })
}

/// The bytes of these bits: so many that are guessed, the digits', and so many that are guessed.
fn bytes(before: u8, bit: usize, sextets: &[u8], behind: u8, missing: usize) -> Vec<u8> {
    let (mut value, mut room, mut held) = (Vec::new(), u32::from(before), bit);
    let digits = sextets.iter().map(|digit| (u32::from(*digit), 6));
    for (bits, count) in digits.chain([(u32::from(behind), missing)]) {
        room = room << count | bits;
        held += count;
        if held >= 8 {
            held -= 8;
            value.push((room >> held) as u8);
            room &= (1 << held) - 1;
        }
    }
    value
}
