//! HTTP between two sockets: what has to change in a head on its way, and nothing else.
//!
//! - [`apart`]: futures that share a task
//! - [`origin`]: whose address an absolute URL is
//! - [`headers`]: which headers end at this hop
//! - [`body`]: a body piece by piece
//! - [`guard`]: whom a front on loopback serves
//! - [`server`]: HTTP on a client's connection, and the limits it has
//! - [`socket`]: a client's connection that can be cut off, with a reset too
//! - [`plain`], [`chunks`]: heads and bodies as they stand in a connection's bytes
//! - [`way`]: bytes from one socket to another
//! - [`shortcut`]: a way past hyper for what is plain and is answered at once
//! - [`coding`]: what a compressed body says
//! - [`connect`], [`proxies`]: the way to a server
//! - [`upstream`]: HTTP/1.1 or HTTP/2 on the connection to a server
//! - [`tls`]: TLS on both sides

use std::time::Duration;

pub mod apart;
pub mod body;
pub mod chunks;
pub mod coding;
pub mod connect;
pub mod guard;
pub mod headers;
pub mod origin;
pub mod plain;
pub mod proxies;
pub mod server;
pub mod shortcut;
pub mod socket;
pub mod tls;
mod unread;
pub mod upstream;
pub mod way;

/// How many lines a head may have: far more than anybody sends in good faith. hyper prepares room for all of them each
/// time that it reads a head, which with a thousand takes longer than all else that it does with one.
pub const MAX_HEADERS: usize = 320;
/// The longest head.
pub const MAX_HEAD: usize = 256 << 10;
/// How long a client may take to send a head it has begun.
pub const HEAD_TIME: Duration = Duration::from_secs(30);

/// How long a client may send nothing of a body it has begun, where nobody else waits for the rest.
pub const BODY_TIME: Duration = HEAD_TIME;
