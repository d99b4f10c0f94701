//! What may be wrong with a plan.

use std::fmt;

use crate::cassette::model::line_column;

/// A plan that cannot be used, with the place of the first thing that is wrong.
#[derive(Debug, PartialEq, Eq)]
pub struct PlanError {
    /// Offset in the text.
    pub at: usize,
    /// Line, from 1; 0 where the plan has no text of its own.
    pub line: usize,
    /// Column, from 1, in characters.
    pub column: usize,
    /// One sentence: what was expected and found, and the valid choices.
    pub text: String,
    /// It stands in an option of the command line.
    pub by_option: bool,
}

impl PlanError {
    /// An error whose line and column are not known yet: see [`PlanError::locate`].
    pub fn new(at: usize, text: impl Into<String>) -> Self {
        Self { at, line: 0, column: 0, text: text.into(), by_option: false }
    }

    /// Fills in line and column.
    #[must_use]
    pub fn locate(self, text: &[u8]) -> Self {
        let (line, column) = line_column(text, self.at);
        Self { line, column, ..self }
    }
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "{}:{}: ", self.line, self.column)?;
        }
        f.write_str(&self.text)
    }
}

impl std::error::Error for PlanError {}

/// `a, b and c`
pub(super) fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    match names.split_last() {
        Some((last, rest @ [_, ..])) => format!("{} and {last}", rest.join(", ")),
        _ => names.concat(),
    }
}
