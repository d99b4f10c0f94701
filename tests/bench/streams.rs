//! Streams that a client holds open with `GET`: what many of them cost, and how long an event on one is under way.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
};

use memchr::memmem;
use rustix::event::{PollFd, PollFlags, poll};

use crate::{
    Options, folder,
    http::{Client, Connection, Server, nanoseconds, whole},
    measure::{Goal, Pairs, Unit, report_one},
    memory::peak,
    peers,
};

/// Connects and holds a `GET` open.
fn stream(server: &Server) -> Connection {
    let mut stream = TcpStream::connect(server.address).expect("somebody listens");
    let head = b"GET /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n";
    stream.write_all(head).expect("it is taken");
    let mut room = [0; 4096];
    let length = stream.read(&mut room).expect("it is answered");
    assert!(room[..length].starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&room[..length]));
    Connection::new(stream).expect("a socket can be set up")
}

/// How long events are on their way from the server to a client of `through`: what one in a hundred is above.
pub(super) fn event_p99(upstream: &Server, through: &Server, count: usize) -> f64 {
    let mut events = stream(through);
    let direct = TcpStream::connect(upstream.address).expect("somebody listens");
    let mut direct = Connection::new(direct).expect("a socket can be set up");
    let mut delay = || {
        direct.stream.write_all(b"POST /tick HTTP/1.1\r\nContent-Length: 0\r\n\r\n").expect("it is taken");
        while memmem::find(&events.unread, b"\n\n").is_none() {
            poll(&mut [PollFd::new(&events.stream, PollFlags::IN)], None).expect("it can be waited for");
            events.read().expect("an event comes");
        }
        let now = nanoseconds();
        let left = peers::number_behind(&events.unread, b"\"at\":").expect("it says when it left");
        // The end of its chunk may come behind it.
        events.unread.clear();
        while whole(&direct.unread).is_none() {
            poll(&mut [PollFd::new(&direct.stream, PollFlags::IN)], None).expect("it can be waited for");
            direct.read().expect("it is answered");
        }
        direct.unread.clear();
        (now - left) as f64 / 1e9
    };
    let mut delays: Vec<f64> = (0..count).map(|_| delay()).collect();
    delays.sort_by(f64::total_cmp);
    delays[count - 1 - count / 100]
}

/// Events of an open stream, one at a time, through the recorder and without it.
pub(crate) fn event_latency(_: &Options) {
    let upstream = Server::null();
    let folder = folder();
    let recorder = Server::recorder(&upstream, &folder.path().join("c.json"));
    Client::new(&recorder, 1).p50(1);
    let pairs =
        Pairs::take(|| event_p99(&upstream, &recorder, 1000), || event_p99(&upstream, &upstream, 1000));
    let names = ["event under way, p99, through the recorder", "event under way, p99, direct"];
    pairs.report_difference("recorder - direct", names, Unit::MICROSECONDS, Goal::AtMost(1e-3));
}

/// A thousand sessions with an open `GET` stream each.
pub(crate) fn open_streams(_: &Options) {
    const STREAMS: usize = 1000;
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let all = rustix::process::Rlimit { current: limit.maximum, ..limit };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, all).expect("up to the maximum is allowed");
    let upstream = Server::null();
    let folder = folder();
    let cassette = folder.path().join("c.json");
    let recorder = Server::recorder(&upstream, &cassette);
    let open = |server: &Server| -> Vec<Connection> { (0..STREAMS).map(|_| stream(server)).collect() };
    let mut client = Client::new(&recorder, 1);
    client.p50(1);
    let streams = open(&recorder);
    let recording = peak(recorder.child.id()).unwrap_or_default();
    drop(streams);
    drop(recorder);
    report_one("recorder, 1,000 open streams", recording, Unit::MEGABYTES, Goal::AtMost(100e6));
    let replay = Server::replay(&cassette);
    let _session = Client::new(&replay, 1);
    let _streams = open(&replay);
    let replaying = peak(replay.child.id()).unwrap_or_default();
    report_one("replay, 1,000 open streams", replaying, Unit::MEGABYTES, Goal::AtMost(100e6));
}
