//! An event stream cut into events (WHATWG HTML, server-sent events).
//!
//! Lines end in CR, LF or CR LF, wherever the stream is cut; a byte order mark may stand before the first. An event
//! is given out with the byte that ends it, so nothing waits for what comes next. Data over the limit is not kept: it
//! is measured, as a line over the limit is.

use std::borrow::Cow;

use memchr::{memchr2, memchr3};

use super::lines::{Oversize, Unfinished};

/// The longest name that means something is `event`, `retry`; a longer one is not kept.
const LONGEST_NAME: usize = 8;
/// Ids and event names longer than this are no ids and names, but somebody's attempt to fill memory.
const LONGEST_VALUE: usize = 64 << 10;
const BOM: [u8; 3] = [0xef, 0xbb, 0xbf];

/// One event, with the fields that were sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SseEvent<'a> {
    /// `id`, where the event had one.
    pub id: Option<Cow<'a, [u8]>>,
    /// `event`, where the event had one.
    pub event: Option<Cow<'a, [u8]>>,
    /// `retry`, in milliseconds, where the event had one.
    pub retry: Option<u64>,
    /// `data`, its lines joined by `\n`; empty in a priming event.
    pub data: Cow<'a, [u8]>,
    /// It had no line `data` at all: clients take in its other fields, and hear no event.
    pub no_data: bool,
}

impl SseEvent<'_> {
    /// The same, which borrows nothing.
    pub fn into_owned(self) -> SseEvent<'static> {
        let owned = |bytes: Cow<'_, [u8]>| Cow::Owned(bytes.into_owned());
        SseEvent {
            id: self.id.map(owned),
            event: self.event.map(owned),
            retry: self.retry,
            data: owned(self.data),
            no_data: self.no_data,
        }
    }
}

/// What a stream is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// An event, or a block that only set an id or the time to wait before reconnecting.
    Event(SseEvent<'static>),
    /// An event with more data than is kept.
    Oversize(Oversize),
}

/// Cuts what it is fed into events; holds at most the limit of an unfinished one.
#[derive(Debug)]
pub struct EventStream {
    /// How many bytes of a byte order mark have come; none where the stream has begun.
    mark: Option<usize>,
    /// The last byte was a CR: a LF now belongs to it.
    after_cr: bool,
    place: Place,
    name: Vec<u8>,
    value: Vec<u8>,
    block: Block,
}

/// Where in a line the next byte stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// In the name, or at the line's start.
    Name,
    /// Behind the colon, where one space does not count.
    Space(Field),
    Value(Field),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Data,
    Event,
    Id,
    Retry,
    /// A comment or a field that means nothing.
    Other,
}

/// The event in progress.
#[derive(Debug)]
struct Block {
    event: Option<Vec<u8>>,
    id: Option<Vec<u8>>,
    retry: Option<u64>,
    has_data: bool,
    data: Unfinished,
}

impl EventStream {
    /// Events with up to `limit` bytes of data are kept whole.
    pub const fn new(limit: usize) -> Self {
        Self {
            mark: Some(0),
            after_cr: false,
            place: Place::Name,
            name: Vec::new(),
            value: Vec::new(),
            block: Block {
                event: None,
                id: None,
                retry: None,
                has_data: false,
                data: Unfinished::new(limit),
            },
        }
    }

    /// Gives each event that `chunk` ends to `each`, in order.
    pub fn feed(&mut self, mut chunk: &[u8], mut each: impl FnMut(Piece)) {
        while let (Some(matched), Some(&byte)) = (self.mark, chunk.first()) {
            if byte == BOM[matched] {
                self.mark = (matched + 1 < BOM.len()).then_some(matched + 1);
                chunk = &chunk[1..];
            } else {
                self.mark = None;
                // It was none: its bytes belong to the first line.
                self.name.extend_from_slice(&BOM[..matched]);
            }
        }
        while let Some(&byte) = chunk.first() {
            if std::mem::take(&mut self.after_cr) && byte == b'\n' {
                chunk = &chunk[1..];
                continue;
            }
            chunk = match self.place {
                Place::Name => self.read_name(chunk, &mut each),
                Place::Space(field) => {
                    self.place = Place::Value(field);
                    chunk.strip_prefix(b" ").unwrap_or(chunk)
                }
                Place::Value(field) => self.read_value(field, chunk, &mut each),
            };
        }
    }

