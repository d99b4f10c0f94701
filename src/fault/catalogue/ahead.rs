//! What the faults share that say something ahead of the answer.

use super::speak;
use crate::{
    fault::{
        Effect, Fault, Target,
        step::{Output, ResponseHead, Step},
    },
    traffic::Lane,
};

/// Says a message ahead of the answer.
#[derive(Clone, Debug)]
pub(super) struct Ahead(pub Vec<u8>);

impl Fault for Ahead {
    fn effect(&self, of: &Target<'_>) -> Option<Box<dyn Effect>> {
        Some(Box::new(Saying {
            text: Some(self.0.clone()),
            lane: of.lane,
            streams: false,
            is_http: of.is_http,
        }))
    }
}

#[derive(Debug)]
struct Saying {
    text: Option<Vec<u8>>,
    lane: Lane,
    is_http: bool,
    /// A body has become an event stream.
    streams: bool,
}

impl Effect for Saying {
    fn pass(&mut self, output: Output, out: &mut Vec<Step>) {
        let lane = self.lane;
        match output {
            // Two messages have no room in a body.
            Output::Head { head, .. } if !head.stream && head.status == 200 && self.text.is_some() => {
                self.streams = true;
                out.push(Step::Do(Output::Head { lane, head: streaming(head) }));
            }
            Output::Body { bytes, .. } if self.streams => {
                for text in self.text.take().into_iter().chain([bytes]) {
                    out.push(Step::Do(Output::Event { lane, event: speak::event(text) }));
                }
            }
            output if output.is_response() => {
                out.extend(self.text.take().map(|text| {
                    Step::Do(match self.is_http {
                        true => Output::Event { lane, event: speak::event(text) },
                        false => Output::Send { lane, bytes: text, apart: false },
                    })
                }));
                out.push(Step::Do(output));
            }
            output => out.push(Step::Do(output)),
        }
    }
}

fn streaming(mut head: ResponseHead) -> ResponseHead {
    head.stream = true;
    head.headers.retain(|(name, _)| &**name != "content-type");
    head.headers.insert(0, ("content-type".into(), b"text/event-stream".to_vec()));
    head
}

#[cfg(test)]
mod tests {
    use super::super::testing::Stand;

    #[test]
    fn a_response_with_one_body_becomes_a_stream() {
        let mut stand = Stand::http(r#""list_changed""#);
        stand.answers(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
        assert_eq!(
            stand.seen(),
            "200 content-type: text/event-stream\n\
             event {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\
             event {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\nend\n"
        );
    }
}
