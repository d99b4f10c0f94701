use std::{borrow::Cow, os::unix::fs::PermissionsExt, sync::Arc, sync::Mutex};

use rustix::{
    fs::{FlockOperation, flock},
    io::FdFlags,
};

use super::{super::disk::Step, *};
use crate::{
    cassette::journal::{Entry, JournalReader},
    traffic::{Direction, Lane, Payload},
};

fn header() -> JournalHeader {
    JournalHeader { id: "0123456789ab".to_owned(), ..JournalHeader::default() }
}

fn event(text: &str) -> Event<'_> {
    let payload = Payload::Message(Cow::Borrowed(text.as_bytes()));
    Event { at: 0, direction: Direction::ToServer, lane: Lane(0), payload }
}

fn texts(path: &Path) -> Vec<String> {
    let mut reader = JournalReader::new(fs_err::File::open(path).unwrap()).unwrap();
    let mut texts = Vec::new();
    while let Some((_, entry)) = reader.next().unwrap() {
        texts.push(match entry {
            Entry::Event(Event { payload: Payload::Message(bytes), .. }) => {
                String::from_utf8(bytes.into_owned()).unwrap()
            }
            entry => format!("{entry:?}"),
        });
    }
    assert_eq!(reader.torn(), None);
    texts
}

#[test]
fn a_journal_is_private_locked_and_not_inherited_until_it_is_finished() {
    let folder = tempfile::tempdir().unwrap();
    let cassette = folder.path().join("new/folders/c.json");
    let mut journal = Journal::create_on(&Disk::default(), &cassette, header(), None).unwrap();
    journal.write(&[event("a"), event("b")]).unwrap();
    assert_eq!(journal.path().metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert!(rustix::io::fcntl_getfd(&journal.file).unwrap().contains(FdFlags::CLOEXEC));
    let other = fs_err::File::open(journal.path()).unwrap();
    let try_lock = || flock(&other, FlockOperation::NonBlockingLockExclusive);
    assert!(try_lock().is_err(), "a reader must see that it lives");
    let path = journal.finish().unwrap();
    assert!(try_lock().is_ok());
    assert_eq!(texts(&path), ["a", "b", "End"]);
}

#[test]
fn events_of_one_call_are_one_write() {
    let folder = tempfile::tempdir().unwrap();
    let steps = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&steps);
    let before = move |step| {
        noted.lock().unwrap().push(step);
        Ok(())
    };
    let disk = Disk { before: Some(Arc::new(before)) };
    let mut journal = Journal::create_on(&disk, &folder.path().join("c.json"), header(), None).unwrap();
    steps.lock().unwrap().clear();
    journal.write(&[event("a"), event("b"), event("c")]).unwrap();
    assert_eq!(*steps.lock().unwrap(), [Step::Write]);
}

#[test]
fn a_failed_write_leaves_whole_frames_and_recording_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let fails = Arc::new(Mutex::new(Vec::new()));
    let failing = Arc::clone(&fails);
    let before = move |step| match failing.lock().unwrap().contains(&step) {
        true => Err(io::ErrorKind::WriteZero.into()),
        false => Ok(()),
    };
    let disk = Disk { before: Some(Arc::new(before)) };
    let mut journal = Journal::create_on(&disk, &folder.path().join("c.json"), header(), None).unwrap();
    journal.write(&[event("before")]).unwrap();
    for steps in [vec![Step::Write], vec![Step::Write, Step::Truncate]] {
        *fails.lock().unwrap() = steps;
        journal.write(&[event("the disk is full")]).unwrap_err();
    }
    fails.lock().unwrap().clear();
    journal.write(&[event("after")]).unwrap();
    assert_eq!(texts(&journal.finish().unwrap()), ["before", "after", "End"]);
}

#[test]
fn a_full_disk_still_takes_how_much_is_missing_and_so_does_a_journal_put_in_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let cassette = folder.path().join("c.json");
    let mut journal = Journal::create_on(&Disk::default(), &cassette, header(), None).unwrap();
    journal.write(&[event("before")]).unwrap();
    let length = journal.length;
    let missed = |journal: &Journal| {
        let file = fs_err::File::open(journal.path()).unwrap();
        assert_eq!(file.metadata().unwrap().len(), journal.length);
        (JournalReader::new(file).unwrap().header().missed, texts(journal.path()))
    };
    let before = vec!["before".to_owned()];
    assert_eq!(missed(&journal), (0, before.clone()));
    for count in [1, 300] {
        journal.missed(count).unwrap();
        assert_eq!(missed(&journal), (count, before.clone()));
    }
    assert_eq!(journal.length, length);
    journal.rewrite(|_| Ok(())).unwrap();
    assert_eq!(missed(&journal), (300, before.clone()));
    journal.missed(u64::MAX).unwrap();
    assert_eq!(missed(&journal), (u64::MAX, before));
    journal.write(&[event("after")]).unwrap();
    assert_eq!(texts(&journal.finish().unwrap()), ["before", "after", "End"]);
}

