//! A second look for a message that nothing recorded equals: placeholders are blanks that any value fills.
//!
//! The recorder knew what is secret when its session had ended, and by what was seen of it; a live session may not know
//! it yet, or know it as another kind of secret. What fills a blank is paired with it as other secrets are. What is
//! not known as a secret is looked at here and gets a number, but is told nowhere.

use std::collections::BTreeMap;

use super::{
    Found, Replayer,
    secrets::{Paired, are_alike, numbered},
};
use crate::{
    redact::{Pairing, Pairs, Placeholder, Redactor},
    replay::{
        matcher::{
            Matcher,
            blanks::{Filling, agreed, fillings, is_in_a_name},
            canonical::holds_placeholder,
        },
        script::{StepKind, look},
    },
    wire::jsonrpc::{Kind, Message},
};

/// So many recorded messages of a method are asked for their names.
const MOST_ASKED: usize = 20_000;
/// So many of the same name are compared with a live one.
const MOST_COMPARED: usize = 1_000;
/// Of so many one is chosen.
const MOST_CHOICE: usize = 128;

/// A recorded message that equals a live one but for its blanks: its step, and what it would pair if that breaks no
/// pair.
pub(super) type Filled = (u32, Option<Paired>);

/// In how much a recorded message agrees, and whether what fills its blanks is no part of longer words.
type Agreed = (usize, bool);

/// Recorded messages that equal a live one but for their blanks and agree with it in as much, in recorded order: those
/// that break no pair, of which some have blanks that only a part of a word fills, and those that do.
#[derive(Default)]
struct Alike {
    holding: Vec<Filled>,
    in_words: Vec<Filled>,
    broken: Vec<Filled>,
}

impl Replayer {
    /// Where the exchange stands whose message equals a live one but for its blanks, in one of these plays.
    pub(super) fn find_blank(&mut self, plays: [Option<usize>; 2], message: &Message<'_>) -> Option<Found> {
        let kind = match message.kind {
            Kind::Request => StepKind::Request,
            Kind::Notification => StepKind::Notification,
            Kind::Noise if self.at_hand.facts.is_some() => StepKind::Line,
            _ => return None,
        };
        let unpaired = self.at_hand.unpaired;
        let found = plays.into_iter().flatten().find_map(|play| self.find_blank_in(play, message, kind));
        // What equals it at the first look is nearer.
        self.at_hand.unpaired = unpaired.or(self.at_hand.unpaired);
        found
    }

    /// The same in one play. What agrees with it in more is meant before what agrees in less, where a blank may take
    /// anything: if it would break a pair, nothing else is.
    fn find_blank_in(&mut self, play: usize, message: &Message<'_>, kind: StepKind) -> Option<Found> {
        for (_, alike) in self.filled_in(play, message, kind).into_iter().rev() {
            let Alike { holding, in_words, broken } = alike;
            for filled in [holding, in_words, broken].into_iter().filter(|filled| !filled.is_empty()) {
                let before = self.at_hand.unpaired.take();
                let found = self.look_in(play, message, None, Some(filled));
                if found.is_some() || self.at_hand.unpaired.is_some() {
                    return found;
                }
                self.at_hand.unpaired = before;
            }
        }
        None
    }

