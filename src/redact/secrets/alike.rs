//! Whether two texts spell one value.
//!
//! What a recording has of a value is the same placeholder at each place, however that spelled it. A live session that
//! does not know the value yet sees the spellings alone.

use std::borrow::Cow;

use super::encodings::{base64, digit, forward, hex, is_base64_digit, plain};
use super::spellings::Spelling;
use crate::redact::rules::SHORTEST;
use crate::wire::{Span, scan};

/// Escapes of escapes are undone so often.
const DEEPEST: usize = 6;

/// Whether two texts are spellings of one value: as they are, percent-encoded, in hexadecimal digits or base64, escaped
/// as in JSON, HTML, SQL, shells.
pub(crate) fn alike(one: &[u8], other: &[u8]) -> bool {
    let decided = (without_padding(one), without_padding(other));
    // A value may end in what fills up base64.
    are_spellings(one, other) || decided != (one, other) && are_spellings(decided.0, decided.1)
}

fn are_spellings(one: &[u8], other: &[u8]) -> bool {
    if one == other {
        return true;
    }
    let (said, told) = (sayings(one), sayings(other));
    said.iter().any(|value| told.contains(value) || spells(other, value))
        || told.iter().any(|value| spells(one, value))
        || are_same_base64(one, other)
}

/// A text without what fills up base64, and the last digit, of which that leaves a part alone.
pub(in crate::redact) fn without_padding(text: &[u8]) -> &[u8] {
    let digits = text.strip_suffix(b"=").map(|text| text.strip_suffix(b"=").unwrap_or(text));
    let decided =
        digits.filter(|digits| digits.len().div_ceil(4) * 4 == text.len() && sextets(digits).is_some());
    decided.and_then(|digits| digits.split_last()).map_or(text, |(_, decided)| decided)
}

/// Whether a text is one of the forms in which a value is looked for, and nothing else.
fn spells(text: &[u8], value: &[u8]) -> bool {
    let whole = Some(Span::new(0, text.len()));
    plain(value, text, 0, 0, 0) == whole
        || forward(text, Some(0), hex(value), |a, b| a.eq_ignore_ascii_case(&b)) == whole
        || [0, 2, 4]
            .iter()
            .any(|&bit| forward(text, Some(0), base64(value, bit, 0), is_base64_digit) == whole)
}

/// What a text may say: itself, and what it is once it is decoded, unless that is too short to be looked for. Base64 is
/// left out: of a value within a longer text it lacks bits at either end.
fn sayings(text: &[u8]) -> Vec<Cow<'_, [u8]>> {
    let mut said = vec![Cow::Borrowed(text)];
    for spelling in Spelling::ALL {
        let value = spelling.said(text);
        if !said.contains(&value) {
            said.push(value);
        }
    }
    if text.contains(&b'\\') {
        let mut inside = Cow::Borrowed(text);
        for _ in 0..DEEPEST {
            let less = scan::unescape_inside(&inside).into_owned();
            if less == *inside {
                break;
            }
            said.push(less.clone().into());
            inside = less.into();
        }
    }
    said.extend(from_hex(text).map(Cow::Owned));
    said.retain(|value| value.len() >= SHORTEST);
    said
}

pub(in crate::redact) fn from_hex(text: &[u8]) -> Option<Vec<u8>> {
    let (pairs, []) = text.as_chunks::<2>() else { return None };
    pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect()
}

/// Whether both are the base64 digits that one value decides, wherever in a longer text it stood.
fn are_same_base64(one: &[u8], other: &[u8]) -> bool {
    let Some((one, other)) = sextets(one).zip(sextets(other)) else { return false };
    let parts = |digits: &[u8]| [0, 2, 4].map(|bit| Some((bit, value_length(digits.len(), bit)?)));
    let others = parts(&other);
    parts(&one).into_iter().flatten().any(|(bit, length)| {
        length >= SHORTEST
            && others.into_iter().flatten().any(|(other_bit, other_length)| {
                let bits = bit.max(other_bit)..(bit + 6 * one.len()).min(other_bit + 6 * other.len());
                other_length == length
                    && bits.into_iter().all(|at| bit_of(&one, at - bit) == bit_of(&other, at - other_bit))
            })
    })
}

