//! Requests and responses of HTTP, in sessions and exchanges.
//!
//! Which session a request belongs to:
//!
//! - An `initialize` begins one, once it is answered by a result. What its response calls the session
//!   (`mcp-session-id`) leads later requests there; if it calls it nothing, later requests without that header go there.
//! - A `GET` stream whose first event is `endpoint` begins one of HTTP+SSE; the messages that are posted to the address
//!   in that event belong to it.
//! - All else belongs to one session that has no beginning: requests of the revision 2026-07-28, challenges, metadata.
//!
//! Which exchange a server's message belongs to: what comes as the response to a client message is that message's;
//! what comes on a `GET` stream is filed as on stdio; a `GET` stream that goes on behind an event of a response
//! (F10.4) belongs to that response's exchange. An event with a response that nobody waits for there is the answer to
//! the oldest request of its session and id (F10.5): on a `GET` stream, and in a session that has a name on the stream of
//! a call. All else that comes as a response answers its own request, whole or in part, or nothing: two clients without
//! a session may have the same ids. What is no message stays with the request on whose response it came.
//!
//! An event that comes once more (the same id and data, on a `GET` with `Last-Event-ID`, or to a client that has left and
//! may have come back so) is no second message: it stands where it came first, and the `GET` says that it had it again.

mod heads;
mod over;
mod said;
mod sessions;

use std::{borrow::Cow, collections::BTreeMap};

pub(super) use self::{
    heads::{Heads, is_message_event, request_line},
    sessions::Addresses,
};
use self::{
    heads::{all, method, target},
    sessions::COMMON,
};
use super::{
    Carrier, Content, Fold, Moment,
    filing::{Filed, Way},
    fold::line,
    requests::Owner,
    state::{Delete, Fate},
};
use crate::{
    cassette::{
        journal::FramePlace,
        key,
        model::{On, StreamEnd},
    },
    traffic::{Direction, Event, Payload, RequestHead},
    wire::jsonrpc::{Kind, Message},
};

/// What is under way, and where requests lead.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    under_way: BTreeMap<u32, Lane>,
    /// The exchange that a message began whose head is lost, by its lane, and whether its response was a usual one.
    headless: BTreeMap<u32, (usize, bool)>,
    pub(super) addresses: Addresses,
}

/// A request whose response is not over.
#[derive(Debug)]
struct Lane {
    method: String,
    target: String,
    session_id: Option<Box<[u8]>>,
    last_event_id: Option<Box<[u8]>>,
    /// The moment of the request's head.
    head: Moment,
    carrier: Carrier,
    /// Where it belongs, once that is known.
    role: Option<Role>,
    status: u16,
    is_stream: bool,
    /// Its response has no body, whatever comes behind its head.
    has_none: bool,
    is_modern: bool,
    /// The session that its `initialize` begins if it is answered.
    begins: Option<usize>,
    /// The ids of the events it had, where they may be gone on with.
    event_ids: Vec<Box<[u8]>>,
    /// The ids of those that had come elsewhere before.
    again: Vec<Box<str>>,
    /// Its client has left, and may have come back elsewhere.
    is_left: bool,
    /// A body comes, and says where the request belongs.
    has_body: bool,
    /// What came of the response before that.
    early: Vec<(Event<'static>, FramePlace)>,
}

/// Of a response that comes before its request's body, so many events wait for that.
const MOST_EARLY: usize = 1000;

/// Where a request and its response belong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// They are this exchange.
    Exchange(Owner),
    /// They carry the client's answer to this item.
    Answer(Owner, usize),
    /// They are a `GET` stream, and this exchange.
    Stream(Owner),
    /// They are a `GET` stream, and the first exchange; it goes on with the second one's response.
    Resumed(Owner, Owner),
}

impl Role {
    const fn owner(self) -> Owner {
        match self {
            Self::Exchange(owner)
            | Self::Answer(owner, _)
            | Self::Stream(owner)
            | Self::Resumed(owner, _) => owner,
        }
    }
}

impl Fold {
    pub(super) fn http_event(&mut self, event: &Event<'_>, place: FramePlace) {
        let number = event.lane.0;
        if let Payload::Request(head) = &event.payload {
            let moment = self.moment(event.at, place);
            return self.request(number, head, moment);
        }
        let Some(mut lane) = self.lanes.under_way.remove(&number) else {
            return self.without_head(event, place);
        };
        let stays = match event.direction {
            Direction::ToServer => {
                // A client that leaves says no more.
                let goes_on = event.payload != Payload::Closed || self.catches_up(&mut lane);
                goes_on && self.part_of_request(&mut lane, event, place) && self.catches_up(&mut lane)
            }
            Direction::ToClient if lane.waits_for_body() => {
                lane.early.push((event.clone().into_owned(), place));
                let is_last = matches!(event.payload, Payload::Broken { .. });
                !(is_last || lane.early.len() > MOST_EARLY) || self.catches_up(&mut lane)
            }
            Direction::ToClient => self.part_of_response(&mut lane, event, place),
        };
        if stays {
            self.keep(&lane);
            self.lanes.under_way.insert(number, lane);
        } else {
            self.lets_go(lane);
        }
    }

