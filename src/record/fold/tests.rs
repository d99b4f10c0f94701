use std::{borrow::Cow, fmt::Write};

use super::*;
use crate::{
    record::Facts,
    traffic::{Exit, Lane},
    wire::lines::Oversize,
};

/// Folds a script, one event a line: `>` from the client, `<` from the server, then `?ID METHOD PARAMS` a request,
/// `!METHOD PARAMS` a notification, `=ID` a result (`=-` without id), `#TEXT` a line as it stands, `part TEXT`,
/// `long ID`, or without direction `closed`, `exit N`, `died N`, `gap N`, `end`. With a lane's number before the
/// direction, the server is on HTTP.
fn fold(script: &str) -> Tape {
    let transport = if script.starts_with("1>") { STDIO_TO_HTTP } else { "stdio" }.to_owned();
    let mut fold = Fold::new(JournalHeader { started_ms: 1000, transport, ..JournalHeader::default() });
    for (number, line) in (1..).zip(script.trim().lines()) {
        let (lane, line) = line.trim().split_at(line.trim().find(['<', '>']).unwrap_or_default());
        let lane = Lane(lane.parse().unwrap_or_default());
        let (direction, rest) = match line.split_at(1) {
            (">", rest) => (Direction::ToServer, rest),
            ("<", rest) => (Direction::ToClient, rest),
            _ => (Direction::ToClient, line),
        };
        let (word, argument) = rest.split_once(' ').unwrap_or((rest, ""));
        let payload = match (word, word.split_at(1)) {
            ("end", _) => {
                fold.end();
                continue;
            }
            ("closed", _) => Payload::Closed,
            ("exit", _) => {
                Payload::Exit(Exit { status: argument.parse().ok(), signal: None, by_itself: false })
            }
            ("died", _) => {
                Payload::Exit(Exit { status: argument.parse().ok(), signal: None, by_itself: true })
            }
            ("gap", _) => Payload::Gap { messages: argument.parse().unwrap() },
            ("part", _) => Payload::Partial(Cow::Borrowed(argument.as_bytes())),
            ("long", _) => {
                let head = format!(r#"{{"jsonrpc":"2.0","id":{argument},"result":"#).into_bytes();
                Payload::Oversize(Oversize { size: 1 << 30, sha256: [0; 32], head, tail: b"}".to_vec() })
            }
            (_, ("#", _)) => Payload::Message(Cow::Borrowed(&rest.as_bytes()[1..])),
            _ => Payload::Message(Cow::Owned(message(rest).into_bytes())),
        };
        let event = Event { at: number * 1000, direction, lane, payload };
        fold.event(&event, FramePlace { at: number, len: 0 });
    }
    fold.finish()
}

/// `[A, B]` is a batch of what the other forms say.
fn message(short: &str) -> String {
    if let Some(members) = short.strip_prefix('[').and_then(|short| short.strip_suffix(']')) {
        let members: Vec<_> = members.split(", ").map(message).collect();
        return format!("[{}]", members.join(","));
    }
    let (form, rest) = short.split_at(1);
    let (first, second) = rest.split_once(' ').unwrap_or((rest, ""));
    let named = |method: &str, params: &str| match params {
        "" => format!(r#""method":"{method}""#),
        params => format!(r#""method":"{method}","params":{params}"#),
    };
    let inside = match (form, first) {
        ("?", id) => {
            let (method, params) = second.split_once(' ').unwrap_or((second, ""));
            format!(r#""id":{id},{}"#, named(method, params))
        }
        ("!", method) => named(method, second),
        ("=", "-") => r#""error":{}"#.to_owned(),
        ("=", id) => format!(r#""id":{id},"result":{}"#, if second.is_empty() { "{}" } else { second }),
        _ => panic!("{short}"),
    };
    format!(r#"{{"jsonrpc":"2.0",{inside}}}"#)
}

/// One line for each exchange: its prefix, then the script's line numbers, `~` before a guess, `>` before an answer.
fn show(tape: &Tape) -> String {
    let mut shown = String::new();
    for (number, session) in tape.sessions.iter().enumerate() {
        if number > 0 {
            shown.push_str("--\n");
        }
        for exchange in &session.exchanges {
            write!(shown, "{}:", exchange.prefix).unwrap();
            if let Some(client) = exchange.client {
                write!(shown, " {}", client.place.at).unwrap();
            }
            for item in &exchange.server {
                write!(shown, " {}{}", if item.guess { "~" } else { "" }, item.moment.place.at).unwrap();
                if let Some(answer) = item.answer {
                    write!(shown, ">{}", answer.place.at).unwrap();
                }
            }
            if let Some(unanswered) = exchange.unanswered {
                write!(shown, " {}", unanswered.word()).unwrap();
            }
            shown.push('\n');
        }
        if session.gap > 0 {
            writeln!(shown, "gap {}", session.gap).unwrap();
        }
        if let Some(end) = &session.end {
            writeln!(shown, "end {:?} {:?}", end.exit, end.partial.as_ref().map(|bytes| bytes.len()))
                .unwrap();
        }
    }
    shown
}

#[track_caller]
fn check(script: &str, expected: &str) {
    let expected: Vec<_> = expected.trim().lines().map(str::trim).collect();
    let tape = fold(script);
    assert_eq!(show(&tape).trim().lines().collect::<Vec<_>>(), expected, "{script}");
    for session in &tape.sessions {
        let mut orders: Vec<_> =
            session.exchanges.iter().flat_map(moments).map(|moment| moment.order).collect();
        orders.sort_unstable();
        assert_eq!(orders, (0..session.moments).collect::<Vec<_>>(), "every moment has one place");
    }
}

fn moments(exchange: &Exchange) -> Vec<Moment> {
    let items = exchange.server.iter().flat_map(|item| [Some(item.moment), item.answer]);
    items.chain([exchange.client]).flatten().collect()
}

#[test]
fn a_response_answers_the_oldest_unanswered_request_with_its_id() {
    check(">?1 a\n>?2 b\n<=2\n<=1\nend", "a: 1 4\n b: 2 3");
    check(">?1 a\n>?1 b\n<=1\n<=1\nend", "a: 1 3\n b: 2 4");
    check(">?1 a\n>?\"1\" b\n<=\"1\"\n<=1\nend", "a: 1 4\n b: 2 3");
    check(">?\"a\\u0062\" a\n<=\"ab\"\nend", "a: 1 2");
    check(">?null a\n>?1 b\n<=null\n<=1\nend", "a: 1 3\n b: 2 4");
    // An id that was given up is free again.
    let cancel = r#"!notifications/cancelled {"requestId":1}"#;
    check(
        &format!(">?1 a\n>{cancel}\n>?1 b\n<=1\nend"),
        "a: 1 cancelled\n notifications/cancelled: 2\n b: 3 4",
    );
}

#[test]
fn a_response_in_another_spelling_or_type_answers_the_request_that_is_meant() {
    for id in ["\"7\"", "7.0", "\"7.0\""] {
        check(&format!(">?7 a\n>?8 b\n<={id}\n<=8\nend"), "a: 1 3\n b: 2 4");
    }
    check(">?0 a\n<=0.0\nend", "a: 1 2");
    check(">?\"0\" a\n<=0\nend", "a: 1 2");
    // Exact first, even where another one is older.
    check(">?\"7\" a\n>?7 b\n<=7\n<=7\nend", "a: 1 4\n b: 2 3");
}

#[test]
fn a_second_response_joins_the_first() {
    check(">?1 a\n<=1\n>?2 b\n<=1\n<=2\nend", "a: 1 2 4\n b: 3 5");
}

#[test]
fn a_response_with_a_useless_id_answers_the_only_message_it_can_mean() {
    for id in ["=-", "=null", "=\"server-error\"", "=\"\""] {
        check(&format!(">?1 a\n<{id}\nend"), "a: 1 2");
        check(&format!(">#{{garbage\n<{id}\nend"), "raw: 1 2");
        check(&format!(">?1 a\n>?2 b\n<{id}\n<=1\nend"), "a: 1 4\n b: 2 open\n push response: 3");
        check(&format!(">?1 a\n<=1\n<{id}\nend"), "a: 1 2\n push response: 3");
        check(&format!("<{id}\nend"), "push response: 1");
    }
    // What comes after it with the true id is not lost.
    check(">?1 a\n<=null\n<=1\nend", "a: 1 2 3");
}

#[test]
fn progress_belongs_to_the_request_with_its_token_also_after_the_answer() {
    let asks = |token: &str| format!(r#"{{"_meta":{{"progressToken":{token}}}}}"#);
    let tells = |token: &str| format!(r#"<!notifications/progress {{"progressToken":{token},"progress":1}}"#);
    let [a, b] = ["5", "\"5\""].map(asks);
    let script =
        format!(">?1 a {a}\n>?2 b {b}\n{}\n{}\n<=1\n{}\nend", tells("5"), tells("\"5\""), tells("5"));
    check(&script, "a: 1 3 5 6\n b: 2 4 open");
    // A token that nobody gave is like any notification.
    check(&format!(">?1 a\n{}\n<=1\nend", tells("9")), "a: 1 2 3");
}

#[test]
fn what_names_no_request_belongs_to_the_latest_in_flight() {
    check(">?1 a\n<!x\n<#noise\n<#\n<=1\nend", "a: 1 2 3 4 5");
    check(">?1 a\n>?2 b\n<!x\n<=2\n<!x\n<=1\nend", "a: 1 5 6\n b: 2 ~3 4");
    check(">?1 a\n<=1\n<!x\n<#noise\nend", "a: 1 2\n push x: 3\n push raw: 4");
    check("<#banner\n>?1 a\n<=1\nend", "push raw: 1\n a: 2 3");
    check(">!n\n<!x\nend", "n: 1\n push x: 2");
}

#[test]
fn what_came_as_the_response_to_a_line_belongs_to_that_whatever_it_is() {
    check("1>?1 a\n2>?2 b\n1<!x\n2<!y\n1<?0 ask\n3>=0\n1<!z\n2<=2\n1<=1\nend", "a: 1 3 5>6 7 9\n b: 2 4 8");
    // A response that comes with another one's, or on the server's own stream, is still its request's.
    check("1>?1 a\n2>?2 b\n0<=1\n1<=2\n2<!x\n0<!y\nend", "a: 1 3\n b: 2 4 5\n push y: 6");
    // Nothing tells what is on the server's own stream of several that are open.
    check("1>?1 a\n2>?2 b\n0<!x\n1<=1\n2<=2\nend", "a: 1 4\n b: 2 ~3 5");
    // Each request ends where its answer was made up for it, and a new session has lanes of its own.
    check(
        "1>?0 initialize\n2>?1 a\n1<=0\n3>?0 initialize\n2<=1\n2<!x\n3<!y\n3<=0\nend",
        "initialize: 1 3\n a: 2 5 6\n--\n initialize: 4 7 8",
    );
}

#[test]
fn cancelled_and_listening_requests_attract_nothing() {
    let cancel = r#">!notifications/cancelled {"requestId":1}"#;
    check(&format!(">?1 a\n{cancel}\n<!x\n<=1\nend"), "a: 1 4\n notifications/cancelled: 2\n push x: 3");
    check(
        r#"
        >?"s" subscriptions/listen
        <!ack {"_meta":{"io.modelcontextprotocol/subscriptionId":"s"}}
        >?2 a
        <!changed {"_meta":{"io.modelcontextprotocol/subscriptionId":"s"}}
        <!x
        <=2
        <!x
        <!notifications/cancelled {"requestId":"s"}
        end"#,
        "subscriptions/listen: 1 2 4 8 open\n a: 3 5 6\n push x: 7",
    );
}

#[test]
fn a_server_request_keeps_its_answer() {
    // Both sides count from 0.
    check(">?0 a\n<?0 ask\n>=0\n<=0\nend", "a: 1 2>3 4");
    check(">?0 a\n>?1 b\n<?0 ask\n<?1 ask\n>=1\n>=0\n<=0\n<=1\nend", "a: 1 7\n b: 2 ~3>6 ~4>5 8");
    check("<?0 ping\n>=0\nend", "push ping: 1>2");
    check(">?0 a\n<?0 ask\n>=\"0\"\n<=0\nend", "a: 1 2>3 4");
    check(">?0 a\n<?0 ask\n<=0\nend", "a: 1 2 3");
    check(">=9\nend", "raw: 1");
    check(">?0 a\n<?0 ask\n>=0\n>=0\n<=0\nend", "a: 1 2>3 5\n raw: 4");
    // The server takes its question back after its call was answered.
    check(
        ">?0 a\n>?1 b\n<?7 ask\n<=1\n<!notifications/cancelled {\"requestId\":7}\n<=0\nend",
        "a: 1 6\n b: 2 ~3 4 5",
    );
}

#[test]
fn an_exchange_without_an_answer_says_why() {
    let cancel = r#">!notifications/cancelled {"requestId":1}"#;
    check(&format!(">?1 a\n{cancel}\nend"), "a: 1 cancelled\n notifications/cancelled: 2");
    check(&format!(">?1 a\n{cancel}\n<=1\nend"), "a: 1 3\n notifications/cancelled: 2");
    check(">?1 a\n>closed\nexit 0\nend", "a: 1 open");
    check(">?1 a\nend", "a: 1 open");
    check(">?1 a\n>!n\n>#noise", "a: 1 lost\n n: 2\n raw: 3");
    check(">?1 a\n<part {\"json\ndied 3\nend", "a: 1\n end Some(3) Some(6)");
    check(">?1 a\n<part {\"json\nexit 3\nend", "a: 1 open\n end None Some(6)");
    check(">?1 a\ngap 3\n>?2 b\nend", "a: 1 lost\n b: 3 open\n gap 3");
}

#[test]
fn what_refers_to_a_message_in_a_gap_is_no_other_s() {
    // The request is gone, and nothing else is answered with its response.
    check(">!n\ngap 1\n<=1\nend", "n: 1\n push response: 3\n gap 1");
    check(">?1 a\n<=1\ngap 1\n<=1\nend", "a: 1 2\n push response: 4\n gap 1");
    check(">?1 a\ngap 1\n<=-\nend", "a: 1 lost\n push response: 3\n gap 1");
    // What waited may have been answered, and its id used again.
    check(">?1 a\ngap 2\n<!x\n<=1\nend", "a: 1 lost\n push x: 3\n push response: 4\n gap 2");
    check(">?1 a\ngap 2\n>?2 b\n<!x\n<=2\n<=1\nend", "a: 1 lost\n b: 3 4 5\n push response: 6\n gap 2");
    // Nor is it the answer to what alone waits behind the gap, by itself or in a batch.
    for response in ["=1", "=7", "=-", "=null", "[=1, =7]"] {
        let push = if response.starts_with('[') { "batch" } else { "response" };
        check(
            &format!(">?1 a\ngap 1\n>?2 b\n<{response}\n<=2\nend"),
            &format!("a: 1 lost\n b: 3 5\n push {push}: 4\n gap 1"),
        );
    }
    // An id that is used behind the gap is known again, and each gap is one.
    check(">?1 a\ngap 1\n>?1 b\n<=1\n<=1\nend", "a: 1 lost\n b: 3 4 5\n gap 1");
    check(">?1 a\ngap 1\n>?1 b\ngap 1\n>?1 c\n<=1\nend", "a: 1 lost\n b: 3 lost\n c: 5 6\n gap 2");
    let progress = r#"!notifications/progress {"progressToken":5}"#;
    check(
        &format!(">?1 a {{\"_meta\":{{\"progressToken\":5}}}}\n<=1\ngap 1\n>?2 b\n<{progress}\n<=2\nend"),
        "a: 1 2\n b: 4 6\n push notifications/progress: 5\n gap 1",
    );
    // Nor does the client's answer say which of the server's requests it is for, one before the gap or one in it.
    check("<?7 ask\ngap 1\n>=7\nend", "push ask: 1\n raw: 3\n gap 1");
    check("<?7 ask\ngap 1\n<?7 ask\n>=7\n>=7\nend", "push ask: 1\n push ask: 3>4\n raw: 5\n gap 1");
    let tells = r#"<!n {"_meta":{"io.modelcontextprotocol/subscriptionId":1}}"#;
    check(
        &format!(">?1 subscriptions/listen\ngap 1\n{tells}\nend"),
        "subscriptions/listen: 1 lost\n push n: 3\n gap 1",
    );
    // The lane still tells whose a response is, and that it is no other's.
    check("1>?1 a\ngap 1\n1<=1\n2>?2 b\n2<=2\nend", "a: 1 3\n b: 4 5\n gap 1");
    check("1>?1 a\ngap 2\n2<=1\n1<=1\nend", "a: 1 4\n push response: 3\n gap 2");
    check("1>?1 a\ngap 2\n1<=2\nend", "a: 1 lost\n push response: 3\n gap 2");
    check(
        "1>?1 a\ngap 2\n2<!x\n3>?3 b\n2<!y\n3<=3\nend",
        "a: 1 lost\n push x: 3\n b: 4 6\n push y: 5\n gap 2",
    );
}

#[test]
fn what_is_missing_at_the_end_is_counted_by_the_header() {
    let fold = |missed, script| {
        let mut fold = Fold::new(JournalHeader { missed, ..JournalHeader::default() });
        for (number, payload) in (1..).zip(script) {
            let event = Event { at: 0, direction: Direction::ToServer, lane: Lane(0), payload };
            fold.event(&event, FramePlace { at: number, len: 0 });
        }
        fold.end();
        show(&fold.finish())
    };
    let asked = || Payload::Message(Cow::Owned(message("?1 a").into_bytes()));
    let gap = || Payload::Gap { messages: 3 };
    assert_eq!(fold(0, vec![asked()]), "a: 1 open\n");
    assert_eq!(fold(2, vec![asked()]), "a: 1 lost\ngap 2\n");
    // Gaps that could be told are in it.
    assert_eq!(fold(3, vec![gap(), asked()]), "a: 2 open\ngap 3\n");
    assert_eq!(fold(5, vec![gap(), asked()]), "a: 2 lost\ngap 5\n");
    assert_eq!(fold(2, Vec::new()), "gap 2\n");
}

#[test]
fn a_second_initialize_begins_a_session_and_late_answers_find_the_first() {
    check(
        "
        >?0 server/discover
        <=0
        >?1 initialize
        <=1
        >?2 a
        >?1 initialize
        <!x
        <=1
        <=2
        >?2 b
        <=2
        end",
        "server/discover: 1 2\n initialize: 3 4\n a: 5 9\n --\n initialize: 6 7 8\n b: 10 11",
    );
    // An id that waits in vain in the first session does not shift those of the second.
    check(
        ">?1 initialize\n<=1\n>?2 a\n>?1 initialize\n<=1\n>?2 b\n<=2\nend",
        "initialize: 1 2\n a: 3 open\n --\n initialize: 4 5\n b: 6 7",
    );
    let tape = fold(">?1 initialize\n>?1 initialize\ndied 1");
    assert_eq!(tape.sessions.iter().map(|session| session.at_ms).collect::<Vec<_>>(), [1000, 1002]);
    assert_eq!(show(&tape), "initialize: 1 open\n--\ninitialize: 2\nend Some(1) None\n");
}

#[test]
fn batches_are_answered_by_batches_or_by_messages() {
    check(">[?1 a, ?2 b, !n]\n<[=2, =1]\nend", "batch: 1 2");
    check(">[?1 a, ?2 b]\n<=1\n<!x\n<=2\n<!x\nend", "batch: 1 2 3 4\n push x: 5");
    check(">[?1 a, ?2 b]\n<=1\n>closed\nend", "batch: 1 2 open");
    check(">?1 a\n>?2 b\n<[=1, =2]\nend", "a: 1 3\n b: 2");
    check(">?1 a\n<[!x, ?5 ask]\n>=5\n<=1\nend", "a: 1 2>3 4");
    check(">?1 a\n<[?5 ask, ?6 ask]\n>[=5, =6]\n<=1\nend", "a: 1 2>3 4");
    check("<[!x]\nend", "push batch: 1");
    check(">[=1]\n>[!n]\nend", "batch: 1\n batch: 2");
}

#[test]
fn noise_and_long_and_unfinished_lines_have_their_places() {
    check(">#\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\"}\r\n<=1\nend", "a: 1 2");
    check(">?1 a\n<long 1\nend", "a: 1 2");
    check(">#\n<#  \nend", "raw: 1\n push raw: 2");
    let last = r#">part {"jsonrpc":"2.0","id":1,"method":"a"}"#;
    check(&format!("{last}\n<=1\nend"), "a: 1 2");
    check(">part {\"jsonrpc\n<!x\nend", "raw: 1\n push x: 2");
    check(">part ping\n<part pong\nexit 0\nend", "raw: 1\n end None Some(4)");
    check("end", "");
    check("died 1\nend", "end Some(1) None");
}

#[test]
fn both_sides_are_named_by_what_they_said() {
    let facts = |script: &str| {
        let Facts { protocol, client, server, .. } = fold(script).sessions.remove(0).facts;
        [protocol, client, server].map(Option::unwrap_or_default)
    };
    let legacy = r#"
        >?0 initialize {"protocolVersion":"2026-07-28","clientInfo":{"name":"c","version":"1"}}
        <=0 {"protocolVersion":"2025-11-25","serverInfo":{"name":"s","version":"2"}}"#;
    assert_eq!(facts(legacy), ["2025-11-25", "c", "s 2"]);
    let meta = r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c"}}}"#;
    let modern = format!(
        r#"
        >?0 server/discover {meta}
        <=0 {{"_meta":{{"io.modelcontextprotocol/serverInfo":{{"name":"s"}}}}}}"#
    );
    assert_eq!(facts(&modern), ["2026-07-28", "c", "s"]);
    let fallback = format!(">?9 server/discover {meta}\n<=- {legacy}");
    assert_eq!(facts(&fallback), ["2025-11-25", "c", "s 2"]);
    assert_eq!(facts(">?0 a\n<=0"), ["", "", ""]);
}

#[test]
fn many_unanswered_requests_cost_no_square() {
    let asked = (0..20_000).map(|id| format!(">?{id} a\n"));
    let told = (0..20_000).map(|id| format!("<=x{id}\n"));
    let script: String = asked.chain(told).collect();
    assert_eq!(fold(&script).sessions[0].exchanges.len(), 40_000);
    let script = [">?1 a\n".repeat(20_000), "<=1\n".repeat(20_000)].concat();
    assert_eq!(fold(&script).sessions[0].exchanges.len(), 20_000);
}
