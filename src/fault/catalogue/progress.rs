//! Progress that cannot be: that goes backwards, or comes after the answer
//! (specification 2025-11-25, basic/utilities/progress).

use std::sync::Arc;

use super::ahead::Streaming;
use crate::fault::{
    Effect, Fault, PlanError, Target,
    step::{Output, Step},
    value::Object,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    Backwards,
    AfterResult,
}

pub(super) fn read(object: &mut Object<'_>) -> Result<Arc<dyn Fault>, PlanError> {
    let progress = match object.get("how") {
        None => Progress::Backwards,
        Some(how) => match &*how.string("how")? {
            "backwards" => Progress::Backwards,
            "after_result" => Progress::AfterResult,
            _ => return Err(how.wrong("how", "`backwards` or `after_result`")),
        },
    };
    Ok(Arc::new(progress))
}

impl Fault for Progress {
    fn effect(&self, of: &Target<'_>) -> Option<Box<dyn Effect>> {
        // Without a token nobody could tell what makes progress.
        let token = String::from_utf8_lossy(of.token?).into_owned();
        Some(Box::new(Streaming::new(Telling { how: *self, token }, of.lane)))
    }
}

#[derive(Debug)]
struct Telling {
    how: Progress,
    token: String,
}

impl Telling {
    fn tell(&self, like: &Output, progress: u32) -> Step {
        let token = &self.token;
        let text = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{progress}}}}}"#
        );
        Step::Do(like.clone().with_text(text.into_bytes()))
    }
}

impl Effect for Telling {
    fn pass(&mut self, output: Output, out: &mut Vec<Step>) {
        if !output.is_response() {
            return out.push(Step::Do(output));
        }
        match self.how {
            Progress::Backwards => {
                let told = [2, 1].map(|progress| self.tell(&output, progress));
                out.extend(told);
                out.push(Step::Do(output));
            }
            Progress::AfterResult => {
                let late = self.tell(&output, 1);
                out.push(Step::Do(output));
                out.push(late);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Stand, refused};

    const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;

    fn progress(n: u32) -> String {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":"t","progress":{n}}}}}"#
        )
    }

    #[test]
    fn progress_goes_backwards_or_comes_late() {
        let mut stand = Stand::stdio(r#""progress""#);
        stand.answers(ANSWER);
        assert_eq!(stand.seen(), format!("{}\n{}\n{ANSWER}\n", progress(2), progress(1)));
        let mut stand = Stand::stdio(r#"{"do": "progress", "how": "after_result"}"#);
        stand.answers(ANSWER);
        assert_eq!(stand.seen(), format!("{ANSWER}\n{}\n", progress(1)));
        assert_eq!(
            refused(r#"{"do": "progress", "how": "fast"}"#),
            "`how` must be `backwards` or `after_result`, found `\"fast\"`"
        );
    }
}
