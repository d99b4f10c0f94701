//! The file that a replay's events are appended to.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use mcp_tapedeck::{report::events::Event, store::EventLog};

use super::{args, failure::Failure, output::Notices};

/// A log of events. Where it can no longer be written, that is said once, and the session goes on.
#[derive(Debug)]
pub(super) struct EventFile {
    path: PathBuf,
    log: Mutex<Option<EventLog>>,
    notices: Arc<Notices>,
}

impl EventFile {
    /// Where `--events` says.
    pub(super) fn at(given: &Path, notices: &Arc<Notices>) -> Result<Self, Failure> {
        let path = args::absolute(given)?;
        let log = EventLog::open(&path).map_err(|error| cannot_be_written(&path, &error))?;
        Ok(Self { path, log: Mutex::new(Some(log)), notices: Arc::clone(notices) })
    }

    /// Whether all events are in it.
    pub(super) fn is_whole(&self) -> bool {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Appends events.
    pub(super) fn append(&self, events: &[Event]) {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Err(error)) = log.as_mut().map(|log| log.append(events)) {
            *log = None;
            let failure = cannot_be_written(&self.path, &error);
            self.notices.warn(format_args!("{}; the session goes on without them", failure.one_line()));
        }
    }
}

fn cannot_be_written(path: &Path, error: &std::io::Error) -> Failure {
    Failure::io("write events to", path, error)
}
