//! Journals that were left: what is said of them, and what `recover` does.

use std::{
    io::{BufRead, BufReader, Write},
    path::PathBuf,
};

use mcp_tapedeck::exit_code::ExitCode;

use super::{
    deck::Deck,
    fronts::{SESSION, recording, server},
};

/// A folder with nothing but a journal of `c.json`, with its bytes changed.
fn left(change: impl FnOnce(&mut Vec<u8>)) -> (Deck, String) {
    let deck = Deck::new();
    deck.talk(&format!("record c.json --keep-journal -- {}", server()), SESSION).status(ExitCode::Good);
    let kept = deck.names().into_iter().find(|name| name.ends_with(".kept.journal")).expect("it is kept");
    let mut bytes = std::fs::read(deck.path(&kept)).expect("it is read");
    change(&mut bytes);
    let journal = kept.replace(".kept", "");
    std::fs::write(deck.path(&journal), bytes).expect("it is written");
    for name in ["c.json", &kept] {
        std::fs::remove_file(deck.path(name)).expect("it is taken away");
    }
    (deck, journal)
}

fn place(deck: &Deck, name: &str) -> PathBuf {
    std::fs::canonicalize(deck.path(name)).expect("it is there")
}

#[test]
fn a_damaged_journal_is_told_listed_and_kept_once_it_is_recovered() {
    let (deck, journal) = left(|bytes| {
        let at = memchr::memmem::rfind(bytes, b"tools/call").expect("there is a call");
        bytes[at] ^= 4;
    });
    let command = format!("recover {}", place(&deck, &journal).display());
    deck.run("show c.json").status(ExitCode::File).stderr(&format!("hint: `tapedeck {command}` puts what"));
    let listed =
        deck.run("recover").status(ExitCode::Good).stdout("cannot be read whole: the journal is damaged at");
    assert!(listed.stdout.contains(&command), "{listed:#?}");
    let ran =
        deck.run(&command).status(ExitCode::Good).stdout("recorded").stderr("were damaged and are lost");
    let kept = journal.replace(".journal", ".kept.journal");
    ran.stderr(&format!("{kept}: the damaged journal is kept under this name; delete it"));
    assert_eq!(deck.names(), ["c.json", &kept]);
    let ran =
        deck.run("recover").status(ExitCode::Good).stdout(&kept).stdout("kept: what can be read of it is in");
    assert!(ran.stdout.contains("c.json,") && !ran.stdout.contains("recover JOURNAL"), "{ran:#?}");
    deck.run("show c.json").status(ExitCode::Good).silent();
}

#[test]
fn damage_at_the_end_and_messages_taken_out_are_told_as_damage() {
    let end: fn(&mut Vec<u8>) = |bytes| *bytes.last_mut().expect("it has an end") ^= 4;
    let taken: fn(&mut Vec<u8>) = |bytes| {
        let at = memchr::memmem::rfind(bytes, b"tools/call").expect("there is a call");
        let mark = [0xf7, 0xa5, 0xfe];
        let from = memchr::memmem::rfind(&bytes[..at], &mark).expect("it is in a frame");
        let to = at + memchr::memmem::find(&bytes[at..], &mark).expect("another is behind it");
        bytes.drain(from..to);
    };
    let begin: fn(&mut Vec<u8>) = |bytes| bytes[3] ^= 4;
    for (change, says, lost) in [
        (end, "the journal is damaged from byte", "damaged and are lost"),
        (taken, "whole messages are missing there", "1 entry is missing before byte"),
        (begin, "the journal is damaged at byte 0", "8 bytes from byte 0 on were damaged"),
    ] {
        let (deck, journal) = left(change);
        deck.run("show c.json").status(ExitCode::File).stderr(says).stderr("hint: `tapedeck recover ");
        deck.run("recover").status(ExitCode::Good).stdout(says);
        deck.run(&format!("recover {journal}")).status(ExitCode::Good).stderr(lost);
        assert_eq!(deck.names(), ["c.json", &journal.replace(".journal", ".kept.journal")]);
        deck.run("show c.json").status(ExitCode::Good).stdout("initialize @1");
    }
}

