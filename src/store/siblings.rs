//! Journals that are read: opened, folded, and read again where their messages are printed.

use std::{
    io::{self, Read},
    path::PathBuf,
};

use fs_err::File;

use super::{disk::Disk, paths};
use crate::{
    cassette::journal::{
        self, Archive, Damage, FramePlace, JournalError, JournalHeader, JournalReader, Loss,
    },
    record::{self, Frames, Tape},
};

/// A journal that is open.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) path: PathBuf,
    pub(super) file: File,
    disk: Disk,
    /// Its length when it was opened: what a recorder appends later is not read.
    length: u64,
}

/// A journal that was folded.
#[derive(Debug)]
pub(super) struct Folded {
    pub(super) tape: Tape,
    /// The unfinished frame at its end.
    pub(super) torn: Option<Loss>,
    /// The same, where no end of a recorder leaves that.
    damaged_end: Option<Loss>,
    /// What recovery skipped.
    pub(super) losses: Vec<Damage>,
}

impl Folded {
    /// Of a journal that nobody writes.
    fn of_dead(self) -> Result<Self, JournalError> {
        match self.damaged_end {
            Some(Loss { at, .. }) if self.losses.is_empty() => Err(JournalError::EndDamaged { at }),
            _ => Ok(self),
        }
    }
}

impl Opened {
    /// Opens a journal; none where it is gone.
    pub(super) fn open(disk: &Disk, path: PathBuf) -> io::Result<Option<Self>> {
        let file = match disk.open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        if file.metadata()?.is_dir() {
            let found = format!("{}: expected a journal, found a folder", path.display());
            return Err(io::Error::new(io::ErrorKind::IsADirectory, found));
        }
        let length = disk.length(&file)?;
        Ok(Some(Self { path, file, disk: disk.clone(), length }))
    }

    /// Takes its length anew.
    pub(super) fn measure(&mut self) -> io::Result<()> {
        self.length = self.disk.length(&self.file)?;
        Ok(())
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Whether it is a journal, perhaps a damaged one, whatever it is called.
    pub(super) fn is_journal(&self) -> bool {
        journal::is_journal(self.bytes())
    }

    /// Its header alone.
    pub(super) fn header(&self) -> Result<JournalHeader, JournalError> {
        self.reader().map(|reader| reader.header().clone())
    }

    /// Folds it as it is now, without changing it, and finds out whether its recorder still runs.
    pub(super) fn read(&mut self) -> Result<Folded, JournalError> {
        let (mut looks, mut is_dead) = (1.., false);
        loop {
            let read = self.fold_any(false, &|| true);
            let is_suspect = match &read {
                // One that ended has said so, and whoever folds its journal has the lock.
                Ok(read) if read.tape.is_whole => read.damaged_end.is_some(),
                Ok(_) => true,
                Err(error) => error.is_damage(),
            };
            if is_dead || !is_suspect {
                return read?.of_dead();
            }
            let is_alive = self.disk.is_locked(&self.file)?;
            match read {
                Ok(mut read) if is_alive => {
                    read.tape.is_alive = !read.tape.is_whole;
                    // The next look finds it whole.
                    (read.torn, read.damaged_end) = (None, None);
                    return Ok(read);
                }
                Ok(read) if read.torn.is_none() && read.damaged_end.is_none() => return Ok(read),
                // A recorder may have written, between two reads of ours, in front of where we are and behind it.
                Err(error) if is_alive && looks.next() >= Some(3) => return Err(error),
                Err(_) if is_alive => {}
                // It may have ended since.
                Ok(_) | Err(_) => {
                    is_dead = true;
                    self.measure()?;
                }
            }
        }
    }

    /// What is wrong with it, which nobody writes.
    pub(super) fn wrong(&self) -> io::Result<Option<JournalError>> {
        let read = || -> Result<(), JournalError> {
            let mut reader = self.reader()?;
            while reader.next()?.is_some() {}
            reader.damaged_end().map_or(Ok(()), |Loss { at, .. }| Err(JournalError::EndDamaged { at }))
        };
        match read() {
            Ok(()) => Ok(None),
            Err(JournalError::Io(error)) => Err(error),
            Err(error) => Ok(Some(error)),
        }
    }

    /// What it holds if it was made from a cassette.
    pub(super) fn archive(&self) -> Result<Option<Archive>, JournalError> {
        Archive::read(&mut self.reader()?)
    }

    /// Folds it, which nobody writes; past damage where `recovers` says so.
    pub(super) fn fold(&self, recovers: bool, goes_on: &dyn Fn() -> bool) -> Result<Folded, JournalError> {
        self.fold_any(recovers, goes_on)?.of_dead()
    }

    fn fold_any(&self, recovers: bool, goes_on: &dyn Fn() -> bool) -> Result<Folded, JournalError> {
        let mut reader = match recovers {
            true => JournalReader::recover(|| self.bytes(), paths::header_of(&self.path))?,
            false => JournalReader::new(self.bytes())?,
        };
        let mut tape = record::fold(&mut reader, goes_on)?;
        if paths::is_added(&self.path) {
            tape.header.continues.get_or_insert_default();
        }
        let (torn, damaged_end, losses) = (reader.torn(), reader.damaged_end(), reader.losses().to_vec());
        Ok(Folded { tape, torn, damaged_end, losses })
    }

    /// Reads it from its start.
    pub(super) fn reader(&self) -> Result<JournalReader<impl Read + '_>, JournalError> {
        JournalReader::new(self.bytes())
    }

