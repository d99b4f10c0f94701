//! The front of an HTTP server: it mirrors the server's origin, and records what passes where that is asked for.
//!
//! Each client's connection has one connection to the server of its own, opened with its first request and closed
//! when either side closes: no pool, no retry, so that a client sees what it would see without us (F10.18). Heads are
//! read, since addresses in them have to change; bodies pass as they come, and the read that ends a message or an event
//! is passed on after it is written.
//!
//! - `connection`: a client's connection and the one to the server
//! - `relay`: exchanges in HTTP/1.1, from socket to socket
//! - `exchange`: one request and its response by way of hyper, between their heads: of HTTP/2, and where faults act
//! - `request`, `response`: their bodies; `inbound`: one that was read before it is passed on
//! - `faulty`: what stands before all that where faults act
//! - `endpoint`, `metadata`: the places where the server names its own address to clients
//! - `said`, `heard`, `heads`: what is recorded of bodies and heads
//! - `tape`, `item`: what all connections record with, and `queue`, how they write at once; `onlooker`: who else is told
//!   of it

mod absent;
mod connection;
mod endpoint;
mod exchange;
mod faulty;
mod heads;
mod heard;
mod inbound;
mod item;
mod metadata;
mod onlooker;
mod queue;
mod relay;
mod request;
mod response;
mod said;
mod tape;

