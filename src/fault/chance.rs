//! Chance that is none: a hash decides, so the same request meets the same fault whatever else has happened.

use sha2::{Digest, Sha256};

/// Two numbers from 0 to 1 without 1, of a request: whether a rule acts on it, and how.
///
/// `form` is the request's canonical form, `before` how many equal requests came before it in the take.
pub(super) fn rolls(seed: u64, rule: &str, form: &[u8], before: u64) -> (f64, f64) {
    let hash = Sha256::new()
        .chain_update(seed.to_le_bytes())
        .chain_update((rule.len() as u64).to_le_bytes())
        .chain_update(rule)
        .chain_update(before.to_le_bytes())
        .chain_update(form)
        .finalize();
    let number = |at: usize| {
        let bytes = hash[at..at + 8].try_into().expect("eight of 32 bytes");
        (u64::from_le_bytes(bytes) >> 11) as f64 / (1_u64 << 53) as f64
    };
    (number(0), number(8))
}

#[cfg(test)]
mod tests {
    use super::rolls;

    #[test]
    fn equal_requests_roll_alike_and_others_evenly() {
        assert_eq!(rolls(7, "slow", b"?ping", 0), rolls(7, "slow", b"?ping", 0));
        let below = |p: f64| (0..10_000).filter(|before| rolls(7, "slow", b"?ping", *before).0 < p).count();
        assert!((1_900..2_100).contains(&below(0.2)), "{}", below(0.2));
        for other in
            [rolls(8, "slow", b"?ping", 0), rolls(7, "slo", b"w?ping", 0), rolls(7, "slow", b"?pin", 0)]
        {
            assert_ne!(other, rolls(7, "slow", b"?ping", 0));
        }
    }
}
