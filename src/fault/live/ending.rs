//! The end of what a server on stdio says.

use super::{Live, asked::Whose};
use crate::{
    fault::step::Output,
    traffic::{Lane, Micros},
};

/// Both of a client's pipes.
const PIPE: Lane = Lane(0);

impl Live {
    /// The server on stdio says nothing more; `rest` is what stands behind its last line end. It goes as it is, but as a
    /// line where a fault changes it or something comes behind it.
    pub fn server_ended(&mut self, now: Micros, rest: Vec<u8>) {
        let is_line = self.owes(PIPE) && !rest.is_empty();
        let raw = Output::Raw { lane: PIPE, bytes: rest.clone(), goes_on: false };
        let line = Output::Send { lane: PIPE, bytes: rest, apart: false };
        match self.asked.whose_last(&line) {
            Whose::Nobodys => self.server(now, if is_line { line } else { raw }),
            Whose::Affected { acting: None, .. } => {}
            Whose::Affected { acting: Some(acting), .. } => {
                let cut = if is_line { line.clone() } else { raw };
                self.stage.pass_last(now, acting, (line, Some(cut)), &mut self.outputs);
                self.stage.close(acting);
            }
        }
        self.asked.left(PIPE).for_each(|acting| self.stage.close(acting));
        self.take_back_idle();
    }
}
