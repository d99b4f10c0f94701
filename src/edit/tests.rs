//! What holds for every edit of every cassette, and what each edit writes.

mod cases;
mod generated;

use std::collections::{HashMap, HashSet};

use proptest::prelude::*;

use self::generated::cassette;
use super::{Edit, EditError, Edited, Fault, Pointer, Position, Response, Value, apply, parts::parts};
use crate::{
    cassette::{
        blob::MemoryBlobs,
        format,
        model::{Cassette, Exchange, Form, Id, Message, Moment, Ref},
        order::timeline,
    },
    wire::{Span, pointer, scan},
};

/// The recordings that stand beside the format's page, and its own example.
const RECORDINGS: [&str; 6] = [
    include_str!("../../cassettes/everything.json"),
    include_str!("../../cassettes/filesystem.json"),
    include_str!("../../cassettes/memory.json"),
    include_str!("../../cassettes/modern.json"),
    include_str!("../../cassettes/time.json"),
    include_str!("../../cassettes/format/v1.json"),
];

/// All blobs that they name, whatever they hold.
fn load(text: &str) -> (Cassette, MemoryBlobs) {
    const BLOB: &str = "sha256-4466be3b7a0e51778f8634f5e984197ec35c748caf4c3b32763f89c577d29614.bin";
    let bytes = include_bytes!(
        "../../cassettes/everything.json.blobs/sha256-4466be3b7a0e51778f8634f5e984197ec35c748caf4c3b32763f89c577d29614.bin"
    );
    let mut blobs = MemoryBlobs::default();
    blobs.0.insert(BLOB.to_owned(), bytes.to_vec());
    let empty = "sha256-e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    blobs.0.insert(format!("{empty}.txt"), Vec::new());
    blobs.0.insert(format!("{empty}.bin"), Vec::new());
    let cassette =
        Cassette::load(text.as_bytes().to_vec(), &blobs).unwrap_or_else(|error| panic!("{error}\n{text}"));
    (cassette, blobs)
}

fn again(edited: &Edited, blobs: &MemoryBlobs) -> Cassette {
    Cassette::load(edited.text.clone(), blobs).expect("an edited cassette loads")
}

fn is_canonical(cassette: &Cassette) -> bool {
    format(cassette) == cassette.text
}

/// Every message of an exchange as it stands on the wire, but for its id.
fn lines(cassette: &Cassette, exchange: &Exchange, blobs: &MemoryBlobs) -> Vec<Vec<u8>> {
    let line = |from_client: bool, message: &Message| {
        let mut line = Vec::new();
        if message.form != Form::Omitted {
            let id = Some(&b"0"[..]).filter(|_| message.id != Id::Absent);
            cassette.wire(exchange.session, from_client, message, id, blobs, &mut line).unwrap();
        }
        line
    };
    let client = exchange.client.iter().map(|message| line(true, message));
    let items = exchange.server.iter().flat_map(|item| {
        let answer = item.answer.as_ref().map(|answer| line(true, &answer.message));
        [line(false, &item.message)].into_iter().chain(answer)
    });
    client.chain(items).collect()
}

/// The moments of a session in their order, by key.
fn order(cassette: &Cassette, session: u32) -> Vec<(String, Moment)> {
    let of_session = (0u32..).zip(&cassette.exchanges).filter(|(_, exchange)| exchange.session == session);
    let of_session: Vec<u32> = of_session.map(|(at, _)| at).collect();
    let named = |at: Ref| (cassette.exchanges[at.exchange as usize].key.to_string(), at.moment);
    timeline(cassette, &of_session).into_iter().map(named).collect()
}

