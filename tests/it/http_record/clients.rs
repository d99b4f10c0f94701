//! Clients that leave, hurry, or make no sense.

use hyper_util::rt::{TokioExecutor, TokioIo};

use super::*;

#[test]
fn requests_in_a_row_use_one_connection_and_are_answered_in_their_order() {
    let scene = Scene::new();
    let mut client = scene.client();
    client.say(call("localhost").repeat(3));
    let mut server = scene.accept();
    for number in 1..=3 {
        server.takes_call();
        server.say(json(&number.to_string()));
    }
    for number in 1..=3 {
        client.hears(json(&number.to_string()));
    }
    let lines = scene.end();
    let bodies: Vec<_> = lines.iter().filter(|line| line.contains("< body")).collect();
    assert_eq!(bodies, ["1 < body 1", "2 < body 2", "3 < body 3"]);
}

#[test]
fn foreign_hosts_and_pages_are_refused_with_the_way_out() {
    let scene = Scene::with(|options| options.allow_hosts.push("deck.example".to_owned()));
    for (headers, status, word) in [
        ("Host: evil.example\r\n", "403", "--allow-host evil.example"),
        ("Host: localhost\r\nOrigin: https://evil.example\r\n", "403", "--allow-origin https://evil.example"),
        (
            "Host: localhost\r\nOrigin: http://localhost\r\nOrigin: https://evil.example\r\n",
            "403",
            "--allow-origin https://evil.example",
        ),
        ("Host: localhost\r\nHost: localhost\r\n", "400", "two hosts"),
        ("", "400", "no host"),
    ] {
        let mut client = scene.client();
        client.say(format!("POST /mcp HTTP/1.1\r\n{headers}Connection: close\r\nContent-Length: 0\r\n\r\n"));
        let (heard, _) = client.rest();
        assert!(heard.starts_with(&format!("HTTP/1.1 {status}")) && heard.contains(word), "{heard}");
    }
    let mut client = scene.client();
    client.say(call("deck.example:80"));
    scene.accept().takes_call();
    let lines = scene.end();
    assert!(
        lines[0].starts_with("1 > POST") && !lines.iter().any(|line| line.starts_with('2')),
        "{lines:#?}"
    );
}

#[test]
fn a_head_without_end_is_refused_and_disturbs_nobody() {
    let scene = Scene::new();
    let mut other = scene.client();
    other.say(call("localhost"));
    let mut server = scene.accept();
    server.takes_call();
    let mut client = scene.client();
    let lines: String = (0..10_000).map(|number| format!("X-{number}: 1\r\n")).collect();
    // It may be refused before all of it is sent.
    let _ = client.0.write_all(format!("GET / HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n").as_bytes());
    let mut status = [0; 12];
    client.0.read_exact(&mut status).unwrap();
    assert_eq!(&status, b"HTTP/1.1 431");
    // Three hundred are nothing unusual.
    let mut client = scene.client();
    let lines: String = (0..300).map(|number| format!("X-{number}: 1\r\n")).collect();
    client.say(format!("GET / HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n"));
    assert!(scene.accept().head().contains("\r\nX-299: 1\r\n"));
    server.say(json(ANSWER));
    other.hears(json(ANSWER));
    drop(scene.end());
}

#[test]
fn a_client_that_asks_whether_to_go_on_is_answered_by_the_server() {
    let scene = Scene::new();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: {}\r\n\r\n",
        CALL.len()
    );
    let mut client = scene.client();
    client.say(&head);
    let mut server = scene.accept();
    assert!(server.head().contains("\r\nExpect: 100-continue\r\n"));
    server.say("HTTP/1.1 100 Continue\r\n\r\n");
    client.hears("HTTP/1.1 100 Continue\r\n\r\n");
    client.say(CALL);
    server.hears(CALL);
    server.say(json(ANSWER));
    client.hears(json(ANSWER));
    // The other way: the body is not wanted, and never sent.
    let mut client = scene.client();
    client.say(&head);
    let mut server = scene.accept();
    server.head();
    let refusal = "HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n";
    server.say(refusal.to_owned() + "\r\n");
    client.hears(refusal);
    drop(client);
    assert_eq!(server.rest().0, "");
    let lines = scene.end();
    assert!(lines.iter().any(|line| line.starts_with("2 < 417")), "{lines:#?}");
}

