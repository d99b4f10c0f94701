//! The server gives the request up: it tells that by `notifications/cancelled`, which only the client may send for a
//! request of its own, and never answers (specification 2025-11-25, basic/utilities/cancellation).

use std::sync::Arc;

use super::speak;
use crate::fault::{
    Fault, PlanError, Target,
    step::{Output, ResponseHead, Step},
    value::Object,
};

#[derive(Debug)]
struct Cancelled;

pub(super) fn read(_: &mut Object<'_>) -> Result<Arc<dyn Fault>, PlanError> {
    Ok(Arc::new(Cancelled))
}

impl Fault for Cancelled {
    fn instead(&self, of: &Target<'_>) -> Option<Vec<Step>> {
        let id = String::from_utf8_lossy(of.id);
        let text = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id},"reason":"the server gave up"}}}}"#
        );
        if !of.is_http || of.post.is_some() {
            return Some(speak::message(of, 200, text.into_bytes()));
        }
        let head = ResponseHead { status: 200, headers: speak::typed("text/event-stream"), stream: true };
        let event = speak::event(text.into_bytes());
        let lane = of.lane;
        Some(vec![
            Step::Do(Output::Head { lane, head }),
            Step::Do(Output::Event { lane, event }),
            Step::Do(Output::EndLane { lane, partial: Vec::new(), end: None }),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Stand;

    #[test]
    fn the_request_is_given_up() {
        let told = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\
                    \"params\":{\"requestId\":1,\"reason\":\"the server gave up\"}}";
        assert_eq!(Stand::stdio(r#""cancelled""#).instead(), format!("{told}\n"));
        assert_eq!(
            Stand::http(r#""cancelled""#).instead(),
            format!("200 content-type: text/event-stream\nevent {told}\nend\n")
        );
    }
}
