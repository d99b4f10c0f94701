//! Keys: the stable, unique names of exchanges, and references to moments by them.
//!
//! A recorder makes a key from what the exchange is about and how often that came before (`tools/call search @2`);
//! a person may give it any other text. Names that are not plain stand in it as JSON strings.

use std::{borrow::Cow, collections::HashMap, collections::HashSet};

use super::model::{Cassette, Exchange, Form, Moment, Ref};
use crate::wire::{
    http::path_of,
    jsonrpc::{Kind, Message},
    scan,
};

/// Names longer than this are cut: the number behind them keeps keys apart.
const LONGEST_NAME: usize = 120;

/// The key of a client message's exchange but for its number.
pub fn of_client(message: &Message<'_>) -> String {
    match message.kind {
        Kind::Request | Kind::Notification => about(message),
        Kind::Batch => "batch".into(),
        // An answer to a request that the server never made.
        Kind::Result | Kind::Error | Kind::Noise => "raw".into(),
    }
}

/// The key of the exchange of an HTTP request that is no message, but for its number.
pub fn of_http(method: &str, path: &str) -> String {
    format!("http {} {}", quoted(method), quoted(path))
}

/// The same by the request's line, `GET /path?query`.
pub fn of_http_line(line: &str) -> String {
    let (method, target) = line.split_once(' ').unwrap_or((line, ""));
    of_http(method, path_of(target))
}

/// The key of a push but for its number, by its first message.
pub fn of_push(message: &Message<'_>) -> String {
    match message.kind {
        Kind::Request | Kind::Notification => format!("push {}", about(message)),
        Kind::Batch => "push batch".into(),
        Kind::Result | Kind::Error => "push response".into(),
        Kind::Noise => "push raw".into(),
    }
}

/// The key of an exchange but for its number, by the line of its first message.
pub fn of_exchange(exchange: &Exchange, line: &[u8]) -> String {
    match &exchange.client {
        Some(client) if client.form == Form::Http => of_http_line(&String::from_utf8_lossy(line)),
        Some(_) => of_client(&Message::read(line)),
        None => of_push(&Message::read(line)),
    }
}

fn about(message: &Message<'_>) -> String {
    let mut key = quoted(&message.method()).into_owned();
    if let Some(name) = message.name() {
        key.push(' ');
        key.push_str(&quoted(&name));
    }
    key
}

/// A name as it stands in a key: plain, or as a JSON string.
pub fn quoted(name: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_./:+-".contains(&byte);
    if !name.is_empty() && name.len() <= LONGEST_NAME && name.bytes().all(is_plain) {
        return Cow::Borrowed(name);
    }
    let mut shown = Vec::new();
    match name.char_indices().nth(LONGEST_NAME) {
        Some((end, _)) => scan::push_string(&format!("{}…", &name[..end]), &mut shown),
        None => scan::push_string(name, &mut shown),
    }
    Cow::Owned(String::from_utf8_lossy(&shown).into_owned())
}

/// Gives keys their numbers.
#[derive(Clone, Debug, Default)]
pub struct Keys {
    counts: HashMap<String, u64>,
    /// Keys that people gave and that are not numbered: a new key must not meet one.
    taken: HashSet<String>,
}

impl Keys {
    /// For an empty cassette.
    pub fn new() -> Self {
        Self::default()
    }

    /// For a cassette that is added to: numbers go on where its own end.
    pub fn of(cassette: &Cassette) -> Self {
        let mut keys = Self::new();
        for exchange in &cassette.exchanges {
            keys.take(&exchange.key);
        }
        keys
    }

    /// Notes a key that is in use.
    pub fn take(&mut self, key: &str) {
        let numbered = key.rsplit_once(" @").and_then(|(prefix, n)| Some((prefix, n.parse::<u32>().ok()?)));
        match numbered {
            Some((prefix, n)) => {
                let count = self.counts.entry(prefix.to_owned()).or_default();
                *count = u64::from(n).max(*count);
            }
            None => {
                self.taken.insert(key.to_owned());
            }
        }
    }

    /// The next key that begins with `prefix`.
    pub fn next(&mut self, prefix: &str) -> String {
        let count = self.counts.entry(prefix.to_owned()).or_default();
        loop {
            *count += 1;
            let key = format!("{prefix} @{count}");
            if !self.taken.contains(&key) {
                return key;
            }
        }
    }
}

