//! A request as it is spelled, but for white space between its tokens.
//!
//! Requests that are spelled alike are equal whatever is exempt, and a client mostly spells its requests as it did
//! when it was recorded. So that is looked at first: it takes a fraction of the time of a canonical form.

use crate::wire::scan;

/// Appends params without the white space between their tokens; false where that cannot be told because they are no
/// JSON.
pub(super) fn push_params(params: &[u8], out: &mut Vec<u8>) -> bool {
    // Most clients write none, and what they say is often one word. (Not the first that is found ends this: it takes a
    // fraction of the time so.)
    if !params.iter().fold(false, |any, byte| any | (*byte <= b' ')) {
        out.extend_from_slice(params);
        return true;
    }
    // What stands without white space is taken over in one piece.
    let (mut from, mut at) = (0, 0);
    while let Some(&byte) = params.get(at) {
        match byte {
            b'"' => match scan::skip_value(params, at) {
                Ok(end) => at = end,
                Err(_) => return false,
            },
            b' ' | b'\t' | b'\r' | b'\n' => {
                out.extend_from_slice(&params[from..at]);
                let before = at.checked_sub(1);
                at = scan::skip_space(params, at);
                // Two words with nothing but white space between them are not the one that they would make.
                let is_word_at = |at: usize| params.get(at).is_some_and(|byte| is_word(*byte));
                if before.is_some_and(is_word_at) && is_word_at(at) {
                    return false;
                }
                from = at;
            }
            _ => at += 1,
        }
    }
    out.extend_from_slice(&params[from..]);
    true
}

const fn is_word(byte: u8) -> bool {
    !matches!(byte, b'{' | b'}' | b'[' | b']' | b',' | b':' | b'"')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spelled(params: &str) -> Option<String> {
        let mut out = Vec::new();
        push_params(params.as_bytes(), &mut out).then(|| String::from_utf8(out).unwrap())
    }

    #[test]
    fn white_space_counts_in_strings_only() {
        let spaced = "{ \"a b\" : [ 1 ,\n\t-2e5, \"x \\\" y\" ],\r\n \"c\": {}, \"d\" : true }";
        let compact = r#"{"a b":[1,-2e5,"x \" y"],"c":{},"d":true}"#;
        assert_eq!(spelled(spaced).as_deref(), Some(compact));
        assert_eq!(spelled(compact).as_deref(), Some(compact));
        assert_eq!(spelled(" {} ").as_deref(), Some("{}"));
    }

    #[test]
    fn what_is_no_json_is_not_made_into_other_json() {
        assert_eq!(spelled(r#"{"a":1 2}"#), None);
        assert_eq!(spelled(r#"{"a":tr ue}"#), None);
        assert_eq!(spelled(r#"{"a": "b}"#), None);
    }
}
