//! Ids and tokens compared by value: who reads them may spell them anew.

use std::borrow::Cow;

use crate::wire::scan::{self, Lexer, Token};

/// No integer with more digits is written out for a comparison; an exponent may ask for any number of them.
const MOST_DIGITS: usize = 64;

/// An id in the form in which two ids are compared, by value and type: a string's text behind one quote, a number as a
/// decimal, other JSON without spaces and in order. So `1` and `"1"` differ; `"a"` and `"\u0061"` do not, nor `1` and
/// `1.0`, nor `{"k":1}` and `{"k": 1}`. An ordinary integer, or string without escapes, is borrowed as it stands.
pub fn id_key(raw: &[u8]) -> Cow<'_, [u8]> {
    match raw.first() {
        Some(b'"') if memchr::memchr(b'\\', raw).is_some() => {
            let mut key = vec![b'"'];
            key.extend_from_slice(&scan::unescape(raw));
            Cow::Owned(key)
        }
        Some(b'"') => Cow::Borrowed(&raw[..raw.len().saturating_sub(1)]),
        Some(b'0'..=b'9' | b'-') => number_key(raw),
        Some(b'{' | b'[') => container_key(raw).map_or(Cow::Borrowed(raw), Cow::Owned),
        _ => Cow::Borrowed(raw),
    }
}

/// Whether two raw ids are equal by value.
pub fn same_id(a: &[u8], b: &[u8]) -> bool {
    a == b || id_key(a) == id_key(b)
}

/// A number in the form in which ids are compared; what is none as it stands.
pub fn number_key(raw: &[u8]) -> Cow<'_, [u8]> {
    let is_plain = raw.len() <= MOST_DIGITS && raw.iter().all(u8::is_ascii_digit);
    if is_plain || !scan::is_number(raw) {
        return Cow::Borrowed(raw);
    }
    let mut key = Vec::new();
    scan::push_decimal(raw, &mut key);
    // As the plain ones stand.
    if let Some((end, length)) = scan::integer_length(&key).filter(|(_, length)| *length <= MOST_DIGITS) {
        key.truncate(end);
        key.resize(length, b'0');
    }
    Cow::Owned(key)
}

/// An object or an array, members in order; none where it cannot be read.
fn container_key(raw: &[u8]) -> Option<Vec<u8>> {
    let (mut lexer, mut key) = (Lexer::new(raw, 0), Vec::new());
    // Of each open container, where its members begin.
    let mut open: Vec<Vec<usize>> = Vec::new();
    while let Some((token, span)) = lexer.next().ok()? {
        match token {
            Token::ObjectStart | Token::ArrayStart => {
                key.push(raw[span.start]);
                open.push(Vec::new());
            }
            Token::ObjectEnd | Token::ArrayEnd => {
                sort(&mut key, &open.pop()?);
                key.push(raw[span.start]);
            }
            Token::Name | Token::String => {
                if token == Token::Name {
                    open.last_mut()?.push(key.len());
                }
                let text = lexer.string(span);
                key.extend_from_slice(format!("\"{}:", text.len()).as_bytes());
                key.extend_from_slice(&text);
            }
            Token::Word => {
                key.extend_from_slice(&number_key(span.of(raw)));
                key.push(b',');
            }
        }
    }
    Some(key)
}

/// Sorts what begins at these places.
fn sort(key: &mut Vec<u8>, starts: &[usize]) {
    let Some(&first) = starts.first() else { return };
    let ends = starts[1..].iter().copied().chain([key.len()]);
    let mut members: Vec<&[u8]> = starts.iter().zip(ends).map(|(&start, end)| &key[start..end]).collect();
    if !members.is_sorted() {
        members.sort_unstable();
        let sorted = members.concat();
        key.truncate(first);
        key.extend_from_slice(&sorted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_compared_by_value_with_their_type() {
        let long = |tail: &str| format!("1{}{tail}", "0".repeat(MOST_DIGITS));
        for (a, b) in [
            (r#""a\u0022""#, r#""a\"""#),
            (r#""req/1""#, r#""req\/1""#),
            ("0", "0.0"),
            ("0", "-0"),
            ("100", "1e2"),
            ("100", "1E+2"),
            ("-100", "-1e2"),
            ("2.50", "25e-1"),
            ("9007199254740993", "9007199254740993.0"),
            (&*long(""), &*long(".0")),
            (&*long(""), "1e64"),
            (r#"{"k":1,"l":[true,"\u0061"]}"#, r#"{ "l": [true, "a"], "k": 1.0 }"#),
            ("[1,[]]", "[ 1.0, [ ] ]"),
        ] {
            assert!(same_id(a.as_bytes(), b.as_bytes()), "{a} {b}");
        }
        for (a, b) in [
            ("1", "\"1\""),
            ("1", "-1"),
            ("1", "10"),
            ("9007199254740993", "9007199254740992"),
            ("1e63", "1e64"),
            ("1e400", "1e401"),
            ("1e99999999999999999999", "1e99999999999999999998"),
            ("[1,2]", "[12]"),
            ("[[],1]", "[[1]]"),
            (r#"["1"]"#, "[1]"),
            (r#"["a","b"]"#, r#"["a\"1:b"]"#),
            (r#"{"a":1}"#, r#"{"a":2}"#),
            ("null", "\"null\""),
        ] {
            assert!(!same_id(a.as_bytes(), b.as_bytes()), "{a} {b}");
        }
        let deep = ["{\"a\":".repeat(100_000), "1".to_owned(), "}".repeat(100_000)].concat();
        assert!(same_id(deep.as_bytes(), deep.replace(':', ": ").as_bytes()));
    }

    #[test]
    fn ordinary_ids_are_compared_as_they_stand() {
        for id in ["0", "100", "9007199254740993", "\"a\"", "null", "NaN"] {
            assert!(matches!(id_key(id.as_bytes()), Cow::Borrowed(_)), "{id}");
        }
    }
}