/// What holds for every edit: of the exchanges that it does not address, each says what it said, and where the edit
/// says nothing of it, stands byte by byte as it stood; what is canonical stays so.
fn check(
    before: &Cassette,
    edited: &Edited,
    blobs: &MemoryBlobs,
    addressed: &str,
) -> Result<(), TestCaseError> {
    let after = again(edited, blobs);
    let shown = String::from_utf8_lossy(&edited.text);
    prop_assert!(!is_canonical(before) || is_canonical(&after), "no longer canonical:\n{}", shown);
    let now: HashMap<&str, &Exchange> =
        after.exchanges.iter().map(|exchange| (&*exchange.key, exchange)).collect();
    let was: HashSet<&str> = before.exchanges.iter().map(|exchange| &*exchange.key).collect();
    for exchange in before.exchanges.iter().filter(|exchange| &*exchange.key != addressed) {
        let Some(found) = now.get(&*exchange.key) else {
            return Err(TestCaseError::fail(format!("{} is gone", exchange.key)));
        };
        prop_assert_eq!(lines(before, exchange, blobs), lines(&after, found, blobs), "{}", &exchange.key);
        let is_told = edited.told.iter().any(|told| told.contains(&format!("`{}`", exchange.key)));
        let (old, new) = (before.at(exchange.place), after.at(found.place));
        prop_assert!(is_told || old == new, "{} was changed:\n{}", exchange.key, shown);
    }
    let kept: Vec<_> =
        after.exchanges.iter().map(|exchange| &*exchange.key).filter(|key| was.contains(key)).collect();
    let expected: Vec<_> =
        before.exchanges.iter().map(|exchange| &*exchange.key).filter(|key| now.contains_key(key)).collect();
    prop_assert_eq!(kept, expected);
    for session in 0..before.sessions.len() as u32 {
        let others = |order: Vec<(String, _)>| {
            order.into_iter().filter(|(key, _)| key != addressed).collect::<Vec<_>>()
        };
        let new = others(order(&after, session)).into_iter().filter(|(key, _)| was.contains(&**key));
        prop_assert_eq!(others(order(before, session)), new.collect::<Vec<_>>(), "{}", shown);
    }
    // What stands around the entries, but for the commas between them.
    let around = |cassette: &Cassette| {
        let list = cassette.layout.exchanges.unwrap_or_default();
        (cassette.text[..list.start as usize].to_vec(), cassette.text[list.end as usize..].to_vec())
    };
    prop_assert_eq!(around(before), around(&after));
    Ok(())
}

/// All places of an entry, and whether nothing stands below each.
fn pointers(text: &[u8], entry: Span) -> Vec<(String, bool)> {
    let (mut found, mut open) = (Vec::new(), vec![(String::new(), entry)]);
    while let Some((pointer, span)) = open.pop() {
        let inside = parts(text, span);
        found.push((pointer.clone(), inside.is_none()));
        for (n, part) in inside.iter().flat_map(|parts| parts.list.iter().enumerate()) {
            let step =
                part.name(text).map_or_else(|| n.to_string(), |name| pointer::escaped(&name).into_owned());
            open.push((format!("{pointer}/{step}"), part.value));
        }
    }
    found.remove(0);
    found
}

