//! The ways to a server: TLS, its certificates and names, proxies; and TLS with clients of ours.

mod parts;
mod refused;

use std::{
    convert::Infallible,
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    pin::pin,
    sync::Arc,
    thread::JoinHandle,
};

use hyper::{Request, Response, Version, body::Body, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use mcp_tapedeck::{
    proxy::reverse::{Reverse, ReverseOptions, Stop},
    transport::http::{
        connect::ConnectOptions,
        proxies::Proxies,
        tls::{Acceptor, Trust},
    },
};

use crate::support::{
    http::{ANSWER, CALL, Lines, Peer, call, json},
    tls::{Issuer, answer_once, config, connect, runtime, serve_once},
};

/// A front of a server elsewhere.
struct Front {
    origin: String,
    lines: Lines,
    stop: Stop,
    thread: JoinHandle<()>,
}

impl Front {
    fn of(url: &str, options: ConnectOptions) -> Self {
        Self::with(url, options, None)
    }

    fn with(url: &str, options: ConnectOptions, acceptor: Option<Acceptor>) -> Self {
        let front = Reverse::listen(url, "127.0.0.1:0").unwrap().reaching(options).unwrap();
        let front = match acceptor {
            Some(acceptor) => front.with_tls(acceptor),
            None => front,
        };
        let (stop, origin, lines) = (front.stop(), front.origin(), Lines::new("http"));
        let (options, sink) = (ReverseOptions::default(), lines.clone());
        let thread = std::thread::spawn(move || drop(front.record(sink, options).unwrap()));
        Self { origin, lines, stop, thread }
    }

    fn address(&self) -> &str {
        self.origin.split_once("://").unwrap().1
    }

    fn client(&self) -> Peer {
        Peer::new(TcpStream::connect(self.address()).unwrap())
    }

    /// What a client hears that calls once.
    fn heard(&self) -> String {
        let mut client = self.client();
        client.say(call("localhost").replace("HTTP/1.1\r\n", "HTTP/1.1\r\nConnection: close\r\n"));
        client.rest().0
    }

    fn end(self) -> Vec<String> {
        self.stop.stop();
        self.thread.join().unwrap();
        self.lines.0.lock().unwrap().clone()
    }
}

fn listener() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    (listener, port)
}

fn trusting(issuer: &Issuer) -> ConnectOptions {
    ConnectOptions { trust: Trust::load(&[issuer.file()]).unwrap(), ..ConnectOptions::default() }
}

#[test]
fn a_server_whose_issuer_is_named_is_reached() {
    let issuer = Issuer::new();
    let (listener, port) = listener();
    let server =
        serve_once(listener, config(&issuer.issue("localhost", |_| ()), &["h2", "http/1.1"]), ANSWER);
    let front = Front::of(&format!("https://localhost:{port}/mcp"), trusting(&issuer));
    let heard = front.heard();
    assert!(heard.starts_with("HTTP/1.1 200") && heard.ends_with(ANSWER), "{heard}");
    let (name, protocol, head) = server.join().unwrap().unwrap();
    // It would have chosen HTTP/2.
    assert_eq!((name.as_str(), protocol.as_str()), ("localhost", "http/1.1"));
    assert!(head.contains(&format!("Host: localhost:{port}\r\n")), "{head}");
    assert!(front.end().contains(&format!("1 < message {ANSWER}")));
}

#[test]
fn another_address_is_dialled_under_the_names_of_the_url() {
    let issuer = Issuer::new();
    let (listener, port) = listener();
    let server = serve_once(listener, config(&issuer.issue("mcp.example", |_| ()), &[]), ANSWER);
    let options = ConnectOptions { dial: Some(format!("127.0.0.1:{port}")), ..trusting(&issuer) };
    let front = Front::of("https://mcp.example/mcp", options);
    let heard = front.heard();
    assert!(heard.ends_with(ANSWER), "{heard}");
    let (name, _, head) = server.join().unwrap().unwrap();
    assert_eq!(name, "mcp.example");
    assert!(head.contains("Host: mcp.example\r\n"), "{head}");
    drop(front.end());
}

