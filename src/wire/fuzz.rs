//! What fuzzers call: each function takes any bytes, must come back, and checks what holds for all of them.

use super::{
    Span,
    jsonrpc::{Kind, Message, id_key},
    lines::{Line, LineSplitter},
    pointer,
    scan::{self, Lexer},
};

/// The scanner and the envelope: places lie in the text, and what two ways of reading say is the same.
pub fn scanner(text: &[u8]) {
    let whole = scan::trim(text);
    let skipped = scan::skip_value(text, whole.start);
    if scan::is_json(text) {
        assert_eq!(scan::skip_space(text, skipped.expect("it is JSON")), text.len());
    }
    let mut lexer = Lexer::new(text, whole.start);
    while let Ok(Some((_, span))) = lexer.next() {
        assert!(span.end <= lexer.at() && lexer.depth() <= text.len());
        string(span.of(text));
    }
    for member in scan::members(text, whole.start).map_while(Result::ok) {
        let name = scan::unescape(member.name.of(text));
        assert!(member.value.end <= text.len());
        if let Ok(name) = std::str::from_utf8(&name) {
            assert!(scan::member(text, whole.start, name).is_some(), "a member is found by its name");
            let pointer = format!("/{}", pointer::escaped(name));
            assert!(scan::pointer(text, whole, &pointer).is_some(), "and by its pointer");
        }
    }
    for element in scan::elements(text, whole.start).map_while(Result::ok) {
        assert!(element.end <= text.len());
    }
    envelope(&Message::read(text));
}

/// A string's text, written anew, is the same text.
fn string(raw: &[u8]) {
    let text = scan::unescape(raw);
    if let Ok(text) = std::str::from_utf8(&text) {
        let mut written = Vec::new();
        scan::push_string(text, &mut written);
        assert!(scan::is_json(&written) && scan::string_is(&written, text));
    }
}

fn envelope(message: &Message<'_>) {
    let spans = [message.id_span(), message.params_span(), message.outcome_span()];
    let ends = spans.into_iter().flatten().map(|span: Span| span.of(message.bytes).len());
    assert!(ends.sum::<usize>() <= message.bytes.len());
    assert!(message.kind != Kind::Request || message.id().is_some());
    message.id().map(id_key);
    let _ = (message.name(), message.progress_token(), message.cancelled_id(), message.is_modern());
    for member in message.members() {
        assert_ne!(member.kind, Kind::Batch, "a batch in a batch is noise");
    }
}

/// The line splitter: cut anywhere, a stream has the same lines. The first byte is the limit.
pub fn lines(bytes: &[u8]) {
    let Some((&limit, stream)) = bytes.split_first() else { return };
    let limit = usize::from(limit);
    let whole = split(limit, &[stream]);
    let single: Vec<_> = stream.chunks(1).collect();
    assert_eq!(split(limit, &single), whole);
    let middle = stream.len() / 2;
    for cut in [1, middle, stream.len().saturating_sub(1), limit, limit + 1] {
        let (head, tail) = stream.split_at(cut.min(stream.len()));
        assert_eq!(split(limit, &[head, tail]), whole, "cut at {cut}");
    }
}

type Lines = (Vec<(u64, Vec<u8>)>, Option<Vec<u8>>);

/// Sizes and beginnings of the lines, and the rest.
fn split(limit: usize, chunks: &[&[u8]]) -> Lines {
    let (mut splitter, mut lines) = (LineSplitter::new(limit), Vec::new());
    for chunk in chunks {
        splitter.feed(chunk, |line| match line {
            Line::Whole(line) => {
                assert!(line.len() <= limit && !line.contains(&b'\n'));
                lines.push((line.len() as u64, line.to_vec()));
            }
            Line::Oversize(line) => {
                assert!(line.size > limit as u64);
                lines.push((line.size, [line.head, line.sha256.to_vec(), line.tail].concat()));
            }
        });
    }
    (lines, splitter.finish())
}
