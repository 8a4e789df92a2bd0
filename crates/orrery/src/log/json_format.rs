//! The JSON format of log lines, for programs: one object per line.
//!
//! ```json
//! {"time":"2026-11-22T20:37:31.123456Z","level":"INFO","target":"orrery::access","message":"",
//!  "fields":{"method":"GET","path":"/sparql","status":200,"ms":0.213}}
//! ```
//!
//! Quotes, line ends and characters that steer a terminal are escaped, even where JSON does not
//! require it: programs differ in what they take for the end of a line.

use std::fmt::{self, Debug, Write};
use std::time::SystemTime;

use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use super::time::push_time;

/// The target of events from the crate `log`; their real target is in a field.
const OF_LIBRARIES: &str = "log";
/// Prefix of the fields about such events.
const OF_LIBRARIES_PREFIX: &str = "log.";

/// The JSON format of events.
pub(super) struct JsonFormat;

impl<S, F> FormatEvent<S, F> for JsonFormat
where
    S: Subscriber + for<'s> LookupSpan<'s>,
    F: for<'w> FormatFields<'w> + 'static,
{
    fn format_event(
        &self,
        _context: &FmtContext<'_, S, F>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let metadata = event.metadata();
        let mut parts = Parts::default();
        event.record(&mut parts);
        let target = match metadata.target() {
            OF_LIBRARIES => parts.target.as_deref().unwrap_or(OF_LIBRARIES),
            target => target,
        };
        let level = metadata.level().as_str();
        let line = line(level, target, &parts.message, &parts.fields);
        writer.write_str(&line)
    }
}

/// Makes a line; `fields` are already formatted, without braces.
pub(super) fn line(level: &str, target: &str, message: &str, fields: &str) -> String {
    let mut line = String::with_capacity(512);
    line.push_str("{\"time\":\"");
    push_time(&mut line, SystemTime::now());
    line.push_str("\",\"level\":\"");
    line.push_str(level);
    line.push_str("\",\"target\":");
    push_string(&mut line, target);
    line.push_str(",\"message\":");
    push_string(&mut line, message);
    line.push_str(",\"fields\":{");
    line.push_str(fields);
    line.push_str("}}\n");
    line
}

/// The parts of an event.
#[derive(Default)]
struct Parts {
    message: String,
    /// The formatted fields, without braces.
    fields: String,
    /// The real target of a library's event.
    target: Option<String>,
}

impl Parts {
    /// Begins a field; false if its value goes elsewhere.
    fn begins(&mut self, field: &Field) -> bool {
        if field.name().starts_with(OF_LIBRARIES_PREFIX) {
            return false;
        }
        if !self.fields.is_empty() {
            self.fields.push(',');
        }
        push_string(&mut self.fields, field.name());
        self.fields.push(':');
        true
    }

    fn plain(&mut self, field: &Field, value: impl fmt::Display) {
        if self.begins(field) {
            // Writing into a string cannot fail.
            _ = write!(self.fields, "{value}");
        }
    }
}

impl Visit for Parts {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.record_str(field, &format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => self.message.push_str(value),
            "log.target" => self.target = Some(value.to_owned()),
            _ => {
                if self.begins(field) {
                    push_string(&mut self.fields, value);
                }
            }
        }
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        match value.is_finite() {
            true => self.plain(field, value),
            // JSON has no such numbers.
            false => self.plain(field, "null"),
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.plain(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.plain(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.plain(field, value);
    }
}

/// Writes a JSON string (RFC 8259, 7).
fn push_string(line: &mut String, text: &str) {
    line.push('"');
    for character in text.chars() {
        match character {
            '"' => line.push_str("\\\""),
            '\\' => line.push_str("\\\\"),
            '\n' => line.push_str("\\n"),
            '\r' => line.push_str("\\r"),
            '\t' => line.push_str("\\t"),
            // Also DEL, the C1 controls of ISO 6429, and Unicode's separators; all have four
            // digits.
            character if character.is_control() || matches!(character, '\u{2028}' | '\u{2029}') => {
                _ = write!(line, "\\u{:04x}", u32::from(character));
            }
            character => line.push(character),
        }
    }
    line.push('"');
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use serde_json::{Value, json};
    use tracing_subscriber::fmt::MakeWriter;

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl<'w> MakeWriter<'w> for Lines {
        type Writer = Self;

        fn make_writer(&'w self) -> Self {
            self.clone()
        }
    }

    fn written(log: impl FnOnce()) -> String {
        let lines = Lines::default();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_writer(lines.clone())
            .event_format(JsonFormat);
        tracing::subscriber::with_default(subscriber.finish(), log);
        String::from_utf8(lines.0.lock().unwrap().clone()).unwrap()
    }

    #[test]
    fn a_line_is_an_object_with_the_fields_in_their_types() {
        let line = written(|| {
            tracing::warn!(
                target: "orrery::access",
                method = %"GET", status = 200_u16, ms = 0.25, nothing = f64::NAN, ok = true, less = -3, "a {}", "message"
            );
        });
        let mut value: Value = serde_json::from_str(&line).unwrap();
        let time = value.as_object_mut().unwrap().remove("time").unwrap();
        assert_eq!(
            time.as_str().unwrap().len(),
            "2026-11-22T20:37:31.123456Z".len()
        );
        let fields = json!({"method": "GET", "status": 200, "ms": 0.25, "nothing": null, "ok": true, "less": -3});
        assert_eq!(
            value,
            json!({"level": "WARN", "target": "orrery::access", "message": "a message", "fields": fields})
        );
    }

    #[test]
    fn no_text_ends_a_line_or_steers_a_terminal() {
        let hostile =
            "a\nb\r\n{\"level\":\"FAKE\"}\u{1b}[2J\u{7f}\u{85}\u{9b}2J\u{2028}\u{2029}\0\"\\ä";
        let text = written(|| {
            tracing::info!(query = hostile, path = %hostile, debug = ?hostile, "{hostile}");
        });
        let line = text.strip_suffix('\n').unwrap();
        assert!(
            !line
                .chars()
                .any(|it| it.is_control() || matches!(it, '\u{2028}' | '\u{2029}')),
            "{line:?}"
        );
        let value: Value = serde_json::from_str(line).unwrap();
        assert_eq!(value["message"], hostile);
        assert_eq!(value["fields"]["query"], hostile);
        assert_eq!(value["fields"]["path"], hostile);
        assert_eq!(value["level"], "INFO");
    }
}
