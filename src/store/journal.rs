//! A recorder's journal: locked as long as the recorder lives, appended to by one write for each read it makes.

use std::{
    io,
    path::{Path, PathBuf},
};

use fs_err::File;

use super::{disk::Disk, lock::lock_created, paths, siblings::Opened};
use crate::{
    cassette::journal::{Encoder, Entry, JournalError, JournalHeader, ROOM_STEP},
    traffic::Event,
};

/// Room that is kept between writes; what a long message needed beyond it is given back.
const ROOM: usize = 1 << 20;

/// So much is added to a long journal at once, as zeros that are written over: to extend a file costs by the page what a
/// write of many pages pays once (measured: half of the time that a journal takes).
const AHEAD: usize = ROOM_STEP as usize;

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
    /// The frame that counts what is not in it.
    missed: Missed,
    /// How many frames those are.
    frames: u32,
    encoder: Encoder,
}

/// Where a frame stands that is written over, and its number.
#[derive(Clone, Copy, Debug)]
struct Missed {
    at: u64,
    number: u32,
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
        let (encoder, missed) = beginning(header);
        let mut journal = Self {
            disk: disk.clone(),
            file,
            path,
            length: 0,
            room_to: 0,
            zeros: Some(Vec::new()),
            is_torn: false,
            missed,
            frames: 0,
            encoder,
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
        for event in events {
            self.encoder.event(event);
        }
        self.append()
    }

    /// Notes how many messages in all are not in it. A disk that is full takes that as well: there is room for it since
    /// the journal was made.
    ///
    /// # Errors
    /// When not even that can be written.
    pub fn missed(&mut self, messages: u64) -> io::Result<()> {
        let mut frame = Encoder { number: self.missed.number, ..Encoder::default() };
        frame.missed(messages);
        self.disk.write_at(&self.file, &frame.bytes, self.missed.at)
    }

    /// Writes what has been encoded, or forgets it.
    fn append(&mut self) -> io::Result<()> {
        let appended = self.append_encoded();
        match appended {
            Ok(()) => self.frames = self.encoder.number,
            Err(_) => self.encoder.number = self.frames,
        }
        if self.encoder.bytes.capacity() > ROOM {
            self.encoder.bytes = Vec::new();
        }
        self.encoder.bytes.clear();
        appended
    }

    fn append_encoded(&mut self) -> io::Result<()> {
        if self.is_torn {
            self.cut()?;
        }
        let bytes = &self.encoder.bytes;
        let end = self.length + bytes.len() as u64;
        if end > self.room_to && self.length >= LONG && bytes.len() < AHEAD / 2 {
            self.make_room(end);
        }
        self.is_torn = true;
        if let Err(error) = self.disk.write_at(&self.file, &self.encoder.bytes, self.length) {
            self.is_torn = self.cut().is_err();
            return Err(error);
        }
        self.is_torn = false;
        self.length = end;
        self.room_to = self.room_to.max(end);
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
            let written = self.write_changed(&old, file, &mut change)?;
            // Else it would come back to life where somebody has taken it away.
            if !self.disk.is_still(&self.file, &self.path)? {
                return Err(JournalError::from(self.lost()));
            }
            Ok((file.try_clone()?, written))
        })?;
        (self.file, (self.length, self.frames, self.missed)) = put;
        (self.room_to, self.is_torn, self.encoder.number) = (self.length, false, self.frames);
        Ok(())
    }

    /// Writes its events to a file, each changed; how long that is, of how many frames, and which of them counts what is
    /// not in it.
    fn write_changed(
        &self,
        old: &Opened,
        file: &File,
        change: &mut dyn FnMut(&mut Event<'_>) -> io::Result<()>,
    ) -> Result<(u64, u32, Missed), JournalError> {
        let mut reader = old.reader()?;
        let ((mut frames, missed), mut length) = (beginning(reader.header()), 0);
        let write = |frames: &mut Encoder, length: &mut u64| {
            *length += frames.bytes.len() as u64;
            let written = self.disk.write(file, &frames.bytes);
            frames.bytes.clear();
            written
        };
        while let Some((_, entry)) = reader.next()? {
            // There is nothing else in it before its end.
            if let Entry::Event(mut event) = entry {
                change(&mut event)?;
                frames.event(&event);
            }
            if frames.bytes.len() >= ROOM {
                write(&mut frames, &mut length)?;
            }
        }
        // What is not there any more was taken away from outside.
        if frames.number != self.frames {
            return Err(JournalError::EndDamaged { at: reader.place() });
        }
        write(&mut frames, &mut length)?;
        Ok((length, frames.number, missed))
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
        self.encoder.end();
        let ended = self.append();
        if self.room_to > self.length {
            let _ = self.cut();
        }
        self.check()?;
        ended.map(|()| self.path)
    }
}

/// What a recorder's journal begins with, and which frame there counts what is not in it.
fn beginning(header: &JournalHeader) -> (Encoder, Missed) {
    let mut encoder = Encoder::new(header);
    let missed = Missed { at: encoder.bytes.len() as u64, number: encoder.number };
    encoder.missed(header.missed);
    (encoder, missed)
}

#[cfg(test)]
mod tests;
