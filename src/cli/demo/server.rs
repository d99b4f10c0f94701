//! The demo's MCP server: a weather station on stdio.
//!
//! A real server in small: a handshake, a tool that reports progress, a resource, errors of both kinds. What it
//! measures differs each time, so a replay shows that it replays.

use std::{
    fmt,
    io::{self, BufRead, Write},
};

use mcp_tapedeck::{
    exit_code::ExitCode,
    wire::{
        jsonrpc::{self, Kind, Message},
        scan,
    },
};

use crate::cli::failure::Failure;

const CITIES: [(&str, i32); 3] = [("Bergen", 7), ("Lisbon", 19), ("Oslo", 4)];

/// Answers requests until its input ends.
pub(in crate::cli) fn run() -> Result<ExitCode, Failure> {
    let mut output = io::stdout().lock();
    for line in io::stdin().lock().split(b'\n') {
        let answered = line.and_then(|line| answer(&Message::read(&line), &mut output));
        answered.map_err(Failure::output)?;
    }
    Ok(ExitCode::Good)
}

fn answer(message: &Message<'_>, output: &mut impl Write) -> io::Result<()> {
    let Some(id) = message.id().filter(|_| message.kind == Kind::Request) else { return Ok(()) };
    let outcome = match message.method().as_ref() {
        "initialize" => Ok(initialize(message)),
        "ping" => Ok("{}".to_owned()),
        "tools/list" => Ok(TOOLS.to_owned()),
        "tools/call" => return call(message, id, output),
        "resources/list" => Ok(RESOURCES.to_owned()),
        "resources/read" => read(message),
        method => Err(error(-32601, format_args!("Method not found: {method}"))),
    };
    respond(id, outcome, output)
}

fn respond(id: &[u8], outcome: Result<String, String>, output: &mut impl Write) -> io::Result<()> {
    let (member, value) = match outcome {
        Ok(result) => ("result", result),
        Err(error) => ("error", error),
    };
    output.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":")?;
    output.write_all(id)?;
    writeln!(output, ",\"{member}\":{value}}}")?;
    output.flush()
}

fn initialize(message: &Message<'_>) -> String {
    let asked = message.param("/protocolVersion").map(jsonrpc::text);
    let known = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
    let protocol = known.into_iter().find(|known| asked.as_deref() == Some(known)).unwrap_or("2025-11-25");
    let version = env!("CARGO_PKG_VERSION");
    format!(
        r#"{{"protocolVersion":"{protocol}","capabilities":{{"tools":{{}},"resources":{{}}}},"serverInfo":{{"name":"tapedeck-demo","version":"{version}"}}}}"#
    )
}

const TOOLS: &str = r#"{"tools":[{"name":"measure","description":"Measures the weather of a city now","inputSchema":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}]}"#;

const RESOURCES: &str = r#"{"resources":[{"uri":"demo://cities","name":"cities","mimeType":"text/plain"}]}"#;

fn call(message: &Message<'_>, id: &[u8], output: &mut impl Write) -> io::Result<()> {
    let tool = message.name().unwrap_or_default();
    if tool != "measure" {
        return respond(id, Err(error(-32602, format_args!("Unknown tool: {tool}"))), output);
    }
    let city = message.param("/arguments/city").map(jsonrpc::text).unwrap_or_default();
    let Some((city, usual)) = CITIES.into_iter().find(|(name, _)| *name == city) else {
        let text = format!("There is no station in {city}.");
        return respond(id, Ok(content(&text, true)), output);
    };
    if let Some(token) = message.progress_token() {
        for (done, step) in ["thermometer", "barometer"].into_iter().enumerate() {
            output.write_all(
                b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":",
            )?;
            output.write_all(token)?;
            writeln!(output, ",\"progress\":{},\"total\":2,\"message\":\"{step}\"}}}}", done + 1)?;
        }
    }
    let now = jiff::Timestamp::now();
    let noise = i32::try_from(now.as_microsecond().rem_euclid(50)).unwrap_or_default();
    let text = format!(
        "{city} at {now:.0}\nTemperature: {}.{} °C\nPressure: {} hPa",
        usual + noise / 10,
        noise % 10,
        1000 + noise
    );
    respond(id, Ok(content(&text, false)), output)
}

fn content(text: &str, is_error: bool) -> String {
    let text = Quoted(text);
    let is_error = if is_error { ",\"isError\":true" } else { "" };
    format!(r#"{{"content":[{{"type":"text","text":{text}}}]{is_error}}}"#)
}

fn read(message: &Message<'_>) -> Result<String, String> {
    let uri = message.name().unwrap_or_default();
    if uri != "demo://cities" {
        return Err(error(-32002, format_args!("Resource not found: {uri}")));
    }
    let names: Vec<_> = CITIES.iter().map(|(name, _)| *name).collect();
    let text = names.join("\n");
    let text = Quoted(&text);
    Ok(format!(r#"{{"contents":[{{"uri":"demo://cities","mimeType":"text/plain","text":{text}}}]}}"#))
}

fn error(code: i32, message: fmt::Arguments<'_>) -> String {
    let message = message.to_string();
    let message = Quoted(&message);
    format!(r#"{{"code":{code},"message":{message}}}"#)
}

/// A text as a JSON string.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut quoted = Vec::new();
        scan::push_string(self.0, &mut quoted);
        f.write_str(&String::from_utf8_lossy(&quoted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(line: &str) -> String {
        let mut output = Vec::new();
        answer(&Message::read(line.as_bytes()), &mut output).unwrap();
        String::from_utf8(output).unwrap()
    }

    #[test]
    fn the_handshake_keeps_to_revisions_it_knows() {
        let initialize = |version| {
            answers(&format!(
                r#"{{"jsonrpc":"2.0","id":"a","method":"initialize","params":{{"protocolVersion":"{version}"}}}}"#
            ))
        };
        assert!(
            initialize("2025-06-18")
                .starts_with(r#"{"jsonrpc":"2.0","id":"a","result":{"protocolVersion":"2025-06-18""#)
        );
        assert!(initialize("2099-01-01").contains(r#""protocolVersion":"2025-11-25""#));
    }

    #[test]
    fn progress_is_reported_where_it_is_asked_for() {
        let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"measure","arguments":{"city":"Oslo"}META}}"#;
        let asked = answers(&call.replace("META", r#","_meta":{"progressToken":"p"}"#));
        assert_eq!(asked.lines().count(), 3);
        assert!(asked.lines().all(|line| Message::read(line.as_bytes()).kind != Kind::Noise), "{asked}");
        assert_eq!(answers(&call.replace("META", "")).lines().count(), 1);
    }

    #[test]
    fn failures_are_told_as_the_protocol_tells_them() {
        let call = |tool, city| {
            answers(&format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{{"city":"{city}"}}}}}}"#
            ))
        };
        assert!(call("measure", "Atlantis").contains(r#""isError":true"#));
        assert!(call("teleport", "Oslo").contains(r#""error":{"code":-32602"#));
        assert!(answers(r#"{"jsonrpc":"2.0","id":1,"method":"no/such"}"#).contains("-32601"));
        assert_eq!(answers(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#), "");
        assert_eq!(answers("noise"), "");
    }
}
