//! How texts spell the signs of a value whose letters and digits stand as they are: one line for each way, by which it is
//! read, looked for, and begins.

use std::borrow::Cow;

use super::encodings::{LONGEST_ENTITY, digit, entity, percent_byte};

/// A way to spell values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::redact) enum Spelling {
    /// As they are.
    Plain,
    /// Percent-encoded.
    Percent,
    /// The same in forms, where a blank is `+`; and whoever reads that may take it for itself.
    Form,
    /// As HTML and XML have them: `&amp;`, `&#39;`.
    Entities,
    /// Behind a backslash: in shells and programs.
    Slashed,
    /// As programs have them, and shells in `$'…'`: `\n`, `\'`, `\x27`, `\047`.
    Escaped,
    /// In a shell's single quotes, which end for one of them: `'\''`, `'"'"'`.
    Shell,
    /// This quote twice, as SQL and YAML have it.
    Doubled(u8),
}

impl Spelling {
    pub(in crate::redact) const ALL: [Self; 9] = [
        Self::Plain,
        Self::Percent,
        Self::Form,
        Self::Entities,
        Self::Slashed,
        Self::Escaped,
        Self::Shell,
        Self::Doubled(b'\''),
        Self::Doubled(b'"'),
    ];

    /// Whether this may spell a value otherwise than it is.
    pub(super) fn may_spell(self, value: &[u8]) -> bool {
        match self {
            // Any of its bytes may be encoded.
            Self::Plain | Self::Percent => true,
            Self::Form => value.iter().any(|byte| matches!(byte, b' ' | b'+')),
            Self::Entities | Self::Slashed | Self::Escaped => !value.iter().all(u8::is_ascii_alphanumeric),
            Self::Shell => value.contains(&b'\''),
            Self::Doubled(quote) => value.contains(&quote),
        }
    }

    /// The byte that the begin of a text spells, and how long that is; none of an empty text.
    fn read(self, text: &[u8]) -> Option<(u8, usize)> {
        let spelled = match self {
            Self::Plain => None,
            Self::Percent => text.get(..3).and_then(percent_byte).map(|byte| (byte, 3)),
            Self::Form if text.first() == Some(&b'+') => Some((b' ', 1)),
            Self::Form => Self::Percent.read(text),
            Self::Entities => entity(text),
            Self::Slashed => match text {
                [b'\\', sign, ..] if !sign.is_ascii_alphanumeric() => Some((*sign, 2)),
                _ => None,
            },
            Self::Escaped => text.strip_prefix(b"\\").and_then(escaped),
            Self::Shell => {
                SHELL.iter().find(|quote| text.starts_with(quote)).map(|quote| (b'\'', quote.len()))
            }
            Self::Doubled(quote) => text.starts_with(&[quote; 2]).then_some((quote, 2)),
        };
        spelled.or_else(|| text.first().map(|byte| (*byte, 1)))
    }

    /// How long this byte is that the text begins with, if it does.
    pub(super) fn begins(self, text: &[u8], byte: u8) -> Option<usize> {
        let (read, length) = self.read(text)?;
        let blank = |byte| if byte == b'+' { b' ' } else { byte };
        let is_it = read == byte || self == Self::Form && blank(read) == blank(byte);
        is_it.then_some(length)
    }

    /// The same of a text's end.
    pub(super) fn ends(self, text: &[u8], byte: u8) -> Option<usize> {
        let longest = match self {
            Self::Plain => 1,
            Self::Percent | Self::Form => 3,
            Self::Entities if text.last() == Some(&b';') => LONGEST_ENTITY,
            Self::Entities => 1,
            Self::Slashed | Self::Doubled(_) => 2,
            Self::Escaped => LONGEST_ESCAPE,
            Self::Shell => SHELL[0].len(),
        };
        let is_it = |length: &usize| self.begins(&text[text.len() - length..], byte) == Some(*length);
        (1..=longest.min(text.len())).rev().find(is_it)
    }

    /// What a text says that is spelled so.
    pub(in crate::redact) fn said(self, text: &[u8]) -> Cow<'_, [u8]> {
        let sign = match self {
            Self::Plain => return Cow::Borrowed(text),
            Self::Percent => b'%',
            Self::Form => b'+',
            Self::Entities => b'&',
            Self::Slashed | Self::Escaped => b'\\',
            Self::Shell => b'\'',
            Self::Doubled(quote) => quote,
        };
        if !text.contains(&sign) {
            return Cow::Borrowed(text);
        }
        let (mut said, mut rest) = (Vec::with_capacity(text.len()), text);
        while let Some((byte, length)) = self.read(rest) {
            said.push(byte);
            rest = &rest[length..];
        }
        Cow::Owned(said)
    }
}

/// How shells spell a single quote within such, the longest first.
const SHELL: [&[u8]; 2] = [b"'\"'\"'", b"'\\''"];

/// `\u0027`.
const LONGEST_ESCAPE: usize = 6;

