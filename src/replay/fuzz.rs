//! What fuzzers call: any bytes, which must come back, with what holds for all of them.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use super::{
    HttpRequest, Input, Options, Order, Output, Replayer, Timing,
    matcher::canonical::{Places, Room, canonical},
    script::client_message,
};
use crate::{
    cassette::{blob::NoBlobs, model::Cassette},
    traffic::{Lane, Micros},
    wire::jsonrpc::Message,
};

/// A cassette, a line `----`, and a client's lines: the replay ends when the client has left, with the same answers
/// each time.
pub fn replayer(bytes: &[u8]) {
    const BORDER: &[u8] = b"\n----\n";
    let Some(at) = memchr::memmem::find(bytes, BORDER) else { return };
    let Ok(cassette) = Cassette::load(bytes[..at].to_vec(), &NoBlobs) else { return };
    peeks_as_it_rebuilds(&cassette);
    let (cassette, lines) = (Arc::new(cassette), &bytes[at + BORDER.len()..]);
    let strict = Options { strict: true, order: Order::Free, ..Options::default() };
    let timed = Options { timing: Timing::Recorded { speed: 2.0 }, ..Options::default() };
    for options in [Options::default(), strict, timed] {
        let first = play(&cassette, &options, lines);
        assert_eq!(play(&cassette, &options, lines), first, "a replay is the same each time");
    }
}

/// A cassette, a line `----`, and requests, a line each: `METHOD /target|name: value|…|body`, in which `@N` as a
/// header stands for the id that came as the `N`th, and `%N` as a target for the endpoint; or `-N`, where the client
/// leaves that response. Each response has one head, then what belongs to it, then one end. Or `>N` and a line of a
/// client on a pipe, which closes its side with an empty one: nothing comes behind the end of its server, and all that
/// is owed to it comes.
pub fn http(bytes: &[u8]) {
    const BORDER: &[u8] = b"\n----\n";
    let Some(at) = memchr::memmem::find(bytes, BORDER) else { return };
    let Ok(cassette) = Cassette::load(bytes[..at].to_vec(), &NoBlobs) else { return };
    let (cassette, lines) = (Arc::new(cassette), &bytes[at + BORDER.len()..]);
    let strict = Options { strict: true, skip_auth: true, ..Options::default() };
    let timed = Options { timing: Timing::Recorded { speed: 2.0 }, ..Options::default() };
    for options in [Options::default(), strict, timed] {
        let first = Asking::new(&cassette, &options).map(|asking| asking.all(lines));
        let second = Asking::new(&cassette, &options).map(|asking| asking.all(lines));
        assert_eq!(first, second, "a replay is the same each time");
        // Where faults may act, nothing is answered at once.
        let stepwise = Options { faults: Some(Arc::default()), ..options };
        let third = Asking::new(&cassette, &stepwise).map(|asking| asking.all(lines));
        let (third, first) = (third.map(by_lane).unwrap_or_default(), first.map(by_lane).unwrap_or_default());
        let other = third.iter().zip(&first).find(|(third, first)| third != first);
        assert_eq!((other, third.len()), (None, first.len()), "all of it comes as it does step by step");
    }
}

/// What is sent on each lane.
fn by_lane(mut sent: Vec<(Micros, Output)>) -> Vec<(Micros, Output)> {
    sent.sort_by_key(|(_, output)| output.lane().0);
    sent
}

/// Clients over HTTP.
struct Asking {
    replayer: Replayer,
    now: Micros,
    lanes: u32,
    /// What has begun and not ended: whether events follow; none before the head.
    open: HashMap<u32, Option<bool>>,
    ids: Vec<String>,
    endpoints: Vec<String>,
    sent: Vec<(Micros, Output)>,
    /// For each client on a pipe, whether its server has ended.
    pipes: BTreeMap<u32, bool>,
}

/// Lanes of pipes begin behind those of requests.
const PIPES: u32 = 1 << 16;

