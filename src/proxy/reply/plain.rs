//! Responses that are whole and as plain as can be, written as hyper writes them.

use std::io::Write as _;

use hyper::StatusCode;

use crate::{
    fault::step::{Output, ResponseHead},
    traffic::SseEvent,
    wire::{
        http::{is_field_value, is_of_connection},
        sse,
    },
};

/// Appends the response that outputs make up; false where they are no whole response in good order, or hyper knows
/// better how it is written.
pub(in crate::proxy) fn write(outputs: &[Output], response: &mut Vec<u8>) -> bool {
    let [Output::Head { head, .. }, said @ .., Output::EndLane { partial, end: None, .. }] = outputs else {
        return false;
    };
    if !partial.is_empty() || !is_plain(head) {
        return false;
    }
    match said {
        [] if !head.stream => write_body(head, b"", response),
        [Output::Body { bytes, .. }] if !head.stream => write_body(head, bytes, response),
        said if head.stream && said.iter().all(|said| matches!(said, Output::Event { .. })) => {
            write_head(head, response);
            response.extend_from_slice(b"transfer-encoding: chunked\r\n\r\n");
            for said in said {
                if let Output::Event { event, .. } = said {
                    write_chunk(event, response);
                }
            }
            response.extend_from_slice(b"0\r\n\r\n");
        }
        _ => return false,
    }
    true
}

/// Whether hyper would write a head as it stands, with nothing but the length of the body behind it.
fn is_plain(head: &ResponseHead) -> bool {
    // Some have no body whatever is said.
    let has_body = matches!(head.status, 200..=203 | 206..=303 | 305..=599);
    has_body
        && head.headers.iter().enumerate().all(|(at, (name, value))| {
            // Values of one name go together.
            let is_first = head.headers[..at].iter().all(|(other, _)| other != name);
            is_first && is_usual(name) && !is_of_connection(name) && is_field_value(value)
        })
}

/// Whether a name is a token in lower case, of the letters and signs that nearly all of them have.
fn is_usual(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_'))
}

fn write_body(head: &ResponseHead, body: &[u8], response: &mut Vec<u8>) {
    response.reserve(256 + body.len());
    write_head(head, response);
    response.extend_from_slice(b"content-length: ");
    push_number(body.len(), 10, response);
    response.extend_from_slice(b"\r\n\r\n");
    response.extend_from_slice(body);
}

/// Appends an event as one chunk. Its length stands before it, and is known behind it.
fn write_chunk(event: &SseEvent<'_>, response: &mut Vec<u8>) {
    let from = response.len();
    response.reserve(event.data.len() + 128);
    sse::push(event, response);
    let to = response.len();
    push_number(to - from, 16, response);
    response.extend_from_slice(b"\r\n");
    response[from..].rotate_left(to - from);
    response.extend_from_slice(b"\r\n");
}

/// Appends a number. All responses have one, and what formats anything takes longer for it than for the rest of a head.
fn push_number(number: usize, base: usize, response: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let (mut from, mut rest) = (digits.len(), number);
    while rest > 0 || from == digits.len() {
        from -= 1;
        digits[from] = b"0123456789ABCDEF"[rest % base];
        rest /= base;
    }
    response.extend_from_slice(&digits[from..]);
}

fn write_head(head: &ResponseHead, response: &mut Vec<u8>) {
    match head.status {
        200 => response.extend_from_slice(b"HTTP/1.1 200 OK\r\n"),
        status => {
            let reason = StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
            let _ = write!(response, "HTTP/1.1 {status} {}\r\n", reason.unwrap_or_default());
        }
    }
    for (name, value) in &head.headers {
        response.extend_from_slice(name.as_bytes());
        response.extend_from_slice(b": ");
        response.extend_from_slice(value);
        response.extend_from_slice(b"\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{cassette::model::StreamEnd, traffic::Lane};

    const LANE: Lane = Lane(1);

    fn head(status: u16, headers: &[(&str, &str)], stream: bool) -> Output {
        let headers = headers
            .iter()
            .map(|(name, value)| ((*name).to_owned().into(), value.as_bytes().to_vec().into()))
            .collect();
        Output::Head { lane: LANE, head: ResponseHead { status, headers, stream } }
    }

    fn end(end: Option<StreamEnd>) -> Output {
        Output::EndLane { lane: LANE, partial: Vec::new(), end }
    }

    fn body(text: &str) -> Output {
        Output::Body { lane: LANE, bytes: text.into() }
    }

    fn event(data: &'static str) -> Output {
        Output::Event { lane: LANE, event: SseEvent { data: data.as_bytes().into(), ..SseEvent::default() } }
    }

    fn written(outputs: &[Output]) -> Option<String> {
        let mut response = Vec::new();
        write(outputs, &mut response).then(|| String::from_utf8(response).unwrap())
    }

    #[test]
    fn whole_responses_are_written() {
        assert_eq!(
            written(&[
                head(200, &[("content-type", "a/b"), ("x", "1")], false),
                body("0123456789"),
                end(None)
            ])
            .as_deref(),
            Some("HTTP/1.1 200 OK\r\ncontent-type: a/b\r\nx: 1\r\ncontent-length: 10\r\n\r\n0123456789")
        );
        assert_eq!(
            written(&[head(202, &[], false), end(None)]).as_deref(),
            Some("HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n")
        );
        assert_eq!(
            written(&[head(200, &[], true), event("0123456789"), event("x"), end(None)]).as_deref(),
            Some(
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\
                 12\r\ndata: 0123456789\n\n\r\n9\r\ndata: x\n\n\r\n0\r\n\r\n"
            )
        );
    }

    #[test]
    fn what_is_not_whole_or_not_plain_is_left_to_hyper() {
        for outputs in [
            &[head(200, &[], false), body("x")][..],
            &[head(200, &[], true), event("x")],
            &[end(None)],
            &[head(200, &[], false), body("x"), end(Some(StreamEnd::Cut))],
            &[head(200, &[], false), body("x"), Output::HalfClose { lane: LANE }, end(None)],
            &[head(200, &[], false), body("x"), body("y"), end(None)],
            &[head(200, &[], true), body("x"), end(None)],
            &[head(204, &[], false), end(None)],
            &[head(304, &[], false), end(None)],
            &[head(100, &[], false), end(None)],
            &[head(200, &[("connection", "close")], false), end(None)],
            &[head(200, &[("content-length", "7")], false), end(None)],
            &[head(200, &[("a", "1"), ("b", "2"), ("a", "3")], false), end(None)],
            &[head(200, &[("a b", "1")], false), end(None)],
            &[head(200, &[("a", "1\n")], false), end(None)],
        ] {
            assert_eq!(written(outputs), None, "{outputs:?}");
        }
    }
}
