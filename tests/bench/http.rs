//! HTTP: a null server, a client with many connections, and nginx in front of the same server as the yardstick.
//!
//! Server and client are one thread each that polls: with threads for connections the benchmark would mostly measure
//! how a machine of few cores switches between them.

use std::{
    io::{self, BufRead, BufReader, ErrorKind, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use memchr::memmem;
use rustix::event::{PollFd, PollFlags, poll};

use crate::{
    Options, folder,
    measure::{Goal, Pairs, Spread, Unit, on_one_core_and_free},
    peers, streams, tapedeck, this_program,
};

/// The hidden word that makes this program the null server.
pub(crate) const HTTP_SERVER: &str = "--http-server";

const CONNECTIONS: usize = 32;
/// Requests of one measured round.
const REQUESTS: usize = 10_000;

/// How an answer is sent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Json,
    Events,
}

/// The kinds of answers that are asked for: what they are called, bytes of text, form.
const KINDS: [(&str, usize, Form); 4] = [
    ("64 bytes, JSON", 64, Form::Json),
    ("1 kB, JSON", 1000, Form::Json),
    ("64 bytes, SSE", 64, Form::Events),
    ("1 kB, SSE", 1000, Form::Events),
];

/// The null server: answers each call with as much text as it asks for, and holds `GET` open. `POST /tick` has it send
/// an event on each such stream.
pub(crate) fn serve() -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?);
    listener.set_nonblocking(true)?;
    let mut connections: Vec<Connection> = Vec::new();
    loop {
        let mut polled = vec![PollFd::new(&listener, PollFlags::IN)];
        polled.extend(connections.iter().map(|connection| PollFd::new(&connection.stream, PollFlags::IN)));
        poll(&mut polled, None)?;
        let ready: Vec<bool> = polled.iter().map(|polled| !polled.revents().is_empty()).collect();
        let (mut at, mut ticks) = (0, 0);
        connections.retain_mut(|connection| {
            at += 1;
            !ready[at] || connection.answer().map(|count| ticks += count).is_ok()
        });
        for connection in connections.iter_mut().filter(|connection| connection.is_stream) {
            // Whoever has left is found to have when it is read from.
            let _ = (0..ticks).try_for_each(|_| connection.stream.write_all(&tick()));
        }
        while let Ok((stream, _)) = listener.accept() {
            connections.push(Connection::new(stream)?);
        }
    }
}

pub(super) struct Connection {
    pub(super) stream: TcpStream,
    pub(super) unread: Vec<u8>,
    /// Of the server's: `GET` holds it open.
    is_stream: bool,
}

impl Connection {
    pub(super) fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, unread: Vec::new(), is_stream: false })
    }

    /// Reads what has come; an error also where the other side has closed.
    pub(super) fn read(&mut self) -> io::Result<()> {
        let mut room = [0; 16 << 10];
        match self.stream.read(&mut room) {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            Ok(length) => {
                self.unread.extend_from_slice(&room[..length]);
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Answers all that has come; how many events were asked for.
    fn answer(&mut self) -> io::Result<usize> {
        self.read()?;
        let mut ticks = 0;
        while let Some(length) = whole(&self.unread) {
            let request = &self.unread[..length];
            self.is_stream |= request.starts_with(b"GET");
            ticks += usize::from(request.starts_with(b"POST /tick"));
            let answer = answer(request);
            self.unread.drain(..length);
            self.stream.write_all(&answer)?;
        }
        Ok(ticks)
    }
}

/// The length of the message that stands at the beginning, where it is whole.
pub(super) fn whole(bytes: &[u8]) -> Option<usize> {
    let body = memmem::find(bytes, b"\r\n\r\n")? + 4;
    let head = bytes[..body].to_ascii_lowercase();
    if memmem::find(&head, b"transfer-encoding: chunked").is_some() {
        // No text of ours holds what ends such a body.
        return memmem::find(&bytes[body..], b"0\r\n\r\n").map(|end| body + end + 5);
    }
    let digits = match memmem::find(&head, b"content-length: ") {
        Some(at) => &head[at + 16..],
        None => b"0",
    };
    let count = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let length: usize = std::str::from_utf8(&digits[..count]).ok()?.parse().ok()?;
    (bytes.len() >= body + length).then_some(body + length)
}

fn answer(request: &[u8]) -> Vec<u8> {
    if request.starts_with(b"GET") {
        return b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
            .to_vec();
    }
    let id = peers::number_behind(request, b"\"id\":");
    let Some(id) = id else { return b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n".to_vec() };
    let mut body = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":").into_bytes();
    if memmem::find(request, b"\"initialize\"").is_some() {
        let result = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"null","version":"1"}}"#;
        body.extend_from_slice(result.as_bytes());
    } else {
        let number = |name: &[u8]| peers::number_behind(request, name).unwrap_or_default();
        peers::push_result(number(b"\"call\":"), number(b"\"size\":"), &mut body);
    }
    body.push(b'}');
    if memmem::find(request, b"\"events\":true").is_none() {
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        return [head.as_bytes(), &body].concat();
    }
    let event = [b"event: message\ndata: ", &body[..], b"\n\n"].concat();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    [format!("{head}{:x}\r\n", event.len()).as_bytes(), &event, b"\r\n0\r\n\r\n"].concat()
}

