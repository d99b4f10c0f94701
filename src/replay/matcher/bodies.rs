//! How alike the bodies of two requests are that are no messages.
//!
//! JSON is compared by its canonical form, a form by its decoded members in any order, anything else byte for byte; the
//! boundary between the parts of a multipart body is drawn anew each time, and does not count. What the bodies are the
//! live request says; cassettes do not keep it of the recorded one.

use std::sync::LazyLock;

use regex::bytes::Regex;

use super::{
    blanks::{Known, Live, fillings},
    canonical::{Exemption, Places, Room, canonical, holds_placeholder, push_text},
};
use crate::{
    redact::form_decoded,
    wire::{http::is_type, scan},
};

/// Members of OAuth requests that are drawn anew in each run, or name who asks and whom (RFC 6749, 7636, 8707, 7523,
/// 8628).
const VARIES: &[&str] = &[
    "code",
    "code_verifier",
    "code_challenge",
    "state",
    "nonce",
    "client_id",
    "client_secret",
    "client_assertion",
    "assertion",
    "refresh_token",
    "subject_token",
    "actor_token",
    "device_code",
    "resource",
    "audience",
];

/// Members of which one at least stands in such a request.
const OAUTH: &[&str] = &["grant_type", "response_type", "redirect_uris"];

/// The port of an address of this machine, where clients wait for a browser to come back.
static LOOPBACK: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)(https?:(?:\\?/){2}(?:localhost|127\.0\.0\.1|\[::1\])):[0-9]+").expect("a pattern")
});

/// How alike a recorded body and a live one are, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::replay) enum Likeness {
    /// Equal.
    Equal,
    /// Equal but for what fills the placeholders of the recorded one.
    Blanks,
    /// Both of OAuth, and equal but for what its requests draw anew.
    OAuth,
    /// Nothing is known of the recorded one.
    Unkept,
    /// None of these.
    Differs,
}

/// What a request's content type says of its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::replay) enum Media {
    /// JSON, of which a value may be all.
    Json,
    /// Nothing is said, or that it is a form, which clients also say of JSON.
    Any,
    /// It is no form.
    Other,
}

impl Media {
    pub(in crate::replay) fn of(content_type: Option<&[u8]>) -> Self {
        let Some(value) = content_type else { return Self::Any };
        let named = value.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
        if is_type(value, "application/json") || named.to_ascii_lowercase().ends_with(b"+json") {
            Self::Json
        } else if is_type(value, "application/x-www-form-urlencoded") || named.is_empty() {
            Self::Any
        } else {
            Self::Other
        }
    }
}

/// A body as it is compared.
#[derive(Debug)]
pub(in crate::replay) enum Body {
    Json(Vec<u8>),
    /// A form, as the JSON object of its members.
    Form(Vec<u8>),
    Other(Vec<u8>),
}

impl Body {
    pub(in crate::replay) fn of(text: &[u8], media: Media) -> Self {
        let may_be_json = match media {
            Media::Json => scan::is_json(text),
            _ => matches!(text.trim_ascii_start().first(), Some(b'{' | b'[')),
        };
        if may_be_json
            && canonical(b"", Some(text), &Places::default(), &mut Room::default(), &mut vec![]).is_ok()
        {
            return Self::Json(text.to_vec());
        }
        let form = if media == Media::Other { None } else { members(text) };
        form.map_or_else(|| Self::Other(without_boundary(text)), Self::Form)
    }

    /// Whether it is of a request of OAuth.
    pub(in crate::replay) fn is_of_oauth(&self) -> bool {
        let (Self::Json(text) | Self::Form(text)) = self else { return false };
        text.trim_ascii_start().starts_with(b"{")
            && OAUTH.iter().any(|name| scan::member(text.trim_ascii_start(), 0, name).is_some())
    }

    /// How alike this recorded body is to a live one: as it is redacted, and as it came where that is not the same.
    pub(in crate::replay) fn likeness(&self, live: &Self, plain: Option<&Self>) -> Likeness {
        let none = Places::default();
        if self.equals(live, &none) {
            return Likeness::Equal;
        }
        if self.takes(live, plain, &none) {
            return Likeness::Blanks;
        }
        if !self.is_of_oauth() || !live.is_of_oauth() {
            return Likeness::Differs;
        }
        let [recorded, live] = [self, live].map(Self::without_ports);
        let plain = plain.map(Self::without_ports);
        let varies = varies();
        match recorded.equals(&live, &varies) || recorded.takes(&live, plain.as_ref(), &varies) {
            true => Likeness::OAuth,
            false => Likeness::Differs,
        }
    }

