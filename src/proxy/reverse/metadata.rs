//! Where a server's tokens come from (RFC 9728): the challenge that names the metadata document, and its `resource`.
//!
//! A client refuses a document whose `resource` is not the address it talks to, so where the document is asked of us,
//! its `resource` is ours; and where the challenge sends the client to the document at the server's own address, it
//! sends it to us instead. A document at any other address stays out of it: both are changed or neither is.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
};

use hyper::{
    Response,
    body::{Body, Incoming},
    header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue},
    http::response,
};

use super::{super::lock, Cut, connection::Link, is_reset, item::Item, response::ResponseBody, tape::Lane};
use crate::{
    traffic::Direction,
    transport::http::{
        body::next_data,
        headers::{is_coded, is_type},
        origin::Origin,
    },
    wire::{http, lines::Unfinished, scan},
};

/// Where the documents lie unless a challenge says otherwise.
pub(super) const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// The longest document that is one.
pub(super) const LONGEST: usize = 1 << 20;

/// How many documents' places are kept.
const MOST: usize = 1000;

const PARAMETER: &[u8] = b"resource_metadata";

/// A challenge with the document's address on another origin, where it lay on the server's.
pub(super) fn rewrite_challenge(challenge: &[u8], upstream: &Origin, by: &str) -> Option<Vec<u8>> {
    let at = address_in(challenge)?;
    let (before, address) = challenge.split_at(at);
    upstream.replace(address, by).map(|address| [before, &address].concat())
}

/// Where in a challenge the document's address begins.
fn address_in(challenge: &[u8]) -> Option<usize> {
    let lower = challenge.to_ascii_lowercase();
    let mut at = memchr::memmem::find(&lower, PARAMETER)? + PARAMETER.len();
    let skip = |at: usize, byte: u8| challenge[at..].iter().take_while(|&&found| found == byte).count();
    at += skip(at, b' ');
    if challenge.get(at) != Some(&b'=') {
        return None;
    }
    at += 1;
    at += skip(at, b' ');
    Some(at + usize::from(challenge.get(at) == Some(&b'"')))
}

/// Remembers which of the server's documents challenges name.
pub(super) fn note_challenges<'a>(
    challenges: impl Iterator<Item = &'a [u8]>,
    upstream: &Origin,
    documents: &Mutex<HashSet<Vec<u8>>>,
) {
    for challenge in challenges {
        let Some(rest) = address_in(challenge).and_then(|at| upstream.strip(&challenge[at..])) else {
            continue;
        };
        let end = rest.iter().position(|byte| matches!(byte, b'"' | b'?' | b'#' | b',' | b' '));
        let path = &rest[..end.unwrap_or(rest.len())];
        let mut documents = lock(documents);
        if documents.len() < MOST {
            documents.insert(path.to_vec());
        }
    }
}

/// The document with another origin in its `resource`, where that was on the server's.
pub(super) fn rewrite_document(document: &[u8], upstream: &Origin, by: &str) -> Option<Vec<u8>> {
    let whole = scan::trim(document);
    if document.get(whole.start) != Some(&b'{') {
        return None;
    }
    let members = scan::members(document, whole.start).map_while(Result::ok);
    let resource = members
        .filter(|member| scan::unescape(member.name.of(document)).as_ref() == b"resource")
        .last()?
        .value;
    let value = resource.of(document);
    if value.first() != Some(&b'"') {
        return None;
    }
    let address = upstream.replace(&scan::unescape(value), by)?;
    let address = serde_json::to_string(&String::from_utf8(address).ok()?).ok()?;
    Some([&document[..resource.start], address.as_bytes(), &document[resource.end..]].concat())
}

