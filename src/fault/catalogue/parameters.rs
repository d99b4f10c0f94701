//! Parameters of faults, for the tests that are about all of them.

/// With these a fault acts wherever it can.
pub(crate) fn acting(name: &str) -> &'static str {
    match name {
        "latency" | "slow_start" | "ignore_shutdown" => r#", "ms": 5"#,
        "bandwidth" => r#", "bytes_per_second": 100"#,
        "dribble" => r#", "chunks": 2, "ms": 5"#,
        "cut_after" | "truncate" => r#", "bytes": 3"#,
        "oversize" => r#", "bytes": 500"#,
        "status" => r#", "status": 503"#,
        "missing_header" => r#", "name": "content-type""#,
        _ => "",
    }
}

/// Faults, and with what they change nothing.
pub(crate) const IDLE: &[(&str, &str)] = &[
    ("latency", r#", "ms": 0"#),
    ("latency", r#", "uniform": {"min_ms": 0, "max_ms": 0}"#),
    ("slow_start", r#", "ms": 0"#),
    ("bandwidth", r#", "bytes_per_second": 1000000000000"#),
    ("dribble", r#", "chunks": 1, "ms": 0"#),
    ("reorder", r#", "ms": 0"#),
    ("cut_after", r#", "bytes": 9999"#),
    ("cut_after", r#", "events": 9"#),
    ("truncate", r#", "bytes": 9999"#),
    ("oversize", r#", "bytes": 1"#),
    ("missing_header", r#", "name": "x-none""#),
    ("ignore_shutdown", r#", "ms": 0"#),
];
