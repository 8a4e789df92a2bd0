//! The raw form of decimals: multiples of 10^-18 in 128 bits.
//!
//! What has more than eighteen digits after the point is rounded to the nearest, of two to the even
//! one.

use std::cmp::Ordering;

use num_bigint::{BigInt, Sign};
use oxsdatatypes::{Decimal, Integer};

/// What one is in the raw number of a decimal.
pub(crate) const ONE: i128 = 1_000_000_000_000_000_000;

/// Digits of a decimal after the point.
pub(crate) const FRACTION_DIGITS: usize = 18;

/// Integers up to here are doubles exactly.
const EXACT_DOUBLE_MAX: u128 = 1 << 53;

/// The raw number of a decimal.
#[inline]
pub(crate) fn raw(decimal: Decimal) -> i128 {
    i128::from_be_bytes(decimal.to_be_bytes())
}

/// The decimal of a raw number.
#[inline]
pub(crate) fn decimal_of_raw(raw: i128) -> Decimal {
    Decimal::from_be_bytes(raw.to_be_bytes())
}

/// A quotient of integers as a decimal; none for a division by zero.
pub(crate) fn quotient(a: Integer, b: Integer) -> Option<Decimal> {
    // 2^63 times 10^18 are 123 bits.
    rounded_small(i128::from(i64::from(a)) * ONE, i64::from(b).into()).map(decimal_of_raw)
}

/// `a * b`, if 128 bits are enough on the way.
pub(crate) fn product_of_decimals(a: Decimal, b: Decimal) -> Option<Decimal> {
    rounded_small(raw(a).checked_mul(raw(b))?, ONE).map(decimal_of_raw)
}

/// `a / b`, if 128 bits are enough on the way; none for a division by zero.
pub(crate) fn quotient_of_decimals(a: Decimal, b: Decimal) -> Option<Decimal> {
    let (a, b) = (raw(a), raw(b));
    let quotient = match b % ONE {
        // By a whole number, such as the count of an average.
        0 => rounded_small(a, b / ONE),
        _ => rounded_small(a.checked_mul(ONE)?, b),
    };
    quotient.map(decimal_of_raw)
}

/// A quotient, rounded to the nearest, of two to the even one.
fn rounded_small(dividend: i128, divisor: i128) -> Option<i128> {
    let quotient = dividend.checked_div(divisor)?;
    let rest = (dividend - quotient * divisor).unsigned_abs();
    let up = match rest.cmp(&(divisor.unsigned_abs() - rest)) {
        Ordering::Less => false,
        Ordering::Equal => quotient % 2 != 0,
        Ordering::Greater => true,
    };
    Some(match (up, (dividend < 0) == (divisor < 0)) {
        (false, _) => quotient,
        (true, true) => quotient.checked_add(1)?,
        (true, false) => quotient.checked_sub(1)?,
    })
}

/// The nearest double of a decimal's raw number.
#[inline]
pub(crate) fn double_of_raw(raw: i128) -> f64 {
    double_of_reduced(reduced(raw), raw)
}

/// The nearest double of a raw number that was [`reduced`].
#[inline]
pub(crate) fn double_of_reduced((mantissa, unit): (i128, i128), raw: i128) -> f64 {
    if mantissa.unsigned_abs() <= EXACT_DOUBLE_MAX {
        // Both are doubles exactly, so the quotient is rounded once.
        mantissa as f64 / unit as f64
    } else {
        // Rare, and the parser rounds correctly; a quotient of rounded numbers would not always
        // grow with the value.
        decimal_of_raw(raw).to_string().parse().unwrap_or(f64::NAN)
    }
}

/// A raw number without the zeros at its end, as far as they stand behind the point, and what one
/// is then.
pub(crate) fn reduced(raw: i128) -> (i128, i128) {
    let (mut mantissa, mut unit) = (raw, ONE);
    while unit != 1 && mantissa % 10 == 0 {
        mantissa /= 10;
        unit /= 10;
    }
    (mantissa, unit)
}

/// The canonical form of a large decimal: no more zeros than needed, no point behind a whole
/// number.
pub(crate) fn decimal_text(raw: &BigInt) -> String {
    let digits = format!("{:0>1$}", raw.magnitude().to_string(), FRACTION_DIGITS + 1);
    let (whole, fraction) = digits.split_at(digits.len() - FRACTION_DIGITS);
    let sign = match raw.sign() {
        Sign::Minus => "-",
        Sign::NoSign | Sign::Plus => "",
    };
    match fraction.trim_end_matches('0') {
        "" => format!("{sign}{whole}"),
        fraction => format!("{sign}{whole}.{fraction}"),
    }
}