/// An event that says when it left the server.
fn tick() -> Vec<u8> {
    let mut event = format!(
        "data: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{{\"at\":{},\"data\":\"",
        nanoseconds()
    )
    .into_bytes();
    peers::push_text(300, &mut event);
    event.extend_from_slice(b"\"}}\n\n");
    [format!("{:x}\r\n", event.len()).as_bytes(), &event, b"\r\n"].concat()
}

/// By the clock that all processes of a machine share.
pub(super) fn nanoseconds() -> usize {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    usize::try_from(now.tv_sec * 1_000_000_000 + now.tv_nsec).expect("it does not run backwards")
}

fn call(id: usize, size: usize, form: Form) -> Vec<u8> {
    let events = if form == Form::Events { ",\"events\":true" } else { "" };
    let body = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":\"search\",\
         \"arguments\":{{\"call\":{id},\"size\":{size}{events}}}}}}}"
    );
    post(&body)
}

fn post(body: &str) -> Vec<u8> {
    format!(
        "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// A process that listens, ended when this is dropped.
pub(super) struct Server {
    pub(super) child: Child,
    pub(super) address: SocketAddr,
}

impl Drop for Server {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ = self.child.wait();
    }
}

impl Server {
    pub(super) fn null() -> Self {
        let mut command = this_program();
        let mut child = command.arg(HTTP_SERVER).stdout(Stdio::piped()).spawn().expect("it starts");
        let output = child.stdout.take().expect("a pipe was asked for");
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line).expect("it says where it listens");
        Self { child, address: line.trim().parse().expect("an address") }
    }

    /// Waits until something listens there.
    fn start(command: &mut Command, address: SocketAddr) -> Self {
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("it starts");
        while TcpStream::connect(address).is_err() {
            std::thread::yield_now();
        }
        Self { child, address }
    }

    pub(super) fn recorder(upstream: &Self, cassette: &Path) -> Self {
        let mut command = tapedeck();
        command.arg("record").arg("--cassette").arg(cassette);
        Self::before(upstream, &mut command)
    }

    /// It passes everything on and records nothing.
    fn proxy(upstream: &Self) -> Self {
        Self::before(upstream, tapedeck().arg("proxy"))
    }

    fn before(upstream: &Self, command: &mut Command) -> Self {
        let address = free_address();
        command.args(["--url", &format!("http://{}/mcp", upstream.address), "--listen"]);
        Self::start(command.arg(address.to_string()), address)
    }

    pub(super) fn replay(cassette: &Path) -> Self {
        let address = free_address();
        Self::start(tapedeck().arg("replay").arg(cassette).args(["--listen", &address.to_string()]), address)
    }

    /// One worker, connections kept on both sides, nothing held back.
    fn nginx(upstream: &Self, folder: &Path) -> Option<Self> {
        let address = free_address();
        let configuration = format!(
            "daemon off; worker_processes 1; pid {0}/pid; error_log {0}/error.log;\n\
             events {{ worker_connections 4096; }}\n\
             http {{ access_log off; client_body_temp_path {0}/a; proxy_temp_path {0}/b; fastcgi_temp_path {0}/c;\n\
             uwsgi_temp_path {0}/d; scgi_temp_path {0}/e; keepalive_requests 1000000;\n\
             upstream up {{ server {1}; keepalive 64; keepalive_requests 1000000; }}\n\
             server {{ listen {address}; location / {{ proxy_pass http://up; proxy_http_version 1.1;\n\
             proxy_set_header Connection \"\"; proxy_buffering off; }} }} }}\n",
            folder.display(),
            upstream.address
        );
        let path = folder.join("nginx.conf");
        fs_err::write(&path, configuration).expect("it is written");
        let found = ["nginx", "/usr/sbin/nginx"]
            .into_iter()
            .find(|program| Command::new(program).arg("-v").stderr(Stdio::null()).status().is_ok());
        let Some(program) = found else {
            println!("  SKIPPED: nginx is not installed (apt-get install nginx-light)");
            return None;
        };
        Some(Self::start(Command::new(program).arg("-c").arg(path).stderr(Stdio::null()), address))
    }
}

fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port is free")
}

/// Connections that each have one request in flight.
pub(super) struct Client {
    connections: Vec<Connection>,
    next_id: usize,
}

impl Client {
    pub(super) fn new(server: &Server, connections: usize) -> Self {
        let connect = |_| {
            let stream = TcpStream::connect(server.address).expect("somebody listens");
            Connection::new(stream).expect("a socket can be set up")
        };
        let mut client = Self { connections: (0..connections).map(connect).collect(), next_id: 1 };
        client.exchange(
            0,
            &post(&format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{}}}",
                peers::INITIALIZE
            )),
        );
        client
    }

    /// One request on one connection, and its answer.
    fn exchange(&mut self, connection: usize, request: &[u8]) -> Vec<u8> {
        let connection = &mut self.connections[connection];
        connection.stream.write_all(request).expect("the server takes requests");
        loop {
            if let Some(length) = whole(&connection.unread) {
                return connection.unread.drain(..length).collect();
            }
            poll(&mut [PollFd::new(&connection.stream, PollFlags::IN)], None).expect("it can be waited for");
            connection.read().expect("the server answers");
        }
    }

    /// Answers a second, with a request in flight on each connection.
    fn rate(&mut self, count: usize, size: usize, form: Form) -> f64 {
        let start = Instant::now();
        let (mut sent, mut answered) = (0, 0);
        let mut expected = vec![0; self.connections.len()];
        let mut send = |connection: &mut Connection, expected: &mut usize, id: &mut usize| {
            if sent < count {
                *expected = *id;
                connection.stream.write_all(&call(*id, size, form)).expect("the server takes requests");
                (sent, *id) = (sent + 1, *id + 1);
            }
        };
        for (connection, expected) in self.connections.iter_mut().zip(&mut expected) {
            send(connection, expected, &mut self.next_id);
        }
        while answered < count {
            let mut polled: Vec<PollFd<'_>> =
                self.connections.iter().map(|one| PollFd::new(&one.stream, PollFlags::IN)).collect();
            poll(&mut polled, None).expect("connections can be waited for");
            let ready: Vec<bool> = polled.iter().map(|polled| !polled.revents().is_empty()).collect();
            let waiting = self.connections.iter_mut().zip(&mut expected).zip(ready);
            for ((connection, expected), _) in waiting.filter(|(_, ready)| *ready) {
                connection.read().expect("the server answers");
                while let Some(length) = whole(&connection.unread) {
                    let answer: Vec<u8> = connection.unread.drain(..length).collect();
                    check(&answer, *expected, size);
                    answered += 1;
                    send(connection, expected, &mut self.next_id);
                }
            }
        }
        count as f64 / start.elapsed().as_secs_f64()
    }

    /// The middle of the times of single requests on one connection.
    pub(super) fn p50(&mut self, count: usize) -> f64 {
        let time = |client: &mut Self| {
            let id = client.next_id;
            client.next_id += 1;
            let request = call(id, 300, Form::Json);
            let start = Instant::now();
            let answer = client.exchange(0, &request);
            let time = start.elapsed();
            check(&answer, id, 300);
            time
        };
        Spread::of((0..count).map(|_| time(self)).map(|time: Duration| time.as_secs_f64())).median
    }
}

/// A wrong answer is fast, too.
fn check(answer: &[u8], id: usize, size: usize) {
    let shown = || String::from_utf8_lossy(&answer[..answer.len().min(500)]).into_owned();
    assert!(answer.starts_with(b"HTTP/1.1 200"), "{}", shown());
    assert_eq!(peers::number_behind(answer, b"\"id\":"), Some(id), "{}", shown());
    assert_eq!(peers::number_behind(answer, b"\"text\":\""), Some(id), "{}", shown());
    assert!(answer.len() > size, "{}", shown());
}

