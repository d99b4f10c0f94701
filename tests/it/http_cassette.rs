//! The program between a raw server and a raw client, over HTTP: what stands in its cassette afterwards.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{
    front::Front,
    program::{TAPEDECK, fed, tapedeck},
};

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c"}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","serverInfo":{"name":"s","version":"1"}}}"#;

/// A recorder between this test's client and this test's server.
struct Scene {
    folder: TempDir,
    server: TcpListener,
    front: String,
    child: Child,
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/mcp", server.local_addr().unwrap());
        let mut child = Command::new(TAPEDECK)
            .args(["record", "--cassette", "c.json", "-v", "--url", &url, "--listen", "127.0.0.1:0"])
            .current_dir(folder.path())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // The first line says where it listens.
        let mut said = String::new();
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        while !said.contains("clients use http://") {
            said.clear();
            assert!(lines.read_line(&mut said).unwrap() > 0, "it says where it listens");
        }
        child.stderr = Some(lines.into_inner());
        let front = said.trim_end().rsplit_once("http://").unwrap().1.split('/').next().unwrap().to_owned();
        Self { folder, server, front, child }
    }

    /// One request and what this server says to it. Both connections stay open.
    fn exchange(&self, request: &str, body: &str, answer: &str) -> (TcpStream, TcpStream) {
        let mut client = TcpStream::connect(&self.front).unwrap();
        let length =
            if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
        let accept = "Accept: application/json, text/event-stream\r\n";
        write!(client, "{}\r\nHost: {}\r\n{accept}{length}\r\n{body}", request.trim_end(), self.front)
            .unwrap();
        let (mut server, _) = self.server.accept().unwrap();
        for peer in [&client, &server] {
            // Only a test that fails waits so long.
            peer.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        }
        let heard = hears(&mut server, |heard| heard.ends_with(&format!("\r\n\r\n{body}")));
        assert!(heard.ends_with(body), "{heard}");
        server.write_all(answer.as_bytes()).unwrap();
        // The front's own address takes the place of the server's, and the end of a body tells nothing.
        let tells = |line: &&str| line.len() > 1 && !line.contains("http://");
        let last = answer.lines().rfind(tells).unwrap_or_default().to_owned();
        hears(&mut client, |heard| heard.contains(&last));
        (client, server)
    }

    /// Ends the recorder by a signal, within two seconds; what its cassette says, and all that lies beside it.
    fn end(mut self) -> (String, TempDir) {
        let began = Instant::now();
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        assert!(self.child.wait().unwrap().success());
        assert!(began.elapsed() < Duration::from_secs(20), "it ends");
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        let text = fs::read_to_string(self.folder.path().join("c.json"))
            .unwrap_or_else(|error| panic!("{error}: {said}"));
        let path = self.folder.path().join("c.json");
        let path = path.to_str().unwrap();
        // The peers of these tests say no more than their tests need.
        let lint = ["lint", path, "--allow", "version", "--allow", "handshake-initialized"];
        for command in [&["fmt", "--check", path][..], &lint, &["show", path]] {
            let output = tapedeck(command);
            assert!(output.status.success(), "{command:?}: {output:?}\n{text}");
        }
        (text, self.folder)
    }
}

/// What a peer says, until that is enough.
fn hears(peer: &mut TcpStream, is_enough: impl Fn(&str) -> bool) -> String {
    let mut heard = Vec::new();
    let mut byte = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&heard).into_owned();
        if is_enough(&text) {
            return text;
        }
        match peer.read(&mut byte) {
            Ok(0) => return text,
            Ok(length) => heard.extend_from_slice(&byte[..length]),
            Err(error) => panic!("{error}: {text}"),
        }
    }
}

