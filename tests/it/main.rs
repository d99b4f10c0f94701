//! Integration tests: one binary. `support/` starts the program and its peers; each other module is one subject.

#[cfg(unix)]
mod admin;
mod cassettes;
mod cli;
#[cfg(unix)]
mod conformance;
mod faults;
mod fuzz;
#[cfg(unix)]
mod http_bridge;
#[cfg(unix)]
mod http_cassette;
#[cfg(unix)]
mod http_record;
#[cfg(unix)]
mod http_replay;
mod http_rules;
#[cfg(unix)]
mod http_tls;
#[cfg(unix)]
mod last_line;
mod layering;
mod library;
mod matrix;
#[cfg(unix)]
mod on_miss;
mod own_recording;
mod readme;
mod redaction;
mod replay;
mod respelled;
mod round_trip;
#[cfg(unix)]
mod run;
mod schema;
#[cfg(unix)]
mod sent_header;
mod skipping;
mod snippets;
mod support;
