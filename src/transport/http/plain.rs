//! Heads as they stand in the bytes of a connection, for those who get by without a general implementation of HTTP.
//!
//! A request is read here only where nothing in it is doubtful; of whatever else comes nothing is said. A response is
//! read as hyper reads it, since it cannot be given to somebody else any more.

use std::{mem::MaybeUninit, ops::Range};

use httparse::{Header, ParserConfig, Status};

use super::{MAX_HEADERS, headers::is_chunks};

/// So many headers a plain request has at most, and so much room is made for those of other heads at first.
pub const MOST_HEADERS: usize = 32;

/// Headers in their order: names in lower case, and values.
pub type Fields<'a> = Vec<(&'a str, &'a [u8])>;

/// Longer heads are not kept to be known again.
const LONGEST_KEPT: usize = 4 << 10;

/// What was read of the last head on one side of a connection. Most heads come again as they were, and are not read
/// then. It serves heads of one kind.
#[derive(Debug, Default)]
pub struct LastHead {
    /// As it was sent; nothing where it is not kept.
    text: Vec<u8>,
    /// Of a request, method and target; then the names of all headers, in lower case.
    names: String,
    /// How long each name is, and where its value stands.
    fields: Vec<(usize, Range<usize>)>,
    length: usize,
    first: FirstLine,
    body: Option<usize>,
    is_chunked: bool,
    /// Which of the heads it is that were read and not known.
    number: u64,
}

/// What the first line of a head says.
#[derive(Debug, Default)]
enum FirstLine {
    #[default]
    Unread,
    /// How long method and target are.
    Request(usize, usize),
    /// Status, and whether it is of HTTP/1.1.
    Response(u16, bool),
}

/// What stands at the beginning of what a client has sent.
#[derive(Debug)]
pub enum Request<'a> {
    /// Its head.
    Head(RequestHead<'a>),
    /// A part of a head.
    Part,
    /// What is not read here.
    Unknown,
}

/// The head of a request.
#[derive(Debug)]
pub struct RequestHead<'a> {
    /// As it was sent.
    pub method: &'a str,
    /// Path and query; or `*`, which is no path.
    pub target: &'a str,
    /// All headers.
    pub fields: Fields<'a>,
    /// How many bytes the head has.
    pub length: usize,
    /// How many bytes the body has, where that is said.
    pub body: Option<usize>,
    /// The body comes in chunks.
    pub is_chunked: bool,
    /// Of one side of a connection, heads of the same number are the same.
    pub number: u64,
}

/// The head of a response.
#[derive(Debug)]
pub struct ResponseHead<'a> {
    /// From 100 on.
    pub status: u16,
    /// HTTP/1.1, and not HTTP/1.0.
    pub is_http11: bool,
    /// All headers.
    pub fields: Fields<'a>,
    /// How many bytes the head has.
    pub length: usize,
    /// Of one side of a connection, heads of the same number are the same.
    pub number: u64,
}

/// What a server sends is no response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a response that cannot be read")]
pub struct BadResponse;

/// Reads the head of a plain request: one that has few headers and says nothing of its connection but that it stays.
pub fn request<'a>(bytes: &'a [u8], last: &'a mut LastHead) -> Request<'a> {
    if !last.comes_again(bytes) {
        let mut room = [const { MaybeUninit::uninit() }; MOST_HEADERS];
        let parsed = parse_request(bytes, &mut room);
        if let Err(request) = read_request::<true>(parsed, bytes, last) {
            return request;
        }
    }
    last.request(bytes)
}

/// Reads the head of any request of HTTP/1.1 for a path, with at most one way to frame its body.
pub fn any_request<'a>(bytes: &'a [u8], last: &'a mut LastHead) -> Request<'a> {
    if !last.comes_again(bytes) {
        let mut room = [const { MaybeUninit::uninit() }; MOST_HEADERS];
        let read = match parse_request(bytes, &mut room) {
            Err(httparse::Error::TooManyHeaders) => long_request(bytes, last),
            parsed => read_request::<false>(parsed, bytes, last),
        };
        if let Err(request) = read {
            return request;
        }
    }
    last.request(bytes)
}

/// Apart, since its room is on the stack before it is elsewhere.
#[cold]
fn long_request<'a>(bytes: &'a [u8], last: &mut LastHead) -> Result<(), Request<'a>> {
    let mut room = Box::new([const { MaybeUninit::uninit() }; MAX_HEADERS]);
    read_request::<false>(parse_request(bytes, &mut *room), bytes, last)
}

type ParsedRequest<'a, 'b> = Result<Option<(usize, httparse::Request<'b, 'a>)>, httparse::Error>;

