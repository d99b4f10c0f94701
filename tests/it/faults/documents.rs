//! What is written of faults: the list of them, the schema, and the scenarios to start from.

use std::{fs, path::Path};

use mcp_tapedeck::fault::{
    Plan, Plans, Scope,
    catalogue::{Acts, TABLE, Where},
};

fn read(file: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).expect("it is there")
}

#[test]
fn the_formats_page_lists_each_fault_as_the_table_has_it() {
    let page = read("cassettes/README.md");
    let listed =
        page.split_once("| fault | acts | exists | does |\n|---|---|---|---|\n").expect("the list").1;
    let listed = listed.split("\n\n").next().expect("its lines").trim_end();
    let lines: Vec<String> = TABLE
        .iter()
        .map(|kind| {
            let acts = match kind.acts {
                Acts::Beside => "beside",
                Acts::Answer => "answer",
                Acts::Instead => "instead",
            };
            let exists = match kind.exists {
                Where::Everywhere => "everywhere",
                Where::Http => "HTTP",
                Where::Stdio => "stdio",
                Where::Legacy => "before 2026-07-28",
                Where::Modern => "since 2026-07-28",
            };
            format!("| `{}` | {acts} | {exists} | {} |", kind.name, kind.about)
        })
        .collect();
    assert_eq!(listed, lines.join("\n"));
}

#[test]
fn the_schema_names_each_fault() {
    let schema: serde_json::Value = serde_json::from_str(&read("src/cli/schema/faults.json")).expect("JSON");
    let names = schema["$defs"]["name"]["enum"].as_array().expect("names");
    let names: Vec<&str> = names.iter().filter_map(serde_json::Value::as_str).collect();
    assert_eq!(names, TABLE.iter().map(|kind| kind.name).collect::<Vec<_>>());
}

#[test]
fn each_scenario_to_start_from_can_act() {
    let text = read("cassettes/plans/faults.json");
    let names: Vec<String> =
        Plans::read(text.as_bytes()).expect("a plan").scenarios().map(str::to_owned).collect();
    assert!(names.len() > 5);
    for name in names {
        let mut plan = Plan::default();
        let plans = Plans::read(text.as_bytes()).expect("a plan");
        assert_eq!(plan.add(plans, Some(&name), true), Ok(true));
        let scope = Scope { is_http: true, is_legacy: true, is_modern: false };
        assert_eq!(plan.check(scope), Ok(()), "{name}");
        assert!(!plan.is_empty());
    }
}