    /// How many bytes two bodies share at their beginnings.
    pub(in crate::replay) fn shared(&self, live: &Self) -> usize {
        let [one, other] = [self, live].map(Self::text);
        one.iter().zip(other).take_while(|(one, other)| one == other).count()
    }

    /// The JSON text of it, or of its members; none where it is neither JSON nor a form.
    pub(in crate::replay) fn members(&self) -> Option<&[u8]> {
        match self {
            Self::Json(text) | Self::Form(text) => Some(text),
            Self::Other(_) => None,
        }
    }

    fn text(&self) -> &[u8] {
        let (Self::Json(text) | Self::Form(text) | Self::Other(text)) = self;
        text
    }

    fn equals(&self, live: &Self, places: &Places) -> bool {
        self.form(places, Room::default()) == live.form(places, Room::default())
    }

    /// Whether a live body fills the blanks of this one, and is equal in all else.
    fn takes(&self, live: &Self, plain: Option<&Self>, places: &Places) -> bool {
        if !holds_placeholder(self.text()) {
            return false;
        }
        let form = |body: &Self| body.form(places, Room::keeping_numbers(false));
        let recorded = form(self);
        let (redacted, plain) = (form(live), plain.map(form));
        let live = Live { redacted: Some(&redacted), plain: plain.as_deref() };
        fillings(&recorded, live, Known::NOTHING).is_some()
    }

    fn form(&self, places: &Places, mut room: Room) -> Vec<u8> {
        let (kind, text) = match self {
            Self::Json(text) => (&b"json"[..], text),
            Self::Form(text) => (&b"form"[..], text),
            Self::Other(text) => {
                let mut form = Vec::new();
                push_text(text, room.keeps_numbers(), &mut form);
                return form;
            }
        };
        let mut form = Vec::new();
        match canonical(kind, Some(text), places, &mut room, &mut form) {
            Ok(()) => form,
            Err(_) => text.clone(),
        }
    }

    fn without_ports(&self) -> Self {
        let strip = |text: &[u8]| LOOPBACK.replace_all(text, &b"$1"[..]).into_owned();
        match self {
            Self::Json(text) => Self::Json(strip(text)),
            Self::Form(text) => Self::Form(strip(text)),
            Self::Other(text) => Self::Other(text.clone()),
        }
    }
}

fn varies() -> Places {
    let mut places = Places::default();
    for name in VARIES {
        places.exempt(&format!("/params/{name}"), Exemption::Type("string".into()));
    }
    places
}

/// The decoded members of a form, as a JSON object; none where a text is no form, or not of UTF-8.
fn members(text: &[u8]) -> Option<Vec<u8>> {
    let text = text.trim_ascii_end();
    if text.is_empty() || !text.iter().all(|byte| byte.is_ascii_graphic()) {
        return None;
    }
    let mut object = b"{".to_vec();
    for pair in text.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty()) {
        let equals = memchr::memchr(b'=', pair).filter(|at| *at > 0)?;
        if object.len() > 1 {
            object.push(b',');
        }
        scan::push_string(&decoded(&pair[..equals])?, &mut object);
        object.push(b':');
        scan::push_string(&decoded(&pair[equals + 1..])?, &mut object);
    }
    object.push(b'}');
    Some(object)
}

fn decoded(text: &[u8]) -> Option<String> {
    String::from_utf8(form_decoded(text).into_owned()).ok()
}

