//! Numbers as they are spelled: compared and divided as decimals, never as floats.

use std::cmp::Ordering;

use crate::wire::scan;

/// A number: `0.` and these digits, times ten to the power of `exponent`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Decimal {
    is_negative: bool,
    /// Without zeros at either end; none for zero.
    digits: Vec<u8>,
    exponent: i64,
}

impl Decimal {
    /// Of a raw JSON number; none of anything else, and where its exponent is beyond all measure.
    pub(super) fn read(raw: &[u8]) -> Option<Self> {
        if !scan::is_number(raw) {
            return None;
        }
        let is_negative = raw.starts_with(b"-");
        let unsigned = &raw[usize::from(is_negative)..];
        let (mantissa, power) = match memchr::memchr2(b'e', b'E', unsigned) {
            Some(at) => (&unsigned[..at], std::str::from_utf8(&unsigned[at + 1..]).ok()?.parse().ok()?),
            None => (unsigned, 0_i64),
        };
        let point = memchr::memchr(b'.', mantissa).unwrap_or(mantissa.len());
        let mut digits: Vec<u8> = mantissa.iter().copied().filter(|digit| *digit != b'.').collect();
        let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
        digits.drain(..zeros);
        digits.truncate(digits.iter().rposition(|digit| *digit != b'0').map_or(0, |last| last + 1));
        if digits.is_empty() {
            return Some(Self { is_negative: false, digits, exponent: 0 });
        }
        let exponent = power.checked_add(i64::try_from(point).ok()? - i64::try_from(zeros).ok()?)?;
        Some(Self { is_negative, digits, exponent })
    }

    /// Whether there is nothing behind its point.
    pub(super) fn is_whole(&self) -> bool {
        self.digits.is_empty() || i64::try_from(self.digits.len()).is_ok_and(|digits| digits <= self.exponent)
    }

    /// Whether it is so many times another one; none where they are too long to tell.
    pub(super) fn is_multiple_of(&self, other: &Self) -> Option<bool> {
        if self.digits.is_empty() {
            return Some(true);
        }
        let unit = |number: &Self| number.exponent.checked_sub(i64::try_from(number.digits.len()).ok()?);
        let (own, others) = (unit(self)?, unit(other)?);
        let least = own.min(others);
        let scaled = |number: &Self, unit: i64| {
            let digits: i128 = std::str::from_utf8(&number.digits).ok()?.parse().ok()?;
            digits.checked_mul(10_i128.checked_pow(u32::try_from(unit.checked_sub(least)?).ok()?)?)
        };
        scaled(self, own)?.checked_rem(scaled(other, others)?).map(|rest| rest == 0)
    }

    fn sign(&self) -> i8 {
        match (self.digits.is_empty(), self.is_negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        }
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        let size = || (self.exponent, &self.digits).cmp(&(other.exponent, &other.digits));
        self.sign().cmp(&other.sign()).then_with(|| if self.is_negative { size().reverse() } else { size() })
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(raw: &str) -> Decimal {
        Decimal::read(raw.as_bytes()).unwrap()
    }

    #[test]
    fn numbers_have_an_order_whatever_their_spelling() {
        let ordered = ["-1e400", "-10", "-9.5", "-0.01", "0", "1e-9", "0.5", "1", "1.5", "9", "10", "1e400"];
        for pair in ordered.windows(2) {
            assert!(number(pair[0]) < number(pair[1]), "{pair:?}");
        }
        for (one, other) in [("1", "1.0"), ("10", "1e1"), ("-0", "0e7"), ("0.10", "10e-2")] {
            assert_eq!(number(one), number(other));
        }
        assert_eq!(Decimal::read(b"1e99999999999999999999"), None);
        assert_eq!(Decimal::read(b"NaN"), None);
        assert!(number("1e3").is_whole() && number("1.0").is_whole() && !number("1.5").is_whole());
    }

    #[test]
    fn multiples_are_told_as_decimals() {
        for (one, other, is) in [
            ("0.3", "0.1", Some(true)),
            ("0.35", "0.1", Some(false)),
            ("-6", "3", Some(true)),
            ("7", "3", Some(false)),
            ("0", "3", Some(true)),
            ("1e3", "25", Some(true)),
            ("1e400", "7", None),
            ("1", "0", None),
        ] {
            assert_eq!(number(one).is_multiple_of(&number(other)), is, "{one} {other}");
        }
    }
}
