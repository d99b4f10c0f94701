//! Bytes on their way from one socket to another: what was read and waits, and what of it may go.
//!
//! A head that was changed goes first, then the bytes behind it as they were read, in one write.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The room of the first read: nearly all messages fit in it, and each idle connection has it twice.
const ROOM: usize = 4 << 10;

/// The room of one read where the sender is faster than we are.
const MOST_ROOM: usize = 64 << 10;

/// How much room is kept when a message has passed.
const ROOM_KEPT: usize = 16 << 10;

/// One side's socket, and what was read of it.
#[derive(Debug)]
pub struct Side<T> {
    /// Its bytes.
    pub stream: T,
    /// What has come.
    pub inbox: Inbox,
}

/// What was read and not yet dealt with.
#[derive(Debug, Default)]
pub struct Inbox {
    room: Vec<u8>,
    start: usize,
    end: usize,
    /// The last read would have taken more.
    was_filled: bool,
}

/// What may be written.
#[derive(Debug, Default)]
pub struct Outbox {
    /// Goes first.
    pub head: Vec<u8>,
    sent: usize,
    /// So many bytes of the other side's inbox go behind it.
    pub behind: usize,
    /// Something was written since the last flush.
    is_dirty: bool,
}

impl<T> Side<T> {
    /// Of which nothing was read.
    pub fn new(stream: T) -> Self {
        Self { stream, inbox: Inbox::default() }
    }
}

impl<T: AsyncRead + Unpin> Side<T> {
    /// Reads; how many bytes have come, none at the stream's end.
    ///
    /// # Errors
    /// When it is broken.
    pub fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let Self { stream, inbox } = self;
        let mut buf = ReadBuf::new(inbox.space());
        ready!(Pin::new(stream).poll_read(cx, &mut buf))?;
        let count = buf.filled().len();
        inbox.end += count;
        inbox.was_filled = inbox.end == inbox.room.len();
        Poll::Ready(Ok(count))
    }
}

impl Inbox {
    /// What waits.
    pub fn unread(&self) -> &[u8] {
        &self.room[self.start..self.end]
    }

    /// Whether nothing waits.
    pub const fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Whether it may take in what need not be there yet.
    pub const fn has_room(&self) -> bool {
        self.end - self.start < MOST_ROOM
    }

    /// The first so many bytes are dealt with.
    pub fn take(&mut self, count: usize) {
        self.start += count;
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
    }

    /// Other bytes stand in the place of the first so many.
    pub fn replace(&mut self, count: usize, by: &[u8]) {
        self.room.splice(self.start..self.start + count, by.iter().copied());
        self.end = self.end - count + by.len();
    }

    /// A message has passed: a long one's room is given back.
    pub fn rest(&mut self) {
        if self.is_empty() && self.room.len() > ROOM_KEPT {
            *self = Self::default();
        }
    }

    /// Where the next bytes go.
    fn space(&mut self) -> &mut [u8] {
        if self.start > 0 && self.end == self.room.len() {
            self.room.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        let size = self.room.len();
        if self.end == size || self.was_filled && size < MOST_ROOM {
            // Beyond that only what waits whole needs more room.
            let most = if size < MOST_ROOM { MOST_ROOM } else { size + MOST_ROOM };
            self.room.resize((size * 4).clamp(ROOM, most), 0);
        }
        &mut self.room[self.end..]
    }
}

impl Outbox {
    /// Whether nothing is to be written.
    pub const fn is_empty(&self) -> bool {
        self.sent == self.head.len() && self.behind == 0 && !self.is_dirty
    }

    /// Forgets what was to be written; `inbox` is what it came from.
    pub fn drop_all(&mut self, inbox: &mut Inbox) {
        inbox.take(self.behind);
        self.head.clear();
        (self.sent, self.behind, self.is_dirty) = (0, 0, false);
    }

