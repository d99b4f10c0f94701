//! What all connections record with: each request and its response are one lane, and lanes share one journal. Where
//! nothing is recorded lanes are only counted.

use std::{
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
};

use tokio::sync::{Notify, mpsc::UnboundedSender};

use super::{
    super::{
        hide::Hide,
        lock,
        recorder::{Recorder, Room, Sink, Tapped, event},
    },
    absent::{Absent, Back},
    faulty::Stand,
    item::{Heads, Item},
    onlooker::Onlooker,
    queue::{self, Queue, Ticket},
};
use crate::{
    traffic,
    transport::http::MAX_HEADERS,
    wire::{
        http::SESSION_ID,
        jsonrpc::{Kind, Message},
    },
};

/// What happened that somebody has to be told of.
pub(super) enum Told {
    /// The sink failed for the first time; traffic goes on.
    Failed(io::Error),
    /// The sink failed, and that is fatal.
    Refused(io::Error),
    /// For the first time a peer did this.
    Odd(Odd),
}

/// What looks to one peer as if the other had done it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Odd {
    /// The server sent what is no response.
    Response,
    /// The server ended the connection within the head of a response, of which nothing is passed on.
    Head,
    /// The client sent what is no body.
    Request,
    /// The server does not speak HTTP/2.
    Http2,
}

impl Odd {
    pub(super) fn sentence(self) -> String {
        match self {
            Self::Response => format!(
                "the server sent a response that cannot be read, so its client is cut off, and a recording says `cut` \
                 (said once): a head or chunks not as HTTP has them, lengths that differ, more than {MAX_HEADERS} headers; \
                 where it speaks HTTP/2 alone, add --http2"
            ),
            Self::Http2 => "the server does not speak HTTP/2, so its client is cut off (said once); leave out --http2"
                .to_owned(),
            Self::Head => "the server ended its connection within the head of a response, so its client is cut off \
                           without it, and a recording has no more of it than the end (said once)"
                .to_owned(),
            Self::Request => "a client sent a request whose body cannot be read, so it is cut off, the server sees its \
                              client leave, and a recording has what came before (said once): chunks not as HTTP has \
                              them"
                .to_owned(),
        }
    }
}

/// The recording of all connections.
pub(super) struct Tape {
    recorder: Option<Recorder<Box<dyn Sink>>>,
    queue: Queue,
    /// Who is told of it all.
    watch: Option<Arc<Stand>>,
    lanes: AtomicU32,
    calls: AtomicUsize,
    /// The last call is over.
    settled: Notify,
    /// What is under way ends since all does: nobody leaves.
    is_ending: AtomicBool,
    /// The calls that are read on without a client.
    pub(super) absent: Absent,
    told: UnboundedSender<Told>,
    /// What of that has been told.
    odd: AtomicU8,
    pub(super) max_message: usize,
}

impl Tape {
    /// Without a sink nothing is recorded.
    pub(super) fn new(
        (sink, watch): (Option<Box<dyn Sink>>, Option<Arc<Stand>>),
        hide: Box<dyn Hide>,
        is_fatal: bool,
        max_message: usize,
        told: UnboundedSender<Told>,
    ) -> Self {
        Self {
            watch,
            recorder: sink.map(|sink| Recorder::new(sink, hide, is_fatal)),
            queue: Queue::default(),
            lanes: AtomicU32::new(0),
            calls: AtomicUsize::new(0),
            settled: Notify::new(),
            is_ending: AtomicBool::new(false),
            absent: Absent::default(),
            told,
            odd: AtomicU8::new(0),
            max_message,
        }
    }

    /// Whether what happens is looked at.
    pub(super) const fn records(&self) -> bool {
        self.recorder.is_some() || self.watch.is_some()
    }

    /// A lane for a request that has just come in, perhaps the first one on its connection. A call is waited for, for a
    /// moment, when all ends.
    pub(super) fn lane(self: &Arc<Self>, is_call: bool, opens_connection: bool) -> Arc<Lane> {
        let number = traffic::Lane(self.lanes.fetch_add(1, Ordering::Relaxed) + 1);
        if is_call {
            self.calls.fetch_add(1, Ordering::Relaxed);
        }
        let watch =
            self.watch.as_ref().map(|stand| Onlooker::new(Arc::clone(stand), number, opens_connection));
        let state = Mutex::new(State { watch, ..State::default() });
        Arc::new(Lane { tape: Arc::clone(self), number, is_call, state })
    }

