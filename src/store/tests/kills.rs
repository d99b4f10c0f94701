//! Two recorders and a reader on one cassette, each ended at every one of its file operations in turn.

use std::{
    collections::BTreeMap,
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use super::{super::disk::Step, *};
use crate::cassette::model::Cassette;

/// What each recorder's peers may have received: the messages whose write came back.
type Passed = Arc<Mutex<BTreeMap<u64, Vec<String>>>>;

/// A recorder with the file system as it sees it. What fails ends it, as the end of its process would: its handles
/// are closed, and it does nothing more.
struct Actor<'a> {
    place: &'a Place,
    disk: Disk,
    number: u64,
    passed: Passed,
    journal: Option<Journal>,
    is_dead: bool,
}

/// How often a recorder acts.
const ACTS: usize = 5;

impl<'a> Actor<'a> {
    fn new(place: &'a Place, disk: Disk, number: u64, passed: &Passed) -> Self {
        Self { place, disk, number, passed: Arc::clone(passed), journal: None, is_dead: false }
    }

    fn act(&mut self, act: usize) {
        if !self.is_dead && self.attempt(act).is_err() {
            self.is_dead = true;
            self.journal = None;
        }
    }

    fn attempt(&mut self, act: usize) -> Result<(), StoreError> {
        match act {
            0 => {
                let header = header(self.number);
                let journal = Journal::create_on(&self.disk, &self.place.cassette(), header, None)?;
                self.journal = Some(journal);
            }
            1 => self.write(Direction::ToServer, request(self.number))?,
            2 => self.write(Direction::ToClient, answer(self.number))?,
            3 => drop(self.journal.take().unwrap().finish()?),
            _ => drop(self.fold(true)?),
        }
        Ok(())
    }

    fn write(&mut self, direction: Direction, line: String) -> io::Result<()> {
        self.journal.as_mut().unwrap().write(&[event(direction, &line)])?;
        self.passed.lock().unwrap().entry(self.number).or_default().push(line);
        Ok(())
    }

    fn fold(&self, waits: bool) -> Result<FoldOutcome, StoreError> {
        let files = Files { disk: self.disk.clone(), state: None };
        files.fold(&self.place.cassette(), FoldOptions::default(), None, &|| waits)
    }
}

/// Long enough for a blob, each for its own.
fn answer(number: u64) -> String {
    let data = ["QUJD".repeat(1100), "QUJE".repeat(number as usize)].concat();
    format!(r#"{{"jsonrpc":"2.0","id":0,"result":{{"content":[],"n":{number},"data":"{data}"}}}}"#)
}

/// A file system that ends at operation `at`, before it or in the middle of it, and all operations there were.
fn mortal(at: usize, inside: bool) -> (Disk, Arc<Mutex<Vec<Step>>>) {
    let steps = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&steps);
    let before = move |step| {
        let mut noted = noted.lock().unwrap();
        noted.push(step);
        match noted.len() - 1 {
            now if now < at => Ok(()),
            now if now == at && inside => Err(io::ErrorKind::WriteZero.into()),
            _ => Err(io::Error::other("ended")),
        }
    };
    (Disk { before: Some(Arc::new(before)) }, steps)
}

/// The lines of each session, by its journal.
fn seen(loaded: &Loaded) -> Vec<(String, Vec<String>)> {
    let Cassette { sessions, exchanges, .. } = &loaded.cassette;
    let line = |session, from_client, message| {
        let mut line = Vec::new();
        loaded.cassette.wire(session, from_client, message, None, &loaded.blobs, &mut line).unwrap();
        String::from_utf8(line).unwrap()
    };
    let lines = |session: u32| {
        let own = exchanges.iter().filter(move |exchange| exchange.session == session);
        own.flat_map(move |exchange| {
            let client = exchange.client.iter().map(move |message| line(session, true, message));
            client.chain(exchange.server.iter().map(move |item| line(session, false, &item.message)))
        })
    };
    let numbered = (0..).zip(sessions);
    numbered.map(|(number, session)| (session.journal.clone().unwrap(), lines(number).collect())).collect()
}

#[track_caller]
fn assert_all_there(loaded: &Loaded, passed: &BTreeMap<u64, Vec<String>>, when: &str) {
    let seen = seen(loaded);
    for (number, lines) in passed {
        let sessions: Vec<_> = seen.iter().filter(|(journal, _)| *journal == id(*number)).collect();
        assert_eq!(sessions.len(), 1, "session {number} is there once, {when}");
        assert!(lines.iter().all(|line| sessions[0].1.contains(line)), "session {number} is whole, {when}");
    }
    let mut journals: Vec<_> = seen.iter().map(|(journal, _)| journal).collect();
    journals.sort();
    journals.dedup();
    assert_eq!(journals.len(), seen.len(), "no session is there twice, {when}");
}

/// After whatever happened: a reader finds everything, a fold too, and nothing is left lying about.
fn check_after(place: &Place, passed: &Passed, when: &str) {
    let passed = passed.lock().unwrap();
    assert_all_there(&place.load().unwrap(), &passed, &format!("read {when}"));
    place.fold();
    assert_all_there(&place.load().unwrap(), &passed, &format!("folded {when}"));
    assert_eq!(place.names(), ["c.json", "c.json.blobs"], "{when}");
    let text = place.text();
    place.fold();
    assert_eq!(place.text(), text, "folded twice {when}");
}

/// A cassette that has a session already.
fn begun() -> (Place, Passed) {
    let (place, passed) = (Place::new(), Passed::default());
    let mut first = Actor::new(&place, Disk::default(), 9, &passed);
    (0..ACTS).for_each(|act| first.act(act));
    assert!(!first.is_dead);
    (place, passed)
}