    /// Ready when all that may be written is in the system's hands. `inbox` is what it came from.
    ///
    /// # Errors
    /// When the other side takes no more.
    pub fn poll_write<T>(
        &mut self,
        cx: &mut Context<'_>,
        to: &mut T,
        inbox: &mut Inbox,
    ) -> Poll<io::Result<()>>
    where
        T: AsyncWrite + Unpin,
    {
        while self.sent < self.head.len() || self.behind > 0 {
            let (head, behind) = (&self.head[self.sent..], &inbox.unread()[..self.behind]);
            let to = Pin::new(&mut *to);
            let written = if behind.is_empty() {
                to.poll_write(cx, head)
            } else if head.is_empty() {
                to.poll_write(cx, behind)
            } else {
                to.poll_write_vectored(cx, &[IoSlice::new(head), IoSlice::new(behind)])
            };
            let count = match ready!(written)? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => count,
            };
            let of_head = count.min(head.len());
            self.sent += of_head;
            self.behind -= count - of_head;
            inbox.take(count - of_head);
            self.is_dirty = true;
        }
        if self.is_dirty {
            self.head.clear();
            self.sent = 0;
            self.head.shrink_to(ROOM_KEPT);
            ready!(Pin::new(to).poll_flush(cx))?;
            self.is_dirty = false;
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    /// Gives its pieces one by one, and takes so many bytes at a time.
    struct Wire<'a>(Vec<&'a [u8]>, usize, Vec<u8>);

    impl AsyncRead for Wire<'_> {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            buf: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            let Some(piece) = self.0.first_mut() else { return Poll::Ready(Ok(())) };
            let (now, later) = piece.split_at(piece.len().min(buf.remaining()));
            buf.put_slice(now);
            *piece = later;
            if later.is_empty() {
                self.0.remove(0);
            }
            Poll::Ready(Ok(()))
        }
    }

    impl AsyncWrite for Wire<'_> {
        fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
            let count = buf.len().min(self.1);
            self.2.extend_from_slice(&buf[..count]);
            Poll::Ready(Ok(count))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[test]
    fn a_head_goes_before_what_came_and_what_may_not_go_stays() {
        let mut cx = Context::from_waker(Waker::noop());
        for at_a_time in 1..12 {
            let mut side = Side::new(Wire(vec![b"head", b"body", b"next"], 0, Vec::new()));
            for count in [4, 4, 4] {
                assert!(matches!(side.poll_read(&mut cx), Poll::Ready(Ok(read)) if read == count));
            }
            let mut outbox = Outbox { head: b"HEAD".to_vec(), behind: 4, ..Outbox::default() };
            side.inbox.take(4);
            let mut to = Wire(Vec::new(), at_a_time, Vec::new());
            assert!(outbox.poll_write(&mut cx, &mut to, &mut side.inbox).is_ready() && outbox.is_empty());
            assert_eq!((&*to.2, side.inbox.unread()), (&b"HEADbody"[..], &b"next"[..]));
        }
    }

    #[test]
    fn room_grows_with_what_comes_and_is_given_back() {
        let mut cx = Context::from_waker(Waker::noop());
        let long = vec![b'a'; 1 << 20];
        let mut side = Side::new(Wire(vec![&long], 0, Vec::new()));
        let mut most = 0;
        while let Poll::Ready(Ok(count @ 1..)) = side.poll_read(&mut cx) {
            most = most.max(count);
            side.inbox.take(count);
        }
        assert_eq!(most, MOST_ROOM);
        side.inbox.rest();
        assert_eq!(side.inbox.room.len(), 0);
        // What has to wait has room.
        let mut side = Side::new(Wire(vec![&long], 0, Vec::new()));
        while let Poll::Ready(Ok(1..)) = side.poll_read(&mut cx) {}
        assert_eq!(side.inbox.unread(), long);
        side.inbox.replace(1 << 19, b"b");
        assert_eq!((side.inbox.unread().len(), side.inbox.unread()[0]), ((1 << 19) + 1, b'b'));
    }
}
