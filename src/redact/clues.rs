//! The windows of everything the tables know: which four bytes hint at what.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use super::filter::{Filter, Window, WindowHash};
use super::{
    names::{self, End, SecretName},
    shapes,
};

/// What may stand at a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clue {
    /// A part of a secret's name: these bytes of the window.
    Name {
        /// Its first byte.
        from: u8,
        /// Behind its last byte.
        to: u8,
    },
    /// A part of a name that tells what speaks OAuth: the window.
    Oauth,
    /// The end of the name `code`, of a parameter or a member: the window's bytes before this one.
    Code {
        /// Behind its last byte.
        to: u8,
    },
    /// The prefix of `SHAPES[index]`.
    Shape {
        /// Which look.
        index: u8,
        /// Where the prefix begins, counted from the window's first byte.
        at: i8,
    },
    /// `://` or `:\/\/`: the colon's place in the window.
    Address {
        /// Its place; the window may begin one behind it.
        colon: u8,
    },
    /// The name of a program that is given passwords: its first letter's place, counted from the window's first byte.
    Program {
        /// The place.
        from: i8,
    },
    /// A part of the word that placeholders begin with.
    Placeholder,
    /// `\u00`, or its part behind the backslash: the digits' place in the window.
    Escape {
        /// The place of the third digit.
        digit: u8,
    },
}

/// The tables' windows.
#[derive(Debug)]
pub(super) struct Clues {
    /// All of them, for the first look.
    pub(super) filter: Arc<Filter>,
    by_window: HashMap<Window, Vec<Clue>, WindowHash>,
}

/// Bytes a token goes on with.
const TOKEN: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789_-./+";

/// Bytes behind a name: quotes, escapes, separators, blanks (those beyond ASCII begin so), and the digits of
/// `password2`.
const BEHIND_NAME: &[u8] = b"\"'\\=:% \t\r\n\xc2\xe2\xe3]}>0123456789";

/// Bytes before a name that has more letters before it, or none: signs, and the letters of escapes.
const BEFORE_NAME: &[u8] = b"\"' \t\n\\,;:?&(`{[%<_-.nrt";

/// Bytes before the name of a program.
const BEFORE_PROGRAM: &[u8] = b"\"'` \t\n\\/,;:?&|=(){[<>$@nrt";

/// Separators inside names of two words; the last one stands in names that people read.
const JOINTS: [&str; 5] = ["", "_", "-", ".", " "];

/// Those inside the names of a row: a field of OAuth has no blank, and ordinary texts have many such parts of it.
fn joints(row: &SecretName) -> &'static [&'static str] {
    if row.kind == "oauth" { &JOINTS[..4] } else { &JOINTS }
}

impl Clues {
    /// The tables' windows, made once.
    pub(super) fn get() -> &'static Self {
        static CLUES: LazyLock<Clues> = LazyLock::new(Clues::new);
        &CLUES
    }

    /// What a window hints at.
    pub(super) fn at(&self, window: Window) -> &[Clue] {
        self.by_window.get(&window).map_or(&[], Vec::as_slice)
    }

    fn new() -> Self {
        let mut build = Build::default();
        build.names();
        build.signs();
        build.codes();
        build.shapes();
        build.addresses();
        build.programs();
        [b"edac", b"dact"].into_iter().for_each(|part| build.add(part, Clue::Placeholder));
        build.add(b"\\u00", Clue::Escape { digit: 4 });
        for digit in b"234567" {
            build.add(&[b'u', b'0', b'0', *digit], Clue::Escape { digit: 3 });
        }
        let mut filter = Filter::new();
        build.0.keys().for_each(|window| filter.add(*window));
        Self { filter: Arc::new(filter), by_window: build.0 }
    }
}

#[derive(Default)]
struct Build(HashMap<Window, Vec<Clue>, WindowHash>);

impl Build {
    /// Names its four bytes; the caller adds one window at an even and one at an odd offset of each literal.
    fn add(&mut self, bytes: &[u8], clue: Clue) {
        let clues = self.0.entry(Window::at(bytes, 0)).or_default();
        if !clues.contains(&clue) {
            clues.push(clue);
        }
    }

