//! A second look for a message that nothing recorded equals: placeholders are blanks that any value fills.
//!
//! The recorder knew what is secret when its session had ended, and by what was seen of it; a live session may not know
//! it yet, or know it as another kind of secret. What fills a blank is paired with it as other secrets are. What is
//! not known as a secret is looked at here and gets a number, but is told nowhere.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
};

use super::{
    Found, Replayer,
    secrets::{Paired, are_alike, numbered},
};
use crate::{
    redact::{Pairing, Pairs, Placeholder, Redactor},
    replay::{
        matcher::{
            Matcher,
            blanks::{Broken, Filling, Known, Live, agreed, fillings, is_in_a_name},
            canonical::holds_placeholder,
        },
        script::{BlankSteps, StepKind, look},
    },
    wire::jsonrpc::{Kind, Message},
};

/// So many recorded messages that may equal a live one are compared with it.
const MOST_COMPARED: usize = 1_000;
/// Of so many that say the same and break no pair one is chosen.
const ENOUGH: usize = 16;
/// So many that break a pair are kept.
const MOST_BROKEN: usize = 128;

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
        let mut found = None;
        for broken in [Broken::Single, Broken::Any] {
            if found.is_none() && (broken == Broken::Single || self.at_hand.unpaired.is_none()) {
                let mut plays = plays.into_iter().flatten();
                found = plays.find_map(|play| self.find_blank_in(play, message, kind, broken));
            }
        }
        // What equals it at the first look is nearer.
        self.at_hand.unpaired = unpaired.or(self.at_hand.unpaired);
        found
    }

    /// Where the exchange stands whose message equals a live one as it came: the recorder may not have met as a secret
    /// what this session has.
    pub(super) fn find_plain(&mut self, plays: [Option<usize>; 2], message: &Message<'_>) -> Option<Found> {
        let came = std::mem::take(&mut self.at_hand.plain);
        let unpaired = self.at_hand.unpaired;
        let plain = plain_of(&came, message);
        let found = plain
            .and_then(|plain| plays.into_iter().flatten().find_map(|play| self.find_in(play, &plain, None)));
        self.at_hand.plain = came;
        self.at_hand.unpaired = unpaired;
        found
    }

    /// The same in one play. What agrees with it in more is meant before what agrees in less, where a blank may take
    /// anything: if it would break a pair, nothing else is.
    fn find_blank_in(
        &mut self,
        play: usize,
        message: &Message<'_>,
        kind: StepKind,
        broken: Broken,
    ) -> Option<Found> {
        for (_, alike) in self.filled_in(play, message, kind, broken).into_iter().rev() {
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
    fn filled_in(
        &mut self,
        play: usize,
        message: &Message<'_>,
        kind: StepKind,
        broken: Broken,
    ) -> BTreeMap<usize, Alike> {
        let mut found: BTreeMap<usize, Alike> = BTreeMap::new();
        let script = &self.scripts[self.plays[play].script];
        let (cassette, blobs) = (&self.cassette, &*self.blobs);
        let blank = script.blank(cassette, blobs, &mut self.matcher);
        if blank.is_empty() {
            return found;
        }
        let name = message.name();
        let plain = plain_of(&self.at_hand.plain, message);
        let mut seen = Seen { matcher: &mut self.matcher, versions: [Some(*message), plain], forms: None };
        let fresh = Pairing::new();
        let is_taken = |step: u32| self.plays[play].is_taken(step);
        let mut steps = seen.candidates(blank);
        steps.retain(|step| script.steps[*step as usize].kind == kind);
        // What is left comes before what would be repeated.
        steps.sort_unstable_by_key(|step| (is_taken(*step), *step));
        steps.dedup();
        let (mut room, mut compared) = (Vec::new(), 0);
        let mut holding: HashMap<u64, usize> = HashMap::new();
        for step in steps {
            let said = blank.iter().find_map(|steps| steps.index.said(step)).unwrap_or_default();
            if holding.get(&said).is_some_and(|count| *count >= ENOUGH) {
                continue;
            }
            compared += 1;
            if compared > MOST_COMPARED {
                break;
            }
            #[cfg(test)]
            tests::LOOKS.with(|looks| looks.set(looks.get() + 1));
            let exchange = script.steps[step as usize].exchange;
            let entry = &cassette.exchanges[exchange as usize];
            let Some(recorded) = look(cassette, blobs, entry, &mut room) else { continue };
            if recorded.name() != name
                && !recorded.name().is_some_and(|name| holds_placeholder(name.as_bytes()))
            {
                continue;
            }
            let pairing = self.pairings.get(&(play, numbered(cassette, exchange))).unwrap_or(&fresh);
            let stands = |live: &Placeholder| self.redactor.said(live).map(<[u8]>::to_vec);
            let known =
                Known { recorded: &|recorded| stands(pairing.live(recorded)?), live: &stands, broken };
            let own = script.index.own_table(step);
            let Some(((agreed, are_whole), fills)) = seen.fillings(&recorded, own, known) else { continue };
            // How an address spells a value is not told here.
            if kind == StepKind::Line && fills.iter().any(|(_, by)| !matches!(by, Filling::Secret(_))) {
                continue;
            }
            let check = |(pairs, unknown): &(Pairs, Vec<Box<[u8]>>)| {
                pairing.check(pairs, are_alike(&self.redactor, unknown))
            };
            let (mut pairs, mut checked) = (paired(&self.redactor, fills), Ok(()));
            if let Err(error) = check(&pairs) {
                // The recorder may have had a number for each spelling of a value that has one here.
                let by_plain = seen.fillings_by_plain(&recorded, own, known);
                let by_plain = by_plain.map(|(_, fills)| paired(&self.redactor, fills));
                match by_plain.filter(|pairs| kind != StepKind::Line && check(pairs).is_ok()) {
                    Some(by_plain) => pairs = by_plain,
                    None => checked = Err(error),
                }
            }
            let (pairs, unknown) = pairs;
            let alike = found.entry(agreed).or_default();
            match checked {
                Err(_) if alike.broken.len() < MOST_BROKEN => alike.broken.push((step, None)),
                Err(_) => {}
                Ok(()) => {
                    let list = if are_whole { &mut alike.holding } else { &mut alike.in_words };
                    list.push((step, Some(Paired { play, exchange, pairs, unknown })));
                    *holding.entry(said).or_default() += 1;
                }
            }
        }
        let recorded_order = |filled: &mut Vec<Filled>| filled.sort_unstable_by_key(|(step, _)| *step);
        for alike in found.values_mut() {
            [&mut alike.holding, &mut alike.in_words, &mut alike.broken].into_iter().for_each(recorded_order);
        }
        found
    }
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
    /// The steps that it may equal but for their blanks.
    fn candidates(&mut self, blank: &[BlankSteps]) -> Vec<u32> {
        let mut found = Vec::new();
        for BlankSteps { own, index } in blank {
            self.form(*own, false);
            let forms = self.forms.iter().flat_map(|(_, forms)| forms.iter().flatten());
            forms.for_each(|form| index.candidates(form, &mut found));
        }
        found
    }

    /// Its forms under a table.
    fn form(&mut self, own: Option<usize>, keeps_order: bool) {
        let Self { matcher, versions, forms } = self;
        if forms.as_ref().is_none_or(|(of, _)| *of != (own, keeps_order)) {
            let form =
                |version: &Option<Message<'_>>| matcher.numbered_form(version.as_ref()?, own, keeps_order);
            *forms = Some(((own, keeps_order), versions.each_ref().map(form)));
        }
    }

    /// What fills the blanks of a recorded message whose own table is given: by what is redacted, or else by what is
    /// not; and how much agrees. None where it has no blanks that count.
    fn fillings(
        &mut self,
        recorded: &Message<'_>,
        own: Option<usize>,
        known: Known<'_>,
    ) -> Option<(Agreed, Vec<(Placeholder, Filling<'_>)>)> {
        if is_in_a_name(recorded.bytes) {
            let known = Known { broken: Broken::Nowhere, ..known };
            for keeps_order in [false, true] {
                if self.fillings_in(recorded, own, keeps_order, known).is_some() {
                    return self.fillings_in(recorded, own, keeps_order, known);
                }
            }
        }
        self.fillings_in(recorded, own, false, known)
    }

    /// The same by what is not redacted alone.
    fn fillings_by_plain(
        &mut self,
        recorded: &Message<'_>,
        own: Option<usize>,
        known: Known<'_>,
    ) -> Option<(Agreed, Vec<(Placeholder, Filling<'_>)>)> {
        self.versions[1]?;
        let versions = self.versions;
        (self.versions, self.forms) = ([None, versions[1]], None);
        let fills = self.fillings(recorded, own, known).map(|(agreed, fills)| (agreed, owned(fills)));
        (self.versions, self.forms) = (versions, None);
        fills
    }

    fn fillings_in(
        &mut self,
        recorded: &Message<'_>,
        own: Option<usize>,
        keeps_order: bool,
        known: Known<'_>,
    ) -> Option<(Agreed, Vec<(Placeholder, Filling<'_>)>)> {
        let recorded = self.matcher.numbered_form(recorded, own, keeps_order)?;
        self.form(own, keeps_order);
        let [redacted, plain] = &self.forms.as_ref()?.1;
        let live = Live { redacted: redacted.as_deref(), plain: plain.as_deref() };
        let filled = fillings(&recorded, live, known).filter(|fillings| !fillings.is_empty())?;
        Some((agreed(&recorded, &filled), filled))
    }
}

fn owned(fillings: Vec<(Placeholder, Filling<'_>)>) -> Vec<(Placeholder, Filling<'static>)> {
    let own = |filling| match filling {
        Filling::Text(text) => Filling::Text(Cow::Owned(text.into_owned())),
        Filling::Secret(secret) => Filling::Secret(secret),
        Filling::Part => Filling::Part,
    };
    fillings.into_iter().map(|(placeholder, filling)| (placeholder, own(filling))).collect()
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
    let pairs = fillings.into_iter().filter_map(|(recorded, filling)| match filling {
        Filling::Secret(secret) => Some((secret, recorded)),
        Filling::Text(text) => Some((redactor.known(&text).unwrap_or_else(|| number(&text)), recorded)),
        Filling::Part => None,
    });
    (Pairs::these(pairs.collect()), unknown)
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, sync::Arc};

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

    thread_local! {
        /// How many recorded messages were compared with live ones.
        pub(super) static LOOKS: Cell<usize> = const { Cell::new(0) };
    }

    #[test]
    fn a_replay_compares_each_call_with_few_whatever_their_number() {
        let words = |call: usize| {
            (0..50).map(|word| format!("w{} ", (call * 31 + word * 7) % 997)).collect::<String>()
        };
        let looks = |calls: usize, text: &dyn Fn(usize, &str) -> String| {
            let texts = |secret: &dyn Fn(usize) -> String| -> Vec<String> {
                (0..calls).map(|call| text(call, &secret(call))).collect()
            };
            let recorded = texts(&|call| format!("<redacted:password-{}>", call + 1));
            let live = texts(&|call| format!("hunter{call}xyz"));
            let [recorded, live] =
                [&recorded, &live].map(|texts| texts.iter().map(|text| &**text).collect::<Vec<_>>());
            LOOKS.set(0);
            let all: String = (0..calls).map(|call| call.to_string()).collect();
            assert_eq!(answers(&recorded, &live), all);
            LOOKS.get()
        };
        // Those that differ are compared once; of those that differ in secrets alone, with so many as are chosen from.
        let apart = |call: usize, secret: &str| format!("{}{secret} {}", words(call), words(call + 1));
        assert!(looks(160, &apart) < 2 * 160);
        let alike = |_: usize, secret: &str| format!("log in with {secret}");
        let (few, many) = (looks(80, &alike), looks(160, &alike));
        assert!(many < 3 * few, "{few} {many}");
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
