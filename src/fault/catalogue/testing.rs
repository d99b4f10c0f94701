//! A stand for faults: one request, what its server says, and what the client sees.

use std::{collections::VecDeque, fmt::Write, sync::Arc};

use super::super::{
    Fault, Fired, Stage, Target, Work,
    rule::Rule,
    stage::{Acting, Origin},
    step::{Output, ResponseHead, Step},
    value::Value,
};
use crate::{
    traffic::{Lane, Micros, SseEvent},
    wire::{Span, jsonrpc::Message},
};

/// One request to `tools/call` with id 1 and progress token `"t"`, and a fault that acts on it.
pub(in crate::fault) struct Stand {
    fault: Arc<dyn Fault>,
    target: Target<'static>,
    stage: Stage,
    acting: Option<Acting>,
    streams: bool,
    now: Micros,
    out: VecDeque<Output>,
    seen: String,
}

fn read(fault: &str) -> Result<Rule, super::super::PlanError> {
    let value = |text: &'static str| Value::new(text.as_bytes(), Span::new(0, text.len()));
    let mut rules = Rule::of_exchange("tools/call @1", value(String::leak(fault.to_owned())))?;
    Ok(rules.remove(0))
}

/// Why a fault is refused.
pub(in crate::fault) fn refused(fault: &str) -> String {
    read(fault).expect_err("refused").text
}

impl Stand {
    pub(in crate::fault) fn stdio(fault: &str) -> Self {
        Self::new(fault, Lane(0), None, false)
    }

    pub(in crate::fault) fn http(fault: &str) -> Self {
        Self::new(fault, Lane(1), None, true)
    }

    pub(in crate::fault) fn sse(fault: &str) -> Self {
        Self::new(fault, Lane(1), Some(Lane(2)), true)
    }

    fn new(fault: &str, lane: Lane, post: Option<Lane>, is_http: bool) -> Self {
        let rule = read(fault).unwrap_or_else(|error| panic!("{fault}: {error}"));
        let fault = Arc::clone(&rule.does.acts().next().expect("one fault").fault);
        let target = Target {
            lane,
            post,
            is_http,
            method: "tools/call",
            id: b"1",
            is_modern: false,
            token: Some(b"\"t\""),
            count: 1,
            roll: 0.5,
        };
        let (stage, out) = (Stage::default(), VecDeque::new());
        Self { fault, target, stage, acting: None, streams: false, now: 0, out, seen: String::new() }
    }

    /// With another roll.
    pub(in crate::fault) fn rolling(mut self, roll: f64) -> Self {
        self.target.roll = roll;
        self
    }

    /// As the rule's so manieth time.
    pub(in crate::fault) fn counting(mut self, count: u64) -> Self {
        self.target.count = count;
        self
    }

    /// For another method.
    pub(in crate::fault) fn of(mut self, method: &'static str) -> Self {
        self.target.method = method;
        self
    }

    fn pass(&mut self, output: Output) {
        let lane = Some(self.target.lane).filter(|_| self.target.is_http && self.target.post.is_none());
        let acting = *self.acting.get_or_insert_with(|| {
            let effect = self.fault.effect(&self.target);
            assert!(effect.is_some(), "it acts on what the server says");
            let work = Work::new(("fault", true), self.target.lane, effect, Fired::default());
            let origin = Origin { post: self.target.post, ..Origin::default() };
            self.stage.begin(vec![work], origin, lane)
        });
        self.stage.pass(self.now, acting, output, &mut self.out);
        self.note();
    }

    /// What is said in the server's place.
    pub(in crate::fault) fn instead(&mut self) -> String {
        let steps = self.fault.instead(&self.target).expect("it speaks in the server's place");
        let acting = self.stage.begin(Vec::new(), Origin::default(), None);
        self.stage.perform(0, acting, steps, &mut self.out);
        self.seen()
    }

    /// The response is an event stream, which begins.
    pub(in crate::fault) fn streams(&mut self) {
        self.streams = true;
        let head = ResponseHead {
            status: 200,
            headers: vec![("content-type".into(), b"text/event-stream".into())],
            stream: true,
        };
        self.pass(Output::Head { lane: self.target.lane, head });
    }

    /// Over HTTP+SSE, the server takes the request in.
    pub(in crate::fault) fn accepts(&mut self) {
        let lane = self.target.post.expect("a lane of what carried it");
        self.pass(Output::Body { lane, bytes: b"Accepted".to_vec() });
    }

