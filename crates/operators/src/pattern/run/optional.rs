//! An optional pattern over an adjacency, a batch at a time and in its order.
//!
//! ```text
//! input     a  b  c  d        its columns go on as they are, if no row has two matches
//! values    7  -  9  9        a row without a match has none
//! ```
//!
//! In the general way rows are numbered, those with matches are gathered, and the others follow as
//! a batch of their own: after four optional patterns a batch is sixteen. Here nothing is numbered
//! or gathered, as long as each row has at most one match.
//!
//! For one step without conditions, in which all variables of the input are bound that it joins on;
//! not for batches with keys that changes touch, and not where the matches are so many that they
//! should come in pieces, or more than there is memory for. How many values a key has is known
//! before any is copied, and of those no more are copied than rows are wanted.

use std::sync::atomic::Ordering;

use arrow::array::{Array, UInt64Array};
use arrow::buffer::{BooleanBuffer, NullBuffer, ScalarBuffer};
use arrow::record_batch::RecordBatch;
use datafusion_common::Result;
use orrery_storage::Adjacency;

use crate::pattern::program::{AdjacentStep, Key, OutputColumn, Program, StepProgram, ThirdColumn};
use crate::pattern::run::compiled::CompiledPattern;
use crate::pattern::run::pipeline::{OUTPUT_ROWS_MAX, StepCounters};
use crate::pattern::specification::PatternMode;
use crate::solutions::{gather, solution_batch, storage_error};

/// Of batches with more matches than this the general way gives out pieces.
const MATCHES_MAX: usize = if cfg!(test) { 16 } else { OUTPUT_ROWS_MAX };

/// What bounds the rows of a batch that is done at once.
pub(crate) struct Bounds<F> {
    /// More rows are not wanted.
    pub(crate) wanted: usize,
    /// Whether there is memory for so many rows of so many bytes.
    pub(crate) has_room: F,
}

/// The matches of a batch.
struct OptionalMatches {
    /// The keys that were looked up: all, or as many as give the rows that are wanted.
    keys: usize,
    /// The row of each match, or of the absence of any, ascending; nothing if there is one for each
    /// key.
    rows: Option<Vec<u32>>,
    /// The value of each, if it has one.
    values: UInt64Array,
}

/// Whether batches of a pattern can be done at once, as far as its specification tells.
pub(crate) fn may_be_at_once(plan: &CompiledPattern) -> bool {
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

/// The rows that come of a batch of input rows, in which all variables are bound that join, as far
/// as they are wanted; nothing if it is not done this way.
pub(crate) fn at_once(
    plan: &CompiledPattern,
    columns: &[UInt64Array],
    rows: usize,
    bounds: Bounds<impl FnMut(usize, usize) -> bool>,
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
    // Of a row that goes out: its columns, and its number and whether it has a value.
    let row_bytes = (program.output.len() + 2) * size_of::<u64>();
    let Bounds {
        wanted,
        mut has_room,
    } = bounds;
    let found = find_matches(&adjacency, keys, wanted, |rows| has_room(rows, row_bytes));
    let Some(matches) = found else {
        return Ok(None);
    };
    count(&plan.counters, matches.keys, &matches.values);
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
        (OutputColumn::Input(at), None) => Ok(columns[at].slice(0, rows)),
        (OutputColumn::Input(at), Some(rows)) => gather(&columns[at], rows),
        // What goes on of the input is fetched from there; of the chunk only the values are asked
        // for.
        (OutputColumn::Chunk(at), _) if at == step.carried.len() => Ok(matches.values.clone()),
        (OutputColumn::Chunk(_) | OutputColumn::Unbound, _) => Ok(UInt64Array::new_null(rows)),
    };
    let columns = program.output.iter().map(column_of);
    solution_batch(&plan.schema, columns.collect::<Result<_>>()?, rows)
}

/// The matches of the keys, as many as are wanted; nothing if there are too many, or no room for
/// them.
fn find_matches(
    adjacency: &Adjacency,
    keys: &[u64],
    wanted: usize,
    mut has_room: impl FnMut(usize) -> bool,
) -> Option<OptionalMatches> {
    // Each key gives a row.
    let keys = &keys[..keys.len().min(wanted)];
    let mut room = keys.len();
    if !has_room(room) {
        return None;
    }
    if adjacency.is_functional() {
        let (mut rows, mut values) = (Vec::new(), Vec::new());
        adjacency.single_values(keys, 0, &mut rows, &mut values);
        return Some(OptionalMatches {
            keys: keys.len(),
            values: in_their_rows(keys.len(), &rows, values),
            rows: None,
        });
    }
    let rows_max = MATCHES_MAX.max(keys.len());
    let (mut rows, mut values) = (Vec::with_capacity(room), Vec::with_capacity(room));
    let mut is_bound = Vec::with_capacity(room);
    let mut looked_up = 0;
    for (row, &key) in (0u32..).zip(keys) {
        let left = wanted - rows.len();
        if left == 0 {
            break;
        }
        looked_up += 1;
        let positions = adjacency.rank(key).map(|rank| adjacency.positions(rank));
        let count = positions.as_ref().map_or(1, |all| all.len().min(left));
        let rows_then = rows.len() + count;
        if rows_then > rows_max {
            return None;
        }
        if rows_then > room {
            room = rows_then.next_power_of_two().min(rows_max);
            if !has_room(room) {
                return None;
            }
        }
        is_bound.resize(rows_then, positions.is_some());
        match positions {
            Some(all) => adjacency.extend(all.start..all.start + count, &mut values),
            None => values.push(0),
        }
        rows.resize(rows_then, row);
    }
    // Each key that was looked up has a row.
    let is_one_each = rows.len() == looked_up;
    Some(OptionalMatches {
        keys: looked_up,
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
