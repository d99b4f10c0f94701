//! Which live secret stands for which recorded one.
//!
//! Numbers of placeholders count appearances, so they differ between a recording and a live session. Each live
//! placeholder belongs to one recorded placeholder, and the other way round, for the whole session: two different
//! live tokens are never taken for the same recorded one.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use memchr::memmem;

use super::placeholder::{Placeholder, placeholders};
use crate::wire::scan::{self, Lexer, Token, unescape};

/// The pairs of one session, so far.
#[derive(Debug, Default)]
pub struct Pairing {
    recorded_of: HashMap<Placeholder, Placeholder>,
    live_of: HashMap<Placeholder, Placeholder>,
}

/// Two messages pair their secrets otherwise than the session did before.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// The live secret stands for another recorded one.
    #[error(
        "the live `{live}` stood for the recorded `{before}` before, and here it would stand for `{recorded}`"
    )]
    Live {
        /// The live secret.
        live: Placeholder,
        /// What it would stand for here.
        recorded: Placeholder,
        /// What it stands for.
        before: Placeholder,
    },
    /// The recorded secret belongs to another live one.
    #[error(
        "the recorded `{recorded}` belonged to the live `{before}` before, and here it would belong to `{live}`"
    )]
    Recorded {
        /// The live secret.
        live: Placeholder,
        /// The recorded one.
        recorded: Placeholder,
        /// What the recorded one belongs to.
        before: Placeholder,
    },
}

impl Pairing {
    /// No pairs yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Pairs the placeholders of a live message (redacted by the live session) with those of the recorded one. On an
    /// error nothing is kept of the two messages.
    ///
    /// # Errors
    /// When a pair would break an earlier one.
    pub fn pair(&mut self, live: &[u8], recorded: &[u8]) -> Result<(), Broken> {
        let pairs = Pairs::of(live, recorded, &());
        self.check(&pairs, |_, _| false)?;
        self.keep(pairs);
        Ok(())
    }

    /// Whether pairs agree with each other and with those of the session. Of two live placeholders that are `alike` the
    /// values are one, spelled in two ways: they stand for one recorded placeholder, or for two where the recorder gave a
    /// number to each spelling.
    ///
    /// # Errors
    /// When one would break an earlier one.
    pub fn check(
        &self,
        pairs: &Pairs,
        alike: impl Fn(&Placeholder, &Placeholder) -> bool,
    ) -> Result<(), Broken> {
        let mut own = Self::new();
        let mut broken = Vec::new();
        for (live, recorded) in &pairs.0 {
            match self.admits(live, recorded, &alike).and_then(|()| own.admits(live, recorded, &alike)) {
                Ok(()) => own.insert(live.clone(), recorded.clone()),
                Err(error) => broken.push((live, recorded, error)),
            }
        }
        let is_known = |live: &Placeholder, recorded: &Placeholder| {
            let known = [own.live_of.get(recorded), self.live_of.get(recorded)];
            known.into_iter().flatten().any(|other| other == live || alike(live, other))
        };
        broken
            .into_iter()
            .find(|(live, recorded, _)| !is_known(live, recorded))
            .map_or(Ok(()), |(.., error)| Err(error))
    }

    /// The live secret that a recorded one belongs to by now.
    pub(crate) fn live(&self, recorded: &Placeholder) -> Option<&Placeholder> {
        self.live_of.get(recorded)
    }

    /// Keeps pairs that [agree](Self::check) with those of the session.
    pub fn keep(&mut self, pairs: Pairs) {
        pairs.0.into_iter().for_each(|(live, recorded)| self.insert(live, recorded));
    }

    fn admits(
        &self,
        live: &Placeholder,
        recorded: &Placeholder,
        alike: impl Fn(&Placeholder, &Placeholder) -> bool,
    ) -> Result<(), Broken> {
        let told = || (live.clone(), recorded.clone());
        match (self.recorded_of.get(live), self.live_of.get(recorded)) {
            (Some(before), _) if before == recorded => Ok(()),
            (Some(before), _) => {
                let (live, recorded) = told();
                Err(Broken::Live { before: before.clone(), live, recorded })
            }
            (None, Some(before)) if before != live && !alike(live, before) => {
                let (live, recorded) = told();
                Err(Broken::Recorded { before: before.clone(), live, recorded })
            }
            _ => Ok(()),
        }
    }

    fn insert(&mut self, live: Placeholder, recorded: Placeholder) {
        self.live_of.insert(recorded.clone(), live.clone());
        self.recorded_of.entry(live).or_insert(recorded);
    }
}

/// Which live secrets would stand for which recorded ones, if a live message is taken for a recorded one.
#[derive(Debug)]
pub struct Pairs(Vec<(Placeholder, Placeholder)>);

