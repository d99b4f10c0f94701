//! Under `--strict`, at the end: which requests came in another place than recorded.
//!
//! Requests may be equal, so which of them was left out, came once more or changed its place is not to be told one by
//! one as they come. It is told from all that came: what the recorded order and theirs have in common at most came in its
//! place, and of each kind of request what is left on both sides was moved. What is left on one side alone was left out,
//! or came more often than recorded, which is told elsewhere.
//!
//! The longest common part is found as Myers does (An O(ND) difference algorithm, 1986), in a time that is that of
//! reading both where they differ little. Where they differ in more than [`MOST`] places, of equal requests each counts
//! as the one that it was answered by, and the longest part that goes up is taken: perhaps not the longest, but soon
//! found.

use std::collections::{HashMap, HashSet};

use super::script::Rank;

/// How many differences are looked for.
const MOST: usize = 1_000;

/// A recorded request, in the order in which they were asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recorded {
    /// Equal for those that ask for the same.
    pub class: u32,
    /// What it overlapped with, if anything.
    pub group: Option<u32>,
    /// When it was asked, and when its answer was there.
    pub asked: Rank,
    pub answered: Rank,
}

/// A request that came, in the order in which they did.
#[derive(Clone, Copy, Debug)]
pub(super) struct Came {
    /// The recorded one that it was answered by, by its place.
    pub place: usize,
    /// It was not answered: all that it equals had been asked for, which it was told.
    pub is_told: bool,
}

/// A request that was moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moved {
    /// The recorded one that is left for it, by its place.
    pub place: usize,
    /// The one that was recorded where it came; none behind the last one.
    pub expected: Option<usize>,
}

/// Which of them came in another place.
pub(super) fn moved(recorded: &[Recorded], came: &[Came]) -> Vec<Moved> {
    let settled = settled(recorded, came);
    let class = |came: &Came| recorded[came.place].class;
    let of_recorded: Vec<u32> = recorded.iter().map(|recorded| recorded.class).collect();
    let of_came: Vec<u32> = settled.iter().map(class).collect();
    let mut common = common(&of_recorded, &of_came).unwrap_or_else(|| rising(&settled));
    draw_forward(&mut common, &of_recorded, &of_came);
    // Of those that have no place, as many as were told so are told.
    let mut told: HashMap<u32, usize> = HashMap::new();
    came.iter().filter(|came| came.is_told).for_each(|came| *told.entry(class(came)).or_default() += 1);
    let (mut is_common, mut is_left) = (vec![false; settled.len()], vec![true; recorded.len()]);
    common.iter().for_each(|&(place, at)| (is_left[place], is_common[at]) = (false, true));
    for (came, _) in settled.iter().zip(&is_common).filter(|(came, is_common)| came.is_told && !**is_common) {
        told.entry(class(came)).and_modify(|told| *told -= 1);
    }
    let mut left: HashMap<u32, Vec<usize>> = HashMap::new();
    for place in (0..recorded.len()).rev().filter(|&place| is_left[place]) {
        left.entry(recorded[place].class).or_default().push(place);
    }
    let mut moved = Vec::new();
    for (at, came) in settled.iter().enumerate().filter(|(at, came)| !is_common[*at] && !came.is_told) {
        let class = class(came);
        match told.get_mut(&class) {
            Some(told) if *told > 0 => *told -= 1,
            _ => {
                let place = left.get_mut(&class).and_then(Vec::pop).unwrap_or(came.place);
                let before = common.partition_point(|&(_, other)| other < at);
                let next = common[..before].last().map_or(0, |(place, _)| place + 1);
                let expected = (next..recorded.len()).find(|&next| recorded[next].class != class);
                moved.push(Moved { place, expected });
            }
        }
    }
    if moved.is_empty() { within_groups(recorded, came) } else { moved }
}

