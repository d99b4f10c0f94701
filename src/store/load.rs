//! Reading a cassette and its journals together; nothing is written.

use std::{
    io,
    path::{Path, PathBuf},
};

use super::{
    blobs::Blobs,
    disk::Disk,
    error::{StoreError, note_of_unread},
    paths,
    siblings::{FileFrames, Folded, Opened},
};
use crate::{
    cassette::{
        LoadError, LoadErrorKind,
        blob::{BlobSink, BlobSource},
        journal::{Damage, JournalError, JournalHeader, Loss, is_journal},
        model::Cassette,
    },
    record::{self, Plan, Tape},
};

/// A cassette that was read.
#[derive(Debug)]
pub struct Loaded {
    /// The cassette, with what its journals hold.
    pub cassette: Cassette,
    /// Its blobs.
    pub blobs: Blobs,
    /// What deserves a word: journals that are damaged or end in the middle of a message. One sentence each.
    pub notes: Vec<String>,
    /// Its path, absolute.
    pub path: PathBuf,
    /// The ids of its journals whose recorders still run.
    pub alive: Vec<String>,
    /// The ids of its journals whose recorders are gone and had not ended them.
    pub cut_off: Vec<String>,
}

impl Loaded {
    /// Of which no journal is told.
    pub(super) const fn new(cassette: Cassette, blobs: Blobs, notes: Vec<String>, path: PathBuf) -> Self {
        Self { cassette, blobs, notes, path, alive: Vec::new(), cut_off: Vec::new() }
    }

    /// Whether a session, by its place, is still being recorded.
    pub fn is_alive(&self, session: usize) -> bool {
        let journal = self.cassette.sessions[session].journal.as_ref();
        journal.is_some_and(|journal| self.alive.contains(journal))
    }
}

/// Reads a cassette and its journals, dead ones and those of recorders still running, as one cassette; or one
/// journal alone.
///
/// # Errors
/// When there is neither, when the cassette has a mistake, or when a journal that is read alone is damaged. A damaged
/// journal beside a cassette is a note.
pub fn load(path: &Path) -> Result<Loaded, StoreError> {
    load_on(&Disk::default(), path, paths::state_folder().as_deref())
}

