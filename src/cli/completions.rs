//! `tapedeck completions`: what makes a shell complete our command line.

use clap::{Args, CommandFactory};
use clap_complete::Shell;
use mcp_tapedeck::exit_code::ExitCode;

use super::{Cli, failure::Failure, output};

/// Print a completion script for your shell
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tapedeck completions bash > ~/.local/share/bash-completion/completions/tapedeck
  tapedeck completions zsh > ~/.zfunc/_tapedeck
  tapedeck completions fish > ~/.config/fish/completions/tapedeck.fish")]
pub(super) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

pub(super) fn run(args: &CompletionsArgs) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "tapedeck", &mut script);
    output::print(String::from_utf8_lossy(&script))?;
    Ok(ExitCode::Good)
}
