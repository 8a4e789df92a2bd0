//! Timestamps of log lines.

use std::time::{SystemTime, UNIX_EPOCH};

use orrery_query_log::Time;

/// Appends a time in UTC, by RFC 3339, with microseconds.
pub(super) fn push_time(line: &mut String, time: SystemTime) {
    // A clock before 1970 is wrong, and shown as 1970.
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = since.as_secs();
    let (year, month, day) = Time::from(time).day().of_calendar();
    push_digits(line, year.unsigned_abs(), 4);
    for part in [month, day] {
        line.push('-');
        push_digits(line, part.unsigned_abs(), 2);
    }
    for (before, value) in [
        ('T', seconds / 3_600 % 24),
        (':', seconds / 60 % 60),
        (':', seconds % 60),
    ] {
        line.push(before);
        push_digits(line, value, 2);
    }
    line.push('.');
    push_digits(line, u64::from(since.subsec_micros()), 6);
    line.push('Z');
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
