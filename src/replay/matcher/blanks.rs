//! What stands in a live message where a recorded one has placeholders, if it is equal in all else.
//!
//! Which values are secret is known by what was seen of a session, so it can differ between a recording and a live
//! session, or be another kind of secret. Here a placeholder is a blank that any text fills: as a whole string, any
//! that is not empty, or a number such as secrets are; within a longer one, a value that the same placeholder has
//! elsewhere, all of a line or of what a line says behind a name, what quotes around it keep together, or what reads as
//! one word or password there, so that no further argument, path segment or member of a text goes unseen. Secrets that
//! are known by their look alone are known wherever they stand: what has no such look fills no blank of their kinds.
//!
//! - `index`: which recorded messages are looked at; `fill`: the blanks of one text; `stand`: what may be all of a
//!   secret within one

mod fill;
mod index;
mod stand;

use std::{borrow::Cow, ops::Range};

use self::fill::{Filled, How, Text, Values, fill};
pub(in crate::replay) use self::index::BlankIndex;
use crate::{
    redact::{Placeholder, alike, is_of_looks_alone, placeholders},
    wire::scan::integer_length,
};

/// What fills a blank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::replay) enum Filling<'a> {
    /// A secret of the live session.
    Secret(Placeholder),
    /// Text as it stands, or the digits of a number.
    Text(Cow<'a, [u8]>),
    /// Some part of what fills it and the blanks that touch it.
    Part,
}

/// Numbers that have fewer digits are no secrets.
const SHORTEST_NUMBER: usize = 4;
/// Numbers that have more are none either: they measure something.
const LONGEST_NUMBER: usize = 64;

/// What is shorter stands twice by chance.
const SHORTEST_GUESS: usize = 8;

/// The kind of keys that fill lines.
const PRIVATE_KEY: &str = "private-key";

/// The form of a live message: as it is redacted, and as it came; each may be missing.
#[derive(Clone, Copy)]
pub(in crate::replay) struct Live<'a> {
    pub redacted: Option<&'a [u8]>,
    pub plain: Option<&'a [u8]>,
}

/// What placeholders are known to stand for.
#[derive(Clone, Copy)]
pub(in crate::replay) struct Known<'v> {
    /// Recorded ones.
    pub recorded: Values<'v>,
    /// Those of the live session.
    pub live: Values<'v>,
    /// Where what is not the value of a placeholder fills its blank all the same, and breaks a pair.
    pub broken: Broken,
}

/// Where a blank is filled by another value than that of its placeholder, if nothing else fills it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::replay) enum Broken {
    Nowhere,
    /// Where each text that is not filled has one blank: nothing but its value is another one.
    Single,
    Any,
}

impl Known<'_> {
    /// Nothing is known.
    pub(in crate::replay) const NOTHING: Self =
        Self { recorded: &|_| None, live: &|_| None, broken: Broken::Single };
}

