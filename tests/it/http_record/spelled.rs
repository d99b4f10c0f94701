//! Whatever passes from socket to socket does so byte for byte, in both directions, however it is cut.

use super::{
    relay::{follows, post, requests, responses, takes},
    *,
};

#[test]
fn a_plain_exchange_passes_as_it_is_spelled() {
    let scene = Scene::new();
    let mut client = scene.client();
    let request = format!(
        "POST /m HTTP/1.1\r\nx-ONE:  a \r\nhOST:localhost\r\nX-Two:\r\nX-One: b\r\nContent-LENGTH: {}\r\n\r\n{CALL}",
        CALL.len()
    );
    client.say(&request);
    let mut server = scene.accept();
    server.hears(request.replace("hOST:localhost", &format!("hOST: {}", scene.upstream())));
    for response in [
        "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n",
        "HTTP/1.1 299 Quite  Fine\r\nset-COOKIE:a\r\nX:\r\nSet-Cookie:  b \r\nTransfer-encoding:Chunked\r\n\r\n",
        "00002;a=b\r\n{}\r\n",
        "0\r\nSum:  1\r\n\r\n",
    ] {
        server.say(response);
        client.hears(response);
    }
    drop(scene.end());
}

#[test]
fn a_body_goes_on_in_the_codings_it_came_in() {
    let scene = Scene::new();
    let (mut client, mut server) = scene.called();
    let packed = gzip(ANSWER.as_bytes());
    let in_chunks = [format!("{:x}\r\n", packed.len()).as_bytes(), &packed, b"\r\n0\r\n\r\n"].concat();
    let body = |head: &str, body: &[u8]| [b"HTTP/1.1 200 OK\r\n", head.as_bytes(), b"\r\n", body].concat();
    let length = format!("Content-Length: {}\r\n", ANSWER.len());
    for response in [
        body("Transfer-Encoding: gzip, chunked\r\n", &in_chunks),
        body("transfer-encoding:GZIP\r\nTransfer-Encoding: Chunked\r\n", &in_chunks),
        // That is none.
        body(&format!("Transfer-Encoding: identity\r\n{length}"), ANSWER.as_bytes()),
        body(&format!("{length}Transfer-Encoding: Identity, \r\n"), ANSWER.as_bytes()),
        // The last, for only the connection's end ends it.
        body("Transfer-Encoding: gzip\r\n", &packed),
    ] {
        client.say(post("", CALL));
        server.takes_call();
        server.say(&response);
        client.hears(&response);
    }
    drop(server);
    client.rest();
    let lines = scene.end();
    let answers = lines.iter().filter(|line| line.contains(ANSWER)).count();
    assert_eq!(answers, 6, "{lines:#?}");
}

/// Responses that are spelled anew in no line.
fn kept() -> impl Iterator<Item = (Vec<u8>, bool)> {
    let odd = ["Keep-Alive", "Content-Length: 2\r\nContent-Length", "\t b", "Y : c"];
    responses().into_iter().filter(move |(response, _)| {
        let text = String::from_utf8_lossy(response);
        response.len() < 300 && !odd.iter().any(|odd| text.contains(odd))
    })
}

#[test]
fn a_response_passes_wherever_it_is_cut() {
    let scene = Scene::new();
    let (mut client, mut server) = scene.called();
    // Each piece goes when it is said.
    [&client, &server].iter().for_each(|peer| peer.0.set_nodelay(true).unwrap());
    for request in requests() {
        for (response, _) in kept().filter(|(_, stays)| *stays) {
            let response = follows(&request, &response);
            let text = String::from_utf8_lossy(response).into_owned();
            let body = memchr::memmem::find(response, b"\r\n\r\n").unwrap() + 4;
            // A chunk of events waits until it is whole.
            let waits = request.starts_with("GET ") && text.contains("event-stream");
            // Where heads and chunks are read in one way only.
            let step = if ["POST", "GET "].contains(&&request[..4]) { 1 } else { 11 };
            for cut in (1..response.len()).step_by(step) {
                client.say(&request);
                takes(&mut server, &request);
                let (now, later) = response.split_at(cut);
                server.say(now);
                // What has come of a body does not wait for the rest of it.
                let passed = if cut >= body && !text.contains("102") && !waits { cut } else { 0 };
                client.hears(&now[..passed]);
                server.say(later);
                client.hears(&response[passed..]);
            }
        }
    }
    drop(scene.end());
}

