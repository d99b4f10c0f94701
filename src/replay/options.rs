//! How a cassette is replayed.

use std::sync::{Arc, atomic::AtomicU64};

use super::{
    clock::{Due, Now},
    exchange::Seed,
};
use crate::{cassette::model::Item, fault::Plan, redact, traffic::Micros, wire::jsonrpc::Kind};

/// The choices of `tapedeck replay`; the default is what it does without any.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which recording; none: the newest.
    pub recording: Option<u32>,
    /// Only this recorded session.
    pub session: Option<u32>,
    /// When recorded messages are sent.
    pub timing: Timing,
    /// The longest recorded wait that is kept.
    pub max_delay: Option<Micros>,
    /// Whether overlapping exchanges keep the recorded order.
    pub order: Order,
    /// How long an answer waits for a request recorded before it.
    pub order_grace: Micros,
    /// How long the client may take to answer a server request.
    pub answer_timeout: Micros,
    /// Each exchange once, none left over, none early; but for what depends on clients' caches and clocks.
    pub strict: bool,
    /// What equal requests get after the last recorded answer.
    pub repeat: Repeat,
    /// Challenges (401, 403) and the documents that lead on from them are left out.
    pub skip_auth: bool,
    /// Whoever serves it answers `OPTIONS` for web pages of other origins.
    pub cors: bool,
    /// What session ids are made from.
    pub seed: Seed,
    /// What is taken out of live requests before they are compared or told of, and out of recorded ones where the
    /// cassette was recorded without redaction.
    pub redact: redact::Rules,
    /// Values whose names stand in the cassette; they are put back into what is sent.
    pub vars: redact::Vars,
    /// What goes wrong on purpose.
    pub faults: Option<Arc<Plan>>,
    /// The server's name, where several are served.
    pub server: Option<Arc<str>>,
    /// Its name where it is served alone: rules may be for it by that, and events name it.
    pub alone: Option<Arc<str>>,
    /// Events are collected, for [`Replayer::take_events`](super::Replayer::take_events): so many there are by now in
    /// all takes of the run.
    pub events: Option<Arc<AtomicU64>>,
    /// Somebody may ask what waits ([`Replayer::waiting`](super::Replayer::waiting)).
    pub tended: bool,
    /// A request that would be a miss goes to the real server instead.
    pub passes_on: bool,
    /// Where the secrets of live requests are told, for whoever records what is passed on.
    pub met: Option<redact::Met>,
    /// Secrets that live requests may repeat from the start: those that the cassette itself shows, where it was recorded
    /// without redaction.
    pub shown: Option<redact::Met>,
}

/// When recorded messages are sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Timing {
    /// At once, but for the little that keeps a response apart from a notification before it.
    Instant,
    /// After the recorded waits, divided by this factor.
    Recorded {
        /// 1 for the recorded time, 2 for twice as fast.
        speed: f64,
    },
}

/// Whether overlapping exchanges keep the recorded order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// They do.
    Recorded,
    /// Each is answered at once.
    Free,
}

/// What equal requests get after the last recorded answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// The last one again.
    Last,
    /// A miss.
    Error,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            recording: None,
            session: None,
            timing: Timing::Instant,
            max_delay: None,
            order: Order::Recorded,
            order_grace: 100_000,
            answer_timeout: 10_000_000,
            strict: false,
            repeat: Repeat::Last,
            skip_auth: false,
            cors: false,
            seed: Seed::default(),
            redact: redact::Rules::new(&redact::Options::default()).expect("the built-in rules are in order"),
            vars: redact::Vars::default(),
            faults: None,
            server: None,
            alone: None,
            events: None,
            tended: false,
            passes_on: false,
            met: None,
            shown: None,
        }
    }
}

impl Options {
    /// Whether a used-up answer is a miss.
    pub(super) fn repeat_is_miss(&self) -> bool {
        self.strict || self.repeat == Repeat::Error
    }

    /// What rules know the server by.
    pub(super) fn called(&self) -> Option<&str> {
        self.server.as_deref().or(self.alone.as_deref())
    }

    /// When an item is due that goes behind this moment.
    ///
    /// `instant` keeps up to 5 ms of the wait that is needed ([`is_needed_wait`]): for the client's sake, so in real
    /// time.
    pub(super) fn due(&self, after: Now, after_ms: u32, needed: bool) -> Due {
        let recorded = Micros::from(after_ms) * 1000;
        let capped = |wait: Micros| self.max_delay.map_or(wait, |longest| wait.min(longest));
        match self.timing {
            Timing::Instant => Due::real(after.real + if needed { capped(recorded.min(5_000)) } else { 0 }),
            Timing::Recorded { speed } => {
                Due::played(after.played.saturating_add(capped((recorded as f64 / speed) as Micros)))
            }
        }
    }
}

/// Whether the wait before this item is one that a client needs to see what came before it: the last recorded wait
/// between a notification and the response of its exchange.
///
/// A TypeScript client on stdio loses every notification that reaches it in the same read as the response. Servers
/// often write their last progress and the response together, and the wait stands before that progress: without it, a
/// client that lost one notification when recorded would now lose all of them.
pub(super) fn is_needed_wait(server: &[Item], item: usize) -> bool {
    let is_response = |item: &Item| item.message.kind.is_response();
    let is_notification = |item: &Item| item.message.kind == Kind::Notification;
    let here = &server[item];
    if item == 0 || !is_notification(&server[item - 1]) {
        return false;
    }
    if is_response(here) {
        return true;
    }
    let written_together = || {
        let next = server[item + 1..].iter().find(|later| later.after_ms > 0 || !is_notification(later));
        next.is_some_and(|later| later.after_ms == 0 && is_response(later))
    };
    is_notification(here) && here.after_ms > 0 && written_together()
}
