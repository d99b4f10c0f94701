//! A value that is looked for, and the forms in which it is.

use super::encodings::{LONG_PART, base64};

/// A value that is looked for.
#[derive(Clone, Debug)]
pub(in crate::redact) struct Value {
    /// The value itself.
    pub(in crate::redact) bytes: Box<[u8]>,
    /// The kind it was met as.
    pub(in crate::redact) kind: &'static str,
    /// Named by an option: it is removed wherever it stands.
    pub(in crate::redact) named: bool,
    /// Parts of it are placeholders of values that were known before it.
    pub(super) is_cut: bool,
    /// It is sent in a header.
    pub(super) is_sent: bool,
    /// It may be a word: one met in a body counts only where it is a whole one.
    pub(super) is_word: bool,
    /// It is a number: it counts only where it is a whole one, as longer ones count and measure something else.
    pub(super) is_number: bool,
    /// JSON's escapes can stand in it, or in its base64 from this bit on (half of 0, 2, 4).
    pub(super) is_breakable: bool,
    pub(super) is_base64_breakable: [bool; 3],
}

impl Value {
    /// Whether it is such a word as members are called: of letters, with `_` and `-` between.
    pub(in crate::redact) fn may_be_a_name(&self) -> bool {
        let is_wordy = |byte: &u8| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'-');
        self.bytes.len() < LONG_PART && self.bytes.iter().all(is_wordy)
    }

    pub(super) fn new(bytes: &[u8], kind: &'static str, named: bool) -> Self {
        let simple = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~');
        Self {
            bytes: bytes.into(),
            kind,
            named,
            is_cut: false,
            is_sent: false,
            is_word: !named && bytes.len() < LONG_PART && bytes.iter().all(u8::is_ascii_alphabetic),
            is_number: bytes.len() < LONG_PART && bytes.iter().all(u8::is_ascii_digit),
            is_breakable: !bytes.iter().all(simple),
            is_base64_breakable: [0, 2, 4]
                .map(|bit| base64(bytes, bit, 0).any(|digit| !digit.is_ascii_alphanumeric())),
        }
    }
}

/// How a value can be spelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// As it is, or in one of the [spellings](super::spellings): known by letters and digits within it.
    Plain,
    /// The same, known by how it begins.
    Begin,
    /// Hexadecimal digits.
    Hex,
    /// Base64 or base64url of a text that holds it; the value's bits from this one on fill whole digits.
    Base64 { bit: u8 },
}

impl Form {
    /// Whether letters and digits of this form stand here, and what goes before or after could be behind escapes.
    pub(super) fn goes_on(self, value: &Value, text: &[u8], at: usize, offset: usize) -> bool {
        let alike = |mut form: &mut dyn Iterator<Item = u8>| {
            let run = (&mut form).take(LONG_PART).take_while(u8::is_ascii_alphanumeric);
            run.zip(text[at..].iter().map(Some).chain(std::iter::repeat(None)))
                .all(|(byte, found)| found == Some(&byte))
        };
        match self {
            Self::Plain => value.is_breakable && alike(&mut value.bytes[offset..].iter().copied()),
            Self::Base64 { bit } => {
                value.is_base64_breakable[usize::from(bit / 2)]
                    && alike(&mut base64(&value.bytes, bit, offset))
            }
            Self::Begin | Self::Hex => false,
        }
    }
}
