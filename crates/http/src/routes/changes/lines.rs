//! The change feed as lines of JSON: commits with changes of quads and of tables, in one order.
//!
//! ```text
//! {"commit":18,"previous":17,"time":"2026-11-23T10:00:00Z","who":"postgresql me"}
//! {"commit":18,"delete":"quad","quad":"<http://e/s> <http://e/p> \"old\" ."}
//! {"commit":18,"insert":"quad","quad":"<http://e/s> <http://e/p> \"new\" <http://e/graph> ."}
//! {"commit":18,"delete":"row","table":"public.item","key":{"id":1}}
//! {"commit":18,"insert":"row","table":"public.item","key":{"id":1},"row":{"id":1,"name":"lamp"}}
//! {"commit":18,"truncate":"table","table":"public.item"}
//! {"commit":18,"replace":"rows","table":"public.item","rows":250000}
//! {"commit":18,"replace":"quads"}
//! {"commit":18,"define":{"drop_table":7}}
//! {"commit":18,"end":true}
//! ```
//!
//! An updated row is deleted and inserted. In a table without a primary key, row numbers identify
//! rows: `"key":{"":17}`. `replace` says that the rows, or the quads of some graphs, were written
//! to files in bulk; a reader has to read them anew as of that commit.

use arrow::array::{Array, ArrayRef};
use orrery_formats::{FormatError, write_json_text, write_json_value};
use orrery_sql::ValueTexts;
use orrery_storage::table::{ProjectionColumn, TableDefinition};
use orrery_storage::{CommitEntry, TableEvent, format_time};
use std::io::Write;

/// Writes the first line of a commit; `shows_who`: with its author, for readers who may know them.
pub(super) fn write_begin(entry: &CommitEntry, shows_who: bool, out: &mut Vec<u8>) {
    let number = entry.number;
    // Writing to memory does not fail.
    let _ = write!(
        out,
        "{{\"commit\":{number},\"previous\":{},\"time\":\"{}\"",
        number.saturating_sub(1),
        format_time(entry.time_us)
    );
    if shows_who {
        out.extend_from_slice(b",\"who\":");
        write_json_text(out, &entry.who);
    }
    out.extend_from_slice(b"}\n");
}

/// Writes the last line of a commit.
pub(super) fn write_end(number: u64, out: &mut Vec<u8>) {
    let _ = writeln!(out, "{{\"commit\":{number},\"end\":true}}");
}

/// Writes a quad, as a line of N-Quads without its end.
pub(super) fn write_quad(number: u64, what: &str, quad: &str, out: &mut Vec<u8>) {
    let _ = write!(out, "{{\"commit\":{number},\"{what}\":\"quad\",\"quad\":");
    write_json_text(out, quad);
    out.extend_from_slice(b"}\n");
}

/// Writes a bulk load of quads, without their graphs and number: some may be hidden.
pub(super) fn write_bulk_load(number: u64, out: &mut Vec<u8>) {
    let _ = writeln!(out, "{{\"commit\":{number},\"replace\":\"quads\"}}");
}

/// Writes a change of tables; returns how many lines it takes.
pub(super) fn write_event(
    number: u64,
    event: &TableEvent<'_>,
    out: &mut Vec<u8>,
) -> Result<u64, FormatError> {
    match event {
        TableEvent::Defined(change) => {
            let _ = write!(out, "{{\"commit\":{number},\"define\":");
            let written = serde_json::to_writer(&mut *out, change);
            written.map_err(|error| failed(&error))?;
            out.extend_from_slice(b"}\n");
            Ok(1)
        }
        TableEvent::Truncated(table) => {
            begin(number, "truncate", "table", table, out);
            out.extend_from_slice(b"}\n");
            Ok(1)
        }
        TableEvent::Replaced(table, rows) => {
            begin(number, "replace", "rows", table, out);
            let _ = writeln!(out, ",\"rows\":{rows}}}");
            Ok(1)
        }
        TableEvent::Deleted(table, layout, keys) => {
            let key = Columns::new(table, layout.key(), keys)?;
            for row in 0..key.rows {
                begin(number, "delete", "row", table, out);
                out.extend_from_slice(b",\"key\":");
                key.write(row, out)?;
                out.extend_from_slice(b"}\n");
            }
            Ok(key.rows as u64)
        }
        TableEvent::Inserted(table, layout, columns) => {
            let key = Columns::new(table, layout.key(), &columns[..layout.key_columns])?;
            let all = Columns::new(table, &layout.columns, columns)?.in_order_of(table);
            for row in 0..key.rows {
                begin(number, "insert", "row", table, out);
                out.extend_from_slice(b",\"key\":");
                key.write(row, out)?;
                out.extend_from_slice(b",\"row\":");
                all.write(row, out)?;
                out.extend_from_slice(b"}\n");
            }
            Ok(key.rows as u64)
        }
    }
}

fn failed(error: &dyn std::fmt::Display) -> FormatError {
    FormatError::Columns {
        message: error.to_string(),
    }
}

fn begin(number: u64, change: &str, of: &str, table: &TableDefinition, out: &mut Vec<u8>) {
    let _ = write!(
        out,
        "{{\"commit\":{number},\"{change}\":\"{of}\",\"table\":"
    );
    write_json_text(out, &format!("{}.{}", table.schema, table.name));
}

/// Columns of rows, written as one object per row.
struct Columns<'a> {
    rows: usize,
    columns: Vec<Column<'a>>,
}

struct Column<'a> {
    /// None for the row number.
    name: Option<&'a str>,
    texts: ValueTexts<'a>,
    array: &'a ArrayRef,
}

impl<'a> Columns<'a> {
    fn new(
        table: &'a TableDefinition,
        columns: &[ProjectionColumn],
        arrays: &'a [ArrayRef],
    ) -> Result<Self, FormatError> {
        let columns = columns.iter().zip(arrays).map(|(column, array)| {
            let texts = ValueTexts::new(array);
            Ok(Column {
                name: table.column(column.id).map(|it| it.name.as_str()),
                texts: texts.map_err(|error| failed(&error))?,
                array,
            })
        });
        Ok(Self {
            rows: arrays.first().map_or(0, |array| array.len()),
            columns: columns.collect::<Result<_, FormatError>>()?,
        })
    }

    /// Drops the row number, and sorts the columns as the table has them.
    fn in_order_of(mut self, table: &TableDefinition) -> Self {
        self.columns.retain(|column| column.name.is_some());
        self.columns.sort_by_key(|column| {
            let mut all = table.columns.iter();
            all.position(|it| Some(it.name.as_str()) == column.name)
        });
        self
    }

    fn write(&self, row: usize, out: &mut Vec<u8>) -> Result<(), FormatError> {
        let mut text = String::new();
        out.push(b'{');
        for (place, column) in self.columns.iter().enumerate() {
            if place > 0 {
                out.push(b',');
            }
            write_json_text(out, column.name.unwrap_or_default());
            out.push(b':');
            text.clear();
            let is_there = column.texts.write(row, &mut text);
            let is_there = is_there.map_err(|error| failed(&error))?;
            write_json_value(is_there.then_some(&text), column.array.data_type(), out);
        }
        out.push(b'}');
        Ok(())
    }
}
