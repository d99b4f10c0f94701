//! The library as a program without processes uses it: a cassette serves an `rmcp` client over a pipe in memory.

use std::{sync::Arc, time::Duration};

use mcp_tapedeck::{
    Cassette, Recorder, Replayer, Report,
    cassette::blob::{MemoryBlobs, NoBlobs},
    replay::{Input, Options, Output},
    report::Verdict,
    traffic::{
        Direction::{ToClient, ToServer},
        Lane,
    },
};
use rmcp::{ServiceExt, model::CallToolRequestParams};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream},
    time::{Instant, sleep_until},
};

/// Plays a cassette to whoever is at the other end of the pipe, until it closes its side.
async fn serve(mut replayer: Replayer, pipe: DuplexStream) -> std::io::Result<Report> {
    let (input, mut output) = tokio::io::split(pipe);
    let mut lines = BufReader::new(input).lines();
    let start = Instant::now();
    while !replayer.is_done(Lane(0)) {
        let now = start.elapsed().as_micros() as u64;
        while let Some(out) = replayer.poll(now) {
            if let Output::Send { mut bytes, .. } = out {
                bytes.push(b'\n');
                output.write_all(&bytes).await?;
            }
        }
        let due = start + Duration::from_micros(replayer.deadline().unwrap_or(0));
        tokio::select! {
            line = lines.next_line() => match line? {
                Some(line) => {
                    let input = Input::Message { lane: Lane(0), bytes: line.as_bytes() };
                    replayer.handle(start.elapsed().as_micros() as u64, input);
                }
                None => replayer.handle(now, Input::Closed { lane: Lane(0) }),
            },
            () = sleep_until(due), if replayer.deadline().is_some() => {}
        }
    }
    Ok(replayer.finish())
}

/// What was seen of a server on the wire, recorded in memory.
fn recorded() -> Vec<u8> {
    let mut recorder = Recorder::new(Default::default());
    for (direction, line) in [
        (
            ToServer,
            r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#,
        ),
        (
            ToClient,
            r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"adder","version":"1"}}}"#,
        ),
        (ToServer, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#),
        (
            ToServer,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":2,"b":3}}}"#,
        ),
        (ToClient, r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"5"}]}}"#),
    ] {
        recorder.message(0, direction, line.as_bytes());
    }
    recorder.finish(None, &mut MemoryBlobs::default()).expect("memory does not fail")
}

#[tokio::test]
async fn a_cassette_serves_a_real_client_over_a_pipe_in_memory() {
    let cassette = Cassette::load(recorded(), &NoBlobs).expect("a recording loads");
    let replayer = Replayer::new(Arc::new(cassette), Arc::new(NoBlobs), "adder", Options::default());
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let server = tokio::spawn(serve(replayer.expect("it plays"), ours));

    let client = ().serve(theirs).await.expect("the handshake is in the cassette");
    let call = |a: u32| {
        let arguments = serde_json::json!({"b": 3, "a": a}).as_object().cloned().expect("an object");
        client.call_tool(CallToolRequestParams::new("add").with_arguments(arguments))
    };
    let sum = call(2).await.expect("this call is in the cassette");
    assert_eq!(serde_json::to_value(&sum.content).expect("JSON")[0]["text"], "5");
    let miss = call(7).await.expect_err("this one is not");
    assert!(miss.to_string().contains("`tools/call add` differs from the recorded"), "{miss}");
    client.cancel().await.expect("the client ends");

    let report = server.await.expect("no panic").expect("the pipe works");
    assert_eq!((report.verdict, report.misses.len(), report.calls["tools/call"]), (Verdict::Bad, 1, 2));
}
