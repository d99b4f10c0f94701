//! Logins that curl is given: `curl -u user:password`, `["curl", "--user=user:password"]`; and passwords that others are:
//! `sshpass -p x`.
//!
//! The options say nothing by themselves: to other programs `-u` and `--user` are a user and a group, and more.

use super::assignment::{
    goes_on, is_mixed, is_secret, piece, refers, without_punctuation, word as shell_word,
};
use crate::wire::{Span, scan::backslashes_at_end};

/// Programs, the command that some of them begin with, and what they are given.
const PROGRAMS: [(&[u8], &[u8], Given); 9] = [
    (b"curl", b"", Given::Login),
    (b"sshpass", b"", Given::Password),
    (b"docker", b"login", Given::Somewhere),
    (b"podman", b"login", Given::Somewhere),
    (b"mysqldump", b"", Given::Attached),
    (b"mysqladmin", b"", Given::Attached),
    (b"mysqlimport", b"", Given::Attached),
    (b"mysql", b"", Given::Attached),
    (b"mariadb", b"", Given::Attached),
];

/// What a program is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Given {
    /// A user and a password.
    Login,
    /// A password behind `-p`, before a program that is called with it.
    Password,
    /// The same among all words.
    Somewhere,
    /// The same without a blank between.
    Attached,
}

/// Options of one dash that begin so and are others.
const OTHERS: [&[u8]; 2] = [b"-pass", b"-port"];

/// Options whose word is a login.
const OPTIONS: [&[u8]; 2] = [b"--user", b"--proxy-user"];

/// Options of one letter whose word is a login, and those that have no word: more may stand behind these.
const LETTERS: &[u8] = b"uU";
const WORDLESS: &[u8] = b"#012346BGIJLMNORSVZafgijklnpqsv";

/// A command or a variable within a word is shorter.
const LONGEST_COMMAND: usize = 256;

/// Quotes and what parts two words of a list are shorter.
const LONGEST_GAP: usize = 32;

/// What a word tells a program of a login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// The next one is one.
    Next,
    /// From this byte on it is one itself.
    Within(usize),
    /// The next one is something else.
    Other,
    /// Nothing.
    Nothing,
}

/// What a word is that curl is given.
fn word(word: &[u8]) -> Word {
    let is_long = word.starts_with(b"--");
    let long = || {
        OPTIONS.into_iter().find_map(|option| match word.strip_prefix(option)? {
            b"" => Some(Word::Next),
            [b'=', ..] => Some(Word::Within(option.len() + 1)),
            _ => None,
        })
    };
    let short = || {
        let letters = word.strip_prefix(b"-").filter(|letters| !letters.is_empty())?;
        let at = letters.iter().position(|letter| !WORDLESS.contains(letter))?;
        let is_all = at + 1 == letters.len();
        match (LETTERS.contains(&letters[at]), is_all) {
            (true, true) => Some(Word::Next),
            (true, false) => Some(Word::Within(at + 2)),
            (false, true) => Some(Word::Other),
            (false, false) => None,
        }
    };
    if is_long { long() } else { short() }.unwrap_or(Word::Nothing)
}

/// The secret part of a login: its password, without the quotes that a shell takes away; a long key that stands in the
/// user's place has none.
fn password(login: &[u8]) -> Option<Span> {
    let colon = behind_user(login).filter(|_| !login.starts_with(b"<"))?;
    let user = without_quotes(login, Span::new(0, colon));
    let opened = opening(login).filter(|_| user == Span::new(0, colon));
    let closed = opened.filter(|quote| login[colon + 1..].starts_with(quote)).map_or(0, <[u8]>::len);
    let password = without_quotes(login, Span::new(colon + 1 + closed, login.len()));
    // A list of words or a sentence goes on behind it.
    let password = if password.end == login.len() { without_punctuation(login, password) } else { password };
    let is_number = |part: Span| part.of(login).iter().all(u8::is_ascii_digit);
    if password.is_empty() {
        return (is_mixed(user.of(login)) && is_secret(user.of(login))).then_some(user);
    }
    let are_numbers = is_number(user) && is_number(password);
    let is_none = are_numbers || password.of(login).starts_with(b"//") || refers(login, password.start);
    (!is_none && is_secret(password.of(login))).then_some(password)
}

/// All of a word that is a password, but for the punctuation of a sentence.
fn all(word: &[u8]) -> Option<Span> {
    let password = without_punctuation(word, Span::new(0, word.len()));
    let is_one = !password.is_empty() && !word.starts_with(b"-") && !refers(word, 0);
    (is_one && is_secret(password.of(word))).then_some(password)
}

