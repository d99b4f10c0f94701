//! Faults under TLS, and over HTTP/2: there requests share a connection, and what would break it ends their own stream.

use std::{fs, io::ErrorKind, io::Read as _, net::TcpListener, pin::pin};

use hyper::{Request, Response, StatusCode, body::Body as _, body::Incoming};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::{
    front::Front,
    http::{ANSWER, CALL, Peer, call, json},
    tls::{Issuer, connect, runtime},
};

const CASSETTE: &str = r#"{"cassette": 1, "sessions": [{"session": 1, "recording": 1, "transport": "stdio"}],
  "exchanges": [{"key": "tools/call a @1", "client": {"request": {"method": "tools/call", "params": {"name": "a"}}},
    "server": [{"result": {}}]}]}"#;

/// One after the other. Two of them are told to the client without the server.
const PLAN: &str = r#"{"faults": 1, "rules": [{"when": {"tool": "a"}, "script": [
  "reset_peer", {"do": "close_early", "bytes": 5}, {"do": "status", "status": 429}, {"do": "latency", "ms": 1}, "refuse",
  "half_close", "ok"]}]}"#;
const ASKED: usize = 5;

/// Has a client meet the plan in a replay, and before a real server.
fn before_each_server(client: impl Fn(&str, &Issuer)) {
    let (issuer, folder) = (Issuer::new(), tempfile::tempdir().unwrap());
    let (cert, key) = issuer.files(&issuer.issue("localhost", |_| ()));
    let file = |name: &str, text: &str| {
        fs::write(folder.path().join(name), text).unwrap();
        folder.path().join(name).display().to_string()
    };
    let (cassette, plan) = (file("c.json", CASSETTE), file("plan.json", PLAN));
    let (cert, key) = (cert.display().to_string(), key.display().to_string());
    let options = ["--faults", &plan, "--cert", &cert, "--key", &key];
    let meets = |first: &[&str]| {
        let front = Front::start(&[first, &options].concat(), folder.path());
        client(front.origin.strip_prefix("https://").unwrap(), &issuer);
        front.end();
    };
    meets(&["replay", &cassette]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        for _ in 0..ASKED {
            let mut peer = Peer::new(listener.accept().unwrap().0);
            peer.takes_call();
            peer.say(json(ANSWER));
            // However it leaves.
            let _ = peer.0.read_to_end(&mut Vec::new());
        }
    });
    meets(&["proxy", "--url", &url]);
    server.join().unwrap();
}

#[test]
fn a_connection_under_tls_breaks_as_one_without() {
    before_each_server(|address, issuer| {
        runtime().block_on(async {
            let mut heard = Vec::new();
            for _ in 0..7 {
                let mut stream = connect(address, issuer, "http/1.1").await;
                let call = call("localhost").replace("HTTP/1.1\r\n", "HTTP/1.1\r\nConnection: close\r\n");
                stream.write_all(call.as_bytes()).await.unwrap();
                let mut bytes = Vec::new();
                let end = stream.read_to_end(&mut bytes).await.map_err(|error| error.kind());
                heard.push((String::from_utf8(bytes).unwrap(), end.err()));
            }
            let [reset, cut, status, late, refused, half, ok] = heard.try_into().unwrap();
            assert_eq!(reset, (String::new(), Some(ErrorKind::ConnectionReset)));
            assert!(cut.0.ends_with("\r\n5\r\n{\"jso\r\n"), "{cut:?}");
            assert!(status.0.starts_with("HTTP/1.1 429 ") && status.1.is_none(), "{status:?}");
            assert_eq!(refused, (String::new(), Some(ErrorKind::ConnectionReset)));
            for whole in [late, half, ok] {
                assert!(whole.0.starts_with("HTTP/1.1 200 ") && whole.0.contains(ANSWER), "{whole:?}");
                assert_eq!(whole.1, None);
            }
        });
    });
}

/// A response: its status, its body as far as it came, and how that was cut off.
async fn read(response: Response<Incoming>) -> (StatusCode, String, Option<String>) {
    let status = response.status();
    let (mut body, mut text) = (pin!(response.into_body()), Vec::new());
    loop {
        let told = |text: Vec<u8>| String::from_utf8(text).unwrap();
        match std::future::poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
            Some(Ok(frame)) => text.extend_from_slice(frame.data_ref().unwrap()),
            Some(Err(error)) => return (status, told(text), Some(format!("{error:?}"))),
            None => return (status, told(text), None),
        }
    }
}

#[test]
fn over_http2_a_stream_is_reset_and_its_connection_goes_on() {
    before_each_server(|address, issuer| {
        runtime().block_on(async {
            let stream = connect(address, issuer, "h2").await;
            let builder = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
            let (mut sender, connection) = builder.handshake(TokioIo::new(stream)).await.unwrap();
            tokio::spawn(connection);
            let mut ask = async || {
                let request =
                    Request::post("https://localhost/mcp").header("content-type", "application/json");
                match sender.send_request(request.body(CALL.to_owned()).unwrap()).await {
                    Ok(response) => Ok(read(response).await),
                    Err(error) => Err(format!("{error:?}")),
                }
            };
            let is_reset = |error: &str| error.contains("Reset(") && error.contains("Remote");
            let reset = ask().await.unwrap_err();
            assert!(is_reset(&reset), "{reset}");
            let (status, body, end) = ask().await.unwrap();
            assert_eq!((status, &*body), (StatusCode::OK, "{\"jso"));
            assert!(is_reset(end.as_ref().unwrap()), "{end:?}");
            assert_eq!(ask().await.unwrap().0, StatusCode::TOO_MANY_REQUESTS);
            assert_eq!(ask().await.unwrap(), (StatusCode::OK, ANSWER.to_owned(), None));
            let refused = ask().await.unwrap_err();
            assert!(is_reset(&refused), "{refused}");
            // Nobody's side of the shared connection ends.
            for _ in ["half_close", "ok"] {
                assert_eq!(ask().await.unwrap(), (StatusCode::OK, ANSWER.to_owned(), None));
            }
        });
    });
}
