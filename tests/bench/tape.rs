//! Cassettes made from a template.

use std::{fmt::Write as _, path::Path};

use crate::peers::{INITIALIZE, push_params, push_result};

/// A cassette of one session: the handshake and these calls, each answered with so much text.
pub(crate) fn cassette(answers: impl IntoIterator<Item = usize>) -> String {
    let mut text = String::from(HEAD);
    let _ = write!(
        text,
        "{INITIALIZE}}}}},\n      \"server\": [{{\"result\": {SERVER}}}]\n    }},\n    {INITIALIZED}"
    );
    for (call, size) in answers.into_iter().enumerate() {
        let (mut params, mut result) = (Vec::new(), Vec::new());
        push_params(call, |_, _| (), &mut params);
        push_result(call, size, &mut result);
        let (params, result) = (String::from_utf8_lossy(&params), String::from_utf8_lossy(&result));
        let number = call + 1;
        let _ = write!(
            text,
            ",\n    {{\n      \"key\": \"tools/call search @{number}\",\n      \"client\": {{\"request\": {{\"method\": \
             \"tools/call\", \"params\": {params}}}}},\n      \"server\": [{{\"after_ms\": 1, \"result\": {result}}}]\n    }}",
        );
    }
    text.push_str("\n  ]\n}\n");
    text
}

const HEAD: &str = r#"{
  "cassette": 1,
  "sessions": [
    {
      "session": 1, "recording": 1, "at": "2026-11-27T22:40:01Z", "by": "mcp-tapedeck 0.1.0",
      "transport": "stdio", "protocol": "2025-11-25", "client": "bench", "server": "line server 1"
    }
  ],
  "exchanges": [
    {
      "key": "initialize @1",
      "client": {"request": {"method": "initialize", "params": "#;

const SERVER: &str = r#"{"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "line server", "version": "1"}}"#;

const INITIALIZED: &str = r#"{"key": "notifications/initialized @1", "client": {"notification": {"method": "notifications/initialized"}}, "server": []}"#;

/// Writes such a cassette; its size.
pub(crate) fn write(path: &Path, answers: impl IntoIterator<Item = usize>) -> usize {
    let text = cassette(answers);
    fs_err::write(path, &text).expect("the target folder can be written");
    text.len()
}

/// What fills a cassette of 10 MB.
pub(crate) const KINDS: [(&str, usize); 3] = [
    ("10 MB of small exchanges", 120),
    ("10 MB of exchanges of 1 kB", 700),
    ("10 MB in few big answers", 512 << 10),
];

/// As many answers of this size as fill 10 MB.
pub(crate) fn answers(size: usize) -> impl Iterator<Item = usize> {
    let one = cassette([size, size]).len() - cassette([size]).len();
    std::iter::repeat_n(size, 10_000_000 / one)
}

/// What is written is a cassette of the size that was asked for.
pub(crate) fn self_check() {
    let text = cassette(answers(100_000));
    assert!((9_500_000..10_500_000).contains(&text.len()), "{}", text.len());
    serde_json::from_str::<serde::de::IgnoredAny>(&text).expect("a cassette is JSON");
}