    /// What there was of an event that had begun when the stream ended, its lines as [`encode`] writes them. It is
    /// none, for all that a client cares.
    pub fn unfinished(&self) -> Option<Vec<u8>> {
        let open = match self.place {
            Place::Name => None,
            Place::Space(field) | Place::Value(field) => Some(field),
        };
        let Block { event, id, retry, has_data, data } = &self.block;
        let mut out = Vec::new();
        let mut line =
            |name: &[u8], value: &[u8]| out.extend_from_slice(&[name, b": ", value, b"\n"].concat());
        if let Some(event) = event {
            line(b"event", event);
        }
        if let Some(id) = id {
            line(b"id", id);
        }
        if let Some(retry) = retry {
            line(b"retry", retry.to_string().as_bytes());
        }
        if *has_data {
            data.so_far().split(|byte| *byte == b'\n').for_each(|part| line(b"data", part));
        }
        match open {
            Some(Field::Data) => {
                // Its line has not ended, and perhaps its value has not begun.
                out.pop();
                if self.place == Place::Space(Field::Data) {
                    out.pop();
                }
            }
            Some(Field::Other) => {}
            Some(_) => {
                out.extend_from_slice(&self.name);
                out.push(b':');
                if open.is_some_and(|field| self.place == Place::Value(field)) {
                    out.push(b' ');
                    out.extend_from_slice(&self.value);
                }
            }
            None => out.extend_from_slice(&self.name),
        }
        (!out.is_empty()).then_some(out)
    }

    fn read_name<'a>(&mut self, chunk: &'a [u8], each: &mut impl FnMut(Piece)) -> &'a [u8] {
        let Some(end) = memchr3(b':', b'\r', b'\n', chunk) else {
            self.keep_name(chunk);
            return &[];
        };
        self.keep_name(&chunk[..end]);
        if chunk[end] == b':' {
            let field = Field::named(&self.name);
            self.begin_value(field);
            self.place = Place::Space(field);
        } else if self.name.is_empty() {
            self.end_line(chunk[end]);
            self.block.dispatch(each);
        } else {
            // A name alone is a field with an empty value.
            let field = Field::named(&self.name);
            self.begin_value(field);
            self.end_field(field);
            self.end_line(chunk[end]);
        }
        &chunk[end + 1..]
    }

    fn read_value<'a>(&mut self, field: Field, chunk: &'a [u8], _each: &mut impl FnMut(Piece)) -> &'a [u8] {
        let end = memchr2(b'\r', b'\n', chunk);
        let part = &chunk[..end.unwrap_or(chunk.len())];
        match field {
            Field::Data => self.block.data.keep(part),
            Field::Other => {}
            Field::Event | Field::Id | Field::Retry => {
                let room = LONGEST_VALUE.saturating_sub(self.value.len());
                self.value.extend_from_slice(&part[..part.len().min(room)]);
            }
        }
        let Some(end) = end else { return &[] };
        self.end_field(field);
        self.end_line(chunk[end]);
        &chunk[end + 1..]
    }

    fn keep_name(&mut self, part: &[u8]) {
        let room = (LONGEST_NAME + 1).saturating_sub(self.name.len());
        self.name.extend_from_slice(&part[..part.len().min(room)]);
    }

    fn begin_value(&mut self, field: Field) {
        self.value.clear();
        if field == Field::Data && std::mem::replace(&mut self.block.has_data, true) {
            self.block.data.keep(b"\n");
        }
    }

    fn end_field(&mut self, field: Field) {
        let value = &self.value;
        match field {
            Field::Event => self.block.event = Some(value.clone()),
            // An id with a NUL in it is ignored, and so is a time that is no number.
            Field::Id if !value.contains(&0) => self.block.id = Some(value.clone()),
            Field::Retry => {
                let digits = value.iter().all(u8::is_ascii_digit).then_some(value);
                let number = digits.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
                self.block.retry = number.or(self.block.retry);
            }
            Field::Data | Field::Id | Field::Other => {}
        }
    }

    fn end_line(&mut self, end: u8) {
        self.after_cr = end == b'\r';
        self.name.clear();
        self.place = Place::Name;
    }
}

impl Field {
    fn named(name: &[u8]) -> Self {
        match name {
            b"data" => Self::Data,
            b"event" => Self::Event,
            b"id" => Self::Id,
            b"retry" => Self::Retry,
            _ => Self::Other,
        }
    }
}