fn parse_request<'a, 'b>(bytes: &'a [u8], room: &'b mut [MaybeUninit<Header<'a>>]) -> ParsedRequest<'a, 'b> {
    let mut request = httparse::Request::new(&mut []);
    match request.parse_with_uninit_headers(bytes, room)? {
        Status::Complete(length) => Ok(Some((length, request))),
        Status::Partial => Ok(None),
    }
}

/// Takes in a request's head; what else it is.
fn read_request<'a, const PLAIN: bool>(
    parsed: ParsedRequest<'a, '_>,
    bytes: &'a [u8],
    last: &mut LastHead,
) -> Result<(), Request<'a>> {
    let (length, request) = match parsed {
        Ok(Some(parsed)) => parsed,
        Ok(None) => return Err(Request::Part),
        Err(_) => return Err(Request::Unknown),
    };
    let (Some(method), Some(target), Some(1)) = (request.method, request.path, request.version) else {
        return Err(Request::Unknown);
    };
    if !(is_usual(target) || !PLAIN && (is_target(target) || method == "OPTIONS" && target == "*")) {
        return Err(Request::Unknown);
    }
    last.note_fields(&[method, target], bytes, request.headers);
    last.first = FirstLine::Request(method.len(), target.len());
    (last.body, last.is_chunked) = framing::<PLAIN>(last.fields(bytes)).ok_or(Request::Unknown)?;
    last.keep(bytes, length);
    Ok(())
}

/// The length of a body, and whether it comes in chunks; none where that, or what else is said of the connection, is not
/// for here.
fn framing<'a, const PLAIN: bool>(
    fields: impl Iterator<Item = (&'a str, &'a [u8])>,
) -> Option<(Option<usize>, bool)> {
    let (mut body, mut is_chunked) = (None, false);
    for (name, value) in fields {
        match name {
            "content-length" if body.is_none() => body = Some(length(value)?),
            "connection" if value.eq_ignore_ascii_case(b"keep-alive") => {}
            "connection" | "expect" | "upgrade" if !PLAIN => {}
            "transfer-encoding" if !PLAIN && !is_chunked && ends_in_one_of_chunks(value) => is_chunked = true,
            "content-length" | "connection" | "transfer-encoding" | "upgrade" | "expect" => return None,
            _ => {}
        }
    }
    (!is_chunked || body.is_none()).then_some((body, is_chunked))
}

/// Where a part of `bytes` stands in them.
fn place(bytes: &[u8], part: &[u8]) -> Range<usize> {
    // What is empty may stand anywhere.
    let from = if part.is_empty() { 0 } else { part.as_ptr().addr() - bytes.as_ptr().addr() };
    from..from + part.len()
}

impl LastHead {
    /// Whether `bytes` begin with this head.
    fn comes_again(&self, bytes: &[u8]) -> bool {
        !self.text.is_empty() && bytes.starts_with(&self.text)
    }

    /// Takes in method and target, if it has these, and headers of a head that stands at the beginning of `bytes`, and
    /// forgets the one before.
    fn note_fields(&mut self, first: &[&str], bytes: &[u8], headers: &[Header<'_>]) {
        self.text.clear();
        self.names.clear();
        self.fields.clear();
        self.number += 1;
        first.iter().for_each(|part| self.names.push_str(part));
        let from = self.names.len();
        for header in headers {
            self.names.push_str(header.name);
            self.fields.push((header.name.len(), place(bytes, header.value)));
        }
        self.names[from..].make_ascii_lowercase();
    }

    /// The head is all that it was read for, and has so many of `bytes`.
    fn keep(&mut self, bytes: &[u8], length: usize) {
        self.length = length;
        if length <= LONGEST_KEPT {
            self.text.extend_from_slice(&bytes[..length]);
        }
    }

    /// Method and target of a request, and the names of all headers.
    fn parts(&self) -> (&str, &str, &str) {
        let (method, target) = match self.first {
            FirstLine::Request(method, target) => (method, target),
            FirstLine::Unread | FirstLine::Response(..) => (0, 0),
        };
        let (method, rest) = self.names.split_at(method);
        let (target, names) = rest.split_at(target);
        (method, target, names)
    }

    /// Names in lower case, and values, of the head at the beginning of `bytes`.
    fn fields<'a>(&'a self, bytes: &'a [u8]) -> impl ExactSizeIterator<Item = (&'a str, &'a [u8])> {
        let (_, _, mut rest) = self.parts();
        self.fields.iter().map(move |(length, value)| {
            let name;
            (name, rest) = rest.split_at(*length);
            (name, &bytes[value.clone()])
        })
    }

    fn request<'a>(&'a self, bytes: &'a [u8]) -> Request<'a> {
        let (method, target, _) = self.parts();
        let fields = self.fields(bytes).collect();
        let Self { length, body, is_chunked, number, .. } = *self;
        Request::Head(RequestHead { method, target, fields, length, body, is_chunked, number })
    }

    fn response<'a>(&'a self, bytes: &'a [u8]) -> Option<ResponseHead<'a>> {
        let FirstLine::Response(status, is_http11) = self.first else { return None };
        let fields = self.fields(bytes).collect();
        Some(ResponseHead { status, is_http11, fields, length: self.length, number: self.number })
    }
}