    const fn bytes(&self) -> Bytes<'_> {
        Bytes { journal: self, at: 0 }
    }

    /// Fills `bytes` with what stands from `at` on.
    fn read_exact_at(&self, bytes: &mut [u8], at: u64) -> io::Result<()> {
        let mut read = 0;
        while read < bytes.len() {
            match self.disk.read_at(&self.file, &mut bytes[read..], at + read as u64)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                more => read += more,
            }
        }
        Ok(())
    }
}

/// Reads a journal from its start, wherever others read it.
struct Bytes<'a> {
    journal: &'a Opened,
    at: u64,
}

impl Read for Bytes<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.journal.length - self.at).unwrap_or(usize::MAX);
        let room = left.min(bytes.len());
        let read = self.journal.disk.read_at(&self.journal.file, &mut bytes[..room], self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

/// The journals that a plan's tapes were folded from, in the same order.
pub(super) struct FileFrames<'a> {
    journals: Vec<&'a Opened>,
    /// Whether there is time left.
    goes_on: &'a dyn Fn() -> bool,
    ahead: Ahead,
}

impl<'a> FileFrames<'a> {
    pub(super) fn new(journals: Vec<&'a Opened>, goes_on: &'a dyn Fn() -> bool) -> Self {
        Self { journals, goes_on, ahead: Ahead::default() }
    }
}

/// The part of a journal around the last frame: the next one mostly stands close behind it, and one read for each
/// frame would be most of what a fold asks of the system.
#[derive(Debug, Default)]
struct Ahead {
    tape: usize,
    at: u64,
    bytes: Vec<u8>,
}

impl Ahead {
    /// How much is read at once; longer frames are read by themselves.
    const LENGTH: u64 = 64 << 10;

    /// Adds the frame to `out`.
    fn read(
        &mut self,
        tape: usize,
        journal: &Opened,
        place: FramePlace,
        out: &mut Vec<u8>,
    ) -> io::Result<()> {
        let length = u64::from(place.len);
        if length > Self::LENGTH / 4 {
            let start = out.len();
            out.resize(start + place.len as usize, 0);
            return journal.read_exact_at(&mut out[start..], place.at);
        }
        let end = self.at + self.bytes.len() as u64;
        if self.tape != tape || place.at < self.at || place.at + length > end {
            // Where frames are asked for here and there, much would be read in vain.
            let is_next = self.tape == tape && (self.at..=end + Self::LENGTH).contains(&place.at);
            let left = journal.length.saturating_sub(place.at);
            let read = if is_next { length.max(left.min(Self::LENGTH)) } else { length };
            self.bytes.clear();
            self.bytes.resize(usize::try_from(read).expect("a block is short"), 0);
            (self.tape, self.at) = (tape, place.at);
            if let Err(error) = journal.read_exact_at(&mut self.bytes, place.at) {
                self.bytes.clear();
                return Err(error);
            }
        }
        let from = usize::try_from(place.at - self.at).expect("it is in the block");
        out.extend_from_slice(&self.bytes[from..from + place.len as usize]);
        Ok(())
    }
}

impl Frames for FileFrames<'_> {
    fn read(&mut self, tape: usize, place: FramePlace, out: &mut Vec<u8>) -> io::Result<()> {
        if !(self.goes_on)() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.ahead.read(tape, self.journals[tape], place, out)
    }
}
