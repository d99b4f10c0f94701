//! Numbers compared as decimals, of any size, never as floats.

/// Where the digits end that stand in a decimal of [`push_decimal`], and how long it is with the zeros that its exponent
/// stands for; none where that takes digits away.
pub fn integer_length(decimal: &[u8]) -> Option<(usize, usize)> {
    let end = memchr::memchr(b'e', decimal).unwrap_or(decimal.len());
    let zeros = match decimal.get(end + 1..) {
        Some(exponent) => std::str::from_utf8(exponent).ok()?.parse::<usize>().ok()?,
        None => 0,
    };
    Some((end, end.checked_add(zeros)?))
}

/// Appends a number as sign, digits without zeros at either end, and exponent: `1`, `1.0` and `10e-1` alike. An exponent
/// beyond 64 bits is not understood: such a number is appended as it is spelled.
pub fn push_decimal(number: &[u8], out: &mut Vec<u8>) {
    if let [b'1'..=b'9', .., b'1'..=b'9'] | [b'1'..=b'9'] = number
        && number.iter().all(u8::is_ascii_digit)
    {
        out.extend_from_slice(number);
        return;
    }
    let negative = number.starts_with(b"-");
    let unsigned = &number[usize::from(negative)..];
    let (mantissa, exponent) = match memchr::memchr2(b'e', b'E', unsigned) {
        Some(at) => (&unsigned[..at], &unsigned[at + 1..]),
        None => (unsigned, &b"0"[..]),
    };
    let point = memchr::memchr(b'.', mantissa).unwrap_or(mantissa.len());
    let fraction = mantissa.get(point + 1..).unwrap_or_default();
    let exponent = std::str::from_utf8(exponent).ok().and_then(|text| text.parse::<i64>().ok());
    let start = out.len();
    if negative {
        out.push(b'-');
    }
    let digits_at = out.len();
    let mut digits = mantissa[..point].iter().chain(fraction).skip_while(|&&digit| digit == b'0').peekable();
    if digits.peek().is_none() {
        out.truncate(start);
        out.push(b'0');
        return;
    }
    out.extend(digits);
    let Some(mut exponent) = exponent.and_then(|given| given.checked_sub(fraction.len() as i64)) else {
        out.truncate(start);
        out.extend_from_slice(number);
        return;
    };
    while out.len() > digits_at + 1 && out.last() == Some(&b'0') {
        out.pop();
        exponent = exponent.saturating_add(1);
    }
    if exponent != 0 {
        out.extend_from_slice(format!("e{exponent}").as_bytes());
    }
}
