//! An optional pattern by an adjacency in memory: a batch at once, in its order.
//!
//! ```text
//! input     a  b  c  d        its columns go on as they are, if no row has two matches
//! values    7  -  9  9        a row without a match has none
//! ```
//!
//! In the general way rows are numbered, those with matches are gathered, and the others follow as a batch of their own: after four optional
//! patterns a batch is sixteen. Here nothing is numbered or gathered, as long as each row has at most one match.
//!
//! For one step without conditions, in which all variables of the input are bound that it joins on; not for batches with keys that changes
//! touch, and not where the matches are so many that they should come in pieces.

use std::sync::atomic::Ordering;

use arrow::array::{Array, UInt64Array};
use arrow::buffer::{BooleanBuffer, NullBuffer, ScalarBuffer};
use arrow::record_batch::RecordBatch;
use datafusion_common::Result;
use orrery_storage::Adjacency;

use super::compiled::CompiledPattern;
use super::pipeline::StepCounters;
use super::program::{AdjacentStep, Key, OutputColumn, Program, StepProgram, ThirdColumn};
use super::specification::PatternMode;
use crate::solutions::{gather, solution_batch, storage_error};

/// Of batches with more matches than this the general way gives out pieces.
const MATCHES_MAX: usize = if cfg!(test) { 16 } else { 131_072 };

/// The matches of a batch.
struct OptionalMatches {
    /// The row of each match, or of the absence of any, ascending; nothing if there is one for each row.
    rows: Option<Vec<u32>>,
    /// The value of each, if it has one.
    values: UInt64Array,
}

/// Whether batches of a pattern can be done at once, as far as its specification tells.
pub(super) fn may_be_at_once(plan: &CompiledPattern) -> bool {
    let specification = &plan.specification;
    specification.mode == PatternMode::Optional
        && specification.steps.len() == 1
        && specification.filters.is_empty()
        && specification.given.is_empty()
}

/// The step of a program, if it reads the values of a key in the input.
fn step_of(program: &Program) -> Option<(&StepProgram, &AdjacentStep, usize)> {
    let [step] = program.steps.as_slice() else {
        return None;
    };
    let adjacent = step.adjacent.as_ref()?;
    let (&ThirdColumn::Read(None), Key::Column(key)) = (&adjacent.third, adjacent.key) else {
        return None;
    };
    // The key is a variable of the input, the row's number comes after those.
    let key = *program.entry_columns.get(key)?;
    (step.intersection.is_none() && step.produced.len() == 1).then_some((step, adjacent, key))
}

/// All rows that come of a batch of input rows, in which all variables are bound that join; nothing if it is not done this way.
pub(super) fn at_once(
    plan: &CompiledPattern,
    columns: &[UInt64Array],
    rows: usize,
) -> Result<Option<RecordBatch>> {
    let program = plan.bound_program()?;
    let Some((step, adjacent, key)) = step_of(program).filter(|_| rows > 0) else {
        return Ok(None);
    };
    // Who looks up in the permutation instead counts what is missed.
    let slot = adjacent.slot()?.filter(|slot| slot.get().is_some());
    let Some(slot) = slot else {
        return Ok(None);
    };
    let Some((adjacency, touched)) = adjacent.find(&slot, &plan.context, rows)? else {
        return Ok(None);
    };
    let keys = &columns[key].values()[..];
    if !touched.is_empty() {
        for &key in keys {
            if touched.contains(key).map_err(storage_error)? {
                return Ok(None);
            }
        }
    }
    let Some(matches) = find_matches(&adjacency, keys) else {
        return Ok(None);
    };
    count(&plan.counters, keys.len(), &matches.values);
    output(plan, program, (step, columns), &matches).map(Some)
}

/// Notes what was done in the counters of the only step.
fn count(counters: &[StepCounters], keys: usize, values: &UInt64Array) {
    if let Some(counters) = counters.first() {
        let found = values.len() - values.null_count();
        counters.in_memory.fetch_add(keys, Ordering::Relaxed);
        counters.rows.fetch_add(found, Ordering::Relaxed);
    }
}

fn output(
    plan: &CompiledPattern,
    program: &Program,
    (step, columns): (&StepProgram, &[UInt64Array]),
    matches: &OptionalMatches,
) -> Result<RecordBatch> {
    let rows = matches.values.len();
    let column_of = |column: &OutputColumn| match (*column, &matches.rows) {
        (OutputColumn::Input(at), None) => Ok(columns[at].clone()),
        (OutputColumn::Input(at), Some(rows)) => gather(&columns[at], rows),
        // What goes on of the input is fetched from there; of the chunk only the values are asked for.
        (OutputColumn::Chunk(at), _) if at == step.carried.len() => Ok(matches.values.clone()),
        (OutputColumn::Chunk(_) | OutputColumn::Unbound, _) => Ok(UInt64Array::new_null(rows)),
    };
    let columns = program.output.iter().map(column_of);
    solution_batch(&plan.schema, columns.collect::<Result<_>>()?, rows)
}

/// Nothing if there are too many.
fn find_matches(adjacency: &Adjacency, keys: &[u64]) -> Option<OptionalMatches> {
    if adjacency.is_functional() {
        let (mut rows, mut values) = (Vec::new(), Vec::new());
        adjacency.single_values(keys, 0, &mut rows, &mut values);
        return Some(OptionalMatches {
            values: in_their_rows(keys.len(), &rows, values),
            rows: None,
        });
    }
    let (mut rows, mut values) = (Vec::with_capacity(keys.len()), Vec::new());
    let mut is_bound = Vec::with_capacity(keys.len());
    for (row, &key) in (0u32..).zip(keys) {
        let before = values.len();
        match adjacency.rank(key) {
            Some(rank) => adjacency.extend(adjacency.positions(rank), &mut values),
            None => values.push(0),
        }
        let count = values.len() - before;
        if values.len() > MATCHES_MAX.max(keys.len()) {
            return None;
        }
        is_bound.extend(std::iter::repeat_n(adjacency.rank(key).is_some(), count));
        rows.extend(std::iter::repeat_n(row, count));
    }
    let is_one_each = rows.len() == keys.len();
    Some(OptionalMatches {
        values: with_nulls(values, BooleanBuffer::from(is_bound)),
        rows: (!is_one_each).then_some(rows),
    })
}

/// Each value in its row; the others have none.
fn in_their_rows(rows: usize, places: &[u32], values: Vec<u64>) -> UInt64Array {
    if places.len() == rows {
        return UInt64Array::new(ScalarBuffer::from(values), None);
    }
    let mut in_rows = vec![0; rows];
    let mut is_bound = vec![false; rows];
    for (&row, value) in places.iter().zip(values) {
        in_rows[row as usize] = value;
        is_bound[row as usize] = true;
    }
    with_nulls(in_rows, BooleanBuffer::from(is_bound))
}

fn with_nulls(values: Vec<u64>, is_bound: BooleanBuffer) -> UInt64Array {
    let nulls = NullBuffer::new(is_bound);
    let nulls = (nulls.null_count() > 0).then_some(nulls);
    UInt64Array::new(ScalarBuffer::from(values), nulls)
}
