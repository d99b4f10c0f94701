//! What of the traffic is kept out of files: variables and redaction, as options say it.

use std::{
    borrow::Cow,
    env,
    sync::{Arc, PoisonError, RwLock},
};

use clap::Args;
use mcp_tapedeck::{
    proxy::record::{Hide, Part},
    redact::{self, Count, Met, Redactor, Rules, Vars},
    traffic::{Direction, Event},
};

use super::{connect::ServerArgs, failure::Failure, values};

/// What of the traffic is kept out of files.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Privacy")]
pub(super) struct PrivacyArgs {
    /// Let <var:NAME> stand for VALUE in the cassette
    #[arg(long = "var", value_name = "NAME=VALUE", value_parser = values::Variable)]
    vars: Vec<(String, String)>,

    /// Switch redaction on or off, or replace what a JSON Pointer or a regular expression finds as well
    #[arg(long, value_name = "on|off|POINTER|REGEX")]
    redact: Vec<String>,

    /// Replace the value of this environment variable wherever it stands (8 characters or more)
    #[arg(long, value_name = "NAME")]
    redact_env: Vec<String>,

    /// Keep what stands at this JSON Pointer, whatever the rules say; a replay is given it as the recorder was
    #[arg(long, value_name = "POINTER")]
    keep: Vec<String>,

    /// What is sent to the server with every request and stands in no recording.
    #[arg(skip)]
    sent: Vec<(String, Vec<u8>)>,
}

/// The options, compiled.
#[derive(Clone)]
pub(super) struct Privacy {
    /// What is redacted.
    pub rules: Rules,
    /// What variables stand for.
    pub vars: Vars,
}

impl PrivacyArgs {
    /// The same where the server gets these headers with every request: it may repeat them anywhere.
    pub(super) fn sending(&self, server: &ServerArgs) -> Result<Self, Failure> {
        let sent = server.headers()?.into_iter();
        let sent = sent.map(|(name, value)| (name.to_string(), value.as_bytes().to_vec())).collect();
        Ok(Self { sent, ..self.clone() })
    }

    /// Compiles the options for a replay of a cassette that is redacted, or says that it is not: then nothing is redacted
    /// unless they say so, since what is not in it cannot be found there.
    pub(super) fn compile_for(&self, is_redacted: bool) -> Result<Privacy, Failure> {
        let says = !self.redact.is_empty() || !self.redact_env.is_empty() || !self.keep.is_empty();
        match is_redacted || says {
            true => self.compile(),
            false => Self { redact: vec!["off".to_owned()], ..self.clone() }.compile(),
        }
    }

    /// Compiles the options.
    pub(super) fn compile(&self) -> Result<Privacy, Failure> {
        let options = redact::Options {
            redact: self.redact.iter().filter(|given| *given != "on").cloned().collect(),
            env: self.redact_env.iter().map(|name| value_of(name)).collect::<Result<_, _>>()?,
            keep: self.keep.clone(),
            sent: self.sent.clone(),
        };
        Ok(Privacy {
            rules: Rules::new(&options).map_err(Failure::usage)?,
            vars: Vars::new(self.vars.clone()).map_err(Failure::usage)?,
        })
    }
}

impl Privacy {
    /// An address as it may stand in a notice.
    pub(super) fn address(&self, url: &str) -> String {
        let hidden = self.vars.hide(url.as_bytes());
        Redactor::new(&self.rules).url(&String::from_utf8_lossy(&hidden)).into_owned()
    }
}

/// Takes out of a recording's messages what must not be written. Its clones count together.
#[derive(Clone)]
pub(super) struct Cleaner {
    vars: Vars,
    redactor: Arc<RwLock<Redactor>>,
}

impl Cleaner {
    /// For one recording.
    pub(super) fn new(privacy: Privacy) -> Self {
        Self::of(privacy.vars, Redactor::for_recording(&privacy.rules))
    }

    /// For a recording of what goes on with others, in a cassette of this text; what those meet is told there.
    pub(super) fn behind(privacy: Privacy, text: &[u8], met: Option<Met>) -> Self {
        Self::of(privacy.vars, Redactor::new(&privacy.rules).behind(text).telling(met))
    }

    fn of(vars: Vars, redactor: Redactor) -> Self {
        Self { vars, redactor: Arc::new(RwLock::new(redactor)) }
    }

    /// Looks from now on for what others have met by now.
    pub(super) fn listen(&self) {
        self.alone(|alone| alone.redactor.listen());
    }

