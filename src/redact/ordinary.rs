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
    "changeme",
    "change-me",
    "change_me",
];

/// Whether a value that stands under a secret name is none.
pub(super) fn is_ordinary(value: &[u8]) -> bool {
    let is_left_out = || value.len() >= 3 && value.iter().all(|byte| matches!(byte, b'x' | b'X'));
    ORDINARY.iter().any(|word| value.eq_ignore_ascii_case(word.as_bytes()))
        || is_left_out()
        || is_yours(value)
}

/// Whether a value says that its reader's is to stand here: `your-api-key-here`, `YOUR_TOKEN`.
fn is_yours(value: &[u8]) -> bool {
    const YOUR: usize = "your-".len();
    let begins = value.get(..YOUR).is_some_and(|begin| {
        begin[..YOUR - 1].eq_ignore_ascii_case(b"your") && matches!(begin[YOUR - 1], b'-' | b'_')
    });
    begins && value.iter().all(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'-' | b'_'))
}

/// Whether a value says which version or what type something has: packages are called `cookie`, columns `password`.
pub(super) fn describes(value: &[u8]) -> bool {
    value.len() <= LONGEST && (is_version(value) || is_type(value))
}

/// What is longer describes nothing that is looked for here.
const LONGEST: usize = 64;

/// Versions of packages without a number, and what begins those that stand elsewhere.
const NO_NUMBERS: [&[u8]; 3] = [b"latest", b"next", b"*"];
const ELSEWHERE: [&[u8]; 3] = [b"workspace:", b"catalog:", b"npm:"];

/// Types in SQL, schemas and programs.
const TYPES: &[&str] = &[
    "any",
    "array",
    "bigint",
    "binary",
    "bit",
    "blob",
    "bool",
    "boolean",
    "bytea",
    "bytes",
    "char",
    "character",
    "citext",
    "clob",
    "date",
    "datetime",
    "decimal",
    "double",
    "float",
    "int",
    "integer",
    "json",
    "jsonb",
    "longtext",
    "mediumtext",
    "nchar",
    "null",
    "number",
    "numeric",
    "nvarchar",
    "object",
    "real",
    "secretstr",
    "smallint",
    "str",
    "string",
    "text",
    "timestamp",
    "timestamptz",
    "tinyint",
    "tinytext",
    "undefined",
    "unknown",
    "uuid",
    "varbinary",
    "varchar",
    "varchar2",
];

/// What stands behind a type in SQL.
const BEHIND_TYPE: &[&str] = &["key", "not", "null", "precision", "primary", "unique", "unsigned", "varying"];

/// `1.2.3`, `^0.7.2`, `v1.0.0-beta.1`, `>=1.2 <2.0`.
fn is_version(value: &[u8]) -> bool {
    let joins = |part: &[u8]| part.iter().all(|byte| b"|-<>=~^".contains(byte));
    let mut parts = value.split(|byte| *byte == b' ').filter(|part| !joins(part)).peekable();
    NO_NUMBERS.contains(&value)
        || ELSEWHERE.iter().any(|start| value.starts_with(start))
        || parts.peek().is_some() && parts.all(is_one_version)
}

fn is_one_version(value: &[u8]) -> bool {
    let signs = value.iter().take_while(|byte| b"^~<>=v".contains(byte)).count();
    let behind = value.iter().position(|byte| matches!(byte, b'-' | b'+')).unwrap_or(value.len());
    let Some(numbers) = value.get(signs..behind) else { return false };
    let is_number = |part: &[u8]| {
        matches!(part, b"x" | b"X" | b"*")
            || (1..=4).contains(&part.len()) && part.iter().all(u8::is_ascii_digit)
    };
    let count = numbers.split(|byte| *byte == b'.').count();
    // A typed number may have a point.
    let is_short = count == 2 && (signs > 0 || numbers.len() <= 5);
    numbers.split(|byte| *byte == b'.').all(is_number)
        && (is_short || (3..=4).contains(&count))
        && is_stage(&value[behind..])
}

