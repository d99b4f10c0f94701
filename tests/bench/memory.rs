//! The most memory that a process ever had (`VmHWM` of `/proc/PID/status`).

use std::path::Path;

use crate::{
    Options, folder,
    measure::{Goal, Unit, report_one},
    peers::{Session, Writes, line_server, push_text},
    tape, tapedeck, this_program,
};

/// Bytes; nothing once the process has ended.
pub(crate) fn peak(pid: u32) -> Option<f64> {
    let status = fs_err::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(1024.0 * line.trim().strip_suffix(" kB")?.parse::<f64>().ok()?)
}

/// The peak of a session from now to its end.
fn peak_to_the_end(session: Session) -> f64 {
    let mut highest = peak(session.pid()).unwrap_or_default();
    session.finish(|pid| highest = peak(pid).unwrap_or_default().max(highest));
    highest
}

/// Messages of all sizes up to 1 MiB, both ways.
pub(crate) fn recording(options: &Options) {
    let total: usize = if options.full { 2 << 30 } else { 256 << 20 };
    let folder = folder();
    let cassette = folder.path().join("long.json");
    let mut command = tapedeck();
    command.arg("record").arg("--cassette").arg(&cassette).arg("--");
    command.arg(this_program().get_program()).args(line_server(0, Writes::Joined));
    let mut session = Session::start(&mut command);
    let (mut passed, mut call) = (0, 0);
    while passed < total {
        let [asked, sent] = [size(2 * call), size(2 * call + 1)];
        let request = session.requests([call], |_, out| {
            out.extend_from_slice(format!(",\"size\":{asked},\"text\":\"").as_bytes());
            push_text(sent, out);
            out.push(b'"');
        });
        session.round_trips(&request);
        passed += asked + sent;
        call += 1;
    }
    let while_passing = peak(session.pid()).unwrap_or_default();
    let whole = peak_to_the_end(session);
    let megabytes = total >> 20;
    let goal = Goal::AtMost(64e6);
    report_one(
        &format!("recorder, {megabytes} MiB in {call} calls, passing"),
        while_passing,
        Unit::MEGABYTES,
        goal,
    );
    report_one("recorder, with its end", whole, Unit::MEGABYTES, goal);
}

/// Sizes of every order up to 1 MiB with the envelope, the same in each run.
fn size(n: usize) -> usize {
    const LARGEST: usize = (1 << 20) - 512;
    let scattered = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    LARGEST >> [0, 1, 0, 2, 4, 8, 0, 1, 3, 12][scattered % 10]
}

/// A loaded cassette above a process that has none to speak of.
pub(crate) fn loading(_: &Options) {
    let folder = folder();
    let path = folder.path().join("c.json");
    let empty = loaded(&path, [1]).1;
    report_one("replay of a cassette with one call", empty, Unit::MEGABYTES, Goal::None);
    for (name, size) in tape::KINDS {
        let (size, peak) = loaded(&path, tape::answers(size));
        report_one(&format!("{name} / its size"), (peak - empty) / size, Unit::TIMES, Goal::AtMost(2.0));
    }
}

/// A cassette's size, and the peak of a replay that has loaded it and answered one call.
fn loaded(path: &Path, answers: impl IntoIterator<Item = usize>) -> (f64, f64) {
    let size = tape::write(path, answers);
    let mut session = Session::start(tapedeck().arg("replay").arg(path));
    let request = session.requests([0], |_, _| ());
    session.round_trips(&request);
    (size as f64, peak_to_the_end(session))
}
