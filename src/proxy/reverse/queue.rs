//! What waits to be written at once: what all connections have to write that something has come to in one turn of the
//! runtime.
//!
//! A write of the journal costs more than what stands in it, and under load one turn finds something at every connection.
//! The task that adds the first items lets those run that can, which is all it waits for, and then writes what they
//! added; nothing of it goes on before.

use std::{
    mem,
    sync::Mutex,
    task::{Context, Poll, Waker},
};

use super::{
    super::{lock, recorder::Room},
    item::Item,
};
use crate::traffic::Lane;

/// So many lanes are written for at once, at the most: their peers wait meanwhile, with nothing to do.
const MOST: usize = 16;

/// Writes items; whether what depends on them goes on.
pub(super) trait Write: Fn(&mut Room, &[(Lane, Item)]) -> bool {}

impl<F: Fn(&mut Room, &[(Lane, Item)]) -> bool> Write for F {}

/// What waits.
#[derive(Default)]
pub(super) struct Queue(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    /// How many writes there were before this one.
    number: u64,
    items: Vec<(Lane, Item)>,
    lanes: usize,
    tasks: Vec<Waker>,
    room: Room,
    /// One of the writes failed, and that is fatal.
    is_refused: bool,
}

/// What a lane waits for.
pub(super) struct Ticket {
    /// The number of the write.
    number: u64,
    part: Part,
}

/// Who writes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// This lane, once others have run.
    Leads,
    /// This lane, now.
    Writes,
    Follows,
}

impl Queue {
    /// Adds what a lane has to write, and takes it from there. It waits for that by `ticket`, where that waits for
    /// nothing yet.
    pub(super) fn add(
        &self,
        lane: Lane,
        items: &mut Vec<Item>,
        ticket: &mut Option<Ticket>,
        write: impl Write,
    ) {
        let mut waiting = lock(&self.0);
        let part = if waiting.items.is_empty() { Part::Leads } else { Part::Follows };
        let number = waiting.number;
        if ticket.as_ref().is_none_or(|ticket| ticket.number != number) {
            *ticket = Some(Ticket { number, part });
        }
        waiting.items.extend(items.drain(..).map(|item| (lane, item)));
        waiting.lanes += 1;
        if waiting.lanes >= MOST {
            waiting.flush(write);
        }
    }

    /// Waits until it is written; whether what depends on it goes on.
    pub(super) fn poll(&self, ticket: &mut Ticket, cx: &Context<'_>, write: impl Write) -> Poll<bool> {
        let mut waiting = lock(&self.0);
        if ticket.number == waiting.number {
            match ticket.part {
                Part::Leads => {
                    ticket.part = Part::Writes;
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Part::Writes => waiting.flush(write),
                Part::Follows => {
                    waiting.tasks.push(cx.waker().clone());
                    return Poll::Pending;
                }
            }
        }
        Poll::Ready(!waiting.is_refused)
    }

    /// Writes all that waits; whether what depends on it goes on.
    pub(super) fn flush(&self, write: impl Write) -> bool {
        let mut waiting = lock(&self.0);
        waiting.flush(write);
        !waiting.is_refused
    }

    /// Nobody waits for a lane any more: what others added is not left lying.
    pub(super) fn leave(&self, ticket: &Ticket, write: impl Write) {
        let mut waiting = lock(&self.0);
        if ticket.part != Part::Follows && ticket.number == waiting.number {
            waiting.flush(write);
        }
    }
}

impl Waiting {
    fn flush(&mut self, write: impl Write) {
        if self.items.is_empty() {
            return;
        }
        self.is_refused |= !write(&mut self.room, &self.items);
        self.items.clear();
        (self.number, self.lanes) = (self.number + 1, 0);
        mem::take(&mut self.tasks).into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use std::{
        cell::RefCell,
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
        },
        task::Wake,
    };

    use super::*;

    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The queue, the lanes of each write, and how often a task was woken.
    #[derive(Default)]
    struct Turn {
        queue: Queue,
        writes: RefCell<Vec<Vec<u32>>>,
        wakes: Arc<Wakes>,
        refuses: bool,
    }