/// A multipart body with one boundary for all; any other as it is.
fn without_boundary(text: &[u8]) -> Vec<u8> {
    let line = text.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let is_boundary = line.len() > 2 && line.len() <= 72 && line.starts_with(b"--");
    if !is_boundary || !text.trim_ascii_end().ends_with(&[line, b"--"].concat()) {
        return text.to_vec();
    }
    let mut out = Vec::with_capacity(text.len());
    let mut from = 0;
    for at in memchr::memmem::find_iter(text, line) {
        out.extend_from_slice(&text[from..at]);
        out.extend_from_slice(b"--_");
        from = at + line.len();
    }
    out.extend_from_slice(&text[from..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn likeness(recorded: &str, live: &str) -> Likeness {
        likeness_as(Media::Any, recorded, live)
    }

    fn likeness_as(media: Media, recorded: &str, live: &str) -> Likeness {
        Body::of(recorded.as_bytes(), media).likeness(&Body::of(live.as_bytes(), media), None)
    }

    #[test]
    fn what_a_body_is_the_content_type_says() {
        for (content_type, media) in [
            (Some("application/json"), Media::Json),
            (Some("Application/JSON; charset=utf-8"), Media::Json),
            (Some("application/problem+json;v=1"), Media::Json),
            (Some("application/x-www-form-urlencoded; charset=utf-8"), Media::Any),
            (Some("text/plain;charset=UTF-8"), Media::Other),
            (Some("multipart/form-data; boundary=x"), Media::Other),
            (Some(""), Media::Any),
            (None, Media::Any),
        ] {
            assert_eq!(Media::of(content_type.map(str::as_bytes)), media, "{content_type:?}");
        }
        for (media, recorded, live, expected) in [
            (Media::Json, "1.0", " 1\n", Likeness::Equal),
            (Media::Json, r#""a\u0062""#, r#""ab""#, Likeness::Equal),
            (Media::Json, r#""<redacted:token-1>""#, r#""ab12""#, Likeness::Blanks),
            (Media::Json, "true", "false", Likeness::Differs),
            (Media::Any, "1.0", "1", Likeness::Differs),
            (Media::Any, "a=1&b=2", "b=2&a=1", Likeness::Equal),
            (Media::Other, "a=1&b=2", "b=2&a=1", Likeness::Differs),
            (Media::Other, "a=1&b=2", "a=1&b=2", Likeness::Equal),
            (Media::Other, r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#, Likeness::Equal),
            (Media::Other, "--x\r\n\r\na\r\n--x--", "--y\r\n\r\na\r\n--y--", Likeness::Equal),
        ] {
            assert_eq!(likeness_as(media, recorded, live), expected, "{media:?} {recorded} {live}");
        }
    }

    #[test]
    fn bodies_are_equal_by_what_they_say() {
        for (recorded, live) in [
            ("a=1&b=x%20y", "b=x+y&a=%31"),
            (r#"{"a": 1, "b": [2]}"#, r#"{"b":[2],"a":1.0}"#),
            ("delete one", "delete one"),
            ("", ""),
            ("a=<redacted:token-1>", "a=<redacted:token-7>"),
            ("key <redacted:token-1>", "key <redacted:token-7>"),
            ("--x\r\n\r\na\r\n--x--\r\n", "--yy\r\n\r\na\r\n--yy--\r\n"),
        ] {
            assert_eq!(likeness(recorded, live), Likeness::Equal, "{recorded} {live}");
        }
        for (recorded, live) in [
            ("a=1&b=2", "a=1&b=3"),
            ("a=1&a=2", "a=2&a=1"),
            ("a=1", "a=1&b=2"),
            ("a=1", r#"{"a":"1"}"#),
            (r#"{"a":1}"#, r#"{"a":2}"#),
            ("delete one", "delete all"),
            ("delete one", ""),
            ("", "x"),
            ("a=1 ", "a=1 b"),
            ("{", "{{"),
            ("--x\r\n\r\na\r\n--x--\r\n", "--x\r\n\r\nb\r\n--x--\r\n"),
        ] {
            assert_eq!(likeness(recorded, live), Likeness::Differs, "{recorded} {live}");
        }
    }

    #[test]
    fn placeholders_are_blanks() {
        assert_eq!(likeness("u=joe&p=<redacted:password-1>", "p=x9&u=joe"), Likeness::Blanks);
        assert_eq!(likeness(r#"{"p":"<redacted:a-1>","u":1}"#, r#"{"u":1,"p":"x9"}"#), Likeness::Blanks);
        assert_eq!(likeness("u=joe&p=<redacted:password-1>", "p=x9&u=eve"), Likeness::Differs);
        assert_eq!(likeness("u=joe&p=<redacted:password-1>", "u=joe&p="), Likeness::Differs);
    }

    #[test]
    fn oauth_draws_some_of_its_members_anew() {
        let code = "grant_type=authorization_code&code=a&code_verifier=b&redirect_uri=http%3A%2F%2Flocalhost%3A3000%2Fcb";
        let again = "grant_type=authorization_code&code=c&code_verifier=d&redirect_uri=http%3A%2F%2Flocalhost%3A41%2Fcb";
        assert_eq!(likeness(code, again), Likeness::OAuth);
        assert_eq!(likeness(code, &again.replace("cb", "other")), Likeness::Differs);
        assert_eq!(likeness(code, &again.replace("authorization_code", "refresh_token")), Likeness::Differs);
        assert_eq!(likeness("code=a&x=1", "code=b&x=1"), Likeness::Differs);
        let register = r#"{"client_name":"me","redirect_uris":["http://127.0.0.1:3000/cb"]}"#;
        assert_eq!(likeness(register, &register.replace("3000", "9")), Likeness::OAuth);
        assert_eq!(likeness(register, &register.replace("me", "you")), Likeness::Differs);
    }
}
