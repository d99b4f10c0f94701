//! Several reports as one: those of takes, and those of servers.

use std::collections::HashSet;

use super::{FaultReport, Firing, Miss, PassedOn, ProtocolReport, Repeat, Report, SEQUENCE, Verdict};

impl Report {
    /// Takes another take of the same run in: what was counted is added up, and unused is what no take has used.
    pub fn merge(&mut self, mut other: Self) {
        let unused: HashSet<String> = std::mem::take(&mut other.unused).into_iter().collect();
        self.unused.retain(|key| unused.contains(key));
        for (rule, other) in self.rules.iter_mut().zip(std::mem::take(&mut other.rules)) {
            rule.used += other.used;
        }
        self.add(other);
    }

    /// The report of several servers: what was counted is added up, all else says whose it is. It is as bad as the
    /// worst of them.
    pub fn of_servers<'a>(servers: impl IntoIterator<Item = (&'a str, Self)>) -> Self {
        let mut whole = Self { verdict: Verdict::Good, ..Self::open("") };
        let mut cassettes = Vec::new();
        for (name, mut report) in servers {
            cassettes.push(format!("{name}={}", report.cassette));
            whole.verdict = match (whole.verdict, report.verdict) {
                (Verdict::Bad, _) | (_, Verdict::Bad) => Verdict::Bad,
                (Verdict::Open, _) | (_, Verdict::Open) => Verdict::Open,
                (Verdict::Good, Verdict::Good) => Verdict::Good,
            };
            report.is_of(name);
            whole.unused.append(&mut report.unused);
            whole.left_over.append(&mut report.left_over);
            whole.rules.append(&mut report.rules);
            whole.add(report);
        }
        if whole.verdict == Verdict::Good && whole.lacks_faults() {
            whole.verdict = Verdict::Bad;
        }
        whole.cassette = cassettes.join(", ");
        whole
    }

    /// Writes down everywhere which server it is of.
    fn is_of(&mut self, name: &str) {
        let servers = self.misses.iter_mut().map(|miss| &mut miss.server);
        let servers = servers.chain(self.repeats.iter_mut().map(|repeat| &mut repeat.server));
        let servers = servers.chain(self.passed_on.iter_mut().map(|passed| &mut passed.server));
        let servers = servers.chain(self.waits.iter_mut().map(|wait| &mut wait.server));
        let servers = servers.chain(self.answers.iter_mut().map(|answer| &mut answer.server));
        let servers = servers.chain(self.asserts.iter_mut().map(|assert| &mut assert.server));
        let servers = servers.chain(self.protocol.iter_mut().map(|told| &mut told.server));
        for server in servers.chain(self.rules.iter_mut().map(|rule| &mut rule.server)) {
            *server = Some(name.to_owned());
        }
        for firing in self.faults.iter_mut().flat_map(|fault| &mut fault.firings) {
            firing.server = Some(name.to_owned());
        }
        for text in self.unused.iter_mut().chain(&mut self.left_over).chain(&mut self.warnings) {
            *text = format!("{name}: {text}");
        }
    }

    fn add(&mut self, other: Self) {
        for (method, count) in other.calls {
            *self.calls.entry(method).or_default() += count;
        }
        for (what, count) in other.self_answered {
            *self.self_answered.entry(what).or_default() += count;
        }
        let room = SEQUENCE.saturating_sub(self.sequence.len());
        self.sequence.extend(other.sequence.into_iter().take(room));
        self.sessions += other.sessions;
        self.connections += other.connections;
        for miss in other.misses {
            let is_same = |known: &&mut Miss| known.message == miss.message && known.server == miss.server;
            match self.misses.iter_mut().find(is_same) {
                Some(known) => known.count += miss.count,
                None => self.misses.push(miss),
            }
        }
        for repeat in other.repeats {
            let is_same = |known: &&mut Repeat| known.key == repeat.key && known.server == repeat.server;
            match self.repeats.iter_mut().find(is_same) {
                Some(known) => known.count += repeat.count,
                None => self.repeats.push(repeat),
            }
        }
        for passed in other.passed_on {
            let is_same = |known: &&mut PassedOn| {
                (&known.request, known.reason, &known.nearest, &known.server)
                    == (&passed.request, passed.reason, &passed.nearest, &passed.server)
            };
            match self.passed_on.iter_mut().find(is_same) {
                Some(known) => {
                    known.count += passed.count;
                    known.failed += passed.failed;
                    known.why = known.why.take().or(passed.why);
                }
                None => self.passed_on.push(passed),
            }
        }
        self.waits.extend(other.waits);
        self.not_joined.extend(other.not_joined);
        self.refused.extend(other.refused);
        for fault in other.faults {
            match self.faults.iter_mut().find(|known| known.rule == fault.rule) {
                Some(known) => known.add(fault),
                None => self.faults.push(fault),
            }
        }
        self.answers.extend(other.answers);
        for told in other.protocol {
            let is_same = |known: &&mut ProtocolReport| {
                (&known.rule, &known.method, &known.server) == (&told.rule, &told.method, &told.server)
            };
            match self.protocol.iter_mut().find(is_same) {
                Some(known) => known.count += told.count,
                None => self.protocol.push(told),
            }
        }
        self.asserts.extend(other.asserts);
        for warning in other.warnings {
            if !self.warnings.contains(&warning) {
                self.warnings.push(warning);
            }
        }
    }
}

