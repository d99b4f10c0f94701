//! The recorded client once more: it says its next line when it has seen as much as it had seen then.

use std::{collections::VecDeque, sync::Arc};

use mcp_tapedeck::{
    Cassette, Replayer, Report,
    cassette::{blob::BlobSource, model::Moment, order::timeline},
    replay::{Input, Options, Output},
    traffic::{
        Direction::{self, ToClient, ToServer},
        Lane,
    },
};

/// One line on the wire.
pub(crate) type Line = (Direction, String);

/// What passed when a cassette was recorded, in its order.
pub(crate) fn lines(cassette: &Cassette, blobs: &dyn BlobSource) -> Vec<Line> {
    let all: Vec<u32> = (0..cassette.exchanges.len() as u32).collect();
    let line = |moment: mcp_tapedeck::cassette::model::Ref| {
        let entry = &cassette.exchanges[moment.exchange as usize];
        let item = |number: u32| &entry.server[number as usize];
        let (direction, message) = match moment.moment {
            Moment::Client => (ToServer, entry.client.as_ref().expect("a client's moment")),
            Moment::Item(number) => (ToClient, &item(number).message),
            Moment::Answer(number) => {
                (ToServer, &item(number).answer.as_ref().expect("an answer's moment").message)
            }
        };
        let mut bytes = Vec::new();
        cassette
            .wire(entry.session, direction == ToServer, message, None, blobs, &mut bytes)
            .expect("a recording holds its messages");
        (direction, String::from_utf8(bytes).expect("all lines are text"))
    };
    timeline(cassette, &all).into_iter().map(line).collect()
}

/// Plays a cassette to its own client.
pub(crate) fn replay_all(
    cassette: Cassette,
    blobs: impl BlobSource + Send + Sync + 'static,
    lines: &[Line],
) -> (Vec<Line>, Report) {
    let mut replayer = Replayer::new(Arc::new(cassette), Arc::new(blobs), "self.json", Options::default())
        .expect("a recording plays");
    let passed = replay(lines, &mut replayer);
    (passed, replayer.finish())
}

/// What passes when the client's lines are said again to a replayer.
pub(crate) fn replay(lines: &[Line], replayer: &mut Replayer) -> Vec<Line> {
    let mut seen = Vec::new();
    let mut outputs = VecDeque::new();
    let mut now = 0;
    let (mut heard, mut before) = (0, 0);
    for (direction, line) in lines {
        if *direction == ToClient {
            before += 1;
            continue;
        }
        listen(replayer, &mut now, &mut outputs);
        while heard < before {
            let Some(line) = outputs.pop_front() else { break };
            seen.push((ToClient, line));
            heard += 1;
        }
        replayer.handle(now, Input::Message { lane: Lane(0), bytes: line.as_bytes() });
        seen.push((ToServer, line.clone()));
    }
    listen(replayer, &mut now, &mut outputs);
    replayer.handle(now, Input::Closed { lane: Lane(0) });
    listen(replayer, &mut now, &mut outputs);
    seen.extend(outputs.into_iter().map(|line| (ToClient, line)));
    seen
}

/// Time goes on only as far as a notification and its response are kept apart: what needs a wait to run out does not
/// come.
fn listen(replayer: &mut Replayer, now: &mut u64, outputs: &mut VecDeque<String>) {
    loop {
        while let Some(output) = replayer.poll(*now) {
            if let Output::Send { bytes, .. } = output {
                outputs.push_back(String::from_utf8(bytes).expect("all lines are text"));
            }
        }
        match replayer.deadline() {
            Some(due) if due <= *now + 5_000 => *now = due.max(*now + 1),
            _ => return,
        }
    }
}

/// The server's lines.
pub(crate) fn from_server(lines: &[Line]) -> Vec<&str> {
    lines.iter().filter(|(way, _)| *way == ToClient).map(|(_, line)| &**line).collect()
}