    /// Waits until no call is under way.
    pub(super) async fn settle(&self) {
        loop {
            let settled = self.settled.notified();
            if self.calls.load(Ordering::Relaxed) == 0 {
                return;
            }
            settled.await;
        }
    }

    /// From here on what is under way is broken off: none of it is what a client or a server does.
    pub(super) fn ends(&self) {
        self.is_ending.store(true, Ordering::Relaxed);
    }

    /// Ends the recording: whatever happens from here on is not part of it. Gives the number of messages that could
    /// not be written.
    pub(super) fn finish(&self) -> u64 {
        self.queue.flush(self.writer());
        let finished = self.recorder.as_ref().and_then(|recorder| recorder.finish(None));
        finished.map_or(0, |(_, lost)| lost)
    }

    /// What the queue is written with.
    fn writer(&self) -> impl queue::Write {
        |room: &mut Room, items: &[_]| self.write(room, items)
    }

    /// Writes all of it at once; whether traffic goes on.
    fn write(&self, room: &mut Room, items: &[(traffic::Lane, Item)]) -> bool {
        let Some(recorder) = &self.recorder else { return true };
        let messages = || items.iter().filter(|(_, item)| item.is_message()).count() as u64;
        let tapped = recorder.record(room, messages, |events| {
            events.extend(items.iter().map(|(lane, item)| {
                let (direction, payload) = item.payload();
                event(direction, *lane, payload)
            }));
        });
        let (told, passes) = match tapped {
            Tapped::Pass | Tapped::Over => return true,
            Tapped::PassUnwritten(error) => (Told::Failed(error), true),
            Tapped::Refuse(error) => (Told::Refused(error), false),
        };
        // Nobody listens once all is over.
        let _ = self.told.send(told);
        passes
    }
}

/// One request and its response.
pub(super) struct Lane {
    tape: Arc<Tape>,
    number: traffic::Lane,
    is_call: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// What happened and is not yet written, because nothing that waits for it has been passed on.
    pending: Vec<Item>,
    /// What was to be written with what others have to write.
    ticket: Option<Ticket>,
    call: Call,
    /// The request's headers.
    asked: Option<Arc<Heads>>,
    /// An event of its stream had an id, behind which its client can go on with it.
    has_ids: bool,
    is_over: bool,
    /// More of the request's body may come.
    is_asking: bool,
    /// How the exchange ended while that came: told behind what came of it.
    end: Option<Item>,
    /// The request has no end, so nothing that is said because of it matters.
    is_broken_off: bool,
    /// Who looks on.
    watch: Option<Onlooker>,
}

/// What has come of a call, as far as it matters when its client leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Call {
    /// There is none, or it is not yet whole: no client, no request.
    #[default]
    None,
    /// The client's end cancels it (revision 2026-07-28 on).
    Modern,
    /// It goes on without its client (F10.10).
    Legacy,
    Answered,
}

impl Lane {
    pub(super) fn max_message(&self) -> usize {
        self.tape.max_message
    }

    /// Whether what happens is looked at.
    pub(super) fn records(&self) -> bool {
        self.tape.records()
    }

    /// Tells once what a peer cannot know of the other one.
    pub(super) fn tell(&self, odd: Odd) {
        let bit = 1 << odd as u8;
        if self.tape.odd.fetch_or(bit, Ordering::Relaxed) & bit == 0 {
            // Nobody listens once all is over.
            let _ = self.tape.told.send(Told::Odd(odd));
        }
    }

    /// Notes what happened; it is written with what comes next.
    pub(super) fn note(&self, item: impl FnOnce() -> Item) {
        if self.records() {
            lock(&self.state).note(item());
        }
    }

    /// The request's body comes from here on.
    pub(super) fn begins_to_ask(&self) {
        if self.records() {
            lock(&self.state).is_asking = true;
        }
    }

    /// Nothing more comes of the request's body. Whether the exchange had ended before.
    pub(super) fn has_asked(&self) -> bool {
        if !self.records() {
            return false;
        }
        let mut state = lock(&self.state);
        state.is_asking = false;
        state.watch.iter_mut().for_each(Onlooker::has_asked);
        let end = state.end.take();
        let has_ended = end.is_some();
        end.into_iter().for_each(|end| state.note(end));
        has_ended
    }