pub(super) fn load_on(disk: &Disk, path: &Path, state: Option<&Path>) -> Result<Loaded, StoreError> {
    let path = paths::resolve(path)?;
    // Journals first: a fold in between puts them into the cassette before it takes them away.
    let (mut journals, mut notes) = (Vec::new(), Vec::new());
    for journal in paths::journals(disk, &path, state)? {
        match Opened::open(disk, journal) {
            Ok(journal) => journals.extend(journal),
            Err(error) => notes.push(format!("{error}; it is left out")),
        }
    }
    let text = match disk.read(&path) {
        Ok(text) if is_journal(&*text) => return load_journal(disk, path, false),
        // A recording may have begun with an empty file.
        Ok(text) if text.is_empty() && !journals.is_empty() => None,
        Ok(text) => Some(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(StoreError::unread(&path, error)),
    };
    let has_text = text.is_some();
    let (mut folded, mut damaged) = (Vec::new(), None);
    for journal in &mut journals {
        let read = journal.read();
        let journal = &*journal;
        match read {
            Ok(read) if is_anothers(&read.tape, &journal.path, &path) => {}
            Ok(read) => {
                notes.extend(read.torn.map(|torn| note_of_end(&journal.path, torn)));
                folded.push((journal, read));
            }
            // Its recorder has only begun, or was killed as soon as it had.
            Err(JournalError::NoHeader) => {}
            Err(error) => {
                notes.push(note_of_unread(&journal.path, &error, "it is left out"));
                damaged.get_or_insert((journal, error));
            }
        }
    }
    if let (false, true, Some((journal, source))) = (has_text, folded.is_empty(), damaged) {
        return Err(StoreError::Journal { path: journal.path.clone(), source });
    }
    if !has_text && folded.is_empty() {
        return Err(StoreError::NotFound { path });
    }
    together(disk, path, text, folded, notes)
}

/// What deserves a word of the journals beside a cassette that cannot be read: what they hold is in nothing that is read
/// of it. One sentence each.
///
/// # Errors
/// When the folder cannot be read.
pub fn unread_journals(path: &Path) -> io::Result<Vec<String>> {
    unread_journals_on(&Disk::default(), path, paths::state_folder().as_deref())
}

pub(super) fn unread_journals_on(disk: &Disk, path: &Path, state: Option<&Path>) -> io::Result<Vec<String>> {
    let path = paths::resolve(path)?;
    let mut notes = Vec::new();
    for name in paths::journals(disk, &path, state)? {
        match Opened::open(disk, name).and_then(|journal| wrong_beside(disk, journal, &path)) {
            Ok(wrong) => notes.extend(wrong),
            Err(error) => notes.push(format!("{error}; it is left out")),
        }
    }
    Ok(notes)
}

fn wrong_beside(disk: &Disk, journal: Option<Opened>, path: &Path) -> io::Result<Option<String>> {
    let Some(mut journal) = journal else { return Ok(None) };
    let is_others = journal.header().is_ok_and(|header| is_of_another(&header, &journal.path, path));
    if is_others || journal.wrong()?.is_none() || disk.is_locked(&journal.file)? {
        return Ok(None);
    }
    // Its recorder may have ended since it was read.
    journal.measure()?;
    Ok(match journal.wrong()? {
        None | Some(JournalError::NoHeader) => None,
        Some(error) => Some(note_of_unread(&journal.path, &error, "it is left out")),
    })
}

/// How many recorders of a cassette run; of a journal, whether its recorder does.
///
/// # Errors
/// When the files cannot be read.
pub fn recorders(path: &Path) -> io::Result<usize> {
    let (disk, path) = (Disk::default(), paths::resolve(path)?);
    let mut count = 0;
    for journal in paths::journals(&disk, &path, paths::state_folder().as_deref())?.into_iter().chain([path])
    {
        // What cannot be opened, such as a folder, is no recorder's.
        if let Ok(Some(journal)) = Opened::open(&disk, journal)
            && disk.is_locked(&journal.file)?
        {
            count += 1;
        }
    }
    Ok(count)
}

/// Everything that keeps the file of a cassette from being read, in the order of the file. Nothing where it can
/// be read.
///
/// # Errors
/// When the file itself cannot be read.
pub fn faults(path: &Path) -> Result<Vec<LoadError>, StoreError> {
    let (disk, path) = (Disk::default(), paths::resolve(path)?);
    let text = disk.read(&path).map_err(|error| StoreError::unread(&path, error))?;
    Ok(Cassette::check(text, &Blobs::of(&disk, &path)).err().unwrap_or_default())
}

/// One journal alone; past damage where `recovers` says so.
pub(super) fn load_journal(disk: &Disk, path: PathBuf, recovers: bool) -> Result<Loaded, StoreError> {
    let Some(mut journal) = Opened::open(disk, path.clone())? else {
        return Err(StoreError::NotFound { path });
    };
    let failed = |source| StoreError::Journal { path: path.clone(), source };
    let archive = match journal.archive() {
        // Its messages alone are no cassette; those of a recording are.
        Err(_) if recovers => None,
        archive => archive.map_err(failed)?,
    };
    if let Some(archive) = archive {
        let mut blobs = Blobs::of(disk, &path);
        for (name, bytes) in &archive.blobs {
            blobs.put(name, bytes)?;
        }
        let cassette = parse(&path, archive.text, &blobs)?;
        return Ok(Loaded::new(cassette, blobs, Vec::new(), path));
    }
    let mut read = match journal.read() {
        Err(error) if recovers => journal.fold(true, &|| true).map_err(|again| match again {
            JournalError::IsArchive => failed(JournalError::NoArchive),
            _ => failed(error),
        })?,
        read => read.map_err(failed)?,
    };
    // Whatever it goes on with is not here.
    read.tape.header.continues = None;
    let mut notes = notes_of_losses(&path, &read.losses);
    notes.extend(read.torn.map(|torn| note_of_end(&path, torn)));
    together(disk, path.clone(), None, vec![(&journal, read)], notes)
}

/// Journals that are recordings, and those that go on with one, which may be among the others.
pub(super) fn divide<J>(folded: Vec<(J, Folded)>) -> [Vec<(J, Folded)>; 2] {
    let (added, recordings) = folded.into_iter().partition(|(_, read)| read.tape.header.continues.is_some());
    [recordings, added]
}

fn together(
    disk: &Disk,
    path: PathBuf,
    text: Option<Vec<u8>>,
    folded: Vec<(&Opened, Folded)>,
    notes: Vec<String>,
) -> Result<Loaded, StoreError> {
    let tapes = || folded.iter().map(|(_, read)| &read.tape);
    let id = |tape: &Tape| tape.header.id.clone();
    let alive = tapes().filter(|tape| tape.is_alive).map(id).collect();
    let cut_off = tapes().filter(|tape| !tape.is_alive && !tape.is_whole).map(id).collect();
    let [recordings, added] = divide(folded);
    let mut loaded = with(disk, path, text, Blobs::of, recordings, notes)?;
    if !added.is_empty() {
        let Loaded { cassette, blobs, notes, path, .. } = loaded;
        loaded = with(disk, path, Some(cassette.text), move |_, _| blobs, added, notes)?;
    }
    Ok(Loaded { alive, cut_off, ..loaded })
}

/// A cassette with journals of one kind.
fn with(
    disk: &Disk,
    path: PathBuf,
    text: Option<Vec<u8>>,
    blobs: impl FnOnce(&Disk, &Path) -> Blobs,
    mut folded: Vec<(&Opened, Folded)>,
    mut notes: Vec<String>,
) -> Result<Loaded, StoreError> {
    let mut blobs = blobs(disk, &path);
    in_order(&mut folded);
    let (journals, tapes): (Vec<_>, Vec<_>) =
        folded.into_iter().map(|(journal, read)| (journal, read.tape)).unzip();
    let base = base(&path, text, &tapes, &blobs)?;
    let mut plan = Plan::new(&base, &tapes);
    notes.extend(
        plan.strays()
            .iter()
            .map(|&stray| format!("{}; it is left out", note_of_stray(&journals[stray].path))),
    );
    if plan.is_empty() {
        return Ok(Loaded::new(base, blobs, notes, path));
    }
    let mut text = Vec::with_capacity(base.text.len());
    let mut frames = FileFrames::new(journals, &|| true);
    let old = Blobs::of(disk, &path);
    plan.write(&mut frames, &old, &mut blobs, &mut text)?;
    let cassette = parse(&path, text, &blobs)?;
    Ok(Loaded::new(cassette, blobs, notes, path))
}

/// The order in which journals are added: that of their start.
pub(super) fn in_order<J>(folded: &mut [(J, Folded)]) {
    let key = |read: &Folded| (read.tape.header.started_ms, read.tape.header.id.clone());
    folded.sort_by_cached_key(|(_, read)| key(read));
}

/// The cassette that tapes are added to: the one in the file, or an empty one; with what their headers say of it.
pub(super) fn base(
    path: &Path,
    text: Option<Vec<u8>>,
    tapes: &[Tape],
    blobs: &Blobs,
) -> Result<Cassette, StoreError> {
    let base = parse(path, text.unwrap_or_else(|| record::EMPTY.to_vec()), blobs)?;
    let is_new = |tape: &&Tape| {
        let is_it = |id: &str| id == tape.header.id;
        !base.sessions.iter().any(|session| session.journal.as_deref().is_some_and(is_it))
    };
    let new: Vec<_> = tapes.iter().filter(is_new).filter(|tape| !tape.sessions.is_empty()).collect();
    let vars: Vec<_> = new.iter().flat_map(|tape| tape.header.vars.iter().map(String::as_str)).collect();
    let is_redacted = new.iter().all(|tape| tape.header.redacted);
    match record::with_members(&base.text, &vars, is_redacted) {
        Some(text) => parse(path, text, blobs),
        None => Ok(base),
    }
}

pub(super) fn parse(path: &Path, text: Vec<u8>, blobs: &dyn BlobSource) -> Result<Cassette, StoreError> {
    if is_journal(&*text) {
        return Err(StoreError::IsJournal { path: path.to_owned() });
    }
    Cassette::load(text, blobs).map_err(|source| {
        let (is_binary, path) = (matches!(source.kind, LoadErrorKind::NotUtf8), path.to_owned());
        match path.extension() {
            Some(extension) if is_binary && extension == "journal" => {
                StoreError::Journal { path, source: JournalError::NoJournal }
            }
            _ => StoreError::Cassette { path, source: Box::new(source) },
        }
    })
}

/// Whether a journal in the state folder belongs to another cassette of the same name.
pub(super) fn is_anothers(tape: &Tape, journal: &Path, cassette: &Path) -> bool {
    is_of_another(&tape.header, journal, cassette)
}

fn is_of_another(header: &JournalHeader, journal: &Path, cassette: &Path) -> bool {
    match &header.cassette {
        Some(path) => Path::new(path) != cassette,
        None => paths::folder(journal) != paths::folder(cassette),
    }
}

pub(super) fn note_of_stray(journal: &Path) -> String {
    format!("{}: the session that it goes on with is not in the cassette", journal.display())
}

/// What could not be read of a journal, one sentence each.
pub(super) fn notes_of_losses(journal: &Path, losses: &[Damage]) -> Vec<String> {
    let told = |damage: &Damage| match *damage {
        Damage::Bytes(Loss { at, bytes: 1 }) => format!("1 byte from byte {at} on was damaged and is lost"),
        Damage::Bytes(Loss { at, bytes }) => {
            format!("{bytes} bytes from byte {at} on were damaged and are lost")
        }
        Damage::Header(Loss { at, bytes }) => {
            format!("its header, {bytes} bytes from byte {at} on, was damaged and is lost")
        }
        Damage::Missing { at, frames: 1 } => format!("1 entry is missing before byte {at} and is lost"),
        Damage::Missing { at, frames } => {
            format!("{frames} entries are missing before byte {at} and are lost")
        }
        Damage::Displaced(Loss { at, .. }) => {
            format!("the entry at byte {at} is out of place, or stands there twice, and is left out")
        }
    };
    losses.iter().map(|damage| format!("{}: {}", journal.display(), told(damage))).collect()
}

pub(super) fn note_of_end(journal: &Path, torn: Loss) -> String {
    let Loss { at, bytes } = torn;
    format!(
        "{}: its end, from byte {at} on ({bytes} B), is no whole message and was left out",
        journal.display()
    )
}
