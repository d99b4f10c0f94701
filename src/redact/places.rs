//! Where in a message something stands, as people read it.

use std::fmt;

use crate::wire::jsonrpc::{Kind, Message};
use crate::wire::pointer;
use crate::wire::scan::{self, Lexer, Token, unescape};

/// The place of a value in a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// What kind of text it is: a request's method, whose answer, or something else.
    pub(super) of: String,
    /// The steps of its JSON Pointer; of a batch, counted from its messages.
    pub(super) steps: Vec<Vec<u8>>,
}

impl Place {
    /// All of a text.
    pub(super) fn named(of: &str) -> Self {
        Self { of: of.to_owned(), steps: Vec::new() }
    }
}

impl fmt::Display for Place {
    /// Elements of arrays are all `*`: how many there are is of no interest.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.of)?;
        for (nth, step) in self.steps.iter().enumerate() {
            let step = String::from_utf8_lossy(step);
            let element = !step.is_empty() && step.bytes().all(|byte| byte.is_ascii_digit());
            let step = if element { "*".into() } else { pointer::escaped(&step) };
            write!(f, "{}/{step}", if nth == 0 { " " } else { "" })?;
        }
        Ok(())
    }
}

/// The places of the values at these offsets (in order) of a message that `sender` sent.
pub(super) fn places(text: &[u8], offsets: &[usize], sender: &str) -> Vec<Place> {
    let message = Message::read(text);
    let of = match message.kind {
        Kind::Request | Kind::Notification => message.method().into_owned(),
        Kind::Result | Kind::Error => format!("{sender}'s answer"),
        Kind::Batch => format!("{sender}'s batch"),
        Kind::Noise => format!("{sender}'s output"),
    };
    let mut places = Vec::with_capacity(offsets.len());
    let mut steps: Vec<Step> = Vec::new();
    let mut lexer = Lexer::new(text, scan::trim(text).start);
    let mut wanted = offsets.iter().peekable();
    while let Ok(Some((token, span))) = lexer.next() {
        if matches!(token, Token::ObjectEnd | Token::ArrayEnd) {
            steps.pop();
            continue;
        }
        match steps.last_mut() {
            Some(Step::Member(name)) if token == Token::Name => *name = unescape(span.of(text)).into_owned(),
            Some(Step::Element(count)) => *count += 1,
            _ => {}
        }
        while wanted.next_if(|offset| **offset < span.end).is_some() {
            let from = usize::from(message.kind == Kind::Batch).min(steps.len());
            places.push(Place { of: of.clone(), steps: steps[from..].iter().map(Step::text).collect() });
        }
        match token {
            Token::ObjectStart => steps.push(Step::Member(Vec::new())),
            Token::ArrayStart => steps.push(Step::Element(0)),
            _ => {}
        }
    }
    places.resize(offsets.len(), Place::named(&of));
    places
}

enum Step {
    Member(Vec<u8>),
    /// How many elements have begun.
    Element(usize),
}

impl Step {
    fn text(&self) -> Vec<u8> {
        match self {
            Self::Member(name) => name.clone(),
            Self::Element(count) => count.saturating_sub(1).to_string().into_bytes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places_of(text: &str, piece: &str) -> Vec<String> {
        let offsets: Vec<_> = text.match_indices(piece).map(|(at, _)| at).collect();
        places(text.as_bytes(), &offsets, "server").iter().map(ToString::to_string).collect()
    }

    #[test]
    fn places_are_named_by_method_and_pointer() {
        let call =
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"a/b":["x",{"k~":"x"}],"x":1}}"#;
        assert_eq!(
            places_of(call, "x"),
            ["tools/call /params/a~1b/*", "tools/call /params/a~1b/*/k~0", "tools/call /params/x"]
        );
        assert_eq!(
            places_of(r#"{"jsonrpc":"2.0","id":1,"result":{"t":"x"}}"#, "x"),
            ["server's answer /result/t"]
        );
        assert_eq!(places_of("a log line with x", "x"), ["server's output"]);
        let batch = r#"[{"jsonrpc":"2.0","id":1,"result":{"t":"x"}}]"#;
        assert_eq!(places_of(batch, "x"), ["server's batch /result/t"]);
    }
}
