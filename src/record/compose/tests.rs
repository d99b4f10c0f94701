use std::borrow::Cow;

use proptest::prelude::*;

use crate::{
    cassette::{
        blob::MemoryBlobs as Memory,
        format,
        journal::{Encoder, JournalHeader, JournalReader},
        model::{Cassette, Moment},
        order::timeline,
    },
    record::{self, Changes, Plan, Tape},
    traffic::{Direction, Event, Exit, Lane, Payload},
};

mod behind;

fn header(id: u64) -> JournalHeader {
    JournalHeader {
        id: format!("{id:012x}"),
        parent: 7,
        parent_start: id,
        started_ms: 1_795_819_201_000 + id,
        by: "test 1".to_owned(),
        transport: "stdio".to_owned(),
        redacted: true,
        ..JournalHeader::default()
    }
}

/// Lines that begin with `>` or `<`, one millisecond apart.
fn journal(header: &JournalHeader, script: &str) -> Vec<u8> {
    let mut encoder = Encoder::new(header);
    for (number, line) in (0..).zip(script.trim().lines()) {
        let (direction, text) = line.trim().split_at(1);
        let direction = if direction == ">" { Direction::ToServer } else { Direction::ToClient };
        let payload = Payload::Message(Cow::Borrowed(text.as_bytes()));
        encoder.event(&Event { at: number * 1000, direction, lane: Lane(0), payload });
    }
    encoder.end();
    encoder.bytes
}

/// How long the frame is that says that a recorder ended in good order.
fn length_of_end() -> usize {
    let mut encoder = Encoder::default();
    encoder.end();
    encoder.bytes.len()
}

fn tapes(journals: &[Vec<u8>]) -> Vec<Tape> {
    let fold =
        |journal: &Vec<u8>| record::fold(&mut JournalReader::new(&journal[..]).unwrap(), &|| true).unwrap();
    journals.iter().map(fold).collect()
}

fn add(text: &[u8], journals: &[Vec<u8>], blobs: &mut Memory) -> (String, Changes) {
    let base = Cassette::load(text.to_vec(), blobs).unwrap();
    let tapes = tapes(journals);
    let mut out = Vec::new();
    let old = Memory(blobs.0.clone());
    let changes = Plan::new(&base, &tapes).write(&mut &journals[..], &old, blobs, &mut out).unwrap();
    (String::from_utf8(out).unwrap(), changes)
}

fn record(journals: &[Vec<u8>]) -> String {
    add(record::EMPTY, journals, &mut Memory::default()).0
}

/// All messages of each session in their total order, as a script.
fn scripts(text: &str, blobs: &Memory) -> Vec<String> {
    let cassette = Cassette::load(text.as_bytes().to_vec(), blobs).unwrap();
    assert_eq!(cassette.warnings, []);
    assert_eq!(String::from_utf8(format(&cassette)).unwrap(), text, "a recording is formatted");
    let script = |session: usize| {
        let exchanges: Vec<u32> = (0..cassette.exchanges.len() as u32)
            .filter(|&number| cassette.exchanges[number as usize].session == session as u32)
            .collect();
        let mut script = String::new();
        for at in timeline(&cassette, &exchanges) {
            let exchange = &cassette.exchanges[at.exchange as usize];
            let (from_client, message) = match at.moment {
                Moment::Client => (true, exchange.client.as_ref()),
                Moment::Item(item) => (false, Some(&exchange.server[item as usize].message)),
                Moment::Answer(item) => {
                    (true, exchange.server[item as usize].answer.as_ref().map(|answer| &answer.message))
                }
            };
            let mut line = Vec::new();
            cassette.wire(session as u32, from_client, message.unwrap(), None, blobs, &mut line).unwrap();
            script.push(if from_client { '>' } else { '<' });
            script.push_str(&String::from_utf8(line).unwrap());
            script.push('\n');
        }
        script
    };
    (0..cassette.sessions.len()).map(script).collect()
}

