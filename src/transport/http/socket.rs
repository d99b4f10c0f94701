//! A client's connection, as hyper uses it and with what hyper cannot do.
//!
//! A stream that the server cut off has to reach the client as just that: all bytes that came before, then the cut, by
//! a reset where it was one. hyper drops what it has not yet written when a body fails, and it always closes in good
//! order. So a body that fails waits until all before it is written ([`Control::poll_written`]), and the connection
//! is told beforehand to end with a reset ([`Control::reset_at_end`]).

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker, ready},
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{Sleep, sleep},
};
use tokio_rustls::server::TlsStream;

use super::{
    shortcut::{Direct, Shortcut},
    tls::is_http2,
    unread,
};

/// How long what was given to HTTP/2 may take to be sent before its stream is reset: a reset takes back what waits, and
/// nobody tells when nothing does any more.
const HANDED_OVER: Duration = Duration::from_millis(20);

/// A client's connection.
#[derive(Debug)]
pub struct Socket {
    stream: Accepted,
    control: Arc<Control>,
    /// What was read of it before hyper has it.
    ahead: Vec<u8>,
    /// Where requests may be answered before hyper sees them.
    direct: Option<Direct>,
    /// What is left of what is said in the place of hyper's answer to what it cannot read.
    refusal: Vec<u8>,
}

/// What a client has opened.
#[derive(Debug)]
pub enum Accepted {
    /// Bytes as they are.
    Plain(TcpStream),
    /// The same, of a client that begins with HTTP/2 unasked (RFC 9113, 3.3).
    Prior(TcpStream),
    /// Bytes under TLS.
    Tls(Box<TlsStream<TcpStream>>),
}

impl Accepted {
    /// Whether both sides agreed on HTTP/2.
    pub fn is_http2(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Prior(_) => true,
            Self::Tls(stream) => is_http2(stream.get_ref().1.alpn_protocol()),
        }
    }

    fn tcp(&self) -> &TcpStream {
        match self {
            Self::Plain(stream) | Self::Prior(stream) => stream,
            Self::Tls(stream) => stream.get_ref().0,
        }
    }
}

macro_rules! each {
    ($socket:expr, $stream:ident => $what:expr) => {
        match &mut $socket.stream {
            Accepted::Plain($stream) | Accepted::Prior($stream) => $what,
            Accepted::Tls($stream) => $what,
        }
    };
}

/// What is known of a connection, and how it shall end.
#[derive(Debug)]
pub struct Control {
    start: Instant,
    of: Of,
    resets: AtomicBool,
    /// Our side ends as soon as all is written,
    half_closes: AtomicBool,
    /// and has ended: what is written from then on goes nowhere.
    is_half_closed: AtomicBool,
    /// Whether hyper holds something that is not yet in the system's hands.
    is_dirty: AtomicBool,
    /// Whether hyper has been given all of its last response.
    is_over: AtomicBool,
    waiting: Mutex<Option<Waker>>,
    /// Of a shared connection: until when what was written has time to be sent.
    handing_over: Mutex<Option<Pin<Box<Sleep>>>>,
    /// Whether the next bytes to be read are a request's.
    is_idle: AtomicBool,
    /// Since when a head is coming in, in milliseconds after the start, and one.
    head_since: AtomicU64,
    /// Why a head could not be read.
    refusal: OnceLock<String>,
}

/// What a control is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    /// A connection.
    Connection,
    /// A request of a connection that several share.
    Stream,
    /// None.
    Nothing,
}

impl Socket {
    /// The connection, and what it is controlled by.
    pub fn new(stream: Accepted) -> (Self, Arc<Control>) {
        let control = Arc::new(Control::new(Of::Connection));
        (
            Self {
                stream,
                control: Arc::clone(&control),
                ahead: Vec::new(),
                direct: None,
                refusal: Vec::new(),
            },
            control,
        )
    }

    /// Requests are shown to this shortcut before hyper gets them, unless their bodies are longer than `limit`.
    #[must_use]
    pub fn with_shortcut(mut self, shortcut: Box<dyn Shortcut>, limit: usize) -> Self {
        self.direct = Some(Direct::new(shortcut, limit));
        self
    }

    /// The next bytes to be read are these, which have come already.
    #[must_use]
    pub fn with_ahead(mut self, ahead: Vec<u8>) -> Self {
        self.ahead = ahead;
        self
    }