/// Of equal ones that came, the first that can be is the one in its place.
fn draw_forward(common: &mut [(usize, usize)], recorded: &[u32], came: &[u32]) {
    let mut next = 0;
    for (place, at) in common {
        let first = (next..*at).find(|&at| came[at] == recorded[*place]);
        *at = first.unwrap_or(*at);
        next = *at + 1;
    }
}

/// What overlapped when recorded has no order, wherever it comes together; what was told stands behind it.
fn settled(recorded: &[Recorded], came: &[Came]) -> Vec<Came> {
    let mut settled = Vec::with_capacity(came.len());
    let mut at = 0;
    while at < came.len() {
        let run = run(recorded, &came[at..]);
        let from = settled.len();
        settled.extend_from_slice(&came[at..at + run]);
        settled[from..].sort_by_key(|came| (came.is_told, came.place));
        at += run;
    }
    settled
}

/// How many from the first one on came together that overlapped.
fn run(recorded: &[Recorded], came: &[Came]) -> usize {
    let group = |came: &Came| recorded[came.place].group.filter(|_| !came.is_told);
    let Some(own) = group(&came[0]) else { return 1 };
    let end = came.iter().position(|came| !came.is_told && group(came) != Some(own));
    end.unwrap_or(came.len())
}

/// Of those that came together and overlapped with each other, but not all with all, and that equal no other: those that
/// came before another whose answer had come before they were asked.
fn within_groups(recorded: &[Recorded], came: &[Came]) -> Vec<Moved> {
    let (mut seen, mut alike) = (HashSet::new(), HashSet::new());
    alike.extend(recorded.iter().map(|recorded| recorded.class).filter(|class| !seen.insert(*class)));
    let mut moved: Vec<Moved> = Vec::new();
    let mut latest: Option<usize> = None;
    for came in came.iter().filter(|came| !came.is_told) {
        let this = &recorded[came.place];
        let past = latest.filter(|&latest| {
            let latest = &recorded[latest];
            this.group.is_some() && latest.group == this.group && this.answered < latest.asked
        });
        match past {
            Some(latest) if !alike.contains(&this.class) => {
                if moved.last().is_none_or(|last| last.place != latest) {
                    moved.push(Moved { place: latest, expected: Some(came.place) });
                }
            }
            _ => latest = latest.max(Some(came.place)),
        }
    }
    moved
}

/// The longest part that both have in common, as pairs of places in them; none where they differ too much.
fn common(a: &[u32], b: &[u32]) -> Option<Vec<(usize, usize)>> {
    let head = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let (a, b) = (&a[head..], &b[head..]);
    let tail = a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count();
    let mut pairs: Vec<_> = (0..head).map(|at| (at, at)).collect();
    let middle = middle(&a[..a.len() - tail], &b[..b.len() - tail])?;
    pairs.extend(middle.into_iter().map(|(x, y)| (head + x, head + y)));
    let (x, y) = (head + a.len() - tail, head + b.len() - tail);
    pairs.extend((0..tail).map(|at| (x + at, y + at)));
    Some(pairs)
}

/// The same where neither the first nor the last ones are equal.
fn middle(a: &[u32], b: &[u32]) -> Option<Vec<(usize, usize)>> {
    // With so many differences, how far one comes in `a` on each diagonal: from `-d` to `d`, every other one.
    let mut trace: Vec<Vec<usize>> = Vec::new();
    for d in 0..=MOST {
        let last = trace.last().map_or(&[][..], |last| last);
        let mut reached = Vec::with_capacity(d + 1);
        for k in 0..=d {
            let (mut x, mut y) = begun(last, d, k);
            while x < a.len() && y < b.len() && a[x] == b[y] {
                (x, y) = (x + 1, y + 1);
            }
            reached.push(x);
            if x >= a.len() && y >= b.len() {
                return Some(back(&trace, d, k, x));
            }
        }
        trace.push(reached);
    }
    None
}

