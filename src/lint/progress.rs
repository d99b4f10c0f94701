//! `notifications/progress`.

use std::collections::HashMap;

use super::{
    Fault,
    dialogue::{Dialogue, Seen, shown},
};
use crate::{
    cassette::model::On,
    wire::jsonrpc::{Kind, id_key},
};

/// A notification of progress.
struct Told<'d, 'a> {
    index: usize,
    seen: &'d Seen<'a>,
    token: Vec<u8>,
    /// The last request of the other side before it that gave the token.
    given: Option<usize>,
}

/// All progress, with its tokens.
fn told<'d, 'a>(dialogue: &'d Dialogue<'a>) -> Vec<Told<'d, 'a>> {
    let (mut given, mut told) = (HashMap::new(), Vec::new());
    for (index, seen) in dialogue.seen.iter().enumerate() {
        if seen.message.kind == Kind::Request
            && let Some(token) = seen.message.progress_token()
        {
            given.insert((id_key(token).into_owned(), seen.from_client), index);
        }
        let is_progress =
            seen.message.kind == Kind::Notification && seen.message.method() == "notifications/progress";
        if is_progress {
            let token = seen.message.param("/progressToken").map(|token| id_key(token).into_owned());
            let token = (token.unwrap_or_default(), !seen.from_client);
            let given = given.get(&token).copied();
            told.push(Told { index, seen, token: token.0, given });
        }
    }
    told
}

pub(super) fn token(dialogue: &Dialogue<'_>, faults: &mut Vec<Fault>) {
    for Told { seen, token, given, .. } in told(dialogue) {
        if token.is_empty() {
            let text = "progress needs the `progressToken` of the request that it is about";
            faults.push(dialogue.fault(seen, "/params", text));
        } else if given.is_none() && dialogue.is_whole {
            let raw = seen.message.param("/progressToken").unwrap_or_default();
            let text = format!(
                "no request before it gave the token {}; take the one in the request's `_meta`, as it is spelled there",
                shown(raw)
            );
            faults.push(dialogue.fault(seen, "/params/progressToken", text));
        }
    }
}

pub(super) fn order(dialogue: &Dialogue<'_>, faults: &mut Vec<Fault>) {
    let mut last: HashMap<(usize, Option<&str>), f64> = HashMap::new();
    for Told { seen, given, .. } in told(dialogue) {
        let raw = seen.message.param("/progress").unwrap_or_default();
        let number = std::str::from_utf8(raw).ok().and_then(|text| text.parse::<f64>().ok());
        let Some(number) = number.filter(|number| number.is_finite()) else {
            let text = "`progress` must be a number";
            faults.push(dialogue.fault(seen, "/params", text));
            continue;
        };
        let Some(given) = given else { continue };
        // Across streams, order is chance, and one that goes on may say again what the client has not heard.
        let on = dialogue.item(seen).and_then(|item| item.on);
        let before = last.insert((given, on.map(On::word)), number);
        let is_again = on == Some(On::Resume);
        if let Some(before) = before.filter(|before| number <= *before && !is_again) {
            let text = format!("progress must grow, but {} follows {before}", shown(raw));
            faults.push(dialogue.fault(seen, "/params/progress", text));
        }
    }
}

pub(super) fn late(dialogue: &Dialogue<'_>, faults: &mut Vec<Fault>) {
    for Told { index, seen, given, .. } in told(dialogue) {
        let Some(request) = given.map(|given| &dialogue.seen[given]) else { continue };
        let Some(answer) = request.answer.filter(|answer| *answer < index) else { continue };
        // A task goes on behind the answer that tells of it.
        let result =
            dialogue.result_of(request).and_then(|answer| answer.message.outcome()).unwrap_or_default();
        let is_task = request.message.param("/task").is_some()
            || ["task", "resultType"].into_iter().any(|name| {
                let value = crate::wire::scan::member(result, 0, name);
                value.is_some_and(|value| value.of(result) != b"\"complete\"")
            });
        // Across streams, order is chance.
        let on = |seen: &Seen<'_>| dialogue.item(seen).and_then(|item| item.on);
        if !is_task && on(seen) == on(&dialogue.seen[answer]) && on(seen) != Some(On::Get) {
            let text = format!("progress of `{}` after its response; tell it before", dialogue.key(request));
            faults.push(dialogue.fault(seen, "", text));
        }
    }
}
