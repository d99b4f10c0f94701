//! Tapes that go on with a session which the cassette has already: what becomes of their ids.
//!
//! Whoever passes requests on counts them from 1 in each journal, and servers count theirs as they like. In a session
//! each id is used once, so both sides' numbers move up behind those that are there.

use std::borrow::Cow;

use crate::{
    cassette::model::{Cassette, Form, Id},
    traffic::{Direction, Event, Payload},
    wire::{
        Span,
        jsonrpc::{Kind, Message},
        scan,
    },
};

/// From where on nobody in a session has used a number as an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Free {
    client: u64,
    server: u64,
}

impl Free {
    /// In a session of a cassette, by its index.
    pub(super) fn of(cassette: &Cassette, session: usize) -> Self {
        let mut free = Self { client: 0, server: 0 };
        let behind = |id: &Id, free: u64| match id {
            Id::Number(number) => free.max(number.saturating_add(1)),
            Id::Absent | Id::Token(_) => free,
        };
        for exchange in cassette.exchanges.iter().filter(|exchange| exchange.session as usize == session) {
            if let Some(client) = &exchange.client {
                free.client = behind(&client.id, free.client);
            }
            for item in exchange.server.iter().filter(|item| item.message.form == Form::Request) {
                free.server = behind(&item.message.id, free.server);
            }
        }
        free
    }
}

/// Moves the ids of one tape behind those that are used.
#[derive(Debug)]
pub(super) struct Shift {
    from: Free,
    /// From where on they are free behind the tape.
    pub(super) then: Free,
}

impl Shift {
    pub(super) const fn to(free: Free) -> Self {
        Self { from: free, then: free }
    }

    /// Changes an event of the tape.
    pub(super) fn apply(&mut self, event: &mut Event<'_>) {
        let Payload::Message(bytes) = &mut event.payload else { return };
        let message = Message::read(bytes);
        let mut changes: Vec<(Span, Vec<u8>)> = Vec::new();
        for member in std::iter::once(message).chain(message.members()) {
            let offset = member.bytes.as_ptr() as usize - bytes.as_ptr() as usize;
            self.places(event.direction, &member, |span, token| changes.push((span.shift(offset), token)));
        }
        if changes.is_empty() {
            return;
        }
        changes.sort_by_cached_key(|(span, _)| std::cmp::Reverse(span.start));
        let mut changed = bytes.to_vec();
        for (span, token) in changes {
            changed.splice(span.start..span.end, token);
        }
        *bytes = Cow::Owned(changed);
    }

    fn places(&mut self, direction: Direction, message: &Message<'_>, mut change: impl FnMut(Span, Vec<u8>)) {
        let from_client = direction == Direction::ToServer;
        let mut moves = |span: Option<Span>, of_client: bool| {
            let Some(span) = span else { return };
            let moved = if of_client {
                let moved = moved(span.of(message.bytes), self.from.client.saturating_sub(1));
                self.then.client =
                    moved.as_ref().map_or(self.then.client, |(id, _)| self.then.client.max(id + 1));
                moved
            } else {
                let moved = moved(span.of(message.bytes), self.from.server);
                self.then.server =
                    moved.as_ref().map_or(self.then.server, |(id, _)| self.then.server.max(id + 1));
                moved
            };
            if let Some((_, token)) = moved {
                change(span, token);
            }
        };
        match message.kind {
            Kind::Request => {
                moves(message.id_span(), from_client);
                // Whoever passes a request on gives it its number for a token.
                moves(message.param_span("/_meta/progressToken").filter(|_| from_client), true);
            }
            Kind::Result | Kind::Error => {
                moves(message.id_span(), !from_client);
                let meta = message.outcome_span().filter(|_| !from_client).and_then(|outcome| {
                    scan::pointer(message.bytes, outcome, "/_meta/io.modelcontextprotocol~1subscriptionId")
                });
                moves(meta, true);
            }
            Kind::Notification if message.method() == "notifications/cancelled" => {
                moves(message.param_span("/requestId"), from_client);
            }
            Kind::Notification if !from_client => {
                let token = message.param_span("/progressToken");
                moves(token.filter(|_| message.method() == "notifications/progress"), true);
                moves(message.param_span("/_meta/io.modelcontextprotocol~1subscriptionId"), true);
            }
            Kind::Notification | Kind::Batch | Kind::Noise => {}
        }
    }
}

