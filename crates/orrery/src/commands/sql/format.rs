//! Formats of SQL rows, for people and programs: a table, CSV, or JSON.
//!
//! A table's columns are as wide as the first rows need, and together no wider than the terminal:
//! longer values are cut, and end with `…`. Programs read CSV (a line of names; NULL is nothing and
//! an empty text is `""`) or JSON (an array of objects per statement).

use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::sync::Arc;

use futures::StreamExt as _;
use orrery_sql::{Error, ValueTexts};

use super::answer::Rows;
use crate::commands::output::Output;
use crate::failure::Failure;
use crate::terminal::{harmless, is_obeyed};

/// Rows that determine a table's column widths.
const MEASURED_ROWS: usize = 1_000;
/// Least width to which a column is cut.
const COLUMN_CHARS_MIN: usize = 8;

/// The format of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Table,
    /// One value per line, for people: rows that are wider than a terminal.
    Expanded,
    Csv,
    Json,
}

impl Format {
    pub(super) const NAMES: [&str; 3] = ["table", "csv", "json"];

    pub(super) fn from_name(name: &str) -> Option<Self> {
        match name {
            "table" => Some(Self::Table),
            "csv" => Some(Self::Csv),
            "json" => Some(Self::Json),
            _ => None,
        }
    }
}

/// Prints the result of one statement.
pub(super) struct Printer {
    format: Format,
    has_rows: bool,
    is_at_terminal: bool,
}

/// A row as texts; `None` is NULL.
type Row = Vec<Option<String>>;

impl Printer {
    pub(super) fn new(format: Format) -> Self {
        Self {
            format,
            has_rows: false,
            is_at_terminal: std::io::stdout().is_terminal(),
        }
    }

    /// Prints rows as they come; returns their number.
    pub(super) async fn rows(
        &mut self,
        mut rows: Rows,
        output: &mut Output,
    ) -> Result<u64, Failure> {
        self.has_rows = true;
        let schema = Arc::clone(&rows.schema);
        let names: Vec<&str> = schema
            .fields()
            .iter()
            .map(|field| field.name().as_str())
            .collect();
        let kinds: Vec<Kind> = schema
            .fields()
            .iter()
            .map(|field| Kind::of(field.data_type()))
            .collect();
        let mut writer = match self.format {
            Format::Table => Writer::Table(Table::new(&names, &kinds)),
            Format::Expanded => Writer::Expanded { rows: 0 },
            Format::Csv => Writer::Csv,
            Format::Json => Writer::Json { is_first: true },
        };
        let mut buffer = String::new();
        writer.begin(&names, &mut buffer);
        let mut count = 0;
        while let Some(batch) = rows.batches.next().await {
            let batch = batch?;
            let columns = batch.columns().iter().map(ValueTexts::new);
            let columns: Vec<ValueTexts<'_>> = columns.collect::<Result<_, _>>()?;
            for row in 0..batch.num_rows() {
                let values = columns.iter().map(|column| {
                    let mut text = String::new();
                    Ok(column.write(row, &mut text)?.then_some(text))
                });
                let values = values.collect::<Result<Row, Error>>()?;
                writer.row(values, &names, &kinds, &mut buffer);
            }
            count += batch.num_rows() as u64;
            self.drain(&mut buffer, output)?;
        }
        writer.end(count, &mut buffer);
        self.drain(&mut buffer, output)?;
        Ok(count)
    }

    fn drain(&self, buffer: &mut String, output: &mut Output) -> Result<(), Failure> {
        let text = std::mem::take(buffer);
        let mut bytes = match self.is_at_terminal {
            true => harmless(&text).into_owned().into_bytes(),
            false => text.into_bytes(),
        };
        output.drain(&mut bytes)
    }

    /// Prints the command tag, unless the rows make it redundant.
    pub(super) fn done(&self, tag: &str, output: &mut Output) -> Result<(), Failure> {
        let is_said = self.has_rows && tag.starts_with("SELECT ");
        let is_for_people = matches!(self.format, Format::Table | Format::Expanded);
        if is_for_people && !is_said {
            self.drain(&mut format!("{tag}\n"), output)?;
        }
        Ok(())
    }
}

/// The kind of a column, which decides how its values are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Number,
    Boolean,
    Other,
}

impl Kind {
    fn of(data_type: &orrery_sql::DataType) -> Self {
        match data_type {
            orrery_sql::DataType::Boolean => Self::Boolean,
            other if other.is_numeric() => Self::Number,
            _ => Self::Other,
        }
    }
}

enum Writer {
    Table(Table),
    Expanded { rows: u64 },
    Csv,
    Json { is_first: bool },
}