/// What stands behind the numbers: `-beta.1`, `-rc2`.
fn is_stage(text: &[u8]) -> bool {
    let Some((_, stage)) = text.split_first() else { return true };
    stage.split(|byte| *byte == b'.').all(|part| {
        let letters = part.iter().take_while(|byte| byte.is_ascii_lowercase()).count();
        !part.is_empty()
            && letters <= 10
            && part.len() - letters <= 4
            && part[letters..].iter().all(u8::is_ascii_digit)
    })
}

/// `varchar(255)`, `TEXT NOT NULL`, `string | null`, `string[]`.
fn is_type(value: &[u8]) -> bool {
    let is_in =
        |list: &[&str], word: &[u8]| list.iter().any(|known| word.eq_ignore_ascii_case(known.as_bytes()));
    value.split(|byte| *byte == b'|').all(|one| {
        let mut words =
            one.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).map(without_length);
        words.next().is_some_and(|first| is_in(TYPES, first)) && words.all(|word| is_in(BEHIND_TYPE, word))
    })
}

/// A type's name without its length, or without the signs of a list or of what may be missing.
fn without_length(word: &[u8]) -> &[u8] {
    let open = word.iter().position(|byte| *byte == b'(').unwrap_or(word.len());
    let is_length = |inside: &[u8]| {
        inside.eq_ignore_ascii_case(b"max")
            || inside.iter().all(|byte| byte.is_ascii_digit() || *byte == b',')
    };
    match word[open..].strip_prefix(b"(").and_then(|rest| rest.strip_suffix(b")")) {
        Some(inside) if is_length(inside) => &word[..open],
        _ => [&b"[]"[..], b"?"].iter().find_map(|end| word.strip_suffix(*end)).unwrap_or(word),
    }
}

/// Whether a value reads as one word of a language: it has vowels where words have them.
pub(super) fn is_spoken(value: &[u8]) -> bool {
    const LONGEST_WORD: usize = 20;
    let Some((first, rest)) = value.split_first() else { return false };
    let is_cased = first.is_ascii_alphabetic() && rest.iter().all(u8::is_ascii_lowercase);
    let is_vowel = |byte: &u8| b"aeiouy".contains(&byte.to_ascii_lowercase());
    // "Strengths" has five consonants in a row, "queueing" five vowels.
    let flows = value.chunk_by(|one, other| is_vowel(one) == is_vowel(other)).all(|run| run.len() <= 5);
    is_cased && value.len() <= LONGEST_WORD && flows && value.iter().any(is_vowel)
}

/// Whether a value reads as the name of a variable or column: `user_name`.
pub(super) fn is_spoken_name(value: &[u8]) -> bool {
    const LONGEST_NAME: usize = 15;
    let is_word = |part: &[u8]| {
        let rest = part.get(1..).unwrap_or_default();
        !part.is_empty()
            && part.iter().all(u8::is_ascii_alphabetic)
            && (rest.iter().all(u8::is_ascii_lowercase) || part.iter().all(u8::is_ascii_uppercase))
    };
    value.len() <= LONGEST_NAME && value.contains(&b'_') && value.split(|byte| *byte == b'_').all(is_word)
}

/// Words that sentences have, and those of messages about secrets; phrases that are chosen as passwords hardly do.
const OF_SENTENCES: &[&str] = &[
    "a",
    "an",
    "and",
    "are",
    "be",
    "been",
    "by",
    "can",
    "can't",
    "cannot",
    "do",
    "does",
    "don't",
    "enter",
    "for",
    "has",
    "have",
    "in",
    "incorrect",
    "invalid",
    "is",
    "isn't",
    "it",
    "match",
    "missing",
    "must",
    "no",
    "not",
    "of",
    "or",
    "password",
    "passwords",
    "please",
    "required",
    "should",
    "that",
    "the",
    "this",
    "to",
    "too",
    "was",
    "with",
    "wrong",
    "your",
];

