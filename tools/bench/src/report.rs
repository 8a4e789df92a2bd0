//! Measured times, and tables of reports. For programs every report is a `serde::Serialize`.

use std::fmt::{self, Write};
use std::time::Duration;

use serde::Serialize;

/// A summary of repeated measurements of one thing, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Times {
    /// How often it was measured.
    pub runs: usize,
    /// The arithmetic mean.
    pub mean_ms: f64,
    /// The geometric mean.
    pub geometric_mean_ms: f64,
    /// Half of the runs took no longer.
    pub median_ms: f64,
    /// 95 of 100 runs took no longer.
    pub p95_ms: f64,
    /// The fastest run.
    pub min_ms: f64,
    /// The slowest run.
    pub max_ms: f64,
}

impl Times {
    /// Sums up these runs.
    pub fn of(runs: &[Duration]) -> Self {
        let mut sorted_ms: Vec<f64> = runs.iter().map(|run| run.as_secs_f64() * 1e3).collect();
        sorted_ms.sort_unstable_by(f64::total_cmp);
        let (Some(min_ms), Some(max_ms)) = (sorted_ms.first(), sorted_ms.last()) else {
            return Self::default();
        };
        Self {
            runs: sorted_ms.len(),
            mean_ms: sorted_ms.iter().sum::<f64>() / sorted_ms.len() as f64,
            geometric_mean_ms: (sorted_ms.iter().map(|run| run.ln()).sum::<f64>()
                / sorted_ms.len() as f64)
                .exp(),
            median_ms: quantile(&sorted_ms, 0.5),
            p95_ms: quantile(&sorted_ms, 0.95),
            min_ms: *min_ms,
            max_ms: *max_ms,
        }
    }

    /// Runs a second, one after the other.
    pub fn per_second(&self) -> f64 {
        if self.mean_ms > 0.0 {
            1e3 / self.mean_ms
        } else {
            0.0
        }
    }
}

/// So many milliseconds are not exceeded by this share of the runs.
pub fn quantile_ms(runs: &[Duration], share: f64) -> f64 {
    let mut sorted_ms: Vec<f64> = runs.iter().map(|run| run.as_secs_f64() * 1e3).collect();
    sorted_ms.sort_unstable_by(f64::total_cmp);
    quantile(&sorted_ms, share)
}

/// The smallest value that this share of the values does not exceed.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied().unwrap_or_default()
}

/// A table of text: the first column to the left, the others to the right.
#[derive(Clone, Debug, Default)]
pub struct Table {
    rows: Vec<Vec<String>>,
    is_markdown: bool,
}

impl Table {
    /// A table with these column names.
    pub fn new<const N: usize>(names: [&str; N]) -> Self {
        Self {
            rows: vec![names.map(str::to_owned).to_vec()],
            is_markdown: false,
        }
    }

    /// A table with these column names, shown in Markdown.
    pub fn markdown<const N: usize>(names: [&str; N]) -> Self {
        Self {
            is_markdown: true,
            ..Self::new(names)
        }
    }

    /// Adds a row.
    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.to_vec());
    }
}

impl fmt::Display for Table {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for (number, row) in self.rows.iter().enumerate() {
            if self.is_markdown {
                writeln!(formatter, "| {} |", row.join(" | "))?;
                if number == 0 {
                    let others = " ---: |".repeat(columns.saturating_sub(1));
                    writeln!(formatter, "| --- |{others}")?;
                }
                continue;
            }
            let mut line = String::new();
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                match column {
                    0 => write!(line, "{cell:<width$}")?,
                    _ => write!(line, "  {cell:>width$}")?,
                }
            }
            writeln!(formatter, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// A document with a section replaced: what stands between the lines `<!-- NAME -->` and
/// `<!-- end of NAME -->`. `None` if it has no such lines.
pub fn with_section(document: &str, name: &str, content: &str) -> Option<String> {
    let begin = format!("<!-- {name} -->\n");
    let end = format!("<!-- end of {name} -->");
    let start = document.find(&begin)? + begin.len();
    let length = document.get(start..)?.find(&end)?;
    let (before, rest) = (document.get(..start)?, document.get(start + length..)?);
    Some(format!("{before}{}\n{rest}", content.trim_end()))
}

/// A whole number with its thousands set apart, as `1,000,312`.
pub fn with_thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut shown = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_summed_up() {
        let runs: Vec<Duration> = (1..=100).rev().map(Duration::from_millis).collect();
        let times = Times::of(&runs);
        assert_eq!(
            (times.runs, times.median_ms, times.p95_ms),
            (100, 50.0, 95.0)
        );
        assert_eq!((times.min_ms, times.max_ms), (1.0, 100.0));
        let pair = Times::of(&[Duration::from_millis(2), Duration::from_millis(8)]);
        assert!((pair.geometric_mean_ms - 4.0).abs() < 1e-9);
        assert_eq!(Times::of(&[]), Times::default());
    }

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!(with_thousands(999), "999");
        assert_eq!(with_thousands(1_000_312), "1,000,312");
        assert_eq!(with_thousands(0), "0");
    }

    #[test]
    fn a_section_of_a_document_is_replaced() {
        let document = "a\n<!-- x -->\nold\nold\n<!-- end of x -->\nz\n";
        assert_eq!(
            with_section(document, "x", "new\n\n").unwrap(),
            "a\n<!-- x -->\nnew\n<!-- end of x -->\nz\n"
        );
        assert_eq!(with_section(document, "y", "new"), None);
        assert_eq!(with_section("<!-- x -->\n", "x", "new"), None);
    }

    #[test]
    fn columns_are_aligned() {
        let mut table = Table::new(["query", "ms"]);
        table.row(["Q1".to_owned(), "12.5".to_owned()]);
        assert_eq!(table.to_string(), "query    ms\nQ1     12.5\n");
    }
}
