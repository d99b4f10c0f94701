//! The canonical text of a cassette.

use super::{
    layout,
    model::Cassette,
    shape::{DOCUMENT, EXCHANGE, Holds, Shape},
};
use crate::wire::{
    Span,
    scan::{self, Member},
};

/// The canonical text of a cassette: our members in their order, one layout, and everything that a person wrote as
/// it was. A recording is written this way, and formatting twice changes nothing.
pub fn format(cassette: &Cassette) -> Vec<u8> {
    let text = &cassette.text[..];
    let mut out = Vec::with_capacity(text.len() + text.len() / 8);
    let mut flat = Vec::new();
    out.push(b'{');
    for (n, Member { name, value }) in sorted(text, scan::trim(text).start, &DOCUMENT).into_iter().enumerate()
    {
        if n > 0 {
            out.push(b',');
        }
        let name = name.of(text);
        let column = layout::new_line(1, &mut out) + layout::columns(name) + 2;
        out.extend_from_slice(name);
        out.extend_from_slice(b": ");
        match holds(&DOCUMENT, name) {
            Holds::List(shape) if is_long_list(name) => push_list(text, value, shape, &mut flat, &mut out),
            holds => push_value(text, value, holds, 1, column, &mut flat, &mut out),
        }
    }
    out.extend_from_slice(b"\n}\n");
    out
}

/// One entry of `exchanges`, strict JSON, as [`format()`] writes it: without indentation before its first line.
pub fn format_exchange(entry: &[u8]) -> Vec<u8> {
    let (mut flat, mut out) = (Vec::new(), Vec::with_capacity(entry.len()));
    push_value(entry, scan::trim(entry), Holds::Object(&EXCHANGE), 2, 4, &mut flat, &mut out);
    out
}

/// A value, strict JSON, laid out to stand at this column with so many containers around it.
pub fn lay_out(value: &[u8], level: usize, column: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(value.len());
    layout::push(value, scan::trim(value), level, column, &mut out);
    out
}

/// Sessions and exchanges stand one below the other even where they would fit on a line, so that a recording that is
/// added changes no line that is there.
fn is_long_list(name: &[u8]) -> bool {
    ["sessions", "exchanges"].iter().any(|long| scan::string_is(name, long))
}

fn push_list(text: &[u8], list: Span, shape: &'static Shape, flat: &mut Vec<u8>, out: &mut Vec<u8>) {
    out.push(b'[');
    let mut is_empty = true;
    for element in scan::elements(text, list.start).map_while(Result::ok) {
        if !std::mem::take(&mut is_empty) {
            out.push(b',');
        }
        let column = layout::new_line(2, out);
        push_value(text, element, Holds::Object(shape), 2, column, flat, out);
    }
    if !is_empty {
        layout::new_line(1, out);
    }
    out.push(b']');
}

fn push_value(
    text: &[u8],
    value: Span,
    holds: Holds,
    level: usize,
    column: usize,
    flat: &mut Vec<u8>,
    out: &mut Vec<u8>,
) {
    flat.clear();
    push_sorted(text, value, holds, flat);
    layout::push(flat, Span::new(0, flat.len()), level, column, out);
}

/// Appends a value with the members of our objects in their order. It calls itself, as deep as our shapes are.
fn push_sorted(text: &[u8], value: Span, holds: Holds, flat: &mut Vec<u8>) {
    match (holds, text[value.start]) {
        (Holds::Object(shape), b'{') => {
            flat.push(b'{');
            for (n, member) in sorted(text, value.start, shape).into_iter().enumerate() {
                if n > 0 {
                    flat.push(b',');
                }
                let name = member.name.of(text);
                flat.extend_from_slice(name);
                flat.push(b':');
                push_sorted(text, member.value, self::holds(shape, name), flat);
            }
            flat.push(b'}');
        }
        (Holds::List(shape), b'[') => {
            flat.push(b'[');
            for (n, element) in scan::elements(text, value.start).map_while(Result::ok).enumerate() {
                if n > 0 {
                    flat.push(b',');
                }
                push_sorted(text, element, Holds::Object(shape), flat);
            }
            flat.push(b']');
        }
        _ => flat.extend_from_slice(value.of(text)),
    }
}

fn holds(shape: &Shape, name: &[u8]) -> Holds {
    shape.find(name).map_or(Holds::Value, |at| shape.members[at].1)
}

fn sorted(text: &[u8], at: usize, shape: &Shape) -> Vec<Member> {
    let mut members: Vec<_> = scan::members(text, at).map_while(Result::ok).collect();
    members.sort_by_cached_key(|member| shape.rank(member.name.of(text)));
    members
}