fn at<'a>(cassette: &'a Cassette, key: &str, pointer: &Pointer) -> &'a [u8] {
    let entry = cassette.find(key).unwrap().place.span();
    let trail = pointer.trail(&cassette.text, entry);
    trail[pointer.steps.len()].of(&cassette.text)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_exchange_that_is_removed_leaves_the_others_as_they_were(text in cassette(), which in any::<prop::sample::Index>()) {
        let (cassette, blobs) = load(&text);
        let key = cassette.exchanges[which.index(cassette.exchanges.len())].key.to_string();
        let edited = apply(&cassette, &blobs, &Edit::Remove { key: key.clone(), pointer: None }).unwrap();
        check(&cassette, &edited, &blobs, &key)?;
        prop_assert!(again(&edited, &blobs).find(&key).is_none());
    }

    #[test]
    fn a_copy_that_is_removed_leaves_the_same_bytes(text in cassette(), which in any::<prop::sample::Index>()) {
        let (cassette, blobs) = load(&text);
        let key = cassette.exchanges[which.index(cassette.exchanges.len())].key.to_string();
        let name = Some("the copy".to_owned());
        let copied = apply(&cassette, &blobs, &Edit::Duplicate { key: key.clone(), name }).unwrap();
        check(&cassette, &copied, &blobs, "")?;
        let copy = again(&copied, &blobs);
        let (original, found) = (copy.find(&key).unwrap(), copy.find("the copy").unwrap());
        prop_assert_eq!(lines(&copy, original, &blobs), lines(&copy, found, &blobs));
        let removed = apply(&copy, &blobs, &Edit::Remove { key: "the copy".into(), pointer: None }).unwrap();
        prop_assert_eq!(String::from_utf8_lossy(&removed.text), text);
    }

    #[test]
    fn what_is_inserted_and_removed_leaves_the_same_bytes(text in cassette(), which in any::<prop::sample::Index>(), place in 0..3u8) {
        let (cassette, blobs) = load(&text);
        let key = cassette.exchanges[which.index(cassette.exchanges.len())].key.to_string();
        let position = match place {
            0 => Position::Before(key),
            1 => Position::After(key),
            _ => Position::End,
        };
        let entry = br#"{"client": {"request": {"method": "inserted"}}, "server": [{"result": {}}]}"#.to_vec();
        let inserted = apply(&cassette, &blobs, &Edit::Insert { entry, position }).unwrap();
        check(&cassette, &inserted, &blobs, "")?;
        let key = "inserted @1".to_owned();
        let removed = apply(&again(&inserted, &blobs), &blobs, &Edit::Remove { key, pointer: None }).unwrap();
        prop_assert_eq!(String::from_utf8_lossy(&removed.text), text);
    }

    #[test]
    fn a_value_that_is_set_and_set_back_leaves_the_same_bytes(
        text in cassette(), which in any::<[prop::sample::Index; 2]>(), value in 0..4usize,
    ) {
        let (cassette, blobs) = load(&text);
        let exchange = &cassette.exchanges[which[0].index(cassette.exchanges.len())];
        let key = exchange.key.to_string();
        let all = pointers(&cassette.text, exchange.place.span());
        let (pointer, is_leaf) = &all[which[1].index(all.len())];
        let pointer = Pointer::parse(pointer).unwrap();
        let values = ["\"other\"", "7", "{\"a\": [], \"text\": \"one\"}", "[[]]"];
        let value = Value::Json(values[value].into());
        let set = match apply(&cassette, &blobs, &Edit::Set { key: key.clone(), pointer: pointer.clone(), value }) {
            Ok(set) => set,
            // Places of ours take some values only.
            Err(EditError::Invalid(_)) => return Ok(()),
            Err(error) => return Err(TestCaseError::fail(error.to_string())),
        };
        let changed = again(&set, &blobs);
        if changed.find(&key).is_none() {
            return Ok(());
        }
        check(&cassette, &set, &blobs, &key)?;
        let has_side_effects = !set.told.is_empty();
        let value = Value::Json(at(&cassette, &key, &pointer).to_vec());
        let back = apply(&changed, &blobs, &Edit::Set { key, pointer, value }).unwrap();
        if !has_side_effects && (*is_leaf || is_canonical(&cassette)) {
            prop_assert_eq!(String::from_utf8_lossy(&back.text), text);
        }
    }

    #[test]
    fn a_place_that_is_removed_leaves_the_others_as_they_were(text in cassette(), which in any::<[prop::sample::Index; 2]>()) {
        let (cassette, blobs) = load(&text);
        let exchange = &cassette.exchanges[which[0].index(cassette.exchanges.len())];
        let key = exchange.key.to_string();
        let all = pointers(&cassette.text, exchange.place.span());
        let pointer = Pointer::parse(&all[which[1].index(all.len())].0).unwrap();
        // That changes the order, and is meant to.
        prop_assume!(pointer.steps.last().is_none_or(|last| last != "after"));
        match apply(&cassette, &blobs, &Edit::Remove { key: key.clone(), pointer: Some(pointer) }) {
            Ok(removed) => check(&cassette, &removed, &blobs, &key)?,
            Err(EditError::Invalid(_)) => {}
            Err(error) => return Err(TestCaseError::fail(error.to_string())),
        }
    }

    #[test]
    fn what_fails_or_is_late_leaves_the_others_as_they_were(text in cassette(), which in any::<prop::sample::Index>(), how in 0..5u8) {
        let (cassette, blobs) = load(&text);
        let key = cassette.exchanges[which.index(cassette.exchanges.len())].key.to_string();
        let edit = match how {
            0 => Edit::Answer { key: key.clone(), response: Response::Failed { code: -1, message: "a\nb".into() } },
            1 => Edit::Answer { key: key.clone(), response: Response::Result(b"[1,2]".to_vec()) },
            2 => Edit::Fault { key: key.clone(), fault: Fault::CutAfter(2) },
            3 => Edit::Delay { key: key.clone(), ms: 70 },
            _ => Edit::Note { key: key.clone(), text: "\"why\"".into() },
        };
        match apply(&cassette, &blobs, &edit) {
            Ok(edited) => {
                check(&cassette, &edited, &blobs, &key)?;
                // Twice is once.
                let twice = apply(&again(&edited, &blobs), &blobs, &edit).unwrap();
                prop_assert_eq!(String::from_utf8_lossy(&twice.text), String::from_utf8_lossy(&edited.text));
            }
            Err(EditError::Unfit { .. }) => {}
            // What is no request meets no fault.
            Err(EditError::Fault(_)) if how == 2 => {}
            Err(error) => return Err(TestCaseError::fail(error.to_string())),
        }
    }
}

