//! Which headers end at this hop, and which go on.
//!
//! A header map is never edited in place: removing from one moves another header into the hole.

use hyper::{
    HeaderMap, Request,
    header::{
        CONNECTION, CONTENT_ENCODING, COOKIE, HOST, HeaderName, HeaderValue, TE, TRANSFER_ENCODING, UPGRADE,
    },
};

const HOP_BY_HOP: [&str; 3] = ["keep-alive", "proxy-connection", "proxy-authorization"];

/// Whether a header ends at this hop. The framing that both hops share does not: a chunked body stays chunked.
pub fn ends_here(name: &HeaderName, headers: &HeaderMap) -> bool {
    ends_at_hops(name) || connection_options(headers).any(|option| option.eq_ignore_ascii_case(name.as_str()))
}

/// Whether a header ends at any hop.
fn ends_at_hops(name: &HeaderName) -> bool {
    *name == CONNECTION
        || *name == TE
        || *name == UPGRADE
        || *name == TRANSFER_ENCODING
        || HOP_BY_HOP.contains(&name.as_str())
}

/// Whether the sender closes the connection after this message.
pub fn closes(headers: &HeaderMap) -> bool {
    connection_options(headers).any(|option| option.eq_ignore_ascii_case("close"))
}

/// Whether the body is framed by chunks and nothing else.
pub fn is_chunked(headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    codings.next().is_some_and(|coding| coding.as_bytes().eq_ignore_ascii_case(b"chunked"))
        && codings.next().is_none()
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
    going_on(headers, |name, value, is_ours| {
        if let Some(value) = if is_ours { Some(value.clone()) } else { each(name, value) } {
            passed.append(name, value);
        }
    });
    passed
}

/// The same as a list, for those who only read it.
pub fn list_on(
    headers: &HeaderMap,
    mut each: impl FnMut(&HeaderName, &HeaderValue) -> Option<HeaderValue>,
) -> Vec<(HeaderName, HeaderValue)> {
    let mut passed = Vec::with_capacity(headers.len());
    going_on(headers, |name, value, is_ours| {
        if let Some(value) = if is_ours { Some(value.clone()) } else { each(name, value) } {
            passed.push((name.clone(), value));
        }
    });
    passed
}

/// Whether every header goes on as it is, so that values may be changed in place.
pub fn all_go_on(headers: &HeaderMap) -> bool {
    !headers.contains_key(CONNECTION)
        && headers.keys().all(|name| !ends_at_hops(name) || *name == TRANSFER_ENCODING && is_chunked(headers))
}

/// Gives each header that goes on to `push`, and whether its value is ours.
fn going_on(headers: &HeaderMap, mut push: impl FnMut(&HeaderName, &HeaderValue, bool)) {
    let is_chunked = is_chunked(headers);
    // Most connections say nothing of themselves.
    let has_options = headers.contains_key(CONNECTION);
    let closes = has_options && closes(headers);
    let mut has_closed = false;
    for (name, value) in headers {
        if *name == TRANSFER_ENCODING && is_chunked {
            push(name, value, true);
        } else if *name == CONNECTION && closes && !has_closed {
            has_closed = true;
            push(name, &HeaderValue::from_static("close"), true);
        } else if !if has_options { ends_here(name, headers) } else { ends_at_hops(name) } {
            push(name, value, false);
        }
    }
}

fn connection_options(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let values = headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim)
}

/// Whether a body is compressed, or otherwise not what it stands for.
pub fn is_coded(headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(CONTENT_ENCODING).iter();
    codings.any(|coding| !matches!(coding.as_bytes().trim_ascii(), b"" | b"identity"))
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
            ("transfer-encoding", "chunked"),
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
