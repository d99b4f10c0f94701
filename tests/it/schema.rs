//! The printed JSON Schemas: they are well formed, they accept our files and refuse what they should.

use std::process::Command;

use serde_json::Value;

/// Checks a value against a schema, for the keywords that our schemas use; any other keyword is a failed test.
struct Validator<'a> {
    root: &'a Value,
    faults: Vec<String>,
}

impl<'a> Validator<'a> {
    fn faults(root: &'a Value, schema: &Value, value: &Value) -> Vec<String> {
        let mut validator = Self { root, faults: Vec::new() };
        validator.check(schema, value, "");
        validator.faults
    }

    fn accepts(&self, schema: &Value, value: &Value) -> bool {
        let mut inner = Validator { root: self.root, faults: Vec::new() };
        inner.check(schema, value, "");
        inner.faults.is_empty()
    }

    fn require(&mut self, holds: bool, at: &str, what: &str) {
        if !holds {
            self.faults.push(format!("{at}: {what}"));
        }
    }

    fn check(&mut self, schema: &Value, value: &Value, at: &str) {
        if let Value::Bool(allowed) = schema {
            return self.require(*allowed, at, "nothing is allowed here");
        }
        for (keyword, rule) in schema.as_object().expect("a schema is an object or a boolean") {
            self.keyword(schema, keyword, rule, value, at);
        }
    }

    fn keyword(&mut self, schema: &Value, keyword: &str, rule: &Value, value: &Value, at: &str) {
        let some = |rule: &Value| rule.as_array().expect("an array of schemas").clone();
        match keyword {
            "$schema" | "$defs" | "title" | "description" | "format" => {}
            "$ref" => {
                let pointer =
                    rule.as_str().and_then(|text| text.strip_prefix('#')).expect("a local reference");
                let target = self.root.pointer(pointer).unwrap_or_else(|| panic!("nothing at {pointer}"));
                self.check(target, value, at);
            }
            "type" => self.require(is_of(value, rule.as_str().expect("a type")), at, &format!("no {rule}")),
            "const" => self.require(value == rule, at, &format!("not {rule}")),
            "enum" => self.require(some(rule).contains(value), at, &format!("none of {rule}")),
            "minimum" => self.require(value.as_i64() >= rule.as_i64(), at, "too small"),
            "minLength" => self.require(value != "", at, "empty"),
            "maxItems" => {
                let count = value.as_array().map_or(0, Vec::len) as u64;
                self.require(Some(count) <= rule.as_u64(), at, "too many");
            }
            "pattern" => {
                let pattern = regex::Regex::new(rule.as_str().expect("a pattern")).expect("it compiles");
                self.require(value.as_str().is_none_or(|text| pattern.is_match(text)), at, "wrong form");
            }
            "required" => {
                for name in some(rule) {
                    let name = name.as_str().expect("a name");
                    self.require(value.get(name).is_some(), at, &format!("`{name}` is missing"));
                }
            }
            "oneOf" => {
                let fitting = some(rule).iter().filter(|schema| self.accepts(schema, value)).count();
                self.require(fitting == 1, at, &format!("{fitting} of {rule} fit"));
            }
            "anyOf" => {
                let fits = some(rule).iter().any(|schema| self.accepts(schema, value));
                self.require(fits, at, &format!("none of {rule} fits"));
            }
            "not" => {
                let fits = self.accepts(rule, value);
                self.require(!fits, at, &format!("must not be {rule}"));
            }
            "items" => {
                for (place, item) in value.as_array().into_iter().flatten().enumerate() {
                    self.check(rule, item, &format!("{at}/{place}"));
                }
            }
            "properties" | "patternProperties" | "additionalProperties" => {
                for (name, member) in value.as_object().into_iter().flatten() {
                    if keyword == governing(schema, name) {
                        let rule = if keyword == "properties" { &rule[name] } else { rule };
                        let rule = if keyword == "patternProperties" { &rule["^x-"] } else { rule };
                        self.check(rule, member, &format!("{at}/{name}"));
                    }
                }
            }
            _ => panic!("this validator does not know `{keyword}`"),
        }
    }
}

