//! Which headers end at this hop, and which go on.
//!
//! A header map is never edited in place: removing from one moves another header into the hole.

use hyper::{
    HeaderMap, Request,
    header::{COOKIE, HOST, HeaderName, HeaderValue, TRANSFER_ENCODING},
};

use super::plain::Fields;

/// What the headers of a message say of the connection that it comes on, asked header by header, in their order.
#[derive(Debug)]
pub struct Hop<'a> {
    is_chunked: bool,
    /// What `Connection` lists.
    options: Vec<&'a str>,
    has_closed: bool,
}

/// Whether a header goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Onward {
    /// It does, and is nobody's to change: the framing that both hops share.
    Framing,
    /// It does, as `close`.
    Close,
    /// It does.
    Goes,
    /// It ends here.
    Ends,
}

impl<'a> Hop<'a> {
    /// Of a message with these headers.
    pub fn of(headers: &[(&'a str, &'a [u8])]) -> Self {
        let mut is_chunked = false;
        // Most connections say nothing of themselves.
        let mut options = Vec::new();
        for &(name, value) in headers {
            match name {
                "transfer-encoding" => is_chunked = ends_in_chunks(value),
                "connection" => {
                    let value = std::str::from_utf8(value).ok().filter(|value| value.is_ascii());
                    options.extend(value.unwrap_or_default().split(',').map(str::trim));
                }
                _ => {}
            }
        }
        Self { is_chunked, options, has_closed: false }
    }

    /// Whether the header of this name goes on, which is the next one.
    pub fn onward(&mut self, name: &str) -> Onward {
        match name {
            "transfer-encoding" if self.is_chunked => Onward::Framing,
            "connection" if self.closes() && !std::mem::replace(&mut self.has_closed, true) => Onward::Close,
            _ if ends_at_hops(name) || self.has_option(name) => Onward::Ends,
            _ => Onward::Goes,
        }
    }

    /// Whether the sender closes the connection after this message.
    pub fn closes(&self) -> bool {
        self.has_option("close")
    }

    /// Whether `Connection` lists this.
    pub fn has_option(&self, name: &str) -> bool {
        self.options.iter().any(|option| option.eq_ignore_ascii_case(name))
    }
}

/// Whether a header ends at any hop. The framing that both hops share does not: a chunked body stays chunked.
fn ends_at_hops(name: &str) -> bool {
    matches!(
        name,
        "connection"
            | "keep-alive"
            | "proxy-authorization"
            | "proxy-connection"
            | "te"
            | "transfer-encoding"
            | "upgrade"
    )
}

/// Whether the body is framed by chunks, whatever is in them.
fn is_chunked(headers: &HeaderMap) -> bool {
    let last = headers.get_all(TRANSFER_ENCODING).iter().next_back();
    last.is_some_and(|value| ends_in_chunks(value.as_bytes()))
}

/// Whether the last of the codings in a value of `Transfer-Encoding` is chunks.
fn ends_in_chunks(value: &[u8]) -> bool {
    let last = value.rsplit(|byte| *byte == b',').next();
    last.is_some_and(|last| is_chunks(last.trim_ascii()))
}

/// Whether a coding is chunks.
pub fn is_chunks(coding: &[u8]) -> bool {
    coding.eq_ignore_ascii_case(b"chunked")
}

/// The codings in a value of `Transfer-Encoding`; `identity` is none (RFC 9112, 7).
pub fn transfer_codings(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let codings = value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    codings.filter(|coding| !coding.is_empty() && !coding.eq_ignore_ascii_case(b"identity"))
}

/// The same headers as text and bytes.
pub fn pairs(headers: &HeaderMap) -> Fields<'_> {
    headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect()
}

/// A request of HTTP/2 in the terms of HTTP/1.1: the authority is the host, and cookies stand on one line (RFC 9113,
/// 8.2.3 and 8.3.1).
pub fn with_host<B>(mut request: Request<B>) -> Request<B> {
    let authority = request.uri().authority().map(|authority| HeaderValue::from_str(authority.as_str()));
    let mut headers = HeaderMap::with_capacity(request.headers().len() + 1);
    if let Some(Ok(host)) = authority.filter(|_| !request.headers().contains_key(HOST)) {
        headers.insert(HOST, host);
    }
    let cookies: Vec<_> = request.headers().get_all(COOKIE).iter().map(HeaderValue::as_bytes).collect();
    let cookies = HeaderValue::from_bytes(&cookies.join(&b"; "[..]));
    for (name, value) in request.headers() {
        match &cookies {
            Ok(cookies) if *name == COOKIE => drop(headers.insert(COOKIE, cookies.clone())),
            _ => drop(headers.append(name, value.clone())),
        }
    }
    *request.headers_mut() = headers;
    request
}

