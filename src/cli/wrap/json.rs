//! Where servers stand in JSON, with or without comments and trailing commas.

use std::{env, ops::Range, path::Path};

use jsonc_parser::{
    CollectOptions, ParseOptions,
    ast::{Object, ObjectProp, Value},
    common::Ranged,
    parse_to_ast,
};
use mcp_tapedeck::cassette::model::line_column;

use super::sheet::{Holds, Member, Server};

/// The objects that can hold the map of servers, from the outside to the inside.
const MAPS: [&[&str]; 3] = [&["mcpServers"], &["servers"], &["mcp", "servers"]];

pub(super) fn servers(text: &str) -> Result<Vec<Server>, String> {
    let read = parse_to_ast(text, &CollectOptions::default(), &ParseOptions::default());
    let read = read.map_err(|error| {
        let (line, column) = line_column(text.as_bytes(), error.range().start);
        format!("{line}:{column}: {}", error.kind())
    })?;
    let Some(root) = read.value.as_ref().and_then(Value::as_object) else {
        return Err("1:1: it is no JSON object".to_owned());
    };
    let inside = |path: &[&str]| -> Result<Option<&Object<'_>>, String> {
        let mut object = Some(root);
        for name in path {
            object = object.map(|object| only(text, object, name)).transpose()?.flatten();
        }
        Ok(object)
    };
    let mut servers = Vec::new();
    let mut add = |map: String, object: &Object<'_>, is_here: bool| {
        servers.extend(object.properties.iter().map(|entry| server(&map, entry, is_here)));
    };
    for path in MAPS {
        if let Some(object) = inside(path)? {
            add(path.join("/"), object, true);
        }
    }
    // One file of Claude Code has maps by project, which is the working folder.
    let here = env::current_dir().unwrap_or_default();
    for project in inside(&["projects"])?.into_iter().flat_map(|projects| &projects.properties) {
        let object = project.value.as_object().map(|project| only(text, project, "mcpServers"));
        if let Some(object) = object.transpose()?.flatten() {
            let folder = project.name.as_str();
            add(format!("projects/{folder}"), object, Path::new(folder) == here);
        }
    }
    Ok(servers)
}

/// The object of this name. Of two, clients take the last or neither.
fn only<'a, 'b>(text: &str, object: &'a Object<'b>, name: &str) -> Result<Option<&'a Object<'b>>, String> {
    let mut found = object.properties.iter().filter(|member| member.name.as_str() == name);
    let first = found.next();
    if let Some(second) = found.next() {
        let (line, column) = line_column(text.as_bytes(), range(&second.name).start);
        return Err(format!("{line}:{column}: `{name}` stands there a second time; make one of the two"));
    }
    Ok(first.and_then(|member| member.value.as_object()))
}

fn server(map: &str, entry: &ObjectProp<'_>, is_here: bool) -> Server {
    let members = entry.value.as_object().map(|object| members(object, true));
    Server { map: map.to_owned(), name: entry.name.as_str().to_owned(), is_here, members, in_lines: false }
}

/// An object's members, and where asked for what those hold that are objects.
fn members(object: &Object<'_>, and_theirs: bool) -> Vec<Member> {
    let member = |member: &ObjectProp<'_>| {
        let text = |value: &Value<'_>| value.as_string_lit().map(|text| text.value.clone().into_owned());
        let holds = match &member.value {
            Value::Array(array) => {
                Holds::List(array.elements.iter().map(|value| (range(value), text(value))).collect())
            }
            Value::Object(object) if and_theirs => Holds::Members(members(object, false)),
            value => text(value).map_or(Holds::Other, Holds::Text),
        };
        Member {
            name: member.name.as_str().to_owned(),
            key: range(&member.name),
            dotted: Vec::new(),
            value: range(&member.value),
            holds,
            is_whole: true,
        }
    };
    object.properties.iter().map(member).collect()
}

fn range(node: &impl Ranged) -> Range<usize> {
    node.range().start..node.range().end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_map_of_servers_is_found() {
        for text in [
            r#"{"mcpServers": {"a": {"command": "x"}}}"#,
            r#"{"servers": {"a": {"command": "x"}}}"#,
            r#"{"mcp": {"servers": {"a": {"command": "x"}}}}"#,
        ] {
            let servers = servers(text).unwrap();
            assert_eq!(&text[servers[0].member("command").unwrap().value.clone()], "\"x\"");
        }
    }

    #[test]
    fn a_map_of_servers_that_stands_twice_is_told_with_its_place() {
        for text in [
            "{\"mcpServers\": {},\n \"mcpServers\": {}}",
            "{\"mcpServers\": {},\n \"mcpServers\": 1}",
            "{\"mcp\": {\"servers\": {},\n \"servers\": {}}}",
            "{\"projects\": {\"/p\": {\"mcpServers\": {},\n \"mcpServers\": {}}}}",
        ] {
            let error = servers(text).unwrap_err();
            assert!(error.starts_with("2:2: `") && error.contains("a second time"), "{error}");
        }
        assert_eq!(servers(r#"{"x": 1, "x": 2, "mcpServers": {}}"#), Ok(Vec::new()));
    }

    #[test]
    fn what_is_no_json_is_told_with_its_place() {
        let error = servers("{\n  \"a\": [1,\n}").unwrap_err();
        assert!(error.starts_with("3:1: ") || error.starts_with("2:"), "{error}");
        assert!(servers("[]").unwrap_err().contains("no JSON object"));
        assert!(servers("").unwrap_err().contains("no JSON object"));
        assert_eq!(servers(r#"{"mcpServers": []}"#), Ok(Vec::new()));
    }
}
