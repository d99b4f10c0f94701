//! What counts of the beginning of a body whose rest never came: it is no JSON, so it has no canonical form.

use crate::wire::scan;

/// The volatile value below `params`.
const TOKEN: [&[u8]; 3] = [b"params", b"_meta", b"progressToken"];

/// What a body begins with.
#[derive(Debug)]
pub(in crate::replay) struct Beginning {
    /// The text without white space between values, and with one sign for its id and its progress token. That of the
    /// beginning of a text is the beginning of that of the text.
    pub form: Vec<u8>,
    /// It tells what is asked, so that what goes on behind it asks the same, or it is no message, whose body does not
    /// count.
    pub tells: bool,
}

impl Beginning {
    pub(in crate::replay) fn of(text: &[u8]) -> Self {
        let text = text.trim_ascii_start();
        if text.first() != Some(&b'{') {
            let tells = text.first().is_some_and(|first| *first != b'[');
            return Self { form: text.to_vec(), tells };
        }
        let mut walk = Walk {
            text,
            at: 0,
            depth: 0,
            keys: [&[]; 3],
            is_object: [false; 4],
            is_name: false,
            method: None,
            is_named: false,
        };
        let mut form = Vec::with_capacity(text.len());
        while walk.at < text.len() {
            walk.step(&mut form);
        }
        Self { form, tells: walk.tells() }
    }
}

/// Where in a text we are; below the third level nothing is looked at.
struct Walk<'a> {
    text: &'a [u8],
    at: usize,
    depth: usize,
    keys: [&'a [u8]; 3],
    is_object: [bool; 4],
    /// The next string is a member's name.
    is_name: bool,
    /// The method, once all of it has come; and whether the tool's name, or what stands for it, has.
    method: Option<&'a [u8]>,
    is_named: bool,
}

impl<'a> Walk<'a> {
    fn step(&mut self, out: &mut Vec<u8>) {
        let byte = self.text[self.at];
        match byte {
            b'"' => {
                let (start, end) = (self.at, self.string_end());
                self.at = end.unwrap_or(self.text.len());
                out.extend_from_slice(&self.text[start..self.at]);
                return self.string(end.map(|end| &self.text[start + 1..end - 1]));
            }
            b'{' | b'[' => {
                self.depth += 1;
                self.is_name = byte == b'{';
                if let Some(is_object) = self.is_object.get_mut(self.depth) {
                    *is_object = self.is_name;
                }
            }
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            b',' => self.is_name = self.is_object.get(self.depth).is_some_and(|is_object| *is_object),
            _ => {}
        }
        self.at += 1;
        if !byte.is_ascii_whitespace() {
            out.push(byte);
        }
        if byte == b':' && self.is_volatile() {
            self.skip_value(out);
        }
    }

    /// Takes in what stands in the string that has just gone by, if that has ended.
    fn string(&mut self, inside: Option<&'a [u8]>) {
        if std::mem::take(&mut self.is_name) {
            if let Some(key) = self.depth.checked_sub(1).and_then(|level| self.keys.get_mut(level)) {
                *key = inside.unwrap_or_default();
            }
        } else if self.depth == 1 && self.keys[0] == b"method" {
            self.method = inside;
        } else if self.depth == 2 && self.keys[0] == b"params" && matches!(self.keys[1], b"name" | b"uri") {
            self.is_named |= inside.is_some();
        }
    }

    /// Whether the method has come, and a part of what it asks.
    fn tells(&self) -> bool {
        let is_in_params = self.depth > 1 && self.keys[0] == b"params";
        let wants_name = |method: &[u8]| matches!(method, b"tools/call" | b"prompts/get" | b"resources/read");
        let is_past_name = self.is_named && self.keys[1] == b"arguments" && self.depth > 2;
        match self.method {
            Some(b"resources/read") => is_in_params && self.is_named,
            Some(method) if wants_name(method) => is_in_params && is_past_name,
            Some(_) => is_in_params && !self.keys[1].is_empty(),
            None => false,
        }
    }

