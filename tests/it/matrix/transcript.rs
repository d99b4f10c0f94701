//! What a client saw, compared: the same calls have to end in the same results.

use serde_json::Value;

use crate::support::difference::assert_same;

/// What a client saw, without what its SDK makes up anew in each process.
pub(super) struct Transcript {
    server: Value,
    calls: Vec<Value>,
    asked: Vec<Value>,
    notices: Vec<Value>,
}

/// What a comparison may not look at, and why.
pub(super) struct Varies {
    /// Calls (by how their names begin) whose results differ whenever the server is asked.
    pub(super) calls: &'static [&'static str],
    /// Log messages (by a word of theirs) that are there by chance.
    pub(super) logs: &'static str,
}

impl Transcript {
    pub(super) fn new(transcript: &Value) -> Self {
        let mut transcript = transcript.clone();
        let mut list = |name: &str| match transcript[name].take() {
            Value::Array(list) => list,
            other => panic!("`{name}` is no list in a transcript: {other}"),
        };
        let (calls, asked, mut notices) = (list("calls"), list("asked"), list("notices"));
        for notice in &mut notices {
            // The Python SDK counts its subscriptions over the whole process.
            if let Some(meta) = notice.pointer_mut("/params/_meta").and_then(Value::as_object_mut) {
                meta.remove("io.modelcontextprotocol/subscriptionId");
            }
        }
        Self { server: transcript["server"].take(), calls, asked, notices }
    }

    /// How many calls were made.
    pub(super) fn calls(&self) -> usize {
        self.calls.len()
    }

    /// Whether the server sent nothing but answers.
    pub(super) fn has_answers_only(&self) -> bool {
        let has_progress = |call: &Value| call["progress"].as_array().is_some_and(|list| !list.is_empty());
        self.asked.is_empty() && self.notices.is_empty() && !self.calls.iter().any(has_progress)
    }

    /// Asserts that a recorder between client and server changed nothing: the results are those of `direct`, another
    /// session with the same server. What comes unasked comes when it pleases, so its order is not looked at.
    pub(super) fn assert_transparent(&self, direct: &Self, varies: &Varies, late_progress_is_dropped: bool) {
        let calls = |transcript: &Self| -> Vec<Value> {
            let keep = |mut call: Value| {
                let name = call["call"].as_str().expect("a call has a name").to_owned();
                if varies.calls.iter().any(|varying| name.starts_with(varying)) {
                    call["result"] = "(differs each time)".into();
                }
                if late_progress_is_dropped && let Some(call) = call.as_object_mut() {
                    call.remove("progress");
                }
                call
            };
            transcript.calls.iter().cloned().map(keep).collect()
        };
        let unasked = |list: &[Value]| -> Value {
            let chance = |value: &&Value| {
                let data = value.pointer("/params/data").and_then(Value::as_str).unwrap_or_default();
                varies.logs.is_empty() || !data.contains(varies.logs)
            };
            let mut list: Vec<Value> = list.iter().filter(chance).cloned().collect();
            list.sort_by_key(Value::to_string);
            // A server that is asked for roots while it asks for them asks twice.
            list.dedup();
            list.into()
        };
        assert_same("what the client saw of the server, recorded", &direct.server, &self.server);
        assert_same("the calls, recorded", &calls(direct).into(), &calls(self).into());
        assert_same("what the server asked, recorded", &unasked(&direct.asked), &unasked(&self.asked));
        assert_same("notifications, recorded", &unasked(&direct.notices), &unasked(&self.notices));
    }

    /// Asserts that a replay over HTTP shows the client what it saw in the recorded session. What comes on different
    /// streams has no order.
    pub(super) fn assert_same_session(&self, recorded: &Self, late_progress_is_dropped: bool) {
        self.assert_transparent(recorded, &Varies { calls: &[], logs: "" }, late_progress_is_dropped);
    }

    /// Asserts that a replay shows the client just what it saw in the recorded session, in the same order.
    pub(super) fn assert_replays(&self, recorded: &Self, late_progress_is_dropped: bool) {
        let (mut expected, mut calls) = (recorded.calls.clone(), self.calls.clone());
        if late_progress_is_dropped {
            // How much of it is late is chance, in both sessions.
            for (expected, call) in expected.iter_mut().zip(&mut calls) {
                as_much_progress(expected, call);
            }
        }
        assert_same("what the client saw of the server, replayed", &recorded.server, &self.server);
        assert_same("the calls, replayed", &expected.into(), &calls.into());
        assert_same(
            "what the server asked, replayed",
            &recorded.asked.clone().into(),
            &self.asked.clone().into(),
        );
        assert_same(
            "notifications, replayed",
            &recorded.notices.clone().into(),
            &self.notices.clone().into(),
        );
    }
}

/// Leaves both calls the progress that both have seen.
fn as_much_progress(one: &mut Value, other: &mut Value) {
    let seen = |call: &Value| call["progress"].as_array().map_or(0, Vec::len);
    let both = seen(one).min(seen(other));
    for call in [one, other] {
        if let Some(progress) = call.get_mut("progress").and_then(Value::as_array_mut) {
            progress.truncate(both);
        }
    }
}
