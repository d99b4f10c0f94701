//! Leaving a server again: most of what it was stands in the entry itself, the rest in the copy.

use super::{
    super::connect,
    entry::{Entry, Sent},
    sheet::{Edit, Member, Server, Sheet, Syntax, quoted, renamed},
};

/// What became of an entry that was wrapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Back {
    AsItWas,
    /// All but its `type`, which only the copy could tell: it may have been another one of HTTP.
    OfSomeType,
    /// What was put there to wrap it was edited in such a way that it cannot be taken away.
    Edited,
    /// What it was is not known any more.
    Unknown,
}

/// An entry of a copy.
#[derive(Clone, Copy)]
pub(super) struct Old<'a> {
    pub sheet: &'a Sheet,
    pub index: usize,
}

impl<'a> Old<'a> {
    pub(super) fn server(self) -> &'a Server {
        &self.sheet.servers[self.index]
    }

    pub(super) fn entry(self) -> Entry {
        self.sheet.entry(self.index)
    }

    fn raw(self, name: &str) -> Option<&'a str> {
        self.server().member(name).map(|member| self.sheet.raw(&member.value))
    }
}

/// Takes what was put there to wrap an entry away. What was edited since stays.
pub(super) fn take_back(sheet: &mut Sheet, index: usize, old: Option<Old<'_>>) -> Back {
    let entry = sheet.entry(index);
    let server = &sheet.servers[index];
    let (Some(command), Some(args)) = (server.member("command"), server.member("args")) else {
        return Back::Edited;
    };
    let leaving = Leaving { sheet, server, command, args, old };
    let words = args.elements();
    let place = |word: &str| words.iter().position(|(_, text)| text.as_deref() == Some(word));
    let (edits, back): (_, Entry) = if let Some(dashes) = place("--")
        && let Some((inner, Some(text))) = words.get(dashes + 1)
    {
        let args = words[dashes + 2..].iter().filter_map(|(_, text)| text.clone()).collect();
        let back = Entry { command: Some(text.clone()), args, ..Entry::default() };
        (Some(leaving.before(inner, text, dashes + 2)), back)
    } else if let Some(url) = entry.given("--url").next() {
        let sent: Option<Vec<Sent>> = entry.given("--header").map(sent).collect();
        let raw = words.iter().find(|(_, text)| text.as_deref() == Some(url));
        let raw = raw.map_or_else(|| quoted(url), |(place, _)| sheet.raw(place).to_owned());
        let back = Entry { url: Some(url.to_owned()), ..Entry::default() };
        (sent.and_then(|sent| leaving.url(&raw, sent)), back)
    } else if let Some(old) = old {
        let was = old.entry();
        let back = Entry {
            command: was.command.clone(),
            args: was.args.clone(),
            url: was.url.clone(),
            ..Entry::default()
        };
        let edits = match (old.raw("command"), old.raw("url")) {
            (Some(raw), _) => Some(leaving.command(raw)),
            (None, Some(raw)) => leaving.url(raw, was.sent()),
            (None, None) => None,
        };
        (edits, back)
    } else {
        return Back::Unknown;
    };
    let has_stdio = server.member("type").is_some_and(|kind| kind.text() == Some("stdio"));
    let back_there = match old.is_none() && back.url.is_some() && has_stdio {
        true => Back::OfSomeType,
        false => Back::AsItWas,
    };
    let is_right = |now: &Entry| match &back.url {
        Some(_) => (&now.url, &now.command) == (&back.url, &None),
        None => (&now.command, &now.args) == (&back.command, &back.args),
    };
    match edits.is_some_and(|edits| sheet.edit(edits, index, is_right)) {
        true => back_there,
        false => Back::Edited,
    }
}

