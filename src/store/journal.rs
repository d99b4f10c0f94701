//! A recorder's journal: locked as long as the recorder lives, appended to by one write for each read it makes.

use std::{
    io,
    path::{Path, PathBuf},
};

use fs_err::File;

use super::{disk::Disk, lock::lock_created, paths, siblings::Opened};
use crate::{
    cassette::journal::{
        Entry, JournalError, JournalHeader, encode, encode_end, encode_header, encode_missed,
    },
    traffic::Event,
};

/// Room that is kept between writes; what a long message needed beyond it is given back.
const ROOM: usize = 1 << 20;

/// So much is added to a long journal at once, as zeros that are written over: to extend a file costs by the page what a
/// write of many pages pays once (measured: half of the time that a journal takes).
const AHEAD: usize = 128 << 10;

/// From this length on a journal is long; tests have none that are longer.
const LONG: u64 = if cfg!(test) { 1 << 10 } else { 512 << 10 };

/// A journal that this process writes.
#[derive(Debug)]
pub struct Journal {
    disk: Disk,
    file: File,
    path: PathBuf,
    /// How much of the file is whole frames.
    length: u64,
    /// How long the file is: behind the frames there may be zeros.
    room_to: u64,
    /// What room is made of; none where the disk had none.
    zeros: Option<Vec<u8>>,
    /// Whether a write that failed may have left something behind them.
    is_torn: bool,
    /// Where the frame stands that counts what is not in it.
    missed_at: u64,
    buffer: Vec<u8>,
}

impl Journal {
    /// Creates the journal of a recorder of `cassette` and its folder: beside the cassette, or in the user's state
    /// folder where that cannot be written.
    ///
    /// # Errors
    /// When neither can be written: what the system said of the first.
    pub fn create(cassette: &Path, header: JournalHeader) -> io::Result<Self> {
        Self::create_on(&Disk::default(), cassette, header, paths::state_folder().as_deref())
    }

    pub(super) fn create_on(
        disk: &Disk,
        cassette: &Path,
        mut header: JournalHeader,
        state: Option<&Path>,
    ) -> io::Result<Self> {
        let cassette = paths::resolve(cassette)?;
        let suffix = paths::journal_suffix(&header);
        let beside = Self::begin(disk, paths::with_suffix(&cassette, &suffix), &header);
        match (beside, state, cassette.file_name().map(Path::new)) {
            (Err(error), Some(state), Some(name)) => {
                header.cassette = Some(cassette.to_string_lossy().into_owned());
                let elsewhere = Self::begin(disk, paths::with_suffix(&state.join(name), &suffix), &header);
                elsewhere.map_err(|_| error)
            }
            (beside, ..) => beside,
        }
    }

