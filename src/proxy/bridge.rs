//! A client on stdio and a server on HTTP, with a tap on the client's side.
//!
//! Each line of the client is a POST of its own, and what comes back, on whichever stream, is a line to the client.
//! Nothing is sent twice and no session is begun anew: where a request gets no answer, the client hears why. Requests
//! overtake each other as they do for a client of HTTP; what follows `initialize` waits for its answer, and what
//! follows a notification until the server has taken that.
//!
//! - `pipes`: the client's lines
//! - `tape`: what is recorded of them
//! - `shared`: what all requests share
//! - `dispatch`: when each message is sent
//! - `post`: a message and its response
//! - `events`: event streams, the server's own, and HTTP+SSE
//! - `headers`, `params`: what is said in headers
//! - `flight`: what is unanswered
//! - `failure`: what the client hears where there is no answer
//! - `pool`: connections

mod dispatch;
mod events;
mod failure;
mod flight;
mod headers;
mod params;
mod pipes;
mod pool;
mod post;
mod shared;
mod tape;

use std::{
    io,
    pin::pin,
    sync::atomic::{AtomicBool, Ordering},
    sync::{Arc, Mutex},
    time::Instant,
};

use hyper::{
    header::{HeaderName, HeaderValue},
    http::uri::PathAndQuery,
};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Duration, timeout},
};

use self::{
    dispatch::dispatch_all,
    flight::Flight,
    pipes::Told,
    pool::Pool,
    shared::{Core, Mode},
    tape::{Said, Tape},
};
use super::{hide::Hide, lock, recorder::Sink, signals::Signals};
use crate::{
    traffic::{Exit, Payload},
    transport::{
        http::{
            connect::{ConnectOptions, Connector, ConnectorError},
            origin::{AddressError, Origin},
        },
        stdio::Client,
    },
};

/// How long the server may be silent, once the client has closed its side, before unanswered requests are given up.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long the end of the session may take to be told.
const DELETION: Duration = Duration::from_secs(1);
/// The same once a signal has come.
const LAST_DELETION: Duration = Duration::from_millis(500);
/// How long the last lines may take to be written.
const LAST_LINES: Duration = Duration::from_millis(500);
/// How many lines wait in each direction before whoever sends them has to.
const LINES: usize = 64;

/// How traffic is recorded.
pub struct BridgeOptions {
    /// Longer messages pass, and are recorded as envelope, size and hash.
    pub max_message: usize,
    /// A sink that fails ends the session.
    pub require_recording: bool,
    /// What every request to the server carries. None of it is recorded.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Whether signals end the session, and not the process at once.
    pub signals: bool,
    /// Signals from elsewhere that end the session as those do.
    pub ends: Option<std::sync::mpsc::Receiver<i32>>,
    /// What is hidden from the sink.
    pub hide: Box<dyn Hide>,
    /// Told, in the middle of the session, what is wrong and no request is told of: a sentence each.
    pub warn: Box<dyn FnMut(&str) + Send>,
}

impl Default for BridgeOptions {
    fn default() -> Self {
        Self {
            max_message: 64 << 20,
            require_recording: false,
            headers: Vec::new(),
            signals: true,
            ends: None,
            hide: Box::new(()),
            warn: Box::new(|_| ()),
        }
    }
}

/// How a session ended.
#[derive(Debug)]
pub struct BridgeEnded<S> {
    /// The signal that ended it, and when.
    pub asked: Option<(i32, Instant)>,
    /// Why the client did not take all that it was told, where that is so.
    pub gone: Option<io::Error>,
    /// How many messages the sink did not take.
    pub missed: u64,
    /// Why the server could not be reached, where that happened.
    pub unreachable: Option<String>,
    /// Whether the server has answered any request with a result.
    pub has_answered: bool,
    /// The sink, with all events in it.
    pub sink: Option<S>,
}

