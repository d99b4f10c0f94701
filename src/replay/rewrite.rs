//! Recorded bytes made to fit the live conversation: ids and tokens, and nothing else.
//!
//! The complete list of what can name a live request on stdio: a response's id, a progress token, the id in
//! `notifications/cancelled`, and a listen stream's subscription id (specification 2025-11-25, basic/utilities;
//! 2026-07-28, basic/patterns/subscriptions).

use std::sync::LazyLock;

use memchr::memmem::Finder;

use crate::{
    cassette::model::Id,
    wire::{
        Span,
        half::half_answer,
        jsonrpc::{Kind, Message, id_key, same_id},
        scan,
    },
};

/// The live request an exchange is played for, and the recorded one it was.
#[derive(Clone, Debug, Default)]
pub(super) struct Correlators {
    /// The recorded request's id.
    pub recorded_id: Id,
    /// The live request's id, raw.
    pub live_id: Vec<u8>,
    /// The progress token it was recorded with.
    pub recorded_token: Option<Box<[u8]>>,
    /// The token the live request carries.
    pub live_token: Option<Box<[u8]>>,
    /// The live request is of 2026-07-28 or later: answers may name it as a subscription.
    pub is_modern: bool,
    /// For a batch, recorded and live ids.
    pub batch: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Correlators {
    /// The recorded request's id, raw.
    pub(super) fn recorded_id(&self) -> Vec<u8> {
        let mut raw = Vec::new();
        self.recorded_id.push(&mut raw);
        raw
    }
}

/// All integers of so many digits are floats too.
const LONGEST_FLOAT: usize = 15;

/// The id or token that a message carries live, given the recorded one of the request and that of the message.
///
/// A server that spells an equal id anew answers the live id as that is spelled; one that answers `7` with `"7"` or `7.0`
/// answers the live id in the same way. What is another id stays.
pub(super) fn answer_id(recorded_request: &[u8], recorded_answer: &[u8], live: &[u8]) -> Vec<u8> {
    if recorded_answer == recorded_request {
        return live.to_vec();
    }
    let (request, answer) = (id_key(recorded_request), id_key(recorded_answer));
    if request == answer {
        let fraction = recorded_answer.strip_prefix(recorded_request).filter(|rest| rest.starts_with(b"."));
        // A server that writes integers so reads them as floats: it would not have kept a longer one.
        let is_float = live.len() <= LONGEST_FLOAT && live.iter().all(u8::is_ascii_digit);
        return [live, fraction.filter(|_| is_float).unwrap_or_default()].concat();
    }
    let is_quoted = |key: &[u8], other: &[u8]| key.strip_prefix(b"\"") == Some(other);
    let retyped = if is_quoted(&answer, &request) {
        scan::is_number(live).then(|| [b"\"", live, b"\""].concat())
    } else if is_quoted(&request, &answer) {
        let inside = live.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\""));
        inside.filter(|id| scan::is_number(id)).map(<[u8]>::to_vec)
    } else {
        return recorded_answer.to_vec();
    };
    retyped.unwrap_or_else(|| live.to_vec())
}

/// Whether a payload may hold a subscription's id, by its text: an escape may spell it in another way.
pub(super) fn may_name_a_subscription(payload: &[u8]) -> bool {
    static NAME: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"subscriptionId"));
    static ESCAPE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\\u00"));
    NAME.find(payload).is_some() || ESCAPE.find(payload).is_some()
}

/// Rewrites a recorded server message in place; false where it must not be sent at all: a progress notification
/// whose live request asked for none.
pub(super) fn rewrite(bytes: &mut Vec<u8>, to: &Correlators) -> bool {
    let message = Message::read(bytes);
    let mut changes: Vec<(Span, Vec<u8>)> = Vec::new();
    match message.kind {
        Kind::Result | Kind::Error => {
            if let Some((span, id)) = message.id_span().zip(message.id()) {
                changes.push((span, answer_id(&to.recorded_id(), id, &to.live_id)));
            }
            let meta = message.outcome_span().and_then(|outcome| {
                scan::pointer(bytes, outcome, "/_meta/io.modelcontextprotocol~1subscriptionId")
            });
            push_if_own(meta, bytes, to, &mut changes);
        }
        Kind::Notification => {
            if message.method() == "notifications/progress"
                && let Some(span) = message.param_span("/progressToken")
                && let Some(recorded) = to.recorded_token.as_deref()
                && same_id(recorded, span.of(bytes))
            {
                match &to.live_token {
                    Some(token) => changes.push((span, answer_id(recorded, span.of(bytes), token))),
                    None => return false,
                }
            }
            for pointer in ["/_meta/io.modelcontextprotocol~1subscriptionId", "/requestId"] {
                push_if_own(message.param_span(pointer), bytes, to, &mut changes);
            }
        }
        // A request that came alone may have been answered by a batch all the same.
        Kind::Batch => rewrite_batch(bytes, &[(to.recorded_id(), to.live_id.clone())]),
        Kind::Request | Kind::Noise => {}
    }
    changes.sort_by_cached_key(|(span, _)| std::cmp::Reverse(span.start));
    for (span, token) in changes {
        bytes.splice(span.start..span.end, token);
    }
    true
}

