//! Exact numbers: integers of any size, and decimals with eighteen digits after the point.
//!
//! ```text
//! integer   i64 -----overflow-----> BigInt            decimal   i128, in 10^-18 --overflow--> BigInt, in 10^-18
//! ```
//!
//! A value that fits is always kept in the small form ([`Value::Integer`], [`Value::Decimal`]), so
//! the large ones ([`Value::LargeInteger`], [`Value::LargeDecimal`]) are met only where 64 bits, or
//! 128, have run over, and cost nothing elsewhere.
//!
//! What has more than eighteen digits after the point is rounded to the nearest, of two to the even
//! one: products, quotients and literals that are written so. A double becomes the nearest decimal,
//! of two the one that is closer to zero (XPath and XQuery Functions 3.1, 19.1.2.3). Numbers of
//! more than [`BITS_MAX`] bits, some 4,900 digits, are an overflow: SPARQL's error.

use std::cmp::Ordering;

use num_bigint::{BigInt, Sign};
use orrery_term::inline::IntegerType;
use oxsdatatypes::Decimal;

use crate::values::decimal::{FRACTION_DIGITS, ONE, decimal_of_raw, double_of_raw, raw, reduced};
use crate::values::operator::Arithmetic;
use crate::values::value::Value;

/// Bits of the largest integer, or decimal in units of 10^-18.
const BITS_MAX: u64 = 16_384;
/// Digits of a literal before the point that are worth reading.
const DIGITS_MAX: usize = 4_933;
/// Integers up to here are floats exactly.
const EXACT_FLOAT_MAX: u128 = 1 << 24;
/// Powers of ten up to here are floats exactly.
const EXACT_FLOAT_UNIT: i128 = 10_000_000_000;

/// An exact number in the form that has room for all.
enum Exact {
    Integer(BigInt),
    /// In units of 10^-18.
    Decimal(BigInt),
}

impl Exact {
    fn of(value: &Value) -> Option<Self> {
        Some(match value {
            Value::Integer(value) => Self::Integer(i64::from(*value).into()),
            Value::LargeInteger(value) => Self::Integer(value.as_ref().clone()),
            Value::Decimal(value) => Self::Decimal(raw(*value).into()),
            Value::LargeDecimal(value) => Self::Decimal(value.as_ref().clone()),
            _ => return None,
        })
    }

    fn into_raw(self) -> BigInt {
        match self {
            Self::Integer(value) => value * ONE,
            Self::Decimal(raw) => raw,
        }
    }
}

/// The value of an integer; none of one that is too large.
pub(crate) fn integer(value: BigInt) -> Option<Value> {
    match i64::try_from(value) {
        Ok(value) => Some(Value::integer(value)),
        Err(error) => {
            let value = error.into_original();
            (value.bits() <= BITS_MAX).then(|| Value::LargeInteger(Box::new(value)))
        }
    }
}

/// The value of a decimal by its raw number; none of one that is too large.
pub(crate) fn decimal(raw: BigInt) -> Option<Value> {
    match i128::try_from(raw) {
        Ok(raw) => Some(Value::Decimal(decimal_of_raw(raw))),
        Err(error) => {
            let raw = error.into_original();
            (raw.bits() <= BITS_MAX).then(|| Value::LargeDecimal(Box::new(raw)))
        }
    }
}

/// `a op b` of exact numbers, whatever their size; none if one is not exact, for an overflow, and
/// for a division by zero.
#[cold]
pub(crate) fn apply(operator: Arithmetic, a: &Value, b: &Value) -> Option<Value> {
    match (operator, Exact::of(a)?, Exact::of(b)?) {
        (Arithmetic::Add, Exact::Integer(a), Exact::Integer(b)) => integer(a + b),
        (Arithmetic::Subtract, Exact::Integer(a), Exact::Integer(b)) => integer(a - b),
        (Arithmetic::Multiply, Exact::Integer(a), Exact::Integer(b)) => integer(a * b),
        (Arithmetic::Add, a, b) => decimal(a.into_raw() + b.into_raw()),
        (Arithmetic::Subtract, a, b) => decimal(a.into_raw() - b.into_raw()),
        (Arithmetic::Multiply, a, b) => {
            decimal(rounded(&(a.into_raw() * b.into_raw()), &ONE.into()))
        }
        (Arithmetic::Divide, a, b) => {
            let divisor = b.into_raw();
            match divisor.sign() {
                Sign::NoSign => None,
                Sign::Plus | Sign::Minus => decimal(rounded(&(a.into_raw() * ONE), &divisor)),
            }
        }
    }
}