impl Block {
    const fn has_fields(&self) -> bool {
        self.event.is_some() || self.id.is_some() || self.retry.is_some()
    }

    /// At a blank line.
    fn dispatch(&mut self, each: &mut impl FnMut(Piece)) {
        let is_something = self.has_data || self.has_fields();
        let no_data = !std::mem::take(&mut self.has_data);
        let (event, id, retry) = (self.event.take(), self.id.take(), self.retry.take());
        if !is_something {
            return;
        }
        each(match self.data.end() {
            Ok(data) => Piece::Event(SseEvent {
                id: id.map(Cow::Owned),
                event: event.map(Cow::Owned),
                retry,
                data: Cow::Owned(data),
                no_data,
            }),
            Err(oversize) => Piece::Oversize(oversize),
        });
    }
}

/// An event as it is sent: its fields in the order in which servers write them, LF as line ends, and a line of data for
/// each line of it, unless it had none.
pub fn encode(event: &SseEvent<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(event.data.len() + 64);
    push(event, &mut out);
    out
}

/// Appends an event as [`encode`] gives it.
pub fn push(event: &SseEvent<'_>, out: &mut Vec<u8>) {
    let mut field = |name: &[u8], value: &[u8]| {
        out.extend_from_slice(name);
        out.extend_from_slice(b": ");
        out.extend_from_slice(value);
        out.push(b'\n');
    };
    if let Some(name) = &event.event {
        field(b"event", name);
    }
    if let Some(id) = &event.id {
        field(b"id", id);
    }
    if let Some(retry) = event.retry {
        field(b"retry", retry.to_string().as_bytes());
    }
    // What a fault has given data has data.
    let mut rest = (!event.no_data || !event.data.is_empty()).then_some(&*event.data);
    while let Some(lines) = rest {
        let end = memchr2(b'\n', b'\r', lines);
        field(b"data", &lines[..end.unwrap_or(lines.len())]);
        rest = end.map(|end| &lines[end + 1 + usize::from(lines[end..].starts_with(b"\r\n"))..]);
    }
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(chunks: &[&[u8]], limit: usize) -> (Vec<Piece>, Option<Vec<u8>>) {
        let mut stream = EventStream::new(limit);
        let mut pieces = Vec::new();
        for chunk in chunks {
            stream.feed(chunk, |piece| pieces.push(piece));
        }
        (pieces, stream.unfinished())
    }

    fn event(event: Option<&str>, id: Option<&str>, retry: Option<u64>, data: &str) -> Piece {
        let own = |text: &str| Cow::Owned(text.as_bytes().to_vec());
        Piece::Event(SseEvent {
            id: id.map(own),
            event: event.map(own),
            retry,
            data: own(data),
            no_data: false,
        })
    }

    /// One without data.
    fn fields(event: Option<&str>, id: Option<&str>, retry: Option<u64>) -> Piece {
        let Piece::Event(event) = self::event(event, id, retry, "") else { unreachable!() };
        Piece::Event(SseEvent { no_data: true, ..event })
    }

    /// Whatever the stream is cut into, the events are the same: in one piece, cut in two at every byte, byte by byte.
    fn check(text: &str, expected: &[Piece], rest: Option<&str>) {
        let bytes = text.as_bytes();
        let expected = (expected.to_vec(), rest.map(|rest| rest.as_bytes().to_vec()));
        assert_eq!(parse(&[bytes], 1 << 20), expected, "{text:?} whole");
        for cut in 0..=bytes.len() {
            let (left, right) = bytes.split_at(cut);
            assert_eq!(parse(&[left, right], 1 << 20), expected, "{text:?} cut at {cut}");
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(parse(&single, 1 << 20), expected, "{text:?} byte by byte");
    }

    #[test]
    fn lines_end_in_every_way() {
        for end in ["\n", "\r", "\r\n"] {
            let text =
                "event: message|id: 1|data: {\"a\":1}||data: x|data:y|data|||data: z||".replace('|', end);
            let expected = [
                event(Some("message"), Some("1"), None, "{\"a\":1}"),
                event(None, None, None, "x\ny\n"),
                event(None, None, None, "z"),
            ];
            check(&text, &expected, None);
        }
        check(
            "data: a\r\ndata: b\n\rdata: c\r\r",
            &[event(None, None, None, "a\nb"), event(None, None, None, "c")],
            None,
        );
    }

    #[test]
    fn a_mark_before_the_first_line_is_none_of_it() {
        check("\u{feff}data: a\n\n", &[event(None, None, None, "a")], None);
        check("\u{feff}\u{feff}data: a\n\n", &[], None);
    }

    #[test]
    fn comments_and_unknown_fields_are_no_events() {
        check(":\n\n: ping\n\nretry: soon\n\nfoo: bar\nfoobarbazqux: 1\n\n", &[], None);
        check("event: ping\ndata: 2026-01-01\n\n", &[event(Some("ping"), None, None, "2026-01-01")], None);
        check("data\n\n", &[event(None, None, None, "")], None);
    }

    #[test]
    fn a_priming_event_keeps_id_and_retry() {
        check("id: p1\nretry: 3000\ndata: \n\n", &[event(None, Some("p1"), Some(3000), "")], None);
        check(
            "id: p1\n\ndata:  x:y \n\n",
            &[fields(None, Some("p1"), None), event(None, None, None, " x:y ")],
            None,
        );
        check("id: a\0b\ndata: 1\n\n", &[event(None, None, None, "1")], None);
    }

    #[test]
    fn an_event_without_data_is_not_one_with_empty_data() {
        let (bare, empty) = (fields(None, Some("p"), Some(5)), event(None, Some("p"), Some(5), ""));
        for end in ["\n", "\r", "\r\n"] {
            let text = "retry: 5|id: p||retry: 5|id: p|data:||retry: 5||id||event: ping||: comment||data||";
            let last = [
                fields(None, None, Some(5)),
                fields(None, Some(""), None),
                fields(Some("ping"), None, None),
                event(None, None, None, ""),
            ];
            check(&text.replace('|', end), &[&[bare.clone(), empty.clone()], &last[..]].concat(), None);
        }
        for (piece, text) in [(bare, "id: p\nretry: 5\n\n"), (empty, "id: p\nretry: 5\ndata: \n\n")] {
            let Piece::Event(event) = &piece else { unreachable!() };
            assert_eq!(encode(event), text.as_bytes());
            check(text, &[piece], None);
        }
        let given = SseEvent { data: b"x"[..].into(), no_data: true, ..SseEvent::default() };
        assert_eq!(encode(&given), b"data: x\n\n");
    }

    #[test]
    fn an_event_without_its_blank_line_is_none() {
        // What there was of it is kept, whatever line it was cut off in.
        let whole = "event: message\nid: 7\nretry: 30\ndata: {\"b\"\ndata: \ndata: c\n";
        for cut in 1..=whole.len() {
            // The value of a time is read at the end of its line only if it is a number.
            let rest = &whole[..cut];
            check(&format!("data: a\n\n{rest}"), &[event(None, None, None, "a")], Some(rest));
        }
        check("data: a\n\n: comment", &[event(None, None, None, "a")], None);
        check("data: a\n\nid:7\r\ndata:b\r\n", &[event(None, None, None, "a")], Some("id: 7\ndata: b\n"));
    }

    #[test]
    fn data_over_the_limit_is_measured() {
        let text = b"data: 12345\ndata: 678\n\ndata: ok\n\n";
        for cut in 0..=text.len() {
            let (left, right) = text.split_at(cut);
            let (pieces, _) = parse(&[left, right], 8);
            let [Piece::Oversize(oversize), second] = &pieces[..] else { panic!("{pieces:?}") };
            assert_eq!((oversize.size, oversize.head.as_slice()), (9, &b"12345\n678"[..]));
            assert_eq!(second, &event(None, None, None, "ok"));
        }
    }

    #[test]
    fn what_is_encoded_is_read_again() {
        let event = SseEvent {
            id: Some(b"7"[..].into()),
            event: Some(b"message"[..].into()),
            retry: Some(30),
            data: b"a\n\nb"[..].into(),
            no_data: false,
        };
        let bytes = encode(&event);
        assert_eq!(bytes, b"event: message\nid: 7\nretry: 30\ndata: a\ndata: \ndata: b\n\n");
        let mut read = Vec::new();
        EventStream::new(100).feed(&bytes, |piece| read.push(piece));
        assert_eq!(read, [Piece::Event(event)]);
        assert_eq!(encode(&SseEvent::default()), b"data: \n\n");
    }
}
