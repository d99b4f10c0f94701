//! Places of an entry: given a value, taken out.

use super::{
    Value,
    error::Result,
    order::{self, Gone},
    parts::parts,
    pointer::Pointer,
    rename, same,
    sheet::Sheet,
};
use crate::wire::scan;

impl Value {
    /// The value as the file has it. In a payload a text of several lines stands one a line.
    fn json(&self, is_payload: bool) -> Vec<u8> {
        let mut json = Vec::new();
        match self {
            Self::Json(given) => json.extend_from_slice(scan::trim(given).of(given)),
            Self::Text(text) if is_payload => return text_of_lines(text),
            Self::Text(text) => scan::push_string(text, &mut json),
        }
        json
    }
}

/// A string of a payload: where it has several lines, one below the other.
pub(super) fn text_of_lines(text: &str) -> Vec<u8> {
    let mut json = Vec::new();
    if !text.contains('\n') {
        scan::push_string(text, &mut json);
        return json;
    }
    json.extend_from_slice(b"{\"$lines\":[");
    for (n, line) in text.split('\n').enumerate() {
        if n > 0 {
            json.push(b',');
        }
        scan::push_string(line, &mut json);
    }
    json.extend_from_slice(b"]}");
    json
}

pub(super) fn set(sheet: &mut Sheet<'_>, exchange: usize, pointer: &Pointer, value: &Value) -> Result<()> {
    let text = sheet.text();
    let trail = pointer.trail(text, sheet.entry(exchange));
    let here = trail[trail.len() - 1];
    let value = value.json(is_payload(&pointer.steps));
    let nothing = || pointer.nothing(sheet.cassette, exchange, &trail);
    let change = match pointer.steps.len() + 1 - trail.len() {
        0 => (here, sheet.laid_out(&value, here.start)),
        1 => {
            let parts = parts(text, here).ok_or_else(nothing)?;
            let (last, count) = (&pointer.steps[pointer.steps.len() - 1], parts.list.len());
            let beside = parts.list.last().map_or(here.start, |part| part.whole().start);
            let value = sheet.laid_out(&value, beside);
            match parts.is_object {
                true => parts.add_member(text, count, last, &value),
                false if last == "-" || *last == count.to_string() => parts.add(text, count, &value),
                false => return Err(nothing()),
            }
        }
        _ => return Err(nothing()),
    };
    sheet.change(exchange, change);
    if pointer.steps == ["key"] {
        rename::rename(sheet, exchange, &value);
    }
    same::keep_others(sheet, exchange, false);
    order::keep(sheet, exchange, Gone::Nothing);
    Ok(())
}

pub(super) fn remove(sheet: &mut Sheet<'_>, exchange: usize, pointer: &Pointer) -> Result<()> {
    let text = sheet.text();
    let trail = pointer.trail(text, sheet.entry(exchange));
    let (depth, last) = (pointer.steps.len(), &pointer.steps[pointer.steps.len() - 1]);
    let found = trail.get(depth).and_then(|_| parts(text, trail[depth - 1]));
    let Some((parts, at)) = found.and_then(|parts| parts.find(text, last).map(|at| (parts, at))) else {
        return Err(pointer.nothing(sheet.cassette, exchange, &trail));
    };
    sheet.change(exchange, parts.take(at));
    same::keep_others(sheet, exchange, false);
    let is_item = depth == 2 && pointer.steps[0] == "server";
    order::keep(sheet, exchange, if is_item { Gone::Item(at) } else { Gone::Nothing });
    Ok(())
}

/// Whether markers are read at a place.
fn is_payload(steps: &[String]) -> bool {
    let is_message = |step: &String| step == "client" || step == "server";
    let holds = |step: &String| ["params", "result", "error"].iter().any(|name| step == name);
    steps.first().is_some_and(is_message) && steps.iter().skip(1).take(4).any(holds)
}
