//! The real servers behind a replay: where requests go that nothing recorded answers.
//!
//! To each the front is a client on stdio, whatever the server speaks: what stands at the other end of the pipes is up
//! to whoever serves the replay. A thread writes to it and another reads from it, so that neither holds the front up.

use std::{
    collections::{HashMap, VecDeque},
    fmt,
    fs::File,
    io::{self, Read as _, Write as _},
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use super::lock;
use crate::{
    cassette::journal::Continues,
    transport::stdio::{self, Client},
    wire::lines::{Line, LineSplitter},
};

/// The room of one read.
const READ: usize = 64 << 10;

/// A talk with a real server that is about to begin.
#[derive(Debug)]
pub struct Talk {
    /// What the front speaks through.
    pub client: Client,
    /// Where in the cassette it belongs.
    pub continues: Continues,
    /// The signals that are to end it.
    pub asked: mpsc::Receiver<i32>,
}

/// Holds a talk with the real server until either side ends it; why nothing more is answered, a sentence.
pub type Hold = dyn Fn(Talk) -> String + Send + Sync;

/// The real servers of a front.
pub struct Upstreams {
    hold: Arc<Hold>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// The talks that have not ended, by their numbers: where signals for each go.
    talks: Mutex<HashMap<u64, mpsc::Sender<i32>>>,
    ended: Condvar,
    /// How many there were.
    begun: AtomicU64,
}

impl fmt::Debug for Upstreams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstreams").field("talks", &lock(&self.shared.talks).len()).finish_non_exhaustive()
    }
}

/// What a real server does.
pub(super) enum Heard {
    /// It says a line.
    Line(Vec<u8>),
    /// It says nothing more: why.
    Ended(String),
}

/// The way to a real server. That it is dropped ends the server's input.
#[derive(Debug)]
pub(super) struct Link(mpsc::Sender<Vec<u8>>);

impl Link {
    /// Says a line; one that the server does not hear any more is not answered either, which is told.
    pub(super) fn say(&self, line: Vec<u8>) {
        let _ = self.0.send(line);
    }
}

impl Upstreams {
    /// Real servers that `hold` talks with.
    pub fn new(hold: Arc<Hold>) -> Self {
        Self { hold, shared: Arc::default() }
    }

    /// Begins a talk; `tell` gets what the server does, on a thread of its own.
    ///
    /// # Errors
    /// When the system gives no pipes.
    pub(super) fn open(
        &self,
        continues: Continues,
        tell: impl Fn(Heard) + Send + 'static,
    ) -> io::Result<Link> {
        let (their_input, our_output) = io::pipe()?;
        let (our_input, their_output) = io::pipe()?;
        let client = Client { input: their_input.into(), output: their_output.into() };
        let (ask, asked) = mpsc::channel();
        let talk = Talk { client, continues, asked };
        let number = self.shared.begun.fetch_add(1, Ordering::Relaxed);
        lock(&self.shared.talks).insert(number, ask);
        let (hold, shared) = (Arc::clone(&self.hold), Arc::clone(&self.shared));
        let held = thread::spawn(move || hold(talk));
        let (link, lines) = mpsc::channel::<Vec<u8>>();
        let said = thread::spawn(move || write(our_output.into(), &lines));
        thread::spawn(move || {
            // It is over even where a fault of ours ends it.
            let _over = Over(shared, number);
            read(&our_input.into(), |line| tell(Heard::Line(line)));
            tell(Heard::Ended(held.join().unwrap_or_else(|_| "a fault in tapedeck itself".to_owned())));
            // A thread that does not write any more has heard the end too.
            let _ = said.join();
        });
        Ok(Link(link))
    }

    /// Has a signal end all of them.
    pub fn end(&self, signal: i32) {
        for ask in lock(&self.shared.talks).values() {
            // One that has ended needs none.
            let _ = ask.send(signal);
        }
    }

    /// Waits until all have ended, or that much time has passed; whether they have.
    pub fn wait(&self, within: Duration) -> bool {
        let until = Instant::now() + within;
        let mut talks = lock(&self.shared.talks);
        while !talks.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.shared.ended.wait_timeout(talks, left);
            talks = waited.unwrap_or_else(std::sync::PoisonError::into_inner).0;
        }
        true
    }
}