/// The colon behind the user, who may be what a command or a variable says: `$(whoami):`, `${NAME:-x}:`.
fn behind_user(login: &[u8]) -> Option<usize> {
    let mut at = 0;
    while let Some(&byte) = login.get(at) {
        match command_end(login, at) {
            Some(end) => at = end,
            None if byte == b':' => return Some(at),
            None => at += 1,
        }
    }
    None
}

/// Where what a shell puts in ends that begins at `at`: `$(…)`, `${…}`, on one line.
fn command_end(text: &[u8], at: usize) -> Option<usize> {
    let close = match text.get(at..)? {
        [b'$', b'(', ..] => b')',
        [b'$', b'{', ..] => b'}',
        _ => return None,
    };
    let open = text[at + 1];
    let mut depth = 0;
    let rest = text[at + 1..].iter().take(LONGEST_COMMAND).take_while(|byte| **byte != b'\n');
    let end = rest.enumerate().find(|(_, byte)| {
        depth += usize::from(**byte == open);
        depth -= usize::from(**byte == close);
        depth == 0
    });
    end.map(|(length, _)| at + 1 + length + 1)
}

/// The same of a command in backquotes that says who the user is: elsewhere these are around all of a command.
fn user_command_end(text: &[u8], at: usize) -> Option<usize> {
    let rest = text.get(at..)?.strip_prefix(b"`")?;
    let length = rest.iter().take(LONGEST_COMMAND).take_while(|byte| !matches!(byte, b'`' | b'\n')).count();
    (rest.get(length..)?.starts_with(b"`:")).then_some(at + 1 + length + 1)
}

/// How a program is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Call {
    /// What it is given.
    given: Given,
    /// Where its words begin.
    from: usize,
    /// They are in a list of words, in which its name stands in quotes; else in a command line.
    pub(super) is_list: bool,
}

/// What stands behind the name of a program, and behind the word that follows it, perhaps in a list.
fn behind_name<'a>(text: &'a [u8], program: &[u8], command: &[u8]) -> Option<&'a [u8]> {
    let rest = text.strip_prefix(program)?;
    if command.is_empty() {
        return Some(rest);
    }
    let gap = rest.iter().take(LONGEST_GAP).take_while(|byte| b"\\\"', ".contains(byte)).count();
    rest[gap..].strip_prefix(command).filter(|_| gap > 0)
}

/// How a program is called whose name begins at `at`, if it is.
pub(super) fn call(text: &[u8], at: usize) -> Option<Call> {
    let name = text.get(at..)?;
    let (rest, given) = PROGRAMS
        .iter()
        .find_map(|(program, command, given)| Some((behind_name(name, program, command)?, *given)))?;
    let is_apart = at == 0 || !text[at - 1].is_ascii_alphanumeric() && !b"-_.".contains(&text[at - 1]);
    // Of an escape: `\n`.
    let is_escaped = at > 1 && text[at - 2] == b'\\' && matches!(text[at - 1], b'n' | b'r' | b't');
    let rest = rest.strip_prefix(b".exe").unwrap_or(rest);
    let from = text.len() - rest.len();
    let list = Some(Call { given, from: from + 1, is_list: true });
    match rest.first().filter(|_| is_apart || is_escaped)? {
        b' ' | b'\t' => Some(Call { given, from, is_list: false }),
        b'"' | b'\'' => list,
        b'\\' => match rest.iter().find(|byte| **byte != b'\\')? {
            b'"' | b'\'' => list,
            _ => Some(Call { given, from, is_list: false }),
        },
        _ => None,
    }
}

/// What a word is that a program is given which takes a password.
fn password_word(word: &[u8], given: Given) -> Word {
    match word.strip_prefix(b"-p") {
        Some(b"") if given != Given::Attached => Word::Next,
        None | Some(b"") => Word::Nothing,
        Some(_) if OTHERS.iter().any(|other| word.starts_with(other)) => Word::Nothing,
        Some(_) => Word::Within(2),
    }
}

/// What a word is to a program.
pub(super) fn says(spelled: &[u8], given: Given) -> Word {
    if given == Given::Login { word(spelled) } else { password_word(spelled, given) }
}

/// The secret part of what a program is given.
pub(super) fn secret(part: &[u8], given: Given) -> Option<Span> {
    if given == Given::Login { password(part) } else { all(part) }
}