#[test]
fn a_certificate_that_is_not_good_is_refused_with_the_next_step() {
    let issuer = Issuer::new();
    let past = |params: &mut rcgen::CertificateParams| {
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(2020, 2, 1);
    };
    let future = |params: &mut rcgen::CertificateParams| params.not_before = rcgen::date_time_ymd(2120, 1, 1);
    let (good, other) = (trusting(&issuer), trusting(&Issuer::new()));
    for (shown, options, words) in [
        (
            issuer.issue("localhost", past),
            &good,
            &["expired: it ended 2020-02-01", "renew", "--insecure-skip-verify"][..],
        ),
        (issuer.issue("localhost", future), &good, &["not valid yet: it begins 2120-01-01", "clock"]),
        (
            issuer.issue("other.example", |_| ()),
            &good,
            &["not for `localhost`, but for `other.example`", "--url"],
        ),
        (issuer.issue("localhost", |_| ()), &other, &["nobody this machine trusts", "--ca FILE"]),
    ] {
        let (listener, port) = listener();
        let server = serve_once(listener, config(&shown, &[]), ANSWER);
        let front = Front::of(&format!("https://localhost:{port}/mcp"), options.clone());
        let heard = front.heard();
        let start = format!(
            r#"{{"jsonrpc":"2.0","id":7,"error":{{"code":-33001,"message":"tapedeck cannot reach the server at https://localhost:{port}: "#
        );
        assert!(heard.starts_with("HTTP/1.1 502") && heard.contains(&start), "{heard}");
        words.iter().for_each(|word| assert!(heard.contains(word), "{word} in {heard}"));
        assert_eq!(server.join().unwrap(), None);
        drop(front.end());
    }
}

#[test]
fn any_certificate_is_good_where_the_check_is_skipped_and_one_that_was_named_needs_no_issuer() {
    let mut params = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
    // As `openssl req -x509` makes them.
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), certificate.pem()).unwrap();
    let named = Trust::load(&[file.path().to_owned()]).unwrap();
    let shown = crate::support::tls::Shown { certificate, key };
    for (trust, name, is_good) in [
        (Trust::blind(), "127.0.0.1", true),
        (named.clone(), "localhost", true),
        (named, "127.0.0.1", false),
        (trusting(&Issuer::new()).trust, "localhost", false),
    ] {
        let (listener, port) = listener();
        let server = serve_once(listener, config(&shown, &[]), ANSWER);
        let options = ConnectOptions { trust, ..ConnectOptions::default() };
        let front = Front::of(&format!("https://{name}:{port}/mcp"), options);
        let heard = front.heard();
        assert_eq!(heard.ends_with(ANSWER), is_good, "{heard}");
        assert!(
            is_good || heard.contains("not for `127.0.0.1`") || heard.contains("give it as --ca FILE"),
            "{heard}"
        );
        assert_eq!(server.join().unwrap().is_some(), is_good);
        drop(front.end());
    }
}

#[test]
fn a_server_without_tls_is_named_as_that() {
    let (listener, port) = listener();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.read_exact(&mut [0; 20]).unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
    });
    let front = Front::of(&format!("https://localhost:{port}/mcp"), trusting(&Issuer::new()));
    let heard = front.heard();
    assert!(
        heard.contains(&format!("does not speak TLS; give its URL as http://localhost:{port}")),
        "{heard}"
    );
    server.join().unwrap();
    drop(front.end());
}

fn proxies(variable: &'static str, port: &str) -> Proxies {
    let value = format!("http://me:secret@127.0.0.1:{port}");
    Proxies::read(|name| (name == variable).then(|| value.clone())).unwrap()
}

