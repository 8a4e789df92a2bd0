//! The set of values of sides that do not depend on the row.

use std::sync::Arc;

use datafusion_common::Result;

use super::super::id_set::IdSet;
use super::super::program::{IntersectionProgram, SetScanProgram};
use super::super::steps::cursors::Cursors;
use super::lists::values_without;
use super::matches::retain_within;

/// A set of values is made if there are up to so many for each row of a chunk: one costs two or
/// three nanoseconds, the look-up that it spares a row some tens.
const SET_IDS_PER_ROW: u64 = 16;

/// Larger sets are not made: 4 MB.
const SET_IDS_MAX: u64 = 1 << 18;

/// The values of the sides that are the same for every row, for a [scan](SetScanProgram) of the one
/// that is not; none if they are too many for a chunk of so many rows.
pub(in super::super) fn set_of_values(
    program: &IntersectionProgram,
    scan: &SetScanProgram,
    cursors: &mut [Cursors],
    rows: usize,
) -> Result<Option<Arc<IdSet>>> {
    if let Some(set) = scan.values.get() {
        return Ok(Some(Arc::clone(set)));
    }
    let ids_max = SET_IDS_MAX.min(rows as u64 * SET_IDS_PER_ROW);
    let Some(mut values) = values_without(program, scan.side, cursors, ids_max)? else {
        return Ok(None);
    };
    if let Some(ranges) = &program.ranges {
        retain_within(&mut values, 0, ranges);
    }
    let set = || Arc::new(IdSet::of_ascending(&values));
    Ok(Some(Arc::clone(scan.values.get_or_init(set))))
}
