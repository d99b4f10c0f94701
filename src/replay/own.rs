//! What we answer without a recording, and what may go unplayed or be played again.
//!
//! Such traffic comes from SDKs, not from the application under test: caches, lookups and probes decide how often
//! it happens. It is counted, and never a miss.

pub(super) use crate::wire::revision::capability::of_client as client_capability;
use crate::wire::{revision::capability, scan};

/// How a request without a recorded answer is answered all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OwnAnswer {
    /// `{}`
    Empty,
    /// -32601: this server does not know the method.
    MethodNotFound,
}

/// What a recorded server said it can do.
#[derive(Clone, Debug, Default)]
pub(super) struct Declared {
    /// The capabilities object, raw; none where no handshake was recorded.
    pub capabilities: Option<Vec<u8>>,
    /// The negotiated revision.
    pub protocol: String,
}

impl Declared {
    /// Whether the capability was declared; true where that is not known.
    pub(super) fn has(&self, capability: &str) -> bool {
        self.capabilities.as_ref().is_none_or(|object| scan::member(object, 0, capability).is_some())
    }
}

/// The answer to a request nothing recorded equals, if it is one of those we give ourselves.
pub(super) fn answer(
    method: &str,
    modern: bool,
    declared: &Declared,
    legacy_recording: bool,
) -> Option<OwnAnswer> {
    match method {
        "ping" => return Some(OwnAnswer::Empty),
        "server/discover" if legacy_recording => return Some(OwnAnswer::MethodNotFound),
        "logging/setLevel" if declared.capabilities.is_some() && declared.has("logging") => {
            return Some(OwnAnswer::Empty);
        }
        _ => {}
    }
    let capability = capability::of_server(method)?;
    if !capability::is_declared_in(capability, &declared.protocol) {
        return None;
    }
    (!modern && !declared.has(capability)).then_some(OwnAnswer::MethodNotFound)
}

/// Whether exchanges of this method may stay unplayed, and be played again, under `--strict` too: caches ask for them,
/// and clocks.
pub(super) fn may_be_left_over(method: &str) -> bool {
    matches!(method, "server/discover" | "ping" | "resources/templates/list") || method.ends_with("/list")
}

/// Whether clients look there by themselves, when and as often as they like: for metadata of an authorization in several
/// places one after the other (specification 2025-11-25, basic/authorization), and browsers for an icon.
pub(crate) fn is_lookup(path: &str) -> bool {
    path.contains("/.well-known/") || path == "/favicon.ico"
}

/// Whether a repeat of this method is worth no word.
pub(super) fn repeats_silently(method: &str) -> bool {
    may_be_left_over(method) || matches!(method, "resources/read" | "tasks/get" | "tasks/result")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declared(capabilities: &str, protocol: &str) -> Declared {
        Declared { capabilities: Some(capabilities.into()), protocol: protocol.into() }
    }

    #[test]
    fn what_the_recorded_server_did_not_declare_it_does_not_know() {
        let tools = declared(r#"{"tools":{}}"#, "2025-11-25");
        assert_eq!(answer("prompts/list", false, &tools, true), Some(OwnAnswer::MethodNotFound));
        assert_eq!(answer("tools/call", false, &tools, true), None);
        assert_eq!(answer("x/unknown", false, &tools, true), None);
        assert_eq!(answer("prompts/list", false, &Declared::default(), true), None);
    }

    #[test]
    fn probes_and_pings_are_answered() {
        let none = Declared::default();
        assert_eq!(answer("ping", false, &none, true), Some(OwnAnswer::Empty));
        assert_eq!(answer("server/discover", true, &none, true), Some(OwnAnswer::MethodNotFound));
        assert_eq!(answer("server/discover", true, &none, false), None);
    }

    #[test]
    fn lookups_are_told_from_documents() {
        let lookups = [
            "/.well-known/oauth-protected-resource",
            "/.well-known/oauth-authorization-server/mcp",
            "/tenant/.well-known/openid-configuration",
            "/favicon.ico",
        ];
        assert!(lookups.into_iter().all(is_lookup));
        assert!(!["/", "/mcp", "/well-known/x", "/.well-known", "/a/favicon.ico"].into_iter().any(is_lookup));
    }

    #[test]
    fn log_levels_are_taken_where_logging_was_declared() {
        assert_eq!(
            answer("logging/setLevel", false, &declared(r#"{"logging":{}}"#, "2025-11-25"), true),
            Some(OwnAnswer::Empty)
        );
        assert_eq!(
            answer("logging/setLevel", false, &declared("{}", "2025-11-25"), true),
            Some(OwnAnswer::MethodNotFound)
        );
    }

    #[test]
    fn completion_was_no_capability_at_first() {
        assert_eq!(answer("completion/complete", false, &declared("{}", "2024-11-05"), true), None);
        assert_eq!(
            answer("completion/complete", false, &declared("{}", "2025-06-18"), true),
            Some(OwnAnswer::MethodNotFound)
        );
    }
}