impl FaultReport {
    fn add(&mut self, other: Self) {
        self.fired += other.fired;
        self.keys.extend(other.keys);
        self.keys.sort_unstable();
        self.keys.dedup();
        for firing in other.firings {
            let is_alike = |known: &&mut Firing| {
                (&known.server, &known.key, &known.method, &known.name)
                    == (&firing.server, &firing.key, &firing.method, &firing.name)
            };
            match self.firings.iter_mut().find(is_alike) {
                Some(known) => {
                    known.nth.extend(firing.nth);
                    known.nth.sort_unstable();
                    known.nth.dedup();
                }
                None => self.firings.push(firing),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::report::Wait;

    #[test]
    fn a_report_of_several_servers_adds_up_and_says_whose_it_is() {
        let report = |verdict| {
            let wait = Wait { server: None, key: "a @1".into(), waited_for: "b".into(), bad: true };
            Report {
                verdict,
                calls: BTreeMap::from([("ping".into(), 2)]),
                sessions: 1,
                unused: vec!["ping @2".into()],
                waits: vec![wait],
                repeats: vec![Repeat { server: None, key: "ping @1".into(), count: 1 }],
                ..Report::open("c.json")
            }
        };
        let of =
            |verdicts: [Verdict; 2]| Report::of_servers(["a", "b"].into_iter().zip(verdicts.map(report)));
        let whole = of([Verdict::Good, Verdict::Bad]);
        assert_eq!((whole.verdict, whole.sessions, whole.calls["ping"]), (Verdict::Bad, 2, 4));
        assert_eq!(whole.cassette, "a=c.json, b=c.json");
        assert_eq!(whole.unused, ["a: ping @2", "b: ping @2"]);
        assert_eq!(whole.waits[1].server.as_deref(), Some("b"));
        // Equal keys of two servers are not one exchange.
        assert_eq!(whole.repeats.len(), 2);
        assert_eq!(of([Verdict::Open, Verdict::Good]).verdict, Verdict::Open);
        assert_eq!(of([Verdict::Good, Verdict::Good]).verdict, Verdict::Good);
    }

    #[test]
    fn a_fault_of_several_servers_has_to_act_at_one_of_them() {
        let report = |fired| {
            let fault = FaultReport { rule: "slow".into(), fired, ..FaultReport::default() };
            Report { verdict: Verdict::Good, faults: vec![fault], ..Report::open("c.json") }
        };
        let verdict =
            |fired: [u64; 2]| Report::of_servers(["a", "b"].into_iter().zip(fired.map(report))).verdict;
        assert_eq!(verdict([0, 1]), Verdict::Good);
        assert_eq!(verdict([0, 0]), Verdict::Bad);
    }

    #[test]
    fn firings_on_equal_keys_of_two_servers_are_told_apart() {
        let firing =
            Firing { server: None, key: Some("a @1".into()), method: None, name: None, nth: vec![1] };
        let fault =
            FaultReport { rule: "slow".into(), fired: 1, firings: vec![firing], ..FaultReport::default() };
        let report = Report { verdict: Verdict::Good, faults: vec![fault], ..Report::open("c.json") };
        let whole = Report::of_servers([("a", report.clone()), ("b", report)]);
        let servers: Vec<_> = whole.faults[0].firings.iter().map(|firing| firing.server.as_deref()).collect();
        assert_eq!(servers, [Some("a"), Some("b")]);
    }

    #[test]
    fn the_sequence_of_several_takes_ends_where_that_of_one_ends() {
        let of = |method: &str, count: usize| Report {
            sequence: vec![method.to_owned(); count],
            ..Report::open("c")
        };
        let mut merged = of("a", SEQUENCE - 1);
        merged.merge(of("b", 5));
        merged.merge(of("c", 5));
        assert_eq!((merged.sequence.len(), &*merged.sequence[SEQUENCE - 1]), (SEQUENCE, "b"));
    }
}