/// What the program is given that a word names, where the word behind `before` may be the first that it is given.
pub(super) fn program(word: &[u8], before: &[u8]) -> Option<Given> {
    let [name, name_before] =
        [word, before].map(|path| path.rsplit(|byte| *byte == b'/').next().unwrap_or_default());
    let is_it = |(program, command, _): &&(&[u8], &[u8], Given)| {
        behind_name(name, program, command).is_some_and(<[u8]>::is_empty)
            || !command.is_empty() && name_before == *program && word == *command
    };
    PROGRAMS.iter().find(is_it).map(|(.., given)| *given)
}

/// Whether a word is an option that the next one belongs to.
fn takes_word(word: &[u8]) -> bool {
    matches!(word, [b'-', letter] if !b"ev".contains(letter))
        || word.starts_with(b"--") && !word.contains(&b'=')
}

/// Adds the secrets among the words of a call, however long that is; how many bytes were looked at, which the caller
/// bounds.
pub(super) fn secrets(text: &[u8], call: Call, mut add: impl FnMut(Span)) -> usize {
    let Call { given, from, is_list } = call;
    let parts: &[u8] = if is_list { b" \t," } else { b" \t" };
    let (mut at, mut is_next, mut is_other) = (from, false, false);
    let mut may_be_word = false;
    while let Some(Piece { inside, end, option }) = next_word(text, at, parts) {
        at = end;
        let mut part = is_next.then_some(inside);
        let is_plain = !std::mem::take(&mut is_other) && !std::mem::take(&mut is_next);
        match says(option.of(text), given) {
            _ if !is_plain => {}
            Word::Next => is_next = true,
            Word::Other => is_other = true,
            Word::Within(from) => {
                part = Some(without_quotes(text, Span::new(inside.start + from, inside.end)));
            }
            Word::Nothing => {}
        }
        if let Some((part, secret)) = part.and_then(|part| Some((part, secret(part.of(text), given)?))) {
            add(secret.shift(part.start));
        }
        // Another command, or what the program works with.
        let ends = given == Given::Password && !may_be_word && !option.of(text).starts_with(b"-");
        may_be_word = takes_word(option.of(text));
        // The quotes around the command end here.
        if ends || opening(&text[at..]).is_some() {
            break;
        }
    }
    at - from
}

/// A word of a call.
struct Piece {
    /// Without the quotes around all of it.
    inside: Span,
    /// Where it ends with these.
    end: usize,
    /// What may name an option: all of it, or what stands before a quote within it, with the begin of that.
    option: Span,
}

/// The next word of a command; what stands in quotes is part of one.
fn next_word(text: &[u8], mut at: usize, parts: &[u8]) -> Option<Piece> {
    loop {
        match text.get(at..)? {
            [byte, ..] if parts.contains(byte) => at += 1,
            [b'\\' | b'^' | b'`', b'\n', ..] => at += 2,
            [b'\\' | b'^' | b'`', b'\r', b'\n', ..] => at += 3,
            // What ends a command within another.
            [b'\\', sign, b' ' | b'\t', ..] if ends_command(*sign) => return None,
            [b'\\', sign] if ends_command(*sign) => return None,
            [byte, ..] if !ends_command(*byte) => break,
            _ if user_command_end(text, at).is_some() => break,
            _ => return None,
        }
    }
    let piece = match in_quotes(text, at, parts) {
        Some((inside, end)) if text.get(end) != Some(&b':') => Piece { inside, end, option: inside },
        user => bare(text, at, user.map_or(at, |(_, end)| end), parts),
    };
    (piece.end > at).then_some(piece)
}

/// What stands in the quotes that open at `at`, behind a sign or backslashes, and where these end with all that belongs
/// to the word; none where the line does not close them.
fn in_quotes(text: &[u8], at: usize, parts: &[u8]) -> Option<(Span, usize)> {
    let [before @ .., quote] = opening(&text[at..])? else { return None };
    let is_escaped = before == b"$";
    let start = at + usize::from(is_escaped);
    let word = shell_word(text, start, |at| ends_word(text, at, parts));
    // It has several pieces.
    if word.value.start == start {
        return Some((word.value, word.end));
    }
    let closing = word.value.end + if is_escaped { 0 } else { before.len() };
    (text.get(closing) == Some(quote)).then_some((word.value, closing + 1))
}

