//! The check that matters most: what was on the wire comes back from the cassette, byte for byte.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use mcp_tapedeck::cassette::blob::BlobSource;
use mcp_tapedeck::cassette::format;
use mcp_tapedeck::cassette::journal::{Entry, JournalReader};
use mcp_tapedeck::cassette::model::{Cassette, EventType, Form, Item, Message, Sse};
use mcp_tapedeck::traffic::{Direction, Payload, SseEvent};

/// Lines as they were on the wire, by journal and by who sent them (the client first), in an order of their own.
type Lines = BTreeMap<(String, bool), Vec<String>>;

/// The blobs beside a cassette file.
struct Blobs(PathBuf);

impl BlobSource for Blobs {
    fn get(&self, name: &str) -> io::Result<Vec<u8>> {
        fs::read(self.0.join(name))
    }
}

/// Asserts that the cassette gives back every message of the journals that lie beside it (kept by
/// `record --keep-journal`), byte for byte, and no other; and that the file is already formatted.
pub(crate) fn assert_rebuilds(path: &Path) {
    let mut folder = path.as_os_str().to_owned();
    folder.push(".blobs");
    let blobs = Blobs(folder.into());
    let text = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let cassette = Cassette::load(text, &blobs).unwrap_or_else(|error| panic!("{}:{error}", path.display()));
    assert!(format(&cassette) == cassette.text, "{} is not formatted", path.display());

    let (recorded, rebuilt) = (journals(path), rebuilt(&cassette, &blobs));
    assert!(!recorded.is_empty(), "no journal was kept beside {}", path.display());
    for (sender, lines) in &recorded {
        let rebuilt = rebuilt.get(sender).map_or(&[][..], Vec::as_slice);
        let lost: Vec<&String> = lines.iter().filter(|line| !rebuilt.contains(line)).take(3).collect();
        let made_up: Vec<&String> = rebuilt.iter().filter(|line| !lines.contains(line)).take(3).collect();
        assert!(
            lines == rebuilt,
            "{sender:?}: on the wire only {lost:#?}, from the cassette only {made_up:#?}"
        );
    }
    assert_eq!(recorded.len(), rebuilt.len(), "a session has no journal");
}

fn journals(cassette: &Path) -> Lines {
    let mut lines = Lines::new();
    let name = cassette.file_name().expect("a cassette has a name").to_string_lossy().into_owned();
    for entry in
        fs::read_dir(cassette.parent().expect("it lies in a folder")).expect("the folder is readable")
    {
        let path = entry.expect("an entry is readable").path();
        let found = path.file_name().expect("a file has a name").to_string_lossy();
        if !found.starts_with(&name) || path.extension().is_none_or(|extension| extension != "journal") {
            continue;
        }
        let file = File::open(&path).expect("a journal is readable");
        let mut reader =
            JournalReader::new(file).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let id = reader.header().id.clone();
        while let Some((_, entry)) =
            reader.next().unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        {
            if let Entry::Event(event) = entry
                && let Payload::Message(bytes)
                | Payload::Body(bytes)
                | Payload::SseEvent(SseEvent { data: bytes, .. }) = &event.payload
                && !is_endpoint(&event.payload)
            {
                let sender = (id.clone(), event.direction == Direction::ToServer);
                lines.entry(sender).or_default().push(bytes.escape_ascii().to_string());
            }
        }
    }
    lines.values_mut().for_each(|lines| lines.sort());
    lines
}

fn is_endpoint(payload: &Payload<'_>) -> bool {
    matches!(payload, Payload::SseEvent(event) if event.event.as_deref() == Some(b"endpoint"))
}

fn rebuilt(cassette: &Cassette, blobs: &Blobs) -> Lines {
    let mut lines = Lines::new();
    for exchange in &cassette.exchanges {
        let journal = cassette.sessions[exchange.session as usize].journal.clone().unwrap_or_default();
        let mut rebuild = |from_client: bool, message: &Message| {
            if matches!(message.form, Form::Omitted | Form::Http) {
                return;
            }
            let mut line = Vec::new();
            cassette
                .wire(exchange.session, from_client, message, None, blobs, &mut line)
                .unwrap_or_else(|error| panic!("{}: {error}", exchange.key));
            lines.entry((journal.clone(), from_client)).or_default().push(line.escape_ascii().to_string());
        };
        // What came once more stands where it came first.
        for id in exchange.http.iter().flat_map(|http| &http.again) {
            let of_session = cassette.exchanges.iter().filter(|other| other.session == exchange.session);
            let mut items = of_session.flat_map(|other| &other.server);
            let is_it = |item: &&Item| item.sse.as_ref().is_some_and(|sse| sse.id.as_ref() == Some(id));
            rebuild(false, &items.find(is_it).expect("it came before").message);
        }
        if let Some(client) = &exchange.client {
            rebuild(true, client);
        }
        if let Some(body) = &exchange.body {
            rebuild(true, body);
        }
        // Session ids in it are written as such.
        let is_endpoint = |item: &&Item| {
            let named = |sse: &Sse| matches!(&sse.event, EventType::Named(name) if &**name == "endpoint");
            item.sse.as_deref().is_some_and(named)
        };
        for item in exchange.server.iter().filter(|item| !is_endpoint(item)) {
            rebuild(false, &item.message);
            if let Some(answer) = &item.answer {
                rebuild(true, &answer.message);
            }
        }
    }
    lines.values_mut().for_each(|lines| lines.sort());
    lines
}
