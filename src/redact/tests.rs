//! What the whole of redaction does to messages.

use std::borrow::Cow;

mod cookies;
mod disguise;
mod flags;
mod foreign;
mod forms;
mod looks;
mod met;
mod numbers;
mod oauth;
mod parts;
mod settings;
mod shells;
mod spellings;
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

#[test]
fn values_under_secret_names_are_replaced_and_nothing_else_changes() {
    session(
        &mut plain(),
        &[
            (
                r#"{ "jsonrpc":"2.0","params" : {"b":1.0,"apiKey" :  "k1","a":"\u00e9"}}"#,
                r#"{ "jsonrpc":"2.0","params" : {"b":1.0,"apiKey" :  "<redacted:api-key-1>","a":"\u00e9"}}"#,
            ),
            (
                r#"{"password":"p1","token":"t1"}"#,
                r#"{"password":"<redacted:password-1>","token":"<redacted:token-1>"}"#,
            ),
            (
                r#"{"token":"t2","token":"t1"}"#,
                r#"{"token":"<redacted:token-2>","token":"<redacted:token-1>"}"#,
            ),
            (r#"{"pass\u0077ord":"p\"1"}"#, r#"{"pass\u0077ord":"<redacted:password-2>"}"#),
            (r#"{"token":"\u0074\u0031"}"#, r#"{"token":"<redacted:token-1>"}"#),
        ],
    );
}

#[test]
fn json_in_strings_is_read_at_any_level() {
    session(
        &mut plain(),
        &[
            (
                r#"{"text":"{\"password\":\"x\\\"y\",\"n\":1}"}"#,
                r#"{"text":"{\"password\":\"<redacted:password-1>\",\"n\":1}"}"#,
            ),
            (
                r#"{"text":"{\u0022password\u0022: \u0022x\\\u0022y\u0022}"}"#,
                r#"{"text":"{\u0022password\u0022: \u0022<redacted:password-1>\u0022}"}"#,
            ),
            (
                r#"{"text":"Result: {\"deep\": \"{\\\"token\\\":\\\"abc\\\"}\"}"}"#,
                r#"{"text":"Result: {\"deep\": \"{\\\"token\\\":\\\"<redacted:token-1>\\\"}\"}"}"#,
            ),
            (
                r#"{"text":"{\"deep\": \"{\\\"token\\\":\\\"abc\\\"}\"}"}"#,
                r#"{"text":"{\"deep\": \"{\\\"token\\\":\\\"<redacted:token-1>\\\"}\"}"}"#,
            ),
        ],
    );
}

#[test]
fn a_value_found_once_is_removed_in_every_form_later() {
    session(
        &mut plain(),
        &[
            (r#"{"secret":"hunter2/hunter2"}"#, r#"{"secret":"<redacted:secret-1>"}"#),
            (r#"{"a":"is hunter2/hunter2."}"#, r#"{"a":"is <redacted:secret-1>."}"#),
            (r#"{"a":"is hunter2\/hunter2."}"#, r#"{"a":"is <redacted:secret-1>."}"#),
            (r#"{"a":"is hunter2\u002fhunter2."}"#, r#"{"a":"is <redacted:secret-1>."}"#),
            (r#"{"a":"hunter2%2Fhunter2"}"#, r#"{"a":"<redacted:secret-1>"}"#),
            (r#"{"a":"68756e746572322f68756e74657232"}"#, r#"{"a":"<redacted:secret-1>"}"#),
            (r#"{"a":"aHVudGVyMi9odW50ZXIy"}"#, r#"{"a":"<redacted:secret-1>"}"#),
            (r#"{"a":"IGh1bnRlcjIvaHVudGVyMg=="}"#, r#"{"a":"IG<redacted:secret-1>g=="}"#),
            (r#"{"hunter2/hunter2":1}"#, r#"{"<redacted:secret-1>":1}"#),
            ("log: hunter2/hunter2", "log: <redacted:secret-1>"),
        ],
    );
}

#[test]
fn escapes_inside_encoded_forms_hide_nothing() {
    // Base64 of `>>>hunter2?~~>?`: `Pj4+aHVudGVyMj9+fj4/`.
    session(
        &mut redactor(env(">>>hunter2?~~>?")),
        &[
            (r#"["Pj4+aHVudGVyMj9+fj4/"]"#, r#"["<redacted:env-1>"]"#),
            (r#"["Pj4+aHVudGVyMj9+fj4\/"]"#, r#"["<redacted:env-1>"]"#),
            (r#"["Pj4\u002BaHVudGVyMj9\u002Bfj4\/"]"#, r#"["<redacted:env-1>"]"#),
            (r#"["Pj4-aHVudGVyMj9-fj4_"]"#, r#"["<redacted:env-1>"]"#),
        ],
    );
}

#[test]
fn placeholders_that_come_back_in_replay_get_numbers_of_the_session() {
    let mut redactor = Redactor::for_replay(&Rules::default());
    session(
        &mut redactor,
        &[
            (r#"{"token":"live"}"#, r#"{"token":"<redacted:token-1>"}"#),
            (
                r#"{"t":"<redacted:token-1> <redacted:jwt-7>"}"#,
                r#"{"t":"<redacted:token-2> <redacted:jwt-1>"}"#,
            ),
            (
                r#"{"t":"<redacted:token-1>","token":"live"}"#,
                r#"{"t":"<redacted:token-2>","token":"<redacted:token-1>"}"#,
            ),
            // As clients spell them that escape for HTML, or put them into an address.
            (r#"{"token":"\u003credacted:token-1\u003e"}"#, r#"{"token":"<redacted:token-2>"}"#),
            (
                r#"{"u":"https://h/?token=%3Credacted%3Atoken-1%3E"}"#,
                r#"{"u":"https://h/?token=<redacted:token-2>"}"#,
            ),
        ],
    );
    for (target, expected) in [
        ("/x?api_key=%3Credacted%3Atoken-1%3E", "/x?api_key=<redacted:token-2>"),
        ("/x?token=<redacted:token-1>", "/x?token=<redacted:token-2>"),
        ("/x?token=live", "/x?token=<redacted:token-1>"),
    ] {
        assert_eq!(redactor.url(target), expected);
        assert_eq!(redactor.header_value("location", target), expected);
    }
    assert_eq!(redactor.header_value("x-api-key", "<redacted:token-1>"), "<redacted:token-2>");
    let basic = "Basic YTo8cmVkYWN0ZWQ6dG9rZW4tMj4=";
    assert_eq!(redactor.header_value("authorization", basic), "Basic <redacted:authorization-1>");
    assert_eq!(redactor.text("<redacted:token-1>"), "<redacted:token-2>");
}

#[test]
fn values_of_the_environment_are_removed_from_the_start() {
    session(
        &mut redactor(env("12345678")),
        &[
            (
                r#"{"a":"x12345678y","b":12345678,"c":123456789}"#,
                r#"{"a":"x<redacted:env-1>y","b":"<redacted:env-1>","c":123456789}"#,
            ),
            (r#"{"text":"{\"n\":12345678}"}"#, r#"{"text":"{\"n\":\"<redacted:env-1>\"}"}"#),
            (
                r#"{"jsonrpc":"2.0","id":12345678,"method":"12345678"}"#,
                r#"{"jsonrpc":"2.0","id":12345678,"method":"12345678"}"#,
            ),
        ],
    );
    session(
        &mut redactor(env(r#"pa"ss\w rd"#)),
        &[
            (r#"{"a":"pa\"ss\\w rd"}"#, r#"{"a":"<redacted:env-1>"}"#),
            (r#"{"a":"[\"pa\\\"ss\\\\w rd\"]"}"#, r#"{"a":"[\"<redacted:env-1>\"]"}"#),
            (r#"{"a":"pa%22ss%5Cw%20rd"}"#, r#"{"a":"<redacted:env-1>"}"#),
            // Never across tokens.
            (r#"{"pa":"ss\\w rd"}"#, r#"{"pa":"ss\\w rd"}"#),
        ],
    );
}

#[test]
fn texts_that_only_look_like_json_are_texts() {
    session(
        &mut redactor(env("[1,2,3,\"4\"]")),
        &[
            (r#"{"a":"[1,2,3,\"4\"]","b":[1,2,3,"4"]}"#, r#"{"a":"<redacted:env-1>","b":[1,2,3,"4"]}"#),
            (r#"{"token":"hunter2hunter2"}"#, r#"{"token":"<redacted:token-1>"}"#),
            (
                r#"{"a":"[hunter2hunter2]","b":"[\n x\u0068unter2hunter2]"}"#,
                r#"{"a":"[<redacted:token-1>]","b":"[\n x<redacted:token-1>]"}"#,
            ),
            ("[hunter2hunter2]", "[<redacted:token-1>]"),
        ],
    );
}

#[test]
fn places_and_expressions_of_options_are_replaced() {
    let options = Options {
        redact: vec!["/params/arguments/*/pin".into(), "ACME-[0-9]+".into(), "user=(\\S+)".into()],
        ..Options::default()
    };
    session(
        &mut redactor(options),
        &[
            (
                r#"{"params":{"arguments":[{"pin":1234,"pan":1234},{"pin":["a\n",true]}]}}"#,
                r#"{"params":{"arguments":[{"pin":"<redacted:place-1>","pan":1234},{"pin":["<redacted:place-2>",true]}]}}"#,
            ),
            (
                r#"{"a":"ACME-12 of \"user=bob\"","b":"[\"ACME-13\"]"}"#,
                r#"{"a":"<redacted:pattern-1> of \"user=<redacted:pattern-2>","b":"[\"<redacted:pattern-3>\"]"}"#,
            ),
        ],
    );
}

#[test]
fn kept_places_stay_and_teach_nothing() {
    let options = Options { keep: vec!["/params/arguments/token".into()], ..env("from-the-env") };
    session(
        &mut redactor(options),
        &[
            (
                r#"{"params":{"arguments":{"token":"dummy-token"}}}"#,
                r#"{"params":{"arguments":{"token":"dummy-token"}}}"#,
            ),
            (
                r#"{"params":{"token":"other-token","a":"dummy-token"}}"#,
                r#"{"params":{"token":"<redacted:token-1>","a":"dummy-token"}}"#,
            ),
            (
                r#"{"params":{"arguments":{"token":"from-the-env"}}}"#,
                r#"{"params":{"arguments":{"token":"<redacted:token-2>"}}}"#,
            ),
        ],
    );
}

#[test]
fn off_means_off() {
    let message = br#"{"password":"hunter2hunter2"}"#;
    let mut redactor = redactor(Options { redact: vec!["off".into()], ..Options::default() });
    assert!(matches!(redactor.message(ToServer, message), Cow::Borrowed(_)));
    assert_eq!(redactor.header_value("authorization", "Bearer abc"), "Bearer abc");
    assert_eq!(redactor.url("/?token=abc"), "/?token=abc");
}

#[test]
fn names_given_by_members_and_structures_below_names_count() {
    session(
        &mut plain(),
        &[
            (
                r#"[{"name":"API_KEY","value":"v1"},{"value":"v2","name":"plain"},{"value":"v3","name":"API_KEY"}]"#,
                r#"[{"name":"API_KEY","value":"<redacted:api-key-1>"},{"value":"v2","name":"plain"},{"value":"<redacted:api-key-2>","name":"API_KEY"}]"#,
            ),
            (
                r#"{"credentials":{"user":"bob","pin":[7,"x"]},"tokens":["a"],"secrets":["b"]}"#,
                r#"{"credentials":{"user":"<redacted:credential-1>","pin":[7,"<redacted:credential-2>"]},"tokens":["a"],"secrets":["<redacted:secret-1>"]}"#,
            ),
            (
                r#"{"headers":{"Authorization":"Bearer abc","Cookie":"sid=s1; theme=dark"}}"#,
                r#"{"headers":{"Authorization":"Bearer <redacted:authorization-1>","Cookie":"sid=<redacted:cookie-1>; theme=<redacted:cookie-2>"}}"#,
            ),
        ],
    );
}

#[test]
fn a_value_that_is_a_word_is_no_members_name() {
    let sent = vec![("X-Company".to_owned(), b"company".to_vec())];
    let mut redactor = redactor(Options { sent, ..Options::default() });
    session(
        &mut redactor,
        &[
            (
                r#"{"company":"company","company_id":1,"a":{"company":["my company"]}}"#,
                r#"{"company":"<redacted:env-1>","company_id":1,"a":{"company":["my <redacted:env-1>"]}}"#,
            ),
            (r#"{"text":"{\"company\": \"company\"}"}"#, r#"{"text":"{\"company\": \"<redacted:env-1>\"}"}"#),
        ],
    );
    // What looks like a secret is none of these words.
    let mut redactor = plain();
    let _ = redactor.header_value("x-api-key", "c53-apikey-22bb");
    assert_eq!(redact(&mut redactor, r#"{"c53-apikey-22bb":1}"#), r#"{"<redacted:api-key-1>":1}"#);
}

#[test]
fn headers_and_addresses_teach_the_session() {
    let mut redactor = plain();
    assert_eq!(
        redactor.header_value("authorization", "Bearer c53-bearer-11aa"),
        "Bearer <redacted:authorization-1>"
    );
    assert_eq!(redactor.header_value("X-Api-Key", "c53-apikey-22bb"), "<redacted:api-key-1>");
    assert_eq!(
        redactor.header_value("Cookie", "sid=c53-cookie-33cc; theme=dark"),
        "sid=<redacted:cookie-1>; theme=<redacted:cookie-2>"
    );
    assert_eq!(
        redactor.header_value("Set-Cookie", "sid=c53-newcookie-66aa; HttpOnly; Path=/"),
        "sid=<redacted:cookie-3>; HttpOnly; Path=/"
    );
    assert_eq!(redactor.header_value("content-type", "text/plain"), "text/plain");
    assert_eq!(redactor.url("/mcp?api_key=c53-query-44dd&v=1"), "/mcp?api_key=<redacted:api-key-2>&v=1");
    assert_eq!(redactor.url("https://u:pw-1234@h/p"), "https://u:<redacted:url-password-1>@h/p");
    session(
        &mut redactor,
        &[(
            r#"{"text":"you sent Bearer c53-bearer-11aa, c53-apikey-22bb and sid=c53-cookie-33cc to /mcp?api_key=c53-query-44dd"}"#,
            r#"{"text":"you sent Bearer <redacted:authorization-1>, <redacted:api-key-1> and sid=<redacted:cookie-1> to /mcp?api_key=<redacted:api-key-2>"}"#,
        )],
    );
    // The password of Basic credentials is known by itself from then on.
    assert_eq!(
        redactor.header_value("Authorization", "Basic dXNlcjpodW50ZXIyaHVudGVyMg=="),
        "Basic <redacted:authorization-2>"
    );
    session(&mut redactor, &[(r#"["hunter2hunter2"]"#, r#"["<redacted:password-1>"]"#)]);
}

#[test]
fn what_was_replaced_is_counted_by_kind_and_place() {
    let mut redactor = plain();
    let call =
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{"apiKey":"key-number-1"}}}"#;
    redactor.message(ToServer, call.as_bytes());
    redactor.message(ToServer, call.as_bytes());
    redactor.message(ToClient, br#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"text":"key-number-1"}]}}"#);
    let counts: Vec<_> = redactor.counts().iter().map(|c| (&*c.kind, c.place.as_str(), c.times)).collect();
    assert_eq!(
        counts,
        [
            ("api-key", "tools/call /params/arguments/apiKey", 2),
            ("api-key", "server's answer /result/content/*/text", 1)
        ]
    );
}

#[test]
fn lines_that_are_no_json_are_redacted_too() {
    session(
        &mut plain(),
        &[
            (
                "[INFO] connecting to postgres://app:s3cr3t-pw@db/x",
                "[INFO] connecting to postgres://app:<redacted:url-password-1>@db/x",
            ),
            (
                r#"{"password":"x","n":NaN,"lone":"\ud83d"}"#,
                r#"{"password":"<redacted:password-1>","n":NaN,"lone":"\ud83d"}"#,
            ),
            (r#"{"password":"x",}"#, r#"{"password":"<redacted:password-1>",}"#),
            (r#"{"a":"b","password":"cut of"#, r#"{"a":"b","password":"<redacted:password-2>"#),
            ("GITHUB_TOKEN=ghp_012345678901234567890123456789012345", "GITHUB_TOKEN=<redacted:token-1>"),
        ],
    );
    let mut redactor = plain();
    let bytes = b"\xff{\"password\":\"a\xff\"}";
    assert_eq!(redactor.message(ToClient, bytes), &b"\xff{\"password\":\"<redacted:password-1>\"}"[..]);
}

/// Messages as the reference servers send them, and others that speak of secrets and hold none.
const ORDINARY: &[&str] = &[
    r#"{"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"sampling":{},"elicitation":{},"roots":{"listChanged":true}},"clientInfo":{"name":"claude-code","version":"2.0.1"}},"jsonrpc":"2.0","id":0}"#,
    r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"_meta":{"progressToken":"0d9f2f1c-7a3e-4f6b-9c0e-1a2b3c4d5e6f"},"name":"longRunningOperation","arguments":{"duration":2,"steps":4}}}"#,
    r#"{"method":"notifications/progress","params":{"progress":1,"total":4,"progressToken":3},"jsonrpc":"2.0"}"#,
    r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"login","description":"Logs in with a password or an API token. Never share your secret key.","inputSchema":{"type":"object","properties":{"username":{"type":"string"},"password":{"type":"string","description":"The password"},"token":{"type":"string","default":"none"},"credentials":{"type":"object","properties":{"apiKey":{"type":"string"}}},"secrets":{"type":"array","items":{"type":"string"}}},"required":["username","password"],"additionalProperties":false,"$schema":"http://json-schema.org/draft-07/schema#"}},{"name":"get_secret","description":"Reads a secret by name","inputSchema":{"type":"object","properties":{"name":{"type":"string"}}}}],"nextCursor":"eyJwYWdlIjoyfQ=="}}"#,
    r#"{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"Resource sampleLLM context: How many tokens?"}}],"systemPrompt":"You are a helpful test server.","maxTokens":100,"temperature":0.7,"includeContext":"thisServer"}}"#,
    r#"{"jsonrpc":"2.0","id":7,"result":{"model":"claude-sonnet-4","stopReason":"maxTokens","role":"assistant","content":{"type":"text","text":"Tokens: 12. The token budget is spent; authorization is not required."},"usage":{"totalTokens":12,"inputTokens":5}}}"#,
    r#"{"result":{"prompts":[{"name":"auth","arguments":[{"name":"token","description":"Access token","required":true}]}]},"jsonrpc":"2.0","id":4}"#,
    r#"{"result":{"content":[{"type":"text","text":"commit 9fceb02d0ae598e95dc970b74767f19372d61af8\nAuthor: A <a@example.com>\nDate:   Mon\n\n    Rotate tokens; fix password: prompt\n"}]},"jsonrpc":"2.0","id":5}"#,
    r#"{"result":{"content":[{"type":"text","text":"sha256 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\nuuid 123e4567-e89b-12d3-a456-426614174000"}]},"jsonrpc":"2.0","id":5}"#,
    r#"{"result":{"content":[{"type":"image","data":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==","mimeType":"image/png"}]},"jsonrpc":"2.0","id":6}"#,
    r#"{"result":{"contents":[{"uri":"test://static/resource/2","mimeType":"application/octet-stream","blob":"UmVzb3VyY2UgMjogVGhpcyBpcyBhIGJhc2U2NCBibG9i"}]},"jsonrpc":"2.0","id":6}"#,
    r#"{"result":{"content":[{"type":"text","text":"import os\n\ntoken = os.environ[\"GITHUB_TOKEN\"]\npassword=getpass()\nif token == None:\n    raise SystemExit('no token')\nheaders = {'Authorization': f'Bearer {token}'}\nmax_tokens: int = 100\n"}]},"jsonrpc":"2.0","id":8}"#,
    r##"{"result":{"content":[{"type":"text","text":"# Setup\n\nSet `API_KEY=<your key>` or `API_KEY=$OTHER`, then call https://api.example.com/v1/items?page_token=abc&state=open#token.\nUse postgresql://user:password@localhost/db and Bearer authentication; see https://oauth.net/2/.\n\u001b[0m \u003cb\u003e"}]},"jsonrpc":"2.0","id":8}"##,
    r#"{"jsonrpc":"2.0","id":9,"result":{"task":{"taskId":"786512e2-9e0d-44bd-8f29-789f320fe840","status":"working","pollInterval":500}}}"#,
    r#"{"jsonrpc":"2.0","id":10,"result":{"resultType":"input_required","requestState":"AAAAq1w2e3r4t5y6u7i8o9p0","inputRequests":{"a":{"method":"elicitation/create","params":{"message":"Password?","requestedSchema":{"type":"object","properties":{"password":{"type":"string","title":"Password","example":"x"}}}}}}}}"#,
    r#"{"jsonrpc":"2.0","id":11,"result":{"entities":[{"name":"token","entityType":"concept","observations":["a token is a word"]},{"name":"secret","entityType":"key","observations":[]}]}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"debug","logger":"auth","data":{"hasToken":true,"token":null,"tokens":["the","cat"],"tokenType":"Bearer","expires_in":3600}}}"#,
    r#"{"jsonrpc":"2.0","id":12,"error":{"code":-32602,"message":"Invalid params: missing token","data":{"missing":["apiKey","password"]}}}"#,
    r#"{"result":{"content":[{"type":"text","text":"{\n  \"PWD\": \"/home/ann\",\n  \"SSH_KEY\": \"~/.ssh/id_ed25519.key\"\n}"}]},"jsonrpc":"2.0","id":13}"#,
    "Secure MCP Filesystem Server running on stdio",
    "Usage: mcp-server [--token TOKEN] [--password-file FILE]",
    "",
];

#[test]
fn ordinary_traffic_stays_as_it_is_and_is_not_copied() {
    let mut redactor = redactor(env("value-of-the-environment"));
    for message in ORDINARY {
        let redacted = redactor.message(ToClient, message.as_bytes());
        assert_eq!(String::from_utf8_lossy(&redacted), *message);
        assert!(matches!(redacted, Cow::Borrowed(_)));
    }
    assert_eq!(redactor.counts(), []);
}

#[test]
fn an_assignment_in_the_middle_of_a_line_holds_a_secret_where_it_is_no_code() {
    session(
        &mut plain(),
        &[
            (r#"["got api_key=k3y-12345678 here"]"#, r#"["got api_key=<redacted:api-key-1> here"]"#),
            (r#"["with password=hunter2hunter2"]"#, r#"["with password=<redacted:password-1>"]"#),
            (r#"{"bearer":"b1"}"#, r#"{"bearer":"<redacted:token-1>"}"#),
        ],
    );
    for code in [
        r#"["connect(user, password=get_password2(x))"]"#,
        r#"["connect(user, password=settings2.password)"]"#,
        r#"["f(a, token=token2_value, b)"]"#,
        r#"["set password=secret and token=value"]"#,
        r#"["if token=="]"#,
    ] {
        assert_eq!(redact(&mut plain(), code), code);
    }
}

#[test]
fn a_method_that_looks_like_a_secret_is_replaced_and_ids_stay() {
    const KEY: &str = "ghp_012345678901234567890123456789012345";
    let mut redactor = plain();
    for (message, expected) in [
        (r#"{"jsonrpc":"2.0","id":"KEY","method":"KEY"}"#, r#"{"jsonrpc":"2.0","id":"KEY","method":"<1>"}"#),
        (r#"{"jsonrpc":"2.0","method":"x/KEY"}"#, r#"{"jsonrpc":"2.0","method":"x/<1>"}"#),
        (r#"[{"id":"KEY","method":"x\/KEY"}]"#, r#"[{"id":"KEY","method":"<1>"}]"#),
        (r#"{"jsonrpc":"2.0","id":"KEY","result":"KEY"}"#, r#"{"jsonrpc":"2.0","id":"KEY","result":"<1>"}"#),
        (
            r#"{"method":"notifications/cancelled","params":{"requestId":"KEY","reason":"KEY"}}"#,
            r#"{"method":"notifications/cancelled","params":{"requestId":"KEY","reason":"<1>"}}"#,
        ),
        (r#"{"method":"x","params":{"requestId":"KEY"}}"#, r#"{"method":"x","params":{"requestId":"<1>"}}"#),
    ] {
        let expected = expected.replace("KEY", KEY);
        let expected = expected.replace("<1>", "<redacted:github-token-1>");
        assert_eq!(redact(&mut redactor, &message.replace("KEY", KEY)), expected);
    }
    session(
        &mut plain(),
        &[
            (r#"{"password":"tools/list"}"#, r#"{"password":"<redacted:password-1>"}"#),
            (r#"{"method":"tools/list","params":{}}"#, r#"{"method":"tools/list","params":{}}"#),
        ],
    );
}

#[test]
fn a_key_is_the_same_at_any_level_of_escaping() {
    let key = |newline: &str| {
        ["-----BEGIN PRIVATE KEY-----", "MIIEpAIBAAKCAQEA1234", "-----END PRIVATE KEY-----"].join(newline)
    };
    let message = |text: String| format!(r#"{{"text":"{text}"}}"#);
    let mut redactor = plain();
    for (message, expected) in [
        (message(key(r"\n")), message("<redacted:private-key-1>".to_owned())),
        (message(format!("got: {}.", key(r"\\n"))), message("got: <redacted:private-key-1>.".to_owned())),
        (
            message(format!(r#"got: {{\"key\": \"{}\"}}"#, key(r"\\n"))),
            message(r#"got: {\"key\": \"<redacted:private-key-1>\"}"#.to_owned()),
        ),
    ] {
        assert_eq!(redact(&mut redactor, &message), expected);
    }
}

#[test]
fn what_stands_for_a_secret_is_looked_for_only_once_it_is_met_as_one() {
    let mut redactor = plain();
    assert_eq!(redactor.known(b"projectx1"), None);
    let stands = redactor.stands("api-key", b"projectx1");
    assert_eq!(
        (redactor.known(b"projectx1"), stands.to_string()),
        (Some(stands.clone()), "<redacted:api-key-1>".into())
    );
    let place = r#"{"path":"/srv/projectx1/a"}"#;
    session(
        &mut redactor,
        &[
            (place, place),
            (r#"{"password":"projectx1"}"#, r#"{"password":"<redacted:api-key-1>"}"#),
            (place, r#"{"path":"/srv/<redacted:api-key-1>/a"}"#),
            (r#"{"api_key":"projecty2"}"#, r#"{"api_key":"<redacted:api-key-2>"}"#),
        ],
    );
    assert_eq!(redactor.stands("password", b"projecty2").to_string(), "<redacted:api-key-2>");
}
