//! The numbering of distinct ids in a batch, so that each is decoded once.
//!
//! ```text
//! ?offer  7 8 9 9 12   ->  ids 7 8 9 12    numbers 0 1 2 2 3
//! ?vendor 5 3 3 5 -    ->  ids 3 5         numbers 5 4 4 5 -
//! ```
//!
//! Ids are read in ascending order, for that is the dictionary's. A large batch is numbered column
//! by column: ids of one column are of one kind mostly and lie close together, so they are sorted
//! as small numbers, and those of a scan's first column are sorted already. 8,192 rows of five
//! columns took 25 ns a cell as one list of cells. An id of two columns is read for each of them
//! then. In small batches, where each list that is read costs more than its sorting, all cells are
//! sorted together.

use arrow::array::{Array, AsArray, RecordBatch, UInt64Array};
use arrow::datatypes::UInt64Type;
use orrery_operators::pattern::sort_rows;
use orrery_term::TermId;

use super::batch::UNBOUND;

/// Up to so many cells are sorted together.
const CELLS_TOGETHER_MAX: usize = if cfg!(test) { 16 } else { 512 };

/// The ids of a batch and their numbers.
pub(super) struct Numbering {
    /// Lists of ids, each strictly ascending. They are numbered one after the other.
    pub(super) ids: Vec<Vec<TermId>>,
    /// Per variable, per row: the number of the id, or [`UNBOUND`].
    pub(super) columns: Vec<Vec<u32>>,
}

impl Numbering {
    /// Numbers the ids of a batch; `columns` says which column each variable has, if any.
    pub(super) fn of(batch: &RecordBatch, columns: &[Option<usize>]) -> Self {
        let ids_of = |at: usize| batch.column(at).as_primitive::<UInt64Type>();
        let rows = batch.num_rows();
        let columns: Vec<Option<&UInt64Array>> = columns.iter().map(|at| at.map(ids_of)).collect();
        match rows * columns.len() <= CELLS_TOGETHER_MAX {
            true => together(rows, &columns),
            false => each_alone(rows, &columns),
        }
    }

    /// How many different ids a variable has, if its column was numbered alone; `columns` as they
    /// were given.
    pub(super) fn different(&self, columns: &[Option<usize>], variable: usize) -> Option<usize> {
        let is_alone = self.ids.len() == columns.iter().flatten().count();
        let list = columns[..variable].iter().flatten().count();
        self.ids.get(list).filter(|_| is_alone).map(Vec::len)
    }

    /// How many ids there are.
    pub(super) fn len(&self) -> usize {
        self.ids.iter().map(Vec::len).sum()
    }
}

/// Cells are sorted with their places: to look up each cell's id among the different ones would be
/// a binary search a cell.
fn together(rows: usize, columns: &[Option<&UInt64Array>]) -> Numbering {
    let mut numbers = vec![vec![UNBOUND; rows]; columns.len()];
    let mut cells: Vec<(u64, u32, u32)> = Vec::with_capacity(rows * columns.len());
    for (variable, column) in (0..).zip(columns) {
        let Some(column) = column else { continue };
        let bound = (0..).zip(*column).filter_map(|(row, id)| Some((id?, row)));
        cells.extend(bound.map(|(id, row)| (id, variable, row)));
    }
    cells.sort_unstable();
    let mut ids: Vec<TermId> = Vec::new();
    for (bits, variable, row) in cells {
        push_different(&mut ids, bits);
        numbers[variable as usize][row as usize] = last_number(0, &ids);
    }
    Numbering {
        ids: vec![ids],
        columns: numbers,
    }
}

fn each_alone(rows: usize, columns: &[Option<&UInt64Array>]) -> Numbering {
    let mut numbering = Numbering {
        ids: Vec::with_capacity(columns.len()),
        columns: Vec::with_capacity(columns.len()),
    };
    let mut before = 0;
    for column in columns {
        let numbers = match column {
            None => vec![UNBOUND; rows],
            Some(column) => {
                let (ids, numbers) = of_column(column, before);
                before += ids.len();
                numbering.ids.push(ids);
                numbers
            }
        };
        numbering.columns.push(numbers);
    }
    numbering
}

