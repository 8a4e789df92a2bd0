//! How a line of the log looks.
//!
//! ```text
//! 2026-11-22T20:37:31.123456Z  INFO method=GET path=/sparql status=200 ms=0.213 rows=1 query="ASK { }" outcome="complete"
//! ```
//!
//! `tracing_subscriber`'s own format, which other lines have, was a tenth of the instructions of a point query over HTTP. Lines of requests are
//! written here, the same way but for colours, for less than half of that.

use std::fmt::{self, Debug, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::{Format, Full, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// The target of the lines of requests.
pub(super) const ACCESS: &str = "orrery::access";

/// Lines of requests as here, all others as `tracing_subscriber` has them.
pub(super) struct LineFormat(Format<Full>);

impl LineFormat {
    pub(super) fn new(has_colours: bool) -> Self {
        Self(
            tracing_subscriber::fmt::format()
                .with_target(false)
                .with_ansi(has_colours),
        )
    }
}

impl<S, F> FormatEvent<S, F> for LineFormat
where
    S: Subscriber + for<'s> LookupSpan<'s>,
    F: for<'w> FormatFields<'w> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, F>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        if event.metadata().target() != ACCESS || writer.has_ansi_escapes() {
            return self.0.format_event(context, writer, event);
        }
        let mut line = String::with_capacity(512);
        push_time(&mut line, SystemTime::now());
        _ = write!(line, " {:>5}", event.metadata().level().as_str());
        event.record(&mut Fields(&mut line));
        line.push('\n');
        writer.write_str(&line)
    }
}

/// Writes fields as `name=value`. A string has no error to tell of.
struct Fields<'l>(&'l mut String);

impl Fields<'_> {
    fn name(&mut self, field: &Field) {
        self.0.push(' ');
        self.0.push_str(field.name());
        self.0.push('=');
    }
}

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.name(field);
        let start = self.0.len();
        _ = write!(self.0, "{value:?}");
        // A path may hold any character above ASCII: ones that steer a terminal, end lines or look like blanks.
        if !self.0.as_bytes()[start..]
            .iter()
            .all(|byte| matches!(byte, b' '..=b'~'))
        {
            let written = self.0.split_off(start);
            self.0.extend(written.chars().flat_map(char::escape_debug));
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        let is_plain = |byte: u8| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\';
        if !value.bytes().all(is_plain) {
            self.name(field);
            _ = write!(self.0, "{value:?}");
            return;
        }
        self.name(field);
        self.0.push('"');
        self.0.push_str(value);
        self.0.push('"');
    }
}

/// In UTC, by RFC 3339, with microseconds.
fn push_time(line: &mut String, time: SystemTime) {
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
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use tracing_subscriber::fmt::MakeWriter;

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl<'w> MakeWriter<'w> for Lines {
        type Writer = Self;

        fn make_writer(&'w self) -> Self {
            self.clone()
        }
    }

    /// The line of a request, without its time.
    fn line(is_ours: bool, query: &str) -> String {
        let lines = Lines::default();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_writer(lines.clone());
        let log = || {
            tracing::info!(
                target: ACCESS,
                method = %"GET",
                status = 200_u16,
                ms = 0.25,
                rows = 3_u64,
                query,
                outcome = "complete",
            );
        };
        match is_ours {
            true => {
                let subscriber = subscriber.event_format(LineFormat::new(false));
                tracing::subscriber::with_default(subscriber.finish(), log);
            }
            false => {
                let subscriber = subscriber.with_target(false);
                tracing::subscriber::with_default(subscriber.finish(), log);
            }
        }
        let line = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        let (time, rest) = line.split_once(' ').unwrap();
        assert_eq!(time.len(), "2026-11-22T20:37:31.123456Z".len(), "{line}");
        rest.to_owned()
    }

    #[test]
    fn lines_of_requests_are_as_those_of_the_library() {
        for query in [
            "",
            "ASK { ?a ?b 'c' }",
            "ASK { ?a ?b \"c\\\" }",
            "ä 'ö'\u{7f}",
        ] {
            assert_eq!(line(true, query), line(false, query));
        }
        assert_eq!(
            line(true, "ASK { }"),
            " INFO method=GET status=200 ms=0.25 rows=3 query=\"ASK { }\" outcome=\"complete\"\n"
        );
    }

    #[test]
    fn no_path_steers_a_terminal_or_looks_like_other_fields() {
        let lines = Lines::default();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_writer(lines.clone())
            .event_format(LineFormat::new(false));
        tracing::subscriber::with_default(subscriber.finish(), || {
            let path = "/a\u{9b}2J\u{85}\u{a0}status=200/ä";
            tracing::info!(target: ACCESS, path = %path, rows = 3_u64);
        });
        let line = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        let shown = r"path=/a\u{9b}2J\u{85}\u{a0}status=200/ä rows=3";
        assert!(line.trim_end().ends_with(shown), "{line}");
    }

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
