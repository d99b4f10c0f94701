//! A request that is passed on here, and how it goes on.

use std::{borrow::Cow, sync::Arc};

use hyper::Method;

use super::{
    super::{Front, Upstream, heads::recorded_request, item::Heads},
    Known, Ways,
    form::Form,
};
use crate::{
    transport::http::{
        MAX_HEAD,
        headers::{Hop, Onward, codings, is_coding},
        plain::{self, Fields, Request, RequestHead},
    },
    wire::http::path_of,
};

/// What stands at the beginning of what a client has sent.
pub(super) enum Next {
    /// A request that is passed on here; how its head goes on is written already.
    Asked(Asked),
    /// A part of a head.
    Part,
    /// What is not for here.
    Other,
}

/// What of a request matters behind its head.
pub(super) struct Asked {
    /// Method, target and headers, where they are recorded.
    pub(super) noted: Option<(Method, Vec<u8>, Arc<Heads>)>,
    /// Its body is compressed.
    pub(super) is_coded: bool,
    /// How many bytes the head has.
    pub(super) length: usize,
    pub(super) body: Form,
    pub(super) bearing: Bearing,
}

/// What of a request bears on its response.
pub(super) struct Bearing {
    /// Where it is a `GET`, of what path.
    pub(super) got: Option<String>,
    pub(super) is_head: bool,
    /// The client closes the connection behind the response.
    pub(super) closes: bool,
    /// It asks for another protocol.
    pub(super) upgrades: bool,
}

/// Reads the head of a request.
pub(super) fn read(bytes: &[u8], ways: &mut Ways, front: &Front) -> Next {
    let Ways { to_server, request: Known { last, recorded }, host, .. } = ways;
    let head = match plain::any_request(bytes, last) {
        Request::Head(head) if head.method != "CONNECT" => head,
        Request::Part if bytes.len() <= MAX_HEAD => return Next::Part,
        Request::Head(_) | Request::Part | Request::Unknown => return Next::Other,
    };
    recorded.take_if(|(of, _)| *of != head.number);
    let mut hop = Hop::of(&head.fields);
    let upgrades = upgrades(&head, &hop);
    if !is_served(&head, host, front)
        || !write(&head, bytes, (&mut hop, upgrades), &front.upstream, &mut to_server.head)
    {
        to_server.head.clear();
        return Next::Other;
    }
    let noted = front.tape.records().then(|| {
        let ours = || front.origin(Some(host));
        // It was read as one.
        let method = Method::from_bytes(head.method.as_bytes()).unwrap_or_default();
        let heads = || Arc::new(recorded_request(&grouped(&head.fields), ours));
        let (_, heads) = recorded.get_or_insert_with(|| (head.number, heads()));
        (method, head.target.as_bytes().to_vec(), Arc::clone(heads))
    });
    let path = || path_of(head.target).to_owned();
    Next::Asked(Asked {
        noted,
        is_coded: codings(&head.fields).any(is_coding),
        length: head.length,
        body: Form::of_request(&head),
        bearing: Bearing {
            got: (head.method == "GET").then(path),
            is_head: head.method == "HEAD",
            closes: hop.closes(),
            upgrades,
        },
    })
}

/// Whether a request asks for another protocol that may be spoken through us. One for HTTP/2 says that HTTP/1.1 will do,
/// and that can be recorded.
fn upgrades(head: &RequestHead<'_>, hop: &Hop<'_>) -> bool {
    let mut protocols = head.fields.iter().filter(|(name, _)| *name == "upgrade").map(|(_, value)| *value);
    hop.has_option("upgrade")
        && !hop.closes()
        && !head.is_chunked
        && head.body.unwrap_or_default() == 0
        && protocols.next().is_some_and(|value| !value.is_empty() && !value.eq_ignore_ascii_case(b"h2c"))
        && protocols.next().is_none()
}

