//! The access path: the projection by which a table is read, and its row estimate.
//!
//! The first columns of each key that conditions bound narrow its positions exactly (see
//! `key_range`), by some searches in the file. The primary projection is read unless an index has
//! much fewer rows within its bounds: in its place where it has all columns that are needed, else,
//! of few rows, for the places of these. What further conditions leave is found by trying them on
//! some vectors.

use std::ops::Range;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::physical_expr::PhysicalExpr;
use orrery_column::VECTOR_ROWS;
use orrery_storage::table::{ColumnId, Projection, TableState};

use super::condition::Condition;
use super::divided::Divided;
use super::failed;
use super::key_range::KeyRanges;
use super::left::passing;

/// An index is read in place of the primary projection where that has so many times the rows.
const ROWS_TIMES_MIN: u64 = 2;
/// Rows that are looked up one by one, at most, and how many others this has to spare for each.
const LOOKED_UP_MAX: u64 = 4_096;
const SPARED_BY_LOOK_UP_MIN: u64 = 32;
/// New rows that are counted.
const COUNTED_MAX: u64 = 4_096;
/// Vectors on which conditions are tried.
const SAMPLES: usize = 8;
/// Of fewer rows none are tried.
const SAMPLED_ROWS_MIN: u64 = 32 * VECTOR_ROWS as u64;
/// What is reckoned to pass where nothing was tried: one of so many.
const UNKNOWN_PART: u64 = 5;

/// A projection and what of it is to be read.
pub(super) struct Access {
    pub(super) projection: Projection,
    /// The name of the index, if it is one.
    pub(super) index: Option<String>,
    /// The index, where its rows are looked up in the projection.
    pub(super) look_up: Option<Projection>,
    /// Positions of that which is scanned.
    pub(super) ranges: Arc<KeyRanges>,
    /// Where that is divided among the partitions by its key.
    pub(super) divided: Option<Divided>,
    pub(super) conditions: Arc<[Condition]>,
    /// How many rows are reckoned to come, and whether that is certain.
    pub(super) rows: u64,
    pub(super) is_exact: bool,
}

/// Chooses it: `needed` are the columns that are given or named by the conditions, which name
/// columns by their index in `ids`.
pub(super) fn choose(
    table: &TableState,
    needed: &[ColumnId],
    conditions: &[Arc<dyn PhysicalExpr>],
    ids: &[ColumnId],
) -> Result<Access> {
    let ranges = |projection: &Projection| KeyRanges::new(projection, conditions, ids);
    let mut best = (
        None,
        table.primary(),
        ranges(table.primary()).map_err(failed)?,
    );
    for (index, projection) in table.indexes() {
        let covers = needed
            .iter()
            .all(|id| projection.layout().position(*id).is_some());
        if !covers || conditions.is_empty() || best.2.rows == 0 {
            continue;
        }
        let found = ranges(projection).map_err(failed)?;
        if found.columns > 0 && found.rows.saturating_mul(ROWS_TIMES_MIN) <= best.2.rows {
            best = (Some(index.name.clone()), projection, found);
        }
    }
    let mut look_up = None;
    for (index, projection) in table.indexes() {
        if conditions.is_empty() || projection.file().is_none() {
            continue;
        }
        let found = ranges(projection).map_err(failed)?;
        let rows = found.rows + new_rows(projection, &found, LOOKED_UP_MAX);
        let spares = rows.saturating_mul(SPARED_BY_LOOK_UP_MIN) <= best.2.rows;
        if found.columns > 0 && rows <= LOOKED_UP_MAX && spares {
            look_up = Some(projection.clone());
            best = (Some(index.name.clone()), table.primary(), found);
        }
    }
    let (index, projection, ranges) = best;
    let made = conditions
        .iter()
        .map(|condition| Condition::new(condition, ids, projection, ranges.rows));
    let made: Vec<Condition> = made.collect::<Result<_>>()?;
    let rows = reckon(projection, &ranges, &made)?;
    Ok(Access {
        projection: projection.clone(),
        index,
        look_up,
        divided: None,
        is_exact: made.is_empty(),
        ranges: Arc::new(ranges),
        conditions: made.into(),
        rows,
    })
}

/// How many new rows have keys within ranges. They are counted up to some; beyond these it is all
/// new rows.
fn new_rows(projection: &Projection, ranges: &KeyRanges, counted_max: u64) -> u64 {
    let changes = projection.changes();
    if ranges.columns == 0 || changes.inserted() == 0 {
        return changes.inserted();
    }
    let counted = ranges.new_rows(changes, projection.positions(), &[]);
    let counted = counted.take(counted_max as usize + 1).count() as u64;
    match counted <= counted_max {
        true => counted,
        false => changes.inserted(),
    }
}

/// How many rows pass.
fn reckon(projection: &Projection, ranges: &KeyRanges, conditions: &[Condition]) -> Result<u64> {
    if conditions.is_empty() {
        return Ok(projection.rows());
    }
    let new = new_rows(projection, ranges, COUNTED_MAX);
    if ranges.rows < SAMPLED_ROWS_MIN {
        // Bounds of the key and nothing else leave all of them.
        let is_bounded = ranges.columns >= conditions.len();
        let part = if is_bounded { 1 } else { UNKNOWN_PART };
        return Ok((ranges.rows + new) / part + 1);
    }
    let file_rows = projection.positions().end - 1;
    let vector_rows = VECTOR_ROWS as u64;
    let vectors = ranges.positions.iter().flat_map(|positions| {
        let first = positions.start / vector_rows;
        first..positions.end.min(file_rows).div_ceil(vector_rows)
    });
    let may_pass = |vector: &u64| {
        conditions
            .iter()
            .all(|condition| condition.zones.may_pass(*vector as usize))
    };
    let vectors: Vec<u64> = vectors.filter(may_pass).collect();
    let stored = ranges.rows.min(vectors.len() as u64 * vector_rows);
    let step = vectors.len().div_ceil(SAMPLES).max(1);
    let (mut tried, mut passed) = (0, 0);
    for vector in vectors.iter().skip(step / 2).step_by(step) {
        let start = vector * vector_rows;
        let rows: Range<u64> = start..(start + vector_rows).min(file_rows);
        tried += rows.end - rows.start;
        // What fails here fails again when it is read, if it is.
        match passing(projection, conditions, rows) {
            Ok(rows) => passed += rows as u64,
            Err(_) => return Ok(stored / UNKNOWN_PART + 1),
        }
    }
    let part = (passed as f64 + 0.5) / (tried as f64 + 1.0);
    Ok((((stored + new) as f64) * part).ceil() as u64)
}
