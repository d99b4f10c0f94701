//! `tapedeck record --url` without `--listen`: stands between a client on stdio and a server that is reached over HTTP.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use hyper::header::{HeaderName, HeaderValue};
use mcp_tapedeck::{
    exit_code::ExitCode,
    proxy::bridge::{Bridge, BridgeEnded, BridgeError, BridgeOptions},
    store::FoldOptions,
    traffic::STDIO_TO_HTTP,
};

use super::{
    args::TapeArgs,
    connect::{self, ServerArgs},
    failure::Failure,
    front,
    live::{self, Acting, Outcome},
    output::Notices,
    privacy::{Cleaner, PrivacyArgs},
    record::{self, Begun},
    tape::{Lacks, Tape},
};

/// The way to the server at `url`.
pub(super) fn open(url: &str, server: &ServerArgs, notices: &Notices) -> Result<Bridge, Failure> {
    Bridge::to(url, server.options(notices)?).map_err(refused)
}

/// Why there is no way.
pub(super) fn refused(error: BridgeError) -> Failure {
    match error {
        BridgeError::Url(error) => Failure::usage(format_args!("--url: {error}")),
        BridgeError::Connect(error) => connect::unreachable(error),
        error => Failure::peer(error),
    }
}

/// A recording that is ready for its client. The server hears of it with the first message.
pub(super) struct Session {
    cassette: PathBuf,
    fold: FoldOptions,
    bridge: Bridge,
    headers: Vec<(HeaderName, HeaderValue)>,
    tape: Tape,
    /// It is to take the place of what was recorded before.
    replace: bool,
    max_message: usize,
    require_recording: bool,
    cleaner: Cleaner,
    acting: Option<Acting>,
    notices: Arc<Notices>,
}

impl Session {
    /// Starts the journal. A `cassette` that is a folder gets a file of this start's own.
    pub(super) fn prepare(
        cassette: &Path,
        replace: bool,
        tape: &TapeArgs,
        privacy: &PrivacyArgs,
        url: &str,
        server: &ServerArgs,
        notices: Arc<Notices>,
    ) -> Result<Self, Failure> {
        let cassette = record::file_of(cassette);
        record::check(&cassette, &notices)?;
        let privacy = privacy.compile()?;
        let headers = server.headers()?;
        let bridge = open(url, server, &notices)?;
        let journal = Tape::begin(&cassette, STDIO_TO_HTTP, replace, &privacy, tape.require_recording)?;
        Ok(Self {
            cassette,
            fold: FoldOptions { keep_journals: tape.keep_journal, ..FoldOptions::default() },
            bridge,
            headers,
            tape: journal,
            replace,
            max_message: tape.max_message,
            require_recording: tape.require_recording,
            cleaner: Cleaner::new(privacy),
            acting: None,
            notices,
        })
    }

    /// Faults act on its traffic.
    pub(super) fn under(self, acting: Option<Acting>) -> Self {
        Self { acting, ..self }
    }

    /// Passes everything between client and server until the client closes its side, then writes the cassette.
    pub(super) fn record(self) -> Result<ExitCode, Failure> {
        let Self { cassette, fold, bridge, headers, tape, replace, .. } = self;
        let (max_message, require_recording) = (self.max_message, self.require_recording);
        let (cleaner, notices) = (self.cleaner, self.notices);
        let client = front::take_client(&notices)?;
        // Without its client a bridge ends by itself.
        let Begun { running, client, .. } = record::begin(self.acting, client, max_message, None, &notices)?;
        notices.info(format_args!("recording into {}", cassette.display()));
        let warner = Arc::clone(&notices);
        let options = BridgeOptions {
            max_message,
            require_recording,
            headers,
            signals: true,
            ends: None,
            hide: Box::new(cleaner.clone()),
            warn: Box::new(move |text| warner.warn(text)),
        };
        let ended = bridge.record(client, tape, options).map_err(|error| match error {
            BridgeError::Sink(_) => Failure::file(error),
            error => Failure::peer(error),
        });
        let ended = match ended {
            Ok(ended) => ended,
            Err(failure) => return Err(live::broken_off(running, failure, &notices)),
        };
        let BridgeEnded { asked, gone, missed, unreachable, has_answered, sink } = ended;
        let mut lacks = Lacks::of_required(require_recording);
        lacks.tell_of_end("this session", missed, &cleaner, &notices);
        match sink {
            Some(tape) if unreachable.is_some() && !has_answered => tape.discard(&notices),
            Some(tape) if replace && !has_answered => tape.leave(&cleaner, &notices),
            Some(tape) => tape.end(&cassette, fold, asked.map(|(_, at)| at), &cleaner, &notices, &mut lacks),
            None => {}
        }
        let own = Outcome::of(running, asked.is_some(), unreachable.as_deref(), gone, &lacks, &notices)?;
        match unreachable {
            Some(why) => Err(Failure::peer(why)),
            None => Ok(own.code),
        }
    }
}
