//! What the faults that change an answer's text share.

use crate::{
    fault::{
        Effect, Fault, Target,
        step::{Output, Step},
    },
    wire::{Span, jsonrpc::Message},
};

/// A fault that changes the answer's text; none: it stays.
pub(super) struct Answer<F>(pub F);

/// An answer to be changed.
pub(super) struct Response<'a> {
    /// The request's id, raw.
    pub id: &'a [u8],
    /// Whether the request is of 2026-07-28 or later.
    pub is_modern: bool,
    /// The answer.
    pub message: Message<'a>,
}

impl<F> std::fmt::Debug for Answer<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Answer")
    }
}

impl<F> Fault for Answer<F>
where
    F: Fn(&Response<'_>) -> Option<Vec<u8>> + Clone + Send + Sync + 'static,
{
    fn effect(&self, of: &Target<'_>) -> Option<Box<dyn Effect>> {
        Some(Box::new(Changing { change: self.0.clone(), id: of.id.into(), is_modern: of.is_modern }))
    }
}

struct Changing<F> {
    change: F,
    id: Box<[u8]>,
    is_modern: bool,
}

impl<F> std::fmt::Debug for Changing<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Changing")
    }
}

impl<F: Fn(&Response<'_>) -> Option<Vec<u8>> + Send> Effect for Changing<F> {
    fn pass(&mut self, output: Output, out: &mut Vec<Step>) {
        let text = output.text().map(Message::read).filter(|message| message.kind.is_response());
        let Some(message) = text else { return out.push(Step::Do(output)) };
        let changed = (self.change)(&Response { id: &self.id, is_modern: self.is_modern, message });
        out.push(Step::Do(match changed {
            Some(text) => output.with_text(text),
            None => output,
        }));
    }
}

impl Response<'_> {
    /// The answer with something else at a place in it.
    pub(super) fn with(&self, place: Span, text: &[u8]) -> Vec<u8> {
        let bytes = self.message.bytes;
        [&bytes[..place.start], text, &bytes[place.end..]].concat()
    }

    /// The answer with another id.
    pub(super) fn with_id(&self, id: &[u8]) -> Option<Vec<u8>> {
        self.message.id_span().map(|place| self.with(place, id))
    }

    /// The answer with this result; an error stays.
    pub(super) fn with_result(&self, result: &[u8]) -> Option<Vec<u8>> {
        let is_result = self.message.kind == crate::wire::jsonrpc::Kind::Result;
        self.message.outcome_span().filter(|_| is_result).map(|place| self.with(place, result))
    }
}