/// The word at `at` that begins with no quote, or with a user in quotes up to `from`. A quote that opens nothing, or that
/// its line does not close, is a sign like any other: `joe:O'Brien`.
fn bare(text: &[u8], at: usize, from: usize, parts: &[u8]) -> Piece {
    let mut head = user_command_end(text, at).unwrap_or(from);
    while let Some(&byte) = text.get(head) {
        match command_end(text, head) {
            Some(behind) => head = behind,
            None if parts.contains(&byte) || stops(text, head) => break,
            None => head += 1,
        }
    }
    let quoted = if opens(text, at, head) { in_quotes(text, head, parts) } else { None };
    // A user in quotes: `--user='joe':x`.
    if let Some((_, end)) = quoted.filter(|(_, end)| from == at && text.get(*end) == Some(&b':')) {
        return bare(text, at, end, parts);
    }
    let ends = |at: usize| at >= head && ends_word(text, at, parts);
    let end = quoted.map_or_else(|| shell_word(text, at, ends).end, |(_, end)| end);
    let option = Span::new(at, if quoted.is_some() { head + 1 } else { end });
    Piece { inside: Span::new(at, end), end, option }
}

/// Whether what stands in quotes begins at `head` within the word at `at`: behind a sign that parts a name from a value,
/// or behind an option's letter, as in `-p'x'`.
fn opens(text: &[u8], at: usize, head: usize) -> bool {
    let is_letter = || {
        let behind = opening(&text[head..]).and_then(|quote| text.get(head + quote.len()));
        head == at + 2 && text[at] == b'-' && behind.is_some_and(|byte| *byte > b' ')
    };
    head > at && (matches!(text[head - 1], b':' | b'=') || is_letter())
}

/// Whether a word in no quotes ends at `at`, or has a piece in quotes or an escape there.
fn ends_word(text: &[u8], at: usize, parts: &[u8]) -> bool {
    let is_sign = || piece(text, at) == 0 && goes_on(&text[at + 1..]);
    match text[at] {
        b'"' | b'\'' => !is_sign(),
        byte => parts.contains(&byte) || stops(text, at),
    }
}

/// Whether a quote, an escape or the end of a command stands at `at`.
fn stops(text: &[u8], at: usize) -> bool {
    match text[at] {
        b'"' | b'\'' | b'\\' => true,
        b'$' => text.get(at + 1) == Some(&b'\''),
        // The line goes on in the next.
        b'^' => matches!(text.get(at + 1), Some(b'\n' | b'\r')),
        byte => ends_command(byte),
    }
}