#[test]
fn a_proxy_opens_a_tunnel_and_sees_nothing_of_what_is_in_it() {
    let issuer = Issuer::new();
    let (listener, port) = listener();
    let config = config(&issuer.issue("mcp.example", |_| ()), &[]);
    let proxy = std::thread::spawn(move || {
        let mut peer = Peer::new(listener.accept().unwrap().0);
        let head = peer.head();
        peer.say("HTTP/1.1 200 Connection established\r\nVia: x\r\n\r\n");
        (head, answer_once(peer.0, config, ANSWER))
    });
    let options = ConnectOptions { proxies: proxies("HTTPS_PROXY", &port), ..trusting(&issuer) };
    let front = Front::of("https://mcp.example/mcp", options);
    let heard = front.heard();
    assert!(heard.ends_with(ANSWER), "{heard}");
    let (asked, answered) = proxy.join().unwrap();
    assert_eq!(
        asked,
        "CONNECT mcp.example:443 HTTP/1.1\r\nHost: mcp.example:443\r\nProxy-Authorization: Basic bWU6c2VjcmV0\r\n\r\n"
    );
    let (name, _, head) = answered.unwrap();
    assert_eq!(name, "mcp.example");
    assert!(!head.to_ascii_lowercase().contains("proxy-"), "{head}");
    drop(front.end());
}

#[test]
fn a_proxy_that_refuses_is_named() {
    let (listener, port) = listener();
    let proxy = std::thread::spawn(move || {
        let mut peer = Peer::new(listener.accept().unwrap().0);
        peer.head();
        peer.say("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n");
    });
    let options = ConnectOptions {
        proxies: proxies("https_proxy", &port),
        trust: Trust::blind(),
        ..ConnectOptions::default()
    };
    let front = Front::of("https://mcp.example/mcp", options);
    let heard = front.heard();
    for word in [
        &format!("127.0.0.1:{port}"),
        "https_proxy",
        "HTTP/1.1 407 Proxy Authentication Required",
        "NO_PROXY",
    ] {
        assert!(heard.contains(word), "{word} in {heard}");
    }
    assert!(!heard.contains("secret") && !heard.contains("bWU6"), "{heard}");
    proxy.join().unwrap();
    drop(front.end());
}

