//! The file that a replay's events are appended to.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use mcp_tapedeck::{report::events::Event, store::EventLog};

use super::{args, failure::Failure, output::Notices};

/// A log of events. Where it cannot be written, that is said once, and the replay goes on.
#[derive(Debug)]
pub(super) struct EventFile {
    path: PathBuf,
    log: Mutex<Option<EventLog>>,
    notices: Arc<Notices>,
}

impl EventFile {
    /// Where `--events` says.
    pub(super) fn at(given: &Path, notices: &Arc<Notices>) -> Result<Self, Failure> {
        let file = Self { path: args::absolute(given)?, log: Mutex::new(None), notices: Arc::clone(notices) };
        match EventLog::open(&file.path) {
            Ok(log) => Ok(Self { log: Mutex::new(Some(log)), ..file }),
            Err(error) => {
                file.say(&error);
                Ok(file)
            }
        }
    }

    /// Appends events.
    pub(super) fn append(&self, events: &[Event]) {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Err(error)) = log.as_mut().map(|log| log.append(events)) {
            *log = None;
            self.say(&error);
        }
    }

    fn say(&self, error: &std::io::Error) {
        let failure = Failure::io("write events to", &self.path, error);
        self.notices.warn(format_args!("{}; the replay goes on without them", failure.one_line()));
    }
}
