//! Recordings of one endpoint, which any path serves, and of several, none of which answers for another.

use super::stage::*;
use mcp_tapedeck::report::Verdict;

fn at(path: &str) -> String {
    format!(r#""http": {{"path": "{path}"}},"#)
}

fn who(key: &str, http: &str, answer: &str) -> String {
    tool(key, "who", &format!(r#"{http} "server": [{{"result": {answer}}}]"#))
}

/// A call of `who` at this path; the body of its response.
fn asks(stage: &mut Stage, path: &str) -> String {
    let heard = stage.ask("POST", path, &["accept: application/json, text/event-stream"], &call(7, "who"));
    heard.into_iter().find(|heard| heard.contains(" body ")).expect("an answer")
}

#[test]
fn of_several_endpoints_each_answers_for_itself_alone() {
    let exchanges = who("a", "", "\"of a\"") + &who("b", &at("/b/mcp"), "\"of b\"");
    let mut stage = Stage::new(&MODERN.replace("/mcp", "/a/mcp"), &exchanges[1..]);
    for (path, answer) in [("/a/mcp", "of a"), ("/a/mcp", "of a"), ("/b/mcp", "of b"), ("/a/mcp", "of a")] {
        let heard = asks(&mut stage, path);
        assert!(heard.contains(answer), "{path}: {heard}");
    }
    // What was recorded at one path only comes from there with any query.
    assert!(asks(&mut stage, "/b/mcp?x=1").contains("of b"));
    assert_eq!(stage.report().misses, []);
    let heard = asks(&mut stage, "/c/mcp");
    assert!(
        heard.contains("-33000") && heard.contains("`tools/call who` was recorded at another path (`a`)")
    );
    let report = stage.report();
    assert_eq!((report.verdict, report.misses[0].nearest.as_deref()), (Verdict::Bad, Some("a")));
}

#[test]
fn a_refusal_at_another_path_is_none_here() {
    let refused = who("refused", r#""http": {"path": "/auth", "status": 401},"#, "\"no\"")
        .replace(r#""server": [{"result": "no"}]"#, r#""server": [{"body": "who are you"}]"#);
    let exchanges = with_id(1) + &who("a", "", "\"of mcp\"") + &refused;
    let mut stage = Stage::new(HTTP, &exchanges);
    let session = stage.begin();
    let mut status = |path: &str| {
        let heard = stage.ask("POST", path, &[&session], &call(7, "who"));
        heard[0].split(' ').nth(1).unwrap_or_default().to_owned()
    };
    assert_eq!(
        [status("/mcp"), status("/mcp"), status("/auth"), status("/mcp")],
        ["200", "200", "401", "200"]
    );
    stage.good();
}

#[test]
fn a_session_begins_where_it_was_recorded() {
    let second = HTTP.replace(r#""session": 1"#, r#""session": 2"#).replace("/mcp", "/b/mcp");
    let exchanges = with_id(1)
        + &who("a", "", "\"of a\"")
        + ","
        + &with_id(2)
        + &who("b", r#""session": 2,"#, "\"of b\"");
    let mut stage = Stage::new(&format!("{}, {second}", HTTP.replace("/mcp", "/a/mcp")), &exchanges);
    for (path, answer) in [("/b/mcp", "of b"), ("/a/mcp", "of a"), ("/b/mcp", "of b")] {
        let heard = stage.ask("POST", path, &[], &initialize());
        let id = heard[0].split("mcp-session-id=").nth(1).unwrap_or_else(|| panic!("{heard:?}"));
        let id = format!("mcp-session-id: {}", id.split(' ').next().unwrap_or_default());
        let heard = stage.ask("POST", path, &[&id], &call(7, "who"));
        assert!(heard.iter().any(|heard| heard.contains(answer)), "{path}: {heard:?}");
    }
    stage.good();
    let heard = stage.ask("POST", "/c/mcp", &[], &initialize());
    assert!(heard.iter().any(|heard| heard.contains("at another path")), "{heard:?}");
}

#[test]
fn queries_are_endpoints_too_where_they_were_recorded_and_their_secrets_are_not() {
    let exchanges =
        who("a", &at("/mcp?set=a&key=1"), "\"of a\"") + &who("b", &at("/mcp?set=b&key=1"), "\"of b\"");
    let mut stage = Stage::new(MODERN, &exchanges[1..]);
    for (path, answer) in
        [("/mcp?set=b&key=1", "of b"), ("/mcp?set=b&key=1", "of b"), ("/mcp?set=a&key=1", "of a")]
    {
        assert!(asks(&mut stage, path).contains(answer), "{path}");
    }
    assert!(asks(&mut stage, "/other").contains("of b"));
    let exchanges = who("a", &at("/mcp?token=<redacted:token-4>"), "\"of a\"")
        + &who("b", &at("/b?token=<redacted:token-9>"), "\"of b\"");
    let mut stage = Stage::new(MODERN, &exchanges[1..]);
    for (path, answer) in [("/b?token=abc12345", "of b"), ("/mcp?token=abc12345", "of a")] {
        assert!(asks(&mut stage, path).contains(answer), "{path}");
    }
    stage.good();
}

#[test]
fn one_endpoint_answers_at_any_path() {
    let mut stage = Stage::new(MODERN, &who("a", "", "\"of a\"")[1..]);
    for path in ["/mcp", "/elsewhere", "/"] {
        assert!(asks(&mut stage, path).contains("of a"));
    }
    let mut stage = Stage::new(STDIO, &(begun(1, "") + &who("a", "", "\"of a\"")));
    stage.begin();
    assert!(asks(&mut stage, "/elsewhere").contains("of a"));
    stage.good();
}
