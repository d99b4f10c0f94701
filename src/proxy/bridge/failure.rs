//! What a client hears where its request has no answer: an error in the words of JSON-RPC.

use std::fmt;

use hyper::{HeaderMap, StatusCode, header::CONTENT_TYPE};

use crate::{
    transport::http::{connect::ConnectError, origin::Origin},
    wire::{
        jsonrpc::{self, Message},
        scan,
    },
};

/// How much of a body is told.
const MOST: usize = 500;

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Failure {
    /// There is no connection.
    Unreachable(ConnectError),
    /// The connection ended before the answer did.
    Broken(String),
    /// The stream ended in good order, without the answer.
    Ended,
    /// An answer of HTTP, and none of JSON-RPC.
    Http { status: StatusCode, content_type: String, body: String },
    /// A response of JSON-RPC, and none to what was asked.
    Stranger { status: StatusCode, id: Option<String> },
    /// A redirect that is not followed.
    Elsewhere { status: StatusCode, location: String },
    /// The answer is larger than any that is taken.
    TooLarge(usize),
    /// The old transport's stream is over.
    StreamOver,
}

impl Failure {
    pub(super) fn http(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let content_type = headers.get(CONTENT_TYPE).map(|value| text(value.as_bytes())).unwrap_or_default();
        let body = text(&body[..body.len().min(4 * MOST)]);
        let cut = body.char_indices().nth(MOST).map_or(body.len(), |(at, _)| at);
        Self::Http { status, content_type, body: body[..cut].to_owned() }
    }

    /// What answers something else.
    pub(super) fn stranger(status: StatusCode, body: &[u8]) -> Self {
        let id = Message::read(body).id().map(|id| String::from_utf8_lossy(id).chars().take(MOST).collect());
        Self::Stranger { status, id }
    }

    /// The answer to a request with this id.
    pub(super) fn line(&self, id: &[u8], origin: &Origin) -> Vec<u8> {
        let mut data = b"{\"source\":\"tapedeck\"".to_vec();
        match self {
            Self::Http { status, content_type, body } => {
                data.extend_from_slice(format!(",\"status\":{}", status.as_u16()).as_bytes());
                for (name, text) in [("contentType", content_type), ("body", body)] {
                    if !text.is_empty() {
                        data.extend_from_slice(format!(",\"{name}\":").as_bytes());
                        scan::push_string(text, &mut data);
                    }
                }
            }
            Self::Stranger { status, .. } => {
                data.extend_from_slice(format!(",\"status\":{}", status.as_u16()).as_bytes());
            }
            Self::Elsewhere { status, location } => {
                data.extend_from_slice(format!(",\"status\":{},\"location\":", status.as_u16()).as_bytes());
                scan::push_string(location, &mut data);
            }
            _ => {}
        }
        data.push(b'}');
        let data = String::from_utf8_lossy(&data);
        jsonrpc::error(id, jsonrpc::NO_ANSWER, &self.told(origin).to_string(), Some(&data))
    }

    /// The sentence.
    pub(super) fn told<'a>(&'a self, origin: &'a Origin) -> impl fmt::Display + 'a {
        Told(self, origin)
    }
}

struct Told<'a>(&'a Failure, &'a Origin);

impl fmt::Display for Told<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(failure, origin) = self;
        match failure {
            // It names the server itself.
            Failure::Unreachable(error) => error.fmt(f),
            Failure::Broken(error) => {
                write!(f, "the connection to the server at {origin} broke before the answer came ({error})")
            }
            Failure::Ended => write!(f, "the server at {origin} ended its stream before the answer came"),
            Failure::Http { status, content_type, .. } => {
                write!(f, "the server at {origin} answered with HTTP {status}")?;
                match status.as_u16() {
                    401 => {
                        f.write_str("; give what it asks for as --header 'Authorization: Bearer env:NAME'")
                    }
                    404 => f.write_str("; its session is over, or --url is not the address of its endpoint"),
                    405 => f.write_str("; --url is not the address of its endpoint"),
                    200..=299 if content_type.is_empty() => f.write_str(" and no JSON-RPC message"),
                    200..=299 => write!(f, " and no JSON-RPC message (`{content_type}`)"),
                    _ => Ok(()),
                }
            }
            Failure::Stranger { status, id } => {
                write!(
                    f,
                    "the server at {origin} answered with HTTP {status} and nothing that answers this request"
                )?;
                match id {
                    Some(id) => write!(f, " (the id of what came is {id})"),
                    None => Ok(()),
                }
            }
            Failure::Elsewhere { status, location } => write!(
                f,
                "the server at {origin} answered with HTTP {status} and sends on to {location}; where that is the server, give it as --url"
            ),
            Failure::TooLarge(limit) => {
                write!(f, "the answer of the server at {origin} is compressed and larger than {limit} bytes")
            }
            Failure::StreamOver => {
                write!(f, "the server at {origin} ended the stream that its answers come on (HTTP+SSE)")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::jsonrpc::Kind;

    #[test]
    fn an_error_says_what_came_instead_and_cuts_it() {
        let origin = Origin::new(true, "mcp.example").unwrap();
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, "text/html".parse().unwrap());
        let body = "é\"\n".repeat(400);
        let failure = Failure::http(StatusCode::UNAUTHORIZED, &headers, body.as_bytes());
        let line = failure.line(b"\"a\"", &origin);
        let message = Message::read(&line);
        assert_eq!((message.kind, message.id()), (Kind::Error, Some(&b"\"a\""[..])));
        let error = std::str::from_utf8(message.outcome().unwrap()).unwrap();
        assert!(
            error.starts_with(
                r#"{"code":-33001,"message":"the server at https://mcp.example answered with HTTP 401 Unauthorized; give"#
            ),
            "{error}"
        );
        assert!(error.contains(r#""status":401,"contentType":"text/html","body":"é\"\n"#), "{error}");
        assert!(error.len() < 1500 && mcp_is_json(&line), "{error}");
    }

    fn mcp_is_json(line: &[u8]) -> bool {
        scan::is_json(line)
    }
}
