//! What became of each message of a client: one line of an event log each.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// What became of one request or notification of a client.
///
/// It is complete once its outcome is known, so a log holds events in the order of their outcomes; `seq` gives that of
/// their arrival.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Event {
    /// Its number in the order of arrival, from 1; all takes of a run share the numbers.
    pub seq: u64,
    /// When it came: milliseconds from the beginning of the run, on its clock.
    pub at_ms: u64,
    /// The server it came for, where a cassette is played.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub server: Option<String>,
    /// Its take, where it is not the default one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub take: Option<String>,
    /// Which of the take's live sessions, from 1 in the order in which they began; none for what has none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub session: Option<u64>,
    /// 0 on stdio; over HTTP the number of the HTTP request that carried it, in its take.
    pub lane: u32,
    /// Its method.
    pub method: String,
    /// What it was about: tool, prompt or URI.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub name: Option<String>,
    /// The recorded exchange it was answered from, or that a fault kept from it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub key: Option<String>,
    /// Its id, as it stood in it; none for a notification.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub request_id: Option<Box<RawValue>>,
    /// The first of: header `x-correlation-id`, header `x-request-id`, the trace id of header `traceparent`, that of
    /// `traceparent` in its `_meta`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub correlation_id: Option<String>,
    /// What became of it.
    pub outcome: Outcome,
    /// The fault that acted on it: the one that ended the matter, else the first.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub fault: Option<String>,
    /// Milliseconds until its answer; none where none came.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub duration_ms: Option<u64>,
}

/// What became of a message, in one word.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// A recorded result.
    Answered,
    /// A recorded error, of JSON-RPC or of HTTP.
    Error,
    /// The error that tells of a miss.
    Miss,
    /// A fault spoke in the server's place, or damaged or lost what it said. One that only delays or adds leaves the
    /// outcome as it is.
    Fault,
    /// An answer of tapedeck's own, as to a `ping` that was not recorded.
    SelfAnswered,
    /// None, up to the end of the response or of the replay.
    Unanswered,
    /// None: the client cancelled it.
    Cancelled,
    /// A notification, which has no answer.
    Accepted,
    /// The real server's answer, or why there is none.
    PassedOn,
}

impl Outcome {
    /// All there are.
    pub const ALL: [Self; 9] = [
        Self::Answered,
        Self::Error,
        Self::Miss,
        Self::Fault,
        Self::SelfAnswered,
        Self::Unanswered,
        Self::Cancelled,
        Self::Accepted,
        Self::PassedOn,
    ];

    /// Its word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Error => "error",
            Self::Miss => "miss",
            Self::Fault => "fault",
            Self::SelfAnswered => "self_answered",
            Self::Unanswered => "unanswered",
            Self::Cancelled => "cancelled",
            Self::Accepted => "accepted",
            Self::PassedOn => "passed_on",
        }
    }
}

/// Which events are wanted; what is not named fits all.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// The server's name.
    pub server: Option<String>,
    /// The method.
    pub method: Option<String>,
    /// The recorded exchange.
    pub key: Option<String>,
    /// The id: as JSON, or the text of a string.
    pub request_id: Option<String>,
    /// The correlation id.
    pub correlation_id: Option<String>,
    /// What became of it.
    pub outcome: Option<Outcome>,
    /// Only the last so many of those that fit.
    pub limit: Option<usize>,
}

impl Filter {
    /// What can be named.
    pub const NAMES: [&str; 7] =
        ["server", "method", "key", "request_id", "correlation_id", "outcome", "limit"];

