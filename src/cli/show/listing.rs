//! The listing: one line an exchange.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    io::{self, Write},
};

use mcp_tapedeck::{
    cassette::model::{Cassette, End, Exchange, Form, Http, Message, Missed, Unanswered},
    store::Loaded,
    wire::{
        jsonrpc::{self, Kind},
        scan,
    },
};

use super::View;
use crate::cli::{
    failure::Failure,
    files,
    output::{counted, visible},
};

/// Longer keys than this stand out of their column.
const KEY_COLUMN: usize = 60;

/// So much of a last line is shown.
const SHOWN: usize = 80;

/// Writes the sessions and exchanges that a view shows.
pub(super) fn list(loaded: &Loaded, view: &View, out: &mut dyn Write) -> Result<(), Failure> {
    let rows = rows(loaded, view)?;
    let width = rows.iter().map(|row| row.key.chars().count()).max().unwrap_or_default().min(KEY_COLUMN);
    let mut headed = None;
    for row in &rows {
        if !view.json && headed != Some(row.session) {
            headed = Some(row.session);
            writeln!(out, "{}", Heading::of(&loaded.cassette, row.session)).map_err(Failure::output)?;
        }
        row.write(width, view, None, out).map_err(Failure::output)?;
    }
    // One of which nothing but a gap is recorded is told as well.
    let is_empty =
        |at: usize| loaded.cassette.exchanges.iter().all(|exchange| exchange.session as usize != at);
    for (at, session) in loaded.cassette.sessions.iter().enumerate() {
        let is_shown =
            !view.json && view.method.is_none() && view.session.is_none_or(|wanted| wanted == session.number);
        if is_shown && session.gap > 0 && is_empty(at) {
            writeln!(out, "{}", Heading::of(&loaded.cassette, at)).map_err(Failure::output)?;
        }
    }
    Ok(())
}

/// The lines of a listing, in file order.
pub(super) fn rows(loaded: &Loaded, view: &View) -> Result<Vec<Row>, Failure> {
    let rows = loaded.cassette.exchanges.iter().map(|exchange| Row::of(loaded, exchange));
    let is_shown = |row: &Result<Row, Failure>| row.as_ref().map_or(true, |row| row.is_in(view));
    rows.filter(is_shown).collect()
}

/// What a session is whatever its number: the journal it is from, and which of that journal's sessions.
pub(super) type Origin = (Option<String>, usize);

/// Those of all sessions.
pub(super) fn origins(loaded: &Loaded) -> Vec<Origin> {
    let mut seen = HashMap::new();
    let sessions = loaded.cassette.sessions.iter();
    let origin = sessions.map(|session| {
        let count = seen.entry(session.journal.as_deref()).or_default();
        *count += 1;
        (session.journal.clone(), *count)
    });
    origin.collect()
}

/// One exchange in a few words.
#[derive(Debug)]
pub(super) struct Row {
    key: String,
    /// Its session's place, and its number.
    session: usize,
    number: u32,
    method: String,
    outcome: String,
    ms: u64,
}

impl Row {
    fn of(loaded: &Loaded, exchange: &Exchange) -> Result<Self, Failure> {
        let waits = exchange.server.iter().map(|item| {
            let answer = item.answer.as_ref().map_or(0, |answer| answer.after_ms);
            u64::from(item.after_ms) + u64::from(answer)
        });
        let session = exchange.session as usize;
        Ok(Self {
            key: exchange.key.to_string(),
            session,
            number: loaded.cassette.sessions[session].number,
            method: method(loaded, exchange)?,
            outcome: outcome(loaded, exchange)?,
            ms: waits.sum(),
        })
    }

    /// The exchange's key but for which of those that it is.
    pub(super) fn asked(&self) -> &str {
        self.key.rsplit_once(" @").map_or(&self.key, |(asked, _)| asked)
    }

    /// What a view shows beside the key; never empty.
    pub(super) fn told(&self, view: &View) -> String {
        let ms = if view.time || view.json { self.ms } else { 0 };
        format!("{ms} {}", self.outcome)
    }

    /// The place of its session.
    pub(super) const fn session(&self) -> usize {
        self.session
    }

    fn is_in(&self, view: &View) -> bool {
        let is_method = view.method.as_deref().is_none_or(|wanted| match wanted.strip_suffix('*') {
            Some(beginning) => self.method.starts_with(beginning),
            None => self.method == wanted,
        });
        is_method && view.session.is_none_or(|wanted| wanted == self.number)
    }

