//! The first thing that is said comes late.

use std::sync::Arc;

use crate::{
    fault::{
        Effect, Fault, PlanError, Target,
        step::{Output, Step},
        value::Object,
    },
    traffic::Micros,
};

#[derive(Debug)]
enum Latency {
    Fixed(Micros),
    Uniform { least: Micros, most: Micros },
    Lognormal { median: Micros, sigma: f64, most: Micros },
}

pub(super) fn read(object: &mut Object<'_>) -> Result<Arc<dyn Fault>, PlanError> {
    let at = object.at();
    let (ms, uniform, lognormal) = (object.get("ms"), object.get("uniform"), object.get("lognormal"));
    let latency = match (ms, uniform, lognormal) {
        (Some(ms), None, None) => Latency::Fixed(ms.millis("ms")?),
        (None, Some(uniform), None) => {
            let mut uniform = uniform.object("`uniform`")?;
            let least = uniform.need("min_ms", "milliseconds")?.millis("min_ms")?;
            let most = uniform.need("max_ms", "milliseconds")?;
            let most_ms = most.millis("max_ms")?;
            if most_ms < least {
                return Err(most.wrong("max_ms", "at least `min_ms`"));
            }
            uniform.finish()?;
            Latency::Uniform { least, most: most_ms }
        }
        (None, None, Some(lognormal)) => {
            let mut lognormal = lognormal.object("`lognormal`")?;
            let median = lognormal.need("median_ms", "milliseconds")?.millis("median_ms")?;
            let sigma = lognormal.need("sigma", "a number from 0 to 10")?;
            let sigma =
                sigma.number("sigma", "a number from 0 to 10", |sigma| (0.0..=10.0).contains(&sigma))?;
            let most = lognormal.need("max_ms", "the longest wait, in milliseconds")?.millis("max_ms")?;
            lognormal.finish()?;
            Latency::Lognormal { median, sigma, most }
        }
        _ => {
            let text = "`latency` needs one of `ms`, `uniform` and `lognormal`";
            return Err(PlanError::new(at, text));
        }
    };
    Ok(Arc::new(latency))
}

impl Latency {
    fn wait(&self, roll: f64) -> Micros {
        match *self {
            Self::Fixed(wait) => wait,
            Self::Uniform { least, most } => least + ((most - least) as f64 * roll) as Micros,
            Self::Lognormal { median, sigma, most } => {
                let wait = median as f64 * (sigma * normal(roll)).exp();
                (wait as Micros).min(most)
            }
        }
    }
}

/// Where a normal distribution has this much below it, to four digits (the sum of logistic curves by Bowling et al.,
/// 2009, solved for its argument).
fn normal(below: f64) -> f64 {
    let below = below.clamp(1e-9, 1.0 - 1e-9);
    let logit = (below / (1.0 - below)).ln();
    // Newton's method on 0.07056 x³ + 1.5976 x = logit: it rises everywhere, so it has one solution.
    let mut x = logit / 1.5976;
    for _ in 0..20 {
        let value = 0.070_56 * x * x * x + 1.5976 * x - logit;
        x -= value / (0.211_68 * x * x + 1.5976);
    }
    x
}

impl Fault for Latency {
    fn effect(&self, of: &Target<'_>) -> Option<Box<dyn Effect>> {
        Some(Box::new(First::after(self.wait(of.roll))))
    }
}

/// Waits before the first output.
#[derive(Debug)]
pub(super) struct First(Option<Micros>);

impl First {
    pub(super) const fn after(wait: Micros) -> Self {
        Self(Some(wait))
    }
}

impl Effect for First {
    fn pass(&mut self, output: Output, out: &mut Vec<Step>) {
        out.extend(self.0.take().map(Step::Wait));
        out.push(Step::Do(output));
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Stand, refused};

    #[test]
    fn the_first_output_waits_and_those_behind_it_do_not() {
        let mut stand = Stand::stdio(r#"{"do": "latency", "ms": 200}"#);
        stand.says(r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#);
        stand.answers(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
        assert_eq!(
            stand.seen(),
            "wait 200 ms\n{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\
             {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n"
        );
    }

    #[test]
    fn over_http_and_sse_the_request_is_taken_in_at_once() {
        let mut stand = Stand::sse(r#"{"do": "latency", "ms": 200}"#);
        stand.accepts();
        stand.streams();
        stand.answers(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
        let seen = stand.seen();
        assert!(seen.starts_with("Accepted\nwait 200 ms\n"), "{seen}");
    }

    #[test]
    fn distributions_keep_to_their_bounds_and_their_middle() {
        let waits = |fault: &str| {
            let mut waits: Vec<u64> =
                (0..999).map(|roll| Stand::stdio(fault).rolling(f64::from(roll) / 999.0).wait_ms()).collect();
            waits.sort_unstable();
            (waits[0], waits[499], waits[998])
        };
        let uniform = waits(r#"{"do": "latency", "uniform": {"min_ms": 100, "max_ms": 200}}"#);
        assert_eq!(uniform, (100, 149, 199));
        let (least, middle, most) =
            waits(r#"{"do": "latency", "lognormal": {"median_ms": 80, "sigma": 0.4, "max_ms": 200}}"#);
        assert_eq!((middle, most), (79, 200));
        assert!(least < 30, "{least}");
    }

    #[test]
    fn wrong_parameters_are_named() {
        assert_eq!(refused(r#"{"do": "latency"}"#), "`latency` needs one of `ms`, `uniform` and `lognormal`");
        assert_eq!(
            refused(r#"{"do": "latency", "uniform": {"min_ms": 2, "max_ms": 1}}"#),
            "`max_ms` must be at least `min_ms`, found `1`"
        );
        assert_eq!(
            refused(r#"{"do": "latency", "ms": -1}"#),
            "`ms` must be milliseconds, from 0 to a day, found `-1`"
        );
    }
}