const CALL: &str = r#"
>{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
<{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"2"}}}
>{"jsonrpc":"2.0","method":"notifications/initialized"}
>{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","arguments":{}}}
>{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"quick","arguments":{}}}
<{"jsonrpc":"2.0","id":0,"method":"elicitation/create","params":{"message":"sure?"}}
<{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}
>{"jsonrpc":"2.0","id":0,"result":{"action":"accept"}}
<{"jsonrpc":"2.0","id":2,"result":{"content":[]}}
<{"jsonrpc":"2.0","id":"1","result":{"content":[]}}
<{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}
"#;

#[test]
fn a_recording_reads_as_the_format_says() {
    let text = record(&[journal(&header(1), CALL)]);
    assert_eq!(scripts(&text, &Memory::default()), [CALL.trim_start()]);
    let exchanges = &text[text.find("  \"exchanges\"").unwrap()..];
    let expected = r#"  "exchanges": [
    {
      "key": "initialize @1",
      "client": {
        "request": {
          "method": "initialize",
          "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "c", "version": "1"}
          }
        }
      },
      "server": [
        {
          "after_ms": 1,
          "result": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "serverInfo": {"name": "s", "version": "2"}
          }
        }
      ]
    },
    {
      "key": "notifications/initialized @1",
      "client": {"notification": {"method": "notifications/initialized"}}
    },
    {
      "key": "tools/call slow @1",
      "client": {
        "request": {"id": 1, "method": "tools/call", "params": {"name": "slow", "arguments": {}}}
      },
      "server": [
        {"after_ms": 6, "after": "tools/call quick @1 #3", "id": "1", "result": {"content": []}}
      ]
    },
    {
      "key": "tools/call quick @1",
      "after": "tools/call slow @1",
      "client": {"request": {"method": "tools/call", "params": {"name": "quick", "arguments": {}}}},
      "server": [
        {
          "after_ms": 1,
          "guess": true,
          "request": {"method": "elicitation/create", "params": {"message": "sure?"}},
          "answer": {
            "after_ms": 2,
            "after": "tools/call quick @1 #2",
            "result": {"action": "accept"}
          }
        },
        {
          "after_ms": 1,
          "after": "tools/call quick @1 #1",
          "guess": true,
          "notification": {
            "method": "notifications/message",
            "params": {"level": "info", "data": "x"}
          }
        },
        {"after_ms": 2, "after": "tools/call quick @1 #1 answer", "result": {"content": []}}
      ]
    },
    {
      "key": "push notifications/tools/list_changed @1",
      "after": "tools/call slow @1 #1",
      "server": [{"after_ms": 1, "notification": {"method": "notifications/tools/list_changed"}}]
    }
  ]
}
"#;
    assert_eq!(exchanges, expected);
    let cassette = Cassette::load(text.into_bytes(), &Memory::default()).unwrap();
    let session = &cassette.sessions[0];
    let texts = [&session.journal, &session.at, &session.by, &session.transport, &session.protocol];
    let texts = texts.map(|text| text.as_deref().unwrap());
    assert_eq!(texts, ["000000000001", "2026-11-27T22:40:01Z", "test 1", "stdio", "2025-11-25"]);
    assert_eq!([&session.client, &session.server].map(|name| name.as_deref().unwrap()), ["c", "s 2"]);
    assert_eq!(session.parent, header(1).parent_key());
}

