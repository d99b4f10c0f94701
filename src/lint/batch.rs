//! Several messages in one array.

use super::{
    Fault,
    dialogue::{Dialogue, is_initialize},
};
use crate::wire::revision::revision;

pub(super) fn outside(dialogue: &Dialogue<'_>, faults: &mut Vec<Fault>) {
    let agreed = dialogue.protocol();
    let mut before = None;
    for seen in dialogue.seen.iter().filter(|seen| seen.in_batch) {
        if is_initialize(seen) {
            let text = "`initialize` may not stand in a batch; send it alone";
            faults.push(dialogue.fault(seen, "", text));
        } else if before.replace(seen.at) != Some(seen.at)
            && let Some(agreed) = agreed.as_deref().filter(|agreed| !revision(agreed).batches)
        {
            let text = format!(
                "the session is of {agreed}, and only 2025-03-26 has batches; send each message alone"
            );
            faults.push(dialogue.fault(seen, "", text));
        }
    }
}
