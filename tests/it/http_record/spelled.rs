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
            for cut in 1..response.len() {
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