    /// Names one more thing that is wanted.
    ///
    /// # Errors
    /// When there is no such thing to name, or no such value, with what there is.
    pub fn set(&mut self, name: &str, value: String) -> Result<(), String> {
        match name {
            "server" => self.server = Some(value),
            "method" => self.method = Some(value),
            "key" => self.key = Some(value),
            "request_id" => self.request_id = Some(value),
            "correlation_id" => self.correlation_id = Some(value),
            "outcome" => {
                let found = Outcome::ALL.into_iter().find(|outcome| outcome.name() == value);
                let names = || Outcome::ALL.map(Outcome::name).join(", ");
                self.outcome = Some(
                    found.ok_or_else(|| format!("no outcome is called `{value}`; there are {}", names()))?,
                );
            }
            "limit" => {
                let limit = value.parse();
                self.limit =
                    Some(limit.map_err(|_| format!("`limit` is a number from 0, and not `{value}`"))?);
            }
            _ => return Err(format!("no filter is called `{name}`; there are {}", Self::NAMES.join(", "))),
        }
        Ok(())
    }

    /// The last of those that fit, as many as are wanted.
    pub fn last<'a, T>(&self, fitting: &'a [T]) -> &'a [T] {
        &fitting[fitting.len() - self.limit.unwrap_or(usize::MAX).min(fitting.len())..]
    }

    /// Whether an event is one of those.
    pub fn fits(&self, event: &Event) -> bool {
        let is = |wanted: &Option<String>, found: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| found == Some(wanted))
        };
        let is_id = |wanted: &String| {
            let id = event.request_id.as_ref().map(|id| id.get());
            id.is_some_and(|id| id == wanted || (id.starts_with('"') && text(id) == **wanted))
        };
        is(&self.server, event.server.as_deref())
            && is(&self.method, Some(&event.method))
            && is(&self.key, event.key.as_deref())
            && is(&self.correlation_id, event.correlation_id.as_deref())
            && self.request_id.as_ref().is_none_or(is_id)
            && self.outcome.is_none_or(|outcome| outcome == event.outcome)
    }
}

fn text(raw: &str) -> std::borrow::Cow<'_, str> {
    crate::wire::jsonrpc::text(raw.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_found_as_json_and_as_text() {
        let event = |id: &str| -> Event {
            let line = format!(
                r#"{{"seq":1,"at_ms":0,"lane":0,"method":"ping","request_id":{id},"outcome":"self_answered"}}"#
            );
            serde_json::from_str(&line).expect("an event")
        };
        let finds = |wanted: &str, id: &str| {
            Filter { request_id: Some(wanted.to_owned()), ..Filter::default() }.fits(&event(id))
        };
        assert!(finds("7", "7") && finds("\"7\"", "\"7\"") && finds("7", "\"7\""));
        assert!(!finds("\"7\"", "7") && !finds("8", "7") && finds("ä", "\"\\u00e4\""));
    }

    #[test]
    fn what_several_filters_name_has_to_fit_all_of_them() {
        let line = r#"{"seq":1,"at_ms":0,"server":"backup","lane":3,"method":"tools/call","key":"tools/call a @1","request_id":1,"correlation_id":"c","outcome":"fault"}"#;
        let event: Event = serde_json::from_str(line).expect("an event");
        let filter = Filter {
            server: Some("backup".to_owned()),
            method: Some("tools/call".to_owned()),
            key: Some("tools/call a @1".to_owned()),
            request_id: Some("1".to_owned()),
            correlation_id: Some("c".to_owned()),
            outcome: Some(Outcome::Fault),
            limit: None,
        };
        assert!(filter.fits(&event) && Filter::default().fits(&event));
        for other in [
            Filter { server: Some("primary".to_owned()), ..filter.clone() },
            Filter { method: Some("ping".to_owned()), ..filter.clone() },
            Filter { key: Some("tools/call a @2".to_owned()), ..filter.clone() },
            Filter { request_id: Some("2".to_owned()), ..filter.clone() },
            Filter { correlation_id: Some("d".to_owned()), ..filter.clone() },
            Filter { outcome: Some(Outcome::Error), ..filter.clone() },
        ] {
            assert!(!other.fits(&event), "{other:?}");
        }
    }

    #[test]
    fn outcomes_are_written_by_their_words() {
        for outcome in Outcome::ALL {
            assert_eq!(serde_json::to_string(&outcome).expect("a word"), format!("\"{}\"", outcome.name()));
        }
    }
}
