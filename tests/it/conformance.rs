//! The official conformance suite of MCP, through us: each of its checks says the same of a server of ours directly,
//! through a recorder, and of the replay of that recording; and of a client of ours directly and through a recorder.
//!
//! A check is compared with all that the suite says of it, such as the results it got and the headers it saw.

mod checks;
mod client;
mod server;
mod suite;

/// What the suite itself does not do as it asks of others, by the rules of `lint`: some of its requests name the revision
/// 2025-03-26 in a session of a later one, and one of its servers declares no tools and has them.
const KNOWN: &[&str] = &["version-header", "server-capability"];

macro_rules! groups {
    ($side:ident: $($group:ident: $($scenario:literal)*;)*) => {
        mod $side {
            $(#[test]
            fn $group() {
                super::super::$side::check(&[$($scenario),*]);
            })*

            /// Every scenario of the suite is in a group.
            #[test]
            fn none_is_left_out() {
                super::super::suite::assert_scenarios(stringify!($side), &[$($($scenario),*),*]);
            }
        }
    };
}

/// All scenarios of a server as the sessions of one recording.
#[test]
fn many_sessions_in_one_recording() {
    server::check_all();
}

mod scenarios {
    groups! {
        server:
        lifecycle: "server-initialize" "ping" "logging-set-level" "completion-complete" "dns-rebinding-protection";
        tools: "tools-list" "tools-call-simple-text" "tools-call-image" "tools-call-audio"
            "tools-call-embedded-resource" "tools-call-mixed-content" "tools-call-error" "json-schema-2020-12";
        dialogues: "tools-call-with-logging" "tools-call-with-progress" "tools-call-sampling" "tools-call-elicitation"
            "elicitation-sep1034-defaults" "elicitation-sep1330-enums";
        streams: "server-sse-polling" "server-sse-multiple-streams";
        resources: "resources-list" "resources-read-text" "resources-read-binary" "resources-templates-read"
            "resources-subscribe" "resources-unsubscribe";
        prompts: "prompts-list" "prompts-get-simple" "prompts-get-with-args" "prompts-get-embedded-resource"
            "prompts-get-with-image";
    }

    groups! {
        client:
        core: "initialize" "tools_call" "elicitation-sep1034-client-defaults" "sse-retry";
        login_metadata: "auth/metadata-default" "auth/metadata-var1" "auth/metadata-var2" "auth/metadata-var3"
            "auth/2025-03-26-oauth-metadata-backcompat" "auth/2025-03-26-oauth-endpoint-fallback";
        login_scopes: "auth/scope-from-www-authenticate" "auth/scope-from-scopes-supported"
            "auth/scope-omitted-when-undefined" "auth/scope-step-up" "auth/scope-retry-limit"
            "auth/offline-access-scope" "auth/offline-access-not-supported";
        login_clients: "auth/basic-cimd" "auth/pre-registration" "auth/token-endpoint-auth-basic"
            "auth/token-endpoint-auth-post" "auth/token-endpoint-auth-none" "auth/client-credentials-jwt"
            "auth/client-credentials-basic";
        login_resources: "auth/resource-mismatch" "auth/cross-app-access-complete-flow";
    }
}
