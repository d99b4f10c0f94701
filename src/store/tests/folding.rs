use std::time::Duration;

use super::*;

#[test]
fn journals_become_sessions_in_the_order_of_their_start_and_go() {
    let place = Place::new();
    assert!(matches!(place.load(), Err(StoreError::NotFound { .. })));
    place.record(2);
    place.record(1);
    assert_eq!(place.journals(), [id(1), id(2)], "reading needs no cassette");
    assert_eq!(place.fold().added.len(), 2);
    assert_eq!(place.names(), ["c.json"]);
    assert_eq!(place.journals(), [id(1), id(2)]);
    let before = place.text();
    assert_eq!(place.fold().added, []);
    assert_eq!(place.text(), before);
    place.record(3);
    place.fold();
    assert_eq!(place.journals(), [id(1), id(2), id(3)]);
    let numbers: Vec<_> =
        place.load().unwrap().cassette.sessions.iter().map(|s| (s.number, s.recording)).collect();
    assert_eq!(numbers, [(1, 1), (2, 2), (3, 3)]);
}

#[test]
fn a_live_journal_is_read_and_left_alone() {
    let place = Place::new();
    let mut alive = place.recorder(1);
    call(&mut alive, 1);
    place.record(2);
    assert_eq!(place.journals(), [id(1), id(2)]);
    let outcome = place.fold();
    assert_eq!((outcome.added.len(), outcome.alive), (1, 1));
    assert_eq!(place.journals(), [id(2), id(1)]);
    alive.finish().unwrap();
    place.fold();
    assert_eq!(place.names(), ["c.json"]);
}

#[test]
fn a_fold_that_finds_the_lock_taken_leaves_the_journal_to_the_next() {
    let place = Place::new();
    place.record(1);
    let lock = fs_err::File::create(place.folder.path().join("c.json.lock")).unwrap();
    assert!(place.disk.try_lock(&lock).unwrap());
    for within in [Duration::ZERO, Duration::from_millis(1)] {
        let options = FoldOptions { within: Some(within), ..FoldOptions::default() };
        assert!(matches!(place.fold_with(options), Err(StoreError::Late { .. })));
    }
    assert_eq!(place.journals(), [id(1)]);
    drop(lock);
    place.fold();
    assert_eq!(place.names(), ["c.json"]);
}
