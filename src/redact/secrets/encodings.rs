//! How values are spelled, and where they stand so.

use super::spellings::Spelling;
use crate::wire::Span;

/// So much of a value in a row is as good as the whole.
pub(super) const LONG_PART: usize = 256;

/// The offset of five bytes in a row that encoders leave alone; the last ones, as secrets of a kind begin alike.
pub(super) fn sturdy_five(text: &[u8]) -> Option<usize> {
    text.windows(5).rposition(|five| five.iter().all(u8::is_ascii_alphanumeric))
}

/// `&quot;` and `&#x0026;` are as long as it gets.
pub(super) const LONGEST_ENTITY: usize = 8;

/// The sign that an entity at the begin of a text names, and how long that is.
pub(crate) fn entity(text: &[u8]) -> Option<(u8, usize)> {
    const NAMES: [(&[u8], u8); 5] =
        [(b"amp", b'&'), (b"lt", b'<'), (b"gt", b'>'), (b"quot", b'"'), (b"apos", b'\'')];
    let name = text.strip_prefix(b"&")?;
    let name = &name[..name.iter().take(LONGEST_ENTITY - 1).position(|byte| *byte == b';')?];
    let named = match name {
        [b'#', b'x' | b'X', digits @ ..] => u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?,
        [b'#', digits @ ..] => std::str::from_utf8(digits).ok()?.parse().ok()?,
        name => NAMES.iter().find(|(known, _)| *known == name)?.1,
    };
    named.is_ascii().then_some((named, name.len() + 2))
}

/// The value with its byte at `offset` standing at `at`, its signs spelled in one of the ways that texts spell them:
/// the one in which it is longest.
pub(super) fn plain(value: &[u8], text: &[u8], at: usize, offset: usize, from: usize) -> Option<Span> {
    let spellings = Spelling::ALL.into_iter().filter(|spelling| spelling.may_spell(value));
    let spans = spellings.filter_map(|spelling| {
        let (mut start, mut end, mut equal) = (at, at, 0);
        for &byte in value[..offset].iter().rev() {
            let Some(length) = spelling.ends(&text[from.min(start)..start], byte) else { break };
            start -= length;
            equal += 1;
        }
        for &byte in &value[offset..] {
            let Some(length) = spelling.begins(&text[end..], byte) else { break };
            end += length;
            equal += 1;
        }
        is_enough(equal, value.len()).then(|| Span::new(start, end))
    });
    spans.max_by_key(|span| span.len())
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
pub(super) fn percent_byte(escape: &[u8]) -> Option<u8> {
    match escape {
        [b'%', high, low] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    }
}

/// What a hexadecimal digit says.
pub(super) fn digit(byte: u8) -> Option<u8> {
    (byte as char).to_digit(16).map(|digit| digit as u8)
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
