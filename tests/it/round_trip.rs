//! The loop is closed: whatever order things happened in, replaying a recording to the same client gives the same
//! bytes, and recording that replay gives the same cassette.

use std::sync::Arc;

use mcp_tapedeck::{
    Cassette, Recorder, Replayer,
    cassette::blob::{BlobSource, MemoryBlobs},
    replay::Options,
    report::Verdict,
    traffic::Direction::{ToClient, ToServer},
};
use proptest::prelude::*;

use crate::support::playback::{Line, from_server, replay};

/// A conversation in the making: random choices become a session that a real client and server could have had.
#[derive(Default)]
struct Conversation {
    lines: Vec<Line>,
    next_id: u64,
    /// Open requests and whether they are cancelled.
    open: Vec<(u64, bool)>,
    /// Server requests the client has not answered.
    asked: Vec<String>,
    server_id: u64,
    progress: u64,
}

impl Conversation {
    fn begin() -> Self {
        let mut talk = Self::default();
        talk.client(r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{},"sampling":{}},"clientInfo":{"name":"c","version":"1"}}}"#.into());
        talk.server(r#"{"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}},"jsonrpc":"2.0","id":0}"#.into());
        talk.client(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.into());
        talk.next_id = 1;
        talk
    }

    fn client(&mut self, line: String) {
        self.lines.push((ToServer, line));
    }

    fn server(&mut self, line: String) {
        self.lines.push((ToClient, line));
    }

    fn pick(&self, choice: u8, cancelled: bool) -> Option<usize> {
        let fitting: Vec<usize> = (0..self.open.len()).filter(|&at| self.open[at].1 == cancelled).collect();
        (!fitting.is_empty()).then(|| fitting[usize::from(choice) % fitting.len()])
    }

    /// One thing happens: what, and with which of several.
    fn step(&mut self, what: u8, choice: u8) {
        match what % 12 {
            0 | 1 => {
                let (id, argument) = (self.next_id, choice % 3);
                self.next_id += 1;
                self.open.push((id, false));
                self.client(format!(
                    r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t{argument}","arguments":{{"a":{argument}}},"_meta":{{"progressToken":{id}}}}}}}"#
                ));
            }
            2 | 3 => {
                let Some(at) = self.pick(choice, false) else { return };
                let (id, _) = self.open.remove(at);
                self.answer(id, choice);
            }
            4 => {
                let Some(at) = self.pick(choice, false) else { return };
                let (id, progress) = (self.open[at].0, self.progress);
                self.progress += 1;
                self.server(format!(
                    r#"{{"method":"notifications/progress","params":{{"progressToken":{id},"progress":{progress}}},"jsonrpc":"2.0"}}"#
                ));
            }
            5 => {
                // A server's ids are its own; some are also ids of the client's.
                let id = if choice.is_multiple_of(2) {
                    format!("{}", self.server_id)
                } else {
                    format!("\"s{}\"", self.server_id)
                };
                self.server_id += 1;
                self.asked.push(id.clone());
                self.server(format!(r#"{{"method":"roots/list","jsonrpc":"2.0","id":{id}}}"#));
            }
            6 => {
                if self.asked.is_empty() {
                    return;
                }
                let id = self.asked.remove(usize::from(choice) % self.asked.len());
                self.client(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"roots":[]}}}}"#));
            }
            7 => {
                let Some(at) = self.pick(choice, false) else { return };
                self.open[at].1 = true;
                let id = self.open[at].0;
                self.client(format!(
                    r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
                ));
            }
            8 => {
                let Some(at) = self.pick(choice, true) else { return };
                let (id, _) = self.open.remove(at);
                self.answer(id, choice);
            }
            9 => {
                let number = self.lines.len();
                self.server(format!(
                    r#"{{"method":"notifications/message","params":{{"level":"info","data":{number}}},"jsonrpc":"2.0"}}"#
                ));
            }
            10 => {
                // An answer to nothing, and what a server may think of it.
                let number = self.lines.len();
                self.client(format!(r#"{{"jsonrpc":"2.0","id":"nobody {number}","result":{{}}}}"#));
                match choice % 3 {
                    0 => self.server(format!(
                        r#"{{"error":{{"code":-32600,"message":"stray {number}"}},"jsonrpc":"2.0","id":null}}"#
                    )),
                    1 => self.server(format!(
                        r#"{{"error":{{"code":-32600,"message":"stray"}},"jsonrpc":"2.0","id":"nobody {number}"}}"#
                    )),
                    _ => {}
                }
            }
            _ => {
                let number = self.lines.len();
                match choice % 3 {
                    0 => self.server(format!("log line {number}")),
                    1 => {
                        self.client(r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#.into())
                    }
                    _ => {
                        self.server(r#"{"method":"notifications/tools/list_changed","jsonrpc":"2.0"}"#.into())
                    }
                }
            }
        }
    }

    fn answer(&mut self, id: u64, choice: u8) {
        let number = self.lines.len();
        self.server(match choice % 4 {
            0 => {
                format!(r#"{{"error":{{"code":-32603,"message":"no {number}"}},"jsonrpc":"2.0","id":{id}}}"#)
            }
            // Spaced otherwise than the rest: kept as raw text.
            1 => format!(r#"{{ "result": {{"n":{number}}}, "jsonrpc": "2.0", "id": {id} }}"#),
            _ => format!(r#"{{"result":{{"n":{number}}},"jsonrpc":"2.0","id":{id}}}"#),
        });
    }
}

fn record(lines: &[Line]) -> (Vec<u8>, MemoryBlobs) {
    let mut recorder = Recorder::new(Default::default());
    for (direction, line) in lines {
        recorder.message(0, *direction, line.as_bytes());
    }
    let mut blobs = MemoryBlobs::default();
    (recorder.finish(None, &mut blobs).expect("memory does not fail"), blobs)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_replay_says_what_was_recorded(steps in proptest::collection::vec(any::<(u8, u8)>(), 0..40)) {
        let mut talk = Conversation::begin();
        for (what, choice) in steps {
            talk.step(what, choice);
        }
        let (text, blobs) = record(&talk.lines);
        let cassette = Arc::new(Cassette::load(text.clone(), &blobs).expect("a recording loads"));
        let blobs: Arc<dyn BlobSource + Send + Sync> = Arc::new(blobs);
        let mut replayer =
            Replayer::new(Arc::clone(&cassette), Arc::clone(&blobs), "loop.json", Options::default()).expect("a recording plays");
        let passed = replay(&talk.lines, &mut replayer);
        let report = replayer.finish();
        let shown = || format!("{}\n{report:#?}\nrecorded {:#?}\nreplayed {passed:#?}", String::from_utf8_lossy(&text), talk.lines);
        prop_assert_eq!(from_server(&passed), from_server(&talk.lines), "{}", shown());
        prop_assert!(report.misses.is_empty() && report.unused.is_empty(), "{}", shown());
        if passed == talk.lines {
            prop_assert_eq!(report.verdict, Verdict::Good, "{}", shown());
            let again = String::from_utf8(record(&passed).0).expect("text");
            prop_assert_eq!(again, String::from_utf8(text).expect("text"));
        }
        let options = Options { strict: true, ..Options::default() };
        let mut replayer = Replayer::new(cassette, blobs, "loop.json", options).expect("a recording plays");
        let strict = replay(&talk.lines, &mut replayer);
        let report = replayer.finish();
        prop_assert_eq!(strict, passed, "{:#?}\n{:#?}", report, talk.lines);
        prop_assert!(
            report.misses.is_empty() && report.left_over.is_empty(),
            "{:#?}\n{:#?}",
            report,
            talk.lines
        );
    }
}
