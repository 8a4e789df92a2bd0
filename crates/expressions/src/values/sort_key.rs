//! Sort keys: byte strings in the order of `ORDER BY`, `MIN` and `MAX`.
//!
//! SPARQL 1.2, 15.1: unbound, blank nodes, IRIs, literals, triple terms; literals that `<` compares
//! stand as it says. What SPARQL leaves open is decided here so that the order is total over values
//! and the same at every run. A key is compared with `memcmp`:
//!
//! ```text
//! unbound        00
//! blank node     01 number (8 bytes, big-endian)
//! IRI            02 text
//! boolean        10 0 or 1
//! number         20 nearest double (8 bytes, ascending)  02
//!                                                   or   01 | 03 rest (16 bytes)   below or above that double
//!                                                   or   01 | 03 length (2 bytes) number (in 10^-18)   the same, from 2^100 on;
//!                                                        all of its bits turned over if it is negative
//! dateTime ...   30 to 37 seconds in UTC (16 bytes, ascending)
//! duration       40 average seconds (16 bytes, ascending)
//! string         50 text
//! other literal  51 text 00 00 datatype 00 language 00 direction   (zeros in the text are written 00 FF)
//! triple term    60 the keys of subject, predicate and object, each ended by 00 00   (zeros written 00 FF)
//! ```
//!
//! Numbers of all types are in one order by value, equal ones have equal keys (1, 1.0 and 1e0), NaN
//! comes first. Strings stand before tagged strings and literals of unknown types, by code point.
//! Values without a time zone count as UTC: an order that agrees with `<` wherever `<` has one.
//!
//! Equal keys do not mean equal terms, as equal values do not: a further sort key decides then.

use std::cmp::Ordering;

use num_bigint::{BigInt, Sign};
use orrery_term::Direction;
use oxsdatatypes::{Decimal, Duration};

use crate::values::decimal::{self, ONE};
use crate::values::exact;
use crate::values::value::Value;

const UNBOUND: u8 = 0x00;
const BLANK_NODE: u8 = 0x01;
/// Class of IRIs.
pub(crate) const IRI: u8 = 0x02;
const BOOLEAN: u8 = 0x10;
const NUMBER: u8 = 0x20;
const DATE_TIME: u8 = 0x30;
const DATE: u8 = 0x31;
const TIME: u8 = 0x32;
const G_YEAR_MONTH: u8 = 0x33;
const G_YEAR: u8 = 0x34;
const G_MONTH_DAY: u8 = 0x35;
const G_MONTH: u8 = 0x36;
const G_DAY: u8 = 0x37;
const DURATION: u8 = 0x40;
/// Class of plain strings.
pub(crate) const STRING: u8 = 0x50;
const TEXT: u8 = 0x51;
const TRIPLE: u8 = 0x60;

const BELOW_DOUBLE: u8 = 1;
const AT_DOUBLE: u8 = 2;
const ABOVE_DOUBLE: u8 = 3;

/// Integers up to here are doubles exactly.
const EXACT_INTEGER_MAX: u64 = 1 << 53;
/// From here on the neighbourhood of a double may be wider than 128 bits are in units of 10^-18.
const WIDE_DOUBLE_MIN: f64 = (1_u128 << 100) as f64;
/// A decimal of at most fifteen digits is what its nearest double prints as.
const SHORT_MANTISSA_LIMIT: u128 = 1_000_000_000_000_000;
/// Length of the Gregorian cycle of 400 years is 4,800 months and 146,097 days.
const AVERAGE_MONTH_SECONDS: i128 = 146_097 * 86_400 / 4_800;

