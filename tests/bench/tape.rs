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

/// As many small answers as fill so many bytes.
pub(crate) fn small_answers(bytes: usize) -> impl Iterator<Item = usize> {
    const SMALL: usize = 120;
    let two = cassette([SMALL, SMALL]).len() - cassette([SMALL]).len();
    std::iter::repeat_n(SMALL, bytes / two)
}

/// Few answers, half a megabyte each, that fill so many bytes.
pub(crate) fn big_answers(bytes: usize) -> impl Iterator<Item = usize> {
    const BIG: usize = 512 << 10;
    std::iter::repeat_n(BIG, bytes / BIG)
}

/// What is written is a cassette of the size that was asked for.
pub(crate) fn self_check() {
    let text = cassette(small_answers(1 << 20));
    assert!((900_000..1_200_000).contains(&text.len()), "{}", text.len());
    serde_json::from_str::<serde::de::IgnoredAny>(&text).expect("a cassette is JSON");
}
