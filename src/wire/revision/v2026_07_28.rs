//! Revision 2026-07-28: stateless: no handshake, no session, no server requests (specification 2026-07-28, changelog).

use super::Revision;

pub(super) const REVISION: Revision =
    Revision { name: "2026-07-28", handshake: false, batches: false, server_requests: false };