/// Appends the key of a value, or of no value.
pub(crate) fn write_sort_key(value: Option<&Value>, out: &mut Vec<u8>) {
    let Some(value) = value else {
        out.push(UNBOUND);
        return;
    };
    match value {
        Value::BlankNode(number) => {
            out.push(BLANK_NODE);
            out.extend_from_slice(&number.to_be_bytes());
        }
        Value::Iri(iri) => {
            out.push(IRI);
            out.extend_from_slice(iri.as_bytes());
        }
        Value::Boolean(value) => out.extend_from_slice(&[BOOLEAN, u8::from(*value)]),
        Value::Integer(value) => write_integer((*value).into(), out),
        Value::Decimal(value) => write_decimal(*value, out),
        Value::LargeInteger(_) | Value::LargeDecimal(_) => {
            if let (Some(raw), Some(nearest)) = (exact::large_raw(value), exact::to_double(value)) {
                write_large(&raw, nearest, out);
            }
        }
        Value::Float(value) => write_number(f64::from(f32::from(*value)), 0, out),
        Value::Double(value) => write_number((*value).into(), 0, out),
        Value::DateTime(value) => write_instant(DATE_TIME, value.to_be_bytes(), out),
        Value::Date(value) => write_instant(DATE, value.to_be_bytes(), out),
        Value::Time(value) => write_instant(TIME, value.to_be_bytes(), out),
        Value::GYearMonth(value) => write_instant(G_YEAR_MONTH, value.to_be_bytes(), out),
        Value::GYear(value) => write_instant(G_YEAR, value.to_be_bytes(), out),
        Value::GMonthDay(value) => write_instant(G_MONTH_DAY, value.to_be_bytes(), out),
        Value::GMonth(value) => write_instant(G_MONTH, value.to_be_bytes(), out),
        Value::GDay(value) => write_instant(G_DAY, value.to_be_bytes(), out),
        Value::Duration(value) => write_duration(*value, out),
        Value::YearMonthDuration(value) => write_duration((*value).into(), out),
        Value::DayTimeDuration(value) => write_duration((*value).into(), out),
        Value::String(text) => {
            out.push(STRING);
            out.extend_from_slice(text.as_bytes());
        }
        Value::LanguageString { .. } | Value::Other { .. } => write_text(value, out),
        Value::Triple(triple) => {
            out.push(TRIPLE);
            let mut key = Vec::new();
            for part in triple.parts() {
                key.clear();
                write_sort_key(Some(&Value::from_term(part)), &mut key);
                write_terminated(&key, out);
            }
        }
    }
}

fn write_integer(value: i64, out: &mut Vec<u8>) {
    let nearest = value as f64;
    if value.unsigned_abs() <= EXACT_INTEGER_MAX {
        write_number(nearest, 0, out);
    } else {
        write_beside(i128::from(value) * ONE, nearest, out);
    }
}

fn write_decimal(value: Decimal, out: &mut Vec<u8>) {
    let raw = decimal::raw(value);
    let reduced = decimal::reduced(raw);
    let nearest = decimal::double_of_reduced(reduced, raw);
    if reduced.0.unsigned_abs() < SHORT_MANTISSA_LIMIT {
        write_number(nearest, 0, out);
    } else {
        write_beside(raw, nearest, out);
    }
}

/// A raw number that may be another one than its nearest double.
fn write_beside(raw: i128, nearest: f64, out: &mut Vec<u8>) {
    match printed(nearest) {
        Some(printed) => write_number(nearest, raw.saturating_sub(printed), out),
        None => write_large(&raw.into(), nearest, out),
    }
}

/// A number beyond the small forms; those of its neighbourhood that are not are written so that
/// they can be compared with it.
fn write_large(raw: &BigInt, nearest: f64, out: &mut Vec<u8>) {
    if nearest.abs() < WIDE_DOUBLE_MIN {
        let rest = i128::try_from(raw - printed_large(nearest)).unwrap_or(0);
        write_number(nearest, rest, out);
        return;
    }
    let ordering = match nearest.is_finite() {
        true => raw.cmp(&printed_large(nearest)),
        // Every exact number is on this side of infinity.
        false => 0.0_f64.total_cmp(&nearest),
    };
    out.push(NUMBER);
    out.extend_from_slice(&ascending_bits(nearest).to_be_bytes());
    match ordering {
        Ordering::Equal => out.push(AT_DOUBLE),
        side => {
            out.push(if side.is_lt() {
                BELOW_DOUBLE
            } else {
                ABOVE_DOUBLE
            });
            write_whole(raw, out);
        }
    }
}