    fn names(&mut self) {
        for row in names::NAMES {
            match row.words.rsplit(' ').collect::<Vec<_>>()[..] {
                [word] => self.name(word.as_bytes(), word.len().saturating_sub(5) / 2, row.end),
                [last, before, ..] => {
                    for joint in joints(row) {
                        let joined = format!("{before}{joint}{last}");
                        self.name(joined.as_bytes(), before.len() - 2, row.end);
                    }
                }
                [] => {}
            }
        }
        // `IDENTIFIED BY`: by what is rare in it, and stands in no `notifications/…`.
        for part in [b"ifie", b"fied"] {
            self.add(part, Clue::Name { from: 0, to: 4 });
        }
        // `_auth` of npm, which stands at the begin of a line, or behind the registry.
        self.add(b"_aut", Clue::Name { from: 0, to: 4 });
        for before in b":\n\r\" n" {
            self.add(&[*before, b'_', b'a', b'u'], Clue::Name { from: 1, to: 4 });
        }
        // Flags alone: the word stands in many texts.
        for part in [b"--pa", b"-pas"] {
            self.add(part, Clue::Name { from: 0, to: 4 });
        }
    }

    /// Windows of a name from `at` on.
    fn name(&mut self, name: &[u8], at: usize, end: End) {
        let inside = Clue::Name { from: 0, to: 4 };
        match name.len() {
            0..3 => unreachable!("names have three letters or more"),
            3 => {
                for &byte in BEHIND_NAME {
                    self.add(&[name, &[byte]].concat(), Clue::Name { from: 0, to: 3 });
                }
                let inner = TOKEN.iter().filter(|_| end == End::Any);
                for &byte in inner.chain(BEFORE_NAME) {
                    self.add(&[&[byte], name].concat(), Clue::Name { from: 1, to: 4 });
                }
            }
            4 => {
                self.add(name, inside);
                for &byte in BEHIND_NAME {
                    self.add(&[&name[1..], &[byte]].concat(), Clue::Name { from: 0, to: 3 });
                }
            }
            _ => {
                self.add(&name[at..], inside);
                self.add(&name[at + 1..], inside);
            }
        }
    }

    fn signs(&mut self) {
        for name in names::SPELLED_SIGNS {
            let joint = name.find(|byte: char| !byte.is_ascii_lowercase()).expect("signs are two words");
            self.add(&name.as_bytes()[joint - 2..], Clue::Oauth);
            self.add(&name.as_bytes()[joint - 1..], Clue::Oauth);
        }
    }

    /// Its last letters and what is behind it: `code` itself stands in many texts.
    fn codes(&mut self) {
        for behind in b"=\"\\" {
            self.add(&[b'o', b'd', b'e', *behind], Clue::Code { to: 3 });
        }
        for &value in TOKEN.iter().chain(b"%~") {
            self.add(&[b'd', b'e', b'=', value], Clue::Code { to: 2 });
        }
        for behind in ["\":", "\" ", "\\\"", "\\\\"] {
            self.add(&[b"de", behind.as_bytes()].concat(), Clue::Code { to: 2 });
        }
    }

    fn shapes(&mut self) {
        for (index, shape) in shapes::SHAPES.iter().enumerate() {
            let index = u8::try_from(index).expect("fewer than 256 looks");
            for prefix in shape.prefixes.iter().map(|prefix| prefix.as_bytes()) {
                let clue =
                    |back: usize| Clue::Shape { index, at: -i8::try_from(back).expect("prefixes are short") };
                if prefix.len() > Window::LENGTH {
                    let at = rarest(prefix);
                    self.add(&prefix[at..], clue(at));
                    self.add(&prefix[at + 1..], clue(at + 1));
                    continue;
                }
                // A short prefix needs its neighbours to fill two windows.
                for &byte in TOKEN {
                    let longer = [prefix, &[byte]].concat();
                    self.add(&longer[longer.len() - Window::LENGTH..], clue(longer.len() - Window::LENGTH));
                }
                if prefix.len() == Window::LENGTH {
                    self.add(prefix, clue(0));
                } else if shape.lead > 0 {
                    TOKEN.iter().for_each(|&byte| self.before(byte, prefix, index));
                } else {
                    (0..=255)
                        .filter(|&byte| shapes::parts_words(byte))
                        .for_each(|byte| self.before(byte, prefix, index));
                }
            }
        }
    }

    /// A window that begins one byte before its prefix.
    fn before(&mut self, byte: u8, prefix: &[u8], index: u8) {
        self.add(&[&[byte], prefix].concat(), Clue::Shape { index, at: 1 });
    }

    fn programs(&mut self) {
        self.add(b"curl", Clue::Program { from: 0 });
        for &byte in BEFORE_PROGRAM {
            self.add(&[byte, b'c', b'u', b'r'], Clue::Program { from: 1 });
        }
        for (part, from) in [(b"mysql", 0), (b"riadb", -2), (b"sshpa", 0), (b"docke", 0), (b"podma", 0)] {
            self.add(&part[..4], Clue::Program { from });
            self.add(&part[1..], Clue::Program { from: from - 1 });
        }
    }

