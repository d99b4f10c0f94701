//! The loop is closed: whatever order things happened in, replaying a recording to the same client gives the same
//! bytes, and recording that replay gives the same cassette.

use std::sync::Arc;

use mcp_tapedeck::{
    Cassette, Recorder, Replayer,
    cassette::{
        self,
        blob::{BlobSource, MemoryBlobs},
    },
    edit::{self, Edit},
    replay::Options,
    report::Verdict,
    store,
    traffic::Direction::{ToClient, ToServer},
};
use proptest::prelude::*;

use crate::support::playback::{Line, from_server, lines, replay, replay_all};

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

    #[test]
    fn ids_that_are_objects_or_arrays_come_back_as_they_were_spelled(ids in odd_ids()) {
        let talk = odd_talk(&ids);
        let (text, blobs) = record(&talk);
        let shown = || format!("{}\n{talk:#?}", String::from_utf8_lossy(&text));
        let cassette = Cassette::load(text.clone(), &blobs).expect("a recording loads");
        prop_assert_eq!(&lines(&cassette, &blobs), &talk, "{}", shown());
        prop_assert_eq!(&cassette::format(&cassette), &text, "{}", shown());

        let folder = tempfile::tempdir().expect("a folder");
        let [from, journal, back] = ["a.json", "a.journal", "b.json"].map(|name| folder.path().join(name));
        std::fs::write(&from, &text).expect("it is written");
        store::convert(&from, &journal).expect("a cassette becomes a journal");
        store::convert(&journal, &back).expect("and a cassette again");
        prop_assert_eq!(&std::fs::read(&back).expect("it is there"), &text, "{}", shown());

        for exchange in &cassette.exchanges {
            let key = exchange.key.to_string();
            let note = Edit::Note { key: key.clone(), text: "a note".to_owned() };
            let edited = edit::apply(&cassette, &blobs, &note).expect("each takes a note");
            let edited = Cassette::load(edited.text, &blobs).expect("it is a cassette still");
            prop_assert_eq!(&lines(&edited, &blobs), &talk, "{}", shown());
            let twice = Edit::Duplicate { key, name: Some("copy".to_owned()) };
            let edited = edit::apply(&cassette, &blobs, &twice).expect("each can be there twice");
            let edited = Cassette::load(edited.text, &blobs).expect("it is a cassette still");
            let said = lines(&edited, &blobs);
            prop_assert!(talk.iter().all(|line| said.contains(line)), "{}\n{said:#?}", shown());
        }

        let (passed, report) = replay_all(cassette, blobs, &talk);
        prop_assert_eq!(from_server(&passed), from_server(&talk), "{}\n{:#?}", shown(), report);
        prop_assert!(report.misses.is_empty() && report.unused.is_empty(), "{}\n{:#?}", shown(), report);
    }
}

/// Ids that no peer should give: objects and arrays, with any blanks inside.
fn odd_ids() -> impl Strategy<Value = Vec<String>> {
    use proptest::{
        collection::{btree_set, vec},
        sample::select,
    };
    let piece = (
        select(vec!["1", "1.0", "\"a\"", "\"\\u0061\"", "null", "{}", "[ ]", "{\"b\":[1, 2]}"]),
        select(vec!["", "", " ", "\t"]),
    );
    let id = (any::<bool>(), vec(piece, 0..4)).prop_map(|(is_object, pieces)| {
        let pieces = pieces.iter().enumerate().map(|(n, (value, blank))| match is_object {
            true => format!("{blank}\"{n}\":{blank}{value}"),
            false => format!("{blank}{value}{blank}"),
        });
        let pieces = pieces.collect::<Vec<_>>().join(",");
        if is_object { format!("{{{pieces}}}") } else { format!("[{pieces}]") }
    });
    btree_set(id, 1..5).prop_map(|ids| ids.into_iter().collect())
}

/// A session in which everything that has an id or a token has one of these.
fn odd_talk(ids: &[String]) -> Vec<Line> {
    let mut talk = Conversation::begin();
    for (n, id) in ids.iter().enumerate() {
        talk.client(format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t","arguments":{{"n":{n}}},"_meta":{{"progressToken":{id}}}}}}}"#
        ));
        talk.server(format!(
            r#"{{"method":"notifications/progress","params":{{"progressToken":{id},"progress":1}},"jsonrpc":"2.0"}}"#
        ));
        talk.server(format!(r#"{{"method":"roots/list","jsonrpc":"2.0","id":{id}}}"#));
        talk.client(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"roots":[]}}}}"#));
        talk.server(format!(r#"{{"result":{{"n":{n}}},"jsonrpc":"2.0","id":{id}}}"#));
        talk.server(format!(r#"{{"error":{{"code":{n}}},"jsonrpc":"2.0","id":{id}}}"#));
    }
    talk.lines
}