#[test]
fn what_somebody_took_from_its_end_is_noticed_when_it_is_put_into_another() {
    let folder = tempfile::tempdir().unwrap();
    let cassette = folder.path().join("c.json");
    let mut journal = Journal::create_on(&Disk::default(), &cassette, header(), None).unwrap();
    journal.write(&[event("kept"), event("last")]).unwrap();
    journal.rewrite(|_| Ok(())).unwrap();
    let whole = fs_err::read(journal.path()).unwrap();
    let last = memchr::memmem::rfind(&whole, &[0xf7, 0xa5, 0xfe]).unwrap();
    let mut flipped = whole.clone();
    *flipped.last_mut().unwrap() ^= 1;
    for bytes in [&whole[..last], &whole[..last + 3], &flipped] {
        fs_err::write(journal.path(), bytes).unwrap();
        let error = journal.rewrite(|_| Ok(())).unwrap_err();
        assert!(matches!(error, JournalError::EndDamaged { .. }), "{error}");
    }
    fs_err::write(journal.path(), &whole).unwrap();
    journal.rewrite(|_| Ok(())).unwrap();
}

#[test]
fn a_long_journal_has_room_ahead_which_says_nothing_and_goes_with_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal =
        Journal::create_on(&Disk::default(), &folder.path().join("c.json"), header(), None).unwrap();
    let text = "long ".repeat(1000);
    let file_length = |journal: &Journal| fs_err::metadata(journal.path()).unwrap().len();
    let mut had_room = Vec::new();
    for count in 1..=60 {
        journal.write(&[event(&text)]).unwrap();
        assert_eq!(file_length(&journal), journal.room_to);
        had_room.push(journal.room_to > journal.length);
        // As it is after the end of its recorder, however that comes.
        assert_eq!(texts(journal.path()), vec![&*text; count]);
    }
    assert_eq!((had_room[0], had_room[1..].contains(&false)), (false, false));
    journal.rewrite(|_| Ok(())).unwrap();
    assert_eq!(file_length(&journal), journal.length);
    journal.write(&[event("after")]).unwrap();
    assert!(journal.room_to > journal.length);
    let path = journal.finish().unwrap();
    let whole = [vec![&*text; 60], vec!["after", "End"]].concat();
    assert_eq!(texts(&path), whole);
    assert_ne!(fs_err::read(&path).unwrap().last(), Some(&0));
}

#[test]
fn a_disk_without_room_ahead_takes_what_it_can() {
    let folder = tempfile::tempdir().unwrap();
    let writes = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&writes);
    // The third is of zeros, and half done.
    let before = move |step| {
        let mut writes = counted.lock().unwrap();
        *writes += usize::from(step == Step::Write);
        match (step, *writes) {
            (Step::Write, 3) => Err(io::ErrorKind::WriteZero.into()),
            _ => Ok(()),
        }
    };
    let disk = Disk { before: Some(Arc::new(before)) };
    let mut journal = Journal::create_on(&disk, &folder.path().join("c.json"), header(), None).unwrap();
    let text = "long ".repeat(1000);
    for _ in 0..3 {
        journal.write(&[event(&text)]).unwrap();
    }
    assert_eq!(*writes.lock().unwrap(), 5);
    assert_eq!(texts(&journal.finish().unwrap()), [&*text, &*text, &*text, "End"]);
}

#[test]
fn where_the_folder_cannot_be_written_the_journal_goes_to_the_state_folder() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    fs_err::write(folder.path().join("file"), "").unwrap();
    let cassette = folder.path().join("file/c.json");
    let journal = Journal::create_on(&Disk::default(), &cassette, header(), Some(&state)).unwrap();
    assert_eq!(journal.path(), state.join("c.json.19700101T000000-0123456789ab.journal"));
    let reader = JournalReader::new(fs_err::File::open(journal.path()).unwrap()).unwrap();
    assert_eq!(reader.header().cassette.as_deref(), cassette.to_str());
    Journal::create_on(&Disk::default(), &cassette, header(), None).unwrap_err();
}

#[test]
fn a_journal_taken_away_before_it_was_locked_is_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.json.19700101T000000-0123456789ab.journal");
    let (taken, name) = (Mutex::new(false), path.clone());
    let before = move |step| {
        if step == Step::Lock && !std::mem::replace(&mut *taken.lock().unwrap(), true) {
            fs_err::remove_file(&name).unwrap();
        }
        Ok(())
    };
    let disk = Disk { before: Some(Arc::new(before)) };
    let mut journal = Journal::create_on(&disk, &folder.path().join("c.json"), header(), None).unwrap();
    journal.write(&[event("kept")]).unwrap();
    assert_eq!(texts(&path), ["kept"]);
    fs_err::remove_file(&path).unwrap();
    assert_eq!(journal.finish().unwrap_err().kind(), io::ErrorKind::NotFound);
}
