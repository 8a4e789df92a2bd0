//! The keys of groups, numbered in a hash table.
//!
//! A column of ids is numbered by an [`IdTable`]. Of several columns each has a table of its own,
//! whose numbers are put together pair by pair, in tables of pairs:
//!
//! ```text
//! ?a -> 3 \
//!          (3, 0) -> 5 \
//! ?b -> 0 /             (5, 2) -> 7, the group's number
//! ?c -> 2 ------------- /
//! ```
//!
//! Groups are numbered in the order in which their keys first came. Where ids lie close together
//! nothing is hashed. Where they do not, rows mostly come in runs of a key, which cost no look-up;
//! and if they do not but keys are few (countries), a small table of the ids that came lately saves
//! the hashing. The pairs of few numbers are a matrix: hashing was a quarter of the time of reviews
//! by month.

use arrow::array::{Array, AsArray, RecordBatch, UInt64Array};
use arrow::datatypes::UInt64Type;
use datafusion_common::{Result, internal_err};

use super::id_table::IdTable;

/// Stands for an unbound key among the ids of a table, and for no key; no term has this id, and no
/// row this number.
const NULL: u64 = u64::MAX;

/// No pair came yet.
const FREE: u32 = u32::MAX;
/// Numbers of pairs that are looked up in a matrix.
const MATRIX_SIDE: usize = 64;
/// Ids that are remembered with their numbers; a power of two.
const RECENT: usize = 64;
/// Rows from which the small table and the matrix are made: a query of few rows is not to pay for
/// them.
const REMEMBERED_ROWS_MIN: usize = 2_048;
/// With more different ids nothing is remembered.
const REMEMBERED_IDS_MAX: usize = 64;

/// Numbers for the values of some columns together; see the module's documentation.
pub(super) struct GroupKeys {
    columns: Vec<KeyColumn>,
    /// One for each column after the first.
    pairs: Vec<Pairs>,
    /// The numbers of a batch's rows in one column.
    scratch: Vec<usize>,
    /// Rows numbered so far.
    rows: usize,
}

/// One column of the keys.
struct KeyColumn {
    place: usize,
    table: IdTable,
    /// Ids that came lately with their numbers, by [`recent_place`]; empty as long as rows are few.
    recent: Vec<(u64, usize)>,
    /// The number of the unbound key.
    null: Option<u32>,
}

impl GroupKeys {
    /// Of these columns of the batches to come, at least one.
    pub(super) fn new(places: &[usize]) -> Self {
        let column = |&place| KeyColumn {
            place,
            table: IdTable::new(),
            recent: Vec::new(),
            null: None,
        };
        Self {
            columns: places.iter().map(column).collect(),
            pairs: places.iter().skip(1).map(|_| Pairs::new()).collect(),
            scratch: Vec::new(),
            rows: 0,
        }
    }

    /// Number of groups.
    pub(super) fn len(&self) -> usize {
        let table = match self.pairs.last() {
            Some(pairs) => Some(&pairs.table),
            None => self.columns.first().map(|column| &column.table),
        };
        table.map_or(0, IdTable::len)
    }

    /// Rows numbered so far.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Bytes on the heap.
    pub(super) fn size(&self) -> usize {
        let columns = self.columns.iter();
        let columns = columns.map(|column| column.table.size() + size_of_val(&*column.recent));
        let pairs = self.pairs.iter();
        let pairs = pairs.map(|pairs| pairs.table.size() + size_of_val(&*pairs.matrix));
        columns.chain(pairs).sum::<usize>() + self.scratch.capacity() * size_of::<usize>()
    }

    /// Puts the numbers of the groups of a batch's rows into `numbers`.
    pub(super) fn number(&mut self, batch: &RecordBatch, numbers: &mut Vec<usize>) -> Result<()> {
        self.rows = self.rows.saturating_add(batch.num_rows());
        if self.rows >= REMEMBERED_ROWS_MIN {
            self.remember();
        }
        let Some((first, others)) = self.columns.split_first_mut() else {
            return internal_err!("groups without a key");
        };
        first.number(batch, numbers)?;
        for (column, pairs) in others.iter_mut().zip(&mut self.pairs) {
            column.number(batch, &mut self.scratch)?;
            for (number, &other) in numbers.iter_mut().zip(&self.scratch) {
                *number = pairs.number(*number, other)?;
            }
        }
        Ok(())
    }

    /// Makes what saves hashing, if it is not there yet.
    fn remember(&mut self) {
        for column in &mut self.columns {
            column.recent.resize(RECENT, (NULL, 0));
        }
        for pairs in &mut self.pairs {
            pairs.matrix.resize(MATRIX_SIDE * MATRIX_SIDE, FREE);
        }
    }

    /// The keys of all groups, a column each.
    pub(super) fn into_columns(self) -> Vec<UInt64Array> {
        let groups = self.len();
        // For each group its number among the first columns, from the last column to the first.
        let mut numbers: Vec<u32> = (0..groups).map(|number| number as u32).collect();
        let mut arrays = Vec::with_capacity(self.columns.len());
        let pairs = self
            .pairs
            .into_iter()
            .map(|pairs| Some(pairs.table.into_ids()));
        let pairs: Vec<_> = std::iter::once(None).chain(pairs).collect();
        for (column, pairs) in self.columns.into_iter().zip(pairs).rev() {
            let null = column.null;
            let ids = column.table.into_ids();
            let id = |number: u32| (Some(number) != null).then(|| ids[number as usize]);
            arrays.push(match pairs {
                None if null.is_none() && numbers.len() == ids.len() => ids.into(),
                None => numbers.iter().map(|&number| id(number)).collect(),
                Some(pairs) => {
                    let pair_of = |number: &mut u32| {
                        let pair = pairs[*number as usize];
                        *number = (pair >> 32) as u32;
                        id(pair as u32)
                    };
                    numbers.iter_mut().map(pair_of).collect::<UInt64Array>()
                }
            });
        }
        arrays.reverse();
        arrays
    }
}

