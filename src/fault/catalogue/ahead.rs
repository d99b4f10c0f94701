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
        Some(Box::new(Streaming::new(Saying(Some(self.0.clone())), of.lane)))
    }
}

#[derive(Debug)]
struct Saying(Option<Vec<u8>>);

impl Effect for Saying {
    fn pass(&mut self, output: Output, out: &mut Vec<Step>) {
        if output.is_response() {
            out.extend(self.0.take().map(|text| Step::Do(output.clone().with_text(text))));
        }
        out.push(Step::Do(output));
    }
}

/// An effect that needs room for more than one message: a body that is an answer becomes an event stream.
#[derive(Debug)]
pub(super) struct Streaming<E> {
    effect: E,
    lane: Lane,
    /// The head of a response that may become a stream.
    head: Option<ResponseHead>,
}

impl<E> Streaming<E> {
    pub(super) const fn new(effect: E, lane: Lane) -> Self {
        Self { effect, lane, head: None }
    }
}

impl<E: Effect> Effect for Streaming<E> {
    fn pass(&mut self, output: Output, out: &mut Vec<Step>) {
        let is_own = output.lane() == self.lane;
        let Some(head) = self.head.take_if(|_| is_own) else {
            return match output {
                Output::Head { head, .. } if is_own && !head.stream && head.status == 200 => {
                    self.head = Some(head);
                }
                output => self.effect.pass(output, out),
            };
        };
        let is_answer = output.is_response();
        match output {
            Output::Body { lane, bytes } if is_answer => {
                out.push(Step::Do(Output::Head { lane, head: streaming(head) }));
                self.effect.pass(Output::Event { lane, event: speak::event(bytes) }, out);
            }
            output => {
                out.push(Step::Do(Output::Head { lane: self.lane, head }));
                self.effect.pass(output, out);
            }
        }
    }
}

fn streaming(mut head: ResponseHead) -> ResponseHead {
    head.stream = true;
    head.headers.retain(|(name, _)| &**name != "content-type");
    head.headers.insert(0, ("content-type".into(), b"text/event-stream".into()));
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
