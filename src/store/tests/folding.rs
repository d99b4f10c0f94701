use std::{
    cell::Cell,
    sync::{Arc, Mutex},
};

use super::{super::disk::Step, *};

/// Says other numbers.
fn renumber(event: &mut Event<'_>) -> std::io::Result<()> {
    let Payload::Message(bytes) = &mut event.payload else { panic!("{event:?}") };
    let text = String::from_utf8_lossy(bytes).replace("tool1", "tool7");
    *bytes = Cow::Owned(text.into_bytes());
    Ok(())
}

#[test]
fn a_journal_that_is_rewritten_is_alive_and_goes_on() {
    let place = Place::new();
    let mut journal = place.recorder(1);
    call(&mut journal, 1);
    journal.rewrite(renumber).unwrap();
    assert_eq!(place.fold().alive, 1, "it is written");
    journal.write(&[event(Direction::ToServer, &request(2))]).unwrap();
    journal.finish().unwrap();
    place.fold();
    let text = place.text();
    assert!(text.contains("tool7") && text.contains("tool2") && !text.contains("tool1"), "{text}");
    assert_eq!(place.names(), ["c.json"]);
}

#[test]
fn a_journal_that_cannot_be_rewritten_stays_and_one_that_was_taken_away_does_not_come_back() {
    for fatal in [Step::Create, Step::Write, Step::Rename] {
        let mut place = Place::new();
        let is_on = Arc::new(Mutex::new(false));
        let on = Arc::clone(&is_on);
        let before = move |step| match *on.lock().unwrap() && step == fatal {
            true => Err(std::io::ErrorKind::StorageFull.into()),
            false => Ok(()),
        };
        place.disk = Disk { before: Some(Arc::new(before)) };
        let mut journal = place.recorder(1);
        call(&mut journal, 1);
        *is_on.lock().unwrap() = true;
        journal.rewrite(renumber).unwrap_err();
        *is_on.lock().unwrap() = false;
        call(&mut journal, 1);
        let path = journal.finish().unwrap();
        assert_eq!(place.names(), [path.file_name().unwrap().to_str().unwrap()], "{fatal:?}");
        place.fold();
        assert!(place.text().contains("tool1"));
    }
    let place = Place::new();
    let mut journal = place.recorder(1);
    call(&mut journal, 1);
    let mut changed = 0;
    let late = |event: &mut Event<'_>| {
        changed += 1;
        if changed == 1 { renumber(event) } else { Err(std::io::Error::other("no time")) }
    };
    assert!(journal.rewrite(late).unwrap_err().to_string().contains("no time"));
    let path = journal.finish().unwrap();
    assert_eq!(place.names(), [path.file_name().unwrap().to_str().unwrap()]);
    place.fold();
    assert!(place.text().contains("tool1"));
    let place = Place::new();
    let mut journal = place.recorder(1);
    fs_err::remove_file(journal.path()).unwrap();
    assert!(journal.rewrite(renumber).unwrap_err().to_string().contains("was removed"));
    assert!(place.names().is_empty());
}

#[test]
fn a_fold_that_had_opened_a_journal_before_it_was_rewritten_takes_the_other() {
    let place = Place::new();
    let mut journal = place.recorder(1);
    call(&mut journal, 1);
    let mut journal = Some(journal);
    let (opened, journal) = (Mutex::new(false), Mutex::new(move || journal.take()));
    let before = move |step| {
        let mut opened = opened.lock().unwrap();
        *opened |= step == Step::Open;
        // It is about to try its lock.
        if *opened
            && step == Step::Lock
            && let Some(mut journal) = (journal.lock().unwrap())()
        {
            journal.rewrite(renumber).unwrap();
            journal.finish().unwrap();
        }
        Ok(())
    };
    let disk = Disk { before: Some(Arc::new(before)) };
    let files = Files { disk, state: Some(place.state()) };
    let outcome = files.fold(&place.cassette(), FoldOptions::default(), None, &|| true).unwrap();
    assert_eq!((outcome.added.len(), outcome.notes), (1, vec![]));
    let text = place.text();
    assert!(text.contains("tool7") && !text.contains("tool1"), "{text}");
    assert_eq!(place.names(), ["c.json"]);
}

