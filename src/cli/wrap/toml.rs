//! Configurations in TOML: those of Codex.

use toml_edit::{Array, DocumentMut, InlineTable, Item, TableLike, Value};

use super::{
    Config,
    entry::{Change, Entry, Place},
};

const SERVERS: &str = "mcp_servers";

#[derive(Clone)]
pub(super) struct TomlConfig(DocumentMut);

impl TomlConfig {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        text.parse().map(Self).map_err(|error: toml_edit::TomlError| {
            let at = error.span().map_or(0, |span| span.start);
            let line = text[..at.min(text.len())].matches('\n').count() + 1;
            format!("{line}: {}", error.message())
        })
    }

    fn table(&mut self, place: &Place) -> Option<&mut dyn TableLike> {
        self.0.get_mut(SERVERS)?.as_table_like_mut()?.get_mut(&place.name)?.as_table_like_mut()
    }
}

impl Config for TomlConfig {
    fn entries(&self) -> Vec<(Place, Entry)> {
        let servers = self.0.get(SERVERS).and_then(Item::as_table_like);
        let entries = servers.into_iter().flat_map(|servers| servers.iter()).filter_map(|(name, item)| {
            let place = Place { map: 0, name: name.to_owned() };
            Some((place, read(name, item.as_table_like()?)))
        });
        entries.collect()
    }

    fn change(&mut self, place: &Place, change: &Change) {
        let Some(table) = self.table(place) else { return };
        match change {
            Change::Before { program, words } => {
                let command = table.get("command").and_then(Item::as_str).unwrap_or_default().to_owned();
                let mut all: Array = words.iter().chain([&command]).map(String::as_str).collect();
                let old = table.get("args").and_then(Item::as_array).cloned().unwrap_or_default();
                old.iter().for_each(|word| all.push(word.clone().decorated(" ", "")));
                set(table, "command", program.as_str().into());
                set(table, "args", all.into());
            }
            Change::Instead { program, words, env, pass } => {
                for name in ["url", "bearer_token_env_var", "http_headers", "env_http_headers"] {
                    table.remove(name);
                }
                set(table, "command", program.as_str().into());
                set(table, "args", words.iter().map(String::as_str).collect::<Array>().into());
                if !env.is_empty() {
                    let env = env.iter().map(|(name, value)| (name.as_str(), value.as_str()));
                    set(table, "env", env.collect::<InlineTable>().into());
                }
                if !pass.is_empty() {
                    set(table, "env_vars", pass.iter().map(String::as_str).collect::<Array>().into());
                }
            }
        }
    }

    fn restore(&mut self, place: &Place, before: &Self) -> bool {
        let old = before.0.get(SERVERS).and_then(Item::as_table_like).and_then(|all| all.get(&place.name));
        let here = self
            .0
            .get_mut(SERVERS)
            .and_then(Item::as_table_like_mut)
            .and_then(|all| all.get_mut(&place.name));
        let (Some(old), Some(here)) = (old, here) else { return false };
        *here = old.clone();
        true
    }

    fn is_same(&self, place: &Place, other: &Self) -> bool {
        let text = |config: &Self| {
            let servers = config.0.get(SERVERS)?.as_table_like()?;
            servers.get(&place.name).map(ToString::to_string)
        };
        text(self).is_some_and(|here| text(other) == Some(here))
    }

    fn put_back(&mut self, place: &Place, before: &Self) -> bool {
        let old = before.0.get(SERVERS).and_then(Item::as_table_like).and_then(|all| all.get(&place.name));
        let Some((old, table)) = old.and_then(Item::as_table_like).zip(self.table(place)) else {
            return false;
        };
        let value = |name| old.get(name).and_then(Item::as_value).cloned();
        let Some(command) = value("command") else { return false };
        set(table, "command", command);
        match value("args") {
            Some(args) => set(table, "args", args),
            None => drop(table.remove("args")),
        }
        true
    }