/// Bytes that ascend with the numbers of one sign.
fn write_whole(number: &BigInt, out: &mut Vec<u8>) {
    let start = out.len();
    let bytes = number.magnitude().to_bytes_be();
    // At most 2^14 bits.
    out.extend_from_slice(&(bytes.len() as u16).to_be_bytes());
    out.extend_from_slice(&bytes);
    if number.sign() == Sign::Minus {
        out[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

/// The raw decimal of a large double as it is printed.
fn printed_large(double: f64) -> BigInt {
    let whole: Option<BigInt> = double.to_string().parse().ok();
    whole.unwrap_or_default() * ONE
}

/// The raw decimal of a double as it is printed, if 128 bits hold it: the one point in the double's
/// neighbourhood that exact numbers are compared with.
fn printed(double: f64) -> Option<i128> {
    match exact::parse_decimal(&double.to_string())? {
        Value::Decimal(decimal) => Some(decimal::raw(decimal)),
        _ => None,
    }
}

fn write_number(nearest: f64, rest: i128, out: &mut Vec<u8>) {
    out.push(NUMBER);
    out.extend_from_slice(&ascending_bits(nearest).to_be_bytes());
    match rest {
        0 => out.push(AT_DOUBLE),
        _ => {
            out.push(if rest < 0 { BELOW_DOUBLE } else { ABOVE_DOUBLE });
            out.extend_from_slice(&ascending(rest));
        }
    }
}

/// Bits that ascend with the double: NaN, -INF, ..., 0 (of either sign), ..., INF.
fn ascending_bits(value: f64) -> u64 {
    if value.is_nan() {
        return 0;
    }
    // Adding zero turns -0.0 into 0.0, which is equal to it.
    let bits = (value + 0.0).to_bits();
    if bits >> 63 == 1 {
        !bits
    } else {
        bits | 1 << 63
    }
}

/// Bytes that ascend with the integer.
fn ascending(value: i128) -> [u8; 16] {
    ((value as u128) ^ (1 << 127)).to_be_bytes()
}

/// An instant: the first sixteen bytes are the seconds in UTC, the others the time zone.
fn write_instant(class: u8, bytes: [u8; 18], out: &mut Vec<u8>) {
    out.push(class);
    out.push(bytes[0] ^ 0x80);
    out.extend_from_slice(&bytes[1..16]);
}

fn write_duration(value: Duration, out: &mut Vec<u8>) {
    let bytes = value.to_be_bytes();
    let (mut months, mut seconds) = ([0; 8], [0; 16]);
    months.copy_from_slice(&bytes[..8]);
    seconds.copy_from_slice(&bytes[8..]);
    let seconds = i128::from_be_bytes(seconds);
    // Scaled down before the sum, which then cannot overflow; a microsecond decides no order
    // between months and days.
    let average = i128::from(i64::from_be_bytes(months)) * AVERAGE_MONTH_SECONDS * 1_000_000
        + seconds.div_euclid(ONE / 1_000_000);
    out.push(DURATION);
    out.extend_from_slice(&ascending(average));
    out.extend_from_slice(&ascending(seconds));
}

fn write_text(value: &Value, out: &mut Vec<u8>) {
    out.push(TEXT);
    let text = value.lexical().unwrap_or_default();
    write_terminated(text.as_bytes(), out);
    out.extend_from_slice(value.datatype().unwrap_or_default().as_bytes());
    out.push(0);
    if let Value::LanguageString {
        language,
        direction,
        ..
    } = value
    {
        out.extend_from_slice(language.as_bytes());
        out.push(0);
        out.extend_from_slice(direction.map_or("", Direction::as_str).as_bytes());
    }
}

/// Appends bytes so that what follows cannot be taken for a part of them.
fn write_terminated(bytes: &[u8], out: &mut Vec<u8>) {
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|&byte| byte == 0) {
        out.extend_from_slice(&rest[..=at]);
        out.push(0xFF);
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
    out.extend_from_slice(&[0, 0]);
}

#[cfg(test)]
mod tests {
    use orrery_term::vocabulary::xsd;
    use orrery_term::{Term, Triple};
    use proptest::prelude::*;

    use super::*;
    use crate::values::compare::compare;
    use crate::values::value::Language;

    fn key(value: &Value) -> Vec<u8> {
        let mut key = Vec::new();
        write_sort_key(Some(value), &mut key);
        key
    }

    fn typed(lexical: &str, datatype: &str) -> Value {
        Value::from_term(&Term::typed(lexical, datatype))
    }

    fn text(lexical: &str, direction: Option<Direction>) -> Value {
        let tag = "en";
        Value::text(lexical, Some(Language { tag, direction }))
    }

    fn triple(subject: Term<'_>, object: Term<'_>) -> Value {
        let triple = Triple::new(subject, Term::iri("urn:p"), object).unwrap();
        Value::from_term(&triple.into())
    }

    #[test]
    fn the_order_of_kinds_is_that_of_sparql() {
        let ascending = [
            Value::BlankNode(1),
            Value::BlankNode(300),
            Value::Iri("http://e/a".into()),
            Value::Iri("http://e/b".into()),
            typed("NaN", xsd::DOUBLE),
            typed("-INF", xsd::FLOAT),
            typed(&format!("-{}", "9".repeat(401)), xsd::INTEGER),
            typed(&format!("-{}8", "9".repeat(400)), xsd::INTEGER),
            typed(
                "-100000000000000000000000000000000000000000000001",
                xsd::INTEGER,
            ),
            typed("-1e47", xsd::DOUBLE),
            typed(
                "-99999999999999999999999999999999999999999999999",
                xsd::INTEGER,
            ),
            typed("-9223372036854775809", xsd::INTEGER),
            typed("-9223372036854775808", xsd::INTEGER),
            typed("-1.5", xsd::DECIMAL),
            typed("-1", xsd::INTEGER),
            typed("-0.5", xsd::DOUBLE),
            typed("0", xsd::INTEGER),
            typed("0.000000000000000001", xsd::DECIMAL),
            typed("0.1", xsd::DOUBLE),
            typed("0.100000000000000001", xsd::DECIMAL),
            typed("9007199254740992", xsd::INTEGER),
            typed("9007199254740993", xsd::INTEGER),
            typed("9223372036854775806", xsd::INTEGER),
            typed("9223372036854775807", xsd::INTEGER),
            typed("9223372036854775807.5", xsd::DECIMAL),
            typed("9223372036854775808", xsd::INTEGER),
            typed("9223372036854775809", xsd::INTEGER),
            typed("100000000000000000000000000000", xsd::INTEGER),
            typed(
                "100000000000000000000000000000.000000000000000001",
                xsd::DECIMAL,
            ),
            typed("100000000000000000000000000001", xsd::INTEGER),
            typed(
                "99999999999999999999999999999999999999999999999",
                xsd::INTEGER,
            ),
            typed("1e47", xsd::DOUBLE),
            typed(
                "100000000000000000000000000000000000000000000001",
                xsd::INTEGER,
            ),
            typed(&format!("{}8", "9".repeat(400)), xsd::INTEGER),
            typed(&"9".repeat(401), xsd::INTEGER),
            typed("INF", xsd::DOUBLE),
            typed("2000-01-01T00:00:00Z", xsd::DATE_TIME),
            typed("2000-01-01T00:00:00-01:00", xsd::DATE_TIME),
            Value::string(""),
            Value::string("a"),
            Value::string("a\0"),
            Value::string("ab"),
            Value::string("é"),
            text("a", Some(Direction::LeftToRight)),
            text("a", Some(Direction::RightToLeft)),
            text("a", None),
            triple(Term::BlankNode(1), Term::iri("urn:z")),
            triple(Term::iri("urn:a"), Term::BlankNode(7)),
            triple(Term::iri("urn:a"), Term::iri("urn:z")),
            triple(Term::iri("urn:a"), Term::typed("-5", xsd::INTEGER)),
            triple(Term::iri("urn:a"), Term::typed("03.50", xsd::DECIMAL)),
            triple(Term::iri("urn:a"), Term::string("")),
            triple(
                Term::iri("urn:a"),
                triple(Term::iri("urn:a"), Term::string("")).to_term(),
            ),
            triple(Term::iri("urn:a\0"), Term::iri("urn:a")),
            triple(Term::iri("urn:ab"), Term::iri("urn:a")),
        ];
        assert!(ascending.windows(2).all(|pair| {
            let ordered = key(&pair[0]) < key(&pair[1]);
            assert!(ordered, "{:?} < {:?}", pair[0], pair[1]);
            ordered
        }));
        let mut unbound = Vec::new();
        write_sort_key(None, &mut unbound);
        assert!(unbound < key(&ascending[0]));
    }

    #[test]
    fn equal_numbers_have_equal_keys() {
        for (a, b) in [
            (typed("1", xsd::INTEGER), typed("1.0", xsd::DECIMAL)),
            (typed("01", xsd::INTEGER), typed("1E0", xsd::DOUBLE)),
            (typed("0.1", xsd::DECIMAL), typed("0.1", xsd::DOUBLE)),
            (typed("-0.0", xsd::DOUBLE), typed("0", xsd::INTEGER)),
            (typed("1.5", xsd::FLOAT), typed("1.50", xsd::DECIMAL)),
            (
                typed("12345.678901", xsd::DECIMAL),
                typed("12345.678901", xsd::DOUBLE),
            ),
        ] {
            assert_eq!(key(&a), key(&b), "{a:?} {b:?}");
        }
    }

    fn number() -> impl Strategy<Value = Value> {
        prop_oneof![
            any::<i64>().prop_map(Value::integer),
            (-1000i64..1000).prop_map(Value::integer),
            (any::<i64>(), 0u32..19).prop_map(|(digits, scale)| Value::Decimal(
                Decimal::new(digits.into(), scale).unwrap()
            )),
            (any::<i128>(), 0u32..127, 0u32..30).prop_map(|(digits, cut, zeros)| {
                exact::decimal(BigInt::from(digits >> cut) * BigInt::from(10).pow(zeros)).unwrap()
            }),
            (any::<i128>(), 0u32..127, 0u32..30).prop_map(|(digits, cut, zeros)| {
                exact::integer(BigInt::from(digits >> cut) * BigInt::from(10).pow(zeros)).unwrap()
            }),
            (-5i64..5, 0u32..60).prop_map(|(near, zeros)| {
                exact::integer(BigInt::from(10).pow(zeros) + near).unwrap()
            }),
            any::<f64>().prop_map(|value| Value::Double(value.into())),
            (-1000i64..1000).prop_map(|value| Value::Double((value as f64 / 8.0).into())),
            (0i32..60).prop_map(|exponent| Value::Double(10f64.powi(exponent).into())),
        ]
    }

    fn instant() -> impl Strategy<Value = Value> {
        (
            -3000i64..3000,
            1u8..=12,
            1u8..=28,
            0u8..24,
            prop_oneof![Just(""), Just("Z"), Just("+14:00"), Just("-05:30")],
        )
            .prop_filter_map("a valid dateTime", |(year, month, day, hour, zone)| {
                let sign = if year < 0 { "-" } else { "" };
                let year = year.abs();
                let lexical = format!("{sign}{year:04}-{month:02}-{day:02}T{hour:02}:00:00{zone}");
                Some(Value::DateTime(lexical.parse().ok()?))
            })
    }

    fn duration() -> impl Strategy<Value = Value> {
        (-100i64..100, -5000i64..5000).prop_filter_map("a valid duration", |(months, days)| {
            Some(Value::Duration(Duration::new(months, days * 86_400).ok()?))
        })
    }

    proptest! {
        #[test]
        fn keys_agree_with_less(
            (a, b) in prop_oneof![
                (number(), number()),
                (instant(), instant()),
                (duration(), duration()),
            ]
        ) {
            // Exact numbers are compared exactly here, but `<` rounds them to a double when the
            // other side is one.
            let exact = |value: &Value| value.is_numeric() && !matches!(value, Value::Double(_));
            let (key_a, key_b) = (key(&a), key(&b));
            match compare(&a, &b) {
                Some(std::cmp::Ordering::Equal) if exact(&a) != exact(&b) => {}
                Some(ordering) => prop_assert_eq!(key_a.cmp(&key_b), ordering, "{:?} {:?}", a, b),
                None => {}
            }
        }

        #[test]
        fn keys_of_texts_are_in_code_point_order(a in ".{0,8}", b in ".{0,8}") {
            let (key_a, key_b) = (key(&Value::string(a.as_str())), key(&Value::string(b.as_str())));
            prop_assert_eq!(key_a.cmp(&key_b), a.cmp(&b));
        }
    }
}
