//! What fills the blanks of one text.
//!
//! Where a blank ends is told by what stands behind it, by a secret that stands there, by a value that the same blank has
//! elsewhere, and, of equal blanks that touch, by their being equal. What can end in several places is tried in all of
//! them.

use memchr::memmem;

use super::{Filling, LONGEST_NUMBER, SHORTEST_NUMBER, only_placeholder, stand::may_stand};
use crate::{
    redact::{Placeholder, alike, is_disguised_look, is_look, is_of_looks_alone, is_spelled, placeholders},
    replay::matcher::canonical::holds_placeholder,
    wire::{Span, scan::backslashes_at_end},
};

/// So many ends are tried of one blank, and so many fillings of one text.
const MOST_ENDS: usize = 16;
const MOST_TRIES: usize = 2_000;
/// So much of a text is looked at for where a token with a look ends.
const MOST_LOOKED_AT: usize = 512;

/// A live text and the secrets in it.
pub(super) struct Text<'a> {
    pub text: &'a [u8],
    pub secrets: Vec<(Span, Placeholder)>,
    /// Placeholders in it are live ones; else they are what a client said.
    pub is_redacted: bool,
}

impl<'a> Text<'a> {
    /// As it is redacted.
    pub(super) fn redacted(text: &'a [u8]) -> Self {
        Self { text, secrets: placeholders(text).collect(), is_redacted: true }
    }

    /// As it came, with the secrets that its redacted form has, as far as these are found; `said` tells what stands for
    /// such a secret.
    pub(super) fn plain(text: &'a [u8], redacted: Option<&[u8]>, said: Values<'_>) -> Self {
        let plain = Self { text, secrets: Vec::new(), is_redacted: false };
        let secrets = redacted.filter(|redacted| holds_placeholder(redacted)).and_then(|redacted| {
            let pattern = Pattern::of(redacted);
            let taken =
                Search { pattern: &pattern, live: &plain, known: said, said, how: How::Guess }.run()?;
            Some(
                pattern
                    .blanks
                    .iter()
                    .zip(taken)
                    .map(|(blank, take)| (take.span, blank.placeholder.clone()))
                    .collect(),
            )
        });
        Self { secrets: secrets.unwrap_or_default(), ..plain }
    }
}

/// The values of placeholders, where they are known.
pub(super) type Values<'v> = &'v dyn Fn(&Placeholder) -> Option<Vec<u8>>;

/// What fills a blank.
pub(super) struct Filled<'a> {
    pub placeholder: Placeholder,
    pub filling: Filling<'a>,
    /// Nothing tells that it may be all of a secret there.
    pub is_guess: bool,
}

/// What may fill a blank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// What may be a secret there, and is the same wherever the placeholder stands.
    Sure,
    /// Anything that is the same wherever the placeholder stands.
    Guess,
    /// What may be a secret there: not that of the placeholder, which is told as such.
    Other,
}

/// What fills the blanks of a recorded text, in order, if a live text is equal but for them. What is known of recorded
/// placeholders is told, and what live ones stand for.
pub(super) fn fill<'a>(
    recorded: &[u8],
    live: &Text<'a>,
    known: Values<'_>,
    said: Values<'_>,
    how: How,
) -> Option<Vec<Filled<'a>>> {
    let pattern = Pattern::of(recorded);
    if let Some(taken) = (Search { pattern: &pattern, live, known, said, how }).run() {
        let filled = |(blank, take): (Blank<'_>, Take<'a>)| Filled {
            placeholder: blank.placeholder,
            filling: take.filling,
            is_guess: take.is_guess,
        };
        return Some(pattern.blanks.into_iter().zip(taken).map(filled).collect());
    }
    // Where one ends and the next begins is not told.
    let joined = pattern.joined().filter(|_| how == How::Sure)?;
    let taken = Search { pattern: &joined, live, known, said, how }.run()?;
    let mut filled = Vec::new();
    for (blank, take) in joined.blanks.into_iter().zip(taken) {
        let filling = if blank.joined.is_empty() { take.filling } else { Filling::Part };
        let all = std::iter::once(blank.placeholder).chain(blank.joined);
        filled.extend(all.map(|placeholder| Filled {
            placeholder,
            filling: filling.clone(),
            is_guess: false,
        }));
    }
    Some(filled)
}