    /// The server says this because of the request.
    pub(in crate::fault) fn says(&mut self, text: &str) {
        let (lane, bytes) = (self.target.lane, text.as_bytes().to_vec());
        let event = || SseEvent {
            event: Some(b"message"[..].into()),
            data: bytes.clone().into(),
            ..SseEvent::default()
        };
        self.pass(if self.streams {
            Output::Event { lane, event: event() }
        } else {
            Output::Send { lane, bytes, apart: false }
        });
    }

    /// The server answers; over HTTP in a response of its own where no stream has begun.
    pub(in crate::fault) fn answers(&mut self, text: &str) {
        if self.streams || !self.target.is_http {
            return self.says(text);
        }
        let (lane, bytes) = (self.target.lane, text.as_bytes().to_vec());
        let headers = vec![("content-type".into(), b"application/json".into())];
        self.pass(Output::Head { lane, head: ResponseHead { status: 200, headers, stream: false } });
        self.pass(Output::Body { lane, bytes });
        self.ends();
    }

    /// The response ends in good order.
    pub(in crate::fault) fn ends(&mut self) {
        self.pass(Output::EndLane { lane: self.target.lane, partial: Vec::new(), end: None });
    }

    /// Whether the fault has changed nothing so far.
    pub(in crate::fault) fn is_idle(&self) -> bool {
        self.stage.not_acted().next().is_some()
    }

    /// How long the first thing waits, in whole milliseconds.
    pub(in crate::fault) fn wait_ms(&mut self) -> u64 {
        self.says("{}");
        self.stage.deadline().unwrap_or_default() / 1000
    }

    /// All that the client sees until nothing waits any more.
    pub(in crate::fault) fn seen(&mut self) -> String {
        self.note();
        while let Some(due) = self.stage.deadline() {
            let waited = due - self.now;
            writeln!(self.seen, "wait {} ms", waited as f64 / 1000.0).expect("a text");
            self.now = due;
            self.stage.release(due, &mut self.out);
            self.note();
        }
        std::mem::take(&mut self.seen)
    }

    fn note(&mut self) {
        for output in std::mem::take(&mut self.out) {
            show(&output, &mut self.seen);
        }
    }
}

fn show(output: &Output, seen: &mut String) {
    use crate::cassette::model::StreamEnd;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut say = |line: String| {
        seen.push_str(&line);
        seen.push('\n');
    };
    match output {
        Output::Send { bytes, .. } | Output::Body { bytes, .. } => say(text(bytes)),
        Output::HalfClose { .. } => say("half close".to_owned()),
        Output::Raw { bytes, .. } => say(format!("raw {:?}", text(bytes))),
        Output::Event { event, .. } => say(format!("event {}", text(&event.data))),
        Output::Head { head, .. } => {
            let headers = head.headers.iter().map(|(name, value)| format!("{name}: {}", text(value)));
            let headers = headers.collect::<Vec<_>>().join("; ");
            say(format!("{} {headers}", head.status).trim_end().to_owned());
        }
        Output::EndLane { partial, end, .. } => {
            if !partial.is_empty() {
                say(format!("partial {:?}", text(partial)));
            }
            say(match end {
                None => "end".to_owned(),
                Some(StreamEnd::Cut) => "cut".to_owned(),
                Some(StreamEnd::Reset) => "reset".to_owned(),
            });
        }
        Output::Upstream { .. } | Output::EndUpstream { .. } => {
            panic!("no fault speaks to a server: {output:?}")
        }
        Output::End { end, .. } => {
            if let Some(partial) = &end.partial {
                say(format!("partial {:?}", text(partial)));
            }
            say(match (end.exit, end.signal) {
                (_, Some(signal)) => format!("signal {signal}"),
                (status, None) => format!("exit {}", status.unwrap_or_default()),
            });
        }
    }
}

/// That the message helpers and the stand agree on what an answer is.
#[test]
fn a_stand_shows_what_is_said() {
    let mut stand = Stand::stdio(r#"{"do": "latency", "ms": 0}"#);
    stand.answers(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    let seen = stand.seen();
    assert!(Message::read(seen.trim().as_bytes()).kind.is_response(), "{seen}");
    let steps = vec![Step::Do(Output::Raw { lane: Lane(0), bytes: b"x".to_vec(), goes_on: false })];
    stand.stage.perform(0, Acting::default(), steps, &mut stand.out);
    assert_eq!(stand.seen(), "raw \"x\"\n");
}
