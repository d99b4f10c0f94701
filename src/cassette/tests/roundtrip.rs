//! What is recorded comes back.

use super::{super::*, *};

#[track_caller]
fn check(exchanges: &[Lines]) -> String {
    check_spelled(&Spelling::default(), exchanges)
}

#[track_caller]
fn check_spelled(spelling: &Spelling, exchanges: &[Lines]) -> String {
    let (text, blobs) = print(spelling, exchanges);
    let cassette =
        Cassette::load(text.clone().into_bytes(), &blobs).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let show = |line: &[u8]| String::from_utf8_lossy(line).into_owned();
    for (found, expected) in lines(&cassette, &blobs).iter().zip(exchanges) {
        assert_eq!(found.client.as_deref().map(show), expected.client.as_deref().map(show), "{text}");
        for (found, expected) in found.server.iter().zip(&expected.server) {
            assert_eq!(show(&found.0), show(&expected.0), "{text}");
            assert_eq!(found.1.as_deref().map(show), expected.1.as_deref().map(show), "{text}");
        }
    }
    assert_eq!(String::from_utf8(format(&cassette)).unwrap(), text, "a recording is formatted already");
    text
}

#[test]
fn an_ordinary_call() {
    let text = check(&[
        Lines::new(
            r#"{"jsonrpc":"2.0","id":0,"method":"tools/call","params":{"name":"report","arguments":{"days":7}}}"#,
            &[
                r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}"#,
                r##"{"jsonrpc":"2.0","id":0,"result":{"content":[{"type":"text","text":"# Report\n\nall well"}]}}"##,
            ],
        ),
        Lines::new(
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
            &[r#"{"jsonrpc":"2.0","id":1,"result":{}}"#],
        ),
    ]);
    let expected = r##"{
  "cassette": 1,
  "sessions": [
    {"session": 1, "recording": 1}
  ],
  "exchanges": [
    {
      "key": "x @1",
      "client": {
        "request": {"method": "tools/call", "params": {"name": "report", "arguments": {"days": 7}}}
      },
      "server": [
        {"notification": {"method": "notifications/progress", "params": {"progress": 1}}},
        {
          "result": {
            "content": [{"type": "text", "text": {"$lines": ["# Report", "", "all well"]}}]
          }
        }
      ]
    },
    {"key": "x @2", "client": {"request": {"method": "ping"}}, "server": [{"result": {}}]}
  ]
}
"##;
    assert_eq!(text, expected);
}