    fn request(&mut self, number: u32, head: &RequestHead<'_>, moment: Moment) {
        let first = |name| all(&head.headers, name).next().map(Into::into);
        let carrier = Carrier {
            request: moment.place,
            body: None,
            response: None,
            content: Content::Empty,
            partial: None,
            again: Vec::new(),
            until_delete: false,
            end: None,
        };
        let mut lane = Lane {
            method: method(&head.method),
            target: target(&head.target),
            session_id: first("mcp-session-id"),
            last_event_id: first("last-event-id"),
            head: moment,
            carrier,
            role: None,
            status: 0,
            is_stream: false,
            has_none: false,
            is_modern: false,
            begins: None,
            event_ids: Vec::new(),
            again: Vec::new(),
            is_left: false,
            has_body: all(&head.headers, "content-length").any(|length| length != b"0")
                || all(&head.headers, "transfer-encoding").next().is_some(),
            early: Vec::new(),
        };
        // The body of a POST says where it belongs, and the first event of a stream may.
        if lane.method != "POST" && (lane.method != "GET" || self.session_of_header(&lane).is_some()) {
            self.plain(&mut lane);
        }
        self.lanes.under_way.insert(number, lane);
    }

    /// Files what came on a lane whose head is lost: the journal has a gap there, or was damaged. Nothing but the lane
    /// tells whose it is: two clients without a session may have the same ids.
    fn without_head(&mut self, event: &Event<'_>, place: FramePlace) {
        if event.direction == Direction::ToClient {
            match &event.payload {
                Payload::Partial(_) => return,
                Payload::Response(head) => {
                    let known = self.lanes.headless.get_mut(&event.lane.0);
                    return if let Some((_, is_usual)) = known {
                        *is_usual = head.status == 200
                    };
                }
                _ => {}
            }
        }
        let bytes = match &event.payload {
            Payload::SseEvent(sent) if is_message_event(sent) => Some(Cow::Borrowed(&*sent.data)),
            Payload::SseEvent(_) | Payload::Body(_) => Some(Cow::default()),
            payload => line(event.direction, payload),
        };
        let Some(bytes) = bytes else { return };
        let message = Message::read(&bytes);
        let moment = self.moment(event.at, place);
        match event.direction {
            Direction::ToServer => {
                if let Filed::Exchange(exchange) = self.client_message(COMMON, &message, moment) {
                    self.lanes.headless.insert(event.lane.0, (exchange, false));
                }
            }
            Direction::ToClient => {
                let known = self.lanes.headless.get(&event.lane.0).copied();
                let way = match known {
                    Some((exchange, _)) => Way::Own(exchange, Some(On::Get)),
                    None => Way::Stray(Some(On::Get)),
                };
                self.server_message(COMMON, &message, moment, way);
                if let Some((exchange, false)) = known {
                    let state = self.state(Owner { session: COMMON, exchange });
                    (state.http, state.lacks_response) = (Some(Fate::Pending), true);
                }
            }
        }
    }

    /// Takes in what came of a response before its request's body; whether more can come. A server that refuses a
    /// request need not wait for all of it (RFC 9112, 9.3).
    fn catches_up(&mut self, lane: &mut Lane) -> bool {
        let early = std::mem::take(&mut lane.early);
        early.iter().all(|(event, place)| self.part_of_response(lane, event, *place))
    }