fn line() -> impl Strategy<Value = String> {
    let id = || prop_oneof![4 => "[0-3]", 1 => Just("\"1\"".to_owned()), 1 => Just("1.0".to_owned()), 1 => Just("null".to_owned())];
    let text = prop_oneof![
        Just("short".to_owned()),
        Just("line\\nline\\n".to_owned()),
        Just("{\\\"json\\\":[1]}".to_owned()),
        Just("long ".repeat(300)),
    ];
    let request = (id(), prop_oneof![Just("tools/call"), Just("x"), Just("initialize"), Just("subscriptions/listen")], "[0-3]")
        .prop_map(|(id, method, token)| {
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{"name":"t","_meta":{{"progressToken":{token}}}}}}}"#)
        });
    let result = (id(), text)
        .prop_map(|(id, text)| format!(r#"{{"result":{{"text":"{text}"}},"jsonrpc":"2.0","id":{id}}}"#));
    let error = prop_oneof![Just(String::new()), id().prop_map(|id| format!(r#""id":{id},"#))]
        .prop_map(|id| format!(r#"{{"jsonrpc":"2.0",{id}"error":{{"code":-1}}}}"#));
    let progress = "[0-3]".prop_map(|token| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token}}}}}"#
        )
    });
    let cancel = id().prop_map(|id| {
        format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#)
    });
    let noise = prop_oneof![
        Just(""),
        Just("\r"),
        Just("ready"),
        Just("{\"a\": 1}"),
        Just("{ \"jsonrpc\": \"2.0\", \"method\": \"n\" }\r")
    ];
    let message = prop_oneof![4 => request, 4 => result, 1 => error, 2 => progress, 1 => cancel, 1 => noise.prop_map(str::to_owned)];
    let message = message.boxed();
    let batch = proptest::collection::vec(message.clone(), 1..4).prop_map(|members| {
        let members: Vec<_> = members.into_iter().filter(|member| member.starts_with("{\"")).collect();
        format!("[{}]", members.join(","))
    });
    prop_oneof![8 => message, 1 => batch]
}

proptest! {
    #[test]
    fn every_message_comes_back_byte_for_byte_and_in_its_order(lines in proptest::collection::vec((any::<bool>(), line()), 0..30)) {
        let script: String =
            lines.iter().map(|(client, line)| format!("{}{line}\n", if *client { '>' } else { '<' })).collect();
        let mut encoder = Encoder::new(&header(1));
        for (number, (client, line)) in (0..).zip(&lines) {
            let direction = if *client { Direction::ToServer } else { Direction::ToClient };
            let payload = Payload::Message(Cow::Borrowed(line.as_bytes()));
            encoder.event(&Event { at: number * 700, direction, lane: Lane(0), payload });
        }
        let mut blobs = Memory::default();
        let (text, _) = add(record::EMPTY, &[encoder.bytes], &mut blobs);
        let scripts = scripts(&text, &blobs);
        // A second initialize begins a session, to which what came before cannot belong.
        if scripts.len() < 2 {
            prop_assert_eq!(scripts.concat(), script);
        } else {
            let sorted = |script: &str| {
                let mut lines: Vec<_> = script.split('\n').map(str::to_owned).collect();
                lines.sort();
                lines
            };
            prop_assert_eq!(sorted(&scripts.concat()), sorted(&script));
        }
    }
}

fn call(name: &str, answer: &str) -> String {
    format!(
        "\n>{{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"tools/call\",\"params\":{{\"name\":\"{name}\"}}}}\
         \n<{{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{{\"text\":\"{answer}\"}}}}"
    )
}

