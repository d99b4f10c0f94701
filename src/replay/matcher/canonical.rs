//! The canonical form of a request, in which two requests are equal when they ask the same.
//!
//! Objects are unordered (values of a repeated name keep their order), arrays ordered, strings equal by code unit,
//! numbers equal as decimals, `{}` for params, arguments and `_meta` the same as none, `null` is not none. What the
//! [`Places`] exempt is left out or replaced by its form. The form is bytes, so equality is equality of bytes; an
//! index keeps their [`digest`].

use std::{
    borrow::Cow,
    hash::{Hash, Hasher},
    sync::LazyLock,
};

use memchr::memmem::Finder;
use regex::bytes::Regex;

use crate::{
    redact::Exempt,
    wire::{
        Span, pointer,
        scan::{Lexer, ScanError, Token, is_number, push_decimal, unescape},
    },
};

const MARK: &[u8] = b"<redacted:";

/// Finds where placeholders of redacted values begin.
static PLACEHOLDER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(MARK));

/// Places of a message that do not count as they stand, as a tree of member names.
#[derive(Clone, Debug, Default)]
pub struct Places {
    nodes: Vec<Node>,
}

#[derive(Clone, Debug, Default)]
struct Node {
    below: Vec<(Box<[u8]>, u32)>,
    exemption: Option<Exemption>,
    /// An empty object here is the same as none.
    empty_is_none: bool,
}

/// What of a value does not count.
#[derive(Clone, Debug)]
pub enum Exemption {
    /// Nothing of it counts.
    Ignore,
    /// Of an object, only which names it has.
    Names,
    /// Any value whose text matches counts as the same.
    Pattern(Regex),
    /// Any value of this JSON type counts as the same.
    Type(Box<str>),
}

impl Places {
    /// Exempts the place a JSON Pointer names; the pointer counts from the message, `/params/…`.
    pub fn exempt(&mut self, pointer: &str, exemption: Exemption) {
        let node = self.node(pointer);
        self.nodes[node].exemption.get_or_insert(exemption);
    }

    /// Says that an empty object at this place is the same as none.
    pub fn empty_is_none(&mut self, pointer: &str) {
        let node = self.node(pointer);
        self.nodes[node].empty_is_none = true;
    }

    fn node(&mut self, pointer: &str) -> usize {
        if self.nodes.is_empty() {
            self.nodes.push(Node::default());
        }
        let mut at = 0;
        for step in pointer.split('/').skip(1) {
            let name = pointer::unescaped(step).into_owned().into_bytes();
            at = match self.below(at as u32, &name) {
                Some(next) => next as usize,
                None => {
                    let next = self.nodes.len();
                    self.nodes[at].below.push((name.into(), next as u32));
                    self.nodes.push(Node::default());
                    next
                }
            };
        }
        at
    }

    fn below(&self, node: u32, name: &[u8]) -> Option<u32> {
        self.nodes[node as usize].below.iter().find(|(known, _)| **known == *name).map(|(_, next)| *next)
    }
}

/// Whether a text holds a secret that was redacted.
pub(crate) fn holds_placeholder(text: &[u8]) -> bool {
    // Most hold not even its first sign, for which less has to be looked.
    let first = memchr::memchr(b'<', text);
    first.is_some_and(|first| PLACEHOLDER.find(&text[first..]).is_some())
}

/// What does not count pairs no secrets.
impl Exempt for Places {
    fn below(&self, node: u32, step: &[u8]) -> Option<u32> {
        self.below(node, step)
    }

    fn has(&self, node: u32) -> bool {
        self.nodes[node as usize].exemption.is_some()
    }
}

/// An open container: where its form begins, and where we are in the tree of places.
#[derive(Debug)]
struct Frame {
    /// Start of the container's form.
    start: usize,
    /// Index of its first member among all open ones.
    first: usize,
    object: bool,
    node: Option<u32>,
    elements: u32,
    /// Only names count of this object.
    names_only: bool,
}

