//! What of HTTP stands beside messages: heads, fields of events, and bodies that are no messages.

use base64::{Engine, engine::general_purpose::STANDARD};

use super::{
    super::{
        blob::BlobSink,
        mark::{PendingBlobs, push_payload},
        model::{EventType, Form, Header, Http, On, Sse},
        rebuild::Line,
        shape::{HTTP, SSE},
        spelling::Side,
    },
    members::Members,
};
use crate::wire::{Span, scan};

/// Appends the object that holds a request's and a response's head.
pub(super) fn push_http(http: &Http, out: &mut Vec<u8>) {
    let mut members = Members::new(&HTTP, &[], out);
    members.text("path", http.path.as_deref());
    if !http.request.is_empty() {
        push_headers(&http.request, members.name("request"));
    }
    if http.auth {
        members.name("auth").extend_from_slice(b"true");
    }
    if let Some(status) = http.status {
        members.number("status", status);
    }
    if http.stream {
        members.name("stream").extend_from_slice(b"true");
    }
    if !http.headers.is_empty() {
        push_headers(&http.headers, members.name("headers"));
    }
    if !http.again.is_empty() {
        push_texts(&http.again, members.name("again"));
    }
    if http.until_delete {
        members.name("until_delete").extend_from_slice(b"true");
    }
    members.text("end", http.end.map(|end| end.word()));
    if let Some(partial) = &http.partial {
        members.bytes("partial", "partial_base64", partial);
    }
    members.finish();
}

fn push_headers(headers: &[Header], out: &mut Vec<u8>) {
    let mut members = Members::begin(out);
    for Header { name, values } in headers {
        let out = members.name(name);
        // Bytes are written as the characters that they are in ISO-8859-1.
        let push = |value: &[u8], out: &mut Vec<u8>| {
            scan::push_string(&value.iter().copied().map(char::from).collect::<String>(), out);
        };
        if let [value] = &values[..] {
            push(value, out);
            continue;
        }
        push_list(values, out, |value, out| push(value, out));
    }
    members.finish();
}

fn push_texts(texts: &[Box<str>], out: &mut Vec<u8>) {
    push_list(texts, out, |text, out| scan::push_string(text, out));
}

fn push_list<T>(values: &[T], out: &mut Vec<u8>, push: impl Fn(&T, &mut Vec<u8>)) {
    out.push(b'[');
    for (n, value) in values.iter().enumerate() {
        if n > 0 {
            out.push(b',');
        }
        push(value, out);
    }
    out.push(b']');
}

/// Appends `on` and `sse` of an item, each with a comma behind it.
pub(super) fn push_stream(on: Option<On>, sse: Option<&Sse>, out: &mut Vec<u8>) {
    if let Some(on) = on {
        out.extend_from_slice(b"\"on\":");
        scan::push_string(on.word(), out);
        out.push(b',');
    }
    let Some(sse) = sse else { return };
    out.extend_from_slice(b"\"sse\":");
    let mut members = Members::new(&SSE, &[], out);
    members.text("id", sse.id.as_deref());
    match &sse.event {
        EventType::Message => {}
        EventType::Unnamed => members.name("event").extend_from_slice(b"null"),
        EventType::Named(name) => members.text("event", Some(name)),
    }
    if let Some(retry) = sse.retry {
        members.number("retry", retry);
    }
    if sse.no_data {
        members.name("data").extend_from_slice(b"false");
    }
    members.finish();
    out.push(b',');
}

/// Appends the member that holds a body: a text, with markers where writing them out gives it again, or base64.
pub(super) fn push_body(bytes: &[u8], blobs: &mut dyn BlobSink, out: &mut Vec<u8>) -> std::io::Result<Form> {
    let start = out.len();
    if let Ok(text) = std::str::from_utf8(bytes) {
        let mut pending = PendingBlobs::default();
        out.extend_from_slice(b"\"body\":");
        if push_text(text, Form::Body, &mut pending, out) {
            pending.0.into_iter().try_for_each(|(name, bytes)| blobs.put(&name, &bytes))?;
            return Ok(Form::Body);
        }
        out.truncate(start);
    }
    push_base64(bytes, out);
    Ok(Form::Base64)
}

/// Appends a text as the value of the member `form`; whether it comes back from that.
pub(super) fn push_text(text: &str, form: Form, blobs: &mut PendingBlobs, out: &mut Vec<u8>) -> bool {
    let (mut string, value) = (Vec::with_capacity(text.len() + 2), out.len());
    scan::push_string(text, &mut string);
    push_payload(&string, blobs, out);
    let mut rebuilt = Vec::with_capacity(text.len());
    let line = Line { text: out, side: &Side::default(), blobs };
    line.rebuild(form, Span::new(value, out.len()), None, &mut rebuilt).is_ok() && rebuilt == text.as_bytes()
}

/// Appends the member that holds bytes that are no text.
pub(super) fn push_base64(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"\"base64\":\"");
    out.extend_from_slice(STANDARD.encode(bytes).as_bytes());
    out.push(b'"');
}
