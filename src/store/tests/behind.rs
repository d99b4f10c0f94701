use super::*;
use crate::cassette::journal::Continues;

impl Place {
    /// The journal of what was asked while the session that `behind` recorded was replayed.
    fn ask(&self, number: u64, behind: u64) -> Journal {
        let continues = Continues { recording: 1, session: Some(1), journal: Some(id(behind)) };
        let mut journal = self.recorder_of(JournalHeader { continues: Some(continues), ..header(number) });
        call(&mut journal, number);
        journal
    }

    fn keys(&self) -> Vec<String> {
        self.load().unwrap().cassette.exchanges.iter().map(|exchange| exchange.key.to_string()).collect()
    }
}

#[test]
fn what_was_asked_is_part_of_its_session_alive_dead_and_folded() {
    let place = Place::new();
    place.record(1);
    let alive = place.ask(2, 1);
    let keys = ["tools/call tool1 @1", "tools/call tool2 @1"];
    // Even before either is in the cassette.
    assert_eq!((place.keys(), place.journals()), (keys.map(String::from).to_vec(), vec![id(1)]));
    place.fold();
    assert_eq!(place.keys(), keys);
    // Its recorder is killed.
    drop(alive);
    assert_eq!(place.keys(), keys);
    assert_eq!(place.fold().added.len(), 1);
    assert_eq!(place.names(), ["c.json"]);
    assert_eq!((place.keys(), place.journals()), (keys.map(String::from).to_vec(), vec![id(1)]));
}

#[test]
fn one_fold_of_both_is_as_good() {
    let place = Place::new();
    place.record(1);
    place.ask(2, 1).finish().unwrap();
    place.fold();
    assert_eq!(place.names(), ["c.json"]);
    assert_eq!(place.keys(), ["tools/call tool1 @1", "tools/call tool2 @1"]);
}

#[test]
fn a_fold_that_was_killed_before_it_took_the_journal_away_is_made_again() {
    let place = Place::new();
    place.record(1);
    place.fold();
    let journal = place.ask(2, 1).finish().unwrap();
    let bytes = fs_err::read(&journal).unwrap();
    place.fold();
    let text = place.text();
    fs_err::write(&journal, bytes).unwrap();
    place.fold();
    assert_eq!((place.text(), place.names()), (text, vec!["c.json".into()]));
}

fn damage(journal: &Path, at: usize) {
    let mut bytes = fs_err::read(journal).unwrap();
    bytes[at] ^= 1;
    fs_err::write(journal, bytes).unwrap();
}

/// A place in the frame behind that of a journal's header, which says where it goes on.
fn behind_header(journal: &Path) -> usize {
    let bytes = fs_err::read(journal).unwrap();
    let mark = memchr::memmem::find_iter(&bytes, &[0xf7, 0xa5, 0xfe]).nth(1).unwrap();
    mark + 16
}

#[test]
fn where_it_belongs_is_known_although_the_header_is_lost() {
    let place = Place::new();
    place.record(1);
    place.fold();
    let lost = place.ask(2, 1).finish().unwrap();
    damage(&lost, 30);
    let outcome = place.files().recover(&place.cassette()).unwrap();
    assert_eq!((outcome.added.len(), place.journals()), (1, vec![id(1)]), "{:?}", outcome.notes);
    assert_eq!(place.keys().len(), 2);
}

#[test]
fn what_cannot_be_told_where_it_belongs_is_left_and_hides_nothing() {
    let place = Place::new();
    place.record(1);
    place.fold();
    let text = place.text();
    let stray = place.ask(2, 7).finish().unwrap();
    let lost = place.ask(3, 1).finish().unwrap();
    let behind_header = behind_header(&lost);
    for (journal, at) in [(&lost, 30), (&lost, behind_header), (&stray, 200)] {
        damage(journal, at);
    }
    for _ in 0..2 {
        let files = Files { disk: place.disk.clone(), state: Some(place.state()) };
        let outcome = files.recover(&place.cassette()).unwrap();
        assert!(outcome.added.is_empty());
        let left = outcome.notes.iter().filter(|note| note.contains("is not in the cassette; it is left"));
        assert_eq!(left.count(), 2, "{:?}", outcome.notes);
    }
    assert!(stray.exists() && lost.exists());
    assert_eq!((place.text(), place.keys()), (text, vec!["tools/call tool1 @1".into()]));
    // By itself it can be read all the same.
    fs_err::remove_file(&lost).unwrap();
    let other = place.ask(4, 7).finish().unwrap();
    let alone = load_on(&place.disk, &other, None).unwrap();
    assert_eq!((alone.cassette.exchanges.len(), alone.notes.len()), (1, 0));
}
