//! A replay's report while the replay runs.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, Command},
};

use mcp_tapedeck::report::{Report, Verdict};

use super::{deck::Deck, files::CASSETTE};

const MISSES: usize = 300;

fn request(id: usize) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t{id}"}}}}"#)
}

/// Reads each report as it is written, until one tells of so many misses.
fn all_told(reports: File) {
    let mut reports = serde_json::Deserializer::from_reader(BufReader::new(reports)).into_iter();
    let mut before = 0;
    loop {
        let report: Report = reports.next().expect("more is written").expect("each report is whole");
        assert_eq!(report.verdict, Verdict::Open);
        assert!(report.misses.len() > before || before == 0, "{before} misses are told again");
        before = report.misses.len();
        if before == MISSES {
            return;
        }
    }
}

fn kill(mut replay: Child) {
    replay.kill().expect("it runs");
    replay.wait().expect("it ends");
}

fn deck() -> (Deck, File) {
    let deck = Deck::new().with("c.json", CASSETTE);
    let pipe = deck.path("reports");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo is there").success());
    // Open for both, so that it never ends between two reports.
    let reports = File::options().read(true).write(true).open(pipe).expect("the pipe can be opened");
    (deck, reports)
}

/// The client has said all, and stays: nothing but the time that has passed has the last misses told.
#[test]
fn every_miss_is_told_while_the_client_stays() {
    let (deck, reports) = deck();
    let mut replay = deck.spawn("replay c.json --report reports --log log");
    let mut stdin = replay.stdin.take().expect("a pipe");
    let answers = BufReader::new(replay.stdout.take().expect("a pipe"));
    let client = std::thread::spawn(move || {
        (0..MISSES).for_each(|id| writeln!(stdin, "{}", request(id)).expect("it reads"));
        let heard = answers.lines().take(MISSES).filter(|line| line.as_ref().unwrap().contains("-33000"));
        (heard.count(), stdin)
    });
    all_told(reports);
    let (heard, _stdin) = client.join().expect("it does not panic");
    assert_eq!(heard, MISSES);
    kill(replay);
    let log = deck.read("log");
    assert_eq!(log.matches(" miss: ").count(), MISSES, "each is logged once");
}

#[test]
fn every_miss_over_http_is_told_while_the_replay_listens() {
    let (deck, reports) = deck();
    let mut replay = deck.spawn("replay c.json --listen 127.0.0.1:0 -v --report reports");
    let mut said = BufReader::new(replay.stderr.take().expect("a pipe")).lines();
    let told = said.find_map(|line| Some(line.ok()?.split_once("clients use http://")?.1.to_owned()));
    let told = told.expect("it listens");
    let address = told.split('/').next().expect("an address").to_owned();
    let client = std::thread::spawn(move || {
        let told = |id| {
            let body = request(id);
            let mut stream = TcpStream::connect(&address).expect("it listens");
            write!(
                stream,
                "POST /mcp HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            )
            .expect("it reads");
            let mut heard = String::new();
            stream.read_to_string(&mut heard).expect("text");
            heard.contains("-33000")
        };
        (0..MISSES).filter(|id| told(*id)).count()
    });
    all_told(reports);
    assert_eq!(client.join().expect("it does not panic"), MISSES);
    kill(replay);
}
