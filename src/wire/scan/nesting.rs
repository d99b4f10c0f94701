//! Whether a text that comes in pieces is whole: each byte is looked at once.

use memchr::memchr2;

/// How deep in containers a text ends that began with one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Nesting {
    depth: usize,
    place: Place,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    /// Before its first token.
    #[default]
    Before,
    Inside,
    InString,
    /// Behind a backslash in a string.
    Escaped,
    /// Behind its end.
    Behind,
    /// It is no object and no array, or more stands behind it.
    Other,
}

impl Nesting {
    /// Takes in what comes next; whether all that has come is one object or array, as far as its brackets tell.
    pub fn feed(&mut self, mut text: &[u8]) -> bool {
        while let Some(&byte) = text.first() {
            let mut read = 1;
            self.place = match (self.place, byte) {
                (Place::Other, _) => return false,
                (Place::InString, _) => match memchr2(b'"', b'\\', text) {
                    None => return false,
                    Some(at) => {
                        read = at + 1;
                        if text[at] == b'"' { Place::Inside } else { Place::Escaped }
                    }
                },
                (Place::Escaped, _) => Place::InString,
                (place @ (Place::Before | Place::Behind), b' ' | b'\t' | b'\r' | b'\n') => place,
                (Place::Before | Place::Inside, b'{' | b'[') => {
                    self.depth += 1;
                    Place::Inside
                }
                (Place::Inside, b'}' | b']') => {
                    self.depth -= 1;
                    if self.depth == 0 { Place::Behind } else { Place::Inside }
                }
                (Place::Inside, b'"') => Place::InString,
                (Place::Inside, _) => Place::Inside,
                // A byte order mark.
                (Place::Before, 0xef | 0xbb | 0xbf) => Place::Before,
                (Place::Before | Place::Behind, _) => Place::Other,
            };
            text = &text[read..];
        }
        self.place == Place::Behind
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_whole_with_the_bracket_that_ends_it_wherever_it_is_cut() {
        for (text, whole_from) in [
            (r#"{"a":[1,{"}":"\"}\\"}],"b":"]"}"#, Some(31)),
            ("\u{feff} [[], {}]", Some(12)),
            ("{}", Some(2)),
            ("[\"\\\\\"]\r\n ", Some(6)),
            (r#"{"a":"}"#, None),
            ("12", None),
            ("<p>{}</p>", None),
            ("", None),
        ] {
            let text = text.as_bytes();
            let is_whole = |end: usize| whole_from.is_some_and(|from| end >= from);
            for cut in 0..=text.len() {
                let mut nesting = Nesting::default();
                assert_eq!(nesting.feed(&text[..cut]), is_whole(cut), "{text:?} to {cut}");
                assert_eq!(nesting.feed(&text[cut..]), is_whole(text.len()), "{text:?} cut at {cut}");
            }
            let mut nesting = Nesting::default();
            for (at, byte) in text.chunks(1).enumerate() {
                assert_eq!(nesting.feed(byte), is_whole(at + 1), "{text:?} byte by byte");
            }
        }
        let mut nesting = Nesting::default();
        assert!(nesting.feed(b"{}") && !nesting.feed(b"\n{}") && !nesting.feed(b"{}"), "two are not one");
    }
}
