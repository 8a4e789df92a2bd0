//! The construction of all designs' tables in both stores.
//!
//! ```text
//! batches -> the shape's columns -> sorted by its key, if they are not made so -> a file of a projection | pages of rows
//! ```

use std::collections::HashMap;
use std::path::Path;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::compute::{SortColumn, concat_batches, lexsort_to_indices, take};
use arrow::error::ArrowError;

use super::columns::ColumnWriter;
use super::rows::RowWriter;
use super::shape::{Design, Shape};
use super::store::{Store, Table};
use crate::drivers::BenchError;
use crate::tpch::{Scale, TpchError};

/// Rows that are written at once.
const BATCH_ROWS: usize = 8_192;

/// The tables and indexes of a store, by name.
#[derive(Default)]
pub(super) struct Tables(HashMap<&'static str, Table>);

impl Tables {
    pub(super) fn get(&self, name: &str) -> Result<&Table, BenchError> {
        self.0.get(name).ok_or_else(|| BenchError::Engine {
            message: format!("there is no {name}"),
        })
    }

    /// The place that a design takes.
    pub(super) fn bytes(&self, design: Design) -> u64 {
        let tables = design.shapes().filter_map(|name| self.0.get(name));
        tables.map(|table| table.stored.bytes()).sum()
    }
}

/// The tables in each store.
pub(super) struct Stores {
    columns: Tables,
    rows: Tables,
}

impl Stores {
    /// Makes everything. Files are in the folder, which must stay there.
    pub(super) fn build(
        scale: Scale,
        folder: &Path,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Self, BenchError> {
        let mut stores = Self {
            columns: Tables::default(),
            rows: Tables::default(),
        };
        for (number, shape) in Shape::all(scale).into_iter().enumerate() {
            progress(&format!("making {} as columns and as rows", shape.name));
            let path = folder.join(format!("{number}.columns"));
            let mut columns = ColumnWriter::new(&path, &shape)?;
            let mut rows = RowWriter::new(&shape)?;
            each_batch(&shape, scale, |batch| {
                columns.push(batch)?;
                rows.push(batch)
            })?;
            let (columns, rows) = (columns.finish(&path)?, rows.finish());
            let name = shape.name;
            let columns = Table {
                shape: shape.clone(),
                stored: Box::new(columns),
            };
            let rows = Table {
                shape,
                stored: Box::new(rows),
            };
            stores.columns.0.insert(name, columns);
            stores.rows.0.insert(name, rows);
        }
        Ok(stores)
    }

    pub(super) fn of(&self, store: Store) -> &Tables {
        match store {
            Store::Columns => &self.columns,
            Store::Rows => &self.rows,
        }
    }
}

/// Calls with the columns of some rows at once, in the order of the key.
fn each_batch(
    shape: &Shape,
    scale: Scale,
    mut each: impl FnMut(&[ArrayRef]) -> Result<(), BenchError>,
) -> Result<(), BenchError> {
    let batches = shape.table.batches(scale, BATCH_ROWS);
    let schema = batches.schema();
    let columns = shape.columns.iter().map(|(name, _)| schema.index_of(name));
    let columns: Vec<usize> = columns.collect::<Result<_, _>>().map_err(of_arrow)?;
    let schema = schema.project(&columns).map_err(of_arrow)?;
    let mut batches = batches.map(|batch| batch.and_then(|batch| batch.project(&columns)));
    if shape.is_made_sorted {
        return batches.try_for_each(|batch| each(batch.map_err(of_arrow)?.columns()));
    }
    let all: Vec<RecordBatch> = batches.collect::<Result<_, _>>().map_err(of_arrow)?;
    let all = concat_batches(&schema.into(), &all).map_err(of_arrow)?;
    let key = all.columns()[..shape.key_columns].iter();
    let key = key.map(|values| SortColumn {
        values: values.clone(),
        options: None,
    });
    let order = lexsort_to_indices(&key.collect::<Vec<_>>(), None).map_err(of_arrow)?;
    for start in (0..all.num_rows()).step_by(BATCH_ROWS) {
        let some = order.slice(start, BATCH_ROWS.min(all.num_rows() - start));
        let columns = all.columns().iter();
        let columns = columns.map(|column| take(column, &some, None));
        let columns: Vec<ArrayRef> = columns.collect::<Result<_, _>>().map_err(of_arrow)?;
        each(&columns)?;
    }
    Ok(())
}

fn of_arrow(error: ArrowError) -> BenchError {
    TpchError::from(error).into()
}
