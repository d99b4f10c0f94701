//! A second look for a message that nothing recorded equals: placeholders are blanks that any value fills.
//!
//! The recorder knew what is secret when its session had ended, and by what was seen of it; a live session may not know
//! it yet, or know it as another kind of secret. What fills a blank is paired with it as other secrets are. What is
//! not known as a secret is looked at here and gets a number, but is kept and told nowhere.

use super::{
    Found, Replayer,
    secrets::{Paired, numbered},
};
use crate::{
    redact::{Pairing, Pairs, Placeholder},
    replay::{
        matcher::blanks::{Filling, fillings},
        script::{StepKind, look},
    },
    wire::jsonrpc::{Kind, Message},
};

/// So many recorded messages are compared with a live one.
const MOST: usize = 1_000;

/// A recorded message that equals a live one but for its blanks: its step, and what it would pair if that breaks no
/// pair.
pub(super) type Filled = (u32, Option<Paired>);

impl Replayer {
    /// Where the exchange stands whose message equals a live one but for its blanks, in these plays.
    pub(super) fn find_blank(&mut self, plays: [Option<usize>; 2], message: &Message<'_>) -> Option<Found> {
        let kind = match message.kind {
            Kind::Request => StepKind::Request,
            Kind::Notification => StepKind::Notification,
            Kind::Noise if self.at_hand.facts.is_some() => StepKind::Line,
            _ => return None,
        };
        plays.into_iter().flatten().find_map(|play| {
            let filled = self.filled_in(play, message, kind);
            let (fit, broken): (Vec<_>, Vec<_>) =
                filled.into_iter().partition(|(_, paired)| paired.is_some());
            [fit, broken].into_iter().filter(|filled| !filled.is_empty()).find_map(|filled| {
                let is_told = self.at_hand.unpaired;
                let found = self.look_in(play, message, Some(filled));
                // What equals it in all but numbers says more.
                self.at_hand.unpaired = is_told.or(self.at_hand.unpaired);
                found
            })
        })
    }

    fn filled_in(&mut self, play: usize, message: &Message<'_>, kind: StepKind) -> Vec<Filled> {
        let script = &self.scripts[self.plays[play].script];
        let (cassette, blobs, matcher) = (&self.cassette, &*self.blobs, &mut self.matcher);
        let blank = script.blank(cassette, blobs);
        if blank.is_empty() {
            return Vec::new();
        }
        let (method, name) = (message.method(), message.name());
        let whole = Message::read(&self.at_hand.plain);
        let plain = match whole.kind {
            Kind::Batch => {
                whole.members().find(|member| member.id().is_some() && member.id() == message.id())
            }
            _ => (message.kind != Kind::Noise && !whole.bytes.is_empty()).then_some(whole),
        };
        let seen = [(Some(*message), true), (plain, false)];
        let mut forms = [(); 2].map(|()| None);
        let is_asked = |step: &&u32| {
            let step = &script.steps[**step as usize];
            step.kind == kind && **script.method(step) == *method
        };
        let mut room = Vec::new();
        let mut filled = Vec::new();
        for &step in blank.iter().filter(is_asked).take(MOST) {
            let exchange = script.steps[step as usize].exchange;
            let entry = &cassette.exchanges[exchange as usize];
            let Some(recorded) = look(cassette, blobs, entry, &mut room) else { continue };
            if recorded.name() != name && !recorded.name().is_some_and(|name| name.contains("<redacted:")) {
                continue;
            }
            let own = script.index.own_table(step);
            let Some(recorded) = matcher.numbered_form(&recorded, own) else { continue };
            for ((seen, is_redacted), known) in seen.iter().zip(&mut forms) {
                let Some(seen) = seen else { continue };
                let of_own = own.map(|_| matcher.numbered_form(seen, own));
                let form = match &of_own {
                    Some(form) => form,
                    None => known.get_or_insert_with(|| matcher.numbered_form(seen, None)),
                };
                let fills = form.as_ref().and_then(|form| fillings(&recorded, form, *is_redacted));
                let Some(fills) = fills.filter(|fills| !fills.is_empty()) else { continue };
                if kind == StepKind::Line && fills.iter().any(|(_, by)| matches!(by, Filling::Text(_))) {
                    // How an address spells a value is not told here.
                    continue;
                }
                let (mut pairs, mut unknown) = (Vec::new(), Vec::<Box<[u8]>>::new());
                for (recorded, filling) in fills {
                    let live = match filling {
                        Filling::Secret(secret) => secret,
                        Filling::Text(text) => self.redactor.known(text).unwrap_or_else(|| {
                            let at =
                                unknown.iter().position(|known| **known == *text).unwrap_or(unknown.len());
                            if at == unknown.len() {
                                unknown.push(text.into());
                            }
                            // No kind of secret: it stands for none of those that are paired.
                            Placeholder { kind: Box::default(), number: at as u32 }
                        }),
                    };
                    pairs.push((live, recorded));
                }
                let pairs = Pairs::these(pairs);
                let fresh = Pairing::new();
                let pairing = self.pairings.get(&(play, numbered(cassette, exchange))).unwrap_or(&fresh);
                let is_whole = pairing.check(&pairs).is_ok();
                filled.push((step, is_whole.then_some(Paired { play, exchange, pairs, unknown })));
                break;
            }
        }
        filled
    }
}
