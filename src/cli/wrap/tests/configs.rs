//! Configurations as people write them.

/// Configurations of each client. Marks in comments say where the entry `a` begins and ends.
pub(super) const CONFIGS: &[(&str, &str)] = &[
    (
        "plain.json",
        r#"{"mcpServers":{"a":{"command":"npx"},"r":{"url":"https://h/mcp","headers":{"X-Key":"k"}}}}"#,
    ),
    (
        "commented.json",
        r#"// mine
{
  // servers of mine, in no order
  "mcpServers": {
    /*<*/ "a": { // the first
      "command" : "npx", /* , yes */
      "args": [ // words
        "-y", // no question
        /* , */ "${workspaceFolder}/x", "ü \"漢\" \u00e9\/", // , last
      ], // done
      "env": {"K": "v", /* b, */ "L": "w"}
    }, /*>*/
    "b": {"command": "caf\u00e9"},
    "c": {
      "command": "c" // no more
    },
    "d": {"command": "d", "args": []},
    "e": {"command": "e", "args": [ /* none */ ], "x": 1,},
    "f": {"args": ["first"], "command": "f", },
    "r": {
      "type": "http", // over HTTP
      "url": "https:\/\/h/mcp", // there
      "headers": { // who I am
        "Authorization": "Bearer ${TOKEN}", // , secret
        /* b */ "X-Key" : "k" , "Host": "elsewhere",
      }, // and
      "timeout": 5,
    },
    "s": {"headers": {"X-Key": "k"}, "url": "https://s/mcp", "args": ["of no use"]},
    "far": {"type": "http", "url": "https://far/mcp"},
    "odd": 5,
  },
  "other": [1, /* 2, */ 3]
}
// the end
"#,
    ),
    (
        "vscode.json",
        r#"{
	"inputs": [{"id": "key", "type": "promptString"}],
	"servers": {
		"a": {
			"type": "stdio",
			"command": "uvx",
			"args": ["-y", "a b"],
			"envFile": "${workspaceFolder}/.env"
		},
		"r": {"type": "sse", "url": "https://h/sse", "headers": {"X-Key": "${input:key}"}}
	}
}"#,
    ),
    (
        "settings.json",
        r#"{"mcp": {"servers": {"a": {"command": "x", "args": ["-y"], "env": {}}}}, "servers": {}}"#,
    ),
    (
        "config.toml",
        r#"model = "o" # mine

# what I use
[mcp_servers.a] #<
command = "npx" # here
args = [ # words
  "-y", # no, question
  'C:\x', # ,
]
startup_timeout_sec = 5
[mcp_servers.a.env] # variables
K = "v"
#>
[mcp_servers.b]
command = 'b' # alone

[mcp_servers."my server"]
  "command" = "c"
  args = []

[mcp_servers.e]
args = [ # none
]
command = """e"""

[mcp_servers.r]
url = 'https://h/mcp' # there
# who I am
bearer_token_env_var = "TOKEN" # secret
http_headers = { X-Key = "k", "X Y" = 'b', Host = "h" } # more
env_http_headers = { "X-A" = "A_VAR" , X-B = "B_VAR" }
enabled = true

[mcp_servers.s]
url = "https://s/mcp"
env_http_headers = { X-A = "A_VAR" }

[mcp_servers.t]
url = "https://t/mcp"
[mcp_servers.t.http_headers] # a table
X-Key = "k" # k

[mcp_servers.h]
url = "https://h/mcp"
http_headers = { "X-Key" = "k" }
[mcp_servers.h2]
url = "https://h/mcp"
bearer_token_env_var = "TOK"

[mcp_servers.h3]
url = "https://h/mcp"
http_headers = { X-Key = "k" }
bearer_token_env_var = "TOK"
env_http_headers = { X-A = "A_VAR" }
[mcp_servers.h4]
type = "http"
http_headers = { X-Key = "k" } # before
url = "https://h/mcp"
enabled = true

[mcp_servers.h5]
url = "https://h/mcp"
http_headers.X-Key = "k"
[mcp_servers.dots]
http_headers.X-Key = "k" # first
url = "https://h/mcp"
"http_headers" . "X A" = "k"
http_headers.Host = "h"
bearer_token_env_var = "TOK"

[mcp_servers.u]
url = "https://u/mcp"
bearer_token_env_var = "T"
[mcp_servers.u.http_headers]
[mcp_servers.far]
url = "https://far/mcp"
env_http_headers = {}

[other]
x = 1"#,
    ),
    (
        "inline.toml",
        r#"[mcp_servers]
a = { command = "npx", args = ["-y"], env = { K = "v" } } # one
b.command = "b"
dots = { http_headers.X-Key = "k", url = "https://h/mcp", http_headers.X-A = "k" }
c = { command = "c" }
r = { url = "https://h/mcp", http_headers = { X-Key = "k" }, bearer_token_env_var = "T" }
"#,
    ),
];

/// How what is said of the servers that nobody can record begins.
pub(super) const LEFT: &[&str] = &["far", "odd"];
