//! Names and values as literals of the foreign server's SQL.

use std::fmt::Write as _;

use datafusion::common::ScalarValue;

/// Digits of a date's year: beyond, the source writes dates otherwise.
const YEARS: std::ops::RangeInclusive<i64> = 1..=9999;
const MICROSECONDS_PER_DAY: i64 = 86_400_000_000;

/// A name in quotes.
pub(crate) fn quoted_name(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A text in quotes; the session has `standard_conforming_strings`.
pub(crate) fn quoted_text(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// An integer, negative ones so that no operator takes the sign.
pub(crate) fn integer(value: i64) -> String {
    match value {
        i64::MIN => format!("'{value}'::int8"),
        0.. => value.to_string(),
        _ => format!("({value})"),
    }
}

/// An exact number: its digits, and how many of these are behind the point.
pub(crate) fn decimal(value: i128, scale: i8) -> Option<String> {
    let scale = usize::try_from(scale).ok()?;
    let digits = format!("{:0>width$}", value.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    let sign = if value < 0 { "-" } else { "" };
    Some(match fraction.is_empty() {
        true => format!("'{sign}{whole}'::numeric"),
        false => format!("'{sign}{whole}.{fraction}'::numeric"),
    })
}

/// A float as its shortest digits, which the source reads back as the same one.
pub(crate) fn float(value: f64, shortest: &str, type_name: &str) -> String {
    let text = match value {
        value if value.is_nan() => "NaN",
        f64::INFINITY => "Infinity",
        f64::NEG_INFINITY => "-Infinity",
        _ => shortest,
    };
    format!("'{text}'::{type_name}")
}

/// A date, of a number of days since 1970.
pub(crate) fn date(days: i32) -> Option<String> {
    Some(format!("'{}'::date", civil(i64::from(days))?))
}

/// A time, of microseconds since 1970.
pub(crate) fn timestamp(microseconds: i64, has_zone: bool) -> Option<String> {
    let day = civil(microseconds.div_euclid(MICROSECONDS_PER_DAY))?;
    let of_day = microseconds.rem_euclid(MICROSECONDS_PER_DAY);
    let (seconds, fraction) = (of_day / 1_000_000, of_day % 1_000_000);
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let time = format!("{day} {hours:02}:{minutes:02}:{seconds:02}.{fraction:06}");
    Some(match has_zone {
        true => format!("'{time}+00'::timestamptz"),
        false => format!("'{time}'::timestamp"),
    })
}

/// Year, month and day of a day since 1970 (H. Hinnant, "chrono-compatible low-level date
/// algorithms").
fn civil(days: i64) -> Option<String> {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = match month_from_march {
        0..=9 => month_from_march + 3,
        _ => month_from_march - 9,
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    YEARS
        .contains(&year)
        .then(|| format!("{year:04}-{month:02}-{day:02}"))
}

/// Bytes.
pub(crate) fn bytes(value: &[u8]) -> String {
    let mut text = String::with_capacity(2 * value.len() + 12);
    text.push_str("'\\x");
    for byte in value {
        // Writing to a String does not fail.
        _ = write!(text, "{byte:02x}");
    }
    text.push_str("'::bytea");
    text
}

/// The text of a value that is one the source can have.
pub(crate) fn text_of(value: &ScalarValue) -> Option<&str> {
    let text = match value {
        ScalarValue::Utf8(text) | ScalarValue::Utf8View(text) | ScalarValue::LargeUtf8(text) => {
            text.as_deref()?
        }
        _ => return None,
    };
    (!text.contains('\0')).then_some(text)
}

/// The bytes of a value.
pub(crate) fn bytes_of(value: &ScalarValue) -> Option<&[u8]> {
    match value {
        ScalarValue::Binary(bytes)
        | ScalarValue::BinaryView(bytes)
        | ScalarValue::LargeBinary(bytes) => bytes.as_deref(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_texts_cannot_leave_their_quotes() {
        assert_eq!(quoted_name("a\"b"), "\"a\"\"b\"");
        assert_eq!(quoted_text("O'Neill\\"), "'O''Neill\\'");
        assert_eq!(quoted_text("';--"), "''';--'");
    }

    #[test]
    fn numbers_are_written_exactly() {
        assert_eq!(integer(5), "5");
        assert_eq!(integer(-5), "(-5)");
        assert_eq!(integer(i64::MIN), "'-9223372036854775808'::int8");
        assert_eq!(decimal(-5, 2).unwrap(), "'-0.05'::numeric");
        assert_eq!(decimal(1234, 2).unwrap(), "'12.34'::numeric");
        assert_eq!(decimal(7, 0).unwrap(), "'7'::numeric");
        assert_eq!(float(1e300, "1e300", "float8"), "'1e300'::float8");
        assert_eq!(float(f64::NAN, "", "float4"), "'NaN'::float4");
    }

    #[test]
    fn times_are_those_of_the_calendar() {
        assert_eq!(date(0).unwrap(), "'1970-01-01'::date");
        assert_eq!(date(-1).unwrap(), "'1969-12-31'::date");
        assert_eq!(date(19_782).unwrap(), "'2024-02-29'::date");
        assert_eq!(date(i32::MAX), None);
        assert_eq!(
            timestamp(-1, false).unwrap(),
            "'1969-12-31 23:59:59.999999'::timestamp"
        );
        assert_eq!(
            timestamp(951_782_400_000_001, true).unwrap(),
            "'2000-02-29 00:00:00.000001+00'::timestamptz"
        );
        assert_eq!(bytes(&[0, 255]), "'\\x00ff'::bytea");
    }
}
