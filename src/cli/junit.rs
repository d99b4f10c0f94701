//! Reports in JUnit's XML form, which CI services show as tests.

use std::fmt::{self, Write as _};

use super::verdict::Found;

/// One test suite, one test case a report, and one that fails for each path without any.
pub(super) fn xml(found: &[Found], without: &[String]) -> String {
    let failures = found.iter().filter(|found| !found.is_good()).count() + without.len();
    let tests = found.len() + without.len();
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites tests=\"{tests}\" failures=\"{failures}\">\n  \
         <testsuite name=\"tapedeck\" tests=\"{tests}\" failures=\"{failures}\">\n"
    );
    for path in without {
        let path = Escaped(path);
        let _ = writeln!(
            xml,
            "    <testcase name=\"{path}\" classname=\"tapedeck\"><failure message=\"no report was found\"/></testcase>"
        );
    }
    for found in found {
        case(found, &mut xml);
    }
    xml.push_str("  </testsuite>\n</testsuites>\n");
    xml
}

fn case(found: &Found, xml: &mut String) {
    let name = found.path.display().to_string();
    let (name, cassette) = (Escaped(&name), Escaped(&found.report.cassette));
    let details = found.details();
    let details = Escaped(&details);
    let _ = write!(xml, "    <testcase name=\"{name}\" classname=\"{cassette}\">");
    let _ = match found.is_good() {
        true => write!(xml, "<system-out>{details}</system-out>"),
        false => write!(xml, "<failure message=\"{}\">{details}</failure>", Escaped(found.verdict())),
    };
    xml.push_str("</testcase>\n");
}

/// A text in XML; characters that XML 1.0 cannot hold become U+FFFD.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '<' => f.write_str("&lt;"),
                '>' => f.write_str("&gt;"),
                '&' => f.write_str("&amp;"),
                '"' => f.write_str("&quot;"),
                '\t' | '\n' => f.write_char(c),
                '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => f.write_char('\u{fffd}'),
                _ => f.write_char(c),
            }?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcp_tapedeck::report::{Miss, Reason, Report, Verdict};

    fn found(verdict: Verdict) -> Found {
        let mut report = Report::open("c&d.json");
        report.verdict = verdict;
        Found { path: "reports/1.json".into(), report }
    }

    #[test]
    fn a_path_without_a_report_is_a_failed_test() {
        let xml = xml(&[found(Verdict::Good)], &["`a/`".to_owned()]);
        assert!(
            xml.contains("tests=\"2\" failures=\"1\"")
                && xml.contains("name=\"`a/`\"")
                && xml.contains("no report was found"),
            "{xml}"
        );
    }

    #[test]
    fn a_bad_report_fails_with_its_misses_and_an_open_one_too() {
        let mut bad = found(Verdict::Bad);
        bad.report.misses.push(Miss {
            server: None,
            method: "tools/call".to_owned(),
            name: Some("a<b\u{1}".to_owned()),
            reason: Reason::NeverRecorded,
            message: "nothing \"fits\"".to_owned(),
            nearest: None,
            differences: Vec::new(),
            rule: None,
            count: 2,
        });
        let xml = xml(&[found(Verdict::Good), bad, found(Verdict::Open)], &[]);
        assert!(xml.contains("tests=\"3\" failures=\"2\""), "{xml}");
        assert!(xml.contains("classname=\"c&amp;d.json\""), "{xml}");
        assert!(xml.contains("a&lt;b\u{fffd}, 2 times: nothing &quot;fits&quot;"), "{xml}");
        assert!(xml.contains("still open"), "{xml}");
    }
}
