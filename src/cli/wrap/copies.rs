//! The configuration as it is without us, which lies beside it while servers are wrapped.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::{
    super::failure::Failure,
    back::Old,
    entry::Mode,
    plan::without_mark,
    sheet::{Sheet, Syntax},
    write,
};

/// The copies of a configuration.
#[derive(Debug)]
pub(super) struct Copies {
    pub syntax: Syntax,
    first: PathBuf,
    /// The newest first. More than one where a server could not be taken back when it was wrapped again.
    known: Vec<Copy>,
}

#[derive(Debug)]
struct Copy {
    path: PathBuf,
    text: String,
    /// None of a copy that cannot be read any more.
    sheet: Option<Sheet>,
}

impl Copies {
    pub(super) fn read(file: &Path) -> Result<Self, Failure> {
        let is_toml = file.extension().is_some_and(|extension| extension == "toml");
        let syntax = if is_toml { Syntax::Toml } else { Syntax::Json };
        let mut name = file.file_name().unwrap_or_default().to_owned();
        name.push(".before-tapedeck");
        let first = file.with_file_name(name);
        let mut known = Vec::new();
        for n in 1.. {
            let path = numbered(&first, n);
            match fs::read_to_string(&path) {
                Ok(text) => {
                    let sheet = Sheet::parse(syntax, without_mark(&text)).ok();
                    known.insert(0, Copy { path, text, sheet });
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => break,
                Err(error) => return Err(Failure::io("read", &path, &error)),
            }
        }
        Ok(Self { syntax, first, known })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// What a wrapped entry was: the entry of its name, else the one whose name its cassette has.
    pub(super) fn find(&self, sheet: &Sheet, index: usize) -> Option<Old<'_>> {
        let (server, entry) = (&sheet.servers[index], sheet.entry(index));
        let sheets = || self.known.iter().filter_map(|copy| copy.sheet.as_ref());
        let of_name = sheets().find_map(|sheet| {
            let place = sheet.servers.iter().position(|old| old.is(server));
            place.map(|index| Old { sheet, index })
        });
        let cassette = entry.cassette();
        of_name.or_else(|| {
            sheets().find_map(|sheet| {
                let mut taken = Vec::new();
                let mode = Mode { program: String::new(), folder: String::new(), replays: false };
                let names = sheet.servers.iter().map(|old| mode.cassette(&old.name, &mut taken));
                let place = names.into_iter().position(|path| path.strip_prefix('/') == cassette);
                place.map(|index| Old { sheet, index })
            })
        })
    }

    /// Where a person finds what a server was.
    pub(super) fn hint(&self, old: Option<Old<'_>>) -> String {
        let holds = |copy: &&Copy| {
            old.is_some_and(|old| copy.sheet.as_ref().is_some_and(|sheet| std::ptr::eq(sheet, old.sheet)))
        };
        let copy = self.known.iter().find(holds);
        copy.map_or(String::new(), |copy| format!("; what it was stands in {}", copy.path.display()))
    }

    /// Keeps the configuration as it is without us. Where servers were left the copies before may be all that knows
    /// what they were.
    pub(super) fn keep(&self, text: &str, has_left: bool) -> Result<(), Failure> {
        if self.known.first().is_some_and(|copy| copy.text == text) {
            return Ok(());
        }
        let n = if has_left { self.known.len() + 1 } else { 1 };
        write(&numbered(&self.first, n), text)?;
        self.known.iter().filter(|copy| !has_left && copy.path != self.first).try_for_each(remove)
    }

    /// Removes the copies where each server is what it is there; says which is not.
    pub(super) fn remove(&self, sheet: &Sheet) -> Result<Option<String>, Failure> {
        for copy in &self.known {
            let old = copy
                .sheet
                .iter()
                .flat_map(|old| (0..old.servers.len()).map(move |index| Old { sheet: old, index }));
            let is_here = |old: &Old<'_>| {
                let (was, entry) = (old.server(), old.entry());
                let mut servers = sheet.servers.iter().enumerate();
                servers.any(|(index, new)| new.is(was) && sheet.entry(index) == entry)
            };
            let others: Vec<String> =
                old.filter(|old| !is_here(old)).map(|old| format!("`{}`", old.server().name)).collect();
            if !others.is_empty() || copy.sheet.is_none() {
                let others = if others.is_empty() { "something".to_owned() } else { others.join(", ") };
                return Ok(Some(format!("{} is kept: {others} is otherwise in it", copy.path.display())));
            }
        }
        self.known.iter().try_for_each(remove)?;
        Ok(None)
    }
}

fn numbered(first: &Path, n: usize) -> PathBuf {
    if n == 1 {
        return first.to_owned();
    }
    let mut name = first.as_os_str().to_owned();
    name.push(format!(".{n}"));
    name.into()
}

/// Another `wrap` may have removed it meanwhile.
fn remove(copy: &Copy) -> Result<(), Failure> {
    match fs::remove_file(&copy.path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Failure::io("remove", &copy.path, &error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_that_another_wrap_has_removed_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("mcp.json");
        let text = r#"{"mcpServers": {"a": {"command": "x"}}}"#;
        fs::write(folder.path().join("mcp.json.before-tapedeck"), text).unwrap();
        let copies = Copies::read(&file).unwrap();
        let sheet = Sheet::parse(Syntax::Json, text).unwrap();
        assert_eq!(copies.remove(&sheet).unwrap(), None);
        assert!(Copies::read(&file).unwrap().is_empty());
        assert_eq!(copies.remove(&sheet).unwrap(), None);
    }
}
