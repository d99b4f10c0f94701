//! The pipes of the stdio transport: the client's to us, ours to the server.
//!
//! Every descriptor is used as it was inherited. In particular none is made non-blocking: that mode belongs to the
//! open file, which the peer and its other children share. Where a peer has set it, we wait with `poll`.

use std::{
    ffi::OsString,
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::process::CommandExt,
    },
    path::Path,
    process::{Child, Command, Stdio},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};

pub(crate) mod nowait;

/// What the client talks through.
#[derive(Debug)]
pub struct Client {
    /// What it sends to us.
    pub input: OwnedFd,
    /// What we send to it.
    pub output: OwnedFd,
}

impl Client {
    /// Takes this process's stdin and stdout for the protocol and leaves `/dev/null` in their place: nothing else
    /// can read or write there by mistake, and dropping them is what the client sees as their end.
    ///
    /// # Errors
    /// When no descriptor is left.
    pub fn take() -> io::Result<Self> {
        let input = rustix::io::fcntl_dupfd_cloexec(io::stdin(), 3)?;
        let output = rustix::io::fcntl_dupfd_cloexec(io::stdout(), 3)?;
        let null = fs_err::OpenOptions::new().read(true).write(true).open("/dev/null")?;
        rustix::stdio::dup2_stdin(&null)?;
        rustix::stdio::dup2_stdout(&null)?;
        Ok(Self { input, output })
    }
}

/// A server that has been started.
#[derive(Debug)]
pub struct Server {
    /// Its process, which leads a process group of its own.
    pub child: Child,
    /// What we send to it.
    pub input: OwnedFd,
    /// What it sends to us.
    pub output: OwnedFd,
}

impl Server {
    /// Starts a command with pipes for stdin and stdout. It inherits everything else, stderr above all.
    ///
    /// Where the system can do that (Linux), the server gets SIGTERM when the *thread* that calls this ends: call it
    /// from the main thread, or from one that lives as long as the server may.
    ///
    /// # Errors
    /// When the command cannot be started.
    pub fn start(command: &[OsString]) -> Result<Self, StartError> {
        let [program, arguments @ ..] = command else {
            let source = io::Error::from(io::ErrorKind::InvalidInput);
            return Err(StartError { command: String::new(), why: StartFailure::Empty, source });
        };
        let mut started = Command::new(program);
        started.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        end_with_us(&mut started);
        let mut child = started.spawn().map_err(|source| StartError::new(program, source))?;
        let input = child.stdin.take().expect("stdin was asked for as a pipe").into();
        let output = child.stdout.take().expect("stdout was asked for as a pipe").into();
        Ok(Self { child, input, output })
    }
}

/// Starts a command that shares everything with us, and has more in its environment.
///
/// # Errors
/// When it cannot be started.
pub fn start_beside(command: &[OsString], environment: &[(String, OsString)]) -> Result<Child, StartError> {
    let [program, arguments @ ..] = command else {
        let source = io::Error::from(io::ErrorKind::InvalidInput);
        return Err(StartError { command: String::new(), why: StartFailure::Empty, source });
    };
    let variables = environment.iter().map(|(name, value)| (name, value));
    let started = Command::new(program).args(arguments).envs(variables).spawn();
    started.map_err(|source| StartError::new(program, source))
}

/// Asks for SIGTERM for the child when we die, however we die.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the request must be made between fork and exec: it is the child's own")]
fn end_with_us(command: &mut Command) {
    let parent = rustix::process::getpid();
    let ask = move || {
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM))?;
        // Too late if we have died since the fork: nothing would come.
        match rustix::process::getppid() == Some(parent) {
            true => Ok(()),
            false => Err(Errno::SRCH.into()),
        }
    };
    // SAFETY: the closure makes two system calls; it allocates nothing, takes no lock and panics nowhere.
    unsafe { command.pre_exec(ask) };
}

/// Elsewhere a server learns of our death by the end of its input.
#[cfg(not(target_os = "linux"))]
const fn end_with_us(_command: &mut Command) {}

/// A server's command cannot be started.
#[derive(Debug, thiserror::Error)]
#[error("cannot start `{command}`: {why}")]
pub struct StartError {
    /// The command's first word.
    pub command: String,
    /// Why not, with the next step.
    pub why: StartFailure,
    /// What the system said.
    pub source: io::Error,
}

/// Why a command cannot be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartFailure {
    /// There is no command.
    #[error("no command is given; put it after `--`")]
    Empty,
    /// A bare name that is in no folder of `PATH`.
    #[error("no folder of PATH has it ({path}); give its absolute path")]
    NotInPath {
        /// What was searched: the first folders of it.
        path: String,
    },
    /// A path where nothing is.
    #[error("no such file in {folder}; give its absolute path")]
    NotFound {
        /// Our working folder.
        folder: String,
    },
    /// A script whose first line names a program that is not there.
    #[error("the file is there, but the interpreter or loader it names is not; start it by its interpreter")]
    NoInterpreter,
    /// A folder.
    #[error("that is a folder; give the program in it")]
    Folder,
    /// A file that may not be executed.
    #[error("the file is not executable; `chmod +x` it, or put its interpreter before it")]
    NotExecutable,
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

