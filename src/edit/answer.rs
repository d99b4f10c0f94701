//! What an exchange is answered, when, and what goes wrong with it.

use super::{
    error::{EditError, Result},
    exchange::asks,
    order::{self, Gone},
    parts::Part,
    same,
    set::text_of_lines,
    sheet::Sheet,
};
use crate::{
    cassette::{blob::BlobSource, model::Form},
    wire::{jsonrpc::Message, results, scan},
};

/// An answer to be given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Response {
    /// This result, JSON.
    Result(Vec<u8>),
    /// This error, JSON.
    Error(Vec<u8>),
    /// A JSON-RPC error with this code and message.
    Failed {
        /// Its code.
        code: i64,
        /// Its message.
        message: String,
    },
    /// The result of a tool that failed, with this text.
    ToolError(String),
}

/// A fault of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// `timeout`: no answer comes.
    Timeout,
    /// `drop`: the answer is lost.
    Drop,
    /// `status`: HTTP answers with this status instead.
    Status(u16),
    /// `cut_after`: the stream ends behind so many events.
    CutAfter(u32),
    /// `exit`: the server ends with this status.
    Exit(u8),
}

impl Fault {
    fn json(self) -> String {
        match self {
            Self::Timeout => "\"timeout\"".to_owned(),
            Self::Drop => "\"drop\"".to_owned(),
            Self::Status(status) => format!("{{\"do\": \"status\", \"status\": {status}}}"),
            Self::CutAfter(events) => format!("{{\"do\": \"cut_after\", \"events\": {events}}}"),
            Self::Exit(status) => format!("{{\"do\": \"exit\", \"status\": {status}}}"),
        }
    }
}

pub(super) fn answer(
    sheet: &mut Sheet<'_>,
    blobs: &dyn BlobSource,
    exchange: usize,
    response: &Response,
) -> Result<()> {
    let text = sheet.text();
    let mut line = Vec::new();
    if !asks(sheet.cassette, blobs, exchange, &mut line)? {
        let reason =
            "is no request of the client, so there is nothing to answer; `set` changes what it holds";
        return Err(unfit(sheet, exchange, reason));
    }
    let request = Message::read(&line);
    let (name, value) = match response {
        Response::Result(result) => ("result", result.clone()),
        Response::Error(error) => ("error", error.clone()),
        Response::Failed { code, message } => {
            let mut error = format!("{{\"code\": {code}, \"message\": ").into_bytes();
            error.extend_from_slice(&text_of_lines(message));
            error.push(b'}');
            ("error", error)
        }
        Response::ToolError(_) if request.method() != "tools/call" => {
            let reason = "calls no tool, so it has no tool error; `fail --error` gives it another one";
            return Err(unfit(sheet, exchange, reason));
        }
        Response::ToolError(shown) => {
            ("result", results::tool_error(&text_of_lines(shown), request.is_modern(), " "))
        }
    };
    match answer_item(sheet, blobs, exchange)? {
        Some(item) => {
            let parts = sheet.object(item.value);
            let at = HOLDING.iter().find_map(|name| parts.find(text, name)).unwrap_or_default();
            let whole = parts.list[at].whole();
            let mut member = format!("\"{name}\": ").into_bytes();
            member.extend_from_slice(&sheet.laid_out(&value, whole.start));
            sheet.change(exchange, (whole, member));
        }
        None if sheet.exchange(exchange).server.iter().any(|item| item.message.form == Form::Body) => {
            let reason = "was answered by HTTP alone, with a body that is no message; remove that first, and its `http`";
            return Err(unfit(sheet, exchange, reason));
        }
        None => {
            let item = [format!("{{\"{name}\": ").as_bytes(), &value, b"}"].concat();
            let members = sheet.members(exchange);
            let change = match sheet.items(exchange) {
                Some(items) => items.add(text, items.list.len(), &item),
                None => {
                    members.add_member(text, members.list.len(), "server", &[b"[", &item[..], b"]"].concat())
                }
            };
            sheet.change(exchange, change);
            if let Some(at) = members.find(text, "unanswered") {
                sheet.change(exchange, members.take(at));
            }
        }
    }
    same::keep_others(sheet, exchange, false);
    order::keep(sheet, exchange, Gone::Nothing);
    Ok(())
}

pub(super) fn fault(sheet: &mut Sheet<'_>, exchange: usize, fault: &Fault) {
    put(sheet, exchange, "fault", fault.json().as_bytes());
}

pub(super) fn note(sheet: &mut Sheet<'_>, exchange: usize, text: &str) {
    let mut note = Vec::new();
    scan::push_string(text, &mut note);
    put(sheet, exchange, "note", &note);
}

pub(super) fn delay(sheet: &mut Sheet<'_>, blobs: &dyn BlobSource, exchange: usize, ms: u32) -> Result<()> {
    let text = sheet.text();
    let Some(item) = answer_item(sheet, blobs, exchange)? else {
        let reason =
            "has no answer that could be late; `set KEY /server/0/after_ms MS` delays another message";
        return Err(unfit(sheet, exchange, reason));
    };
    let parts = sheet.object(item.value);
    match (parts.find(text, "after_ms"), ms) {
        (Some(at), 0) => sheet.change(exchange, parts.take(at)),
        (None, 0) => {}
        (_, ms) => sheet.change(exchange, parts.put(text, 0, "after_ms", ms.to_string().as_bytes())),
    }
    Ok(())
}

/// Gives a member of the entry a value; a new one stands behind the key.
fn put(sheet: &mut Sheet<'_>, exchange: usize, name: &str, value: &[u8]) {
    let (text, members) = (sheet.text(), sheet.members(exchange));
    let behind_key = members.find(text, "key").map_or(0, |at| at + 1);
    sheet.change(exchange, members.put(text, behind_key, name, value));
}

/// The members of an item that may hold a response.
const HOLDING: [&str; 6] = ["result", "error", "same_as", "raw", "base64", "omitted"];

/// The item that answers an exchange's request: a response, or one in another form where there is none.
fn answer_item(sheet: &Sheet<'_>, blobs: &dyn BlobSource, exchange: usize) -> Result<Option<Part>> {
    let (cassette, entry) = (sheet.cassette, sheet.exchange(exchange));
    let mut found = None;
    for (n, item) in entry.server.iter().enumerate().filter(|(_, item)| !entry.is_aside(item)) {
        let is_response = match item.message.form {
            Form::Result | Form::Error => {
                found = Some(n);
                break;
            }
            Form::Raw | Form::Base64 => {
                let mut line = Vec::new();
                cassette.wire(entry.session, false, &item.message, None, blobs, &mut line)?;
                Message::read(&line).kind.is_response()
            }
            Form::Omitted => {
                scan::member(sheet.text(), item.message.place.start as usize, "method").is_none()
            }
            _ => false,
        };
        found = found.or(is_response.then_some(n));
    }
    Ok(found.zip(sheet.items(exchange)).map(|(n, items)| items.list[n]))
}

fn unfit(sheet: &Sheet<'_>, exchange: usize, reason: &'static str) -> EditError {
    EditError::Unfit { key: sheet.exchange(exchange).key.to_string(), reason }
}