/// Where the `d`th difference leads on its `k`th diagonal, from where the one before it came: one further in `b` from the
/// diagonal above, or one further in `a` from that below, whichever is farther.
fn begun(last: &[usize], d: usize, k: usize) -> (usize, usize) {
    if d == 0 {
        return (0, 0);
    }
    let x = match (k.checked_sub(1).map(|below| last[below] + 1), last.get(k)) {
        (Some(below), Some(&above)) => below.max(above),
        (Some(below), None) => below,
        (None, above) => *above.expect("there is one on either side"),
    };
    // The diagonal is that of `x - y == 2k - d`.
    (x, (x + d).saturating_sub(2 * k))
}

/// The pairs on the way back from its end.
fn back(trace: &[Vec<usize>], mut d: usize, mut k: usize, mut x: usize) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    loop {
        let last = d.checked_sub(1).map_or(&[][..], |last| &trace[last]);
        let (start, _) = begun(last, d, k);
        let y = |x: usize| x + d - 2 * k;
        pairs.extend((start..x).rev().map(|x| (x, y(x))));
        if d == 0 {
            break;
        }
        let is_from_below = k > 0 && last.get(k).is_none_or(|&above| last[k - 1] + 1 >= above);
        (d, k) = (d - 1, if is_from_below { k - 1 } else { k });
        x = last[k];
    }
    pairs.reverse();
    pairs
}

