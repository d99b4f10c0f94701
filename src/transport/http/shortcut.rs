//! A way past hyper for requests that are whole when they come in and whose responses are whole at once.
//!
//! Nearly all that a replay is asked is such, and to pass it through a general implementation of HTTP costs several
//! times as much as to answer it. Whatever is not as plain as can be goes to hyper, byte for byte. Both take turns on
//! a connection: hyper is lent the bytes of one request at a time, and what comes next is looked at here once its
//! response has gone. Where nobody here can tell where a request ends, the connection is hyper's from then on.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use hyper::body::{Body, Frame, SizeHint};
use tokio::{
    io::ReadBuf,
    time::{Sleep, sleep},
};

use super::{
    plain::{self, Fields, LastHead},
    socket::Control,
};

/// How long a plain request is at most, and how much of one is waited for here.
const LONGEST: usize = 256 << 10;

/// How long a request of which more has to come is waited for here: whoever serves it says what becomes of one that does
/// not go on.
const PATIENCE: Duration = Duration::from_secs(1);

/// How much room is kept for the next response.
const ROOM_KEPT: usize = 8 << 10;

/// Who answers what need not pass hyper.
pub trait Shortcut: Send {
    /// Whether a request with this head, of whose body more has to come, may be answered here. Where it is not, hyper
    /// takes it at once.
    fn serves(&mut self, request: &Plain<'_>) -> bool;

    /// Appends the response to a request, whole, with its head. False where hyper is to take the request: it is the
    /// next one that it gets.
    fn answer(&mut self, request: &Plain<'_>, response: &mut Vec<u8>) -> bool;
}

/// A `POST` that is whole and says nothing of its connection but that it stays.
#[derive(Debug)]
pub struct Plain<'a> {
    /// Requests of a connection whose heads have the same number have the same head.
    pub head: u64,
    /// Path and query.
    pub target: &'a str,
    /// Header names in lower case, and values, in order.
    pub headers: Fields<'a>,
    /// The body; of a request that is not whole, what of it is there.
    pub body: &'a [u8],
}

/// A connection's shortcut, and what it holds of the connection's bytes.
pub(super) struct Direct {
    shortcut: Box<dyn Shortcut>,
    /// How long a body is at most that is waited for here.
    limit: usize,
    turn: Turn,
    /// What was read and is no whole request yet, or is hyper's.
    unread: Vec<u8>,
    /// What is to be written, and how much of it was.
    unsent: Vec<u8>,
    sent: usize,
    last: LastHead,
    /// How long the request is whose head is unread, and not yet all of whose body has come.
    part: Option<usize>,
    /// When that is hyper's.
    late: Option<Pin<Box<Sleep>>>,
}

/// Whose the next bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// Ours.
    Ours,
    /// So many are hyper's, then ours once what it answers has gone.
    Lent(usize),
    /// Hyper's for good.
    Given,
}

/// What stands at the beginning of what a client has sent.
#[derive(Debug)]
enum Ahead<'a> {
    /// A plain request, and its length.
    Plain(Plain<'a>, usize),
    /// Another request of so many bytes, whether they have come or not.
    Other(usize),
    /// A request whose end only hyper finds, or none.
    Unknown,
    /// The beginning of a plain request, with all of its head, and its length.
    Begun(Plain<'a>, usize),
    /// A part of a head.
    Part,
}

impl std::fmt::Debug for Direct {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Direct").field("turn", &self.turn).finish_non_exhaustive()
    }
}

impl Direct {
    pub(super) fn new(shortcut: Box<dyn Shortcut>, limit: usize) -> Self {
        let (unread, unsent, last, part, late) = Default::default();
        Self { shortcut, limit, turn: Turn::Ours, unread, unsent, sent: 0, last, part, late }
    }

    /// Nothing has come. Whether what is here of a request is hyper's from now on.
    pub(super) fn poll_late(&mut self, cx: &mut Context<'_>, control: &Control) -> Poll<()> {
        if self.part.is_none() {
            return Poll::Pending;
        }
        let late = self.late.get_or_insert_with(|| Box::pin(sleep(PATIENCE)));
        ready!(late.as_mut().poll(cx));
        self.lends_part(control);
        Poll::Ready(())
    }

    fn lends_part(&mut self, control: &Control) {
        self.late = None;
        if let Some(length) = self.part.take() {
            self.turn = Turn::Lent(length);
            control.begins();
        }
    }