#[test]
fn a_client_may_begin_with_http2_unasked() {
    let scene = Scene::new();
    let address = scene.origin.trim_start_matches("http://").to_owned();
    let client = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let stream = tokio::net::TcpStream::connect(&address).await.unwrap();
            let builder = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
            let (mut sender, connection) = builder.handshake(TokioIo::new(stream)).await.unwrap();
            tokio::spawn(connection);
            let request =
                hyper::Request::post(format!("http://{address}/mcp")).body(CALL.to_owned()).unwrap();
            let response = sender.send_request(request).await.unwrap();
            (response.version(), response.status().as_u16())
        })
    });
    let mut server = scene.accept();
    assert!(server.head().starts_with("POST /mcp HTTP/1.1\r\n"));
    server.reads_to(CALL);
    server.say(json(ANSWER));
    assert_eq!(client.join().unwrap(), (hyper::Version::HTTP_2, 200));
    let lines = scene.end();
    assert!(lines.contains(&format!("1 < message {ANSWER}")), "{lines:#?}");
}

#[test]
fn a_modern_client_that_leaves_cancels_and_a_legacy_one_does_not() {
    let scene = Scene::new();
    let modern = r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
    let mut client = scene.client();
    client.say(format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{modern}",
        modern.len()
    ));
    let mut server = scene.accept();
    server.head();
    server.hears(modern);
    drop(client);
    assert_eq!(server.rest().0, "");
    // Legacy, once before the head has come and once behind it.
    for has_begun in [false, true] {
        let mut client = scene.client();
        client.say(call("localhost"));
        let mut server = scene.accept();
        server.takes_call();
        if has_begun {
            server.say(STREAM);
            client.hears(STREAM);
            drop(client);
        } else {
            drop(client);
            server.say(STREAM);
        }
        server.say(chunk(&format!("data: {ANSWER}\n\n")) + "0\r\n\r\n");
        // The front goes when the call is over.
        assert_eq!(server.rest().0, "");
    }
    let lines = scene.end();
    assert!(lines.contains(&"1 > closed".to_owned()), "{lines:#?}");
    for lane in [2, 3] {
        for expected in ["> closed".to_owned(), format!("< event {ANSWER}"), "< closed".to_owned()] {
            assert!(lines.contains(&format!("{lane} {expected}")), "{lane} {expected} in {lines:#?}");
        }
    }
}

#[test]
fn a_client_that_never_finishes_a_head_is_cut_off_and_disturbs_nobody() {
    let scene = Scene::with(|options| options.head_time = std::time::Duration::from_millis(40));
    let mut other = scene.client();
    other.say(call("localhost"));
    let mut server = scene.accept();
    server.takes_call();
    // A head that only grows.
    let mut endless = scene.client();
    endless.say("GET / HTTP/1.1\r\nHost: localhost\r\nX: ");
    let _ = endless.0.write_all(&vec![b'a'; 1 << 20]);
    let mut status = [0; 12];
    endless.0.read_exact(&mut status).unwrap();
    assert_eq!(&status, b"HTTP/1.1 431");
    // One that stands still.
    let mut slow = scene.client();
    slow.say("POST /mcp HTTP/1.1\r\nHost: loc");
    assert_eq!(slow.rest().0, "");
    // The same by way of hyper, which gets a request that is refused.
    let mut slow = scene.client();
    slow.say("GET /mcp HTTP/1.1\r\nHost: evil.example\r\n\r\n");
    assert!(slow.head().starts_with("HTTP/1.1 403 "));
    slow.say("POST /mcp HTTP/1.1\r\nHost: loc");
    assert!(slow.rest().0.ends_with("allows it\n"));
    // One that says nothing is only there early.
    let mut silent = scene.client();
    // A call is no head: it takes its time.
    server.say(json(ANSWER));
    other.hears(json(ANSWER));
    let (lines, (_, refused)) = scene.end_with_told();
    assert!(lines.iter().all(|line| line.starts_with("1 ")), "{lines:#?}");
    assert_eq!(silent.rest().0, "");
    let refused: Vec<_> = refused.iter().map(|one| (&*one.why, one.count)).collect();
    let [(too_long, 1), (slow, 2), (foreign, 1)] = refused[..] else { panic!("{refused:#?}") };
    assert!(too_long.contains("has more than") && foreign.contains("evil.example"), "{refused:#?}");
    assert!(slow.contains("not whole within 0.04 seconds"), "{refused:#?}");
}

