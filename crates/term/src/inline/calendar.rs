//! Inline dates and times.
//!
//! A payload begins with the instant in UTC (a value without time zone counts as UTC),
//! so that ids of one kind sort as the timeline does; the zone follows so that the
//! local time is rebuilt exactly.

use std::fmt;

use crate::id::{TermId, TermKind};

const MINUTES_PER_DAY: i64 = 24 * 60;
const MILLISECONDS_PER_MINUTE: i64 = 60_000;
/// Shifts dates so that a zone east of UTC in the year 0 is not negative.
const DATE_BIAS_MINUTES: i64 = 24 * 60;
pub(super) const ZONE_BITS: u32 = 11;
/// Bits of the digits after the point, below the zone of a dateTime.
pub(super) const FRACTION_DIGITS_BITS: u32 = 2;
const ZONE_MASK: u64 = (1 << ZONE_BITS) - 1;
/// dateTime: 47 bits of milliseconds reach into the year 4459.
const INSTANT_LIMIT_MILLISECONDS: i64 = 1 << 47;
/// XML Schema's bound on time zones: 14 hours.
const ZONE_MINUTES_MAX: i64 = 14 * 60;

/// A time zone as it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimeZone {
    /// None given.
    Absent,
    /// `Z`.
    Utc,
    /// `+01:00`: minutes east of UTC, from -840 to 840. `+00:00` is offset 0.
    Offset(i16),
}

impl TimeZone {
    const fn code(self) -> u64 {
        match self {
            Self::Absent => 0,
            Self::Utc => 1,
            Self::Offset(minutes) => (minutes as i64 + ZONE_MINUTES_MAX + 2) as u64,
        }
    }

    const fn from_code(code: u64) -> Self {
        match code & ZONE_MASK {
            0 => Self::Absent,
            1 => Self::Utc,
            other => Self::Offset((other as i64 - 2 - ZONE_MINUTES_MAX) as i16),
        }
    }

    /// Minutes east of UTC; 0 if absent.
    pub const fn offset_minutes(self) -> i64 {
        match self {
            Self::Absent | Self::Utc => 0,
            Self::Offset(minutes) => minutes as i64,
        }
    }

    fn parse(text: &str) -> Option<Self> {
        match text {
            "" => return Some(Self::Absent),
            "Z" => return Some(Self::Utc),
            _ => {}
        }
        let bytes = text.as_bytes();
        if bytes.len() != 6 || bytes[3] != b':' {
            return None;
        }
        let hours = two_digits(&bytes[1..3])?;
        let minutes = two_digits(&bytes[4..6])?;
        let total = hours * 60 + minutes;
        if minutes > 59 || total > ZONE_MINUTES_MAX {
            return None;
        }
        match bytes[0] {
            b'+' => Some(Self::Offset(total as i16)),
            // "-00:00" would come back as "+00:00".
            b'-' if total > 0 => Some(Self::Offset(-total as i16)),
            _ => None,
        }
    }
}

impl fmt::Display for TimeZone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Absent => Ok(()),
            Self::Utc => f.write_str("Z"),
            Self::Offset(minutes) => {
                let sign = if minutes < 0 { '-' } else { '+' };
                let magnitude = minutes.unsigned_abs();
                write!(f, "{sign}{:02}:{:02}", magnitude / 60, magnitude % 60)
            }
        }
    }
}

/// An `xsd:date` of the years 0000 to 9999.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct InlineDate {
    /// Days since 0000-01-01 in the proleptic Gregorian calendar, local.
    pub day: i64,
    /// The zone as written.
    pub zone: TimeZone,
}

/// An `xsd:dateTime` of the years 0000 to 4458, to the millisecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct InlineDateTime {
    /// Milliseconds since 0000-01-01T00:00:00 UTC.
    pub instant_ms: i64,
    /// The zone as written.
    pub zone: TimeZone,
    /// Digits after the decimal point of the seconds, 0 to 3.
    pub fraction_digits: u8,
}

impl InlineDate {
    /// Year, month (1-12) and day (1-31), local.
    pub fn year_month_day(&self) -> (i64, u8, u8) {
        civil_from_days(self.day)
    }

    /// Minutes since 0000-01-01T00:00 UTC at which the day starts.
    pub fn start_minutes(&self) -> i64 {
        self.day * MINUTES_PER_DAY - self.zone.offset_minutes()
    }
}

impl InlineDateTime {
    /// Milliseconds since 0000-01-01T00:00:00 on the local clock.
    pub fn local_ms(&self) -> i64 {
        self.instant_ms + self.zone.offset_minutes() * MILLISECONDS_PER_MINUTE
    }