fn push_if_own(span: Option<Span>, bytes: &[u8], to: &Correlators, changes: &mut Vec<(Span, Vec<u8>)>) {
    let recorded = to.recorded_id();
    if let Some(span) = span
        && same_id(span.of(bytes), &recorded)
    {
        changes.push((span, answer_id(&recorded, span.of(bytes), &to.live_id)));
    }
}

/// Replaces the ids in a recorded answer to a batch by those of the live batch, pairing by recorded id.
pub(super) fn rewrite_batch(bytes: &mut Vec<u8>, ids: &[(Vec<u8>, Vec<u8>)]) {
    let message = Message::read(bytes);
    let base = bytes.as_ptr() as usize;
    let mut changes: Vec<(Span, Vec<u8>)> = Vec::new();
    // Where events carry the answers, each may be in one of its own.
    let all = std::iter::once(message).chain(message.members());
    for member in all.filter(|member| member.kind.is_response()) {
        let Some((span, id)) = member.id_span().zip(member.id()) else { continue };
        let as_spelled = ids.iter().find(|(recorded, _)| recorded == id);
        let same = || ids.iter().find(|(recorded, _)| same_id(recorded, id));
        let Some((recorded, live)) = as_spelled.or_else(same) else { continue };
        // A member's spans count from its own first byte.
        let span = span.shift(member.bytes.as_ptr() as usize - base);
        changes.push((span, answer_id(recorded, id, live)));
    }
    changes.sort_by_cached_key(|(span, _)| std::cmp::Reverse(span.start));
    for (span, id) in changes {
        bytes.splice(span.start..span.end, id);
    }
}

/// As [`rewrite`], of a server's last line, which may be half an answer.
pub(super) fn rewrite_last(bytes: &mut Vec<u8>, to: &Correlators) -> bool {
    if let Some(id) = half_answer(bytes) {
        let live = answer_id(&to.recorded_id(), id.of(bytes), &to.live_id);
        bytes.splice(id.start..id.end, live);
    }
    rewrite(bytes, to)
}

