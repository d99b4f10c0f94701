//! Variables of the environment as PowerShell names them, `$env:API_KEY = "x"`, `${env:API_KEY}="x"`, and as Windows sets
//! them: `setx API_KEY x`.

use super::quotes::{Word, word};
use super::{
    Assigned, backslashes_before_quote, before_word, behind_quotes, ends_setting, refers, run,
    settings::is_mixed, worth, worth_itself,
};
use crate::redact::names::SecretName;
use crate::wire::Span;

/// What stands in no quotes is shorter: it may be made of such names, each of which is looked at.
const LONGEST_BARE: usize = 1024;

/// What is assigned to the variable of this name; the outer none where it is no such variable.
pub(super) fn variable(text: &[u8], name: Span, row: &'static SecretName) -> Option<Option<Assigned>> {
    let before = &text[..name.start];
    let ends_in = |word: &[u8]| before_word(before, word).is_some();
    if ends_in(b"setx ") && matches!(text.get(name.end), Some(b' ')) {
        let start = name.end + run(text, name.end, |byte| byte == b' ');
        let Word { value, .. } = word(text, start, |at| ends_setting(text[at]));
        let value = worth_itself(text, value).filter(|_| !refers(text, start));
        return Some(value.map(|value| Assigned::Secret(row, value)));
    }
    let is_braced = ends_in(b"${env:");
    if !is_braced && !ends_in(b"$env:") {
        return None;
    }
    let blanks = |at: usize| at + run(text, at, |byte| matches!(byte, b' ' | b'\t'));
    let closes = text.get(name.end) == Some(&b'}');
    let sign = blanks(name.end + usize::from(is_braced && closes));
    if text.get(sign) != Some(&b'=') || text.get(sign + 1) == Some(&b'=') || is_braced != closes {
        return Some(None);
    }
    let start = blanks(sign + 1);
    let slashes = backslashes_before_quote(text, start);
    let value = match text.get(start + slashes) {
        Some(&quote @ (b'"' | b'\'')) => {
            let inside = start + slashes + 1;
            worth(text, Span::new(inside, behind_quotes(text, inside, quote, slashes)))
        }
        Some(b'\\') => return Some(Some(Assigned::Look)),
        // What stands in no quotes is a command, where it is right.
        _ => {
            let text = &text[..text.len().min(start + LONGEST_BARE)];
            worth(text, Span::new(start, start + run(text, start, |byte| !ends_setting(byte))))
                .filter(|value| is_mixed(value.of(text)))
        }
    };
    let value = value.filter(|value| !refers(text, value.start));
    Some(value.map(|value| Assigned::Secret(row, value)))
}