fn whole(head: &str, body: &str) -> String {
    format!("HTTP/1.1 {head}\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

const JSON: &str = "200 OK\r\nContent-Type: application/json";
const STREAM: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
const POST: &str = "POST /mcp HTTP/1.1\r\nContent-Type: application/json";

fn chunk(text: &str) -> String {
    format!("{:X}\r\n{text}\r\n", text.len())
}

fn in_session(method: &str) -> String {
    format!("{method} /mcp HTTP/1.1\r\nMcp-Session-Id: a,b;c=\"d\"\r\nMCP-Protocol-Version: 2025-06-18")
}

#[track_caller]
fn contains(text: &str, expected: &str) {
    assert!(on_one_line(text).contains(&on_one_line(expected)), "{text}");
}

/// A text laid out as if it had room: times tell how wide it is, and they differ.
fn on_one_line(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    words.replace("{ ", "{").replace(" }", "}").replace("[ ", "[").replace(" ]", "]")
}

#[test]
fn a_session_over_http_becomes_a_cassette() {
    let scene = Scene::new();
    let head = format!(
        "{JSON}\r\nmcp-session-id: a,b;c=\"d\"\r\nSet-Cookie: a=secret-one; Path=/\r\nset-cookie: b=2, 3\r\nX-Empty:\r\nDate: x"
    );
    let begun = scene.exchange(POST, INITIALIZE, &whole(&head, INITIALIZED));
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}"#;
    let first = chunk("id: 1\nretry: 5\ndata:\n\n");
    let second =
        chunk("event: message\r\nid: 2\r\ndata: {\"jsonrpc\":\"2.0\",\r\ndata: \"method\":\"n\"}\r\n\r\n");
    let ended = scene.exchange(&in_session("POST"), call, &format!("{STREAM}{first}{second}0\r\n\r\n"));
    let resumed = format!("{}\r\nLast-Event-ID: 2", in_session("GET"));
    let answer = chunk("event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n");
    let went_on = scene.exchange(&resumed, "", &format!("{STREAM}{answer}0\r\n\r\n"));
    let gone = whole("404 Not Found\r\nContent-Type: text/plain", "session not found");
    let lost = scene.exchange(&in_session("POST"), &call.replace("\"id\":1", "\"id\":2"), &gone);
    let (text, _folder) = scene.end();
    drop((begun, ended, went_on, lost));
    contains(
        &text,
        r#"
      "http": {
        "headers": {
          "mcp-session-id": "<session-1>",
          "set-cookie": ["a=<redacted:cookie-1>; Path=/", "b=<redacted:cookie-2>"],
          "x-empty": ""
        }
      },
"#,
    );
    let exchanges = without_times(&text);
    contains(
        &exchanges,
        r#"
      "http": {"stream": true},
      "server": [
        {"sse": {"id": "1", "event": null, "retry": 5}, "body": ""},
        {"sse": {"id": "2"}, "raw": {"$lines": ["{\"jsonrpc\":\"2.0\",", "\"method\":\"n\"}"]}},
        {"after": "http GET /mcp @1", "on": "resume", "result": {}}
      ]
    },
    {
      "key": "http GET /mcp @1",
      "after": "tools/call a @1 #2",
      "client": {"http": "GET /mcp"},
      "http": {"request": {"last-event-id": "2"}, "status": 200, "stream": true}
    },
    {
      "key": "tools/call a @2",
      "after": "tools/call a @1 #3",
      "client": {"request": {"method": "tools/call", "params": {"name": "a"}}},
      "http": {"status": 404, "headers": {"content-type": "text/plain"}},
      "server": [{"body": "session not found"}],
      "unanswered": "ended"
    }
"#,
    );
}

