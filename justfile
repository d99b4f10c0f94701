# What .ci/run does, in pieces. `just` lists them.

# The peers of the real-peer tests are installed into target/peers/ on first use.
_list:
    @just --list --unsorted

# Everything that is tested; real peers that cannot be installed here are skipped and named.
test *ARGS:
    cargo test {{ARGS}}

# Formatting, lints and documentation.
check:
    cargo fmt --check
    cargo clippy --all-targets -- -D warnings
    RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --document-private-items

# Licences, sources, duplicate and vulnerable crates.
deny:
    cargo deny check

# The whole gate, as CI runs it.
ci:
    bash .ci/run

# Speed, memory and size beside their goals; words select (`just bench replay`), `--full` takes whole sizes.
bench *ARGS:
    cargo bench --bench stdio -- {{ARGS}}

# One of tests/fuzz/targets until it finds something; needs a nightly compiler and cargo-fuzz.
fuzz TARGET *ARGS:
    mkdir -p target/corpus/{{TARGET}}
    cargo +nightly fuzz run --fuzz-dir tests/fuzz --target-dir target/fuzz {{TARGET}} target/corpus/{{TARGET}} tests/fuzz/seeds/{{TARGET}} {{ARGS}}

# A static Linux binary: target/x86_64-unknown-linux-gnu/release/tapedeck
dist:
    RUSTFLAGS="-C target-feature=+crt-static" cargo build --release --target x86_64-unknown-linux-gnu
