//! Every real client with every real server: directly, recorded, replayed, and the replay recorded.

#[cfg(unix)]
mod bridge;
mod cassette;
#[cfg(unix)]
mod faults;
#[cfg(unix)]
mod http;
mod inspector;
mod pair;
#[cfg(unix)]
mod passed_on;
#[cfg(unix)]
mod run;
mod transcript;
#[cfg(unix)]
mod transports;

use crate::support::{client, server};

macro_rules! matrix {
    ($($client:ident: $($server:ident)*;)*) => {
        $(mod $client {
            $(#[test]
            fn $server() {
                super::pair::check(super::client::$client(), super::server::$server());
            })*
        })*
    };
}

#[cfg(unix)]
macro_rules! matrix_over_http {
    ($($client:ident: $($service:ident)*;)*) => {
        mod over_http {
            $(mod $client {
                $(#[test]
                fn $service() {
                    super::super::http::check(super::super::client::$client(), super::super::http::$service());
                })*
            })*
        }
    };
}

#[cfg(unix)]
matrix_over_http! {
    python_auto: everything everything_sse fast fast_stateless fast_json handler modern rust_server;
    python_legacy: everything everything_sse fast fast_json handler modern rust_server;
    python_modern: handler modern rust_server;
    typescript_1: everything everything_sse fast fast_stateless handler modern rust_server;
    typescript_2: everything everything_sse fast fast_json handler modern rust_server;
    typescript_2_auto: everything fast handler modern rust_server;
}

matrix! {
    python_auto: everything filesystem memory time fast modern;
    python_legacy: everything filesystem memory time fast modern;
    // What is pinned to a revision cannot speak with a server of the other era.
    python_modern: time fast modern;
    rust: everything filesystem memory time fast modern;
    rust_auto: everything modern;
    typescript_1: everything filesystem memory time fast modern;
    typescript_2: everything filesystem memory time fast modern;
    typescript_2_auto: everything filesystem memory time fast modern;
}
