//! A recording, replayed to the client that made it, never misses: sessions made by chance, with secrets in all places,
//! which touch, overlap, repeat, are spelled in other ways, and are said before anything tells that they are secret.

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::STANDARD};
use mcp_tapedeck::{
    Cassette, Recorder, Replayer,
    cassette::blob::MemoryBlobs,
    redact::{Redactor, Rules},
    replay::{Input, Options, Output},
    report::Verdict,
    traffic::{
        Direction::{self, ToClient, ToServer},
        Lane,
    },
};
use serde_json::{Map, Value, json};

/// Chance that is the same each time (SplitMix64).
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, count: usize) -> usize {
        (self.next() % count as u64) as usize
    }

    fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }

    fn word(&mut self, signs: &[u8], length: usize) -> String {
        (0..length).map(|_| self.pick(signs) as char).collect()
    }
}

const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyz";
const DIGITS: &[u8] = b"0123456789";
const BOTH: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const SIGNS: &[u8] = b"abcdefghXYZ0123456789!$%+#-_.@^*~";

/// Names of which most say that their values are secret.
const SECRET_NAMES: &[&str] =
    &["password", "token", "api_key", "secret", "access_token", "authorization", "cookie", "code", "state"];
const NAMES: &[&str] = &["text", "note", "q", "list", "n"];

/// The secrets of a session, some of which are parts of others.
fn secrets(dice: &mut Dice) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for _ in 0..2 + dice.below(5) {
        let length = 4 + dice.below(20);
        let other = all.get(dice.below(all.len().max(1))).cloned().unwrap_or_else(|| dice.word(BOTH, length));
        let secret = match dice.below(10) {
            0 => format!("ghp_{}", dice.word(BOTH, 36)),
            1 => format!("sk-ant-api03-{}", dice.word(BOTH, 40)),
            2 => dice.word(DIGITS, length),
            3 => dice.word(LETTERS, length),
            4 => dice.word(SIGNS, length),
            5 => format!("{other}{}", dice.word(BOTH, 3)),
            6 => format!("{}{}", &other[other.len() / 2..], dice.word(BOTH, 6)),
            7 => other[..other.len().min(9)].to_owned(),
            _ => dice.word(BOTH, length),
        };
        all.push(secret);
    }
    all
}

fn percent_encoded(text: &str) -> String {
    let escape = |byte: u8| match byte.is_ascii_alphanumeric() {
        true => (byte as char).to_string(),
        false => format!("%{byte:02X}"),
    };
    text.bytes().map(escape).collect()
}

/// One of the secrets, in one of its spellings.
fn spelled(dice: &mut Dice, all: &[String]) -> String {
    let secret = dice.pick(all);
    match dice.below(12) {
        0 => percent_encoded(&secret),
        1 => STANDARD.encode(secret),
        2 => secret.bytes().map(|byte| format!("{byte:02x}")).collect(),
        _ => secret,
    }
}

/// A text with secrets in it.
fn text(dice: &mut Dice, all: &[String]) -> String {
    let (one, other) = (spelled(dice, all), spelled(dice, all));
    let (in_form, other_in_form) = (percent_encoded(&one), percent_encoded(&other));
    match dice.below(28) {
        0 => one,
        1 => format!("see {one}"),
        2 => format!("{one}{other}"),
        3 => format!("{one} {other}"),
        4 => format!("{one}-{other}"),
        5 => format!("password: {one}"),
        6 => format!("GET /x?token={in_form} HTTP/1.1"),
        7 => format!(
            "GET /x?token={in_form}&state={other_in_form} HTTP/1.1\r\nAuthorization: Bearer {other}\r\n\r\n"
        ),
        8 => format!("Authorization: Bearer {one}"),
        9 => format!("Authorization: Basic {}", STANDARD.encode(format!("user:{one}"))),
        10 => format!("curl -u user:{one} https://a.example/{other}"),
        11 => json!({"password": one, "n": other}).to_string(),
        12 => format!("API_TOKEN={one} run {other}"),
        13 => format!("https://user:{one}@a.example/x?api_key={other_in_form}"),
        14 => format!("/srv/{one}/{other}.txt"),
        15 => format!("deploy --password {one} --name \"{other}\""),
        16 => format!("{one}{one}"),
        17 => format!("the {} of {one} is {other}!", dice.word(LETTERS, 4)),
        18 => format!("Cookie: sid={one}; other={other}"),
        19 => format!("x{one}y{other}z"),
        20 => format!("ran {} ok", json!({"cmd": format!("machine h login x password {one}"), "n": other})),
        21 => format!("ran {} ok", json!({"cmd": format!("PASSWORD=\"{one} {other}\"")})),
        22 => format!("docker run -e \"PASSWORD={one} {other}\" i"),
        23 => format!("curl -d 'password={one} {other}&x=y' h"),
        24 => format!("PASSWORD='{one}'{other} cmd"),
        25 => format!("sshpass -p {one} ssh h && mysql -p{other}"),
        26 => format!(
            "ran {} ok",
            json!({"cmd": format!("ran {}", json!({"cmd": format!("password: {one}")}))})
        ),
        _ => format!("{}\n{one}\n{other}", dice.word(LETTERS, 6)),
    }
}