/// Whether a value is a sentence: words and blanks, no digits, and a word of [`OF_SENTENCES`].
pub(super) fn is_sentence(value: &[u8]) -> bool {
    let is_word = |word: &[u8]| {
        let letters = word.iter().filter(|byte| byte.is_ascii_alphabetic()).count();
        letters > 0 && word.iter().all(|byte| byte.is_ascii_alphabetic() || b"'`\"-().,:;!?".contains(byte))
    };
    let words = || value.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    words().nth(1).is_some() && words().all(is_word) && speaks(value)
}

/// Whether a text has a word of [`OF_SENTENCES`].
pub(super) fn speaks(text: &[u8]) -> bool {
    let is_known = |word: &[u8]| {
        let end = word.iter().rposition(u8::is_ascii_alphabetic).map_or(0, |at| at + 1);
        OF_SENTENCES.iter().any(|known| word[..end].eq_ignore_ascii_case(known.as_bytes()))
    };
    text.split(u8::is_ascii_whitespace).any(is_known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_have_words_that_phrases_have_not() {
        for value in [
            "can't be blank",
            "is required",
            "This password is too short.",
            "Passwords do not match!",
            "invalid credentials",
            "must contain letters, digits (or signs)",
        ] {
            assert!(is_sentence(value.as_bytes()), "{value}");
        }
        for value in
            ["correct horse battery", "is", "", "is hunter2", "the p@ss", "horse is 4 legs", "- is", "is_a b"]
        {
            assert!(!is_sentence(value.as_bytes()), "{value}");
        }
    }

    #[test]
    fn names_of_variables_are_spoken() {
        for value in ["user_name", "API_KEY", "Access_Token", "a_b"] {
            assert!(is_spoken_name(value.as_bytes()), "{value}");
        }
        for value in [
            "username",
            "user_name1",
            "_name",
            "user__name",
            "uSeR_nAmE",
            "user-name",
            "abcdefgh_ijklmno",
            "",
        ] {
            assert!(!is_spoken_name(value.as_bytes()), "{value}");
        }
    }

    #[test]
    fn versions_and_types_describe_something() {
        for value in [
            "1.2.3",
            "^0.7.2",
            "~1.2",
            "v1.0.0-beta.1",
            "1.0.0-rc2",
            ">=1.2.3 <2.0.0",
            "^1.0.0 || ^2.0.0",
            "1.x",
            "1.2",
            "1.2.*",
            "2024.1.1",
            "*",
            "latest",
            "workspace:*",
            "varchar(255)",
            "VARCHAR(255) NOT NULL",
            "text",
            "decimal(10,2)",
            "character varying(255)",
            "nvarchar(max)",
            "string | null",
            "string[]",
            "str?",
            "uuid",
        ] {
            assert!(describes(value.as_bytes()), "{value}");
        }
        for value in [
            "",
            "1",
            "12345",
            "1234.5678",
            "1.2.3-Kd93mZq71Lp",
            "1.2.3.4.5",
            "v1",
            "^",
            "-",
            "a.b.c",
            "12345.1.1",
            "1..2",
            "1.2.3-",
            "texts",
            "varchar(255) hunter2",
            "string(x)",
            "not null",
            "string |",
            "1.2.3 x",
        ] {
            assert!(!describes(value.as_bytes()), "{value}");
        }
    }

    #[test]
    fn words_of_a_language_are_spoken() {
        for value in ["document", "Document", "strengths", "queueing", "identifier", "whitespace"] {
            assert!(is_spoken(value.as_bytes()), "{value}");
        }
        for value in
            ["xkqzvbnm", "qwrtpsdf", "DOCUMENT", "docuMent", "document1", "aeiouaei", "", "over-ride"]
        {
            assert!(!is_spoken(value.as_bytes()), "{value}");
        }
    }
}
