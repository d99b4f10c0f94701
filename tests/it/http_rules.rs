//! The replayer as an HTTP server without a socket: these requests go in, exactly these responses come out.

mod sessions;
mod stage;
mod streams;
mod transports;