/// A text with blanks in it.
struct Pattern<'r> {
    blanks: Vec<Blank<'r>>,
    /// What stands behind the last one.
    end: &'r [u8],
}

struct Blank<'r> {
    /// What stands between it and the one before it.
    before: &'r [u8],
    placeholder: Placeholder,
    /// What stands before and behind it and those that it touches.
    around: [&'r [u8]; 2],
    /// How many equal ones touch each other from here on.
    equals: usize,
    /// Further ones that it stands for.
    joined: Vec<Placeholder>,
}

impl<'r> Pattern<'r> {
    fn of(text: &'r [u8]) -> Self {
        let found: Vec<_> = placeholders(text).collect();
        let end = found.last().map_or(text, |(last, _)| &text[last.end..]);
        let mut blanks: Vec<Blank<'r>> = Vec::with_capacity(found.len());
        let mut behind: (usize, &[u8]) = (text.len(), end);
        for (at, (span, placeholder)) in found.iter().enumerate().rev() {
            let from = at.checked_sub(1).map_or(0, |before| found[before].0.end);
            let next = blanks.last().filter(|_| behind.0 == span.end);
            let equals = match next {
                Some(next) if next.placeholder == *placeholder => next.equals + 1,
                _ => 1,
            };
            if next.is_none() {
                behind.1 = &text[span.end..];
            }
            behind.0 = span.start;
            let around = [&text[..0], behind.1];
            let before = &text[from..span.start];
            blanks.push(Blank {
                before,
                placeholder: placeholder.clone(),
                around,
                equals,
                joined: Vec::new(),
            });
        }
        blanks.reverse();
        let mut start = 0;
        for (blank, (span, _)) in blanks.iter_mut().zip(&found) {
            if !blank.before.is_empty() {
                start = span.start;
            }
            blank.around[0] = &text[..start];
        }
        Self { blanks, end }
    }

    /// The same with one blank for all that touch; none where none do, or where one has a look of its own.
    fn joined(&self) -> Option<Self> {
        let mut blanks: Vec<Blank<'r>> = Vec::new();
        for (at, Blank { before, placeholder, around, .. }) in self.blanks.iter().enumerate() {
            match blanks.last_mut().filter(|_| at > 0 && before.is_empty()) {
                Some(last) => last.joined.push(placeholder.clone()),
                None => blanks.push(Blank {
                    before,
                    placeholder: placeholder.clone(),
                    around: *around,
                    equals: 1,
                    joined: Vec::new(),
                }),
            }
        }
        let is_look = |blank: &Blank<'_>| {
            let mut all = std::iter::once(&blank.placeholder).chain(&blank.joined);
            !blank.joined.is_empty() && all.any(|placeholder| is_of_looks_alone(&placeholder.kind))
        };
        let may_be = blanks.len() < self.blanks.len() && !blanks.iter().any(is_look);
        may_be.then_some(Self { blanks, end: self.end })
    }

    /// What stands behind a blank.
    fn behind(&self, blank: usize) -> &'r [u8] {
        self.blanks.get(blank + 1).map_or(self.end, |next| next.before)
    }
}

/// What a blank takes, and how much of what stands behind the blank is gone with it.
#[derive(Clone)]
struct Take<'a> {
    filling: Filling<'a>,
    span: Span,
    gone: usize,
    is_guess: bool,
    /// It is a secret, or the value of the same placeholder elsewhere.
    is_known: bool,
    /// Nothing else could stand there.
    is_told_by_place: bool,
}

/// The search for what fills a pattern.
struct Search<'s, 'r, 'a> {
    pattern: &'s Pattern<'r>,
    live: &'s Text<'a>,
    /// Of the pattern's placeholders, and of those of the live session.
    known: Values<'s>,
    said: Values<'s>,
    how: How,
}

