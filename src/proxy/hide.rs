//! What is taken out of what passed before it is written.

use std::borrow::Cow;

use crate::{
    redact::Redactor,
    traffic::{Direction, Event, Headers, Payload},
};

/// What is taken out of what passed before it is written; the traffic itself stays as it is. What comes back borrowed
/// has nothing in it that is taken out.
pub trait Hide: Send + Sync {
    /// Whether nothing would be taken out of an event. Several are asked at once, so that those whose messages are clean
    /// do not wait for each other; where it is not known, the answer is no.
    fn is_clean(&self, _event: &Event<'_>) -> bool {
        false
    }

    /// The message as it may be written.
    fn message<'a>(&mut self, direction: Direction, bytes: &'a [u8]) -> Cow<'a, [u8]>;

    /// The value of a header as it may be written; the name is in lower case.
    fn header<'a>(&mut self, _name: &[u8], value: &'a [u8]) -> Cow<'a, [u8]> {
        self.message(Direction::ToServer, value)
    }

    /// The target of a request, path and query, as it may be written.
    fn target<'a>(&mut self, target: &'a [u8]) -> Cow<'a, [u8]> {
        self.message(Direction::ToServer, target)
    }

    /// Takes out of an event, wherever in it it stands.
    fn event(&mut self, event: &mut Event<'_>) {
        let direction = event.direction;
        match &mut event.payload {
            Payload::Message(bytes) | Payload::Partial(bytes) | Payload::Body(bytes) => {
                renew(bytes, |bytes| self.message(direction, bytes));
            }
            Payload::SseEvent(sent) => renew(&mut sent.data, |bytes| self.message(direction, bytes)),
            Payload::Oversize(measured) => {
                for end in [&mut measured.head, &mut measured.tail] {
                    if let Cow::Owned(hidden) = self.message(direction, end) {
                        *end = hidden;
                    }
                }
            }
            Payload::Request(head) => {
                renew(&mut head.target, |target| self.target(target));
                hide_headers(self, &mut head.headers);
            }
            Payload::Response(head) => hide_headers(self, &mut head.headers),
            Payload::Closed | Payload::Broken { .. } | Payload::Exit(_) | Payload::Gap { .. } => {}
        }
    }
}

fn hide_headers<H: Hide + ?Sized>(hide: &mut H, headers: &mut Headers<'_>) {
    for (name, value) in headers {
        renew(value, |value| hide.header(&in_lower_case(name), value));
    }
}

fn in_lower_case(name: &[u8]) -> Cow<'_, [u8]> {
    match name.iter().any(u8::is_ascii_uppercase) {
        true => Cow::Owned(name.to_ascii_lowercase()),
        false => Cow::Borrowed(name),
    }
}

/// A part of an event, in which something may stand that is taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// A message, a body, or what there is of one.
    Message(&'a [u8]),
    /// A header: its name in lower case, and its value.
    Header(&'a [u8], &'a [u8]),
    /// The target of a request, path and query.
    Target(&'a [u8]),
}

impl<'a> Part<'a> {
    /// Whether something holds of all parts of an event.
    pub fn all(event: &'a Event<'_>, mut holds: impl FnMut(Part<'_>) -> bool) -> bool {
        let mut all_hold = |headers: &Headers<'_>| {
            headers.iter().all(|(name, value)| holds(Part::Header(&in_lower_case(name), value)))
        };
        match &event.payload {
            Payload::Request(head) => all_hold(&head.headers) && holds(Part::Target(&head.target)),
            Payload::Response(head) => all_hold(&head.headers),
            Payload::Message(bytes) | Payload::Partial(bytes) | Payload::Body(bytes) => {
                holds(Part::Message(bytes))
            }
            Payload::SseEvent(sent) => holds(Part::Message(&sent.data)),
            Payload::Oversize(line) => holds(Part::Message(&line.head)) && holds(Part::Message(&line.tail)),
            Payload::Closed | Payload::Broken { .. } | Payload::Exit(_) | Payload::Gap { .. } => true,
        }
    }

    /// What of it may be changed.
    pub const fn bytes(self) -> &'a [u8] {
        match self {
            Self::Message(bytes) | Self::Header(_, bytes) | Self::Target(bytes) => bytes,
        }
    }

    /// Whether a redactor knows that it would change nothing in it.
    pub fn is_clean(self, redactor: &Redactor) -> bool {
        match self {
            Self::Message(bytes) => redactor.is_clean_message(bytes),
            Self::Header(name, value) => redactor.is_clean_header(name, value),
            Self::Target(target) => redactor.is_clean_url(target),
        }
    }
}

