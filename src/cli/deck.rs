//! Cassettes that are ready to be served, and what their servers are called.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use clap::Args;
use mcp_tapedeck::{
    cassette::model::Cassette,
    fault::Stranger,
    proxy::{
        listen::{Served, Serves},
        upstream::Upstreams,
    },
    redact::Met,
    replay::{Options, ReplayError, Replayer, clear},
    report::Report,
};

use super::{
    args::{self, CassettesOption, PlayArgs},
    failure::Failure,
    files,
    output::Notices,
    privacy::PrivacyArgs,
    real::Recording,
    values,
};

/// Which cassettes are served.
#[derive(Args, Clone, Debug)]
pub(super) struct DecksArgs {
    /// The cassette; of several, each is called as its file is, and its paths begin with that
    #[arg(value_name = "C", required_unless_present_any = ["server", "cassette_option"])]
    cassettes: Vec<PathBuf>,

    #[command(flatten)]
    named: CassettesOption,

    /// Call the server of this cassette so; its paths begin with /NAME
    #[arg(long, value_name = "NAME=C", value_parser = values::variable)]
    server: Vec<(String, String)>,
}

/// A cassette that is ready.
struct Deck {
    name: String,
    /// Its cassette.
    path: PathBuf,
    cassette: Arc<Cassette>,
    /// The secrets that its clients show, for whoever records them.
    met: Option<Met>,
    replayer: Replayer,
    /// Makes a replayer like it.
    again: Box<dyn Fn() -> Replayer + Send + Sync>,
}

/// All cassettes that are served.
pub(super) struct Decks {
    decks: Vec<Deck>,
    /// There is one, and no path names it.
    is_at_root: bool,
}

/// Where clients reach a server.
pub(super) struct Place<'a> {
    pub name: &'a str,
    /// The variable in which a command finds the URL.
    pub variable: String,
    /// What all its addresses begin with.
    pub base: String,
    pub url: String,
}

impl DecksArgs {
    /// Reads them.
    pub(super) fn prepare(
        &self,
        play: &PlayArgs,
        privacy: &PrivacyArgs,
        serving: Serving,
        notices: &Notices,
    ) -> Result<Decks, Failure> {
        let cassettes = self.cassettes.iter().chain(&self.named.cassettes);
        let is_at_root = self.server.is_empty() && cassettes.clone().count() == 1;
        let named = self.server.iter().map(|(name, path)| (name.clone(), Path::new(path)));
        let bare = cassettes.map(|path| (stem(path), &**path));
        let mut names = HashSet::new();
        // One count of the events of all servers.
        let events = (play.events.is_some() || serving.is_tended).then(Arc::default);
        let mut decks = Vec::new();
        for (name, path) in named.chain(bare) {
            if !is_at_root {
                check(&name, path)?;
                if !names.insert(in_environment(&name)) {
                    return Err(Failure::usage(format_args!(
                        "two servers are called `{name}`, or nearly so"
                    ))
                    .hint("`--server NAME=C` gives one another name"));
                }
            }
            let front = Front { serving, is_named: !is_at_root, events: events.clone() };
            decks.push(Deck::prepare(name, &args::absolute(path)?, play, privacy, front, notices)?);
        }
        for_somebody(&decks)?;
        if !is_at_root {
            no_strangers(&decks)?;
        }
        Ok(Decks { decks, is_at_root })
    }
}

/// That each rule which is for one server is for one of these.
fn for_somebody(decks: &[Deck]) -> Result<(), Failure> {
    let names: Vec<&str> = decks.iter().map(|deck| &*deck.name).collect();
    let wrong = decks.iter().find_map(|deck| deck.replayer.for_nobody(None, &names));
    wrong.map_or(Ok(()), |error| Err(Failure::plan(error)))
}

/// Why a cassette cannot be replayed.
fn refused(path: &str, error: &ReplayError) -> Failure {
    let sentence = format_args!("{path}: {error}");
    match error {
        ReplayError::Fault(stranger) => Failure::stranger(stranger, sentence),
        _ => Failure::file(sentence),
    }
}

