//! What a replay knows as a secret is none the less one in what is added to its cassette.

use super::*;

const LIVE: &str = "liveone-A1b2c3";
const OTHER: &str = "livetwo-D4e5f6";

fn call(id: u32, arguments: &Value) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"measure","arguments":{arguments}}}}}"#
    )
}

/// A station that nobody knows: the server says it again.
fn city(text: &str) -> Value {
    json!({"city": text})
}

impl Stage {
    /// Records these calls.
    fn of(calls: &[Value]) -> Self {
        let stage = Self::new();
        std::fs::remove_file(stage.path("c.json")).expect("it is there");
        let calls = (1..).zip(calls).map(|(id, arguments)| call(id, arguments));
        let lines: Vec<_> = [INITIALIZE, INITIALIZED].map(str::to_owned).into_iter().chain(calls).collect();
        let recorded = stage.run(&["record", "c.json"], &stage.server, &(lines.join("\n") + "\n"));
        assert!(recorded.status.success(), "{recorded:?}");
        stage
    }

    /// Makes these calls; what they are answered.
    fn play(&self, words: &[&str], server: &[String], calls: &[Value]) -> Vec<String> {
        let mut talk = self.begin(words, server);
        let heard = (1..)
            .zip(calls)
            .map(|(id, arguments)| {
                talk.say(&call(id, arguments));
                let answer = talk.hear();
                assert_eq!(answer["id"], id, "{answer}");
                answer["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned()
            })
            .collect();
        assert_eq!(talk.end(), (Some(0), String::new()), "{calls:?}");
        heard
    }

    /// What a cassette has of what was added, but for the answers.
    fn added(&self) -> Vec<Value> {
        let cassette: Value = serde_json::from_str(&self.read("c.json")).expect("JSON");
        let exchanges = cassette["exchanges"].as_array().expect("a list");
        let added = exchanges.iter().filter(|exchange| exchange["journal"].is_string());
        added.map(|exchange| exchange["client"]["request"]["params"]["arguments"].clone()).collect()
    }

    fn assert_hidden(&self) {
        for name in self.names().into_iter().filter(|name| name.starts_with("c.json")) {
            let text = std::fs::read(self.path(&name)).expect("it is there");
            let text = String::from_utf8_lossy(&text);
            assert!(!text.contains(LIVE) && !text.contains(OTHER), "{name}: {text}");
        }
    }
}

#[test]
fn what_the_cassette_was_asked_with_is_hidden_in_what_it_was_not() {
    let recorded = [
        json!({"city": "a", "password": "recorded-1"}),
        json!({"city": "b", "token": "recorded-2"}),
        json!({"city": "say recorded-1 now"}),
    ];
    let one = |secret: &str| json!({"city": "a", "password": secret});
    let two = |secret: &str| json!({"city": "b", "token": secret});
    let say = |secret: &str| json!({"city": format!("say {secret} now")});
    let is = |secret: &str| city(&format!("it is {secret}."));
    let hidden = |placeholder: &str| city(&format!("it is {placeholder}."));
    for (live, added) in [
        // Met before, after, and between.
        (vec![one(LIVE), is(LIVE)], vec![hidden("<redacted:password-2>")]),
        (vec![is(LIVE), one(LIVE)], vec![hidden("<redacted:password-2>")]),
        (
            vec![is(OTHER), one(LIVE), is(LIVE), two(OTHER)],
            vec![hidden("<redacted:token-2>"), hidden("<redacted:password-2>")],
        ),
        // It stands where the recording has a secret, and nothing else tells of it.
        (vec![say(LIVE), is(LIVE)], vec![hidden("<redacted:password-2>")]),
        // What the cassette answered comes back beside a secret of the live session.
        (
            vec![is("<redacted:password-1>"), one(LIVE), is(LIVE)],
            vec![hidden("<redacted:password-1>"), hidden("<redacted:password-2>")],
        ),
        // What stands where it does is not looked for if it is a word.
        (vec![say("wonderful"), is("wonderful")], vec![is("wonderful")]),
    ] {
        let stage = Stage::of(&recorded);
        stage.play(&RECORD, &stage.server, &live);
        stage.assert_hidden();
        assert_eq!(stage.added(), added, "{live:?}");
        // Any other secrets do in a replay of all that.
        let fresh = serde_json::to_string(&live).expect("JSON").replace(LIVE, "fresh-G7h8i9");
        let fresh: Vec<Value> = serde_json::from_str(&fresh).expect("JSON");
        for live in [live, fresh] {
            let heard = stage.play(&["replay", "c.json", "--report", "r.json"], &[], &live);
            assert_eq!(stage.report()["misses"], json!([]), "{live:?}: {heard:?}");
        }
    }
}

#[test]
fn a_secret_that_is_met_when_the_real_server_has_gone_is_hidden_all_the_same() {
    let stage = Stage::of(&[json!({"city": "a", "password": "recorded-1"})]);
    // It ends with the third line.
    let lines = "for line in 1 2 3; do read -r line; printf '%s\\n' \"$line\"; done";
    let server = ["sh", "-c", &format!("{lines} | \"$0\" demo-server"), TAPEDECK].map(str::to_owned);
    let mut talk = stage.begin(&RECORD, &server);
    talk.say(&call(1, &city(LIVE)));
    assert!(talk.hear().to_string().contains(LIVE));
    // Once it has ended, whatever is passed on fails.
    let has_ended = |talk: &mut Talk| {
        talk.say(&call(2, &city("elsewhere")));
        talk.hear()["error"]["code"] == -33001
    };
    while !has_ended(&mut talk) {}
    talk.say(&call(3, &json!({"city": "a", "password": LIVE})));
    assert_eq!(talk.hear()["id"], 3);
    talk.end();
    stage.assert_hidden();
    assert_eq!(stage.added(), [city("<redacted:password-2>")]);
}

/// What a front is asked, and what it says to that.
fn ask(front: &Front, target: &str, session: &str, headers: &str, body: &str) -> String {
    let host = &front.origin["http://".len()..];
    let mut peer = Peer::new(TcpStream::connect(host).expect("it listens"));
    let method = if body.is_empty() { "DELETE" } else { "POST" };
    peer.say(format!(
        "{method} {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nMcp-Session-Id: {session}\r\n\
         Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n{headers}\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    ));
    peer.head();
    peer.rest().0
}

#[test]
fn over_http_headers_and_addresses_tell_secrets_and_so_do_other_sessions() {
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let password = |secret: &str| call(1, &json!({"city": "a", "password": secret}));
    let told: [(&str, &str, String); 5] = [
        ("/mcp", &format!("X-Api-Key: {LIVE}\r\n"), ping.into()),
        ("/mcp", &format!("Authorization: Bearer {LIVE}\r\n"), ping.into()),
        (&format!("/mcp?token={LIVE}"), "", ping.into()),
        (&format!("/other?access_token={LIVE}"), "", String::new()),
        ("/mcp", "", password(LIVE)),
    ];
    for (target, headers, body) in &told {
        for is_before in [true, false] {
            let stage = Stage::of(&[json!({"city": "a", "password": "recorded-1"})]);
            let cassette = text(&stage.path("c.json"));
            let words = ["replay", &cassette, "--on-miss", "record", "--", TAPEDECK, "demo-server"];
            let front = Front::start(&words, &stage.path(""));
            let sessions: Vec<String> = (0..2).map(|_| post(&front, None, INITIALIZE).0).collect();
            let tell = |session: usize| ask(&front, target, &sessions[session], headers, body);
            let miss = || ask(&front, "/mcp", &sessions[0], "", &call(7, &city(&format!("it is {LIVE}"))));
            // Whoever has the session to himself may say it later, too.
            if is_before {
                tell(1);
            }
            let heard = miss();
            assert!(heard.contains(LIVE), "{heard}");
            if !is_before {
                tell(0);
            }
            front.end();
            stage.assert_hidden();
            let added = stage.added();
            assert!(added.len() == 1 && added[0].to_string().contains("it is <redacted:"), "{added:?}");
        }
    }
}

#[test]
fn what_one_session_shows_is_hidden_in_what_all_others_have_added() {
    let stage = Stage::of(&[json!({"city": "a", "password": "recorded-1"})]);
    let cassette = text(&stage.path("c.json"));
    let words = ["replay", &cassette, "--on-miss", "record", "--", TAPEDECK, "demo-server"];
    let front = Front::start(&words, &stage.path(""));
    let secrets: Vec<String> = (0..6).map(|number| format!("live{number}-A1b2c3")).collect();
    let sessions: Vec<String> = secrets.iter().map(|_| post(&front, None, INITIALIZE).0).collect();
    for (session, secret) in sessions.iter().zip(&secrets) {
        let heard = ask(&front, "/mcp", session, "", &call(7, &city(&format!("it is {secret}"))));
        assert!(heard.contains(secret), "{heard}");
    }
    // Two are over by the time that anybody shows their secrets.
    sessions[..2].iter().for_each(|session| drop(ask(&front, "/mcp", session, "", "")));
    for (secret, session) in secrets.iter().zip(sessions[2..].iter().cycle()) {
        let shown = call(8, &json!({"city": "a", "password": secret}));
        let heard = ask(&front, "/mcp", session, "", &shown);
        assert!(heard.contains(r#""id":8"#), "{heard}");
    }
    front.end();
    for name in stage.names().into_iter().filter(|name| name.starts_with("c.json")) {
        let text =
            String::from_utf8_lossy(&std::fs::read(stage.path(&name)).expect("it is there")).into_owned();
        secrets.iter().for_each(|secret| assert!(!text.contains(secret), "{name}: {text}"));
    }
    let added = stage.added();
    let hidden = added.iter().filter(|said| said.to_string().contains("it is <redacted:password-"));
    assert_eq!(hidden.count(), secrets.len(), "{added:?}");
    assert_eq!(stage.names().iter().filter(|name| name.ends_with(".journal")).count(), 0);
}

#[test]
fn many_sessions_are_over_before_what_was_recorded_of_them_is_added() {
    let stage = Stage::new();
    let cassette = text(&stage.path("c.json"));
    let words = ["replay", &cassette, "--on-miss", "upstream", "--", TAPEDECK, "demo-server"];
    let real = Front::start(&words, &stage.path(""));
    std::fs::write(stage.path("input"), [INITIALIZE, INITIALIZED, &measure("3", "Bergen"), ""].join("\n"))
        .expect("it is written");
    // Fewer files may be open than there are sessions, unless more are asked for.
    let few = "ulimit -Sn 40; exec \"$0\" \"$@\"";
    let sessions =
        format!("for i in $(seq 40); do \"{TAPEDECK}\" join \"$TAPEDECK_RUN\" c < input || exit; done");
    let words = [
        "-c",
        few,
        TAPEDECK,
        "run",
        "c.json",
        "--on-miss",
        "record",
        "--url",
        &real.url,
        "--",
        "sh",
        "-c",
        &sessions,
    ];
    let ran = stage.program("sh", &words).output().expect("it runs");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    assert_eq!(said(&ran).matches("Bergen at").count(), 40, "{ran:?}");
    assert_eq!(stage.added(), vec![city("Bergen"); 40]);
    real.end();
}
