//! Parts of multipart bodies: `Content-Disposition: form-data; name="password"`, an empty line, and the value.

use super::{Assigned, before_quote, worth_itself};
use crate::redact::names::SecretName;
use crate::wire::Span;

/// The headers of a part are shorter, and so is what stands in one of them before the name.
const LONGEST_HEADERS: usize = 1024;
const LONGEST_HEADER: usize = 256;

/// A longer part is a file: a body made of parts would be read to its end for each of them.
const LONGEST: usize = 16 << 10;

/// The value of the part that has this name; the outer none where it is no part's.
pub(super) fn field(text: &[u8], name: Span, row: &'static SecretName) -> Option<Option<Assigned>> {
    let (before, quote, slashes) = before_quote(text, name);
    let before = before.strip_suffix(b"name=")?;
    if before.last().is_some_and(u8::is_ascii_alphanumeric) {
        return None;
    }
    let header = &before[before.len().saturating_sub(LONGEST_HEADER)..];
    let line = memchr::memrchr(b'\n', header).map_or(0, |end| end + 1);
    memchr::memmem::find(&header[line..], b"form-data")?;
    if slashes > 0 {
        return Some(Some(Assigned::Look));
    }
    let Some(start) = behind_headers(text, name.end) else {
        // What is decoded has lines.
        return Some((quote.is_none() && text.get(name.end) == Some(&b'\\')).then_some(Assigned::Look));
    };
    let value = Span::new(start, start + length(&text[start..], boundary(before)).unwrap_or(0));
    let value = worth_itself(text, value);
    Some(value.map(|value| Assigned::Secret(row, value)))
}

/// What stands behind the empty line that ends the headers.
fn behind_headers(text: &[u8], at: usize) -> Option<usize> {
    let rest = &text[at..text.len().min(at + LONGEST_HEADERS)];
    let ends = [&b"\r\n\r\n"[..], b"\n\n"].into_iter();
    ends.filter_map(|end| memchr::memmem::find(rest, end).map(|found| at + found + end.len())).min()
}

/// The line that parts the parts, before the headers of one.
fn boundary(before: &[u8]) -> Option<&[u8]> {
    let near = &before[before.len().saturating_sub(LONGEST_HEADERS)..];
    let line = near.rsplit(|byte| *byte == b'\n').find(|line| line.starts_with(b"--"))?;
    Some(line.trim_ascii_end())
}

/// How long a part's value is that a text begins with: up to the boundary; without one, a line.
fn length(text: &[u8], boundary: Option<&[u8]>) -> Option<usize> {
    let near = &text[..text.len().min(LONGEST)];
    let line_end = match boundary {
        Some(boundary) if near.starts_with(boundary) => return None,
        Some(boundary) => memchr::memmem::find(near, &[b"\n", boundary].concat()),
        None => memchr::memchr(b'\n', near),
    };
    match line_end {
        Some(end) => Some(end - usize::from(near[..end].ends_with(b"\r"))),
        None => (near.len() == text.len()).then_some(near.len()),
    }
}