/// A cassette's text without `after_ms`, laid out as it would be without them.
fn without_times(text: &str) -> String {
    let times = regex::Regex::new(r#""after_ms": \d+, "#).unwrap();
    let lines = regex::Regex::new(r#"\n *"after_ms": \d+,"#).unwrap();
    lines.replace_all(&times.replace_all(text, ""), "").into_owned()
}

#[test]
fn nothing_secret_is_in_any_file_wherever_it_was_said_first() {
    let scene = Scene::new();
    let secret = "zq81-hidden-until-later-77";
    // The server says it in a text that looks like nothing; only then it stands where credentials stand.
    let text = format!(
        r#"{{"jsonrpc":"2.0","id":0,"result":{{"serverInfo":{{"name":"s","version":"1"}},"instructions":"say {secret} then"}}}}"#
    );
    let begun = scene.exchange(POST, INITIALIZE, &whole(JSON, &text));
    let head = format!("{POST}\r\nX-Api-Key: {secret}");
    let called = scene.exchange(
        &head,
        r#"{"jsonrpc":"2.0","id":1,"method":"a"}"#,
        &whole(JSON, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#),
    );
    let (text, folder) = scene.end();
    drop((begun, called));
    contains(&text, r#""instructions": "say <redacted:api-key-1> then""#);
    contains(&text, r#""http": {"auth": true}"#);
    for entry in fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        let bytes = fs::read(&path).unwrap();
        assert!(!String::from_utf8_lossy(&bytes).contains(secret), "{}", path.display());
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "the journal is folded");
}

#[test]
fn messages_over_http_sse_are_told_with_their_stream() {
    let scene = Scene::new();
    let origin = format!("http://{}", scene.server.local_addr().unwrap());
    let endpoint = chunk(&format!("event: endpoint\ndata: {origin}/m/?session_id=abc\n\n"));
    let (client, mut stream) = scene.exchange("GET /sse HTTP/1.1", "", &format!("{STREAM}{endpoint}"));
    let posted =
        scene.exchange("POST /m/?session_id=abc HTTP/1.1", INITIALIZE, &whole("202 Accepted", "Accepted"));
    stream.write_all(chunk(&format!("event: message\ndata: {INITIALIZED}\n\n")).as_bytes()).unwrap();
    let mut client_of_stream = client;
    hears(&mut client_of_stream, |heard| heard.contains("serverInfo"));
    let (text, _folder) = scene.end();
    drop((posted, stream, client_of_stream));
    let text = without_times(&text);
    contains(&text, r#""transport": "sse","#);
    contains(&text, r#""path": "/sse","#);
    contains(
        &text,
        r#"
      "key": "http GET /sse @1",
      "client": {"http": "GET /sse"},
      "http": {"status": 200, "stream": true},
      "server": [{"sse": {"event": "endpoint"}, "body": "<origin>/m/?session_id=<session-1>"}],
      "unanswered": "open"
    },
"#,
    );
    contains(&text, r#"{"on": "post", "body": "Accepted"}"#);
    assert!(!text.contains(&origin), "{text}");
}

/// As a server answers that prints its JSON for people.
fn printed(text: &str) -> String {
    let value: Value = serde_json::from_str(text).unwrap();
    serde_json::to_string_pretty(&value).unwrap() + "\n"
}

#[test]
fn answers_over_several_lines_are_one_line_each_for_a_client_on_stdio() {
    let answers = |id: &str| {
        [
            format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"text":"a\nb","type":"text"}}]}}}}"#
            ),
            format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32602,"message":"no such\ntool"}}}}"#),
        ]
    };
    let call = |id: &str, tool: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}"}}}}"#)
    };
    let scene = Scene::new();
    let begun = scene.exchange(POST, INITIALIZE, &whole(JSON, &printed(INITIALIZED)));
    // What the client says may have several lines as well.
    let good = scene.exchange(POST, &printed(&call("1", "a")), &whole(JSON, &printed(&answers("1")[0])));
    let event = printed(&answers("2")[1]).lines().map(|line| format!("data: {line}\r\n")).collect::<String>();
    let stream = format!("{STREAM}{}0\r\n\r\n", chunk(&(event + "\r\n")));
    let bad = scene.exchange(POST, &call("2", "b"), &stream);
    let (_, folder) = scene.end();
    drop((begun, good, bad));
    let path = folder.path().join("c.json");
    let path = path.to_str().unwrap();
    let said = |command: &[&str]| String::from_utf8(tapedeck(command).stdout).unwrap();
    let shown = said(&["show", path]);
    let expected = [
        "initialize @1    result",
        "tools/call a @1  result",
        r"tools/call b @1  error -32602: no such\ntool",
    ];
    assert_eq!(shown.lines().skip(1).map(str::trim).collect::<Vec<_>>(), expected, "{shown}");
    let lines = said(&["show", path, "tools/call a @1", "--json"]);
    assert!(lines.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{lines}");
    let input =
        [INITIALIZE.to_owned(), call("\"x\"", "b"), call("\"y\"", "a")].map(|line| line + "\n").concat();
    let expected: Vec<Value> = [INITIALIZED, &answers("\"x\"")[1], &answers("\"y\"")[0]]
        .map(|line| serde_json::from_str(line).unwrap())
        .into();
    let joined = "\"$TAPEDECK\" join \"$TAPEDECK_RUN\"";
    for command in [&["replay", path][..], &["run", path, "--", "sh", "-c", joined]] {
        let output = fed(Command::new(TAPEDECK).args(command).env("TAPEDECK", TAPEDECK), &input);
        assert!(output.status.success(), "{output:?}");
        let heard = String::from_utf8(output.stdout).unwrap();
        let heard: Vec<Value> = heard.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
        assert_eq!(heard, expected, "{command:?}");
    }
}

