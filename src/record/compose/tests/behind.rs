//! Journals that go on with a session of the cassette.

use super::*;
use crate::cassette::journal::Continues;

/// A session that a client had with a server, in a cassette.
fn recorded() -> String {
    record(&[journal(
        &header(1),
        r#"
        >{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}
        <{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        >{"jsonrpc":"2.0","method":"notifications/initialized"}
        >{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}
        <{"jsonrpc":"2.0","id":0,"method":"roots/list"}
        >{"jsonrpc":"2.0","id":0,"result":{"roots":[]}}
        <{"jsonrpc":"2.0","id":1,"result":{"n":1}}"#,
    )])
}

/// What was asked of the real server: the handshake, and requests that overlapped.
const ASKED: &str = r#"
    <listening
    >{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}
    <{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
    >{"jsonrpc":"2.0","method":"notifications/initialized"}
    <{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}
    >{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}
    >{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"b","_meta":{"progressToken":2}}}
    <{"jsonrpc":"2.0","id":0,"method":"elicitation/create","params":{}}
    >{"jsonrpc":"2.0","id":0,"result":{"action":"accept"}}
    <{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2,"progress":1}}
    <{"jsonrpc":"2.0","id":2,"result":{"n":2}}
    <{"jsonrpc":"2.0","id":1,"result":{"n":3}}
    >{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"never answered"}}
    >{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"c"}}
    >{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":4}}
    >{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"d"}}
    <{"jsonrpc":"2.0","id":5,"result":{"n":5}}"#;

fn asked(id: u64, session: Option<u32>) -> Vec<u8> {
    let continues = Continues { recording: 1, session, journal: session.map(|_| format!("{:012x}", 1)) };
    journal(&JournalHeader { continues: Some(continues), ..header(id) }, ASKED)
}

/// The same by a recorder that was killed: it does not say that it ended.
fn killed(id: u64, session: Option<u32>) -> Vec<u8> {
    let mut whole = asked(id, session);
    whole.truncate(whole.len() - length_of_end());
    whole
}

#[test]
fn what_was_asked_goes_behind_its_session_under_ids_that_nobody_used() {
    let before = recorded();
    let (text, changes) = add(before.as_bytes(), &[asked(2, Some(1))], &mut Memory::default());
    // Only lines behind the last exchange are new, but for its comma.
    let kept = before.strip_suffix("\n  ]\n}\n").unwrap();
    assert!(text.starts_with(&format!("{kept},\n")), "{text}");
    assert_eq!(changes.new, 6);
    let cassette = Cassette::load(text.clone().into(), &Memory::default()).unwrap();
    assert_eq!(cassette.sessions.len(), 1);
    let keys: Vec<_> = cassette.exchanges[3..].iter().map(|exchange| &*exchange.key).collect();
    assert_eq!(
        keys,
        [
            "push notifications/tools/list_changed @1",
            "tools/call a @2",
            "tools/call b @1",
            "tools/call c @1",
            "notifications/cancelled @1",
            "tools/call d @1"
        ]
    );
    assert!((3..9).all(|at| cassette.is_added(at)) && !cassette.is_added(2));
    assert_eq!(text.matches("\"journal\": \"000000000002\"").count(), 6);
    let script = &scripts(&text, &Memory::default())[0];
    let added = script.split_once("{\"n\":1}}\n").unwrap().1;
    assert_eq!(
        added.trim(),
        r#"
<{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}
>{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a"}}
>{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"b","_meta":{"progressToken":3}}}
<{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{}}
>{"jsonrpc":"2.0","id":1,"result":{"action":"accept"}}
<{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":3,"progress":1}}
<{"jsonrpc":"2.0","id":3,"result":{"n":2}}
<{"jsonrpc":"2.0","id":2,"result":{"n":3}}
>{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"c"}}
>{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}
>{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"d"}}
<{"jsonrpc":"2.0","id":6,"result":{"n":5}}"#
            .trim()
    );
    assert_eq!(add(before.as_bytes(), &[killed(2, Some(1))], &mut Memory::default()).0, text);
    // Twice changes nothing, and another one goes behind both.
    let (again, _) = add(text.as_bytes(), &[asked(2, Some(1))], &mut Memory::default());
    assert_eq!(again, text);
    let (both, _) = add(before.as_bytes(), &[asked(2, Some(1)), asked(3, Some(1))], &mut Memory::default());
    assert!(
        scripts(&both, &Memory::default())[0]
            .contains(r#""id":11,"method":"tools/call","params":{"name":"d"}"#)
    );
    assert_eq!(add(text.as_bytes(), &[asked(3, Some(1))], &mut Memory::default()).0, both);
}