/// That each rule which may be for any of the servers fits something that was recorded of one of them.
fn no_strangers(decks: &[Deck]) -> Result<(), Failure> {
    let strangers = Stranger::to_all(decks.iter().map(|deck| deck.replayer.strangers_here(None)));
    let names = || decks.iter().map(|deck| &*deck.name).collect::<Vec<_>>().join(", ");
    match strangers.first() {
        Some(stranger) => Err(Failure::stranger(stranger, stranger)
            .hint(format_args!("it may be for any of the servers {}", names()))),
        None => Ok(()),
    }
}

/// What a cassette's server is called that was given no name.
fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// Whether a name can stand in a path, and in the name of a variable.
fn check(name: &str, path: &Path) -> Result<(), Failure> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if name.chars().all(is_plain) && !name.starts_with('.') && !matches!(name, "" | "take") {
        return Ok(());
    }
    Err(Failure::usage(format_args!("`{name}` cannot be the name of a server"))
        .hint("a name has letters, digits, `-`, `_` and `.`, does not begin with `.`, and is not `take`")
        .hint(format_args!("`--server NAME={}` gives it another one", path.display())))
}

/// A name as part of a variable's name.
fn in_environment(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect()
}

/// To whom cassettes are served.
#[derive(Clone, Copy, Debug)]
pub(super) struct Serving {
    /// To clients on HTTP, and such that join; else to one on stdio.
    pub is_http: bool,
    /// Somebody tends the run.
    pub is_tended: bool,
    /// Web pages of other origins may read what is answered.
    pub cors: bool,
}

/// How a cassette is served.
struct Front {
    serving: Serving,
    /// Its server is called by a name.
    is_named: bool,
    /// What counts events, where they are collected.
    events: Option<Arc<AtomicU64>>,
}

impl Deck {
    /// Reads a cassette, and says what is to be said before the client comes.
    fn prepare(
        name: String,
        cassette: &Path,
        play: &PlayArgs,
        privacy: &PrivacyArgs,
        front: Front,
        notices: &Notices,
    ) -> Result<Self, Failure> {
        let loaded = files::load(cassette)?;
        files::warnings(&loaded).for_each(|warning| notices.warn(warning));
        let mut options = play.options(privacy.compile_for(loaded.cassette.redacted)?);
        // Session ids that nobody guesses; where the system has no randomness they are only all different.
        let _ = getrandom::fill(&mut options.seed);
        let path = loaded.path.display().to_string();
        let is_missing = |name: &&String| !options.vars.names().any(|given| given == **name);
        if let Some(name) = loaded.cassette.vars.iter().find(is_missing) {
            return Err(Failure::usage(format_args!(
                "{path}: the value of its variable `{name}` is not given"
            ))
            .hint(format_args!("add `--var {name}=VALUE`")));
        }
        options.faults = play.faults.plan(&loaded, front.serving, front.is_named)?;
        options.events = front.events;
        options.tended = front.serving.is_tended;
        options.cors = front.serving.cors;
        if let Some(plan) = options.faults.as_ref().filter(|plan| plan.is_by_chance()) {
            notices.info(format_args!("--seed {} decides what happens by chance", plan.seed));
        }
        let called = Some(name.as_str().into());
        (options.server, options.alone) = if front.is_named { (called, None) } else { (None, called) };
        let (mut cassette, blobs) = (Arc::new(loaded.cassette), Arc::new(loaded.blobs));
        let met = options.met.clone();
        // Where it is seen without its secrets, that tells of them too.
        let is_seen = cassette.redacted || options.redact.is_on();
        if let Some(met) = met.as_ref().filter(|_| !is_seen) {
            clear::meet(&cassette, &*blobs, &privacy.compile()?.rules, met);
        }
        // Once for all takes.
        cassette = clear::seen_by(&mut options, cassette, &*blobs);
        let again = {
            let (path, cassette) = (path.clone(), Arc::clone(&cassette));
            move |options: Options| {
                Replayer::new(Arc::clone(&cassette), Arc::clone(&blobs) as Arc<_>, &path, options)
            }
        };
        let replayer = again(options.clone()).map_err(|error| refused(&path, &error))?;
        replayer.warnings().iter().for_each(|warning| notices.warn(format_args!("{path}: {warning}")));
        let takes = AtomicU64::new(0);
        let again = Box::new(move || {
            let mut options = options.clone();
            // The ids of one take are not those of another.
            let take = takes.fetch_add(1, Ordering::Relaxed) + 1;
            options.seed.iter_mut().zip(take.to_le_bytes()).for_each(|(byte, take)| *byte ^= take);
            again(options).expect("the first one was made of the same")
        });
        notices.info(format_args!("replaying {path}"));
        Ok(Self { name, path: loaded.path, cassette, met, replayer, again })
    }
}