/// The same of large numbers; the divisor is not zero.
fn rounded(dividend: &BigInt, divisor: &BigInt) -> BigInt {
    let quotient = dividend / divisor;
    let rest = (dividend - &quotient * divisor).magnitude() * 2_u32;
    let up = match rest.cmp(divisor.magnitude()) {
        Ordering::Less => false,
        Ordering::Equal => quotient.bit(0),
        Ordering::Greater => true,
    };
    match (up, dividend.sign() == divisor.sign()) {
        (false, _) => quotient,
        (true, true) => quotient + 1,
        (true, false) => quotient - 1,
    }
}

/// `-value` of an exact number.
pub(crate) fn negate(value: &Value) -> Option<Value> {
    match Exact::of(value)? {
        Exact::Integer(value) => integer(-value),
        Exact::Decimal(raw) => decimal(-raw),
    }
}

/// `ABS` of an exact number.
pub(crate) fn absolute(value: &Value) -> Option<Value> {
    match Exact::of(value)? {
        Exact::Integer(value) => integer(value.into_parts().1.into()),
        Exact::Decimal(raw) => decimal(raw.into_parts().1.into()),
    }
}

/// To which whole number.
#[derive(Clone, Copy)]
pub(crate) enum Whole {
    /// The next one below.
    Floor,
    /// The next one above.
    Ceiling,
    /// The nearest, of two the greater one (fn:round).
    Nearest,
    /// The next one towards zero.
    Cut,
}

/// The whole number of an exact number, as an integer.
pub(crate) fn whole(value: &Value, to: Whole) -> Option<Value> {
    let raw = match Exact::of(value)? {
        Exact::Integer(value) => return integer(value),
        Exact::Decimal(raw) => raw,
    };
    integer(whole_of_raw(&raw, to))
}

/// The whole number of a decimal, as a decimal.
pub(crate) fn whole_decimal(value: &Value, to: Whole) -> Option<Value> {
    decimal(whole_of_raw(&Exact::of(value)?.into_raw(), to) * ONE)
}

fn whole_of_raw(raw: &BigInt, to: Whole) -> BigInt {
    let quotient = raw / ONE;
    let rest = raw - &quotient * ONE;
    let zero = BigInt::ZERO;
    match to {
        Whole::Cut => quotient,
        Whole::Floor if rest < zero => quotient - 1,
        Whole::Ceiling if rest > zero => quotient + 1,
        Whole::Nearest if rest >= BigInt::from(ONE / 2) => quotient + 1,
        Whole::Nearest if rest < BigInt::from(-ONE / 2) => quotient - 1,
        Whole::Floor | Whole::Ceiling | Whole::Nearest => quotient,
    }
}

/// The order of two exact numbers.
#[cold]
pub(crate) fn compare(a: &Value, b: &Value) -> Option<Ordering> {
    Some(match (Exact::of(a)?, Exact::of(b)?) {
        (Exact::Integer(a), Exact::Integer(b)) => a.cmp(&b),
        (a, b) => a.into_raw().cmp(&b.into_raw()),
    })
}

/// The raw number that a large value has as a decimal; none of other values.
pub(crate) fn large_raw(value: &Value) -> Option<BigInt> {
    match value {
        Value::LargeInteger(_) | Value::LargeDecimal(_) => Exact::of(value).map(Exact::into_raw),
        _ => None,
    }
}

/// The nearest double of a number.
#[inline]
pub(crate) fn to_double(value: &Value) -> Option<f64> {
    Some(match value {
        Value::Integer(value) => i64::from(*value) as f64,
        Value::Decimal(value) => double_of_raw(raw(*value)),
        Value::Float(value) => f32::from(*value).into(),
        Value::Double(value) => (*value).into(),
        // The parser rounds correctly, and gives infinity beyond the range.
        Value::LargeInteger(_) | Value::LargeDecimal(_) => value.lexical()?.parse().ok()?,
        _ => return None,
    })
}