    /// Takes in a part of a request; whether more can come.
    fn part_of_request(&mut self, lane: &mut Lane, event: &Event<'_>, place: FramePlace) -> bool {
        let is_post = lane.method == "POST" && lane.role.is_none();
        match &event.payload {
            Payload::Message(_) | Payload::Oversize(_) | Payload::Partial(_) if is_post => {
                // What was cut off of a body is no message of its own.
                let is_whole = |line: &Cow<'_, [u8]>| {
                    !matches!(event.payload, Payload::Partial(_)) || Message::read(line).kind != Kind::Noise
                };
                match line(event.direction, &event.payload).filter(is_whole) {
                    Some(line) => {
                        let moment = self.moment(event.at, place);
                        self.client_posts(lane, &line, moment);
                        if let Cow::Borrowed(line) = line {
                            let message = Message::read(line);
                            self.sessions[lane.owner().session].spelling.observe(event.direction, &message);
                        }
                    }
                    None => self.body(lane, place),
                }
            }
            Payload::Message(_) | Payload::Partial(_) | Payload::Body(_) => self.body(lane, place),
            Payload::Closed => return self.client_left(lane),
            _ => {}
        }
        true
    }

    /// Takes in a part of a response; whether more can come. Only a gap leaves one without a head, but for an end that
    /// came before it.
    fn part_of_response(&mut self, lane: &mut Lane, event: &Event<'_>, place: FramePlace) -> bool {
        let is_headless = lane.carrier.response.is_none()
            && !matches!(event.payload, Payload::Response(_) | Payload::Broken { .. });
        let goes_on = self.takes_of_response(lane, event, place);
        if is_headless && !matches!(lane.role, Some(Role::Answer(..)) | None) {
            let owner = lane.owner();
            // There the answer comes on the session's stream.
            let is_elsewhere = self.sessions[owner.session].session.is_sse;
            let state = self.state(owner);
            state.lacks_response |= state.is_plain || !is_elsewhere;
        }
        goes_on
    }

    fn takes_of_response(&mut self, lane: &mut Lane, event: &Event<'_>, place: FramePlace) -> bool {
        match &event.payload {
            Payload::Response(head) => self.response(lane, head, place),
            Payload::SseEvent(sent) => self.sent(lane, sent, event, place),
            Payload::Message(_) | Payload::Oversize(_) => {
                let line = line(event.direction, &event.payload).unwrap_or_default();
                let message = Message::read(&line);
                lane.carrier.content =
                    if message.kind == Kind::Noise { Content::Other } else { Content::Message };
                let moment = self.moment(event.at, place);
                self.server_says(lane, &message, moment);
                if let Cow::Borrowed(_) = line {
                    self.sessions[lane.owner().session].spelling.observe(event.direction, &message);
                }
            }
            Payload::Body(_) => {
                lane.carrier.content = Content::Other;
                let moment = self.moment(event.at, place);
                self.is_no_message(lane, moment);
            }
            Payload::Partial(_) => lane.carrier.partial = Some(place),
            Payload::Broken { reset } => {
                lane.carrier.end = Some(if *reset { StreamEnd::Reset } else { StreamEnd::Cut });
                self.lane_ends(lane);
                return false;
            }
            Payload::Closed => {
                self.lane_ends(lane);
                return false;
            }
            _ => {}
        }
        true
    }

    /// Files a message that a client posted.
    fn client_posts(&mut self, lane: &mut Lane, line: &[u8], moment: Moment) {
        let message = Message::read(line);
        let session = self.session_of(lane, &message);
        let open = &mut self.sessions[session];
        let path = lane.target.as_str();
        open.session.path.get_or_insert_with(|| path.into());
        lane.is_modern = message.is_modern();
        let filed = self.client_message(session, &message, moment);
        lane.role = Some(match filed {
            Filed::Exchange(exchange) => {
                let owner = Owner { session, exchange };
                self.state(owner).http = Some(Fate::Pending);
                if lane.begins == Some(session) || (message.method() == "initialize" && session > COMMON) {
                    self.sessions[session].initialize = Some(exchange);
                }
                Role::Exchange(owner)
            }
            Filed::Answer(owner, item) => Role::Answer(owner, item),
        });
    }

    /// Begins the exchange of a request that is no message.
    fn plain(&mut self, lane: &mut Lane) -> Owner {
        if let Some(role) = lane.role {
            return role.owner();
        }
        let session = self.session_of_plain(lane);
        self.plain_in(lane, session)
    }

    fn plain_in(&mut self, lane: &mut Lane, session: usize) -> Owner {
        let prefix = key::of_http_line(&format!("{} {}", lane.method, lane.target));
        let exchange = self.begin(prefix, session);
        let owner = Owner { session, exchange };
        self.sessions[session].session.exchanges[exchange].client = Some(lane.head);
        let state = self.state(owner);
        (state.http, state.is_plain) = (Some(Fate::Pending), true);
        if lane.method == "DELETE" {
            let names_it = lane.session_id.is_some();
            self.sessions[session].delete = if names_it { Delete::Asked } else { Delete::No };
        }
        lane.role = Some(Role::Exchange(owner));
        owner
    }

    /// Begins the exchange of a request of which nothing more can come that says where it belongs.
    fn settle(&mut self, lane: &mut Lane) -> Owner {
        if lane.role.is_none() {
            let owner = self.plain(lane);
            if lane.is_stream && lane.method == "GET" {
                lane.role = Some(self.stream(lane, owner));
            }
        }
        self.plain(lane)
    }

    fn body(&mut self, lane: &mut Lane, place: FramePlace) {
        let owner = self.plain(lane);
        // A message is a body already; a second one stands only in a journal that is damaged.
        if self.state(owner).is_plain {
            lane.carrier.body.get_or_insert(place);
        }
    }
}

impl Lane {
    /// Whether its request's body is still to come, and to say where it belongs.
    fn waits_for_body(&self) -> bool {
        self.method == "POST" && self.role.is_none() && self.has_body
    }

    /// The session and exchange it belongs to, which are known.
    fn owner(&self) -> Owner {
        self.role.map_or(Owner { session: 0, exchange: 0 }, Role::owner)
    }

    /// The exchange that a stream which goes on behind its events belongs to.
    const fn resumable(&self) -> Option<Owner> {
        match self.role {
            Some(Role::Exchange(owner)) if self.is_stream => Some(owner),
            Some(Role::Resumed(_, owner)) => Some(owner),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