    /// What is to be written.
    pub(super) fn unsent(&self) -> &[u8] {
        &self.unsent[self.sent..]
    }

    /// So much more of it was written.
    pub(super) fn has_sent(&mut self, count: usize) {
        self.sent += count;
        if self.sent == self.unsent.len() {
            self.unsent.clear();
            self.unsent.shrink_to(ROOM_KEPT);
            self.sent = 0;
        }
    }

    /// Whether it is our turn, perhaps since what hyper was lent is dealt with.
    pub(super) fn is_our_turn(&mut self, control: &Control) -> bool {
        if self.turn == Turn::Lent(0) && control.is_over() {
            self.turn = Turn::Ours;
            let unread = std::mem::take(&mut self.unread);
            if !unread.is_empty() {
                control.has_read();
                let answered = self.answer(&unread, control);
                self.unread.extend_from_slice(&unread[answered..]);
            }
        }
        self.turn == Turn::Ours
    }

    /// Takes in what has come behind `from`, when it is our turn; what of it is hyper's stays there.
    pub(super) fn take_in(&mut self, buf: &mut ReadBuf<'_>, from: usize, control: &Control) {
        if !self.unread.is_empty() {
            let mut unread = std::mem::take(&mut self.unread);
            unread.extend_from_slice(&buf.filled()[from..]);
            buf.set_filled(from);
            let answered = self.answer(&unread, control);
            unread.drain(..answered);
            return self.unread = unread;
        }
        let come = &buf.filled()[from..];
        let answered = self.answer(come, control);
        let stays = match self.turn {
            Turn::Lent(length) if answered == 0 => length.min(come.len()),
            Turn::Given if answered == 0 => come.len(),
            _ => 0,
        };
        self.unread.extend_from_slice(&come[answered + stays..]);
        self.lend(stays);
        buf.set_filled(from + stays);
    }

    /// Hands over to hyper what was read for it; whether there was anything.
    pub(super) fn hand_over(&mut self, buf: &mut ReadBuf<'_>) -> bool {
        let count = self.unread.len().min(buf.remaining()).min(match self.turn {
            Turn::Lent(length) => length,
            _ => usize::MAX,
        });
        buf.put_slice(&self.unread[..count]);
        self.unread.drain(..count);
        if self.unread.is_empty() {
            // It may be long before there is something again.
            self.unread = Vec::new();
        }
        self.lend(count);
        count > 0
    }

    /// Hyper has read what has come behind `from` itself. What is more than it was lent waits.
    pub(super) fn has_read(&mut self, buf: &mut ReadBuf<'_>, from: usize) {
        let mut count = buf.filled().len() - from;
        if let Turn::Lent(length) = self.turn
            && count > length
        {
            self.unread.extend_from_slice(&buf.filled()[from + length..]);
            buf.set_filled(from + length);
            count = length;
        }
        self.lend(count);
    }

    /// Whether something waits until hyper has done with what it was lent.
    pub(super) fn waits(&self) -> bool {
        self.turn == Turn::Lent(0) && !self.unread.is_empty()
    }

    /// Nothing more comes, and hyper deals with what there is; whether there is nothing.
    pub(super) fn has_ended(&mut self) -> bool {
        self.turn = Turn::Given;
        self.unread.is_empty()
    }

    fn lend(&mut self, count: usize) {
        if let Turn::Lent(length) = &mut self.turn {
            *length -= count;
        }
    }

    /// Answers the plain requests that come first, and says whose turn it is then; how many bytes they have.
    fn answer(&mut self, bytes: &[u8], control: &Control) -> usize {
        (self.part, self.late) = (None, None);
        let Self { shortcut, limit, turn, unsent, last, part, .. } = self;
        let mut answered = 0;
        while answered < bytes.len() {
            let rest = &bytes[answered..];
            match look(rest, *limit, last) {
                Ahead::Plain(request, length) => {
                    if !shortcut.answer(&request, unsent) {
                        *turn = Turn::Lent(length);
                        break;
                    }
                    control.head_is_read();
                    control.awaits_head();
                    answered += length;
                    if answered < bytes.len() {
                        control.has_read();
                    }
                }
                Ahead::Other(length) => {
                    *turn = Turn::Lent(length);
                    break;
                }
                Ahead::Begun(request, length) => {
                    control.head_is_read();
                    match shortcut.serves(&request) {
                        true => *part = Some(length),
                        false => *turn = Turn::Lent(length),
                    }
                    break;
                }
                Ahead::Part if rest.len() <= LONGEST => break,
                Ahead::Part | Ahead::Unknown => {
                    *turn = Turn::Given;
                    break;
                }
            }
        }
        if *turn != Turn::Ours {
            control.begins();
        }
        answered
    }
}