/// A member of an open object.
#[derive(Clone, Copy, Debug)]
struct Member {
    /// Where the member's form stands in the output; its end is set when it is whole.
    form: Span,
    /// Where its name's text stands in it.
    name: Span,
}

/// What is open while a form is written: room that serves for one form after the other.
#[derive(Debug, Default)]
pub struct Room {
    open: Vec<Frame>,
    members: Vec<Member>,
    /// Placeholders keep their numbers: such a form is compared otherwise than by its bytes.
    keeps_numbers: bool,
    /// Members keep the order in which they stand.
    keeps_order: bool,
}

impl Room {
    /// For a form in which placeholders keep their numbers, and members their order if told so.
    pub(super) fn keeping_numbers(keeps_order: bool) -> Self {
        Self { keeps_numbers: true, keeps_order, ..Self::default() }
    }

    /// Whether placeholders keep their numbers.
    pub(super) const fn keeps_numbers(&self) -> bool {
        self.keeps_numbers
    }

    /// Gives back what only a big message needed.
    pub(super) fn shrink(&mut self) {
        self.open.shrink_to(1 << 8);
        self.members.shrink_to(1 << 10);
    }
}

/// Appends the canonical form of a message's method and params.
///
/// # Errors
/// When the params cannot be read; such a message is compared as text by the caller.
pub fn canonical(
    method: &[u8],
    params: Option<&[u8]>,
    places: &Places,
    room: &mut Room,
    out: &mut Vec<u8>,
) -> Result<(), ScanError> {
    push_text(method, room.keeps_numbers, out);
    let Some(params) = params else { return Ok(()) };
    let root = if places.nodes.is_empty() { None } else { places.below(0, b"params") };
    push_value(params, root, places, room, out)
}

fn push_value(
    text: &[u8],
    root: Option<u32>,
    places: &Places,
    room: &mut Room,
    out: &mut Vec<u8>,
) -> Result<(), ScanError> {
    let mut lexer = Lexer::new(text, 0);
    let Room { open, members, keeps_numbers, keeps_order } = room;
    let (keeps_numbers, keeps_order) = (*keeps_numbers, *keeps_order);
    // A text that cannot be read leaves something.
    open.clear();
    members.clear();
    // The place of the value that comes next.
    let mut node = root;
    loop {
        let Some((token, span)) = lexer.next()? else { return Ok(()) };
        if let Some(frame) = open.last_mut()
            && !frame.object
            && !matches!(token, Token::ArrayEnd | Token::ObjectEnd)
        {
            node = frame.node.and_then(|at| places.below(at, frame.elements.to_string().as_bytes()));
            frame.elements += 1;
        }
        match token {
            Token::Name => {
                let frame = open.last().expect("a name stands in an object");
                let name = lexer.string(span);
                node = frame.node.and_then(|at| places.below(at, &name));
                let (start, length) = (out.len(), push_text(&name, keeps_numbers, out));
                let name = Span::new(out.len() - length, out.len());
                members.push(Member { form: Span::new(start, out.len()), name });
                if frame.names_only {
                    lexer.skip()?;
                }
                continue;
            }
            Token::ObjectEnd | Token::ArrayEnd => {
                let frame = open.pop().expect("the lexer pairs brackets");
                close(&frame, &members[frame.first..], places, keeps_order, out);
                members.truncate(frame.first);
                if open.is_empty() {
                    return Ok(());
                }
                // An empty object that counts as none takes its member's name with it.
                if out.len() == frame.start {
                    forget(open, members, out);
                } else {
                    ended(open, members, out);
                }
                continue;
            }
            _ => {}
        }
        let exemption = node.and_then(|at| places.nodes[at as usize].exemption.as_ref());
        match exemption {
            Some(Exemption::Ignore) => {
                finish_value(&mut lexer, token)?;
                forget(open, members, out);
                if open.is_empty() {
                    return Ok(());
                }
                continue;
            }
            Some(Exemption::Pattern(_) | Exemption::Type(_)) => {
                let end = finish_value(&mut lexer, token)?;
                let value = Span::new(span.start, end).of(text);
                let fits = match exemption {
                    Some(Exemption::Pattern(pattern)) => pattern.is_match(&as_text(token, value)),
                    Some(Exemption::Type(name)) => type_of(token, value) == &**name,
                    _ => false,
                };
                if fits {
                    out.push(b'~');
                } else {
                    push_value(
                        value,
                        None,
                        &Places::default(),
                        &mut Room { keeps_numbers, keeps_order, ..Room::default() },
                        out,
                    )?;
                }
                ended(open, members, out);
                continue;
            }
            Some(Exemption::Names) | None => {}
        }
        match token {
            Token::ObjectStart | Token::ArrayStart => {
                let object = token == Token::ObjectStart;
                let names_only = object && matches!(exemption, Some(Exemption::Names));
                let (start, first) = (out.len(), members.len());
                out.push(if object { b'{' } else { b'[' });
                open.push(Frame { start, first, object, node, elements: 0, names_only });
                continue;
            }
            Token::String => {
                push_text(&lexer.string(span), keeps_numbers, out);
            }
            _ => push_word(span.of(text), out),
        }
        ended(open, members, out);
    }
}

