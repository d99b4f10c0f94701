//! What becomes of a configuration.

use std::{fs, path::Path, time::SystemTime};

use mcp_tapedeck::store::shell;

use super::{
    super::{failure::Failure, files},
    back::{self, Back},
    copies::Copies,
    entry::{Front, Mode},
    put,
    sheet::Sheet,
    write,
};

/// What is to be done to a configuration.
#[derive(Debug)]
pub(super) struct Plan {
    pub old: String,
    pub new: String,
    /// What is to be said, by lines.
    pub told: Vec<String>,
    /// A wrapped server is left as it is.
    pub has_left: bool,
    after: Rewritten,
    copies: Copies,
    wraps: bool,
}

#[derive(Debug)]
struct Rewritten {
    sheet: Sheet,
    without: Sheet,
    told: Vec<String>,
    has_left: bool,
}

impl Plan {
    /// What a mode asks for; without one, each server is left again.
    pub(super) fn of(file: &Path, mode: Option<&Mode>) -> Result<Self, Failure> {
        let old = fs::read_to_string(file).map_err(|error| Failure::io("read", file, &error))?;
        let copies = Copies::read(file)?;
        let mut after = rewrite(file, without_mark(&old), &copies, mode)?;
        let new = format!("{}{}", mark(&old), after.sheet.text);
        let told = std::mem::take(&mut after.told);
        Ok(Self { new, told, has_left: after.has_left, wraps: mode.is_some(), old, after, copies })
    }

    /// Changes the file and its copies; what else there is to say.
    pub(super) fn carry_out(&self, file: &Path) -> Result<Option<String>, Failure> {
        files::clean(file, SystemTime::now());
        if self.new != self.old {
            if fs::metadata(file).is_ok_and(|known| known.permissions().readonly()) {
                return Err(Failure::file(format_args!(
                    "cannot write `{}`: it is read-only",
                    file.display()
                ))
                .hint("make it writable, or write another file with `--out`"));
            }
            // The copy first: what was stands in one of the two at any moment.
            if self.wraps {
                let text = format!("{}{}", mark(&self.old), self.after.without.text);
                self.copies.keep(&text, self.has_left)?;
            }
            write(file, &self.new)?;
        }
        if self.wraps || self.has_left { Ok(None) } else { self.copies.remove(&self.after.sheet) }
    }
}

/// Editors of some systems begin a file with a byte order mark, which no parser takes.
pub(super) fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

fn mark(text: &str) -> &str {
    &text[..text.len() - without_mark(text).len()]
}

/// A configuration's new text, and that without us.
fn rewrite(file: &Path, text: &str, copies: &Copies, mode: Option<&Mode>) -> Result<Rewritten, Failure> {
    let wrong = |error| Failure::file(format_args!("{}:{error}", file.display()));
    let found = Sheet::parse(copies.syntax, text).map_err(wrong)?;
    if mode.is_some() && !found.servers.iter().any(|server| server.is_here) {
        return Err(Failure::file(format_args!("{} names no servers", file.display()))
            .hint("they stand under `mcpServers`, `servers` or `[mcp_servers.NAME]`"));
    }
    let mut without = found.clone();
    // Why a wrapped server is left as it is.
    let mut left = vec![None; found.servers.len()];
    let (mut told, mut has_left) = (Vec::new(), false);
    for (index, left) in left.iter_mut().enumerate() {
        let server = &found.servers[index];
        // Left is what is for this folder; the copy is of all.
        let is_meant = mode.is_some() || server.is_here;
        let entry = found.entry(index);
        let front = entry.front();
        if !is_meant || front == Front::None {
            continue;
        }
        let old = copies.find(&found, index);
        let stood_so = old.is_some_and(|old| old.entry().front() != Front::None);
        let mut is_some_type = false;
        *left = if stood_so {
            Some("tapedeck stood before it already when the configuration was wrapped".to_owned())
        } else if old.is_none() && front == Front::Alike {
            has_left |= mode.is_none() || !copies.is_empty();
            let program = entry.command.as_deref().unwrap_or_default();
            let undo =
                format!("put `tapedeck` in its place and run `tapedeck wrap {} --undo`", shell::word(file));
            Some(format!(
                "{program} stands before it, and nothing tells that it is tapedeck; if it is, {undo}"
            ))
        } else if old.is_none() && mode.is_some() {
            has_left |= !copies.is_empty();
            let undo = format!("`tapedeck wrap {} --undo` takes it away", shell::word(file));
            Some(format!("tapedeck stands before it already; {undo}"))
        } else {
            let back = back::take_back(&mut without, index, old);
            has_left |= matches!(back, Back::Edited | Back::Unknown);
            is_some_type = back == Back::OfSomeType;
            match back {
                Back::AsItWas | Back::OfSomeType => None,
                Back::Edited => Some(format!("it was edited in what wraps it{}", copies.hint(old))),
                Back::Unknown => Some("what it was is not known any more".to_owned()),
            }
        };
        if mode.is_none() {
            let what = match left {
                Some(why) => format!("left as it is: {why}"),
                None if is_some_type => {
                    "as it was, but for its `type`, which is `http` now: the copy that told it is gone; where it was \
                     another one, such as `sse`, write that"
                        .to_owned()
                }
                None => "as it was".to_owned(),
            };
            told.push(format!("{}: {what}", server.name));
        }
    }
    let Some(mode) = mode else {
        if told.is_empty() {
            told.push("no server was wrapped".to_owned());
        }
        return Ok(Rewritten { sheet: without.clone(), without, told, has_left });
    };
    let mut sheet = found.clone();
    let mut taken = Vec::new();
    let here = left.into_iter().enumerate().filter(|(index, _)| found.servers[*index].is_here);
    for (index, left) in here {
        let name = &found.servers[index].name;
        let cassette = mode.cassette(name, &mut taken);
        let kept = sheet.clone();
        let done = left.map_or(Ok(()), Err).and_then(|()| {
            if found.entry(index).front() != Front::None {
                back::take_back(&mut sheet, index, copies.find(&found, index));
            }
            wrap(&mut sheet, index, mode, &cassette)
        });
        told.push(match done {
            Ok(more) => {
                let verb = if mode.replays { "replayed from" } else { "recorded into" };
                format!("{name}: {verb} {cassette}{more}")
            }
            Err(why) => {
                // What was wrapped stays so.
                sheet = kept;
                format!("{name}: left as it is: {why}")
            }
        });
    }
    Ok(Rewritten { sheet, without, told, has_left })
}

/// Stands before a server; what else there is to say, or why it stays as it is.
fn wrap(sheet: &mut Sheet, index: usize, mode: &Mode, cassette: &str) -> Result<String, String> {
    let entry = sheet.entry(index);
    if sheet.servers.iter().filter(|other| other.is(&sheet.servers[index])).count() > 1 {
        return Err("its name stands there twice".to_owned());
    }
    let change = mode.decide(&entry, cassette, Path::new(cassette).exists())?;
    if !put::put(sheet, index, &mode.program, &change) {
        return Err(
            "it cannot be changed in place; write each of its members on one line, tables as `{ … }`"
                .to_owned(),
        );
    }
    let left_out: Vec<String> = entry.left_out().iter().map(|name| format!("`{name}`")).collect();
    if left_out.is_empty() || mode.replays || entry.command.is_some() {
        return Ok(String::new());
    }
    let headers = if left_out.len() == 1 { "header" } else { "headers" };
    Ok(format!("; without its {headers} {}, which only the connection can have", left_out.join(" and ")))
}
