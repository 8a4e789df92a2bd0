//! Parameter values: each row of the batches that a client has bound is one set, by position.

use arrow::array::{Array, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use orrery_sql::ScalarValue;
use tonic::{Code, Status};

use crate::refusal::{malformed, refusal};

/// Most bytes of bound rows that a statement holds.
const BOUND_BYTES_MAX: usize = 16 << 20;

/// Rows that are bound to a prepared statement.
#[derive(Debug, Default)]
pub(crate) struct Bound {
    batches: Vec<RecordBatch>,
    bytes: usize,
}

impl Bound {
    /// Adds rows, up to the limit.
    pub(crate) fn push(&mut self, batch: RecordBatch) -> Result<(), Status> {
        self.bytes += batch.get_array_memory_size();
        if self.bytes > BOUND_BYTES_MAX {
            return Err(refusal(
                Code::ResourceExhausted,
                "54000",
                format!(
                    "more than {} MB of values are bound to one statement",
                    BOUND_BYTES_MAX >> 20
                ),
            ));
        }
        if batch.num_rows() > 0 {
            self.batches.push(batch);
        }
        Ok(())
    }

    /// The number of sets of values.
    pub(crate) fn rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// One set of values. Without bound rows it is the empty set.
    pub(crate) fn values(&self, mut row: usize) -> Result<Vec<ScalarValue>, Status> {
        for batch in &self.batches {
            if row < batch.num_rows() {
                return values(batch, row);
            }
            row -= batch.num_rows();
        }
        Ok(Vec::new())
    }
}

/// The values of a row.
pub(crate) fn values(batch: &RecordBatch, row: usize) -> Result<Vec<ScalarValue>, Status> {
    let columns = batch.columns().iter();
    let values = columns.map(|column| {
        let one = column.slice(row, 1);
        let one = match one.data_type() {
            DataType::Dictionary(_, values) => {
                cast(&one, values).map_err(|error| malformed(error.to_string()))?
            }
            _ => one,
        };
        ScalarValue::try_from_array(&one, 0).map_err(|error| malformed(error.to_string()))
    });
    values.collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, DictionaryArray, Int64Array};
    use arrow::datatypes::Int8Type;

    use super::*;

    #[test]
    fn rows_of_all_batches_are_sets_of_values() {
        let batch = |numbers: Vec<i64>, texts: Vec<&str>| {
            let texts: DictionaryArray<Int8Type> = texts.into_iter().collect();
            RecordBatch::try_from_iter([
                ("1", Arc::new(Int64Array::from(numbers)) as ArrayRef),
                ("2", Arc::new(texts) as ArrayRef),
            ])
            .unwrap()
        };
        let mut bound = Bound::default();
        bound.push(batch(vec![1, 2], vec!["a", "b"])).unwrap();
        bound.push(batch(vec![], vec![])).unwrap();
        bound.push(batch(vec![3], vec!["a"])).unwrap();
        assert_eq!(bound.rows(), 3);
        let third = vec![ScalarValue::from(3_i64), ScalarValue::from("a")];
        assert_eq!(bound.values(2).unwrap(), third);
        let second = vec![ScalarValue::from(2_i64), ScalarValue::from("b")];
        assert_eq!(bound.values(1).unwrap(), second);
    }

    #[test]
    fn bound_rows_are_bounded() {
        let numbers = Int64Array::from(vec![0; BOUND_BYTES_MAX / 16]);
        let batch = RecordBatch::try_from_iter([("1", Arc::new(numbers) as ArrayRef)]).unwrap();
        let mut bound = Bound::default();
        bound.push(batch.clone()).unwrap();
        let more = bound.push(batch.clone()).and_then(|()| bound.push(batch));
        assert_eq!(more.unwrap_err().code(), Code::ResourceExhausted);
    }
}
