//! From a payload's wire JSON to the text that stands in the file: long texts become markers.
//!
//! A marker is used only where writing it out gives the same raw text again. `$json` inside `$json` is followed with a
//! stack of frames.

use std::{borrow::Cow, io};

use base64::{Engine, engine::general_purpose::STANDARD};

use super::{
    blob::{self, BlobSource},
    expand::{DEEPEST_JSON, may_hold_markers},
    reader::Reader,
    spacing::Spacing,
};
use crate::wire::{Span, scan};

/// Longer strings (raw, without quotes) stand in a blob.
const LONGEST_TEXT: usize = 64 << 10;

/// Longer base64 stands in a blob.
const LONGEST_BASE64: usize = 4 << 10;

/// Blobs of a message that is being written, kept back until it is sure to be written that way.
#[derive(Debug, Default)]
pub(super) struct PendingBlobs(pub(super) Vec<(String, Vec<u8>)>);

impl BlobSource for PendingBlobs {
    fn get(&self, name: &str) -> io::Result<Vec<u8>> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, bytes)| bytes.clone()).ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

/// A JSON text being written: the payload itself, or the inside of a string.
struct Frame<'a> {
    text: Cow<'a, [u8]>,
    at: usize,
    /// Objects that look like markers and are none, the first last.
    alike: Vec<Span>,
    /// What ends the frame.
    ending: String,
}

/// A string's text, which is JSON in this spacing.
struct Json {
    text: Vec<u8>,
    spacing: Spacing,
}

/// Appends `payload`, which is strict JSON.
pub(super) fn push_payload(payload: &[u8], blobs: &mut PendingBlobs, out: &mut Vec<u8>) {
    let mut frames = vec![Frame::new(Cow::Borrowed(payload), String::new())];
    loop {
        let may_nest = frames.len() <= DEEPEST_JSON;
        let Some(frame) = frames.last_mut() else { return };
        if let Some(json) = frame.run(may_nest, blobs, out) {
            out.extend_from_slice(b"{\"$json\":");
            let ending = match json.spacing {
                Spacing::Compact => "}".into(),
                Spacing::Spaced => ",\"$indent\":\"spaced\"}".into(),
                Spacing::Indent(spaces) => format!(",\"$indent\":{spaces}}}"),
            };
            frames.push(Frame::new(Cow::Owned(json.text), ending));
        } else {
            out.extend_from_slice(frame.ending.as_bytes());
            frames.pop();
        }
    }
}

impl<'a> Frame<'a> {
    fn new(text: Cow<'a, [u8]>, ending: String) -> Self {
        let mut alike = Vec::new();
        if may_hold_markers(&text) {
            let mut reader = Reader::new(&text, 0);
            if reader.value().is_ok() {
                // What stands inside one of these is copied along with it.
                let mut end = 0;
                for found in &reader.markers {
                    if found.span.start >= end {
                        alike.push(found.span);
                        end = found.span.end;
                    }
                }
            }
        }
        alike.reverse();
        Self { text, at: 0, alike, ending }
    }

    /// Writes on up to the end, or up to a string whose text is to be written next.
    fn run(&mut self, may_nest: bool, blobs: &mut PendingBlobs, out: &mut Vec<u8>) -> Option<Json> {
        // What stands as it shall is taken over in one piece.
        let mut from = self.at;
        while let Some(&byte) = self.text.get(self.at) {
            let start = self.at;
            match byte {
                b'"' => {
                    self.at = scan::skip_value(&self.text, start).unwrap_or(self.text.len());
                    let raw = &self.text[start..self.at];
                    let is_name = self.text.get(scan::skip_space(&self.text, self.at)) == Some(&b':');
                    if is_name || !may_be_marked(raw) {
                        continue;
                    }
                    out.extend_from_slice(&self.text[from..start]);
                    from = self.at;
                    if !push_blob(raw, blobs, out) {
                        if let Some(json) = Some(raw).filter(|_| may_nest).and_then(json_text) {
                            return Some(json);
                        }
                        push_lines(raw, out);
                    }
                }
                b'{' if self.alike.last().is_some_and(|span| span.start == start) => {
                    out.extend_from_slice(&self.text[from..start]);
                    self.at = self.alike.pop().map_or(self.at, |span| span.end);
                    out.extend_from_slice(b"{\"$literal\":");
                    out.extend_from_slice(&self.text[start..self.at]);
                    out.push(b'}');
                    from = self.at;
                }
                _ => self.at += 1,
            }
        }
        out.extend_from_slice(&self.text[from..]);
        None
    }
}

