//! Bodies of requests that are no messages: of those recorded with one method and target, which one is meant.

use std::{cell::RefCell, cmp::Reverse, collections::HashMap};

use super::{Found, Replayer};
use crate::{
    cassette::{
        blob::BlobSource,
        model::{Cassette, Form},
    },
    replay::{
        matcher::bodies::{Body, Likeness, Media},
        miss,
    },
    report::Miss,
    traffic::Direction,
    wire::jsonrpc::Message,
};

/// The body of the request at hand, and the recorded ones that it was compared with.
#[derive(Debug)]
pub(super) struct LiveBody {
    media: Media,
    body: Body,
    /// It before redaction, where that changed it.
    plain: Option<Body>,
    is_empty: bool,
    /// How alike a recorded one has to be to be found.
    wanted: Likeness,
    /// By exchanges: how alike they are, and in how many bytes where they differ.
    compared: RefCell<HashMap<u32, (Likeness, usize)>>,
}

impl LiveBody {
    /// Whether the body of an exchange is as alike as one has to be now.
    pub(super) fn wants(&self, cassette: &Cassette, blobs: &dyn BlobSource, exchange: u32) -> bool {
        let mut compared = self.compared.borrow_mut();
        let likeness = compared.entry(exchange).or_insert_with(|| self.compare(cassette, blobs, exchange));
        likeness.0 == self.wanted
    }

    fn compare(&self, cassette: &Cassette, blobs: &dyn BlobSource, exchange: u32) -> (Likeness, usize) {
        let Some(recorded) = self.recorded(cassette, blobs, exchange) else {
            let had_none = cassette.exchanges[exchange as usize].body.is_none() && self.is_empty;
            return (if had_none { Likeness::Equal } else { Likeness::Unkept }, 0);
        };
        (recorded.likeness(&self.body, self.plain.as_ref()), recorded.shared(&self.body))
    }

    /// The body of a recorded request, as one of the same type; none where it is not kept, or not all of it.
    fn recorded(&self, cassette: &Cassette, blobs: &dyn BlobSource, exchange: u32) -> Option<Body> {
        let entry = &cassette.exchanges[exchange as usize];
        let kept = entry.body.as_ref().filter(|body| body.form != Form::Omitted && !entry.is_partial)?;
        let mut bytes = Vec::new();
        let wire = cassette.wire(entry.session, true, kept, None, blobs, &mut bytes);
        wire.ok().map(|_| Body::of(&bytes, self.media))
    }

    /// The exchange whose body shares most with it, of those that would have been played for it.
    fn nearest(&self) -> Option<u32> {
        let compared = self.compared.borrow();
        let differ = compared.iter().filter(|(_, (likeness, _))| *likeness == Likeness::Differs);
        differ.max_by_key(|(exchange, (_, shared))| (*shared, Reverse(**exchange))).map(|(at, _)| *at)
    }
}

impl Replayer {
    /// Takes in the body of a request that is no message, and what its content type says of it.
    pub(super) fn take_body(&mut self, body: &[u8], content_type: Option<&[u8]>) {
        let media = Media::of(content_type);
        let named = self.options.vars.hide(body);
        // Others may repeat its secrets.
        let redacted = self.redactor.message(Direction::ToServer, &named);
        self.at_hand.body = Some(LiveBody {
            media,
            body: Body::of(&redacted, media),
            plain: (redacted != named).then(|| Body::of(&named, media)),
            is_empty: body.is_empty(),
            wanted: Likeness::Equal,
            compared: RefCell::default(),
        });
    }

    /// Where the exchange stands that a request asks for with the body at hand: one that is equal before one that is so
    /// but for what varies.
    pub(super) fn find_by_body(&mut self, line: &Message<'_>) -> Option<Found> {
        let is_of_oauth = self.at_hand.body.as_ref().is_some_and(|live| live.body.is_of_oauth());
        let (mut repeat, mut unpaired) = (None, None);
        for wanted in [Likeness::Equal, Likeness::Blanks, Likeness::OAuth, Likeness::Unkept] {
            if let Some(live) = &mut self.at_hand.body {
                live.wanted = wanted;
            }
            match self.find(line) {
                // What varies by protocol is equal by chance: what is left comes before a repeat.
                Some(found) if found.repeat && is_of_oauth && wanted < Likeness::Unkept => {
                    repeat = repeat.or(Some((found, self.at_hand.paired.take())));
                }
                Some(found) if wanted < Likeness::Unkept || repeat.is_none() => return Some(found),
                _ => unpaired = unpaired.or(self.at_hand.unpaired.take()),
            }
        }
        // It may be looked for again, in a session of its own.
        if let Some(live) = &mut self.at_hand.body {
            live.wanted = Likeness::Equal;
        }
        let Some((found, paired)) = repeat else {
            self.at_hand.unpaired = unpaired;
            return None;
        };
        (self.at_hand.paired, self.at_hand.unpaired) = (paired, None);
        Some(found)
    }

    /// That the request at hand would have been found if its body were another one.
    pub(super) fn of_other_body(&self, line: &str) -> Option<Miss> {
        let live = self.at_hand.body.as_ref()?;
        let exchange = live.nearest()?;
        let recorded = live.recorded(&self.cassette, &*self.blobs, exchange)?;
        Some(miss::of_body(line, self.key(exchange), &recorded, &live.body))
    }
}