#[test]
fn an_event_without_data_comes_back_without_data() {
    let scene = Scene::new();
    let begun = scene.exchange(POST, INITIALIZE, &whole(JSON, INITIALIZED));
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}"#;
    let events = [
        "retry: 5\n\n",
        "id: 1\nretry: 5\n\n",
        "id: 1\nretry: 5\ndata: \n\n",
        "event: message\n\n",
        "event: ping\n\n",
        "event: ping\ndata: \n\n",
        "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n",
    ];
    // Comments are not recorded.
    let sent = format!("{STREAM}{}{}0\r\n\r\n", chunk(": hello\n\n"), events.map(chunk).concat());
    let called = scene.exchange(POST, call, &sent);
    let (text, folder) = scene.end();
    drop((begun, called));
    contains(&without_times(&text), r#"{"sse": {"event": null, "retry": 5, "data": false}, "body": ""}"#);
    contains(&without_times(&text), r#"{"sse": {"id": "1", "event": null, "retry": 5}, "body": ""}"#);
    let path = folder.path().join("c.json");
    let (journal, back) = (folder.path().join("c.journal"), folder.path().join("back.json"));
    for (from, to) in [(&path, &journal), (&journal, &back)] {
        assert!(tapedeck(&["convert", from.to_str().unwrap(), to.to_str().unwrap()]).status.success());
    }
    assert_eq!(fs::read_to_string(&back).unwrap(), text);
    let front = Front::start(&["replay", back.to_str().unwrap()], folder.path());
    let host = front.origin.strip_prefix("http://").unwrap();
    let mut client = TcpStream::connect(host).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut asks = |body: &str, last: &str| {
        let accept = "Accept: application/json, text/event-stream";
        let length = body.len();
        write!(client, "{POST}\r\nHost: {host}\r\n{accept}\r\nContent-Length: {length}\r\n\r\n{body}")
            .unwrap();
        hears(&mut client, |heard| heard.contains(last))
    };
    asks(INITIALIZE, INITIALIZED);
    let heard = asks(call, "\r\n0\r\n\r\n");
    assert_eq!(unchunked(heard.split_once("\r\n\r\n").unwrap().1), events.concat());
    front.end();
}

const CHUNKED: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}"#;
const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#;

