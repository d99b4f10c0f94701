//! Whose answer it is that comes as a response: that of the request whose response it is, whatever its id.

use proptest::{collection::vec, prelude::*};

use super::*;

/// What a client asks on a lane: a method of HTTP, and what stands behind the head.
const ASKED: [(&str, &[&str]); 8] = [
    ("POST", &[r#"{"jsonrpc":"2.0","id":1,"method":"MARK"}"#]),
    ("POST", &[r#"{"jsonrpc":"2.0","id":2,"method":"MARK"}"#]),
    ("POST", &[r#"{"jsonrpc":"2.0","method":"MARK"}"#]),
    ("POST", &[r#"partial {"jsonrpc":"2.0","id":1,"method":"MARK","par"#]),
    ("POST", &[r#"body {"jsonrpc":"2.0","id":1,"method":"MARK","params":{"#]),
    ("POST", &[]),
    ("GET", &[]),
    ("DELETE", &[]),
];

/// What a server says on a lane.
const SAID: [&[&str]; 5] = [
    &["200 content-type=application/json", r#"{"jsonrpc":"2.0","id":1,"result":{"of":"MARK"}}"#, "."],
    &[
        "400 content-type=application/json",
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32700,"message":"MARK"}}"#,
        ".",
    ],
    &[
        "400 content-type=application/json",
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"MARK"}}"#,
        ".",
    ],
    &["200 content-type=application/json", r#"{"jsonrpc":"2.0","id":2,"result":{"of":"MARK"}}"#, "cut"],
    &["cut"],
];

/// The lines of one lane, each behind the one before it. A body may come behind its response.
fn lane(number: usize, asked: usize, said: usize, is_late: bool) -> Vec<String> {
    let ((method, bodies), mark) = (ASKED[asked], format!("mark-{number}."));
    let length = if bodies.is_empty() { "" } else { " content-length=60" };
    let mut lines = vec![format!("{number} > {method} /{mark}{length}")];
    let bodies = bodies.iter().map(|body| format!("{number} > {body}"));
    let mut said: Vec<_> = SAID[said].iter().map(|line| format!("{number} < {line}")).collect();
    let at = if is_late { said.len() - 1 } else { 0 };
    said.splice(at..at, bodies);
    lines.extend(said);
    lines.iter().map(|line| line.replace("MARK", &mark)).collect()
}

/// Which exchange each thing of the server's stands in, by the marks of both.
fn filed(lines: &[String]) -> Vec<(String, Vec<String>)> {
    let (_, cassette, blobs) = record(lines);
    let mark = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let behind = text.split_once("mark-").expect("all has a mark").1;
        behind.split_once('.').expect("a mark has an end").0.to_owned()
    };
    let exchanges = cassette.exchanges.iter().map(|exchange| {
        let wire = |from_client, message: &Message| {
            let mut bytes = Vec::new();
            cassette.wire(exchange.session, from_client, message, None, &blobs, &mut bytes).unwrap();
            mark(&bytes)
        };
        let asked = exchange.client.as_ref().map_or_else(String::new, |client| wire(true, client));
        (asked, exchange.server.iter().map(|item| wire(false, &item.message)).collect())
    });
    exchanges.collect()
}

/// A call that was only taken in, and then another request in whose response comes what answers the first.
#[track_caller]
fn check_other(request: &str, said: &[&str], expected: &str, answered: &str) {
    let (call, request) = (format!("1 > {}", super::request(1, "a")), format!("2 > {request}"));
    let said: Vec<_> = said.iter().map(|said| format!("2 < {said}")).collect();
    let lines = ["1 > POST /mcp @S", &call, "1 < 202", "1 < .", "2 > POST /mcp @S", &request];
    let lines: Vec<&str> = lines.into_iter().chain(said.iter().map(String::as_str)).collect();
    check_in_session(&lines, &[&format!(r#"1 a @1 {{"status": 202}}{answered}"#), expected]);
}

#[test]
fn a_client_hears_answers_to_its_other_calls_in_the_event_stream_of_a_call() {
    let call = request(2, "b");
    let (stream, own) =
        ("200 content-type=text/event-stream", r#"event |{"jsonrpc":"2.0","id":2,"result":{}}"#);
    let other = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    let event = format!("event |{other}");
    let answered = r#"1 b @1 {"stream": true} | result"#;
    check_other(&call, &[stream, own, &event, "."], answered, " | post result");
    // What comes first is its own, whatever its id (F10.5).
    check_other(&call, &[stream, &event, "."], answered, " ! ended");
    check_other(&call, &["200 content-type=application/json", other, "."], "1 b @1 | result", " ! ended");
    // Nobody reads on in the response to anything else.
    let told = r#"{"jsonrpc":"2.0","method":"n"}"#;
    let expected = r#"1 n @1 {"status": 200, "stream": true} | result"#;
    check_other(told, &[stream, &event, "."], expected, " ! ended");
    check_other("body {", &[stream, &event, "."], &expected.replace("n @1", "http POST /mcp @1"), " ! ended");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Clients without a session ask at the same time with the same ids, whole or not: each exchange has what was said
    /// on its own lane, and nothing else.
    #[test]
    fn an_answer_stands_with_what_it_was_said_to(
        lanes in vec((0..ASKED.len(), 0..SAID.len(), any::<bool>()), 2..6),
        picks in vec(any::<prop::sample::Index>(), 40),
    ) {
        let mut left: Vec<_> = (1..)
            .zip(&lanes)
            .map(|(number, (asked, said, is_late))| lane(number, *asked, *said, *is_late).into_iter())
            .collect();
        let (mut lines, mut picks) = (Vec::new(), picks.iter().cycle());
        while !left.is_empty() {
            let at = picks.next().unwrap().index(left.len());
            match left[at].next() {
                Some(line) => lines.push(line),
                None => drop(left.remove(at)),
            }
        }
        let mut expected: Vec<(String, Vec<String>)> = (1..)
            .zip(&lanes)
            .map(|(number, (_, said, _)): (usize, _)| {
                let said = SAID[*said].iter().filter(|line| line.contains("MARK")).count();
                (number.to_string(), vec![number.to_string(); said])
            })
            .collect();
        let mut found = filed(&lines);
        expected.sort();
        found.sort();
        prop_assert_eq!(found, expected, "{}", lines.join("\n"));
    }
}
