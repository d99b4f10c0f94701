//! What of a plan has no meaning in live traffic.

use crate::{
    cassette::key::quoted,
    fault::{Plan, PlanError, Scope},
    wire::jsonrpc::{subject, text},
};

impl Scope {
    /// Live traffic: of which revision it will be, nobody knows.
    pub const fn live(is_http: bool) -> Self {
        Self { is_http, is_legacy: true, is_modern: true }
    }
}

impl Plan {
    /// That all of it can exist in live traffic.
    ///
    /// # Errors
    /// With the rule that cannot, and what it could be instead.
    pub fn check_live(&mut self, is_http: bool) -> Result<(), PlanError> {
        self.check(Scope::live(is_http))?;
        let keys = self.rules.iter().filter_map(|rule| Some((rule, rule.when.request.key.as_deref()?)));
        for (rule, key) in keys {
            if let Some(why) = no_key(key) {
                return Err(rule.error(&format!("`{key}` is no key of live traffic: {why}")));
            }
        }
        Ok(())
    }
}

/// Why no live request can have this key.
fn no_key(key: &str) -> Option<String> {
    let numbered =
        key.rsplit_once(" @").filter(|(_, number)| number.parse::<u64>().is_ok_and(|number| number > 0));
    let Some((about, number)) = numbered else {
        return Some(
            "there it is METHOD NAME @N, the Nth request of that method and name, as `tools/call search @2`"
                .to_owned(),
        );
    };
    let (method, name) = about.split_once(' ').map_or((about, None), |(method, name)| (method, Some(name)));
    match (subject(method), name) {
        (None, Some(_)) => Some(format!("requests `{method}` have no name; write `{method} @{number}`")),
        (Some(_), None) => Some(format!(
            "requests `{method}` have a name; write `{method} NAME @{number}`, or `method` and `nth`"
        )),
        (_, Some(name)) => {
            let meant = if name.starts_with('"') { text(name.as_bytes()) } else { name.into() };
            let spelled = quoted(&meant);
            (spelled != name)
                .then(|| format!("a name like this one is written `{method} {spelled} @{number}`"))
        }
        (None, None) => None,
    }
}
