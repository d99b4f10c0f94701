//! Values as they are typed on the command line: durations, sizes, names with values.

use std::{ffi::OsStr, time::Duration};

use clap::{Arg, Command, builder::TypedValueParser, error::ErrorKind};
use mcp_tapedeck::replay::Timing;

/// Reads a duration: a number and its unit.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    const UNITS: [(&str, f64); 4] = [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
    let seconds = match number_and_unit(text) {
        Some((0.0, "")) => Some(0.0),
        Some((number, unit)) => {
            UNITS.iter().find(|(name, _)| *name == unit).map(|(_, seconds)| number * seconds)
        }
        None => None,
    };
    seconds
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| "expected a number and ms, s, m or h, such as 100ms, 2s or 1m".to_owned())
}

/// Reads a size in bytes: a number, with a unit or without.
pub(super) fn size(text: &str) -> Result<usize, String> {
    const UNITS: [(&str, u64); 8] = [
        ("", 1),
        ("b", 1),
        ("kb", 1000),
        ("mb", 1000 * 1000),
        ("gb", 1000 * 1000 * 1000),
        ("kib", 1 << 10),
        ("mib", 1 << 20),
        ("gib", 1 << 30),
    ];
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let unit = text[digits..].trim_start().to_ascii_lowercase();
    let number = text[..digits].parse::<u64>().ok();
    let factor = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor);
    number
        .zip(factor)
        .and_then(|(number, factor)| number.checked_mul(factor))
        .and_then(|bytes| usize::try_from(bytes).ok())
        .filter(|bytes| *bytes > 0)
        .ok_or_else(|| "expected a number above 0 and a unit, such as 64MiB, 10MB or 65536".to_owned())
}

/// Checks the form of an address to listen on.
pub(super) fn address(text: &str) -> Result<String, String> {
    let is_host = |host: &str| {
        let name = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let allowed =
            |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c) || (name.is_some() && ":%".contains(c));
        let name = name.unwrap_or(host);
        !name.is_empty() && name.chars().all(allowed)
    };
    match text.rsplit_once(':') {
        Some((host, port)) if is_host(host) && port.parse::<u16>().is_ok() => Ok(text.to_owned()),
        _ => Err("expected HOST:PORT, such as 127.0.0.1:8123; port 0 picks a free one".to_owned()),
    }
}

/// Reads `--timing`.
pub(super) fn timing(text: &str) -> Result<Timing, String> {
    match (text, text.strip_suffix('x').and_then(|number| number.parse::<f64>().ok())) {
        ("instant", _) => Ok(Timing::Instant),
        ("recorded", _) => Ok(Timing::Recorded { speed: 1.0 }),
        (_, Some(speed)) if speed.is_finite() && speed > 0.0 => Ok(Timing::Recorded { speed }),
        _ => Err("expected instant, recorded or a factor such as 2x (twice as fast)".to_owned()),
    }
}

/// Reads `NAME=VALUE`.
pub(super) fn variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE, such as ROOT=/home/me")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// The same for `--var`. What has no name is not told, for it may be a secret.
#[derive(Clone, Copy, Debug)]
pub(super) struct Variable;

impl TypedValueParser for Variable {
    type Value = (String, String);

    fn parse_ref(&self, cmd: &Command, _: Option<&Arg>, value: &OsStr) -> Result<Self::Value, clap::Error> {
        let wrong = |why: &str| {
            let text = format!("--var: {why}; it takes NAME=VALUE, such as ROOT=/home/me\n");
            clap::Error::raw(ErrorKind::ValueValidation, text).with_cmd(cmd)
        };
        let text = value.to_str().ok_or_else(|| wrong("what is given is not UTF-8"))?;
        variable(text).map_err(|_| wrong("there is no `=` behind the name"))
    }
}

fn number_and_unit(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    Some((text[..end].parse().ok()?, text[end..].trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit() {
        let read = |text| duration(text).map(|duration| duration.as_millis());
        assert_eq!(read("100ms"), Ok(100));
        assert_eq!(read("2s"), Ok(2000));
        assert_eq!(read("1.5 s"), Ok(1500));
        assert_eq!(read("1m"), Ok(60_000));
        assert_eq!(read("0"), Ok(0));
        for wrong in ["", "5", "s", "-1s", "1 day", "1.2.3s", "1e3s", "99999999999999999999999999h"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_may_have_a_unit() {
        assert_eq!(size("64MiB"), Ok(64 << 20));
        assert_eq!(size("10MB"), Ok(10_000_000));
        assert_eq!(size("2 kb"), Ok(2000));
        assert_eq!(size("65536"), Ok(65536));
        for wrong in
            ["", "0", "MiB", "-1", "1.5MB", "10 bananas", "99999999999999999999", "18446744073709551615GiB"]
        {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn timing_is_a_word_or_a_factor() {
        assert_eq!(timing("instant"), Ok(Timing::Instant));
        assert_eq!(timing("recorded"), Ok(Timing::Recorded { speed: 1.0 }));
        assert_eq!(timing("2x"), Ok(Timing::Recorded { speed: 2.0 }));
        for wrong in ["", "x", "0x", "-1x", "NaNx", "infx", "fast"] {
            assert!(timing(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_variable_ends_its_name_at_the_first_equals_sign() {
        assert_eq!(variable("ROOT=/a=b"), Ok(("ROOT".to_owned(), "/a=b".to_owned())));
        assert!(variable("ROOT").is_err());
    }
}
