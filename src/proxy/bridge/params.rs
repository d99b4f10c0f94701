//! Arguments that are repeated in headers: a tool's schema says which (`x-mcp-header`, revision 2026-07-28,
//! basic/transports/streamable-http), and a client knows it from the last list of tools.

use std::collections::HashMap;

use hyper::header::HeaderName;

use crate::wire::{
    Span,
    jsonrpc::{Message, text},
    scan,
};

/// How deep in a schema annotations are looked for.
const DEEPEST: usize = 32;
/// How many are kept. No server has so many in good faith.
const MOST: usize = 10_000;

/// The annotated arguments of all tools.
#[derive(Debug, Default)]
pub(super) struct Tools {
    tools: HashMap<String, Vec<Mirrored>>,
    count: usize,
}

/// An argument and its header.
#[derive(Debug, PartialEq, Eq)]
struct Mirrored {
    header: HeaderName,
    /// Names of members, from the arguments inwards.
    path: Vec<String>,
}

impl Tools {
    /// Takes in an answer to `tools/list`; where it is the first page, what was known before is forgotten.
    pub(super) fn learn(&mut self, answer: &Message<'_>, is_first_page: bool) {
        if is_first_page {
            *self = Self::default();
        }
        let Some(result) = answer.outcome() else { return };
        let Some(tools) = scan::member(result, 0, "tools") else { return };
        for tool in scan::elements(result, tools.start).map_while(Result::ok) {
            let tool = tool.of(result);
            let string = |span: Span| (tool[span.start] == b'"').then(|| text(span.of(tool)).into_owned());
            let Some(name) = scan::member(tool, 0, "name").and_then(string) else { continue };
            let Some(schema) = scan::member(tool, 0, "inputSchema") else { continue };
            let mirrored = annotations(schema.of(tool), MOST.saturating_sub(self.count));
            self.count += mirrored.len();
            // Most tools have none.
            match mirrored.is_empty() {
                true => drop(self.tools.remove(&name)),
                false => drop(self.tools.insert(name, mirrored)),
            }
        }
    }

    /// The headers that repeat this call's arguments.
    pub(super) fn headers(&self, message: &Message<'_>) -> Vec<(HeaderName, String)> {
        if self.tools.is_empty() || message.method() != "tools/call" {
            return Vec::new();
        }
        let mirrored = message.name().and_then(|name| self.tools.get(name.as_ref()));
        let Some(arguments) = message.param("/arguments") else { return Vec::new() };
        let value = |mirrored: &Mirrored| {
            let mut raw = arguments;
            for name in &mirrored.path {
                raw = scan::member(raw, 0, name)?.of(raw);
            }
            let value = match raw.first()? {
                b'"' => text(raw).into_owned(),
                b't' | b'f' | b'-' | b'0'..=b'9' => String::from_utf8_lossy(raw).into_owned(),
                _ => return None,
            };
            Some((mirrored.header.clone(), value))
        };
        mirrored.into_iter().flatten().filter_map(value).collect()
    }
}

/// Annotated properties of a schema, at most so many; only those that `properties` lead to.
fn annotations(schema: &[u8], most: usize) -> Vec<Mirrored> {
    let mut found = Vec::new();
    let mut waiting = vec![(schema, Vec::new())];
    while let Some((schema, path)) = waiting.pop() {
        let Some(properties) = scan::member(schema, 0, "properties") else { continue };
        for property in scan::members(schema, properties.start).map_while(Result::ok) {
            let name = text(property.name.of(schema)).into_owned();
            let path: Vec<String> = path.iter().cloned().chain([name]).collect();
            let value = property.value.of(schema);
            if value.first() != Some(&b'{') {
                continue;
            }
            let token = scan::member(value, 0, "x-mcp-header").map(|token| text(token.of(value)));
            let header =
                token.and_then(|token| format!("mcp-param-{token}").to_ascii_lowercase().parse().ok());
            if let Some(header) = header
                && found.len() < most
            {
                found.push(Mirrored { header, path: path.clone() });
            }
            if path.len() < DEEPEST && waiting.len() < most {
                waiting.push((value, path));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[
        {"name":"plain","inputSchema":{"type":"object","properties":{"a":{"type":"string"}}}},
        {"name":"far","inputSchema":{"properties":{
            "region":{"type":"string","x-mcp-header":"Region"},
            "deep":{"properties":{"n":{"type":"integer","x-mcp-header":"Number"}}},
            "list":{"items":{"properties":{"x":{"x-mcp-header":"No"}}}},
            "odd":{"x-mcp-header":"a b"},
            "flag":{"x-mcp-header":"Flag"}}}}]}}"#;

    fn headers(tools: &Tools, name: &str, arguments: &str) -> Vec<String> {
        let call = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{name}","arguments":{arguments}}}}}"#
        );
        let mut headers: Vec<String> = tools
            .headers(&Message::read(call.as_bytes()))
            .into_iter()
            .map(|(name, value)| format!("{name}: {value}"))
            .collect();
        headers.sort();
        headers
    }

    #[test]
    fn annotated_arguments_are_repeated_where_they_are_given() {
        let mut tools = Tools::default();
        tools.learn(&Message::read(LIST.as_bytes()), true);
        assert_eq!(
            headers(&tools, "far", r#"{"region":"eu \"x\"","deep":{"n":12345678901234567890},"flag":false}"#),
            ["mcp-param-flag: false", "mcp-param-number: 12345678901234567890", "mcp-param-region: eu \"x\""]
        );
        assert!(headers(&tools, "far", r#"{"region":null,"deep":7,"flag":[]}"#).is_empty());
        assert!(headers(&tools, "plain", r#"{"a":"b"}"#).is_empty());
        // Another page adds, another list replaces.
        let page = r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}"#;
        tools.learn(&Message::read(page.as_bytes()), false);
        assert_eq!(headers(&tools, "far", r#"{"flag":true}"#).len(), 1);
        tools.learn(&Message::read(page.as_bytes()), true);
        assert!(headers(&tools, "far", r#"{"flag":true}"#).is_empty());
    }

    #[test]
    fn a_schema_without_end_is_looked_at_as_far_as_it_is_sane() {
        let deep = r#"{"properties":{"a":"#.repeat(5000) + "{}" + &"}}".repeat(5000);
        assert!(annotations(deep.as_bytes(), MOST).is_empty());
        let wide: String = (0..20_000).map(|n| format!(r#""p{n}":{{"x-mcp-header":"H"}},"#)).collect();
        let wide = format!(r#"{{"properties":{{{}}}}}"#, wide.trim_end_matches(','));
        assert_eq!(annotations(wide.as_bytes(), MOST).len(), MOST);
    }
}
