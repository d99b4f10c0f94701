//! What a recording is written to, how it gets into its cassette at the end, and what is told of it there.

use std::{
    cell::Cell,
    fmt, io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use mcp_tapedeck::{
    cassette::journal::{Continues, JournalError, JournalHeader},
    proxy::{
        record::{Hide, Sink},
        stop::Stop,
    },
    record::{Joined, PAUSE_MS},
    report::{Report, Verdict},
    store::{self, FoldOptions, FoldOutcome, Journal, StoreError, shell},
    traffic::{Event, Payload},
};

use super::{
    failure::Failure,
    output::{self, Notices},
    privacy::{Cleaner, Privacy},
    record::told,
};

/// How long writing the cassette may take once a signal asks us to end: a client kills what does not end within two
/// seconds of that.
const WITHIN: Duration = Duration::from_secs(1);

/// How long after a signal that asks us to end everything has to be done.
const AFTER_A_SIGNAL: Duration = Duration::from_millis(1900);

/// The journal, or why there is none: the first message's failure then says so, and the session goes on.
pub(super) struct Tape {
    journal: Result<Journal, Box<Missing>>,
    /// What is not in a file that can be found is not recorded.
    is_required: bool,
    /// Something could not be written.
    has_gap: bool,
    /// How many messages were longer than `--max-message`.
    too_long: u64,
    /// How many bodies were compressed in a way that cannot be read.
    unreadable: u64,
    /// Tells of signals that come once the session heeds none any more.
    stop: Option<Stop>,
}

/// A journal that could not be made.
struct Missing {
    cassette: PathBuf,
    /// None where even that was not to be had.
    header: Option<JournalHeader>,
    why: io::Error,
}

impl Missing {
    /// Tries again: there may be room by now.
    fn make(&self) -> io::Result<Journal> {
        let again = |error: &io::Error| io::Error::new(error.kind(), error.to_string());
        let header = self.header.clone().ok_or_else(|| again(&self.why))?;
        Journal::create(&self.cassette, header)
    }
}

impl Tape {
    /// Begins the journal of a recording into `cassette`.
    pub(super) fn begin(
        cassette: &Path,
        transport: &str,
        replace: bool,
        privacy: &Privacy,
        is_required: bool,
    ) -> Result<Self, Failure> {
        let tape = Self::create(cassette, transport, privacy, |header| JournalHeader { replace, ..header });
        match &tape.journal {
            Err(missing) if is_required => Err(Failure::io("record into", cassette, &missing.why)),
            // Without it there is less time at the end.
            _ => Ok(Self { is_required, stop: Stop::install().ok(), ..tape }),
        }
    }

    /// Begins the journal of what goes on with a recording in `cassette`.
    pub(super) fn behind(cassette: &Path, transport: &str, privacy: &Privacy, continues: Continues) -> Self {
        let continues = Some(continues);
        Self::create(cassette, transport, privacy, |header| JournalHeader { continues, ..header })
    }

    fn create(
        cassette: &Path,
        transport: &str,
        privacy: &Privacy,
        with: impl FnOnce(JournalHeader) -> JournalHeader,
    ) -> Self {
        let header = store::new_header(transport).map(|header| JournalHeader {
            vars: privacy.vars.names().map(str::to_owned).collect(),
            redacted: privacy.rules.is_on(),
            ..header
        });
        let missing = |header, why| Box::new(Missing { cassette: cassette.to_owned(), header, why });
        let journal = match header.map(with) {
            Ok(header) => Journal::create(cassette, header.clone()).map_err(|why| missing(Some(header), why)),
            Err(why) => Err(missing(None, why)),
        };
        Self { journal, is_required: false, has_gap: false, too_long: 0, unreadable: 0, stop: None }
    }

    /// Takes away a recording in which the server never said anything: it was not reached.
    pub(super) fn discard(self, notices: &Notices) {
        let Ok(journal) = self.journal else { return };
        let path = journal.path().to_owned();
        drop(journal);
        match std::fs::remove_file(&path) {
            Ok(()) => notices.info("nothing was recorded: the server was never reached"),
            Err(error) => notices.warn(Failure::io("remove", &path, &error).one_line()),
        }
    }

    /// Leaves a recording that did not end well where it is: it takes no other's place.
    pub(super) fn leave(self, cleaner: &Cleaner, notices: &Notices) {
        if let Ok(mut journal) = self.journal {
            if let Err(error) = clean(&mut journal, cleaner.clone(), None) {
                notices.warn(format_args!("secrets that were met late stay in the journal: {error}"));
            }
            notices.warn(format_args!(
                "the server answered nothing, so the old recording stays; this one is in {}, and `tapedeck recover {}` \
                 adds it to the cassette",
                journal.path().display(),
                shell::word(journal.path())
            ));
        }
    }

    /// Ends it, and puts what was recorded into the cassette, in the time that is left after a signal.
    pub(super) fn end(
        mut self,
        cassette: &Path,
        fold: FoldOptions,
        asked: Option<Instant>,
        cleaner: &Cleaner,
        notices: &Notices,
        lacks: &mut Lacks,
    ) {
        let stop = self.stop.take();
        let time = Time::new(asked, stop.as_ref());
        keep(cassette, vec![(self, cleaner.clone())], fold, &time, notices, lacks);
    }

    /// Says what of it cannot be replayed.
    fn tell(&self, notices: &Notices) {
        if self.too_long > 0 {
            let were = output::counted(self.too_long, "message was", "messages were");
            notices.warn(format_args!(
                "{were} longer than --max-message allows: only size and hash are recorded, so a replay cannot answer \
                 with them"
            ));
        }
        if self.unreadable > 0 {
            let were = output::counted(self.unreadable, "body was", "bodies were");
            notices.warn(format_args!(
                "{were} compressed in a way that cannot be read: only size and hash are recorded, so a replay cannot \
                 answer with them"
            ));
        }
    }
}

impl Sink for Tape {
    fn write(&mut self, events: &[Event<'_>]) -> io::Result<()> {
        for event in events {
            match &event.payload {
                Payload::Oversize(measured) if measured.head.is_empty() => self.unreadable += 1,
                Payload::Oversize(_) => self.too_long += 1,
                _ => {}
            }
        }
        let written = match &mut self.journal {
            Ok(journal) => journal.write(events),
            Err(missing) => missing.make().and_then(|mut journal| {
                let written = journal.write(events);
                self.journal = Ok(journal);
                written
            }),
        };
        let written = match &self.journal {
            Ok(journal) if self.is_required => written.and_then(|()| journal.check()),
            _ => written,
        };
        self.has_gap |= written.is_err();
        written
    }

    fn missed(&mut self, messages: u64) {
        if let Ok(journal) = &mut self.journal {
            // Both have been told before.
            let _ = journal.missed(messages);
        }
    }
}

/// Ends recordings, and puts what was recorded into their cassette in the time that there is; where that
/// fails the journals stay, with all of it.
pub(super) fn keep(
    cassette: &Path,
    tapes: Vec<(Tape, Cleaner)>,
    fold: FoldOptions,
    time: &Time<'_>,
    notices: &Notices,
    lacks: &mut Lacks,
) {
    let has_gap = tapes.iter().any(|(tape, _)| tape.has_gap);
    let what = if has_gap { "what was recorded is safe" } else { "the recording is whole" };
    let (mut ended, mut unclean) = (Vec::new(), Vec::new());
    for (tape, cleaner) in tapes {
        tape.tell(notices);
        // Without a journal every message's failure has been told.
        let Ok(mut journal) = tape.journal else { continue };
        let path = journal.path().to_owned();
        if let Err(error) = clean(&mut journal, cleaner, time.asked) {
            let secrets = "secrets that were met only after they had been written";
            if let JournalError::Io(error) = error {
                let (path, word) = (path.display(), shell::word(&path));
                notices.warn(format_args!(
                    "{what}, but stays in {path}, with {secrets}: {error}\n\
                     hint: the next recording puts it into the cassette as it is, and so does `tapedeck recover {word}`"
                ));
            } else {
                lacks.add(damaged(&path, store::advice(&path, &error)), notices);
                notices.warn(format_args!("{}: {secrets} stay in it", path.display()));
            }
            // As long as it is held nobody puts it there.
            unclean.push(journal);
        } else {
            match journal.finish() {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    lacks.add(format_args!("the recording is lost: {error}"), notices);
                }
                // Where its end could not be written, the cassette may lie where there is more room.
                Ok(_) | Err(_) => ended.push(path),
            }
        }
    }
    if ended.is_empty() {
        return;
    }
    // Another fold may be held up by whatever; what it leaves here the next one takes.
    let fold = FoldOptions { wait: Some(WITHIN), ..fold };
    match store::fold(cassette, fold, &|| time.is_left()) {
        Ok(outcome) => {
            outcome.notes.iter().for_each(|note| notices.warn(note));
            for (path, advice) in outcome.left.iter().filter(|(path, _)| ended.contains(path)) {
                lacks.add(damaged(path, advice.clone()), notices);
            }
            match outcome.joined {
                Some(joined) if joined.was_probe => notices.info(not_replaced(&outcome, joined)),
                Some(joined) => notices.warn(not_replaced(&outcome, joined)),
                None => {}
            }
            notices.info(told(&outcome));
        }
        Err(StoreError::Late { .. }) => notices.warn(format_args!(
            "{what}, but there was no time to put it into the cassette: it stays in {}, which every \
             command reads with the cassette; the next recording puts it there, and so does `tapedeck recover {}`",
            ended.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", "),
            shell::word(cassette)
        )),
        Err(error) => ended.iter().for_each(|path| notices.warn(stays(what, path, &error))),
    }
}

