//! Strings of a list that are the words of a command.

use super::{Open, Walk};
use crate::redact::names::SecretName;
use crate::redact::{assignment, login};
use crate::wire::Span;
use crate::wire::scan::unescape;

/// A secret in a string: where it stands, its kind, and what it says.
type Part = (Span, &'static str, Vec<u8>);

impl Walk<'_> {
    /// The secret in a string of a list, by the word `before` it and by itself; the outer none where it is no word that
    /// tells of one.
    pub(super) fn in_list(&mut self, span: Span, before: Option<Span>, marked: bool) -> Option<Option<Part>> {
        if !(marked || self.calls_program) || !self.open.last().is_some_and(Open::is_of_words) {
            return None;
        }
        let word = unescape(span.of(self.text));
        let found = |part: Span, kind| Some((place(span, &word, part), kind, part.of(&word).to_vec()));
        if let Some(part) = self.login(&word, before) {
            return Some(found(part, "password"));
        }
        if !marked {
            return None;
        }
        if let Some((row, part)) = self.rest(&word) {
            return Some(found(part, row.kind));
        }
        let (row, part) = assignment::field_of(&unescape(before?.of(self.text)), &word)?;
        Some(part.and_then(|part| found(part, row.kind)))
    }

    /// The secret part of a word of a list that curl or another program is given.
    fn login(&mut self, word: &[u8], before_it: Option<Span>) -> Option<Span> {
        let text = self.text;
        let array = self.open.last_mut().filter(|_| self.calls_program)?;
        let before = array.login.take();
        if array.program.is_none() {
            let before_it = before_it.map(|span| unescape(span.of(text))).unwrap_or_default();
            array.program = login::program(word, &before_it);
        }
        let given = array.program.unwrap_or(login::Given::Login);
        let from = match (before, login::says(word, given)) {
            (Some(login::Word::Next), _) => 0,
            (Some(_), _) => return None,
            (None, login::Word::Within(from)) => from,
            (None, login::Word::Nothing) => return None,
            (None, says) => {
                array.login = Some(says);
                return None;
            }
        };
        Some(login::secret(&word[from..], given)?.shift(from))
    }

    /// What fills the rest of a word that begins with a name, where lists have it: `--password=x y`.
    fn rest(&self, word: &[u8]) -> Option<(&'static SecretName, Span)> {
        let [.., around, _] = &self.open[..] else { return None };
        let name = unescape(around.name.of(self.text)).to_ascii_lowercase();
        assignment::rest(word, memchr::memmem::find(&name, b"env").is_some())
    }
}

/// Where a part stands of what a string says; all of its inside where that has escapes.
fn place(string: Span, said: &[u8], part: Span) -> Span {
    let inside = Span::new(string.start + 1, string.end - 1);
    if said.len() == inside.len() { part.shift(inside.start) } else { inside }
}