    /// What equals it so in one play, by how much agrees.
    fn filled_in(&mut self, play: usize, message: &Message<'_>, kind: StepKind) -> BTreeMap<usize, Alike> {
        let mut found: BTreeMap<usize, Alike> = BTreeMap::new();
        let script = &self.scripts[self.plays[play].script];
        let (cassette, blobs) = (&self.cassette, &*self.blobs);
        let blank = script.blank(cassette, blobs);
        if blank.is_empty() {
            return found;
        }
        let (method, name) = (message.method(), message.name());
        let is_asked = |step: &&u32| {
            let step = &script.steps[**step as usize];
            let recorded = &**script.method(step);
            step.kind == kind && (recorded == method || holds_placeholder(recorded.as_bytes()))
        };
        let plain = plain_of(&self.at_hand.plain, message);
        let mut seen = Seen { matcher: &mut self.matcher, versions: [Some(*message), plain], forms: None };
        let fresh = Pairing::new();
        let (mut room, mut compared, mut count) = (Vec::new(), 0, 0);
        for &step in blank.iter().filter(is_asked).take(MOST_ASKED) {
            let exchange = script.steps[step as usize].exchange;
            let entry = &cassette.exchanges[exchange as usize];
            let Some(recorded) = look(cassette, blobs, entry, &mut room) else { continue };
            if recorded.name() != name
                && !recorded.name().is_some_and(|name| holds_placeholder(name.as_bytes()))
            {
                continue;
            }
            compared += 1;
            if compared > MOST_COMPARED {
                break;
            }
            let Some(((agreed, are_whole), fills)) = seen.fillings(&recorded, script.index.own_table(step))
            else {
                continue;
            };
            // How an address spells a value is not told here.
            if kind == StepKind::Line && fills.iter().any(|(_, by)| matches!(by, Filling::Text(_))) {
                continue;
            }
            let (pairs, unknown) = paired(&self.redactor, fills);
            let pairing = self.pairings.get(&(play, numbered(cassette, exchange))).unwrap_or(&fresh);
            let alike = found.entry(agreed).or_default();
            match pairing.check(&pairs, are_alike(&self.redactor, &unknown)) {
                Err(_) if alike.broken.len() < MOST_CHOICE => alike.broken.push((step, None)),
                Err(_) => {}
                Ok(()) => {
                    let holding = if are_whole { &mut alike.holding } else { &mut alike.in_words };
                    holding.push((step, Some(Paired { play, exchange, pairs, unknown })));
                    count += 1;
                    if count > MOST_CHOICE {
                        count -= usize::from(drop_one(&mut found, |step| self.plays[play].is_taken(step)));
                    }
                }
            }
        }
        found
    }
}

/// Drops one of those that break no pair and agree in least: the first that was played, as the last of them is
/// repeated; else the last.
fn drop_one(found: &mut BTreeMap<usize, Alike>, is_taken: impl Fn(u32) -> bool) -> bool {
    let mut holding = found.values_mut().flat_map(|alike| [&mut alike.in_words, &mut alike.holding]);
    let Some(least) = holding.find(|holding| !holding.is_empty()) else { return false };
    let taken = least.iter().position(|(step, _)| is_taken(*step));
    least.remove(taken.unwrap_or(least.len() - 1));
    true
}

/// Forms of a message as it is redacted, and as it came; none where there is no such form.
type Forms = [Option<Vec<u8>>; 2];

/// What is seen of a live message: it as it is redacted, and as it came where that is not the same.
struct Seen<'a> {
    matcher: &'a mut Matcher,
    versions: [Option<Message<'a>>; 2],
    /// Their forms under the table that a recorded message had last, if it had its own, and whether members keep their
    /// order in them.
    forms: Option<((Option<usize>, bool), Forms)>,
}

