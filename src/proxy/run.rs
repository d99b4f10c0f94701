//! The command that a run is made for: a test command, which shares everything with us but its end.

use std::{ffi::OsString, io, os::unix::process::ExitStatusExt, process::Child, thread};

use rustix::{
    fs::{Mode, OFlags},
    process::{Pid, Signal, WaitId, WaitIdOptions},
};
use tokio::sync::oneshot;

use crate::{
    traffic::Exit,
    transport::stdio::{StartError, start_beside},
};

/// A command that has been started.
#[derive(Debug)]
pub struct TestCommand {
    child: Child,
    ended: oneshot::Receiver<()>,
}

impl TestCommand {
    /// Starts it, with more in its environment.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(command: &[OsString], environment: &[(String, OsString)]) -> Result<Self, StartError> {
        let child = start_beside(command, environment)?;
        let pid = Pid::from_child(&child);
        let (tell, ended) = oneshot::channel();
        thread::spawn(move || {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            // An error means that somebody else has waited for it: it has ended as well.
            let _ = rustix::io::retry_on_intr(|| rustix::process::waitid(WaitId::Pid(pid), options));
            let _ = tell.send(());
        });
        Ok(Self { child, ended })
    }

    /// Waits until it has ended.
    ///
    /// # Errors
    /// When somebody else has waited for it.
    pub(super) async fn ended(&mut self) -> io::Result<Exit> {
        let _ = (&mut self.ended).await;
        let status = self.child.wait()?;
        Ok(Exit { status: status.code(), signal: status.signal(), by_itself: true })
    }

    /// Passes a signal on that has come to us, unless it has come to the command as well.
    pub(super) fn signal(&self, signal: i32) {
        if let Some(signal) = Signal::from_named_raw(signal).filter(|signal| !is_from_terminal(*signal)) {
            // One that has ended needs none.
            let _ = rustix::process::kill_process(Pid::from_child(&self.child), signal);
        }
    }
}

/// Whether a terminal sends this signal to all of the group in its foreground, and that is ours.
fn is_from_terminal(signal: Signal) -> bool {
    if ![Signal::INT, Signal::QUIT, Signal::HUP].contains(&signal) {
        return false;
    }
    let terminal =
        rustix::fs::open("/dev/tty", OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY, Mode::empty());
    terminal.and_then(rustix::termios::tcgetpgrp).is_ok_and(|group| group == rustix::process::getpgrp())
}
