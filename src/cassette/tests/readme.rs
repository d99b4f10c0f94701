//! What the format's specification shows is true.

use super::{
    super::{format, layout, mark, model::Moment, order},
    *,
};
use crate::wire::Span;

const README: &str = include_str!("../../../cassettes/README.md");

/// The n-th block of code in a language.
fn block(language: &str, n: usize) -> &'static str {
    let start = format!("```{language}\n");
    let mut blocks = README.split("```").skip(1).step_by(2).filter(|block| block.starts_with(&start[3..]));
    blocks.nth(n).unwrap().split_once('\n').unwrap().1
}

#[test]
fn the_example_is_formatted_and_is_what_it_says_on_the_wire() {
    let text = block("json", 0);
    let cassette = Cassette::load(text.as_bytes().to_vec(), &Blobs::default()).unwrap();
    assert_eq!(String::from_utf8(format(&cassette)).unwrap(), text);
    assert_eq!(transcript(&cassette), block("", 0));
}

#[test]
fn the_examples_of_ids_and_spelling_are_true() {
    let side = r#"{"order": "method params result error jsonrpc id", "spaced": true}"#;
    assert!(README.contains(side));
    let exchange = r#"{"key": "a", "client": {"request": {"id": 3, "method": "ping", "params": {"a": 1}}}}"#;
    let text = format!(
        r#"{{"cassette": 1, "sessions": [{{"session": 1, "spelling": {{"client": {side}}}}}], "exchanges": [{exchange}]}}"#
    );
    let spelled = Cassette::load(text.into_bytes(), &Blobs::default()).unwrap();
    assert_eq!(transcript(&spelled), format!("client  {}", block("", 1)));

    let exchanges = format!("{{\"cassette\": 1, \"exchanges\": [{}]}}", block("json", 2));
    let cassette = Cassette::load(exchanges.into_bytes(), &Blobs::default()).unwrap();
    let ids = |exchange: usize| {
        let exchange = &cassette.exchanges[exchange];
        (exchange.client.as_ref().unwrap().id.to_string(), exchange.server[0].message.id.to_string())
    };
    let expected = [("41", "41"), ("42", "\"42\""), ("43", "")].map(|(a, b)| (a.to_owned(), b.to_owned()));
    assert_eq!([ids(0), ids(1), ids(2)], expected);
}

#[test]
fn the_example_of_http_loads_and_is_formatted() {
    let exchanges = block("json", 1);
    let text = format!(
        "{{\"cassette\": 1, \"sessions\": [{{\"session\": 1, \"transport\": \"http\"}}], \"exchanges\": [{exchanges}]}}"
    );
    let cassette = Cassette::load(text.into_bytes(), &Blobs::default()).unwrap();
    assert!(cassette.warnings.is_empty(), "{:?}", cassette.warnings);
    let formatted = String::from_utf8(format(&cassette)).unwrap();
    let shown: Vec<String> = exchanges.trim_end().lines().map(|line| format!("    {line}")).collect();
    assert!(formatted.contains(&shown.join("\n")), "{formatted}");
}

#[test]
fn the_examples_of_markers_are_true() {
    let rows = README.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| `")?.strip_suffix("` |")?.split("` | `");
        Some((cells.next()?, cells.next()?))
    });
    let rows: Vec<_> = rows.filter(|(wire, file)| !wire.starts_with('$') && file.contains("{\"$")).collect();
    assert_eq!(rows.len(), 5, "{rows:?}");
    for (wire, file) in rows {
        let (mut pending, mut written, mut laid_out) =
            (mark::PendingBlobs::default(), Vec::new(), Vec::new());
        mark::push_payload(wire.as_bytes(), &mut pending, &mut written);
        layout::push(&written, Span::new(0, written.len()), 0, 0, &mut laid_out);
        assert_eq!(String::from_utf8(laid_out).unwrap(), file);
        let text = format!(
            "{{\"cassette\": 1, \"exchanges\": [{{\"key\": \"a\", \"server\": [{{\"no_id\": true, \"result\": {file}}}]}}]}}"
        );
        let cassette = Cassette::load(text.into_bytes(), &pending).unwrap();
        let mut expanded = Vec::new();
        cassette.expand(cassette.exchanges[0].server[0].message.place, &pending, &mut expanded).unwrap();
        assert_eq!(String::from_utf8(expanded).unwrap(), wire);
    }
}

/// All messages in the order of the wire, a line each.
fn transcript(cassette: &Cassette) -> String {
    let all: Vec<u32> = (0..).take(cassette.exchanges.len()).collect();
    let mut out = String::new();
    for at in order::timeline(cassette, &all) {
        let exchange = &cassette.exchanges[at.exchange as usize];
        let (who, message) = match at.moment {
            Moment::Client => ("client", exchange.client.as_ref().unwrap()),
            Moment::Item(n) => ("server", &exchange.server[n as usize].message),
            Moment::Answer(n) => ("client", &exchange.server[n as usize].answer.as_ref().unwrap().message),
        };
        let mut line = Vec::new();
        cassette
            .wire(exchange.session, who == "client", message, None, &Blobs::default(), &mut line)
            .unwrap();
        out.push_str(&format!("{who}  {}\n", String::from_utf8(line).unwrap()));
    }
    out
}
