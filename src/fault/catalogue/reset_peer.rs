//! The connection is reset where the response would come, or within the answer.

use std::sync::Arc;

use super::breaking::Breaking;
use crate::{
    cassette::model::StreamEnd,
    fault::{Effect, Fault, PlanError, Target, value::Object},
};

#[derive(Debug)]
struct ResetPeer {
    bytes: Option<usize>,
}

pub(super) fn read(object: &mut Object<'_>) -> Result<Arc<dyn Fault>, PlanError> {
    let bytes = object.get("bytes").map(|bytes| bytes.integer("bytes", "a whole number from 0"));
    Ok(Arc::new(ResetPeer { bytes: bytes.transpose()? }))
}

impl Fault for ResetPeer {
    fn effect(&self, of: &Target<'_>) -> Option<Box<dyn Effect>> {
        Some(Box::new(Breaking::new(of.lane, self.bytes, StreamEnd::Reset)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Stand;

    const PROGRESS: &str = r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#;
    const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;

    #[test]
    fn the_response_is_a_reset() {
        let mut stand = Stand::http(r#""reset_peer""#);
        stand.answers(ANSWER);
        assert_eq!(stand.seen(), "reset\n");
        let mut stand = Stand::http(r#""reset_peer""#);
        stand.streams();
        stand.says(PROGRESS);
        stand.answers(ANSWER);
        stand.ends();
        assert_eq!(stand.seen(), "reset\n");
    }

    #[test]
    fn on_a_stream_that_was_there_before_it_is_the_answer() {
        let mut stand = Stand::http(r#""reset_peer""#);
        stand.says(PROGRESS);
        stand.answers(ANSWER);
        assert_eq!(stand.seen(), format!("{PROGRESS}\nreset\n"));
    }

    #[test]
    fn it_comes_behind_as_much_of_the_answer_as_is_asked_for() {
        let seen = |bytes: &str| {
            let mut stand = Stand::http(&format!(r#"{{"do": "reset_peer", "bytes": {bytes}}}"#));
            stand.answers(ANSWER);
            stand.seen()
        };
        let head = "200 content-type: application/json\n";
        assert_eq!(seen("0"), format!("{head}reset\n"));
        assert_eq!(seen("5"), format!("{head}partial \"{{\\\"jso\"\nreset\n"));
        assert_eq!(seen("999"), format!("{head}partial {ANSWER:?}\nreset\n"));
    }
}
