//! The parser of durations as people write them: one grammar for `timeout=` and for command line
//! options.
//!
//! ```text
//! 30  0.5  30s      seconds
//! 500ms             milliseconds
//! 2m  2min          minutes
//! 1h                hours
//! 1d                days
//! ```

use std::time::Duration;

/// A text that is no length of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected a time such as 500ms, 30s, 0.5 (seconds) or 2m, and more than nothing")]
pub struct NotATime;

/// Reads a length of time, which is never nothing.
pub fn parse_time(text: &str) -> Result<Duration, NotATime> {
    let trimmed = text.trim();
    let unit_at = trimmed
        .find(|character: char| !character.is_ascii_digit() && character != '.')
        .unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(unit_at);
    let seconds_per_unit = match unit.trim_start() {
        "" | "s" => 1.0,
        "ms" => 0.001,
        "m" | "min" => 60.0,
        "h" => 3_600.0,
        "d" => 86_400.0,
        _ => return Err(NotATime),
    };
    let number: f64 = number.parse().map_err(|_| NotATime)?;
    let time = Duration::try_from_secs_f64(number * seconds_per_unit).map_err(|_| NotATime)?;
    if time.is_zero() {
        return Err(NotATime);
    }
    Ok(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_seconds_or_have_a_unit() {
        for (text, milliseconds) in [
            ("30", 30_000),
            ("0.5", 500),
            ("1.5s", 1_500),
            (" 30 s ", 30_000),
            ("500ms", 500),
            ("2m", 120_000),
            ("2min", 120_000),
            ("1h", 3_600_000),
            ("0.5d", 43_200_000),
        ] {
            let expected = Duration::from_millis(milliseconds);
            assert_eq!(parse_time(text), Ok(expected), "{text}");
        }
        for text in [
            "", "0", "0ms", "-1", "-1s", "s", "soon", "1w", "1e3", "1e400", "NaN", "inf", ".",
            "1.2.3",
        ] {
            assert_eq!(parse_time(text), Err(NotATime), "{text}");
        }
        let long = "9".repeat(400);
        assert_eq!(parse_time(&long), Err(NotATime));
    }
}