/// A recorded text with blanks, and what stands at its place in each version of a live message.
struct Blanks<'r, 'a> {
    recorded: &'r [u8],
    live: [Option<Piece<'a>>; 2],
}

/// What fills the blanks of a recorded form, in order, in a live form that is equal but for them; none where it is not
/// equal. Forms keep the numbers of placeholders; in the redacted one these are the live session's.
pub(in crate::replay) fn fillings<'a>(
    recorded: &[u8],
    live: Live<'a>,
    known: Known<'_>,
) -> Option<Vec<(Placeholder, Filling<'a>)>> {
    let mut open: Vec<(usize, Blanks<'_, 'a>)> = texts(recorded, live)?.into_iter().enumerate().collect();
    // What one blank alone takes tells of others.
    open.sort_by_cached_key(|(_, text)| match only_placeholder(text.recorded) {
        Some(_) => 0,
        None => placeholders(text.recorded).count(),
    });
    let mut filled: Vec<(usize, Filled<'a>)> = Vec::new();
    let mut values: Vec<(Placeholder, Vec<u8>)> = Vec::new();
    let mut how = How::Sure;
    while !open.is_empty() {
        let before = open.len();
        let mut left = Vec::new();
        for (at, text) in open {
            let of_message = |placeholder: &Placeholder| {
                let value = values.iter().find(|(known, _)| known == placeholder);
                value.map(|(_, value)| value.clone()).or_else(|| (known.recorded)(placeholder))
            };
            let Some(found) = text.fill(&of_message, known.live, how) else {
                left.push((at, text));
                continue;
            };
            how = How::Sure;
            values.extend(found.iter().filter_map(|by| Some((by.placeholder.clone(), value(by, known)?))));
            filled.extend(found.into_iter().map(|found| (at, found)));
        }
        open = left;
        if open.len() == before {
            how = match how {
                How::Sure if may_guess(&open) => How::Guess,
                How::Sure | How::Guess
                    if known.broken == Broken::Any || known.broken == Broken::Single && are_single(&open) =>
                {
                    How::Other
                }
                _ => return None,
            };
        }
    }
    are_borne_out(&filled, known).then_some(())?;
    filled.sort_by_cached_key(|(at, _)| *at);
    Some(filled.into_iter().map(|(_, Filled { placeholder, filling, .. })| (placeholder, filling)).collect())
}

/// Whether each of these texts has one blank.
fn are_single(texts: &[(usize, Blanks<'_, '_>)]) -> bool {
    texts.iter().all(|(_, text)| placeholders(text.recorded).count() == 1)
}

/// What fills a blank, where that is known.
fn value(filled: &Filled<'_>, known: Known<'_>) -> Option<Vec<u8>> {
    match &filled.filling {
        Filling::Text(text) => Some(text.to_vec()),
        Filling::Secret(secret) => (known.live)(secret),
        Filling::Part => None,
    }
}

/// Whether a secret that stands in these texts stands in them twice, or elsewhere too: only such a one can be guessed.
fn may_guess(texts: &[(usize, Blanks<'_, '_>)]) -> bool {
    let all = || texts.iter().flat_map(|(_, text)| placeholders(text.recorded));
    all().count() > 1
}

/// Whether each secret that was guessed is the same where its placeholder stands again: that a text stands twice where a
/// secret did is no chance.
fn are_borne_out(filled: &[(usize, Filled<'_>)], known: Known<'_>) -> bool {
    (0..filled.len()).filter(|&at| filled[at].1.is_guess).all(|at| {
        let Some(guess) = value(&filled[at].1, known) else { return false };
        let others = (0..filled.len()).filter(|&other| other != at).map(|other| &filled[other].1);
        let mut equal = others.filter(|other| other.placeholder == filled[at].1.placeholder);
        guess.len() >= SHORTEST_GUESS
            && equal.any(|other| value(other, known).is_some_and(|other| alike(&guess, &other)))
    })
}

impl<'a> Blanks<'_, 'a> {
    fn fill(&self, recorded: Values<'_>, live: Values<'_>, how: How) -> Option<Vec<Filled<'a>>> {
        let number = |piece: &Option<Piece<'a>>| match piece {
            Some(Piece::Number(number)) => Some(*number),
            _ => None,
        };
        if let Some(number) = self.live.iter().find_map(number) {
            let placeholder = only_placeholder(self.recorded);
            let placeholder = placeholder.filter(|placeholder| !is_of_looks_alone(&placeholder.kind));
            if let Some((placeholder, digits)) = placeholder.zip(digits(number)) {
                return Some(vec![Filled { placeholder, filling: Filling::Text(digits), is_guess: false }]);
            }
        }
        let text = |piece: &Option<Piece<'a>>| match piece {
            Some(Piece::Text(text)) => Some(*text),
            _ => None,
        };
        let [redacted, plain] = self.live.each_ref().map(text);
        let by_redacted =
            redacted.and_then(|text| fill(self.recorded, &Text::redacted(text), recorded, live, how));
        by_redacted.or_else(|| fill(self.recorded, &Text::plain(plain?, redacted, live), recorded, live, how))
    }
}

/// The texts with blanks of a recorded form, if it equals a live one in all else.
fn texts<'r, 'a>(recorded: &'r [u8], live: Live<'a>) -> Option<Vec<Blanks<'r, 'a>>> {
    let mut forms = [live.redacted, live.plain];
    let mut ends = [0; 2];
    let mut texts = Vec::new();
    // Which versions equal it, at each place that has no blanks.
    let mut equal: Vec<[bool; 2]> = Vec::new();
    let mut at = 0;
    while at < recorded.len() {
        let (piece, end) = Piece::at(recorded, at)?;
        at = end;
        let mut pieces = [None; 2];
        for version in 0..2 {
            let next = forms[version].and_then(|form| Piece::at(form, ends[version]));
            match next.filter(|(other, _)| piece.may_be(other)) {
                Some((other, end)) => (pieces[version], ends[version]) = (Some(other), end),
                None => forms[version] = None,
            }
        }
        match piece {
            Piece::Text(text) if placeholders(text).next().is_some() => {
                texts.push(Blanks { recorded: text, live: pieces });
            }
            _ => equal.push(pieces.map(|other| other == Some(piece))),
        }
        if forms == [None; 2] || equal.last().is_some_and(|equal| *equal == [false; 2]) {
            return None;
        }
    }
    let is_over = [0, 1].map(|version| forms[version].is_some_and(|form| form.len() == ends[version]));
    let holds = |equal: &[bool; 2]| (0..2).any(|version| equal[version] && is_over[version]);
    if is_over == [false; 2] || !equal.iter().all(holds) {
        return None;
    }
    for text in &mut texts {
        for version in (0..2).filter(|version| !is_over[*version]) {
            text.live[version] = None;
        }
    }
    Some(texts)
}