/// How long writing the cassette goes on: to its end, unless a signal has come or comes that asks us to end.
pub(super) struct Time<'a> {
    /// When one came.
    asked: Option<Instant>,
    /// Tells of one that comes.
    stop: Option<&'a Stop>,
    until: Cell<Option<Instant>>,
}

impl<'a> Time<'a> {
    /// From now on. Where nobody tells whether a signal comes, it is as short as behind one.
    pub(super) fn new(asked: Option<Instant>, stop: Option<&'a Stop>) -> Self {
        let left = asked.map_or(WITHIN, |at| AFTER_A_SIGNAL.saturating_sub(at.elapsed()).min(WITHIN));
        let is_short = asked.is_some() || stop.is_none();
        Self { asked, stop, until: Cell::new(is_short.then(|| Instant::now() + left)) }
    }

    fn is_left(&self) -> bool {
        if self.until.get().is_none() && self.stop.is_some_and(|stop| stop.signal().is_some()) {
            self.until.set(Some(Instant::now() + WITHIN));
        }
        self.until.get().is_none_or(|until| Instant::now() < until)
    }
}

/// That a recording became a part of the one whose place it was to take.
fn not_replaced(outcome: &FoldOutcome, joined: Joined) -> String {
    format!(
        "{}: recording {} was not replaced: the same process had made it less than {} s before, so the new session is a \
         part of it, as clients start a server more than once; to replace it record again later, or from another shell",
        outcome.path.display(),
        joined.recording,
        PAUSE_MS / 1000
    )
}