#[test]
fn a_response_that_ends_its_connection_passes_wherever_it_is_cut() {
    let scene = Scene::new();
    let ok = "HTTP/1.1 200 OK\r\n";
    for request in requests() {
        for response in [
            format!("{ok}Content-Type: text/event-stream\r\nX:\ta \r\n\r\nid: 1\ndata: a\n\ndata: b\n"),
            format!("{ok}Connection: close\r\nContent-Length: 2\r\n\r\nab"),
            "HTTP/1.0 200  Yes\r\nA:b\r\n\r\nabc".to_owned(),
            "HTTP/1.1 200 \r\nConnection: close\r\n\r\nabc".to_owned(),
            "HTTP/1.0 200\r\nContent-Length: 3\r\n\r\nabc".to_owned(),
            // Cut off, each.
            format!("{ok}Content-Length: 9\r\n\r\nabc"),
            STREAM.to_owned() + &chunk("data: a\n\n") + "5\r\nda",
        ] {
            let response = follows(&request, response.as_bytes());
            for cut in (0..response.len()).step_by(5) {
                let mut client = scene.client();
                client.0.set_nodelay(true).unwrap();
                client.say(&request);
                let mut server = scene.accept();
                server.0.set_nodelay(true).unwrap();
                takes(&mut server, &request);
                let (now, later) = response.split_at(cut);
                server.say(now);
                server.say(later);
                drop(server);
                assert_eq!(client.rest(), (String::from_utf8_lossy(response).into_owned(), false));
            }
        }
    }
    drop(scene.end());
}

#[test]
fn a_request_passes_wherever_it_is_cut() {
    let scene = Scene::new();
    let (mut client, mut server) = scene.called();
    [&client, &server].iter().for_each(|peer| peer.0.set_nodelay(true).unwrap());
    for request in requests() {
        let expected = request.replace("Host: localhost", &format!("Host: {}", scene.upstream()));
        let body = request.find("\r\n\r\n").unwrap() + 4;
        for cut in 1..request.len() {
            let (now, later) = request.split_at(cut);
            client.say(now);
            let passed = if cut < body { 0 } else { expected.len() - later.len() };
            server.hears(&expected[..passed]);
            client.say(later);
            server.hears(&expected[passed..]);
            server.say("HTTP/1.1 204 X\r\n\r\n");
            client.hears("HTTP/1.1 204 X\r\n\r\n");
        }
    }
    let lines = scene.end();
    let bodies: Vec<_> = lines.iter().filter_map(|line| line.split_once(" > message ")).collect();
    assert!(bodies.len() > 300 && bodies.iter().all(|(_, body)| *body == CALL));
}

