//! A session through `tapedeck record` against the same bytes through `socat`, which only copies them.

use std::process::Command;

use crate::{
    Options, folder,
    measure::{Goal, Pairs, Spread, Unit, on_one_core_and_free, report},
    peers::{Session, Writes, line_server},
    socat, tapedeck, this_program,
};

/// Bytes of text in an answer.
const ANSWER: usize = 300;

/// A recorder before the line server, with its cassette in a `folder` of its own: there is nothing to add to.
fn recorder(folder: &tempfile::TempDir, server: &[String]) -> Command {
    let cassette = folder.path().join("c.json");
    let mut command = tapedeck();
    command
        .arg("record")
        .arg("--cassette")
        .arg(cassette)
        .arg("--")
        .arg(this_program().get_program())
        .args(server);
    command
}

pub(crate) fn latency(_: &Options) {
    const ROUND_TRIPS: usize = 2000;
    let server = line_server(ANSWER, Writes::Each);
    let Some(mut socat) = socat(&server) else { return };
    let p50 = |command: &mut Command| {
        let mut session = Session::start(command);
        let warm = session.requests(0..200, |_, _| ());
        session.round_trips(&warm);
        let requests = session.requests(0..ROUND_TRIPS, |_, _| ());
        let times = session.round_trips(&requests);
        session.finish(|_| ());
        Spread::of(times.iter().map(std::time::Duration::as_secs_f64)).median
    };
    on_one_core_and_free(|| {
        let pairs = Pairs::take(|| p50(&mut recorder(&folder(), &server)), || p50(&mut socat));
        let names = ["round trip, p50, through the recorder", "round trip, p50, through socat"];
        pairs.report_ratio("recorder / socat", names, Unit::MICROSECONDS, Goal::AtMost(1.1));
    });
}

pub(crate) fn throughput(_: &Options) {
    for (writes, goal) in [(Writes::Each, Goal::AtLeast(0.9)), (Writes::Joined, Goal::None)] {
        println!("  client and server write messages {}", writes.word());
        throughput_of(writes, goal);
    }
}

fn throughput_of(writes: Writes, goal: Goal) {
    // A second or so: what is shorter is mostly its beginning.
    const CALLS: usize = 200_000;
    let server = line_server(ANSWER, writes);
    let Some(mut socat) = socat(&server) else { return };
    let a_second = |command: &mut Command| {
        let mut session = Session::start(command);
        let warm = session.requests(0..1000, |_, _| ());
        session.pipeline(&warm, 64, writes);
        let requests = session.requests(0..CALLS, |_, _| ());
        let time = session.pipeline(&requests, 64, writes);
        (CALLS as f64 / time.as_secs_f64(), session.finish(|_| ()).as_secs_f64())
    };
    let mut ends = Vec::new();
    let ours = || {
        let (rate, end) = a_second(&mut recorder(&folder(), &server));
        ends.push(end);
        rate
    };
    let pairs = Pairs::take(ours, || a_second(&mut socat).0);
    let names = ["answers, 64 in flight, through the recorder", "answers, 64 in flight, through socat"];
    pairs.report_ratio("recorder / socat", names, Unit::THOUSANDS, goal);
    report("from end of input to the cassette's end", Spread::of(ends), Unit::MILLISECONDS, Goal::None);
}