/// What stands at the beginning of `bytes`.
fn look<'a>(bytes: &'a [u8], limit: usize, last: &'a mut LastHead) -> Ahead<'a> {
    let head = match plain::request(bytes, last) {
        plain::Request::Head(head) => head,
        plain::Request::Part => return Ahead::Part,
        plain::Request::Unknown => return Ahead::Unknown,
    };
    let length = head.length + head.body.unwrap_or_default();
    if head.method != "POST" || head.body.is_none_or(|body| body > limit) || length > LONGEST {
        return Ahead::Other(length);
    }
    let body = &bytes[head.length..length.min(bytes.len())];
    let request = Plain { head: head.number, target: head.target, headers: head.fields, body };
    if bytes.len() < length { Ahead::Begun(request, length) } else { Ahead::Plain(request, length) }
}

/// A body that tells its connection when it is over.
#[derive(Debug)]
pub struct Told<B> {
    body: B,
    control: Arc<Control>,
}

impl<B> Told<B> {
    /// On the connection of this control.
    pub const fn new(body: B, control: Arc<Control>) -> Self {
        Self { body, control }
    }
}

impl<B> Drop for Told<B> {
    fn drop(&mut self) {
        self.control.ends();
    }
}

impl<B: Body + Unpin> Body for Told<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers each request with its target and body, but for those that hyper is to have.
    struct Echo;

    impl Shortcut for Echo {
        fn serves(&mut self, request: &Plain<'_>) -> bool {
            request.target != "/refused"
        }

        fn answer(&mut self, request: &Plain<'_>, response: &mut Vec<u8>) -> bool {
            let is_ours = request.target != "/hyper";
            if is_ours {
                let names: Vec<&str> = request.headers.iter().map(|(name, _)| *name).collect();
                let text = format!("{} {names:?} ", request.target);
                response.extend_from_slice(&[text.as_bytes(), request.body, b"\n"].concat());
            }
            is_ours
        }
    }

    fn post(target: &str, headers: &str, body: &str) -> String {
        format!("POST {target} HTTP/1.1\r\nHost: h\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len())
    }

    /// What is answered directly and what hyper gets of what a client sends in these pieces. hyper answers each request
    /// that it is lent as soon as it has it.
    fn sent<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (String, String) {
        let control = Control::of_none();
        let mut direct = Direct::new(Box::new(Echo), 3);
        let mut got = Vec::new();
        for piece in pieces {
            let mut room = vec![0; 4096];
            let mut buf = ReadBuf::new(&mut room);
            buf.put_slice(piece);
            if direct.is_our_turn(&control) {
                direct.take_in(&mut buf, 0, &control);
            } else {
                direct.has_read(&mut buf, 0);
            }
            loop {
                got.extend_from_slice(buf.filled());
                if direct.turn == Turn::Lent(0) {
                    control.ends();
                }
                buf.clear();
                if direct.is_our_turn(&control) || !direct.hand_over(&mut buf) {
                    break;
                }
            }
        }
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
        (text(direct.unsent()), text(&got))
    }

    #[test]
    fn plain_requests_are_answered_wherever_they_are_cut() {
        let all = [
            post("/a?b=1", "X-Y: z\r\nConnection: Keep-Alive\r\n", "one"),
            post("/hyper", "", "two"),
            post("/c", "", ""),
        ];
        let expected = "/a?b=1 [\"host\", \"x-y\", \"connection\", \"content-length\"] one\n/c [\"host\", \"content-length\"] \n";
        let bytes = all.concat().into_bytes();
        for cut in 0..bytes.len() {
            let (answered, got) = sent([&bytes[..cut], &bytes[cut..]]);
            assert_eq!((&*answered, &got), (expected, &all[1]), "{cut}");
        }
        let (answered, got) = sent(bytes.chunks(1));
        assert_eq!((&*answered, &got), (expected, &all[1]));
    }

    #[test]
    fn requests_that_are_not_plain_are_lent_to_hyper_one_by_one() {
        let others = [
            "GET /mcp HTTP/1.1\r\nHost: h\r\n\r\n".to_owned(),
            "DELETE /mcp HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab".to_owned(),
            "POST /mcp HTTP/1.1\r\nHost: h\r\n\r\n".to_owned(),
            post("/long", "", "1234"),
        ];
        for other in others {
            let bytes = [post("/a", "", "1"), other.clone(), post("/b", "", "2")].concat().into_bytes();
            for cut in 0..bytes.len() {
                let (answered, got) = sent([&bytes[..cut], &bytes[cut..]]);
                assert_eq!((answered.lines().count(), &got), (2, &other), "{cut}");
            }
        }
    }

    #[test]
    fn a_request_that_does_not_go_on_is_lent_to_hyper_and_the_next_one_is_not() {
        let (request, next) = (post("/a", "", "123"), post("/b", "", "4"));
        let head = request.len() - 3;
        for cut in 0..request.len() {
            let control = Control::of_none();
            let mut direct = Direct::new(Box::new(Echo), 3);
            let mut room = vec![0; 4096];
            let mut buf = ReadBuf::new(&mut room);
            buf.put_slice(&request.as_bytes()[..cut]);
            direct.take_in(&mut buf, 0, &control);
            direct.lends_part(&control);
            // Of a head nobody knows how long the rest is, and it has a limit of its own.
            assert_eq!(direct.is_our_turn(&control), cut < head, "{cut}");
            if cut < head {
                continue;
            }
            assert!(direct.hand_over(&mut buf));
            assert_eq!(buf.filled(), &request.as_bytes()[..cut]);
            buf.clear();
            buf.put_slice([&request[cut..], &next].concat().as_bytes());
            direct.has_read(&mut buf, 0);
            assert_eq!(buf.filled(), &request.as_bytes()[cut..]);
            control.ends();
            assert!(direct.is_our_turn(&control), "{cut}");
            assert!(direct.unsent().starts_with(b"/b "), "{cut}");
        }
    }

    #[test]
    fn a_request_that_is_not_served_is_hypers_as_soon_as_its_head_is_there() {
        let control = Control::of_none();
        let mut direct = Direct::new(Box::new(Echo), 3);
        let (request, next) = (post("/refused", "", "123"), post("/b", "", "4"));
        let mut room = vec![0; 4096];
        let mut buf = ReadBuf::new(&mut room);
        let begun = &request.as_bytes()[..request.len() - 2];
        buf.put_slice(begun);
        direct.take_in(&mut buf, 0, &control);
        assert_eq!((direct.turn, buf.filled()), (Turn::Lent(2), begun));
        buf.clear();
        buf.put_slice(["23", &next].concat().as_bytes());
        direct.has_read(&mut buf, 0);
        assert_eq!(buf.filled(), b"23");
        control.ends();
        assert!(direct.is_our_turn(&control) && direct.unsent().starts_with(b"/b "));
    }

    #[test]
    fn where_a_request_ends_that_only_hyper_knows_all_is_hypers() {
        for other in [
            post("/x", "Transfer-Encoding: chunked\r\n", "a"),
            post("/x", "Expect: 100-continue\r\n", "a"),
            post("/x", "Connection: close\r\n", "a"),
            post("/x", "Upgrade: h2c\r\n", "a"),
            post("/x", "Content-Length: 2\r\n", "a"),
            post("/x#y", "", "a"),
            post("http://h/x", "", "a"),
            post("/x", "", "a").replace("HTTP/1.1", "HTTP/1.0"),
            post("/x", "", "a").replace("Length: 1", "Length: +1"),
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
            "\u{16}\u{3}\u{1}".to_owned(),
            post("/x", &"X: y\r\n".repeat(plain::MOST_HEADERS), "a"),
            format!("GET / HTTP/1.1\r\nX: {}", "y".repeat(LONGEST)),
        ] {
            let all = [&other, &post("/b", "", "2")].map(String::as_bytes).concat();
            let pieces: Vec<&[u8]> = [&all[..0]].into_iter().chain(all.chunks(4000)).collect();
            let (answered, got) = sent(pieces);
            assert_eq!(answered, "", "{other}");
            assert!(got.as_bytes() == all, "{other}");
        }
    }
}
