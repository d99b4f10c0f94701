//! An event as bincode writes it, which takes several times as long for the same bytes: nearly all of a journal is
//! events, and nearly all of bincode's work small numbers.

use super::MAX_MESSAGE;
use crate::traffic::{Direction, Event, Exit, Headers, Payload};

/// Where events stand among frames.
const EVENT: u64 = 1;

/// Appends an event. What it is comes first as a number: its place in `PayloadFrame`, by which it is read.
pub(super) fn push(event: &Event<'_>, out: &mut Vec<u8>) {
    let mut fields = Fields(out);
    fields.number(EVENT);
    fields.number(event.at);
    fields.flag(event.direction == Direction::ToServer);
    fields.number(event.lane.0.into());
    match &event.payload {
        Payload::Message(bytes) => fields.kind(0).bytes(bytes),
        Payload::Partial(bytes) => fields.kind(1).bytes(&bytes[..bytes.len().min(MAX_MESSAGE)]),
        Payload::Oversize(line) => {
            fields.kind(2).number(line.size);
            fields.0.extend_from_slice(&line.sha256);
            fields.bytes(&line.head);
            fields.bytes(&line.tail);
        }
        Payload::Closed => drop(fields.kind(3)),
        &Payload::Exit(Exit { status, signal, by_itself }) => {
            fields.kind(4).option(status, Fields::signed);
            fields.option(signal, Fields::signed);
            fields.flag(by_itself);
        }
        &Payload::Gap { messages } => fields.kind(5).number(messages),
        Payload::Request(head) => {
            fields.kind(6).bytes(&head.method);
            fields.bytes(&head.target);
            fields.headers(&head.headers);
        }
        Payload::Response(head) => {
            fields.kind(7).number(head.status.into());
            fields.headers(&head.headers);
        }
        Payload::SseEvent(event) => {
            let has_data = !(event.no_data && event.data.is_empty());
            fields.kind(if has_data { 8 } else { 11 }).option(event.id.as_deref(), Fields::bytes);
            fields.option(event.event.as_deref(), Fields::bytes);
            fields.option(event.retry, Fields::number);
            if has_data {
                fields.bytes(&event.data);
            }
        }
        Payload::Body(bytes) => fields.kind(9).bytes(bytes),
        &Payload::Broken { reset } => fields.kind(10).flag(reset),
    }
}

struct Fields<'a>(&'a mut Vec<u8>);

impl Fields<'_> {
    fn kind(&mut self, place: u8) -> &mut Self {
        self.0.push(place);
        self
    }

    fn flag(&mut self, flag: bool) {
        self.0.push(flag.into());
    }

    /// A number of any size: one up to 250 is its own byte.
    fn number(&mut self, number: u64) {
        if number <= 250 {
            self.0.push(number as u8);
        } else if let Ok(number) = u16::try_from(number) {
            self.0.push(251);
            self.0.extend_from_slice(&number.to_le_bytes());
        } else if let Ok(number) = u32::try_from(number) {
            self.0.push(252);
            self.0.extend_from_slice(&number.to_le_bytes());
        } else {
            self.0.push(253);
            self.0.extend_from_slice(&number.to_le_bytes());
        }
    }

    /// The sign is the lowest bit.
    fn signed(&mut self, number: i32) {
        self.number(((number << 1 ^ number >> 31) as u32).into());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn option<T>(&mut self, value: Option<T>, push: impl FnOnce(&mut Self, T)) {
        self.flag(value.is_some());
        if let Some(value) = value {
            push(self, value);
        }
    }

    fn headers(&mut self, headers: &Headers<'_>) {
        self.number(headers.len() as u64);
        for (name, value) in headers {
            self.bytes(name);
            self.bytes(value);
        }
    }
}