impl Seen<'_> {
    /// What fills the blanks of a recorded message whose own table is given: by what is redacted, or else by what is
    /// not; and how much agrees. None where it has no blanks that count.
    fn fillings(
        &mut self,
        recorded: &Message<'_>,
        own: Option<usize>,
    ) -> Option<(Agreed, Vec<(Placeholder, Filling<'_>)>)> {
        let keeps_order = is_in_a_name(recorded.bytes) && self.fillings_in(recorded, own, false).is_none();
        self.fillings_in(recorded, own, keeps_order)
    }

    fn fillings_in(
        &mut self,
        recorded: &Message<'_>,
        own: Option<usize>,
        keeps_order: bool,
    ) -> Option<(Agreed, Vec<(Placeholder, Filling<'_>)>)> {
        let recorded = self.matcher.numbered_form(recorded, own, keeps_order)?;
        let Self { matcher, versions, forms } = self;
        if forms.as_ref().is_none_or(|(of, _)| *of != (own, keeps_order)) {
            let form =
                |version: &Option<Message<'_>>| matcher.numbered_form(version.as_ref()?, own, keeps_order);
            *forms = Some(((own, keeps_order), versions.each_ref().map(form)));
        }
        let [redacted, plain] = &forms.as_ref()?.1;
        let by_redacted = redacted.as_ref().and_then(|form| fillings(&recorded, form, true));
        let by_plain = || fillings(&recorded, plain.as_ref()?, false);
        let filled = by_redacted.or_else(by_plain).filter(|fillings| !fillings.is_empty())?;
        Some((agreed(&recorded, &filled), filled))
    }
}

/// The message at hand as it came, of a batch the one with the same id; none where redaction did not change it.
fn plain_of<'a>(plain: &'a [u8], message: &Message<'_>) -> Option<Message<'a>> {
    let whole = Message::read(plain);
    match whole.kind {
        Kind::Batch => whole.members().find(|member| member.id().is_some() && member.id() == message.id()),
        _ => (message.kind != Kind::Noise && !plain.is_empty()).then_some(whole),
    }
}

/// Pairs of what fills blanks, and the values that are not known yet.
fn paired(redactor: &Redactor, fillings: Vec<(Placeholder, Filling<'_>)>) -> (Pairs, Vec<Box<[u8]>>) {
    let mut unknown: Vec<Box<[u8]>> = Vec::new();
    let mut number = |text: &[u8]| {
        let at = unknown.iter().position(|known| **known == *text).unwrap_or(unknown.len());
        if at == unknown.len() {
            unknown.push(text.into());
        }
        // Of no kind: it stands for none of those that are paired.
        Placeholder { kind: Box::default(), number: at as u32 }
    };
    let pairs = fillings.into_iter().map(|(recorded, filling)| match filling {
        Filling::Secret(secret) => (secret, recorded),
        Filling::Text(text) => (redactor.known(&text).unwrap_or_else(|| number(&text)), recorded),
    });
    (Pairs::these(pairs.collect()), unknown)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::{
        cassette::{blob::NoBlobs, model::Cassette},
        replay::{Input, Options, Output, Replayer},
        traffic::Lane,
    };

    /// What calls with these texts are answered by a cassette of calls with those; `-` where nothing is.
    fn answers(recorded: &[&str], calls: &[&str]) -> String {
        let exchange = |(at, text): (usize, &&str)| {
            format!(
                r#"{{"key": "k{at}", "client": {{"request": {{"method": "tools/call", "params": {{"name": "t", "arguments": {{"a": "{text}"}}}}}}}}, "server": [{{"result": {at}}}]}}"#
            )
        };
        let exchanges: Vec<String> = recorded.iter().enumerate().map(exchange).collect();
        let text = format!(r#"{{"cassette": 1, "exchanges": [{}]}}"#, exchanges.join(", "));
        let cassette = Cassette::load(text.into(), &NoBlobs).unwrap();
        let mut replayer =
            Replayer::new(Arc::new(cassette), Arc::new(NoBlobs), "c", Options::default()).unwrap();
        let ask = |text: &&str| {
            let line = format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t","arguments":{{"a":"{text}"}}}}}}"#
            );
            replayer.handle(0, Input::Message { lane: Lane(0), bytes: line.as_bytes() });
            let Some(Output::Send { bytes, .. }) = replayer.poll(0) else { panic!("no answer") };
            let answer = String::from_utf8(bytes).unwrap();
            let result = answer.strip_prefix(r#"{"jsonrpc":"2.0","id":1,"result":"#);
            result.map_or("-".to_owned(), |result| result.trim_end_matches('}').to_owned())
        };
        calls.iter().map(ask).collect()
    }

    #[test]
    fn a_blank_that_takes_a_whole_word_comes_before_one_that_takes_a_part() {
        let (see, path) = ("see <redacted:password-1>", "/srv/<redacted:password-1>");
        for (recorded, live) in [
            ([see, "see <redacted:password-1>!"], ["see Hunter2xy!", "see Hunter2xy!!"]),
            ([path, "/srv/<redacted:password-1>1"], ["/srv/backup11", "/srv/backup111"]),
            ([see, "see <redacted:password-1>QQ"], ["see hunter2aQQ", "see hunter2aQQQQ"]),
            ([see, "see <redacted:password-2>"], ["see hunter2aa", "see hunter2aaa"]),
        ] {
            assert_eq!(answers(&recorded, &live), "01", "{recorded:?}");
        }
        // More that stands there is more, but not within a word.
        let recorded = ["<redacted:token-1>", "see <redacted:password-1>!"];
        assert_eq!(answers(&recorded, &["see hunter2a!"]), "1");
        let recorded = ["run <redacted:token-1>", "run x:<redacted:password-1>"];
        assert_eq!(answers(&recorded, &["run x:hunter2a"]), "1");
    }
}
