//! Answers that are asked for again and again, kept as they go out: writing one anew from the cassette costs more than
//! all else that is done for its request.

use crate::{
    replay::numbers::ByNumber,
    wire::{Span, jsonrpc::Message},
};

/// So many bytes are kept.
const ROOM: usize = 1 << 20;

/// The answers that are kept, by exchange and item.
#[derive(Debug, Default)]
pub(super) struct Answers {
    kept: ByNumber<(u32, u32), Answer>,
    room: usize,
}

#[derive(Debug)]
struct Answer {
    line: Box<[u8]>,
    id: Span,
}

impl Answers {
    /// An answer with this id in the place of the one it was kept with.
    pub(super) fn with_id(&self, exchange: u32, item: u32, id: &[u8]) -> Option<Vec<u8>> {
        let Answer { line, id: place } = self.kept.get(&(exchange, item))?;
        let mut bytes = Vec::with_capacity(line.len() - place.len() + id.len() + 1);
        bytes.extend_from_slice(&line[..place.start]);
        bytes.extend_from_slice(id);
        bytes.extend_from_slice(&line[place.end..]);
        Some(bytes)
    }

    /// Keeps an answer; where there is no room for it, what was kept before is forgotten.
    pub(super) fn keep(&mut self, exchange: u32, item: u32, line: &[u8]) {
        let Some(id) = Message::read(line).id_span().filter(|_| line.len() <= ROOM) else { return };
        if self.room + line.len() > ROOM {
            *self = Self::default();
        }
        self.room += line.len();
        self.kept.insert((exchange, item), Answer { line: line.into(), id });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(id: &str, size: usize) -> Vec<u8> {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"id":1,"text":"{}"}}}}"#, "x".repeat(size)).into()
    }

    #[test]
    fn a_kept_answer_gets_the_id_of_whoever_asks_and_no_more_is_kept_than_there_is_room_for() {
        let mut answers = Answers::default();
        assert_eq!(answers.with_id(1, 0, b"2"), None);
        answers.keep(1, 0, &answer("1", 3));
        answers.keep(1, 1, b"no message");
        assert_eq!(answers.with_id(1, 0, b"\"b\""), Some(answer("\"b\"", 3)));
        assert_eq!(answers.with_id(1, 1, b"2"), None);
        answers.keep(2, 0, &answer("1", ROOM));
        assert!(answers.with_id(1, 0, b"2").is_some() && answers.with_id(2, 0, b"2").is_none());
        answers.keep(3, 0, &answer("1", ROOM - 60));
        assert!(answers.with_id(1, 0, b"2").is_none() && answers.with_id(3, 0, b"2").is_some());
    }
}
