//! `--header`: what is sent to the server with every request stands in no file, wherever the server repeats it.

use std::{
    io::Read as _,
    net::{TcpListener, TcpStream},
    path::Path,
    process::Command,
};

use crate::support::{
    front::Front,
    http::Peer,
    program::{TAPEDECK, fed},
    server::text,
};

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
const SECRET: &str = "acme17";

fn call(id: u8, name: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{name}"}}}}"#)
}

/// The URL of a server that repeats the header in a header and in the body of each answer.
fn repeats() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/mcp?token=query-secret", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            answer(Peer::new(stream));
        }
    });
    url
}

fn answer(mut peer: Peer) {
    let head = peer.head();
    let header = |name: &str| {
        let is_it = |line: &&str| line.to_ascii_lowercase().starts_with(name);
        head.lines().find(is_it).map_or("", |line| &line[name.len()..])
    };
    let mut body = vec![0; header("content-length: ").parse().unwrap_or(0)];
    peer.0.read_exact(&mut body).expect("a body");
    let body = String::from_utf8(body).expect("text");
    let sent = header("x-company: ");
    let id = body.split("\"id\":").nth(1).and_then(|rest| rest.split(',').next());
    let (status, answer) = match id {
        _ if head.starts_with("GET") => ("405 Method Not Allowed", String::new()),
        None => ("202 Accepted", String::new()),
        Some(id) => {
            let more = r#""protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}"#;
            ("200 OK", format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{{more},"said":"<{sent}>"}}}}"#))
        }
    };
    peer.say(format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nX-Repeated: {sent}\r\nConnection: close\r\n\
         Content-Length: {}\r\n\r\n{answer}",
        answer.len()
    ));
}

/// Runs it in a folder to its end with this input; what came out.
fn run(folder: &Path, words: &[&str], input: &[&str]) -> String {
    let mut command = Command::new(TAPEDECK);
    command.args(words).current_dir(folder).env("SEC", SECRET).env("LONG", SECRET.repeat(2));
    let ended = fed(&mut command, &(input.join("\n") + "\n"));
    assert!(ended.status.success(), "{ended:?}");
    String::from_utf8(ended.stdout).expect("text")
}

/// Asserts that no file in a folder holds a secret, and that there are so many files at least.
fn assert_hidden(folder: &Path, least: usize) {
    let files = std::fs::read_dir(folder).expect("a folder").map(|file| file.expect("a file").path());
    let files: Vec<_> = files.filter(|path| path.extension().is_none_or(|kind| kind != "ready")).collect();
    assert!(files.len() >= least, "{files:?}");
    for file in files {
        let bytes = std::fs::read(&file).expect("it is read");
        let held = String::from_utf8_lossy(&bytes);
        assert!(!held.contains(SECRET) && !held.contains("query-secret"), "{}: {held}", file.display());
    }
}

#[test]
fn what_the_server_repeats_of_a_header_we_sent_is_in_no_file() {
    let (folder, url) = (tempfile::tempdir().expect("a folder"), repeats());
    let folder = folder.path();
    let server = ["--url", &url, "--header", "X-Company: env:SEC"];
    let input = [INITIALIZE, INITIALIZED, &call(1, "a")];
    let record = [&["record", "c.json", "--keep-journal", "--log", "log"][..], &server].concat();
    let live = run(folder, &record, &input);
    assert_eq!(live.matches(&format!("\"said\":\"<{SECRET}>\"")).count(), 2, "{live}");
    assert_hidden(folder, 3);

    let replayed = run(folder, &["replay", "c.json"], &input);
    assert_eq!(replayed, live.replace(SECRET, "<redacted:env-1>"));
    let miss = [INITIALIZE, INITIALIZED, &call(1, "b")];
    run(folder, &[&["replay", "c.json", "--on-miss", "record"][..], &server].concat(), &miss);
    run(
        folder,
        &[&["auto", "c.json", "--record", "none", "--on-miss", "record"][..], &server].concat(),
        &miss,
    );
    run(folder, &[&["auto", "d.json"][..], &server].concat(), &miss);
    assert_hidden(folder, 4);
    assert!(run(folder, &["replay", "c.json"], &miss).contains("\"id\":1,\"result\""));
    // A replay alone needs no credentials.
    let without =
        ["auto", "c.json", "--record", "none", "--url", &url, "--header", "X-Company: env:NOT_THERE"];
    assert!(run(folder, &without, &miss).contains("\"id\":1,\"result\""));
}

#[test]
fn what_the_client_says_of_it_too_is_paired_where_the_replay_is_told_of_the_variable() {
    let (folder, url) = (tempfile::tempdir().expect("a folder"), repeats());
    let folder = folder.path();
    let named =
        call(1, "a").replace("\"a\"", &format!("\"a\",\"arguments\":{{\"key\":\"{}\"}}", SECRET.repeat(2)));
    let input = [INITIALIZE, INITIALIZED, &named];
    for (cassette, header) in
        [("b.json", "Authorization: Bearer env:LONG"), ("c.json", "X-Company: env:LONG")]
    {
        let record = ["record", cassette, "--url", &url, "--header", header];
        let live = run(folder, &record, &input);
        assert_hidden(folder, 1);
        let replayed = run(folder, &["replay", cassette, "--redact-env", "LONG"], &input);
        assert_eq!(replayed, live.replace(&SECRET.repeat(2), "<redacted:env-1>"), "{header}");
    }
    // Without that it is known by its place, and a miss that cannot be about it tells of the option.
    let replay = |input: &[&str]| {
        let mut command = Command::new(TAPEDECK);
        command.args(["replay", "c.json"]).current_dir(folder);
        let ended = fed(&mut command, &(input.join("\n") + "\n"));
        String::from_utf8(ended.stdout).expect("text")
    };
    let replayed = replay(&input);
    assert!(replayed.contains("\"id\":1,\"result\""), "{replayed}");
    let without = named.replace(&SECRET.repeat(2), "");
    let missed = replay(&[INITIALIZE, INITIALIZED, &without]);
    assert!(missed.contains("with --redact-env, or"), "{missed}");
}

#[test]
fn a_front_on_http_writes_neither_the_header_nor_the_secrets_of_its_url() {
    let (folder, url) = (tempfile::tempdir().expect("a folder"), repeats());
    let (cassette, log) = (text(&folder.path().join("c.json")), text(&folder.path().join("log")));
    let header = format!("X-Company: Bearer {SECRET}");
    let words = ["record", &cassette, "--keep-journal", "--log", &log, "--url", &url, "--header", &header];
    let front = Front::start(&words, folder.path());
    let host = &front.origin["http://".len()..];
    let mut peer = Peer::new(TcpStream::connect(host).expect("it listens"));
    peer.say(format!(
        "POST /mcp?token=query-secret HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{INITIALIZE}",
        INITIALIZE.len()
    ));
    let head = peer.head();
    let live = peer.rest().0;
    assert!(head.contains(SECRET) && live.contains(SECRET), "{head}{live}");
    let said = front.end_with(0);
    assert!(!said.contains("query-secret") && !said.contains(SECRET), "{said}");
    assert_hidden(folder.path(), 3);
}
