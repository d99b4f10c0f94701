//! How long a replay takes to be there, and how big the program is.

use std::{path::Path, time::Instant};

use crate::{
    Options, folder,
    measure::{Goal, Pairs, Unit, report_one},
    peers::Session,
    tape, tapedeck,
};

/// Seconds from starting a replay to its first answer.
fn first_answer_of(cassette: &Path) -> f64 {
    let start = Instant::now();
    let session = Session::start(tapedeck().arg("replay").arg(cassette));
    let time = start.elapsed();
    session.finish(|_| ());
    time.as_secs_f64()
}

pub(crate) fn first_answer(_: &Options) {
    let folder = folder();
    let empty = folder.path().join("empty.json");
    tape::write(&empty, []);
    for (name, size) in tape::KINDS {
        let path = folder.path().join("big.json");
        tape::write(&path, tape::answers(size));
        let pairs = Pairs::take(|| first_answer_of(&path), || first_answer_of(&empty));
        let names = [&*format!("start to first answer, {name}"), "start to first answer, empty cassette"];
        pairs.report_difference("above the empty one", names, Unit::MILLISECONDS, Goal::AtMost(0.030));
    }
}

pub(crate) fn binary_size(_: &Options) {
    let program = tapedeck().get_program().to_owned();
    let size = fs_err::metadata(program).expect("the program was built").len();
    report_one("the program, stripped", size as f64, Unit::MEGABYTES, Goal::AtMost(12e6));
}
