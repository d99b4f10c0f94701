//! Where servers stand in TOML: configurations of Codex.

use std::ops::Range;

use mcp_tapedeck::cassette::model::line_column;
use toml_edit::{Document, Item, Key, TableLike, Value};

use super::sheet::{Holds, Member, Server};

const SERVERS: &str = "mcp_servers";

pub(super) fn servers(text: &str) -> Result<Vec<Server>, String> {
    let read = Document::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        let (line, column) = line_column(text.as_bytes(), at.min(text.len()));
        format!("{line}:{column}: {}", error.message())
    })?;
    let servers = read.get(SERVERS).and_then(Item::as_table_like);
    let servers = servers.into_iter().flat_map(|servers| servers.iter());
    Ok(servers.map(|(name, item)| server(text, name, item)).collect())
}

fn server(text: &str, name: &str, item: &Item) -> Server {
    let members = item.as_table_like().map(|table| members(text, table, true));
    Server {
        map: SERVERS.to_owned(),
        name: name.to_owned(),
        is_here: true,
        members,
        in_lines: item.is_table(),
    }
}

/// A table's members, and where asked for what those hold that are tables.
fn members(text: &str, table: &dyn TableLike, and_theirs: bool) -> Vec<Member> {
    let names = table.iter().map(|(name, _)| name);
    names
        .filter_map(|name| table.get_key_value(name))
        .filter_map(|(key, item)| member(text, key, item, and_theirs))
        .collect()
}

fn member(text: &str, key: &Key, item: &Item, and_theirs: bool) -> Option<Member> {
    let string = |value: &Value| value.as_str().map(str::to_owned);
    let holds = match item {
        Item::Value(Value::Array(array)) => {
            Holds::List(array.iter().filter_map(|value| Some((value.span()?, string(value)))).collect())
        }
        Item::Value(value) if !value.is_inline_table() => string(value).map_or(Holds::Other, Holds::Text),
        _ => match item.as_table_like() {
            Some(table) if and_theirs => Holds::Members(members(text, table, false)),
            _ => Holds::Other,
        },
    };
    let is_dotted = item.as_table_like().is_some_and(TableLike::is_dotted);
    let key_place = key.span()?;
    let value = item.span().unwrap_or(key_place.end..key_place.end);
    // Without the places of all, none: what is changed at the first alone is found to be wrong.
    let dotted = match &holds {
        Holds::Members(members) if is_dotted => {
            let places = members.iter().map(|member| dotted(text, member.key.start, key.get()));
            places.collect::<Option<_>>().unwrap_or_default()
        }
        _ => Vec::new(),
    };
    let is_whole = item.is_value() && !is_dotted;
    Some(Member { name: key.get().to_owned(), key: key_place, dotted, value, holds, is_whole })
}

/// Where a name stands before the dot in front of a key; none where it is spelled with escapes.
fn dotted(text: &str, key: usize, name: &str) -> Option<Range<usize>> {
    let before = text[..key].trim_end_matches([' ', '\t']).strip_suffix('.')?.trim_end_matches([' ', '\t']);
    let quote = before.chars().next_back().filter(|last| matches!(last, '"' | '\''));
    let inside = quote.map_or(Some(before), |quote| before.strip_suffix(quote))?.strip_suffix(name)?;
    let start = quote.map_or(Some(inside), |quote| inside.strip_suffix(quote))?.len();
    Some(start..before.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_found_in_every_form_of_a_table() {
        for (text, in_lines) in [
            ("[mcp_servers.a]\r\ncommand = 'x' # yes\r\n", true),
            ("mcp_servers = { a = { command = 'x' } }", false),
            ("[mcp_servers]\na = { command = 'x' }", false),
            ("[mcp_servers]\na.command = 'x'", true),
            ("mcp_servers.a.command = 'x'", true),
            ("[mcp_servers.\"a\"]\n  \"command\" = 'x'", true),
        ] {
            let servers = servers(text).unwrap();
            let command = servers[0].member("command").unwrap();
            assert_eq!((&text[command.value.clone()], servers[0].in_lines), ("'x'", in_lines), "{text}");
            assert!(text[command.key.clone()].contains("command"), "{text}");
            assert_eq!(servers[0].name, "a");
        }
        let text = "[mcp_servers.a]\nurl = 'u'\n[mcp_servers.a.http_headers]\nA = 'b'\n";
        let headers = servers(text).unwrap()[0].member("http_headers").unwrap().clone();
        assert_eq!((&text[headers.key.clone()], headers.is_whole), ("http_headers", false));
        assert_eq!(&text[headers.members()[0].key.clone()], "A");
    }

    #[test]
    fn a_name_before_dots_is_found_before_each_of_its_members() {
        for (text, expected) in [
            ("[mcp_servers.a]\nh.A = 'x'\nurl = 'u'\nh.B = 'y'", &["h", "h"][..]),
            ("[mcp_servers.a]\n'h' .\tA = 'x'\n\"h\". B = 'y'\nh.C = ''", &["'h'", "\"h\"", "h"]),
            ("mcp_servers.a.h.A = 'x'\nmcp_servers.a.h.B = 'y'", &["h", "h"]),
            ("[mcp_servers]\na = { h.A = 'x', h.B = 'y' }", &["h", "h"]),
            ("[mcp_servers.a]\n\"\\u0068\".A = 'x'\nh.B = 'y'", &[]),
            ("[mcp_servers.a]\nh = { A = 'x' }", &[]),
            ("[mcp_servers.a.h]\nA = 'x'\nB = 'y'", &[]),
        ] {
            let places = servers(text).unwrap()[0].member("h").unwrap().dotted.clone();
            let names: Vec<_> = places.into_iter().map(|place| &text[place]).collect();
            assert_eq!(names, expected, "{text}");
        }
    }
}
