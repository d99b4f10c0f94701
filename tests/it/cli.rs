//! The command line from outside: exit statuses, sentences, files.

mod asserts;
mod deck;
mod edit;
mod events;
mod files;
mod freeze;
mod fronts;
#[cfg(unix)]
mod full_disk;
mod left;
mod live;
mod options;
mod refused;
#[cfg(unix)]
mod report;
mod verdict;
mod wrap;

use std::process::{Command, Stdio};

use mcp_tapedeck::exit_code::ExitCode;

use deck::{Deck, Ran};

#[test]
fn help_lists_groups_and_exit_statuses() {
    let ran = Deck::new().run("help").status(ExitCode::Good).silent();
    for code in ExitCode::ALL {
        assert!(ran.stdout.contains(&format!("{}  {}", code.code(), code.meaning())), "{ran:#?}");
    }
    ran.stdout("Service:").stdout("Example:");
}

#[test]
fn nothing_and_nonsense_are_usage_errors() {
    Deck::new().run("").status(ExitCode::Usage).stderr("Usage:");
    Deck::new().run("complete").status(ExitCode::Usage).stderr("completions");
    Deck::new().run("completions tcsh").status(ExitCode::Usage).stderr("possible values");
    Deck::new().run("verdict").status(ExitCode::Usage).stderr("<PATH>");
    Deck::new().run("show c.json KEY --follow").status(ExitCode::Usage).stderr("--follow");
}

#[test]
fn completions_know_the_commands() {
    for shell in ["bash", "zsh", "fish"] {
        Deck::new()
            .run(&format!("completions {shell}"))
            .status(ExitCode::Good)
            .stdout("completions")
            .silent();
    }
}

#[test]
fn a_reader_that_went_away_is_no_failure() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = Command::new(env!("CARGO_BIN_EXE_tapedeck"));
    let output = command.args(["completions", "bash"]).stdin(Stdio::null()).stdout(writer).output();
    Ran::of(&output.expect("tapedeck starts")).status(ExitCode::Good).silent();
}

#[test]
fn each_command_has_a_page_with_an_example() {
    let help = Deck::new().run("help");
    let commands: Vec<_> = help.stdout.lines().filter_map(|line| line.strip_prefix("  ")).collect();
    let commands = commands.iter().filter_map(|line| line.split_whitespace().next());
    let mut count = 0;
    for command in commands.filter(|word| word.chars().all(char::is_alphabetic) && *word != "help") {
        if command == "tapedeck" {
            break;
        }
        Deck::new().run(&format!("{command} --help")).status(ExitCode::Good).stdout("Example").silent();
        count += 1;
    }
    assert!(count > 10, "{count} commands in {help:#?}");
}

#[test]
fn the_demo_runs_to_its_end() {
    let deck = Deck::new();
    let ran = deck.run("demo here").status(ExitCode::Good).silent();
    ran.stdout("7 of 7 messages")
        .stdout("error -33000: ")
        .stdout("3 reports, 2 good")
        .stdout("tapedeck show");
    deck.run("lint here/demo.json").status(ExitCode::Good);
    deck.run("demo here").status(ExitCode::Usage).stderr("holds a demo already");
}
