//! Tests of the text as a whole: what is written is read again, byte by byte.

mod errors;
mod properties;
mod readme;
mod roundtrip;

use super::{
    Printer,
    blob::MemoryBlobs as Blobs,
    draft::{AnswerDraft, ExchangeDraft, ItemDraft, MessageDraft, SessionDraft},
    model::Cassette,
    spelling::Spelling,
};

/// One exchange by its lines: the client's, and each item of the server with the client's answer to it.
#[derive(Clone, Debug)]
struct Lines {
    client: Option<Vec<u8>>,
    server: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

impl Lines {
    fn new(client: &str, server: &[&str]) -> Self {
        let server = server.iter().map(|line| (line.as_bytes().to_vec(), None)).collect();
        Self { client: Some(client.as_bytes().to_vec()), server }
    }
}

/// The text of a cassette with one session.
fn print(spelling: &Spelling, exchanges: &[Lines]) -> (String, Blobs) {
    let (mut printer, mut blobs) = (Printer::new(), Blobs::default());
    let mut out = b"{\n  \"cassette\": 1,\n  \"sessions\": [\n".to_vec();
    let session =
        SessionDraft { number: 1, recording: 1, spelling: spelling.clone(), ..SessionDraft::default() };
    printer.session(&session, &mut out);
    out.extend_from_slice(b"\n  ],\n  \"exchanges\": [");
    for (n, lines) in exchanges.iter().enumerate() {
        out.extend_from_slice(if n == 0 { b"\n" } else { b",\n" });
        printer.exchange(&draft(n, spelling, lines), &mut blobs, &mut out).unwrap();
    }
    out.extend_from_slice(if exchanges.is_empty() { b"]\n}\n" } else { b"\n  ]\n}\n" });
    (String::from_utf8(out).unwrap(), blobs)
}

fn draft<'a>(n: usize, spelling: &'a Spelling, lines: &'a Lines) -> ExchangeDraft<'a> {
    let item = |(line, answer): &'a (Vec<u8>, Option<Vec<u8>>)| ItemDraft {
        after_ms: 0,
        after: None,
        guess: false,
        on: None,
        sse: None,
        message: MessageDraft::new(&line[..]),
        answer: answer.as_ref().map(|line| AnswerDraft {
            after_ms: 0,
            after: None,
            http: None,
            message: MessageDraft::new(&line[..]),
        }),
    };
    ExchangeDraft {
        key: format!("x @{}", n + 1).into(),
        session: 1,
        journal: None,
        spelling,
        after: None,
        client: lines.client.as_ref().map(|line| MessageDraft::new(&line[..])),
        body: None,
        http: None,
        server: lines.server.iter().map(item).collect(),
        unanswered: None,
        extra: Vec::new(),
    }
}

/// The lines of every exchange of a cassette.
fn lines(cassette: &Cassette, blobs: &Blobs) -> Vec<Lines> {
    let wire = |from_client, message| {
        let mut line = Vec::new();
        cassette.wire(0, from_client, message, None, blobs, &mut line).unwrap();
        line
    };
    let mut all = Vec::new();
    for exchange in &cassette.exchanges {
        let client = exchange.client.as_ref().map(|message| wire(true, message));
        let server = exchange.server.iter().map(|item| {
            (wire(false, &item.message), item.answer.as_ref().map(|answer| wire(true, &answer.message)))
        });
        all.push(Lines { client, server: server.collect() });
    }
    all
}
