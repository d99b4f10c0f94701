//! What the words of a schema say of a value itself, whatever stands in it.

use super::{
    Judge, Part, Verdict, member,
    number::Decimal,
    pattern,
    value::{TYPES, are_unique, count, is_equal, is_of, text},
};
use crate::{
    lint::dialogue::{self, short, shown},
    wire::{Span, scan},
};

/// Fits, is not known to, or what is wrong instead.
fn verdict(part: &Part, fits: Option<bool>, wrong: impl FnOnce() -> String) -> Verdict {
    match fits {
        Some(true) => Verdict::Fits,
        Some(false) => part.wrong(wrong()),
        None => Verdict::Unknown,
    }
}

impl Judge<'_> {
    pub(super) fn says(&mut self, part: &Part, word: &str, at: Span) -> Verdict {
        let (raw, asked) = (part.span.of(self.value), at.of(self.schema));
        match word {
            "type" => self.is_of_type(part, at),
            "enum" | "const" => self.is_one_of(part, word, at),
            "required" if raw[0] == b'{' => self.has_all(part, at),
            "additionalProperties" if raw[0] == b'{' && asked == b"false" => self.is_closed(part),
            "pattern" => self.is_matched(part, asked),
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => {
                self.is_in_range(part, word, asked)
            }
            "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties" => {
                self.is_of_size(part, word, asked)
            }
            "uniqueItems" if raw[0] == b'[' && asked == b"true" => {
                let is_unique = are_unique(self.value, part.span);
                verdict(part, is_unique, || "two elements are equal".to_owned())
            }
            "$ref" if self.target(at).is_none() => Verdict::Unknown,
            _ => Verdict::Fits,
        }
    }

    /// The elements of an array in the schema; any other value is one.
    fn elements(&self, at: Span) -> Vec<&[u8]> {
        match self.schema[at.start] {
            b'[' => {
                let elements = scan::elements(self.schema, at.start).map_while(Result::ok);
                elements.map(|element| element.of(self.schema)).collect()
            }
            _ => vec![at.of(self.schema)],
        }
    }

    fn is_of_type(&self, part: &Part, at: Span) -> Verdict {
        let raw = part.span.of(self.value);
        let types: Option<Vec<_>> = self.elements(at).into_iter().map(dialogue::text).collect();
        let types = types.filter(|types| types.iter().all(|name| TYPES.contains(&name.as_str())));
        let fits = types.as_ref().map(|types| types.iter().any(|name| is_of(name, raw)));
        // What was hidden may have been of another type.
        let fits = fits.filter(|fits| *fits || !raw.starts_with(b"\"<redacted:"));
        let types = types.unwrap_or_default();
        verdict(part, fits, || format!("expected {}, found `{}`", types.join(" or "), shown(raw)))
    }

    fn is_one_of(&self, part: &Part, word: &str, at: Span) -> Verdict {
        let raw = part.span.of(self.value);
        let choices = if word == "const" { vec![at.of(self.schema)] } else { self.elements(at) };
        let mut fits = Some(false);
        for choice in &choices {
            match is_equal(choice, raw) {
                Some(true) => return Verdict::Fits,
                Some(false) => {}
                None => fits = None,
            }
        }
        let named = || {
            let names = choices.iter().map(|raw| dialogue::text(raw).unwrap_or_else(|| shown(raw)));
            short(&names.collect::<Vec<_>>().join(", "))
        };
        verdict(part, fits, || format!("expected one of {}, found `{}`", named(), shown(raw)))
    }

    fn has_all(&self, part: &Part, at: Span) -> Verdict {
        let names = self.elements(at).into_iter().filter_map(dialogue::text);
        let missing = names.into_iter().find(|name| member(self.value, part.span, name).is_none());
        match missing {
            Some(name) => part.wrong(format!("`{}` is missing", short(&name))),
            None => Verdict::Fits,
        }
    }

    fn is_closed(&self, part: &Part) -> Verdict {
        if self.word(part, "patternProperties").is_some() {
            return Verdict::Unknown;
        }
        let properties = self.word(part, "properties");
        let mut names =
            scan::members(self.value, part.span.start).map_while(Result::ok).map(|found| found.name);
        let extra = names.find(|name| {
            let name = dialogue::text(name.of(self.value)).unwrap_or_default();
            properties.and_then(|span| member(self.schema, span, &name)).is_none()
        });
        match extra {
            Some(name) => {
                let name = shown(name.of(self.value));
                part.wrong(format!("`{}` is not in the schema", name.trim_matches('"')))
            }
            None => Verdict::Fits,
        }
    }

    fn is_matched(&mut self, part: &Part, asked: &[u8]) -> Verdict {
        let raw = part.span.of(self.value);
        if raw[0] != b'"' {
            return Verdict::Fits;
        }
        let (Some(asked), Some(found)) = (dialogue::text(asked), text(raw)) else { return Verdict::Unknown };
        let known = self.patterns.entry(asked).or_insert_with_key(|asked| pattern::read(asked));
        let fits = known.as_ref().and_then(|known| pattern::is_in(known, &found));
        let asked = || known.as_ref().map(|known| short(known.as_str())).unwrap_or_default();
        verdict(part, fits, || format!("expected text that matches `{}`, found `{}`", asked(), shown(raw)))
    }

    fn is_in_range(&self, part: &Part, word: &str, asked: &[u8]) -> Verdict {
        let raw = part.span.of(self.value);
        if !is_of("number", raw) || matches!(raw[0], b'"' | b'{' | b'[' | b't' | b'f' | b'n') {
            return Verdict::Fits;
        }
        let (Some(found), Some(bound)) = (Decimal::read(raw), Decimal::read(asked)) else {
            return Verdict::Unknown;
        };
        let (fits, expected) = match word {
            "minimum" => (Some(found >= bound), "at least"),
            "maximum" => (Some(found <= bound), "at most"),
            "exclusiveMinimum" => (Some(found > bound), "more than"),
            "exclusiveMaximum" => (Some(found < bound), "less than"),
            _ => (found.is_multiple_of(&bound), "a multiple of"),
        };
        verdict(part, fits, || format!("expected {expected} {}, found `{}`", shown(asked), shown(raw)))
    }

    fn is_of_size(&self, part: &Part, word: &str, asked: &[u8]) -> Verdict {
        let raw = part.span.of(self.value);
        let (size, of) = match (raw[0], &word[3..]) {
            (b'"', "Length") => (text(raw).map(|text| text.chars().count()), "characters"),
            (b'[', "Items") => (Some(count(self.value, part.span)), "elements"),
            (b'{', "Properties") => (Some(count(self.value, part.span)), "members"),
            _ => return Verdict::Fits,
        };
        let bound = Decimal::read(asked);
        let counted = size.and_then(|size| Decimal::read(size.to_string().as_bytes()));
        let is_least = word.starts_with("min");
        let fits =
            counted.zip(bound).map(|(size, bound)| if is_least { size >= bound } else { size <= bound });
        let bound = if is_least { "at least" } else { "at most" };
        let size = size.unwrap_or_default();
        verdict(part, fits, || format!("expected {bound} {} {of}, found {size}", shown(asked)))
    }
}