    /// Writes the line; `live` is there while it is watched.
    pub(super) fn write(
        &self,
        width: usize,
        view: &View,
        live: Option<&Live<'_>>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        if view.json {
            return self.write_json(live, out);
        }
        let key = if live.is_some_and(|live| live.shares_keys) { self.asked() } else { &self.key };
        let line = format!("  {:<width$}  {}", visible(key), visible(&self.outcome));
        if view.time && self.ms > 0 {
            writeln!(out, "{line:<90}  {} ms", self.ms)
        } else {
            writeln!(out, "{}", line.trim_end())
        }
    }

    fn write_json(&self, live: Option<&Live<'_>>, out: &mut dyn Write) -> io::Result<()> {
        let mut line = Vec::new();
        for (name, text) in
            [("{\"key\":", &self.key), (",\"method\":", &self.method), (",\"outcome\":", &self.outcome)]
        {
            line.extend_from_slice(name.as_bytes());
            scan::push_string(text, &mut line);
        }
        write!(line, ",\"session\":{},\"ms\":{}", self.number, self.ms)?;
        if let Some(Live { journal, is_final, .. }) = live {
            line.extend_from_slice(b",\"journal\":");
            scan::push_string(journal, &mut line);
            write!(line, ",\"final\":{is_final}")?;
        }
        line.extend_from_slice(b"}\n");
        out.write_all(&line)
    }
}

/// The method an exchange begins with; empty where that is no request or notification.
fn method(loaded: &Loaded, exchange: &Exchange) -> Result<String, Failure> {
    let pushed = exchange.server.first().map(|item| &item.message);
    let first = exchange.client.as_ref().or(pushed).filter(|first| first.form != Form::Omitted);
    let mut wire = Vec::new();
    if let Some(first) = first {
        let from_client = exchange.client.is_some();
        let written =
            loaded.cassette.wire(exchange.session, from_client, first, None, &loaded.blobs, &mut wire);
        written.map_err(|error| files::fault(loaded, &error))?;
    }
    Ok(jsonrpc::Message::read(&wire).method().into_owned())
}

/// What came of an exchange: the items beside the answer by kind, then the answer.
fn outcome(loaded: &Loaded, exchange: &Exchange) -> Result<String, Failure> {
    let mut beside = BTreeMap::<_, u64>::new();
    let mut answers = Vec::new();
    for item in &exchange.server {
        match item.message.kind {
            Kind::Result | Kind::Error => answers.push(answer(loaded, exchange, &item.message)?),
            Kind::Request => *beside.entry(Form::Request.word()).or_default() += 1,
            Kind::Notification => *beside.entry(Form::Notification.word()).or_default() += 1,
            Kind::Batch => *beside.entry(Form::Batch.word()).or_default() += 1,
            Kind::Noise => *beside.entry(item.message.form.word()).or_default() += 1,
        }
    }
    let beside = beside.into_iter().map(|(word, count)| match word {
        "raw" | "base64" => counted(count, "raw line", "raw lines"),
        "omitted" => counted(count, "omitted message", "omitted messages"),
        "body" => counted(count, "other text", "other texts"),
        "batch" => counted(count, "batch", "batches"),
        word => counted(count, word, &format!("{word}s")),
    });
    let missing = unanswered(loaded, exchange);
    let http = exchange.http.as_deref().map(carried).unwrap_or_default();
    let parts: Vec<_> = http.into_iter().chain(beside).chain(answers).chain(missing).collect();
    Ok(parts.join(", "))
}

/// Why an exchange has no answer; while its session is being recorded, one may still come.
pub(super) fn unanswered(loaded: &Loaded, exchange: &Exchange) -> Option<String> {
    let at = exchange.session as usize;
    let cassette = &loaded.cassette;
    let session = &cassette.sessions[at];
    let is_request = || exchange.client.as_ref().is_some_and(|client| client.kind == Kind::Request);
    let has_ended = || session.end.as_ref().is_some_and(End::is_by_itself) && is_request();
    match exchange.unanswered {
        Some(Unanswered::Lost) if loaded.is_alive(at) && cassette.missed(exchange.session).is_none() => {
            Some("waiting for the answer".to_owned())
        }
        Some(why) => Some(format!("no answer: {}", why.word())),
        None if exchange.server.is_empty() && exchange.http.is_none() && has_ended() => {
            Some("no answer: the server ended".to_owned())
        }
        None => None,
    }
}

