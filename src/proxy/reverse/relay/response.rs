//! A response's head, and how it and what follows go on.

use std::sync::Arc;

use super::{
    super::{
        Front,
        heads::{UPGRADE_REQUIRED, moved, recorded_response},
        heard::{End, Heard, is_event_stream},
        item::{Heads, Item},
        metadata,
        tape::Lane,
    },
    changed::Changed,
    form::{Form, on_its_way},
    request::{Bearing, grouped, put},
};
use crate::{
    transport::http::{
        chunks::Came,
        headers::{Hop, Onward, codings, is_coding},
        plain::{self, BadResponse, ResponseHead},
        way::{Inbox, Outbox},
    },
    wire::http::is_type,
};

/// A response whose head has come.
pub(super) struct Answer {
    pub(super) body: Body,
    /// The connection ends behind it.
    pub(super) is_last: bool,
    /// From here on both sides speak another protocol.
    pub(super) is_tunnel: bool,
}

/// A body on its way.
pub(super) struct Body {
    pub(super) form: Form,
    heard: Heard,
    /// Where its bytes may not be what the server sends.
    changed: Option<Box<Changed>>,
}

impl Answer {
    /// Notes the head of a final response, whose bytes are `bytes`, and appends it as the client is to have it. `host`
    /// is by what name the client knows us, `recorded` how the last head that was the same is recorded.
    pub(super) fn new(
        head: &ResponseHead<'_>,
        bytes: &[u8],
        bearing: &Bearing,
        (front, host): (&Front, &[u8]),
        (lane, recorded): (&Arc<Lane>, &mut Option<(u64, Arc<Heads>)>),
        out: &mut Vec<u8>,
    ) -> Result<Self, BadResponse> {
        let is_tunnel = head.status == 101 && bearing.upgrades;
        let form = if is_tunnel { Form::ToEnd } else { Form::of_response(head, bearing.is_head)? };
        let values = |name: &'static str| {
            head.fields.iter().filter(move |(other, _)| *other == name).map(|(_, value)| *value)
        };
        let upstream = &front.upstream.origin;
        metadata::note_challenges(values("www-authenticate"), upstream, &front.documents);
        lane.note(|| {
            let heads = || Arc::new(recorded_response(head.status, &grouped(&head.fields), upstream));
            let (_, heads) = recorded.get_or_insert_with(|| (head.number, heads()));
            Item::Response(head.status, Arc::clone(heads))
        });
        let mut hop = Hop::of(&head.fields);
        let stays = !hop.closes() && (head.is_http11 || hop.has_option("keep-alive"));
        let is_last = !stays || bearing.closes || head.status == 101 || matches!(form, Form::ToEnd);
        let codings: Vec<&[u8]> = codings(&head.fields).collect();
        let kind = values("content-type").next();
        let before = out.len();
        let ours = || front.origin(Some(host));
        write(head, bytes, (&mut hop, is_tunnel), |name, value| moved(name, value, upstream, ours), out);
        let has_length = matches!(form, Form::Length(_));
        let mut changed = None;
        let mut names_endpoint = false;
        if let Some(path) = bearing.got.as_deref().filter(|_| !is_tunnel)
            && !codings.iter().any(|coding| is_coding(coding))
        {
            names_endpoint = is_event_stream(kind);
            if names_endpoint && !has_length {
                changed = Some(Box::new(Changed::events(front, &ours())));
            } else if head.status == 200
                && kind.is_some_and(|kind| is_type(kind, "application/json"))
                && front.is_document(path)
            {
                changed = Some(Box::new(Changed::document(out.split_off(before), &form, front, ours())));
            }
        }
        let upstream = names_endpoint.then(|| upstream.clone());
        let heard = match is_tunnel {
            true => Heard::unseen(Arc::clone(lane)),
            false => Heard::new(Arc::clone(lane), has_length, kind, &codings, upstream),
        };
        Ok(Self { body: Body { form, heard, changed }, is_last, is_tunnel })
    }
}

impl Body {
    /// Takes in what stands in `inbox`, and has ready what of it may go on.
    pub(super) fn take_in(&mut self, inbox: &mut Inbox, out: &mut Outbox) -> Came {
        let Self { form, heard, changed } = self;
        let (count, came) = match changed {
            None => form.feed(inbox.unread(), |data| heard.feed(data)),
            Some(changed) => changed.feed(form, heard, inbox.unread(), &mut out.head),
        };
        match changed {
            None => out.behind = count,
            Some(_) => inbox.take(count),
        }
        came
    }

    /// Nobody hears the rest of it.
    pub(super) fn breaks_off(&mut self) {
        self.heard.breaks_off();
    }

    /// Nothing more comes of it.
    pub(super) fn ends(&mut self, end: End, out: &mut Outbox) {
        if let Some(changed) = &mut self.changed {
            changed.finish(end == End::Clean, &mut self.heard, &mut out.head);
        }
        self.heard.ends(end);
    }
}

/// Appends a head as it goes on, with what `moved` gives in the place of values.
fn write(
    head: &ResponseHead<'_>,
    bytes: &[u8],
    (hop, is_tunnel): (&mut Hop<'_>, bool),
    moved: impl Fn(&str, &[u8]) -> Option<Vec<u8>>,
    out: &mut Vec<u8>,
) {
    // Empty lines may stand before it.
    let start = bytes.iter().position(|byte| !matches!(byte, b'\r' | b'\n')).unwrap_or_default();
    let mut rest = &bytes[start..head.length];
    let first = plain::take_line(&mut rest, 0);
    let first = first.strip_suffix(b"\n").unwrap_or(first);
    out.extend_from_slice(first.strip_suffix(b"\r").unwrap_or(first));
    out.extend_from_slice(b"\r\n");
    let is_coded = on_its_way(head).next().is_some();
    let (mut has_length, mut has_upgrade) = (false, false);
    // To another protocol, or to what the server wants instead.
    let names_protocol = is_tunnel || head.status == UPGRADE_REQUIRED && hop.has_option("upgrade");
    for &(name, value) in &head.fields {
        let line = plain::take_line(&mut rest, name.len() + value.len());
        let spelled = &line[..name.len()];
        match hop.onward(name) {
            // The body goes on in what it came in, or what it is in could not be told.
            Onward::Ends if name != "transfer-encoding" && !(names_protocol && name == "upgrade") => {
                // Which without it would be the last one (RFC 9112, 9.3), or no upgrade (RFC 9110, 7.8).
                match name {
                    "connection" if names_protocol && !std::mem::replace(&mut has_upgrade, true) => {
                        put(out, spelled, b"Upgrade");
                    }
                    "connection" if !head.is_http11 && hop.has_option("keep-alive") => {
                        put(out, spelled, b"keep-alive");
                    }
                    _ => {}
                }
                continue;
            }
            Onward::Close => {
                has_upgrade = true;
                put(out, spelled, if names_protocol { b"close, Upgrade" } else { b"close" });
                continue;
            }
            // One length says all, and none beside a coding (RFC 9112, 6.3).
            Onward::Goes if name == "content-length" => {
                if is_coded || std::mem::replace(&mut has_length, true) {
                    continue;
                }
            }
            Onward::Ends | Onward::Framing | Onward::Goes => {}
        }
        match moved(name, value) {
            Some(value) => put(out, spelled, &value),
            None if line.ends_with(b"\r\n") && line.get(name.len()) == Some(&b':') => {
                out.extend_from_slice(line);
            }
            None => put(out, spelled, value),
        }
    }
    out.extend_from_slice(b"\r\n");
}
