//! The help page of the whole program: commands by group, exit statuses.

use std::fmt::Write as _;

use clap::Command;
use mcp_tapedeck::exit_code::ExitCode;

/// The commands a person meets, by group. A test sees to it that none is missing.
const GROUPS: [(&str, &[&str]); 3] = [
    (
        "Everyday",
        &["record", "proxy", "replay", "run", "join", "auto", "wrap", "verdict", "events", "show", "demo"],
    ),
    ("Files", &["edit", "lint", "fmt", "freeze", "convert", "recover", "schema"]),
    ("Service", &["completions", "help"]),
];

/// Puts the grouped list of commands and the exit statuses into the program's help page.
pub(super) fn group(mut command: Command) -> Command {
    command.build();
    let page = page(&command);
    let command = command.mut_subcommands(usages);
    command.help_template("{about-with-newline}\n{usage-heading} {usage}{after-help}").after_help(page)
}

/// Has the usage of a command and of those below it name a cassette as what has to be given, and not as one of two ways
/// to give it.
fn usages(command: Command) -> Command {
    if !command.get_arguments().any(|argument| argument.get_id() == "cassette_option") {
        return command;
    }
    let name = format!("tapedeck {}", command.get_name());
    used_as(command, &name).mut_subcommands(|command| {
        let name = format!("{name} <C> {}", command.get_name());
        used_as(command, &name)
    })
}

fn used_as(mut command: Command, name: &str) -> Command {
    let usage = command.render_usage().to_string().replace("[C]", "<C>");
    let rest = usage.split_once(command.get_name()).map_or("", |(_, rest)| rest);
    let usage = format!("{name}{rest}");
    command.override_usage(usage)
}

fn page(command: &Command) -> String {
    let mut page = String::new();
    for (group, names) in GROUPS {
        let _ = writeln!(page, "{group}:");
        for name in names {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(page, "  {name:<12} {about}");
        }
        page.push('\n');
    }
    page.push_str("Each has a page of its own: tapedeck help COMMAND. The version: tapedeck --version\n\nExit status:\n");
    for code in ExitCode::ALL {
        let _ = writeln!(page, "  {}  {}", code.code(), code.meaning());
    }
    page.push_str(
        "A wrapped server's own status, where it is not 0, is passed on, and so is the signal that ended it.\n\n\
         Example:\n  tapedeck record session.json -- npx -y @modelcontextprotocol/server-everything\n  \
         tapedeck replay session.json",
    );
    page
}

/// What is wrong with a command line, without the lines about usage.
pub(super) fn in_one_line(error: &clap::Error) -> String {
    let text = in_words(error);
    let said = text.split("Usage:").next().unwrap_or_default();
    let words: Vec<_> = said.trim_start_matches("error: ").split_whitespace().collect();
    words.join(" ")
}

/// The same, whole. What the standard library says of numbers does not tell what is expected.
pub(super) fn in_words(error: &clap::Error) -> String {
    let text = error.to_string();
    ["invalid digit found in string", "cannot parse integer from empty string"]
        .iter()
        .fold(text, |text, said| text.replace(said, "expected a whole number"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn each_command_stands_in_one_group() {
        let mut command = crate::cli::Cli::command();
        command.build();
        let mut known: Vec<_> = command
            .get_subcommands()
            .filter(|command| !command.is_hide_set())
            .map(Command::get_name)
            .collect();
        let mut grouped: Vec<_> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        known.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, known);
    }

    #[test]
    fn each_page_has_an_example() {
        let mut command = group(crate::cli::Cli::command());
        command.build();
        let mut pages = Vec::new();
        for command in command.get_subcommands().filter(|command| command.get_name() != "help") {
            pages.push(command.clone());
            pages.extend(command.get_subcommands().cloned());
        }
        pages.retain(|command| !command.is_hide_set() && command.get_name() != "help");
        assert!(pages.len() > 20);
        for mut command in pages {
            let page = command.render_long_help().to_string();
            assert!(page.contains("Example"), "{page}");
        }
    }
}
