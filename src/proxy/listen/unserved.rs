//! What came to the front and was for none of its servers: what is missed by that, and what is only told.

use std::sync::Mutex;

use super::super::{lock, refusals::Refusals};
use crate::{
    redact::{self, Redactor},
    replay,
    report::{Miss, Report},
    wire::http::path_of,
};

/// So many processes are told of that could not join.
const MOST_NOT_JOINED: usize = 1_000;

/// So many different requests are told of that were for no server.
const MOST_MISSES: usize = 1_000;

/// What came and was not served.
#[derive(Debug)]
pub(super) struct Unserved {
    /// Why processes could not join.
    not_joined: Mutex<Vec<String>>,
    /// Requests that no server was asked, and one had to be.
    misses: Mutex<Vec<Miss>>,
    /// Requests of whoever may be a stranger.
    refused: Refusals,
    /// What is hidden in all that.
    rules: redact::Rules,
}

impl Default for Unserved {
    fn default() -> Self {
        let rules = redact::Rules::new(&redact::Options::default()).expect("the built-in rules are in order");
        Self { not_joined: Mutex::default(), misses: Mutex::default(), refused: Refusals::default(), rules }
    }
}

impl Unserved {
    /// A process could not join.
    pub(super) fn could_not_join(&self, why: String) {
        let mut told = lock(&self.not_joined);
        if told.len() < MOST_NOT_JOINED {
            told.push(why);
        }
    }

    /// A request is for none of the servers: a miss, unless clients look there by themselves.
    pub(super) fn went_astray(&self, method: &str, target: &str, why: &str) {
        if method == "HEAD" || method == "GET" && replay::is_lookup(path_of(target)) {
            return;
        }
        self.miss(method, target, |line| format!("tapedeck: `{line}` is for no server of this run: {why}"));
    }

    /// The body of a request has more than `limit` bytes, so that nobody knows what it asks; the sentence for its client.
    pub(super) fn was_too_long(&self, method: &str, target: &str, limit: usize) -> String {
        self.miss(method, target, |line| {
            format!(
                "tapedeck: `{line}` came with a body of more than {limit} bytes, which is not read; replay with a \
                 larger --max-message"
            )
        })
    }

    fn miss(&self, method: &str, target: &str, sentence: impl FnOnce(&str) -> String) -> String {
        let line = format!("{method} {}", Redactor::new(&self.rules).url(path_of(target)));
        let message = sentence(&line);
        let mut misses = lock(&self.misses);
        let is_full = misses.len() >= MOST_MISSES;
        match misses.iter_mut().rev().find(|known| is_full || known.message == message) {
            Some(known) => known.count += 1,
            None => misses.push(Miss::of_line(line, message.clone())),
        }
        message
    }

    /// A request was refused for this reason, before anybody looked what it asks.
    pub(super) fn was_refused(&self, why: &str) {
        self.refused.add(why);
    }

    /// Tells it all.
    pub(super) fn add_to(&self, report: &mut Report) {
        lock(&self.not_joined).iter().for_each(|why| report.could_not_join(why.clone()));
        report.misses.extend(lock(&self.misses).iter().cloned());
        report.refused.extend(self.refused.told());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Refused;

    #[test]
    fn what_is_too_long_or_for_no_server_is_missed_and_what_clients_look_for_is_not() {
        let unserved = Unserved::default();
        unserved.went_astray("GET", "/favicon.ico", "none");
        unserved.went_astray("HEAD", "/x", "none");
        unserved.went_astray("POST", "/x/mcp?token=abc", "none");
        unserved.was_refused("no host\n");
        let told = unserved.was_too_long("POST", "/mcp", 1024);
        assert_eq!(unserved.was_too_long("POST", "/mcp", 1024), told);
        let mut report = Report::open("c.json");
        unserved.add_to(&mut report);
        let found: Vec<_> = report.misses.iter().map(|miss| (&*miss.method, miss.count)).collect();
        assert_eq!(found, [("POST /x/mcp", 1), ("POST /mcp", 2)]);
        assert!(told.contains("more than 1024 bytes") && told.contains("--max-message"), "{told}");
        assert!(report.is_bad());
        assert_eq!(report.refused, [Refused { why: "no host".to_owned(), count: 1 }]);
    }
}
