//! How values are spelled, and where they stand so.

use std::borrow::Cow;

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

/// How a text spells the signs of a value whose letters and digits stand as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Signs {
    /// As they are or percent-encoded, a blank as `+` too. A `%` of the value may stand for itself or begin an escape:
    /// either all of them do, or none.
    Percent { always: bool },
    /// As they are or as HTML has them: `&amp;`, `&#39;`.
    Entities,
    /// As they are or behind a backslash: in shells and programs.
    Slashed,
    /// This quote twice, as SQL and YAML have it.
    Doubled(u8),
}

impl Signs {
    const ALL: [Self; 6] = [
        Self::Percent { always: true },
        Self::Percent { always: false },
        Self::Entities,
        Self::Slashed,
        Self::Doubled(b'\''),
        Self::Doubled(b'"'),
    ];

    /// Whether this says anything of the value that the first of all do not say.
    fn may_spell(self, value: &[u8]) -> bool {
        match self {
            Self::Percent { .. } => true,
            Self::Entities | Self::Slashed => !value.iter().all(u8::is_ascii_alphanumeric),
            Self::Doubled(quote) => value.contains(&quote),
        }
    }

    /// How long this byte is that the text begins with, if it does.
    fn begins(self, text: &[u8], byte: u8) -> Option<usize> {
        let is_plain = text.first() == Some(&byte);
        match self {
            Self::Percent { .. } if text.get(..3).and_then(percent_byte) == Some(byte) => Some(3),
            Self::Percent { always } if is_plain && !(always && byte == b'%') => Some(1),
            Self::Percent { .. } if is_blank_in_forms(byte, text.first()) => Some(1),
            Self::Entities => match entity(text) {
                Some((named, length)) if named == byte => Some(length),
                _ => (is_plain && byte != b'&').then_some(1),
            },
            Self::Slashed if !byte.is_ascii_alphanumeric() && text.starts_with(&[b'\\', byte]) => Some(2),
            Self::Slashed => (is_plain && byte != b'\\').then_some(1),
            Self::Doubled(quote) if byte == quote => text.starts_with(&[quote; 2]).then_some(2),
            Self::Doubled(_) => is_plain.then_some(1),
            Self::Percent { .. } => None,
        }
    }

    /// The same of a text's end.
    fn ends(self, text: &[u8], byte: u8) -> Option<usize> {
        let longest = match self {
            Self::Percent { .. } => 3,
            Self::Entities if text.last() == Some(&b';') => LONGEST_ENTITY,
            Self::Entities => 1,
            Self::Slashed | Self::Doubled(_) => 2,
        };
        let is_it = |length: &usize| self.begins(&text[text.len() - length..], byte) == Some(*length);
        (1..=longest.min(text.len())).rev().find(is_it)
    }
}

/// Forms spell a blank as `+`, and whoever reads `+` in one may take it for itself.
fn is_blank_in_forms(byte: u8, found: Option<&u8>) -> bool {
    matches!((byte, found), (b' ', Some(b'+')) | (b'+', Some(b' ')))
}

/// `&quot;` and `&#x0026;` are as long as it gets.
const LONGEST_ENTITY: usize = 8;

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

/// What a text of HTML or XML says.
pub(in crate::redact) fn without_entities(text: &[u8]) -> Cow<'_, [u8]> {
    let Some(first) = memchr::memchr(b'&', text) else { return Cow::Borrowed(text) };
    let mut said = text[..first].to_vec();
    let mut rest = &text[first..];
    while let Some(&byte) = rest.first() {
        let (sign, length) = entity(rest).unwrap_or((byte, 1));
        said.push(sign);
        rest = &rest[length..];
    }
    Cow::Owned(said)
}

/// The value with its byte at `offset` standing at `at`, its signs spelled in one of the ways that texts spell them.
pub(super) fn plain(value: &[u8], text: &[u8], at: usize, offset: usize, from: usize) -> Option<Span> {
    Signs::ALL.into_iter().filter(|signs| signs.may_spell(value)).find_map(|signs| {
        let (mut start, mut end, mut equal) = (at, at, 0);
        for &byte in value[..offset].iter().rev() {
            let Some(length) = signs.ends(&text[from.min(start)..start], byte) else { break };
            start -= length;
            equal += 1;
        }
        for &byte in &value[offset..] {
            let Some(length) = signs.begins(&text[end..], byte) else { break };
            end += length;
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

/// What a hexadecimal digit says.
pub(super) fn digit(byte: u8) -> Option<u8> {
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
