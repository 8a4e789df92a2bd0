//! Deduplication of input rows where only existence counts.
//!
//! Offers that ask whether their product has a certain review ask the same again and again; and
//! when the pattern shares no variable with its input there is one question for all rows of a
//! batch.

use std::hash::{BuildHasher, Hasher};

use arrow::array::{Array, UInt64Array};
use foldhash::fast::FixedState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

/// After so many rows it is clear whether looking for equal ones is worth while.
const ROWS_OF_SAMPLE: usize = 1_024;
/// It is if at least so many of them are equal to others. Among n rows of N kinds about n^2 / 2N
/// are: 16 of 1,024 when there are 32,768 kinds, as many as a usual batch has rows.
const SAME_ROWS_MIN: usize = 16;

/// Rows that stand for others.
pub(crate) struct DistinctRows {
    /// One row of each kind.
    pub(crate) rows: Vec<u32>,
    /// The other rows, each with the one that stands for it.
    pub(crate) same: Vec<(u32, u32)>,
}

/// Finds rows that are equal in these columns. Rows that are not found to be equal to another stand
/// for themselves; with unbound values, or few equal rows, no more are looked for.
pub(crate) fn distinct_rows(columns: &[&UInt64Array], rows: Vec<u32>) -> DistinctRows {
    let mut distinct = DistinctRows {
        rows: Vec::new(),
        same: Vec::new(),
    };
    let may_be_unbound = columns.iter().any(|column| column.null_count() > 0);
    if may_be_unbound || rows.len() < 2 {
        distinct.rows = rows;
        return distinct;
    }
    let hash = |row: u32| {
        let mut hasher = FixedState::default().build_hasher();
        for column in columns {
            hasher.write_u64(column.value(row as usize));
        }
        hasher.finish()
    };
    let equal = |a: u32, b: u32| {
        let mut columns = columns.iter();
        columns.all(|column| column.value(a as usize) == column.value(b as usize))
    };
    let mut seen: HashTable<u32> = HashTable::new();
    for (position, &row) in rows.iter().enumerate() {
        if position == ROWS_OF_SAMPLE && distinct.same.len() < SAME_ROWS_MIN {
            distinct.rows.extend_from_slice(&rows[position..]);
            break;
        }
        match seen.entry(hash(row), |&other| equal(other, row), |&other| hash(other)) {
            Entry::Occupied(entry) => distinct.same.push((row, *entry.get())),
            Entry::Vacant(entry) => {
                entry.insert(row);
                distinct.rows.push(row);
            }
        }
    }
    distinct
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_stands_for_itself_or_is_stood_for_by_an_equal_one() {
        let a: UInt64Array = (0..5_000).map(|row| Some(row % 7)).collect();
        let b: UInt64Array = (0..5_000).map(|row| Some(row % 3)).collect();
        let distinct = distinct_rows(&[&a, &b], (0..5_000).collect());
        assert_eq!(distinct.rows.len(), 21);
        assert_eq!(distinct.same.len(), 5_000 - 21);
        for (row, other) in distinct.same {
            assert_eq!(a.value(row as usize), a.value(other as usize));
            assert_eq!(b.value(row as usize), b.value(other as usize));
        }
    }

    #[test]
    fn without_columns_one_row_stands_for_all_and_distinct_rows_are_left_alone() {
        assert_eq!(distinct_rows(&[], (0..100).collect()).rows, [0]);
        let a: UInt64Array = (0..5_000).map(Some).collect();
        let distinct = distinct_rows(&[&a], (0..5_000).collect());
        assert_eq!(distinct.rows.len(), 5_000);
        let unbound = UInt64Array::new_null(10);
        assert_eq!(distinct_rows(&[&unbound], (0..10).collect()).rows.len(), 10);
    }
}
