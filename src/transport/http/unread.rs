//! What a client is told whose request hyper could not read: that answers with a status and nothing else.

use super::{MAX_HEAD, MAX_HEADERS};

/// What is said in the place of what hyper writes, if that is its answer to a head that it could not read: the sentence,
/// and the response with it.
pub(super) fn refusal(written: &[u8]) -> Option<(String, Vec<u8>)> {
    let head = written.strip_suffix(b"\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")?;
    let line = std::str::from_utf8(head.strip_prefix(b"HTTP/1.1 ")?).ok()?;
    let sentence = match line.get(..3)? {
        "400" => {
            "this is no request of HTTP/1.1 that can be read: its method, its target, a line of its head or its \
             version is none, or what it says of its length contradicts itself; send it as RFC 9112 has it"
                .to_owned()
        }
        "414" => "the target of this request is too long; send a shorter one".to_owned(),
        "431" => format!(
            "the head of this request has more than {MAX_HEAD} bytes or {MAX_HEADERS} lines; send a shorter one"
        ),
        _ => return None,
    };
    let sentence = format!("tapedeck: {sentence}");
    let length = sentence.len() + 1;
    let head = format!(
        "HTTP/1.1 {line}\r\nconnection: close\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {length}"
    );
    let response = format!("{head}\r\n\r\n{sentence}\n").into_bytes();
    Some((sentence, response))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_hyper_says_by_itself_is_said_in_other_words() {
        let empty = "\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
        for line in ["400 Bad Request", "414 URI Too Long", "431 Request Header Fields Too Large"] {
            let (sentence, said) = refusal(format!("HTTP/1.1 {line}{empty}").as_bytes()).unwrap();
            let said = String::from_utf8(said).unwrap();
            assert!(said.ends_with(&format!("\r\n\r\n{sentence}\n")), "{said}");
            let (head, body) = said.split_once("\r\n\r\n").unwrap();
            assert!(head.starts_with(&format!("HTTP/1.1 {line}\r\n")), "{said}");
            assert!(head.ends_with(&format!("content-length: {}", body.len())) && body.len() > 40, "{said}");
        }
        for other in [
            format!("HTTP/1.1 404 Not Found{empty}"),
            format!("HTTP/1.1 400 Bad Request\r\na: b{}", &empty[..20]),
            "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n".to_owned(),
            String::new(),
        ] {
            assert_eq!(refusal(other.as_bytes()), None, "{other}");
        }
    }
}
