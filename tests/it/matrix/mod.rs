//! Every real client with every real server: directly, recorded, replayed, and the replay recorded.

#[cfg(unix)]
mod bridge;
mod cassette;
mod inspector;
mod pair;
mod transcript;

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
