//! Texts inside texts: a message, its strings decoded, the strings of JSON inside those, and so on.
//!
//! What is found in a decoded text is carried back to the bytes it was decoded from, so that all others stay as they
//! are. Nothing recurses: a layer is an entry of a list, and its depth is bounded.

use std::borrow::Cow;
use std::cmp::Reverse;

use crate::wire::Span;
use crate::wire::scan;

/// Strings in strings in strings: more than this many levels are not opened.
const DEEPEST: u8 = 6;

/// The message and the texts inside it, with what was found in each.
#[derive(Debug)]
pub(super) struct Layers<'a, T> {
    list: Vec<Layer<'a, T>>,
}

#[derive(Debug)]
struct Layer<'a, T> {
    text: Cow<'a, [u8]>,
    /// The layer it was decoded from, and which part of it.
    parent: usize,
    inside: Span,
    depth: u8,
    /// It is said by a member's name.
    is_name: bool,
    found: Vec<(Span, T)>,
}

impl<'a, T> Layers<'a, T> {
    /// The message alone.
    pub(super) fn new(text: &'a [u8]) -> Self {
        let message = Layer {
            text: text.into(),
            parent: 0,
            inside: Span::default(),
            depth: 0,
            is_name: false,
            found: Vec::new(),
        };
        Self { list: vec![message] }
    }

    /// How many texts there are.
    pub(super) const fn len(&self) -> usize {
        self.list.len()
    }

    /// The text with this index; the message is 0.
    pub(super) fn text(&self, layer: usize) -> &[u8] {
        &self.list[layer].text
    }

    /// Whether a member's name says this text.
    pub(super) fn is_name(&self, layer: usize) -> bool {
        self.list[layer].is_name
    }

    /// Notes what was found in a text.
    pub(super) fn add(&mut self, layer: usize, span: Span, found: T) {
        self.list[layer].found.push((span, found));
    }

    /// Adds the text that a part of another says once its escapes are undone, and whether that is a member's name; none
    /// where it has no escapes, or where it is too deep.
    pub(super) fn open(&mut self, parent: usize, inside: Span, is_name: bool) -> Option<usize> {
        let depth = self.list[parent].depth + 1;
        let text = match scan::unescape_inside(inside.of(self.text(parent))) {
            Cow::Owned(text) if depth <= DEEPEST && text.len() < inside.len() => text.into(),
            _ => return None,
        };
        self.list.push(Layer { text, parent, inside, depth, is_name, found: Vec::new() });
        Some(self.list.len() - 1)
    }

    /// All that was found, as places in the message: in order, and none inside or across another. `escape` is told
    /// of each thing and each level it is carried up.
    pub(super) fn flatten(mut self, mut escape: impl FnMut(&mut T)) -> Vec<(Span, T)> {
        for layer in (1..self.list.len()).rev() {
            let found = settle(std::mem::take(&mut self.list[layer].found));
            let Layer { parent, inside, .. } = self.list[layer];
            let mut origin = Origin::new(inside.of(&self.list[parent].text));
            let mut carried: Vec<_> = found
                .into_iter()
                .map(|(span, mut thing)| {
                    escape(&mut thing);
                    let start = origin.find(span.start, false);
                    (Span::new(start, origin.find(span.end, true)).shift(inside.start), thing)
                })
                .collect();
            // Of two finds of one place, what the decoded text says comes first: it has no escapes.
            carried.append(&mut self.list[parent].found);
            self.list[parent].found = carried;
        }
        settle(self.list.swap_remove(0).found)
    }
}

/// Puts finds in order; where two overlap, the one that begins first (of those the longest) takes the other in.
fn settle<T>(mut found: Vec<(Span, T)>) -> Vec<(Span, T)> {
    found.sort_by_key(|(span, _)| (span.start, Reverse(span.end)));
    found.dedup_by(|(next, _), (kept, _)| {
        let overlaps = next.start < kept.end;
        if overlaps {
            kept.end = kept.end.max(next.end);
        }
        overlaps
    });
    found
}

/// Walks an escaped text and counts what it decodes to.
struct Origin<'a> {
    raw: &'a [u8],
    at: usize,
    decoded: usize,
    /// Where the next escape begins.
    escape: usize,
}

impl<'a> Origin<'a> {
    fn new(raw: &'a [u8]) -> Self {
        let mut origin = Self { raw, at: 0, decoded: 0, escape: 0 };
        origin.seek();
        origin
    }

