//! How a request and its response end, and what that says of their exchange.

use super::{Lane, Role};
use crate::record::{
    Content, Fold,
    requests::Owner,
    state::{Delete, Fate},
};

impl Fold {
    /// The client has left before the response was over; whether more of it can come.
    pub(super) fn client_left(&mut self, lane: &mut Lane) -> bool {
        let owner = self.settle(lane);
        let is_modern = lane.is_modern;
        let state = self.state(owner);
        if matches!(lane.role, Some(Role::Answer(..))) {
            return true;
        }
        lane.is_left = true;
        state.http = Some(Fate::Left);
        if let Some(Role::Resumed(_, of)) = lane.role {
            self.state(of).http = Some(Fate::Left);
        } else if is_modern && state.is_request && !state.is_answered {
            // F10.10: closing the connection is how it cancels.
            state.is_cancelled = true;
            self.is_over(owner);
            self.lookup(owner.session).from_client.answer_of(None, owner);
        }
        lane.method == "POST" && !is_modern
    }

    /// The response is over, in good order or not.
    pub(super) fn lane_ends(&mut self, lane: &mut Lane) {
        let owner = self.settle(lane);
        let fate = if lane.carrier.response.is_some() { Fate::Ended } else { Fate::NoHead };
        let open = &mut self.sessions[owner.session];
        // A body is told when it ends: one that is not there may be among what was not recorded.
        let may_lack_body = fate == Fate::Ended && lane.carrier.content == Content::Empty && !lane.has_none;
        if may_lack_body && open.gap_at.is_some_and(|gap| gap > lane.head.order) {
            let state = &mut open.states[owner.exchange];
            state.lacks_response |= state.is_plain;
        }
        match lane.role {
            Some(Role::Exchange(_)) => {
                // Over HTTP+SSE the answer comes on the session's stream, whatever became of the request.
                let is_elsewhere = open.session.is_sse && fate == Fate::Ended;
                let state = &mut open.states[owner.exchange];
                if state.is_plain || !is_elsewhere {
                    state.http = Some(fate);
                }
                let waits = lane.status == 202 || !lane.event_ids.is_empty() || is_elsewhere;
                if !waits {
                    self.is_over(owner);
                }
                self.may_go_on(lane, owner);
            }
            Some(Role::Stream(_)) => {
                lane.carrier.until_delete = open.delete == Delete::Asked;
                let fate = if open.delete == Delete::Done { Fate::Left } else { fate };
                open.states[owner.exchange].http = Some(fate);
                open.stream_is_over |= open.session.is_sse && fate == Fate::Ended;
            }
            Some(Role::Resumed(_, of)) => {
                open.states[owner.exchange].http = Some(fate);
                open.states[of.exchange].http = Some(fate);
                self.may_go_on(lane, of);
            }
            Some(Role::Answer(..)) | None => {}
        }
    }

    /// A stream that ended without its answer may be gone on with behind each of its events.
    fn may_go_on(&mut self, lane: &mut Lane, owner: Owner) {
        let state = self.state(owner);
        if !state.is_request || state.is_answered {
            return;
        }
        let ids = std::mem::take(&mut lane.event_ids);
        self.sessions[owner.session].resumable.extend(ids.into_iter().map(|id| (id, owner.exchange)));
    }

    /// Nothing more comes of it.
    pub(super) fn lets_go(&mut self, mut lane: Lane) {
        lane.carrier.again = std::mem::take(&mut lane.again);
        self.keep(&lane);
    }

    /// Has the exchange, or the answer, know what carried it.
    pub(super) fn keep(&mut self, lane: &Lane) {
        let Some(role) = lane.role else { return };
        let carrier = match role {
            Role::Answer(owner, item) => &mut self.item(owner, item).answer_http,
            _ => {
                let owner = role.owner();
                &mut self.sessions[owner.session].session.exchanges[owner.exchange].http
            }
        };
        match carrier {
            Some(carrier) => **carrier = lane.carrier.clone(),
            None => *carrier = Some(Box::new(lane.carrier.clone())),
        }
    }

    /// Files what is still under way when the recording ends.
    pub(in crate::record) fn end_lanes(&mut self) {
        while let Some((_, mut lane)) = self.lanes.under_way.pop_first() {
            self.catches_up(&mut lane);
            self.settle(&mut lane);
            self.lets_go(lane);
        }
    }
}
