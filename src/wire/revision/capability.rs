//! Which capability a method needs (specification 2025-11-25, basic/lifecycle).

/// The server capability that a client's method needs.
pub fn of_server(method: &str) -> Option<&'static str> {
    let capability = match method.split_once('/')?.0 {
        "tools" => "tools",
        "prompts" => "prompts",
        "resources" => "resources",
        "completion" => "completions",
        "logging" => "logging",
        "tasks" => "tasks",
        _ => return None,
    };
    Some(capability)
}

/// Whether a capability has to be declared in this revision: completion became one with 2025-03-26; before that a
/// server just had it.
pub fn is_declared_in(capability: &str, revision: &str) -> bool {
    capability != "completions" || super::revision(revision).name >= "2025-03-26"
}

/// The client capability that a server's request needs; none for `ping`.
pub fn of_client(method: &str) -> Option<&'static str> {
    match method {
        "roots/list" => Some("roots"),
        "sampling/createMessage" => Some("sampling"),
        "elicitation/create" => Some("elicitation"),
        _ => None,
    }
}
