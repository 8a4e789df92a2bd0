//! The memory estimate of a column chunk's batch, by its page headers.
//!
//! ```text
//! chunk   [dictionary page] data page, data page, ...        each a header (thrift), and so many compressed bytes
//! batch   the dictionary, as it is and decoded; all data pages that its rows may lie in
//! ```
//!
//! A reader decompresses a page when it comes to it, and the texts of a batch are views into pages.
//! So a batch holds as many pages as its rows can lie in, and no chunk is there as a whole.

use datafusion::parquet::file::metadata::ColumnChunkMetaData;

use super::thrift::{Malformed, walk};

/// Fields of a page's header.
const KIND: [i16; 1] = [1];
const UNCOMPRESSED: [i16; 1] = [2];
const COMPRESSED: [i16; 1] = [3];
const VALUES: [[i16; 2]; 2] = [[5, 1], [8, 1]];
/// The kind of a page that has the different values of its chunk.
const DICTIONARY: i64 = 2;
/// What a value takes beside its bytes: a view.
const VALUE_BYTES: u64 = 16;

/// A column chunk of a file.
#[derive(Debug, Clone)]
pub(super) struct Chunk {
    pub(super) start: u64,
    pub(super) end: u64,
    rows: u64,
    values: u64,
    /// Whether it lies in a list or a struct: then its texts are copied.
    is_nested: bool,
}

impl Chunk {
    pub(super) fn new(column: &ColumnChunkMetaData, rows: i64) -> Option<Self> {
        // As the reader has it, which fails for what is negative.
        let start = column
            .dictionary_page_offset()
            .unwrap_or_else(|| column.data_page_offset());
        let start = u64::try_from(start).ok()?;
        let length = u64::try_from(column.compressed_size()).ok()?;
        Some(Self {
            start,
            end: start.checked_add(length)?,
            rows: u64::try_from(rows).ok()?,
            values: u64::try_from(column.num_values()).ok()?,
            is_nested: column.column_path().parts().len() > 1,
        })
    }

    /// The bytes in memory, beside those that were read, while batches of so many rows are made of
    /// these pages.
    pub(super) fn bytes_of_batch(&self, pages: &[u8], batch_rows: usize) -> Result<u64, Malformed> {
        let (mut dictionary, mut data) = (0_u64, Vec::new());
        let mut rest = pages;
        let mut values = 0;
        while !rest.is_empty() && values < self.values {
            let page = Page::first_of(rest)?;
            rest = rest.get(page.all_bytes..).ok_or(Malformed)?;
            match page.is_dictionary {
                true => dictionary = dictionary.saturating_add(page.bytes),
                false => {
                    values += page.values;
                    data.push(page);
                }
            }
        }
        let each = self.values.div_ceil(self.rows.max(1)).max(1);
        let wanted = (batch_rows as u64).saturating_mul(each);
        let copies = if self.is_nested { 2 } else { 1 };
        let of_values = wanted.min(self.values).saturating_mul(VALUE_BYTES);
        Ok(dictionary
            .saturating_mul(2)
            .saturating_add(most_at_once(&data, wanted).saturating_mul(copies))
            .saturating_add(of_values))
    }
}

/// The most bytes of pages that so many values in a row may lie in.
fn most_at_once(pages: &[Page], values: u64) -> u64 {
    let (mut most, mut bytes, mut behind_first, mut end) = (0, 0_u64, 0_u64, 0);
    for (start, first) in pages.iter().enumerate() {
        // All but the last value of the first page are before them.
        while end < pages.len() && (end <= start || behind_first < values.saturating_sub(1)) {
            let Some(page) = pages.get(end) else { break };
            bytes = bytes.saturating_add(page.bytes);
            if end > start {
                behind_first = behind_first.saturating_add(page.values);
            }
            end += 1;
        }
        most = most.max(bytes);
        bytes -= first.bytes.min(bytes);
        let next = pages.get(start + 1).map_or(0, |page| page.values);
        behind_first -= next.min(behind_first);
    }
    most
}

#[derive(Debug, Clone, Copy)]
struct Page {
    is_dictionary: bool,
    /// Decompressed.
    bytes: u64,
    values: u64,
    /// With its header, as it is read.
    all_bytes: usize,
}

impl Page {
    fn first_of(pages: &[u8]) -> Result<Self, Malformed> {
        let (mut kind, mut uncompressed, mut compressed, mut values) = (None, None, None, 0);
        let header = walk(pages, &mut |path, value| {
            if path == KIND {
                kind = Some(value);
            } else if path == UNCOMPRESSED {
                uncompressed = Some(value);
            } else if path == COMPRESSED {
                compressed = Some(value);
            } else if VALUES.iter().any(|it| it == path) {
                values = value;
            }
        })?;
        let size =
            |value: Option<i64>| u64::try_from(value.ok_or(Malformed)?).map_err(|_| Malformed);
        let compressed = usize::try_from(size(compressed)?).map_err(|_| Malformed)?;
        Ok(Self {
            is_dictionary: kind == Some(DICTIONARY),
            bytes: size(uncompressed)?,
            values: u64::try_from(values).map_err(|_| Malformed)?,
            all_bytes: header.bytes.checked_add(compressed).ok_or(Malformed)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_most_is_that_of_any_values_in_a_row(
            pages in proptest::collection::vec((0..50_u64, 1..6_u64), 0..12),
            values in 1..20_u64,
        ) {
            let all: Vec<u64> = pages.iter().enumerate().flat_map(|(at, (_, values))| {
                std::iter::repeat_n(at as u64, *values as usize)
            }).collect();
            let of_window = |window: &[u64]| {
                let (first, last) = (window[0] as usize, window[window.len() - 1] as usize);
                pages[first..=last].iter().map(|(bytes, _)| *bytes).sum::<u64>()
            };
            let width = (values as usize).min(all.len()).max(1);
            let most = all.windows(width).map(of_window).max().unwrap_or(0);
            let pages: Vec<Page> = pages.iter().map(|(bytes, values)| Page {
                is_dictionary: false,
                bytes: *bytes,
                values: *values,
                all_bytes: 0,
            }).collect();
            prop_assert_eq!(most_at_once(&pages, values), most);
        }
    }
}