/// One piece of a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece<'f> {
    Text(&'f [u8]),
    Number(&'f [u8]),
    /// A bracket, a word or what is exempt.
    Other(&'f [u8]),
}

impl<'f> Piece<'f> {
    /// The piece that begins here, and where it ends.
    fn at(form: &'f [u8], at: usize) -> Option<(Self, usize)> {
        let word = || Some(at + memchr::memchr(b';', &form[at..])?);
        match *form.get(at)? {
            b'"' => text_at(form, at).map(|text| (Self::Text(&form[text.clone()]), text.end)),
            b'n' => word().map(|end| (Self::Number(&form[at + 1..end]), end + 1)),
            b'w' => word().map(|end| (Self::Other(&form[at..end]), end + 1)),
            _ => Some((Self::Other(&form[at..=at]), at + 1)),
        }
    }

    /// Whether one may stand at the place of the other, whether or not what is secret is replaced there.
    const fn may_be(&self, other: &Self) -> bool {
        matches!(self, Self::Other(_)) == matches!(other, Self::Other(_))
    }
}

/// Whether a member's name holds a placeholder: what fills it may be another one in the order of names.
pub(in crate::replay) fn is_in_a_name(recorded: &[u8]) -> bool {
    placeholders(recorded).any(|(span, _)| {
        let behind = &recorded[span.end..];
        let quote = memchr::memchr(b'"', behind).unwrap_or(behind.len());
        behind[quote..].get(1..).is_some_and(|rest| rest.trim_ascii_start().starts_with(b":"))
    })
}

/// In how many bytes a recorded form and a live one agree that fills its blanks so, and whether text that fills one is
/// never part of a longer word. What would be the rest of such a word does not count as agreed: a secret may be all of
/// it.
pub(in crate::replay) fn agreed(recorded: &[u8], filled: &[(Placeholder, Filling<'_>)]) -> (usize, bool) {
    let (mut at, mut agreed, mut are_whole) = (0, 0, true);
    let mut filled = filled.iter();
    while at < recorded.len() {
        let Some(text) = text_at(recorded, at) else {
            (at, agreed) = (at + 1, agreed + 1);
            continue;
        };
        at = text.end;
        let text = &recorded[text];
        let mut blanks = 0;
        for (span, _) in placeholders(text) {
            let is_text = matches!(filled.next(), Some((_, Filling::Text(_) | Filling::Part)));
            let joined = if is_text { joined(&text[..span.start], &text[span.end..]) } else { 0 };
            are_whole &= joined == 0;
            blanks += span.len() + joined;
        }
        // What joins two blanks is counted for both.
        agreed += text.len().saturating_sub(blanks);
    }
    (agreed, are_whole)
}

/// How many bytes before and behind a blank may be of one word with it: of a password, say.
fn joined(before: &[u8], behind: &[u8]) -> usize {
    let joins = |byte: &&u8| byte.is_ascii_alphanumeric() || b"!$^*~".contains(byte);
    before.iter().rev().take_while(joins).count() + behind.iter().take_while(joins).count()
}

/// Where the text stands that a form has here behind its length.
fn text_at(form: &[u8], at: usize) -> Option<Range<usize>> {
    let rest = form.get(at..)?.strip_prefix(b"\"")?;
    let colon = memchr::memchr(b':', rest)?;
    let length: usize = std::str::from_utf8(&rest[..colon]).ok()?.parse().ok()?;
    let start = at + 1 + colon + 1;
    let end = start.checked_add(length).filter(|end| *end <= form.len())?;
    Some(start..end)
}

/// The placeholder that is all of a text.
fn only_placeholder(text: &[u8]) -> Option<Placeholder> {
    let first = placeholders(text).next();
    first.filter(|(span, _)| span.len() == text.len()).map(|(_, placeholder)| placeholder)
}

/// The digits of a number that may be a secret, by its form: that has an exponent for the zeros at its end.
fn digits(form: &[u8]) -> Option<Cow<'_, [u8]>> {
    let is_long = |(_, length): &(usize, usize)| (SHORTEST_NUMBER..=LONGEST_NUMBER).contains(length);
    let (end, length) = integer_length(form).filter(is_long)?;
    let digits = &form[..end];
    digits.iter().all(u8::is_ascii_digit).then(|| match length - end {
        0 => digits.into(),
        zeros => [digits, &b"0".repeat(zeros)].concat().into(),
    })
}

#[cfg(test)]
mod tests;