    fn seek(&mut self) {
        self.escape =
            memchr::memchr(b'\\', &self.raw[self.at..]).map_or(self.raw.len(), |found| self.at + found);
    }

    /// Where the decoded offset comes from; offsets are asked for in order. One inside a character that an escape
    /// spells is moved to the escape's start, or end.
    fn find(&mut self, offset: usize, is_end: bool) -> usize {
        while self.decoded < offset {
            if self.at < self.escape {
                let step = (self.escape - self.at).min(offset - self.decoded);
                self.at += step;
                self.decoded += step;
                continue;
            }
            let escape = scan::escape(&self.raw[self.at..]);
            if self.decoded + escape.text().len() > offset {
                return self.at + if is_end { escape.length } else { 0 };
            }
            self.at += escape.length;
            self.decoded += escape.text().len();
            self.seek();
        }
        self.at
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The text at the bottom of all layers, opened one in the other.
    fn bottom(text: &str) -> (Layers<'_, ()>, usize) {
        let mut layers = Layers::new(text.as_bytes());
        let mut layer = 0;
        while let Some(inner) = layers.open(layer, Span::new(0, layers.text(layer).len()), false) {
            layer = inner;
        }
        (layers, layer)
    }

    /// Where a piece of what `text` says comes from.
    fn origin(text: &str, piece: &str) -> String {
        let (mut layers, layer) = bottom(text);
        let start = memchr::memmem::find(layers.text(layer), piece.as_bytes()).unwrap();
        layers.add(layer, Span::new(start, start + piece.len()), ());
        let found = layers.flatten(|()| ());
        String::from_utf8_lossy(found[0].0.of(text.as_bytes())).into_owned()
    }

    #[test]
    fn what_is_found_in_a_decoded_text_is_traced_to_its_bytes() {
        assert_eq!(origin(r"a\\nb", "b"), "b");
        assert_eq!(origin(r"x\u0041\/y", "A/"), r"\u0041\/");
        assert_eq!(origin(r#"{\\\"a\\\":\\\"b\\\\u0063\\\"}"#, "bc"), r"b\\\\u0063");
        assert_eq!(origin(r"a\ud83d\ude00b", "😀"), r"\ud83d\ude00");
    }

    #[test]
    fn a_part_of_an_escaped_character_is_all_of_its_escape() {
        let mut layers = Layers::new(br"a\u00e9b");
        let inner = layers.open(0, Span::new(0, 8), false).unwrap();
        layers.add(inner, Span::new(1, 2), ());
        assert_eq!(layers.flatten(|()| ()), [(Span::new(1, 7), ())]);
    }

    #[test]
    fn overlapping_finds_become_one() {
        let mut layers = Layers::new(b"0123456789");
        for (start, end, what) in [(5, 8, 'b'), (2, 6, 'a'), (2, 4, 'c'), (8, 9, 'd')] {
            layers.add(0, Span::new(start, end), what);
        }
        assert_eq!(layers.flatten(|_| ()), [(Span::new(2, 8), 'a'), (Span::new(8, 9), 'd')]);
    }

    #[test]
    fn depth_is_bounded() {
        // Each level undoes one escape of the chain.
        let chain = format!("\\{}", "u005c".repeat(50));
        let (layers, _) = bottom(&chain);
        assert_eq!(layers.len(), usize::from(DEEPEST) + 1);
    }

    proptest! {
        #[test]
        fn every_piece_of_a_decoded_text_decodes_from_where_it_is_traced_to(
            text in r#"([a-c]|\\\\|\\n|\\/|\\u00e9|\\ud83d\\ude00|\\ud83d|\\x|é){0,12}"#,
            cut in any::<(u16, u16)>(),
        ) {
            let mut layers = Layers::new(text.as_bytes());
            if let Some(inner) = layers.open(0, Span::new(0, text.len()), false) {
                let decoded = layers.text(inner).to_vec();
                let (a, b) = (usize::from(cut.0) % (decoded.len() + 1), usize::from(cut.1) % (decoded.len() + 1));
                let span = Span::new(a.min(b), a.max(b));
                layers.add(inner, span, ());
                let raw = layers.flatten(|()| ())[0].0;
                let again = scan::unescape_inside(raw.of(text.as_bytes())).into_owned();
                prop_assert!(memchr::memmem::find(&again, span.of(&decoded)).is_some(), "{text} {raw:?}");
                if !span.is_empty() && span.of(&decoded).is_ascii() {
                    prop_assert_eq!(again, span.of(&decoded));
                }
            }
        }
    }
}
