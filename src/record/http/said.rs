//! What a server says as the response to a request: which exchange it belongs to, and how it is marked there.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::{
    Lane, Role, all,
    heads::{is_message_event, line_of},
};
use crate::{
    cassette::{journal::FramePlace, model::On},
    record::{
        Content, Fold, Moment,
        filing::Way,
        requests::Owner,
        state::{Delete, Fate},
    },
    traffic::{Event, ResponseHead, SseEvent},
    wire::{
        http::is_type,
        jsonrpc::{Kind, Message},
    },
};

impl Fold {
    pub(super) fn response(&mut self, lane: &mut Lane, head: &ResponseHead<'_>, place: FramePlace) {
        lane.carrier.response = Some(place);
        lane.status = head.status;
        lane.has_none = matches!(head.status, 101 | 204 | 205 | 304)
            || lane.method == "HEAD"
            || all(&head.headers, "content-length").any(|length| length == b"0");
        lane.is_stream = all(&head.headers, "content-type")
            .next()
            .is_some_and(|value| is_type(value, "text/event-stream"));
        self.note_session_id(lane, head);
        let is_get_stream = lane.method == "GET" && lane.is_stream && (200..300).contains(&head.status);
        if !is_get_stream {
            let owner = self.plain(lane);
            let delete = &mut self.sessions[owner.session].delete;
            if lane.method == "DELETE" && *delete == Delete::Asked {
                *delete = if head.status < 400 { Delete::Done } else { Delete::No };
            }
        } else if let Some(Role::Exchange(owner)) = lane.role {
            lane.role = Some(self.stream(lane, owner));
        }
    }

    /// What a `GET` stream is: one that goes on with another, or one of its own.
    pub(super) fn stream(&mut self, lane: &Lane, owner: Owner) -> Role {
        let resumed = lane.last_event_id.as_deref().and_then(|id| self.sent_before(owner.session, id));
        let Some(exchange) = resumed else { return Role::Stream(owner) };
        let of = Owner { exchange, ..owner };
        self.state(of).http = Some(Fate::Pending);
        Role::Resumed(owner, of)
    }

    /// The exchange on whose response an event with this id came, if that has no answer.
    fn sent_before(&self, session: usize, id: &[u8]) -> Option<usize> {
        let open = &self.sessions[session];
        let waits =
            |exchange: &usize| open.states[*exchange].is_request && !open.states[*exchange].is_answered;
        if let Some(exchange) = open.resumable.get(id).filter(|exchange| waits(exchange)) {
            return Some(*exchange);
        }
        let mut lanes = self.lanes.under_way.values();
        lanes.find_map(|lane| {
            let owner = lane.resumable()?;
            let is_it = owner.session == session && lane.event_ids.iter().any(|known| **known == *id);
            Some(owner.exchange).filter(|exchange| is_it && waits(exchange))
        })
    }

    /// Takes in one event of a stream.
    pub(super) fn sent(
        &mut self,
        lane: &mut Lane,
        sent: &SseEvent<'_>,
        event: &Event<'_>,
        place: FramePlace,
    ) {
        lane.carrier.content = Content::Other;
        let moment = self.moment(event.at, place);
        if lane.role.is_none() {
            if sent.event.as_deref() == Some(b"endpoint") {
                self.begin_sse(lane, &sent.data, event.at);
            } else {
                self.settle(lane);
            }
        }
        if let Some(id) = sent.id.as_deref().filter(|_| lane.resumable().is_some()) {
            lane.event_ids.push(id.into());
        }
        if self.comes_again(lane, sent) {
            return;
        }
        if !is_message_event(sent) {
            return self.is_no_message(lane, moment);
        }
        let message = Message::read(&sent.data);
        self.server_says(lane, &message, moment);
        self.sessions[lane.owner().session].spelling.observe(event.direction, &message);
    }

    /// Whether an event had come before, on another stream of its session (specification 2025-11-25, basic/transports,
    /// resumability). Ids alone do not tell: not all servers have those of a session differ.
    fn comes_again(&mut self, lane: &mut Lane, sent: &SseEvent<'_>) -> bool {
        let Some(id) = sent.id.as_deref().filter(|_| is_message_event(sent)) else { return false };
        let mut hasher = DefaultHasher::new();
        (id, &*sent.data).hash(&mut hasher);
        let is_new = self.sessions[lane.owner().session].events.insert(hasher.finish());
        let is_resumed = lane.method == "GET" && lane.last_event_id.is_some();
        if is_new || !(is_resumed || lane.is_left) {
            return false;
        }
        if is_resumed {
            lane.again.push(line_of(id));
        }
        true
    }

    /// Files a server's message.
    pub(super) fn server_says(&mut self, lane: &mut Lane, message: &Message<'_>, moment: Moment) {
        let role = lane.role.unwrap_or_else(|| Role::Exchange(self.plain(lane)));
        let owner = role.owner();
        let is_sse = self.sessions[owner.session].session.is_sse;
        let way = match role {
            Role::Exchange(_) if self.hears_others(lane, owner) => {
                Way::Heard(owner.exchange, self.on_response(role))
            }
            Role::Exchange(_) => Way::Own(owner.exchange, self.on_response(role)),
            Role::Answer(..) => Way::Aside(owner.exchange),
            Role::Stream(_) => Way::Shared(if is_sse { None } else { Some(On::Get) }),
            Role::Resumed(_, of) => Way::Heard(of.exchange, Some(On::Resume)),
        };
        self.server_message(owner.session, message, moment, way);
        if message.kind == Kind::Result
            && let Some(session) = lane.begins.take()
        {
            self.has_begun(session);
        }
    }

    /// Whether a client may hear answers to its other calls on the response to this request: clients read on in the event
    /// stream of a call, and of no other response. Without a session nobody knows whose the other calls are.
    fn hears_others(&self, lane: &Lane, owner: Owner) -> bool {
        let open = &self.sessions[owner.session];
        lane.is_stream && open.states[owner.exchange].is_request && open.session.live_id.is_some()
    }

    /// Files an event or a body that is no message.
    pub(super) fn is_no_message(&mut self, lane: &mut Lane, moment: Moment) {
        let role = lane.role.unwrap_or_else(|| Role::Exchange(self.plain(lane)));
        self.push_item(role.owner(), moment, self.on_response(role), false);
    }

    /// How items are marked that come as the response to a request.
    fn on_response(&self, role: Role) -> Option<On> {
        let owner = role.owner();
        let open = &self.sessions[owner.session];
        match role {
            Role::Answer(..) => Some(On::Post),
            // A message's own stream is its session's there.
            Role::Exchange(_) if open.session.is_sse && !open.states[owner.exchange].is_plain => {
                Some(On::Post)
            }
            _ => None,
        }
    }
}
