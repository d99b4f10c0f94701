//! What a replay has to say, and whether that is good.

use super::{Faults, Replayer};
use crate::report::{FaultReport, Report, RuleReport, Verdict};

impl Replayer {
    /// The report as it stands, with verdict `open`.
    pub fn report(&self) -> Report {
        let mut report = self.report.clone();
        report.unused = self.unused();
        report.repeats = self.repeats();
        report.faults = self.faults.as_ref().map(Faults::report).unwrap_or_default();
        report.warnings.extend(report.faults.iter().filter_map(FaultReport::untold));
        report.protocol.extend(self.never_said());
        let rules = self.cassette.rules.iter().zip(&self.matcher.used);
        report.rules = rules
            .map(|(rule, &used)| RuleReport {
                server: None,
                rule: String::from_utf8_lossy(self.cassette.at(rule.place)).into_owned(),
                used,
            })
            .collect();
        report
    }

    /// The report at the end, before its verdict. What was met as a secret only after a miss is hidden in it too.
    pub fn last_report(&self) -> Report {
        let mut report = self.report();
        self.add_moved(&mut report.misses);
        report.each_said(self.redactor.of_known());
        self.tell_unheard(&mut report);
        report
    }

    /// The report at the end, with its verdict.
    pub fn finish(&self) -> Report {
        self.judge(self.last_report())
    }

    /// The verdict on a report: this take's, or that of several takes of the same cassette.
    pub fn judge(&self, mut report: Report) -> Report {
        report.asserts = self.options.faults.iter().flat_map(|plan| plan.judge(&report)).collect();
        if self.options.server.is_none() {
            self.judge_all(&mut report);
        }
        let passed_on = self.options.strict && !report.passed_on.is_empty();
        report.left_over = if self.options.strict { self.left_over(&report.unused) } else { Vec::new() };
        let left_over = !report.left_over.is_empty();
        let is_bad = match self.options.server {
            // A rule may be for another server of the run.
            Some(_) => report.is_bad_for_itself(),
            None => report.is_bad(),
        };
        report.verdict = if is_bad || left_over || passed_on { Verdict::Bad } else { Verdict::Good };
        report
    }

    /// Judges what is asserted of all servers of a process, in their report.
    pub fn judge_all(&self, report: &mut Report) {
        let judged: Vec<_> = self.options.faults.iter().flat_map(|plan| plan.judge_all(report)).collect();
        if judged.iter().any(|assert| !assert.holds) {
            report.verdict = Verdict::Bad;
        }
        report.asserts.extend(judged);
    }
}
