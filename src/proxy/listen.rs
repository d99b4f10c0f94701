//! The replaying front on HTTP: a cassette in a server's place for any number of clients.
//!
//! - `take`: a replayer, the responses it has under way, and its clock
//! - `connection`: a client's connection
//! - `body`: a response on its way

mod body;
mod connection;
mod take;

use std::{
    collections::HashMap,
    io,
    net::{SocketAddr, TcpListener, ToSocketAddrs},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    runtime::Runtime,
    sync::{Notify, watch},
    time::timeout,
};

use self::take::Take;
use super::signals::Signals;
use crate::{
    replay::Replayer,
    report::{Report, events::Event},
    transport::http::guard::Guard,
};

/// How long clients may take to hear the end of their responses when a signal ends the front.
const LAST_RESPONSES: Duration = Duration::from_millis(500);
/// So many takes there may be: each plays the whole cassette, and anybody can name one.
const MOST_TAKES: usize = 1_000;

/// How clients are served.
pub struct ListenOptions {
    /// Longer bodies of requests are refused.
    pub max_message: usize,
    /// Hosts that are served besides the local ones, where the front listens on loopback.
    pub allow_hosts: Vec<String>,
    /// Pages' origins that are served besides the local ones, where the front listens on loopback.
    pub allow_origins: Vec<String>,
    /// Whether pages of other origins may read what is answered.
    pub cors: bool,
    /// Gets the events of all takes, where they are collected.
    pub happened: Option<Happened>,
}

/// Takes in events.
pub type Happened = Arc<dyn Fn(Vec<Event>) + Send + Sync>;

/// How a front ended.
#[derive(Debug)]
pub struct ListenEnded {
    /// The signal that ended it.
    pub signal: i32,
    /// The report of all takes, with its verdict.
    pub report: Report,
}

/// A front that listens; clients that connect wait until it serves.
#[derive(Debug)]
pub struct Listen {
    listener: TcpListener,
    address: SocketAddr,
    runtime: Runtime,
    signals: Signals,
}

impl Listen {
    /// Listens there; port 0 picks one. From now on signals end what is served, and no longer the process at once.
    ///
    /// # Errors
    /// When somebody else listens there, or nobody may; when the system has no room for it.
    pub fn bind(address: impl ToSocketAddrs) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        // A replayer is asked by one at a time; more threads would only wait for each other.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let signals = {
            let _inside = runtime.enter();
            Signals::install()?
        };
        Ok(Self { listener, address, runtime, signals })
    }

    /// The origin by which clients reach it.
    pub fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Serves clients until a signal comes. `new` makes the replayer of a take; `first` is
    /// that of the default one. `missed` gets the report as it stands when a miss has come.
    ///
    /// # Errors
    /// When the system has no room for it.
    pub fn serve(
        self,
        first: Replayer,
        new: Box<dyn Fn() -> Replayer + Send + Sync>,
        options: ListenOptions,
        missed: &mut dyn FnMut(&Report),
    ) -> io::Result<ListenEnded> {
        let Self { listener, address, runtime, signals } = self;
        let missing = Arc::new(Notify::new());
        let front = {
            let _inside = runtime.enter();
            Arc::new(Front {
                takes: Mutex::new(HashMap::from([(
                    String::new(),
                    Take::begin("", first, Arc::clone(&missing), options.happened.clone()),
                )])),
                new,
                missing,
                happened: options.happened,
                guard: Guard {
                    is_open: !address.ip().is_loopback(),
                    hosts: options.allow_hosts,
                    origins: options.allow_origins,
                },
                address: address.to_string(),
                max_message: options.max_message,
                cors: options.cors,
                closing: watch::Sender::new(false),
            })
        };
        let ended = runtime.block_on(accept(listener, Some(signals), front, missed));
        runtime.shutdown_background();
        ended
    }
}

/// Serves those who connect until a signal comes.
async fn accept(
    listener: TcpListener,
    mut signals: Option<Signals>,
    front: Arc<Front>,
    missed: &mut dyn FnMut(&Report),
) -> io::Result<ListenEnded> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let signal = loop {
        tokio::select! {
            signal = Signals::next(&mut signals) => break signal,
            () = front.missing.notified() => missed(&front.report(false)),
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => drop(tokio::spawn(connection::serve(stream, Arc::clone(&front)))),
                // Descriptors that are used up come back; a client that left is none.
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            },
        }
    };
    drop(listener);
    front.closing.send_replace(true);
    // What is open ends in good order, as that of a server that is told to end.
    front.close();
    let _ = timeout(LAST_RESPONSES, front.closing.closed()).await;
    lock(&front.takes).values().for_each(|take| take.tell_last());
    Ok(ListenEnded { signal, report: front.report(true) })
}

/// What all connections share.
struct Front {
    /// By name; the default one has none.
    takes: Mutex<HashMap<String, Arc<Take>>>,
    new: Box<dyn Fn() -> Replayer + Send + Sync>,
    /// A take has a new miss.
    missing: Arc<Notify>,
    happened: Option<Happened>,
    guard: Guard,
    /// Where it listens.
    address: String,
    max_message: usize,
    cors: bool,
    /// Each connection listens to it as long as it lives.
    closing: watch::Sender<bool>,
}

impl Front {
    /// The take of this name, which begins with the first request for it; none where there are too many.
    fn take(&self, name: &str) -> Option<Arc<Take>> {
        let mut takes = lock(&self.takes);
        if let Some(take) = takes.get(name) {
            return Some(Arc::clone(take));
        }
        if takes.len() >= MOST_TAKES {
            return None;
        }
        let take = Take::begin(name, (self.new)(), Arc::clone(&self.missing), self.happened.clone());
        takes.insert(name.to_owned(), Arc::clone(&take));
        Some(take)
    }

    fn close(&self) {
        lock(&self.takes).values().for_each(|take| take.close());
    }

    /// The report of all takes. The default one counts only if it was asked for anything, or is the only one.
    fn report(&self, is_last: bool) -> Report {
        let takes = lock(&self.takes);
        let mut names: Vec<&String> = takes.keys().collect();
        names.sort();
        let mut whole: Option<Report> = None;
        for name in names {
            let report = takes[name].report();
            if name.is_empty() && takes.len() > 1 && report.connections == 0 {
                continue;
            }
            match &mut whole {
                None => whole = Some(report),
                Some(whole) => whole.merge(report),
            }
        }
        let default = &takes[""];
        let whole = whole.unwrap_or_else(|| default.report());
        if is_last { default.judge(whole) } else { whole }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