/// Which keyword of a schema is about this member.
fn governing(schema: &Value, name: &str) -> &'static str {
    if schema.get("properties").is_some_and(|known| known.get(name).is_some()) {
        "properties"
    } else if name.starts_with("x-") && schema.get("patternProperties").is_some() {
        "patternProperties"
    } else {
        "additionalProperties"
    }
}

fn is_of(value: &Value, name: &str) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        _ => panic!("this validator does not know the type `{name}`"),
    }
}

/// What `tapedeck schema` prints.
pub(crate) fn printed(kind: &str) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tapedeck"));
    let output = command.args(["schema", kind]).output().expect("tapedeck starts");
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("a schema is JSON")
}

/// Faults of one of our files against the schema of its kind.
pub(crate) fn faults(kind: &str, text: &[u8]) -> Vec<String> {
    let (schema, value) = (printed(kind), serde_json::from_slice(text).expect("our files are JSON"));
    Validator::faults(&schema, &schema, &value)
}

/// Faults of a value against a schema inside a document.
pub(crate) fn faults_of(document: &Value, schema: &Value, value: &Value) -> Vec<String> {
    Validator::faults(document, schema, value)
}

const CASSETTE: &str = r#"{
  "cassette": 1,
  "match": [{"when": {"tool": "search"}, "ignore": ["/params/arguments/limit"]}],
  "sessions": [{"session": 1, "recording": 1, "end": {"exit": 0}}],
  "exchanges": [
    {
      "key": "tools/call report @1",
      "fault": {"do": "status", "status": 503},
      "client": {"request": {"method": "tools/call", "params": {"name": "report"}, "trace": 1}},
      "server": [
        {"after_ms": 20, "notification": {"method": "notifications/progress", "params": {"progress": 1}}},
        {"request": {"method": "elicitation/create"}, "answer": {"after_ms": 40, "result": {"action": "accept"}}},
        {"after_ms": 12, "result": {"content": [{"type": "text", "text": {"$lines": ["a", "b"]}}]}}
      ],
      "x-ours": true
    },
    {
      "key": "http GET /mcp @1",
      "client": {"http": "GET /mcp", "base64": "/w=="},
      "http": {"auth": true, "status": 200, "headers": {"content-type": [], "x-a": ["b", ""]}, "end": "cut"},
      "server": [{"on": "post", "sse": {"id": "7", "event": null, "retry": 5}, "body": {"$lines": ["a", "b"]}}],
      "unanswered": "ended"
    },
    {"key": "push notifications/x @1", "after": "tools/call report @1", "server": [{"same_as": "tools/call report @1"}]}
  ]
}"#;

#[test]
fn the_cassette_schema_accepts_a_cassette() {
    assert_eq!(faults("cassette", CASSETTE.as_bytes()), Vec::<String>::new());
}

#[test]
fn the_cassette_schema_refuses_mistakes() {
    for (right, wrong) in [
        (r#""cassette": 1"#, r#""cassette": 2"#),
        (r#""key": "tools/call report @1","#, ""),
        (r#""after_ms": 20"#, r#""after_sm": 20"#),
        (r#""after_ms": 20"#, r#""after_ms": -20"#),
        (r#""request": {"method": "tools/call""#, r#""request": {"jsonrpc": "2.0", "method": "tools/call""#),
        (r#"{"after_ms": 12, "result""#, r#"{"error": {}, "result""#),
        (r#""/params/arguments/limit""#, r#""params.arguments.limit""#),
        (r#""http": "GET /mcp","#, r#""http": "GET mcp","#),
        (r#""http": "GET /mcp","#, r#""raw": "GET /mcp","#),
        (r#""status": 200"#, r#""status": "200""#),
        (r#""fault": {"do": "status", "status": 503}"#, r#""fault": 503"#),
        (r#""x-a": ["b", ""]"#, r#""x-a": 1"#),
        (r#""on": "post""#, r#""on": "put""#),
        (r#"{"tool": "search"}"#, r#"{"tol": "search"}"#),
    ] {
        let text = CASSETTE.replacen(right, wrong, 1);
        assert_ne!(text, CASSETTE, "{right} is in the cassette");
        assert_ne!(faults("cassette", text.as_bytes()), Vec::<String>::new(), "{wrong}");
    }
}
