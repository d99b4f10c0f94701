//! Exchanges pass from socket to socket, and those of a target that names its host by way of hyper: no recording may
//! tell which it was.

use super::*;

/// What a client and a server do with each other.
type Script<'a> = dyn Fn(Peer, &mut dyn FnMut() -> Peer) + 'a;

/// What is recorded of the last exchange of a connection: its first, or one behind a request that hyper gets.
fn recorded(is_plain: bool, script: &Script<'_>) -> Vec<String> {
    let scene = Scene::with(|options| options.max_message = 2000);
    let mut client = scene.client();
    let mut lane = "1 ";
    let mut server = None;
    if !is_plain {
        lane = "2 ";
        // Its target names its host.
        client.say("OPTIONS http://localhost/ HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let mut accepted = scene.accept();
        accepted.head();
        let response = "HTTP/1.1 204 No Content\r\n\r\n";
        accepted.say(response);
        client.hears(response);
        server = Some(accepted);
    }
    script(client, &mut || server.take().unwrap_or_else(|| scene.accept()));
    scene.end().iter().filter_map(|line| line.strip_prefix(lane)).map(str::to_owned).collect()
}

#[track_caller]
fn same(what: &str, script: &Script<'_>) -> Vec<String> {
    let lines = recorded(true, script);
    assert_eq!(lines, recorded(false, script), "{what}");
    assert!(lines.len() > 1, "{what}: {lines:#?}");
    lines
}

pub(super) fn post(headers: &str, body: &str) -> String {
    format!(
        "POST /mcp?a=1 HTTP/1.1\r\nHost: localhost\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Requests of all kinds that are whole in their heads, and one that is not.
pub(super) fn requests() -> [String; 7] {
    let of = |method: &str| format!("{method} /mcp?a=1 HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let (first, second) = CALL.split_at(30);
    let chunks = format!("{}{:X} ;x=\"y\"\r\n{second}\r\n0\r\nSum: 1\r\n\r\n", chunk(first), second.len());
    let chunked = of("POST").replace("\r\n\r\n", "\r\nTransfer-Encoding: chunked\r\n\r\n") + &chunks;
    [post("", CALL), chunked, of("GET"), of("DELETE"), of("OPTIONS"), of("bReW"), of("HEAD")]
}

/// What of a response follows a request: to `HEAD` no body does.
pub(super) fn follows<'a>(request: &str, response: &'a [u8]) -> &'a [u8] {
    if !request.starts_with("HEAD ") {
        return response;
    }
    let mut end = 0;
    loop {
        let is_interim = response[end..].starts_with(b"HTTP/1.1 10");
        let Some(length) = memchr::memmem::find(&response[end..], b"\r\n\r\n") else { return response };
        end += length + 4;
        if !is_interim {
            return &response[..end];
        }
    }
}

/// Takes a request of a client of this test, whoever wrote its chunks.
pub(super) fn takes(server: &mut Peer, request: &str) {
    let head = server.head();
    if !head.contains("chunked") {
        return server.hears(request.split_once("\r\n\r\n").unwrap().1);
    }
    let mut body = String::new();
    while !body.contains("\r\n0\r\n") {
        body += &server.head();
    }
}

/// Responses, and whether the connection stays behind them.
pub(super) fn responses() -> Vec<(Vec<u8>, bool)> {
    let event = format!("event: message\nid: 1\ndata: {ANSWER}\n\n");
    let ok = "HTTP/1.1 200 OK\r\n";
    let long = "x".repeat(3000);
    let packed = gzip(ANSWER.as_bytes());
    let staying = [
        json(ANSWER),
        json("no message"),
        json(""),
        json(&long),
        STREAM.to_owned() + &chunk(&event) + "0\r\n\r\n",
        STREAM.to_owned() + &chunk(": hi\n\n") + &chunk(&event[..20]) + &chunk(&event[20..]) + "0\r\n\r\n",
        STREAM.to_owned() + &chunk(&format!("data: {long}\n\n{event}")) + "0\r\n\r\n",
        STREAM.to_owned() + &chunk("data: half") + "0\r\n\r\n",
        format!("{STREAM}3;x=\"y\"\r\n: a\r\n2\r\n\n\n\r\n0\r\nX-Sum: 1\r\n\r\n"),
        format!(
            "{ok}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n{}0\r\n\r\n",
            chunk(ANSWER)
        ),
        format!(
            "{ok}Set-Cookie: a=1\r\nX: \r\nset-cookie: b=2\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\n\
                 Keep-Alive: timeout=5\r\nEmpty:\r\nContent-Length: 2\r\n\r\n{{}}"
        ),
        "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n".to_owned(),
        "HTTP/1.1 204 No Content\r\n\r\n".to_owned(),
        "HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n".to_owned(),
        "HTTP/1.1 299 Quite Fine\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nab".to_owned(),
        format!("HTTP/1.1 102 X\r\nA: b\r\n\r\nHTTP/1.1 103 Y\r\n\r\n{}", json(ANSWER)),
        "HTTP/1.1 307 X\r\nLocation: http://elsewhere.example/\r\nContent-Length: 0\r\n\r\n".to_owned(),
        "HTTP/1.1 401 X\r\nWWW-Authenticate: Bearer realm=\"a\"\r\nContent-Length: 0\r\n\r\n".to_owned(),
        format!("{ok}X: a \r\n\t b\r\nY : c\r\nContent-Length: 1\r\n\r\n1"),
        format!("{ok}Content-Encoding: br\r\nContent-Length: 6\r\n\r\nsecret"),
        format!("{ok}X: {}\r\n{}Content-Length: 1\r\n\r\n1", "y".repeat(20_000), "A: b\r\n".repeat(100)),
    ];
    let ending = [
        format!("{ok}Content-Type: text/event-stream\r\n\r\n{event}data: half"),
        format!("{ok}Content-Type: application/json\r\n\r\n{ANSWER}"),
        format!("{ok}\r\n"),
        format!("{ok}Connection: close\r\nContent-Length: 2\r\n\r\n{{}}"),
        "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}".to_owned(),
        // Cut off.
        "HTTP/1.1 200 O".to_owned(),
        String::new(),
        format!("{ok}Content-Length: 9\r\n\r\n{{\"a\""),
        format!("{STREAM}{}1", chunk(&event)),
        format!("{STREAM}20\r\ndata: 1\n\nda"),
        format!("{STREAM}{}zz\r\n", chunk(&event)),
        format!("{ok}Content-Length: 1\r\nContent-Length: 2\r\n\r\nabc"),
        "SSH-2.0-OpenSSH\r\n\r\n".to_owned(),
    ];
    let mut all: Vec<_> = staying.map(|text| (text.into_bytes(), true)).into();
    let head = format!("{ok}Content-Encoding: gzip\r\nContent-Length: {}\r\n\r\n", packed.len());
    all.push(([head.as_bytes(), &packed].concat(), true));
    let head = format!("{ok}Transfer-Encoding: gzip, chunked\r\n\r\n{:x}\r\n", packed.len());
    all.push(([head.as_bytes(), &packed, b"\r\n0\r\n\r\n"].concat(), true));
    all.extend(ending.map(|text| (text.into_bytes(), false)));
    all
}

#[test]
fn whatever_a_server_answers_is_recorded_as_hyper_has_it() {
    for request in requests() {
        for (response, stays) in responses() {
            let response = follows(&request, &response);
            let what = String::from_utf8_lossy(&response[..response.len().min(300)]).into_owned();
            let what = format!("{request}: {what}");
            let is_to_head = request.starts_with("HEAD ");
            if is_to_head && what.matches("Content-Length").count() > 1 {
                // hyper ends the connection where it is to repeat two lengths without a body.
                continue;
            }
            // Without a body all that is whole in its head stays.
            let stays =
                stays || is_to_head && response.starts_with(b"HTTP") && response.ends_with(b"\r\n\r\n");
            let stays = stays && !what.contains("HTTP/1.0") && !what.contains("Connection: close");
            let lines = same(&what, &|mut client, accept| {
                client.say(&request);
                let mut server = accept();
                takes(&mut server, &request);
                server.say(response);
                if stays {
                    // All of it has passed when the next answer has.
                    client.say(post("", "2"));
                    server.head();
                    server.hears("2");
                    server.say("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n\0the end");
                    let mut heard = Vec::new();
                    while !heard.ends_with(b"\0the end") {
                        let mut room = [0; 4096];
                        let length = client.0.read(&mut room).unwrap();
                        assert!(length > 0, "{what}");
                        heard.extend_from_slice(&room[..length]);
                    }
                } else {
                    drop(server);
                    client.rest();
                }
            });
            let end = lines.last().unwrap();
            assert!(["< closed", "< cut"].contains(&&**end), "{what}: {lines:#?}");
        }
    }
}

#[test]
fn whatever_a_client_asks_is_recorded_as_hyper_has_it() {
    let ours = "http://localhost";
    for (headers, body) in [
        (String::new(), ""),
        (String::new(), "no message"),
        ("Content-Encoding: gzip\r\n".to_owned(), "secret"),
        (format!("Origin: {ours}\r\nAccept-Encoding: gzip\r\nAccept-encoding: br\r\n"), CALL),
        (
            "X-A: 1\r\nB: 2\r\nx-a: 3\r\nTE: trailers\r\nKeep-Alive: 1\r\nConnection: Keep-Alive\r\n"
                .to_owned(),
            CALL,
        ),
        (String::new(), &*"x".repeat(100_000)),
    ] {
        let lines = same(&headers, &|mut client, accept| {
            client.say(post(&headers, body));
            let mut server = accept();
            let head = server.head();
            assert!(!head.contains("gzip\r\nAccept") && !head.contains("trailers"), "{head}");
            server.hears(body);
            server.say(json(ANSWER));
            client.hears(json(ANSWER));
        });
        assert!(lines.iter().all(|line| !line.contains("secret")), "{lines:#?}");
    }
}

#[test]
fn whoever_leaves_or_resets_leaves_the_recording_that_hyper_makes() {
    let modern = r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
    let event = chunk(&format!("data: {ANSWER}\n\n"));
    // How far the response has come when the client leaves, and what the server says then.
    let others = requests().into_iter().filter(|request| !request.starts_with("HEAD "));
    let posts = [CALL, modern, "no message"].map(|body| post("", body));
    for request in posts.into_iter().chain(others) {
        for (before, behind) in [
            ("", STREAM.to_owned() + &event + "0\r\n\r\n"),
            (STREAM, event.clone() + "0\r\n\r\n"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{\"a\"", ":123}".to_owned()),
        ] {
            for is_reset in [false, true] {
                same(&format!("{before:?} {request}"), &|mut client, accept| {
                    client.say(&request);
                    let mut server = accept();
                    takes(&mut server, &request);
                    server.say(before);
                    client.hears(before);
                    match is_reset {
                        true => client.reset(),
                        false => drop(client),
                    }
                    // It goes on without its client.
                    if request.contains("chunked") || request.contains(CALL) {
                        server.say(&behind);
                    }
                    server.rest();
                });
            }
        }
    }
    // Within its body, before and behind an answer.
    let half = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{\"half\"";
    for early in [
        "",
        "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{\"a\"",
        "HTTP/1.1 413 X\r\nContent-Length: 1\r\n\r\na",
    ] {
        let lines = same(early, &|mut client, accept| {
            client.say(half);
            let mut server = accept();
            server.head();
            server.hears("{\"half\"");
            server.say(early);
            client.hears(early);
            drop(client);
            server.rest();
        });
        let last: Vec<&str> = match early.contains("413") {
            true => vec!["< closed", "> partial {\"half\""],
            false => vec!["> partial {\"half\"", "> closed"],
        };
        assert_eq!(lines[lines.len() - 2..], last, "{lines:#?}");
    }
    // Within a chunk, and where none is.
    let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
    for rest in ["", "9\r\nab", "zz\r\n", "1\r\nabc"] {
        let lines = same(rest, &|mut client, accept| {
            client.say(head.to_owned() + &chunk("{\"half\""));
            let mut server = accept();
            server.head();
            server.hears(chunk("{\"half\""));
            client.say(rest);
            drop(client);
            let _ = server.0.read_to_end(&mut Vec::new());
        });
        assert!(lines[1].starts_with("> partial {\"half\"") && lines[2..] == ["> closed"], "{lines:#?}");
    }
    // The server resets, wherever it is.
    let befores = ["", STREAM, "HTTP/1.1 200 OK\r\n\r\na"];
    for (before, request) in
        befores.into_iter().flat_map(|before| requests().map(|request| (before, request)))
    {
        if request.starts_with("HEAD ") && !before.is_empty() {
            continue;
        }
        let lines = same(before, &|mut client, accept| {
            client.say(&request);
            let mut server = accept();
            takes(&mut server, &request);
            if !before.is_empty() {
                server.say(before);
                let mut byte = [0];
                client.0.read_exact(&mut byte).unwrap();
            }
            server.reset();
            let mut heard = Vec::new();
            let _ = client.0.read_to_end(&mut heard);
        });
        assert_eq!(lines.last().unwrap(), "< reset", "{lines:#?}");
    }
}

#[test]
fn a_request_that_its_server_cuts_off_is_recorded_so_far_and_cut() {
    let post = "POST /mcp HTTP/1.1\r\nHost: localhost\r\n";
    let (first, second) = CALL.split_at(30);
    let length = format!("{post}Content-Length: {}\r\n\r\n{first}", CALL.len());
    let chunked = format!("{post}Transfer-Encoding: chunked\r\n\r\n{}", chunk(first));
    let in_chunk = format!("{post}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{first}", CALL.len());
    // Said before the end, and what of that is recorded.
    let parts = [
        ("", &[][..]),
        ("HTTP/1.1 200 O", &[]),
        (STREAM, &["< 200 content-type=text/event-stream transfer-encoding=chunked"]),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{\"a\"",
            &["< 200 content-length=9", "< partial {\"a\""],
        ),
    ];
    for (part, is_reset) in parts.into_iter().flat_map(|part| [(part, false), (part, true)]) {
        let (says, heard) = part;
        for request in [&length, &chunked, &in_chunk] {
            let lines = same(&format!("{says:?} {is_reset} {request}"), &|mut client, accept| {
                client.say(request);
                let mut server = accept();
                server.head();
                let mut taken = String::new();
                while !taken.contains(first) {
                    let mut byte = [0];
                    server.0.read_exact(&mut byte).unwrap();
                    taken.push(byte[0].into());
                }
                server.say(says);
                if !heard.is_empty() {
                    client.0.read_exact(&mut [0]).unwrap();
                }
                // One that closes with something unread resets.
                let open = if is_reset {
                    server.reset();
                    None
                } else {
                    server.0.shutdown(Shutdown::Write).unwrap();
                    Some(server)
                };
                let _ = client.0.read_to_end(&mut Vec::new());
                let _ = client.0.write_all(second.as_bytes());
                drop(open);
            });
            // The part may come behind the head of a response that came first.
            let part = format!("> partial {first}");
            assert_eq!(lines.iter().filter(|line| **line == part).count(), 1, "{lines:#?}");
            let said: Vec<_> = lines[1..].iter().filter(|line| line.starts_with('<')).collect();
            assert_eq!(said[..said.len() - 1], *heard, "{lines:#?}");
            assert!(["< cut", "< reset"].contains(&&**lines.last().unwrap()), "{lines:#?}");
        }
    }
}

#[test]
fn a_response_that_cannot_be_read_is_told_once() {
    let many = "A: b\r\n".repeat(1500);
    for bad in ["Content-Length: 1\r\nContent-Length: 2\r\n", "Content-Length: +1\r\n", &many] {
        let (warns, warnings) = std::sync::mpsc::channel();
        let scene =
            Scene::with(|options| options.warn = Box::new(move |text| drop(warns.send(text.to_owned()))));
        for (nth, is_plain) in [true, false, true].into_iter().enumerate() {
            let mut client = scene.client();
            let target = if is_plain { "/mcp" } else { "http://localhost/mcp" };
            client.say(post("", CALL).replace("/mcp", target));
            let mut server = scene.accept();
            server.takes_call();
            server.say(format!("HTTP/1.1 200 OK\r\n{bad}\r\n1"));
            client.rest();
            if nth == 0 {
                let told = warnings.recv().unwrap();
                assert!(told.contains("cannot be read"), "{bad}: {told}");
            }
        }
        drop(scene.end());
        assert_eq!(warnings.iter().count(), 0, "{bad}");
    }
}

#[test]
fn what_looks_as_if_the_other_side_had_done_it_is_told_once() {
    let chunked = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
    for first in ["/mcp", "http://localhost/mcp"] {
        let (warns, warnings) = std::sync::mpsc::channel();
        let scene =
            Scene::with(|options| options.warn = Box::new(move |text| drop(warns.send(text.to_owned()))));
        let is_told = |told: &str| {
            let warning = warnings.recv().unwrap();
            assert!(warning.contains(told), "{warning}");
        };
        // A server that says nothing at all has not begun.
        for said in ["", "HTTP/1.1 200 OK\r\nA: b", "HTTP/1.1 200 OK\r\nA: b"] {
            let mut client = scene.client();
            client.say(call("localhost"));
            let mut server = scene.accept();
            server.takes_call();
            server.say(said);
            drop(server);
            assert_eq!(client.rest().0, "");
        }
        is_told("within the head of a response");
        // A client that leaves says enough by that.
        for (target, rest) in [(first, "9\r\nab"), (first, "zz\r\n"), ("/mcp", "zz\r\n")] {
            let mut client = scene.client();
            client.say(chunked.replace("/mcp", target) + &chunk("{\"half\""));
            let mut server = scene.accept();
            server.head();
            client.say(rest);
            if rest.starts_with('z') {
                client.rest();
            }
            drop(client);
            server.rest();
        }
        is_told("whose body cannot be read");
        drop(scene.end());
        assert_eq!(warnings.iter().count(), 0);
    }
}

#[test]
fn a_connection_is_hypers_from_the_first_request_that_hyper_gets() {
    let get = "GET http://localhost/a HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned();
    let chunked = format!(
        "POST http://localhost/b HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n{}0\r\n\r\n",
        chunk(CALL)
    );
    let plain = || post("", CALL);
    for requests in [
        vec![plain(), get.clone(), plain(), chunked.clone()],
        vec![get.clone(), plain(), get],
        vec![plain(), plain(), chunked, plain()],
    ] {
        for is_pipelined in [false, true] {
            let scene = Scene::new();
            let mut client = scene.client();
            if is_pipelined {
                client.say(requests.concat());
            }
            let mut server = None;
            for (number, request) in requests.iter().enumerate() {
                if !is_pipelined {
                    client.say(request);
                }
                // One connection, whoever serves it.
                let server = server.get_or_insert_with(|| scene.accept());
                let head = server.head();
                let line = request.lines().next().unwrap().replace("http://localhost", "");
                assert_eq!(head.lines().next().unwrap(), line);
                server.hears(request.split_once("\r\n\r\n").unwrap().1);
                server.say(json(&number.to_string()));
                client.hears(json(&number.to_string()));
            }
            let count = requests.len();
            let lines = scene.end();
            let bodies: Vec<_> = lines.iter().filter(|line| line.contains("< body")).cloned().collect();
            let expected: Vec<_> =
                (0..count).map(|number| format!("{} < body {number}", number + 1)).collect();
            assert_eq!(bodies, expected, "{lines:#?}");
        }
    }
}

#[test]
fn a_server_that_leaves_between_two_requests_is_not_asked_again_by_anybody() {
    for next in [post("", CALL), "GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned()] {
        let scene = Scene::new();
        let (mut client, server) = scene.called();
        server.reset();
        assert_eq!(client.rest(), (String::new(), true));
        let _ = client.0.write_all(next.as_bytes());
        scene.server.set_nonblocking(true).unwrap();
        assert_eq!(scene.server.accept().map(drop).unwrap_err().kind(), ErrorKind::WouldBlock);
        assert!(scene.end().iter().all(|line| line.starts_with("1 ")));
    }
}

#[test]
fn a_body_that_nobody_reads_waits_where_it_is() {
    // Far more than sockets hold: neither side's memory may.
    let long = "a".repeat(64 << 20);
    let scene = Scene::passing();
    let mut client = scene.client();
    let asking = {
        let mut client = Peer::new(client.0.try_clone().unwrap());
        let request = post("", &long);
        std::thread::spawn(move || client.say(request))
    };
    let mut server = scene.accept();
    server.head();
    server.hears(&long);
    asking.join().unwrap();
    let answering = std::thread::spawn(move || server.say(json(&"b".repeat(64 << 20))));
    client.head();
    client.hears("b".repeat(64 << 20));
    answering.join().unwrap();
    drop(scene.end());
}