/// What of an exchange's HTTP is not as usual, in a few words.
fn carried(http: &Http) -> Vec<String> {
    let status = http.status.map(|status| format!("HTTP {status}"));
    let resumed = http.request.iter().any(|header| &*header.name == "last-event-id");
    let end = http.end.map(|end| end.word().to_owned());
    let resumed = resumed.then(|| "goes on with a stream".to_owned());
    status.into_iter().chain(resumed).chain(end).collect()
}

fn answer(loaded: &Loaded, exchange: &Exchange, message: &Message) -> Result<String, Failure> {
    let (cassette, mut text) = (&loaded.cassette, Vec::new());
    // Where the form is the answer, it need not be rebuilt.
    let value = if matches!(message.form, Form::Raw | Form::Base64) {
        let written = cassette.wire(exchange.session, false, message, None, &loaded.blobs, &mut text);
        written.map_err(|error| files::fault(loaded, &error))?;
        jsonrpc::Message::read(&text).outcome().unwrap_or_default()
    } else {
        let expanded = cassette.expand(message.place, &loaded.blobs, &mut text);
        expanded.map_err(|error| files::fault(loaded, &error))?;
        &text
    };
    let member = |name| scan::member(value, 0, name).map(|span| span.of(value));
    Ok(match message.kind {
        Kind::Error => {
            let code = member("code").map(String::from_utf8_lossy).unwrap_or_default();
            let text = member("message").map(jsonrpc::text).unwrap_or_default();
            format!("error {code}: {text}")
        }
        _ if member("isError") == Some(b"true") => "result with isError".to_owned(),
        _ => "result".to_owned(),
    })
}

/// What is told besides of a line that is watched.
#[derive(Clone, Copy)]
pub(super) struct Live<'a> {
    /// The journal of its session, which keeps its name when numbers change.
    pub(super) journal: &'a str,
    /// Whether session and key stay what they are: the recorder has ended.
    pub(super) is_final: bool,
    /// Whether other recorders run whose exchanges are counted with its own, so that its number says nothing yet.
    pub(super) shares_keys: bool,
}

/// A session's first line.
pub(super) struct Heading<'a> {
    cassette: &'a Cassette,
    at: usize,
    live: Option<Live<'a>>,
}

impl<'a> Heading<'a> {
    pub(super) const fn of(cassette: &'a Cassette, at: usize) -> Self {
        Self { cassette, at, live: None }
    }

    /// That of a session that is watched.
    pub(super) const fn live(cassette: &'a Cassette, at: usize, live: Option<Live<'a>>) -> Self {
        Self { live, ..Self::of(cassette, at) }
    }
}

impl fmt::Display for Heading<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cassette, at, live } = *self;
        let session = &cassette.sessions[at];
        write!(f, "session {}", session.number)?;
        if session.recording != session.number {
            write!(f, " of recording {}", session.recording)?;
        }
        if let Some(Live { journal, is_final, .. }) = live {
            write!(f, " (journal {}{})", visible(journal), if is_final { "" } else { ", still recorded" })?;
        }
        let peers = match (&session.client, &session.server) {
            (Some(client), Some(server)) => Some(format!("{client} -> {server}")),
            (Some(peer), None) | (None, Some(peer)) => Some(peer.clone()),
            (None, None) => None,
        };
        let parts = [session.transport.clone(), session.protocol.clone(), peers, session.at.clone()];
        let parts: Vec<_> = parts.into_iter().flatten().collect();
        write!(f, ": {}", visible(&parts.join(", ")))?;
        if let Some(Missed { messages, is_shared }) = cassette.missed(at as u32) {
            let whose = if is_shared { ", here or beside it" } else { "" };
            write!(f, " ({} not recorded{whose})", counted(messages, "message was", "messages were"))?;
        }
        match session.end.as_ref().map(|end| (end.exit, end.signal)) {
            Some((Some(status), _)) => write!(f, ", the server ended with status {status}")?,
            Some((None, Some(signal))) => write!(f, ", signal {signal} ended the server")?,
            Some((None, None)) | None => {}
        }
        match session.end.as_ref().and_then(|end| end.partial.as_deref()) {
            Some(last) => {
                let last: String = String::from_utf8_lossy(last).chars().take(SHOWN).collect();
                write!(f, ", the server's last line has no end: {}", visible(&last))
            }
            None => Ok(()),
        }
    }
}
