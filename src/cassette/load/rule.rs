//! `match` rules. What they mean is checked here too, so that a mistake is found where it stands.

use super::{
    super::{
        error::{LoadError, LoadErrorKind, Result},
        model::{MatchRule, When},
        shape::{RULE, WHEN},
    },
    Loader, Name, short,
};
use crate::wire::{Span, jsonrpc, pointer, scan};

const TYPES: [&str; 6] = ["string", "number", "boolean", "object", "array", "null"];
const POINTER: &str = "a JSON Pointer that begins with /params, such as /params/arguments/limit";

impl Loader<'_> {
    pub(super) fn rule(&mut self) -> Result<MatchRule> {
        let mut walk = self.begin(&RULE)?;
        let mut rule = MatchRule::default();
        while let Some(member) = self.known(&mut walk)? {
            match member {
                "when" => rule.when = self.when()?,
                "ignore" => {
                    self.list("ignore", |loader| {
                        let pointer = loader.string("ignore", POINTER)?;
                        rule.ignore.push(loader.pointer("ignore", pointer)?);
                        Ok(())
                    })?;
                }
                "pattern" => {
                    rule.pattern = self.by_pointer("pattern", |pattern| {
                        regex::Regex::new(pattern).err().map(|error| LoadErrorKind::Pattern {
                            pattern: short(pattern),
                            // The last line says what is wrong; those before it draw where.
                            reason: error.to_string().lines().last().unwrap_or_default().to_owned(),
                        })
                    })?;
                }
                "type" => {
                    rule.types = self.by_pointer("type", |name| {
                        let expected = "string, number, boolean, object, array or null";
                        let kind = LoadErrorKind::Member {
                            member: "type",
                            expected,
                            found: format!("`{}`", short(name)),
                        };
                        (!TYPES.contains(&name)).then_some(kind)
                    })?;
                }
                _ => self.any()?,
            }
        }
        rule.place = Span::new(walk.start, self.reader.at).into();
        Ok(rule)
    }

    fn when(&mut self) -> Result<When> {
        let mut walk = self.begin(&WHEN)?;
        let mut when = When::default();
        while let Some(name) = self.next(&mut walk)? {
            let slot = match name {
                Name::Known("method") => &mut when.method,
                Name::Known("tool") => &mut when.tool,
                Name::Known("prompt") => &mut when.prompt,
                Name::Known("uri") => &mut when.uri,
                Name::Known(_) => &mut when.key,
                Name::Unknown(name) => {
                    let shown = short(&jsonrpc::text(name.of(self.reader.text)));
                    return Err(LoadError::new(name.start, LoadErrorKind::Condition { name: shown }));
                }
            };
            *slot = Some(self.text("when")?.into_owned());
        }
        Ok(when)
    }

    fn pointer(&self, member: &'static str, raw: Span) -> Result<String> {
        let text = jsonrpc::text(raw.of(self.reader.text));
        // Nothing else of a request is compared.
        if pointer::steps(&text).is_ok_and(|mut steps| steps.next() == Some("params")) {
            return Ok(text.into_owned());
        }
        self.wrong(raw.start, member, POINTER)
    }

    /// Reads an object whose members are named by JSON Pointers.
    fn by_pointer(
        &mut self,
        member: &'static str,
        wrong: impl Fn(&str) -> Option<LoadErrorKind>,
    ) -> Result<Vec<(String, String)>> {
        let mut pairs = Vec::new();
        let start = self.reader.at;
        if self.reader.peek() != b'{' {
            return self.wrong(start, member, "an object with a JSON Pointer for each name");
        }
        self.reader.at += 1;
        let mut first = true;
        while let Some(name) = self.reader.member(&mut first)? {
            let pointer = self.pointer(member, name)?;
            let value = self.string(member, "a string for each pointer")?;
            let text = jsonrpc::text(value.of(self.reader.text)).into_owned();
            if let Some(kind) = wrong(&text) {
                return Err(LoadError::new(value.start, kind));
            }
            if pairs
                .iter()
                .any(|(before, _): &(String, String)| scan::string_is(name.of(self.reader.text), before))
            {
                let kind = LoadErrorKind::Twice { name: short(&pointer), place: RULE.name };
                return Err(LoadError::new(name.start, kind));
            }
            pairs.push((pointer, text));
        }
        Ok(pairs)
    }
}
