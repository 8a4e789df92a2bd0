//! The row store: Arrow's row format in key order, in pages.
//!
//! ```text
//! page    rows one behind the other | the end of each, u32      1,024 rows
//! ```
//!
//! All columns of a row stand together, those of the key first, so that the bytes of rows ascend
//! with their keys. A search goes over the first rows of pages in steps that double, then over the
//! rows of a page. Everything is in memory: no file, no compression.

use std::ops::Range;

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use arrow::error::ArrowError;
use arrow::row::{RowConverter, SortField};
use orrery_storage::table::SomeRows;

use super::fields::Fields;
use super::shape::Shape;
use super::store::{BLOCK_ROWS, Stored};
use crate::drivers::BenchError;
use crate::tpch::TpchError;

/// A table of rows.
pub(super) struct RowTable {
    pages: Vec<Page>,
    rows: u64,
    fields: Fields,
    /// For the first column of the key, for the first two, and so on.
    keys: Vec<RowConverter>,
    texts: RowConverter,
}

#[derive(Default)]
struct Page {
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

/// Makes one.
pub(super) struct RowWriter {
    table: RowTable,
    converter: RowConverter,
    page: Page,
    last: Vec<u8>,
}

impl RowWriter {
    pub(super) fn new(shape: &Shape) -> Result<Self, BenchError> {
        let keys = (1..=shape.key_columns).map(|columns| converter(shape.types(columns)));
        let all = shape.columns.len();
        Ok(Self {
            table: RowTable {
                pages: Vec::new(),
                rows: 0,
                fields: Fields::new(shape.types(all))?,
                keys: keys.collect::<Result<_, _>>()?,
                texts: converter([&DataType::Utf8View].into_iter())?,
            },
            converter: converter(shape.types(all))?,
            page: Page::default(),
            last: Vec::new(),
        })
    }

    /// Appends rows, whose keys ascend.
    pub(super) fn push(&mut self, columns: &[ArrayRef]) -> Result<(), BenchError> {
        let rows = self.converter.convert_columns(columns).map_err(of_arrow)?;
        for row in &rows {
            let row = row.data();
            if row <= self.last.as_slice() {
                return Err(BenchError::Engine {
                    message: format!("row {} is not behind the one before", self.table.rows),
                });
            }
            self.last.clear();
            self.last.extend_from_slice(row);
            self.page.push(row);
            self.table.rows += 1;
            if self.page.len() == BLOCK_ROWS {
                self.end_page();
            }
        }
        Ok(())
    }

    fn end_page(&mut self) {
        let mut page = std::mem::take(&mut self.page);
        page.bytes.shrink_to_fit();
        page.ends.shrink_to_fit();
        self.table.pages.push(page);
    }

    pub(super) fn finish(mut self) -> RowTable {
        if self.page.len() > 0 {
            self.end_page();
        }
        self.table
    }
}

fn converter<'t>(types: impl Iterator<Item = &'t DataType>) -> Result<RowConverter, BenchError> {
    let fields = types.map(|of| SortField::new(of.clone()));
    RowConverter::new(fields.collect()).map_err(of_arrow)
}

fn of_arrow(error: ArrowError) -> BenchError {
    TpchError::from(error).into()
}

impl Page {
    fn len(&self) -> usize {
        self.ends.len()
    }

    /// A page's rows are some hundred kilobytes.
    fn push(&mut self, row: &[u8]) {
        self.bytes.extend_from_slice(row);
        self.ends.push(self.bytes.len() as u32);
    }

    fn row(&self, row: usize) -> &[u8] {
        let start = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start as usize..self.ends[row] as usize]
    }
}

/// The first number in a range of which `is_behind` holds, and then of all after it; the end if of
/// none. In steps that double.
fn gallop(range: Range<usize>, is_behind: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut step) = (range.start, 1);
    let mut high = loop {
        let next = low + step - 1;
        if next >= range.end {
            break range.end;
        }
        if is_behind(next) {
            break next;
        }
        low = next + 1;
        step *= 2;
    };
    while low < high {
        let middle = low.midpoint(high);
        match is_behind(middle) {
            true => high = middle,
            false => low = middle + 1,
        }
    }
    low
}

impl RowTable {
    fn row(&self, row: u64) -> &[u8] {
        let row = row as usize;
        self.pages[row / BLOCK_ROWS].row(row % BLOCK_ROWS)
    }

    /// The first row, from one on, of which `is_behind` holds.
    fn first(&self, from: u64, is_behind: impl Fn(&[u8]) -> bool) -> u64 {
        let (page, row) = (from as usize / BLOCK_ROWS, from as usize % BLOCK_ROWS);
        let Some(here) = self.pages.get(page) else {
            return self.rows;
        };
        let within = |page: usize, from: usize| {
            let of = &self.pages[page];
            let row = gallop(from..of.len(), |row| is_behind(of.row(row)));
            (page * BLOCK_ROWS + row) as u64
        };
        if is_behind(here.row(here.len() - 1)) {
            return within(page, row);
        }
        let next = gallop(page + 1..self.pages.len(), |page| {
            is_behind(self.pages[page].row(0))
        });
        match next - 1 {
            // The row is the first of the next page.
            before if before == page => (next * BLOCK_ROWS).min(self.rows as usize) as u64,
            before => within(before, 0),
        }
    }
}