    /// The client has broken its request off.
    pub(super) fn asks_no_more(&self) {
        if !self.records() {
            return;
        }
        let mut state = lock(&self.state);
        if !state.is_over {
            state.note(Item::ClientClosed);
        }
        state.is_broken_off = true;
        drop(state);
        // There is nothing left to refuse.
        let _ = self.write();
    }

    /// Writes what was noted, before what depends on it is passed on; whether it may be.
    #[must_use]
    pub(super) fn write(&self) -> bool {
        if !self.records() {
            return true;
        }
        let mut state = lock(&self.state);
        if self.add(&mut state).is_none() {
            return true;
        }
        state.ticket = None;
        self.tape.queue.flush(self.tape.writer())
    }

    /// The same, together with what others have to write now. Where no other call is under way there is nothing to wait
    /// for: a turn of the runtime costs a call that is alone more than the write does.
    pub(super) fn poll_written(&self, cx: &Context<'_>) -> Poll<bool> {
        if !self.records() || self.tape.calls.load(Ordering::Relaxed) <= 1 {
            return Poll::Ready(self.write());
        }
        let mut state = lock(&self.state);
        let Some(ticket) = self.add(&mut state) else { return Poll::Ready(true) };
        let passes = ready!(self.tape.queue.poll(ticket, cx, self.tape.writer()));
        state.ticket = None;
        Poll::Ready(passes)
    }

    /// Adds what was noted to what is to be written; by what it waits for that, if anything is.
    fn add<'s>(&self, State { pending, ticket, .. }: &'s mut State) -> Option<&'s mut Ticket> {
        if self.tape.recorder.is_none() {
            pending.clear();
        }
        if !pending.is_empty() {
            self.tape.queue.add(self.number, pending, ticket, self.tape.writer());
        }
        ticket.as_mut()
    }

    /// Whether the call goes on without its client, so that its answer is recorded.
    pub(super) fn goes_on_alone(&self) -> bool {
        self.goes_on(&lock(&self.state))
    }

    /// It is read on without its client: what tells when that comes back for it.
    pub(super) fn is_alone(&self) -> Back {
        let state = lock(&self.state);
        let asked = state.asked.as_deref().filter(|_| state.has_ids);
        self.tape.absent.add(asked.and_then(|heads| heads.get(SESSION_ID)))
    }

    fn goes_on(&self, state: &State) -> bool {
        !state.is_over && state.call == Call::Legacy && self.tape.recorder.is_some()
    }

    /// The client's connection ended although the response has not. Whether the call goes on without it.
    pub(super) fn client_left(&self) -> bool {
        let mut state = lock(&self.state);
        if state.is_over || !self.records() || self.tape.is_ending.load(Ordering::Relaxed) {
            return false;
        }
        let goes_on = self.goes_on(&state);
        state.note(Item::ClientClosed);
        drop(state);
        // There is nothing left to refuse.
        let _ = self.write();
        goes_on
    }
}

impl State {
    fn note(&mut self, mut item: Item) {
        match &mut item {
            _ if self.is_broken_off => return,
            Item::Request(_, _, heads) => self.asked = Some(Arc::clone(heads)),
            Item::RequestBody(bytes) => {
                self.call = Call::begun(bytes);
                if self.call == Call::None {
                    item = Item::OtherBody(std::mem::take(bytes));
                }
            }
            Item::Event(event) => {
                self.has_ids |= event.id.is_some();
                if self.call != Call::None && Message::read(&event.data).kind.is_response() {
                    self.call = Call::Answered;
                }
            }
            Item::End => self.is_over = true,
            Item::Broken { .. } | Item::ClientClosed => {
                self.is_over |= matches!(item, Item::Broken { .. });
                if self.is_asking {
                    self.end.get_or_insert(item);
                    return;
                }
            }
            _ => {}
        }
        self.watch.iter_mut().for_each(|watch| watch.sees(&item));
        self.pending.push(item);
    }
}

impl Call {
    fn begun(body: &[u8]) -> Self {
        let message = Message::read(body);
        match message.kind {
            Kind::Noise => Self::None,
            _ if message.is_modern() => Self::Modern,
            _ => Self::Legacy,
        }
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        if let Some(ticket) = lock(&self.state).ticket.take() {
            self.tape.queue.leave(&ticket, self.tape.writer());
        }
        if self.is_call && self.tape.calls.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.tape.settled.notify_waiters();
        }
    }
}