    /// Whether what was written may hold values that were met only afterwards.
    pub(super) fn met_late(&self) -> bool {
        self.alone(|alone| alone.redactor.met_late())
    }

    /// What it is given from now on, it has seen.
    pub(super) fn again(&self) {
        self.alone(|alone| alone.redactor.again());
    }

    /// What was replaced, by kind and place, a sentence each.
    pub(super) fn told(&self) -> Vec<String> {
        let told = |count: &Count| format!("redacted {} {} in {}", count.times, count.kind, count.place);
        self.alone(|alone| alone.redactor.counts().iter().map(told).collect())
    }

    /// Does something, while no clone does anything.
    fn alone<T>(&self, what: impl FnOnce(&mut Alone<'_>) -> T) -> T {
        let mut redactor = self.redactor.write().unwrap_or_else(PoisonError::into_inner);
        what(&mut Alone { vars: &self.vars, redactor: &mut redactor })
    }
}

impl Hide for Cleaner {
    fn is_clean(&self, event: &Event<'_>) -> bool {
        let redactor = self.redactor.read().unwrap_or_else(PoisonError::into_inner);
        Part::all(event, |part| {
            matches!(self.vars.hide(part.bytes()), Cow::Borrowed(_)) && part.is_clean(&redactor)
        })
    }

    fn message<'a>(&mut self, direction: Direction, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        self.alone(|alone| alone.message(direction, bytes))
    }

    fn header<'a>(&mut self, name: &[u8], value: &'a [u8]) -> Cow<'a, [u8]> {
        self.alone(|alone| alone.header(name, value))
    }

    fn target<'a>(&mut self, target: &'a [u8]) -> Cow<'a, [u8]> {
        self.alone(|alone| alone.target(target))
    }

    fn event(&mut self, event: &mut Event<'_>) {
        self.alone(|alone| alone.event(event));
    }
}

/// A [`Cleaner`] that hears before all else what others have met.
pub(super) struct Listening(pub Cleaner);

impl Listening {
    fn informed(&mut self) -> &mut Cleaner {
        self.0.listen();
        &mut self.0
    }
}

impl Hide for Listening {
    fn message<'a>(&mut self, direction: Direction, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        self.informed().message(direction, bytes)
    }

    fn header<'a>(&mut self, name: &[u8], value: &'a [u8]) -> Cow<'a, [u8]> {
        self.informed().header(name, value)
    }

    fn target<'a>(&mut self, target: &'a [u8]) -> Cow<'a, [u8]> {
        self.informed().target(target)
    }

    fn event(&mut self, event: &mut Event<'_>) {
        self.informed().event(event);
    }
}

/// A [`Cleaner`] at work: variables first, then secrets.
struct Alone<'c> {
    vars: &'c Vars,
    redactor: &'c mut Redactor,
}

impl Alone<'_> {
    fn hide<'a>(
        &mut self,
        bytes: &'a [u8],
        redact: impl for<'b> FnOnce(&mut Redactor, &'b [u8]) -> Cow<'b, [u8]>,
    ) -> Cow<'a, [u8]> {
        match self.vars.hide(bytes) {
            Cow::Borrowed(bytes) => redact(self.redactor, bytes),
            Cow::Owned(bytes) => Cow::Owned(redact(self.redactor, &bytes).into_owned()),
        }
    }
}

impl Hide for Alone<'_> {
    fn message<'a>(&mut self, direction: Direction, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        self.hide(bytes, |redactor, bytes| redactor.message(direction, bytes))
    }

    fn header<'a>(&mut self, name: &[u8], value: &'a [u8]) -> Cow<'a, [u8]> {
        self.hide(value, |redactor, value| Hide::header(redactor, name, value))
    }

    fn target<'a>(&mut self, target: &'a [u8]) -> Cow<'a, [u8]> {
        self.hide(target, Hide::target)
    }
}

fn value_of(name: &str) -> Result<(String, String), Failure> {
    match env::var(name) {
        Ok(value) => Ok((name.to_owned(), value)),
        Err(env::VarError::NotPresent) => {
            Err(Failure::usage(format_args!("--redact-env: the environment has no variable `{name}`"))
                .hint("clients pass few variables on: name it in the `env` of the client's configuration"))
        }
        Err(env::VarError::NotUnicode(_)) => {
            Err(Failure::usage(format_args!("--redact-env: the value of `{name}` is not UTF-8")))
        }
    }
}
