//! Something that is no message where the answer would come.

use std::sync::Arc;

use super::answer::{Answer, Response};
use crate::fault::{Fault, PlanError, value::Object};

/// The usual length.
const USUAL: usize = 64;
/// The greatest length: it is held in memory.
const MOST: usize = 256 << 20;

#[derive(Clone, Debug)]
enum Garbage {
    Bytes(usize),
    Text(Arc<str>),
}

pub(super) fn read(object: &mut Object<'_>) -> Result<Arc<dyn Fault>, PlanError> {
    let at = object.at();
    let garbage = match (object.get("bytes"), object.get("text")) {
        (Some(_), Some(_)) => {
            return Err(PlanError::new(at, "`garbage` has `bytes` and `text`; keep one of them"));
        }
        (None, Some(text)) => Garbage::Text(text.string("text")?.into()),
        (None, None) => Garbage::Bytes(USUAL),
        (Some(bytes), None) => {
            let expected = "how many bytes, from 0 to 268435456";
            match bytes.integer("bytes", expected)? {
                most if most > MOST => return Err(bytes.wrong("bytes", expected)),
                bytes => Garbage::Bytes(bytes),
            }
        }
    };
    Ok(Arc::new(Answer(move |_: &Response<'_>| Some(garbage.bytes()))))
}

impl Garbage {
    fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Text(text) => text.as_bytes().to_vec(),
            Self::Bytes(count) => noise().take(*count).collect(),
        }
    }
}

/// Bytes without an order, always the same ones (Knuth's MMIX generator). None of them ends a line, or begins anything
/// in JSON.
fn noise() -> impl Iterator<Item = u8> {
    let next =
        |state: &u64| state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    let states = std::iter::successors(Some(7_u64), move |state| Some(next(state)));
    std::iter::once(0xfe)
        .chain(states.map(|state| (state >> 56) as u8).filter(|byte| !b"\n\r".contains(byte)))
}

#[cfg(test)]
mod tests {
    use super::{
        super::testing::{Stand, refused},
        noise,
    };

    const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;

    #[test]
    fn garbage_is_a_text_or_noise() {
        let mut stand = Stand::stdio(r#"{"do": "garbage", "text": "Segmentation fault"}"#);
        stand.says(r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#);
        stand.answers(ANSWER);
        assert_eq!(
            stand.seen(),
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\nSegmentation fault\n"
        );
        let mut stand = Stand::stdio(r#"{"do": "garbage", "bytes": 3}"#);
        stand.answers(ANSWER);
        let three: Vec<u8> = noise().take(3).collect();
        assert_eq!(stand.seen(), format!("{}\n", String::from_utf8_lossy(&three)));
    }

    #[test]
    fn noise_is_one_line_that_is_no_text() {
        let noise: Vec<u8> = noise().take(10_000).collect();
        assert!(
            std::str::from_utf8(&noise[..1]).is_err() && !noise.contains(&b'\n') && !noise.contains(&b'\r')
        );
        let kinds = (0..=255).filter(|byte| noise.contains(byte)).count();
        assert_eq!(kinds, 254);
    }

    #[test]
    fn it_is_one_of_both() {
        assert_eq!(
            refused(r#"{"do": "garbage", "bytes": 1, "text": ""}"#),
            "`garbage` has `bytes` and `text`; keep one of them"
        );
        assert!(refused(r#"{"do": "garbage", "bytes": 268435457}"#).contains("from 0 to 268435456"));
    }
}