impl Asking {
    /// A line of a client on a pipe.
    fn pipe(&mut self, line: &str) {
        let digits = line.find(|c: char| !c.is_ascii_digit()).unwrap_or(line.len());
        let number: u32 = line[..digits].parse().unwrap_or_default();
        let lane = Lane(PIPES + number % PIPES);
        self.pipes.entry(lane.0).or_default();
        let input = match &line[digits..] {
            "" => Input::Closed { lane },
            line => Input::Message { lane, bytes: line.as_bytes() },
        };
        self.replayer.handle(self.now, input);
    }

    fn close_pipes(&mut self) {
        for lane in self.pipes.keys().copied().map(Lane).collect::<Vec<_>>() {
            self.replayer.handle(self.now, Input::Closed { lane });
            self.drain();
        }
    }
}

impl Asking {
    fn new(cassette: &Arc<Cassette>, options: &Options) -> Option<Self> {
        let replayer =
            Replayer::new(Arc::clone(cassette), Arc::new(NoBlobs), "fuzz", options.clone()).ok()?;
        let (ids, endpoints, sent, pipes) = Default::default();
        Some(Self { replayer, now: 0, lanes: 0, open: HashMap::new(), ids, endpoints, sent, pipes })
    }

    fn all(mut self, lines: &[u8]) -> Vec<(Micros, Output)> {
        for line in lines.split(|byte| *byte == b'\n') {
            self.line(&String::from_utf8_lossy(line));
            self.drain();
            self.now += 1_000;
        }
        self.drain();
        self.close_pipes();
        for _ in 0..1_000 {
            let Some(deadline) = self.replayer.deadline() else { break };
            assert!(deadline > self.now || self.replayer.poll(self.now).is_none(), "what is due is done");
            self.now = self.now.max(deadline);
            self.drain();
        }
        let is_done = |lane: &u32| self.replayer.is_done(Lane(*lane));
        assert!(self.replayer.deadline().is_some() || self.pipes.keys().all(is_done), "what is owed comes");
        let _ = self.replayer.finish();
        self.sent
    }

    fn line(&mut self, line: &str) {
        if let Some(line) = line.strip_prefix('>') {
            return self.pipe(line);
        }
        let number = |text: &str| text.parse::<usize>().unwrap_or_default();
        if let Some(lane) = line.strip_prefix('-') {
            let lane = u32::try_from(number(lane)).unwrap_or_default();
            if self.open.remove(&lane).is_some() {
                self.replayer.handle(self.now, Input::Left { lane: Lane(lane) });
            }
            return;
        }
        let mut parts: Vec<&str> = line.split('|').collect();
        let body = if parts.len() > 1 { parts.pop() } else { None };
        let (method, target) = parts[0].split_once(' ').unwrap_or((parts[0], "/mcp"));
        let known = |list: &[String], text: &str| list.get(number(text)).cloned();
        let target =
            target.strip_prefix('%').and_then(|at| known(&self.endpoints, at)).unwrap_or(target.into());
        let headers: Vec<(String, String)> = parts[1..]
            .iter()
            .filter_map(|header| match header.strip_prefix('@') {
                Some(at) => Some(("mcp-session-id".to_owned(), known(&self.ids, at)?)),
                None => header.split_once(": ").map(|(name, value)| (name.to_owned(), value.to_owned())),
            })
            .collect();
        let headers: Vec<(&str, &[u8])> =
            headers.iter().map(|(name, value)| (&**name, value.as_bytes())).collect();
        self.lanes += 1;
        self.open.insert(self.lanes, None);
        let request = HttpRequest {
            method,
            target: &target,
            origin: "http://h/take/a",
            headers: &headers,
            body: body.unwrap_or_default().as_bytes(),
            is_whole: true,
            opens_connection: true,
        };
        self.replayer.handle(self.now, Input::Request { lane: Lane(self.lanes), request: &request });
    }

    fn drain(&mut self) {
        while let Some(output) = self.replayer.poll(self.now) {
            self.check(&output);
            self.sent.push((self.now, output));
        }
    }

