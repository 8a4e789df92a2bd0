//! Passes over all rows of a table, to check or rewrite them.
//!
//! ```text
//! piece of some thousand rows: does somebody still wait? -> read -> its memory -> paid for -> given on
//! ```
//!
//! A row costs a touch when it is read and one when it is written, as those of other statements do;
//! it is paid for before anything is done with it, so that a definition that costs more than there
//! is ends in the middle, and is undone.

use std::sync::Arc;

use datafusion::arrow::array::ArrayRef;
use datafusion::execution::memory_pool::MemoryReservation;
use orrery_runtime::Spending;
use orrery_storage::table::{ColumnId, TableState};

use crate::changes::change::Change;
use crate::execute::rows_at_once::RowsAtOnce;
use crate::execute::threads::require_waited_for;
use crate::{Error, Result, SqlState};

/// What is made of a piece, such as keys and values of another type, has so many times its bytes
/// together with it.
const COPIES: usize = 4;

/// What pays for the rows, and holds them.
pub(super) struct RowWork {
    spending: Option<Arc<Spending>>,
    memory: MemoryReservation,
}

impl RowWork {
    /// Of a statement.
    pub(super) fn of(change: &Change) -> Self {
        Self {
            spending: change.spending(),
            memory: change.memory("rows that a definition goes through"),
        }
    }

    /// Pays for touches that are about to be done.
    ///
    /// # Errors
    /// When nothing is left, or nobody waits for the statement any more.
    pub(super) fn pay(&self, touches: u64) -> Result<()> {
        require_waited_for()?;
        let spending = self.spending.as_ref();
        Ok(spending.map_or(Ok(()), |it| it.spend_on_change(touches))?)
    }

    /// Calls `work` with all rows of a table, in pieces: the wanted columns as arrays, in the order
    /// in which they are given. Each row costs so many touches.
    pub(super) fn each_piece(
        &self,
        table: &TableState,
        columns: &[ColumnId],
        touches: u64,
        mut work: impl FnMut(&[ArrayRef]) -> Result<()>,
    ) -> Result<()> {
        let primary = table.primary();
        let place = |id: &ColumnId| primary.layout().position(*id);
        let places: Option<Vec<usize>> = columns.iter().map(place).collect();
        let places = places.ok_or_else(|| {
            let words = "a column of a table that a definition goes through is missing";
            Error::new(SqlState::InternalError, words)
        })?;
        let mut wanted = places.clone();
        wanted.sort_unstable();
        wanted.dedup();
        let mut at_once = RowsAtOnce::default();
        let mut pieces = primary.pieces(&wanted, at_once.rows());
        loop {
            require_waited_for()?;
            let Some(read) = pieces.next_piece()? else {
                break;
            };
            let rows = read.first().map_or(0, |column| column.len());
            let bytes = at_once.have_come(&read);
            let held = self.memory.try_resize(COPIES * bytes);
            held.map_err(|error| Error::of_run(&error))?;
            self.pay(rows as u64 * touches)?;
            let places = places.iter();
            let columns =
                places.map(|at| Arc::clone(&read[wanted.partition_point(|other| other < at)]));
            work(&columns.collect::<Vec<_>>())?;
            pieces.set_rows_max(at_once.rows());
        }
        self.memory.free();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::Int32Array;
    use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryConsumer, MemoryPool};
    use orrery_storage::table::{ColumnDefinition, ColumnType, RelationId, TableDefinition};

    use super::*;
    use crate::execute::stopping::StopOnDrop;

    const NUMBER: ColumnId = ColumnId(1);

    fn table(rows: i32) -> TableState {
        let definition = TableDefinition {
            id: RelationId(1),
            schema: "public".to_owned(),
            name: "numbers".to_owned(),
            columns: vec![ColumnDefinition {
                id: NUMBER,
                name: "number".to_owned(),
                column_type: ColumnType::Integer,
                is_nullable: false,
                default: None,
                initial: None,
            }],
            next_column: 2,
            primary_key: None,
            indexes: Vec::new(),
            foreign_keys: Vec::new(),
            checks: Vec::new(),
        };
        let empty = TableState::empty(Arc::new(definition));
        let numbers: ArrayRef = Arc::new(Int32Array::from_iter_values(0..rows));
        empty.insert(&[numbers]).unwrap().0
    }

    fn work(pool_bytes: usize, spending: Option<Arc<Spending>>) -> RowWork {
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(pool_bytes));
        let memory = MemoryConsumer::new("rows").register(&pool);
        RowWork { spending, memory }
    }

    /// The rows that came, and how it ended.
    fn rows_of(work: &RowWork) -> (usize, Result<()>) {
        let mut rows = 0;
        let ended = work.each_piece(&table(50_000), &[NUMBER], 2, |columns| {
            rows += columns[0].len();
            Ok(())
        });
        (rows, ended)
    }

    #[test]
    fn rows_are_paid_for_held_and_given_to_nobody_who_has_gone() {
        let spending = Spending::new(None);
        let (rows, ended) = rows_of(&work(16 << 20, Some(Arc::clone(&spending))));
        assert_eq!((rows, spending.changed()), (50_000, 100_000));
        ended.unwrap();

        spending.limit_by(|touches| match touches < 110_000 {
            true => Ok(()),
            false => Err("used up".to_owned()),
        });
        let (rows, ended) = rows_of(&work(16 << 20, Some(spending)));
        assert!((1..5_000).contains(&rows), "{rows}");
        assert_eq!(
            ended.unwrap_err().state,
            SqlState::ConfigurationLimitExceeded
        );

        let (_, ended) = rows_of(&work(64 << 10, None));
        assert_eq!(ended.unwrap_err().state, SqlState::OutOfMemory);

        let stop = StopOnDrop::default();
        let to_name = stop.to_name();
        let _named = to_name.named();
        assert_eq!(rows_of(&work(16 << 20, None)).0, 50_000);
        drop(stop);
        let (rows, ended) = rows_of(&work(16 << 20, None));
        assert!(rows == 0 && ended.is_err());
    }
}
