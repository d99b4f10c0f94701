//! Joining a run: a process that a client starts is a pipe between the client's stdio and a take of the run.
//!
//! The joined process greets with one line, a [`Hello`], and is answered with one: [`WELCOME`], or a sentence that
//! says why not. From then on it sends the client's bytes as they are, and half-closes when the client has closed its
//! side. What comes back are pieces: four bytes of length (the first is the highest), and so many bytes, which are
//! one write to the client. A length of 0 begins an end: behind it stands one line, `exit N` or `signal N`, or `closed`,
//! which is the end of what the client is told and not of the process.

use std::{
    fs::Permissions,
    io::{self, BufRead, BufReader, Read, Write},
    net::Shutdown,
    os::{
        fd::OwnedFd,
        unix::{
            fs::PermissionsExt,
            net::{UnixListener, UnixStream},
        },
    },
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use crate::{
    cassette::model::End,
    traffic::Exit,
    transport::stdio::{self, Client},
};

/// The form of what is said in joining.
const VERSION: u32 = 2;

/// How much is read at once.
const READ: usize = 64 << 10;

/// How long a run may take to hear why a process broke off.
const TAKEN_IN: Duration = Duration::from_secs(2);

/// What ends the client's output.
const CLOSED: &str = "closed\n";

/// What a process that may join is told.
pub(super) const WELCOME: &[u8] = b"joined\n";

/// The first word of a process that wants to join.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Hello {
    join: u32,
    /// Which server; none means the only one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) server: Option<String>,
    /// Which take; empty means the default one.
    pub(super) take: String,
    /// It does not join, but tells why one that had joined broke off.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) broke_off: Option<String>,
}

impl Hello {
    pub(super) fn read(line: &[u8]) -> Result<Self, String> {
        let hello: Self =
            serde_json::from_slice(line).map_err(|error| format!("that is no `tapedeck join`: {error}"))?;
        if hello.join == VERSION {
            return Ok(hello);
        }
        Err(format!("this run is joined by version {VERSION}, not {}; use one tapedeck for both", hello.join))
    }
}

/// A piece for the client.
pub(super) fn piece(bytes: &[u8]) -> Vec<u8> {
    let longest = u32::MAX as usize;
    let pieces = bytes.chunks(longest);
    let mut sent = Vec::with_capacity(bytes.len() + 4);
    for piece in pieces {
        // It is no longer than that.
        sent.extend_from_slice(&(piece.len() as u32).to_be_bytes());
        sent.extend_from_slice(piece);
    }
    sent
}

/// The end of what the client is told, and what there is of a line before it.
pub(super) fn closed(partial: &[u8]) -> Vec<u8> {
    let mut sent = piece(partial);
    sent.extend_from_slice(&[0; 4]);
    sent.extend_from_slice(CLOSED.as_bytes());
    sent
}

/// The end, and what the recorded server wrote of a line that has none.
pub(super) fn end(end: &End) -> Vec<u8> {
    let mut sent = piece(end.partial.as_deref().unwrap_or_default());
    sent.extend_from_slice(&[0; 4]);
    let how = match (end.signal, end.exit) {
        (Some(signal), _) => format!("signal {signal}\n"),
        (None, status) => format!("exit {}\n", status.unwrap_or_default()),
    };
    sent.extend_from_slice(how.as_bytes());
    sent
}

/// Where processes join a run: a socket in a folder of its own, which only its owner may enter. Both go with this.
#[derive(Debug)]
pub struct Meeting {
    pub(super) listener: UnixListener,
    path: PathBuf,
    _folder: TempDir,
}

impl Meeting {
    /// Opens one in the folder for temporary files.
    ///
    /// # Errors
    /// When no folder can be made, or no socket in it.
    pub fn open() -> io::Result<Self> {
        // Addresses of sockets are short; some folders for temporary files are not.
        Self::open_in(&std::env::temp_dir())
            .or_else(|error| Self::open_in(Path::new("/tmp")).map_err(|_| error))
    }

    fn open_in(folder: &Path) -> io::Result<Self> {
        let mut builder = tempfile::Builder::new();
        let folder =
            builder.prefix("tapedeck-run-").permissions(Permissions::from_mode(0o700)).tempdir_in(folder)?;
        let path = folder.path().join("run");
        let listener = UnixListener::bind(&path)?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener, path, _folder: folder })
    }

    /// What [`Joined::connect`] is given.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// A process that is not, or no longer, part of a run.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// Nobody is there.
    #[error("cannot reach a run at `{}`: {source}", path.display())]
    NoRun {
        /// The path that was given.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The run says why not.
    #[error("{0}")]
    Refused(String),
    /// It ended while this process was part of it.
    #[error("the run has ended")]
    Ended,
    /// The client cannot be written to.
    #[error("cannot write to the client: {0}")]
    Client(io::Error),
}

