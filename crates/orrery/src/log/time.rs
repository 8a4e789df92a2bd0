//! Times of the log's lines.

use std::time::{SystemTime, UNIX_EPOCH};

/// In UTC, by RFC 3339, with microseconds.
pub(super) fn push_time(line: &mut String, time: SystemTime) {
    // A clock before 1970 is none.
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = since.as_secs();
    let (year, month, day) = date(seconds / 86_400);
    let of_day = seconds % 86_400;
    push_digits(line, year, 4);
    for (before, value) in [('-', month), ('-', day), ('T', of_day / 3_600)] {
        line.push(before);
        push_digits(line, value, 2);
    }
    for value in [of_day / 60 % 60, of_day % 60] {
        line.push(':');
        push_digits(line, value, 2);
    }
    line.push('.');
    push_digits(line, u64::from(since.subsec_micros()), 6);
    line.push('Z');
}

/// Year, month and day of a number of days since 1970; "days to civil" of H. Hinnant, "chrono-Compatible Low-Level Date Algorithms".
fn date(days: u64) -> (u64, u64, u64) {
    const DAYS_OF_ERA: u64 = 146_097;
    // From the first of March of the year 0.
    let days = days + 719_468;
    let (era, day_of_era) = (days / DAYS_OF_ERA, days % DAYS_OF_ERA);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = match month_from_march {
        0..10 => month_from_march + 3,
        _ => month_from_march - 9,
    };
    let year = 400 * era + year_of_era + u64::from(month <= 2);
    (year, month, day)
}

fn push_digits(line: &mut String, value: u64, digits: u32) {
    for place in (0..digits).rev() {
        let digit = value / 10_u64.pow(place) % 10;
        line.push(char::from(b'0' + u8::try_from(digit).unwrap_or_default()));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        let shown = |seconds: u64, micros: u32| {
            let mut line = String::new();
            push_time(
                &mut line,
                UNIX_EPOCH + Duration::new(seconds, micros * 1_000),
            );
            line
        };
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00.000007Z"),
            (951_782_399, "2000-02-28T23:59:59.000007Z"),
            (951_782_400, "2000-02-29T00:00:00.000007Z"),
            (951_868_800, "2000-03-01T00:00:00.000007Z"),
            (1_798_761_599, "2026-12-31T23:59:59.000007Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000007Z"),
        ] {
            assert_eq!(shown(seconds, 7), expected);
        }
    }
}
