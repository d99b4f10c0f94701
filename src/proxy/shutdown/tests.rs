//! Endings told as scripts: what happened at which millisecond, and what was done at which.

use std::os::unix::process::ExitStatusExt;

use super::*;

const GRACE: Grace = Grace {
    input: Duration::from_millis(3000),
    term: Duration::from_millis(1000),
    silence: Duration::from_millis(1000),
    signal: Duration::from_millis(1200),
    limit: Duration::from_millis(1600),
};

/// What a script may say at a moment.
enum Told {
    Happens(Happened),
    /// Output came and went on.
    Output,
    /// Output came and the client does not take it.
    Held,
    Owing(bool),
    Others(bool),
}
use Told::{Held, Others, Output, Owing};

const INPUT: Told = Told::Happens(Happened::InputClosed);
const OUTPUT_CLOSED: Told = Told::Happens(Happened::OutputClosed);
const EXITED: Told = Told::Happens(Happened::Exited);
const TERM: Told = Told::Happens(Happened::Signal(SIGTERM));
const INT: Told = Told::Happens(Happened::Signal(SIGINT));

fn gone() -> Told {
    Told::Happens(Happened::ClientGone(io::ErrorKind::BrokenPipe.into()))
}

/// Plays a script on a clock of its own and returns every step with its time, and whether the server counts as
/// having ended by itself.
fn play(script: &[(u64, Told)]) -> (Vec<(u64, Step)>, bool) {
    let start = Instant::now();
    let at = |ms| start + Duration::from_millis(ms);
    let mut ending = Ending::new(GRACE);
    let mut pulse = Pulse { quiet_since: Some(start), ..Pulse::default() };
    let (mut steps, mut now, mut script) = (Vec::new(), 0, script.iter().peekable());
    loop {
        while let Some((_, told)) = script.next_if(|(ms, _)| *ms <= now) {
            match told {
                Told::Happens(what) => ending.happened(at(now), what),
                Output => pulse.quiet_since = Some(at(now)),
                Held => pulse.quiet_since = None,
                Owing(is_owing) => {
                    pulse.settled = if pulse.is_owing && !is_owing { Some(at(now)) } else { pulse.settled };
                    pulse.is_owing = *is_owing;
                }
                Others(has_others) => pulse.has_others = *has_others,
            }
        }
        let seen = Pulse { has_others: pulse.has_others && ending.asks_for_others(), ..pulse };
        match ending.next(at(now), &seen) {
            Step::End => {
                steps.push((now, Step::End));
                return (steps, ending.by_itself());
            }
            Step::Wait(until) => {
                let until = until.map(|until| (until - start).as_millis() as u64);
                let told = script.peek().map(|(ms, _)| *ms);
                let next = until.into_iter().chain(told).min().expect("nothing more would ever happen");
                assert!(next > now, "{until:?} is no time to wait for at {now}");
                now = next;
            }
            step => steps.push((now, step)),
        }
        assert!(now < 60_000, "no end: {steps:?}");
    }
}

fn steps(script: &[(u64, Told)]) -> Vec<(u64, Step)> {
    play(script).0
}

const fn sigterm(at: u64) -> (u64, Step) {
    (at, Step::Signal(SIGTERM))
}

const fn sigkill(at: u64) -> (u64, Step) {
    (at, Step::Signal(SIGKILL))
}

const fn end(at: u64) -> (u64, Step) {
    (at, Step::End)
}

#[test]
fn a_server_that_ends_at_the_end_of_its_input_is_not_signalled_and_has_not_ended_by_itself() {
    assert_eq!(play(&[(0, INPUT), (50, OUTPUT_CLOSED), (51, EXITED)]), (vec![end(51)], false));
    assert_eq!(play(&[(0, INPUT), (50, EXITED), (51, OUTPUT_CLOSED)]), (vec![end(51)], false));
}

#[test]
fn a_server_that_ends_before_its_input_does_has_ended_by_itself() {
    assert_eq!(play(&[(50, OUTPUT_CLOSED), (51, EXITED)]), (vec![end(51)], true));
    assert_eq!(play(&[(50, EXITED), (51, OUTPUT_CLOSED)]), (vec![end(51)], true));
    // The client reacts to the end of output faster than the system tells of the exit.
    assert_eq!(play(&[(50, OUTPUT_CLOSED), (51, INPUT), (52, EXITED)]), (vec![end(52)], true));
}

#[test]
fn a_server_that_stays_gets_sigterm_after_three_seconds_and_sigkill_one_later() {
    let script = [(100, INPUT), (4500, EXITED), (4500, OUTPUT_CLOSED)];
    assert_eq!(play(&script), (vec![sigterm(3100), sigkill(4100), end(4500)], false));
    let script = [(100, INPUT), (3200, EXITED), (3200, OUTPUT_CLOSED)];
    assert_eq!(play(&script), (vec![sigterm(3100), end(3200)], false));
}

#[test]
fn an_unanswered_request_is_waited_for_as_long_as_output_comes() {
    let script = [
        (0, Owing(true)),
        (0, INPUT),
        (2900, Output),
        (5800, Output),
        (8000, Owing(false)),
        (8000, Output),
        (10_900, EXITED),
        (10_900, OUTPUT_CLOSED),
    ];
    assert_eq!(steps(&script), [end(10_900)]);
    let silent = [(0, Owing(true)), (0, INPUT), (2900, Output), (6000, EXITED), (6000, OUTPUT_CLOSED)];
    assert_eq!(steps(&silent), [sigterm(5900), end(6000)]);
    // An output that the client has not taken is not silence.
    let held =
        [(0, Owing(true)), (0, INPUT), (1, Held), (9000, Output), (9100, EXITED), (9100, OUTPUT_CLOSED)];
    assert_eq!(steps(&held), [end(9100)]);
}