#[test]
fn what_a_recorder_left_that_was_killed_while_it_rewrote_goes_with_its_journal() {
    let place = Place::new();
    let path = place.record(1);
    fs_err::write(place.folder.path().join(format!("{}.tmp", path.file_name().unwrap().display())), "half")
        .unwrap();
    place.fold();
    assert_eq!(place.names(), ["c.json"]);
}

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
    for asked in [0_u32, 1, 2] {
        let left = Cell::new(asked);
        let goes_on = || left.replace(left.get().saturating_sub(1)) > 0;
        let folded = place.files().fold(&place.cassette(), FoldOptions::default(), None, &goes_on);
        assert!(matches!(folded, Err(StoreError::Late { .. })));
    }
    assert_eq!(place.journals(), [id(1)]);
    drop(lock);
    place.fold();
    assert_eq!(place.names(), ["c.json"]);
}

#[test]
fn a_look_at_a_live_journal_that_its_recorder_overtakes_is_repeated() {
    let place = Place::new();
    let mut alive = place.recorder(1);
    let from = fs_err::metadata(alive.path()).unwrap().len();
    call(&mut alive, 1);
    let path = alive.path().to_owned();
    // As a reader sees it that read the first of what was written before it was, and the rest behind it.
    let written = fs_err::read(&path).unwrap();
    let mut seen = written.clone();
    seen[from as usize..][..40].fill(0);
    fs_err::write(&path, &seen).unwrap();
    let looks = Arc::new(Mutex::new(0));
    let looked = Arc::clone(&looks);
    let before = move |step| {
        if step == Step::Lock {
            *looked.lock().unwrap() += 1;
            fs_err::write(&path, &written).unwrap();
        }
        Ok(())
    };
    let disk = Disk { before: Some(Arc::new(before)) };
    let loaded = load_on(&disk, &place.cassette(), None).unwrap();
    assert_eq!((loaded.cassette.exchanges.len(), loaded.notes.len()), (1, 0));
    assert_eq!(*looks.lock().unwrap(), 2);
}

/// A whole recording of one call whose answer has so many blobs.
fn record_blobs(place: &Place, blobs: usize) {
    let mut journal = place.recorder(1);
    journal.write(&[event(Direction::ToServer, &request(1))]).unwrap();
    let data: Vec<_> =
        (0..blobs).map(|n| format!("\"{}\"", ["QUJD", "QUJE", "QUJF"][n].repeat(1100))).collect();
    let line = format!(r#"{{"jsonrpc":"2.0","id":0,"result":[{}]}}"#, data.join(","));
    journal.write(&[event(Direction::ToClient, &line)]).unwrap();
    journal.finish().unwrap();
}

#[test]
fn blobs_are_waited_for_together_and_have_their_names_before_the_cassette_does() {
    let mut place = Place::new();
    record_blobs(&place, 3);
    let steps = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&steps);
    let before = move |step| {
        noted.lock().unwrap().push(step);
        Ok(())
    };
    place.disk = Disk { before: Some(Arc::new(before)) };
    place.fold();
    let is_lasting = |step: &Step| matches!(step, Step::SyncFile | Step::Rename | Step::SyncFolder);
    let lasting: Vec<Step> = steps.lock().unwrap().iter().copied().filter(is_lasting).collect();
    let blobs = [[Step::SyncFile; 3], [Step::Rename; 3]].concat();
    let then = [Step::SyncFolder, Step::SyncFile, Step::Rename, Step::SyncFolder];
    assert_eq!(lasting, [&blobs[..], &then].concat());
    assert_eq!(names(&place.folder.path().join("c.json.blobs")).len(), 3);
}

#[test]
fn a_fold_that_fails_leaves_no_unfinished_blobs() {
    for fatal in [Step::SyncFile, Step::Rename] {
        let mut place = Place::new();
        record_blobs(&place, 2);
        let before = move |step| if step == fatal { Err(std::io::Error::other("full")) } else { Ok(()) };
        place.disk = Disk { before: Some(Arc::new(before)) };
        place.fold_with(FoldOptions::default()).unwrap_err();
        assert_eq!(names(&place.folder.path().join("c.json.blobs")), [""; 0], "{fatal:?}");
        place.disk = Disk::default();
        place.fold();
        assert_eq!(names(&place.folder.path().join("c.json.blobs")).len(), 2);
    }
}

#[test]
fn a_message_that_a_live_recorder_is_about_to_write_is_no_damage() {
    let place = Place::new();
    let mut alive = place.recorder(1);
    call(&mut alive, 1);
    let begun = fs_err::read(alive.path()).unwrap();
    fs_err::write(alive.path(), &begun[..begun.len() - 1]).unwrap();
    assert_eq!(place.load().unwrap().notes, [""; 0]);
    drop(alive);
    assert_eq!(place.load().unwrap().notes.len(), 1);
}