    fn is_volatile(&self) -> bool {
        match self.depth {
            1 => self.keys[0] == b"id",
            3 => self.is_object[2] && self.is_object[3] && self.keys == TOKEN,
            _ => false,
        }
    }

    /// Skips a string or a number, as far as it has come.
    fn skip_value(&mut self, out: &mut Vec<u8>) {
        let spaces = self.text[self.at..].iter().take_while(|byte| byte.is_ascii_whitespace());
        self.at += spaces.count();
        match self.text.get(self.at) {
            None | Some(b'{' | b'[') => return,
            Some(b'"') => self.at = self.string_end().unwrap_or(self.text.len()),
            Some(_) => {
                let is_value =
                    |byte: &&u8| !matches!(byte, b',' | b'}' | b']') && !byte.is_ascii_whitespace();
                self.at += self.text[self.at..].iter().take_while(is_value).count();
            }
        }
        out.push(b'_');
    }

    /// Behind the string that begins here; none where the text ends before.
    fn string_end(&self) -> Option<usize> {
        scan::skip_string(self.text, self.at).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beginning_of_a_text_has_a_beginning_of_its_form_wherever_it_is_cut() {
        let text = r#"  { "jsonrpc": "2.0", "id" : "a\"7", "method": "x", "params": {"a": [1, {"id": 5, "b": " \\"}], "_meta": {"progressToken": 17, "id": 4}, "arguments": {"progressToken": 2}} } "#;
        let other = r#"{"jsonrpc":"2.0","id":12345,"method":"x","params":{"a":[1,{"id":5,"b":" \\"}],"_meta":{"progressToken":"p","id":4},"arguments":{"progressToken":2}}}"#;
        let form = r#"{"jsonrpc":"2.0","id":_,"method":"x","params":{"a":[1,{"id":5,"b":" \\"}],"_meta":{"progressToken":_,"id":4},"arguments":{"progressToken":2}}}"#;
        assert_eq!(String::from_utf8(Beginning::of(text.as_bytes()).form).unwrap(), form);
        for text in [text, other] {
            for cut in 0..=text.len() {
                let part = Beginning::of(&text.as_bytes()[..cut]).form;
                assert!(form.as_bytes().starts_with(&part), "{cut}: {}", part.escape_ascii());
            }
        }
    }

    #[test]
    fn what_is_no_object_stays_as_it_is() {
        for (text, tells) in [("a=1 &id=2", true), ("[{\"id\": 1}]", false), ("", false)] {
            let Beginning { form, tells: told } = Beginning::of(text.as_bytes());
            assert_eq!((&*form, told), (text.as_bytes(), tells));
        }
        for odd in ["{]}:,\"", "{\"id\":", "{\"id\":\"\\", "{\"a\\", "{:,}}}{", "{\"id\":[1]}"] {
            assert!(!Beginning::of(odd.as_bytes()).tells, "{odd}");
        }
    }

    #[test]
    fn a_message_tells_what_it_asks_once_its_method_and_a_part_of_its_params_have_come() {
        for (text, from) in [
            (r#"{"id":1,"method":"tools/call","params":{"name":"a","arguments":{"b":"c"#, r#"arguments":{"#),
            (r#"{"id":1,"method":"tools/call","params":{"arguments":{"b":"c"},"name":"a"#, "!"),
            (r#"{"id":1,"method":"resources/read","params":{"uri":"a:b"}"#, r#"a:b""#),
            (r#"{"id":1,"method":"x","params":{"name":"a"#, r#""name""#),
            (r#"{"id":1,"params":{"name":"a","arguments":{}}"#, "!"),
        ] {
            let first = text.find(from).map_or(usize::MAX, |at| at + from.len());
            for cut in 0..text.len() {
                assert_eq!(Beginning::of(&text.as_bytes()[..cut]).tells, cut >= first, "{}", &text[..cut]);
            }
        }
    }
}