impl Writer {
    fn begin(&mut self, names: &[&str], buffer: &mut String) {
        match self {
            Self::Table(_) | Self::Expanded { .. } => {}
            Self::Csv => write_csv(names.iter().map(|name| Some(*name)), buffer),
            Self::Json { .. } => buffer.push('['),
        }
    }

    fn row(&mut self, values: Row, names: &[&str], kinds: &[Kind], buffer: &mut String) {
        match self {
            Self::Table(table) => table.row(values, buffer),
            Self::Expanded { rows } => {
                *rows += 1;
                write_expanded(*rows, &values, names, buffer);
            }
            Self::Csv => write_csv(values.iter().map(Option::as_deref), buffer),
            Self::Json { is_first } => {
                buffer.push_str(if *is_first { "\n" } else { ",\n" });
                *is_first = false;
                write_json(&values, names, kinds, buffer);
            }
        }
    }

    fn end(&mut self, count: u64, buffer: &mut String) {
        match self {
            Self::Table(table) => {
                table.begin(buffer);
                let noun = if count == 1 { "row" } else { "rows" };
                let _ = writeln!(buffer, "({count} {noun})");
            }
            Self::Expanded { rows: 0 } => buffer.push_str("(0 rows)\n"),
            Self::Expanded { .. } | Self::Csv => {}
            Self::Json { .. } => buffer.push_str("\n]\n"),
        }
    }
}

fn write_csv<'a>(values: impl Iterator<Item = Option<&'a str>>, buffer: &mut String) {
    for (place, value) in values.enumerate() {
        if place > 0 {
            buffer.push(',');
        }
        match value {
            None => {}
            Some(value) if value.is_empty() || value.contains([',', '"', '\n', '\r']) => {
                let _ = write!(buffer, "\"{}\"", value.replace('"', "\"\""));
            }
            Some(value) => buffer.push_str(value),
        }
    }
    buffer.push('\n');
}

fn write_expanded(number: u64, values: &Row, names: &[&str], buffer: &mut String) {
    let width = names.iter().map(|name| chars(name)).max().unwrap_or(0);
    let _ = writeln!(
        buffer,
        "-[ {number} ]{}",
        "-".repeat(width.saturating_sub(4))
    );
    for (name, value) in names.iter().zip(values) {
        let text = value.as_deref().map(one_line).unwrap_or_default();
        let line = format!("{:width$} | {text}", one_line(name));
        buffer.push_str(line.trim_end_matches(' '));
        buffer.push('\n');
    }
}

fn write_json(values: &Row, names: &[&str], kinds: &[Kind], buffer: &mut String) {
    let string = |text: &str| serde_json::Value::from(text).to_string();
    buffer.push('{');
    for (place, value) in values.iter().enumerate() {
        if place > 0 {
            buffer.push(',');
        }
        buffer.push_str(&string(names[place]));
        buffer.push(':');
        match (value, kinds[place]) {
            (None, _) => buffer.push_str("null"),
            (Some(text), Kind::Boolean) => {
                buffer.push_str(if text == "t" { "true" } else { "false" });
            }
            // Values that JSON numbers cannot express, such as NaN, become strings.
            (Some(text), Kind::Number)
                if serde_json::from_str::<serde_json::Number>(text).is_ok() =>
            {
                buffer.push_str(text);
            }
            (Some(text), Kind::Number | Kind::Other) => buffer.push_str(&string(text)),
        }
    }
    buffer.push('}');
}

/// A table whose first rows are held until the widths are known.
struct Table {
    names: Vec<String>,
    is_number: Vec<bool>,
    held: Vec<Row>,
    /// Empty until the head is written.
    widths: Vec<usize>,
    width_max: usize,
}

impl Table {
    fn new(names: &[&str], kinds: &[Kind]) -> Self {
        let terminal = console::Term::stdout();
        Self {
            names: names.iter().map(|name| one_line(name)).collect(),
            is_number: kinds.iter().map(|kind| *kind == Kind::Number).collect(),
            held: Vec::new(),
            widths: Vec::new(),
            width_max: match terminal.is_term() {
                true => usize::from(terminal.size().1),
                false => usize::MAX,
            },
        }
    }

    fn row(&mut self, values: Row, buffer: &mut String) {
        let values = values.into_iter();
        let values = values.map(|value| value.map(|text| one_line(&text)));
        let values: Row = values.collect();
        if self.widths.is_empty() {
            self.held.push(values);
            if self.held.len() >= MEASURED_ROWS {
                self.begin(buffer);
            }
        } else {
            self.line(&values, buffer);
        }
    }