/// A session cannot begin, or was broken off.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BridgeError {
    /// There is no such server.
    #[error(transparent)]
    Url(#[from] AddressError),
    /// There is no way to it.
    #[error(transparent)]
    Connect(#[from] ConnectorError),
    /// The system does not give what it needs.
    #[error("cannot use the network: {0}")]
    System(#[source] io::Error),
    /// The sink failed, and `require_recording` says that this is fatal.
    #[error("the recording cannot be written, and the session was ended because of it: {0}")]
    Sink(#[source] io::Error),
}

/// The way to a server for one client on stdio.
#[derive(Debug)]
pub struct Bridge {
    connector: Connector,
    path: PathAndQuery,
}

impl Bridge {
    /// To the server at `url`, reached in this way.
    ///
    /// # Errors
    /// When there is no such server or way.
    pub fn to(url: &str, options: ConnectOptions) -> Result<Self, BridgeError> {
        let (origin, path) = Origin::of_url(url)?;
        let path = path.parse().map_err(|_| AddressError::NoUrl)?;
        Ok(Self { connector: Connector::new(origin, options)?, path })
    }

    /// Passes messages both ways until the client closes its side, and has each written to the sink before it goes on.
    ///
    /// When it returns, a thread may still wait for the client's next bytes; it passes nothing on.
    ///
    /// # Errors
    /// When the system has no room for it, or when the sink fails and that is fatal.
    pub fn record<S: Sink + 'static>(
        self,
        client: Client,
        sink: S,
        options: BridgeOptions,
    ) -> Result<BridgeEnded<S>, BridgeError> {
        let BridgeOptions { max_message, require_recording, mut headers, signals, ends, mut hide, warn } =
            options;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(BridgeError::System)?;
        for (name, value) in &mut headers {
            value.set_sensitive(true);
            // A server may repeat it anywhere; what was shown as a credential is hidden from then on.
            let _ = hide.header(name.as_ref(), value.as_bytes());
        }
        let tape = Arc::new(Tape::new(sink, hide, max_message, require_recording));
        let (told, tellings) = mpsc::unbounded_channel();
        let (to_server, lines) = mpsc::channel(LINES);
        let (to_client, answers) = mpsc::channel(LINES);
        let is_closed = pipes::read(Arc::clone(&tape), client.input, to_server, told.clone());
        let written = pipes::write(Arc::clone(&tape), client.output, answers, told.clone());
        let core = Arc::new(Core {
            pool: Pool::new(self.connector),
            path: Mutex::new(self.path),
            mode: Mutex::new(Mode::Streamable),
            agreed: Mutex::default(),
            flight: Flight::default(),
            listening: Mutex::default(),
            has_stream: AtomicBool::new(false),
            extra: headers,
            out: Mutex::new(Some(to_client)),
            told,
            has_answered: AtomicBool::new(false),
            max_message,
        });
        let mut watch = Watch { tellings, warn, asked: None, failure: None, unreachable: None, gone: None };
        let (end, ended) = oneshot::channel();
        if let Some(ends) = ends {
            std::thread::spawn(move || ends.recv().map(|signal| end.send(signal)));
        }
        let run = run(Arc::clone(&core), lines, (is_closed, written), (signals, ended), &mut watch);
        let outcome = runtime.block_on(run);
        // Requests that are still under way have nothing to say any more.
        runtime.shutdown_background();
        outcome.map_err(BridgeError::System)?;
        // A server on HTTP has no exit status; it was there to the end.
        let exit = Exit { status: Some(0), signal: None, by_itself: false };
        let (sink, missed) = tape.finish(Payload::Exit(exit)).unzip();
        match watch.failure {
            Some(error) => Err(BridgeError::Sink(error)),
            None => Ok(BridgeEnded {
                asked: watch.asked,
                gone: watch.gone,
                missed: missed.unwrap_or(0),
                unreachable: watch.unreachable,
                has_answered: core.has_answered.load(Ordering::Relaxed),
                sink,
            }),
        }
    }
}

/// What happens beside the messages.
struct Watch {
    tellings: mpsc::UnboundedReceiver<Told>,
    warn: Box<dyn FnMut(&str) + Send>,
    asked: Option<(i32, Instant)>,
    failure: Option<io::Error>,
    unreachable: Option<String>,
    gone: Option<io::Error>,
}

impl Watch {
    /// Whether the session goes on.
    fn hears(&mut self, told: Told) -> bool {
        match told {
            Told::Failed(error) => (self.warn)(&format!(
                "the recording has a gap, the session goes on: the journal cannot be written ({error})"
            )),
            Told::Wrong(text) => (self.warn)(&text),
            Told::Unreached(why) => self.unreachable = Some(why),
            Told::Gone(error) => {
                self.gone = Some(error);
                return false;
            }
            Told::Refused(error) => {
                self.failure = Some(error);
                return false;
            }
        }
        true
    }
}

async fn run(
    core: Arc<Core>,
    lines: mpsc::Receiver<Said>,
    (is_closed, written): (oneshot::Receiver<()>, oneshot::Receiver<()>),
    (signals, mut ended): (bool, oneshot::Receiver<i32>),
    watch: &mut Watch,
) -> io::Result<()> {
    let mut signals = signals.then(Signals::install).transpose()?;
    let mut session = pin!(async {
        let is_done = async {
            dispatch_all(&core, lines).await;
            core.flight.settle().await;
        };
        // Lines may wait for an answer that never comes, so they are no part of this.
        let is_given_up = async {
            let _ = is_closed.await;
            core.flight.falls_silent(PATIENCE).await;
        };
        tokio::select! {
            () = is_done => {}
            () = is_given_up => {}
        }
    });
    loop {
        tokio::select! {
            signal = Signals::next(&mut signals) => {
                watch.asked = Some((signal, Instant::now()));
                break;
            }
            Ok(signal) = &mut ended, if !ended.is_terminated() => {
                watch.asked = Some((signal, Instant::now()));
                break;
            }
            Some(told) = watch.tellings.recv() => {
                if !watch.hears(told) {
                    break;
                }
            }
            () = &mut session => break,
        }
    }
    if let Some(listening) = lock(&core.listening).take() {
        listening.abort();
    }
    let limit = if watch.asked.is_some() { LAST_DELETION } else { DELETION };
    // The client's output is closed first: it may wait for that.
    drop(lock(&core.out).take());
    let _ = timeout(LAST_LINES, written).await;
    let _ = timeout(limit, core.delete()).await;
    while let Ok(told) = watch.tellings.try_recv() {
        watch.hears(told);
    }
    Ok(())
}