#[test]
fn every_command_that_reads_a_cassette_tells_of_a_damaged_journal_beside_it() {
    let (deck, journal) = left(|bytes| *bytes.last_mut().expect("it has an end") ^= 4);
    deck.talk(&format!("record d.json -- {}", server()), SESSION).status(ExitCode::Good);
    std::fs::rename(deck.path("d.json"), deck.path("c.json")).expect("it is there");
    for command in [
        "show c.json",
        "show c.json KEY",
        "show c.json --json",
        "lint c.json",
        "fmt c.json",
        "fmt --check c.json",
        "edit c.json note KEY x",
        "edit c.json note KEY y --out e.json",
        "convert c.json a.journal",
        "replay c.json",
        "run c.json -- true",
        "auto c.json -- true",
    ] {
        let words = command.split(' ').map(|word| if word == "KEY" { "initialize @1" } else { word });
        let ran = deck.run_words(words, "");
        assert!(ran.stderr.contains("is damaged from byte"), "{command}: {ran:#?}");
        assert!(ran.stderr.contains(&format!("tapedeck recover {}", place(&deck, &journal).display())));
    }
    let ran = deck.talk(&format!("record c.json -- {}", server()), SESSION);
    assert!(ran.stderr.contains("is damaged from byte"), "{ran:#?}");
}

#[test]
fn a_journal_that_cannot_be_read_at_all_is_an_error_and_stays() {
    let noise: fn(&mut Vec<u8>) = |bytes| bytes.iter_mut().for_each(|byte| *byte ^= 0x5a);
    let newer: fn(&mut Vec<u8>) = |bytes| bytes[8] = 3;
    for (change, says) in [(noise, "this is no journal of tapedeck"), (newer, "says that it has version 3")] {
        let (deck, journal) = left(change);
        for words in [format!("recover {journal}"), "recover c.json".to_owned(), "show c.json".to_owned()] {
            let ran =
                deck.run(&words).stderr(says).stderr("take it away, or bring it back").status(ExitCode::File);
            assert!(!ran.stderr.contains("tapedeck recover"), "{ran:#?}");
        }
        deck.run(&format!("recover {journal}")).stderr("error: ");
        let ran = deck.run("recover c.json").stderr("error: ").stderr("nothing was added");
        assert_eq!(ran.stdout, "");
        deck.run("recover").status(ExitCode::Good).stdout(says);
        assert_eq!(deck.names(), [journal]);
    }
}

/// The command that a hint offers, in its backquotes.
fn hinted(stderr: &str) -> String {
    let (_, hint) = stderr.split_once("hint: `tapedeck ").unwrap_or_else(|| panic!("no hint: {stderr}"));
    hint.split_once('`').expect("it ends").0.to_owned()
}

#[test]
fn hints_about_a_journal_lead_to_a_cassette() {
    let damage = |bytes: &mut Vec<u8>| {
        let at = memchr::memmem::rfind(bytes, b"tools/call").expect("there is a call");
        bytes[at] ^= 4;
    };
    let whole = |_: &mut Vec<u8>| {};
    let follow = |deck: &Deck, words: &str, says: &str| {
        let ran = deck.run(words).status(ExitCode::File).stderr(says);
        deck.run(&hinted(&ran.stderr)).status(ExitCode::Good);
        let made = deck.names().into_iter().find(|name| name.ends_with(".json")).expect("a cassette");
        deck.run(&format!("show {made}")).status(ExitCode::Good).stdout("initialize @1").silent();
        std::fs::remove_file(deck.path(&made)).expect("it is there");
    };
    for command in ["fmt", "fmt --check", "edit JOURNAL note k x"] {
        let words = |journal: &str| match command.contains("JOURNAL") {
            true => command.replace("JOURNAL", journal),
            false => format!("{command} {journal}"),
        };
        let (deck, journal) = left(whole);
        follow(&deck, &words(&journal), "expected a cassette, found a journal");
        let (deck, journal) = left(whole);
        std::fs::rename(deck.path(&journal), deck.path("good.journal")).expect("it is there");
        follow(&deck, &words("good.journal"), "expected a cassette, found a journal");
    }
    // One that is kept, since it is damaged, and one of a name that somebody gave it.
    let (deck, journal) = left(damage);
    deck.run("recover c.json").status(ExitCode::Good);
    std::fs::remove_file(deck.path("c.json")).expect("it is there");
    let kept = journal.replace(".journal", ".kept.journal");
    std::fs::copy(deck.path(&kept), deck.path("mine.journal")).expect("it is there");
    for name in [&*kept, "mine.journal"] {
        follow(&deck, &format!("show {name}"), "is damaged at");
        follow(&deck, &format!("recover {name}"), "no cassette belongs to");
        let ran = deck.run(&format!("convert {name} made.json")).status(ExitCode::Good);
        ran.stderr("were damaged and are lost");
        std::fs::remove_file(deck.path("made.json")).expect("it is there");
    }
}

