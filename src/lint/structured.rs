//! `structuredContent` of a tool's result against the `outputSchema` that the server gave for it.

use std::collections::{BTreeSet, HashMap};

use super::{
    Fault,
    dialogue::{Dialogue, short, tools},
    schema,
};
use crate::wire::{jsonrpc::Kind, scan};

pub(super) fn fits(dialogue: &Dialogue<'_>, faults: &mut Vec<Fault>) {
    let mut schemas: HashMap<String, Option<&[u8]>> = HashMap::new();
    let mut noted = BTreeSet::new();
    for seen in dialogue.seen.iter().filter(|seen| seen.message.kind == Kind::Result) {
        let Some(request) = seen.asked.map(|asked| &dialogue.seen[asked]).filter(|asked| asked.from_client)
        else {
            continue;
        };
        match &*request.message.method() {
            "tools/list" => {
                schemas.extend(tools(&seen.message).filter_map(|(name, schema)| Some((name?, schema))));
                continue;
            }
            "tools/call" => {}
            _ => continue,
        }
        let name = request.message.name().unwrap_or_default();
        let Some(Some(schema)) = schemas.get(&*name) else { continue };
        let result = seen.message.outcome().unwrap_or_default();
        let value = |name| scan::member(result, 0, name).map(|span| span.of(result));
        // Errors, tasks and questions have another form.
        let is_other = value("isError") == Some(b"true")
            || value("resultType").is_some_and(|kind| kind != b"\"complete\"")
            || value("task").is_some()
            || request.message.param("/task").is_some();
        if is_other {
            continue;
        }
        let Some(content) = value("structuredContent") else {
            let text = format!(
                "the tool `{}` has an `outputSchema`, so its result needs `structuredContent` that fits it",
                short(&name)
            );
            faults.push(dialogue.fault(seen, "/result", text));
            continue;
        };
        let mut passed_over = BTreeSet::new();
        let wrong = schema::first_fault(schema, content, &mut passed_over);
        if !passed_over.is_empty() && noted.insert(name.clone()) {
            let words: Vec<_> = passed_over.iter().map(|word| format!("`{}`", short(word))).collect();
            let text = format!(
                "the `outputSchema` of `{}` has {}, by which nothing is judged here",
                short(&name),
                words.join(", ")
            );
            faults.push(Fault { is_note: true, ..dialogue.fault(seen, "/result/structuredContent", text) });
        }
        if let Some(wrong) = wrong {
            let pointer = format!("/result/structuredContent{}", wrong.pointer);
            let text = format!("`structuredContent` does not fit the tool's `outputSchema`: {}", wrong.text);
            faults.push(dialogue.fault(seen, &pointer, text));
        }
    }
}
