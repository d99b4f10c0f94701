//! The envelope of a message that was too long to keep, read from what is left of its two ends.

use crate::wire::{lines::Oversize, scan};

/// The line as far as it is known: a message of the same kind, method and id without params or with an empty
/// result. Empty where neither end says what it was.
pub(crate) fn envelope(line: &Oversize) -> Vec<u8> {
    let mut known = Known::default();
    let whole = scan::trim(&line.head);
    if line.head.get(whole.start) == Some(&b'{') {
        // Ends with an error at the value that was cut.
        scan::members(&line.head, whole.start).map_while(Result::ok).for_each(|member| {
            known.member(member.name.of(&line.head), member.value.of(&line.head));
        });
        known.cut_name(&line.head, whole.start);
        known.tail(&line.tail);
    }
    known.line()
}

#[derive(Default)]
struct Known {
    id: Option<Vec<u8>>,
    method: Option<Vec<u8>>,
    is_result: bool,
    is_error: bool,
}

impl Known {
    fn member(&mut self, name: &[u8], value: &[u8]) {
        match scan::unescape(name).as_ref() {
            b"id" if value.len() <= 256 && scan::is_json(value) => self.id = Some(value.to_vec()),
            b"method" if value.first() == Some(&b'"') => self.method = Some(value.to_vec()),
            name => self.outcome(name),
        }
    }

    fn outcome(&mut self, name: &[u8]) {
        self.is_result |= name == b"result";
        self.is_error |= name == b"error";
    }

    /// The name of the member whose value the head has only the beginning of.
    fn cut_name(&mut self, head: &[u8], start: usize) {
        let behind =
            scan::members(head, start).map_while(Result::ok).last().map_or(start, |last| last.value.end);
        let quote = scan::skip_space(head, scan::skip_space(head, behind) + 1);
        if head.get(quote) == Some(&b'"')
            && let Ok(end) = scan::skip_value(head, quote)
        {
            self.outcome(&scan::unescape(&head[quote..end]));
        }
    }

    /// The members behind the long value: the longest end of the tail that reads as the rest of an object.
    fn tail(&mut self, tail: &[u8]) {
        let whole = scan::trim(tail);
        let text = &tail[..whole.end];
        for comma in memchr::memchr_iter(b',', text) {
            // The scanner begins behind an opening brace; the comma stands in its place.
            let rest = [b"{", &text[comma + 1..]].concat();
            let mut members = scan::members(&rest, 0);
            let read: Result<Vec<_>, _> = members.by_ref().collect();
            if let Ok(read) = read
                && members.end() == rest.len()
            {
                read.iter().for_each(|member| self.member(member.name.of(&rest), member.value.of(&rest)));
                return;
            }
        }
    }

    fn line(&self) -> Vec<u8> {
        let outcome: &[u8] = match (&self.method, self.is_error, self.is_result) {
            (Some(_), ..) => b"",
            (None, true, _) => b",\"error\":{}",
            (None, false, true) => b",\"result\":{}",
            (None, false, false) => return Vec::new(),
        };
        let member = |name: &str, value: &Option<Vec<u8>>| match value {
            Some(value) => [b",\"", name.as_bytes(), b"\":", value].concat(),
            None => Vec::new(),
        };
        let (id, method) = (member("id", &self.id), member("method", &self.method));
        [b"{\"jsonrpc\":\"2.0\"", &id[..], &method[..], outcome, b"}"].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn envelope_of(line: &str) -> String {
        let bytes = line.as_bytes();
        let edge = bytes.len().min(40);
        let (head, tail) = (bytes[..edge].to_vec(), bytes[bytes.len() - edge..].to_vec());
        let line = Oversize { size: bytes.len() as u64, sha256: [0; 32], head, tail };
        String::from_utf8(envelope(&line)).unwrap()
    }

    #[test]
    fn the_envelope_is_read_wherever_its_members_stand() {
        let long = "x".repeat(100);
        let check =
            |line: &str, known: &str| assert_eq!(envelope_of(&line.replace('…', &long)), known, "{line}");
        check(r#"{"jsonrpc":"2.0","id":7,"result":{"a":"…"}}"#, r#"{"jsonrpc":"2.0","id":7,"result":{}}"#);
        check(
            r#"{"result":{"a":"…,","b":{}},"jsonrpc":"2.0","id":"7"}"#,
            r#"{"jsonrpc":"2.0","id":"7","result":{}}"#,
        );
        check(r#"{"error":{"a":"…"}, "id" : null }"#, r#"{"jsonrpc":"2.0","id":null,"error":{}}"#);
        check(r#"{"method":"x/y","params":{"a":"…"},"id":1}"#, r#"{"jsonrpc":"2.0","id":1,"method":"x/y"}"#);
        check(r#"{"jsonrpc":"2.0","method":"x","params":["…"]}"#, r#"{"jsonrpc":"2.0","method":"x"}"#);
        check("a log line …, \"id\":1}", "");
        check("{…", "");
        check("", "");
    }
}
