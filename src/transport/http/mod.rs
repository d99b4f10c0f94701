//! HTTP between two sockets: what has to change in a head on its way, and nothing else.
//!
//! - [`origin`]: whose address an absolute URL is
//! - [`headers`]: which headers end at this hop
//! - [`guard`]: whom a front on loopback serves
//! - [`socket`]: a client's connection that can be cut off, with a reset too
//! - [`coding`]: what a compressed body says
//! - [`connect`], [`proxies`]: the way to a server
//! - [`upstream`]: HTTP/1.1 or HTTP/2 on the connection to a server
//! - [`tls`]: TLS on both sides

pub mod coding;
pub mod connect;
pub mod guard;
pub mod headers;
pub mod origin;
pub mod proxies;
pub mod socket;
pub mod tls;
pub mod upstream;