impl StartError {
    fn new(program: &OsString, source: io::Error) -> Self {
        let path = Path::new(program);
        let is_bare = path.components().count() == 1 && !program.to_string_lossy().contains('/');
        let why = match source.kind() {
            io::ErrorKind::NotFound if is_bare => StartFailure::NotInPath {
                path: in_short(&std::env::var_os("PATH").unwrap_or_default().to_string_lossy()),
            },
            io::ErrorKind::NotFound if path.exists() => StartFailure::NoInterpreter,
            io::ErrorKind::NotFound => StartFailure::NotFound {
                folder: std::env::current_dir()
                    .map_or_else(|_| "/".into(), |folder| folder.display().to_string()),
            },
            io::ErrorKind::PermissionDenied if path.is_dir() => StartFailure::Folder,
            io::ErrorKind::PermissionDenied => StartFailure::NotExecutable,
            _ => StartFailure::Other(source.to_string()),
        };
        Self { command: program.to_string_lossy().into_owned(), why, source }
    }
}

/// The first folders of a `PATH`, which tell whether it is the one that a shell has, and how many more there are.
fn in_short(path: &str) -> String {
    const SHOWN: usize = 3;
    let folders: Vec<&str> = path.split(':').collect();
    match folders.len().checked_sub(SHOWN) {
        Some(more) if more > 0 => format!("{} and {more} more", folders[..SHOWN].join(":")),
        _ => path.to_owned(),
    }
}

/// A descriptor that one thread writes to and another one may close.
#[derive(Debug)]
pub struct Outlet {
    fd: Mutex<Option<OwnedFd>>,
    closing: AtomicBool,
}

impl Outlet {
    /// An outlet for this descriptor.
    pub const fn new(fd: OwnedFd) -> Self {
        Self { fd: Mutex::new(Some(fd)), closing: AtomicBool::new(false) }
    }

    /// Writes all of it, however long that takes.
    ///
    /// # Errors
    /// When the reader is gone, or the outlet is closed: `BrokenPipe`.
    pub fn write(&self, bytes: &[u8]) -> io::Result<()> {
        self.with(|fd| write_all(fd, bytes))
    }

    /// Writes what the reader has room for now, which may be nothing.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn write_at_once(&self, bytes: &[u8]) -> io::Result<usize> {
        self.with(|fd| match nowait::write(fd.as_fd(), bytes) {
            Err(Errno::AGAIN | Errno::INTR | Errno::OPNOTSUPP) => Ok(0),
            written => Ok(written?),
        })
    }

    fn with<T>(&self, write: impl FnOnce(&OwnedFd) -> io::Result<T>) -> io::Result<T> {
        let result = match &*self.lock() {
            Some(fd) => write(fd),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        };
        if self.closing.load(Ordering::SeqCst) {
            self.lock().take();
        }
        result
    }

    /// Closes it: now, or as soon as the write that another thread is in returns. Never waits.
    pub fn close(&self) {
        self.closing.store(true, Ordering::SeqCst);
        if let Ok(mut fd) = self.fd.try_lock() {
            fd.take();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<OwnedFd>> {
        self.fd.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One read, waited for also where the descriptor does not block; 0 at the end of the stream.
///
/// # Errors
/// What the system says, but for interruptions.
pub fn read(fd: &OwnedFd, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match rustix::io::read(fd, &mut *buffer) {
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => wait_for(fd, PollFlags::IN)?,
            result => return Ok(result?),
        }
    }
}

/// Whether a read would not wait for bytes now.
pub fn is_readable(fd: &OwnedFd) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let mut polled = [PollFd::new(fd, PollFlags::IN)];
    poll(&mut polled, Some(&now)).is_ok() && polled[0].revents().contains(PollFlags::IN)
}

/// Waits until one of them has something to read, or ends.
pub fn wait_for_input(fds: &[&OwnedFd; 2]) {
    // What fails here fails in the read that follows.
    let _ = poll(&mut fds.map(|fd| PollFd::new(fd, PollFlags::IN)), None);
}

fn write_all(fd: &OwnedFd, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(fd, bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => wait_for(fd, PollFlags::OUT)?,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn wait_for(fd: impl AsFd, readiness: PollFlags) -> io::Result<()> {
    match poll(&mut [PollFd::new(&fd, readiness)], None) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::{io::Read, thread};

    use super::*;

    #[test]
    fn an_outlet_that_is_closed_in_the_middle_of_a_write_ends_with_it() {
        let (mut reader, writer) = io::pipe().unwrap();
        let outlet = Outlet::new(writer.into());
        // More than the pipe holds: the writer is in the write when the first byte arrives.
        let bytes = vec![7; 1 << 20];
        thread::scope(|scope| {
            let written = scope.spawn(|| outlet.write(&bytes));
            reader.read_exact(&mut [0]).unwrap();
            outlet.close();
            let mut rest = Vec::new();
            reader.read_to_end(&mut rest).unwrap();
            assert_eq!(rest.len(), bytes.len() - 1);
            written.join().unwrap().unwrap();
        });
        assert_eq!(outlet.write(b"more").unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }

    #[test]
    fn of_a_long_path_the_first_folders_are_told() {
        assert_eq!(in_short("/usr/bin:/bin"), "/usr/bin:/bin");
        assert_eq!(in_short("/a:/b:/c"), "/a:/b:/c");
        assert_eq!(in_short("/a:/b:/c:/d:/e"), "/a:/b:/c and 2 more");
        assert_eq!(in_short(""), "");
    }

    #[test]
    fn an_outlet_that_nobody_writes_to_closes_at_once() {
        let (mut reader, writer) = io::pipe().unwrap();
        let outlet = Outlet::new(writer.into());
        outlet.write(b"all").unwrap();
        outlet.close();
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "all");
    }
}