/// Reads the value of a `--header`; none where its value is not that of a variable.
fn sent(given: &str) -> Option<Sent> {
    let (name, value) = given.split_once(':')?;
    let value = value.trim();
    let (before, variable) = value.rsplit_once(' ').map_or(("", value), |(before, last)| (before, last));
    let before = if before.is_empty() { String::new() } else { format!("{before} ") };
    if before.contains("env:") {
        return None;
    }
    Some(Sent { name: name.trim().to_owned(), before, variable: variable.strip_prefix("env:")?.to_owned() })
}

/// A wrapped entry and its members that tell of it.
struct Leaving<'a> {
    sheet: &'a Sheet,
    server: &'a Server,
    command: &'a Member,
    args: &'a Member,
    old: Option<Old<'a>>,
}

impl Leaving<'_> {
    /// The command that stands behind our words.
    fn before(&self, inner: &std::ops::Range<usize>, text: &str, words: usize) -> Vec<Edit> {
        let old = self.old.filter(|old| old.entry().command.as_deref() == Some(text));
        let raw = old.and_then(|old| old.raw("command")).unwrap_or_else(|| self.sheet.raw(inner));
        let mut edits = vec![(self.command.value.clone(), raw.to_owned())];
        let is_rest = self.args.elements().len() > words;
        if !is_rest && !self.has_args() {
            edits.extend(self.remove(self.args));
        } else {
            edits.extend(self.sheet.drop_first(self.args, words));
        }
        edits
    }

    /// Whether it had a list of arguments, of none perhaps.
    fn has_args(&self) -> bool {
        if let Some(old) = self.old.filter(|old| old.server().member("command").is_some()) {
            return old.server().member("args").is_some();
        }
        !self.sheet.is_put_behind(self.server, self.command, self.args)
    }

    /// A command of which nothing stands in the entry any more.
    fn command(&self, raw: &str) -> Vec<Edit> {
        let mut edits = vec![(self.command.value.clone(), raw.to_owned())];
        match self.old.and_then(|old| old.raw("args")) {
            Some(args) => edits.push((self.args.value.clone(), args.to_owned())),
            None => edits.extend(self.remove(self.args)),
        }
        edits
    }

    fn remove(&self, member: &Member) -> Vec<Edit> {
        let members = self.server.members.as_deref().unwrap_or_default();
        self.sheet.remove(members, self.server.in_lines, member)
    }

    /// A URL, and the headers that stand in variables; none where a variable is missing or stands for something else.
    fn url(&self, raw: &str, mut sent: Vec<Sent>) -> Option<Vec<Edit>> {
        let mut edits = self.sheet.rename(self.command, "url");
        edits.push((self.command.value.clone(), raw.to_owned()));
        if let Some(kind) = self.server.member("type").filter(|kind| kind.text() == Some("stdio")) {
            let was = self.old.and_then(|old| old.raw("type")).map(str::to_owned);
            edits.push((kind.value.clone(), was.unwrap_or_else(|| quoted("http"))));
        }
        if let Some(env) = self.server.member("env") {
            edits.extend(self.headers(env, &mut sent)?);
        }
        let passes = self.server.member("env_vars").filter(|_| self.sheet.syntax == Syntax::Toml);
        let in_args = match passes {
            Some(passes) => self.variables(passes, &mut sent, &mut edits)?,
            None => false,
        };
        match self.old.and_then(|old| old.raw("args")) {
            _ if in_args => {}
            Some(args) => edits.push((self.args.value.clone(), args.to_owned())),
            None => edits.extend(self.remove(self.args)),
        }
        sent.is_empty().then_some(edits)
    }

    /// Variables whose values are headers become those; others stay variables.
    fn headers(&self, env: &Member, sent: &mut Vec<Sent>) -> Option<Vec<Edit>> {
        let name = self.sheet.syntax.headers();
        let (mut edits, mut foreign) = (Vec::new(), Vec::new());
        // A server that was recorded for its headers had no variables.
        let had_headers = self.old.is_none_or(|old| old.server().member(name).is_some());
        let mut is_ours = env.members().is_empty() && had_headers;
        for member in env.members() {
            let place = sent.iter().position(|header| header.variable == member.name);
            if let Some(header) = place.map(|place| sent.remove(place)) {
                edits.extend(self.sheet.rename(member, &header.name));
                if !header.before.is_empty() {
                    let value = format!("{}{}", header.before, member.text()?);
                    edits.push((member.value.clone(), quoted(&value)));
                }
            } else if !connect::is_refused(&member.name) {
                foreign.push(member);
                continue;
            }
            is_ours = true;
        }
        if !is_ours {
            return Some(Vec::new());
        }
        let renamed = self.sheet.rename(env, name);
        // A variable that is ours and of which no header is known any more is none of theirs.
        if foreign.iter().any(|member| member.name.starts_with("TAPEDECK_HEADER_")) {
            return None;
        }
        if !env.dotted.is_empty() {
            let is_theirs = |member: &Member| foreign.iter().any(|other| other.key == member.key);
            let ours = env.members().iter().zip(renamed).filter(|(member, _)| !is_theirs(member));
            edits.extend(ours.map(|(_, edit)| edit));
            return Some(edits);
        }
        edits.extend(renamed);
        if foreign.is_empty() {
            return Some(edits);
        }
        if !env.is_whole {
            return None;
        }
        let mut theirs = Vec::new();
        for member in foreign {
            theirs.push(self.sheet.raw(&(member.key.start..member.value.end)).to_owned());
            edits.extend(self.sheet.remove(env.members(), false, member));
        }
        edits.push(self.sheet.add(self.server, env, "env", &format!("{{{}}}", theirs.join(", "))));
        Some(edits)
    }

    /// Variables of the client's whose values are headers; true where those headers take the place of the arguments.
    fn variables(&self, passes: &Member, sent: &mut Vec<Sent>, edits: &mut Vec<Edit>) -> Option<bool> {
        let is_passed =
            |sent: &Sent| passes.elements().iter().any(|(_, text)| text.as_ref() == Some(&sent.variable));
        let ours: Vec<Sent> = sent.extract_if(.., |sent| is_passed(sent)).collect();
        if ours.len() != passes.elements().len() || ours.is_empty() {
            return ours.is_empty().then_some(false);
        }
        let raw = |sent: &Sent| {
            let mut elements = passes.elements().iter();
            elements
                .find(|(_, text)| text.as_ref() == Some(&sent.variable))
                .map(|(place, _)| self.sheet.raw(place).to_owned())
        };
        let (bearer, named): (Vec<Sent>, Vec<Sent>) =
            ours.into_iter().partition(|sent| !sent.before.is_empty());
        if bearer.len() > 1
            || bearer.iter().any(|sent| sent.name != "Authorization" || sent.before != "Bearer ")
        {
            return None;
        }
        let was = self.old.filter(|old| old.entry().variables.ends_with(&named));
        let was = was.and_then(|old| old.raw("env_http_headers")).map(str::to_owned);
        let named = match (named.is_empty(), was) {
            (true, _) => None,
            (false, Some(was)) => Some(was),
            (false, None) => {
                let members =
                    named.iter().map(|sent| Some(format!("{} = {}", renamed("", &sent.name), raw(sent)?)));
                Some(format!("{{ {} }}", members.collect::<Option<Vec<_>>>()?.join(", ")))
            }
        };
        match (bearer.first(), named) {
            (Some(bearer), named) => {
                edits.extend(self.sheet.rename(passes, "bearer_token_env_var"));
                edits.push((passes.value.clone(), raw(bearer)?));
                let Some(named) = named else { return Some(false) };
                edits.extend(self.sheet.rename(self.args, "env_http_headers"));
                edits.push((self.args.value.clone(), named));
                Some(true)
            }
            (None, named) => {
                edits.extend(self.sheet.rename(passes, "env_http_headers"));
                edits.push((passes.value.clone(), named?));
                Some(false)
            }
        }
    }
}
