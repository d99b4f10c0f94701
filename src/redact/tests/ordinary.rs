//! Messages that speak of secrets and hold none.

use std::borrow::Cow;

use super::{env, redactor};
use crate::traffic::Direction::ToClient;

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
