//! Which recorded messages can equal a live one but for their blanks, found without a look at each.
//!
//! A recorded form is known by its shape (all but its texts and numbers), by its mask (which of these have blanks, and
//! how much stands before and behind those), and by what the mask leaves. A live form is looked up once for each mask
//! of its shape, of which there are few.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
};

use super::{Piece, fill::quote, is_in_a_name};
use crate::{redact::placeholders, replay::matcher::canonical::without_numbers};

/// So much of what stands before and behind the blanks of a text counts, as far as there is so much.
const COUNTED: [usize; 4] = [64, 16, 4, 1];

/// Recorded forms with blanks, by what tells them apart.
#[derive(Debug, Default)]
pub(in crate::replay) struct BlankIndex {
    shapes: HashMap<u64, Vec<Masked>>,
    /// Those with blanks in names: these may stand in another order.
    unordered: Vec<u32>,
    /// What each says but for the numbers of its placeholders.
    said: HashMap<u32, u64>,
}

/// The forms of one shape and mask, by what the mask leaves.
#[derive(Debug)]
struct Masked {
    mask: Mask,
    by_rest: HashMap<u64, Vec<u32>>,
}

/// The texts that have blanks, by their places among texts and numbers, and how much counts before and behind those.
type Mask = Vec<(u32, [usize; 2])>;

impl BlankIndex {
    /// Adds the form of a step.
    pub(in crate::replay) fn add(&mut self, step: u32, recorded: &[u8], form: &[u8]) {
        let pieces = Pieces::of(form);
        self.said.insert(step, pieces.said());
        if is_in_a_name(recorded) {
            self.unordered.push(step);
            return;
        }
        let mask = pieces.mask();
        let Some(rest) = pieces.rest(&mask) else { return };
        let masks = self.shapes.entry(pieces.shape).or_default();
        let at = masks.iter().position(|masked| masked.mask == mask).unwrap_or_else(|| {
            masks.push(Masked { mask, by_rest: HashMap::new() });
            masks.len() - 1
        });
        masks[at].by_rest.entry(rest).or_default().push(step);
    }

    /// What a step says but for the numbers of its placeholders: the same is filled by the same.
    pub(in crate::replay) fn said(&self, step: u32) -> Option<u64> {
        self.said.get(&step).copied()
    }

    /// The steps that a live form may equal but for their blanks, in any order; some twice.
    pub(in crate::replay) fn candidates(&self, live: &[u8], into: &mut Vec<u32>) {
        into.extend_from_slice(&self.unordered);
        let pieces = Pieces::of(live);
        for Masked { mask, by_rest } in self.shapes.get(&pieces.shape).into_iter().flatten() {
            let found = pieces.rest(mask).and_then(|rest| by_rest.get(&rest));
            into.extend(found.into_iter().flatten());
        }
    }
}

/// A form taken apart.
struct Pieces<'f> {
    shape: u64,
    /// Its texts and numbers, with their hashes.
    scalars: Vec<(Piece<'f>, u64)>,
}

impl<'f> Pieces<'f> {
    fn of(form: &'f [u8]) -> Self {
        let (mut shape, mut scalars) = (DefaultHasher::new(), Vec::new());
        let mut at = 0;
        while let Some((piece, end)) = Piece::at(form, at) {
            match piece {
                Piece::Other(bytes) => bytes.hash(&mut shape),
                Piece::Text(bytes) | Piece::Number(bytes) => {
                    b'*'.hash(&mut shape);
                    scalars.push((piece, hash((matches!(piece, Piece::Number(_)), bytes))));
                }
            }
            at = end;
        }
        Self { shape: shape.finish(), scalars }
    }

    fn said(&self) -> u64 {
        let text = |(piece, _): &(Piece<'f>, u64)| match *piece {
            Piece::Text(text) => without_numbers(text),
            Piece::Number(number) | Piece::Other(number) => number.into(),
        };
        hash((self.shape, self.scalars.iter().map(text).collect::<Vec<_>>()))
    }