/// The headers that go on, in their order, each with the value that `each` gives it; `None` leaves it out.
pub fn pass_on(
    headers: &HeaderMap,
    mut each: impl FnMut(&HeaderName, &HeaderValue) -> Option<HeaderValue>,
) -> HeaderMap {
    let mut passed = HeaderMap::with_capacity(headers.len() + 1);
    let mut hop = Hop::of(&pairs(headers));
    for (name, value) in headers {
        let value = match hop.onward(name.as_str()) {
            Onward::Framing => Some(value.clone()),
            Onward::Close => Some(HeaderValue::from_static("close")),
            Onward::Goes => each(name, value),
            Onward::Ends => None,
        };
        if let Some(value) = value {
            passed.append(name, value);
        }
    }
    passed
}

/// Whether every header goes on as it is, so that values may be changed in place.
pub fn all_go_on(headers: &HeaderMap) -> bool {
    headers
        .keys()
        .all(|name| !ends_at_hops(name.as_str()) || *name == TRANSFER_ENCODING && is_chunked(headers))
}

/// Whether a body is compressed, or otherwise not what it stands for.
pub fn is_coded(headers: &HeaderMap) -> bool {
    codings(&pairs(headers)).any(is_coding)
}

/// The values of `Content-Encoding`, and what of `Transfer-Encoding` is still there when chunks are joined.
pub fn codings<'a>(headers: &[(&'a str, &'a [u8])]) -> impl Iterator<Item = &'a [u8]> {
    let values = |name| headers.iter().filter(move |(other, _)| *other == name).map(|(_, value)| *value);
    let transfer = values("transfer-encoding").flat_map(transfer_codings);
    values("content-encoding").chain(transfer.filter(|coding| !is_chunks(coding)))
}

/// Whether one of these is any.
pub fn is_coding(value: &[u8]) -> bool {
    !matches!(value.trim_ascii(), b"" | b"identity")
}

/// Whether a content type is this one, whatever its case and parameters.
pub fn is_type(content_type: Option<&HeaderValue>, expected: &str) -> bool {
    content_type.is_some_and(|value| crate::wire::http::is_type(value.as_bytes(), expected))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(headers: &[(&str, &str)]) -> HeaderMap {
        headers
            .iter()
            .map(|(name, value)| (name.parse::<HeaderName>().unwrap(), value.parse::<HeaderValue>().unwrap()))
            .collect()
    }

    #[test]
    fn what_ends_here_is_left_out_and_the_rest_keeps_its_order() {
        let headers = map(&[
            ("host", "a"),
            ("connection", "keep-alive, X-Hop"),
            ("keep-alive", "timeout=5"),
            ("x-hop", "1"),
            ("accept", "*/*"),
            ("upgrade", "h2c"),
            ("te", "trailers"),
            ("transfer-encoding", "gzip, Chunked"),
            ("mcp-session-id", ""),
        ]);
        let passed = pass_on(&headers, |_, value| Some(value.clone()));
        let names: Vec<&str> = passed.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["host", "accept", "transfer-encoding", "mcp-session-id"]);
    }

    #[test]
    fn the_end_of_a_connection_is_told() {
        let passed = pass_on(&map(&[("connection", "Close, x"), ("x", "1")]), |_, value| Some(value.clone()));
        assert_eq!(passed, map(&[("connection", "close")]));
    }

    #[test]
    fn content_types_are_compared_without_case_and_parameters() {
        let is = |value: &'static str| is_type(Some(&HeaderValue::from_static(value)), "text/event-stream");
        assert!(is("Text/Event-Stream ; charset=utf-8") && is("text/event-stream"));
        assert!(!is("text/event-streams") && !is("") && !is_type(None, "text/event-stream"));
    }
}
