//! One exchange in full.

use std::{io::Write, path::Path};

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use mcp_tapedeck::{
    cassette::model::{Cassette, Exchange, Form, Message},
    store::{Loaded, shell},
    wire::{Span, lines::one_line, scan},
};

use super::listing::{Heading, unanswered};
use crate::cli::{failure::Failure, files, output::visible};

/// Writes the exchange with this key: as the file has it, or each message as it travelled.
pub(super) fn show(loaded: &Loaded, key: &str, json: bool, out: &mut dyn Write) -> Result<(), Failure> {
    let cassette = &loaded.cassette;
    let exchange = cassette.find(key).ok_or_else(|| unknown(cassette, &loaded.path, key))?;
    let messages = messages(exchange);
    let http = http(cassette, exchange);
    if json {
        if let Some(place) = http {
            let mut line = b"{\"http\":".to_vec();
            cassette
                .expand(place.into(), &loaded.blobs, &mut line)
                .map_err(|error| files::fault(loaded, &error))?;
            line.extend_from_slice(b"}\n");
            out.write_all(&line).map_err(Failure::output)?;
        }
        return messages.iter().try_for_each(|message| message.write_json(loaded, exchange, out));
    }
    let (line, _) = cassette.line_column(exchange.place.start as usize);
    let path = loaded.path.display();
    write!(
        out,
        "{}\n{}, {path}:{line}\n",
        visible(&exchange.key),
        Heading::of(cassette, exchange.session as usize)
    )
    .map_err(Failure::output)?;
    if let Some(place) = http {
        write_place("http", cassette, place, out).map_err(Failure::output)?;
    }
    messages.iter().try_for_each(|message| message.write(cassette, out)).map_err(Failure::output)?;
    match unanswered(loaded, exchange) {
        Some(why) => writeln!(out, "\n{why}").map_err(Failure::output),
        None => Ok(()),
    }
}

/// Where what of an exchange's HTTP is not as usual stands in the file.
fn http(cassette: &Cassette, exchange: &Exchange) -> Option<Span> {
    exchange.http.as_ref()?;
    scan::member(&cassette.text, exchange.place.start as usize, "http")
}

/// Writes a value as it stands in the file, under a heading.
fn write_place(heading: &str, cassette: &Cassette, place: Span, out: &mut dyn Write) -> std::io::Result<()> {
    writeln!(out, "\n{heading}")?;
    for line in dedented(&cassette.text, place) {
        writeln!(out, "  {}", visible(&String::from_utf8_lossy(line)))?;
    }
    Ok(())
}

/// A message of an exchange and who sent it when.
struct Sent<'a> {
    from_client: bool,
    after_ms: u32,
    message: &'a Message,
}

fn messages(exchange: &Exchange) -> Vec<Sent<'_>> {
    let mut messages = Vec::new();
    let client = exchange.client.iter().chain(exchange.body.as_deref());
    messages.extend(client.map(|message| Sent { from_client: true, after_ms: 0, message }));
    for item in &exchange.server {
        messages.push(Sent { from_client: false, after_ms: item.after_ms, message: &item.message });
        let answer = item.answer.as_deref();
        messages.extend(answer.map(|answer| Sent {
            from_client: true,
            after_ms: answer.after_ms,
            message: &answer.message,
        }));
    }
    messages
}

impl Sent<'_> {
    const fn sender(&self) -> &'static str {
        if self.from_client { "client" } else { "server" }
    }

    /// Writes the message as it stands in the file.
    fn write(&self, cassette: &Cassette, out: &mut dyn Write) -> std::io::Result<()> {
        let mut heading = self.sender().to_owned();
        if self.after_ms > 0 {
            heading.push_str(&format!(", {} ms later", self.after_ms));
        }
        heading.push_str(&format!(": {}", self.message.form.word()));
        write_place(&heading, cassette, self.message.place.span(), out)
    }

    /// Writes the message as it travelled, in an object on one line.
    fn write_json(&self, loaded: &Loaded, exchange: &Exchange, out: &mut dyn Write) -> Result<(), Failure> {
        let mut wire = Vec::new();
        if self.message.form != Form::Omitted {
            let (cassette, session) = (&loaded.cassette, exchange.session);
            let written =
                cassette.wire(session, self.from_client, self.message, None, &loaded.blobs, &mut wire);
            written.map_err(|error| files::fault(loaded, &error))?;
        }
        let mut line =
            format!("{{\"from\":\"{}\",\"after_ms\":{}", self.sender(), self.after_ms).into_bytes();
        match std::str::from_utf8(&wire) {
            Ok(_) if self.message.form == Form::Omitted => {
                line.extend_from_slice(b",\"omitted\":");
                let omitted = self.message.place;
                loaded
                    .cassette
                    .expand(omitted, &loaded.blobs, &mut line)
                    .map_err(|error| files::fault(loaded, &error))?;
            }
            Ok(text) if matches!(self.message.form, Form::Http | Form::Body) => {
                line.extend_from_slice(format!(",\"{}\":", self.message.form.word()).as_bytes());
                scan::push_string(text, &mut line);
            }
            Ok(_) if scan::is_json(&wire) => {
                line.extend_from_slice(b",\"message\":");
                line.extend_from_slice(&one_line(&wire));
            }
            Ok(text) => {
                line.extend_from_slice(b",\"raw\":");
                scan::push_string(text, &mut line);
            }
            Err(_) => line.extend_from_slice(format!(",\"base64\":\"{}\"", BASE64.encode(&wire)).as_bytes()),
        }
        line.extend_from_slice(b"}\n");
        out.write_all(&line).map_err(Failure::output)
    }
}

/// The lines of a place, the first one's indentation taken off the others.
fn dedented(text: &[u8], place: Span) -> impl Iterator<Item = &[u8]> {
    let start = memchr::memrchr(b'\n', &text[..place.start]).map_or(0, |newline| newline + 1);
    let indent = text[start..].iter().take_while(|byte| **byte == b' ').count();
    place.of(text).split(|byte| *byte == b'\n').map(move |line| {
        let spaces = line.iter().take(indent).take_while(|byte| **byte == b' ').count();
        &line[spaces..]
    })
}

/// No exchange has this key; those that look like it are named.
fn unknown(cassette: &Cassette, path: &Path, key: &str) -> Failure {
    let shown = path.display();
    let failure = Failure::file(format_args!("{shown}: no exchange has the key `{}`", visible(key)));
    if Path::new(key).is_file() {
        return failure.hint("one cassette is shown at a time; the second word is a key");
    }
    let lowered = key.to_lowercase();
    let alike = cassette.exchanges.iter().filter(|exchange| exchange.key.to_lowercase().contains(&lowered));
    let alike: Vec<_> = alike.take(5).map(|exchange| format!("`{}`", visible(&exchange.key))).collect();
    if alike.is_empty() {
        failure.hint(format_args!("`tapedeck show {}` lists the keys", shell::word(path)))
    } else {
        failure.hint(format_args!("did you mean {}?", alike.join(" or ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_keeps_its_inner_indentation_only() {
        let text = b"{\n    \"a\": {\n      \"b\": 1\n    }\n}";
        let lines: Vec<_> = dedented(text, Span::new(11, 31)).map(String::from_utf8_lossy).collect();
        assert_eq!(lines, ["{", "  \"b\": 1", "}"]);
        assert_eq!(dedented(b"[1]", Span::new(1, 2)).count(), 1);
    }
}
