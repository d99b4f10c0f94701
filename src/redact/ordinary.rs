//! Values that stand under secret names although they are none.

/// Values that stand under secret names although they are none.
const ORDINARY: &[&str] = &[
    "none",
    "null",
    "nil",
    "true",
    "false",
    "yes",
    "no",
    "undefined",
    "required",
    "optional",
    "string",
    "number",
    "boolean",
    "include",
    "omit",
    "same-origin",
    "redacted",
    "[redacted]",
    "hidden",
    "masked",
    "bearer",
    "basic",
];

/// Whether a value that stands under a secret name is none.
pub(super) fn is_ordinary(value: &[u8]) -> bool {
    ORDINARY.iter().any(|word| value.eq_ignore_ascii_case(word.as_bytes()))
}