/// Whether a string might become a marker: it is long, may be JSON, or has an escape, as each line end is one.
fn may_be_marked(raw: &[u8]) -> bool {
    raw.len() > LONGEST_BASE64
        || matches!(raw.get(1), Some(b'{' | b'['))
        || memchr::memchr(b'\\', raw).is_some()
}

/// Appends a string as a blob; false where it is not one for a blob.
fn push_blob(raw: &[u8], blobs: &mut PendingBlobs, out: &mut Vec<u8>) -> bool {
    let inside = &raw[1..raw.len() - 1];
    let (kind, bytes) = if let Some(bytes) = base64_bytes(inside) {
        (blob::Kind::Base64, bytes)
    } else if inside.len() > LONGEST_TEXT
        && let Some(text) = plain_text(raw)
    {
        (blob::Kind::Text, text)
    } else {
        return false;
    };
    let name = blob::name(kind, &bytes);
    out.extend_from_slice(b"{\"$blob\":\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\"}");
    if !blobs.0.iter().any(|(known, _)| *known == name) {
        blobs.0.push((name, bytes));
    }
    true
}

/// What a long base64 string decodes to, if encoding that gives the string again.
fn base64_bytes(inside: &[u8]) -> Option<Vec<u8>> {
    let is_likely = inside.len() > LONGEST_BASE64 && inside.len().is_multiple_of(4);
    let bytes = STANDARD.decode(Some(inside).filter(|_| is_likely)?).ok()?;
    (STANDARD.encode(&bytes).as_bytes() == inside).then_some(bytes)
}

/// A string's text, if it is UTF-8 and escaping it gives the raw string again.
fn plain_text(raw: &[u8]) -> Option<Vec<u8>> {
    let text = scan::unescape(raw);
    let mut again = Vec::with_capacity(raw.len());
    scan::push_string(std::str::from_utf8(&text).ok()?, &mut again);
    (again == raw).then(|| text.into_owned())
}

/// The text of a string that is an object or array in JSON.
fn json_text(raw: &[u8]) -> Option<Json> {
    if !matches!((raw.get(1)?, raw.get(raw.len() - 2)?), (b'{', b'}') | (b'[', b']')) {
        return None;
    }
    let text = plain_text(raw).filter(|text| scan::is_json(text))?;
    let spaces =
        text[1..].strip_prefix(b"\n").map(|rest| rest.iter().take_while(|byte| **byte == b' ').count());
    let spacing = match spaces {
        Some(spaces @ 0..=16) => Spacing::Indent(spaces as u8),
        Some(_) => return None,
        None if Spacing::Compact.gives(&text, &text) => Spacing::Compact,
        None => Spacing::Spaced,
    };
    spacing.gives(&text, &text).then_some(Json { text, spacing })
}

/// Appends a string: a text of several lines as one string for each, any other as it stands.
fn push_lines(raw: &[u8], out: &mut Vec<u8>) {
    let inside = &raw[1..raw.len() - 1];
    let (mut line_start, mut at, mut lines) = (0, 0, 0);
    while let Some(escape) = memchr::memchr(b'\\', &inside[at..]) {
        let escape = at + escape;
        at = (escape + 2).min(inside.len());
        // A line end at the end of the text alone does not make it a text of several lines.
        if inside.get(escape + 1) == Some(&b'n') && (lines > 0 || at < inside.len()) {
            out.extend_from_slice(if lines == 0 { b"{\"$lines\":[\"" } else { b"\",\"" });
            out.extend_from_slice(&inside[line_start..escape]);
            line_start = at;
            lines += 1;
        }
    }
    if lines == 0 {
        out.extend_from_slice(raw);
        return;
    }
    out.extend_from_slice(b"\",\"");
    out.extend_from_slice(&inside[line_start..]);
    out.extend_from_slice(b"\"]}");
}
