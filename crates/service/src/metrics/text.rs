//! A writer of Prometheus' text format, version 0.0.4
//! (<https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format>).
//!
//! ```text
//! # HELP orrery_queries_total Queries by kind and outcome.
//! # TYPE orrery_queries_total counter
//! orrery_queries_total{kind="select",outcome="ok"} 17
//! ```

use orrery_storage::DurationCounts;
use std::fmt::{Display, Write as _};

/// The type of a metric family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// Only grows, and begins with 0 when the process does.
    Counter,
    /// A value that goes up and down.
    Gauge,
    /// Counts of values below bounds.
    Histogram,
}

/// A page being written. Names and labels are the program's own; label values are escaped.
#[derive(Debug, Default)]
pub struct Page {
    text: String,
    /// Name of the samples that follow.
    name: &'static str,
}

impl Page {
    /// Begins a family; its samples follow.
    pub fn family(&mut self, name: &'static str, of_type: Type, help: &str) -> &mut Self {
        let of_type = match of_type {
            Type::Counter => "counter",
            Type::Gauge => "gauge",
            Type::Histogram => "histogram",
        };
        self.name = name;
        // Writing into a string cannot fail.
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {of_type}");
        self
    }

    /// A sample without labels.
    pub fn value(&mut self, value: impl Display) -> &mut Self {
        self.sample(&[], value)
    }

    /// A sample.
    pub fn sample(&mut self, labels: &[(&str, &str)], value: impl Display) -> &mut Self {
        self.line("", labels, None, value);
        self
    }

    /// The samples of a histogram, in seconds.
    pub fn durations(&mut self, labels: &[(&str, &str)], counts: &DurationCounts) -> &mut Self {
        let bounds = counts
            .bounds_us
            .iter()
            .map(|&us| (us as f64 / 1e6).to_string());
        let bounds = bounds.chain(["+Inf".to_owned()]);
        let mut until = 0;
        for (bound, count) in bounds.zip(&counts.counts) {
            until += count;
            self.line("_bucket", labels, Some(&bound), until);
        }
        self.line("_sum", labels, None, counts.sum_ns as f64 / 1e9);
        self.line("_count", labels, None, until);
        self
    }

    fn line(
        &mut self,
        suffix: &str,
        labels: &[(&str, &str)],
        bound: Option<&str>,
        value: impl Display,
    ) {
        self.text.push_str(self.name);
        self.text.push_str(suffix);
        let bound = bound.map(|bound| ("le", bound));
        let mut before = '{';
        for &(name, value) in labels.iter().chain(&bound) {
            self.text.push(before);
            self.text.push_str(name);
            self.text.push_str("=\"");
            for character in value.chars() {
                match character {
                    '\\' => self.text.push_str("\\\\"),
                    '"' => self.text.push_str("\\\""),
                    '\n' => self.text.push_str("\\n"),
                    character => self.text.push(character),
                }
            }
            self.text.push('"');
            before = ',';
        }
        if before == ',' {
            self.text.push('}');
        }
        let _ = writeln!(self.text, " {value}");
    }

    /// The page's text.
    pub fn into_text(self) -> String {
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use orrery_storage::Durations;
    use std::time::Duration;

    #[test]
    fn values_of_labels_are_escaped_and_histograms_are_cumulative() {
        let mut page = Page::default();
        let labels = [("a", "back\\slash \"quote\"\nline"), ("b", "ä")];
        page.family("x_total", Type::Counter, "Things.")
            .sample(&labels, 3);
        let durations = Durations::new(&[100, 2_500_000]);
        for us in [50, 100, 2_000_000, 3_000_000] {
            durations.add(Duration::from_micros(us));
        }
        page.family("y_seconds", Type::Histogram, "Time.")
            .durations(&[("k", "v")], &durations.counts());
        assert_eq!(
            page.into_text(),
            "# HELP x_total Things.\n# TYPE x_total counter\nx_total{a=\"back\\\\slash \\\"quote\\\"\\nline\",b=\"ä\"} 3\n\
             # HELP y_seconds Time.\n# TYPE y_seconds histogram\ny_seconds_bucket{k=\"v\",le=\"0.0001\"} 2\n\
             y_seconds_bucket{k=\"v\",le=\"2.5\"} 3\ny_seconds_bucket{k=\"v\",le=\"+Inf\"} 4\n\
             y_seconds_sum{k=\"v\"} 5.00015\ny_seconds_count{k=\"v\"} 4\n"
        );
    }
}
