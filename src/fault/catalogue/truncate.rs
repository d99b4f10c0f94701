//! The answer's text ends early, in a message that ends in good order.

use std::sync::Arc;

use crate::fault::{
    Effect, Fault, PlanError, Target,
    step::{Output, Step},
    value::Object,
};

#[derive(Clone, Copy, Debug)]
struct Truncate {
    bytes: usize,
}

pub(super) fn read(object: &mut Object<'_>) -> Result<Arc<dyn Fault>, PlanError> {
    let expected = "how many bytes of the answer come, a whole number from 0";
    let bytes = object.need("bytes", expected)?.integer("bytes", expected)?;
    Ok(Arc::new(Truncate { bytes }))
}

impl Fault for Truncate {
    fn effect(&self, _: &Target<'_>) -> Option<Box<dyn Effect>> {
        Some(Box::new(*self))
    }
}

impl Effect for Truncate {
    fn pass(&mut self, output: Output, out: &mut Vec<Step>) {
        let text = output.text().filter(|_| output.is_response()).map(<[u8]>::to_vec);
        out.push(Step::Do(match text {
            Some(mut text) => {
                text.truncate(self.bytes);
                output.with_text(text)
            }
            None => output,
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Stand;

    #[test]
    fn so_much_of_the_answer_comes() {
        let mut stand = Stand::stdio(r#"{"do": "truncate", "bytes": 9}"#);
        stand.answers(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
        assert_eq!(stand.seen(), "{\"jsonrpc\n");
    }
}