impl Pairs {
    /// Those of placeholders that stand at equal places; members are unordered. Places that differ otherwise than in
    /// numbers are left alone: whether messages match is decided elsewhere. So are those that are `exempt` from it.
    pub fn of(live: &[u8], recorded: &[u8], exempt: &impl Exempt) -> Self {
        Self(pairs(live, recorded, exempt))
    }

    /// These: live placeholders, each with the recorded one that it would stand for.
    pub(crate) const fn these(pairs: Vec<(Placeholder, Placeholder)>) -> Self {
        Self(pairs)
    }

    /// The live placeholders, to be changed, each with the recorded one that it would stand for.
    pub(crate) fn live_mut(&mut self) -> impl Iterator<Item = (&mut Placeholder, &Placeholder)> {
        self.0.iter_mut().map(|(live, recorded)| (live, &*recorded))
    }
}

/// Places of a message that say nothing, in a tree whose node 0 is the message.
pub trait Exempt {
    /// The node of a member or element.
    fn below(&self, node: u32, step: &[u8]) -> Option<u32>;

    /// Whether what stands there says nothing.
    fn has(&self, node: u32) -> bool;
}

/// Every place says something.
impl Exempt for () {
    fn below(&self, _: u32, _: &[u8]) -> Option<u32> {
        None
    }

    fn has(&self, _: u32) -> bool {
        false
    }
}

/// Live placeholders and the recorded ones at equal places, in the order of the live message.
fn pairs(live: &[u8], recorded: &[u8], exempt: &impl Exempt) -> Vec<(Placeholder, Placeholder)> {
    if memmem::find(recorded, b"redacted:").is_none() {
        return Vec::new();
    }
    let hasher = RandomState::new();
    let mut by_place: HashMap<Place, Vec<Masked>> = HashMap::new();
    for (place, masked) in masked_strings(recorded, &hasher, exempt).into_iter().rev() {
        by_place.entry(place).or_default().push(masked);
    }
    let mut pairs = Vec::new();
    for (place, live) in masked_strings(live, &hasher, exempt) {
        let Some(recorded) = by_place.get_mut(&place).and_then(Vec::pop) else { continue };
        if live.text == recorded.text {
            pairs.extend(live.placeholders.into_iter().zip(recorded.placeholders));
        }
    }
    pairs
}

/// A hash of the steps that lead to a place. Names count, and their order does not.
type Place = u64;

/// A string with placeholders.
struct Masked {
    /// Its text without the placeholders' numbers.
    text: Vec<u8>,
    placeholders: Vec<Placeholder>,
}

impl Masked {
    fn new(text: &[u8]) -> Self {
        let mut masked = Self { text: Vec::new(), placeholders: Vec::new() };
        let mut from = 0;
        for (span, placeholder) in placeholders(text) {
            masked.text.extend_from_slice(&text[from..span.start]);
            masked.text.extend_from_slice(b"<redacted:");
            masked.text.extend_from_slice(placeholder.kind.as_bytes());
            masked.text.push(b'>');
            masked.placeholders.push(placeholder);
            from = span.end;
        }
        masked.text.extend_from_slice(&text[from..]);
        masked
    }
}

/// One open container while a message is walked.
struct Open {
    place: Place,
    /// How many elements an array has had; none for an object.
    elements: Option<usize>,
    /// The place of the value that comes next in an object.
    next: Place,
    /// Where it, and that value, stand among those that are exempt.
    node: Option<u32>,
    next_node: Option<u32>,
}