/// Whether chunks are the last of the codings in a value of `Transfer-Encoding`, and only that.
fn ends_in_one_of_chunks(value: &[u8]) -> bool {
    let mut codings = value.rsplit(|byte| *byte == b',').map(|coding| is_chunks(coding.trim_ascii()));
    codings.next() == Some(true) && !codings.any(|is_chunks| is_chunks)
}

/// Reads the head of a response; none where it is not yet whole.
///
/// # Errors
/// When it is none.
pub fn response<'a>(
    bytes: &'a [u8],
    last: &'a mut LastHead,
) -> Result<Option<ResponseHead<'a>>, BadResponse> {
    if !last.comes_again(bytes) {
        let mut room = [const { MaybeUninit::uninit() }; MOST_HEADERS];
        let is_whole = match parse_response(bytes, &mut room) {
            Err(httparse::Error::TooManyHeaders) => long_response(bytes, last)?,
            parsed => read_response(parsed, bytes, last)?,
        };
        if !is_whole {
            return Ok(None);
        }
    }
    Ok(last.response(bytes))
}

/// Apart, since its room is on the stack before it is elsewhere.
#[cold]
fn long_response(bytes: &[u8], last: &mut LastHead) -> Result<bool, BadResponse> {
    let mut room = Box::new([const { MaybeUninit::uninit() }; MAX_HEADERS]);
    read_response(parse_response(bytes, &mut *room), bytes, last)
}

type Parsed<'a, 'b> = Result<Option<(usize, u16, u8, &'b [Header<'a>])>, httparse::Error>;

fn parse_response<'a, 'b>(bytes: &'a [u8], room: &'b mut [MaybeUninit<Header<'a>>]) -> Parsed<'a, 'b> {
    let mut response = httparse::Response::new(&mut []);
    let mut config = ParserConfig::default();
    config
        .allow_obsolete_multiline_headers_in_responses(true)
        .allow_spaces_after_header_name_in_responses(true);
    match config.parse_response_with_uninit_headers(&mut response, bytes, room)? {
        Status::Partial => Ok(None),
        Status::Complete(length) => Ok(Some((
            length,
            response.code.unwrap_or_default(),
            response.version.unwrap_or_default(),
            response.headers,
        ))),
    }
}

/// Takes in a response's head; whether it is whole.
fn read_response(parsed: Parsed<'_, '_>, bytes: &[u8], last: &mut LastHead) -> Result<bool, BadResponse> {
    let Some((length, status, version, headers)) = parsed.map_err(|_| BadResponse)? else { return Ok(false) };
    if status < 100 {
        return Err(BadResponse);
    }
    last.note_fields(&[], bytes, headers);
    last.first = FirstLine::Response(status, version == 1);
    last.keep(bytes, length);
    Ok(true)
}

impl ResponseHead<'_> {
    /// Whether a value goes on over several lines.
    pub fn is_folded(&self) -> bool {
        self.fields.iter().any(|(_, value)| memchr::memchr2(b'\r', b'\n', value).is_some())
    }
}

/// The lines of a head, with their ends.
pub fn lines(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = head;
    std::iter::from_fn(move || Some(take_line(&mut rest, 0)).filter(|line| !line.is_empty()))
}

/// Takes the line that `rest` begins with, with its end, which stands behind at least so many bytes.
pub fn take_line<'a>(rest: &mut &'a [u8], behind: usize) -> &'a [u8] {
    let end = rest.iter().skip(behind).position(|byte| *byte == b'\n');
    let line;
    (line, *rest) = rest.split_at(end.map_or(rest.len(), |end| behind + end + 1));
    line
}

/// A head whose values go on over several lines, with each of them on one (RFC 9112, 5.2).
pub fn unfolded(head: &[u8]) -> Vec<u8> {
    let mut unfolded = Vec::with_capacity(head.len());
    for line in lines(head) {
        if line.starts_with(b" ") || line.starts_with(b"\t") {
            unfolded.truncate(unfolded.trim_ascii_end().len());
            unfolded.push(b' ');
            unfolded.extend_from_slice(line.trim_ascii());
            unfolded.extend_from_slice(b"\r\n");
        } else {
            unfolded.extend_from_slice(line);
        }
    }
    unfolded
}

/// The length of a body, where that is as usual.
fn length(value: &[u8]) -> Option<usize> {
    let digits = std::str::from_utf8(value).ok()?;
    let is_number = digits.len() < 16 && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| is_number)
}

/// Whether a target is a path, perhaps with a query, of what stands for itself there.
fn is_usual(target: &str) -> bool {
    let is_usual = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~%?=&+:@,;!*".contains(&byte);
    target.len() <= 4096 && target.starts_with('/') && target.bytes().all(is_usual)
}

/// Whether a target is a path, perhaps with a query, of bytes that everybody passes on as they are.
fn is_target(target: &str) -> bool {
    let passes = |byte| matches!(byte, b'!' | b'$'..=b';' | b'=' | b'?'..=b'_' | b'a'..=b'z' | b'|' | b'~');
    target.len() < usize::from(u16::MAX) && target.starts_with('/') && target.bytes().all(passes)
}

#[cfg(test)]
mod tests;
