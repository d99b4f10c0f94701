//! Revision 2024-11-05: stdio and HTTP+SSE (specification 2024-11-05, basic/transports).

use super::Revision;

pub(super) const REVISION: Revision =
    Revision { name: "2024-11-05", handshake: true, batches: false, server_requests: true };
