//! What fuzzers call: any bytes, which must come back, with what holds for all of them.

use std::sync::Arc;

use super::{
    Input, Options, Order, Output, Replayer, Timing,
    matcher::canonical::{Places, canonical},
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

/// A client message asks the same whether it is looked at in the file or rebuilt.
fn peeks_as_it_rebuilds(cassette: &Cassette) {
    let form = |message: Message<'_>| {
        let mut form = Vec::new();
        canonical(message.method().as_bytes(), message.params(), &Places::default(), &mut form).map(|()| form)
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
    replayer.handle(now, Input::Closed);
    drain(&mut replayer, now, &mut sent);
    while !replayer.is_done() {
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
