//! What stands in a live message where a recorded one has placeholders, if it is equal in all else.
//!
//! Which values are secret is known by what was seen of a session, so it can differ between a recording and a live
//! session, or be another kind of secret. Here a placeholder is a blank that any text fills: as a whole string, any
//! that is not empty; within a longer one, what reads as one word there, so that no further argument, path segment or
//! member of a text goes unseen.

use std::ops::Range;

use super::canonical::holds_placeholder;
use crate::redact::{Placeholder, placeholders};

/// What fills a blank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::replay) enum Filling<'a> {
    /// A secret of the live session.
    Secret(Placeholder),
    /// Text as it stands.
    Text(&'a [u8]),
}

/// What fills the blanks of a recorded form, in order, in a live form that is equal but for them; none where it is not
/// equal. Both keep the numbers of placeholders; in a live form that `is_redacted` these are the live session's.
pub(in crate::replay) fn fillings<'a>(
    recorded: &[u8],
    live: &'a [u8],
    is_redacted: bool,
) -> Option<Vec<(Placeholder, Filling<'a>)>> {
    let (mut at, mut live_at) = (0, 0);
    let mut filled = Vec::new();
    while at < recorded.len() {
        if recorded[at] != b'"' {
            (live.get(live_at) == Some(&recorded[at])).then_some(())?;
            (at, live_at) = (at + 1, live_at + 1);
            continue;
        }
        let (text, live_text) = (text_at(recorded, at)?, text_at(live, live_at)?);
        (at, live_at) = (text.end, live_text.end);
        fill(&recorded[text], &live[live_text], is_redacted, &mut filled)?;
    }
    (live_at == live.len()).then_some(filled)
}

/// In how many bytes a recorded form and a live one agree that fills its blanks: all but those.
pub(in crate::replay) fn agreed(recorded: &[u8]) -> usize {
    let (mut at, mut agreed) = (0, 0);
    while at < recorded.len() {
        let Some(text) = text_at(recorded, at) else {
            (at, agreed) = (at + 1, agreed + 1);
            continue;
        };
        let blanks: usize = placeholders(&recorded[text.clone()]).map(|(span, _)| span.len()).sum();
        (at, agreed) = (text.end, agreed + text.len() - blanks);
    }
    agreed
}

/// Where the text stands that a form has here behind its length.
fn text_at(form: &[u8], at: usize) -> Option<Range<usize>> {
    let rest = form.get(at..)?.strip_prefix(b"\"")?;
    let colon = memchr::memchr(b':', rest)?;
    let length: usize = std::str::from_utf8(&rest[..colon]).ok()?.parse().ok()?;
    let start = at + 1 + colon + 1;
    let end = start.checked_add(length).filter(|end| *end <= form.len())?;
    Some(start..end)
}

/// Fills the blanks of one text.
fn fill<'a>(
    recorded: &[u8],
    live: &'a [u8],
    is_redacted: bool,
    filled: &mut Vec<(Placeholder, Filling<'a>)>,
) -> Option<()> {
    let mut blanks = placeholders(recorded).peekable();
    let first = blanks.peek().map_or(recorded.len(), |(span, _)| span.start);
    let mut rest = live.strip_prefix(&recorded[..first])?;
    while let Some((span, placeholder)) = blanks.next() {
        let next = blanks.peek().map_or(recorded.len(), |(next, _)| next.start);
        let behind = &recorded[span.end..next];
        let (filling, length) = match starts_with_secret(rest).filter(|_| is_redacted) {
            Some((secret, length)) => (Filling::Secret(secret), length),
            None => {
                let length = match blanks.peek() {
                    None => rest.strip_suffix(behind)?.len(),
                    // Where one ends and the next begins nothing tells.
                    Some(_) if behind.is_empty() => return None,
                    Some(_) => 1 + memchr::memmem::find(rest.get(1..)?, behind)?,
                };
                let text = &rest[..length];
                let around = [span.start.checked_sub(1), Some(span.end)];
                let is_whole = span.len() == recorded.len();
                let may_stand = if is_whole { !text.is_empty() } else { is_word(text, recorded, around) };
                // Part of it is a secret, and the rest is not: what the blank stands for is not told.
                let is_mixed = holds_placeholder(text)
                    && (is_redacted
                        || starts_with_secret(text).is_none_or(|(_, length)| length < text.len()));
                (may_stand && !is_mixed).then_some((Filling::Text(text), length))?
            }
        };
        rest = rest[length..].strip_prefix(behind)?;
        filled.push((placeholder, filling));
    }
    rest.is_empty().then_some(())
}

/// The placeholder that a text begins with, and its length.
fn starts_with_secret(text: &[u8]) -> Option<(Placeholder, usize)> {
    let mut found = text.starts_with(b"<").then(|| placeholders(text))?;
    found.next().filter(|(span, _)| span.start == 0).map(|(span, secret)| (secret, span.end))
}