    /// Year, month (1-12) and day (1-31), local.
    pub fn year_month_day(&self) -> (i64, u8, u8) {
        civil_from_days(
            self.local_ms()
                .div_euclid(MINUTES_PER_DAY * MILLISECONDS_PER_MINUTE),
        )
    }

    /// Hours, minutes and milliseconds within the minute, local.
    pub fn hours_minutes_milliseconds(&self) -> (u8, u8, u16) {
        let in_day = self
            .local_ms()
            .rem_euclid(MINUTES_PER_DAY * MILLISECONDS_PER_MINUTE);
        let minutes = in_day / MILLISECONDS_PER_MINUTE;
        (
            (minutes / 60) as u8,
            (minutes % 60) as u8,
            (in_day % MILLISECONDS_PER_MINUTE) as u16,
        )
    }
}

impl fmt::Display for InlineDate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = self.year_month_day();
        write!(f, "{year:04}-{month:02}-{day:02}{}", self.zone)
    }
}

impl fmt::Display for InlineDateTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = self.year_month_day();
        let (hours, minutes, milliseconds) = self.hours_minutes_milliseconds();
        let (seconds, fraction) = (milliseconds / 1000, milliseconds % 1000);
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}"
        )?;
        match self.fraction_digits {
            0 => {}
            1 => write!(f, ".{}", fraction / 100)?,
            2 => write!(f, ".{:02}", fraction / 10)?,
            _ => write!(f, ".{fraction:03}")?,
        }
        write!(f, "{}", self.zone)
    }
}

/// How the local day of ids that are alike (the same kind and zone) is read off their bits.
#[derive(Clone, Copy, Debug)]
pub struct LocalDays {
    is_date: bool,
    shift: u32,
    /// From what stands above `shift` to the local clock.
    bias: i64,
}

impl LocalDays {
    /// As it is for this id and all that are alike by its [`ValueOrder`](super::ValueOrder);
    /// nothing if it is no date.
    pub fn of(id: TermId) -> Option<Self> {
        match id.kind() {
            TermKind::Date => Some(Self {
                is_date: true,
                shift: ZONE_BITS,
                bias: TimeZone::from_code(id.payload()).offset_minutes() - DATE_BIAS_MINUTES,
            }),
            TermKind::DateTime => {
                let zone = TimeZone::from_code(id.payload() >> FRACTION_DIGITS_BITS);
                Some(Self {
                    is_date: false,
                    shift: ZONE_BITS + FRACTION_DIGITS_BITS,
                    bias: zone.offset_minutes() * MILLISECONDS_PER_MINUTE,
                })
            }
            TermKind::Special
            | TermKind::BlankNode
            | TermKind::Iri
            | TermKind::Literal
            | TermKind::TripleTerm
            | TermKind::Boolean
            | TermKind::Integer
            | TermKind::Decimal
            | TermKind::Double
            | TermKind::DoublePlain
            | TermKind::ShortString
            | TermKind::Delta
            | TermKind::QueryLocal => None,
        }
    }

    /// Days since 0000-01-01, local.
    #[inline]
    pub fn day(&self, id: TermId) -> i64 {
        let local = (id.payload() >> self.shift) as i64 + self.bias;
        match self.is_date {
            true => local.div_euclid(MINUTES_PER_DAY),
            false => local.div_euclid(MINUTES_PER_DAY * MILLISECONDS_PER_MINUTE),
        }
    }
}

pub(super) fn encode_date(lexical: &str) -> Option<u64> {
    let (day, rest) = parse_day(lexical)?;
    let zone = TimeZone::parse(rest)?;
    let minutes = InlineDate { day, zone }.start_minutes() + DATE_BIAS_MINUTES;
    debug_assert!(minutes >= 0);
    Some(((minutes as u64) << ZONE_BITS) | zone.code())
}

#[inline]
pub(super) fn decode_date(payload: u64) -> InlineDate {
    let zone = TimeZone::from_code(payload);
    let local = (payload >> ZONE_BITS) as i64 - DATE_BIAS_MINUTES + zone.offset_minutes();
    InlineDate {
        day: local.div_euclid(MINUTES_PER_DAY),
        zone,
    }
}

