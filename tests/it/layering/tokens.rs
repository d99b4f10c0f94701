//! Just enough of Rust's tokens to find every path a file writes, with its line.

/// One path as written, made absolute where it begins with `crate`, `self` or `super`.
#[derive(Debug)]
pub(super) struct Used {
    /// The path, such as `crate::wire::Span` or `std::fs`.
    pub(super) path: String,
    /// The line it stands on.
    pub(super) line: usize,
}

impl Used {
    pub(super) fn segments(&self) -> Vec<&str> {
        self.path.split("::").collect()
    }
}

/// A word or one character of punctuation (`::` is one token).
#[derive(Clone, Copy, Debug)]
struct Token<'a> {
    text: &'a str,
    line: usize,
}

/// Every path of two or more segments in `text`, test-only items left out.
pub(super) fn used_paths(module: &[String], text: &str) -> Vec<Used> {
    let tokens = without_tests(tokens(text));
    let mut used = Vec::new();
    // One prefix for each open brace: that of its use group, or none for a block.
    let mut groups: Vec<Vec<&str>> = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let token = tokens[at];
        at += 1;
        match token.text {
            "{" => groups.push(Vec::new()),
            "}" => drop(groups.pop()),
            word if is_word(word) => {
                let mut path = groups.last().cloned().unwrap_or_default();
                path.push(word);
                while let [separator, next, ..] = &tokens[at..]
                    && separator.text == "::"
                    && is_word(next.text)
                {
                    path.push(next.text);
                    at += 2;
                }
                if let [separator, brace, ..] = &tokens[at..]
                    && (separator.text, brace.text) == ("::", "{")
                {
                    groups.push(path);
                    at += 2;
                } else {
                    path.pop_if(|last| *last == "self");
                    if path.len() > 1 {
                        used.push(Used { path: absolute(module, &path), line: token.line });
                    }
                }
            }
            _ => {}
        }
    }
    used
}

fn absolute(module: &[String], path: &[&str]) -> String {
    let supers = path.iter().take_while(|segment| **segment == "super").count();
    let mut whole = vec!["crate"];
    match path[0] {
        "self" => whole.extend(module.iter().map(String::as_str)),
        "super" => whole.extend(module.iter().take(module.len().saturating_sub(supers)).map(String::as_str)),
        _ => whole.clear(),
    }
    let own = if path[0] == "self" { 1 } else { supers };
    whole.extend(&path[own..]);
    whole.join("::")
}

/// Drops every item, field and parameter behind `#[cfg(test)]`.
fn without_tests(tokens: Vec<Token<'_>>) -> Vec<Token<'_>> {
    const MARK: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let mut kept = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        let rest = &tokens[at..];
        if rest.len() > MARK.len() && MARK.iter().zip(rest).all(|(mark, token)| *mark == token.text) {
            at += MARK.len();
            let mut depth = 0_usize;
            while at < tokens.len() {
                let text = tokens[at].text;
                match text {
                    "{" | "(" | "[" => depth += 1,
                    // The end of what a field stands in is not the field's.
                    "}" | ")" | "]" if depth == 0 => break,
                    "}" | ")" | "]" => depth -= 1,
                    _ => {}
                }
                at += 1;
                if depth == 0 && matches!(text, "}" | ";" | ",") {
                    break;
                }
            }
        } else {
            kept.push(tokens[at]);
            at += 1;
        }
    }
    kept
}

fn is_word(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
}

fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut at = 0;
    let mut line = 1;
    while at < text.len() {
        let length = token_length(&text[at..]);
        let piece = &text[at..at + length];
        let first = piece.as_bytes()[0];
        let is_string = piece.contains('"') || (first == b'\'' && piece.len() > 1);
        if !first.is_ascii_whitespace() && !piece.starts_with("//") && !piece.starts_with("/*") && !is_string
        {
            tokens.push(Token { text: piece, line });
        }
        line += piece.matches('\n').count();
        at += length;
    }
    tokens
}

/// The length of the token, comment, literal or white space at the start of `text`.
fn token_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let hashes = |from: usize| bytes[from..].iter().take_while(|byte| **byte == b'#').count();
    match bytes {
        [b'/', b'/', ..] => text.find('\n').unwrap_or(text.len()),
        [b'/', b'*', ..] => comment_length(bytes),
        [b':', b':', ..] => 2,
        [b'"', ..] => string_length(bytes, 1),
        [b'b' | b'c', b'"', ..] => string_length(bytes, 2),
        [b'r', b'"' | b'#', ..] if bytes.get(1 + hashes(1)) == Some(&b'"') => {
            raw_string_length(text, 1, hashes(1))
        }
        [b'b' | b'c', b'r', b'"' | b'#', ..] if bytes.get(2 + hashes(2)) == Some(&b'"') => {
            raw_string_length(text, 2, hashes(2))
        }
        [b'\'', b'\\', ..] => 3 + bytes[3..].iter().position(|byte| *byte == b'\'').map_or(0, |end| end + 1),
        [b'\'', ..] => match text[1..].chars().next() {
            Some(inside) if bytes.get(1 + inside.len_utf8()) == Some(&b'\'') => 2 + inside.len_utf8(),
            _ => 1,
        },
        [first, ..] if first.is_ascii_alphanumeric() || *first == b'_' => {
            bytes.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count()
        }
        _ => text.chars().next().map_or(0, char::len_utf8),
    }
}

fn comment_length(bytes: &[u8]) -> usize {
    let (mut at, mut depth) = (2, 1);
    while depth > 0 && at < bytes.len() {
        match bytes[at..] {
            [b'/', b'*', ..] => (at, depth) = (at + 2, depth + 1),
            [b'*', b'/', ..] => (at, depth) = (at + 2, depth - 1),
            _ => at += 1,
        }
    }
    at
}

fn string_length(bytes: &[u8], mut at: usize) -> usize {
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn raw_string_length(text: &str, prefix: usize, hashes: usize) -> usize {
    let start = prefix + hashes + 1;
    let end = format!("\"{}", "#".repeat(hashes));
    text[start..].find(&end).map_or(text.len(), |found| start + found + end.len())
}
