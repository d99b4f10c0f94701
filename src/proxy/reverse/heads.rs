//! Heads as they are recorded, and addresses in them.

use hyper::{HeaderMap, header::HeaderValue};

use super::{item::Heads, metadata};
use crate::{
    transport::http::{
        coding::Decoder,
        headers::{Hop, Onward, codings},
        origin::Origin,
    },
    wire::http,
};

/// The server answers only in another protocol, and says in which (RFC 9110, 15.5.22).
pub(super) const UPGRADE_REQUIRED: u16 = 426;

/// A request's headers as they are recorded; `ours` is our origin as its client knows it.
pub(super) fn recorded_request(headers: &[(&str, &[u8])], ours: impl Fn() -> String) -> Heads {
    // Hardly any value is an address.
    let is_ours = |value: &[u8]| value.starts_with(b"http") && value == ours().as_bytes();
    recorded(headers, |heads, name, value| match name {
        "host" => {}
        _ if is_ours(value) => heads.push(name, http::ORIGIN.as_bytes()),
        _ => heads.push(name, value),
    })
}

/// A response's headers as they are recorded: a body that was decoded is no longer what they say of it.
pub(super) fn recorded_response(status: u16, headers: &[(&str, &[u8])], upstream: &Origin) -> Heads {
    let is_decoded = Decoder::of_codings(codings(headers)).is_some();
    let mut heads = recorded(headers, |heads, name, value| match name {
        "content-encoding" | "content-length" if is_decoded => {}
        _ => match moved(name, value, upstream, || http::ORIGIN.to_owned()) {
            Some(moved) => heads.push(name, &moved),
            None => heads.push(name, value),
        },
    });
    if status == UPGRADE_REQUIRED {
        let wanted = headers.iter().filter(|(name, _)| *name == "upgrade");
        wanted.for_each(|(name, value)| heads.push(name, value));
    }
    heads
}

/// What goes on of them, each as `push` has it.
fn recorded(headers: &[(&str, &[u8])], push: impl Fn(&mut Heads, &str, &[u8])) -> Heads {
    let mut hop = Hop::of(headers);
    let mut heads = Heads::default();
    for &(name, value) in headers {
        match hop.onward(name) {
            Onward::Framing => heads.push(name, value),
            Onward::Close => heads.push(name, b"close"),
            Onward::Goes => push(&mut heads, name, value),
            Onward::Ends => {}
        }
    }
    heads
}

/// The value of a header that names the server's origin, with another one in its place. The name is in lower case.
pub(super) fn moved(
    name: &str,
    value: &[u8],
    upstream: &Origin,
    by: impl FnOnce() -> String,
) -> Option<Vec<u8>> {
    match name {
        "location" => upstream.replace(value, &by()),
        "www-authenticate" => metadata::rewrite_challenge(value, upstream, &by()),
        _ => None,
    }
}

/// The values of a header.
pub(super) fn values<'a>(headers: &'a HeaderMap, name: &str) -> impl Iterator<Item = &'a [u8]> {
    headers.get_all(name).iter().map(HeaderValue::as_bytes)
}
