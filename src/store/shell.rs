//! Paths in commands that people are told to run.

use std::{borrow::Cow, path::Path};

/// A path as one word of a shell: as it is, or in quotes where it holds blanks, quotes or other signs that shells read.
pub fn word(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+:@%,=".contains(&byte) || byte >= 0x80;
    // What begins with a dash is an option.
    let text = if text.starts_with('-') { Cow::Owned(format!("./{text}")) } else { Cow::Borrowed(&*text) };
    match !text.is_empty() && text.bytes().all(is_plain) {
        true => text.into_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_word() {
        for (path, wanted) in [
            ("/a/b-1.json", "/a/b-1.json"),
            ("x/é.json", "x/é.json"),
            ("my tapes/a.json", "'my tapes/a.json'"),
            ("it's.json", "'it'\\''s.json'"),
            ("a\"b.json", "'a\"b.json'"),
            ("$(x);y.json", "'$(x);y.json'"),
            ("~/a.json", "'~/a.json'"),
            ("-a.json", "./-a.json"),
            ("", "''"),
        ] {
            assert_eq!(word(Path::new(path)), wanted);
        }
    }
}
