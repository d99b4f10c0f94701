//! A key that is changed where it stands is changed where it is named: in `after`, `same_as`, and rules.

use super::{order, same, sheet::Sheet};
use crate::wire::{jsonrpc, scan};

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
    for rule in &cassette.rules {
        let named = scan::pointer(text, rule.place.span(), "/when/key");
        if let Some(place) = named.filter(|place| sheet.says(*place, key)) {
            sheet.change_around((place, name.to_vec()));
        }
    }
}