/// Passes a document on when it is whole, since its length may change.
pub(super) async fn pass_back(
    mut head: response::Parts,
    mut body: Incoming,
    ours: &str,
    lane: &Arc<Lane>,
    link: &Arc<Link>,
) -> Result<Response<ResponseBody>, Cut> {
    let is_document = is_type(head.headers.get(CONTENT_TYPE), "application/json")
        && !is_coded(&head.headers)
        && body.size_hint().upper().is_none_or(|size| size <= LONGEST as u64);
    if !is_document {
        let body = ResponseBody::passing(body, Arc::clone(lane), Arc::clone(link), &head.headers, None)?;
        return Ok(Response::from_parts(head, body));
    }
    let mut document = Unfinished::new(LONGEST);
    loop {
        match next_data(&mut body).await {
            Ok(Some(data)) => document.keep(&data),
            Ok(None) => break,
            Err(error) => {
                let reset = is_reset(&error);
                lane.note(|| Item::Partial(Direction::ToClient, document.so_far().to_vec()));
                lane.note(|| Item::Broken { reset });
                let _ = lane.write();
                if reset {
                    link.control.reset_at_end();
                }
                return Err(Cut);
            }
        }
    }
    // Only a chunked document can be so long, and a document of a megabyte is an attack.
    let document = document.end().map_err(|_| Cut)?;
    let upstream = &link.front.upstream.origin;
    lane.note(|| {
        let recorded = rewrite_document(&document, upstream, http::ORIGIN);
        Item::ResponseBody(recorded.unwrap_or_else(|| document.clone()))
    });
    lane.note(|| Item::End);
    if !lane.write() {
        return Err(Cut);
    }
    link.control.awaits_head();
    let passed = rewrite_document(&document, upstream, ours).unwrap_or(document);
    if let Some(length) = head.headers.get_mut(CONTENT_LENGTH) {
        *length = HeaderValue::from(passed.len());
    }
    Ok(Response::from_parts(head, ResponseBody::Own(Some(passed.into()))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upstream() -> Origin {
        Origin::new(false, "127.0.0.1:9000").unwrap()
    }

    #[test]
    fn a_challenge_names_the_document_at_our_address() {
        let rewritten = |challenge: &str| {
            let rewritten = rewrite_challenge(challenge.as_bytes(), &upstream(), "http://localhost:1")?;
            Some(String::from_utf8(rewritten).unwrap())
        };
        let head = r#"Bearer realm="MCP, \"x\"", error="invalid_token", "#;
        for (spelled, expected) in [
            (
                r#"resource_metadata="http://127.0.0.1:9000/.well-known/x", scope="a b""#,
                r#"resource_metadata="http://localhost:1/.well-known/x", scope="a b""#,
            ),
            ("Resource_Metadata = http://127.0.0.1:9000/x", "Resource_Metadata = http://localhost:1/x"),
            (r#"resource_metadata="http://127.0.0.1:9000""#, r#"resource_metadata="http://localhost:1""#),
        ] {
            assert_eq!(rewritten(&format!("{head}{spelled}")), Some(format!("{head}{expected}")));
        }
        for other in
            ["Bearer", r#"Bearer resource_metadata="https://auth.example/x""#, "Basic resource_metadata"]
        {
            assert_eq!(rewritten(other), None, "{other}");
        }
    }

    #[test]
    fn a_documents_resource_is_the_address_that_was_asked() {
        let rewritten = |document: &str| {
            let rewritten = rewrite_document(document.as_bytes(), &upstream(), "http://localhost:1")?;
            Some(String::from_utf8(rewritten).unwrap())
        };
        assert_eq!(
            rewritten(r#" {"a": {"resource": 1}, "resource": "http:\/\/127.0.0.1:9000\/mcp", "b": 1e400}"#),
            Some(r#" {"a": {"resource": 1}, "resource": "http://localhost:1/mcp", "b": 1e400}"#.to_owned())
        );
        for other in [r#"{"resource":"https://public.example/mcp"}"#, r#"{"resource":1}"#, "[]", "", "{"] {
            assert_eq!(rewritten(other), None, "{other}");
        }
    }
}
