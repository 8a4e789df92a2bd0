//! Parsing and formatting of RFC 3339 times as microseconds since 1970.
//!
//! Not by chrono, which Arrow brings to the crates above: the calendar is the one that dates in ids
//! go by (`orrery_term::inline`), and what is left is reading forms of which chrono's RFC 3339
//! knows only the whole one.

use std::str::FromStr;

use orrery_term::inline::{DAYS_TO_1970, civil_from_days, days_from_civil};

use crate::history::old_states::At;

const US_PER_SECOND: i64 = 1_000_000;
const SECONDS_PER_DAY: i64 = 86_400;
const DATE_BYTES: usize = "2026-11-21".len();

/// Neither a commit nor a time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is neither the number of a commit, nor a date such as 2026-11-21, nor a time such as 2026-11-21T10:00:00Z"
)]
pub struct AtError(String);

impl FromStr for At {
    type Err = AtError;

    /// The number of a commit; a time as in RFC 3339, `2026-11-21T10:00:00.5+01:00`, in UTC if it
    /// names no zone, and without seconds if need be; or a date, which means the end of that day in
    /// UTC.
    fn from_str(text: &str) -> Result<Self, AtError> {
        if let Ok(number) = text.parse() {
            return Ok(Self::Commit(number));
        }
        let time = end_of_day(text).or_else(|| parse_time(text));
        time.map(Self::Time).ok_or_else(|| AtError(text.to_owned()))
    }
}

/// The last microsecond of a day in UTC: whoever asks for a day wants all that was done on it.
fn end_of_day(text: &str) -> Option<i64> {
    let days = parse_date(text)?;
    Some((days + 1) * SECONDS_PER_DAY * US_PER_SECOND - 1)
}

/// So many digits, and nothing else.
fn digits(text: Option<&str>) -> Option<i64> {
    let digits = text?;
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok())?
}

fn has_marks(text: &str, marks: &[(usize, u8)]) -> bool {
    let is_there = |&(at, mark): &(usize, u8)| text.as_bytes().get(at) == Some(&mark);
    marks.iter().all(is_there)
}

/// Days since 1970 of a date such as `2026-11-21`.
fn parse_date(text: &str) -> Option<i64> {
    if text.len() != DATE_BYTES || !has_marks(text, &[(4, b'-'), (7, b'-')]) {
        return None;
    }
    let number = |from: usize, to: usize| digits(text.get(from..to));
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let is_date = (1..=12).contains(&month) && (1..=days_of(year, month)).contains(&day);
    is_date.then(|| days_from_civil(year, month, day) - DAYS_TO_1970)
}

/// Microseconds since 1970 of a time as in RFC 3339, where seconds and zone (UTC) may be missing;
/// further digits are cut off.
pub fn parse_time(text: &str) -> Option<i64> {
    let days = parse_date(text.get(..DATE_BYTES)?)?;
    // RFC 3339, 5.6: a space may stand for the T.
    let time = text.get(DATE_BYTES..)?.strip_prefix(['T', 't', ' '])?;
    if !has_marks(time, &[(2, b':')]) {
        return None;
    }
    let (hour, minute) = (digits(time.get(0..2))?, digits(time.get(3..5))?);
    let mut rest = time.get(5..)?;
    let (mut second, mut fraction_us) = (0, 0);
    if let Some(seconds) = rest.strip_prefix(':') {
        second = digits(seconds.get(..2))?;
        rest = &seconds[2..];
        if let Some(fraction) = rest.strip_prefix('.') {
            let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
            if digits == 0 {
                return None;
            }
            let padded = format!("{:0<6.6}", &fraction[..digits]);
            fraction_us = padded.parse().ok()?;
            rest = &fraction[digits..];
        }
    }
    if hour >= 24 || minute >= 60 || second >= 60 {
        return None;
    }
    let offset_minutes = parse_offset(rest)?;
    let seconds = days * SECONDS_PER_DAY + (hour * 60 + minute - offset_minutes) * 60 + second;
    Some(seconds * US_PER_SECOND + fraction_us)
}

/// `Z`, `+01:00`, or nothing; minutes east of Greenwich.
fn parse_offset(text: &str) -> Option<i64> {
    if text.is_empty() || text == "Z" || text == "z" {
        return Some(0);
    }
    let (sign, rest) = match text.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let (hours, minutes) = rest.split_once(':')?;
    let is_number = |part: &str| part.len() == 2 && part.bytes().all(|b| b.is_ascii_digit());
    if !is_number(hours) || !is_number(minutes) {
        return None;
    }
    let (hours, minutes): (i64, i64) = (hours.parse().ok()?, minutes.parse().ok()?);
    (hours < 24 && minutes < 60).then_some(sign * (hours * 60 + minutes))
}

/// A time in UTC as in RFC 3339, to the microsecond: `2026-11-21T10:00:00.000000Z`.
pub fn format_time(time_us: i64) -> String {
    let seconds = time_us.div_euclid(US_PER_SECOND);
    let (year, month, day) = civil_from_days(seconds.div_euclid(SECONDS_PER_DAY) + DAYS_TO_1970);
    let of_day = seconds.rem_euclid(SECONDS_PER_DAY);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    let fraction = time_us.rem_euclid(US_PER_SECOND);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{fraction:06}Z")
}

fn days_of(year: i64, month: i64) -> i64 {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn times_are_read_and_nonsense_is_refused() {
        assert_eq!(parse_time("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(parse_time("1970-01-01T01:00:01.25+01:00"), Some(1_250_000));
        assert_eq!(parse_time("1969-12-31T23:59:59.9999999Z"), Some(-1));
        assert_eq!(
            format_time(951_782_400_000_000),
            "2000-02-29T00:00:00.000000Z"
        );
        assert_eq!(
            parse_time("2000-02-29T00:00:00Z"),
            Some(951_782_400_000_000)
        );
        for bad in [
            "",
            "2026-11-21",
            "2026-11-21T",
            "2026-11-21T10",
            "2026-11-21T10:0",
            "2026-11-21T10:00:0",
            "2026-11-21T10:00:é",
            "2026-11-21x10:00",
            "2026-13-21T10:00:00Z",
            "2026-02-29T10:00:00Z",
            "2026-11-21T24:00:00Z",
            "2026-11-21T10:00:00.Z",
            "2026-11-21T10:00:00+1:00",
            "+026-11-21T10:00:00Z",
            "20é6-11-21T10:00:00Z",
        ] {
            assert_eq!(parse_time(bad), None, "{bad}");
        }
        let at_ten = parse_time("2026-11-21T10:00:00Z");
        for same in [
            "2026-11-21T10:00:00",
            "2026-11-21T10:00Z",
            "2026-11-21 10:00",
            "2026-11-21T11:00+01:00",
        ] {
            assert_eq!(parse_time(same), at_ten, "{same}");
        }
        assert_eq!("17".parse(), Ok(At::Commit(17)));
        assert_eq!("1970-01-01".parse(), Ok(At::Time(86_400_000_000 - 1)));
        assert!("2026-02-29".parse::<At>().is_err());
        assert!("yesterday".parse::<At>().is_err());
    }

    proptest! {
        #[test]
        fn any_time_of_four_digit_years_comes_back(
            time_us in -62_135_596_800_000_000i64..253_402_300_800_000_000
        ) {
            prop_assert_eq!(parse_time(&format_time(time_us)), Some(time_us));
        }
    }
}
