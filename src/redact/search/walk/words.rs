//! Strings of a list that are the words of a command.

use super::Walk;
use crate::redact::names::SecretName;
use crate::redact::{assignment, login};
use crate::wire::Span;
use crate::wire::scan::unescape;

impl Walk<'_> {
    /// The secret part of a word of a list that curl or another program is given, and what it says.
    pub(super) fn login(&mut self, span: Span, before_it: Option<Span>) -> Option<(Span, Vec<u8>)> {
        let text = self.text;
        let array = self.open.last_mut().filter(|open| open.elements.is_some() && !open.in_schema)?;
        let before = array.login.take();
        let said = |span: Span| unescape(span.of(text)).into_owned();
        if !self.calls_curl {
            return None;
        }
        let word = unescape(span.of(text));
        if array.program.is_none() {
            array.program = login::program(&word, &before_it.map(said).unwrap_or_default());
        }
        let given = array.program.unwrap_or(login::Given::Login);
        let from = match (before, login::says(&word, given)) {
            (Some(login::Word::Next), _) => 0,
            (Some(_), _) => return None,
            (None, login::Word::Within(from)) => from,
            (None, login::Word::Nothing) => return None,
            (None, says) => {
                array.login = Some(says);
                return None;
            }
        };
        let part = login::secret(&word[from..], given)?.shift(from);
        Some((place(span, &word, part), part.of(&word).to_vec()))
    }

    /// What fills the rest of a word that begins with a name, where lists have it: `--password=x y`.
    pub(super) fn rest(&self, span: Span) -> Option<(&'static SecretName, Span, Vec<u8>)> {
        let [.., around, array] = &self.open[..] else { return None };
        array.elements.filter(|_| !array.in_schema)?;
        let name = unescape(around.name.of(self.text)).to_ascii_lowercase();
        let word = unescape(span.of(self.text)).into_owned();
        let (row, part) = assignment::rest(&word, memchr::memmem::find(&name, b"env").is_some())?;
        Some((row, part, word))
    }

    /// What a field is by its name that is the word of the option `before` it, and where its secret stands in that.
    pub(super) fn field(&self, span: Span, before: Span) -> Option<(&'static SecretName, Option<Span>)> {
        let [option, word] = [before, span].map(|span| unescape(span.of(self.text)));
        assignment::field_of(&option, &word)
    }
}

/// Where a part stands of what a string says; all of its inside where that has escapes.
pub(super) fn place(string: Span, said: &[u8], part: Span) -> Span {
    let inside = Span::new(string.start + 1, string.end - 1);
    if said.len() == inside.len() { part.shift(inside.start) } else { inside }
}
