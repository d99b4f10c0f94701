//! How values are spelled, and where they stand so.

use crate::wire::Span;

/// So much of a value in a row is as good as the whole.
pub(super) const LONG_PART: usize = 256;

/// Which signs encoders leave alone beside letters and digits: none; RFC 3986; JavaScript's components; paths. (The
/// first is the encoder that leaves nothing alone.) Only values without five letters or digits in a row need them
/// all, as the others are found by those.
pub(super) const SPARED: [&[u8]; 6] = [b"", b"", b"-_.~", b"-_.~!*'()", b"-_.~!*'()/", b"-_.~!$&'()*+,;=:@/"];

/// The offset of five bytes in a row that encoders leave alone; the last ones, as secrets of a kind begin alike.
pub(super) fn sturdy_five(text: &[u8]) -> Option<usize> {
    text.windows(5).rposition(|five| five.iter().all(u8::is_ascii_alphanumeric))
}

/// The value with its byte at `offset` standing at `at`: as it is, or partly percent-encoded.
pub(super) fn plain(value: &[u8], text: &[u8], at: usize, offset: usize, from: usize) -> Option<Span> {
    // A `%` of the value may stand for itself or begin an escape: either all of them do, or none.
    let percents = [true, false];
    percents.into_iter().find_map(|encoded| {
        let literal = |byte: u8| byte != b'%' || !encoded;
        let (mut start, mut end, mut equal) = (at, at, 0);
        for &byte in value[..offset].iter().rev() {
            start = match start.checked_sub(3).map(|escape| &text[escape..start]) {
                Some(escape) if percent_byte(escape) == Some(byte) => start - 3,
                _ if start > from && text[start - 1] == byte && literal(byte) => start - 1,
                _ => break,
            };
            equal += 1;
            if start <= from {
                break;
            }
        }
        for &byte in &value[offset..] {
            end = match text.get(end) {
                Some(&next) if next == byte && literal(byte) => end + 1,
                Some(b'%') if text.get(end..end + 3).and_then(percent_byte) == Some(byte) => end + 3,
                _ => break,
            };
            equal += 1;
        }
        is_enough(equal, value.len()).then(|| Span::new(start, end))
    })
}

/// Whether so many bytes (or digits, or signs) of a form in a row are as good as the whole form. With a bound, a text
/// that repeats the beginning of a long secret costs no more than any other.
const fn is_enough(equal: usize, all: usize) -> bool {
    equal == all || equal >= LONG_PART
}

/// Where a form stands in a text that begins so: all of it, or enough.
pub(super) fn forward(
    text: &[u8],
    start: Option<usize>,
    form: impl Iterator<Item = u8>,
    equal: impl Fn(u8, u8) -> bool,
) -> Option<Span> {
    let start = start?;
    let mut end = start;
    for byte in form {
        match text.get(end) {
            Some(&found) if equal(byte, found) => end += 1,
            _ if end - start >= LONG_PART => break,
            _ => return None,
        }
    }
    Some(Span::new(start, end))
}

/// The byte that `%xx` stands for.
fn percent_byte(escape: &[u8]) -> Option<u8> {
    match escape {
        [b'%', high, low] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    }
}

fn digit(byte: u8) -> Option<u8> {
    (byte as char).to_digit(16).map(|digit| digit as u8)
}

/// The value as an encoder writes it.
pub(super) fn percent_encoded(value: &[u8], spared: usize) -> impl Iterator<Item = u8> + '_ {
    let plain =
        move |byte: u8| spared > 0 && (byte.is_ascii_alphanumeric() || SPARED[spared].contains(&byte));
    value.iter().flat_map(move |&byte| {
        let (spelled, length) = if plain(byte) {
            ([byte, 0, 0], 1)
        } else {
            ([b'%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]], 3)
        };
        spelled.into_iter().take(length)
    })
}

pub(super) fn hex(value: &[u8]) -> impl Iterator<Item = u8> + '_ {
    value.iter().flat_map(|byte| [HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]])
}

const HEX: &[u8; 16] = b"0123456789abcdef";

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The base64 digits that the value alone decides, from one of them on; the first begins with this bit of the value.
pub(super) fn base64(value: &[u8], bit: u8, from: usize) -> impl Iterator<Item = u8> + '_ {
    let first = usize::from(bit);
    (from..(value.len() * 8 - first) / 6).map(move |nth| {
        let at = first + nth * 6;
        let pair = u16::from(value[at / 8]) << 8 | u16::from(value.get(at / 8 + 1).copied().unwrap_or(0));
        DIGITS[usize::from(pair >> (10 - at % 8) & 0x3f)]
    })
}

/// Base64 and base64url differ in two signs.
pub(super) const fn is_base64_digit(digit: u8, found: u8) -> bool {
    digit == found || matches!((digit, found), (b'+', b'-') | (b'/', b'_'))
}
