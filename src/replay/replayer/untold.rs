//! What a recorded response of HTTP said without a message, told where there is none: on stdio, and on the one stream of
//! HTTP+SSE.

use super::Replayer;
use crate::{
    cassette::model::{Form, StreamEnd, Unanswered},
    replay::{miss, script::answers},
    traffic::Lane,
    wire::jsonrpc::{self, Message},
};

impl Replayer {
    /// Whether an exchange was refused by a response of HTTP, and its error goes where several answers share a stream.
    /// Whatever id that error had, or none, the client knew what it answered; here it has to have the request's.
    pub(super) fn is_refusal(&self, exchange: u32, live: usize, lane: Lane) -> bool {
        let entry = &self.cassette.exchanges[exchange as usize];
        let session = &self.cassette.sessions[entry.session as usize];
        let is_shared = || self.pipes.has(lane) || (self.lives[live].sse.is_some() && !session.is_sse());
        let status = entry.http.as_deref().and_then(|http| http.status);
        status.is_some_and(|status| status >= 400) && session.is_http() && is_shared()
    }

    /// Tells the client of each request of an exchange that the recorded server left without an answer, in the error
    /// that a bridge tells of it. `batch` holds the recorded and the live ids of a batch.
    pub(super) fn tell_end(
        &mut self,
        lane: Lane,
        live_id: &[u8],
        batch: &[(Vec<u8>, Vec<u8>)],
        exchange: u32,
    ) {
        let entry = &self.cassette.exchanges[exchange as usize];
        let session = &self.cassette.sessions[entry.session as usize];
        // The stream of HTTP+SSE ends as the recorded one did.
        if !session.is_http() || (session.is_sse() && !self.pipes.has(lane)) {
            return;
        }
        let (is_sse, key) = (session.is_sse(), entry.key.to_string());
        let (http, mut body, mut answered) = (entry.http.as_deref(), Vec::new(), Vec::new());
        for (item, recorded) in (0..).zip(&entry.server) {
            if matches!(recorded.message.form, Form::Body | Form::Base64) {
                body.extend(self.recorded(exchange, item));
            } else if answers(&self.cassette, &*self.blobs, entry, recorded) {
                answered.push(self.recorded(exchange, item));
            }
        }
        let unanswered: Vec<&[u8]> = if batch.is_empty() {
            if answered.is_empty() { vec![live_id] } else { Vec::new() }
        } else {
            let ids: Vec<&[u8]> = answered.iter().flat_map(|bytes| ids(bytes)).collect();
            let left = batch.iter().filter(|(recorded, live)| {
                let is_answered =
                    || ids.contains(&&**recorded) || ids.iter().any(|id| jsonrpc::same_id(id, recorded));
                !live.is_empty() && !is_answered()
            });
            left.map(|(_, live)| &**live).collect()
        };
        if unanswered.is_empty() {
            return;
        }
        // That a message was taken in is no answer over HTTP+SSE.
        let status = http.and_then(|http| http.status).filter(|status| !is_sse || *status != 202);
        let text = match (status, http.and_then(|http| http.end)) {
            (Some(status), _) => {
                format!("the recorded server answered with HTTP status {status} and no message")
            }
            (None, Some(StreamEnd::Cut)) => "the recorded stream was cut before the answer".to_owned(),
            (None, Some(StreamEnd::Reset)) => "the recorded stream was reset before the answer".to_owned(),
            (None, None) => "the recorded server ended its response without an answer".to_owned(),
        };
        // None stands in the file where it was as usual; none was heard where the response never began.
        let began = !is_sse && entry.unanswered != Some(Unanswered::Lost);
        let status = status.or(began.then_some(200));
        let status = status.map_or_else(|| "null".to_owned(), |status| status.to_string());
        let data = miss::http_data(&status, &String::from_utf8_lossy(&body));
        let errors: Vec<Vec<u8>> = unanswered
            .into_iter()
            .map(|id| jsonrpc::error(id, jsonrpc::NO_ANSWER, &text, Some(&data)))
            .collect();
        self.warn(format!("`{key}`: {text}; the client was told so in error {}", jsonrpc::NO_ANSWER));
        for bytes in errors {
            self.deliver(lane, bytes, false, None, None);
        }
    }
}

/// The ids of the responses in a message.
fn ids(bytes: &[u8]) -> Vec<&[u8]> {
    let message = Message::read(bytes);
    let all = std::iter::once(message).chain(message.members());
    all.filter(|message| message.kind.is_response()).filter_map(|message| message.id()).collect()
}