/// Notes that the member whose value has just been written, if it is one's, is whole.
fn ended(open: &[Frame], members: &mut [Member], out: &[u8]) {
    if open.last().is_some_and(|frame| frame.object)
        && let Some(member) = members.last_mut()
    {
        member.form.end = out.len();
    }
}

/// Takes back the member whose value does not count, if it is one's.
fn forget(open: &[Frame], members: &mut Vec<Member>, out: &mut Vec<u8>) {
    if open.last().is_some_and(|frame| frame.object)
        && let Some(member) = members.pop()
    {
        out.truncate(member.form.start);
    }
}

/// Reads on to the end of the value whose first token was `token`; where it ends.
fn finish_value(lexer: &mut Lexer<'_>, token: Token) -> Result<usize, ScanError> {
    if matches!(token, Token::ObjectStart | Token::ArrayStart) {
        let outside = lexer.depth() - 1;
        while lexer.depth() > outside {
            lexer.next()?;
        }
    }
    Ok(lexer.at())
}

/// Closes a container's form: members in order of their names, equal names in their own order, or all in that.
fn close(frame: &Frame, members: &[Member], places: &Places, keeps_order: bool, out: &mut Vec<u8>) {
    if !frame.object {
        out.push(b']');
        return;
    }
    let empty_is_none = frame.node.is_some_and(|node| places.nodes[node as usize].empty_is_none);
    if out.len() == frame.start + 1 && empty_is_none {
        out.truncate(frame.start);
        return;
    }
    if keeps_order || members.is_sorted_by(|a, b| a.name.of(out) <= b.name.of(out)) {
        // As they stand.
    } else if let [first, _] = members {
        out[frame.start + 1..].rotate_left(first.form.len());
    } else {
        let mut members = members.to_vec();
        members.sort_by(|a, b| a.name.of(out).cmp(b.name.of(out)));
        for member in &members {
            out.extend_from_within(member.form.start..member.form.end);
        }
        out.drain(frame.start + 1..members.iter().map(|member| member.form.end).max().unwrap_or_default());
    }
    out.push(b'}');
}

/// Appends a text behind its length; how long it is in its form.
pub(super) fn push_text(text: &[u8], keeps_numbers: bool, out: &mut Vec<u8>) -> usize {
    // Most texts are shorter than the shortest placeholder.
    let text =
        if text.len() > MARK.len() && !keeps_numbers { without_numbers(text) } else { Cow::Borrowed(text) };
    let digit = |number: usize| b'0' + (number % 10) as u8;
    match text.len() {
        length @ ..10 => out.extend_from_slice(&[b'"', digit(length), b':']),
        length @ ..100 => out.extend_from_slice(&[b'"', digit(length / 10), digit(length), b':']),
        length => out.extend_from_slice(format!("\"{length}:").as_bytes()),
    }
    out.extend_from_slice(&text);
    text.len()
}

