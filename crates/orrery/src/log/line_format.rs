//! The text format of log lines, for people.
//!
//! ```text
//! 2026-11-22T20:37:31.123456Z  INFO method=GET path=/sparql status=200 ms=0.213 rows=1 query="ASK { }" outcome="complete"
//! ```
//!
//! `tracing_subscriber`'s own format, which other lines have, took a tenth of the instructions of a
//! point query over HTTP. Request lines are written here, the same way except for colours, for less
//! than half of that.

use std::fmt::{self, Debug, Write};
use std::time::SystemTime;

use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::{Format, Full, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use super::time::push_time;

/// The target of request lines.
pub(super) const ACCESS: &str = "orrery::access";

/// Formats request lines itself, all others as `tracing_subscriber` does.
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

/// Writes fields as `name=value`. Writing into a string cannot fail.
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
        // A path may hold any character above ASCII: some steer a terminal, end lines or look like
        // blanks.
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

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

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
}
