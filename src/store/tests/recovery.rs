use std::os::unix::fs::{PermissionsExt, symlink};

use super::{
    super::{convert::convert_on, recover::left_journals_on},
    *,
};

impl Place {
    fn recover(&self, path: &Path) -> Result<FoldOutcome, StoreError> {
        Files { disk: self.disk.clone(), state: Some(self.state()) }.recover(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// Flips a bit in the middle of the first message.
fn damage(journal: &Path) {
    let mut bytes = fs_err::read(journal).unwrap();
    let at = memchr::memmem::find(&bytes, b"tools/call").unwrap();
    bytes[at] ^= 1;
    fs_err::write(journal, bytes).unwrap();
}

#[test]
fn a_damaged_journal_is_left_and_said_until_it_is_recovered() {
    let place = Place::new();
    let damaged = place.record(1);
    damage(&damaged);
    place.record(2);
    let loaded = place.load().unwrap();
    assert_eq!(journals(&loaded), [id(2)]);
    assert!(loaded.notes[0].contains("is damaged at byte"), "{:?}", loaded.notes);
    assert!(matches!(load_on(&place.disk, &damaged, None), Err(StoreError::Journal { .. })));
    let outcome = place.fold();
    assert_eq!((outcome.added.len(), outcome.notes.len()), (1, 1));
    assert!(damaged.exists());
    let recovered = place.recover(&damaged).unwrap();
    assert_eq!(recovered.added.len(), 1);
    assert!(recovered.notes[0].contains("were damaged and are lost"), "{:?}", recovered.notes);
    assert_eq!(place.journals(), [id(2), id(1)]);
    // The answer is there, and the damaged file for whoever wants to look.
    assert!(place.text().contains("push response @1"));
    assert_eq!(place.names().len(), 2);
    assert!(place.names()[1].ends_with(".kept.journal"));
    place.fold();
    assert_eq!(place.names().len(), 2, "a kept journal is not folded");
}

/// Damage of whole journals: what is done to its bytes.
type Damaging = fn(&mut Vec<u8>);

/// The last message alone, that its recorder was killed behind; its end; a message that is taken out, and one that stands
/// there twice, also before all others; the first two frames the other way round.
const DAMAGE: [Damaging; 6] = [
    |bytes| {
        bytes.truncate(frame_of(bytes, b"content").end);
        let at = bytes.len() - 3;
        bytes[at] ^= 1;
    },
    |bytes| *bytes.last_mut().unwrap() ^= 1,
    |bytes| drop(bytes.drain(frame_of(bytes, b"tools/call"))),
    |bytes| {
        let frame = frame_of(bytes, b"tools/call");
        let twice = bytes[frame.clone()].to_vec();
        drop(bytes.splice(frame.end..frame.end, twice));
    },
    |bytes| {
        let twice = bytes[frame_of(bytes, b"tools/call")].to_vec();
        drop(bytes.splice(12..12, twice));
    },
    |bytes| {
        let mut marks = memchr::memmem::find_iter(&bytes[12..], &[0xf7, 0xa5, 0xfe]).skip(1);
        let (second, third) = (marks.next().unwrap(), marks.next().unwrap());
        bytes[12..12 + third].rotate_left(second);
    },
];

/// The frame with this text in it.
fn frame_of(bytes: &[u8], text: &[u8]) -> std::ops::Range<usize> {
    let at = memchr::memmem::find(bytes, text).unwrap();
    let from = memchr::memmem::rfind(&bytes[..at], &[0xf7, 0xa5, 0xfe]).unwrap();
    let next = memchr::memmem::find(&bytes[at..], &[0xf7, 0xa5, 0xfe]);
    from..next.map_or(bytes.len(), |next| at + next)
}

#[test]
fn damage_at_the_end_and_whole_messages_out_of_place_are_told_and_cost_no_journal() {
    for (number, damaging) in DAMAGE.into_iter().enumerate() {
        let place = Place::new();
        let damaged = place.record(1);
        let mut bytes = fs_err::read(&damaged).unwrap();
        damaging(&mut bytes);
        fs_err::write(&damaged, bytes).unwrap();
        place.record(2);
        let loaded = place.load().unwrap();
        assert_eq!(journals(&loaded), [id(2)], "{number}");
        assert!(loaded.notes[0].contains("is damaged "), "{number}: {:?}", loaded.notes);
        let error = load_on(&place.disk, &damaged, None).unwrap_err();
        assert!(matches!(error, StoreError::Journal { .. }), "{number}: {error}");
        let outcome = place.fold();
        assert_eq!((outcome.added.len(), outcome.left.len()), (1, 1), "{number}");
        assert!(outcome.left[0].0 == damaged && outcome.left[0].1.is_some(), "{number}: {outcome:?}");
        let left = left_journals_on(&place.disk, place.folder.path(), Some(&place.state())).unwrap();
        assert!(left[0].error.as_ref().unwrap().contains("is damaged "), "{number}: {left:?}");
        let recovered = place.recover(&damaged).unwrap();
        assert_eq!((recovered.added.len(), recovered.notes.len()), (1, 2), "{number}: {:?}", recovered.notes);
        assert!(place.names().iter().any(|name| name.ends_with(".kept.journal")), "{number}");
        let sessions = place.load().unwrap().cassette.sessions;
        assert_eq!(sessions.len(), 2, "{number}");
        assert_eq!(sessions[1].gap > 0, number < 3, "{number}: what stood there twice is all there");
        assert!(sessions.iter().all(|session| session.parent.is_some()), "{number}: {sessions:?}");
    }
}

#[test]
fn what_a_recorder_that_lives_is_about_to_write_is_no_damage() {
    let place = Place::new();
    let mut journal = place.recorder(1);
    call(&mut journal, 1);
    let length = journal.path().metadata().unwrap().len();
    let mut file = fs_err::OpenOptions::new().append(true).open(journal.path()).unwrap();
    std::io::Write::write_all(&mut file, b"not yet a frame").unwrap();
    let loaded = place.load().unwrap();
    assert_eq!((journals(&loaded), loaded.notes, loaded.alive), (vec![id(1)], vec![], vec![id(1)]));
    // Once it is dead, nobody will write there.
    drop(journal);
    let error = place.load().unwrap_err().to_string();
    assert!(error.contains(&format!("from byte {length} on")), "{error}");
}

#[test]
fn a_recorder_that_was_killed_in_any_byte_of_a_write_leaves_no_damage() {
    let place = Place::new();
    let journal = place.record(1);
    let bytes = fs_err::read(&journal).unwrap();
    let last = frame_of(&bytes, b"content").start;
    for cut in last..bytes.len() {
        for room in [cut, 128 << 10] {
            let mut torn = bytes[..cut].to_vec();
            torn.resize(room, 0);
            fs_err::write(&journal, torn).unwrap();
            let loaded = place.load().unwrap();
            assert_eq!(journals(&loaded), [id(1)], "cut at {cut}");
            assert!(
                loaded.notes.iter().all(|note| note.contains("is no whole message")),
                "{:?}",
                loaded.notes
            );
        }
    }
}

#[test]
fn a_journal_whose_header_is_lost_is_recovered_by_its_name() {
    let place = Place::new();
    let journal = place.record(1);
    let mut bytes = fs_err::read(&journal).unwrap();
    bytes[30] ^= 1;
    fs_err::write(&journal, bytes).unwrap();
    place.recover(&place.cassette()).unwrap();
    let cassette = place.load().unwrap().cassette;
    assert_eq!(cassette.sessions[0].journal, Some(id(1)));
    assert_eq!(cassette.sessions[0].at.as_deref(), Some("2026-11-27T22:40:02Z"));
    assert_eq!((cassette.sessions.len(), cassette.sessions[0].gap), (1, 0), "no message stands in it");
    assert_eq!(cassette.exchanges.len(), 1);
}

#[test]
fn a_journal_whose_first_bytes_are_damaged_is_one_to_all_readers() {
    let place = Place::new();
    let named = place.path("mine.kept.journal");
    fs_err::rename(place.record(1), &named).unwrap();
    let mut bytes = fs_err::read(&named).unwrap();
    bytes[..8].copy_from_slice(b"12345678");
    fs_err::write(&named, bytes).unwrap();
    let error = load_on(&place.disk, &named, None).unwrap_err();
    let is_damage = matches!(&error, StoreError::Journal { source, .. } if source.is_damage());
    assert!(is_damage, "{error}");
    assert!(matches!(super::super::load_file(&named), Err(StoreError::IsJournal { .. })));
    assert!(matches!(place.recover(&named), Err(StoreError::Stray { .. })));
    let notes = convert_on(&place.disk, &named, &place.path("d.json")).unwrap();
    assert!(notes[0].contains("8 bytes from byte 0 on were damaged"), "{notes:?}");
    let loaded = load_on(&place.disk, &place.path("d.json"), None).unwrap();
    assert_eq!((journals(&loaded), loaded.cassette.exchanges.len()), (vec![id(1)], 1));
}

#[test]
fn a_damaged_journal_without_its_cassette_is_named_and_what_is_wrong_with_it() {
    let place = Place::new();
    let damaged = place.record(1);
    damage(&damaged);
    let error = place.load().unwrap_err();
    assert!(matches!(&error, StoreError::Journal { path, .. } if *path == damaged), "{error}");
    place.record(2);
    assert_eq!(place.load().unwrap().notes.len(), 1, "the other one is read");
}

#[test]
fn what_cannot_be_recovered_is_refused_with_a_reason() {
    let place = Place::new();
    assert!(matches!(place.recover(&place.cassette()), Err(StoreError::NotFound { .. })));
    let alive = place.recorder(1);
    assert!(matches!(place.recover(alive.path()), Err(StoreError::Alive { .. })));
    let named = place.path("mine.journal");
    fs_err::rename(place.record(2), &named).unwrap();
    assert!(matches!(place.recover(&named), Err(StoreError::Stray { .. })));
    convert_on(&place.disk, &named, &place.path("d.json")).unwrap();
    assert!(matches!(convert_on(&place.disk, &named, &place.path("d.json")), Err(StoreError::Exists { .. })));
    let loaded = load_on(&place.disk, &place.path("d.json"), None).unwrap();
    assert_eq!(journals(&loaded), [id(2)]);
}

#[test]
fn a_journal_in_the_state_folder_is_read_listed_and_folded_for_its_own_cassette() {
    let place = Place::new();
    fs_err::write(place.path("folder"), "not yet").unwrap();
    let cassette = place.path("folder/c.json");
    let mut journal = Journal::create_on(&place.disk, &cassette, header(1), Some(&place.state())).unwrap();
    call(&mut journal, 1);
    let alive = left_journals_on(&place.disk, place.folder.path(), Some(&place.state())).unwrap();
    assert_eq!((alive.len(), alive[0].is_alive), (1, true));
    journal.finish().unwrap();
    fs_err::remove_file(place.path("folder")).unwrap();
    fs_err::create_dir(place.path("folder")).unwrap();
    // Another cassette of the same name does not get it.
    place.record(2);
    place.fold();
    assert_eq!(place.journals(), [id(2)]);
    let loaded = load_on(&place.disk, &cassette, Some(&place.state())).unwrap();
    assert_eq!(journals(&loaded), [id(1)]);
    let left = left_journals_on(&place.disk, place.folder.path(), Some(&place.state())).unwrap();
    assert_eq!((left.len(), left[0].cassette.as_deref(), left[0].is_alive), (1, Some(&*cassette), false));
    assert_eq!(place.recover(&left[0].path).unwrap().path, cassette);
    assert_eq!(journals(&load_on(&place.disk, &cassette, None).unwrap()), [id(1)]);
    assert_eq!(names(&place.state()), [] as [&str; 0]);
}

#[test]
fn a_cassette_that_went_through_a_journal_is_the_same_with_its_blobs() {
    let place = Place::new();
    let mut journal = place.recorder(1);
    let long = format!(r#"{{"jsonrpc":"2.0","id":0,"result":{{"data":"{}"}}}}"#, "QUJD".repeat(2000));
    journal.write(&[event(Direction::ToServer, &request(1)), event(Direction::ToClient, &long)]).unwrap();
    journal.finish().unwrap();
    place.fold();
    let archive = place.path("a.journal");
    convert_on(&place.disk, &place.cassette(), &archive).unwrap();
    assert_eq!(archive.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    convert_on(&place.disk, &archive, &place.path("new/b.json")).unwrap();
    assert_eq!(fs_err::read_to_string(place.path("new/b.json")).unwrap(), place.text());
    let blobs = names(&place.path("c.json.blobs"));
    assert_eq!((names(&place.path("new/b.json.blobs")), blobs.len()), (blobs.clone(), 1));
    let [a, b] = ["c.json.blobs", "new/b.json.blobs"].map(|folder| place.path(folder).join(&blobs[0]));
    assert_eq!(fs_err::read(a).unwrap(), fs_err::read(b).unwrap());
    let read = load_on(&place.disk, &archive, None).unwrap();
    assert_eq!(read.cassette.text, place.text().as_bytes());
}

#[test]
fn a_cassette_keeps_its_permissions_and_a_link_to_it_stays_a_link() {
    let place = Place::new();
    place.record(1);
    place.fold();
    fs_err::set_permissions(place.cassette(), PermissionsExt::from_mode(0o640)).unwrap();
    let link = place.path("link.json");
    symlink(place.cassette(), &link).unwrap();
    let mut journal = Journal::create_on(&place.disk, &link, header(2), None).unwrap();
    call(&mut journal, 2);
    journal.finish().unwrap();
    Files { disk: place.disk.clone(), state: None }
        .fold(&link, FoldOptions::default(), None, &|| true)
        .unwrap();
    assert!(link.is_symlink());
    assert_eq!(place.journals(), [id(1), id(2)]);
    assert_eq!(place.cassette().metadata().unwrap().permissions().mode() & 0o777, 0o640);
}

#[test]
fn journals_are_kept_on_request() {
    let place = Place::new();
    let journal = place.record(1);
    place.fold_with(FoldOptions { keep_journals: true, ..FoldOptions::default() }).unwrap();
    assert!(!journal.exists());
    assert!(journal.with_extension("kept.journal").exists());
    assert_eq!(place.journals(), [id(1)]);
}

#[test]
fn a_cassette_with_a_mistake_costs_no_journal() {
    let place = Place::new();
    let journal = place.record(1);
    fs_err::write(place.cassette(), "{\"cassette\": 1, \"sessions\": 7}").unwrap();
    let error = place.fold_with(FoldOptions::default()).unwrap_err().to_string();
    assert!(error.contains("c.json:1:29: "), "{error}");
    assert!(journal.exists());
    assert_eq!(place.names().len(), 2);
}

#[test]
fn blobs_are_read_from_plain_files_of_the_cassettes_own_folder_only() {
    use crate::cassette::blob::BlobSource;

    let place = Place::new();
    let outside = place.path("secret");
    fs_err::write(&outside, "secret").unwrap();
    fs_err::create_dir(place.path("c.json.blobs")).unwrap();
    symlink(&outside, place.path("c.json.blobs/link")).unwrap();
    fs_err::write(place.path("c.json.blobs/plain"), "plain").unwrap();
    let blobs = super::super::Blobs::of(&place.disk, &place.cassette());
    assert_eq!(blobs.get("plain").unwrap(), b"plain");
    for name in ["link", "../secret", "", ".", "plain/", "none"] {
        assert!(blobs.get(name).is_err(), "{name}");
    }
    symlink(place.path("c.json.blobs"), place.path("d.json.blobs")).unwrap();
    assert!(super::super::Blobs::of(&place.disk, &place.path("d.json")).get("plain").is_err());
}

#[test]
fn nothing_is_read_or_written_through_a_link() {
    let place = Place::new();
    let precious = place.path("precious");
    fs_err::write(&precious, "precious").unwrap();
    let elsewhere = place.path("elsewhere");
    fs_err::create_dir(&elsewhere).unwrap();
    symlink(&precious, place.path("c.json.tmp")).unwrap();
    let journal = place.record(1);
    place.fold();
    assert_eq!(fs_err::read_to_string(&precious).unwrap(), "precious");
    assert_eq!(place.journals(), [id(1)]);

    let target = place.path("elsewhere/journal");
    fs_err::rename(place.record(2), &target).unwrap();
    symlink(&target, &journal).unwrap();
    let outcome = place.fold();
    assert_eq!((outcome.added.len(), outcome.notes.len()), (0, 1));
    fs_err::remove_file(target).unwrap();
    fs_err::remove_file(journal).unwrap();

    symlink(&elsewhere, place.path("c.json.blobs")).unwrap();
    let long = format!(r#"{{"jsonrpc":"2.0","id":0,"result":{{"data":"{}"}}}}"#, "QUJD".repeat(2000));
    let mut journal = place.recorder(3);
    journal.write(&[event(Direction::ToServer, &request(3)), event(Direction::ToClient, &long)]).unwrap();
    let journal = journal.finish().unwrap();
    place.fold_with(FoldOptions::default()).unwrap_err();
    assert_eq!(names(&elsewhere), [] as [&str; 0]);
    assert!(journal.exists());

    symlink(&precious, place.path("c.json.lock")).unwrap();
    place.fold_with(FoldOptions::default()).unwrap_err();
}
