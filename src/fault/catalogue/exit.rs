//! The server ends in mid-call.

use std::sync::Arc;

use crate::{
    cassette::model::{End, StreamEnd},
    fault::{
        Effect, Fault, PlanError, Target,
        step::{Output, Step},
        value::Object,
    },
    traffic::Lane,
};

#[derive(Debug)]
struct Exit(End);

pub(super) fn read(object: &mut Object<'_>) -> Result<Arc<dyn Fault>, PlanError> {
    let at = object.at();
    let status = object.get("status").map(|status| status.integer("status", "an exit status from 0 to 255"));
    let status: Option<u8> = status.transpose()?;
    let signal = object.get("signal").map(|signal| signal.integer("signal", "the number of a signal"));
    let signal: Option<u8> = signal.transpose()?;
    if signal.is_some_and(|signal| !(1..=64).contains(&signal)) {
        return Err(PlanError::new(at, "`signal` must be the number of a signal, from 1 to 64"));
    }
    let partial = object.get("partial").map(|partial| partial.string("partial")).transpose()?;
    if status.is_some() && signal.is_some() {
        return Err(PlanError::new(at, "`exit` has `status` and `signal`; keep one of them"));
    }
    Ok(Arc::new(Exit(End {
        exit: signal.is_none().then(|| i32::from(status.unwrap_or(1))),
        signal: signal.map(i32::from),
        partial: partial.map(|partial| partial.as_bytes().to_vec()),
    })))
}

impl Fault for Exit {
    fn effect(&self, of: &Target<'_>) -> Option<Box<dyn Effect>> {
        let Target { lane, is_http, post, .. } = *of;
        let is_stream = post.is_some();
        Some(Box::new(Ending { end: Some(self.0.clone()), lane, is_http, is_stream, head: None }))
    }

    fn ends_session(&self) -> bool {
        true
    }
}

#[derive(Debug)]
struct Ending {
    /// How it ends; none once it has.
    end: Option<End>,
    lane: Lane,
    /// Its response is cut off.
    is_http: bool,
    /// Events go on it.
    is_stream: bool,
    /// The head of a response that is nothing but the answer: it comes only before what the server says at its end.
    head: Option<Output>,
}

impl Effect for Ending {
    fn pass(&mut self, output: Output, out: &mut Vec<Step>) {
        if self.end.is_none() {
            return;
        }
        if output.lane() != self.lane {
            out.push(Step::Do(output));
        } else if matches!(&output, Output::Head { head, .. } if !head.stream) {
            self.head = Some(output);
        } else if output.is_response() || matches!(output, Output::EndLane { .. }) {
            let lane = self.lane;
            let Some(mut end) = self.end.take() else { return };
            if self.is_http {
                let last = end.partial.take();
                out.extend(self.head.take().filter(|_| last.is_some()).map(Step::Do));
                let partial = match last {
                    Some(last) if self.is_stream => [b"data: ", &last[..]].concat(),
                    last => last.unwrap_or_default(),
                };
                out.push(Step::Do(Output::EndLane { lane, partial, end: Some(StreamEnd::Cut) }));
            }
            out.push(Step::Do(Output::End { lane, end }));
        } else {
            self.is_stream |= matches!(output, Output::Head { .. });
            out.extend(self.head.take().map(Step::Do));
            out.push(Step::Do(output));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Stand, refused};

    const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;

    fn ended(fault: &str) -> String {
        let mut stand = Stand::stdio(fault);
        stand.answers(ANSWER);
        stand.seen()
    }

    #[test]
    fn a_server_ends_in_the_answers_place() {
        assert_eq!(ended(r#""exit""#), "exit 1\n");
        assert_eq!(
            ended(r#"{"do": "exit", "status": 3, "partial": "{\"json"}"#),
            "partial \"{\\\"json\"\nexit 3\n"
        );
        assert_eq!(ended(r#"{"do": "exit", "signal": 9}"#), "signal 9\n");
    }

    #[test]
    fn over_http_its_last_words_go_on_the_response() {
        let partial = r#"{"do": "exit", "status": 3, "partial": "{\"json"}"#;
        for (fault, body, event) in [
            (
                partial,
                "200 content-type: application/json\npartial \"{\\\"json\"\ncut\nexit 3\n",
                "partial \"data: {\\\"json\"\ncut\nexit 3\n",
            ),
            (r#""exit""#, "cut\nexit 1\n", "cut\nexit 1\n"),
        ] {
            let mut stand = Stand::http(fault);
            stand.answers(ANSWER);
            assert_eq!(stand.seen(), body);
            let mut stand = Stand::http(fault);
            stand.streams();
            stand.answers(ANSWER);
            assert_eq!(stand.seen(), format!("200 content-type: text/event-stream\n{event}"));
            let mut stand = Stand::sse(fault);
            stand.accepts();
            stand.streams();
            stand.answers(ANSWER);
            assert!(stand.seen().ends_with(event));
        }
    }

    #[test]
    fn it_ends_in_one_way() {
        assert_eq!(
            refused(r#"{"do": "exit", "status": 1, "signal": 9}"#),
            "`exit` has `status` and `signal`; keep one of them"
        );
        assert_eq!(
            refused(r#"{"do": "exit", "status": 256}"#),
            "`status` must be an exit status from 0 to 255, found `256`"
        );
    }
}