/// The different ids of a column, which have the numbers from `first` on, and the number of each
/// row.
fn of_column(column: &UInt64Array, first: usize) -> (Vec<TermId>, Vec<u32>) {
    let mut ids = Vec::new();
    let bound: Option<(Vec<u32>, Vec<u64>)> = (column.null_count() > 0).then(|| {
        let bound = (0..).zip(column);
        bound.filter_map(|(row, id)| Some((row, id?))).unzip()
    });
    let values = bound.as_ref().map_or(&column.values()[..], |(_, ids)| ids);
    if bound.is_none() && values.is_sorted() {
        let number = |&bits: &u64| {
            push_different(&mut ids, bits);
            last_number(first, &ids)
        };
        let numbers = values.iter().map(number).collect();
        return (ids, numbers);
    }
    let mut numbers = vec![UNBOUND; column.len()];
    let (sorted, order) = sort_rows([values]);
    for (place, &bits) in sorted.iter().enumerate() {
        push_different(&mut ids, bits);
        let at = order.as_ref().map_or(place, |order| order[place] as usize);
        let row = bound.as_ref().map_or(at, |(rows, _)| rows[at] as usize);
        numbers[row] = last_number(first, &ids);
    }
    (ids, numbers)
}

/// Appends an id unless it is the last one.
#[inline]
fn push_different(ids: &mut Vec<TermId>, bits: u64) {
    let id = TermId::from_bits(bits);
    if ids.last() != Some(&id) {
        ids.push(id);
    }
}

/// The number of the last id of a list whose first one has the number `first`. A batch has fewer
/// cells than there are numbers.
#[inline]
fn last_number(first: usize, ids: &[TermId]) -> u32 {
    (first + ids.len() - 1) as u32
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, RecordBatchOptions};
    use arrow::datatypes::{DataType, Field, Schema};
    use proptest::prelude::*;

    use super::*;

    fn batch_of(columns: &[Vec<Option<u64>>], rows: usize) -> RecordBatch {
        let field = |number: usize| Field::new(format!("v{number}"), DataType::UInt64, true);
        let fields: Vec<Field> = (0..columns.len()).map(field).collect();
        let array = |cells: &Vec<Option<u64>>| -> ArrayRef {
            Arc::new(UInt64Array::from_iter(cells.iter().copied()))
        };
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let arrays = columns.iter().map(array).collect();
        RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options).unwrap()
    }

    proptest! {
        #[test]
        fn each_cell_finds_its_id_by_its_number(
            rows in 0..60usize,
            seeds in proptest::collection::vec((any::<u64>(), 1..64u32, 0..4u32, any::<bool>()), 0..4),
            missing in proptest::option::of(0..4usize),
        ) {
            let columns: Vec<Vec<Option<u64>>> = seeds
                .iter()
                .map(|&(seed, bits, unbound, is_sorted)| {
                    let cell = |row: usize| {
                        let mixed = (seed ^ row as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 7;
                        let id = mixed & ((1 << bits) - 1);
                        (unbound == 0 || mixed % 4 >= u64::from(unbound)).then_some(id)
                    };
                    let mut cells: Vec<Option<u64>> = (0..rows).map(cell).collect();
                    if is_sorted {
                        cells.sort_unstable();
                    }
                    cells
                })
                .collect();
            let mut places: Vec<Option<usize>> = (0..columns.len()).map(Some).collect();
            if let Some(missing) = missing {
                places.insert(missing.min(places.len()), None);
            }
            let numbering = Numbering::of(&batch_of(&columns, rows), &places);
            for list in &numbering.ids {
                prop_assert!(list.windows(2).all(|pair| pair[0] < pair[1]));
            }
            let ids = numbering.ids.concat();
            prop_assert_eq!(ids.len(), numbering.len());
            for (place, numbers) in places.iter().zip(&numbering.columns) {
                let found: Vec<Option<u64>> = numbers
                    .iter()
                    .map(|&number| (number != UNBOUND).then(|| ids[number as usize].bits()))
                    .collect();
                let expected = place.map_or_else(|| vec![None; rows], |at| columns[at].clone());
                prop_assert_eq!(found, expected);
            }
        }
    }
}