/// Whoever followed the first of all has none to name then; whoever stood before it in the file follows it.
#[test]
fn those_that_led_each_other_keep_their_order_when_the_first_of_all_goes() {
    let told = r#"{"notification": {"method": "n"}}"#;
    for exchanges in [
        format!(
            r#"{{"key": "a", "server": [{told}, {{"after": "b", "request": {{"method": "r"}}, "answer": {{"result": {{}}}}}}]}},
                {{"key": "b", "after": "a #1", "client": {{"request": {{"method": "m"}}}},
                    "server": [{{"after": "c", "result": {{}}}}]}},
                {{"key": "c", "after": "a #2 answer", "client": {{"request": {{"method": "m"}}}},
                    "server": [{{"after": "b #1", "result": {{}}}}]}}"#
        ),
        format!(
            r#"{{"key": "a", "server": [{told}, {{"after": "b #1", "request": {{"method": "r"}}, "answer": {{"result": {{}}}}}}]}},
                {{"key": "b", "after": "a #1", "server": [{told}]}},
                {{"key": "c", "after": "a #2 answer", "server": [{told}, {{"after": "d #1", "notification": {{"method": "n"}}}}]}},
                {{"key": "d", "after": "c #1", "client": {{"request": {{"method": "m"}}}}, "server": [{{"result": {{}}}}]}}"#
        ),
    ] {
        let (cassette, blobs) = load(&format!(r#"{{"cassette": 1, "exchanges": [{exchanges}]}}"#));
        let pointer = Some(Pointer::parse("/server/0").unwrap());
        let removed = apply(&cassette, &blobs, &Edit::Remove { key: "a".to_owned(), pointer }).unwrap();
        check(&cassette, &removed, &blobs, "a").unwrap();
    }
}

#[test]
fn places_are_found_in_a_recording() {
    let (cassette, _) = load(RECORDINGS[0]);
    let entry = cassette.exchanges[0].place.span();
    assert!(
        pointers(&cassette.text, entry).contains(&("/server/0/result/capabilities/logging".into(), false))
    );
    assert_eq!(scan::trim(&cassette.text).start, 0);
}