/// The nearest float of a number.
#[inline]
pub(crate) fn to_float(value: &Value) -> Option<f32> {
    Some(match value {
        Value::Integer(value) => i64::from(*value) as f32,
        Value::Decimal(decimal) => {
            let (mantissa, unit) = reduced(raw(*decimal));
            if mantissa.unsigned_abs() <= EXACT_FLOAT_MAX && unit <= EXACT_FLOAT_UNIT {
                mantissa as f32 / unit as f32
            } else {
                // By way of the nearest double it would be rounded twice.
                decimal.to_string().parse().ok()?
            }
        }
        Value::Float(value) => (*value).into(),
        Value::Double(value) => f64::from(*value) as f32,
        Value::LargeInteger(_) | Value::LargeDecimal(_) => value.lexical()?.parse().ok()?,
        _ => return None,
    })
}

/// The integer of a double, cut towards zero; none of what is not finite.
pub(crate) fn integer_of_double(value: f64) -> Option<Value> {
    let whole = value.trunc();
    // Below 2^63 an i64 holds it exactly.
    if whole.abs() < -(i64::MIN as f64) {
        return Some(Value::integer(whole as i64));
    }
    let (mantissa, exponent) = parts(value)?;
    // At least 2^63 with 53 bits of mantissa: the exponent is positive.
    integer(BigInt::from(mantissa) << u32::try_from(exponent).ok()?)
}

/// A decimal, cut towards zero.
pub(crate) fn integer_of_decimal(value: Decimal) -> Option<Value> {
    let whole = raw(value) / ONE;
    match i64::try_from(whole) {
        Ok(whole) => Some(Value::integer(whole)),
        Err(_) => integer(whole.into()),
    }
}

/// The nearest decimal of a double, of two the one closer to zero; none of what is not finite.
pub(crate) fn decimal_of_double(value: f64) -> Option<Value> {
    let (mantissa, exponent) = parts(value)?;
    // 53 bits and 60.
    let scaled = i128::from(mantissa) * ONE;
    match u32::try_from(exponent) {
        Ok(exponent) => decimal(BigInt::from(scaled) << exponent),
        Err(_) => {
            let shift = exponent.unsigned_abs();
            if shift >= 127 {
                return Some(Value::Decimal(Decimal::default()));
            }
            let magnitude = scaled.unsigned_abs();
            let (cut, rest) = (magnitude >> shift, magnitude & ((1 << shift) - 1));
            let nearest = (cut + u128::from(rest > 1 << (shift - 1))) as i128;
            let raw = if scaled < 0 { -nearest } else { nearest };
            Some(Value::Decimal(decimal_of_raw(raw)))
        }
    }
}

/// A finite double as a whole number times a power of two.
fn parts(value: f64) -> Option<(i64, i32)> {
    if !value.is_finite() {
        return None;
    }
    let bits = value.to_bits();
    let exponent = ((bits >> 52) & 0x7FF) as i32;
    let fraction = (bits & ((1 << 52) - 1)) as i64;
    let (magnitude, exponent) = match exponent {
        0 => (fraction, -1074),
        _ => (fraction | 1 << 52, exponent - 1075),
    };
    Some((if value < 0.0 { -magnitude } else { magnitude }, exponent))
}

/// The value of a literal of `xsd:integer` or a type derived from it; none if it does not belong to
/// the type.
pub(crate) fn parse_integer(lexical: &str, integer_type: IntegerType) -> Option<Value> {
    if let Ok(value) = lexical.parse::<i64>() {
        return integer_type
            .admits(value.into())
            .then(|| Value::integer(value));
    }
    let (is_negative, digits) = signed(lexical);
    if digits.is_empty() || !is_digits(digits) {
        return None;
    }
    let value = large_of_digits(digits.trim_start_matches('0'), is_negative)?;
    let end = if is_negative { i128::MIN } else { i128::MAX };
    integer_type
        .admits(i128::try_from(&value).unwrap_or(end))
        .then(|| integer(value))
        .flatten()
}