/// Replaces the id of a message.
pub(super) fn set_id(bytes: &mut Vec<u8>, id: &[u8]) {
    if let Some(span) = Message::read(bytes).id_span() {
        bytes.splice(span.start..span.end, id.iter().copied());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(line: &str, to: &Correlators) -> Option<String> {
        let mut bytes = line.as_bytes().to_vec();
        rewrite(&mut bytes, to).then(|| String::from_utf8(bytes).unwrap())
    }

    fn correlators(recorded: &str, live: &str, tokens: (Option<&str>, Option<&str>)) -> Correlators {
        let token = |text: Option<&str>| text.map(|text| text.as_bytes().into());
        Correlators {
            recorded_id: Id::of(Some(recorded.as_bytes())),
            live_id: live.into(),
            recorded_token: token(tokens.0),
            live_token: token(tokens.1),
            is_modern: true,
            batch: Vec::new(),
        }
    }

    #[test]
    fn a_request_that_came_alone_has_its_id_in_a_batch_too() {
        let answer = |id: &str| format!(r#"[{{"jsonrpc":"2.0","id":{id},"result":1}}]"#);
        let to = correlators("7", "\"x\"", (None, None));
        assert_eq!(rewritten(&answer("7"), &to), Some(answer("\"x\"")));
        assert_eq!(rewritten(&answer("8"), &to), Some(answer("8")));
    }

    #[test]
    fn an_answer_gets_the_live_id_in_the_way_the_server_wrote_it() {
        for (request, answer, live, want) in [
            ("1", "1", "\"x\"", "\"x\""),
            ("7", "\"7\"", "9", "\"9\""),
            ("\"7\"", "7", "\"12\"", "12"),
            ("0", "0.0", "5", "5.0"),
            ("0", "0.0", "\"x\"", "\"x\""),
            ("0", "0.0", "2.5", "2.5"),
            ("0", "0.0", "123456789012345", "123456789012345.0"),
            ("0", "0.0", "12345678901234567890", "12345678901234567890"),
            ("1.0", "1", "5", "5"),
            ("1.0", "1", "5.0", "5.0"),
            ("\"a/b\"", "\"a\\/b\"", "\"c/d\"", "\"c/d\""),
            ("7", "\"7\"", "\"x\"", "\"x\""),
            ("7.0", "\"7\"", "9", "\"9\""),
            ("\"7\"", "7.0", "\"x\"", "\"x\""),
            ("3", "null", "4", "null"),
            ("3", "\"server-error\"", "4", "\"server-error\""),
        ] {
            let id = answer_id(request.as_bytes(), answer.as_bytes(), live.as_bytes());
            assert_eq!(String::from_utf8(id).unwrap(), want, "{request} {answer} {live}");
        }
    }

    #[test]
    fn only_the_envelopes_id_changes_whatever_the_spelling() {
        let to = correlators("2", "42", (None, None));
        let line = r#"{ "id" : 2, "result" : {"id":2,"mean":NaN},  "jsonrpc" : "2.0" }"#;
        let want = r#"{ "id" : 42, "result" : {"id":2,"mean":NaN},  "jsonrpc" : "2.0" }"#;
        assert_eq!(rewritten(line, &to).as_deref(), Some(want));
    }

    #[test]
    fn progress_carries_the_live_token_or_is_not_sent() {
        let line = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}"#;
        let to = correlators("1", "8", (Some("1"), Some("\"p\"")));
        assert_eq!(
            rewritten(line, &to),
            Some(line.replace("\"progressToken\":1", "\"progressToken\":\"p\""))
        );
        assert_eq!(rewritten(line, &correlators("1", "8", (Some("1"), None))), None);
        assert_eq!(rewritten(line, &correlators("1", "8", (Some("2"), None))).as_deref(), Some(line));
        // It is spelled as an id would be.
        let line = line.replace("\"progressToken\":1", "\"progressToken\":1.0");
        for (live, spelled) in
            [("8", "8.0"), ("12345678901234567890", "12345678901234567890"), ("\"p\"", "\"p\"")]
        {
            let to = correlators("1", "8", (Some("1"), Some(live)));
            let wanted = line.replace("Token\":1.0", &format!("Token\":{spelled}"));
            assert_eq!(rewritten(&line, &to), Some(wanted));
        }
    }

    #[test]
    fn a_payload_that_may_name_a_subscription_is_known_by_its_text() {
        assert!(may_name_a_subscription(br#"{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}"#));
        assert!(may_name_a_subscription(br#"{"_meta":{"io.modelcontextprotocol/subscription\u0049d":1}}"#));
        assert!(!may_name_a_subscription(br#"{"content":[{"type":"text","text":"a\nb"}]}"#));
    }

    #[test]
    fn a_subscription_id_is_the_live_requests_id() {
        let to = correlators("\"listen-1\"", "4", (None, None));
        let line = r#"{"jsonrpc":"2.0","method":"notifications/x","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"listen-1"}}}"#;
        assert_eq!(rewritten(line, &to), Some(line.replace("\"listen-1\"", "4")));
        let line = line.replace("\"listen-1\"", "1.0");
        let to = correlators("1", "4", (None, None));
        assert_eq!(rewritten(&line, &to), Some(line.replace("1.0", "4.0")));
        let mut batch = br#"[{"jsonrpc":"2.0","id":1.0,"result":{}}]"#.to_vec();
        rewrite_batch(&mut batch, &[(b"1".to_vec(), b"4".to_vec())]);
        assert_eq!(batch, br#"[{"jsonrpc":"2.0","id":4.0,"result":{}}]"#);
    }

    #[test]
    fn a_batchs_answers_get_the_live_batchs_ids() {
        let mut bytes =
            br#"[{"jsonrpc":"2.0","id":3,"result":{"id":2}}, {"jsonrpc":"2.0","id":2,"result":{}}]"#.to_vec();
        let ids = [(b"2".to_vec(), b"\"two\"".to_vec()), (b"3".to_vec(), b"33".to_vec())];
        rewrite_batch(&mut bytes, &ids);
        let want =
            r#"[{"jsonrpc":"2.0","id":33,"result":{"id":2}}, {"jsonrpc":"2.0","id":"two","result":{}}]"#;
        assert_eq!(String::from_utf8(bytes).unwrap(), want);
    }
}
