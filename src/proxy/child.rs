//! A server's process: when it ended, how, and signals to its group.

use std::{process::Child as Process, sync::mpsc::Sender, thread};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus};

use super::shutdown::Happened;

/// The leader of the server's process group.
#[derive(Debug)]
pub(super) struct Child {
    pid: Pid,
    process: Process,
    is_reaped: bool,
}

impl Child {
    /// Has the end of the process told to `to`. The process stays a zombie until [`Self::has_others`] or the drop of
    /// this: as long as it is one, no other process or group can have its number.
    pub(super) fn watch(process: Process, to: Sender<Happened>) -> Self {
        let pid = Pid::from_child(&process);
        thread::spawn(move || {
            // An error means that somebody else has waited for it: it has ended as well.
            let _ = wait(pid, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
            let _ = to.send(Happened::Exited);
        });
        Self { pid, process, is_reaped: false }
    }

    /// How it ended, status and signal; nothing while it runs.
    pub(super) fn end(&mut self) -> (Option<i32>, Option<i32>) {
        use std::os::unix::process::ExitStatusExt;
        match self.process.try_wait() {
            Ok(Some(status)) => {
                self.is_reaped = true;
                (status.code(), status.signal())
            }
            Ok(None) | Err(_) => (None, None),
        }
    }

    /// Sends a signal to the whole group.
    pub(super) fn signal(&mut self, signal: i32) {
        // Once it is reaped an empty group's number may belong to somebody else.
        if self.is_reaped && !self.has_others() {
            return;
        }
        if let Some(signal) = Signal::from_named_raw(signal) {
            // An empty group needs no signal.
            let _ = rustix::process::kill_process_group(self.pid, signal);
        }
    }

    /// Whether a group whose leader has ended has members left that live.
    pub(super) fn has_others(&mut self) -> bool {
        self.end();
        self.is_reaped && rustix::process::test_kill_process_group(self.pid).is_ok() && has_living(self.pid)
    }
}

fn wait(pid: Pid, options: WaitIdOptions) -> rustix::io::Result<Option<WaitIdStatus>> {
    rustix::io::retry_on_intr(|| rustix::process::waitid(WaitId::Pid(pid), options))
}

/// Whether a member of the group is no zombie: in a container often nobody waits for orphans, and those stay. Where
/// the system does not list processes every member counts.
fn has_living(group: Pid) -> bool {
    let Ok(processes) = fs_err::read_dir("/proc") else { return true };
    let group = group.as_raw_nonzero().get().to_string();
    processes.flatten().any(|process| {
        let stat = fs_err::read_to_string(process.path().join("stat")).unwrap_or_default();
        // The name, in parentheses, may hold anything; behind it: state, parent, group.
        let mut fields = stat.rsplit(')').next().unwrap_or_default().split_ascii_whitespace();
        !matches!(fields.next(), Some("Z" | "X") | None) && fields.nth(1) == Some(&group)
    })
}
