//! Statistics recounted from the permutations, where their file is damaged.

use std::sync::Arc;

use super::{Statistics, StatisticsBuilder};
use crate::Result;
use crate::quads::index::{COLUMNS, QuadIndex, QuadRow};

/// Reads all permutations once, in their order.
pub(crate) fn counted<'i>(indexes: impl Iterator<Item = &'i Arc<QuadIndex>>) -> Result<Statistics> {
    let mut builder = StatisticsBuilder::default();
    let mut rows: Vec<QuadRow> = Vec::new();
    for index in indexes {
        let mut scan = index.scan(index.all(), [true; COLUMNS]);
        while let Some(vector) = scan.next_vector()? {
            let columns: [&[u64]; COLUMNS] = std::array::from_fn(|number| vector.column(number));
            let row = |row: usize| columns.map(|column| column[row]);
            rows.clear();
            rows.extend((0..columns[0].len()).map(row));
            builder.observe(index.permutation(), &rows);
        }
    }
    Ok(builder.finish())
}