/// The strings that hold placeholders, with their places, in order. What is no JSON is one string.
fn masked_strings(text: &[u8], hasher: &RandomState, exempt: &impl Exempt) -> Vec<(Place, Masked)> {
    let mut found = Vec::new();
    let mut keep = |place: Place, masked: Masked| {
        if !masked.placeholders.is_empty() {
            found.push((place, masked));
        }
    };
    if scan::skip_value(text, scan::trim(text).start) != Ok(scan::trim(text).end) {
        keep(0, Masked::new(text));
        return found;
    }
    let mut open: Vec<Open> = Vec::new();
    let mut lexer = Lexer::new(text, scan::trim(text).start);
    while let Ok(Some((token, span))) = lexer.next() {
        if matches!(token, Token::ObjectEnd | Token::ArrayEnd) {
            open.pop();
            continue;
        }
        let is_batch = open.len() == 1;
        let (here, node) = match open.last_mut() {
            None => (0, Some(0)),
            Some(Open { place, elements: Some(count), node, .. }) => {
                let step = *count;
                *count += 1;
                let below = || node.and_then(|node| exempt.below(node, step.to_string().as_bytes()));
                (hasher.hash_one((*place, *count)), if is_batch { Some(0) } else { below() })
            }
            Some(Open { next, next_node, .. }) => (*next, *next_node),
        };
        if token != Token::Name && node.is_some_and(|node| exempt.has(node)) {
            let outside =
                lexer.depth() - usize::from(matches!(token, Token::ObjectStart | Token::ArrayStart));
            while lexer.depth() > outside && lexer.next().is_ok() {}
            continue;
        }
        match token {
            Token::Name => {
                let spelled = unescape(span.of(text));
                let name = Masked::new(&spelled);
                if let Some(object) = open.last_mut() {
                    object.next_node = object.node.and_then(|node| exempt.below(node, &spelled));
                    object.next = hasher.hash_one((object.place, &name.text));
                    keep(hasher.hash_one((object.next, ())), name);
                }
            }
            Token::ObjectStart | Token::ArrayStart => {
                let elements = (token == Token::ArrayStart).then_some(0);
                open.push(Open { place: here, elements, next: 0, node, next_node: None });
            }
            Token::String => keep(here, Masked::new(&unescape(span.of(text)))),
            Token::Word | Token::ObjectEnd | Token::ArrayEnd => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(pairing: &mut Pairing, live: &str, recorded: &str) -> Result<(), String> {
        pairing.pair(live.as_bytes(), recorded.as_bytes()).map_err(|broken| broken.to_string())
    }

    #[test]
    fn numbers_pair_one_to_one_within_a_kind() {
        let mut session = Pairing::new();
        assert_eq!(
            pair(&mut session, r#"{"a":"<redacted:token-1>"}"#, r#"{"a":"<redacted:token-4>"}"#),
            Ok(())
        );
        assert_eq!(
            pair(&mut session, r#"{"a":"<redacted:token-1>"}"#, r#"{"a":"<redacted:token-4>"}"#),
            Ok(())
        );
        assert_eq!(pair(&mut session, r#"{"a":"<redacted:jwt-1>"}"#, r#"{"a":"<redacted:jwt-2>"}"#), Ok(()));
        assert_eq!(
            pair(&mut session, r#"{"a":"<redacted:token-1>"}"#, r#"{"a":"<redacted:token-5>"}"#),
            Err("the live `<redacted:token-1>` stood for the recorded `<redacted:token-4>` before, \
                 and here it would stand for `<redacted:token-5>`"
                .into())
        );
        assert_eq!(
            pair(&mut session, r#"{"a":"<redacted:token-2>"}"#, r#"{"a":"<redacted:token-4>"}"#),
            Err("the recorded `<redacted:token-4>` belonged to the live `<redacted:token-1>` before, \
                 and here it would belong to `<redacted:token-2>`"
                .into())
        );
    }

    #[test]
    fn pairs_of_two_kinds_hold_as_others_do() {
        let of = |kind: &str, number| Placeholder { kind: kind.into(), number };
        let pairs = |live, recorded| Pairs::these(vec![(live, recorded)]);
        let mut session = Pairing::new();
        session.keep(pairs(of("jwt", 1), of("token", 4)));
        assert_eq!(pair(&mut session, r#"["<redacted:token-4>"]"#, r#"["<redacted:token-5>"]"#), Ok(()));
        assert!(pair(&mut session, r#"["<redacted:jwt-1>"]"#, r#"["<redacted:jwt-1>"]"#).is_err());
        assert!(pair(&mut session, r#"["<redacted:token-1>"]"#, r#"["<redacted:token-4>"]"#).is_err());
        assert_eq!(session.check(&pairs(of("jwt", 1), of("token", 4)), |_, _| false), Ok(()));
        assert!(session.check(&pairs(of("jwt", 1), of("jwt", 4)), |_, _| false).is_err());
        assert!(session.check(&pairs(of("jwt", 2), of("token", 4)), |_, _| false).is_err());
        // The same value in another spelling stands for the same one from then on, and for no other.
        let alike = |live: &Placeholder, before: &Placeholder| (live.number, before.number) == (2, 1);
        let spelled = pairs(of("jwt", 2), of("token", 4));
        assert_eq!(session.check(&spelled, alike), Ok(()));
        session.keep(spelled);
        for number in [1, 2] {
            assert_eq!(session.check(&pairs(of("jwt", number), of("token", 4)), |_, _| false), Ok(()));
            assert!(session.check(&pairs(of("jwt", number), of("token", 5)), alike).is_err());
        }
    }

    #[test]
    fn members_are_unordered_and_elements_are_not() {
        let mut session = Pairing::new();
        let live = r#"{"x":{"a":"<redacted:token-1>","b":"<redacted:token-2>"}}"#;
        let recorded = r#"{ "x" : {"b":"<redacted:token-1>", "\u0061":"<redacted:token-2>"}}"#;
        assert_eq!(pair(&mut session, live, recorded), Ok(()));
        assert!(pair(&mut session, r#"["<redacted:token-1>"]"#, r#"["<redacted:token-1>"]"#).is_err());
        assert_eq!(
            pair(
                &mut session,
                r#"["<redacted:token-1>","<redacted:token-2>"]"#,
                r#"["<redacted:token-2>","<redacted:token-1>"]"#
            ),
            Ok(())
        );
    }

    #[test]
    fn a_broken_message_leaves_no_pair_behind() {
        let mut session = Pairing::new();
        let live = r#"["<redacted:token-1>","<redacted:token-2>"]"#;
        assert!(pair(&mut session, live, r#"["<redacted:token-7>","<redacted:token-7>"]"#).is_err());
        assert_eq!(pair(&mut session, live, r#"["<redacted:token-8>","<redacted:token-9>"]"#), Ok(()));
    }

    #[test]
    fn placeholders_inside_longer_strings_pair_in_order() {
        let mut session = Pairing::new();
        let live = r#"{"t":"a <redacted:jwt-1> b <redacted:token-1>"}"#;
        assert_eq!(pair(&mut session, live, r#"{"t":"a <redacted:jwt-3> b <redacted:token-2>"}"#), Ok(()));
        assert!(pair(&mut session, r#"["<redacted:jwt-1>"]"#, r#"["<redacted:jwt-2>"]"#).is_err());
        assert!(pair(&mut session, r#"["<redacted:token-1>"]"#, r#"["<redacted:token-1>"]"#).is_err());
    }

    #[test]
    fn places_that_differ_otherwise_are_left_alone() {
        let mut session = Pairing::new();
        assert_eq!(pair(&mut session, r#"["x<redacted:jwt-1>"]"#, r#"["<redacted:jwt-2>"]"#), Ok(()));
        assert_eq!(pair(&mut session, r#"["<redacted:jwt-1>"]"#, r#"["<redacted:jwt-3>"]"#), Ok(()));
    }

    #[test]
    fn names_repeated_names_and_lines_that_are_no_json_pair_too() {
        let mut session = Pairing::new();
        let live = r#"{"<redacted:jwt-1>":{"k":"<redacted:token-1>","k":"<redacted:token-2>"}}"#;
        let recorded = r#"{"<redacted:jwt-2>":{"k":"<redacted:token-2>","k":"<redacted:token-1>"}}"#;
        assert_eq!(pair(&mut session, live, recorded), Ok(()));
        assert!(pair(&mut session, "log <redacted:token-1>", "log <redacted:token-1>").is_err());
        assert_eq!(pair(&mut session, "log <redacted:jwt-1>", "log <redacted:jwt-2>"), Ok(()));
    }

    /// What `/x` and `/l/1` have says nothing.
    struct XAndSecond;

    impl Exempt for XAndSecond {
        fn below(&self, node: u32, step: &[u8]) -> Option<u32> {
            match (node, step) {
                (0, b"x") | (1, b"1") => Some(2),
                (0, b"l") => Some(1),
                _ => None,
            }
        }

        fn has(&self, node: u32) -> bool {
            node == 2
        }
    }

    #[test]
    fn what_says_nothing_pairs_nothing() {
        let message = |a: u32, b: u32| {
            let token = |number: u32| format!("\"<redacted:token-{number}>\"");
            format!(r#"{{"x":{{"x":[{0}]}},"l":[{1},{{"l":{0}}},{1}],"y":{{"x":{1}}}}}"#, token(a), token(b))
        };
        for batch in [|text: String| text, |text| format!("[{text}]")] {
            let (live, recorded) = (batch(message(1, 2)), batch(message(5, 6)));
            let mut session = Pairing::new();
            session.keep(Pairs::of(live.as_bytes(), recorded.as_bytes(), &XAndSecond));
            assert_eq!(session.recorded_of.len(), 1);
            assert_eq!(pair(&mut session, r#"["<redacted:token-2>"]"#, r#"["<redacted:token-6>"]"#), Ok(()));
            assert_eq!(pair(&mut session, r#"["<redacted:token-1>"]"#, r#"["<redacted:token-7>"]"#), Ok(()));
        }
    }

    #[test]
    fn depth_costs_no_more_than_length() {
        let deep = format!("{}\"<redacted:jwt-1>\"{}", "[".repeat(200_000), "]".repeat(200_000));
        assert_eq!(pair(&mut Pairing::new(), &deep, &deep), Ok(()));
    }
}
