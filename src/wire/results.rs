//! Results that are made here, not by a server.

/// A result that says nothing but that all is well. Since 2026-07-28 clients refuse one without `resultType`
/// (specification, basic/index).
pub const fn empty(is_modern: bool) -> &'static str {
    if is_modern { r#"{"resultType":"complete"}"# } else { "{}" }
}

/// The result of a tool that failed; `text` is JSON that stands for what it says, and `gap` stands where a person would
/// have a space.
pub fn tool_error(text: &[u8], is_modern: bool, gap: &str) -> Vec<u8> {
    let mut result = format!("{{\"content\":{gap}[{{\"type\":{gap}\"text\",{gap}\"text\":{gap}").into_bytes();
    result.extend_from_slice(text);
    result.extend_from_slice(format!("}}],{gap}\"isError\":{gap}true").as_bytes());
    if is_modern {
        result.extend_from_slice(format!(",{gap}\"resultType\":{gap}\"complete\"").as_bytes());
    }
    result.push(b'}');
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn since_2026_07_28_a_result_says_what_it_is() {
        let told = |result: Vec<u8>| String::from_utf8(result).unwrap();
        assert_eq!([empty(false), empty(true)], ["{}", r#"{"resultType":"complete"}"#]);
        let failed = r#"{"content":[{"type":"text","text":"no"}],"isError":true"#;
        assert_eq!(told(tool_error(b"\"no\"", false, "")), format!("{failed}}}"));
        assert_eq!(told(tool_error(b"\"no\"", true, "")), format!(r#"{failed},"resultType":"complete"}}"#));
        assert_eq!(
            told(tool_error(b"\"no\"", true, " ")),
            r#"{"content": [{"type": "text", "text": "no"}], "isError": true, "resultType": "complete"}"#
        );
    }
}
