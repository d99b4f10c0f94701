//! How JSON stands in a cassette: a value that fits in 100 columns on one line, all others one member a line.
//!
//! Columns count characters. A comma behind the value is counted even where none follows, so that appending to an
//! array changes no line that is there.

use super::spacing::{Spacing, space};
use crate::wire::{Span, scan};

/// No line is longer unless a single string is.
const COLUMNS: usize = 100;

/// Values with more containers around them than this stand on one line, however long that is.
const LEVELS: usize = 32;

/// Appends the value at `span` of `text`, which is strict JSON, laid out. `level` containers of the file stand
/// around it, and `before` columns of its first line are used (its indentation and name).
pub(super) fn push(text: &[u8], span: Span, level: usize, before: usize, out: &mut Vec<u8>) {
    let mut layout = Layout { text: &text[..span.end], at: span.start, level, open: Vec::new() };
    let mut column = before;
    loop {
        let is_open = layout.value(column, out);
        if !is_open && layout.close(out) {
            return;
        }
        column = layout.name(out);
    }
}

/// Appends a line end and the indentation of `level`; how many columns that used.
pub(super) fn new_line(level: usize, out: &mut Vec<u8>) -> usize {
    out.push(b'\n');
    out.resize(out.len() + 2 * level, b' ');
    2 * level
}

/// How many columns a text takes.
pub(super) fn columns(text: &[u8]) -> usize {
    text.iter().filter(|byte| **byte & 0xc0 != 0x80).count()
}

struct Layout<'a> {
    text: &'a [u8],
    at: usize,
    level: usize,
    /// One entry for each container that stands open: true for an object.
    open: Vec<bool>,
}

impl Layout<'_> {
    /// Appends the value the cursor stands on. True where it is a container that was only opened.
    fn value(&mut self, column: usize, out: &mut Vec<u8>) -> bool {
        let byte = self.peek();
        if !matches!(byte, b'{' | b'[') {
            let end = scan::skip_value(self.text, self.at).unwrap_or(self.text.len());
            out.extend_from_slice(&self.text[self.at..end]);
            self.at = end;
            return false;
        }
        let inside = scan::skip_space(self.text, self.at + 1);
        let is_empty = matches!(self.text.get(inside), Some(b'}' | b']'));
        if is_empty || self.level > LEVELS || self.fits(COLUMNS.saturating_sub(column + 1)) {
            self.one_line(out);
            return false;
        }
        out.push(byte);
        self.at = inside;
        self.open.push(byte == b'{');
        self.level += 1;
        true
    }

    /// Begins the next member or element on a line of its own; the column at which its value begins.
    fn name(&mut self, out: &mut Vec<u8>) -> usize {
        let column = new_line(self.level, out);
        if self.open.last() != Some(&true) {
            return column;
        }
        self.peek();
        let end = scan::skip_value(self.text, self.at).unwrap_or(self.text.len());
        let name = &self.text[self.at..end];
        out.extend_from_slice(name);
        out.extend_from_slice(b": ");
        self.at = scan::skip_space(self.text, end) + 1;
        column + columns(name) + 2
    }

    /// Behind a value: closes what ends here. True when nothing is open any more; false in front of the next member.
    fn close(&mut self, out: &mut Vec<u8>) -> bool {
        while let Some(is_object) = self.open.last().copied() {
            if self.peek() == b',' {
                self.at += 1;
                out.push(b',');
                return false;
            }
            self.at += 1;
            self.open.pop();
            self.level -= 1;
            new_line(self.level, out);
            out.push(if is_object { b'}' } else { b']' });
        }
        true
    }

    fn peek(&mut self) -> u8 {
        self.at = scan::skip_space(self.text, self.at);
        self.text.get(self.at).copied().unwrap_or(0)
    }

    /// Whether the container the cursor stands on takes at most `room` columns on one line.
    fn fits(&self, room: usize) -> bool {
        let (mut at, mut used, mut depth) = (self.at, 0, 0usize);
        while let Some(&byte) = self.text.get(at) {
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' => at += 1,
                b'"' => {
                    // A string is looked at no further than there is room: most of the long ones would be for nothing.
                    let window = &self.text[..self.text.len().min(at + 4 * (room - used) + 8)];
                    let Ok(end) = scan::skip_value(window, at) else { return false };
                    used += columns(&self.text[at..end]);
                    at = end;
                }
                _ => {
                    match byte {
                        b'{' | b'[' => depth += 1,
                        b'}' | b']' => depth -= 1,
                        _ => {}
                    }
                    used += if matches!(byte, b',' | b':') { 2 } else { usize::from(byte & 0xc0 != 0x80) };
                    at += 1;
                }
            }
            if used > room {
                return false;
            }
            if depth == 0 {
                return true;
            }
        }
        false
    }

    fn one_line(&mut self, out: &mut Vec<u8>) {
        let end = scan::skip_value(self.text, self.at).unwrap_or(self.text.len());
        space(&self.text[self.at..end], Spacing::Spaced, out);
        self.at = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(text: &str) -> String {
        let mut out = Vec::new();
        push(text.as_bytes(), Span::new(0, text.len()), 0, 0, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_fits_stands_on_one_line() {
        assert_eq!(layout(r#" 7"#.trim()), "7");
        assert_eq!(
            layout("{ \"a\" :[ ],\n\"b\":{\t}, \"c, \\\"\":[1,null]}"),
            r#"{"a": [], "b": {}, "c, \"": [1, null]}"#
        );
    }

    #[test]
    fn the_hundredth_column_may_be_a_comma() {
        // {"a": "…"} with a comma is 100 columns wide, in characters.
        let fits = format!(r#"{{"a": "{}"}}"#, "é".repeat(90));
        assert_eq!(fits.chars().count(), 99);
        assert_eq!(layout(&fits), fits);
        let longer = format!(r#"{{"a": "{}"}}"#, "é".repeat(91));
        assert_eq!(layout(&longer), format!("{{\n  \"a\": \"{}\"\n}}", "é".repeat(91)));
    }

    #[test]
    fn all_others_stand_one_member_a_line() {
        let long = "x".repeat(90);
        let text = format!(r#"{{"a":1,"b":[{{"c":2}},[],"{long}"],"d":{{}}}}"#);
        let laid_out = format!(
            "{{\n  \"a\": 1,\n  \"b\": [\n    {{\"c\": 2}},\n    [],\n    \"{long}\"\n  ],\n  \"d\": {{}}\n}}"
        );
        assert_eq!(layout(&text), laid_out);
        assert_eq!(layout(&laid_out), laid_out);
    }

    #[test]
    fn what_is_deep_stands_on_one_line() {
        let text = format!("{}\"{}\"{}", "[".repeat(200), "x".repeat(200), "]".repeat(200));
        let laid_out = layout(&text);
        assert_eq!(laid_out.lines().count(), 33 + 1 + 33);
        assert_eq!(laid_out.lines().nth(33).map(|line| line.trim().len()), Some(167 * 2 + 202));
        assert_eq!(layout(&laid_out), laid_out);
    }
}
