//! Cassettes that were recorded without redaction, where a replay redacts: what their clients said is looked at as live
//! requests are, so that equal requests are equal.

use std::{borrow::Cow, sync::Arc};

use base64::{Engine, engine::general_purpose::STANDARD};

use super::options::Options;
use crate::{
    cassette::{
        blob::BlobSource,
        model::{Cassette, Form, Http, Message, Place},
    },
    redact::{Met, Redactor, Rules},
    traffic::Direction::{self, ToClient, ToServer},
    wire::{Span, scan},
};

/// The cassette as a replay with these options compares it: where it says `"redacted": false` and they redact, what
/// its clients said has placeholders for secrets. What its servers said stays as it is, and is answered so. The options
/// know from then on which secrets the cassette shows, as does whoever records what is passed on.
pub fn seen_by(options: &mut Options, cassette: Arc<Cassette>, blobs: &dyn BlobSource) -> Arc<Cassette> {
    if cassette.redacted || !options.redact.is_on() {
        return cassette;
    }
    let shown = Met::default();
    let mut redactor = meet(&cassette, blobs, &options.redact, &shown);
    if let Some(met) = &options.met {
        shown.behind(0, |kind, value| met.tell(kind, value));
    }
    options.shown = Some(shown);
    let mut seen = Cassette::clone(&cassette);
    hide(&mut seen, blobs, &mut redactor);
    Arc::new(seen)
}

/// Tells the secrets that a cassette shows on either side by these rules; what has met them all.
pub fn meet(cassette: &Cassette, blobs: &dyn BlobSource, rules: &Rules, met: &Met) -> Redactor {
    // What it says of placeholders is its own.
    let mut redactor = Redactor::new(rules).behind(&cassette.text).telling(Some(met.clone()));
    for path in cassette.sessions.iter().filter_map(|session| session.path.as_deref()) {
        redactor.url(path);
    }
    for entry in &cassette.exchanges {
        let mut look = |message: &Message, direction| {
            seen(&mut redactor, cassette, blobs, entry.session, message, direction);
        };
        entry.client.iter().chain(entry.body.as_deref()).for_each(|message| look(message, ToServer));
        for item in &entry.server {
            look(&item.message, ToClient);
            item.answer.iter().for_each(|answer| look(&answer.message, ToServer));
        }
        let answers = entry.server.iter().filter_map(|item| item.answer.as_ref()?.http.as_deref());
        for http in entry.http.as_deref().into_iter().chain(answers) {
            hide_http(&mut redactor, &mut http.clone());
            for (name, value) in values(&http.headers) {
                redactor.header_value(name, &String::from_utf8_lossy(value));
            }
        }
    }
    redactor
}

/// Has the client's side of a cassette have placeholders for secrets. New lines stand behind the document: nobody reads
/// it again.
fn hide(cassette: &mut Cassette, blobs: &dyn BlobSource, redactor: &mut Redactor) {
    cassette.redacted = true;
    for session in &mut cassette.sessions {
        if let Some(path) = &mut session.path {
            *path = redactor.url(path).into_owned();
        }
    }
    let mut entries = std::mem::take(&mut cassette.exchanges);
    for entry in &mut entries {
        let http = entry.http.as_deref_mut();
        http.into_iter().for_each(|http| hide_http(redactor, http));
        let answers = entry.server.iter_mut().filter_map(|item| item.answer.as_deref_mut()).map(|answer| {
            answer.http.iter_mut().for_each(|http| hide_http(redactor, http));
            &mut answer.message
        });
        let messages: Vec<_> =
            entry.client.iter_mut().chain(entry.body.as_deref_mut()).chain(answers).collect();
        for message in messages {
            let redacted = seen(redactor, cassette, blobs, entry.session, message, ToServer);
            if let Some(redacted) = redacted
                && let Some((form, place)) = put(&mut cassette.text, message.form, &redacted)
            {
                (message.form, message.place) = (form, place);
            }
        }
    }
    cassette.exchanges = entries;
}

/// Path and headers of a client's request.
fn hide_http(redactor: &mut Redactor, http: &mut Http) {
    if let Some(path) = &mut http.path {
        *path = redactor.url(path).into();
    }
    for header in &mut http.request {
        for value in &mut header.values {
            let hidden = redactor.header_value(&header.name, &String::from_utf8_lossy(value)).into_owned();
            *value = hidden.into_bytes().into();
        }
    }
}

fn values(headers: &[crate::cassette::model::Header]) -> impl Iterator<Item = (&str, &[u8])> {
    headers.iter().flat_map(|header| header.values.iter().map(|value| (&*header.name, &**value)))
}