    fn check(&mut self, output: &Output) {
        match output {
            Output::Head { lane, head } => {
                let before = self.open.insert(lane.0, Some(head.stream));
                assert_eq!(before, Some(None), "one head, of what was asked: {output:?}");
                let id = head.headers.iter().find(|(name, _)| &**name == "mcp-session-id");
                self.ids.extend(id.map(|(_, id)| String::from_utf8_lossy(id).into_owned()));
            }
            Output::Event { lane, event } => {
                assert_eq!(self.open.get(&lane.0), Some(&Some(true)), "events on a stream: {output:?}");
                if event.event.as_deref() == Some(b"endpoint") {
                    let address = String::from_utf8_lossy(&event.data).into_owned();
                    self.endpoints.push(address.replace("http://h", "").replace("/take/a", ""));
                }
            }
            Output::Raw { .. } | Output::HalfClose { .. } => panic!("no fault acts here: {output:?}"),
            Output::Upstream { .. } | Output::EndUpstream { .. } => {
                panic!("there is no real server: {output:?}")
            }
            Output::Body { lane, .. } => {
                assert_eq!(self.open.get(&lane.0), Some(&Some(false)), "a body behind its head: {output:?}");
            }
            Output::EndLane { lane, .. } => {
                let before = self.open.remove(&lane.0);
                assert!(before.is_some_and(|head| head.is_some()), "an end behind a head: {output:?}");
            }
            Output::Send { lane, .. } => {
                assert_eq!(self.pipes.get(&lane.0), Some(&false), "a client whose server lives: {output:?}");
            }
            Output::End { lane, .. } => {
                let before = self.pipes.insert(lane.0, true);
                assert_eq!(before, Some(false), "a server ends once: {output:?}");
            }
        }
    }
}

/// A client message asks the same whether it is looked at in the file or rebuilt.
fn peeks_as_it_rebuilds(cassette: &Cassette) {
    let form = |message: Message<'_>| {
        let mut form = Vec::new();
        let (method, mut room) = (message.method(), Room::default());
        canonical(method.as_bytes(), message.params(), &Places::default(), &mut room, &mut form)
            .map(|()| form)
    };
    let mut line = Vec::new();
    for exchange in &cassette.exchanges {
        let Some(peeked) = exchange.client.as_ref().and_then(|client| cassette.peek(client)) else {
            continue;
        };
        assert!(client_message(cassette, &NoBlobs, exchange, &mut line), "it is in the file");
        let rebuilt = Message::read(&line);
        assert_eq!((form(peeked), peeked.kind), (form(rebuilt), rebuilt.kind), "{}", line.escape_ascii());
    }
}

/// What is sent, and when.
fn play(cassette: &Arc<Cassette>, options: &Options, lines: &[u8]) -> Vec<(Micros, Output)> {
    let replayer = Replayer::new(Arc::clone(cassette), Arc::new(NoBlobs), "fuzz", options.clone());
    let Ok(mut replayer) = replayer else { return Vec::new() };
    let (mut now, mut sent) = (0, Vec::new());
    for line in lines.split(|byte| *byte == b'\n') {
        replayer.handle(now, Input::Message { lane: Lane(0), bytes: line });
        // A line that ends with a space comes together with the next one.
        if !line.ends_with(b" ") {
            now += 1_000;
            drain(&mut replayer, now, &mut sent);
        }
    }
    replayer.handle(now, Input::Closed { lane: Lane(0) });
    drain(&mut replayer, now, &mut sent);
    while !replayer.is_done(Lane(0)) {
        let deadline = replayer.deadline().expect("something is owed, so something is waited for");
        assert!(deadline > now, "what is due is done");
        now = deadline;
        drain(&mut replayer, now, &mut sent);
    }
    let _ = replayer.finish();
    sent
}

fn drain(replayer: &mut Replayer, now: Micros, sent: &mut Vec<(Micros, Output)>) {
    while let Some(output) = replayer.poll(now) {
        sent.push((now, output));
    }
}
