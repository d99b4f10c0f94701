//! How a session's messages are spelled: what of a line the cassette need not write because it is always the same.

use crate::{
    traffic::Direction,
    wire::{
        jsonrpc::{Kind, Message},
        scan,
    },
};

pub use crate::wire::jsonrpc::Envelope;

/// The spelling of both sides of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spelling {
    /// How the client spells.
    pub client: Side,
    /// How the server spells.
    pub server: Side,
}

/// The spelling of one side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Side {
    /// The order in which envelope members stand, those a message lacks left out.
    pub order: [Envelope; 6],
    /// Whether a space follows each comma and colon that stands outside strings.
    pub spaced: bool,
    /// Whether each line ends in `\r\n`.
    pub crlf: bool,
}

impl Spelling {
    /// The spelling of the side that sends.
    pub const fn side(&self, from_client: bool) -> &Side {
        if from_client { &self.client } else { &self.server }
    }
}

impl Default for Side {
    fn default() -> Self {
        Self { order: Envelope::ALL, spaced: false, crlf: false }
    }
}

impl Envelope {
    /// Every member, in the order in which most peers write them, which is that of their numbers.
    pub const ALL: [Self; 6] =
        [Self::Jsonrpc, Self::Id, Self::Method, Self::Params, Self::Result, Self::Error];

    /// The member's name.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Jsonrpc => "jsonrpc",
            Self::Id => "id",
            Self::Method => "method",
            Self::Params => "params",
            Self::Result => "result",
            Self::Error => "error",
        }
    }

    /// Reads an order as `spelling` writes it: all six names, a space between.
    pub fn order(words: &str) -> Option<[Self; 6]> {
        let mut order = Vec::with_capacity(6);
        for word in words.split(' ') {
            let member = Self::ALL.into_iter().find(|member| member.word() == word)?;
            if order.contains(&member) {
                return None;
            }
            order.push(member);
        }
        order.try_into().ok()
    }
}

/// Watches a session's lines and says how each side mostly spells, so that few messages have to be written as raw
/// text.
#[derive(Clone, Debug, Default)]
pub struct SpellingGuess {
    client: SideGuess,
    server: SideGuess,
}

/// Counts over one side's messages.
#[derive(Clone, Debug, Default)]
struct SideGuess {
    messages: u32,
    spaced: u32,
    crlf: u32,
    /// `before[a][b]`: in how many messages a stood before b.
    before: [[u32; 6]; 6],
}

impl SpellingGuess {
    /// Nothing seen yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes one line into account, as it was read.
    pub fn observe(&mut self, direction: Direction, message: &Message<'_>) {
        let side = match direction {
            Direction::ToServer => &mut self.client,
            Direction::ToClient => &mut self.server,
        };
        if !matches!(message.kind, Kind::Noise | Kind::Batch) {
            side.observe(message);
        }
    }

    /// How most messages of each side are spelled.
    pub fn finish(self) -> Spelling {
        Spelling { client: self.client.finish(), server: self.server.finish() }
    }
}

impl SideGuess {
    fn observe(&mut self, message: &Message<'_>) {
        let line = message.bytes;
        self.messages += 1;
        self.crlf += u32::from(line.ends_with(b"\r"));
        let mut seen = [false; 6];
        let mut members = scan::members(line, scan::trim(line).start);
        let mut is_first = true;
        while let Ok(Some(name)) = members.try_name() {
            // The long ones have been read.
            let known = [message.params_span(), message.outcome_span()];
            let known = known.into_iter().flatten().find(|value| value.start == members.end());
            let value = match known {
                Some(value) => members.skip_to(value),
                None => match members.try_value() {
                    Ok(value) => value,
                    Err(_) => return,
                },
            };
            if std::mem::take(&mut is_first) {
                self.spaced += u32::from(line.get(value.start - 1) == Some(&b' '));
            }
            let Some(at) = Envelope::of(name.of(line)).map(|member| member as usize) else { continue };
            for (before, _) in seen.iter().enumerate().filter(|(before, seen)| **seen && *before != at) {
                self.before[before][at] += 1;
            }
            seen[at] = true;
        }
    }

    fn finish(mut self) -> Side {
        self.liken_outcomes();
        let is_most = |count: u32| 2 * u64::from(count) > u64::from(self.messages);
        Side { order: self.order(), spaced: is_most(self.spaced), crlf: is_most(self.crlf) }
    }

    /// A side that has sent no error yet will write `error` where it writes `result`, and the other way round.
    fn liken_outcomes(&mut self) {
        const RESULT: usize = 4;
        const ERROR: usize = 5;
        let is_unseen = |at: usize| (0..6).all(|other| self.before[at][other] + self.before[other][at] == 0);
        let (from, to) = match (is_unseen(RESULT), is_unseen(ERROR)) {
            (false, true) => (RESULT, ERROR),
            (true, false) => (ERROR, RESULT),
            _ => return,
        };
        for other in 0..6 {
            self.before[to][other] = self.before[from][other];
            self.before[other][to] = self.before[other][from];
        }
    }

    /// Each time the first of those left that none of the others left mostly stands before; where they contradict
    /// each other, the one with the fewest contradictions.
    fn order(&self) -> [Envelope; 6] {
        let mut left: Vec<usize> = (0..6).collect();
        let mut order = Envelope::ALL;
        for slot in &mut order {
            let later = |at: usize| {
                let worse = |other: &usize| {
                    u64::from(self.before[*other][at].saturating_sub(self.before[at][*other]))
                };
                left.iter().map(worse).sum::<u64>()
            };
            let place = (0..left.len()).min_by_key(|place| later(left[*place])).unwrap_or_default();
            *slot = Envelope::ALL[left.remove(place)];
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guess(lines: &[&str]) -> Side {
        let mut guess = SpellingGuess::new();
        for line in lines {
            guess.observe(Direction::ToServer, &Message::read(line.as_bytes()));
        }
        guess.finish().client
    }

    fn order(side: &Side) -> String {
        side.order.map(Envelope::word).join(" ")
    }

    #[test]
    fn a_side_of_which_nothing_is_known_spells_as_most_do() {
        assert_eq!(guess(&[]), Side::default());
        assert_eq!(guess(&["noise", "{}", "[]"]), Side::default());
    }

    #[test]
    fn requests_and_responses_of_one_side_share_an_order() {
        let side = guess(&[
            r#"{"method":"initialize","params":{},"jsonrpc":"2.0","id":0}"#,
            r#"{"result":{},"jsonrpc":"2.0","id":3}"#,
            "a log line",
            r#"{"method":"notifications/initialized","jsonrpc":"2.0"}"#,
        ]);
        assert_eq!(order(&side), "method params result error jsonrpc id");
        assert_eq!(Envelope::order(&order(&side)), Some(side.order));
    }

    #[test]
    fn the_majority_decides() {
        let side = guess(&[
            "{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"ping\"}\r",
            "{\"jsonrpc\": \"2.0\", \"method\": \"ping\", \"id\": 2}\r",
            "{\"jsonrpc\":\"2.0\",\"method\":\"ping\",\"id\":3}",
        ]);
        assert!(side.spaced && side.crlf);
        assert_eq!(order(&side), "jsonrpc method id params result error");
    }

    #[test]
    fn orders_that_are_none_are_not_read() {
        for wrong in [
            "",
            "jsonrpc id",
            "jsonrpc id method params result result",
            "jsonrpc id method params result err",
        ] {
            assert_eq!(Envelope::order(wrong), None, "{wrong}");
        }
    }
}