#[test]
fn what_stands_in_the_document_stays_byte_by_byte() {
    let by_hand = r#" {"exchanges" :[ {"key":"mine", "session":4, "client":{"notification":{"method":"x"}}} , {"key": "tools/call a @7", "session": 4,
  "client": {"raw": "x"}}
    ],  "x-mine": [1,  2], "cassette":1,
  "sessions": [
   {"session": 4,   "recording": 2}
 ]

} "#;
    let (text, _) = add(by_hand.as_bytes(), &[journal(&header(1), &call("a", ""))], &mut Memory::default());
    let cassette = Cassette::load(text.clone().into_bytes(), &Memory::default()).unwrap();
    let keys: Vec<_> = cassette.exchanges.iter().map(|exchange| &*exchange.key).collect();
    assert_eq!(keys, ["mine", "tools/call a @7", "tools/call a @8"]);
    let numbers: Vec<_> =
        cassette.sessions.iter().map(|session| (session.number, session.recording)).collect();
    assert_eq!(numbers, [(4, 2), (5, 3)]);
    let mut rest = text;
    let session = cassette.sessions[1].place.span();
    rest.replace_range(session.start..session.end, "");
    let exchange = cassette.exchanges[2].place.span();
    rest.replace_range(exchange.start..exchange.end, "");
    let squeezed = |text: &str| text.split_ascii_whitespace().collect::<String>();
    assert_eq!(
        squeezed(&rest),
        squeezed(by_hand).replace("}],\"x-mine", "},],\"x-mine").replace("2}]}", "2},]}")
    );
    assert!(rest.starts_with(r#" {"exchanges" :["#) && rest.contains("\"x-mine\": [1,  2], \"cassette\":1,"));
    assert!(rest.ends_with("\n ]\n\n} "), "{rest}");
}

#[test]
fn arrays_that_are_missing_or_empty_are_made() {
    for base in
        [r#"{"cassette": 1}"#, r#"{"sessions": [], "cassette": 1}"#, r#"{"cassette": 1, "exchanges": [ ]}"#]
    {
        let (text, _) = add(base.as_bytes(), &[journal(&header(1), &call("a", ""))], &mut Memory::default());
        let cassette = Cassette::load(text.into_bytes(), &Memory::default()).unwrap();
        assert_eq!((cassette.sessions.len(), cassette.exchanges.len()), (1, 1), "{base}");
    }
}

#[test]
fn the_sessions_of_one_parent_are_one_recording_whenever_they_are_added() {
    let of = |id, parent| journal(&JournalHeader { parent, ..header(id) }, &call("a", ""));
    let same = |id, parent| journal(&JournalHeader { parent, parent_start: 1, ..header(id) }, &call("a", ""));
    let unknown = |id| journal(&JournalHeader { parent_start: 0, ..header(id) }, &call("a", ""));
    let blobs = &mut Memory::default();
    let (text, _) = add(record::EMPTY, &[same(1, 7), of(2, 9), same(3, 7)], blobs);
    let (text, _) = add(text.as_bytes(), &[same(3, 7), same(4, 7), unknown(5), unknown(6)], blobs);
    let cassette = Cassette::load(text.into_bytes(), blobs).unwrap();
    let numbers: Vec<_> =
        cassette.sessions.iter().map(|session| (session.number, session.recording)).collect();
    assert_eq!(numbers, [(1, 1), (2, 2), (3, 1), (4, 1), (5, 3), (6, 4)]);
}

/// What a recorder of one and the same parent recorded, from one second to another.
fn from_to(id: u64, from: u64, to: u64, replace: bool) -> Vec<u8> {
    let header = header(id);
    let started_ms = header.started_ms - id + from * 1000;
    let header = JournalHeader { parent_start: 1, started_ms, replace, ..header };
    let mut encoder = Encoder::new(&header);
    let lines = call("a", "1");
    for (number, line) in (0..).zip(lines.trim().lines()) {
        let (direction, text) = line.trim().split_at(1);
        let direction = if direction == ">" { Direction::ToServer } else { Direction::ToClient };
        let payload = Payload::Message(Cow::Borrowed(text.as_bytes()));
        encoder.event(&Event { at: number, direction, lane: Lane(0), payload });
    }
    let exit = Exit { status: Some(0), signal: None, by_itself: false };
    let at = (to - from) * 1_000_000;
    let exit = Event { at, direction: Direction::ToClient, lane: Lane(0), payload: Payload::Exit(exit) };
    encoder.event(&exit);
    encoder.bytes
}

fn recordings(text: &str) -> Vec<u32> {
    let cassette = Cassette::load(text.as_bytes().to_vec(), &Memory::default()).unwrap();
    cassette.sessions.iter().map(|session| session.recording).collect()
}

#[test]
fn what_a_parent_records_again_later_is_a_new_recording() {
    let journals = [
        from_to(1, 0, 300, false),
        from_to(2, 10, 11, false),
        from_to(3, 309, 310, false),
        from_to(4, 321, 322, false),
    ];
    let together = record(&journals);
    assert_eq!(recordings(&together), [1, 1, 1, 2], "{together}");
    assert!(together.contains("\"lasted_s\": 300"), "{together}");
    let apart = journals.iter().fold(String::from_utf8(record::EMPTY.to_vec()).unwrap(), |text, journal| {
        add(text.as_bytes(), std::slice::from_ref(journal), &mut Memory::default()).0
    });
    assert_eq!(apart, together);
    let (text, changes) = add(together.as_bytes(), &[from_to(5, 500, 501, true)], &mut Memory::default());
    assert_eq!(recordings(&text), [1], "{text}");
    assert_eq!(changes, Changes { kept: 1, changed: 0, new: 0, gone: 3 });
}

#[test]
fn a_session_that_still_runs_joins_those_that_ended_meanwhile() {
    let first = record(&[from_to(1, 0, 1, false)]);
    let base = Cassette::load(first.into_bytes(), &Memory::default()).unwrap();
    let mut both = tapes(&[from_to(2, 300, 301, false)]);
    let numbers = |tapes: &[Tape]| {
        Plan::new(&base, tapes).additions().map(|added| (added.session, added.recording)).collect::<Vec<_>>()
    };
    assert_eq!(numbers(&both), [(2, 2)]);
    let header = both[0].header.clone();
    let started_ms = header.started_ms - 300_000;
    both.push(Tape::of_alive(JournalHeader { id: "alive".to_owned(), started_ms, ..header }));
    assert_eq!(numbers(&both), [(2, 1)]);
}

#[test]
fn the_document_names_vars_and_says_that_it_was_not_redacted() {
    let vars = |names: &[&str], redacted| {
        let vars = names.iter().map(|name| (*name).to_owned()).collect();
        journal(&JournalHeader { vars, redacted, ..header(1) }, &call("a", ""))
    };
    let edit = |base: &[u8], journal: &[u8]| {
        let header = JournalReader::new(journal).unwrap().header().clone();
        let names: Vec<_> = header.vars.iter().map(String::as_str).collect();
        record::with_members(base, &names, header.redacted).map(|text| String::from_utf8(text).unwrap())
    };
    assert_eq!(edit(record::EMPTY, &vars(&[], true)), None);
    let both = edit(record::EMPTY, &vars(&["B", "é\""], false)).unwrap();
    let expected =
        "{\n  \"cassette\": 1,\n  \"redacted\": false,\n  \"vars\": [\"B\", \"é\\\"\"],\n  \"sessions\"";
    assert!(both.starts_with(expected), "{both}");
    assert_eq!(edit(both.as_bytes(), &vars(&["B"], false)), None);
    let more = edit(both.as_bytes(), &vars(&["B", "C"], true)).unwrap();
    assert!(more.contains("  \"vars\": [\"B\", \"é\\\"\", \"C\"],\n"), "{more}");
    let names: Vec<_> = (0..30).map(|n| format!("NAME_{n}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let many = edit(record::EMPTY, &vars(&names, true)).unwrap();
    let cassette = Cassette::load(many.clone().into_bytes(), &Memory::default()).unwrap();
    assert_eq!(format(&cassette), many.as_bytes());
    assert_eq!(cassette.vars.len(), 30);
}

#[test]
fn long_equal_answers_of_one_recording_are_written_once() {
    let long = "x".repeat(2000);
    let script = [call("a", &long), call("a", &long)].concat();
    let text = record(&[journal(&header(1), &script), journal(&header(2), &call("a", &long))]);
    assert_eq!(text.matches(&long).count(), 2);
    assert!(text.contains(r#"{"after_ms": 1, "same_as": "tools/call a @1"}"#));
}

fn replacing(id: u64, script: &str) -> Vec<u8> {
    journal(&JournalHeader { replace: true, ..header(id) }, script)
}

#[test]
fn a_recording_that_replaces_keeps_what_people_wrote_and_the_times_of_what_did_not_change() {
    let old = [call("a", "1"), call("b", "2"), call("b", "3"), call("c", "4")].concat();
    let text = record(&[journal(&header(1), &old)]);
    let text = text
        .replace(
            r#""key": "tools/call a @1","#,
            r#""key": "the first", "note": "why", "match": {"ignore": ["/params/x"]},"#,
        )
        .replace(r#""key": "tools/call b @2","#, r#""key": "tools/call b @2", "x-mine": [1],"#)
        .replace("\"after_ms\": 1", "\"after_ms\": 70")
        .replace("\"cassette\": 1,", "\"cassette\": 1,\n  \"faults\": {\"a\":   1},");
    // b @2 asks with other params now, so that b @1 is found by what it asks.
    let asks =
        |script: String| script.replacen("\"name\":\"b\"", "\"name\":\"b\",\"arguments\":{\"new\":1}", 1);
    let new = [call("a", "1"), asks(call("b", "2")), call("b", "2"), call("d", "5")].concat();
    let (text, changes) = add(text.as_bytes(), &[replacing(2, &new)], &mut Memory::default());
    assert_eq!(changes, Changes { kept: 2, changed: 1, new: 1, gone: 1 });
    let cassette = Cassette::load(text.clone().into_bytes(), &Memory::default()).unwrap();
    let keys: Vec<_> = cassette.exchanges.iter().map(|exchange| &*exchange.key).collect();
    assert_eq!(keys, ["the first", "tools/call b @1", "tools/call b @2", "tools/call d @1"]);
    let times: Vec<_> = cassette.exchanges.iter().map(|exchange| exchange.server[0].after_ms).collect();
    assert_eq!(times, [70, 1, 70, 1]);
    assert!(cassette.exchanges[0].rule.is_some());
    let extra = |exchange: usize| cassette.exchange_extra(&cassette.exchanges[exchange]).len();
    assert_eq!([0, 1, 2, 3].map(extra), [2, 1, 0, 0]);
    assert!(text.contains("\"faults\": {\"a\":   1}") && text.contains("\"note\": \"why\""));
    assert_eq!(
        (cassette.sessions.len(), cassette.sessions[0].number, cassette.sessions[0].recording),
        (1, 1, 1)
    );
}

#[test]
fn only_a_recording_that_went_well_replaces_and_never_its_own_other_sessions() {
    let blobs = &mut Memory::default();
    let old = record(&[journal(&header(1), &call("a", "1"))]);
    let sessions = |journals: &[Vec<u8>]| {
        let (text, _) = add(old.as_bytes(), journals, &mut Memory::default());
        let cassette = Cassette::load(text.into_bytes(), &Memory::default()).unwrap();
        cassette
            .sessions
            .iter()
            .map(|session| session.journal.clone().unwrap().pop().unwrap())
            .collect::<String>()
    };
    let sibling = |id| {
        let header = JournalHeader { replace: true, parent_start: 2, ..header(id) };
        journal(&header, &call("a", "1"))
    };
    assert_eq!(sessions(&[replacing(2, &call("a", "1"))]), "2");
    assert_eq!(sessions(&[sibling(2), sibling(3)]), "23");
    let (added, _) = add(old.as_bytes(), &[sibling(2)], blobs);
    let (added, _) = add(added.as_bytes(), &[sibling(3)], blobs);
    assert_eq!(Cassette::load(added.into_bytes(), blobs).unwrap().sessions.len(), 2);
    // No answer at all, and a recorder that was killed.
    assert_eq!(sessions(&[replacing(2, ">{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"a\"}")]), "12");
    let mut killed = replacing(2, &call("a", "1"));
    killed.truncate(killed.len() - length_of_end());
    assert_eq!(sessions(&[killed]), "12");
}