#[test]
fn a_proxy_is_handed_plain_requests_with_their_whole_address() {
    let (listener, port) = listener();
    let proxy = std::thread::spawn(move || {
        let mut peer = Peer::new(listener.accept().unwrap().0);
        let head = peer.head();
        peer.hears(CALL);
        peer.say(json(ANSWER));
        head
    });
    let options = ConnectOptions { proxies: proxies("HTTP_PROXY", &port), ..ConnectOptions::default() };
    let front = Front::of("http://mcp.example/mcp", options);
    let heard = front.heard();
    assert!(heard.ends_with(ANSWER), "{heard}");
    let head = proxy.join().unwrap();
    assert!(head.starts_with("POST http://mcp.example/mcp HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("Host: mcp.example\r\n"), "{head}");
    assert!(head.to_ascii_lowercase().contains("proxy-authorization: basic bwu6c2vjcmv0\r\n"), "{head}");
    let lines = front.end();
    assert!(lines[0].starts_with("1 > POST /mcp") && !lines.concat().contains("bWU6"), "{lines:#?}");
}

#[test]
fn http2_is_spoken_with_a_server_that_speaks_nothing_else_and_where_it_was_asked_for() {
    let issuer = Issuer::new();
    let shown = issuer.issue("localhost", |_| ());
    for (protocols, http2) in [(&["h2"][..], false), (&["http/1.1", "h2"], true)] {
        let (listener, port) = listener();
        let config = config(&shown, protocols);
        let server = std::thread::spawn(move || runtime().block_on(serve_http2(listener, config)));
        let options = ConnectOptions { http2, ..trusting(&issuer) };
        let front = Front::of(&format!("https://localhost:{port}/mcp"), options);
        let heard = front.heard();
        assert!(heard.starts_with("HTTP/1.1 200 OK\r\n") && heard.contains(ANSWER), "{heard}");
        let (authority, headers) = server.join().unwrap();
        assert_eq!(authority, format!("localhost:{port}"));
        assert!(!headers.contains("connection") && !headers.contains("host"), "{headers}");
        assert!(front.end().contains(&format!("1 < message {ANSWER}")));
    }
}

#[test]
fn a_server_that_does_not_speak_the_only_version_that_is_offered_is_told_of() {
    let issuer = Issuer::new();
    let (listener, port) = listener();
    let server = serve_once(listener, config(&issuer.issue("localhost", |_| ()), &["http/1.1"]), ANSWER);
    let options = ConnectOptions { http2: true, ..trusting(&issuer) };
    let front = Front::of(&format!("https://localhost:{port}/mcp"), options);
    let heard = front.heard();
    assert!(heard.starts_with("HTTP/1.1 502") && heard.contains("leave out --http2"), "{heard}");
    assert_eq!(server.join().unwrap(), None);
    drop(front.end());
}

/// Answers one request in HTTP/2; which authority it named, and its headers.
async fn serve_http2(listener: TcpListener, config: Arc<rustls::ServerConfig>) -> (String, String) {
    listener.set_nonblocking(true).unwrap();
    let listener = tokio::net::TcpListener::from_std(listener).unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(config);
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        // The first handshake may end without a common protocol.
        let Ok(stream) = acceptor.accept(stream).await else { continue };
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        let (seen, mut sees) = tokio::sync::mpsc::unbounded_channel();
        let service = service_fn(move |request: Request<_>| {
            let authority = request.uri().authority().unwrap().to_string();
            seen.send((authority, format!("{:?}", request.headers()))).unwrap();
            async { Ok::<_, Infallible>(Response::new(ANSWER.to_owned())) }
        });
        let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        let _ = builder.serve_connection(TokioIo::new(stream), service).await;
        return sees.recv().await.unwrap();
    }
}

/// A front that speaks TLS, and the server it stands before.
fn secure_front(issuer: &Issuer) -> (Front, TcpListener) {
    let (cert, key) = issuer.files(&issuer.issue("localhost", |_| ()));
    let (listener, port) = listener();
    let acceptor = Acceptor::load(&cert, &key).unwrap();
    let front =
        Front::with(&format!("http://127.0.0.1:{port}/mcp"), ConnectOptions::default(), Some(acceptor));
    (front, listener)
}

#[test]
fn clients_of_http2_share_a_connection_and_the_server_sees_one_for_each_request() {
    let issuer = Issuer::new();
    let (front, listener) = secure_front(&issuer);
    let server = std::thread::spawn(move || {
        // Both are there before one is answered, the later one first.
        let mut peers: Vec<_> = (0..2).map(|_| Peer::new(listener.accept().unwrap().0)).collect();
        let heads: Vec<_> = peers.iter_mut().map(Peer::head).collect();
        for (peer, head) in peers.iter_mut().zip(&heads).rev() {
            assert!(head.contains("cookie: a=1; b=2\r\n"), "{head}");
            let path = head.split(' ').nth(1).unwrap();
            peer.say(json(&format!("\"{path}\"")));
            // It ends with its request.
            assert_eq!(peer.rest().0, "");
        }
    });
    runtime().block_on(async {
        let stream = connect(front.address(), &issuer, "h2").await;
        let builder = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
        let (sender, connection) = builder.handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let get = |path: &str| {
            let request = Request::get(format!("https://localhost{path}"));
            let request = request.header("cookie", "a=1").header("cookie", "b=2");
            sender.clone().send_request(request.body(String::new()).unwrap())
        };
        let (one, two) = tokio::join!(get("/one"), get("/two"));
        for (response, expected) in [(one, "\"/one\""), (two, "\"/two\"")] {
            let response = response.unwrap();
            assert_eq!((response.version(), response.headers().get("date")), (Version::HTTP_2, None));
            assert_eq!(body(response).await, expected);
        }
    });
    server.join().unwrap();
    assert_eq!(front.end().iter().filter(|line| line.contains("> GET")).count(), 2);
}

async fn body(response: Response<hyper::body::Incoming>) -> String {
    let mut body = pin!(response.into_body());
    let mut text = Vec::new();
    while let Some(frame) = std::future::poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
        text.extend_from_slice(frame.unwrap().data_ref().unwrap());
    }
    String::from_utf8(text).unwrap()
}

