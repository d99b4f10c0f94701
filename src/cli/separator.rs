//! The `--` before a server's command, where a launcher swallowed it.

use std::ffi::OsString;

use clap::{Arg, ArgAction, Command};

/// Puts a missing `--` back into a command line whose command ends in `-- CMD…`: the first word that is no option
/// begins the command, save that a cassette may stand bare before it.
///
/// What cannot be understood is left as it is: clap says what is wrong with it.
pub(super) fn restore(root: &Command, mut line: Vec<OsString>) -> Vec<OsString> {
    if let Some(place) = missing_at(root, &line) {
        line.insert(place, "--".into());
    }
    line
}

fn missing_at(root: &Command, line: &[OsString]) -> Option<usize> {
    let command = root.find_subcommand(line.get(1)?)?;
    command.get_positionals().find(|positional| positional.is_last_set())?;
    if command.get_positionals().any(|positional| !positional.is_last_set() && takes_many(positional)) {
        // Nothing tells the last of them from the command's first word.
        return None;
    }
    let mut bare = command.get_positionals().filter(|positional| !positional.is_last_set()).count();
    let mut at = 2;
    while let Some(word) = line.get(at) {
        let word = word.to_string_lossy();
        match word.strip_prefix("--") {
            Some("") => return None,
            Some(long) => {
                let (name, value) =
                    long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
                let option = command.get_arguments().find(|option| option.get_long() == Some(name))?;
                if option.get_id() == "cassette_option" {
                    bare = bare.saturating_sub(1);
                }
                at += usize::from(takes_value(option) && value.is_none());
            }
            None if word.len() > 1 && word.starts_with('-') => {
                at += usize::from(value_follows(command, &word[1..])?);
            }
            None if bare > 0 => bare -= 1,
            None => return Some(at),
        }
        at += 1;
    }
    None
}

/// Whether the next word is the value of the last of these short options.
fn value_follows(command: &Command, shorts: &str) -> Option<bool> {
    for (place, short) in shorts.char_indices() {
        let option = command.get_arguments().find(|option| option.get_short() == Some(short))?;
        if takes_value(option) {
            return Some(place + short.len_utf8() == shorts.len());
        }
    }
    Some(false)
}

fn takes_value(option: &Arg) -> bool {
    option.get_action().takes_values()
}

fn takes_many(positional: &Arg) -> bool {
    matches!(positional.get_action(), ArgAction::Append)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[track_caller]
    fn check(line: &str, expected: &str) {
        let line = line.split(' ').map(OsString::from).collect();
        let restored = restore(&crate::cli::Cli::command(), line);
        let words: Vec<_> = restored.iter().map(|word| word.to_string_lossy()).collect();
        assert_eq!(words.join(" "), expected);
    }

    #[test]
    fn a_separator_that_is_there_stays() {
        check("tapedeck record c.json -- npx -y server", "tapedeck record c.json -- npx -y server");
        check("tapedeck record --cassette c.json -- npx", "tapedeck record --cassette c.json -- npx");
        check("tapedeck auto c.json -- npx -- x", "tapedeck auto c.json -- npx -- x");
    }

    #[test]
    fn the_first_word_that_is_no_option_begins_the_command() {
        check("tapedeck record --cassette c.json npx -y s", "tapedeck record --cassette c.json -- npx -y s");
        check("tapedeck record --cassette=c.json npx -v", "tapedeck record --cassette=c.json -- npx -v");
        check("tapedeck record --replace --cassette c npx", "tapedeck record --replace --cassette c -- npx");
        check("tapedeck record -v --cassette c npx --x", "tapedeck record -v --cassette c -- npx --x");
    }

    #[test]
    fn a_bare_cassette_stands_before_the_command() {
        check("tapedeck record c.json npx -y s", "tapedeck record c.json -- npx -y s");
        check("tapedeck record c.json --log l npx s", "tapedeck record c.json --log l -- npx s");
        check("tapedeck record --var A=1 c npx -- s", "tapedeck record --var A=1 c -- npx -- s");
        check("tapedeck auto c.json node s.js --log", "tapedeck auto c.json -- node s.js --log");
    }

    #[test]
    fn commands_without_a_server_and_unknown_options_are_left_alone() {
        check("tapedeck replay c.json d.json", "tapedeck replay c.json d.json");
        check("tapedeck run c.json pytest", "tapedeck run c.json pytest");
        check("tapedeck record --cassete c npx", "tapedeck record --cassete c npx");
        check("tapedeck record -x c npx", "tapedeck record -x c npx");
        check("tapedeck record c.json", "tapedeck record c.json");
        check("tapedeck", "tapedeck");
    }
}
