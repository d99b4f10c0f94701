//! Entries of `sessions`.

use base64::{Engine, engine::general_purpose::STANDARD};

use super::{
    super::{
        error::Result,
        model::{End, Session, Warning},
        shape::{END, SESSION, SIDE, SPELLING},
        spelling::{Envelope, Side, Spelling},
    },
    Loader,
};
use crate::wire::{Span, jsonrpc};

const TRANSPORTS: &[&str] = &["stdio", "http", "sse", "stdio-http"];

const COUNT: &str = "a number from 1 on";

impl Loader<'_> {
    pub(super) fn session(&mut self) -> Result<Session> {
        let mut walk = self.begin(&SESSION)?;
        let mut session = Session { recording: 1, ..Session::default() };
        while let Some(member) = self.known(&mut walk)? {
            match member {
                "session" => session.number = self.number("session", COUNT)?,
                "recording" => session.recording = self.number("recording", COUNT)?,
                "journal" => session.journal = Some(self.text("journal")?.into_owned()),
                "parent" => session.parent = Some(self.text("parent")?.into_owned()),
                "at" => session.at = Some(self.text("at")?.into_owned()),
                "by" => session.by = Some(self.text("by")?.into_owned()),
                "transport" => {
                    let word = self.string("transport", "a string")?;
                    self.warn_unless_one_of("transport", word, TRANSPORTS);
                    session.transport = Some(jsonrpc::text(word.of(self.reader.text)).into_owned());
                }
                "path" => session.path = Some(self.path()?),
                "protocol" => session.protocol = Some(self.text("protocol")?.into_owned()),
                "client" => session.client = Some(self.text("client")?.into_owned()),
                "server" => session.server = Some(self.text("server")?.into_owned()),
                "spelling" => session.spelling = self.spelling()?,
                "end" => session.end = Some(self.end()?),
                "gap" => session.gap = self.number("gap", "how many messages were not recorded")?,
                _ => self.any()?,
            }
        }
        if session.number == 0 {
            return self.missing(&walk, "`session`, its number from 1 on");
        }
        session.place = Span::new(walk.start, self.reader.at).into();
        Ok(session)
    }

    /// A system that has only eight bits for a status ends with others as with their last eight.
    fn warn_of_status(&mut self, status: i32) {
        if status > 255 {
            let at = self.reader.at - status.to_string().len();
            let text =
                format!("`exit` must be 255 at most, found {status}; a replay ends with {}", status & 255);
            self.cassette.warnings.push(Warning { at, text, is_value: true });
        }
    }

    fn spelling(&mut self) -> Result<Spelling> {
        let mut walk = self.begin(&SPELLING)?;
        let mut spelling = Spelling::default();
        while let Some(member) = self.known(&mut walk)? {
            match member {
                "client" => spelling.client = self.side()?,
                _ => spelling.server = self.side()?,
            }
        }
        Ok(spelling)
    }

    fn side(&mut self) -> Result<Side> {
        let mut walk = self.begin(&SIDE)?;
        let mut side = Side::default();
        while let Some(member) = self.known(&mut walk)? {
            match member {
                "order" => side.order = self.order()?,
                "spaced" => side.spaced = self.boolean("spaced")?,
                _ => side.crlf = self.boolean("crlf")?,
            }
        }
        Ok(side)
    }

    fn order(&mut self) -> Result<[Envelope; 6]> {
        let span = self.string("order", "a string of names")?;
        let words = jsonrpc::text(span.of(self.reader.text));
        match Envelope::order(&words) {
            Some(order) => Ok(order),
            None => {
                self.wrong(span.start, "order", "jsonrpc, id, method, params, result and error, each once")
            }
        }
    }

    fn end(&mut self) -> Result<End> {
        let mut walk = self.begin(&END)?;
        let mut end = End::default();
        while let Some(member) = self.known(&mut walk)? {
            match member {
                "exit" => {
                    let status: i32 = self.number("exit", "an exit status")?;
                    self.warn_of_status(status);
                    end.exit = Some(status);
                }
                "signal" => end.signal = Some(self.number("signal", "a signal's number")?),
                "partial" => end.partial = Some(self.text("partial")?.into_owned().into_bytes()),
                _ => {
                    let span = self.string("partial_base64", "base64")?;
                    let text = jsonrpc::text(span.of(self.reader.text));
                    let Ok(bytes) = STANDARD.decode(text.as_bytes()) else {
                        return self.wrong(span.start, "partial_base64", "base64");
                    };
                    end.partial = Some(bytes);
                }
            }
        }
        Ok(end)
    }
}
