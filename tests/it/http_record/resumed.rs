//! Clients that come back for the rest of a call.

use super::*;

const PROGRESS: &str = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}"#;
const SESSION: &str = "Mcp-Session-Id: one\r\n";
const OTHER: &str = "Mcp-Session-Id: two\r\n";

/// A call on whose stream this event has come, its client gone since: the server's side of its connection.
fn left(scene: &Scene, session: &str, event: &str) -> Peer {
    let mut client = scene.client();
    let (head, length) = ("POST /mcp HTTP/1.1\r\nHost: localhost\r\n", CALL.len());
    client.say(format!("{head}{session}Content-Length: {length}\r\n\r\n{CALL}"));
    let mut server = scene.accept();
    server.head();
    server.hears(CALL);
    server.say(STREAM.to_owned() + &chunk(event));
    client.reads_to(PROGRESS);
    server
}

/// Whether our side of a connection has ended.
fn has_ended(server: &mut Peer) -> bool {
    server.0.set_nonblocking(true).unwrap();
    let read = server.0.read(&mut [0]);
    server.0.set_nonblocking(false).unwrap();
    !read.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

fn comes_back(scene: Scene, is_recorded: bool) {
    let with_id = format!("id: 1\r\ndata: {PROGRESS}\r\n\r\n");
    let mut server = left(&scene, SESSION, &with_id);
    let mut others = left(&scene, OTHER, &with_id);
    // Nobody can come back for what had no id.
    let mut without = left(&scene, SESSION, &format!("data: {PROGRESS}\r\n\r\n"));
    let mut client = scene.client();
    client.say(format!(
        "GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n{SESSION}Last-Event-ID: 1\r\n\r\n"
    ));
    let mut resumed = scene.accept();
    assert!(resumed.head().contains("\r\nLast-Event-ID: 1\r\n"));
    assert!(has_ended(&mut server), "the server is asked for the rest of a stream that is connected");
    if is_recorded {
        assert_eq!([&mut others, &mut without].map(has_ended), [false, false]);
    }
    resumed.say(STREAM.to_owned() + &chunk(&format!("id: 2\r\ndata: {ANSWER}\r\n\r\n")) + "0\r\n\r\n");
    client.reads_to(ANSWER);
    for server in [&mut others, &mut without] {
        // It may have left.
        let _ = server.0.write_all((chunk(&format!("data: {ANSWER}\r\n\r\n")) + "0\r\n\r\n").as_bytes());
        let _ = server.0.read(&mut [0]);
    }
    drop((client, resumed));
    let lines = scene.end();
    if is_recorded {
        let of = |lane: &str| -> Vec<&str> {
            let lines = lines.iter().filter_map(|line| line.strip_prefix(lane));
            lines.filter(|line| line.contains(" event ") || line.contains("closed")).collect()
        };
        let (progress, answer) = (format!("< event {PROGRESS}"), format!("< event {ANSWER}"));
        assert_eq!(of("1 "), [&progress, "> closed"], "{lines:#?}");
        assert_eq!(of("2 "), [&progress, "> closed", &answer, "< closed"], "{lines:#?}");
        assert_eq!(of("4 "), [&answer, "< closed"], "{lines:#?}");
    }
}

#[test]
fn a_call_that_was_read_on_is_let_go_before_its_client_asks_for_the_rest() {
    comes_back(Scene::new(), true);
}

#[test]
fn so_it_is_where_faults_are_about() {
    comes_back(Scene::faulty(&["tools/call other: tool_error"]), true);
    for scene in [Scene::faulty, Scene::faulty_without_a_recording] {
        // Its client is cut off by the fault, and the server reads on.
        comes_back(scene(&["tools/call a: cut_after events=1"]), false);
    }
}
