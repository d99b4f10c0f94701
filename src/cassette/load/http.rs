//! `http`, `on`, `sse` and the forms `http` and `body`: what of HTTP stands in the file.

use base64::{Engine, engine::general_purpose::STANDARD};

use super::{
    super::{
        error::{LoadError, LoadErrorKind, Result},
        expand::expand,
        model::{EventType, Header, Http, On, Place, Sse, StreamEnd},
        shape::{HEADERS, HTTP, SSE},
        spacing::Spacing,
    },
    Loader, Name,
};
use crate::wire::{
    http::{is_field_value, is_of_connection, is_token},
    jsonrpc, scan,
};

const VALUES: &str =
    "a string, or a list of strings, of characters up to U+00FF without line ends and control characters";
pub(super) const TEXT: &str = "a string, or a marker that stands for one";

impl Loader<'_> {
    pub(super) fn http(&mut self) -> Result<Http> {
        let mut walk = self.begin(&HTTP)?;
        let mut http = Http::default();
        while let Some(member) = self.known(&mut walk)? {
            match member {
                "path" => http.path = Some(self.path()?.into()),
                "request" => http.request = self.headers(true)?,
                "auth" => http.auth = self.boolean("auth")?,
                "status" => http.status = Some(self.status()?),
                "stream" => http.stream = self.boolean("stream")?,
                "headers" => http.headers = self.headers(false)?,
                "again" => http.again = self.again()?,
                "until_delete" => http.until_delete = self.boolean("until_delete")?,
                "end" => http.end = Some(self.stream_end()?),
                "partial" => {
                    http.partial = Some(self.text("partial")?.into_owned().into_bytes().into());
                }
                "partial_base64" => {
                    let span = self.string("partial_base64", "base64")?;
                    match STANDARD.decode(scan::unescape(span.of(self.reader.text))) {
                        Ok(bytes) => http.partial = Some(bytes.into()),
                        Err(_) => return self.wrong(span.start, "partial_base64", "base64"),
                    }
                }
                _ => self.any()?,
            }
        }
        Ok(http)
    }

    pub(super) fn path(&mut self) -> Result<String> {
        const EXPECTED: &str = "a path that begins with `/`";
        let span = self.string("path", EXPECTED)?;
        let path = jsonrpc::text(span.of(self.reader.text));
        if !is_target(&path) {
            return self.wrong(span.start, "path", EXPECTED);
        }
        Ok(path.into_owned())
    }

    fn status(&mut self) -> Result<u16> {
        const EXPECTED: &str = "a status from 200 to 999, or 101";
        let at = self.reader.at;
        let status = self.number("status", EXPECTED)?;
        if status != 101 && !(200..=999).contains(&status) {
            return self.wrong(at, "status", EXPECTED);
        }
        Ok(status)
    }

    fn stream_end(&mut self) -> Result<StreamEnd> {
        const EXPECTED: &str = "`cut` or `reset`";
        let span = self.string("end", EXPECTED)?;
        let word = &self.reader.text[span.start + 1..span.end - 1];
        match StreamEnd::ALL.into_iter().find(|known| known.word().as_bytes() == word) {
            Some(end) => Ok(end),
            None => self.wrong(span.start, "end", EXPECTED),
        }
    }

    fn again(&mut self) -> Result<Vec<Box<str>>> {
        let mut ids = Vec::new();
        self.list("again", |loader| {
            ids.push(loader.field("again")?);
            Ok(())
        })?;
        Ok(ids)
    }

    fn headers(&mut self, of_request: bool) -> Result<Vec<Header>> {
        let mut walk = self.begin(&HEADERS)?;
        let mut headers: Vec<Header> = Vec::new();
        while let Some(name) = self.next(&mut walk)? {
            let Name::Unknown(span) = name else { continue };
            let name = jsonrpc::text(span.of(self.reader.text)).into_owned();
            if !is_header_name(&name) {
                return self.wrong(span.start, "headers", "the name of a header, in lower case");
            }
            // A server that wants another protocol says which (RFC 9110, 15.5.22). What a request says of the length of its
            // body is all that tells of it where that did not come.
            let is_told = name == if of_request { "content-length" } else { "upgrade" };
            if is_of_connection(&name) && !is_told {
                let instead = "whoever replays the response frames it anew, so leave it out";
                let kind = LoadErrorKind::Misplaced { place: walk.shape.name, member: name, instead };
                return Err(LoadError::new(span.start, kind));
            }
            let mut values = Vec::new();
            if self.reader.peek() == b'[' {
                self.list("headers", |loader| {
                    values.push(loader.header_value()?);
                    Ok(())
                })?;
            } else {
                values.push(self.header_value()?);
            }
            headers.push(Header { name: name.into(), values });
        }
        Ok(headers)
    }

    fn header_value(&mut self) -> Result<Box<[u8]>> {
        let span = self.string("headers", VALUES)?;
        let text = jsonrpc::text(span.of(self.reader.text));
        let bytes: Option<Box<[u8]>> = text.chars().map(|letter| u8::try_from(letter).ok()).collect();
        match bytes.filter(|bytes| is_field_value(bytes)) {
            Some(bytes) => Ok(bytes),
            None => self.wrong(span.start, "headers", VALUES),
        }
    }

    pub(super) fn on(&mut self) -> Result<On> {
        const EXPECTED: &str = "`get`, `resume`, `post` or `sse`";
        let span = self.string("on", EXPECTED)?;
        let word = &self.reader.text[span.start + 1..span.end - 1];
        match On::ALL.into_iter().find(|known| known.word().as_bytes() == word) {
            Some(on) => Ok(on),
            None => self.wrong(span.start, "on", EXPECTED),
        }
    }

    pub(super) fn sse(&mut self) -> Result<Sse> {
        let mut walk = self.begin(&SSE)?;
        let mut sse = Sse::default();
        while let Some(member) = self.known(&mut walk)? {
            match member {
                "id" => sse.id = Some(self.field("id")?),
                "event" if self.reader.peek() == b'n' => {
                    self.any()?;
                    sse.event = EventType::Unnamed;
                }
                "event" => {
                    let name = self.field("event")?;
                    sse.event = if &*name == "message" { EventType::Message } else { EventType::Named(name) };
                }
                "data" => sse.no_data = !self.boolean("data")?,
                _ => sse.retry = Some(self.number("retry", "milliseconds, a whole number")?),
            }
        }
        Ok(sse)
    }

    /// A field of an event, which is one line.
    fn field(&mut self, member: &'static str) -> Result<Box<str>> {
        let span = self.string(member, "a string without line ends")?;
        let text = jsonrpc::text(span.of(self.reader.text));
        if text.contains(['\r', '\n', '\0']) {
            return self.wrong(span.start, member, "a string without line ends");
        }
        Ok(text.into())
    }

    /// The form `http`: method and target.
    pub(super) fn request_line(&mut self) -> Result<Place> {
        const EXPECTED: &str = "a method and a path, such as \"GET /mcp\"";
        let span = self.string("http", EXPECTED)?;
        let text = jsonrpc::text(span.of(self.reader.text));
        match text.split_once(' ') {
            Some((method, target)) if is_token(method.as_bytes()) && (is_target(target) || target == "*") => {
                Ok(span.into())
            }
            _ => self.wrong(span.start, "http", EXPECTED),
        }
    }

    /// A string, or a marker that stands for one.
    pub(super) fn text_value(&mut self, member: &'static str, expected: &'static str) -> Result<Place> {
        let at = self.reader.at;
        if !matches!(self.reader.peek(), b'"' | b'{') {
            return self.wrong(at, member, expected);
        }
        let place = self.payload()?;
        let text = self.reader.text;
        if text[place.span().start] == b'"' {
            return Ok(place);
        }
        let mut value = Vec::new();
        expand(text, place.span(), Spacing::Compact, self.blobs, &mut value)?;
        if value.first() == Some(&b'"') { Ok(place) } else { self.wrong(at, member, expected) }
    }
}