/// The value of an `xsd:decimal`; none if the form is not one. Digits after the eighteenth are
/// rounded away.
pub(crate) fn parse_decimal(lexical: &str) -> Option<Value> {
    if let Ok(value) = lexical.parse::<Decimal>() {
        return Some(Value::Decimal(value));
    }
    let (is_negative, unsigned) = signed(lexical);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    if !is_digits(whole) || !is_digits(fraction) || whole.len() + fraction.len() == 0 {
        return None;
    }
    let (kept, dropped) = fraction.split_at(fraction.len().min(FRACTION_DIGITS));
    let digits = format!("{}{kept:0<FRACTION_DIGITS$}", whole.trim_start_matches('0'));
    let raw = large_of_digits(&digits, false)?;
    let half = dropped.strip_prefix('5').map(|rest| rest.trim_matches('0'));
    let up = match half {
        Some("") => raw.bit(0),
        Some(_) => true,
        None => dropped > "5",
    };
    let raw = raw + i32::from(up);
    decimal(if is_negative { -raw } else { raw })
}

fn signed(lexical: &str) -> (bool, &str) {
    match lexical.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, lexical.strip_prefix('+').unwrap_or(lexical)),
    }
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The number of decimal digits, which may be none; none of more than are worth reading.
fn large_of_digits(digits: &str, is_negative: bool) -> Option<BigInt> {
    if digits.len() > DIGITS_MAX + FRACTION_DIGITS {
        return None;
    }
    let magnitude = match digits {
        "" => BigInt::ZERO,
        digits => BigInt::parse_bytes(digits.as_bytes(), 10)?,
    };
    Some(if is_negative { -magnitude } else { magnitude })
}

#[cfg(test)]
mod tests {
    use orrery_term::vocabulary::xsd;
    use proptest::prelude::*;

    use super::*;
    use crate::values::decimal::{product_of_decimals, quotient_of_decimals};

    fn integer_text(lexical: &str, datatype: &str) -> Option<String> {
        let value = parse_integer(lexical, IntegerType::of_datatype(datatype).unwrap())?;
        Some(value.lexical().unwrap().into_owned())
    }

    fn decimal_form(lexical: &str) -> Option<String> {
        Some(parse_decimal(lexical)?.lexical().unwrap().into_owned())
    }

    fn text(value: Option<Value>) -> String {
        value.map_or("error".to_owned(), |value| {
            value.lexical().unwrap().into_owned()
        })
    }

    #[test]
    fn integers_of_any_size_are_read_within_their_type() {
        let huge = "9".repeat(1_000);
        for (lexical, datatype, expected) in [
            ("7", xsd::INTEGER, Some("7")),
            ("+7", xsd::BYTE, Some("7")),
            ("-0", xsd::NON_POSITIVE_INTEGER, Some("0")),
            (
                "9223372036854775808",
                xsd::INTEGER,
                Some("9223372036854775808"),
            ),
            (
                "-0009223372036854775809",
                xsd::INTEGER,
                Some("-9223372036854775809"),
            ),
            (&huge, xsd::POSITIVE_INTEGER, Some(huge.as_str())),
            (
                "18446744073709551615",
                xsd::UNSIGNED_LONG,
                Some("18446744073709551615"),
            ),
            ("18446744073709551616", xsd::UNSIGNED_LONG, None),
            ("9223372036854775808", xsd::LONG, None),
            ("128", xsd::BYTE, None),
            ("-1", xsd::UNSIGNED_INT, None),
            (&huge, xsd::NEGATIVE_INTEGER, None),
            ("", xsd::INTEGER, None),
            ("-", xsd::INTEGER, None),
            ("1.0", xsd::INTEGER, None),
            (" 1", xsd::INTEGER, None),
            ("99999999999999999999x", xsd::INTEGER, None),
        ] {
            assert_eq!(
                integer_text(lexical, datatype).as_deref(),
                expected,
                "{lexical} {datatype}"
            );
        }
        assert_eq!(integer_text(&"9".repeat(6_000), xsd::INTEGER), None);
    }

