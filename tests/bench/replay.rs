//! `tapedeck replay` against a server that looks nothing up.

use std::process::Command;

use crate::{
    Options, folder,
    measure::{Goal, Pairs, Unit},
    peers::{Session, Writes, line_server},
    tape, tapedeck, this_program,
};

/// Bytes of text in an answer.
const ANSWER: usize = 120;
const KEYS: usize = 10_000;
const IN_FLIGHT: usize = 64;

fn replay(cassette: &std::path::Path) -> Command {
    let mut command = tapedeck();
    command.arg("replay").arg(cassette);
    command
}

/// All numbers below `count`, each once, in an order that is neither the cassette's nor random.
fn shuffled(count: usize) -> impl Iterator<Item = usize> {
    // Coprime with every count used here.
    (0..count).map(move |at| at * 7919 % count)
}

pub(crate) fn throughput(_: &Options) {
    let folder = folder();
    let path = folder.path().join("keys.json");
    tape::write(&path, [ANSWER; KEYS]);
    for (writes, goal) in [(Writes::Each, Goal::AtLeast(0.65)), (Writes::Joined, Goal::None)] {
        println!("  client and line server write messages {}", writes.word());
        let a_second = |command: &mut Command| {
            let mut session = Session::start(command);
            let first = session.requests([0], |_, _| ());
            session.round_trips(&first);
            let requests = session.requests(shuffled(KEYS), |_, _| ());
            let time = session.pipeline(&requests, IN_FLIGHT, writes);
            session.finish(|_| ());
            KEYS as f64 / time.as_secs_f64()
        };
        let server = line_server(ANSWER, writes);
        let pairs = Pairs::take(|| a_second(&mut replay(&path)), || a_second(this_program().args(&server)));
        let names = ["answers, 64 in flight, 10,000 keys, replay", "answers, 64 in flight, line server"];
        pairs.report_ratio("replay / line server", names, Unit::THOUSANDS, goal);
    }
}

/// Whether a request costs more where there are more to choose from. Every key is asked for once before, so that
/// both sides repeat.
pub(crate) fn lookup(_: &Options) {
    const FEW: usize = 100;
    let folder = folder();
    let each = |keys: usize| {
        let path = folder.path().join(format!("{keys}.json"));
        tape::write(&path, std::iter::repeat_n(ANSWER, keys));
        move || {
            let mut session = Session::start(&mut replay(&path));
            let warm = session.requests(shuffled(keys), |_, _| ());
            session.pipeline(&warm, IN_FLIGHT, Writes::Joined);
            let requests = session.requests((0..2 * KEYS / keys).flat_map(|_| shuffled(keys)), |_, _| ());
            let time = session.pipeline(&requests, IN_FLIGHT, Writes::Joined);
            session.finish(|_| ());
            time.as_secs_f64() / requests.len() as f64
        }
    };
    let pairs = Pairs::take(each(KEYS), each(FEW));
    let names = ["time a request, 10,000 keys", "time a request, 100 keys"];
    pairs.report_ratio("10,000 keys / 100 keys", names, Unit::MICROSECONDS, Goal::AtMost(1.2));
}
