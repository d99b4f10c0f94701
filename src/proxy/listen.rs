//! The replaying front on HTTP: cassettes in the places of servers for any number of clients.
//!
//! - `deck`: a server and its takes, and `route`: which of them a request is for
//! - `take`: a replayer, and the responses it has under way; `clock`: the run's time
//! - `connection`: a client's connection
//! - `admin`: tending the run
//! - `pipe`: a process that has joined, for a client on stdio
//! - `unserved`: what came and was for none of the servers

pub mod admin;
mod clock;
mod connection;
mod deck;
mod early;
mod pipe;
mod route;
mod take;
mod unserved;

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
    time::{sleep_until, timeout},
};

use self::{
    admin::{Admin, Recent},
    clock::Clock,
    deck::Deck,
    unserved::Unserved,
};
use super::{join::Meeting, pace::Pace, run::TestCommand, signals::Signals, upstream::Upstreams};
use crate::{
    replay::{Due, Replayer},
    report::{Report, Verdict, events::Event},
    traffic::Exit,
    transport::http::{
        guard::Guard,
        server::{self, scheme},
        tls::Acceptor,
    },
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
    /// What is played waits until whoever tends the run winds the clock.
    pub manual_clock: bool,
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
    admin: Option<Admin>,
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
        Ok(Self { listener, address, runtime, signals, acceptor: None, meeting: None, admin: None })
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

    /// The run is tended there.
    #[must_use]
    pub fn with_admin(mut self, admin: Admin) -> Self {
        self.admin = Some(admin);
        self
    }

    /// The origin by which whoever tends the run reaches it, if that was asked for.
    pub fn admin(&self) -> Option<String> {
        self.admin.as_ref().map(Admin::origin)
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
    /// `missed` gets the report as it stands when a miss has come, but is given at most a tenth of the time, and what came
    /// meanwhile together.
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
        let Self { listener, address, runtime, signals, acceptor, meeting, admin } = self;
        let recent = admin.as_ref().map(|_| Arc::new(Recent::default()));
        let shared = Arc::new(Shared {
            clock: Clock::start(options.manual_clock),
            missing: Notify::new(),
            stirred: Notify::new(),
            happened: match &recent {
                Some(recent) => Some(recent.listening(options.happened)),
                None => options.happened,
            },
        });
        let guard = server::guard(address, options.allow_hosts, options.allow_origins);
        let front = {
            let _inside = runtime.enter();
            Arc::new(Front {
                answers_early: servers.iter().any(|served| served.first.answers_early()),
                decks: servers.into_iter().map(|served| Deck::new(served, &shared)).collect(),
                is_at_root,
                shared,
                recent,
                admin_guard: Guard { is_open: false, ..guard.clone() },
                guard,
                scheme: scheme(acceptor.as_ref()),
                acceptor,
                address: address.to_string(),
                max_message: options.max_message,
                cors: options.cors,
                closing: watch::Sender::new(false),
                unserved: Unserved::default(),
            })
        };
        let doors = Doors { listener, meeting, admin, signals: Some(signals), command };
        let ended = runtime.block_on(accept(doors, front, missed));
        runtime.shutdown_background();
        ended
    }
}

/// What a front waits at.
struct Doors {
    listener: TcpListener,
    meeting: Option<Meeting>,
    admin: Option<Admin>,
    signals: Option<Signals>,
    command: Option<TestCommand>,
}

