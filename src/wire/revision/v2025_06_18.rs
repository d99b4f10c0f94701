//! Revision 2025-06-18: batches removed, elicitation added (specification 2025-06-18, changelog).

use super::Revision;

pub(super) const REVISION: Revision =
    Revision { name: "2025-06-18", handshake: true, batches: false, server_requests: true };