/// Replaces bytes that `hide` changes.
fn renew(bytes: &mut Cow<'_, [u8]>, hide: impl for<'a> FnOnce(&'a [u8]) -> Cow<'a, [u8]>) {
    if let Cow::Owned(hidden) = hide(bytes) {
        *bytes = Cow::Owned(hidden);
    }
}

/// Nothing is hidden.
impl Hide for () {
    fn is_clean(&self, _: &Event<'_>) -> bool {
        true
    }

    fn message<'a>(&mut self, _: Direction, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        Cow::Borrowed(bytes)
    }
}

impl Hide for Redactor {
    fn is_clean(&self, event: &Event<'_>) -> bool {
        Part::all(event, |part| part.is_clean(self))
    }

    fn message<'a>(&mut self, direction: Direction, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        Self::message(self, direction, bytes)
    }

    fn header<'a>(&mut self, name: &[u8], value: &'a [u8]) -> Cow<'a, [u8]> {
        match self.is_clean_header(name, value) {
            true => Cow::Borrowed(value),
            false => {
                let name = String::from_utf8_lossy(name);
                as_text(value, |text| self.header_value(&name, text))
            }
        }
    }

    fn target<'a>(&mut self, target: &'a [u8]) -> Cow<'a, [u8]> {
        match self.is_clean_url(target) {
            true => Cow::Borrowed(target),
            false => as_text(target, |text| self.url(text)),
        }
    }
}

/// Bytes of a head as the text that they are in ISO-8859-1, and back.
fn as_text<'a>(bytes: &'a [u8], hide: impl FnOnce(&str) -> Cow<'_, str>) -> Cow<'a, [u8]> {
    // Nearly all of them are ASCII, which is the same in UTF-8.
    let ascii = std::str::from_utf8(bytes).ok().filter(|text| text.is_ascii());
    let text = match ascii {
        Some(text) => Cow::Borrowed(text),
        None => Cow::Owned(bytes.iter().copied().map(char::from).collect()),
    };
    match hide(&text) {
        Cow::Owned(hidden) if hidden != text => {
            Cow::Owned(hidden.chars().map(|char| u8::try_from(char).unwrap_or(b'?')).collect())
        }
        _ => Cow::Borrowed(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        proxy::recorder::event,
        traffic::{Lane, RequestHead, ResponseHead},
    };

    #[test]
    fn every_part_of_an_event_is_asked_for() {
        let headers = || vec![(Cow::Borrowed(&b"X-A"[..]), Cow::Borrowed(&b"1"[..]))];
        let head = RequestHead { method: b"POST"[..].into(), target: b"/t"[..].into(), headers: headers() };
        let request = event(Direction::ToServer, Lane(0), Payload::Request(head));
        let response = Payload::Response(ResponseHead { status: 200, headers: headers() });
        let response = event(Direction::ToClient, Lane(0), response);
        let message = event(Direction::ToServer, Lane(0), Payload::Message(b"text"[..].into()));
        let parts = |event: &Event<'_>| {
            let mut parts = Vec::new();
            assert!(Part::all(event, |part| {
                parts.push(format!("{part:?} {:?}", part.bytes()));
                true
            }));
            // One that does not hold is enough.
            assert!((0..parts.len()).all(|at| {
                let mut asked = 0..;
                !Part::all(event, |_| asked.next() != Some(at))
            }));
            parts.len()
        };
        assert_eq!([&request, &response, &message].map(parts), [2, 1, 1]);
        let header = Part::Header(b"x-a", b"1");
        assert!(!Part::all(&response, |part| part != header));
    }
}