/// How `after` writes a moment of the exchange `key`.
pub fn reference(key: &str, moment: Moment) -> String {
    match moment {
        Moment::Client => key.to_owned(),
        Moment::Item(n) => format!("{key} #{}", n + 1),
        Moment::Answer(n) => format!("{key} #{} answer", n + 1),
    }
}

/// Reads a reference; `find` gives the index of the exchange with a key. A key that itself looks like a reference
/// comes first.
pub fn parse_reference(text: &str, find: impl Fn(&str) -> Option<u32>) -> Option<Ref> {
    if let Some(exchange) = find(text) {
        return Some(Ref { exchange, moment: Moment::Client });
    }
    let (item, is_answer) = match text.strip_suffix(" answer") {
        Some(item) => (item, true),
        None => (text, false),
    };
    let (key, number) = item.rsplit_once(" #")?;
    let n = number.parse::<u32>().ok()?.checked_sub(1)?;
    let moment = if is_answer { Moment::Answer(n) } else { Moment::Item(n) };
    Some(Ref { exchange: find(key)?, moment })
}

/// Splits `KEY: WHAT`, as the command line has it, at the last `: `: keys may have one inside.
pub fn split_selector(text: &str) -> Option<(&str, &str)> {
    text.rsplit_once(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(line: &str) -> String {
        of_client(&Message::read(line.as_bytes()))
    }

    #[test]
    fn a_key_says_what_an_exchange_is_about() {
        assert_eq!(client(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#), "ping");
        let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search"}}"#;
        assert_eq!(client(call), "tools/call search");
        let read = r#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"file:///a b"}}"#;
        assert_eq!(client(read), r#"resources/read "file:///a b""#);
        assert_eq!(client(r#"{"jsonrpc":"2.0","method":""}"#), r#""""#);
        assert_eq!(client("[1]"), "raw");
        assert_eq!(client(r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#), "batch");
        let push = |line: &str| of_push(&Message::read(line.as_bytes()));
        assert_eq!(push(r#"{"jsonrpc":"2.0","method":"notifications/x"}"#), "push notifications/x");
        assert_eq!(push(r#"{"jsonrpc":"2.0","id":null,"error":{}}"#), "push response");
        assert_eq!(push("ready"), "push raw");
    }

    #[test]
    fn a_long_name_is_cut_between_characters() {
        let name = "é".repeat(500);
        assert_eq!(quoted(&name), format!("\"{}…\"", "é".repeat(120)));
    }

    #[test]
    fn numbers_go_on_and_never_meet_a_key_in_use() {
        let mut keys = Keys::new();
        keys.take("ping @2");
        keys.take("the one that fails");
        assert_eq!([keys.next("ping"), keys.next("ping"), keys.next("x")], ["ping @3", "ping @4", "x @1"]);
    }

    #[test]
    fn references_name_moments_and_keys_may_look_like_references() {
        let keys = ["a @1", "a @1 #2", "b answer"];
        let find = |text: &str| {
            let find = |key: &str| keys.iter().position(|known| *known == key).map(|at| at as u32);
            parse_reference(text, find).map(|found| (found.exchange, found.moment))
        };
        assert_eq!(find("a @1"), Some((0, Moment::Client)));
        assert_eq!(find("a @1 #1"), Some((0, Moment::Item(0))));
        assert_eq!(find("a @1 #3 answer"), Some((0, Moment::Answer(2))));
        assert_eq!(find("a @1 #2"), Some((1, Moment::Client)));
        assert_eq!(find("a @1 #2 #1 answer"), Some((1, Moment::Answer(0))));
        assert_eq!(find("b answer"), Some((2, Moment::Client)));
        for wrong in ["a", "a @1 #0", "a @1 #", "a @1 #x", "a @1 answer", " #1"] {
            assert_eq!(find(wrong), None, "{wrong}");
        }
        assert_eq!(reference("a @1", Moment::Answer(2)), "a @1 #3 answer");
    }

    #[test]
    fn a_selector_ends_at_the_last_colon_and_space() {
        let split = split_selector(r#"resources/read "a: b" @1: timeout"#);
        assert_eq!(split, Some((r#"resources/read "a: b" @1"#, "timeout")));
    }
}
