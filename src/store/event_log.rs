//! The log of a run's events: lines of JSON that are appended as they come.

use std::{
    fs::File,
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    path::Path,
};

use super::other::open_other;
use crate::report::events::Event;

/// How each line of a log begins.
const BEGINNING: &[u8] = b"{\"seq\":";

/// A log of events. Several processes may append to one at a time: a server is started by each of its clients.
#[derive(Debug)]
pub struct EventLog {
    file: File,
}

impl EventLog {
    /// Opens a log, and makes it where there is none.
    ///
    /// # Errors
    /// When it cannot be written (as a pipe that nobody reads), or the file holds something else.
    pub fn open(path: &Path) -> io::Result<Self> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs_err::create_dir_all(folder)?;
        }
        if let Some(file) = open_other(path)? {
            return Ok(Self { file });
        }
        let mut file = File::options().create(true).append(true).read(true).open(path)?;
        let mut beginning = Vec::new();
        (&mut file).take(BEGINNING.len() as u64).read_to_end(&mut beginning)?;
        if !beginning.is_empty() && beginning != BEGINNING {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "it holds something else than events"));
        }
        // What a process that was killed has left of a line stays alone on it.
        if !beginning.is_empty() && file.metadata()?.is_file() {
            file.seek(SeekFrom::End(-1))?;
            let mut last = [0];
            file.read_exact(&mut last)?;
            if last != *b"\n" {
                file.write_all(b"\n")?;
            }
        }
        Ok(Self { file })
    }

    /// Appends events, whole lines at once or none.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn append(&mut self, events: &[Event]) -> io::Result<()> {
        let mut lines = Vec::new();
        for event in events {
            serde_json::to_writer(&mut lines, event)?;
            lines.push(b'\n');
        }
        let mut written = 0;
        while written < lines.len() {
            match self.file.write(&lines[written..]) {
                Ok(count) if count > 0 => written += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => {
                    self.take_back(&lines[..written]);
                    return Err(result.err().unwrap_or_else(|| io::ErrorKind::WriteZero.into()));
                }
            }
        }
        Ok(())
    }

    /// The rest of a line found no room: what stands of it goes, unless somebody has written behind it.
    fn take_back(&mut self, written: &[u8]) {
        let half = written.iter().rev().take_while(|byte| **byte != b'\n').count();
        let mut found = vec![0; half];
        let cut = self.file.seek(SeekFrom::End(-(half as i64))).and_then(|at| {
            self.file.read_exact(&mut found)?;
            if written.ends_with(&found) { self.file.set_len(at) } else { Ok(()) }
        });
        // The reader of a log is told of lines that are none.
        let _ = cut;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(seq: u64) -> Event {
        let line = format!(r#"{{"seq":{seq},"at_ms":0,"lane":0,"method":"ping","outcome":"self_answered"}}"#);
        serde_json::from_str(&line).expect("an event")
    }

    #[test]
    fn lines_are_appended_and_half_a_line_stays_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("new/events.jsonl");
        EventLog::open(&path).expect("a log").append(&[event(1), event(2)]).expect("it is written");
        let half = r#"{"seq":3,"at_"#;
        let mut file = File::options().append(true).open(&path).expect("it is there");
        file.write_all(half.as_bytes()).expect("it is written");
        EventLog::open(&path).expect("a log").append(&[event(4)]).expect("it is written");
        let text = std::fs::read_to_string(&path).expect("text");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines.len(), lines[2]), (4, half), "{text}");
        assert!(lines[3].starts_with(r#"{"seq":4,"#) && text.ends_with('\n'), "{text}");
    }

    #[test]
    fn what_has_no_room_is_taken_back_to_the_last_whole_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("events.jsonl");
        let mut log = EventLog::open(&path).expect("a log");
        log.append(&[event(1)]).expect("it is written");
        let whole = std::fs::read(&path).expect("bytes");
        let half = [&whole[..], b"{\"seq\":2"].concat();
        std::fs::write(&path, &half).expect("it is written");
        log.take_back(&half);
        assert_eq!(std::fs::read(&path).expect("bytes"), whole);
    }

    #[test]
    fn a_file_that_holds_something_else_is_left_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("c.json");
        std::fs::write(&path, "{\n  \"cassette\": 1}").expect("it is written");
        let error = EventLog::open(&path).expect_err("no log");
        assert!(error.to_string().contains("something else"), "{error}");
        assert_eq!(std::fs::read(&path).expect("bytes"), b"{\n  \"cassette\": 1}");
    }
}