impl Stored for RowTable {
    fn rows(&self) -> u64 {
        self.rows
    }

    fn bytes(&self) -> u64 {
        let bytes = |page: &Page| page.bytes.len() + size_of_val(page.ends.as_slice());
        self.pages.iter().map(|page| bytes(page) as u64).sum()
    }

    fn numbers(
        &self,
        rows: SomeRows<'_>,
        columns: &[usize],
        out: &mut [Vec<i64>],
    ) -> Result<(), BenchError> {
        if columns.iter().any(|&column| self.fields.is_text(column)) {
            return Err(BenchError::Engine {
                message: "a column of texts has no numbers".to_owned(),
            });
        }
        let mut read = |row: u64| {
            let row = self.row(row);
            for (column, out) in columns.iter().zip(out.iter_mut()) {
                out.push(self.fields.number(row, *column));
            }
        };
        match rows {
            SomeRows::Range(rows) => rows.for_each(read),
            SomeRows::Ascending(rows) => rows.iter().for_each(|&row| read(row)),
        }
        Ok(())
    }

    fn texts(&self, rows: Range<u64>, column: usize) -> Result<ArrayRef, BenchError> {
        let parser = self.texts.parser();
        let texts = rows.map(|row| parser.parse(self.fields.text(self.row(row), column)));
        let mut decoded = self.texts.convert_rows(texts).map_err(of_arrow)?;
        Ok(decoded.swap_remove(0))
    }

    fn look_up(&self, keys: &[ArrayRef]) -> Result<Vec<Range<u64>>, BenchError> {
        let keys = self.keys[keys.len() - 1]
            .convert_columns(keys)
            .map_err(of_arrow)?;
        let mut at = 0;
        let found = keys.iter().map(|key| {
            let key = key.data();
            let start = self.first(at, |row| row >= key);
            at = self.first(start, |row| row > key && !row.starts_with(key));
            start..at
        });
        Ok(found.collect())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Int32Array, Int64Array};

    use super::*;
    use crate::tpch::TpchTable;

    /// Keys (n / 3, n % 3), for even n / 3.
    fn table(rows: i64) -> RowTable {
        let shape = Shape {
            name: "test",
            table: TpchTable::LineItem,
            columns: vec![
                ("a".to_owned(), DataType::Int64),
                ("b".to_owned(), DataType::Int32),
            ],
            key_columns: 2,
            is_made_sorted: true,
        };
        let mut writer = RowWriter::new(&shape).unwrap();
        let first: Int64Array = (0..rows).map(|n| n / 3 * 2).collect();
        let second: Int32Array = (0..rows).map(|n| (n % 3) as i32).collect();
        writer.push(&[Arc::new(first), Arc::new(second)]).unwrap();
        writer.finish()
    }

    #[test]
    fn keys_and_their_beginnings_are_found_wherever_they_are() {
        for rows in [1, 2, 1023, 1024, 1025, 3000, 6_145] {
            let table = table(rows);
            assert_eq!(table.rows(), rows as u64);
            for step in [1, 2, 7, 700] {
                let keys: Vec<i64> = (-1..rows).step_by(step).collect();
                let found = table.look_up(&[Arc::new(Int64Array::from(keys.clone()))]);
                for (key, found) in keys.iter().zip(found.unwrap()) {
                    // Odd keys are not there: nothing before the next.
                    let start = ((key.max(&0) + 1) / 2 * 3).min(rows);
                    let end = if key % 2 == 0 { start + 3 } else { start };
                    assert_eq!(found, start as u64..end.min(rows) as u64, "{rows} {key}");
                }
            }
            let last = ((rows - 1) / 3 * 2, (rows - 1) % 3);
            let mut keys = vec![(0, 0), (0, 5), last];
            keys.sort_unstable();
            keys.dedup();
            let first: Int64Array = keys.iter().map(|key| key.0).collect();
            let second: Int32Array = keys.iter().map(|key| key.1 as i32).collect();
            let found = table.look_up(&[Arc::new(first), Arc::new(second)]);
            for (key, found) in keys.iter().zip(found.unwrap()) {
                match key.1 {
                    5 => assert!(found.is_empty(), "{rows} {found:?}"),
                    _ => {
                        let row = (key.0 / 2 * 3 + key.1) as u64;
                        assert_eq!(found, row..row + 1, "{rows} {key:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn rows_out_of_order_are_refused() {
        let shape = Shape {
            name: "test",
            table: TpchTable::Part,
            columns: vec![("a".to_owned(), DataType::Int64)],
            key_columns: 1,
            is_made_sorted: true,
        };
        let mut writer = RowWriter::new(&shape).unwrap();
        let column: ArrayRef = Arc::new(Int64Array::from(vec![1, 3, 2]));
        let error = writer.push(&[column]).unwrap_err().to_string();
        assert!(error.contains("row 2"), "{error}");
    }
}
