//! A server on stdio that stays although its input has closed, or a signal asks it to end.

use std::sync::Arc;

use crate::{
    fault::{Fault, PlanError, value::Object},
    traffic::Micros,
};

#[derive(Debug)]
struct IgnoreShutdown(Micros);

pub(super) fn read(object: &mut Object<'_>) -> Result<Arc<dyn Fault>, PlanError> {
    let ms = object.need("ms", "for how many milliseconds the server stays")?;
    Ok(Arc::new(IgnoreShutdown(ms.millis("ms")?)))
}

impl Fault for IgnoreShutdown {
    fn lingers(&self) -> Option<Micros> {
        Some(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{super::value::Object, testing::refused};

    #[test]
    fn it_has_to_be_said_how_long_a_server_stays() {
        assert_eq!(
            refused(r#"{"do": "ignore_shutdown"}"#),
            "a fault needs `ms`, for how many milliseconds the server stays"
        );
        assert!(super::read(&mut Object::empty("a fault")).is_err());
        assert!(refused(r#"{"do": "ignore_shutdown", "ms": 86400001}"#).contains("from 0 to a day"));
    }

    #[test]
    fn it_says_nothing_and_stays() {
        use crate::fault::Fault as _;
        assert_eq!(super::IgnoreShutdown(5).lingers(), Some(5));
    }
}
