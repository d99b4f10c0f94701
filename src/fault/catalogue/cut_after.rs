//! The response is cut off behind so many messages, or so many bytes of them.

use std::sync::Arc;

use super::framing::framed;
use crate::{
    cassette::model::StreamEnd,
    fault::{
        Effect, Fault, PlanError, Target,
        step::{Output, Step},
        value::Object,
    },
    traffic::Lane,
};

#[derive(Clone, Copy, Debug)]
enum CutAfter {
    Events(u64),
    Bytes(usize),
}

pub(super) fn read(object: &mut Object<'_>) -> Result<Arc<dyn Fault>, PlanError> {
    let (at, what) = (object.at(), object.what().to_owned());
    match (object.get("events"), object.get("bytes")) {
        (Some(events), None) => {
            Ok(Arc::new(CutAfter::Events(events.integer("events", "a whole number from 0")?)))
        }
        (None, Some(bytes)) => {
            Ok(Arc::new(CutAfter::Bytes(bytes.integer("bytes", "a whole number from 0")?)))
        }
        _ => Err(PlanError::new(at, format!("{what} needs one of `events` and `bytes` for `cut_after`"))),
    }
}

impl Fault for CutAfter {
    fn effect(&self, of: &Target<'_>) -> Option<Box<dyn Effect>> {
        let ends = of.is_http && of.post.is_none();
        Some(Box::new(Cut { left: *self, lane: of.lane, ends, is_cut: false }))
    }
}

#[derive(Debug)]
struct Cut {
    left: CutAfter,
    lane: Lane,
    /// The lane ends with the response; else others speak on it too.
    ends: bool,
    is_cut: bool,
}

impl Cut {
    /// What follows is behind as much as comes.
    const fn is_due(&self) -> bool {
        matches!(self.left, CutAfter::Events(0) | CutAfter::Bytes(0))
    }

    fn cut(&mut self, partial: Vec<u8>, out: &mut Vec<Step>) {
        self.is_cut = true;
        out.push(Step::Do(Output::EndLane { lane: self.lane, partial, end: Some(StreamEnd::Cut) }));
    }
}

impl Effect for Cut {
    fn pass(&mut self, output: Output, out: &mut Vec<Step>) {
        if output.lane() != self.lane {
            return out.push(Step::Do(output));
        }
        if self.is_cut {
            return;
        }
        if matches!(output, Output::EndLane { end: None, .. }) && self.is_due() {
            return self.cut(Vec::new(), out);
        }
        let Some(framed) = framed(&output) else { return out.push(Step::Do(output)) };
        match &mut self.left {
            CutAfter::Events(0) => self.cut(Vec::new(), out),
            CutAfter::Events(left) => {
                *left -= 1;
                let is_last = *left == 0;
                out.push(Step::Do(output));
                if is_last {
                    self.cut(Vec::new(), out);
                }
            }
            CutAfter::Bytes(left) if framed.len() > *left => {
                let partial = framed[..*left].to_vec();
                self.cut(partial, out);
            }
            CutAfter::Bytes(left) => {
                *left -= framed.len();
                out.push(Step::Do(output));
            }
        }
    }

    fn acts_behind(&self) -> bool {
        self.ends && self.is_due()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Stand, refused};

    const PROGRESS: &str = r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#;
    const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;

    fn streamed(fault: &str) -> String {
        let mut stand = Stand::http(fault);
        stand.streams();
        stand.says(PROGRESS);
        stand.answers(ANSWER);
        stand.ends();
        stand.seen()
    }

    #[test]
    fn so_many_events_come() {
        let head = "200 content-type: text/event-stream\n";
        assert_eq!(streamed(r#"{"do": "cut_after", "events": 0}"#), format!("{head}cut\n"));
        assert_eq!(streamed(r#"{"do": "cut_after", "events": 1}"#), format!("{head}event {PROGRESS}\ncut\n"));
        let both = format!("{head}event {PROGRESS}\nevent {ANSWER}\ncut\n");
        assert_eq!(streamed(r#"{"do": "cut_after", "events": 2}"#), both);
        let whole = format!("{head}event {PROGRESS}\nevent {ANSWER}\nend\n");
        assert_eq!(streamed(r#"{"do": "cut_after", "events": 9}"#), whole);
    }

    #[test]
    fn so_many_bytes_come() {
        let head = "200 content-type: text/event-stream\n";
        let cut = format!("{head}partial \"event: messa\"\ncut\n");
        assert_eq!(streamed(r#"{"do": "cut_after", "bytes": 12}"#), cut);
        let mut stand = Stand::stdio(r#"{"do": "cut_after", "bytes": 5}"#);
        stand.answers(ANSWER);
        assert_eq!(stand.seen(), "partial \"{\\\"jso\"\ncut\n");
    }

    #[test]
    fn a_line_that_is_shorter_passes_and_so_does_what_follows() {
        for fault in [r#"{"do": "cut_after", "events": 2}"#, r#"{"do": "cut_after", "bytes": 37}"#] {
            let mut stand = Stand::stdio(fault);
            stand.answers(ANSWER);
            assert!(stand.is_idle(), "{fault}");
            stand.says(PROGRESS);
            assert_eq!(stand.seen(), format!("{ANSWER}\n{PROGRESS}\n"), "{fault}");
        }
        let mut stand = Stand::stdio(r#"{"do": "cut_after", "events": 1}"#);
        stand.answers(ANSWER);
        assert!(!stand.is_idle());
        assert_eq!(stand.seen(), format!("{ANSWER}\ncut\n"));
    }

    #[test]
    fn it_has_to_be_said_behind_what() {
        assert_eq!(
            refused(r#"{"do": "cut_after"}"#),
            "a fault needs one of `events` and `bytes` for `cut_after`"
        );
    }
}