#[test]
fn a_session_that_is_not_there_is_told() {
    let (deck, _) = left(|_| {});
    for words in ["show c.json --session 9", "show c.json --session 9 --json"] {
        let ran = deck.run(words).status(ExitCode::File).stderr("the cassette has no session 9; it has 1\n");
        assert_eq!(ran.stdout, "");
    }
    deck.run("show c.json --session 1").status(ExitCode::Good).stdout("initialize @1");
}

#[test]
fn a_damaged_archive_makes_no_cassette() {
    let (deck, _) = left(|_| {});
    deck.run("recover c.json").status(ExitCode::Good);
    deck.run("convert c.json a.journal").status(ExitCode::Good);
    let mut bytes = std::fs::read(deck.path("a.journal")).expect("it is there");
    let at = memchr::memmem::find(&bytes, b"\"exchanges\"").expect("there are some");
    bytes[at] ^= 4;
    std::fs::write(deck.path("a.journal"), bytes).expect("it is written");
    let ran = deck
        .run("convert a.journal b.json")
        .status(ExitCode::File)
        .stderr("archive of a cassette is not whole");
    ran.stderr("hint: take it away, or bring it back from a copy");
    assert!(!deck.names().contains(&"b.json".to_owned()));
}

#[test]
fn a_folder_that_is_named_like_a_journal_hides_none() {
    let (deck, journal) = left(|_| {});
    let folder = "c.json.20261129T200906-000000000003.journal";
    std::fs::create_dir(deck.path(folder)).expect("it is made");
    let listed = format!("{folder}, cannot be read whole: expected a journal, found a folder\n");
    deck.run("recover").status(ExitCode::Good).stdout(&journal).stdout(&listed).silent();
    let found = format!("{folder}: expected a journal, found a folder");
    deck.run("show c.json").status(ExitCode::Good).stdout("initialize @1").stderr(&found);
    deck.run("recover c.json").status(ExitCode::Good).stdout("recorded").stderr(&found);
    assert_eq!(deck.names(), ["c.json", folder]);
    deck.talk(&format!("record c.json -- {}", server()), SESSION).status(ExitCode::Good);
    assert_eq!(deck.names(), ["c.json", folder]);
    deck.run(&format!("recover {folder}")).status(ExitCode::File).stderr("expected a file, found a folder");
}

#[test]
fn auto_replays_what_a_killed_recorder_left_and_records_beside_a_running_one() {
    // Its recorder had no time to say that it ended.
    let (deck, journal) = left(|bytes| bytes.truncate(bytes.len() - 1));
    let played = deck.talk_apart("auto c.json -- touch touched", SESSION).status(ExitCode::Good);
    assert_eq!(deck.names(), [journal]);
    let asked = SESSION.lines().filter(|line| line.contains("\"id\"")).count();
    assert_eq!(played.stdout.lines().filter(|line| line.contains("\"result\"")).count(), asked);
    let deck = Deck::new();
    let mut recorder = deck.spawn(&format!("record c.json -- {}", server()));
    let mut to_server = recorder.stdin.take().expect("a pipe");
    to_server.write_all(SESSION.as_bytes()).expect("the recorder reads");
    let mut answers = BufReader::new(recorder.stdout.take().expect("a pipe")).lines();
    answers.next().expect("an answer").expect("a line");
    deck.talk_apart(&format!("auto c.json -- {}", server()), SESSION).status(ExitCode::Good);
    deck.run("show c.json").stdout("session 2");
    // From now on there is a cassette.
    deck.talk_apart("auto c.json -- touch touched", SESSION);
    assert!(!deck.names().contains(&"touched".to_owned()));
    drop(to_server);
    answers.for_each(drop);
    recorder.wait().expect("it ends");
}

#[test]
fn while_a_recorder_runs_nobody_is_told_to_recover() {
    let deck = Deck::new();
    let (mut recorder, _to_server) = recording(&deck);
    for words in ["fmt c.json", "edit c.json note k x", "convert c.json a.journal"] {
        let ran = deck.run(words).status(ExitCode::File).stderr("hint: its recorder still runs");
        assert!(!ran.stderr.contains("tapedeck recover"), "{ran:#?}");
    }
    deck.run("recover c.json").status(ExitCode::File).stderr("error: ").stderr("still running");
    let journal = deck.names().into_iter().find(|name| name.ends_with(".journal")).expect("it is there");
    deck.run(&format!("recover {journal}")).status(ExitCode::File).stderr("still running").stderr("hint: ");
    recorder.kill().expect("it is running");
    recorder.wait().expect("it ends");
    deck.run("fmt c.json").status(ExitCode::File).stderr("hint: `tapedeck recover ");
    deck.run("recover c.json").status(ExitCode::Good).stdout("3 exchanges recorded");
}
