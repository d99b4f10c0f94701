//! Answers that several exchanges share by `same_as`.

use super::{
    order,
    parts::{Part, parts},
    pointer::Pointer,
    sheet::Sheet,
};
use crate::{
    cassette::model::Form,
    wire::{Span, scan},
};

/// The first answer of an entry: in which item, and the member that holds it.
struct FirstAnswer<'a> {
    item: usize,
    name: &'static str,
    value: &'a [u8],
}

fn first_answer(text: &[u8], entry: Span) -> Option<FirstAnswer<'_>> {
    let items = parts(text, parts(text, entry)?.value(text, "server")?)?;
    let in_item = |(item, part): (usize, &Part)| {
        let members = parts(text, part.value)?;
        ["result", "error", "same_as"].into_iter().find_map(|name| {
            members.value(text, name).map(|value| FirstAnswer { item, name, value: value.of(text) })
        })
    };
    items.list.iter().enumerate().find_map(in_item)
}

/// After the changes of an exchange whose answer others have too: they keep the answer they had. The first of them
/// takes over its text, and the others name that one.
pub(super) fn keep_others(sheet: &mut Sheet<'_>, exchange: usize, is_removed: bool) {
    let text = sheet.text();
    let Some(old) = first_answer(text, sheet.entry(exchange)) else { return };
    let draft = if is_removed { Vec::new() } else { sheet.draft(exchange) };
    let new = first_answer(&draft, Span::new(0, draft.len()));
    if new.is_some_and(|new| (new.name, new.value) == (old.name, old.value)) {
        return;
    }
    let key = &sheet.exchange(exchange).key;
    // What the next one is given: the answer itself, or the name of one that has it.
    let (mut name, mut value) = (old.name, old.value.to_vec());
    for other in exchange + 1..sheet.cassette.exchanges.len() {
        if memchr::memmem::find(sheet.entry(other).of(text), b"same_as").is_none() {
            continue;
        }
        let Some(items) = sheet.items(other) else { continue };
        for (n, item) in items.list.iter().enumerate() {
            let members = sheet.object(item.value);
            let Some(at) = members.find(text, "same_as") else { continue };
            if !sheet.says(members.list[at].value, key) {
                continue;
            }
            let whole = members.list[at].whole();
            let laid_out = sheet.laid_out(&value, whole.start);
            sheet.change(other, (whole, [format!("\"{name}\": ").as_bytes(), &laid_out].concat()));
            let other_key = &sheet.exchange(other).key;
            sheet.told.push(format!("`{other_key}` had the same answer as `{key}` and keeps it"));
            // Only an exchange's first answer can be named.
            let is_first = first_answer(text, sheet.entry(other)).is_some_and(|first| first.item == n);
            if name != "same_as" && is_first {
                (name, value) = ("same_as", Vec::new());
                scan::push_string(other_key, &mut value);
            }
        }
    }
}

/// Where a pointer leads into an answer that is written as `same_as`: writes that answer out. False where it does
/// not.
pub(super) fn own_answer(sheet: &mut Sheet<'_>, exchange: usize, pointer: &Pointer) -> bool {
    let text = sheet.text();
    let [server, item, form, ..] = &pointer.steps[..] else { return false };
    let Some(items) = sheet.items(exchange).filter(|_| server == "server") else { return false };
    let Some(n) = items.find(text, item) else { return false };
    let members = sheet.object(items.list[n].value);
    let Some(at) = members.find(text, "same_as") else { return false };
    let message = &sheet.exchange(exchange).server[n].message;
    let name = message.form.word();
    if form != name || !matches!(message.form, Form::Result | Form::Error) {
        return false;
    }
    let whole = members.list[at].whole();
    let own = sheet.laid_out(message.place.span().of(text), whole.start);
    sheet.change(exchange, (whole, [format!("\"{name}\": ").as_bytes(), &own].concat()));
    keep_others(sheet, exchange, false);
    true
}

/// Gives the exchange that others name another name there.
pub(super) fn rename(sheet: &mut Sheet<'_>, exchange: usize, name: &[u8]) {
    let (text, key) = (sheet.text(), &sheet.exchange(exchange).key);
    for other in exchange + 1..sheet.cassette.exchanges.len() {
        for object in order::objects(sheet, other) {
            let same = sheet.object(object).value(text, "same_as").filter(|same| sheet.says(*same, key));
            if let Some(same) = same {
                sheet.change(other, (same, name.to_vec()));
            }
        }
    }
}