#[test]
fn output_without_an_unanswered_request_is_not_waited_for() {
    let script = [(0, INPUT), (2900, Output), (3100, EXITED), (3100, OUTPUT_CLOSED)];
    assert_eq!(steps(&script), [sigterm(3000), end(3100)]);
}

#[test]
fn whoever_holds_the_output_of_an_exited_server_is_listened_to_until_it_is_silent() {
    let script = [(0, Output), (200, EXITED), (900, Output), (1800, Output)];
    assert_eq!(play(&script), (vec![end(2800)], true));
    // What the client has not yet taken is not given up.
    assert_eq!(steps(&[(0, EXITED), (100, Held), (9000, Output)]), [end(10_000)]);
    // A talkative orphan does not keep a client that has closed its side.
    let chatter = (1..20).map(|n| (n * 500, Output));
    let script: Vec<_> = [(0, EXITED), (400, INPUT)].into_iter().chain(chatter).collect();
    assert_eq!(steps(&script), [end(3400)]);
}

#[test]
fn children_are_left_alone_where_the_server_ended_unsignalled() {
    assert_eq!(steps(&[(0, Others(true)), (10, EXITED), (11, OUTPUT_CLOSED)]), [end(11)]);
    assert_eq!(steps(&[(0, Others(true)), (10, EXITED), (20, TERM)]), [end(20)]);
}

#[test]
fn children_of_a_server_that_we_signalled_have_as_long_as_it_had() {
    let script = [(0, Others(true)), (0, INPUT), (3010, EXITED), (3020, OUTPUT_CLOSED)];
    assert_eq!(steps(&script), [sigterm(3000), sigkill(4000), end(4000)]);
    let script =
        [(0, Others(true)), (0, INPUT), (3010, EXITED), (3020, OUTPUT_CLOSED), (3105, Others(false))];
    assert_eq!(steps(&script), [sigterm(3000), end(3105)]);
}

#[test]
fn a_closed_output_means_a_second_of_patience_and_then_the_end_of_input() {
    let script = [(100, OUTPUT_CLOSED), (1200, EXITED)];
    assert_eq!(play(&script), (vec![(1100, Step::CloseInput), end(1200)], true));
    let stubborn = [(100, OUTPUT_CLOSED), (4200, EXITED)];
    assert_eq!(play(&stubborn), (vec![(1100, Step::CloseInput), sigterm(4100), end(4200)], false));
}

#[test]
fn a_client_that_takes_no_more_output_has_closed_both_sides() {
    let script = [(100, gone()), (150, EXITED)];
    assert_eq!(play(&script), (vec![(100, Step::CloseInput), end(150)], false));
    let closed = [(50, INPUT), (100, gone()), (150, EXITED)];
    assert_eq!(play(&closed), (vec![end(150)], false));
}

#[test]
fn a_signal_goes_on_at_once_and_we_are_gone_in_time() {
    assert_eq!(
        play(&[(100, TERM), (110, EXITED), (111, OUTPUT_CLOSED)]),
        (vec![sigterm(100), end(111)], false)
    );
    // It survives: SIGKILL, and what it leaves behind does not hold us.
    let int = (100, Step::Signal(SIGINT));
    assert_eq!(steps(&[(100, INT), (1310, EXITED), (1311, Held)]), [int, sigkill(1300), end(1700)]);
    assert_eq!(steps(&[(100, INT)]), [int, sigkill(1300), end(1700)]);
    // Each further one goes on too, and none moves the end.
    assert_eq!(steps(&[(100, INT), (900, TERM)]), [int, sigterm(900), sigkill(1300), end(1700)]);
    // In the middle of another ending the earlier SIGKILL stands.
    assert_eq!(steps(&[(0, INPUT), (3900, TERM)]), [sigterm(3000), sigterm(3900), sigkill(4000), end(5000)]);
}

#[test]
fn what_even_sigkill_does_not_end_is_given_up() {
    assert_eq!(steps(&[(0, INPUT)]), [sigterm(3000), sigkill(4000), end(5000)]);
}

/// Not a test by itself: ends the process that the next test starts.
#[test]
fn ends_like_its_argument() {
    let Ok(end) = std::env::var("TAPEDECK_TEST_END") else { return };
    let number: i32 = end[1..].parse().unwrap();
    let (status, signal) = if end.starts_with('s') { (None, Some(number)) } else { (Some(number), None) };
    end_like(Exit { status, signal, by_itself: true });
}

#[test]
fn we_end_as_the_server_ended() {
    let end = |how: &str| {
        let name = "proxy::shutdown::tests::ends_like_its_argument";
        let mut process = std::process::Command::new(std::env::current_exe().unwrap());
        process.args(["--exact", name]).env("TAPEDECK_TEST_END", how).stdout(std::process::Stdio::null());
        process.status().unwrap()
    };
    for status in [0, 3, 255] {
        assert_eq!(end(&format!("e{status}")).code(), Some(status));
    }
    // Default actions of all kinds: ignored by Rust (13), handled by it (11), core dumping (6), unstoppable (9), and
    // some that have no name everywhere.
    let unnamed = if cfg!(target_os = "linux") { &[16, 30, 40][..] } else { &[] };
    for &signal in [1, 2, 6, 9, 11, 13, 15].iter().chain(unnamed) {
        let status = end(&format!("s{signal}"));
        assert_eq!((status.signal(), status.core_dumped()), (Some(signal), false), "signal {signal}");
    }
}