#[test]
fn a_session_of_its_own_is_one_of_the_recording_that_is_played() {
    let (text, _) = add(recorded().as_bytes(), &[journal(&header(5), ASKED)], &mut Memory::default());
    let (text, _) = add(text.as_bytes(), &[asked(2, None)], &mut Memory::default());
    let cassette = Cassette::load(text.into(), &Memory::default()).unwrap();
    let sessions: Vec<_> =
        cassette.sessions.iter().map(|session| (session.number, session.recording)).collect();
    assert_eq!(sessions, [(1, 1), (2, 2), (3, 1)]);
    assert!(cassette.exchanges.iter().any(|exchange| &*exchange.key == "initialize @3"));
}

/// A call that was told something and then nothing, as we say when a server's stream breaks; one that succeeds; and a
/// server's own error with our code.
const FAILED: &str = r#"
    >{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"cut","_meta":{"progressToken":1}}}
    <{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}
    <{"jsonrpc":"2.0","id":1,"error":{"code":-33001,"message":"it broke","data":{"source":"tapedeck"}}}
    >{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"good"}}
    <{"jsonrpc":"2.0","id":2,"result":{"n":2}}
    >{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"bad"}}
    <{"jsonrpc":"2.0","id":3,"error":{"code":-33001,"message":"the server's own"}}"#;

#[test]
fn what_the_server_gave_no_answer_to_is_not_added() {
    let before = recorded();
    let tape = |session: Option<u32>, script: &str| {
        let journal_of = session.map(|_| format!("{:012x}", 1));
        let continues = Some(Continues { recording: 1, session, journal: journal_of });
        journal(&JournalHeader { continues, ..header(2) }, script)
    };
    for session in [Some(1), None] {
        let (text, _) = add(before.as_bytes(), &[tape(session, FAILED)], &mut Memory::default());
        let cassette = Cassette::load(text.into(), &Memory::default()).unwrap();
        let keys: Vec<_> = cassette.exchanges[3..].iter().map(|exchange| &*exchange.key).collect();
        assert_eq!(keys, ["tools/call good @1", "tools/call bad @1"]);
    }
    // What the server tells by itself is no answer.
    let told = r#"
        >{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}
        <{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        <{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}
        >{"jsonrpc":"2.0","method":"notifications/initialized"}
        >{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"never answered"}}"#;
    assert_eq!(add(before.as_bytes(), &[tape(Some(1), told)], &mut Memory::default()).0, before);
    // A session that never began is none.
    let refused = r#"
        >{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}
        <{"jsonrpc":"2.0","id":0,"error":{"code":-33001,"message":"no","data":{"source":"tapedeck","status":500}}}
        >{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    assert_eq!(add(before.as_bytes(), &[tape(None, refused)], &mut Memory::default()).0, before);
}

#[test]
fn a_journal_whose_session_is_not_there_is_added_as_nothing() {
    let before = recorded();
    let base = Cassette::load(before.clone().into(), &Memory::default()).unwrap();
    let journal = |continues| journal(&JournalHeader { continues: Some(continues), ..header(2) }, ASKED);
    let known = Continues { recording: 1, session: Some(1), journal: Some(format!("{:012x}", 1)) };
    for continues in [
        Continues::default(),
        Continues { session: Some(2), ..known.clone() },
        Continues { recording: 2, ..known.clone() },
        // The number is there, and it is another's.
        Continues { journal: Some(format!("{:012x}", 9)), ..known.clone() },
        Continues { recording: 2, session: None, journal: None },
    ] {
        let tapes = tapes(&[journal(continues)]);
        let plan = Plan::new(&base, &tapes);
        assert!(plan.is_empty());
        assert_eq!(plan.strays(), [0]);
    }
}

#[test]
fn over_http_more_than_an_answer_is_a_stream() {
    let text = recorded().replace("\"transport\": \"stdio\"", "\"transport\": \"http\", \"path\": \"/mcp\"");
    let text = crate::cassette::format(&Cassette::load(text.into(), &Memory::default()).unwrap());
    let (text, _) = add(&text, &[asked(2, Some(1))], &mut Memory::default());
    let cassette = Cassette::load(text.into(), &Memory::default()).unwrap();
    let streams: Vec<_> = cassette.exchanges[3..]
        .iter()
        .map(|exchange| exchange.http.as_ref().is_some_and(|http| http.stream))
        .collect();
    assert_eq!(streams, [false, false, true, false, false, false]);
}
