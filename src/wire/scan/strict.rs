//! What is JSON by the letter.

use super::{Lexer, Token, skip_space, string::hex4};

/// Whether the whole text is one value of strict JSON (RFC 8259): UTF-8, known words, well-formed numbers and
/// escapes. Lone surrogate escapes, repeated names and numbers of any size are allowed by its grammar.
pub fn is_json(text: &[u8]) -> bool {
    if std::str::from_utf8(text).is_err() {
        return false;
    }
    let mut lexer = Lexer::new(text, 0);
    loop {
        match lexer.next() {
            Err(_) => return false,
            Ok(None) => return skip_space(text, lexer.at()) == text.len(),
            Ok(Some((Token::Name | Token::String, span))) if !is_string(span.of(text)) => return false,
            Ok(Some((Token::Word, span))) if !is_word(span.of(text)) => return false,
            Ok(Some(_)) => {}
        }
    }
}

fn is_word(word: &[u8]) -> bool {
    matches!(word, b"true" | b"false" | b"null") || is_number(word)
}

/// Whether the text is a number by JSON's grammar.
pub fn is_number(word: &[u8]) -> bool {
    let digits = |from: usize| word[from..].iter().take_while(|b| b.is_ascii_digit()).count();
    let mut at = usize::from(word.first() == Some(&b'-'));
    match word.get(at) {
        Some(b'0') => at += 1,
        Some(b'1'..=b'9') => at += digits(at),
        _ => return false,
    }
    if word.get(at) == Some(&b'.') {
        let fraction = digits(at + 1);
        if fraction == 0 {
            return false;
        }
        at += 1 + fraction;
    }
    if let Some(b'e' | b'E') = word.get(at) {
        at += 1;
        if let Some(b'+' | b'-') = word.get(at) {
            at += 1;
        }
        let exponent = digits(at);
        if exponent == 0 {
            return false;
        }
        at += exponent;
    }
    at == word.len()
}

/// `raw` is a string with its quotes; whether its inside is as JSON wants it.
fn is_string(raw: &[u8]) -> bool {
    let inside = &raw[1..raw.len() - 1];
    let mut at = 0;
    while at < inside.len() {
        match inside[at] {
            0..=0x1f => return false,
            b'\\' => match inside.get(at + 1) {
                Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => at += 2,
                Some(b'u') if hex4(inside, at + 2).is_some() => at += 6,
                _ => return false,
            },
            _ => at += 1,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strict_json_is_told_from_what_is_only_tolerated() {
        for good in
            ["1e400", r#"{"a":[1,-0.5E+3,"\ud83d",true,null]}"#, " [] ", "123456789012345678901234567890"]
        {
            assert!(is_json(good.as_bytes()), "{good}");
        }
        for bad in
            ["NaN", "01", "1.", "[1,]", "{\"a\":1} x", "\"\\x\"", "\"\n\"", "", "{\"a\" 1}", "[1 2]", "tru"]
        {
            assert!(!is_json(bad.as_bytes()), "{bad}");
        }
        assert!(!is_json(b"\"\xff\""));
    }
}