const fn ends_command(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r' | b';' | b'|' | b'&' | b'`' | b')' | b']' | b'<' | b'>')
}

/// The quote that a word begins with, and the sign or the backslashes before it.
fn opening(word: &[u8]) -> Option<&[u8]> {
    if word.starts_with(b"$'") {
        return word.get(..2);
    }
    let slashes = word.iter().take_while(|byte| **byte == b'\\').count();
    word.get(..=slashes).filter(|quote| matches!(quote.last(), Some(b'"' | b'\'')))
}

/// A word without the quotes around it, each of which may stand behind backslashes; those around a user alone are not
/// around the word.
fn without_quotes(text: &[u8], word: Span) -> Span {
    let bytes = word.of(text);
    let Some([before @ .., quote]) = opening(bytes) else { return word };
    let slashes = before.len();
    let Some(inside) = bytes[slashes + 1..].strip_suffix(&[*quote]) else { return word };
    let user = inside.split(|byte| *byte == b':').next().unwrap_or_default();
    if user.len() < inside.len() && user.ends_with(&[*quote]) {
        return word;
    }
    let is_escaped = before == b"$";
    let behind = backslashes_at_end(inside);
    let behind = if is_escaped { 0 } else { behind.min(slashes) };
    Span::new(word.start + slashes + 1, word.start + slashes + 1 + inside.len() - behind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_one_letter_may_stand_together() {
        for (given, expected) in [
            ("-u", Word::Next),
            ("-sSLu", Word::Next),
            ("-uann:x", Word::Within(2)),
            ("-su", Word::Next),
            ("-suann:x", Word::Within(3)),
            ("--user", Word::Next),
            ("--user=ann:x", Word::Within(7)),
            ("--proxy-user", Word::Next),
            ("-U", Word::Next),
            ("-X", Word::Other),
            ("-sX", Word::Other),
            ("-Hu: x", Word::Nothing),
            ("--user-agent", Word::Nothing),
            ("-", Word::Nothing),
            ("--", Word::Nothing),
            ("u", Word::Nothing),
        ] {
            assert_eq!(word(given.as_bytes()), expected, "{given}");
        }
    }

    #[test]
    fn a_word_ends_where_a_shell_ends_it_and_no_quote_takes_the_rest() {
        for (command, password, behind) in [
            (r"curl -u joe:'s3cr3t'\''PW99x' https://h/list", r"s3cr3t'\''PW99x", " https://h/list"),
            (r"curl -u 'joe:s3cr3t'\''PW92x' https://h/list", r"s3cr3t'\''PW92x", " https://h/list"),
            (r#"curl -u joe:'s3cr3t'"'"'PW93x' https://h"#, r#"s3cr3t'"'"'PW93x"#, " https://h"),
            ("curl -u joe:\"dq\\\"PW91x\" https://h\nline two", "dq\\\"PW91x", " https://h\nline two"),
            ("curl -u joe:O'Brien99x https://h\nnext", "O'Brien99x", " https://h\nnext"),
            ("curl -u joe:pw99'x https://h then don't", "pw99'x", " https://h then don't"),
            ("curl -u joe:'pw99x https://h\nit's", "'pw99x", " https://h\nit's"),
            (r"curl -u joe:pw\ 99x https://h", r"pw\ 99x", " https://h"),
            (r"curl -u joe:a\'b\&c99xyz https://h", r"a\'b\&c99xyz", " https://h"),
            (r"curl -u joe:a\;\|b\)9 https://h; ls", r"a\;\|b\)9", " https://h; ls"),
            (r"curl -u joe:pw99x \; -exec y -u a:b1c2 \;", "pw99x", r" \; -exec y -u a:b1c2 \;"),
            ("curl -u joe:\"p w99x\" 'x y'", "p w99x", " 'x y'"),
            ("curl -u joe:pw99x", "pw99x", ""),
            ("curl -u joe:pw99x\\\n -s", "pw99x", "\\\n -s"),
            ("curl -u joe:pw99x' && echo 'x' -u a:b1c2", "pw99x", " && echo 'x' -u a:b1c2"),
            ("curl -u joe:pw99x\", \"ok\"]}", "pw99x", ", \"ok\"]}"),
            ("curl --user=joe:pw99x\"", "pw99x", ""),
            ("curl -ujoe:pw99x'; ls", "pw99x", "; ls"),
            (r#"curl -u joe:pw99x\" ok"#, "pw99x", r#"\" ok"#),
        ] {
            let text = command.as_bytes();
            let mut found = Vec::new();
            secrets(text, call(text, 0).unwrap(), |span| found.push(span));
            let [span] = found[..] else { panic!("{command}: {found:?}") };
            assert_eq!(String::from_utf8_lossy(span.of(text)), password, "{command}");
            let rest = command[span.end..].trim_start_matches(['\'', '"']);
            assert_eq!(rest, behind, "{command}");
        }
    }

    #[test]
    fn a_login_has_a_password_or_is_a_key() {
        let secret =
            |login: &'static str| password(login.as_bytes()).map(|part| &login[part.start..part.end]);
        assert_eq!(secret("ann:x"), Some("x"));
        assert_eq!(secret("ann:x:y"), Some("x:y"));
        assert_eq!(secret(":x"), Some("x"));
        assert_eq!(secret("k3y0fann00:"), Some("k3y0fann00"));
        for (login, password) in [
            ("ann:'x y'", "x y"),
            ("ann:\"x'y\"", "x'y"),
            ("'ann':'x'", "x"),
            ("\"ann\":'x'", "x"),
            ("'ann':x", "x"),
            ("'ann:'x", "x"),
            ("'ann:'\"x\"", "x"),
            ("\\\"ann\\\":\\\"x\\\"", "x"),
            ("ann:\\\"x\\\"", "x"),
            ("ann:'x", "'x"),
            ("ann:x'", "x'"),
            ("'k3y0fann00':", "k3y0fann00"),
        ] {
            assert_eq!(secret(login), Some(password), "{login}");
        }
        for none in ["ann:\"$PASS\"", "ann:'<password>'", "ann:''", "'ann':'***'", "'ann':"] {
            assert_eq!(secret(none), None, "{none}");
        }
        for none in
            ["ann", "ann:", "ann:$PASS", "ann:<password>", "1000:1000", "ann:***", "http://h", "<key>:"]
        {
            assert_eq!(secret(none), None, "{none}");
        }
    }
}