/// Serves those who connect until the command has ended, or a signal comes.
async fn accept(doors: Doors, front: Arc<Front>, missed: &mut dyn FnMut(&Report)) -> io::Result<ListenEnded> {
    let Doors { listener, meeting, admin, mut signals, mut command } = doors;
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let joining = match &meeting {
        Some(meeting) => Some(tokio::net::UnixListener::from_std(meeting.listener.try_clone()?)?),
        None => None,
    };
    let admin = match admin {
        Some(admin) => Some(tokio::net::TcpListener::from_std(admin.listener)?),
        None => None,
    };
    let (mut pace, clock) = (Pace::default(), &front.shared.clock);
    let ended = loop {
        pace.tell(|| clock.now().real, || missed(&front.report(false)));
        let wakes = pace.due().and_then(|due| clock.wakes(Due::real(due)));
        tokio::select! {
            signal = Signals::next(&mut signals) => match &command {
                Some(command) => command.signal(signal),
                None => break None,
            },
            ended = async { command.as_mut().expect("guarded").ended().await }, if command.is_some() => {
                break Some(ended?);
            }
            () = front.shared.missing.notified() => pace.note(),
            () = async { sleep_until(wakes.expect("guarded").into()).await }, if wakes.is_some() => {}
            (stream, _) = server::next(|| listener.accept()) => {
                drop(tokio::spawn(connection::serve(stream, Arc::clone(&front))));
            }
            (stream, _) = server::next(|| joining.as_ref().expect("guarded").accept()), if joining.is_some() => {
                drop(tokio::spawn(pipe::serve(stream, Arc::clone(&front))));
            }
            (stream, _) = server::next(|| admin.as_ref().expect("guarded").accept()), if admin.is_some() => {
                drop(tokio::spawn(admin::serve(stream, Arc::clone(&front))));
            }
        }
    };
    drop((listener, joining, meeting, admin));
    front.closing.send_replace(true);
    // What is open ends in good order, as that of a server that is told to end.
    front.decks.iter().for_each(Deck::close);
    let _ = timeout(LAST_RESPONSES, front.closing.closed()).await;
    front.decks.iter().for_each(Deck::tell_last);
    Ok(ListenEnded { command: ended, report: front.report(true) })
}

/// What all takes share.
struct Shared {
    clock: Clock,
    /// A take has a new miss.
    missing: Notify,
    /// Told when something may have changed in a take, where somebody winds the clock.
    stirred: Notify,
    /// Gets their events.
    happened: Option<Happened>,
}

/// What all connections share.
struct Front {
    decks: Vec<Deck>,
    /// There is one server, and no path names it.
    is_at_root: bool,
    /// Requests may be answered before they are whole.
    answers_early: bool,
    shared: Arc<Shared>,
    /// The last events, where the run is tended.
    recent: Option<Arc<Recent>>,
    guard: Guard,
    /// Whoever tends the run is guarded wherever clients may come from.
    admin_guard: Guard,
    acceptor: Option<Acceptor>,
    scheme: &'static str,
    /// Where it listens.
    address: String,
    max_message: usize,
    cors: bool,
    /// Each connection listens to it as long as it lives.
    closing: watch::Sender<bool>,
    unserved: Unserved,
}

impl Front {
    /// A process could not join.
    fn could_not_join(&self, why: String) {
        self.tell(|unserved| unserved.could_not_join(why));
    }

    /// Tells whoever keeps the report that there is something new.
    fn tell(&self, was_unserved: impl FnOnce(&Unserved)) {
        was_unserved(&self.unserved);
        self.shared.missing.notify_one();
    }

    /// The report of all servers, and of what came and was for none of them.
    fn report(&self, is_last: bool) -> Report {
        let mut report = self.report_of_servers(is_last);
        self.unserved.add_to(&mut report);
        if is_last && !(report.not_joined.is_empty() && report.misses.is_empty()) {
            report.verdict = Verdict::Bad;
        }
        report
    }

    fn report_of_servers(&self, is_last: bool) -> Report {
        match self.decks.as_slice() {
            [deck] if self.is_at_root => deck.report(is_last),
            decks => {
                let report = Report::of_servers(decks.iter().map(|deck| (&*deck.name, deck.report(is_last))));
                match decks.first().filter(|_| is_last) {
                    // The plan of the first is that of all.
                    Some(first) => first.judge_all(report),
                    None => report,
                }
            }
        }
    }
}
