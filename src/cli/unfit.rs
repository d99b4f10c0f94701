//! Documents of ours that cannot be read: where, which member, what is expected there and what was found.

use std::path::Path;

use mcp_tapedeck::{
    cassette::found,
    wire::{Span, jsonrpc, pointer, scan},
};

/// Why `text`, which begins on this line of `path`, is no `what`.
pub(super) fn why(
    path: &Path,
    (text, first_line): (&[u8], usize),
    what: &str,
    error: &serde_json::Error,
) -> String {
    let root = scan::trim(text);
    let (at, said) = match text.get(root.start) {
        Some(b'{') if error.is_data() => {
            let (member, value) = member_at(text, root, offset(text, error));
            (value.start, in_words(&error.to_string(), what, &member, &found(text, value.start)))
        }
        Some(b'{') => {
            let at = if error.is_eof() { text.len() } else { offset(text, error) };
            (at, format!("expected {what} as JSON, found {}", found(text, at)))
        }
        _ => (root.start, format!("expected {what}, an object in braces, found {}", found(text, root.start))),
    };
    let before = String::from_utf8_lossy(&text[..at]);
    let line = first_line + before.matches('\n').count();
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    format!("{}:{line}:{column}: {said}", path.display())
}

/// What serde says, in our words.
fn in_words(said: &str, what: &str, member: &str, found: &str) -> String {
    let said = said.rsplit_once(" at line ").map_or(said, |(said, _)| said);
    let member = if member.is_empty() { what.to_owned() } else { format!("`{member}`") };
    if let Some(name) = said.strip_prefix("missing field ") {
        return format!("{member} needs the member {name}, found {found}");
    }
    let Some((_, expected)) = said.split_once(", expected ") else { return format!("{member}: {said}") };
    let expected = match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number from 0",
        "a sequence" => "a list in brackets",
        "a boolean" => "true or false",
        _ if expected.starts_with("struct ") || expected == "a map" => "an object in braces",
        expected => expected,
    };
    format!("{member} must be {expected}, found {found}")
}

/// The last byte that was read when the error came about.
fn offset(text: &[u8], error: &serde_json::Error) -> usize {
    let line = error.line().saturating_sub(1);
    let start: usize = text.split_inclusive(|byte| *byte == b'\n').take(line).map(<[u8]>::len).sum();
    (start + error.column().saturating_sub(1)).min(text.len().saturating_sub(1))
}

/// The innermost value in whose text an offset stands, and the JSON Pointer of that.
fn member_at(text: &[u8], root: Span, at: usize) -> (String, Span) {
    let (mut path, mut span) = (String::new(), root);
    let holds = |value: &Span| (value.start..value.end).contains(&at);
    loop {
        let step = match text[span.start] {
            b'{' => scan::members(text, span.start).map_while(Result::ok).find_map(|member| {
                let name = || pointer::escaped(&jsonrpc::text(member.name.of(text))).into_owned();
                holds(&member.value).then(|| (name(), member.value))
            }),
            b'[' => scan::elements(text, span.start)
                .map_while(Result::ok)
                .enumerate()
                .find_map(|(number, value)| holds(&value).then(|| (number.to_string(), value))),
            _ => None,
        };
        let Some((name, value)) = step else { return (path, span) };
        path = format!("{path}/{name}");
        span = value;
    }
}

#[cfg(test)]
mod tests {
    use mcp_tapedeck::{Report, report::events::Event};

    use super::*;

    fn report(text: &str) -> String {
        let error = serde_json::from_str::<Report>(text).expect_err("it is none");
        why(Path::new("r.json"), (text.as_bytes(), 1), "a report", &error)
    }

    #[test]
    fn each_has_its_place_what_is_expected_and_what_was_found() {
        let good = serde_json::to_string_pretty(&Report::open("c.json")).expect("JSON");
        for (text, says) in [
            ("", "r.json:1:1: expected a report, an object in braces, found the end of the text"),
            ("  \n", "r.json:2:1: expected a report, an object in braces, found the end of the text"),
            ("[1]", "r.json:1:1: expected a report, an object in braces, found `[1]`"),
            ("null", "r.json:1:1: expected a report, an object in braces, found `null`"),
            ("{}", "r.json:1:1: a report needs the member `report`, found `{}`"),
            ("{\n \"report\": x}", "r.json:2:12: expected a report as JSON, found `x`"),
            ("{\"report\": 1,", "r.json:1:14: expected a report as JSON, found the end of the text"),
        ] {
            assert_eq!(report(text), says, "{text}");
        }
        let wrong = |from: &str, to: &str| report(&good.replacen(from, to, 1));
        assert_eq!(
            wrong("\"report\": 1", "\"report\": -1"),
            "r.json:2:13: `/report` must be a whole number from 0, found `-1`"
        );
        let open = wrong("\"verdict\": \"open\"", "\"verdict\": \"opn\"");
        assert!(
            open.contains(": `/verdict` must be one of `") && open.ends_with(", found `\"opn\"`"),
            "{open}"
        );
        let misses = wrong("\"misses\": []", "\"misses\": [{\"count\": 1}]");
        assert!(misses.contains(": `/misses/0` needs the member `"), "{misses}");
        let misses = wrong("\"misses\": []", "\"misses\": [7]");
        assert!(misses.ends_with(": `/misses/0` must be an object in braces, found `7`"), "{misses}");
    }

    #[test]
    fn a_line_among_others_is_told_by_its_number() {
        let error = serde_json::from_str::<Event>("{\"seq\": \"a\"}").expect_err("it is none");
        let told = why(Path::new("e.jsonl"), (b"{\"seq\": \"a\"}", 4), "an event", &error);
        assert_eq!(told, "e.jsonl:4:9: `/seq` must be a whole number from 0, found `\"a\"`");
    }
}