impl Decks {
    /// One cassette, which alone is served.
    pub(super) fn one(
        cassette: &Path,
        play: &PlayArgs,
        privacy: &PrivacyArgs,
        notices: &Notices,
    ) -> Result<Self, Failure> {
        let events = play.events.is_some().then(Arc::default);
        let serving = Serving { is_http: false, is_tended: false, cors: false };
        let front = Front { serving, is_named: false, events };
        let deck = Deck::prepare(stem(cassette), cassette, play, privacy, front, notices)?;
        Ok(Self { decks: vec![deck], is_at_root: true })
    }

    /// What they have to say before anybody has come.
    pub(super) fn report(&self) -> Report {
        match self.decks.as_slice() {
            [deck] if self.is_at_root => deck.replayer.report(),
            decks => Report::of_servers(decks.iter().map(|deck| (&*deck.name, deck.replayer.report()))),
        }
    }

    /// Where clients reach the servers at this origin.
    pub(super) fn places<'a>(&'a self, origin: &str) -> Vec<Place<'a>> {
        let place = |deck: &'a Deck| {
            let base = if self.is_at_root { origin.to_owned() } else { format!("{origin}/{}", deck.name) };
            Place {
                name: &deck.name,
                variable: format!("TAPEDECK_URL_{}", in_environment(&deck.name)),
                url: format!("{base}{}", deck.replayer.endpoint()),
                base,
            }
        };
        self.decks.iter().map(place).collect()
    }

    /// Whether they can be served to a client on stdio: there is one, and nobody has to name it.
    pub(super) fn for_stdio(&self) -> Result<(), Failure> {
        if self.is_at_root {
            return Ok(());
        }
        Err(Failure::usage("servers with names are not served on stdin and stdout")
            .hint("`--listen 127.0.0.1:0` serves them over HTTP, and to clients that start `tapedeck join`"))
    }

    /// Whether one real server stands behind them.
    pub(super) fn for_one_server(&self) -> Result<(), Failure> {
        if self.decks.len() == 1 {
            return Ok(());
        }
        Err(Failure::usage("several cassettes have no one real server")
            .hint("`--on-miss` is for one cassette"))
    }

    /// How the first one's cassette is added to.
    pub(super) fn first<'a>(&'a self, privacy: &'a PrivacyArgs) -> Recording<'a> {
        let Deck { path, cassette, met, .. } = &self.decks[0];
        Recording { path, cassette, met, privacy }
    }

    /// The first one.
    pub(super) fn into_first(self) -> Replayer {
        self.decks.into_iter().next().expect("there is one").replayer
    }

    /// All of them, as a front takes them.
    pub(super) fn into_served(self, upstreams: Option<Arc<Upstreams>>) -> Serves {
        let served = |Deck { name, replayer, again, .. }| Served {
            name,
            first: replayer,
            new: again,
            upstreams: upstreams.clone(),
        };
        Serves { servers: self.decks.into_iter().map(served).collect(), is_at_root: self.is_at_root }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_in_paths_and_variables() {
        for name in ["primary", "a.b-c_9", "Take"] {
            assert!(check(name, Path::new("c.json")).is_ok(), "{name}");
        }
        for name in ["", "take", ".", "..", ".a", "a b", "a/b", "ä", "a%20"] {
            assert!(check(name, Path::new("c.json")).is_err(), "{name}");
        }
        assert_eq!(in_environment("a.b-c_9"), "A_B_C_9");
    }
}