    fn mask(&self) -> Mask {
        let counted = |length: usize| COUNTED.into_iter().find(|most| *most <= length).unwrap_or_default();
        let of_text = |(at, (piece, _)): (u32, &(Piece<'_>, u64))| {
            let Piece::Text(text) = piece else { return None };
            let first = placeholders(text).next()?.0;
            let last = placeholders(text).last()?.0;
            // In JSON inside a text a number has no quotes where what replaces it has.
            let before = &text[..first.start];
            let before = before.len() - quote(before).len();
            let behind = &text[last.end..];
            let quote = behind.iter().take_while(|byte| **byte == b'\\').count() + 1;
            let quoted = behind.get(..quote).is_some_and(|quote| quote.ends_with(b"\""));
            // Behind quotes that may be missing nothing is at a sure place but the end.
            let behind = if quoted { behind.len() - quote } else { behind.len() };
            Some((at, [before, behind].map(counted)))
        };
        (0..).zip(&self.scalars).filter_map(of_text).collect()
    }

    /// What a mask leaves; none where there is less than counts.
    fn rest(&self, mask: &Mask) -> Option<u64> {
        let mut rest = DefaultHasher::new();
        let mut masked = mask.iter().peekable();
        for (at, (piece, whole)) in (0..).zip(&self.scalars) {
            let Some((_, [before, behind])) = masked.next_if(|(place, _)| *place == at) else {
                whole.hash(&mut rest);
                continue;
            };
            match piece {
                Piece::Text(text) => {
                    text.get(..*before)?.hash(&mut rest);
                    text.get(text.len().checked_sub(*behind)?..)?.hash(&mut rest);
                }
                _ if (before, behind) == (&0, &0) => {
                    let none: &[u8] = b"";
                    none.hash(&mut rest);
                    none.hash(&mut rest);
                }
                _ => return None,
            }
        }
        Some(rest.finish())
    }
}

fn hash(what: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{replay::matcher::Matcher, wire::jsonrpc::Message};

    fn line(text: &str, more: &str) -> String {
        let text = serde_json::to_string(text).unwrap();
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"a":{text},"b":{more}}}}}"#)
    }

    fn form(line: &str) -> Vec<u8> {
        Matcher::plain().numbered_form(&Message::read(line.as_bytes()), None, false).unwrap()
    }

    fn index(lines: &[String]) -> BlankIndex {
        let mut index = BlankIndex::default();
        (0..).zip(lines).for_each(|(step, line)| index.add(step, line.as_bytes(), &form(line)));
        index
    }

    fn candidates(index: &BlankIndex, live: &str) -> Vec<u32> {
        let mut found = Vec::new();
        index.candidates(&form(live), &mut found);
        found
    }

    #[test]
    fn of_many_calls_that_differ_each_is_looked_at_once() {
        const CALLS: u32 = 160;
        let words =
            |call: u32| (0..50).map(|word| format!("w{} ", (call * 31 + word * 7) % 997)).collect::<String>();
        for (recorded, live) in
            [("<redacted:password-1>", "hunter2xyz"), ("\"<redacted:token-1>\"", "12345678")]
        {
            let text = |call, secret: &str| format!("{}{secret} {}", words(call), words(call + 1));
            let lines: Vec<_> = (0..CALLS).map(|call| line(&text(call, recorded), "1")).collect();
            let index = index(&lines);
            let looks: usize = (0..CALLS)
                .map(|call| {
                    let found = candidates(&index, &line(&text(call, live), "1"));
                    assert!(found.contains(&call), "{call}");
                    found.len()
                })
                .sum();
            assert!(looks < 2 * CALLS as usize, "{looks}");
        }
    }

    #[test]
    fn what_may_fill_a_blank_is_looked_at_and_what_differs_elsewhere_is_not() {
        let index = index(&[
            line("say <redacted:a-1>!", "1"),
            line("x", "\"<redacted:a-1>\""),
            line("<redacted:a-1>", "1"),
            line("{\"k\":\"<redacted:a-1>\"}", "1"),
            line("x", "{\"<redacted:a-1>\": 1}"),
        ]);
        for (text, more, found) in [
            ("say it!", "1", &[0, 2, 4][..]),
            ("say it", "1", &[2, 4]),
            ("say it!", "2", &[4]),
            ("x", "12345", &[1, 4]),
            ("x", "\"12345\"", &[1, 4]),
            ("x", "[1]", &[4]),
            ("{\"k\":12345678}", "1", &[2, 3, 4]),
            ("{\"k\":\"v\"}", "1", &[2, 3, 4]),
            ("", "1", &[2, 4]),
        ] {
            let mut told = candidates(&index, &line(text, more));
            told.sort_unstable();
            assert_eq!(told, found, "{text} {more}");
        }
    }
}