    fn poll_read_on(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if !self.ahead.is_empty() {
            let count = self.ahead.len().min(buf.remaining());
            buf.put_slice(&self.ahead[..count]);
            self.ahead.drain(..count);
            self.ahead.shrink_to(0);
            self.control.has_read();
            return Poll::Ready(Ok(()));
        }
        let before = buf.filled().len();
        let outcome = each!(self, stream => Pin::new(stream).poll_read(cx, buf));
        if buf.filled().len() > before {
            self.control.has_read();
        }
        outcome
    }

    /// Whether this is what hyper answers to a head that it cannot read, which is said in our words.
    fn refuses(&mut self, written: &[u8]) -> bool {
        if self.refusal.is_empty()
            && self.control.head_age().is_some()
            && let Some((sentence, refusal)) = unread::refusal(written)
        {
            self.refusal = refusal;
            self.control.is_refused(sentence);
        }
        !self.refusal.is_empty()
    }

    /// Says it in the place of so many bytes.
    fn poll_refuse(&mut self, cx: &mut Context<'_>, written: usize) -> Poll<io::Result<usize>> {
        while !self.refusal.is_empty() {
            match ready!(each!(self, stream => Pin::new(stream).poll_write(cx, &self.refusal)))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => drop(self.refusal.drain(..count)),
            }
        }
        Poll::Ready(Ok(written))
    }

    /// Ready when all that was answered before hyper saw it is in the system's hands.
    fn poll_direct(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(direct) = &mut self.direct else { return Poll::Ready(Ok(())) };
        while !direct.unsent().is_empty() {
            match ready!(each!(self, stream => Pin::new(stream).poll_write(cx, direct.unsent())))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => direct.has_sent(count),
            }
            if direct.unsent().is_empty() && matches!(self.stream, Accepted::Tls(_)) {
                // What of it waits goes later: hyper flushes each time that it is woken.
                let _ = each!(self, stream => Pin::new(stream).poll_flush(cx))?;
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl Control {
    /// What stands for the control of a connection that several requests share (HTTP/2): none of them may end it,
    /// and what is written of one of them only that protocol knows.
    pub fn of_shared() -> Arc<Self> {
        Arc::new(Self::new(Of::Stream))
    }

    /// What stands for the control of a connection that somebody else ends.
    pub fn of_none() -> Arc<Self> {
        Arc::new(Self::new(Of::Nothing))
    }

    fn new(of: Of) -> Self {
        Self {
            start: Instant::now(),
            of,
            resets: AtomicBool::new(false),
            half_closes: AtomicBool::new(false),
            is_half_closed: AtomicBool::new(false),
            is_dirty: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            waiting: Mutex::new(None),
            handing_over: Mutex::new(None),
            is_idle: AtomicBool::new(true),
            head_since: AtomicU64::new(0),
            refusal: OnceLock::new(),
        }
    }

    /// The connection ends with a reset.
    pub fn reset_at_end(&self) {
        self.resets.store(true, Ordering::Release);
    }

    /// Whether it is to end with a reset.
    pub fn resets(&self) -> bool {
        self.resets.load(Ordering::Acquire)
    }

    /// Our side of the connection ends in good order behind what hyper is about to write, and the peer is still heard.
    pub fn half_close(&self) {
        self.half_closes.store(self.of == Of::Connection, Ordering::Release);
    }

    fn is_half_closed(&self) -> bool {
        self.is_half_closed.load(Ordering::Acquire)
    }

    /// Something was given to hyper to write.
    pub fn writes(&self) {
        self.is_dirty.store(self.of != Of::Nothing, Ordering::Release);
    }

    /// Ready when all that was given to hyper is in the system's hands; of a shared connection, when that had its time.
    pub fn poll_written(&self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.is_dirty.load(Ordering::Acquire) {
            return Poll::Ready(());
        }
        if self.of == Of::Stream {
            let mut handing_over = self.handing_over.lock().unwrap_or_else(PoisonError::into_inner);
            return handing_over.get_or_insert_with(|| Box::pin(sleep(HANDED_OVER))).as_mut().poll(cx);
        }
        *self.waiting.lock().unwrap_or_else(PoisonError::into_inner) = Some(cx.waker().clone());
        // It may have been written meanwhile.
        match self.is_dirty.load(Ordering::Acquire) {
            true => Poll::Pending,
            false => Poll::Ready(()),
        }
    }

    /// Hyper gets a request that it has to answer.
    pub(super) fn begins(&self) {
        self.is_over.store(false, Ordering::Release);
    }

    /// Nothing more follows of a response.
    pub(super) fn ends(&self) {
        self.writes();
        self.is_over.store(true, Ordering::Release);
    }

    /// Whether the response to the last request that hyper got is in the system's hands, whole.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire) && !self.is_dirty.load(Ordering::Acquire)
    }

    /// A request's head has been read.
    pub fn head_is_read(&self) {
        self.is_idle.store(false, Ordering::Relaxed);
        self.head_since.store(0, Ordering::Relaxed);
    }

    /// The next bytes are those of another request.
    pub fn awaits_head(&self) {
        self.is_idle.store(true, Ordering::Relaxed);
    }

    /// For how long a head has been coming in.
    pub fn head_age(&self) -> Option<Duration> {
        let since = self.head_since.load(Ordering::Relaxed).checked_sub(1)?;
        Some(self.start.elapsed().saturating_sub(Duration::from_millis(since)))
    }

    /// Its client sends no head that can be read.
    pub(super) fn is_refused(&self, why: String) {
        // A connection has one such: it ends with that.
        let _ = self.refusal.set(why);
    }

    /// What is told of a client that sent no head that could be read.
    pub fn refusal(&self) -> Option<&str> {
        self.refusal.get().map(String::as_str)
    }

    pub(super) fn has_read(&self) {
        if self.is_idle.swap(false, Ordering::Relaxed) {
            let now = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX - 1);
            self.head_since.store(now + 1, Ordering::Relaxed);
        }
    }

    fn has_written(&self) {
        if self.is_dirty.swap(false, Ordering::AcqRel)
            && let Some(waker) = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).take()
        {
            waker.wake();
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if self.control.resets.load(Ordering::Acquire) {
            // Where this fails the client sees an end in good order, of the connection though not of its stream.
            let _ = self.stream.tcp().set_zero_linger();
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        loop {
            ready!(this.poll_direct(cx))?;
            let before = buf.filled().len();
            let Some(direct) = &mut this.direct else { return this.poll_read_on(cx, buf) };
            if !direct.is_our_turn(&this.control) {
                if direct.hand_over(buf) {
                    return Poll::Ready(Ok(()));
                }
                if !direct.waits() {
                    ready!(this.poll_read_on(cx, buf))?;
                    this.direct.iter_mut().for_each(|direct| direct.has_read(buf, before));
                }
                // Whoever flushes the end of the response wakes what waits for that.
                let waits = this.direct.as_ref().is_some_and(Direct::waits);
                return if waits && buf.filled().len() == before {
                    Poll::Pending
                } else {
                    Poll::Ready(Ok(()))
                };
            }
            if !direct.unsent().is_empty() {
                continue;
            }
            let read = this.poll_read_on(cx, buf);
            let Some(direct) = &mut this.direct else { return read };
            if read.is_pending() {
                ready!(direct.poll_late(cx, &this.control));
                continue;
            }
            ready!(read)?;
            if buf.filled().len() > before {
                direct.take_in(buf, before, &this.control);
            } else if direct.has_ended() {
                return Poll::Ready(Ok(()));
            }
            if buf.filled().len() > before {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        if self.control.is_half_closed() {
            return Poll::Ready(Ok(buf.len()));
        }
        if self.refuses(buf) {
            return self.poll_refuse(cx, buf.len());
        }
        each!(self, stream => Pin::new(stream).poll_write(cx, buf))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.control.is_half_closed() {
            return Poll::Ready(Ok(bufs.iter().map(|buf| buf.len()).sum()));
        }
        if let [buf] = bufs
            && self.refuses(buf)
        {
            return self.poll_refuse(cx, buf.len());
        }
        each!(self, stream => Pin::new(stream).poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        match &self.stream {
            Accepted::Plain(stream) | Accepted::Prior(stream) => stream.is_write_vectored(),
            Accepted::Tls(stream) => stream.is_write_vectored(),
        }
    }

    /// hyper flushes when its own buffer is empty, and only then.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_direct(cx))?;
        let outcome = match self.control.is_half_closed() {
            true => Poll::Ready(Ok(())),
            false => each!(self, stream => Pin::new(stream).poll_flush(cx)),
        };
        if outcome.is_ready() {
            self.control.has_written();
            if self.direct.as_ref().is_some_and(Direct::waits) && self.control.is_over() {
                cx.waker().wake_by_ref();
            }
            if self.control.half_closes.load(Ordering::Acquire) && !self.control.is_half_closed() {
                ready!(each!(self, stream => Pin::new(stream).poll_shutdown(cx)))?;
                self.control.is_half_closed.store(true, Ordering::Release);
            }
        }
        outcome
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.control.resets.load(Ordering::Acquire) {
            // A FIN would come before the reset.
            return Poll::Ready(Ok(()));
        }
        ready!(self.poll_direct(cx))?;
        each!(self, stream => Pin::new(stream).poll_shutdown(cx))
    }
}