/// Whether a text can be a header's name, spelled as the file spells it.
fn is_header_name(name: &str) -> bool {
    is_token(name.as_bytes()) && !name.bytes().any(|byte| byte.is_ascii_uppercase())
}

fn is_target(text: &str) -> bool {
    text.starts_with('/') && text.bytes().all(|byte| byte > b' ' && byte != 0x7f)
}

#[cfg(test)]
mod tests {
    use crate::cassette::{blob::NoBlobs, model::*};

    fn load(exchange: &str) -> Result<Cassette, String> {
        let text = format!(r#"{{"cassette": 1, "exchanges": [{exchange}]}}"#);
        Cassette::load(text.into_bytes(), &NoBlobs).map_err(|error| error.to_string())
    }

    #[test]
    fn all_of_http_is_read() {
        let cassette = load(
            r#"{"key": "a", "client": {"request": {"method": "x"}},
              "http": {"path": "/x?y=1", "request": {"last-event-id": "7"}, "auth": true, "status": 404,
                "stream": true, "headers": {"set-cookie": ["a", "b"], "content-type": [], "x-e": "\u00e9"},
                "again": ["a", "b"], "until_delete": true, "end": "reset", "partial": "da"},
              "server": [
                {"sse": {"id": "p", "event": null, "retry": 5}, "body": ""},
                {"on": "resume", "sse": {"event": "ping"}, "body": {"$lines": ["a", "b"]}}
              ],
              "unanswered": "ended"}"#,
        )
        .unwrap();
        let exchange = &cassette.exchanges[0];
        let header = |name: &str, values: &[&[u8]]| Header {
            name: name.into(),
            values: values.iter().map(|&value| value.into()).collect(),
        };
        let http = Http {
            path: Some("/x?y=1".into()),
            request: vec![header("last-event-id", &[b"7"])],
            auth: true,
            status: Some(404),
            stream: true,
            headers: vec![
                header("set-cookie", &[b"a", b"b"]),
                header("content-type", &[]),
                header("x-e", &[b"\xe9"]),
            ],
            again: vec!["a".into(), "b".into()],
            until_delete: true,
            end: Some(StreamEnd::Reset),
            partial: Some(b"da".as_slice().into()),
        };
        assert_eq!(exchange.http.as_deref(), Some(&http));
        let sse = Sse { id: Some("p".into()), event: EventType::Unnamed, retry: Some(5), no_data: false };
        assert_eq!(exchange.server[0].sse.as_deref(), Some(&sse));
        assert_eq!(exchange.server[1].on, Some(On::Resume));
        assert_eq!(exchange.unanswered, Some(Unanswered::Ended));
        let mut body = Vec::new();
        cassette.wire(0, false, &exchange.server[1].message, None, &NoBlobs, &mut body).unwrap();
        assert_eq!(body, b"a\nb");
    }

