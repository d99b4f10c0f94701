//! From the text of a payload back to the JSON that stood on the wire: white space dropped, markers written out.

use std::sync::LazyLock;

use base64::{Engine, engine::general_purpose::STANDARD};
use memchr::memmem::Finder;

use super::{
    blob::{self, BlobSource},
    error::{LoadError, LoadErrorKind, Result},
    model::{Cassette, Place},
    reader::{Marker, MarkerAt, Reader, skip_space},
    spacing::{Spacing, space, space_until},
};
use crate::wire::{Span, jsonrpc, scan};

/// How deep `$json` may stand in `$json`: each level doubles backslashes, so a few more would fill the memory.
pub(super) const DEEPEST_JSON: usize = 8;

/// The longest message that markers may grow to.
const LONGEST: usize = 256 << 20;

impl Cassette {
    /// Appends the payload value at `place` as compact wire JSON: white space outside strings dropped, markers
    /// written out.
    ///
    /// # Errors
    /// When a blob cannot be read, or when the value grows beyond all measure.
    pub fn expand(&self, place: Place, blobs: &dyn BlobSource, out: &mut Vec<u8>) -> Result<()> {
        expand(&self.text, place.span(), Spacing::Compact, blobs, out)
            .map_err(|error| error.locate(&self.text))
    }
}

/// A `$json` marker whose value is being written.
struct Json {
    end: usize,
    /// Behind the marker.
    resume: usize,
    out_start: usize,
    spacing: Spacing,
}

/// Appends the value at `span` with its markers written out.
pub(super) fn expand(
    text: &[u8],
    span: Span,
    spacing: Spacing,
    blobs: &dyn BlobSource,
    out: &mut Vec<u8>,
) -> Result<()> {
    let start = out.len();
    if space_until(span.of(text), spacing, may_name_marker, write_lines, out) {
        return Ok(());
    }
    out.truncate(start);
    let mut reader = Reader::new(text, span.start);
    reader.value()?;
    let (longest, mut at) = (out.len() + LONGEST, span.start);
    let mut open: Vec<Json> = Vec::new();
    for found in outer_markers(&reader.markers) {
        while let Some(json) = open.pop_if(|json| found.span.start >= json.end) {
            at = close(text, at, &json, out)?;
        }
        // Inside `$json` everything is written compact first, and spaced as a whole when it ends.
        let inside = if open.is_empty() { spacing } else { Spacing::Compact };
        space(&text[at..found.span.start], inside, out);
        at = found.span.end;
        let value = found.value;
        match found.marker {
            Marker::Lines => push_lines(text, value, out),
            Marker::Literal => space(value.of(text), inside, out),
            Marker::Blob => push_blob(text, value, blobs, out)?,
            Marker::Json => {
                let json = Json {
                    end: value.end,
                    resume: at,
                    out_start: out.len(),
                    spacing: json_spacing(text, found)?,
                };
                open.push(json);
                at = value.start;
            }
        }
        if out.len() > longest {
            return Err(LoadError::new(found.span.start, LoadErrorKind::TooLong { limit: LONGEST }));
        }
    }
    while let Some(json) = open.pop() {
        at = close(text, at, &json, out)?;
    }
    space(&text[at..span.end], spacing, out);
    Ok(())
}

/// Ends a `$json`: what was written since its start becomes a string. Where its text goes on.
fn close(text: &[u8], at: usize, json: &Json, out: &mut Vec<u8>) -> Result<usize> {
    space(&text[at..json.end], Spacing::Compact, out);
    let compact = out.split_off(json.out_start);
    let mut spaced = Vec::with_capacity(compact.len());
    if json.spacing.length(&compact) > LONGEST {
        return Err(LoadError::new(at, LoadErrorKind::TooLong { limit: LONGEST }));
    }
    space(&compact, json.spacing, &mut spaced);
    scan::push_string(&String::from_utf8_lossy(&spaced), out);
    Ok(json.resume)
}

/// Writes out a `$lines` that a text begins with behind its brace, where that is all there is in its braces: the most
/// frequent marker by far, and one that nothing else can stand in. How much of the text that is.
fn write_lines(text: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    const NAME: &[u8] = b"\"$lines\"";
    let next = |at: usize, byte: u8| {
        let at = skip_space(text, at);
        (text.get(at) == Some(&byte)).then_some(at + 1)
    };
    let mut at = next(next(text.strip_prefix(NAME).map(|_| NAME.len())?, b':')?, b'[')?;
    out.pop_if(|byte| *byte == b'{')?;
    out.push(b'"');
    at = next(at, b'"')?;
    // What stands between two lines is nearly always the same.
    let mut between = &text[..0];
    loop {
        let end = scan::skip_long_string(text, at - 1).ok()?;
        out.extend_from_slice(&text[at..end - 1]);
        if !between.is_empty() && text[end..].starts_with(between) {
            at = end + between.len();
        } else if let Some(behind) = next(end, b',') {
            at = next(behind, b'"')?;
            between = &text[end..at];
        } else {
            break at = next(end, b']')?;
        }
        out.extend_from_slice(b"\\n");
    }
    out.push(b'"');
    next(at, b'}')
}

/// Whether a string may name a marker.
fn may_name_marker(string: &[u8]) -> bool {
    match string.get(1) {
        Some(b'$') => true,
        Some(b'\\') => string.starts_with(b"\"\\u0024"),
        _ => false,
    }
}

