//! The members of one object of ours, written in order, with those that a person wrote at their places between.

use std::fmt::Display;

use base64::{Engine, engine::general_purpose::STANDARD};

use super::super::{draft::Extra, shape::Shape};
use crate::wire::scan;

/// An object that is being written.
pub(super) struct Members<'a> {
    out: &'a mut Vec<u8>,
    first: bool,
    /// What a person wrote, with the place of each in the order; the first last.
    extra: Vec<(usize, &'a Extra<'a>)>,
    shape: Option<&'static Shape>,
}

impl<'a> Members<'a> {
    /// Opens an object without members of other people's.
    pub(super) fn begin(out: &'a mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, first: true, extra: Vec::new(), shape: None }
    }

    /// Opens an object of this shape.
    pub(super) fn new(shape: &'static Shape, extra: &'a [Extra<'a>], out: &'a mut Vec<u8>) -> Self {
        let extra = extra.iter().filter(|extra| is_extra(shape, &extra.name));
        let mut extra: Vec<_> = extra.map(|extra| (shape.rank(&extra.name), extra)).collect();
        extra.sort_by_cached_key(|(rank, _)| *rank);
        extra.reverse();
        Self { extra, shape: Some(shape), ..Self::begin(out) }
    }

    /// Appends a member's name; its value is to be appended to what this returns.
    pub(super) fn name(&mut self, name: &str) -> &mut Vec<u8> {
        if let Some(shape) = self.shape {
            self.extra_up_to(shape.rank(format!("\"{name}\"").as_bytes()));
        }
        self.separate();
        scan::push_string(name, self.out);
        self.out.push(b':');
        self.out
    }

    pub(super) fn number(&mut self, name: &str, number: impl Display) {
        let number = number.to_string();
        self.name(name).extend_from_slice(number.as_bytes());
    }

    pub(super) fn text(&mut self, name: &str, text: Option<&str>) {
        if let Some(text) = text {
            scan::push_string(text, self.name(name));
        }
    }

    /// Bytes that may be a text, in one of two members.
    pub(super) fn bytes(&mut self, text: &str, base64: &str, bytes: &[u8]) {
        match std::str::from_utf8(bytes) {
            Ok(bytes) => self.text(text, Some(bytes)),
            Err(_) => self.text(base64, Some(&STANDARD.encode(bytes))),
        }
    }

    pub(super) fn finish(mut self) {
        self.extra_up_to(usize::MAX);
        self.out.push(b'}');
    }

    fn extra_up_to(&mut self, rank: usize) {
        while let Some((_, extra)) = self.extra.pop_if(|(place, _)| *place < rank) {
            self.separate();
            self.out.extend_from_slice(&extra.name);
            self.out.push(b':');
            self.out.extend_from_slice(&extra.value);
        }
    }

    fn separate(&mut self) {
        if !std::mem::take(&mut self.first) {
            self.out.push(b',');
        }
    }
}

/// Whether a member is one that no field of a draft writes.
pub(super) fn is_extra(shape: &Shape, name: &[u8]) -> bool {
    const CARRIED: [&str; 3] = ["note", "match", "fault"];
    shape.find(name).is_none_or(|at| CARRIED.contains(&shape.members[at].0))
}