impl<'a> Search<'_, '_, 'a> {
    /// What the blanks take, in order. What they could take as well in another way is not told: it is taken in part.
    fn run(&self) -> Option<Vec<Take<'a>>> {
        let mut first: Option<Vec<Take<'a>>> = None;
        self.each(|taken| {
            let Some(first) = &mut first else {
                first = Some(taken.to_vec());
                return taken.len() > 1 && self.how == How::Sure;
            };
            for (one, _) in first.iter_mut().zip(taken).filter(|(one, other)| one.span != other.span) {
                one.is_told_by_place &= one.is_known;
            }
            true
        });
        let mut taken = first?;
        for take in taken.iter_mut().filter(|take| !take.is_told_by_place) {
            take.filling = Filling::Part;
        }
        Some(taken)
    }

    /// Each way in which the blanks take something, as long as more are wanted.
    fn each(&self, mut each: impl FnMut(&[Take<'a>]) -> bool) {
        let count = self.pattern.blanks.len();
        if count == 0 {
            if self.live.text == self.pattern.end {
                each(&[]);
            }
            return;
        }
        let mut taken: Vec<Take<'a>> = Vec::with_capacity(count);
        let mut open = vec![self.takes(0, 0, 0, &taken).into_iter()];
        for _ in 0..MOST_TRIES {
            let Some(last) = open.last_mut() else { return };
            let Some(take) = last.next() else {
                open.pop();
                taken.pop();
                continue;
            };
            let (at, gone) = (take.span.end, take.gone);
            taken.push(take);
            if open.len() < count {
                open.push(self.takes(open.len(), at, gone, &taken).into_iter());
            } else {
                if self.live.text[at..] == self.pattern.end[gone..] && !each(&taken) {
                    return;
                }
                taken.pop();
            }
        }
    }

    /// What a blank may take where the text before it ends here; so much of what stands before it is gone.
    fn takes(&self, index: usize, at: usize, gone: usize, taken: &[Take<'a>]) -> Vec<Take<'a>> {
        let blank = &self.pattern.blanks[index];
        let (text, before, behind) = (self.live.text, &blank.before[gone..], self.pattern.behind(index));
        let has_look = is_of_looks_alone(&blank.placeholder.kind);
        if let Some(span) = bare_number(before, text, at, behind).filter(|_| !has_look) {
            let filling = Filling::Text(span.of(text).into());
            return vec![Take {
                filling,
                span,
                gone: quote(before).len(),
                is_guess: false,
                is_known: false,
                is_told_by_place: true,
            }];
        }
        if !text[at..].starts_with(before) {
            return Vec::new();
        }
        let start = at + before.len();
        let mut takes: Vec<Take<'a>> = Vec::new();
        let earlier = self.earlier(&blank.placeholder, taken);
        let value = earlier.or_else(|| (self.known)(&blank.placeholder)).filter(|_| self.how != How::Other);
        let is_other = |text: &[u8]| value.as_ref().is_some_and(|value| !alike(value, text));
        let is_said_other = |secret| (self.said)(secret).is_some_and(|said| is_other(&said));
        let secret = self.live.secrets.iter().find(|(span, _)| span.start == start);
        let secret = secret.filter(|(_, secret)| blank.joined.is_empty() && !is_said_other(secret));
        takes.extend(secret.map(|(span, secret)| Take {
            filling: Filling::Secret(secret.clone()),
            span: *span,
            gone: 0,
            is_guess: false,
            is_known: true,
            is_told_by_place: true,
        }));
        let mut add = |end: usize, is_guess: bool, is_known: bool| {
            if takes.iter().all(|take| take.span.end != end) {
                let span = Span::new(start, end);
                takes.push(Take {
                    filling: Filling::Text(span.of(text).into()),
                    span,
                    gone: 0,
                    is_guess,
                    is_known,
                    is_told_by_place: true,
                });
            }
        };
        if let Some(value) =
            value.as_ref().filter(|value| !value.is_empty() && text[start..].starts_with(value))
        {
            add(start + value.len(), false, true);
        }
        for end in self.ends(index, start, taken) {
            let taken = &text[start..end];
            if taken.is_empty() || blank.joined.is_empty() && is_other(taken) {
                continue;
            }
            let may_take = self.may_take(blank, taken, has_look);
            if may_take || self.how == How::Guess {
                add(end, !may_take, false);
            }
        }
        takes
    }

    /// What an equal blank before has taken.
    fn earlier(&self, placeholder: &Placeholder, taken: &[Take<'a>]) -> Option<Vec<u8>> {
        let mut blanks = self.pattern.blanks.iter().zip(taken);
        let take = blanks.find(|(blank, _)| blank.placeholder == *placeholder && blank.joined.is_empty())?.1;
        match &take.filling {
            Filling::Text(text) => Some(text.to_vec()),
            Filling::Secret(secret) => (self.said)(secret),
            Filling::Part => None,
        }
    }

    fn may_take(&self, blank: &Blank<'_>, text: &[u8], has_look: bool) -> bool {
        // Part of it is a secret, and the rest is not: what the blank stands for is not told.
        let is_mixed = holds_placeholder(text) && (self.live.is_redacted || only_placeholder(text).is_none());
        !is_mixed
            && may_stand(text, blank.around, &blank.placeholder.kind)
            && (!has_look || is_look(text) || is_spelled(text) || is_disguised_look(text))
    }

    /// Where a blank may end that begins here.
    fn ends(&self, index: usize, start: usize, taken: &[Take<'a>]) -> Vec<usize> {
        let Pattern { blanks, end, .. } = self.pattern;
        let text = self.live.text;
        let Some(next) = blanks.get(index + 1) else {
            let last = text.strip_suffix(*end).map(<[u8]>::len);
            return last.into_iter().filter(|last| *last > start).collect();
        };
        let Some(rest) = text.get(start + 1..) else { return Vec::new() };
        if !next.before.is_empty() {
            // Quotes before the next one may be missing.
            let sure = &next.before[..next.before.len() - quote(next.before).len()];
            let sure = if sure.is_empty() { next.before } else { sure };
            return memmem::find_iter(rest, sure).map(|at| start + 1 + at).take(MOST_ENDS).collect();
        }
        // Where one ends and the next begins only a secret tells.
        let secret = self.live.secrets.iter().map(|(span, _)| span.start).find(|at| *at > start);
        let value = self.earlier(&next.placeholder, taken);
        let value = value.or_else(|| (self.known)(&next.placeholder)).filter(|value| !value.is_empty());
        let known = value.and_then(|value| Some(start + 1 + memmem::find(rest, &value)?));
        let told = secret.into_iter().chain(known).chain(self.equal_parts(index, start));
        // What is known by its look shows where it ends.
        let has_look = is_of_looks_alone(&blanks[index].placeholder.kind) && self.how == How::Sure;
        let looks = if has_look { start + 1..text.len().min(start + MOST_LOOKED_AT) } else { 0..0 };
        told.chain(looks).collect()
    }

    /// Where the first of equal blanks that touch may end, so that each takes the same.
    fn equal_parts(&self, index: usize, start: usize) -> Vec<usize> {
        let text = self.live.text;
        let count = self.pattern.blanks[index].equals;
        let behind = self.pattern.behind(index + count - 1);
        if count < 2 || behind.is_empty() && index + count < self.pattern.blanks.len() {
            return Vec::new();
        }
        let ends: Vec<usize> = match index + count == self.pattern.blanks.len() {
            true => text.strip_suffix(behind).map(<[u8]>::len).into_iter().collect(),
            false => memmem::find_iter(&text[start..], behind).map(|at| start + at).take(MOST_ENDS).collect(),
        };
        let part = |end: usize| {
            let length = end.checked_sub(start).filter(|all| *all > 0 && all % count == 0)? / count;
            let (first, rest) = text[start..end].split_at(length);
            rest.chunks(length).all(|part| part == first).then_some(start + length)
        };
        ends.into_iter().filter_map(part).collect()
    }
}

/// The number that stands where a blank in quotes does: in JSON inside a text, what is replaced gets quotes.
fn bare_number(before: &[u8], text: &[u8], at: usize, behind: &[u8]) -> Option<Span> {
    let quote = quote(before);
    if quote.is_empty() || !behind.starts_with(quote) {
        return None;
    }
    let rest = text[at..].strip_prefix(&before[..before.len() - quote.len()])?;
    let length = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let goes_on = rest
        .get(length)
        .is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'+' | b'-'));
    let start = text.len() - rest.len();
    ((SHORTEST_NUMBER..=LONGEST_NUMBER).contains(&length) && !goes_on)
        .then(|| Span::new(start, start + length))
}

/// The quote that a text ends with, and the backslashes before it.
pub(super) fn quote(text: &[u8]) -> &[u8] {
    let Some(before) = text.strip_suffix(b"\"") else { return b"" };
    let slashes = backslashes_at_end(before);
    &text[before.len() - slashes..]
}
