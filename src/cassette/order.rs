//! The total order of a session's moments, which the file's order and its `after` references tell together.
//!
//! Moments stand in file order, each right after the one before it, except where `after` names another. A
//! recording names each moment's true predecessor, so the order that comes out is the order of the wire. After an
//! edit two moments can claim the same place, or a reference can lead nowhere: then the named successor goes first,
//! an exchange still keeps its own order, and what hangs on nothing comes last in file order. A circle begins with
//! the first in it that begins an exchange and names none: that one follows another by its place only.

use std::collections::HashMap;

use super::model::{Cassette, Item, Moment, Ref};

/// The moments of the given exchanges (indexes into [`Cassette::exchanges`], in file order) in their total order.
pub fn timeline(cassette: &Cassette, exchanges: &[u32]) -> Vec<Ref> {
    if !names_any(cassette, exchanges) {
        return in_file_order(cassette, exchanges, |moment, _| moment);
    }
    let moments = in_file_order(cassette, exchanges, |moment, after| (moment, after));
    let place: HashMap<Ref, usize> =
        moments.iter().enumerate().map(|(at, (moment, _))| (*moment, at)).collect();
    let mut followers: Vec<Vec<usize>> = vec![Vec::new(); moments.len()];
    let mut roots = Vec::new();
    for at in 0..moments.len() {
        match moments[at].1.map(|after| place.get(&after).copied()) {
            // A named successor goes before the one that merely stands next in the file.
            Some(Some(before)) if before != at => followers[before].insert(0, at),
            _ if at == 0 => roots.push(at),
            Some(_) => roots.push(at),
            None => followers[at - 1].push(at),
        }
    }
    let mut done = vec![false; moments.len()];
    let mut order = Vec::with_capacity(moments.len());
    let mut waiting: Vec<usize> = roots.into_iter().rev().collect();
    let mut rest = 0;
    loop {
        let Some(at) = waiting.pop() else {
            // A circle of references, or one that leads nowhere: go on with what is left.
            match done[rest..].iter().position(|done| !done) {
                Some(found) => rest += found,
                None => break,
            }
            let follows =
                |at: usize| moments[at].1.map_or(at.checked_sub(1), |after| place.get(&after).copied());
            let of_circle = circle(rest, |at| follows(at).filter(|&before| !done[before]));
            let begins = |&at: &usize| moments[at].1.is_none() && earlier_in_exchange(&moments, at).is_none();
            waiting.push(of_circle.into_iter().find(begins).unwrap_or(rest));
            continue;
        };
        if done[at] {
            continue;
        }
        let own = earlier_in_exchange(&moments, at).filter(|&own| !done[own]);
        if let Some(own) = own {
            followers[own].push(at);
            if waiting.is_empty() {
                waiting.push(own);
            }
            continue;
        }
        done[at] = true;
        order.push(moments[at].0);
        waiting.extend(followers[at].iter().rev());
    }
    order
}

/// Those in file order that come round to themselves on the way from one to what each follows; none where it ends.
fn circle(from: usize, follows: impl Fn(usize) -> Option<usize>) -> Vec<usize> {
    let (mut way, mut steps) = (vec![from], HashMap::from([(from, 0)]));
    while let Some(next) = follows(way[way.len() - 1]) {
        if let Some(&met) = steps.get(&next) {
            let mut circle = way.split_off(met);
            circle.sort_unstable();
            return circle;
        }
        steps.insert(next, way.len());
        way.push(next);
    }
    Vec::new()
}

/// Calls `each` with every moment of the given exchanges in their total order: the place of its exchange among those
/// given, and which moment of it.
pub fn each_moment(cassette: &Cassette, exchanges: &[u32], mut each: impl FnMut(usize, Moment)) {
    if !names_any(cassette, exchanges) {
        // Nearly always; a list of all moments would be as long as the cassette.
        for (at, exchange) in exchanges.iter().enumerate() {
            each_in_file_order(cassette, *exchange, |moment, _| each(at, moment));
        }
        return;
    }
    let mut places = vec![0; cassette.exchanges.len()];
    for (at, exchange) in (0_u32..).zip(exchanges) {
        places[*exchange as usize] = at;
    }
    for Ref { exchange, moment } in timeline(cassette, exchanges) {
        each(places[exchange as usize] as usize, moment);
    }
}

/// Whether any moment names the one before it.
fn names_any(cassette: &Cassette, exchanges: &[u32]) -> bool {
    exchanges.iter().map(|exchange| &cassette.exchanges[*exchange as usize]).any(|entry| {
        let of_answer = |item: &Item| item.answer.as_ref().is_some_and(|answer| answer.after.is_some());
        entry.after.is_some() || entry.server.iter().any(|item| item.after.is_some() || of_answer(item))
    })
}

/// All moments in file order, each made of itself and its named predecessor.
fn in_file_order<T>(
    cassette: &Cassette,
    exchanges: &[u32],
    moment_of: impl Fn(Ref, Option<Ref>) -> T,
) -> Vec<T> {
    let mut moments = Vec::with_capacity(exchanges.len() * 2);
    for &exchange in exchanges {
        each_in_file_order(cassette, exchange, |moment, after| {
            moments.push(moment_of(Ref { exchange, moment }, after));
        });
    }
    moments
}

/// The moments of one exchange, each with its named predecessor.
fn each_in_file_order(cassette: &Cassette, exchange: u32, mut each: impl FnMut(Moment, Option<Ref>)) {
    let entry = &cassette.exchanges[exchange as usize];
    let mut after = entry.after;
    if entry.client.is_some() {
        each(Moment::Client, after.take());
    }
    for (number, item) in (0..).zip(&entry.server) {
        each(Moment::Item(number), item.after.or(after.take()));
        if let Some(answer) = &item.answer {
            each(Moment::Answer(number), answer.after);
        }
    }
}

/// The moment of the same exchange that must come before this one: for an item the one before it, for an answer
/// its request. (An answer binds nobody: the server may speak on before it comes.)
fn earlier_in_exchange(moments: &[(Ref, Option<Ref>)], at: usize) -> Option<usize> {
    let Ref { exchange, moment } = moments[at].0;
    let before = moments[..at].iter().rposition(|(other, _)| {
        other.exchange != exchange
            || match (moment, other.moment) {
                (Moment::Answer(number), Moment::Item(item)) => item == number,
                (_, Moment::Answer(_)) => false,
                _ => true,
            }
    })?;
    (moments[before].0.exchange == exchange).then_some(before)
}