/// The byte that an escape says, by what follows its backslash, and how long it is with that.
fn escaped(behind: &[u8]) -> Option<(u8, usize)> {
    let number = |from: usize, most: usize, radix: u32| {
        let digits =
            behind[from..].iter().take(most).take_while(|byte| (**byte as char).is_digit(radix)).count();
        let text = std::str::from_utf8(&behind[from..from + digits]).ok()?;
        let byte = u8::from_str_radix(text, radix).ok().filter(|_| digits > 0)?;
        Some((byte, 1 + from + digits))
    };
    let said = match *behind.first()? {
        b'a' => 0x07,
        b'b' => 0x08,
        b'e' | b'E' => 0x1b,
        b'f' => b'\x0c',
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'v' => 0x0b,
        b'x' => return number(1, 2, 16),
        b'u' if behind.starts_with(b"u00") && behind.get(3).copied().and_then(digit)? < 8 => {
            return number(1, 4, 16);
        }
        b'0'..=b'7' => return number(0, 3, 8),
        sign if sign.is_ascii_alphanumeric() => return None,
        sign => sign,
    };
    Some((said, 2))
}

/// Which signs encoders of addresses leave alone beside letters and digits: none; RFC 3986; JavaScript's components;
/// paths.
const SPARED: [&[u8]; 5] = [b"", b"-_.~", b"-_.~!*'()", b"-_.~!*'()/", b"-_.~!$&'()*+,;=:@/"];

/// Which signs stand as they are where bash puts a backslash before the others, and before which programs do.
const BARE: &[u8] = b"-_.~@%+=:,/";
const QUOTED: &[&[u8]] = &[b"\"\\", b"'\\", b"\"\\$`", b"\"\\$`!", b"'\"\\"];

/// How encoders for HTML spell signs; what is not here stands as it is.
const ENTITIES: [&[(u8, &str)]; 5] = [
    &[(b'&', "&amp;"), (b'<', "&lt;"), (b'>', "&gt;")],
    &[(b'&', "&amp;"), (b'<', "&lt;"), (b'>', "&gt;"), (b'"', "&quot;"), (b'\'', "&#x27;")],
    &[(b'&', "&amp;"), (b'<', "&lt;"), (b'>', "&gt;"), (b'"', "&quot;"), (b'\'', "&#39;")],
    &[(b'&', "&amp;"), (b'<', "&lt;"), (b'>', "&gt;"), (b'"', "&#34;"), (b'\'', "&#39;")],
    &[(b'&', "&amp;"), (b'<', "&lt;"), (b'>', "&gt;"), (b'"', "&quot;"), (b'\'', "&apos;")],
];

/// How so many bytes begin in which programs spell a value, once for each way that they spell it: a value without letters
/// and digits in a row is looked for by these.
pub(super) fn beginnings(value: &[u8], length: usize) -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = Vec::new();
    let mut add = |spell: &dyn Fn(u8, &mut Vec<u8>)| {
        let mut begin = Vec::with_capacity(length + 8);
        for &byte in value {
            if begin.len() >= length {
                break;
            }
            spell(byte, &mut begin);
        }
        begin.truncate(length);
        if begin.len() == length && !all.contains(&begin) {
            all.push(begin);
        }
    };
    let percent = |byte: u8, begin: &mut Vec<u8>| begin.extend_from_slice(format!("%{byte:02X}").as_bytes());
    add(&|byte, begin| begin.push(byte));
    add(&percent);
    for spared in SPARED {
        let stands = |byte: u8| byte.is_ascii_alphanumeric() || spared.contains(&byte);
        add(&|byte, begin| if stands(byte) { begin.push(byte) } else { percent(byte, begin) });
        add(&|byte, begin| match byte {
            b' ' => begin.push(b'+'),
            byte if stands(byte) => begin.push(byte),
            byte => percent(byte, begin),
        });
    }
    add(&|byte, begin| begin.push(if byte == b' ' { b'+' } else { byte }));
    add(&|byte, begin| begin.push(if byte == b'+' { b' ' } else { byte }));
    for entities in ENTITIES {
        add(&|byte, begin| match entities.iter().find(|(sign, _)| *sign == byte) {
            Some((_, entity)) => begin.extend_from_slice(entity.as_bytes()),
            None => begin.push(byte),
        });
    }
    let slashed = |is_marked: &dyn Fn(u8) -> bool, byte: u8, begin: &mut Vec<u8>| {
        begin.extend(is_marked(byte).then_some(b'\\'));
        begin.push(byte);
    };
    let is_sign = |byte: u8| byte.is_ascii() && !byte.is_ascii_alphanumeric();
    add(&|byte, begin| slashed(&is_sign, byte, begin));
    add(&|byte, begin| slashed(&|byte| is_sign(byte) && !BARE.contains(&byte), byte, begin));
    for signs in QUOTED {
        add(&|byte, begin| slashed(&|byte| signs.contains(&byte), byte, begin));
        add(&|byte, begin| match byte {
            b'\n' => begin.extend_from_slice(b"\\n"),
            b'\t' => begin.extend_from_slice(b"\\t"),
            b'\r' => begin.extend_from_slice(b"\\r"),
            byte if byte >= 0x80 => begin.extend_from_slice(format!("\\{byte:03o}").as_bytes()),
            byte => slashed(&|byte| signs.contains(&byte), byte, begin),
        });
    }
    let quotes: [(u8, &[u8]); 4] = [(b'\'', SHELL[0]), (b'\'', SHELL[1]), (b'\'', b"''"), (b'"', b"\"\"")];
    for (quote, spelled) in quotes {
        add(&|byte, begin| if byte == quote { begin.extend_from_slice(spelled) } else { begin.push(byte) });
    }
    all
}
