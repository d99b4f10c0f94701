//! Which sessions are one recording: those that one client made in one go.

use super::Tape;
use crate::cassette::model::{self, Cassette};

/// How long after the end of a session another one of the same parent process may begin and be of its recording. A
/// shell, or a host that runs for days, starts recorders again and again, and each time means a new recording.
pub const PAUSE_MS: u64 = 10_000;

/// What sessions have in common that are one recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Group {
    /// A recording that the cassette has.
    Recorded(u32),
    /// The one that this tape begins.
    New(usize),
}

/// From when to when something was recorded, in milliseconds since 1970.
#[derive(Clone, Copy, Debug)]
struct Span {
    from: u64,
    to: u64,
}

impl Span {
    fn of_session(session: &model::Session) -> Option<Self> {
        let at: jiff::Timestamp = session.at.as_deref()?.parse().ok()?;
        let from = u64::try_from(at.as_millisecond()).ok()?;
        Some(Self { from, to: from.saturating_add(session.lasted_s.saturating_mul(1000)) })
    }

    const fn of_tape(tape: &Tape) -> Self {
        Self { from: tape.header.started_ms, to: if tape.is_alive { u64::MAX } else { tape.ended_ms } }
    }

    const fn is_near(self, other: Self) -> bool {
        self.from <= other.to.saturating_add(PAUSE_MS) && other.from <= self.to.saturating_add(PAUSE_MS)
    }
}

/// For each tape the recording that it belongs to: that of a session of the same parent process which it overlaps
/// with, or which one of the two follows soon.
pub(super) fn groups(base: &Cassette, tapes: &[Tape]) -> Vec<Group> {
    let recorded = base.sessions.iter().filter_map(|session| {
        Some((session.parent.clone()?, Span::of_session(session)?, Group::Recorded(session.recording)))
    });
    let mut known: Vec<_> = recorded.collect();
    let mut order: Vec<usize> = (0..tapes.len()).collect();
    order.sort_unstable_by_key(|&tape| (tapes[tape].header.started_ms, tape));
    let mut groups: Vec<_> = (0..tapes.len()).map(Group::New).collect();
    for tape in order {
        let (header, span) = (&tapes[tape].header, Span::of_tape(&tapes[tape]));
        let parent = header.parent_key();
        if let Some(continues) = &header.continues {
            groups[tape] = Group::Recorded(continues.recording);
        } else if let Some(parent) = &parent {
            let near = known.iter().filter(|(its, other, _)| its == parent && other.is_near(span));
            groups[tape] = near.map(|(.., group)| *group).max().unwrap_or(Group::New(tape));
        }
        known.extend(parent.map(|parent| (parent, span, groups[tape])));
    }
    groups
}

/// Whether a session was over when something else began.
pub(super) fn was_over(session: &model::Session, began_ms: u64) -> bool {
    Span::of_session(session).is_some_and(|span| span.to <= began_ms)
}

/// Whether what the same parent process begins to record at `now_ms` is of the recording that a session belongs to.
pub fn goes_on(session: &model::Session, now_ms: u64) -> bool {
    Span::of_session(session).is_some_and(|span| span.is_near(Span { from: now_ms, to: now_ms }))
}