#[test]
fn an_answer_without_a_length_outlives_a_recorder_that_is_killed_before_its_end() {
    for up_to_end in [false, true] {
        let sent = |body: &str| match up_to_end {
            true => format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{body}"),
            false => format!("{CHUNKED}{}", chunk(body)),
        };
        let mut scene = Scene::new();
        let begun = scene.exchange(POST, INITIALIZE, &whole(JSON, INITIALIZED));
        // The client has the answer, and the server has not ended it.
        let called = scene.exchange(POST, CALL, &sent(ANSWER));
        scene.child.kill().unwrap();
        scene.child.wait().unwrap();
        drop((begun, called));
        let path = scene.folder.path().join("c.json");
        let replay = ["replay", path.to_str().unwrap()];
        let output = fed(Command::new(TAPEDECK).args(replay), &format!("{INITIALIZE}\n{CALL}\n"));
        assert!(output.status.success(), "{output:?}");
        assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{INITIALIZED}\n{ANSWER}\n"));
    }
}

#[test]
fn what_stands_behind_a_message_comes_behind_it_again() {
    let scene = Scene::new();
    let begun = scene.exchange(POST, INITIALIZE, &whole(JSON, INITIALIZED));
    let called = scene.exchange(POST, CALL, &format!("{CHUNKED}{}{}0\r\n\r\n", chunk(ANSWER), chunk("\r\n")));
    let (text, folder) = scene.end();
    drop((begun, called));
    contains(&text, r#""http": {"partial": "\r\n"}"#);
    let path = folder.path().join("c.json");
    let front = Front::start(&["replay", path.to_str().unwrap()], folder.path());
    let host = front.origin.strip_prefix("http://").unwrap();
    for (said, expected) in [(INITIALIZE, INITIALIZED.to_owned()), (CALL, format!("{ANSWER}\r\n"))] {
        let mut client = TcpStream::connect(host).unwrap();
        client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let (accept, length) = ("Accept: application/json, text/event-stream", said.len());
        let close = "Connection: close";
        write!(
            client,
            "{POST}\r\nHost: {host}\r\n{accept}\r\n{close}\r\nContent-Length: {length}\r\n\r\n{said}"
        )
        .unwrap();
        let heard = hears(&mut client, |_| false);
        let (head, body) = heard.split_once("\r\n\r\n").unwrap();
        let is_chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
        let body = if is_chunked { unchunked(body) } else { body.to_owned() };
        assert_eq!(body, expected, "{heard}");
    }
    front.end();
    let output = fed(
        Command::new(TAPEDECK).args(["replay", path.to_str().unwrap()]),
        &format!("{INITIALIZE}\n{CALL}\n"),
    );
    assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{INITIALIZED}\n{ANSWER}\n"));
}

/// A body that came in chunks.
fn unchunked(mut chunks: &str) -> String {
    let mut body = String::new();
    while let Some((length, rest)) = chunks.split_once("\r\n") {
        let length = usize::from_str_radix(length, 16).unwrap();
        body.push_str(&rest[..length]);
        chunks = &rest[length + 2..];
    }
    body
}

#[test]
fn a_cassette_of_http_goes_through_a_journal_and_back() {
    let scene = Scene::new();
    let metadata = whole("200 OK\r\nContent-Type: application/json", r#"{"a": 1}"#);
    let first = scene.exchange("GET /.well-known/x?y=1 HTTP/1.1", "", &metadata);
    let (text, folder) = scene.end();
    drop(first);
    let noted = text.replacen(
        r#""key": "http GET /.well-known/x @1","#,
        "\"key\": \"mine\",\n      \"note\": \"why\",",
        1,
    );
    assert_ne!(noted, text);
    fs::write(folder.path().join("c.json"), &noted).unwrap();
    let path = folder.path().join("c.json");
    let copy = folder.path().join("copy.journal");
    let back = folder.path().join("back.json");
    for (from, to) in [(&path, &copy), (&copy, &back)] {
        assert!(tapedeck(&["convert", from.to_str().unwrap(), to.to_str().unwrap()]).status.success());
    }
    assert_eq!(fs::read_to_string(&back).unwrap(), noted, "through a journal and back");
}
