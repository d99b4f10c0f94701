//! One thread for both ways, and two from the first write that would wait.

use std::{fs::File, os::unix::net::UnixStream, thread};

use super::*;

/// More than all pipes between two peers hold.
const FLOOD: usize = 400_000;

#[test]
fn a_client_that_does_not_read_is_heard_on() {
    let mut talk = Talk::new("yes | head -c 400000 & cat >/dev/null; wait");
    // It returns only when the server has taken nearly all of it.
    talk.send(&b"more\n".repeat(FLOOD / 5));
    talk.close();
    let (said, ended, log) = talk.end();
    assert_eq!((said.len(), ended.exit.status), (FLOOD, Some(0)));
    for (line, count) in [("> more", FLOOD / 5), ("< y", FLOOD / 2)] {
        assert_eq!(log.iter().filter(|said| *said == line).count(), count, "{line}");
    }
}

#[test]
fn a_server_that_does_not_read_is_heard_on() {
    let mut talk = Talk::new("read line; seq 50000; exec cat");
    talk.send(b"go\n");
    let mut input = talk.input.take().unwrap();
    let sender = thread::spawn(move || input.write_all(&b"more\n".repeat(FLOOD / 5)).unwrap());
    for number in 1..=50_000 {
        assert_eq!(talk.line(), format!("{number}\n"));
    }
    let (said, ended, _) = talk.end();
    sender.join().unwrap();
    assert_eq!((said, ended.exit.status), (b"more\n".repeat(FLOOD / 5), Some(0)));
}

#[test]
fn both_ways_go_on_after_a_write_that_waited() {
    let mut talk = Talk::new("read line; yes | head -c 400000; exec cat");
    talk.send(b"go\n");
    talk.output.read_exact(&mut vec![0; FLOOD]).unwrap();
    for id in 0..50 {
        talk.send(call(id).as_bytes());
        assert_eq!(talk.line(), call(id));
    }
    talk.close();
    let log = talk.end().2;
    assert_eq!(log.iter().filter(|line| line.contains(r#""method":"#)).count(), 100);
}

#[test]
fn a_client_talks_through_whatever_it_has() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name);
    let said = call(1).repeat(3000);
    std::fs::write(file("in"), &said).unwrap();
    let input = |kind: &str, to_file: bool| -> OwnedFd {
        let said = said.clone();
        if kind == "fifo" {
            // Each has its own: a reader of the one before may still be there.
            let path = file(&format!("fifo-{to_file}"));
            assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
            let writer = path.clone();
            thread::spawn(move || File::create(writer).unwrap().write_all(said.as_bytes()).unwrap());
            return File::open(path).unwrap().into();
        }
        if kind == "file" {
            return File::open(file("in")).unwrap().into();
        }
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        thread::spawn(move || theirs.write_all(said.as_bytes()).unwrap());
        ours.into()
    };
    for kind in ["file", "fifo", "socket"] {
        for to_file in [true, false] {
            let (ours, mut theirs) = UnixStream::pair().unwrap();
            let heard = thread::spawn(move || {
                let mut heard = String::new();
                theirs.read_to_string(&mut heard).unwrap();
                heard
            });
            let output = match to_file {
                true => File::create(file("out")).unwrap().into(),
                false => ours.try_clone().unwrap().into(),
            };
            drop(ours);
            let client = Client { input: input(kind, to_file), output };
            let options = RecordOptions { grace: PATIENT, ..RecordOptions::default() };
            let log = Log::default();
            record(server(&["cat"]).unwrap(), client, log.clone(), options).unwrap();
            let heard = heard.join().unwrap();
            let heard = if to_file { std::fs::read_to_string(file("out")).unwrap() } else { heard };
            assert!(heard == said, "from a {kind}, to a file: {to_file}");
            assert_eq!(log.lines.lock().unwrap().len(), 6003);
        }
    }
}