/// Whether its client is served; `host` is what the one before named, and now what this one does.
fn is_served(head: &RequestHead<'_>, host: &mut Vec<u8>, front: &Front) -> bool {
    let (mut hosts, mut named) = (0, None);
    for &(name, value) in &head.fields {
        match name {
            "host" => (hosts, named) = (hosts + 1, Some(value)),
            "origin" if front.guard.check(None, Some(value)).is_err() => return false,
            _ => {}
        }
    }
    let Some(named) = named.filter(|_| hosts == 1) else { return false };
    // It is nearly always the same.
    let is_known = !host.is_empty() && *host == named;
    if front.guard.check(Some(named).filter(|_| !is_known), None).is_err() {
        return false;
    }
    if !is_known {
        host.clear();
        host.extend_from_slice(named);
    }
    true
}

/// Appends the head as the server is to have it: its own authority as the host, and no coding that we could not read.
/// Whether it can be.
fn write(
    head: &RequestHead<'_>,
    bytes: &[u8],
    (hop, upgrades): (&mut Hop<'_>, bool),
    upstream: &Upstream,
    out: &mut Vec<u8>,
) -> bool {
    let mut rest = &bytes[..head.length];
    let is_line = |line: &[u8]| line.ends_with(b"\r\n");
    let first = plain::take_line(&mut rest, head.target.len());
    if !(first.starts_with(head.method.as_bytes()) && is_line(first)) {
        return false;
    }
    out.extend_from_slice(first);
    let (mut has_coding, mut has_upgrade, mut placed) = (false, false, vec![false; upstream.headers.len()]);
    for &(name, value) in &head.fields {
        let line = plain::take_line(&mut rest, name.len() + value.len());
        if !is_line(line) || line.get(name.len()) != Some(&b':') {
            return false;
        }
        let spelled = &line[..name.len()];
        match hop.onward(name) {
            Onward::Goes => {}
            Onward::Framing => {
                out.extend_from_slice(line);
                continue;
            }
            Onward::Close => {
                put(out, spelled, b"close");
                continue;
            }
            Onward::Ends => {
                match name {
                    "upgrade" if upgrades => out.extend_from_slice(line),
                    "connection" if upgrades && !std::mem::replace(&mut has_upgrade, true) => {
                        put(out, spelled, b"Upgrade");
                    }
                    _ => {}
                }
                continue;
            }
        }
        let ours = upstream.headers.iter().rposition(|(ours, _)| ours.as_str() == name);
        let value = match (ours, name) {
            // Ours stands where the first of the client's did.
            (Some(ours), _) => {
                let is_first = !std::mem::replace(&mut placed[ours], true);
                Some(upstream.headers[ours].1.as_bytes()).filter(|_| is_first)
            }
            (None, "host") => Some(upstream.host.as_bytes()),
            (None, "accept-encoding") => {
                Some(&b"identity"[..]).filter(|_| !std::mem::replace(&mut has_coding, true))
            }
            (None, _) => {
                out.extend_from_slice(line);
                continue;
            }
        };
        if let Some(value) = value {
            put(out, spelled, value);
        }
    }
    for (place, (name, value)) in upstream.headers.iter().enumerate() {
        let is_last = !upstream.headers[place + 1..].iter().any(|(later, _)| later == name);
        if is_last && !placed[place] {
            put(out, name.as_str().as_bytes(), value.as_bytes());
        }
    }
    out.extend_from_slice(b"\r\n");
    true
}

/// Appends a header.
pub(super) fn put(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// The same headers with those of one name together, as hyper has them and as they are recorded.
pub(super) fn grouped<'a, 'b>(fields: &'b Fields<'a>) -> Cow<'b, [(&'a str, &'a [u8])]> {
    let is_new = |(at, (name, _)): (usize, &(&str, _))| fields[..at].iter().all(|(other, _)| other != name);
    if fields.iter().enumerate().all(is_new) {
        return Cow::Borrowed(fields);
    }
    let mut grouped: Fields<'a> = Vec::with_capacity(fields.len());
    for &(name, value) in fields {
        let behind = grouped.iter().rposition(|(other, _)| *other == name);
        grouped.insert(behind.map_or(grouped.len(), |at| at + 1), (name, value));
    }
    Cow::Owned(grouped)
}