/// The longest part of what came, as what it was answered by, that goes up; as pairs of places.
fn rising(came: &[Came]) -> Vec<(usize, usize)> {
    let answered: Vec<(usize, usize)> = came
        .iter()
        .enumerate()
        .filter(|(_, came)| !came.is_told)
        .map(|(at, came)| (came.place, at))
        .collect();
    // Of all that are so long, the one with the lowest end; and what each stands behind.
    let (mut ends, mut behind): (Vec<usize>, Vec<Option<usize>>) = (Vec::new(), Vec::new());
    for (this, &(place, _)) in answered.iter().enumerate() {
        let length = ends.partition_point(|&end| answered[end].0 < place);
        behind.push(length.checked_sub(1).map(|before| ends[before]));
        if length == ends.len() { ends.push(this) } else { ends[length] = this }
    }
    let mut pairs = Vec::with_capacity(ends.len());
    let mut next = ends.last().copied();
    while let Some(this) = next {
        pairs.push(answered[this]);
        next = behind[this];
    }
    pairs.reverse();
    pairs
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What was recorded one after another, and what came: each answered by the first equal one that is left.
    fn play(recorded: &str, came: &str) -> (Vec<Recorded>, Vec<Came>) {
        let mut left: Vec<_> = recorded.bytes().map(Some).collect();
        let came = came.bytes().map(|class| {
            let place = left.iter().position(|left| *left == Some(class));
            place.into_iter().for_each(|place| left[place] = None);
            let last = || recorded.bytes().rposition(|recorded| recorded == class);
            Came { place: place.or_else(last).expect("it was recorded"), is_told: place.is_none() }
        });
        let came = came.collect();
        let recorded = (0..).zip(recorded.bytes()).map(|(at, class)| Recorded {
            class: class.into(),
            group: None,
            asked: 2 * at,
            answered: 2 * at + 1,
        });
        (recorded.collect(), came)
    }

    fn count(recorded: &str, came: &str) -> usize {
        let (recorded, came) = play(recorded, came);
        moved(&recorded, &came).len()
    }

    #[test]
    fn what_is_left_out_or_comes_again_is_not_moved_however_equal_it_is() {
        for recorded in ["abaaaaaa", "abca", "aabbaabb", "abababc", "aaaa", "abcdefg"] {
            assert_eq!(count(recorded, recorded), 0);
            for at in 0..recorded.len() {
                let (head, tail) = recorded.split_at(at);
                assert_eq!(count(recorded, &format!("{head}{}", &tail[1..])), 0, "{recorded} without {at}");
                let again = format!("{head}{}{tail}", &tail[..1]);
                assert_eq!(count(recorded, &again), 0, "{recorded} as {again}");
            }
        }
        // One more of what comes elsewhere too.
        assert_eq!(count("ababc", "aababc"), 0);
        assert_eq!(count("abcd", "babcd"), 0);
    }

    #[test]
    fn each_that_is_moved_is_told_once_with_what_was_expected_there() {
        let told = |recorded: &str, came: &str| {
            let (recorded, came) = play(recorded, came);
            let moved = moved(&recorded, &came);
            moved.into_iter().map(|moved| (moved.place, moved.expected)).collect::<Vec<_>>()
        };
        assert_eq!(told("abcd", "acdb"), [(1, None)]);
        assert_eq!(told("abcd", "dabc"), [(3, Some(0))]);
        assert_eq!(told("abcd", "adbc"), [(3, Some(1))]);
        // Of equal ones it is the one that is missing in its place.
        assert_eq!(told("acba", "cbaa"), [(0, None)]);
        assert_eq!(told("acbad", "cbaad"), [(0, Some(4))]);
        assert_eq!(count("abca", "baca"), 1);
        assert_eq!(count("abcdef", "badcfe"), 3);
        // Left out, moved and once more.
        assert_eq!(count("abcdd", "ddda"), 1);
    }

    #[test]
    fn what_overlapped_comes_in_any_order_but_behind_what_was_asked_after_its_answer() {
        let at = |class, group, asked, answered| Recorded { class, group, asked, answered };
        // The first overlaps with the second, that with the third, and the last with nothing.
        let chain = [at(0, Some(0), 0, 2), at(1, Some(0), 1, 4), at(2, Some(0), 3, 5), at(3, None, 6, 7)];
        let moved = |places: &[usize]| {
            let came: Vec<_> = places.iter().map(|&place| Came { place, is_told: false }).collect();
            moved(&chain, &came).into_iter().map(|moved| moved.place).collect::<Vec<_>>()
        };
        assert_eq!(moved(&[0, 1, 2, 3]), [0; 0]);
        assert_eq!(moved(&[1, 0, 2, 3]), [0; 0]);
        assert_eq!(moved(&[0, 2, 1, 3]), [0; 0]);
        assert_eq!(moved(&[2, 1, 0, 3]), [2]);
        assert_eq!(moved(&[3, 1, 0, 2]), [3]);
    }

    #[test]
    fn where_very_much_is_moved_it_is_still_soon_told() {
        let recorded: Vec<_> = (0..100_000)
            .map(|at| Recorded { class: at, group: None, asked: 2 * at, answered: 2 * at + 1 })
            .collect();
        let came: Vec<_> = (0..100_000).rev().map(|place| Came { place, is_told: false }).collect();
        assert_eq!(moved(&recorded, &came).len(), 99_999);
        let few: Vec<_> = (0..100_000)
            .map(|at| Came {
                place: if at == 7 {
                    9
                } else if at == 9 {
                    7
                } else {
                    at
                },
                is_told: false,
            })
            .collect();
        assert_eq!(moved(&recorded, &few).len(), 2);
    }

    /// The length of the longest common part, the slow way.
    fn longest(a: &[u8], b: &[u8]) -> usize {
        let mut row = vec![0; b.len() + 1];
        for a in a {
            let mut diagonal = 0;
            for (at, b) in b.iter().enumerate() {
                let here = if a == b { diagonal + 1 } else { row[at].max(row[at + 1]) };
                diagonal = std::mem::replace(&mut row[at + 1], here);
            }
        }
        row[b.len()]
    }

    proptest! {
        #[test]
        fn so_many_are_moved_as_have_no_place_in_what_is_common(recorded in "[abc]{0,12}", came in "[abc]{0,12}") {
            let came: String = came.chars().filter(|class| recorded.contains(*class)).collect();
            let times = |text: &str, class: char| text.matches(class).count();
            let both: usize = ['a', 'b', 'c'].map(|class| times(&recorded, class).min(times(&came, class))).iter().sum();
            let expected = both - longest(recorded.as_bytes(), came.as_bytes());
            prop_assert_eq!(count(&recorded, &came), expected);
        }
    }
}