/// Placeholders of redacted values without their numbers: which number a value gets depends on what came before
/// it; which values are equal is the pairing's business.
pub(crate) fn without_numbers(text: &[u8]) -> Cow<'_, [u8]> {
    let first = memchr::memchr(b'<', &text[..text.len().saturating_sub(MARK.len())]);
    let Some(first) = first.and_then(|_| PLACEHOLDER.find(text)) else { return Cow::Borrowed(text) };
    let mut plain = text[..first].to_vec();
    let mut rest = &text[first..];
    while let Some(at) = PLACEHOLDER.find(rest) {
        let Some(end) = memchr::memchr(b'>', &rest[at..]) else { break };
        let inside = &rest[at..at + end];
        let kind = memchr::memrchr(b'-', inside).map_or(inside, |dash| &inside[..dash]);
        plain.extend_from_slice(&rest[..at]);
        plain.extend_from_slice(kind);
        plain.push(b'>');
        rest = &rest[at + end + 1..];
    }
    plain.extend_from_slice(rest);
    Cow::Owned(plain)
}

fn push_word(word: &[u8], out: &mut Vec<u8>) {
    if is_number(word) {
        out.push(b'n');
        push_decimal(word, out);
    } else {
        out.push(b'w');
        out.extend_from_slice(word);
    }
    out.push(b';');
}

/// A value as a pattern sees it: a string's text, else the JSON text.
fn as_text(token: Token, value: &[u8]) -> Cow<'_, [u8]> {
    if token == Token::String { unescape(value) } else { Cow::Borrowed(value) }
}

fn type_of(token: Token, value: &[u8]) -> &'static str {
    match token {
        Token::ObjectStart => "object",
        Token::ArrayStart => "array",
        Token::String => "string",
        _ if is_number(value) => "number",
        _ if value == b"null" => "null",
        _ => "boolean",
    }
}

/// 128 bits that stand for a canonical form in an index: in quarters, since a number of this size would be padded
/// there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest([u32; 4]);

impl Digest {
    /// Most of it.
    pub(in crate::replay) const fn most(self) -> [u32; 3] {
        [self.0[1], self.0[2], self.0[3]]
    }
}

impl Hash for Digest {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(u64::from(self.0[0]) << 32 | u64::from(self.0[1]));
    }
}

/// The digest of a canonical form: two hashes that share no factor, each of which folds eight bytes into 128 bits
/// and these into 64. Nobody gains by two requests with the same one: each client asks for itself.
pub fn digest(form: &[u8]) -> Digest {
    let (mut one, mut other) = (form.len() as u64 ^ FACTORS[0], form.len() as u64 ^ FACTORS[1]);
    let mut take = |word: u64| {
        one = fold(one ^ word, FACTORS[2]).rotate_left(23) ^ word;
        other = fold(other ^ word.rotate_left(32), FACTORS[3]).wrapping_add(word);
    };
    let (words, rest) = form.as_chunks();
    words.iter().for_each(|word| take(u64::from_le_bytes(*word)));
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    take(u64::from_le_bytes(last));
    let (one, other) = (fold(one, FACTORS[3]), fold(other, FACTORS[2]));
    Digest([(one >> 32) as u32, one as u32, (other >> 32) as u32, other as u32])
}

/// Odd, and as many bits set as not.
const FACTORS: [u64; 4] =
    [0x9e37_79b9_7f4a_7c15, 0xd1b5_4a32_d192_ed03, 0xa076_1d64_78bd_642f, 0xe703_7ed1_a0b4_28db];

const fn fold(a: u64, b: u64) -> u64 {
    let product = a as u128 * b as u128;
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests;
