//! A key that is changed where it stands is changed where it is named: in `after`, `same_as`, and rules.

use super::{order, same, sheet::Sheet};
use crate::{
    fault::Plans,
    wire::{Span, jsonrpc, scan},
};

pub(super) fn rename(sheet: &mut Sheet<'_>, exchange: usize, name: &[u8]) {
    if name.first() != Some(&b'"') {
        return;
    }
    let (text, cassette) = (sheet.text(), sheet.cassette);
    let key = &sheet.exchange(exchange).key;
    let new = jsonrpc::text(name);
    for (other, after, at) in order::references(cassette) {
        if at.exchange as usize != exchange {
            continue;
        }
        let object = order::object(sheet, other, after);
        let Some(place) = sheet.object(object).value(text, "after") else { continue };
        let old = jsonrpc::text(place.of(text));
        let mut reference = Vec::new();
        let rest = old.strip_prefix(&**key).unwrap_or_default();
        scan::push_string(&format!("{new}{rest}"), &mut reference);
        sheet.change(other, (place, reference));
    }
    same::rename(sheet, exchange, name);
    // Faults that cannot be read name nothing, and the edit is refused because of them.
    let plans = cassette.faults.and_then(|place| Plans::in_cassette(text, place.span()).ok());
    let of_faults = plans.iter().flat_map(Plans::places).map(|at| Span::new(at, text.len()));
    for rule in cassette.rules.iter().map(|rule| rule.place.span()).chain(of_faults) {
        let named = scan::pointer(text, rule, "/when/key");
        if let Some(place) = named.filter(|place| sheet.says(*place, key)) {
            sheet.change_around((place, name.to_vec()));
        }
    }
}
