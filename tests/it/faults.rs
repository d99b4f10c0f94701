//! Faults: what clients see of them, and what the report tells.

mod acted;
mod acting;
mod alike;
#[cfg(unix)]
mod chance;
#[cfg(unix)]
mod deck;
mod documents;
mod errors;
mod events;
mod freeze;
#[path = "../../src/fault/catalogue/parameters.rs"]
mod parameters;
#[cfg(unix)]
mod pipe;
mod program;
#[cfg(unix)]
mod read_back;
#[cfg(unix)]
mod secure;
#[cfg(unix)]
mod servers;
mod socket;
#[cfg(unix)]
mod sse;
mod stage;
#[cfg(unix)]
mod stories;
mod time;

/// A fault that is about bytes or connections is no fault before a raw reader has seen it.
#[cfg(unix)]
#[test]
fn each_fault_of_bytes_and_connections_is_seen_on_each_transport() {
    use mcp_tapedeck::fault::catalogue::{TABLE, Where};

    let lacks = |tested: &[(&str, fn())], never: Where| -> Vec<&str> {
        let physical = TABLE.iter().filter(|kind| kind.is_physical && kind.exists != never);
        let names = physical.map(|kind| kind.name);
        names.filter(|name| !tested.iter().any(|(tested, _)| tested == name)).collect()
    };
    assert_eq!(lacks(socket::TESTED, Where::Stdio), [""; 0], "without a test at the socket");
    assert_eq!(lacks(pipe::TESTED, Where::Http), [""; 0], "without a test at the pipe");
}