    #[test]
    fn a_request_that_is_no_message_has_a_line_and_a_body() {
        let cassette =
            load(r#"{"key": "a", "client": {"http": "POST /token", "body": "a=1"}, "server": []}"#).unwrap();
        let exchange = &cassette.exchanges[0];
        let wire = |message: &Message| {
            let mut out = Vec::new();
            cassette.wire(0, true, message, None, &NoBlobs, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(wire(exchange.client.as_ref().unwrap()), "POST /token");
        assert_eq!((wire(exchange.body.as_deref().unwrap()), exchange.is_partial), ("a=1".to_owned(), false));
        let part = r#"{"key": "a", "client": {"http": "POST /", "body": "a=", "partial": true}}"#;
        assert!(load(part).unwrap().exchanges[0].is_partial);
        let none = r#"{"key": "a", "client": {"http": "POST /", "body": "", "partial": true}, "http": {"request": {"content-length": "9"}}}"#;
        assert!(load(none).unwrap().exchanges[0].is_partial);
    }

    #[test]
    fn what_cannot_be_http_is_refused_with_its_place() {
        for (exchange, why) in [
            (r#"{"key": "a", "client": {"http": "GET"}}"#, "a method and a path"),
            (r#"{"key": "a", "client": {"http": "GET /a b"}}"#, "a method and a path"),
            (r#"{"key": "a", "client": {"request": {"method": "x"}, "body": "a"}}"#, "no message"),
            (r#"{"key": "a", "client": {"http": "POST /", "partial": true}}"#, "behind the `body`"),
            (r#"{"key": "a", "client": {"http": "POST /", "body": "a", "partial": 1}}"#, "true or false"),
            (r#"{"key": "a", "client": {"http": "GET /", "body": {"a": 1}}}"#, "a marker that stands for"),
            (r#"{"key": "a", "http": {"status": 20}, "client": {"http": "GET /"}}"#, "from 200 to 999"),
            (r#"{"key": "a", "http": {"headers": {"A": "b"}}, "client": {"http": "GET /"}}"#, "lower case"),
            (r#"{"key": "a", "http": {"headers": {"a b": ""}}, "client": {"http": "GET /"}}"#, "lower case"),
            (r#"{"key": "a", "http": {"headers": {"a": "b\nc"}}, "client": {"http": "GET /"}}"#, "line ends"),
            (r#"{"key": "a", "http": {"headers": {"a": "\u0100"}}, "client": {"http": "GET /"}}"#, "U+00FF"),
            (
                r#"{"key": "a", "http": {"headers": {"a": "\u007f"}}, "client": {"http": "GET /"}}"#,
                "control char",
            ),
            (
                r#"{"key": "a", "http": {"headers": {"content-length": "1"}}, "client": {"http": "GET /"}}"#,
                "leave it out",
            ),
            (
                r#"{"key": "a", "http": {"headers": {"transfer-encoding": "chunked"}}, "client": {"http": "GET /"}}"#,
                "leave it out",
            ),
            (
                r#"{"key": "a", "http": {"request": {"connection": []}}, "client": {"http": "GET /"}}"#,
                "leave it out",
            ),
            (r#"{"key": "a", "http": {"again": "7"}, "client": {"http": "GET /"}}"#, "an array"),
            (
                r#"{"key": "a", "http": {"again": ["a\nb"]}, "client": {"http": "GET /"}}"#,
                "without line ends",
            ),
            (r#"{"key": "a", "http": {"until_delete": 1}, "client": {"http": "GET /"}}"#, "true or false"),
            (r#"{"key": "a", "http": {"end": "off"}, "client": {"http": "GET /"}}"#, "`cut` or `reset`"),
            (r#"{"key": "a", "server": [{"on": "put", "body": ""}]}"#, "`get`, `resume`"),
            (r#"{"key": "a", "server": [{"sse": {"id": "a\nb"}, "body": ""}]}"#, "without line ends"),
            (r#"{"key": "a", "server": [{"sse": {"data": 1}, "body": ""}]}"#, "true or false"),
            (r#"{"key": "a", "server": [{"sse": {"data": false}, "body": "x"}]}"#, "with `\"body\": \"\"`"),
            (r#"{"key": "a", "server": [{"sse": {"data": false}, "result": 1}]}"#, "with `\"body\": \"\"`"),
        ] {
            let error = load(exchange).unwrap_err();
            assert!(error.contains(why), "{exchange}: {error}");
            assert!(error.contains("1:"), "{error}");
        }
    }
}
