//! Clients that do not agree on TLS: they are told at the end, in each front.

use std::fs;

use super::{parts::process, *};

const CASSETTE: &str =
    r#"{"cassette": 1, "sessions": [{"session": 1, "transport": "http", "path": "/mcp"}], "exchanges": []}"#;

#[test]
fn whoever_does_not_speak_tls_is_told_at_the_end_and_whoever_just_leaves_is_not() {
    let issuer = Issuer::new();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (played, new) = (path("c.json"), path("n.json"));
    fs::write(&played, CASSETTE).unwrap();
    let server = ["--url", "http://127.0.0.1:9/mcp"];
    for command in [&["replay", &*played][..], &["record", &*new], &["proxy"]] {
        let server = if command[0] == "replay" { &[][..] } else { &server };
        let front = process(&issuer, &[command, server].concat(), &folder);
        let connect = || {
            let address = front.origin.strip_prefix("https://").unwrap();
            Peer::new(TcpStream::connect(address).unwrap())
        };
        let mut plain = connect();
        plain.say("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n");
        assert!(plain.rest().0.ends_with("use https://\n"));
        let mut garbage = connect();
        garbage.say(b"\x16\x03\x01\x00\x05hello");
        drop(garbage.rest());
        let mut left = connect();
        left.say(b"\x16\x03\x01");
        left.0.shutdown(std::net::Shutdown::Write).unwrap();
        drop(left.rest());
        let said = front.end_with(0);
        assert!(said.contains("2 requests were refused"), "{command:?}: {said}");
        assert!(
            said.contains("use https://") && said.contains("no TLS was agreed on"),
            "{command:?}: {said}"
        );
    }
}