    impl Turn {
        fn write(&self) -> impl Write {
            |_: &mut Room, items: &[(Lane, Item)]| {
                self.writes.borrow_mut().push(items.iter().map(|(lane, _)| lane.0).collect());
                !self.refuses
            }
        }

        fn add(&self, lane: u32) -> Ticket {
            let mut items = vec![Item::End];
            let mut ticket = None;
            self.queue.add(Lane(lane), &mut items, &mut ticket, self.write());
            assert!(items.is_empty());
            ticket.unwrap()
        }

        fn poll(&self, ticket: &mut Ticket) -> Poll<bool> {
            let waker = Arc::clone(&self.wakes).into();
            self.queue.poll(ticket, &Context::from_waker(&waker), self.write())
        }

        fn woken(&self) -> usize {
            self.wakes.0.swap(0, Ordering::Relaxed)
        }
    }

    #[test]
    fn what_is_added_before_the_first_comes_again_is_one_write() {
        let turn = Turn::default();
        let mut tickets = [1, 2, 3].map(|lane| turn.add(lane));
        assert!(tickets.iter_mut().all(|ticket| turn.poll(ticket).is_pending()));
        assert_eq!((turn.woken(), turn.writes.borrow().len()), (1, 0));
        assert_eq!(turn.poll(&mut tickets[0]), Poll::Ready(true));
        assert_eq!(turn.woken(), 2);
        assert!(tickets[1..].iter_mut().all(|ticket| turn.poll(ticket) == Poll::Ready(true)));
        let mut next = turn.add(4);
        assert!(turn.poll(&mut next).is_pending());
        assert_eq!(turn.poll(&mut next), Poll::Ready(true));
        assert_eq!(*turn.writes.borrow(), [vec![1, 2, 3], vec![4]]);
    }

    #[test]
    fn one_that_adds_again_writes_all_the_same() {
        let turn = Turn::default();
        let mut ticket = Some(turn.add(1));
        assert!(turn.poll(ticket.as_mut().unwrap()).is_pending());
        turn.queue.add(Lane(1), &mut vec![Item::End], &mut ticket, turn.write());
        assert_eq!(turn.poll(ticket.as_mut().unwrap()), Poll::Ready(true));
        turn.queue.add(Lane(1), &mut vec![Item::End], &mut ticket, turn.write());
        assert!(turn.poll(ticket.as_mut().unwrap()).is_pending());
        assert_eq!(*turn.writes.borrow(), [[1, 1]]);
    }

    #[test]
    fn many_lanes_do_not_wait_for_more() {
        let turn = Turn::default();
        let mut tickets: Vec<_> = (0..MOST as u32).map(|lane| turn.add(lane)).collect();
        assert_eq!(turn.writes.borrow().len(), 1);
        assert!(tickets.iter_mut().all(|ticket| turn.poll(ticket) == Poll::Ready(true)));
        assert!(turn.queue.flush(turn.write()));
        assert_eq!(turn.writes.borrow().len(), 1);
    }

    #[test]
    fn what_others_added_is_written_when_the_first_leaves() {
        let turn = Turn::default();
        let [first, mut second, third] = [1, 2, 3].map(|lane| turn.add(lane));
        assert!(turn.poll(&mut second).is_pending());
        turn.queue.leave(&third, turn.write());
        assert_eq!(turn.writes.borrow().len(), 0);
        turn.queue.leave(&first, turn.write());
        assert_eq!(turn.woken(), 1);
        assert_eq!(turn.poll(&mut second), Poll::Ready(true));
        turn.queue.leave(&second, turn.write());
        assert_eq!(*turn.writes.borrow(), [[1, 2, 3]]);
    }

    #[test]
    fn what_could_not_be_written_holds_all_of_them_up_and_what_comes_later() {
        let turn = Turn { refuses: true, ..Turn::default() };
        let [mut first, mut second] = [1, 2].map(|lane| turn.add(lane));
        assert!(turn.poll(&mut second).is_pending());
        assert!(!turn.queue.flush(turn.write()));
        assert_eq!([turn.poll(&mut first), turn.poll(&mut second)], [Poll::Ready(false); 2]);
        let turn = Turn { refuses: false, ..turn };
        turn.add(3);
        assert!(!turn.queue.flush(turn.write()));
    }
}
