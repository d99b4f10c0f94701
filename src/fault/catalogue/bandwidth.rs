//! What is said comes no faster than so many bytes a second.

use std::sync::Arc;

use super::framing::{framed, piece};
use crate::{
    fault::{
        Effect, Fault, PlanError, Target,
        step::{Output, Step},
        value::Object,
    },
    traffic::{Lane, Micros},
};

const SECOND: u128 = 1_000_000;
/// So many slices go in a second,
const A_SECOND: u64 = 10;
/// and so many of one message: each is held in memory until its time has come.
const OF_A_MESSAGE: usize = 1_000;

#[derive(Clone, Copy, Debug)]
struct Bandwidth {
    bytes_per_second: u64,
}

pub(super) fn read(object: &mut Object<'_>) -> Result<Arc<dyn Fault>, PlanError> {
    let rate = object.need("bytes_per_second", "a whole number from 1")?;
    Ok(Arc::new(Bandwidth { bytes_per_second: rate.count("bytes_per_second")? }))
}

impl Fault for Bandwidth {
    fn effect(&self, of: &Target<'_>) -> Option<Box<dyn Effect>> {
        Some(Box::new(Slow { rate: *self, lane: of.lane }))
    }
}

#[derive(Debug)]
struct Slow {
    rate: Bandwidth,
    lane: Lane,
}

impl Bandwidth {
    fn time_of(self, bytes: usize) -> Micros {
        Micros::try_from(bytes as u128 * SECOND / u128::from(self.bytes_per_second)).unwrap_or(Micros::MAX)
    }

    fn slice(self, whole: usize) -> usize {
        let usual = usize::try_from(self.bytes_per_second / A_SECOND).unwrap_or(usize::MAX);
        usual.max(whole.div_ceil(OF_A_MESSAGE)).max(1)
    }
}

impl Slow {
    fn slices(&self, bytes: &[u8], goes_on: bool, out: &mut Vec<Step>) {
        let mut sent = 0;
        for slice in bytes.chunks(self.rate.slice(bytes.len())) {
            let before = self.rate.time_of(sent);
            sent += slice.len();
            out.push(Step::Wait(self.rate.time_of(sent) - before));
            out.push(piece(self.lane, slice, goes_on || sent < bytes.len()));
        }
    }
}

impl Effect for Slow {
    fn pass(&mut self, output: Output, out: &mut Vec<Step>) {
        if output.lane() != self.lane {
            return out.push(Step::Do(output));
        }
        if let Some(bytes) = framed(&output) {
            return self.slices(&bytes, false, out);
        }
        match output {
            Output::Raw { bytes, goes_on, .. } => self.slices(&bytes, goes_on, out),
            Output::EndLane { lane, partial, end } => {
                self.slices(&partial, true, out);
                out.push(Step::Do(Output::EndLane { lane, partial: Vec::new(), end }));
            }
            output => out.push(Step::Do(output)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Stand, refused};

    #[test]
    fn bytes_come_in_slices_of_a_tenth_of_a_second() {
        let mut stand = Stand::stdio(r#"{"do": "bandwidth", "bytes_per_second": 50}"#);
        stand.answers(r#"{"a":"bcdef"}"#);
        assert_eq!(
            stand.seen(),
            "wait 100 ms\nraw \"{\\\"a\\\":\"\nwait 100 ms\nraw \"\\\"bcde\"\nwait 80 ms\nraw \"f\\\"}\\n\"\n"
        );
    }

    #[test]
    fn all_that_is_said_is_slow() {
        let mut stand = Stand::http(r#"{"do": "bandwidth", "bytes_per_second": 1000}"#);
        stand.streams();
        stand.says("{}");
        stand.says("{}");
        stand.ends();
        let event = "raw \"event: message\\ndata: {}\\n\\n\"\n";
        let head = "200 content-type: text/event-stream\n";
        assert_eq!(stand.seen(), format!("{head}wait 25 ms\n{event}wait 25 ms\n{event}end\n"));
    }

    #[test]
    fn a_slow_line_is_no_heap_of_slices() {
        let mut stand = Stand::stdio(r#"{"do": "bandwidth", "bytes_per_second": 1}"#);
        stand.says(&"x".repeat(1_000_000));
        let seen = stand.seen();
        assert_eq!(seen.matches("raw").count(), 1_000);
        assert!(seen.starts_with("wait 1001000 ms\n"), "{}", &seen[..40]);
    }

    #[test]
    fn nothing_at_all_is_no_rate() {
        assert_eq!(
            refused(r#"{"do": "bandwidth", "bytes_per_second": 0}"#),
            "`bytes_per_second` must be a whole number from 1, found `0`"
        );
    }
}
