//! HTTP/1.1 between two sockets: what has to change in a head on its way, and nothing else.
//!
//! - [`origin`]: whose address an absolute URL is
//! - [`headers`]: which headers end at this hop
//! - [`guard`]: whom a front on loopback serves
//! - [`socket`]: a client's connection that can be cut off, with a reset too

pub mod guard;
pub mod headers;
pub mod origin;
pub mod socket;
