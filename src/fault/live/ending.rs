//! The end of what a server on stdio says.

use super::Live;
use crate::{
    fault::step::Output,
    traffic::{Lane, Micros},
};

/// Both of a client's pipes.
const PIPE: Lane = Lane(0);

impl Live {
    /// The server on stdio says nothing more; `rest` is what stands behind its last line end. It goes as it is, but as a
    /// line where a fault acts on it or on what comes behind it.
    pub fn server_ended(&mut self, now: Micros, rest: Vec<u8>) {
        let line = Output::Send { lane: PIPE, bytes: rest, apart: false };
        let is_line = self.asked.has(&line) || self.owes(PIPE);
        self.server(
            now,
            match line {
                Output::Send { lane, bytes, .. } if !is_line || bytes.is_empty() => {
                    Output::Raw { lane, bytes, goes_on: false }
                }
                line => line,
            },
        );
        self.asked.left(PIPE).for_each(|acting| self.stage.close(acting));
        self.take_back_idle();
    }
}
