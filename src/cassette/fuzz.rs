//! What fuzzers call: each function takes any bytes, must come back, and checks what holds for all of them.

use std::{cell::RefCell, collections::HashMap, io};

use super::{
    Printer,
    blob::{BlobSink, BlobSource},
    draft::{AnswerDraft, ExchangeDraft, ItemDraft, MessageDraft, SessionDraft},
    format,
    journal::{self, Damage, Encoder, Entry, JournalHeader, JournalReader},
    key::{self, Keys},
    model::{Cassette, Message, Moment, Ref},
    spelling::SpellingGuess,
};
use crate::{
    traffic::Direction,
    wire::jsonrpc::{self, Kind},
};

/// Blobs in memory; the two empty ones are always there.
#[derive(Default)]
struct Blobs(RefCell<HashMap<String, Vec<u8>>>);

const EMPTY: &str = "sha256-e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

impl BlobSource for Blobs {
    fn get(&self, name: &str) -> io::Result<Vec<u8>> {
        match self.0.borrow().get(name) {
            Some(bytes) => Ok(bytes.clone()),
            None if name.starts_with(EMPTY) => Ok(Vec::new()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

impl BlobSink for Blobs {
    fn put(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.0.get_mut().insert(name.to_owned(), bytes.to_owned());
        Ok(())
    }
}

/// The loader: what loads can be formatted and rebuilt, and means the same afterwards; what does not load has its
/// fault at a place.
pub fn load(text: &[u8]) {
    let blobs = Blobs::default();
    let cassette = match Cassette::load(text.to_vec(), &blobs) {
        Ok(cassette) => cassette,
        Err(error) => {
            assert!(error.at <= text.len() && error.line > 0 && error.column > 0);
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let formatted = format(&cassette);
    let again = Cassette::load(formatted.clone(), &blobs).expect("what was formatted loads");
    assert_eq!(show(&format(&again)), show(&formatted), "formatting twice changes nothing");
    assert_eq!(again.exchanges.len(), cassette.exchanges.len());
    for (exchange, other) in cassette.exchanges.iter().zip(&again.exchanges) {
        assert_eq!(cassette.find(&exchange.key).map(|found| found.place), Some(exchange.place));
        assert_eq!((&exchange.key, exchange.session), (&other.key, other.session));
        for (message, other) in messages(exchange).zip(messages(other)) {
            let line = wire(&cassette, exchange.session, message, &blobs);
            assert_eq!(wire(&again, exchange.session, other, &blobs), line, "formatting changes no message");
        }
    }
}

fn messages(exchange: &super::model::Exchange) -> impl Iterator<Item = (bool, &Message)> {
    let items = exchange.server.iter().flat_map(|item| {
        let answer = item.answer.as_ref().map(|answer| (true, &answer.message));
        [(false, &item.message)].into_iter().chain(answer)
    });
    exchange.client.iter().map(|message| (true, message)).chain(items)
}

fn wire(
    cassette: &Cassette,
    session: u32,
    (from_client, message): (bool, &Message),
    blobs: &Blobs,
) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    cassette.wire(session, from_client, message, None, blobs, &mut line).ok()?;
    Some(line)
}

/// A server's line and what the client answered to it.
type Answered<'a> = (&'a [u8], Option<&'a [u8]>);

/// The printer: any lines, printed as a cassette, come back from it. A line's first byte says what it is: `s` a
/// server's, `a` the client's answer to it, any other the first of an exchange.
pub fn print(bytes: &[u8]) {
    let mut guess = SpellingGuess::new();
    let mut exchanges: Vec<(&[u8], Vec<Answered<'_>>)> = Vec::new();
    for line in bytes.split(|byte| *byte == b'\n') {
        let Some((&kind, line)) = line.split_first() else { continue };
        match (kind, exchanges.last_mut()) {
            (b's', Some((_, server))) => {
                guess.observe(Direction::ToClient, &jsonrpc::Message::read(line));
                server.push((line, None));
            }
            (b'a', Some((_, server))) if server.last().is_some_and(waits) => {
                guess.observe(Direction::ToServer, &jsonrpc::Message::read(line));
                server.last_mut().expect("just seen").1 = Some(line);
            }
            _ => {
                guess.observe(Direction::ToServer, &jsonrpc::Message::read(line));
                exchanges.push((line, Vec::new()));
            }
        }
    }
    let spelling = guess.finish();
    let session = SessionDraft { number: 1, spelling: spelling.clone(), ..SessionDraft::default() };
    let (mut printer, mut keys, mut blobs) = (Printer::new(), Keys::new(), Blobs::default());
    let mut text = b"{\n  \"cassette\": 1,\n  \"sessions\": [\n".to_vec();
    printer.session(&session, &mut text);
    text.extend_from_slice(b"\n  ],\n  \"exchanges\": [");
    for (n, (client, server)) in exchanges.iter().enumerate() {
        text.extend_from_slice(if n == 0 { b"\n" } else { b",\n" });
        let draft = ExchangeDraft {
            key: keys.next(&key::of_client(&jsonrpc::Message::read(client))).into(),
            session: 1,
            journal: None,
            spelling: &spelling,
            after: None,
            client: Some(MessageDraft::new(*client)),
            body: None,
            http: None,
            server: server.iter().map(|&(line, answer)| item(line, answer)).collect(),
            unanswered: None,
            extra: Vec::new(),
        };
        printer.exchange(&draft, &mut blobs, &mut text).expect("these blobs take everything");
    }
    text.extend_from_slice(if exchanges.is_empty() { b"]\n}\n" } else { b"\n  ]\n}\n" });
    let shown = show(&text);
    let cassette =
        Cassette::load(text, &blobs).unwrap_or_else(|error| panic!("{}:{error}\n{shown}", error.line));
    assert_eq!(show(&format(&cassette)), shown, "a recording is formatted");
    for (exchange, (client, server)) in cassette.exchanges.iter().zip(exchanges) {
        let lines = server.into_iter().flat_map(|(line, answer)| [line].into_iter().chain(answer));
        let lines: Vec<_> = [client].into_iter().chain(lines).map(show).collect();
        let found = messages(exchange).map(|message| wire(&cassette, 0, message, &blobs));
        let found: Vec<_> = found.map(|line| show(&line.expect("it was printed from a line"))).collect();
        assert_eq!(found, lines, "{shown}");
    }
}

/// Whether it is a request without an answer.
fn waits(&(line, answer): &Answered<'_>) -> bool {
    answer.is_none() && jsonrpc::Message::read(line).kind == Kind::Request
}

fn item<'a>(line: &'a [u8], answer: Option<&'a [u8]>) -> ItemDraft<'a> {
    let answer = answer.map(|line| AnswerDraft {
        after_ms: 0,
        after: None,
        http: None,
        message: MessageDraft::new(line),
    });
    ItemDraft {
        after_ms: 0,
        after: None,
        guess: false,
        on: None,
        sse: None,
        message: MessageDraft::new(line),
        answer,
    }
}

/// The reader of journals: what it gives stands where it says, and recovery loses nothing that is whole. The bytes
/// are a journal, and what follows a journal's header.
pub fn journal(bytes: &[u8]) {
    read_journal(bytes);
    let mut file = Encoder::new(&JournalHeader::default()).bytes;
    file.extend_from_slice(bytes);
    read_journal(&file);
}

fn read_journal(bytes: &[u8]) {
    let mut whole = 0;
    if let Ok(mut reader) = JournalReader::new(bytes) {
        while let Ok(Some((place, entry))) = reader.next() {
            let frame = &bytes[place.at as usize..][..place.len as usize];
            assert_eq!(journal::decode(frame), Some(entry));
            whole += 1;
        }
    }
    if let Ok(mut reader) = JournalReader::recover(|| bytes, JournalHeader::default()) {
        let mut recovered = 0;
        while let Ok(Some((_, entry))) = reader.next() {
            recovered += usize::from(!matches!(entry, Entry::Lost(_)));
        }
        assert!(recovered >= whole, "{recovered} of {whole}");
        let end = |damage: &Damage| match *damage {
            Damage::Bytes(loss) | Damage::Header(loss) | Damage::Displaced(loss) => loss.at + loss.bytes,
            Damage::Missing { at, .. } => at,
        };
        assert!(reader.losses().iter().all(|damage| end(damage) <= bytes.len() as u64));
    }
    let _ = journal::decode(bytes);
}

/// Keys and references: what is written is read again. Two keys, one a line.
pub fn keys(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (key, other) = text.split_once('\n').unwrap_or((text, ""));
    let find = |text: &str| [key, other].iter().position(|known| *known == text).map(|at| at as u32);
    for moment in [Moment::Client, Moment::Item(0), Moment::Item(u32::MAX - 1), Moment::Answer(6)] {
        let reference = key::reference(key, moment);
        // The other key may look like a reference to this one: then it is meant.
        if find(&reference).is_none_or(|at| at == 0) {
            assert_eq!(
                key::parse_reference(&reference, find),
                Some(Ref { exchange: 0, moment }),
                "{reference:?}"
            );
        }
    }
    let _ = (key::parse_reference(text, |_| None), key::split_selector(text));
    let quoted = key::quoted(key);
    assert!(!quoted.is_empty() && quoted.chars().all(|char| char >= ' '));
    let mut keys = Keys::new();
    keys.take(key);
    keys.take(other);
    let mut seen = vec![key.to_owned(), other.to_owned()];
    for prefix in [key, other, &quoted, key.rsplit_once(" @").map_or("", |(prefix, _)| prefix)] {
        let next = keys.next(prefix);
        assert!(!seen.contains(&next), "{next:?} is taken");
        seen.push(next);
    }
}

fn show(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string().replace("\\n", "\n")
}