    #[test]
    fn decimals_are_rounded_to_eighteen_digits() {
        for (lexical, expected) in [
            ("1.50", Some("1.5")),
            ("0.0000000000000000004", Some("0")),
            ("0.0000000000000000005", Some("0")),
            ("0.00000000000000000050001", Some("0.000000000000000001")),
            ("0.0000000000000000015", Some("0.000000000000000002")),
            ("-0.0000000000000000025", Some("-0.000000000000000002")),
            ("-.0000000000000000026", Some("-0.000000000000000003")),
            ("170141183460469231732", Some("170141183460469231732")),
            (
                "-100000000000000000000000.25",
                Some("-100000000000000000000000.25"),
            ),
            ("+00000000000000000000000000000001.", Some("1")),
            ("1e0", None),
            (".", None),
            ("", None),
            ("1.2.3", None),
            ("1.00000000000000000000000000000000x", None),
        ] {
            assert_eq!(decimal_form(lexical).as_deref(), expected, "{lexical}");
        }
    }

    #[test]
    fn doubles_become_the_numbers_that_they_are() {
        for (double, integer, decimal) in [
            (100_000e0, "100000", "100000"),
            (7306.0, "7306", "7306"),
            (1e18, "1000000000000000000", "1000000000000000000"),
            (1e15, "1000000000000000", "1000000000000000"),
            (-1.75, "-1", "-1.75"),
            (0.1, "0", "0.100000000000000006"),
            (5e-324, "0", "0"),
            (
                9_223_372_036_854_775_808.0,
                "9223372036854775808",
                "9223372036854775808",
            ),
            (1e23, "99999999999999991611392", "99999999999999991611392"),
            // Nineteen digits after the point, of which the last is a five: towards zero.
            (0.000_001_907_348_632_812_5, "0", "0.000001907348632812"),
            (f64::INFINITY, "error", "error"),
            (f64::NAN, "error", "error"),
        ] {
            assert_eq!(text(integer_of_double(double)), integer, "{double}");
            assert_eq!(text(decimal_of_double(double)), decimal, "{double}");
        }
    }

    proptest! {
        /// The ways of 128 bits and that of any size give the same.
        #[test]
        fn small_ways_are_those_of_any_size(
            a in any::<i128>(), b in any::<i128>(), cut_a in 0u32..127, cut_b in 0u32..127,
        ) {
            let (a, b) = (a >> cut_a, b >> cut_b);
            let (small_a, small_b) = (decimal_of_raw(a), decimal_of_raw(b));
            let (value_a, value_b) = (Value::Decimal(small_a), Value::Decimal(small_b));
            if let Some(product) = product_of_decimals(small_a, small_b) {
                let expected = apply(Arithmetic::Multiply, &value_a, &value_b);
                prop_assert_eq!(text(Some(Value::Decimal(product))), text(expected));
            }
            if let Some(quotient) = quotient_of_decimals(small_a, small_b) {
                let expected = apply(Arithmetic::Divide, &value_a, &value_b);
                prop_assert_eq!(text(Some(Value::Decimal(quotient))), text(expected));
            }
        }

        #[test]
        fn a_number_reads_back_as_itself(raw in any::<i128>(), zeros in 0u32..60) {
            let value = decimal(BigInt::from(raw) * BigInt::from(10).pow(zeros)).unwrap();
            prop_assert_eq!(decimal_form(&value.lexical().unwrap()), value.lexical().map(|it| it.into_owned()));
            let value = integer(BigInt::from(raw) * BigInt::from(10).pow(zeros)).unwrap();
            let lexical = value.lexical().unwrap().into_owned();
            prop_assert_eq!(integer_text(&lexical, xsd::INTEGER), Some(lexical));
        }

        #[test]
        fn the_nearest_double_and_float_are_those_of_the_text(raw in any::<i128>(), cut in 0u32..127) {
            let value = Value::Decimal(decimal_of_raw(raw >> cut));
            let lexical = value.lexical().unwrap().into_owned();
            prop_assert_eq!(to_double(&value), lexical.parse().ok());
            prop_assert_eq!(to_float(&value), lexical.parse().ok());
        }
    }
}
