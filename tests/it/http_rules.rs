//! The replayer as a server without a socket: these requests and lines go in, exactly these responses come out.

mod batches;
mod blanks;
mod ends;
mod lines;
mod paths;
mod pipes;
mod resumed;
mod secrets;
mod sessions;
mod spread;
mod stage;
mod streams;
mod strict;
mod transports;
