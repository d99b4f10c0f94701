//! Objects that say what a value has to be, and hold none.

use super::{backslashes, skip_gap};

/// Whether an object that begins before `at` says first what a value has to be: it is a schema, and holds none.
pub(in super::super) fn begins_schema(text: &[u8], at: usize) -> bool {
    const MEMBERS: [&[u8]; 28] = [
        b"type",
        b"$ref",
        b"$id",
        b"$schema",
        b"$comment",
        b"anyOf",
        b"oneOf",
        b"allOf",
        b"not",
        b"enum",
        b"const",
        b"properties",
        b"additionalProperties",
        b"patternProperties",
        b"required",
        b"items",
        b"description",
        b"markdownDescription",
        b"title",
        b"default",
        b"examples",
        b"format",
        b"pattern",
        b"minLength",
        b"nullable",
        b"deprecated",
        b"readOnly",
        b"writeOnly",
    ];
    let quote = skip_gap(text, at);
    let name = text.get(quote + backslashes(text, quote) + 1..).unwrap_or_default();
    MEMBERS.iter().any(|member| {
        name.strip_prefix(*member).is_some_and(|rest| matches!(rest.first(), Some(b'"' | b'\\')))
    })
}
