//! One message of a cassette, and its id.

use std::fmt;

use super::Place;
use crate::wire::jsonrpc::Kind;

/// One message as it stands in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Which member it stands in.
    pub form: Form,
    /// What it is: that of its form, of `raw` and `base64` what their text says.
    pub kind: Kind,
    /// That member's value.
    pub place: Place,
    /// The id it had when recorded: written, or derived where it is an ordinary one.
    pub id: Id,
}

impl Message {
    /// The form that tells what it is: of a message in `raw` or `base64`, the one that its text would have.
    pub(crate) const fn as_form(&self) -> Form {
        match (self.form, self.kind) {
            (Form::Raw | Form::Base64, Kind::Request) => Form::Request,
            (Form::Raw | Form::Base64, Kind::Notification) => Form::Notification,
            (Form::Raw | Form::Base64, Kind::Result) => Form::Result,
            (Form::Raw | Form::Base64, Kind::Error) => Form::Error,
            (Form::Raw | Form::Base64, Kind::Batch) => Form::Batch,
            (form, _) => form,
        }
    }
}

/// The members a message can stand in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `request`: `{"method", "params"}`, members unknown to us, `id` where it is no ordinary one.
    Request,
    /// `notification`: the same without id.
    Notification,
    /// `result`: the result itself.
    Result,
    /// `error`: the error object.
    Error,
    /// `batch`: an array of messages, each in its own form, responses with `to`.
    Batch,
    /// `raw`: the line's text as a JSON string.
    Raw,
    /// `base64`: the line's bytes, where they are not UTF-8.
    Base64,
    /// `omitted`: `{"bytes", "sha256"}` of a message over `--max-message`.
    Omitted,
    /// `http`: `"GET /path?query"`, an HTTP request whose body is no message.
    Http,
    /// `body`: the text of an HTTP body, or of an event's data, that is no message.
    Body,
}

impl Form {
    /// The member's name.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Notification => "notification",
            Self::Result => "result",
            Self::Error => "error",
            Self::Batch => "batch",
            Self::Raw => "raw",
            Self::Base64 => "base64",
            Self::Omitted => "omitted",
            Self::Http => "http",
            Self::Body => "body",
        }
    }

    /// Every form.
    pub const ALL: [Self; 10] = [
        Self::Request,
        Self::Notification,
        Self::Result,
        Self::Error,
        Self::Batch,
        Self::Raw,
        Self::Base64,
        Self::Omitted,
        Self::Http,
        Self::Body,
    ];

    /// What a message in this form is, as far as the form alone says it.
    pub(in crate::cassette) const fn kind(self) -> Kind {
        match self {
            Self::Request => Kind::Request,
            Self::Notification => Kind::Notification,
            Self::Result => Kind::Result,
            Self::Error => Kind::Error,
            Self::Batch => Kind::Batch,
            Self::Raw | Self::Base64 | Self::Omitted | Self::Http | Self::Body => Kind::Noise,
        }
    }
}

/// A recorded id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Id {
    /// No `id` member.
    #[default]
    Absent,
    /// A plain non-negative integer.
    Number(u64),
    /// Any other token, raw, `null` included. Seldom, so it stands apart: every message has room for an id.
    Token(Box<Box<[u8]>>),
}

impl Id {
    /// The id of a raw token.
    pub fn of(token: Option<&[u8]>) -> Self {
        let Some(token) = token else { return Self::Absent };
        let plain = token == b"0" || (!token.starts_with(b"0") && token.iter().all(u8::is_ascii_digit));
        match std::str::from_utf8(token).ok().filter(|_| plain).and_then(|text| text.parse().ok()) {
            Some(number) => Self::Number(number),
            None => Self::Token(Box::new(token.into())),
        }
    }

    /// Appends the raw token; nothing where the id is absent.
    pub fn push(&self, out: &mut Vec<u8>) {
        match self {
            Self::Absent => {}
            Self::Number(number) => {
                let (mut digits, mut rest) = ([0; 20], *number);
                let mut start = digits.len();
                while start == digits.len() || rest > 0 {
                    start -= 1;
                    digits[start] = b'0' + (rest % 10) as u8;
                    rest /= 10;
                }
                out.extend_from_slice(&digits[start..]);
            }
            Self::Token(token) => out.extend_from_slice(token),
        }
    }

    /// The id an ordinary request after this one has: one more; 0 at the start of a session.
    pub fn next(&self) -> Self {
        match self {
            Self::Number(number) => Self::Number(number.wrapping_add(1)),
            _ => Self::Number(0),
        }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut token = Vec::new();
        self.push(&mut token);
        f.write_str(&String::from_utf8_lossy(&token))
    }
}
