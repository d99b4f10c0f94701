//! The replaying front on HTTP: cassettes in the places of servers for any number of clients.
//!
//! - `deck`: a server and its takes, and `route`: which of them a request is for
//! - `take`: a replayer, the responses it has under way, and its clock
//! - `connection`: a client's connection
//! - `body`: a response on its way
//! - `pipe`: a process that has joined, for a client on stdio

mod body;
mod connection;
mod deck;
mod pipe;
mod route;
mod take;

use std::{
    io,
    net::{SocketAddr, TcpListener, ToSocketAddrs},
    path::Path,
    sync::Arc,
    time::Duration,
};

use tokio::{
    runtime::Runtime,
    sync::{Notify, watch},
    time::timeout,
};

use self::deck::Deck;
use super::{join::Meeting, run::TestCommand, signals::Signals, upstream::Upstreams};
use crate::{
    replay::Replayer,
    report::{Report, events::Event},
    traffic::Exit,
    transport::http::{guard::Guard, tls::Acceptor},
};

/// How long clients may take to hear the end of their responses when a signal ends the front.
const LAST_RESPONSES: Duration = Duration::from_millis(500);

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

/// A server that a front stands for.
pub struct Served {
    /// What it is called.
    pub name: String,
    /// The replayer of its default take.
    pub first: Replayer,
    /// Makes the replayer of a further take.
    pub new: Box<dyn Fn() -> Replayer + Send + Sync>,
    /// Where requests go that are no misses for it; none where they stay misses.
    pub upstreams: Option<Arc<Upstreams>>,
}

/// All servers that a front stands for.
pub struct Serves {
    /// At least one.
    pub servers: Vec<Served>,
    /// There is one, at the paths that it had; otherwise each is at its paths behind its name.
    pub is_at_root: bool,
}

/// Takes in events.
pub type Happened = Arc<dyn Fn(Vec<Event>) + Send + Sync>;

/// How a front ended.
#[derive(Debug)]
pub struct ListenEnded {
    /// How the command ended that it was there for; none where a signal ended it.
    pub command: Option<Exit>,
    /// The report of all servers and takes, with its verdict.
    pub report: Report,
}

/// A front that listens; clients that connect wait until it serves.
#[derive(Debug)]
pub struct Listen {
    listener: TcpListener,
    address: SocketAddr,
    runtime: Runtime,
    signals: Signals,
    acceptor: Option<Acceptor>,
    meeting: Option<Meeting>,
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
        Ok(Self { listener, address, runtime, signals, acceptor: None, meeting: None })
    }

    /// Clients speak TLS.
    #[must_use]
    pub fn with_tls(mut self, acceptor: Acceptor) -> Self {
        self.acceptor = Some(acceptor);
        self
    }

    /// Processes may join there.
    #[must_use]
    pub fn with_meeting(mut self, meeting: Meeting) -> Self {
        self.meeting = Some(meeting);
        self
    }

    /// From now on more signals are waited for: all that are passed on to a command.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn heed_all_signals(&mut self) -> io::Result<()> {
        let _inside = self.runtime.enter();
        self.signals = Signals::install_all()?;
        Ok(())
    }

    /// The origin by which clients reach it.
    pub fn origin(&self) -> String {
        format!("{}://{}", scheme(self.acceptor.as_ref()), self.address)
    }

    /// Where processes join, if they may.
    pub fn meeting(&self) -> Option<&Path> {
        self.meeting.as_ref().map(Meeting::path)
    }

    /// Serves clients until `command` has ended, which is passed all signals; without one, until a signal comes.
    /// `missed` gets the report as it stands when a miss has come.
    ///
    /// # Errors
    /// When the system has no room for it.
    pub fn serve(
        self,
        Serves { servers, is_at_root }: Serves,
        command: Option<TestCommand>,
        options: ListenOptions,
        missed: &mut dyn FnMut(&Report),
    ) -> io::Result<ListenEnded> {
        let Self { listener, address, runtime, signals, acceptor, meeting } = self;
        let missing = Arc::new(Notify::new());
        let front = {
            let _inside = runtime.enter();
            Arc::new(Front {
                decks: servers
                    .into_iter()
                    .map(|served| Deck::new(served, &missing, options.happened.as_ref()))
                    .collect(),
                is_at_root,
                missing,
                guard: Guard {
                    is_open: !address.ip().is_loopback(),
                    hosts: options.allow_hosts,
                    origins: options.allow_origins,
                },
                scheme: scheme(acceptor.as_ref()),
                acceptor,
                address: address.to_string(),
                max_message: options.max_message,
                cors: options.cors,
                closing: watch::Sender::new(false),
            })
        };
        let doors = Doors { listener, meeting, signals: Some(signals), command };
        let ended = runtime.block_on(accept(doors, front, missed));
        runtime.shutdown_background();
        ended
    }
}

const fn scheme(acceptor: Option<&Acceptor>) -> &'static str {
    if acceptor.is_some() { "https" } else { "http" }
}

/// What a front waits at.
struct Doors {
    listener: TcpListener,
    meeting: Option<Meeting>,
    signals: Option<Signals>,
    command: Option<TestCommand>,
}

/// Serves those who connect until the command has ended, or a signal comes.
async fn accept(doors: Doors, front: Arc<Front>, missed: &mut dyn FnMut(&Report)) -> io::Result<ListenEnded> {
    let Doors { listener, meeting, mut signals, mut command } = doors;
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let joining = match &meeting {
        Some(meeting) => Some(tokio::net::UnixListener::from_std(meeting.listener.try_clone()?)?),
        None => None,
    };
    let ended = loop {
        tokio::select! {
            signal = Signals::next(&mut signals) => match &command {
                Some(command) => command.signal(signal),
                None => break None,
            },
            ended = async { command.as_mut().expect("guarded").ended().await }, if command.is_some() => {
                break Some(ended?);
            }
            () = front.missing.notified() => missed(&front.report(false)),
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => drop(tokio::spawn(connection::serve(stream, Arc::clone(&front)))),
                // Descriptors that are used up come back; a client that left is none.
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            },
            accepted = async { joining.as_ref().expect("guarded").accept().await }, if joining.is_some() => {
                match accepted {
                    Ok((stream, _)) => drop(tokio::spawn(pipe::serve(stream, Arc::clone(&front)))),
                    Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
                }
            }
        }
    };
    drop((listener, joining, meeting));
    front.closing.send_replace(true);
    // What is open ends in good order, as that of a server that is told to end.
    front.decks.iter().for_each(Deck::close);
    let _ = timeout(LAST_RESPONSES, front.closing.closed()).await;
    front.decks.iter().for_each(Deck::tell_last);
    Ok(ListenEnded { command: ended, report: front.report(true) })
}

/// What all connections share.
struct Front {
    decks: Vec<Deck>,
    /// There is one server, and no path names it.
    is_at_root: bool,
    /// A take has a new miss.
    missing: Arc<Notify>,
    guard: Guard,
    acceptor: Option<Acceptor>,
    scheme: &'static str,
    /// Where it listens.
    address: String,
    max_message: usize,
    cors: bool,
    /// Each connection listens to it as long as it lives.
    closing: watch::Sender<bool>,
}

impl Front {
    /// The report of all servers.
    fn report(&self, is_last: bool) -> Report {
        match self.decks.as_slice() {
            [deck] if self.is_at_root => deck.report(is_last),
            decks => Report::of_servers(decks.iter().map(|deck| (&*deck.name, deck.report(is_last)))),
        }
    }
}
