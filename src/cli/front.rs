//! What `record`, `proxy`, `replay`, `join` and `auto` share: a client's stdio, and what to say where a session cannot
//! start.

use std::{
    fs::File,
    io::{self, IsTerminal},
};

use mcp_tapedeck::{exit_code::ExitCode, proxy, transport::stdio::Client};

use super::{
    failure::Failure,
    output::{self, Notices},
};

/// Takes stdin and stdout for the protocol.
pub(super) fn take_client(notices: &Notices) -> Result<Client, Failure> {
    if io::stdin().is_terminal() {
        notices.info(
            "waiting for a client on stdin: this is started by an MCP client, not by hand; Ctrl-D ends it. \
             `--listen 127.0.0.1:9001` serves clients over HTTP instead (with `record` and `proxy`, and `--url`)",
        );
    }
    Client::take().map_err(|error| Failure::peer(format_args!("cannot take stdin and stdout: {error}")))
}

/// Says why a session cannot start: to a person, and in the protocol to a client, which shows nothing else.
pub(super) fn refuse(failure: &Failure) -> ExitCode {
    output::failure(failure);
    tell(&failure.one_line());
    failure.code
}

/// Answers each request of a client with this sentence until it leaves.
pub(super) fn tell(sentence: &str) {
    if io::stdin().is_terminal() {
        return;
    }
    // A client that cannot be spoken to learns of it by our end.
    if let Ok(Client { input, output }) = Client::take() {
        let _ = proxy::front::speak(sentence, File::from(input), File::from(output));
    }
}
