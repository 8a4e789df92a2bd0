//! Days and moments in UTC, as the log writes them: `2026-11-24`, `2026-11-24T04:37:25.120Z`.

use std::fmt;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

const DAY_MS: i64 = 24 * 60 * 60 * 1000;
/// The days that can be written: 1970-01-01 to 9999-12-31.
const DAYS_MAX: i64 = 2_932_896;

/// A moment, to the millisecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time {
    /// Milliseconds since 1970.
    ms: i64,
}

/// A day of UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day {
    /// Days since 1970.
    days: i64,
}

impl Time {
    /// The moment so many milliseconds after the beginning of 1970; the nearest one that can be
    /// written.
    pub fn from_ms(ms: i64) -> Self {
        Self {
            ms: ms.clamp(0, (DAYS_MAX + 1) * DAY_MS - 1),
        }
    }

    /// Now.
    pub fn now() -> Self {
        Self::from(SystemTime::now())
    }

    /// The day that it is in.
    pub fn day(self) -> Day {
        Day {
            days: self.ms.div_euclid(DAY_MS),
        }
    }
}

impl From<SystemTime> for Time {
    fn from(time: SystemTime) -> Self {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self::from_ms(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of_day = self.ms.rem_euclid(DAY_MS);
        let (seconds, ms) = (of_day / 1000, of_day % 1000);
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        write!(
            f,
            "{}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z",
            self.day()
        )
    }
}

/// A text that is no day or no moment as the log writes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotATime;

impl fmt::Display for NotATime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a day is written as 2026-11-24, and is one of the calendar")
    }
}

impl std::error::Error for NotATime {}

impl FromStr for Time {
    type Err = NotATime;

    fn from_str(text: &str) -> Result<Self, NotATime> {
        let bytes = text.as_bytes();
        let marks = [(10, b'T'), (13, b':'), (16, b':'), (19, b'.'), (23, b'Z')];
        if bytes.len() != 24 || marks.iter().any(|&(at, mark)| bytes[at] != mark) {
            return Err(NotATime);
        }
        let day: Day = text.get(..10).ok_or(NotATime)?.parse()?;
        let hour = number(text, 11, 13)?;
        let minute = number(text, 14, 16)?;
        let second = number(text, 17, 19)?;
        if hour > 23 || minute > 59 || second > 59 {
            return Err(NotATime);
        }
        let seconds = (hour * 60 + minute) * 60 + second;
        let ms = day.days * DAY_MS + seconds * 1000 + number(text, 20, 23)?;
        Ok(Self { ms })
    }
}

/// The digits of a part of a text.
fn number(text: &str, from: usize, to: usize) -> Result<i64, NotATime> {
    let digits = text.get(from..to).ok_or(NotATime)?;
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(NotATime);
    }
    digits.parse().map_err(|_| NotATime)
}

impl Day {
    /// The day after; itself at the end of all days.
    #[must_use]
    pub fn next(self) -> Self {
        Self {
            days: (self.days + 1).min(DAYS_MAX),
        }
    }

    /// Days from `earlier` to this one.
    pub fn since(self, earlier: Self) -> i64 {
        self.days - earlier.days
    }

    /// Year, month and day of the month; civil from days:
    /// <https://howardhinnant.github.io/date_algorithms.html>.
    pub fn of_calendar(self) -> (i64, i64, i64) {
        let shifted = self.days + 719_468;
        let era = shifted.div_euclid(146_097);
        let day_of_era = shifted.rem_euclid(146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = match month_from_march {
            0..10 => month_from_march + 3,
            _ => month_from_march - 9,
        };
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        (year, month, day)
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = self.of_calendar();
        write!(f, "{year:04}-{month:02}-{day:02}")
    }
}

impl FromStr for Day {
    type Err = NotATime;

    fn from_str(text: &str) -> Result<Self, NotATime> {
        let bytes = text.as_bytes();
        if bytes.len() != 10 || bytes[4] != b'-' || bytes[7] != b'-' {
            return Err(NotATime);
        }
        let (year, month, day) = (
            number(text, 0, 4)?,
            number(text, 5, 7)?,
            number(text, 8, 10)?,
        );
        if !(1..=12).contains(&month) {
            return Err(NotATime);
        }
        let march_year = year - i64::from(month <= 2);
        let era = march_year.div_euclid(400);
        let year_of_era = march_year.rem_euclid(400);
        let month_from_march = (month + 9) % 12;
        let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        let found = Self {
            days: era * 146_097 + day_of_era - 719_468,
        };
        // The thirtieth of February would come back as another one.
        let is_real = (0..=DAYS_MAX).contains(&found.days) && found.to_string() == text;
        is_real.then_some(found).ok_or(NotATime)
    }
}

/// Texts in JSON.
macro_rules! as_text {
    ($type:ty) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}
as_text!(Time);
as_text!(Day);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_and_read_back() {
        let cases = [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_795_258_803_250, "2026-11-21T11:00:03.250Z"),
            (i64::MAX, "9999-12-31T23:59:59.999Z"),
        ];
        for (ms, text) in cases {
            let time = Time::from_ms(ms);
            assert_eq!(time.to_string(), text);
            assert_eq!(text.parse(), Ok(time));
            assert_eq!(time.day().to_string(), text[..10]);
        }
    }

    #[test]
    fn every_day_of_four_centuries_is_followed_by_the_next() {
        let mut day: Day = "1970-01-01".parse().unwrap();
        for _ in 0..146_097 {
            assert_eq!(day.to_string().parse(), Ok(day));
            let next = day.next();
            assert!(next.to_string() > day.to_string());
            assert_eq!(next.since(day), 1);
            day = next;
        }
        assert_eq!(day.to_string(), "2370-01-01");
    }

    #[test]
    fn what_is_no_day_is_refused() {
        for text in [
            "",
            "2026-02-30",
            "2026-13-01",
            "2026-1-1",
            "+026-01-01",
            "1969-12-31",
            "2026-01-0é",
        ] {
            assert!(text.parse::<Day>().is_err(), "{text}");
        }
        assert!("2026-01-01T24:00:00.000Z".parse::<Time>().is_err());
        assert!("2026-01-01T00:00:00+00:0".parse::<Time>().is_err());
    }
}
