//! Heads that are read, and such that come again.

use super::*;

#[test]
fn a_response_is_read_as_soon_as_its_head_is_whole() {
    let text = b"HTTP/1.1 299 Quite Fine\r\nX-A: 1\r\nEmpty:\r\nx-a : \xe9 \r\n\r\n";
    for cut in 0..text.len() {
        assert!(matches!(response(&text[..cut], &mut LastHead::default()), Ok(None)), "{cut}");
    }
    let mut last = LastHead::default();
    let head = response(text, &mut last).unwrap().unwrap();
    assert_eq!((head.status, head.is_http11, head.length), (299, true, text.len()));
    assert_eq!(head.fields, [("x-a", &b"1"[..]), ("empty", b""), ("x-a", b"\xe9")]);
    assert!(!head.is_folded());
}

#[test]
fn a_request_is_read_where_it_has_one_meaning() {
    let many = "X: 1\r\n".repeat(MAX_HEADERS - 1);
    for (line, headers, body, is_chunked) in [
        ("GET /a?b=$(c)[1]'d'|~", "Connection: close, x\r\nUpgrade: y", None, false),
        ("OPTIONS *", "Expect: 100-continue\r\nContent-Length: 7", Some(7), false),
        ("bReW /", "Transfer-Encoding: gzip, Chunked", None, true),
        ("PUT /", &*(many.clone() + "A: b"), None, false),
    ] {
        let text = format!("{line} HTTP/1.1\r\n{headers}\r\n\r\n");
        let mut last = LastHead::default();
        let Request::Head(head) = any_request(text.as_bytes(), &mut last) else { panic!("{line}") };
        assert_eq!((head.method, head.target), line.split_once(' ').unwrap());
        assert_eq!((head.body, head.is_chunked, head.length), (body, is_chunked, text.len()), "{line}");
        assert!(matches!(request(text.as_bytes(), &mut LastHead::default()), Request::Unknown), "{line}");
        for cut in 0..text.len().min(200) {
            assert!(matches!(any_request(&text.as_bytes()[..cut], &mut LastHead::default()), Request::Part));
        }
    }
    for bad in [
        "GET http://a/ HTTP/1.1\r\n\r\n",
        "GET * HTTP/1.1\r\n\r\n",
        "GET /a#b HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.0\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked, chunked\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked, identity\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n",
        &format!("PUT / HTTP/1.1\r\n{many}{many}\r\n"),
    ] {
        assert!(matches!(any_request(bad.as_bytes(), &mut LastHead::default()), Request::Unknown), "{bad}");
    }
}

/// Reads a head: what it is without its number, and whether it is the one before.
type Read = dyn Fn(&[u8], &mut LastHead) -> (String, bool);

fn unnumbered(head: &str) -> String {
    head.split(", number: ").next().unwrap_or_default().to_owned()
}

#[test]
fn a_head_that_comes_again_is_read_as_at_first() {
    let post =
        |more: &str| format!("POST /a?b HTTP/1.1\r\nHost: h\r\nEmpty:\r\n{more}Content-Length: 3\r\n\r\nabc");
    let long = format!("X: {}\r\n", "y".repeat(LONGEST_KEPT));
    let asked = [post(""), post("X-A: \u{e9}\r\n"), post(&long), post("Connection: close\r\n")];
    let told = ["HTTP/1.1 200 OK\r\nA: 1\r\n\r\n", "HTTP/1.0 404 No\r\nB:\r\n\r\nabc"].map(str::to_owned);
    let read_request = |text: &[u8], last: &mut LastHead| {
        let number = last.number;
        let request = any_request(text, last);
        let is_same = matches!(&request, Request::Head(head) if head.number == number);
        (unnumbered(&format!("{request:?}")), is_same)
    };
    let read_response = |text: &[u8], last: &mut LastHead| {
        let number = last.number;
        let response = response(text, last);
        let is_same = matches!(&response, Ok(Some(head)) if head.number == number);
        (unnumbered(&format!("{response:?}")), is_same)
    };
    let as_at_first = |read: &Read, texts: &[String], order: &[usize]| {
        let mut last = LastHead::default();
        for pair in [&[usize::MAX], order].concat().windows(2) {
            let text = texts[pair[1]].as_bytes();
            let (expected, _) = read(text, &mut LastHead::default());
            let is_same = pair[0] == pair[1] && text.len() < LONGEST_KEPT;
            // A part of it is no more than that, and what cannot be read leaves no trace.
            let cut = read(&text[..10], &mut last);
            assert_eq!(cut, read(&text[..10], &mut LastHead::default()));
            assert_eq!(read(text, &mut last), (expected, is_same), "{pair:?}");
        }
        read(b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n", &mut last);
        let text = texts[0].as_bytes();
        assert_eq!(read(text, &mut last), read(text, &mut LastHead::default()));
    };
    as_at_first(&read_request, &asked, &[0, 0, 1, 1, 0, 2, 2, 3, 3, 0]);
    as_at_first(&read_response, &told, &[0, 0, 1, 1, 0, 1]);
}

#[test]
fn many_headers_are_read_and_more_are_refused() {
    let head = |count: usize| format!("HTTP/1.0 200\r\n{}\r\n", "X: 1\r\n".repeat(count));
    let mut last = LastHead::default();
    let text = head(MAX_HEADERS);
    let read = response(text.as_bytes(), &mut last).unwrap().unwrap();
    assert_eq!((read.fields.len(), read.is_http11), (MAX_HEADERS, false));
    assert_eq!(response(head(MAX_HEADERS + 1).as_bytes(), &mut last).err(), Some(BadResponse));
    for bad in ["SSH-2.0-OpenSSH\r\n\r\n", "HTTP/1.1 099 X\r\n\r\n", "HTTP/1.1 200 OK\r\nno colon\r\n\r\n"] {
        assert_eq!(response(bad.as_bytes(), &mut last).err(), Some(BadResponse), "{bad}");
    }
}

#[test]
fn values_over_several_lines_come_on_one() {
    let text = b"HTTP/1.1 200 OK\r\nX: a \r\n\t b\n  c\r\nY: d\r\n\r\n";
    let mut last = LastHead::default();
    assert!(response(text, &mut last).unwrap().unwrap().is_folded());
    let unfolded = unfolded(text);
    assert_eq!(unfolded, b"HTTP/1.1 200 OK\r\nX: a b c\r\nY: d\r\n\r\n");
    let head = response(&unfolded, &mut last).unwrap().unwrap();
    assert_eq!((head.is_folded(), head.fields[0]), (false, ("x", &b"a b c"[..])));
}
