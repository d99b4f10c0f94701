//! What the `tapedeck` command's exit status means.

/// Exit status of the `tapedeck` command.
///
/// Two cases end otherwise: a recorded server's own status that is not zero is passed on, and a command that a signal
/// ended, or whose server one ended, ends by the same signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ExitCode {
    /// All is well.
    Good = 0,
    /// What was asked to be checked is false: a miss, something unused under `--strict`, a finding.
    Bad = 1,
    /// The command line is wrong.
    Usage = 2,
    /// A file is missing, invalid or cannot be written.
    File = 3,
    /// A peer could not be started or reached.
    Peer = 4,
}

impl ExitCode {
    /// Every code, in order.
    pub const ALL: [Self; 5] = [Self::Good, Self::Bad, Self::Usage, Self::File, Self::Peer];

    /// The number a shell sees.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// What it means, in a few words.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Good => "all is well",
            Self::Bad => "what was to be checked is false: a miss, a difference, a finding",
            Self::Usage => "the command line is wrong",
            Self::File => "a file is missing, invalid or cannot be written",
            Self::Peer => "a server or client could not be started or reached",
        }
    }
}