pub(super) fn encode_date_time(lexical: &str) -> Option<u64> {
    let (day, rest) = parse_day(lexical)?;
    let bytes = rest.as_bytes();
    if bytes.len() < 9 || bytes[0] != b'T' || bytes[3] != b':' || bytes[6] != b':' {
        return None;
    }
    let hours = two_digits(&bytes[1..3])?;
    let minutes = two_digits(&bytes[4..6])?;
    let seconds = two_digits(&bytes[7..9])?;
    if hours > 23 || minutes > 59 || seconds > 59 {
        return None;
    }
    let (fraction_ms, fraction_digits, zone_at) = parse_fraction(bytes)?;
    let zone = TimeZone::parse(rest.get(zone_at..)?)?;
    let local_minutes = day * MINUTES_PER_DAY + hours * 60 + minutes - zone.offset_minutes();
    let instant_ms = local_minutes * MILLISECONDS_PER_MINUTE + seconds * 1000 + fraction_ms;
    if !(0..INSTANT_LIMIT_MILLISECONDS).contains(&instant_ms) {
        return None;
    }
    Some(
        ((instant_ms as u64) << (ZONE_BITS + FRACTION_DIGITS_BITS))
            | (zone.code() << FRACTION_DIGITS_BITS)
            | fraction_digits,
    )
}

#[inline]
pub(super) fn decode_date_time(payload: u64) -> InlineDateTime {
    InlineDateTime {
        instant_ms: (payload >> (ZONE_BITS + FRACTION_DIGITS_BITS)) as i64,
        zone: TimeZone::from_code(payload >> FRACTION_DIGITS_BITS),
        fraction_digits: (payload & 3) as u8,
    }
}

/// The fraction after the seconds at byte 9: milliseconds, digits, where the zone begins.
fn parse_fraction(bytes: &[u8]) -> Option<(i64, u64, usize)> {
    if bytes.get(9) != Some(&b'.') {
        return Some((0, 0, 9));
    }
    let digits = bytes[10..]
        .iter()
        .take_while(|b| b.is_ascii_digit())
        .count();
    if digits == 0 || digits > 3 {
        return None;
    }
    let mut milliseconds = 0;
    for at in 0..3 {
        let digit = if at < digits {
            bytes[10 + at] - b'0'
        } else {
            0
        };
        milliseconds = milliseconds * 10 + i64::from(digit);
    }
    Some((milliseconds, digits as u64, 10 + digits))
}

/// `YYYY-MM-DD` at the beginning, a day that exists; and what follows.
fn parse_day(lexical: &str) -> Option<(i64, &str)> {
    let bytes = lexical.as_bytes();
    if bytes.len() < 10 || bytes[4] != b'-' || bytes[7] != b'-' {
        return None;
    }
    let year = two_digits(&bytes[0..2])? * 100 + two_digits(&bytes[2..4])?;
    let month = two_digits(&bytes[5..7])?;
    let day = two_digits(&bytes[8..10])?;
    if !(1..=12).contains(&month) || day < 1 {
        return None;
    }
    let days = days_from_civil(year, month, day);
    let is_real = civil_from_days(days) == (year, month as u8, day as u8);
    is_real.then(|| (days, &lexical[10..]))
}

fn two_digits(bytes: &[u8]) -> Option<i64> {
    let (tens, ones) = (bytes[0].wrapping_sub(b'0'), bytes[1].wrapping_sub(b'0'));
    (tens <= 9 && ones <= 9).then(|| i64::from(tens) * 10 + i64::from(ones))
}

/// Days from 0000-01-01, where the calendar counts from, to 1970-01-01.
pub const DAYS_TO_1970: i64 = 719_528;

/// Days from 0000-01-01 to a civil date; Howard Hinnant, "chrono-Compatible Low-Level Date
/// Algorithms", with the epoch moved to the year 0.
pub fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let shifted_year = if month <= 2 { year - 1 } else { year };
    let era = shifted_year.div_euclid(400);
    let year_of_era = shifted_year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era + 60
}

/// The inverse of [`days_from_civil`]: year, month (1-12) and day (1-31).
pub fn civil_from_days(days: i64) -> (i64, u8, u8) {
    let shifted = days - 60;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_shifted + 2) / 5 + 1;
    let month = if month_shifted < 10 {
        month_shifted + 3
    } else {
        month_shifted - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month as u8, day as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_count_up_one_by_one_from_the_year_0() {
        assert_eq!(days_from_civil(0, 1, 1), 0);
        let mut expected = (0, 1u8, 1u8);
        for days in 0..800_000 {
            let (year, month, day) = civil_from_days(days);
            assert_eq!((year, month, day), expected);
            assert_eq!(
                days_from_civil(year, i64::from(month), i64::from(day)),
                days
            );
            let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let last = match month {
                2 if is_leap => 29,
                2 => 28,
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            expected = match (month, day == last) {
                (12, true) => (year + 1, 1, 1),
                (_, true) => (year, month + 1, 1),
                (_, false) => (year, month, day + 1),
            };
        }
    }
}
