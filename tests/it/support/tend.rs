//! Tends a run over a raw socket; each answer is held against the document that `tapedeck schema admin` prints.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    time::Duration,
};

use serde_json::Value;

use crate::schema;

/// A request whose response has not been read.
pub(crate) struct Asked(TcpStream);

impl Asked {
    /// Sends a request, after which its connection closes.
    pub(crate) fn send(origin: &str, method: &str, target: &str, headers: &[&str], body: &str) -> Self {
        let address = origin.strip_prefix("http://").expect("an origin");
        let mut stream = TcpStream::connect(address).expect("it listens");
        // Only a test that fails waits so long.
        stream.set_read_timeout(Some(Duration::from_secs(90))).expect("a time");
        let host =
            if headers.iter().any(|line| line.starts_with("Host:")) { "" } else { "Host: localhost\r\n" };
        let headers: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
        let length = body.len();
        let head = format!(
            "{method} {target} HTTP/1.1\r\n{host}{headers}Connection: close\r\nContent-Length: {length}\r\n\r\n"
        );
        stream.write_all((head + body).as_bytes()).expect("it is read");
        Self(stream)
    }

    /// The connection, for whoever reads it otherwise.
    pub(crate) fn into_stream(self) -> TcpStream {
        self.0
    }

    /// The status, the head, and the body.
    pub(crate) fn answer(mut self) -> (u16, String, String) {
        let mut bytes = Vec::new();
        self.0.read_to_end(&mut bytes).expect("it comes");
        let text = String::from_utf8(bytes).expect("text");
        let (head, body) = text.split_once("\r\n\r\n").expect("a response");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        let is_chunked = head.to_lowercase().contains("transfer-encoding: chunked");
        (status, head.to_owned(), if is_chunked { joined(body) } else { body.to_owned() })
    }
}

/// A body that came in chunks.
fn joined(mut chunks: &str) -> String {
    let mut body = String::new();
    while let Some((length, rest)) = chunks.split_once("\r\n") {
        let (chunk, rest) = rest.split_at(usize::from_str_radix(length, 16).expect("a length"));
        body.push_str(chunk);
        chunks = rest.strip_prefix("\r\n").unwrap_or_default();
    }
    body
}

/// Where a run is tended.
pub(crate) struct Tend {
    pub(crate) origin: String,
    document: Value,
}

impl Tend {
    pub(crate) fn at(origin: &str) -> Self {
        Self { origin: origin.to_owned(), document: schema::printed("admin") }
    }

    /// What is told.
    #[track_caller]
    pub(crate) fn get(&self, target: &str) -> Value {
        let (status, answer) = self.ask("GET", target, "");
        assert_eq!(status, 200, "{target}: {answer}");
        answer
    }

    /// What comes of telling it.
    #[track_caller]
    pub(crate) fn post(&self, path: &str, body: &Value) -> Value {
        let (status, answer) = self.ask("POST", path, &body.to_string());
        assert_eq!(status, 200, "{path} {body}: {answer}");
        answer
    }

    /// Winds the clock.
    #[track_caller]
    pub(crate) fn advance(&self, ms: u64, when_pending: usize) -> Value {
        self.post(
            "/clock/advance",
            &serde_json::json!({"ms": ms, "when_pending": when_pending, "timeout_ms": 60_000}),
        )
    }

    /// Any request, and its answer.
    #[track_caller]
    pub(crate) fn ask(&self, method: &str, target: &str, body: &str) -> (u16, Value) {
        self.told(method, target, Asked::send(&self.origin, method, target, &[], body))
    }

    /// The answer to a request.
    #[track_caller]
    pub(crate) fn told(&self, method: &str, target: &str, asked: Asked) -> (u16, Value) {
        let (status, head, body) = asked.answer();
        assert!(head.contains("content-type: application/json"), "{head}");
        let answer: Value = serde_json::from_str(&body).expect("JSON");
        let path = target.split('?').next().expect("a path");
        let operation = &self.document["paths"][path][method.to_lowercase()];
        let mut schema = &operation["responses"][status.to_string()]["content"]["application/json"]["schema"];
        if operation.is_null() {
            schema = &self.document["components"]["schemas"]["Problem"];
        }
        assert!(!schema.is_null(), "{method} {path} may not answer {status}: {answer}");
        let faults = schema::faults_of(&self.document, schema, &answer);
        assert_eq!(faults, [""; 0], "{method} {path}: {answer}");
        (status, answer)
    }
}