/// What real servers do, for a front that waits at descriptors.
pub(super) struct Mailbox {
    heard: Arc<Mutex<VecDeque<(u32, Heard)>>>,
    woken: UnixStream,
    wake: Arc<UnixStream>,
}

impl Mailbox {
    /// An empty one.
    ///
    /// # Errors
    /// When no descriptor is left.
    pub(super) fn new() -> io::Result<Self> {
        let (woken, wake) = UnixStream::pair()?;
        woken.set_nonblocking(true)?;
        wake.set_nonblocking(true)?;
        Ok(Self { heard: Arc::default(), woken, wake: Arc::new(wake) })
    }

    /// What puts there what one of them does.
    pub(super) fn slot(&self, upstream: u32) -> impl Fn(Heard) + Send + 'static {
        let (heard, wake) = (Arc::clone(&self.heard), Arc::clone(&self.wake));
        move |what| {
            lock(&heard).push_back((upstream, what));
            // Where it is full, who reads there is woken anyway.
            let _ = (&*wake).write(&[0]);
        }
    }

    /// All that is there now.
    pub(super) fn take(&mut self) -> VecDeque<(u32, Heard)> {
        let mut room = [0; 256];
        while matches!(self.woken.read(&mut room), Ok(1..)) {}
        std::mem::take(&mut *lock(&self.heard))
    }
}

impl AsFd for Mailbox {
    /// Readable when something is there.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.woken.as_fd()
    }
}

/// A talk that ends with this.
struct Over(Arc<Shared>, u64);

impl Drop for Over {
    fn drop(&mut self) {
        lock(&self.0.talks).remove(&self.1);
        self.0.ended.notify_all();
    }
}

fn write(output: OwnedFd, lines: &mpsc::Receiver<Vec<u8>>) {
    let mut output = Some(File::from(output));
    for mut line in lines {
        line.push(b'\n');
        // What nobody reads is no longer said; the front may go on all the same.
        output.take_if(|output| output.write_all(&line).is_err());
    }
}

fn read(input: &OwnedFd, mut each: impl FnMut(Vec<u8>)) {
    let mut lines = LineSplitter::new(usize::MAX);
    let mut room = vec![0; READ];
    while let Ok(length @ 1..) = stdio::read(input, &mut room) {
        lines.feed(&room[..length], |line| {
            if let Line::Whole(line) = line {
                each(line.to_vec());
            }
        });
    }
    // A message is whole without a line end too, where its server ended behind it.
    if !lines.missing_end().is_empty() {
        lines.finish().into_iter().for_each(each);
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};

    use super::*;

    #[test]
    fn a_last_message_without_a_line_end_is_heard_and_half_of_one_is_not() {
        let whole = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        for (said, expected) in [(whole, &[whole][..]), (&whole[..30], &[])] {
            let (input, mut output) = io::pipe().unwrap();
            output.write_all(said.as_bytes()).unwrap();
            drop(output);
            let mut heard = Vec::new();
            read(&input.into(), |line| heard.push(String::from_utf8(line).unwrap()));
            assert_eq!(heard, expected);
        }
    }

    #[test]
    fn a_talk_ends_with_its_link_and_says_why_nothing_more_comes() {
        let hold: Arc<Hold> = Arc::new(|talk: Talk| {
            let mut output = File::from(talk.client.output);
            for line in BufReader::new(File::from(talk.client.input)).lines() {
                writeln!(output, "heard {}", line.unwrap()).unwrap();
            }
            "it is over".to_owned()
        });
        let upstreams = Upstreams::new(hold);
        let (told, heard) = mpsc::channel();
        let tell = move |said| {
            let _ = told.send(match said {
                Heard::Line(line) => String::from_utf8(line).unwrap(),
                Heard::Ended(why) => format!("ended: {why}"),
            });
        };
        let link = upstreams.open(Continues::default(), tell).unwrap();
        link.say(b"a".to_vec());
        assert_eq!(heard.recv().unwrap(), "heard a");
        assert!(!upstreams.wait(Duration::ZERO), "it is still there");
        link.say(b"b".to_vec());
        drop(link);
        assert_eq!(heard.iter().collect::<Vec<_>>(), ["heard b", "ended: it is over"]);
        assert!(upstreams.wait(Duration::from_secs(60)));
    }
}
