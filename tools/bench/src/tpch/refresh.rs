//! The rows that refresh functions insert and delete.
//!
//! The keys of orders are sparse: of each 32 numbers the generator uses the first eight. As with
//! the TPC's own generator, the orders of refresh set *n* take the next eight beside the base
//! orders that the same set deletes:
//!
//! ```text
//!   order number   i = (n - 1) * SF * 1,500 + 1 ... n * SF * 1,500
//!   RF2 deletes    key(i)          bits of i: high | low 3  ->  high | 00 | low 3
//!   RF1 inserts    key(i) + 8                               ->  high | 01 | low 3
//! ```
//!
//! So every set is apart from the others, and the number of orders stays. The rows themselves are
//! those that the generator makes beyond the table's last: their dates, prices and lines are
//! distributed as in the table, and each order's price and status fit its lines.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::Int64Type;
use arrow::error::ArrowError;
use tpchgen::generators::OrderGenerator;

use super::{Scale, TpchError, TpchTable};

/// After so many sets all orders of the generated table are gone.
pub const REFRESH_SETS_MAX: u32 = 1_000;

/// The bits of a key that are the order number's own.
const KEY_LOW_BITS: u32 = 3;
/// The bits between them and the others.
const KEY_GAP_BITS: u32 = 2;
const BATCH_ROWS: usize = 8_192;

/// One pair of refreshes.
#[derive(Clone, Debug)]
pub struct RefreshSet {
    /// RF1: new orders.
    pub orders: Vec<RecordBatch>,
    /// RF1: their lines.
    pub lines: Vec<RecordBatch>,
    /// RF2: the keys of orders that are deleted with their lines.
    pub deleted: Vec<i64>,
}

impl RefreshSet {
    /// The set of this number, counted from one.
    ///
    /// # Errors
    /// When there is no such set.
    pub fn new(scale: Scale, number: u32) -> Result<Self, TpchError> {
        if !(1..=REFRESH_SETS_MAX).contains(&number) {
            return Err(TpchError::RefreshSet { number });
        }
        // Beyond the last part of the table, cut into parts of one set each.
        let part = (REFRESH_SETS_MAX + number) as i32;
        let parts = REFRESH_SETS_MAX as i32;
        let orders_in_set = (scale.rows(1_500_000) / u64::from(REFRESH_SETS_MAX)) as i64;
        let first_order = i64::from(number - 1) * orders_in_set;
        let first_made = i64::from(part - 1) * orders_in_set;
        let key_of = |made: i64| {
            let order = order_of_key(made) - first_made + first_order;
            OrderGenerator::make_order_key(order) | 1 << KEY_LOW_BITS
        };
        let rekeyed = |table: TpchTable| {
            table
                .part_of_batches(scale, BATCH_ROWS, part, parts)
                .map(|batch| with_keys(&batch?, key_of))
                .collect::<Result<Vec<_>, ArrowError>>()
        };
        Ok(Self {
            orders: rekeyed(TpchTable::Orders)?,
            lines: rekeyed(TpchTable::LineItem)?,
            deleted: (first_order + 1..=first_order + orders_in_set)
                .map(OrderGenerator::make_order_key)
                .collect(),
        })
    }
}

/// The number of the order that has this key in the generated table.
fn order_of_key(key: i64) -> i64 {
    let low = key & ((1 << KEY_LOW_BITS) - 1);
    key >> (KEY_LOW_BITS + KEY_GAP_BITS) << KEY_LOW_BITS | low
}

/// The batch with its first column, an order's key, replaced.
fn with_keys(batch: &RecordBatch, key_of: impl Fn(i64) -> i64) -> Result<RecordBatch, ArrowError> {
    let mut columns = batch.columns().to_vec();
    if let Some(first) = columns.first_mut() {
        let keys: Int64Array = first.as_primitive::<Int64Type>().unary(key_of);
        *first = Arc::new(keys) as ArrayRef;
    }
    RecordBatch::try_new(batch.schema(), columns)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use arrow::array::Array;
    use arrow::datatypes::{Decimal128Type, Int32Type};

    use super::*;

    fn keys(batches: &[RecordBatch]) -> Vec<i64> {
        let columns = batches.iter().map(|batch| batch.column(0));
        columns
            .flat_map(|column| column.as_primitive::<Int64Type>().values().to_vec())
            .collect()
    }

    #[test]
    fn sets_are_apart_from_the_table_and_from_each_other() {
        let scale = Scale::new(0.01).unwrap();
        let table: Vec<_> = TpchTable::Orders
            .batches(scale, 5_000)
            .map(Result::unwrap)
            .collect();
        let table: BTreeSet<i64> = keys(&table).into_iter().collect();
        let mut inserted = BTreeSet::new();
        let mut deleted = BTreeSet::new();
        for number in [1, 2, 3, 500, REFRESH_SETS_MAX] {
            let set = RefreshSet::new(scale, number).unwrap();
            let orders = keys(&set.orders);
            assert_eq!((orders.len(), set.deleted.len()), (15, 15));
            assert!(orders.is_sorted());
            for key in orders {
                assert!(!table.contains(&key) && inserted.insert(key), "{key}");
            }
            for key in set.deleted {
                assert!(table.contains(&key) && deleted.insert(key), "{key}");
            }
        }
        assert!(deleted.contains(table.last().unwrap()));
    }

    #[test]
    fn new_orders_fit_their_lines() {
        let set = RefreshSet::new(Scale::new(0.05).unwrap(), 7).unwrap();
        // The price of an order is the sum over its lines of price * (1 + tax) * (1 - discount),
        // each rounded down to cents.
        let mut prices: BTreeMap<i64, i128> = BTreeMap::new();
        let mut lines = BTreeMap::new();
        for batch in &set.lines {
            let decimals = |column: usize| batch.column(column).as_primitive::<Decimal128Type>();
            let (price, discount, tax) = (decimals(5), decimals(6), decimals(7));
            let numbers = batch.column(3).as_primitive::<Int32Type>();
            for (row, key) in keys(std::slice::from_ref(batch)).into_iter().enumerate() {
                let discounted = price.value(row) * (100 - discount.value(row)) / 100;
                *prices.entry(key).or_default() += discounted * (100 + tax.value(row)) / 100;
                let line = lines.entry(key).or_insert(0);
                *line += 1;
                assert_eq!(numbers.value(row), *line);
                assert!(*line <= 7);
            }
        }
        let mut orders = 0;
        for batch in &set.orders {
            let totals = batch.column(3).as_primitive::<Decimal128Type>();
            for (row, key) in keys(std::slice::from_ref(batch)).into_iter().enumerate() {
                assert_eq!(prices[&key], totals.value(row), "{key}");
                orders += 1;
            }
            assert_eq!(batch.column(8).null_count(), 0);
        }
        assert_eq!((orders, prices.len()), (75, 75));
    }

    #[test]
    fn there_are_a_thousand_sets() {
        let scale = Scale::new(0.01).unwrap();
        for number in [0, REFRESH_SETS_MAX + 1] {
            let error = RefreshSet::new(scale, number).unwrap_err().to_string();
            assert!(error.contains("from 1 to 1000"), "{error}");
        }
    }
}