/// A process that is part of a run.
#[derive(Debug)]
pub struct Joined {
    run: BufReader<UnixStream>,
    to_run: UnixStream,
}

impl Joined {
    /// Joins the run at `path`: a server of it (none: its only one), in a take of it (empty: the default one).
    ///
    /// # Errors
    /// When there is no run, or it has no such server.
    pub fn connect(path: &Path, server: Option<&str>, take: &str) -> Result<Self, JoinError> {
        let no_run = |source| JoinError::NoRun { path: path.to_owned(), source };
        let (server, take) = (server.map(str::to_owned), take.to_owned());
        let hello = Hello { join: VERSION, server, take, broke_off: None };
        let to_run = greet(path, &hello).map_err(no_run)?;
        let mut run = BufReader::with_capacity(READ, to_run.try_clone().map_err(no_run)?);
        let mut answer = Vec::new();
        run.read_until(b'\n', &mut answer).map_err(no_run)?;
        match answer.strip_suffix(b"\n") {
            _ if answer == WELCOME => Ok(Self { run, to_run }),
            Some(sentence) => Err(JoinError::Refused(String::from_utf8_lossy(sentence).into_owned())),
            None => Err(JoinError::Ended),
        }
    }

    /// Passes on what either side says until the run says that it is over; how.
    ///
    /// # Errors
    /// When the run is gone. That the client is gone is a good end.
    pub fn serve(self, client: Client) -> Result<Exit, JoinError> {
        let Self { mut run, to_run } = self;
        let Client { input, output } = client;
        // It waits for the client as long as this process lives.
        drop(thread::spawn(move || pass_on(&input, to_run)));
        let mut output = Some(stdio::Outlet::new(output));
        let mut piece = Vec::new();
        loop {
            let mut length = [0; 4];
            run.read_exact(&mut length).map_err(|_| JoinError::Ended)?;
            let length = u64::from(u32::from_be_bytes(length));
            if length == 0 {
                let mut how = String::new();
                run.read_line(&mut how).map_err(|_| JoinError::Ended)?;
                if how == CLOSED {
                    output = None;
                    continue;
                }
                return read_end(&how).ok_or(JoinError::Ended);
            }
            piece.clear();
            let read = run.by_ref().take(length).read_to_end(&mut piece).map_err(|_| JoinError::Ended)?;
            if read as u64 != length {
                return Err(JoinError::Ended);
            }
            // Behind its end nothing is said to the client.
            match output.as_ref().map_or(Ok(()), |output| output.write(&piece)) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                    return Ok(Exit { status: Some(0), signal: None, by_itself: false });
                }
                Err(error) => return Err(JoinError::Client(error)),
            }
        }
    }
}

/// Tells a run that a process which had joined it broke off, and why, for the run's report.
pub fn broke_off(path: &Path, why: &JoinError) {
    let hello = Hello { join: VERSION, server: None, take: String::new(), broke_off: Some(why.to_string()) };
    // A run that is gone has told of all it knew.
    let Ok(mut run) = greet(path, &hello) else { return };
    // It closes its side when it has taken that in.
    let _ = run.set_read_timeout(Some(TAKEN_IN)).and_then(|()| run.read_to_end(&mut Vec::new()));
}

fn greet(path: &Path, hello: &Hello) -> io::Result<UnixStream> {
    let mut to_run = UnixStream::connect(path)?;
    let mut line = serde_json::to_vec(hello)?;
    line.push(b'\n');
    to_run.write_all(&line)?;
    Ok(to_run)
}

/// Passes on what the client says until it has closed its side or the run is gone.
fn pass_on(input: &OwnedFd, mut run: UnixStream) {
    let mut room = vec![0; READ];
    loop {
        match stdio::read(input, &mut room) {
            Ok(0) | Err(_) => break,
            Ok(length) if run.write_all(&room[..length]).is_err() => return,
            Ok(_) => {}
        }
    }
    // A run that is gone needs no word.
    let _ = run.shutdown(Shutdown::Write);
}

fn read_end(line: &str) -> Option<Exit> {
    let (how, number) = line.strip_suffix('\n')?.split_once(' ')?;
    let number = number.parse().ok()?;
    match how {
        "exit" => Some(Exit { status: Some(number), signal: None, by_itself: true }),
        "signal" => Some(Exit { status: None, signal: Some(number), by_itself: true }),
        _ => None,
    }
}