/// Pairs of numbers and the numbers of these.
struct Pairs {
    table: IdTable,
    /// Those of two numbers below [`MATRIX_SIDE`]; [`FREE`] where it did not come yet. Empty as
    /// long as rows are few.
    matrix: Vec<u32>,
    last: (u64, usize),
}

impl Pairs {
    fn new() -> Self {
        Self {
            table: IdTable::new(),
            matrix: Vec::new(),
            last: (NULL, 0),
        }
    }

    #[inline]
    fn number(&mut self, first: usize, second: usize) -> Result<usize> {
        if first < MATRIX_SIDE
            && second < MATRIX_SIDE
            && let Some(known) = self.matrix.get_mut(first * MATRIX_SIDE + second)
        {
            if *known == FREE {
                *known = number_of(&mut self.table, pair_of(first, second))? as u32;
            }
            return Ok(*known as usize);
        }
        let pair = pair_of(first, second);
        if pair != self.last.0 {
            self.last = (pair, number_of(&mut self.table, pair)?);
        }
        Ok(self.last.1)
    }
}

/// Two numbers as one. Both are below 2^32 - 1, so that no pair is [`NULL`].
#[inline]
fn pair_of(first: usize, second: usize) -> u64 {
    (first as u64) << 32 | second as u64
}

/// The place of an id among those that came lately: the top bits of a product.
#[inline]
fn recent_place(id: u64) -> usize {
    (id.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - RECENT.ilog2())) as usize
}

fn number_of(table: &mut IdTable, id: u64) -> Result<usize> {
    match table.number(id) {
        Some(number) => Ok(number as usize),
        None => internal_err!("more groups than can be numbered"),
    }
}

impl KeyColumn {
    /// Numbers the different keys of the rows.
    fn number(&mut self, batch: &RecordBatch, numbers: &mut Vec<usize>) -> Result<()> {
        let Some(keys) = batch.column(self.place).as_primitive_opt::<UInt64Type>() else {
            return internal_err!("the key of a group is no column of ids");
        };
        numbers.clear();
        numbers.reserve(keys.len());
        let mut last = (NULL, 0);
        for (row, &key) in keys.values().iter().enumerate() {
            if keys.is_null(row) {
                numbers.push(self.number_of_null()?);
                continue;
            }
            if self.table.is_dense() {
                // Nothing is quicker, and no branch depends on the key.
                numbers.push(number_of(&mut self.table, key)?);
                continue;
            }
            if key == last.0 {
                numbers.push(last.1);
                continue;
            }
            let recent = self.recent.get_mut(recent_place(key));
            if let Some(known) = recent.as_deref().filter(|known| known.0 == key) {
                last = *known;
                numbers.push(last.1);
                continue;
            }
            last = (key, number_of(&mut self.table, key)?);
            if self.table.len() <= REMEMBERED_IDS_MAX
                && let Some(recent) = recent
            {
                *recent = last;
            }
            numbers.push(last.1);
        }
        Ok(())
    }

    /// The number of the unbound key.
    fn number_of_null(&mut self) -> Result<usize> {
        let number = match self.null {
            Some(number) => Some(number),
            None => self.table.number_apart(NULL),
        };
        self.null = number;
        match number {
            Some(number) => Ok(number as usize),
            None => internal_err!("more groups than can be numbered"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::ArrayRef;
    use proptest::collection::vec;
    use proptest::option;
    use proptest::prelude::*;

    use super::*;
    use crate::oracle::schema;

    proptest! {
        #[test]
        fn keys_are_numbered_in_the_order_of_their_first_rows(
            width in 1usize..4,
            different in prop_oneof![Just(7u64), Just(300)],
            batches in vec(vec([0, 1, 2].map(|_| option::weighted(0.9, any::<u64>())), 0..1_200), 0..6),
        ) {
            let key = |id: Option<u64>| id.map(|id| id % different);
            let batches: Vec<Vec<_>> =
                batches.iter().map(|rows| rows.iter().map(|row| row.map(key)).collect()).collect();
            let places: Vec<usize> = (0..width).rev().collect();
            let mut keys = GroupKeys::new(&places);
            let mut model: Vec<Vec<Option<u64>>> = Vec::new();
            let mut numbers = Vec::new();
            for rows in &batches {
                let columns = (0..3).map(|place| {
                    let column: UInt64Array = rows.iter().map(|row| row[place]).collect();
                    Arc::new(column) as ArrayRef
                });
                let batch = RecordBatch::try_new(schema(&["a", "b", "c"]), columns.collect()).unwrap();
                keys.number(&batch, &mut numbers).unwrap();
                prop_assert_eq!(numbers.len(), rows.len());
                for (row, &number) in rows.iter().zip(&numbers) {
                    let key: Vec<Option<u64>> = places.iter().map(|&place| row[place]).collect();
                    let known = model.iter().position(|known| *known == key);
                    let expected = known.unwrap_or_else(|| {
                        model.push(key);
                        model.len() - 1
                    });
                    prop_assert_eq!(number, expected);
                }
                prop_assert_eq!(keys.len(), model.len());
            }
            prop_assert!(keys.size() >= model.len() * 8);
            let columns = keys.into_columns();
            prop_assert_eq!(columns.len(), width);
            for (at, column) in columns.iter().enumerate() {
                let expected: Vec<Option<u64>> = model.iter().map(|key| key[at]).collect();
                prop_assert_eq!(column.iter().collect::<Vec<_>>(), expected);
            }
        }
    }
}