#[test]
fn a_client_that_changes_to_http2_is_told_at_the_end() {
    let scene = Scene::new();
    let (mut client, _server) = scene.called();
    client.say("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    assert_eq!(client.rest().0, "");
    let (_, (_, refused)) = scene.end_with_told();
    assert!(refused[0].why.contains("HTTP/2") && refused.len() == 1, "{refused:#?}");
}

#[test]
fn lengths_that_contradict_each_other_go_no_further() {
    let scene = Scene::new();
    for headers in [
        "Content-Length: 4\r\nContent-Length: 5\r\n",
        "Content-Length: -1\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding: gzip\r\n",
    ] {
        let mut client = scene.client();
        client.say(format!("POST /mcp HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n12345"));
        let (heard, _) = client.rest();
        let (head, body) = heard.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 400"), "{headers}: {heard}");
        assert!(head.contains(&format!("content-length: {}", body.len())), "{heard}");
        assert!(body.starts_with("tapedeck: this is no request of HTTP/1.1"), "{heard}");
    }
    assert!(scene.end().is_empty());
}

#[test]
fn a_body_that_is_no_message_is_recorded_as_what_it_is() {
    let scene = Scene::new();
    let mut client = scene.client();
    client.say("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{\"not\": j");
    let mut server = scene.accept();
    server.head();
    server.hears("{\"not\": j");
    let answer = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/html\r\nContent-Length: 3\r\n\r\n<p>";
    server.say(answer);
    client.hears(answer);
    let lines = scene.end();
    assert!(lines.contains(&"1 > body {\"not\": j".to_owned()), "{lines:#?}");
    assert!(lines.contains(&"1 < body <p>".to_owned()), "{lines:#?}");
}

#[test]
fn a_client_that_leaves_in_the_middle_of_its_body_is_recorded_so_far() {
    let scene = Scene::new();
    let mut client = scene.client();
    client.say("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{\"half\"");
    let mut server = scene.accept();
    server.head();
    server.hears("{\"half\"");
    drop(client);
    assert_eq!(server.rest().0, "");
    let lines = scene.end();
    assert!(lines.contains(&"1 > partial {\"half\"".to_owned()), "{lines:#?}");
}

#[test]
fn requests_that_make_no_sense_go_no_further_and_disturb_nobody() {
    let scene = Scene::new();
    let mut other = scene.client();
    other.say(call("localhost"));
    let mut server = scene.accept();
    server.takes_call();
    let long = "a".repeat(1 << 20);
    for bytes in [
        "SSH-2.0-OpenSSH_9.9\r\n\r\n".to_owned(),
        "\x16\x03\x01\x02\x00\x01\x00\x01\u{fc}\x03\x03\r\n\r\n".to_owned(),
        "GET / HTTP/9.9\r\nHost: localhost\r\n\r\n".to_owned(),
        "GET / HTTP/1.1\r\nHost: localhost\r\nNo colon\r\n\r\n".to_owned(),
        "GET / HTTP/1.1\r\nHost: localhost\r\n folded: 1\r\n\r\n".to_owned(),
        "GE T / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(),
        format!("GET /{long} HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    ] {
        let mut client = scene.client();
        // It may be refused before all of it is sent.
        let _ = client.0.write_all(bytes.as_bytes());
        let mut heard = [0; 10];
        client.0.read_exact(&mut heard).unwrap();
        assert_eq!(&heard, b"HTTP/1.1 4", "{}", &bytes[..bytes.len().min(60)]);
        let mut rest = Vec::new();
        // What it has not read may overtake the rest.
        let is_whole = client.0.read_to_end(&mut rest).is_ok();
        assert!(!is_whole || memchr::memmem::find(&rest, b"\r\n\r\ntapedeck: ").is_some());
    }
    // A tunnel is opened to nobody.
    let mut client = scene.client();
    client.say("CONNECT localhost:22 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    assert!(client.rest().0.starts_with("HTTP/1.1 405"));
    server.say(json(ANSWER));
    other.hears(json(ANSWER));
    let lines = scene.end();
    assert!(lines.iter().all(|line| line.starts_with("1 ")), "{lines:#?}");
}

#[test]
fn a_target_passes_as_its_client_spells_it_or_is_refused() {
    let scene = Scene::new();
    let ask = |target: &[u8]| {
        let mut client = scene.client();
        client.say([b"GET ", target, b" HTTP/1.1\r\nHost: localhost\r\n\r\n"].concat());
        client
    };
    let targets = ["/mcp\"x\"", "/mcp\u{e9}?q=\u{e9}", "/a{b}[c]|d\\e^f?g={`}|", "/%zz", "//a/../b"];
    let origins = ["", "http://localhost"];
    for target in targets {
        // Here, and by way of hyper.
        for origin in origins {
            let mut client = ask([origin, target].concat().as_bytes());
            let mut server = scene.accept();
            assert!(server.head().starts_with(&format!("GET {target} HTTP/1.1\r\n")), "{origin}{target}");
            server.say("HTTP/1.1 204 X\r\n\r\n");
            client.hears("HTTP/1.1 204 X\r\n");
        }
    }
    for target in [&b"/mcp<x>"[..], b"/mcp`", b"/mcp?\"", b"/mcp?<x>", b"/mcp\xe9"] {
        for origin in origins {
            let answer = ask(&[origin.as_bytes(), target].concat()).rest().0;
            assert!(answer.starts_with("HTTP/1.1 400 "), "{origin}{target:?}: {answer}");
        }
    }
    let lines = scene.end();
    let recorded =
        |target: &str| lines.iter().filter(|line| line.ends_with(&format!(" > GET {target}"))).count();
    assert_eq!(targets.map(recorded), [2; 5], "{lines:#?}");
}

#[test]
fn a_clients_torn_chunk_is_no_whole_body_for_the_server() {
    let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
    for rest in ["", "zz\r\n", "9\r\nab"] {
        let scene = Scene::new();
        let mut client = scene.client();
        client.say(head.to_owned() + &chunk("{\"half\""));
        let mut server = scene.accept();
        server.head();
        server.hears(chunk("{\"half\""));
        client.say(rest);
        drop(client);
        let mut heard = Vec::new();
        let _ = server.0.read_to_end(&mut heard);
        assert!(!String::from_utf8_lossy(&heard).contains("0\r\n\r\n"), "{rest:?}");
        let lines = scene.end();
        let partial = lines.iter().find(|line| line.starts_with("1 > partial {\"half\""));
        assert!(partial.is_some() && !lines.iter().any(|line| line.contains("message")), "{lines:#?}");
    }
}

#[test]
fn a_reset_by_the_client_reaches_the_server_as_the_end_of_its_connection() {
    let scene = Scene::new();
    let mut client = scene.client();
    client.say("GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let mut server = scene.accept();
    server.head();
    server.say(STREAM);
    client.hears(STREAM);
    client.reset();
    assert_eq!(server.rest().0, "");
    let _open = scene.called();
    let lines = scene.end();
    assert!(lines.contains(&"1 > closed".to_owned()), "{lines:#?}");
}