use std::{
    collections::HashSet,
    io,
    net::{SocketAddr, TcpListener, ToSocketAddrs},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use hyper::header::{HeaderName, HeaderValue};
use tokio::{
    runtime::Runtime,
    sync::{Notify, mpsc, watch},
    time::timeout,
};

pub use self::faulty::{Faults, Happened};
use self::{
    faulty::Stand,
    tape::{Tape, Told},
};
use super::{
    hide::Hide, linger::Linger, lock, recorder::Sink, refusals::Refusals, reply::Cut, signals::Signals,
};
use crate::{
    report::{Refused, Report},
    traffic::Event,
    transport::http::{
        HEAD_TIME,
        body::is_reset,
        connect::{ConnectOptions, Connector, ConnectorError},
        guard::Guard,
        origin::{AddressError, Origin},
        server::{self, scheme},
        tls::Acceptor,
    },
    wire::http::is_of_connection,
};

/// How long calls that are under way may take to end when a signal ends the front. With the journal's end and the
/// fold that makes less than the two seconds that a supervisor waits.
const LAST_CALLS: Duration = Duration::from_millis(700);

/// How traffic is recorded.
pub struct ReverseOptions {
    /// Longer messages pass, and are recorded as envelope, size and hash.
    pub max_message: usize,
    /// A sink that fails ends the front.
    pub require_recording: bool,
    /// Hosts that are served besides the local ones, where the front listens on loopback.
    pub allow_hosts: Vec<String>,
    /// Pages' origins that are served besides the local ones, where the front listens on loopback.
    pub allow_origins: Vec<String>,
    /// What every request to the server carries, whatever its client sent by that name. None of it is recorded.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// How long a client may take to send a head it has begun.
    pub head_time: Duration,
    /// What is hidden from the sink.
    pub hide: Box<dyn Hide>,
    /// What goes wrong on purpose, for clients alone; what has nothing to do only looks on.
    pub faults: Option<Faults>,
    /// Told while traffic passes, once each, when the sink has failed and when a response cannot be read: one sentence.
    pub warn: Box<dyn FnMut(&str) + Send>,
}

impl Default for ReverseOptions {
    fn default() -> Self {
        Self {
            max_message: 64 << 20,
            require_recording: false,
            allow_hosts: Vec::new(),
            allow_origins: Vec::new(),
            headers: Vec::new(),
            head_time: HEAD_TIME,
            hide: Box::new(()),
            faults: None,
            warn: Box::new(|_| ()),
        }
    }
}

/// How the front ended.
#[derive(Debug)]
pub struct ReverseEnded<S> {
    /// The signal that ended it, and when.
    pub asked: Option<(i32, Instant)>,
    /// How many messages the sink did not take.
    pub missed: u64,
    /// Why the server could not be reached, where no request ever reached it.
    pub unreachable: Option<String>,
    /// Requests that went no further than here, nor into the recording.
    pub refused: Vec<Refused>,
    /// What faults did, where there were any, with the verdict.
    pub report: Option<Report>,
    /// The sink, with all events in it.
    pub sink: S,
}

/// The front cannot begin, or was broken off.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReverseError {
    /// The system does not give what it needs.
    #[error("cannot serve HTTP: {0}")]
    System(#[source] io::Error),
    /// There is no way to the server.
    #[error(transparent)]
    Connect(ConnectorError),
    /// The sink failed, and `require_recording` says that this is fatal.
    #[error("the recording cannot be written, and the front was ended because of it: {0}")]
    Sink(#[source] io::Error),
}

/// A front that listens; clients that connect wait until it serves.
#[derive(Debug)]
pub struct Reverse {
    listener: TcpListener,
    address: SocketAddr,
    origin: Origin,
    path: String,
    connector: Option<Connector>,
    acceptor: Option<Acceptor>,
    stop: Stop,
    heeded: Option<(Runtime, Signals)>,
}

/// Ends a front, as a signal does.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<Notify>);

impl Stop {
    /// Ends it; or, where it has not begun, as soon as it begins.
    pub fn stop(&self) {
        self.0.notify_one();
    }
}

impl Reverse {
    /// Listens for clients of the server at `url`.
    ///
    /// # Errors
    /// When that address cannot be listened on.
    pub fn listen(url: &str, listen: impl ToSocketAddrs) -> Result<Self, ListenError> {
        let (origin, path) = Origin::of_url(url)?;
        let listener = TcpListener::bind(listen).map_err(ListenError::Listen)?;
        listener.set_nonblocking(true).map_err(ListenError::Listen)?;
        let address = listener.local_addr().map_err(ListenError::Listen)?;
        Ok(Self {
            listener,
            address,
            origin,
            path,
            connector: None,
            acceptor: None,
            stop: Stop::default(),
            heeded: None,
        })
    }

    /// Reaches the server in this way.
    ///
    /// # Errors
    /// When there is no such way.
    pub fn reaching(mut self, options: ConnectOptions) -> Result<Self, ConnectorError> {
        self.connector = Some(Connector::new(self.origin.clone(), options)?);
        Ok(self)
    }

    /// Speaks TLS with clients, and HTTP/2 with those that want it.
    #[must_use]
    pub fn with_tls(mut self, acceptor: Acceptor) -> Self {
        self.acceptor = Some(acceptor);
        self
    }

    /// From now on signals end the front, and not the process at once.
    ///
    /// # Errors
    /// When the system does not give what it needs.
    pub fn heeding_signals(mut self) -> Result<Self, ReverseError> {
        let runtime = runtime()?;
        let signals = {
            let _inside = runtime.enter();
            Signals::install().map_err(ReverseError::System)?
        };
        self.heeded = Some((runtime, signals));
        Ok(self)
    }

    /// What clients take for the server's origin.
    pub fn origin(&self) -> String {
        format!("{}://{}", scheme(self.acceptor.as_ref()), self.address)
    }

    /// What clients take for the server's URL.
    pub fn url(&self) -> String {
        format!("{}{}", self.origin(), self.path)
    }

    /// What ends it from within this process.
    pub fn stop(&self) -> Stop {
        self.stop.clone()
    }

    /// Serves clients until it is ended, and has every message written to the sink before it is passed on whole.
    ///
    /// # Errors
    /// When the system has no room for it, or when the sink fails and that is fatal.
    pub fn record<S: Sink + 'static>(
        self,
        sink: S,
        options: ReverseOptions,
    ) -> Result<ReverseEnded<S>, ReverseError> {
        let kept = Arc::new(Mutex::new(Some(sink)));
        let ended = self.serve(Some(Box::new(Lent(Arc::clone(&kept)))), options)?;
        let ReverseEnded { asked, missed, unreachable, refused, report, sink: () } = ended;
        let sink = lock(&kept).take().expect("it was only lent");
        Ok(ReverseEnded { asked, missed, unreachable, refused, report, sink })
    }

    /// Serves clients until it is ended, and records nothing. What `options` say of a recording is of no account.
    ///
    /// # Errors
    /// When the system has no room for it.
    pub fn pass(self, options: ReverseOptions) -> Result<ReverseEnded<()>, ReverseError> {
        self.serve(None, options)
    }

    fn serve(
        mut self,
        sink: Option<Box<dyn Sink>>,
        options: ReverseOptions,
    ) -> Result<ReverseEnded<()>, ReverseError> {
        let (runtime, signals) = match self.heeded.take() {
            Some((runtime, signals)) => (runtime, Some(signals)),
            None => (runtime()?, None),
        };
        let ended = runtime.block_on(self.run(sink, options, signals));
        if let Ok(Ran { tape, .. }) = &ended {
            tape.ends();
        }
        // Connections that are still open have nothing to say any more but what had come in part.
        runtime.shutdown_background();
        let Ran { tape, end, unreachable, refused, report } = ended?;
        let missed = tape.finish();
        end.map(|asked| ReverseEnded { asked, missed, unreachable, refused, report, sink: () })
    }

    async fn run(
        self,
        sink: Option<Box<dyn Sink>>,
        options: ReverseOptions,
        mut signals: Option<Signals>,
    ) -> Result<Ran, ReverseError> {
        let connector = match self.connector {
            Some(connector) => connector,
            None => {
                let default = Connector::new(self.origin.clone(), ConnectOptions::default());
                default.map_err(ReverseError::Connect)?
            }
        };
        let listener = tokio::net::TcpListener::from_std(self.listener).map_err(ReverseError::System)?;
        let mut warn = options.warn;
        let mut hide = options.hide;
        for (name, value) in &options.headers {
            // A server may repeat it anywhere; what was shown as a credential is hidden from then on.
            let _ = hide.header(name.as_ref(), value.as_bytes());
        }
        let (told, mut tellings) = mpsc::unbounded_channel();
        // Where nothing is to act all passes as it comes, and is looked at.
        let (faults, watch) = match options.faults {
            Some(faults) if !faults.live.acts() => (None, Some(Stand::begin(faults))),
            faults => (faults.map(Stand::begin), None),
        };
        let told_of = watch.clone();
        let tape = Tape::new((sink, watch), hide, options.require_recording, options.max_message, told);
        let (close, closing) = watch::channel(false);
        // It was parsed as a part of a URL, so it is a header's value.
        let host = HeaderValue::from_str(self.origin.authority()).unwrap_or(HeaderValue::from_static(""));
        let relays = faults.is_none()
            && connector.is_plain()
            && !options.headers.iter().any(|(name, _)| is_of_connection(name.as_str()));
        let front = Arc::new(Front {
            relays,
            tape: Arc::new(tape),
            upstream: Upstream { origin: self.origin, host, connector, headers: options.headers },
            acceptor: self.acceptor,
            faults,
            guard: server::guard(self.address, options.allow_hosts, options.allow_origins),
            address: self.address.to_string(),
            head_time: options.head_time,
            linger: Linger::default(),
            documents: Mutex::default(),
            reach: Mutex::default(),
            refusals: Refusals::default(),
            closing,
        });
        let lingering = Arc::clone(&front);
        drop(tokio::spawn(async move { lingering.linger.keep_looking().await }));
        let mut hears = |told| match told {
            Told::Failed(error) => {
                warn(&format!(
                    "the recording has a gap, traffic goes on: the journal cannot be written ({error})"
                ));
                Ok(())
            }
            Told::Refused(error) => Err(ReverseError::Sink(error)),
            Told::Odd(odd) => {
                warn(&odd.sentence());
                Ok(())
            }
        };
        let end = loop {
            tokio::select! {
                signal = Signals::next(&mut signals) => break Ok(Some((signal, Instant::now()))),
                () = self.stop.0.notified() => break Ok(None),
                Some(told) = tellings.recv() => if let Err(refused) = hears(told) {
                    break Err(refused);
                },
                (stream, _) = server::next(|| listener.accept()) => {
                    drop(tokio::spawn(connection::serve(stream, Arc::clone(&front))));
                }
            }
        };
        drop(listener);
        // Nobody listens where no client is connected.
        let _ = close.send(true);
        let _ = timeout(LAST_CALLS, front.tape.settle()).await;
        // What was told as the end came, and on the last calls.
        let told = std::iter::from_fn(|| tellings.try_recv().ok()).try_for_each(hears);
        let end = end.and_then(|asked| told.map(|()| asked));
        let reach = std::mem::take(&mut *lock(&front.reach));
        let unreachable = reach.why_never.filter(|_| !reach.was_reached);
        let refused = front.refusals.told();
        let report = front.faults.as_ref().or(told_of.as_ref()).map(|stand| stand.finish());
        let report = report.map(|report| Report { refused: refused.clone(), ..report });
        Ok(Ran { tape: Arc::clone(&front.tape), end, unreachable, refused, report })
    }
}

/// What is left of a front whose connections are still open.
struct Ran {
    tape: Arc<Tape>,
    /// Whether it was ended by a signal, and by which one.
    end: Result<Option<(i32, Instant)>, ReverseError>,
    unreachable: Option<String>,
    refused: Vec<Refused>,
    report: Option<Report>,
}

/// Why a front does not listen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// There is no such server.
    #[error(transparent)]
    Url(#[from] AddressError),
    /// Somebody else listens there, or nobody may.
    #[error("cannot listen: {0}")]
    Listen(#[source] io::Error),
}

/// What all connections share.
struct Front {
    tape: Arc<Tape>,
    upstream: Upstream,
    acceptor: Option<Acceptor>,
    faults: Option<Arc<Stand>>,
    guard: Guard,
    /// Whether exchanges may pass from socket to socket.
    relays: bool,
    /// Where it listens.
    address: String,
    head_time: Duration,
    linger: Linger,
    /// Where the server's metadata documents lie, as challenges named them.
    documents: Mutex<HashSet<Vec<u8>>>,
    reach: Mutex<Reach>,
    refusals: Refusals,
    closing: watch::Receiver<bool>,
}

/// Whether requests reach the server.
#[derive(Default)]
struct Reach {
    was_reached: bool,
    why_never: Option<String>,
}

struct Upstream {
    origin: Origin,
    /// Its authority.
    host: HeaderValue,
    connector: Connector,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Front {
    /// Our origin as a client knows it that names this host.
    fn origin(&self, host: Option<&[u8]>) -> String {
        let host = host.filter(|host| host.is_ascii() && !host.is_empty());
        let host = host.and_then(|host| std::str::from_utf8(host).ok());
        format!("{}://{}", scheme(self.acceptor.as_ref()), host.unwrap_or(&self.address))
    }

    /// Whether a metadata document lies there.
    fn is_document(&self, path: &str) -> bool {
        path.starts_with(metadata::WELL_KNOWN) || lock(&self.documents).contains(path.as_bytes())
    }
}

/// All is recorded through one door, and an exchange is little work: more threads would mostly wake each other.
fn runtime() -> Result<Runtime, ReverseError> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_io().enable_time().build().map_err(ReverseError::System)
}

/// A sink that is given back.
struct Lent<S>(Arc<Mutex<Option<S>>>);

impl<S: Sink> Sink for Lent<S> {
    fn write(&mut self, events: &[Event<'_>]) -> io::Result<()> {
        lock(&self.0).as_mut().map_or(Ok(()), |sink| sink.write(events))
    }

    fn missed(&mut self, messages: u64) {
        lock(&self.0).iter_mut().for_each(|sink| sink.missed(messages));
    }
}