/// Runs both recorders and readers turn by turn, one of them on a file system that ends; how many operations that one
/// did, and which was the last.
fn run(mortal_one: usize, at: usize, inside: bool) -> (usize, Option<Step>) {
    let (place, passed) = begun();
    let (disk, steps) = mortal(at, inside);
    let disk_of = |one: usize| if one == mortal_one { disk.clone() } else { Disk::default() };
    let mut a = Actor::new(&place, disk_of(0), 1, &passed);
    let mut b = Actor::new(&place, disk_of(1), 2, &passed);
    // The second is one act behind, so that it still records while the first folds.
    for act in 0..=ACTS {
        if act < ACTS {
            a.act(act);
        }
        let when = format!("by a third, act {act}, {mortal_one} ended at {at}");
        match load_on(&disk_of(2), &place.cassette(), None) {
            // A reader that ends tells nobody anything; what counts is that it disturbs nobody.
            _ if mortal_one == 2 => {}
            loaded => assert_all_there(&loaded.unwrap(), &passed.lock().unwrap(), &when),
        }
        if act > 0 {
            b.act(act - 1);
        }
    }
    drop((a, b));
    check_after(&place, &passed, &format!("after {mortal_one} ended at {at}"));
    let steps = steps.lock().unwrap();
    (steps.len(), steps.get(at).copied())
}

#[test]
fn an_end_at_any_operation_of_anyone_loses_nothing_that_a_peer_received() {
    for one in 0..3 {
        for at in 0.. {
            let (_, step) = run(one, at, false);
            if step == Some(Step::Write) {
                run(one, at, true);
            }
            if step.is_none() {
                assert!(at > 20, "{one} did {at} operations only");
                break;
            }
        }
    }
}

/// Does something between any two operations of a recorder that lives, with what was prepared before it began.
fn interrupted<T: Send + 'static>(
    prepare: impl Fn(&Place, &Passed) -> T,
    what: impl Fn(T, &Place, &Passed) + Send + Sync + 'static,
) {
    let what = Arc::new(what);
    for at in 0.. {
        let (place, passed) = begun();
        let prepared = Mutex::new(Some(prepare(&place, &passed)));
        let place = Arc::new(place);
        let (what, their_place, their_passed) = (Arc::clone(&what), Arc::clone(&place), Arc::clone(&passed));
        let count = Arc::new(AtomicUsize::new(0));
        let counting = Arc::clone(&count);
        let before = move |_| {
            if counting.fetch_add(1, Ordering::SeqCst) == at {
                let prepared = prepared.lock().unwrap().take();
                what(prepared.expect("once"), &their_place, &their_passed);
            }
            Ok(())
        };
        let disk = Disk { before: Some(Arc::new(before)) };
        let mut a = Actor::new(&place, disk, 1, &passed);
        (0..ACTS).for_each(|act| a.act(act));
        assert!(!a.is_dead, "operation {at}");
        drop(a);
        check_after(&place, &passed, &format!("after operation {at}"));
        if count.load(Ordering::SeqCst) <= at {
            return;
        }
    }
}

#[test]
fn a_reader_between_any_two_operations_sees_every_session_once() {
    interrupted(
        |_, _| (),
        |(), place, passed| assert_all_there(&place.load().unwrap(), &passed.lock().unwrap(), "read between"),
    );
}

#[test]
fn another_recording_between_any_two_operations_is_there_in_the_end() {
    interrupted(
        |_, _| (),
        |(), place, passed| {
            let mut b = Actor::new(place, Disk::default(), 2, passed);
            (0..ACTS - 1).for_each(|act| b.act(act));
            assert!(!b.is_dead);
            // It cannot fold while the other one does: then its journal is left.
            let folded = b.fold(false);
            assert!(matches!(folded, Ok(_) | Err(StoreError::Late { .. })), "{folded:?}");
        },
    );
}

#[test]
fn a_recording_that_ends_between_any_two_operations_is_there_in_the_end() {
    interrupted(
        |place, passed| {
            let mut b = Actor::new(place, Disk::default(), 2, passed);
            (0..2).for_each(|act| b.act(act));
            b.journal.take().unwrap()
        },
        |mut journal, _, passed| {
            let line = answer(2);
            journal.write(&[event(Direction::ToClient, &line)]).unwrap();
            passed.lock().unwrap().get_mut(&2).unwrap().push(line);
            journal.finish().unwrap();
        },
    );
}

#[test]
fn a_fold_between_any_two_operations_of_a_reader_hides_nothing() {
    for at in 0.. {
        let (place, passed) = begun();
        let mut a = Actor::new(&place, Disk::default(), 1, &passed);
        (0..ACTS - 1).for_each(|act| a.act(act));
        drop(a);
        let place = Arc::new(place);
        let (folding, count) = (Arc::clone(&place), Arc::new(AtomicUsize::new(0)));
        let counting = Arc::clone(&count);
        let before = move |_| {
            if counting.fetch_add(1, Ordering::SeqCst) == at {
                assert_eq!(folding.fold().added.len(), 1);
            }
            Ok(())
        };
        let disk = Disk { before: Some(Arc::new(before)) };
        let loaded = load_on(&disk, &place.cassette(), None).unwrap();
        let when = format!("with a fold before operation {at}");
        assert_all_there(&loaded, &passed.lock().unwrap(), &when);
        if count.load(Ordering::SeqCst) <= at {
            return;
        }
    }
}
