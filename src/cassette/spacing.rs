//! JSON texts with other white space.

use std::borrow::Cow;

use super::reader;
use crate::wire::scan;

/// How a JSON text is spaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spacing {
    /// No white space.
    Compact,
    /// A space behind each comma and colon.
    Spaced,
    /// One value a line, so many spaces for each level; a space behind each colon.
    Indent(u8),
}

impl Spacing {
    /// How long a text is in this spacing, or more. A few kilobytes of brackets that are indented by their depth
    /// could fill the memory, so this is asked first.
    pub(super) fn length(self, json: &[u8]) -> usize {
        let mut length = 0usize;
        match self {
            Self::Compact | Self::Spaced => 2 * json.len(),
            Self::Indent(spaces) => {
                indent(json, |bytes, levels| {
                    length = length.saturating_add(bytes.len() + levels.saturating_mul(usize::from(spaces)));
                });
                length
            }
        }
    }

    /// Whether `json` in this spacing is exactly `text`.
    pub(super) fn gives(self, json: &[u8], text: &[u8]) -> bool {
        let mut spaced = Vec::with_capacity(text.len());
        if !matches!(self, Self::Indent(_)) || self.length(json) == text.len() {
            space(json, self, &mut spaced);
        }
        spaced == text
    }
}

/// Appends JSON text in another spacing. It may be a piece of one that does not cut a string or word, if it is not
/// to be indented.
pub(super) fn space(json: &[u8], spacing: Spacing, out: &mut Vec<u8>) {
    if let Spacing::Indent(spaces) = spacing {
        indent(json, |bytes, levels| {
            out.extend_from_slice(bytes);
            out.resize(out.len() + levels * usize::from(spaces), b' ');
        });
    } else {
        space_until(json, spacing, |_| false, |_, _| None, out);
    }
}

/// The same for what is not to be indented, up to the first string that is special and that nobody writes; whether there
/// was none. `is_special` is given a string with all behind it; `write` too, with all that was written before, and gives
/// how much of it is done with.
pub(super) fn space_until(
    json: &[u8],
    spacing: Spacing,
    is_special: impl Fn(&[u8]) -> bool,
    write: impl Fn(&[u8], &mut Vec<u8>) -> Option<usize>,
    out: &mut Vec<u8>,
) -> bool {
    let behind: &[u8] = if spacing == Spacing::Compact { b"" } else { b" " };
    // What stands as it shall is taken over in one piece.
    let (mut from, mut at) = (0, 0);
    while let Some(&byte) = json.get(at) {
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' => {
                match json[from..at] {
                    // A bracket on a line of its own.
                    [byte] => out.push(byte),
                    ref piece => out.extend_from_slice(piece),
                }
                at = reader::skip_space(json, at);
                from = at;
            }
            b',' | b':' if !behind.is_empty() => {
                at += 1;
                out.extend_from_slice(&json[from..at]);
                out.extend_from_slice(behind);
                from = at;
            }
            b'"' if is_special(&json[at..]) => {
                out.extend_from_slice(&json[from..at]);
                let Some(written) = write(&json[at..], out) else { return false };
                at += written;
                from = at;
            }
            b'"' => at = scan::skip_string(json, at).unwrap_or(json.len()),
            _ => at += 1,
        }
    }
    out.extend_from_slice(&json[from..]);
    true
}

/// An id as a cassette gives it back: inside objects and arrays the file has blanks of its own.
pub(super) fn id(raw: &[u8]) -> Cow<'_, [u8]> {
    if !matches!(raw, [b'{' | b'[', ..]) {
        return Cow::Borrowed(raw);
    }
    let mut compact = Vec::with_capacity(raw.len());
    space(raw, Spacing::Compact, &mut compact);
    Cow::Owned(compact)
}

/// As `JSON.stringify(x, null, n)` and Python's `json.dumps(x, indent=n)` do. `push` takes bytes, and how many levels
/// of indentation follow them.
fn indent(json: &[u8], mut push: impl FnMut(&[u8], usize)) {
    let (mut at, mut depth) = (0, 0usize);
    while at < json.len() {
        let (start, byte) = (at, json[at]);
        at += 1;
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' => {}
            b':' => push(b": ", 0),
            b',' => push(b",\n", depth),
            b'{' | b'[' => {
                at = scan::skip_space(json, at);
                if let Some(b'}' | b']') = json.get(at) {
                    push(&[byte, json[at]], 0);
                    at += 1;
                } else {
                    depth += 1;
                    push(&[byte, b'\n'], depth);
                }
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                push(b"\n", depth);
                push(&[byte], 0);
            }
            b'"' => {
                at = scan::skip_value(json, start).unwrap_or(json.len());
                push(&json[start..at], 0);
            }
            _ => push(&[byte], 0),
        }
    }
}