#[test]
fn a_client_that_closes_behind_its_request_is_answered_and_so_is_one_of_many_headers() {
    let scene = Scene::new();
    let mut client = scene.client();
    let many: String = (0..200).map(|number| format!("X-{number}:1\r\n")).collect();
    client.say(
        format!("GET /a?b=$('c')[1] HTTP/1.1\r\nHost: h\r\n{many}Connection: X-1, Close\r\n\r\n")
            .replace("Host: h", "Host: localhost"),
    );
    let mut server = scene.accept();
    let head = server.head();
    let many = many.replace("X-1:1\r\n", "");
    let expected = format!(
        "GET /a?b=$('c')[1] HTTP/1.1\r\nHost: {}\r\n{many}Connection: close\r\n\r\n",
        scene.upstream()
    );
    assert_eq!(head, expected);
    server.say("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na");
    // It is for the server to close, and it has not said so.
    assert_eq!(client.rest().0, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na");
    assert_eq!(server.rest().0, "");
    drop(scene.end());
}

/// What comes until it ends so.
#[track_caller]
fn until(peer: &mut Peer, end: &str) -> String {
    let mut heard = Vec::new();
    while !heard.ends_with(end.as_bytes()) {
        let mut room = [0; 4096];
        let length = peer.0.read(&mut room).unwrap();
        assert!(length > 0, "{}", String::from_utf8_lossy(&heard));
        heard.extend_from_slice(&room[..length]);
    }
    String::from_utf8(heard).unwrap()
}

/// The data of a chunked body that is whole.
fn joined(body: &str) -> String {
    let (mut rest, mut data) = (body, String::new());
    loop {
        let (size, behind) = rest.split_once("\r\n").unwrap();
        let size = usize::from_str_radix(size.split([';', ' ']).next().unwrap(), 16).unwrap();
        if size == 0 {
            return data;
        }
        data += &behind[..size];
        rest = behind[size..].strip_prefix("\r\n").unwrap();
    }
}

#[test]
fn an_endpoint_becomes_ours_however_its_chunks_are_cut() {
    let scene = Scene::new();
    let (mut client, mut server) = scene.called();
    [&client, &server].iter().for_each(|peer| peer.0.set_nodelay(true).unwrap());
    let theirs = format!("http://{}", scene.upstream());
    for ours in ["http://localhost", "http://[0:0:0:0:0:0:0:1]:12345"] {
        let get = format!("GET /sse HTTP/1.1\r\nHost: {}\r\n\r\n", &ours[7..]);
        let event = format!("event: endpoint\ndata: {theirs}/m\n\n");
        let long = format!("data: {}\n\n", "x".repeat(40_000));
        // As its server writes it, and in chunks that end anywhere.
        for body in [
            chunk(&event),
            chunk(&format!(": hi\n\n{event}data: 1\n\n")),
            chunk(&event[..20]) + &chunk(&event[20..40]) + &chunk(&event[40..]),
            chunk(": hi\n\n") + &chunk(&event[..event.len() - 1]) + &chunk("\n") + &chunk(&event),
            chunk(&long) + &chunk(&event),
        ] {
            let body = body + "0;last\r\nSum: 1\r\n\r\n";
            let expected = joined(&body).replace(&theirs, ours);
            let step = if body.len() > 1000 { 9973 } else { 1 };
            for cut in (1..body.len()).step_by(step) {
                client.say(&get);
                server.head();
                let (now, later) = body.split_at(cut);
                server.say(STREAM.to_owned() + now);
                client.hears(STREAM);
                // The head has gone, so what came with it was dealt with.
                server.say(later);
                let heard = until(&mut client, "\r\n0;last\r\nSum: 1\r\n\r\n");
                assert_eq!(joined(&heard), expected, "{cut} of {body}");
            }
        }
    }
    let lines = scene.end();
    let named: Vec<_> = lines.iter().filter(|line| line.contains("SERVER")).collect();
    assert!(named.is_empty() && lines.iter().any(|line| line.ends_with("event <origin>/m")), "{named:#?}");
}

#[test]
fn what_is_whole_of_a_chunk_does_not_wait_for_the_rest_of_it() {
    let scene = Scene::new();
    let (mut client, mut server) = scene.called();
    client.say("GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n");
    server.head();
    // What has ended goes, and so does what is long; a line that may name an address waits.
    server.say(STREAM.to_owned() + "14;x\r\ndata: 1\n\nda");
    client.hears(STREAM.to_owned() + &chunk("data: 1\n\n"));
    server.say("ta: 2\n\n::\r\n");
    client.hears(chunk("data: 2\n\n::"));
    let long = "x".repeat(49_992) + "the half" + &"y".repeat(50_000);
    server.say(format!("{:X}\r\n{}", long.len(), &long[..50_000]));
    let mut heard = until(&mut client, "the half\r\n");
    server.say(long[50_000..].to_owned() + "\r\n0\r\n\r\n");
    heard += &until(&mut client, "\r\n0\r\n\r\n");
    assert!(joined(&heard) == long);
    let lines = scene.end();
    assert!(lines.contains(&"2 < event 2".to_owned()), "{lines:#?}");
}

#[test]
fn a_document_names_us_however_it_is_framed_and_cut() {
    let scene = Scene::new();
    let theirs = format!("http://{}", scene.upstream());
    let document = |origin: &str| format!("{{\"resource\": \"{origin}/mcp\", \"a\": \"{theirs}\"}}");
    let get = "GET /.well-known/oauth-protected-resource/mcp?a HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let head = "HTTP/1.1 200 OK\r\nx:y\r\nContent-Type: application/json\r\n";
    let of_length = |text: &str| format!("{head}content-length:  {}\r\n\r\n{text}", text.len());
    let in_chunks = format!("{head}Transfer-Encoding: chunked\r\n\r\n");
    let (theirs_whole, ours_whole) = (document(&theirs), document("http://localhost"));
    let elsewhere = document("https://public.example");
    let long = format!("{theirs_whole}{}", " ".repeat(2 << 20));
    let ours_of_length = of_length(&ours_whole).replace("content-length:  ", "content-length: ");
    for (sent, heard) in [
        (of_length(&theirs_whole), ours_of_length),
        (
            format!("{in_chunks}{}{}0\r\n\r\n", chunk(&theirs_whole[..30]), chunk(&theirs_whole[30..])),
            format!("{in_chunks}{}0\r\n\r\n", chunk(&ours_whole)),
        ),
        (format!("{head}\r\n{theirs_whole}"), format!("{head}\r\n{ours_whole}")),
        // As they came: what is on another origin, what is no document, what is none of that length, what is cut off.
        (of_length(&elsewhere), of_length(&elsewhere)),
        (format!("{in_chunks}3;a\r\nabc\r\n0\r\n\r\n"), format!("{in_chunks}3;a\r\nabc\r\n0\r\n\r\n")),
        (of_length(&long), of_length(&long)),
        (of_length(&long)[..200].to_owned(), of_length(&long)[..200].to_owned()),
    ] {
        let step = if sent.len() > 1000 { 500_000 } else { 7 };
        for cut in (1..sent.len()).step_by(step) {
            let mut client = scene.client();
            client.say(get);
            let mut server = scene.accept();
            server.0.set_nodelay(true).unwrap();
            server.head();
            let (now, later) = (sent[..cut].to_owned(), sent[cut..].to_owned());
            let says = std::thread::spawn(move || {
                server.say(now);
                server.say(later);
            });
            let found = client.rest().0;
            says.join().unwrap();
            assert!(found == heard, "{cut}: {}", &found[..found.len().min(500)]);
        }
    }
    let lines = scene.end();
    let recorded = "< body {\"resource\": \"<origin>/mcp\"";
    assert!(lines.iter().filter(|line| line.contains(recorded)).count() > 30, "{:#?}", &lines[..3]);
}

#[test]
fn a_body_does_not_wait_for_a_server_that_is_asked_whether_to_go_on() {
    let scene = Scene::new();
    let asks = post("Expect: 100-continue\r\n", CALL);
    let (head, body) = asks.split_at(asks.len() - CALL.len());
    let expected = asks.replace("Host: localhost", &format!("Host: {}", scene.upstream()));
    // At once, and when its client has waited long enough.
    for pieces in [vec![&*asks], vec![head, body]] {
        let mut client = scene.client();
        let mut heard = 0;
        let mut server = None;
        for piece in pieces {
            client.say(piece);
            let server: &mut Peer = server.get_or_insert_with(|| scene.accept());
            let more = piece.len() + if heard == 0 { expected.len() - asks.len() } else { 0 };
            server.hears(&expected[heard..heard + more]);
            heard += more;
        }
        let mut server = server.unwrap();
        // What it says is what its client hears, early or late.
        let says = format!("HTTP/1.1 100 Go  On\r\nA:b\r\n\r\n{}", json(ANSWER));
        server.say(&says);
        client.hears(&says);
        client.say(post("", CALL));
        server.takes_call();
    }
    drop(scene.end());
}

#[test]
fn a_client_that_waits_whether_to_go_on_hears_that_its_server_ends_the_connection() {
    let scene = Scene::new();
    let asks = post("Expect: 100-continue\r\n", CALL);
    let head = &asks[..asks.len() - CALL.len()];
    for (answer, is_reset) in [
        ("HTTP/1.1 417 No\r\nContent-Length: 1\r\nConnection: close\r\n\r\na", false),
        ("HTTP/1.1 417 No\r\n\r\nab", false),
        ("HTTP/1.1 417 No\r\nContent-Length: 1\r\n\r\na", true),
    ] {
        let mut client = scene.client();
        client.say(head);
        let mut server = scene.accept();
        server.head();
        server.say(answer);
        client.hears(answer);
        match is_reset {
            true => server.reset(),
            false => drop(server),
        }
        assert_eq!(client.rest().0, "");
    }
    // One that only says that it closes reads what still comes.
    let mut client = scene.client();
    client.say(head);
    let mut server = scene.accept();
    server.head();
    let answer = "HTTP/1.1 413 No\r\nContent-Length: 1\r\nConnection: close\r\n\r\na";
    server.say(answer);
    client.hears(answer);
    server.0.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(client.rest().0, "");
    client.say(CALL);
    server.hears(CALL);
    drop(scene.end());
}

#[test]
fn another_protocol_is_spoken_through_us_and_none_that_could_be_recorded() {
    let scene = Scene::new();
    let asks = |protocol: &str| {
        format!(
            "GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive, upgrade\r\nupgrade:{protocol}\r\n\r\n"
        )
    };
    let mut client = scene.client();
    client.say(asks("h2c"));
    let mut server = scene.accept();
    let host = scene.upstream();
    server.hears(format!("GET /ws HTTP/1.1\r\nHost: {host}\r\n\r\n"));
    server.say(json(ANSWER));
    client.hears(json(ANSWER));
    client.say(asks("websocket"));
    server.hears(format!(
        "GET /ws HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nupgrade:websocket\r\n\r\n"
    ));
    let switches = "HTTP/1.1 101 Switching\r\nUPGRADE:websocket\r\nConnection: Upgrade\r\nA: b\r\n\r\n";
    server.say(switches.to_owned() + "\x01\r\n");
    client.hears(switches.to_owned() + "\x01\r\n");
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 100_000]] {
        client.say(bytes);
        server.hears(bytes);
        server.say(bytes);
        client.hears(bytes);
    }
    client.say("last");
    drop(client);
    assert_eq!(server.rest().0, "last");
    // One that refuses goes on as before.
    let mut client = scene.client();
    client.say(asks("websocket"));
    let mut server = scene.accept();
    server.head();
    server.say(json(ANSWER));
    client.hears(json(ANSWER));
    client.say(post("", CALL));
    server.takes_call();
    let lines = scene.end();
    let of_tunnel: Vec<_> = lines.iter().filter_map(|line| line.strip_prefix("2 ")).collect();
    assert_eq!(of_tunnel, ["> GET /ws", "< 101 a=b", "> closed"]);
}

