//! Literals in SPARQL and N-Triples syntax, and times in UTC.

use orrery_term::inline::{DAYS_TO_1970, civil_from_days, days_from_civil};

const XSD: &str = "http://www.w3.org/2001/XMLSchema#";

/// The milliseconds of a day.
pub const DAY_MS: i64 = 86_400_000;

/// A plain string.
pub fn string(text: &str) -> String {
    let mut literal = String::with_capacity(text.len() + 2);
    literal.push('"');
    for letter in text.chars() {
        match letter {
            '"' => literal.push_str("\\\""),
            '\\' => literal.push_str("\\\\"),
            '\n' => literal.push_str("\\n"),
            '\r' => literal.push_str("\\r"),
            letter => literal.push(letter),
        }
    }
    literal.push('"');
    literal
}

/// A point in time, in Greenwich.
pub fn date_time(ms: i64) -> String {
    let (days, rest) = (ms.div_euclid(DAY_MS), ms.rem_euclid(DAY_MS));
    let (year, month, day) = civil(days);
    let (seconds, fraction) = (rest / 1_000, rest % 1_000);
    format!(
        "\"{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{fraction:03}Z\"^^<{XSD}dateTime>",
        seconds / 3_600,
        seconds / 60 % 60,
        seconds % 60
    )
}

/// The day of a point in time, in Greenwich.
pub fn date(ms: i64) -> String {
    let (year, month, day) = civil(ms.div_euclid(DAY_MS));
    format!("\"{year:04}-{month:02}-{day:02}\"^^<{XSD}date>")
}

/// Milliseconds since 1970 of a date or a point in time as SPARQL writes it; without a time zone it
/// is Greenwich's.
pub fn milliseconds(text: &str) -> Option<i64> {
    let (date, time) = text.split_once('T').unwrap_or((text, "00:00:00"));
    let mut parts = date.strip_suffix('Z').unwrap_or(date).splitn(3, '-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    let days = days_of(
        year.parse().ok()?,
        month.parse().ok()?,
        day.get(..2)?.parse().ok()?,
    );
    let zone_at = time.find(['Z', '+', '-']).unwrap_or(time.len());
    let (clock, zone) = time.split_at(zone_at);
    let mut parts = clock.splitn(3, ':');
    let (hours, minutes): (i64, i64) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let seconds = parts.next()?;
    let (seconds, fraction) = seconds.split_once('.').unwrap_or((seconds, ""));
    let seconds: i64 = seconds.parse().ok()?;
    let thousandths: String = fraction.chars().chain("000".chars()).take(3).collect();
    let thousandths: i64 = thousandths.parse().ok()?;
    let offset_minutes = match zone {
        "" | "Z" => 0,
        zone => {
            let (sign, rest) = zone.split_at(1);
            let (hours, minutes) = rest.split_once(':')?;
            let offset = hours.parse::<i64>().ok()? * 60 + minutes.parse::<i64>().ok()?;
            if sign == "-" { -offset } else { offset }
        }
    };
    let minutes = hours * 60 + minutes - offset_minutes;
    Some(days * DAY_MS + minutes * 60_000 + seconds * 1_000 + thousandths)
}

/// Year, month and day of a day since 1970.
pub fn civil(days: i64) -> (i64, i64, i64) {
    let (year, month, day) = civil_from_days(days + DAYS_TO_1970);
    (year, month.into(), day.into())
}

/// The day since 1970 of a date.
pub fn days_of(year: i64, month: i64, day: i64) -> i64 {
    days_from_civil(year, month, day) - DAYS_TO_1970
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_come_back_as_they_were() {
        for ms in [
            0,
            1_347_528_970_589,
            -1,
            951_782_400_000,
            4_107_542_399_999,
            -86_400_001,
        ] {
            let written = date_time(ms);
            let text = written.trim_start_matches('"').split('"').next().unwrap();
            assert_eq!(milliseconds(text), Some(ms), "{text}");
        }
    }

    #[test]
    fn times_are_read_with_and_without_fraction_and_zone() {
        let day = 1_266_105_600_000;
        assert_eq!(milliseconds("2010-02-14"), Some(day));
        assert_eq!(milliseconds("2010-02-14T00:00:01"), Some(day + 1_000));
        assert_eq!(milliseconds("2010-02-14T00:00:01.5Z"), Some(day + 1_500));
        assert_eq!(
            milliseconds("2010-02-14T01:00:00.25+01:00"),
            Some(day + 250)
        );
        assert_eq!(milliseconds("2010-02-14T01"), None);
        assert_eq!(milliseconds("yesterday"), None);
    }

    #[test]
    fn a_date_is_its_day() {
        assert!(date(556_675_200_000).starts_with("\"1987-08-23\""));
        assert!(date(-1).starts_with("\"1969-12-31\""));
    }

    #[test]
    fn texts_are_escaped() {
        assert_eq!(string("a \"b\" \\ \n"), r#""a \"b\" \\ \n""#);
    }
}