/// 32 connections through the recorder and through nginx.
pub(crate) fn record_throughput(_: &Options) {
    for (name, size, form) in KINDS {
        println!("  {name}");
        let upstream = Server::null();
        let folder = folder();
        let Some(nginx) = Server::nginx(&upstream, folder.path()) else { return };
        let recorder = Server::recorder(&upstream, &folder.path().join("c.json"));
        let (mut ours, mut other) = (Client::new(&recorder, CONNECTIONS), Client::new(&nginx, CONNECTIONS));
        let pairs = Pairs::take(|| ours.rate(REQUESTS, size, form), || other.rate(REQUESTS, size, form));
        let names =
            ["answers, 32 connections, through the recorder", "answers, 32 connections, through nginx"];
        pairs.report_ratio("recorder / nginx", names, Unit::THOUSANDS, Goal::AtLeast(0.85));
    }
}

/// One connection through the recorder and through nginx.
pub(crate) fn record_latency(_: &Options) {
    on_one_core_and_free(|| {
        let upstream = Server::null();
        let folder = folder();
        let Some(nginx) = Server::nginx(&upstream, folder.path()) else { return };
        let recorder = Server::recorder(&upstream, &folder.path().join("c.json"));
        let (mut ours, mut other) = (Client::new(&recorder, 1), Client::new(&nginx, 1));
        let pairs = Pairs::take(|| ours.p50(2000), || other.p50(2000));
        let names = ["round trip, p50, through the recorder", "round trip, p50, through nginx"];
        pairs.report_ratio("recorder / nginx", names, Unit::MICROSECONDS, Goal::AtMost(1.3));
    });
}

/// 32 connections through us, where nothing is recorded, and through nginx.
pub(crate) fn proxy_throughput(_: &Options) {
    for (name, size, form) in KINDS {
        println!("  {name}");
        let upstream = Server::null();
        let folder = folder();
        let Some(nginx) = Server::nginx(&upstream, folder.path()) else { return };
        let proxy = Server::proxy(&upstream);
        let (mut ours, mut other) = (Client::new(&proxy, CONNECTIONS), Client::new(&nginx, CONNECTIONS));
        let pairs = Pairs::take(|| ours.rate(REQUESTS, size, form), || other.rate(REQUESTS, size, form));
        let names = ["answers, 32 connections, through the proxy", "answers, 32 connections, through nginx"];
        pairs.report_ratio("proxy / nginx", names, Unit::THOUSANDS, Goal::AtLeast(1.0));
    }
}

/// 32 connections to a replay, and to the server that was recorded.
pub(crate) fn replay_throughput(_: &Options) {
    const KEYS: usize = 1000;
    for (name, size, form) in KINDS {
        println!("  {name}");
        let upstream = Server::null();
        let folder = folder();
        let cassette = folder.path().join("c.json");
        let recorder = Server::recorder(&upstream, &cassette);
        Client::new(&recorder, CONNECTIONS).rate(KEYS, size, form);
        drop(recorder);
        let replay = Server::replay(&cassette);
        let (mut ours, mut other) = (Client::new(&replay, CONNECTIONS), Client::new(&upstream, CONNECTIONS));
        let again = |client: &mut Client| {
            // The calls that were recorded, again and again.
            let rates = (0..REQUESTS / KEYS).map(|_| {
                client.next_id = 1;
                client.rate(KEYS, size, form)
            });
            Spread::of(rates.collect::<Vec<_>>()).median
        };
        let pairs = Pairs::take(|| again(&mut ours), || again(&mut other));
        let names = ["answers, 32 connections, replay", "answers, 32 connections, null server"];
        pairs.report_ratio("replay / null server", names, Unit::THOUSANDS, Goal::AtLeast(0.8));
    }
}

/// Client and server of this file fit together.
pub(crate) fn self_check() {
    let server = Server::null();
    let mut client = Client::new(&server, 3);
    for (_, size, form) in KINDS {
        client.rate(20, size, form);
    }
    client.p50(3);
    streams::event_p99(&server, &server, 3);
}
