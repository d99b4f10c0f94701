use std::{borrow::Cow, collections::HashMap};

use crate::{
    cassette::{
        blob::{BlobSink, BlobSource},
        format,
        journal::{JournalHeader, JournalReader, encode, encode_end, encode_header},
        model::{Cassette, Moment},
        order::timeline,
    },
    record::{self, Changes, Plan, Tape},
    traffic::{Direction, Event, Lane, Payload},
};

#[derive(Debug, Default)]
struct Memory(HashMap<String, Vec<u8>>);

impl BlobSource for Memory {
    fn get(&self, name: &str) -> std::io::Result<Vec<u8>> {
        self.0.get(name).cloned().ok_or_else(|| std::io::ErrorKind::NotFound.into())
    }
}

impl BlobSink for Memory {
    fn put(&mut self, name: &str, bytes: &[u8]) -> std::io::Result<()> {
        self.0.insert(name.to_owned(), bytes.to_vec());
        Ok(())
    }
}

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
    let mut bytes = encode_header(header);
    for (number, line) in (0..).zip(script.trim().lines()) {
        let (direction, text) = line.trim().split_at(1);
        let direction = if direction == ">" { Direction::ToServer } else { Direction::ToClient };
        let payload = Payload::Message(Cow::Borrowed(text.as_bytes()));
        encode(&Event { at: number * 1000, direction, lane: Lane(0), payload }, &mut bytes);
    }
    encode_end(&mut bytes);
    bytes
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
