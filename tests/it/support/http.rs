//! Raw peers on HTTP: what they say and hear byte by byte, and what was recorded of it.

use std::{
    io::{ErrorKind, Read, Write},
    net::TcpStream,
    sync::{Arc, Mutex},
    time::Duration,
};

use mcp_tapedeck::{
    Recorder,
    cassette::{blob::MemoryBlobs, journal::JournalHeader},
    proxy::record::Sink,
    traffic::{Direction, Event, Headers, Payload},
};
use rustix::net::sockopt::set_socket_linger;

pub(crate) const CALL: &str = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a"}}"#;
pub(crate) const ANSWER: &str = r#"{"jsonrpc":"2.0","id":7,"result":{}}"#;

/// Keeps what was recorded, a line each, and as a recording.
#[derive(Clone)]
pub(crate) struct Lines(pub(crate) Arc<Mutex<Vec<String>>>, Arc<Mutex<Recorder>>);

impl Lines {
    pub(crate) fn new(transport: &str) -> Self {
        let header = JournalHeader { transport: transport.to_owned(), ..JournalHeader::default() };
        Self(Arc::default(), Arc::new(Mutex::new(Recorder::new(header))))
    }

    /// The cassette that it makes.
    pub(crate) fn cassette(self) -> String {
        let recorder = Arc::into_inner(self.1).expect("nobody records any more").into_inner().unwrap();
        String::from_utf8(recorder.finish(None, &mut MemoryBlobs::default()).unwrap()).unwrap()
    }
}

impl Sink for Lines {
    fn write(&mut self, events: &[Event<'_>]) -> std::io::Result<()> {
        let mut recorder = self.1.lock().unwrap();
        events.iter().for_each(|event| recorder.event(event));
        self.0.lock().unwrap().extend(events.iter().map(line));
        Ok(())
    }
}

fn line(event: &Event<'_>) -> String {
    let arrow = if event.direction == Direction::ToServer { '>' } else { '<' };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let headers = |headers: &Headers<'_>| {
        headers.iter().map(|(name, value)| format!(" {}={}", text(name), text(value))).collect::<String>()
    };
    let what = match &event.payload {
        Payload::Request(head) => {
            format!("{} {}{}", text(&head.method), text(&head.target), headers(&head.headers))
        }
        Payload::Response(head) => format!("{}{}", head.status, headers(&head.headers)),
        Payload::Message(bytes) => format!("message {}", text(bytes)),
        Payload::Body(bytes) => format!("body {}", text(bytes)),
        Payload::Partial(bytes) => format!("partial {}", text(bytes)),
        Payload::Oversize(measured) => format!("oversize {}", measured.size),
        Payload::SseEvent(event) => format!("event {}", text(&event.data)),
        Payload::Closed => "closed".to_owned(),
        Payload::Broken { reset } => (if *reset { "reset" } else { "cut" }).to_owned(),
        payload => format!("{payload:?}"),
    };
    format!("{} {arrow} {what}", event.lane.0)
}

pub(crate) struct Peer(pub(crate) TcpStream);

impl Peer {
    pub(crate) fn new(stream: TcpStream) -> Self {
        // Only a test that fails waits so long.
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        Self(stream)
    }

    pub(crate) fn say(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.write_all(bytes.as_ref()).unwrap();
    }

    /// The next bytes are these.
    #[track_caller]
    pub(crate) fn hears(&mut self, expected: impl AsRef<[u8]>) {
        let expected = expected.as_ref();
        let mut heard = Vec::new();
        while heard.len() < expected.len() {
            let mut room = vec![0; expected.len() - heard.len()];
            let length = self.0.read(&mut room).unwrap_or(0);
            heard.extend_from_slice(&room[..length]);
            if length == 0 {
                break;
            }
        }
        assert_eq!(String::from_utf8_lossy(&heard), String::from_utf8_lossy(expected));
    }

    /// All bytes up to the end, and whether that was a reset.
    pub(crate) fn rest(&mut self) -> (String, bool) {
        let mut heard = Vec::new();
        let reset = match self.0.read_to_end(&mut heard) {
            Ok(_) => false,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::ConnectionReset);
                true
            }
        };
        (String::from_utf8_lossy(&heard).into_owned(), reset)
    }

    /// Reads on until the response, a chunked one, is whole or the connection has ended.
    pub(crate) fn rest_or_whole(&mut self) {
        let mut heard = Vec::new();
        let mut room = [0; 4096];
        while !heard.ends_with(b"\r\n0\r\n\r\n") {
            match self.0.read(&mut room) {
                Ok(length) if length > 0 => heard.extend_from_slice(&room[..length]),
                _ => return,
            }
        }
    }

    pub(crate) fn reset(self) {
        set_socket_linger(&self.0, Some(Duration::ZERO)).unwrap();
    }

    /// The head of a request, whatever stands in it.
    pub(crate) fn head(&mut self) -> String {
        self.reads_to("\r\n\r\n")
    }

    /// What comes up to the end of this.
    pub(crate) fn reads_to(&mut self, end: &str) -> String {
        let mut taken = Vec::new();
        while !taken.ends_with(end.as_bytes()) {
            let mut byte = [0];
            self.0.read_exact(&mut byte).unwrap();
            taken.push(byte[0]);
        }
        String::from_utf8_lossy(&taken).into_owned()
    }

    /// Reads a call from a client of this test.
    pub(crate) fn takes_call(&mut self) {
        self.head();
        self.hears(CALL);
    }
}

pub(crate) fn call(host: &str) -> String {
    format!("POST /mcp HTTP/1.1\r\nHost: {host}\r\nContent-Length: {}\r\n\r\n{CALL}", CALL.len())
}

pub(crate) fn json(body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

pub(crate) fn chunk(text: &str) -> String {
    format!("{:X}\r\n{text}\r\n", text.len())
}

pub(crate) const STREAM: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
