//! HTTP/2: requests and answers in part, recorded and replayed.

use std::{
    fs,
    pin::Pin,
    task::{Context, Poll},
};

use hyper::body::{Body, Bytes, Frame, Incoming};
use tempfile::TempDir;

use super::*;
use crate::support::front::Front as Process;

const BEGINNING: &str =
    r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"up","arguments":{"text":"first "#;
const HALF: &str = r#"{"jsonrpc":"2.0","id":7,"result":{"te"#;
const REFUSAL: &str = "HTTP/1.1 413 Payload Too Large\r\nContent-Type: text/plain\r\nContent-Length: 7\r\nConnection: close\r\n\r\ntoo big";

/// A body of which no more comes, or that is all.
struct Sent {
    text: Option<Bytes>,
    ends: bool,
}

impl Body for Sent {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match self.text.take().filter(|text| !text.is_empty()) {
            Some(text) => Poll::Ready(Some(Ok(Frame::data(text)))),
            None if self.ends => Poll::Ready(None),
            None => Poll::Pending,
        }
    }
}

/// What a client hears: status, body as far as it comes, and whether its stream is reset. One that `leaves` does so once
/// it has heard this much of the body, and does not wait for more.
async fn hears(
    address: &str,
    issuer: &Issuer,
    (text, ends): (&str, bool),
    leaves: Option<&str>,
) -> (u16, String, bool) {
    let stream = connect(address, issuer, "h2").await;
    let builder = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
    let (mut sender, connection) = builder.handshake(TokioIo::new(stream)).await.unwrap();
    let connection = tokio::spawn(connection);
    let request = Request::post("https://localhost/mcp")
        .header("accept", "application/json, text/event-stream")
        .header("content-length", if ends { text.len() } else { 5000 });
    let body = Sent { text: Some(Bytes::copy_from_slice(text.as_bytes())), ends };
    let response = sender.send_request(request.body(body).unwrap()).await;
    let Ok(response) = response else { return (0, String::new(), true) };
    let status = response.status().as_u16();
    let (heard, is_reset) = body_of(response, leaves).await;
    connection.abort();
    (status, heard, is_reset)
}

async fn body_of(response: Response<Incoming>, leaves: Option<&str>) -> (String, bool) {
    let mut body = pin!(response.into_body());
    let mut text = String::new();
    while leaves != Some(&text) {
        match std::future::poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
            Some(Ok(frame)) => text += std::str::from_utf8(frame.data_ref().unwrap()).unwrap(),
            Some(Err(_)) => return (text, true),
            None => return (text, false),
        }
    }
    (text, false)
}

/// Records a server that says this once it has read so much of a request, and a client of HTTP/2; what that hears, and the
/// folder with the cassette.
fn record(
    issuer: &Issuer,
    sent: (&str, bool),
    answer: &str,
    leaves: Option<&str>,
) -> ((u16, String, bool), TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let (listener, port) = listener();
    let url = format!("http://127.0.0.1:{port}/mcp");
    let path = folder.path().join("c.json");
    let front = process(issuer, &["record", path.to_str().unwrap(), "--url", &url], &folder);
    let (answer, until, stays) = (answer.to_owned(), format!("\r\n\r\n{}", sent.0), leaves.is_some());
    let server = std::thread::spawn(move || {
        let mut peer = Peer::new(listener.accept().unwrap().0);
        let mut taken = Vec::new();
        while !taken.ends_with(until.as_bytes()) {
            let mut byte = [0];
            peer.0.read_exact(&mut byte).unwrap();
            taken.push(byte[0]);
        }
        peer.say(answer);
        if !stays {
            peer.0.shutdown(std::net::Shutdown::Write).unwrap();
        }
        let _ = peer.0.read_to_end(&mut taken);
    });
    let address = front.origin.strip_prefix("https://").unwrap();
    let heard = runtime().block_on(hears(address, issuer, sent, leaves));
    front.end();
    server.join().unwrap();
    (heard, folder)
}

pub(super) fn process(issuer: &Issuer, arguments: &[&str], folder: &TempDir) -> Process {
    let (cert, key) = issuer.files(&issuer.issue("localhost", |_| ()));
    let files = [cert, key].map(|path| path.to_str().unwrap().to_owned());
    let options = ["--cert", &files[0], "--key", &files[1]];
    Process::start(&[arguments, &options].concat(), folder.path())
}

/// The cassette, and what a client hears of its replay.
fn replay(
    issuer: &Issuer,
    folder: &TempDir,
    sent: (&str, bool),
    leaves: Option<&str>,
) -> (String, (u16, String, bool)) {
    let path = folder.path().join("c.json");
    let front = process(issuer, &["replay", path.to_str().unwrap()], folder);
    let address = front.origin.strip_prefix("https://").unwrap();
    let heard = runtime().block_on(hears(address, issuer, sent, leaves));
    front.end();
    (fs::read_to_string(&path).unwrap(), heard)
}

#[test]
fn a_request_that_is_cut_off_or_answered_without_its_rest_is_replayed_so() {
    let issuer = Issuer::new();
    for beginning in ["", "{\"jsonrpc\"", BEGINNING] {
        for answer in ["", REFUSAL] {
            let sent = (beginning, false);
            let (heard, folder) = record(&issuer, sent, answer, None);
            assert_eq!(heard.0, if answer.is_empty() { 0 } else { 413 }, "{beginning} {answer}");
            let (text, again) = replay(&issuer, &folder, sent, None);
            let part = format!("\"body\": \"{}\", \"partial\": true", beginning.replace('"', "\\\""));
            let shown = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(shown.contains(&part), "{shown}");
            assert!(shown.contains(r#""content-length": "5000""#), "{shown}");
            assert_eq!(again, heard, "{beginning} {answer}");
        }
    }
}

#[test]
fn an_answer_that_is_cut_off_or_left_is_replayed_as_far_as_it_came() {
    let issuer = Issuer::new();
    let sent = (CALL, true);
    let answer =
        format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 90\r\n\r\n{HALF}");
    let part = format!("\"partial\": \"{}\"", HALF.replace('"', "\\\""));
    for (leaves, end) in [(None, "\"end\": \"cut\""), (Some(HALF), "\"unanswered\": \"open\"")] {
        let (heard, folder) = record(&issuer, sent, &answer, leaves);
        assert_eq!(heard, (200, HALF.to_owned(), leaves.is_none()));
        let (text, again) = replay(&issuer, &folder, sent, leaves);
        assert!(text.contains(&part) && text.contains(end), "{text}");
        assert_eq!(again, heard);
    }
}
