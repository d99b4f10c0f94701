//! What the whole of redaction does to messages.

mod cookies;
mod disguise;
mod exactly;
mod fields;
mod files;
mod flags;
mod foreign;
mod forms;
mod known;
mod looks;
mod messages;
mod met;
mod names;
mod numbers;
mod oauth;
mod options;
mod ordinary;
mod parts;
mod prose;
mod settings;
mod shells;
mod spellings;
mod sql;
mod stays;

use super::{Options, Redactor, Rules};
use crate::traffic::Direction::{ToClient, ToServer};

fn redactor(options: Options) -> Redactor {
    Redactor::new(&Rules::new(&options).unwrap())
}

fn plain() -> Redactor {
    Redactor::new(&Rules::default())
}

fn env(value: &str) -> Options {
    Options { env: vec![("SECRET".into(), value.into())], ..Options::default() }
}

/// What one message becomes.
fn redact(redactor: &mut Redactor, message: &str) -> String {
    String::from_utf8(redactor.message(ToClient, message.as_bytes()).into_owned()).unwrap()
}

/// Each pair is a message and what it becomes; all in one session.
fn session(redactor: &mut Redactor, messages: &[(&str, &str)]) {
    for (message, expected) in messages {
        assert_eq!(redact(redactor, message), *expected, "{message}");
    }
}
