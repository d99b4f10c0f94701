//! Before the answer the server tells that one of its lists has changed.

use std::sync::Arc;

use super::ahead::Ahead;
use crate::fault::{Fault, PlanError, value::Object};

pub(super) fn read(object: &mut Object<'_>) -> Result<Arc<dyn Fault>, PlanError> {
    let list = match object.get("list") {
        None => "tools".into(),
        Some(list) => {
            let name = list.string("list")?;
            if !["tools", "prompts", "resources"].contains(&&*name) {
                return Err(list.wrong("list", "`tools`, `prompts` or `resources`"));
            }
            name
        }
    };
    let method = format!("notifications/{list}/list_changed");
    Ok(Arc::new(Ahead(format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#).into_bytes())))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Stand, refused};

    #[test]
    fn the_notification_comes_before_the_answer() {
        let mut stand = Stand::stdio(r#"{"do": "list_changed", "list": "prompts"}"#);
        let answer = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        stand.answers(answer);
        let changed = r#"{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}"#;
        assert_eq!(stand.seen(), format!("{changed}\n{answer}\n"));
        assert_eq!(
            refused(r#"{"do": "list_changed", "list": "roots"}"#),
            "`list` must be `tools`, `prompts` or `resources`, found `\"roots\"`"
        );
    }
}
