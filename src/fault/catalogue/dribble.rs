//! The answer comes in so many pieces over so much time.

use std::sync::Arc;

use super::framing::{framed, piece};
use crate::{
    fault::{
        Effect, Fault, PlanError, Target,
        step::{Output, Step},
        value::Object,
    },
    traffic::Micros,
};

/// More pieces than that are none: each is held in memory until its time has come.
const MOST: u64 = 10_000;

#[derive(Clone, Copy, Debug)]
struct Dribble {
    chunks: u64,
    time: Micros,
}

pub(super) fn read(object: &mut Object<'_>) -> Result<Arc<dyn Fault>, PlanError> {
    let expected = "how many pieces, from 1 to 10000";
    let given = object.need("chunks", expected)?;
    let chunks = given.integer("chunks", expected)?;
    if !(1..=MOST).contains(&chunks) {
        return Err(given.wrong("chunks", expected));
    }
    let time = object.need("ms", "over how many milliseconds")?.millis("ms")?;
    Ok(Arc::new(Dribble { chunks, time }))
}

impl Fault for Dribble {
    fn effect(&self, _: &Target<'_>) -> Option<Box<dyn Effect>> {
        Some(Box::new(*self))
    }
}

impl Effect for Dribble {
    fn pass(&mut self, output: Output, out: &mut Vec<Step>) {
        let bytes = framed(&output).filter(|_| output.is_response());
        let Some(bytes) = bytes else { return out.push(Step::Do(output)) };
        let lane = output.lane();
        let pieces = self.chunks.min(bytes.len() as u64).max(1);
        let part = |whole: u64, at: u64| u128::from(whole) * u128::from(at) / u128::from(pieces);
        for at in 0..pieces {
            let [from, to] = [at, at + 1].map(|at| part(bytes.len() as u64, at) as usize);
            out.push(Step::Wait((part(self.time, at + 1) - part(self.time, at)) as Micros));
            out.push(piece(lane, &bytes[from..to], to < bytes.len()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Stand, refused};

    const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;

    #[test]
    fn the_answer_comes_in_pieces() {
        let mut stand = Stand::http(r#"{"do": "dribble", "chunks": 4, "ms": 100}"#);
        stand.answers(ANSWER);
        assert_eq!(
            stand.seen(),
            "200 content-type: application/json\n\
             wait 25 ms\nraw \"{\\\"jsonrpc\"\nwait 25 ms\nraw \"\\\":\\\"2.0\\\",\\\"\"\n\
             wait 25 ms\nraw \"id\\\":1,\\\"re\"\nwait 25 ms\nraw \"sult\\\":{}}\"\nend\n"
        );
    }

    #[test]
    fn there_are_no_more_pieces_than_bytes() {
        let mut stand = Stand::stdio(r#"{"do": "dribble", "chunks": 10000, "ms": 37}"#);
        stand.says(r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#);
        stand.answers(ANSWER);
        let seen = stand.seen();
        assert!(seen.starts_with(
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\nwait 1 ms\nraw \"{\"\n"
        ));
        assert!(seen.ends_with("wait 1 ms\nraw \"\\n\"\n"), "{seen}");
        assert_eq!(seen.matches("wait 1 ms").count(), ANSWER.len() + 1);
    }

    #[test]
    fn pieces_are_counted() {
        assert_eq!(
            refused(r#"{"do": "dribble", "chunks": 0, "ms": 1}"#),
            "`chunks` must be how many pieces, from 1 to 10000, found `0`"
        );
    }
}
