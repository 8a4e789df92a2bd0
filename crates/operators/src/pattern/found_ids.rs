//! Ids that another node finds at run time, such as a join's build keys, and that a scan filters
//! by.
//!
//! ```text
//!   HashJoinExec
//!     KeysExec        gives its rows on, collects their keys, and publishes these at its end  --.
//!     PatternExec     from then on drops the rows whose variable has none of them             <-'
//! ```
//!
//! A plan holds the *place* ([`FoundIds`]), which both nodes know; the ids belong to an execution
//! of the plan and go with it, so that a plan that runs again, or twice at the same time, or
//! elsewhere, never sees those of another run. A pattern that finds none published (too many keys,
//! or not yet) goes on without: the join above drops the same rows. So it may stop asking where
//! nearly all rows pass.
//!
//! What it saves are the further steps of the pattern, and the rows that the join would look at:
//! not the reading of the first step.

use std::sync::{Arc, OnceLock, Weak};

use arrow::array::{Array, BooleanArray};
use arrow::buffer::BooleanBuffer;
use datafusion_common::Result;
use datafusion_execution::TaskContext;
use parking_lot::Mutex;

use super::chunk::Chunk;
use super::id_set::IdSet;

/// After so many rows it is looked whether asking is worth it.
const TRIED_ROWS: usize = 16_384;

/// A place for ids of a variable. Cheap to copy; copies are the same place.
#[derive(Clone, Debug)]
pub struct FoundIds(Arc<Place>);

#[derive(Debug)]
struct Place {
    variable: Arc<str>,
    number: u32,
    /// What the last execution publishes. The weak context keeps the address its own.
    execution: Mutex<Option<(Weak<TaskContext>, Published)>>,
}

/// What is published in one execution, once it is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Published(Arc<OnceLock<IdSet>>);

impl FoundIds {
    /// A place for ids of this variable (without `?`), by whose number it is known in a plan that
    /// travels: no other place of the plan has it.
    pub fn new(variable: Arc<str>, number: u32) -> Self {
        Self(Arc::new(Place {
            variable,
            number,
            execution: Mutex::default(),
        }))
    }

    /// The variable, without `?`.
    pub fn variable(&self) -> &Arc<str> {
        &self.0.variable
    }

    /// Its number in the plan.
    pub(crate) fn number(&self) -> u32 {
        self.0.number
    }

    /// Begins an execution: whoever runs in it from now on sees what is published here.
    pub(crate) fn begin(&self, context: &Arc<TaskContext>) -> Published {
        let published = Published::default();
        *self.0.execution.lock() = Some((Arc::downgrade(context), published.clone()));
        published
    }

    /// What is published in this execution, if it has begun.
    pub(super) fn of(&self, context: &Arc<TaskContext>) -> Option<Published> {
        let execution = self.0.execution.lock();
        let (owner, published) = execution.as_ref()?;
        (owner.as_ptr() == Arc::as_ptr(context)).then(|| published.clone())
    }
}

impl Published {
    /// All ids that there are, ascending, each once.
    pub(crate) fn publish(&self, ids: &[u64]) {
        // A second time would be by another node: what is there stays.
        self.0.get_or_init(|| IdSet::of_ascending(ids));
    }
}

/// Drops rows of a step without an id that was found; for one run of the pattern.
#[derive(Debug)]
pub(super) struct FoundFilter {
    /// The column of the step's chunks.
    column: usize,
    ids: Published,
    seen_rows: usize,
    kept_rows: usize,
}

impl FoundFilter {
    pub(super) fn new(column: usize, ids: Published) -> Self {
        Self {
            column,
            ids,
            seen_rows: 0,
            kept_rows: 0,
        }
    }

    /// The rows of a chunk that can pass the join.
    pub(super) fn apply(&mut self, chunk: Chunk) -> Result<Chunk> {
        let is_tried = self.seen_rows >= TRIED_ROWS;
        if is_tried && self.kept_rows > self.seen_rows / 4 * 3 {
            return Ok(chunk);
        }
        let Some(set) = self.ids.0.get() else {
            return Ok(chunk);
        };
        let column = &chunk.columns[self.column];
        let ids = column.values();
        let found = BooleanBuffer::collect_bool(ids.len(), |row| set.contains(ids[row]));
        let mask = BooleanArray::new(found, column.nulls().cloned());
        self.seen_rows += chunk.rows;
        let chunk = chunk.filter(&mask)?;
        self.kept_rows += chunk.rows;
        Ok(chunk)
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::UInt64Array;

    use super::*;

    fn chunk(ids: impl Iterator<Item = u64>) -> Chunk {
        let column = UInt64Array::from_iter_values(ids);
        let rows = column.len();
        Chunk {
            columns: vec![column],
            rows,
        }
    }

    #[test]
    fn where_nearly_all_rows_pass_no_more_are_asked() {
        let rows = TRIED_ROWS as u64;
        for (known, kept_later) in [(rows * 9 / 10, 2), (rows / 2, 1)] {
            let ids: Vec<u64> = (1..=known).collect();
            let published = Published::default();
            let mut filter = FoundFilter::new(0, published.clone());
            assert_eq!(filter.apply(chunk(1..=rows)).unwrap().rows as u64, rows);
            published.publish(&ids);
            assert_eq!(filter.apply(chunk(1..=rows)).unwrap().rows as u64, known);
            let later = filter.apply(chunk([1, rows].into_iter())).unwrap();
            assert_eq!(later.rows, kept_later);
        }
    }
}
