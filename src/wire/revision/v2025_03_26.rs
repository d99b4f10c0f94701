//! Revision 2025-03-26: Streamable HTTP, and the only revision with batches (specification 2025-03-26, basic).

use super::Revision;

pub(super) const REVISION: Revision =
    Revision { name: "2025-03-26", handshake: true, batches: true, server_requests: true };