/// Whether a text is one word where a blank stands in a longer text: it holds nothing that parts words, nor what does
/// so around that blank.
fn is_word(text: &[u8], recorded: &[u8], around: [Option<usize>; 2]) -> bool {
    let around = around.map(|at| at.and_then(|at| recorded.get(at)).copied());
    let parts = |byte: &u8| {
        byte.is_ascii_whitespace()
            || b"\"'`\\&|;,?#$(){}[]".contains(byte)
            // Base64 ends in `=`, and names end there.
            || (!byte.is_ascii_alphanumeric() && *byte != b'=' && around.contains(&Some(*byte)))
    };
    let is_placeholder = || starts_with_secret(text).is_some_and(|(_, length)| length == text.len());
    !text.is_empty() && (is_placeholder() || !text.iter().any(parts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{replay::matcher::Matcher, wire::jsonrpc::Message};

    fn form(params: &str) -> Vec<u8> {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{params}}}"#);
        Matcher::plain().numbered_form(&Message::read(text.as_bytes()), None).unwrap()
    }

    /// `placeholder=filling` of each blank; secrets are `!kind-n`.
    #[track_caller]
    fn filled(recorded: &str, live: &str, is_redacted: bool) -> Option<Vec<String>> {
        let (recorded, live) = (form(recorded), form(live));
        let told = |(blank, filling): (Placeholder, Filling<'_>)| match filling {
            Filling::Secret(secret) => {
                format!("{}-{}=!{}-{}", blank.kind, blank.number, secret.kind, secret.number)
            }
            Filling::Text(text) => {
                format!("{}-{}={}", blank.kind, blank.number, String::from_utf8_lossy(text))
            }
        };
        Some(fillings(&recorded, &live, is_redacted)?.into_iter().map(told).collect())
    }

    #[test]
    fn any_text_fills_a_blank_in_whatever_order_members_stand() {
        let recorded = r#"{"a":"<redacted:token-2>","n":[1.0,true],"p":"/srv/<redacted:password-1>/a"}"#;
        let live = r#"{"n":[1,true],"p":"/srv/x1/a","a":"any \" thing, at all"}"#;
        let both = ["token-2=any \" thing, at all", "password-1=x1"].map(str::to_owned).to_vec();
        assert_eq!(filled(recorded, live, true), Some(both.clone()));
        assert_eq!(filled(recorded, live, false), Some(both));
        let live = r#"{"n":[1,true],"p":"/srv/<redacted:a-7>/a","a":"<redacted:password-1>"}"#;
        let both = ["token-2=!password-1", "password-1=!a-7"].map(str::to_owned).to_vec();
        assert_eq!(filled(recorded, live, true), Some(both));
        let both = ["token-2=<redacted:password-1>", "password-1=<redacted:a-7>"].map(str::to_owned).to_vec();
        assert_eq!(filled(recorded, live, false), Some(both));
    }

    #[test]
    fn several_blanks_of_a_text_are_told_apart_by_what_stands_between() {
        let recorded = r#"["-u <redacted:a-1>:<redacted:b-1> -x <redacted:a-1>!"]"#;
        let three = ["a-1=me", "b-1=se=cret==", "a-1=you"].map(str::to_owned).to_vec();
        assert_eq!(filled(recorded, r#"["-u me:se=cret== -x you!"]"#, true), Some(three));
        let adjacent = r#"["<redacted:a-1><redacted:b-1>"]"#;
        assert_eq!(filled(adjacent, r#"["xy"]"#, true), None);
        let both = ["a-1=!b-4", "b-1=!a-2"].map(str::to_owned).to_vec();
        assert_eq!(filled(adjacent, r#"["<redacted:b-4><redacted:a-2>"]"#, true), Some(both));
    }

    #[test]
    fn what_differs_otherwise_fills_nothing() {
        for (recorded, live) in [
            (r#"["<redacted:a-1>"]"#, r#"[""]"#),
            (r#"["<redacted:a-1>"]"#, "[1]"),
            (r#"["<redacted:a-1>"]"#, r#"[["x"]]"#),
            (r#"["<redacted:a-1>"]"#, r#"["x","y"]"#),
            (r#"["<redacted:a-1>","y"]"#, r#"["x"]"#),
            (r#"["<redacted:a-1>"]"#, r#"["my <redacted:b-1>"]"#),
            (r#"["<redacted:a-1>","y"]"#, r#"["x","z"]"#),
            (r#"["x"]"#, r#"["<redacted:a-1>"]"#),
            (r#"["/a/<redacted:a-1>"]"#, r#"["/a/"]"#),
            (r#"["/a/<redacted:a-1>"]"#, r#"["/a/x/y"]"#),
            (r#"["/a/<redacted:a-1>/b"]"#, r#"["/a//b"]"#),
            (r#"["/a/<redacted:a-1>/b"]"#, r#"["/a/b"]"#),
            (r#"["run <redacted:a-1>"]"#, r#"["run x --force"]"#),
            (r#"["run <redacted:a-1>"]"#, r#"["run x;y"]"#),
            (r#"["?k=<redacted:a-1>"]"#, r#"["?k=x&all=1"]"#),
            (r#"["{\"k\":\"<redacted:a-1>\"}"]"#, r#"["{\"k\":\"x\",\"l\":\"y\"}"]"#),
            (r#"["k <redacted:a-1> <redacted:a-1>"]"#, r#"["k x"]"#),
        ] {
            assert_eq!(filled(recorded, live, true), None, "{recorded} {live}");
        }
    }

    #[test]
    fn what_stands_around_blanks_is_what_agrees() {
        let agreed = |params: &str| agreed(&form(params));
        let whole = agreed(r#"["<redacted:a-1>"]"#);
        assert_eq!(agreed(r#"["<redacted:a-long-kind-1234>"]"#), whole);
        assert_eq!(agreed(r#"["say <redacted:a-1> now"]"#), whole + "say  now".len());
        assert_eq!(agreed(r#"["<redacted:a-1><redacted:b-1>","x"]"#), agreed(r#"["","x"]"#));
    }

    #[test]
    fn forms_that_are_none_are_read_to_their_ends() {
        for recorded in [&b"\""[..], b"\"9:a", b"\"99999999999999999999:", b"\"x:", b"\":", b"\"1:ab"] {
            assert_eq!(fillings(recorded, recorded, true).is_some(), recorded == b"\"1:ab", "{recorded:?}");
            assert!(agreed(recorded) <= recorded.len());
        }
        assert_eq!(fillings(b"{", b"", true), None);
        assert_eq!(fillings(b"", b"{", true), None);
    }
}