/// Whether it is worth looking for markers.
pub(super) fn may_hold_markers(payload: &[u8]) -> bool {
    static PLAIN: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"$"));
    static ESCAPED: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\\u0024"));
    PLAIN.find(payload).is_some() || ESCAPED.find(payload).is_some()
}

/// The markers that count: not those inside a `$literal`.
pub(super) fn outer_markers(markers: &[MarkerAt]) -> impl Iterator<Item = &MarkerAt> {
    let mut literal_end = 0;
    markers.iter().filter(move |found| {
        if found.span.start < literal_end {
            return false;
        }
        if found.marker == Marker::Literal {
            literal_end = found.span.end;
        }
        true
    })
}

/// Checks the markers of one payload.
pub(super) fn check_markers(text: &[u8], markers: &[MarkerAt], blobs: &dyn BlobSource) -> Result<()> {
    let mut json_ends = Vec::new();
    for found in outer_markers(markers) {
        while json_ends.pop_if(|end| found.span.start >= *end).is_some() {}
        if found.marker == Marker::Json {
            json_ends.push(found.span.end);
            if json_ends.len() > DEEPEST_JSON {
                return Err(LoadError::new(found.span.start, LoadErrorKind::TooDeep { limit: DEEPEST_JSON }));
            }
        }
        json_spacing(text, found)?;
        let value = found.value;
        match found.marker {
            Marker::Lines if !is_lines(text, value) => {
                let is_empty = scan::elements(text, value.start).next().is_none();
                let expected = match is_empty && text[value.start] == b'[' {
                    true => {
                        "an array of strings: expected at least one line, found none (an empty text is \"\")"
                    }
                    false => "an array of strings, one a line",
                };
                return Err(wrong(found, value.start, expected));
            }
            Marker::Blob => {
                if text[value.start] != b'"' {
                    return Err(wrong(found, value.start, "a blob's name"));
                }
                blob::fetch(&jsonrpc::text(value.of(text)), value.start, blobs)?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn wrong(found: &MarkerAt, at: usize, expected: &'static str) -> LoadError {
    LoadError::new(at, LoadErrorKind::Marker { marker: found.marker.name(), expected })
}

/// What a marker's `$indent` says.
fn json_spacing(text: &[u8], found: &MarkerAt) -> Result<Spacing> {
    let Some(indent) = found.indent else { return Ok(Spacing::Compact) };
    if found.marker != Marker::Json {
        return Err(wrong(found, indent.start, "no `$indent`, which goes with `$json`"));
    }
    match indent.of(text) {
        b"\"spaced\"" => Ok(Spacing::Spaced),
        digits => match std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()) {
            Some(spaces @ 0..=16) => Ok(Spacing::Indent(spaces)),
            _ => Err(wrong(found, indent.start, "an `$indent` of 0 to 16 spaces or \"spaced\"")),
        },
    }
}

fn is_lines(text: &[u8], value: Span) -> bool {
    let mut lines = scan::elements(text, value.start).peekable();
    lines.peek().is_some() && lines.all(|line| line.is_ok_and(|line| text[line.start] == b'"'))
}

fn push_lines(text: &[u8], value: Span, out: &mut Vec<u8>) {
    out.push(b'"');
    for (n, line) in scan::elements(text, value.start).map_while(std::result::Result::ok).enumerate() {
        if n > 0 {
            out.extend_from_slice(b"\\n");
        }
        out.extend_from_slice(&text[line.start + 1..line.end - 1]);
    }
    out.push(b'"');
}

fn push_blob(text: &[u8], value: Span, blobs: &dyn BlobSource, out: &mut Vec<u8>) -> Result<()> {
    match blob::fetch(&jsonrpc::text(value.of(text)), value.start, blobs)? {
        (blob::Kind::Text, bytes) => scan::push_string(&String::from_utf8_lossy(&bytes), out),
        (blob::Kind::Base64, bytes) => {
            out.push(b'"');
            out.extend_from_slice(STANDARD.encode(bytes).as_bytes());
            out.push(b'"');
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(text: &str) -> Option<String> {
        let mut out = Vec::new();
        let span = Span::new(0, text.len());
        expand(text.as_bytes(), span, Spacing::Compact, &blob::NoBlobs, &mut out).ok()?;
        Some(String::from_utf8(out).expect("it was text"))
    }

    #[test]
    fn lines_are_joined_however_they_are_laid_out() {
        for (lines, text) in [
            ("[\"a\"]", "a"),
            ("[\"a\", \"\", \"c\\\"\", \"\\\\\"]", "a\\n\\nc\\\"\\n\\\\"),
            ("[\n  \"a\",\n  \"b\",\n  \"c\"\n]", "a\\nb\\nc"),
            ("[\"a\" ,\n\"b\",\"c\"\t,\r\n \"d\", \"e\", \"f\" ]", "a\\nb\\nc\\nd\\ne\\nf"),
            ("[\", \", \", \", \",\"]", ", \\n, \\n,"),
        ] {
            for (before, behind) in [("", ""), (" ", "\n")] {
                let marker = format!("[1,{{{before}\"$lines\"{before}:{before}{lines}{behind}}}, 2]");
                assert_eq!(expanded(&marker), Some(format!("[1,\"{text}\",2]")), "{marker}");
            }
        }
    }

    #[test]
    fn what_is_no_list_of_lines_is_an_error() {
        for lines in ["[\"a\", \"b\"", "[\"a\", \"b", "[\"a\", ]", "[\"a\" \"b\"]", "[\"a\", \"b\" \"c\"]"] {
            assert_eq!(expanded(&format!("{{\"$lines\": {lines}}}")), None, "{lines}");
        }
    }
}
