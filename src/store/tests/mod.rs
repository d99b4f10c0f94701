//! Recorders, folds and readers on real files.

use std::{
    borrow::Cow,
    path::{Path, PathBuf},
};

use super::{FoldOptions, FoldOutcome, Journal, Loaded, StoreError, disk::Disk, fold::Files, load::load_on};
use crate::{
    cassette::journal::JournalHeader,
    traffic::{Direction, Event, Lane, Payload},
};

mod behind;
mod folding;
mod kills;
mod recovery;

/// A folder with a cassette, a state folder, and a file system that may be told to fail.
struct Place {
    folder: tempfile::TempDir,
    disk: Disk,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), disk: Disk::default() }
    }

    fn cassette(&self) -> PathBuf {
        self.folder.path().join("c.json")
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    fn recorder(&self, number: u64) -> Journal {
        self.recorder_of(header(number))
    }

    fn recorder_of(&self, header: JournalHeader) -> Journal {
        Journal::create_on(&self.disk, &self.cassette(), header, Some(&self.state())).unwrap()
    }

    /// A whole recording of one call.
    fn record(&self, number: u64) -> PathBuf {
        let mut journal = self.recorder(number);
        call(&mut journal, number);
        journal.finish().unwrap()
    }

    fn fold(&self) -> FoldOutcome {
        self.fold_with(FoldOptions::default()).unwrap()
    }

    fn fold_with(&self, options: FoldOptions) -> Result<FoldOutcome, StoreError> {
        self.files().fold(&self.cassette(), options, None, &|| true)
    }

    fn files(&self) -> Files {
        Files { disk: self.disk.clone(), state: Some(self.state()) }
    }

    fn load(&self) -> Result<Loaded, StoreError> {
        load_on(&self.disk, &self.cassette(), Some(&self.state()))
    }

    /// The journal of each session, in order.
    fn journals(&self) -> Vec<String> {
        journals(&self.load().unwrap())
    }

    fn text(&self) -> String {
        fs_err::read_to_string(self.cassette()).unwrap()
    }

    /// What lies in the folder beside the state folder.
    fn names(&self) -> Vec<String> {
        names(self.folder.path())
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries =
        fs_err::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = entries.filter(|name| name != "state").collect();
    names.sort();
    names
}

fn journals(loaded: &Loaded) -> Vec<String> {
    loaded.cassette.sessions.iter().map(|session| session.journal.clone().unwrap()).collect()
}

fn id(number: u64) -> String {
    format!("{number:012x}")
}

/// Each recorder has a parent of its own.
fn header(number: u64) -> JournalHeader {
    JournalHeader {
        id: id(number),
        parent: 1,
        parent_start: number,
        started_ms: 1_795_819_201_000 + number * 1000,
        redacted: true,
        ..JournalHeader::default()
    }
}

fn event(direction: Direction, text: &str) -> Event<'_> {
    Event { at: 0, direction, lane: Lane(0), payload: Payload::Message(Cow::Borrowed(text.as_bytes())) }
}

fn request(number: u64) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":0,"method":"tools/call","params":{{"name":"tool{number}","arguments":{{}}}}}}"#
    )
}

fn response(number: u64) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":0,"result":{{"content":[],"n":{number}}}}}"#)
}

fn call(journal: &mut Journal, number: u64) {
    journal.write(&[event(Direction::ToServer, &request(number))]).unwrap();
    journal.write(&[event(Direction::ToClient, &response(number))]).unwrap();
}
