//! The statistics and sort order that a scan reports to the planner.

use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::{ColumnStatistics, ScalarValue, Statistics, stats::Precision};
use datafusion::physical_expr::PhysicalSortExpr;
use datafusion::physical_expr::expressions::Column;
use orrery_storage::table::{ColumnId, ColumnType, KeyEncoder, Projection, ProjectionColumn};

use super::compared::is_padded;

/// How the rows of each partition ascend: by the first columns of the key, as far as they are given
/// and the engine compares them as keys do.
pub(super) fn ordering(
    projection: &Projection,
    columns: &[ColumnId],
    schema: &SchemaRef,
) -> Vec<PhysicalSortExpr> {
    let is_float = |of: ColumnType| matches!(of, ColumnType::Real | ColumnType::Double);
    let key = projection.layout().key().iter();
    let given = key.map_while(|column| {
        let of = column.column_type;
        let place = columns.iter().position(|id| *id == column.id)?;
        (!is_padded(of) && !is_float(of)).then_some(place)
    });
    given
        .map(|place| {
            let column = Column::new(schema.field(place).name(), place);
            let options = SortOptions {
                descending: false,
                nulls_first: false,
            };
            PhysicalSortExpr::new(std::sync::Arc::new(column), options)
        })
        .collect()
}

/// Of `rows` rows of a projection; exact where all of them are meant and none changed since the
/// file was written.
pub(super) fn statistics(
    projection: &Projection,
    columns: &[ColumnId],
    schema: &SchemaRef,
    rows: Precision<usize>,
) -> Statistics {
    let mut told = Statistics::new_unknown(schema);
    told.num_rows = rows;
    let Some(file) = projection.file() else {
        return told;
    };
    let is_exact = matches!(rows, Precision::Exact(_)) && projection.changes().is_empty();
    let places = columns.iter().map(|id| projection.layout().position(*id));
    for (place, told) in places.zip(&mut told.column_statistics) {
        let Some(place) = place else { continue };
        let Some(known) = file.column_statistics(place) else {
            continue;
        };
        let column = projection.layout().columns[place];
        let value = |key: &Option<Vec<u8>>| value_of(column, key.as_deref()?);
        *told = ColumnStatistics {
            null_count: precision(Some(known.nulls as usize), is_exact),
            min_value: precision(value(&known.least), is_exact),
            max_value: precision(value(&known.greatest), is_exact),
            distinct_count: precision(
                Some(known.distinct as usize),
                is_exact && known.is_distinct_exact,
            ),
            ..ColumnStatistics::new_unknown()
        };
    }
    told
}

/// The least and the greatest value of a column of the file, if they are known.
pub(super) fn bounds(projection: &Projection, id: ColumnId) -> Option<(ScalarValue, ScalarValue)> {
    let place = projection.layout().position(id)?;
    let column = projection.layout().columns[place];
    let known = projection.file()?.column_statistics(place)?;
    let value = |key: &Option<Vec<u8>>| value_of(column, key.as_deref()?);
    Some((value(&known.least)?, value(&known.greatest)?))
}

fn precision<T>(value: Option<T>, is_exact: bool) -> Precision<T>
where
    T: std::fmt::Debug + Clone + PartialEq + Eq + PartialOrd,
{
    match value {
        Some(value) if is_exact => Precision::Exact(value),
        Some(value) => Precision::Inexact(value),
        None => Precision::Absent,
    }
}

/// A value that stands as a key of its column alone.
fn value_of(column: ProjectionColumn, key: &[u8]) -> Option<ScalarValue> {
    // Trailing spaces do not stand in keys, and one zero and one NaN stand for all.
    let of = column.column_type;
    if is_padded(of) || matches!(of, ColumnType::Real | ColumnType::Double) {
        return None;
    }
    let column = ProjectionColumn {
        is_nullable: false,
        ..column
    };
    let decoded = KeyEncoder::new(&[column]).decode(std::iter::once(key), 1)?;
    ScalarValue::try_from_array(decoded.first()?, 0).ok()
}