    /// Writes the head and the held rows, unless that was done.
    fn begin(&mut self, buffer: &mut String) {
        if !self.widths.is_empty() {
            return;
        }
        let width = |place: usize| {
            let of_rows = self
                .held
                .iter()
                .map(|row| row[place].as_deref().map_or(0, chars));
            of_rows
                .chain([chars(&self.names[place]), 1])
                .max()
                .unwrap_or(1)
        };
        let widths = (0..self.names.len()).map(width).collect();
        self.widths = fitted(widths, self.width_max);
        for (place, name) in self.names.iter().enumerate() {
            let width = self.widths[place];
            let separator = if place > 0 { "|" } else { "" };
            let _ = write!(buffer, "{separator} {:^width$} ", cut(name, width));
        }
        let end = buffer.trim_end_matches(' ').len();
        buffer.truncate(end);
        buffer.push('\n');
        let lines = self.widths.iter().map(|width| "-".repeat(width + 2));
        buffer.push_str(&lines.collect::<Vec<_>>().join("+"));
        buffer.push('\n');
        for row in std::mem::take(&mut self.held) {
            self.line(&row, buffer);
        }
    }

    fn line(&self, values: &Row, buffer: &mut String) {
        let start = buffer.len();
        for (place, value) in values.iter().enumerate() {
            let width = self.widths[place];
            let separator = if place > 0 { "|" } else { "" };
            let text = cut(value.as_deref().unwrap_or_default(), width);
            let _ = match self.is_number[place] {
                true => write!(buffer, "{separator} {text:>width$} "),
                false => write!(buffer, "{separator} {text:<width$} "),
            };
        }
        let end = buffer[start..].trim_end_matches(' ').len();
        buffer.truncate(start + end);
        buffer.push('\n');
    }
}

fn chars(text: &str) -> usize {
    text.chars().count()
}

/// A text without characters that would break its line.
fn one_line(text: &str) -> String {
    text.chars()
        .map(|c| if is_obeyed(c) { '·' } else { c })
        .collect()
}

fn cut(text: &str, width: usize) -> String {
    match chars(text) <= width {
        true => text.to_owned(),
        false => {
            let kept = text.chars().take(width.saturating_sub(1));
            kept.chain(['…']).collect()
        }
    }
}

/// Reduces widths until they fit a line, the widest columns first.
fn fitted(mut widths: Vec<usize>, width_max: usize) -> Vec<usize> {
    loop {
        let total: usize = widths.iter().map(|width| width + 3).sum();
        let too_much = total.saturating_sub(1).saturating_sub(width_max);
        let widest = widths.iter_mut().max();
        match widest {
            Some(widest) if too_much > 0 && *widest > COLUMN_CHARS_MIN => *widest -= 1,
            _ => return widths,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(values: &[Option<&str>]) -> Row {
        values
            .iter()
            .map(|value| value.map(str::to_owned))
            .collect()
    }

    #[test]
    fn a_table_is_as_wide_as_its_values_and_no_wider_than_the_terminal() {
        let mut table = Table::new(&["id", "name"], &[Kind::Number, Kind::Other]);
        table.width_max = 20;
        let mut written = String::new();
        table.row(
            row(&[Some("1"), Some("a long name that is cut")]),
            &mut written,
        );
        table.row(row(&[Some("22"), None]), &mut written);
        Writer::Table(table).end(2, &mut written);
        let lines: Vec<&str> = written.lines().collect();
        assert!(lines[0].starts_with(" id |"), "{written}");
        assert_eq!(lines[1], "----+---------------");
        assert_eq!(lines[2], "  1 | a long name …");
        assert_eq!(lines[3], " 22 |");
        assert_eq!(lines[4], "(2 rows)");
    }

    #[test]
    fn an_expanded_row_has_a_value_a_line() {
        let mut written = String::new();
        let values = row(&[Some("1"), None, Some("a\nb")]);
        write_expanded(7, &values, &["id", "nothing", "text"], &mut written);
        assert_eq!(
            written,
            "-[ 7 ]---\nid      | 1\nnothing |\ntext    | a·b\n"
        );
    }

    #[test]
    fn csv_and_json_tell_null_from_an_empty_text() {
        let values = row(&[Some("1.5"), None, Some(""), Some("a\"b,\n"), Some("t")]);
        let mut csv = String::new();
        write_csv(values.iter().map(Option::as_deref), &mut csv);
        assert_eq!(csv, "1.5,,\"\",\"a\"\"b,\n\",t\n");
        let mut json = String::new();
        let kinds = [
            Kind::Number,
            Kind::Number,
            Kind::Other,
            Kind::Other,
            Kind::Boolean,
        ];
        write_json(&values, &["a", "b", "c", "d", "e"], &kinds, &mut json);
        assert_eq!(json, r#"{"a":1.5,"b":null,"c":"","d":"a\"b,\n","e":true}"#);
    }
}
