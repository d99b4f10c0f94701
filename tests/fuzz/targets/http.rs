#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mcp_tapedeck::replay::fuzz::http(bytes));