#[test]
fn clients_of_http1_under_tls_see_resets_and_those_without_tls_are_told() {
    let issuer = Issuer::new();
    let (front, listener) = secure_front(&issuer);
    let server = std::thread::spawn(move || {
        let mut peer = Peer::new(listener.accept().unwrap().0);
        peer.takes_call();
        peer.say(json(ANSWER));
        peer.takes_call();
        peer.reset();
    });
    runtime().block_on(async {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let mut stream = connect(front.address(), &issuer, "http/1.1").await;
        stream.write_all(call("localhost").as_bytes()).await.unwrap();
        let mut heard = vec![0; json(ANSWER).len()];
        stream.read_exact(&mut heard).await.unwrap();
        assert_eq!(String::from_utf8(heard).unwrap(), json(ANSWER));
        stream.write_all(call("localhost").as_bytes()).await.unwrap();
        let error = stream.read_u8().await.unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    });
    server.join().unwrap();
    let mut client = front.client();
    client.say(call("localhost"));
    assert!(client.rest().0.contains("use https://"));
    drop(front.end());
}

#[test]
fn a_replay_speaks_tls_with_its_clients() {
    let issuer = Issuer::new();
    let (cert, key) = issuer.files(&issuer.issue("localhost", |_| ()));
    let folder = tempfile::tempdir().unwrap();
    let cassette = folder.path().join("c.json");
    let exchange =
        r#"{"key": "a @1", "client": {"request": {"method": "a"}}, "server": [{"result": "recorded"}]}"#;
    let session = r#"{"session": 1, "recording": 1, "transport": "stdio"}"#;
    let text = format!(r#"{{"cassette": 1, "sessions": [{session}], "exchanges": [{exchange}]}}"#);
    std::fs::write(&cassette, text).unwrap();
    let files = [&cassette, &cert, &key].map(|path| path.to_str().unwrap());
    let replay = ["replay", files[0], "--cert", files[1], "--key", files[2]];
    let front = crate::support::front::Front::start(&replay, folder.path());
    assert_eq!(front.url, format!("{}/mcp", front.origin));
    let address = front.origin.strip_prefix("https://").unwrap();
    runtime().block_on(async {
        let request = || {
            let request = Request::post("https://localhost/mcp").header("host", "localhost");
            request.body(r#"{"jsonrpc":"2.0","id":4,"method":"a"}"#.to_owned()).unwrap()
        };
        let stream = TokioIo::new(connect(address, &issuer, "h2").await);
        let builder = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
        let (mut sender, connection) = builder.handshake(stream).await.unwrap();
        tokio::spawn(connection);
        let over_2 = sender.send_request(request()).await.unwrap();
        assert_eq!(over_2.version(), Version::HTTP_2);
        let stream = TokioIo::new(connect(address, &issuer, "http/1.1").await);
        let (mut sender, connection) = hyper::client::conn::http1::handshake(stream).await.unwrap();
        tokio::spawn(connection);
        let over_1 = sender.send_request(request()).await.unwrap();
        for response in [over_2, over_1] {
            assert_eq!(body(response).await, r#"{"jsonrpc":"2.0","id":4,"result":"recorded"}"#);
        }
    });
    front.end();
}
