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
    sync::{mpsc, watch},
    time::timeout,
};

use self::take::Take;
use super::signals::Signals;
use crate::{cassette::model::End, replay::Replayer, report::Report, transport::http::guard::Guard};

/// How long responses that are under way may take to end when a signal ends the front.
const LAST_RESPONSES: Duration = Duration::from_millis(200);

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
}

/// How a front ended.
#[derive(Debug)]
pub struct ListenEnded {
    /// The signal that ended it; none where the recorded server ended here.
    pub signal: Option<i32>,
    /// How the recorded server ended.
    pub end: Option<End>,
    /// The report of all takes, with its verdict.
    pub report: Report,
}

/// A front that listens; clients that connect wait until it serves.
#[derive(Debug)]
pub struct Listen {
    listener: TcpListener,
    address: SocketAddr,
}

impl Listen {
    /// Listens there; port 0 picks one.
    ///
    /// # Errors
    /// When somebody else listens there, or nobody may.
    pub fn bind(address: impl ToSocketAddrs) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    /// The origin by which clients reach it.
    pub fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Serves clients until a signal comes or the recorded server ends. `new` makes the replayer of a take; `first` is
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
        // A replayer is asked by one at a time; more threads would only wait for each other.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let ended = runtime.block_on(self.run(first, new, options, missed));
        runtime.shutdown_background();
        ended
    }

    async fn run(
        self,
        first: Replayer,
        new: Box<dyn Fn() -> Replayer + Send + Sync>,
        options: ListenOptions,
        missed: &mut dyn FnMut(&Report),
    ) -> io::Result<ListenEnded> {
        let listener = tokio::net::TcpListener::from_std(self.listener)?;
        let mut signals = Some(Signals::install()?);
        let (told, mut tellings) = mpsc::unbounded_channel();
        let (close, closing) = watch::channel(false);
        let front = Arc::new(Front {
            takes: Mutex::new(HashMap::from([(String::new(), Take::begin(first, told.clone()))])),
            new,
            told,
            guard: Guard {
                is_open: !self.address.ip().is_loopback(),
                hosts: options.allow_hosts,
                origins: options.allow_origins,
            },
            address: self.address.to_string(),
            max_message: options.max_message,
            cors: options.cors,
            closing,
        });
        let (signal, end) = loop {
            tokio::select! {
                signal = Signals::next(&mut signals) => break (Some(signal), None),
                Some(told) = tellings.recv() => match told {
                    Told::Missed => missed(&front.report(false)),
                    Told::End(end) => break (None, Some(end)),
                },
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => drop(tokio::spawn(connection::serve(stream, Arc::clone(&front)))),
                    // Descriptors that are used up come back; a client that left is none.
                    Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
                },
            }
        };
        drop(listener);
        // Nobody listens where no client is connected.
        let _ = close.send(true);
        let _ = timeout(LAST_RESPONSES, close.closed()).await;
        Ok(ListenEnded { signal, end, report: front.report(true) })
    }
}

/// What the front has to be told by its takes.
enum Told {
    /// A miss has come.
    Missed,
    /// The recorded server ended here.
    End(End),
}

/// What all connections share.
struct Front {
    /// By name; the default one has none.
    takes: Mutex<HashMap<String, Arc<Take>>>,
    new: Box<dyn Fn() -> Replayer + Send + Sync>,
    told: mpsc::UnboundedSender<Told>,
    guard: Guard,
    /// Where it listens.
    address: String,
    max_message: usize,
    cors: bool,
    closing: watch::Receiver<bool>,
}

impl Front {
    /// The take of this name, which begins with the first request for it.
    fn take(&self, name: &str) -> Arc<Take> {
        let mut takes = lock(&self.takes);
        if let Some(take) = takes.get(name) {
            return Arc::clone(take);
        }
        let take = Take::begin((self.new)(), self.told.clone());
        takes.insert(name.to_owned(), Arc::clone(&take));
        take
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