/// What a message is where it is not as it is written: none where it holds no secret, or is not kept.
fn seen(
    redactor: &mut Redactor,
    cassette: &Cassette,
    blobs: &dyn BlobSource,
    session: u32,
    message: &Message,
    direction: Direction,
) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    if message.form == Form::Omitted {
        return None;
    }
    cassette.wire(session, direction == ToServer, message, None, blobs, &mut line).ok()?;
    let hidden = match message.form {
        Form::Http => {
            let target = memchr::memchr(b' ', &line).map_or(line.len(), |blank| blank + 1);
            let hidden = redactor.url(std::str::from_utf8(&line[target..]).ok()?);
            Cow::Owned([&line[..target], hidden.as_bytes()].concat())
        }
        _ => redactor.message(direction, &line),
    };
    (*hidden != *line).then(|| hidden.into_owned())
}

/// Appends a line to a cassette's text, and says as what; none where places do not reach so far.
fn put(text: &mut Vec<u8>, form: Form, line: &[u8]) -> Option<(Form, Place)> {
    let (form, said) = match (form, std::str::from_utf8(line)) {
        (Form::Http | Form::Body, Ok(said)) => (form, Cow::Borrowed(said)),
        (_, Ok(said)) => (Form::Raw, Cow::Borrowed(said)),
        (_, Err(_)) => (Form::Base64, Cow::Owned(STANDARD.encode(line))),
    };
    let start = text.len();
    scan::push_string(&said, text);
    if u32::try_from(text.len()).is_err() {
        text.truncate(start);
        return None;
    }
    Some((form, Span::new(start, text.len()).into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        cassette::blob::NoBlobs,
        redact,
        replay::{Input, Output, Replayer},
        traffic::Lane,
    };

    /// A call of a tool, as a cassette has it.
    fn exchange(key: &str, arguments: &str, result: &str) -> String {
        format!(
            r#"{{"key": "{key}", "client": {{"request": {{"method": "tools/call", "params": {{"name": "t", "arguments": {arguments}}}}}}}, "server": [{{"result": {result}}}]}}"#
        )
    }

    fn options(redact: &[&str]) -> Options {
        let redact = redact.iter().map(|&rule| rule.to_owned()).collect();
        let rules = Rules::new(&redact::Options { redact, ..Default::default() }).unwrap();
        Options { redact: rules, ..Options::default() }
    }

    fn load(exchanges: &[String]) -> Cassette {
        let text =
            format!(r#"{{"cassette": 1, "redacted": false, "exchanges": [{}]}}"#, exchanges.join(", "));
        Cassette::load(text.into(), &NoBlobs).unwrap()
    }

    /// What calls with these arguments are answered, each by its `result`; none where it is a miss.
    fn answers(options: Options, exchanges: &[String], calls: &[&str]) -> Vec<Option<String>> {
        let mut replayer = Replayer::new(Arc::new(load(exchanges)), Arc::new(NoBlobs), "c", options).unwrap();
        let ask = |arguments: &&str| {
            let line = format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t","arguments":{arguments}}}}}"#
            );
            replayer.handle(0, Input::Message { lane: Lane(0), bytes: line.as_bytes() });
            let Some(Output::Send { bytes, .. }) = replayer.poll(0) else { panic!("no answer") };
            let answer = String::from_utf8(bytes).unwrap();
            let result = answer.strip_prefix(r#"{"jsonrpc":"2.0","id":1,"result":"#);
            result.map(|result| result.strip_suffix('}').unwrap().to_owned())
        };
        calls.iter().map(ask).collect()
    }

    #[test]
    fn an_equal_call_is_found_whatever_is_redacted_and_its_answer_is_clear() {
        let (password, city) = (r#"{"password":"Kd93mZq71Lp"}"#, r#"{"city":"here"}"#);
        let exchanges = [exchange("a", password, r#"{"password":"Kd93mZq71Lp"}"#), exchange("b", city, "{}")];
        let both = vec![Some(password.to_owned()), Some("{}".to_owned())];
        for redact in [&["off"][..], &[], &["/params/arguments/city"], &["he(re)"]] {
            assert_eq!(answers(options(redact), &exchanges, &[password, city]), both, "{redact:?}");
        }
        // What is secret may be another one; what is not, may not.
        let other = [r#"{"password":"another-1"}"#, r#"{"city":"there"}"#];
        assert_eq!(answers(options(&[]), &exchanges, &other), [Some(password.to_owned()), None]);
        assert_eq!(answers(options(&["off"]), &exchanges, &other), [None, None]);
    }

    #[test]
    fn what_only_an_answer_shows_as_a_secret_is_one_wherever_a_client_says_it() {
        let said = |value: &str| format!(r#"{{"say":"now {value}!"}}"#);
        let exchanges = [
            exchange("a", "{}", r#"{"token":"Kd93mZq71Lp"}"#),
            exchange("b", &said("Kd93mZq71Lp"), "1"),
            exchange("c", &said("<redacted:token-1>"), "2"),
        ];
        let calls = [said("Kd93mZq71Lp"), said("<redacted:token-1>")];
        let calls = calls.each_ref().map(|call| &**call);
        assert_eq!(answers(options(&[]), &exchanges, &calls), [Some("1".to_owned()), Some("2".to_owned())]);
        let met = Met::default();
        meet(&load(&exchanges), &NoBlobs, &Rules::default(), &met);
        let mut told = Vec::new();
        met.behind(0, |kind, value| told.push(format!("{kind} {}", String::from_utf8_lossy(value))));
        assert_eq!(told, ["token Kd93mZq71Lp"]);
        // Who is told what a client says hears of them too, and once.
        let mut options = Options { met: Some(Met::default()), ..options(&[]) };
        let seen = seen_by(&mut options, Arc::new(load(&exchanges)), &NoBlobs);
        seen_by(&mut options, seen, &NoBlobs);
        for met in [options.met, options.shown] {
            let mut told = Vec::new();
            met.unwrap().behind(0, |_, value| told.push(value.to_vec()));
            assert_eq!(told, [b"Kd93mZq71Lp"]);
        }
    }

    #[test]
    fn messages_are_hidden_in_all_forms_and_nothing_else_is_touched() {
        let (line, binary) = (
            r#"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"m\",\"params\":{\"token\":\"Kd93mZq71Lp\"}}"#,
            STANDARD.encode(b"\xff password: Kd93mZq71Lp"),
        );
        let exchanges = [
            format!(r#"{{"key": "raw", "client": {{"raw": "{line}"}}, "server": []}}"#),
            format!(r#"{{"key": "binary", "client": {{"base64": "{binary}"}}, "server": []}}"#),
            r#"{"key": "batch", "client": {"batch": [{"notification": {"method": "n", "params": {"say": "Kd93mZq71Lp"}}}]}, "server": []}"#.into(),
            exchange("clean", r#"{"a":1}"#, "3"),
        ];
        let text = format!(
            r#"{{"cassette": 1, "redacted": false, "sessions": [{{"session": 1, "recording": 1, "transport": "http", "path": "/mcp?token=Kd93mZq71Lp"}}],
            "exchanges": [{}, {{"key": "line", "client": {{"http": "PUT /a?token=Kd93mZq71Lp", "body": "token=Kd93mZq71Lp"}}, "http": {{"path": "/b?token=Kd93mZq71Lp", "status": 200}}, "server": []}}]}}"#,
            exchanges.join(", ")
        );
        let cassette = Arc::new(Cassette::load(text.into(), &NoBlobs).unwrap());
        let seen = seen_by(&mut options(&[]), Arc::clone(&cassette), &NoBlobs);
        let said = |entry: &crate::cassette::model::Exchange, message: &Message| {
            let mut line = Vec::new();
            seen.wire(entry.session, true, message, None, &NoBlobs, &mut line).unwrap();
            line
        };
        for entry in &seen.exchanges {
            for message in entry.client.iter().chain(entry.body.as_deref()) {
                let line = said(entry, message);
                assert!(memchr::memmem::find(&line, b"Kd93mZq71Lp").is_none(), "{}", line.escape_ascii());
                let is_hidden = memchr::memmem::find(&line, b"<redacted:").is_some();
                assert!(is_hidden || &*entry.key == "clean", "{}", line.escape_ascii());
            }
        }
        let http = |entry: &crate::cassette::model::Exchange| entry.http.as_ref()?.path.clone();
        assert_eq!(http(seen.exchanges.last().unwrap()).as_deref(), Some("/b?token=<redacted:token-1>"));
        assert_eq!(seen.sessions[0].path.as_deref(), Some("/mcp?token=<redacted:token-1>"));
        let places = |cassette: &Cassette| cassette.find("clean").unwrap().client.clone();
        assert_eq!(places(&seen), places(&cassette));
        assert!(seen.text.starts_with(&cassette.text) && seen.redacted);
        let off = seen_by(&mut options(&["off"]), Arc::clone(&cassette), &NoBlobs);
        assert!(
            Arc::ptr_eq(&off, &cassette)
                && Arc::ptr_eq(&seen, &seen_by(&mut options(&[]), Arc::clone(&seen), &NoBlobs))
        );
    }
}