    fn unwrap(&mut self, place: &Place, command: &str, words: usize) {
        let Some(table) = self.table(place) else { return };
        let args = table.get("args").and_then(Item::as_array).cloned().unwrap_or_default();
        let rest: Array = args.iter().skip(words + 1).filter_map(Value::as_str).collect();
        set(table, "command", command.into());
        set(table, "args", rest.into());
    }

    fn text(&self) -> String {
        self.0.to_string()
    }
}

/// Sets a member; a comment beside its old value stays.
fn set(table: &mut dyn TableLike, name: &str, mut value: Value) {
    if let Some(old) = table.get(name).and_then(Item::as_value) {
        *value.decor_mut() = old.decor().clone();
    }
    table.insert(name, Item::Value(value));
}

fn read(name: &str, table: &dyn TableLike) -> Entry {
    let text = |name: &str| table.get(name).and_then(Item::as_str).map(str::to_owned);
    let pairs = |name: &str| -> Vec<(String, String)> {
        let pairs = table.get(name).and_then(Item::as_table_like);
        let pairs = pairs.into_iter().flat_map(|pairs| pairs.iter());
        pairs.filter_map(|(name, value)| Some((name.to_owned(), value.as_str()?.to_owned()))).collect()
    };
    let args = table.get("args").and_then(Item::as_array);
    let args = args.into_iter().flat_map(Array::iter).filter_map(Value::as_str);
    let bearer = text("bearer_token_env_var")
        .map(|variable| ("Authorization".to_owned(), "Bearer ".to_owned(), variable));
    let named = pairs("env_http_headers").into_iter();
    let named = named.map(|(name, variable)| (name, String::new(), variable));
    Entry {
        name: name.to_owned(),
        command: text("command"),
        args: args.map(str::to_owned).collect(),
        url: text("url"),
        headers: pairs("http_headers"),
        variables: bearer.into_iter().chain(named).collect(),
        has_env: table.get("env").is_some() || table.get("env_vars").is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"model = "o" # mine

# what I use
[mcp_servers.a]
command = "npx" # here
args = ["-y", "x"]

[mcp_servers.r]
url = "https://h/mcp"
bearer_token_env_var = "TOKEN"
"#;

    fn place(name: &str) -> Place {
        Place { map: 0, name: name.to_owned() }
    }

    fn wrapped() -> TomlConfig {
        let mut config = TomlConfig::parse(TEXT).unwrap();
        let words = vec!["record".to_owned(), "--".to_owned()];
        config.change(&place("a"), &Change::Before { program: "/t".into(), words });
        let pass = vec!["TOKEN".to_owned()];
        let words = vec!["record".to_owned(), "--url".to_owned()];
        config.change(&place("r"), &Change::Instead { program: "/t".into(), words, env: Vec::new(), pass });
        config
    }

    #[test]
    fn comments_and_order_stay() {
        let text = wrapped().text();
        assert!(text.starts_with("model = \"o\" # mine\n\n# what I use\n[mcp_servers.a]\n"), "{text}");
        assert!(
            text.contains("command = \"/t\" # here\nargs = [\"record\", \"--\", \"npx\", \"-y\", \"x\"]\n"),
            "{text}"
        );
        assert!(
            text.contains(
                "[mcp_servers.r]\ncommand = \"/t\"\nargs = [\"record\", \"--url\"]\nenv_vars = [\"TOKEN\"]\n"
            ),
            "{text}"
        );
        assert!(!text.contains("bearer"), "{text}");
    }

    #[test]
    fn a_token_from_a_variable_stays_there() {
        let entries = TomlConfig::parse(TEXT).unwrap().entries();
        let variables = &entries[1].1.variables;
        assert_eq!(variables, &[("Authorization".to_owned(), "Bearer ".to_owned(), "TOKEN".to_owned())]);
    }

    #[test]
    fn what_was_comes_back() {
        let before = TomlConfig::parse(TEXT).unwrap();
        let mut config = wrapped();
        assert!(config.restore(&place("a"), &before) && config.restore(&place("r"), &before));
        assert_eq!(config.text(), TEXT);
        let mut config = wrapped();
        config.unwrap(&place("a"), "npx", 2);
        assert_eq!(config.entries()[0].1.args, ["-y", "x"]);
    }
}