/// A number moved up, as an id is spelled: `7`, and what servers make of it, `"7"` and `7.0`.
fn moved(token: &[u8], by: u64) -> Option<(u64, Vec<u8>)> {
    let (quote, inside) = match token.strip_prefix(b"\"").and_then(|inside| inside.strip_suffix(b"\"")) {
        Some(inside) => (&b"\""[..], inside),
        None => (&b""[..], token),
    };
    let digits = inside.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, rest) = inside.split_at(digits);
    let is_whole =
        rest.is_empty() || (rest.len() > 1 && rest[0] == b'.' && rest[1..].iter().all(|byte| *byte == b'0'));
    let number: u64 = std::str::from_utf8(number).ok().filter(|_| is_whole)?.parse().ok()?;
    let number = number.checked_add(by).filter(|number| *number < u64::MAX)?;
    Some((number, [quote, number.to_string().as_bytes(), rest, quote].concat()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::Lane;

    fn shifted(shift: &mut Shift, direction: Direction, line: &str) -> String {
        let payload = Payload::Message(line.as_bytes().into());
        let mut event = Event { at: 0, direction, lane: Lane(0), payload };
        shift.apply(&mut event);
        let Payload::Message(bytes) = event.payload else { unreachable!() };
        String::from_utf8(bytes.into_owned()).unwrap()
    }

    #[test]
    fn ids_move_behind_those_that_are_used_and_stay_those_of_each_other() {
        let free = Free { client: 5, server: 2 };
        let mut shift = Shift::to(free);
        let (client, server) = (Direction::ToServer, Direction::ToClient);
        for (direction, line, expected) in [
            (client, r#"{"jsonrpc":"2.0","id":1,"method":"a"}"#, r#"{"jsonrpc":"2.0","id":5,"method":"a"}"#),
            (
                server,
                r#"{"jsonrpc":"2.0","id":"1","result":{}}"#,
                r#"{"jsonrpc":"2.0","id":"5","result":{}}"#,
            ),
            (
                server,
                r#"{"jsonrpc":"2.0","id":1.0,"result":{}}"#,
                r#"{"jsonrpc":"2.0","id":5.0,"result":{}}"#,
            ),
            (server, r#"{"jsonrpc":"2.0","id":0,"method":"b"}"#, r#"{"jsonrpc":"2.0","id":2,"method":"b"}"#),
            (
                client,
                r#"{"jsonrpc":"2.0","id":0,"result":{"id":0}}"#,
                r#"{"jsonrpc":"2.0","id":2,"result":{"id":0}}"#,
            ),
            (
                server,
                r#"{"jsonrpc":"2.0","id":"s-1","method":"b"}"#,
                r#"{"jsonrpc":"2.0","id":"s-1","method":"b"}"#,
            ),
            (
                client,
                r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}"#,
                r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#,
            ),
            (
                server,
                r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
                r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}"#,
            ),
            (server, "noise 1", "noise 1"),
        ] {
            assert_eq!(shifted(&mut shift, direction, line), expected, "{line}");
        }
        assert_eq!(shift.then, Free { client: 8, server: 4 });
        let batch = r#"[{"jsonrpc":"2.0","id":1,"result":{}}, {"jsonrpc":"2.0","id":2,"result":{}}]"#;
        let expected = r#"[{"jsonrpc":"2.0","id":5,"result":{}}, {"jsonrpc":"2.0","id":6,"result":{}}]"#;
        assert_eq!(shifted(&mut Shift::to(free), server, batch), expected);
    }
}
