//! Standing before a server: each member that changes keeps its place, and what can stay in it as it is does.

use super::{
    entry::{self, Change},
    sheet::{Edit, Member, Server, Sheet, Syntax, list, quoted},
};

/// Changes an entry; false where it cannot be done in place.
pub(super) fn put(sheet: &mut Sheet, index: usize, program: &str, change: &Change) -> bool {
    let was = sheet.entry(index);
    let server = &sheet.servers[index];
    let (edits, words) = match (change, server.member("command"), server.member("url")) {
        (Change::Before(words), Some(command), _) => {
            let inner = was.command.iter().chain(&was.args);
            let all = words.iter().chain(inner).cloned().collect::<Vec<_>>();
            (before(sheet, server, command, program, words), all)
        }
        (Change::Instead(words), Some(command), _) => {
            let mut edits = vec![(command.value.clone(), quoted(program))];
            edits.push(args(sheet, server, command, &all(words)));
            (edits, words.clone())
        }
        (Change::Instead(words), None, Some(url)) => {
            let Some(edits) = instead(sheet, server, url, program, words) else { return false };
            (edits, words.clone())
        }
        _ => return false,
    };
    sheet.edit(edits, index, |now| {
        now.command.as_deref() == Some(program)
            && now.args == words
            && now.wrong.is_none()
            // Of headers in dotted keys with escapes only the first is renamed.
            && (was.command.is_some() || (now.url.is_none() && now.headers.is_empty()))
    })
}

fn all(words: &[String]) -> Vec<String> {
    words.iter().map(|word| quoted(word)).collect()
}

/// The arguments in place of those it has.
fn args(sheet: &Sheet, server: &Server, behind: &Member, words: &[String]) -> Edit {
    match server.member("args") {
        Some(args) => (args.value.clone(), list(words)),
        None => sheet.add(server, behind, "args", &list(words)),
    }
}

/// Words before the command, which becomes the first of those that were behind it.
fn before(sheet: &Sheet, server: &Server, command: &Member, program: &str, words: &[String]) -> Vec<Edit> {
    let mut words = all(words);
    words.push(sheet.raw(&command.value).to_owned());
    let args = match server.member("args") {
        Some(args) => match args.elements().first() {
            Some((first, _)) => (first.start..first.start, format!("{}, ", words.join(", "))),
            None => (args.value.start + 1..args.value.start + 1, words.join(", ")),
        },
        None => sheet.add(server, command, "args", &list(&words)),
    };
    vec![(command.value.clone(), quoted(program)), args]
}

/// A command in place of a URL; what becomes variables keeps its values and their layout.
fn instead(
    sheet: &Sheet,
    server: &Server,
    url: &Member,
    program: &str,
    words: &[String],
) -> Option<Vec<Edit>> {
    let mut raw = all(words);
    if let Some(at) = words.iter().position(|word| word == "--url") {
        raw[at + 1] = sheet.raw(&url.value).to_owned();
    }
    let mut edits = sheet.rename(url, "command");
    edits.push((url.value.clone(), quoted(program)));
    edits.extend(server.member("type").map(|kind| (kind.value.clone(), quoted("stdio"))));
    if let Some(headers) = server.member(sheet.syntax.headers()) {
        edits.extend(sheet.rename(headers, "env"));
        for (n, header) in headers.members().iter().enumerate() {
            if !super::super::connect::is_refused(&header.name) {
                edits.extend(sheet.rename(header, &entry::variable(n)));
            }
        }
    }
    let bearer = server.member("bearer_token_env_var").filter(|_| sheet.syntax == Syntax::Toml);
    let named = server.member("env_http_headers").filter(|_| sheet.syntax == Syntax::Toml);
    if named.is_some_and(|named| !named.is_whole || named.members().is_empty()) {
        return None;
    }
    let theirs =
        named.into_iter().flat_map(Member::members).map(|member| sheet.raw(&member.value).to_owned());
    let variables = bearer.map(|bearer| sheet.raw(&bearer.value).to_owned()).into_iter().chain(theirs);
    let variables = list(&variables.collect::<Vec<_>>());
    if let Some(passes) = bearer.or(named) {
        edits.extend(sheet.rename(passes, "env_vars"));
        edits.push((passes.value.clone(), variables));
    }
    match named.filter(|_| bearer.is_some()) {
        // There are as many members as before, so each can have the place of one.
        Some(named) => {
            edits.extend(sheet.rename(named, "args"));
            edits.push((named.value.clone(), list(&raw)));
        }
        None => edits.push(args(sheet, server, url, &raw)),
    }
    Some(edits)
}
