//! Revision 2025-11-25: tasks, URL elicitation (specification 2025-11-25, changelog).

use super::Revision;

pub(super) const REVISION: Revision =
    Revision { name: "2025-11-25", handshake: true, batches: false, server_requests: true };
