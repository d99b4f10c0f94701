//! The connection is closed where the answer would come, behind the head and perhaps a part of it; on stdio, stdout.

use std::sync::Arc;

use super::breaking::Breaking;
use crate::{
    cassette::model::StreamEnd,
    fault::{Effect, Fault, PlanError, Target, value::Object},
};

#[derive(Debug)]
struct CloseEarly {
    bytes: usize,
}

pub(super) fn read(object: &mut Object<'_>) -> Result<Arc<dyn Fault>, PlanError> {
    let bytes = object.get("bytes").map(|bytes| bytes.integer("bytes", "a whole number from 0"));
    Ok(Arc::new(CloseEarly { bytes: bytes.transpose()?.unwrap_or_default() }))
}

impl Fault for CloseEarly {
    fn effect(&self, of: &Target<'_>) -> Option<Box<dyn Effect>> {
        Some(Box::new(Breaking::new(of.lane, Some(self.bytes), StreamEnd::Cut)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Stand, refused};

    const PROGRESS: &str = r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#;
    const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;

    #[test]
    fn the_head_comes_and_then_the_end() {
        let mut stand = Stand::http(r#""close_early""#);
        stand.answers(ANSWER);
        assert_eq!(stand.seen(), "200 content-type: application/json\ncut\n");
        let mut stand = Stand::http(r#"{"do": "close_early", "bytes": 12}"#);
        stand.streams();
        stand.says(PROGRESS);
        stand.answers(ANSWER);
        stand.ends();
        let head = "200 content-type: text/event-stream\n";
        assert_eq!(stand.seen(), format!("{head}event {PROGRESS}\npartial \"event: messa\"\ncut\n"));
    }

    #[test]
    fn on_stdio_nothing_is_said_any_more() {
        let mut stand = Stand::stdio(r#"{"do": "close_early", "bytes": 2}"#);
        stand.says(PROGRESS);
        stand.answers(ANSWER);
        stand.says(PROGRESS);
        assert_eq!(stand.seen(), format!("{PROGRESS}\npartial \"{{\\\"\"\ncut\n"));
    }

    #[test]
    fn bytes_are_counted() {
        assert_eq!(
            refused(r#"{"do": "close_early", "bytes": -1}"#),
            "`bytes` must be a whole number from 0, found `-1`"
        );
    }
}