/// How many bytes a value has that decides so many digits from this bit of it on; no more than one number does.
fn value_length(digits: usize, bit: usize) -> Option<usize> {
    let length = (bit + 6 * digits).div_ceil(8);
    ((length * 8 - bit) / 6 == digits).then_some(length)
}

fn bit_of(sextets: &[u8], at: usize) -> u8 {
    sextets[at / 6] >> (5 - at % 6) & 1
}

/// What the digits of base64 or base64url say.
pub(in crate::redact) fn sextets(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: &u8| {
        Some(match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        })
    };
    text.iter().map(digit).collect()
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;

    use super::*;

    const VALUES: [&str; 5] =
        ["hunter2-hunter2", "p@ss/w0rd+x9 'y'", r#"a&b"12345\n<x>"#, "пароль-123", "abcdef9xyz=="];

    /// A value in base64 behind so many other bytes, without the digits that it decides in part only.
    fn piece(value: &str, before: usize) -> String {
        let all = [&b"~".repeat(before)[..], value.as_bytes()].concat();
        let text = base64::engine::general_purpose::STANDARD_NO_PAD.encode(&all);
        text[(before * 8).div_ceil(6)..all.len() * 8 / 6].to_owned()
    }

    fn html_of_python(value: &str) -> String {
        let html = value.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        html.replace('"', "&quot;").replace('\'', "&#x27;")
    }

    fn spellings(value: &str) -> Vec<String> {
        let every: String = value.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let hex: String = value.bytes().map(|byte| format!("{byte:02X}")).collect();
        let percent: String = value
            .bytes()
            .map(|byte| {
                if byte.is_ascii_alphanumeric() { (byte as char).to_string() } else { format!("%{byte:02X}") }
            })
            .collect();
        let html =
            value.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;").replace('\'', "&#39;");
        let json = |text: &str| serde_json::to_string(text).unwrap().trim_matches('"').to_owned();
        let escaped: String = value
            .chars()
            .flat_map(|sign| {
                let mark = (!sign.is_ascii_alphanumeric()).then_some('\\');
                mark.filter(|_| sign.is_ascii()).into_iter().chain([sign])
            })
            .collect();
        let mut all =
            vec![value.to_owned(), every, hex, percent.clone(), percent.replace("%20", "+"), html, escaped];
        if !value.contains('"') || !value.ends_with('"') {
            all.extend([json(value), json(&json(value))]);
        }
        all.extend(["''", "'\"'\"'", "'\\''"].map(|quote| value.replace('\'', quote)));
        all.push(html_of_python(value));
        all.extend((0..6).map(|before| piece(value, before)));
        all
    }

    #[test]
    fn all_spellings_of_a_value_are_alike_and_none_of_another() {
        for value in VALUES {
            for one in spellings(value) {
                for other in spellings(value) {
                    assert!(alike(one.as_bytes(), other.as_bytes()), "{one} {other}");
                }
            }
        }
        for (value, another) in
            [(VALUES[0], VALUES[1]), (VALUES[0], "hunter2-hunted2"), (VALUES[3], VALUES[2])]
        {
            for one in spellings(value) {
                for other in spellings(another) {
                    assert!(!alike(one.as_bytes(), other.as_bytes()), "{one} {other}");
                }
            }
        }
    }

    #[test]
    fn what_is_short_is_alike_only_as_it_stands() {
        assert!(alike(b"", b"") && alike(b"abc", b"abc"));
        for (one, other) in [("", "a"), ("abc", "616263"), ("YWJj", "abc"), ("a", "b"), ("aGVs", "bHVs")] {
            assert!(!alike(one.as_bytes(), other.as_bytes()), "{one} {other}");
        }
    }
}
