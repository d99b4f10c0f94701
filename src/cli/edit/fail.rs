//! `tapedeck edit C fail`: a failure that never happened.

use clap::{ArgGroup, Args};
use mcp_tapedeck::edit::{Edit, Fault, Response};

use crate::cli::failure::Failure;

/// Let an exchange fail
#[derive(Args, Debug)]
#[command(group(ArgGroup::new("failure").required(true)), after_help = "Examples:
  tapedeck edit session.json fail 'tools/call search @2' --error -32603 'database is locked'
  tapedeck edit session.json fail 'tools/call search @2' --tool-error 'no such index'
  tapedeck edit session.json fail 'tools/call search @2' --timeout --out slow.json

`--error` and `--tool-error` replace the answer; what the server sent before it stays. The others leave the answer and
write the exchange's member `fault`. To fail the first of two equal calls and answer the second, duplicate the exchange
first.")]
pub(super) struct FailArgs {
    /// The exchange
    key: String,

    /// Answer with a JSON-RPC error
    #[arg(long, num_args = 2, value_names = ["CODE", "MESSAGE"], allow_hyphen_values = true, group = "failure")]
    error: Option<Vec<String>>,

    /// Answer with a result that says the tool failed
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, group = "failure")]
    tool_error: Option<String>,

    /// Answer with this HTTP status
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(200..=599), group = "failure")]
    status: Option<u16>,

    /// Never answer
    #[arg(long, group = "failure")]
    timeout: bool,

    /// Lose the answer
    #[arg(long, group = "failure")]
    drop: bool,

    /// Cut the response off behind so many messages (the fault's `events`; for `bytes`, give a fault)
    #[arg(long, value_name = "N", group = "failure")]
    cut_after: Option<u32>,

    /// Let the server end with this status instead of answering
    #[arg(long, value_name = "N", group = "failure")]
    exit: Option<u8>,
}

impl FailArgs {
    pub(super) fn edit(self) -> Result<Edit, Failure> {
        let key = self.key;
        if let Some([code, message]) = self.error.as_deref() {
            let wrong =
                || Failure::usage(format_args!("CODE must be a whole number such as -32603, found `{code}`"));
            let response =
                Response::Failed { code: code.parse().map_err(|_| wrong())?, message: message.clone() };
            return Ok(Edit::Answer { key, response });
        }
        if let Some(text) = self.tool_error {
            return Ok(Edit::Answer { key, response: Response::ToolError(text) });
        }
        let fault = match (self.status, self.cut_after, self.exit) {
            (Some(status), ..) => Fault::Status(status),
            (_, Some(events), _) => Fault::CutAfter(events),
            (.., Some(status)) => Fault::Exit(status),
            _ if self.drop => Fault::Drop,
            _ => Fault::Timeout,
        };
        Ok(Edit::Fault { key, fault })
    }
}
