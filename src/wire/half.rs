//! What there is of an answer that breaks off.

use super::{
    Span,
    jsonrpc::{Kind, Message},
    scan,
};

/// The place of the id in an answer, or in what there is of one.
pub fn answered_id(bytes: &[u8]) -> Option<Span> {
    let message = Message::read(bytes);
    let id = match message.kind {
        Kind::Result | Kind::Error => message.id_span(),
        Kind::Noise => half_answer(bytes),
        Kind::Request | Kind::Notification | Kind::Batch => None,
    };
    id.filter(|id| id.of(bytes) != b"null")
}

/// The place of the id in an answer that breaks off behind it.
pub fn half_answer(bytes: &[u8]) -> Option<Span> {
    let (mut id, mut end) = (None, scan::trim(bytes).start);
    for member in scan::members(bytes, end) {
        let Ok(member) = member else {
            let rest = bytes[end..].trim_ascii_start().strip_prefix(b",").unwrap_or_default();
            return id.filter(|_| !rest.trim_ascii_start().starts_with(b"\"method\""));
        };
        end = member.value.end;
        match &*scan::unescape(member.name.of(bytes)) {
            b"method" => return None,
            // What a number ends with is not known where nothing stands behind it.
            b"id" if end < bytes.len() || member.value.of(bytes).ends_with(b"\"") => id = Some(member.value),
            _ => {}
        }
    }
    // It does not break off.
    None
}
