//! Times as people write them: RFC 3339 to microseconds since 1970, and back.

use std::str::FromStr;

use orrery_term::inline::{civil_from_days, days_from_civil};

use crate::history::At;

const US_PER_SECOND: i64 = 1_000_000;
const SECONDS_PER_DAY: i64 = 86_400;
/// Days from 0000-01-01, where the calendar counts from, to 1970-01-01.
const DAYS_TO_1970: i64 = 719_528;

/// Neither a commit nor a time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is neither the number of a commit nor a time such as 2026-11-21T10:00:00Z")]
pub struct AtError(String);

impl FromStr for At {
    type Err = AtError;

    /// The number of a commit, or a time as in RFC 3339: `2026-11-21T10:00:00.5+01:00`.
    fn from_str(text: &str) -> Result<Self, AtError> {
        if let Ok(number) = text.parse() {
            return Ok(Self::Commit(number));
        }
        let time = parse_time(text).map(Self::Time);
        time.ok_or_else(|| AtError(text.to_owned()))
    }
}

/// Microseconds since 1970 of a time as in RFC 3339; further digits are cut off.
pub fn parse_time(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    let number = |from: usize, to: usize| -> Option<i64> {
        let digits = text.get(from..to)?;
        let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| digits.parse().ok())?
    };
    let marks = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    if !marks.iter().all(|&(at, mark)| bytes.get(at) == Some(&mark)) {
        return None;
    }
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let is_time = hour < 24 && minute < 60 && second < 60;
    if !is_time || !(1..=12).contains(&month) || !(1..=days_of(year, month)).contains(&day) {
        return None;
    }
    let mut rest = text.get(19..)?;
    let mut fraction_us = 0;
    if let Some(fraction) = rest.strip_prefix('.') {
        let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            return None;
        }
        let padded = format!("{:0<6.6}", &fraction[..digits]);
        fraction_us = padded.parse().ok()?;
        rest = &fraction[digits..];
    }
    let offset_minutes = parse_offset(rest)?;
    let seconds = (days_from_civil(year, month, day) - DAYS_TO_1970) * SECONDS_PER_DAY
        + (hour * 60 + minute - offset_minutes) * 60
        + second;
    Some(seconds * US_PER_SECOND + fraction_us)
}

/// `Z`, `+01:00`; minutes east of Greenwich.
fn parse_offset(text: &str) -> Option<i64> {
    if text == "Z" || text == "z" {
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
            "2026-11-21T10:00:00",
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
        assert_eq!("17".parse(), Ok(At::Commit(17)));
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
