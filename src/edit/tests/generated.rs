//! Cassettes to be edited.

use proptest::{collection::vec, prelude::*};

use super::{RECORDINGS, load};
use crate::cassette::format;

/// An exchange that is to be made: what it is, what it has, and when each of its messages comes.
type Sketch = (u8, prop::sample::Index, [bool; 2], [prop::sample::Index; 5]);

/// Cassettes with everything that edits have to keep: shared answers, messages that overlap, ids that are named; laid
/// out by the program or by a person.
pub(super) fn cassette() -> impl Strategy<Value = String> {
    let sketch =
        (0..6u8, any::<prop::sample::Index>(), any::<[bool; 2]>(), any::<[prop::sample::Index; 5]>());
    let generated = (vec(sketch, 1..7), 0..3u8).prop_map(|(sketches, layout)| {
        let text = write(&sketches);
        match layout {
            0 => text,
            1 => text
                .replace("\"server\":[", "\"server\":[\n      ")
                .replace("\"client\":", "\n  \"client\":\t"),
            _ => String::from_utf8(format(&load(&text).0)).unwrap(),
        }
    });
    prop_oneof![1 => prop::sample::select(RECORDINGS.to_vec()).prop_map(String::from), 3 => generated]
}

/// The names of an exchange's messages, each with its own part of the order.
fn moments(n: usize, (kind, _, has, _): &Sketch) -> Vec<String> {
    let key = format!("k @{}", n + 1);
    let mut moments = Vec::new();
    let is_push = *kind == 5;
    if !is_push {
        moments.push(key.clone());
    }
    let mut item = 0;
    if has[0] || is_push {
        item += 1;
        moments.push(format!("{key} #{item}"));
    }
    if has[1] {
        item += 1;
        moments.extend([format!("{key} #{item}"), format!("{key} #{item} answer")]);
    }
    if !is_push {
        moments.push(format!("{key} #{}", item + 1));
    }
    moments
}

fn write(sketches: &[Sketch]) -> String {
    // As it was on the wire: each exchange began after the one before it, its later messages came anywhere behind.
    let mut wire: Vec<String> = Vec::new();
    for (n, sketch) in sketches.iter().enumerate().rev() {
        let mut from = 0;
        for (place, (moment, pick)) in moments(n, sketch).into_iter().zip(&sketch.3).enumerate() {
            let room = wire.len() - from;
            from += if place == 0 { 0 } else { pick.index(room + 1) };
            wire.insert(from, moment);
            from += 1;
        }
    }
    let in_file: Vec<String> =
        sketches.iter().enumerate().flat_map(|(n, sketch)| moments(n, sketch)).collect();
    let after = |moment: &str| {
        let before = |list: &[String]| {
            let at = list.iter().position(|known| known == moment).unwrap();
            at.checked_sub(1).map(|at| list[at].clone())
        };
        match before(&wire) {
            named if named == before(&in_file) => String::new(),
            Some(named) => format!("\"after\":\"{named}\","),
            None => String::new(),
        }
    };
    let (mut entries, mut answers): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    for (n, sketch) in sketches.iter().enumerate() {
        let (kind, pick, has, _) = sketch;
        let (key, mut names) = (format!("k @{}", n + 1), moments(n, sketch).into_iter());
        let mut next = || after(&names.next().unwrap());
        let is_push = *kind == 5;
        let mut entry = format!("{{\"key\":\"{key}\",");
        if !is_push {
            entry.push_str(&next());
            entry.push_str("\"client\":{\"request\":{\"method\":\"m\",\"params\":{\"a~/b\":[1,{}]}}},");
        }
        let mut server = Vec::new();
        if has[0] || is_push {
            let named = next();
            server.push(format!(
                "{{{named}\"notification\":{{\"method\":\"n\",\"params\":{{\"requestId\":{n}}}}}}}"
            ));
        }
        if has[1] {
            let (named, answered) = (next(), next());
            server.push(format!(
                "{{{named}\"request\":{{\"method\":\"r\"}},\"answer\":{{{answered}\"result\":{{}}}}}}"
            ));
        }
        if !is_push {
            let named = next();
            server.push(match kind {
                0 | 1 if !answers.is_empty() => {
                    format!("{{{named}\"same_as\":\"{}\"}}", answers[pick.index(answers.len())])
                }
                2 => format!("{{{named}\"after_ms\":5,\"error\":{{\"code\":-1,\"message\":\"{n}\"}}}}"),
                _ => {
                    format!("{{{named}\"result\":{{\"content\":[{{\"type\":\"text\",\"text\":\"{n}\"}}]}}}}")
                }
            });
            answers.push(key);
        }
        entry.push_str(&format!("\"x-mine\":[ 1,2 ],\"server\":[{}]}}", server.join(",")));
        entries.push(entry);
    }
    format!("{{\"cassette\":1, \"note\" : \"by hand\",\"exchanges\":[{}]}}\n", entries.join(" ,\n\n  "))
}