    fn begin(disk: &Disk, path: PathBuf, header: &JournalHeader) -> io::Result<Self> {
        disk.create_folder(paths::folder(&path))?;
        let file = loop {
            let file = disk.create_new(&path, 0o600)?;
            if lock_created(disk, &file, &path)? {
                break file;
            }
        };
        let (buffer, missed_at) = beginning(header);
        let mut journal = Self {
            disk: disk.clone(),
            file,
            path,
            length: 0,
            room_to: 0,
            zeros: Some(Vec::new()),
            is_torn: false,
            missed_at,
            buffer,
        };
        if let Err(error) = journal.append() {
            // An empty journal helps nobody; a disk that refuses this too leaves it to the next fold.
            let _ = journal.disk.remove(&journal.path);
            return Err(error);
        }
        Ok(journal)
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends events, all by one write. What comes back as written is in the hands of the system: it survives the
    /// end of this process, however that comes.
    ///
    /// # Errors
    /// When the disk takes them not, or not all; then none of them is in the journal, which stays whole.
    pub fn write(&mut self, events: &[Event<'_>]) -> io::Result<()> {
        self.buffer.clear();
        for event in events {
            encode(event, &mut self.buffer);
        }
        self.append()
    }

    /// Notes how many messages in all are not in it. A disk that is full takes that as well: there is room for it since
    /// the journal was made.
    ///
    /// # Errors
    /// When not even that can be written.
    pub fn missed(&mut self, messages: u64) -> io::Result<()> {
        let mut frame = Vec::new();
        encode_missed(messages, &mut frame);
        self.disk.write_at(&self.file, &frame, self.missed_at)
    }

    fn append(&mut self) -> io::Result<()> {
        if self.is_torn {
            self.cut()?;
        }
        let end = self.length + self.buffer.len() as u64;
        if end > self.room_to && self.length >= LONG && self.buffer.len() < AHEAD / 2 {
            self.make_room(end);
        }
        self.is_torn = true;
        if let Err(error) = self.disk.write_at(&self.file, &self.buffer, self.length) {
            self.is_torn = self.cut().is_err();
            return Err(error);
        }
        self.is_torn = false;
        self.length = end;
        self.room_to = self.room_to.max(end);
        if self.buffer.capacity() > ROOM {
            self.buffer = Vec::new();
        }
        Ok(())
    }

    /// Makes room behind the frames for more than what is to end at `end`. A disk that takes no zeros may take the frames.
    fn make_room(&mut self, end: u64) {
        let Some(zeros) = &mut self.zeros else { return };
        let border = (end / AHEAD as u64 + 1) * AHEAD as u64;
        zeros.resize((border - self.room_to) as usize, 0);
        if self.disk.write_at(&self.file, zeros, self.room_to).is_ok() {
            self.room_to = border;
        } else {
            self.zeros = None;
            // Zeros say nothing: they may stay.
            let _ = self.cut();
        }
    }

    /// Cuts off what stands behind the frames.
    fn cut(&mut self) -> io::Result<()> {
        self.disk.truncate(&self.file, self.length)?;
        self.room_to = self.length;
        Ok(())
    }

    /// Puts in its place a journal of the same events, each changed. At no time does anybody find less there than one of
    /// the two, nor one that looks dead.
    ///
    /// # Errors
    /// When it cannot be read, or the other not be written, and that of a change; then it stays as it is.
    pub fn rewrite(
        &mut self,
        mut change: impl FnMut(&mut Event<'_>) -> io::Result<()>,
    ) -> Result<(), JournalError> {
        let old = Opened::open(&self.disk, self.path.clone())?.ok_or_else(|| self.lost())?;
        let put = self.disk.put_unsynced(&self.path, 0o600, |file| {
            // Before it has that name, so that it never looks dead.
            self.disk.lock(file)?;
            let (length, missed_at) = self.write_changed(&old, file, &mut change)?;
            // Else it would come back to life where somebody has taken it away.
            if !self.disk.is_still(&self.file, &self.path)? {
                return Err(JournalError::from(self.lost()));
            }
            Ok((file.try_clone()?, length, missed_at))
        })?;
        (self.file, self.length, self.missed_at) = put;
        (self.room_to, self.is_torn) = (self.length, false);
        Ok(())
    }

    /// Writes its events to a file, each changed; how long that is, and where it counts what is not in it.
    fn write_changed(
        &self,
        old: &Opened,
        file: &File,
        change: &mut dyn FnMut(&mut Event<'_>) -> io::Result<()>,
    ) -> Result<(u64, u64), JournalError> {
        let mut reader = old.reader()?;
        let ((mut frames, missed_at), mut length) = (beginning(reader.header()), 0);
        let write = |frames: &mut Vec<u8>, length: &mut u64| {
            *length += frames.len() as u64;
            let written = self.disk.write(file, frames);
            frames.clear();
            written
        };
        while let Some((_, entry)) = reader.next()? {
            // There is nothing else in it before its end.
            if let Entry::Event(mut event) = entry {
                change(&mut event)?;
                encode(&event, &mut frames);
            }
            if frames.len() >= ROOM {
                write(&mut frames, &mut length)?;
            }
        }
        write(&mut frames, &mut length)?;
        Ok((length, missed_at))
    }

    /// Whether its name still leads to it.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] when somebody took it away, or its folder.
    pub fn check(&self) -> io::Result<()> {
        if self.disk.is_still(&self.file, &self.path)? { Ok(()) } else { Err(self.lost()) }
    }

    fn lost(&self) -> io::Error {
        let lost = format!("the journal {} was removed or moved while it was written", self.path.display());
        io::Error::new(io::ErrorKind::NotFound, lost)
    }

    /// Says that the recording ended in good order, and lets the journal go: from here on anybody may fold it.
    ///
    /// # Errors
    /// When that cannot be written: then it is as one whose recorder was killed. [`io::ErrorKind::NotFound`] when somebody
    /// took the journal away while it was recorded.
    pub fn finish(mut self) -> io::Result<PathBuf> {
        self.buffer.clear();
        encode_end(&mut self.buffer);
        let ended = self.append();
        if self.room_to > self.length {
            let _ = self.cut();
        }
        self.check()?;
        ended.map(|()| self.path)
    }
}

/// The bytes a recorder's journal begins with, and where among them the frame stands that counts what is not in it.
fn beginning(header: &JournalHeader) -> (Vec<u8>, u64) {
    let mut bytes = encode_header(header);
    let missed_at = bytes.len() as u64;
    encode_missed(header.missed, &mut bytes);
    (bytes, missed_at)
}

#[cfg(test)]
mod tests {
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
}