fn value(dice: &mut Dice, all: &[String], depth: usize) -> Value {
    match dice.below(10) {
        0 => {
            let secret = dice.pick(all);
            secret.parse::<u64>().map_or(Value::String(secret), Value::from)
        }
        1 if depth < 3 => (0..1 + dice.below(3)).map(|_| value(dice, all, depth + 1)).collect(),
        2 if depth < 3 => members(dice, all, depth + 1),
        3 => dice.pick(all).into(),
        4 => dice.below(1000).into(),
        5 => dice.word(LETTERS, 5).into(),
        _ => text(dice, all).into(),
    }
}

fn members(dice: &mut Dice, all: &[String], depth: usize) -> Value {
    let mut members = Map::new();
    for _ in 0..1 + dice.below(3) {
        let (name, value) = match dice.below(14) {
            0 => (dice.pick(all), value(dice, all, depth)),
            1..=8 => (dice.pick(SECRET_NAMES).to_owned(), spelled(dice, all).into()),
            _ => (dice.pick(NAMES).to_owned(), value(dice, all, depth)),
        };
        members.insert(name, value);
    }
    Value::Object(members)
}

/// Calls and their answers, in turn. Some are made again.
fn session(seed: u64) -> Vec<(Direction, String)> {
    let mut dice = Dice(seed);
    let all = secrets(&mut dice);
    let mut asked: Vec<Value> = Vec::new();
    let mut lines = Vec::new();
    for id in 1..=2 + dice.below(8) {
        let is_again = id > 2 && dice.below(8) == 0;
        asked.push(if is_again { dice.pick(&asked) } else { members(&mut dice, &all, 0) });
        let params = json!({"name": "t", "arguments": asked.last()});
        let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
        let mut result = if dice.below(2) == 0 { members(&mut dice, &all, 0) } else { json!({}) };
        result["number"] = id.into();
        lines.push((ToServer, call.to_string()));
        lines.push((ToClient, json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string()));
    }
    lines
}

/// The lines as a recorder leaves them: what it has met only later is taken out at the end.
fn recorded(lines: &[(Direction, String)]) -> Vec<(Direction, Vec<u8>)> {
    let mut redactor = Redactor::for_recording(&Rules::default());
    let mut redact = |line: &[u8], direction| redactor.message(direction, line).into_owned();
    let mut seen: Vec<_> =
        lines.iter().map(|(direction, line)| (*direction, redact(line.as_bytes(), *direction))).collect();
    if redactor.met_late() {
        redactor.again();
        for (direction, line) in &mut seen {
            *line = redactor.message(*direction, line).into_owned();
        }
    }
    seen
}

/// A recording of lines, in place of their server.
fn replayer(lines: &[(Direction, Vec<u8>)]) -> Replayer {
    let mut recorder = Recorder::new(Default::default());
    lines.iter().for_each(|(direction, line)| recorder.message(0, *direction, line));
    let mut blobs = MemoryBlobs::default();
    let text = recorder.finish(None, &mut blobs).expect("memory does not fail");
    let cassette = Cassette::load(text, &blobs).expect("a recording loads");
    Replayer::new(Arc::new(cassette), Arc::new(blobs), "c.json", Options::default()).expect("it plays")
}

/// What comes for a line.
fn answer(replayer: &mut Replayer, line: &[u8]) -> Vec<u8> {
    replayer.handle(0, Input::Message { lane: Lane(0), bytes: line });
    let mut said = Vec::new();
    while let Some(output) = replayer.poll(0) {
        if let Output::Send { bytes, .. } = output {
            said.extend(bytes);
        }
    }
    said
}

#[test]
fn a_recording_answers_its_own_client_whatever_is_secret_in_it_and_wherever() {
    for seed in 0..300 {
        let lines = session(seed);
        let recorded = recorded(&lines);
        let mut replayer = replayer(&recorded);
        for (live, recorded) in lines.chunks(2).zip(recorded.chunks(2)) {
            let said = answer(&mut replayer, live[0].1.as_bytes());
            let [said, wanted] = [&said, &recorded[1].1].map(|line| String::from_utf8_lossy(line));
            assert_eq!(said, wanted, "session {seed}: {}", live[0].1);
        }
        assert_eq!(replayer.finish().verdict, Verdict::Good, "session {seed}");
    }
}