#[test]
fn a_server_that_wants_another_protocol_says_which() {
    let scene = Scene::new();
    for (target, connection, told) in [
        ("/ws", "Upgrade", "Upgrade"),
        ("/ws", "upgrade, close", "close, Upgrade"),
        ("http://localhost/ws", "Upgrade", "Upgrade"),
    ] {
        let mut client = scene.client();
        client.say(format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        let mut server = scene.accept();
        server.head();
        let head = |connection: &str| {
            format!(
                "HTTP/1.1 426 Upgrade Required\r\nUpgrade: websocket\r\nConnection: {connection}\r\nContent-Length: 0\r\n\r\n"
            )
        };
        server.say(head(connection));
        if target.starts_with('/') {
            client.hears(head(told));
        } else {
            let heard = client.head().to_ascii_lowercase();
            assert!(heard.contains("\r\nupgrade: websocket\r\n"), "{heard}");
            assert!(heard.contains("\r\nconnection: upgrade\r\n"), "{heard}");
        }
    }
    let lines = scene.end();
    let told: Vec<_> = lines.iter().filter(|line| line.contains("< 426")).collect();
    assert!(told.len() == 3 && told.iter().all(|line| line.contains(" upgrade=websocket")), "{lines:#?}");
}

#[test]
fn only_the_beginning_of_a_location_is_ours() {
    let scene = Scene::new();
    let (mut client, mut server) = scene.called();
    let theirs = format!("http://{}", scene.upstream());
    let query = "/login?resource=http%3A%2F%2F127.0.0.1%2Fmcp&next=";
    client.say("GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n");
    server.head();
    // What stands behind is for whoever reads that address, and nobody follows the others.
    let rest = format!(
        "{query}{theirs}/mcp\r\nContent-Location: {theirs}/a\r\nLink: <{theirs}/b>; rel=\"next\"\r\n\
         Content-Length: 0\r\n\r\n"
    );
    server.say(format!("HTTP/1.1 302 X\r\nLocation: {theirs}{rest}"));
    client.hears(format!("HTTP/1.1 302 X\r\nLocation: http://localhost{rest}"));
    drop(scene.end());
}