/// That a journal was changed by somebody while it was written, and what to do about it.
fn damaged(path: &Path, advice: Option<String>) -> String {
    let advice = advice.map(|advice| format!("; {advice}")).unwrap_or_default();
    format!("the recording in {} was damaged from outside{advice}", path.display())
}

/// That a recording is not in its cassette.
fn stays(what: &str, path: &Path, error: &dyn fmt::Display) -> String {
    format!(
        "{what}, but stays in {}: {error}\nhint: the next recording puts it into the cassette, and so does \
         `tapedeck recover {}`",
        path.display(),
        shell::word(path)
    )
}

/// Takes out of a journal what was met only after it had been written, in the time that is left after a signal.
fn clean(journal: &mut Journal, mut cleaner: Cleaner, asked: Option<Instant>) -> Result<(), JournalError> {
    if !cleaner.met_late() {
        return Ok(());
    }
    cleaner.again();
    journal.rewrite(|event| match asked.is_some_and(|at| at.elapsed() >= AFTER_A_SIGNAL) {
        true => Err(io::Error::other("there was no time to take them out")),
        false => {
            cleaner.event(event);
            Ok(())
        }
    })
}

/// What is said where a session ended before its last messages were written.
pub(super) const HELD_UP: &str = "the disk held up the last messages; they may be missing in the recording";

/// What of the sessions of this process is not in any recording, in sentences.
#[derive(Debug, Default)]
pub(super) struct Lacks {
    told: Vec<String>,
    is_bad: bool,
}

impl Lacks {
    /// Of sessions that are bad where anything is lacking.
    pub(super) fn of_required(is_required: bool) -> Self {
        Self { is_bad: is_required, ..Self::default() }
    }

    /// Says it, and keeps it for the report.
    pub(super) fn add(&mut self, what: impl fmt::Display, notices: &Notices) {
        notices.warn(&what);
        self.told.push(what.to_string());
    }

    /// Says what of a session is not in its recording, or not as it was.
    pub(super) fn tell_of_end(&mut self, session: &str, missed: u64, cleaner: &Cleaner, notices: &Notices) {
        if missed > 0 {
            let messages = output::counted(missed, "message", "messages");
            let were = if missed == 1 { "was" } else { "were" };
            self.add(format_args!("{messages} of {session} {were} not recorded"), notices);
        }
        cleaner.told().iter().for_each(|replaced| notices.info(replaced));
    }

    /// Whether all is recorded.
    pub(super) const fn is_empty(&self) -> bool {
        self.told.is_empty()
    }

    /// Adds them to a report.
    pub(super) fn warn_in(&self, report: &mut Report) {
        report.warnings.extend_from_slice(&self.told);
        if self.is_bad && !self.is_empty() {
            report.verdict = Verdict::Bad;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_signal_makes_haste() {
        let stop = Stop::install().expect("the system allows it");
        assert!(Time::new(None, Some(&stop)).until.get().is_none());
        let ago = |past| Instant::now().checked_sub(past).expect("the system has run so long");
        let after = |past| Time::new(Some(ago(past)), Some(&stop));
        assert!(after(Duration::ZERO).is_left());
        assert!(!after(AFTER_A_SIGNAL).is_left());
        // Nobody could say that there is haste.
        assert!(Time::new(None, None).until.get().is_some());
    }
}
