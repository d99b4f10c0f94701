//! The methods that the revisions know (the `schema.ts` of each; the tasks extension, SEP-2663).
//!
//! The list is for telling people of slips. Nothing is refused, recorded or replayed by it: a method that it lacks is
//! as good as any other.

/// Who sends a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// The client.
    Client,
    /// The server.
    Server,
    /// Either.
    Both,
}

impl Sender {
    /// Whether this side may send it.
    pub const fn is(self, from_client: bool) -> bool {
        match self {
            Self::Both => true,
            Self::Client => from_client,
            Self::Server => !from_client,
        }
    }
}

/// One method, and who sends it when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Method {
    /// Its name.
    pub name: &'static str,
    /// Who sends it.
    pub sender: Sender,
    /// The first revision that has it.
    pub since: &'static str,
    /// The first revision that has it no longer.
    pub until: Option<&'static str>,
}

impl Method {
    /// Whether it is a notification: those say so in their names.
    pub fn is_notification(&self) -> bool {
        self.name.starts_with("notifications/")
    }

    /// Whether a revision has it.
    pub fn is_in(&self, revision: &str) -> bool {
        self.since <= revision && self.until.is_none_or(|until| revision < until)
    }
}

const fn method(
    name: &'static str,
    sender: Sender,
    since: &'static str,
    until: Option<&'static str>,
) -> Method {
    Method { name, sender, since, until }
}

use Sender::{Both, Client, Server};

const FIRST: &str = "2024-11-05";
const ELICITATION: &str = "2025-06-18";
const TASKS: &str = "2025-11-25";
const MODERN: &str = "2026-07-28";

/// Every method.
pub const METHODS: &[Method] = &[
    method("initialize", Client, FIRST, Some(MODERN)),
    method("notifications/initialized", Client, FIRST, Some(MODERN)),
    method("ping", Both, FIRST, Some(MODERN)),
    method("server/discover", Client, MODERN, None),
    method("tools/list", Client, FIRST, None),
    method("tools/call", Client, FIRST, None),
    method("prompts/list", Client, FIRST, None),
    method("prompts/get", Client, FIRST, None),
    method("resources/list", Client, FIRST, None),
    method("resources/templates/list", Client, FIRST, None),
    method("resources/read", Client, FIRST, None),
    method("resources/subscribe", Client, FIRST, Some(MODERN)),
    method("resources/unsubscribe", Client, FIRST, Some(MODERN)),
    method("subscriptions/listen", Client, MODERN, None),
    method("completion/complete", Client, FIRST, None),
    method("logging/setLevel", Client, FIRST, Some(MODERN)),
    method("roots/list", Server, FIRST, Some(MODERN)),
    method("sampling/createMessage", Server, FIRST, Some(MODERN)),
    method("elicitation/create", Server, ELICITATION, Some(MODERN)),
    method("tasks/get", Both, TASKS, None),
    method("tasks/cancel", Both, TASKS, None),
    method("tasks/result", Both, TASKS, Some(MODERN)),
    method("tasks/list", Both, TASKS, Some(MODERN)),
    method("tasks/update", Client, MODERN, None),
    method("notifications/cancelled", Both, FIRST, None),
    method("notifications/progress", Both, FIRST, None),
    method("notifications/message", Server, FIRST, None),
    method("notifications/tools/list_changed", Server, FIRST, None),
    method("notifications/prompts/list_changed", Server, FIRST, None),
    method("notifications/resources/list_changed", Server, FIRST, None),
    method("notifications/resources/updated", Server, FIRST, None),
    method("notifications/roots/list_changed", Client, FIRST, Some(MODERN)),
    method("notifications/elicitation/complete", Server, TASKS, Some(MODERN)),
    method("notifications/tasks/status", Both, TASKS, Some(MODERN)),
    method("notifications/tasks", Server, MODERN, None),
    method("notifications/subscriptions/acknowledged", Server, MODERN, None),
];

/// The method of this name.
pub fn find(name: &str) -> Option<&'static Method> {
    METHODS.iter().find(|method| method.name == name)
}

#[cfg(test)]
mod tests {
    use super::super::REVISIONS;
    use super::*;

    #[test]
    fn every_method_stands_once_and_belongs_to_a_revision() {
        for (at, method) in METHODS.iter().enumerate() {
            assert_eq!(METHODS.iter().position(|other| other.name == method.name), Some(at));
            assert!(REVISIONS.iter().any(|row| method.is_in(row.name)), "{method:?}");
        }
    }
}