    fn addresses(&mut self) {
        for scheme in b"abcdefghijklmnopqrstuvwxyz0123456789" {
            self.add(&[*scheme, b':', b'/', b'/'], Clue::Address { colon: 1 });
            self.add(&[*scheme, b':', b'\\', b'/'], Clue::Address { colon: 1 });
        }
        for &behind in TOKEN.iter().chain(b"%:@[{<*$") {
            self.add(&[b':', b'/', b'/', behind], Clue::Address { colon: 0 });
        }
        self.add(b":\\/\\", Clue::Address { colon: 0 });
    }
}

/// Where in a prefix the rarest five bytes begin: those with the most signs and digits, but no ruled line.
fn rarest(prefix: &[u8]) -> usize {
    let signs = |at: &usize| {
        let five = &prefix[*at..*at + 5];
        let ruled = five.windows(3).any(|three| three[0] == three[1] && three[1] == three[2]);
        if ruled { 0 } else { five.iter().filter(|byte| !byte.is_ascii_alphabetic()).count() }
    };
    (0..=prefix.len() - 5).rev().max_by_key(signs).expect("the prefix has five bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a clue of the wanted sort is found with the text at an even and at an odd place.
    fn always(text: &str, wanted: impl Fn(&Clue) -> bool) -> bool {
        ["", " "].iter().all(|before| {
            let text = format!("{before}{text}");
            let mut from = 0;
            while let Some(at) = Clues::get().filter.next(text.as_bytes(), from) {
                if Clues::get().at(Window::at(text.as_bytes(), at)).iter().any(&wanted) {
                    return true;
                }
                from = at + 2;
            }
            false
        })
    }

    #[test]
    fn every_name_leaves_a_clue_wherever_it_stands() {
        for row in names::NAMES {
            for joint in joints(row) {
                let name = row.words.replace(' ', joint);
                for name in [name.to_uppercase(), name] {
                    let text = format!("\"{name}\":\"x\"");
                    assert!(always(&text, |clue| matches!(clue, Clue::Name { .. })), "{text}");
                }
            }
        }
    }

    #[test]
    fn every_sign_of_oauth_leaves_a_clue_wherever_it_stands() {
        for sign in names::SPELLED_SIGNS {
            assert!(always(&format!("{sign}="), |clue| *clue == Clue::Oauth), "{sign}");
        }
    }

    #[test]
    fn every_code_leaves_a_clue_wherever_it_stands() {
        for text in ["code=A1", "Code=%41", r#""code":"#, r#""code" :"#, r#"\"code\":"#, r#"\\\"code\\\":"#] {
            assert!(always(text, |clue| matches!(clue, Clue::Code { .. })), "{text}");
        }
        for text in [r#""text":"see the code of it""#, "codes=1", r#""codec":1"#] {
            assert!(!always(text, |clue| matches!(clue, Clue::Code { .. })), "{text}");
        }
    }

    #[test]
    fn every_prefix_leaves_its_clue_wherever_it_stands() {
        for (index, shape) in shapes::SHAPES.iter().enumerate() {
            for prefix in shape.prefixes {
                for behind in ["a", "Z", "7", "_"] {
                    let text = format!("{}{prefix}{behind}", "1".repeat(shape.lead));
                    let wanted = |clue: &Clue| matches!(clue, Clue::Shape { index: i, .. } if usize::from(*i) == index);
                    assert!(always(&text, wanted), "{text}");
                }
            }
        }
    }

    #[test]
    fn programs_and_flags_leave_clues() {
        for text in [
            "curl -u a:b",
            "curl.exe",
            "\"curl\"",
            "/bin/curl ",
            "\\ncurl -u a:b",
            "$(curl -u",
            "mysqldump",
            "mariadb",
            "sshpass",
            "docker login",
            "podman login",
        ] {
            assert!(always(text, |clue| matches!(clue, Clue::Program { .. })), "{text}");
        }
        for text in ["--pass x", "\"--pass\"", "--PASS=x"] {
            assert!(always(text, |clue| matches!(clue, Clue::Name { .. })), "{text}");
        }
    }

    #[test]
    fn addresses_placeholders_and_escapes_leave_clues() {
        for text in ["http://h", "redis://:p", r"https:\/\/h", "s3://["] {
            assert!(always(text, |clue| matches!(clue, Clue::Address { .. })), "{text}");
        }
        for text in ["<redacted:token-1>", "%3Credacted%3Atoken-1%3E", r"\u003credacted:token-1\u003e"] {
            assert!(always(text, |clue| *clue == Clue::Placeholder), "{text}");
        }
        assert!(always(r"\u0041", |clue| matches!(clue, Clue::Escape { .. })));
    }
}
