//! Messages on their way in pieces: what else goes on the same lane waits until they are whole.

use std::collections::VecDeque;

use super::{stage::Acting, step::Output};
use crate::traffic::Lane;

/// The messages that are on their way in pieces, one a lane at most.
#[derive(Debug, Default)]
pub(super) struct Pieces(Vec<Broken>);

#[derive(Debug)]
struct Broken {
    lane: Lane,
    by: Option<Acting>,
    behind: VecDeque<(Option<Acting>, Output)>,
}

impl Pieces {
    /// Something goes because of an affected request, or of none: now, or behind a message that is not whole yet.
    pub(super) fn go(&mut self, by: Option<Acting>, output: Output, out: &mut VecDeque<Output>) {
        if self.0.is_empty() && !goes_on(&output) {
            out.push_back(output);
            return;
        }
        let mut going = VecDeque::from([(by, output)]);
        while let Some((by, output)) = going.pop_front() {
            let at = self.0.iter().position(|broken| broken.lane == output.lane());
            match at {
                Some(at) if self.0[at].by != by => self.0[at].behind.push_back((by, output)),
                Some(at) if !goes_on(&output) => {
                    let behind = self.0.remove(at).behind;
                    behind.into_iter().rev().for_each(|next| going.push_front(next));
                    out.push_back(output);
                }
                None if goes_on(&output) => {
                    self.0.push(Broken { lane: output.lane(), by, behind: VecDeque::new() });
                    out.push_back(output);
                }
                _ => out.push_back(output),
            }
        }
    }

    /// Whether one of them goes because of an affected request.
    pub(super) fn is_of(&self, acting: Acting) -> bool {
        self.0.iter().any(|broken| broken.by == Some(acting))
    }

    /// Whether none is.
    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The client has left a lane.
    pub(super) fn left(&mut self, lane: Lane) {
        self.0.retain(|broken| broken.lane != lane);
    }
}

const fn goes_on(output: &Output) -> bool {
    matches!(output, Output::Raw { goes_on: true, .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(bytes: &str, goes_on: bool) -> Output {
        Output::Raw { lane: Lane(0), bytes: bytes.into(), goes_on }
    }

    #[test]
    fn nothing_comes_between_the_pieces_of_a_message() {
        let [a, b] = {
            let mut stage = super::super::Stage::default();
            [(); 2].map(|()| stage.begin(Vec::new(), Default::default(), None)).map(Some)
        };
        let line = Output::Send { lane: Lane(0), bytes: b"line".to_vec(), apart: false };
        let other = Output::EndLane { lane: Lane(3), partial: Vec::new(), end: None };
        let (mut pieces, mut out) = (Pieces::default(), VecDeque::new());
        for (by, output) in [
            (a, piece("a1", true)),
            (None, line.clone()),
            (b, piece("b1", true)),
            (None, other.clone()),
            (a, piece("a2", false)),
            (None, line.clone()),
            (b, piece("b2", false)),
        ] {
            pieces.go(by, output, &mut out);
        }
        let seen = [
            piece("a1", true),
            other,
            piece("a2", false),
            line.clone(),
            piece("b1", true),
            piece("b2", false),
            line,
        ];
        assert_eq!(Vec::from(out), seen);
        assert!(pieces.0.is_empty());
    }
}
