//! Affected requests whose answers come on a stream that they share: a pipe, or that of HTTP+SSE.

use crate::{
    fault::{Acting, step::Output},
    traffic::Lane,
    wire::{
        half::half_answer,
        jsonrpc::{Kind, Message, id_key},
    },
};

/// Those that are not answered yet.
#[derive(Debug, Default)]
pub(super) struct Asked(Vec<One>);

#[derive(Debug)]
struct One {
    stream: Lane,
    /// Its id and progress token, as they are compared.
    id: Vec<u8>,
    token: Option<Vec<u8>>,
    /// None: nobody hears what the server says because of it.
    acting: Option<Acting>,
}

/// Because of which request something is said.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Whose {
    /// Of none that is affected.
    Nobodys,
    /// Of this one.
    Affected {
        /// None: nobody hears it.
        acting: Option<Acting>,
        /// It is the answer.
        is_last: bool,
    },
}

impl Asked {
    pub(super) fn add(&mut self, stream: Lane, request: &Message<'_>, acting: Option<Acting>) {
        let id = request.id_key().unwrap_or_default().into_owned();
        let token = request.progress_token().map(|token| id_key(token).into_owned());
        self.0.push(One { stream, id, token, acting });
    }

    /// Whose an output is; with the answer a request is no longer asked.
    pub(super) fn whose(&mut self, output: &Output) -> Whose {
        match self.place(output) {
            None => Whose::Nobodys,
            Some((at, true)) => Whose::Affected { acting: self.0.remove(at).acting, is_last: true },
            Some((at, false)) => Whose::Affected { acting: self.0[at].acting, is_last: false },
        }
    }

    /// As [`Asked::whose`], of a server's last line, which may be half an answer.
    pub(super) fn whose_last(&mut self, output: &Output) -> Whose {
        let half = output.text().and_then(|text| Some(id_key(half_answer(text)?.of(text))));
        let is_its = |one: &One| one.stream == output.lane() && half.as_deref() == Some(&one.id);
        match self.0.iter().position(is_its) {
            Some(at) => Whose::Affected { acting: self.0.remove(at).acting, is_last: true },
            None => self.whose(output),
        }
    }

    /// The request that an output is because of, and whether it is the answer.
    fn place(&self, output: &Output) -> Option<(usize, bool)> {
        if self.0.is_empty() {
            return None;
        }
        let message = Message::read(output.text()?);
        let on_stream = |one: &One| one.stream == output.lane();
        match message.kind {
            Kind::Result | Kind::Error => {
                let id = message.id_key();
                let is_its = |one: &One| on_stream(one) && id.as_deref() == Some(&one.id);
                self.0.iter().position(is_its).map(|at| (at, true))
            }
            Kind::Notification if message.method() == "notifications/progress" => {
                let token = message.param("/progressToken").map(id_key)?;
                let is_its = |one: &One| on_stream(one) && one.token.as_deref() == Some(&*token);
                self.0.iter().position(is_its).map(|at| (at, false))
            }
            _ => None,
        }
    }

    /// The client has left a stream.
    pub(super) fn left(&mut self, stream: Lane) -> impl Iterator<Item = Acting> + use<> {
        let gone: Vec<One> = self.0.extract_if(.., |one| one.stream == stream).collect();
        gone.into_iter().filter_map(|one| one.acting)
    }
}
