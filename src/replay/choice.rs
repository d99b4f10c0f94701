//! Which recorded sessions are played, and who may play what of them.

use memchr::memmem::Finder;

use super::{options::Options, replayer::ReplayError, script::client_message};
use crate::{
    cassette::{
        blob::BlobSource,
        model::{Cassette, Exchange, Message, Missed},
    },
    wire::{
        jsonrpc::{self, Kind},
        revision::revision,
    },
};

/// The sessions of the recording asked for, as indexes.
pub(super) fn chosen_sessions(cassette: &Cassette, options: &Options) -> Result<Vec<u32>, ReplayError> {
    let (newest, telling) = newest(cassette);
    let wanted =
        match options.session.map(|number| cassette.sessions.iter().find(|session| session.number == number))
        {
            Some(Some(session)) => session.recording,
            _ => options.recording.or(telling).or(newest).unwrap_or(1),
        };
    let of_recording = |session: &&(u32, u32, u32)| session.1 == wanted;
    let all: Vec<(u32, u32, u32)> =
        (0..).zip(&cassette.sessions).map(|(at, session)| (at, session.recording, session.number)).collect();
    if options.recording.is_some() && !all.iter().any(|session| session.1 == wanted) {
        let mut known: Vec<u32> = all.iter().map(|session| session.1).collect();
        known.dedup();
        return Err(ReplayError::NoRecording { wanted, known });
    }
    let recording: Vec<_> = all.iter().filter(of_recording).copied().collect();
    match options.session {
        None => Ok(recording.into_iter().map(|session| session.0).collect()),
        Some(wanted) => match recording.iter().find(|session| session.2 == wanted) {
            Some(session) => Ok(vec![session.0]),
            None => Err(ReplayError::NoSession {
                wanted,
                known: recording.into_iter().map(|session| session.2).collect(),
            }),
        },
    }
}

/// The newest recording, and the newest in which a server said anything.
///
/// A recorder whose server could not be reached leaves a recording as well: it must not stand before one that can be
/// played.
fn newest(cassette: &Cassette) -> (Option<u32>, Option<u32>) {
    let recording = |exchange: &Exchange| cassette.sessions[exchange.session as usize].recording;
    let has_status = |exchange: &Exchange| exchange.http.as_ref().is_some_and(|http| http.status.is_some());
    let tells = |exchange: &&Exchange| !exchange.server.is_empty() || has_status(exchange);
    let newest = cassette.sessions.iter().map(|session| session.recording).max();
    let telling = || cassette.exchanges.iter().rev().filter(tells).map(recording);
    // It mostly stands last, and is then found at once.
    let telling = telling().find(|found| Some(*found) == newest).or_else(|| telling().max());
    (newest, telling)
}

/// That the newest recording is not the one that is played.
pub(super) fn passed_over(cassette: &Cassette, options: &Options) -> Option<String> {
    let (Some(newest), Some(telling)) = newest(cassette) else { return None };
    (options.recording.is_none() && options.session.is_none() && newest != telling).then(|| {
        format!(
            "recording {newest} has nothing that a server said, so recording {telling} is played; \
             `--recording {newest}` plays it all the same"
        )
    })
}

/// Exchanges by who may play them: the pool, and each session that begins with `initialize`.
pub(super) fn divide(
    cassette: &Cassette,
    blobs: &dyn BlobSource,
    sessions: &[u32],
) -> (Vec<u32>, Vec<(u32, Vec<u32>)>) {
    let handshakes: Vec<bool> = {
        let mut has = vec![false; cassette.sessions.len()];
        for exchange in &cassette.exchanges {
            let has = &mut has[exchange.session as usize];
            // Over HTTP one that was refused began no session.
            let began = || {
                let is_http = cassette.sessions[exchange.session as usize].is_http();
                !is_http || exchange.server.iter().any(|item| item.message.kind == Kind::Result)
            };
            *has = *has
                || ((exchange.key.starts_with("initialize ") || is_initialize(cassette, blobs, exchange))
                    && began());
        }
        has
    };
    let mut pool = Vec::new();
    let mut own: Vec<(u32, Vec<u32>)> =
        sessions.iter().filter(|&&at| handshakes[at as usize]).map(|&at| (at, Vec::new())).collect();
    let says_modern = Finder::new("io.modelcontextprotocol/protocolVersion");
    let mut bytes = Vec::new();
    for (at, exchange) in (0..).zip(&cassette.exchanges) {
        if !sessions.contains(&exchange.session) {
            continue;
        }
        let script = own.iter_mut().find(|(session, _)| *session == exchange.session);
        match script {
            // In a session of the legacy era only a probe can be modern, and only where it says so.
            Some((_, list)) => {
                let says_so = |client: &Message| says_modern.find(cassette.at(client.place)).is_some();
                let probe = exchange.client.as_ref().is_some_and(says_so)
                    && client_message(cassette, blobs, exchange, &mut bytes)
                    && jsonrpc::Message::read(&bytes).is_modern();
                if probe { pool.push(at) } else { list.push(at) }
            }
            None => pool.push(at),
        }
    }
    (pool, own)
}

/// Whether an exchange is a handshake although a person has given it a key of their own.
fn is_initialize(cassette: &Cassette, blobs: &dyn BlobSource, exchange: &Exchange) -> bool {
    let mut bytes = Vec::new();
    memchr::memmem::find(cassette.at(exchange.place), b"\"initialize\"").is_some()
        && client_message(cassette, blobs, exchange, &mut bytes)
        && jsonrpc::Message::read(&bytes).method() == "initialize"
}

pub(super) fn is_modern(cassette: &Cassette, session: u32) -> bool {
    let protocol = cassette.sessions[session as usize].protocol.as_deref();
    protocol.is_some_and(|protocol| !revision(protocol).handshake)
}

/// What is missing in sessions, a sentence each; what is missing in one of several that one process recorded is told
/// once.
pub(super) fn gaps(cassette: &Cassette, sessions: &[u32]) -> Vec<String> {
    let mut told = Vec::new();
    let mut shared: Vec<(u32, u64, Vec<u32>)> = Vec::new();
    for &at in sessions {
        let Some(Missed { messages, is_shared }) = cassette.missed(at) else { continue };
        let session = &cassette.sessions[at as usize];
        if !is_shared {
            told.push(missing(&format!("session {}", session.number), messages, ""));
            continue;
        }
        match shared.iter_mut().find(|(recording, ..)| *recording == session.recording) {
            Some((.., numbers)) => numbers.push(session.number),
            None => shared.push((session.recording, messages, vec![session.number])),
        }
    }
    for (recording, messages, numbers) in shared {
        let (them, all) = match &numbers[..] {
            [number] => ("it", format!("session {number}")),
            _ => {
                let all: Vec<_> = numbers.iter().map(u32::to_string).collect();
                ("them", format!("sessions {}", all.join(", ")))
            }
        };
        let is_told = |&at: &u32| {
            let missed = cassette.missed(at).is_some_and(|missed| !missed.is_shared);
            missed && cassette.sessions[at as usize].recording == recording
        };
        told.push(match sessions.iter().any(is_told) {
            true => format!("{all}: what is missing beside {them} may be theirs"),
            false => missing(&all, messages, &format!(" in {them} or beside {them}")),
        });
    }
    told
}

fn missing(what: &str, messages: u64, whose: &str) -> String {
    let are = if messages == 1 { "message is" } else { "messages are" };
    format!("{what}: at least {messages} {are} missing{whose}: recording failed, or its journal was damaged")
}
