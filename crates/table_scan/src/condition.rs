//! A condition compiled for one projection: its columns, its tests of zones and dictionaries, and
//! its evaluation on rows.
//!
//! A condition that cannot fail, whatever the values, may be asked of rows for which another one is
//! false already; others are asked of the rest alone.

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, RecordBatch, RecordBatchOptions, new_null_array,
};
use datafusion::arrow::buffer::BooleanBuffer;
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DataFusionError, Result};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{
    Column, InListExpr, IsNotNullExpr, IsNullExpr, LikeExpr, Literal,
};
use datafusion::physical_expr::utils::collect_columns;
use orrery_storage::table::{ColumnId, ColumnType, Projection, ProjectionFile, SomeRows};

use super::compared::comparison;
use super::failed;
use super::number_test::NumberTest;
use super::zone_test::{CodeSet, ZoneTest, Zoned};

/// A dictionary is only asked value by value where it has at most this many rows for each.
const ROWS_PER_VALUE_MIN: u64 = 2;

/// A condition on the rows of a projection.
#[derive(Debug)]
pub(super) struct Condition {
    /// Over the columns in `places`, in that order.
    expression: Arc<dyn PhysicalExpr>,
    schema: SchemaRef,
    /// Columns of the projection, ascending.
    places: Vec<usize>,
    /// Whether it is cheap and cannot fail.
    pub(super) is_simple: bool,
    pub(super) zones: ZoneTest,
    codes: Option<Arc<CodeSet>>,
    /// The same of the file's numbers, if it is about such.
    pub(super) numbers: Option<NumberTest>,
}

impl Condition {
    /// Of an expression over columns with these numbers, all of which are in the projection, that
    /// will be asked of so many rows at most.
    pub(super) fn new(
        expression: &Arc<dyn PhysicalExpr>,
        ids: &[ColumnId],
        projection: &Projection,
        rows: u64,
    ) -> Result<Self> {
        let layout = projection.layout();
        let place = |index: usize| ids.get(index).and_then(|id| layout.position(*id));
        let missing =
            || DataFusionError::Internal("a condition on a column that is not there".to_owned());
        let columns = collect_columns(expression);
        let mut places: Vec<usize> = columns
            .iter()
            .map(|column| place(column.index()).ok_or_else(missing))
            .collect::<Result<_>>()?;
        places.sort_unstable();
        places.dedup();
        let names: Vec<String> = places.iter().map(|place| format!("c{place}")).collect();
        let fields = places.iter().zip(&names).map(|(&place, name)| {
            let column = &layout.columns[place];
            Field::new(name, column.column_type.arrow(), column.is_nullable)
        });
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let of_types: Vec<(usize, ColumnType)> = ids
            .iter()
            .map(|id| match layout.position(*id) {
                Some(place) => (place, layout.columns[place].column_type),
                None => (usize::MAX, ColumnType::Boolean),
            })
            .collect();
        let mut zones = ZoneTest::Unknown;
        let mut codes = None;
        let is_simple = is_simple(expression);
        let expression_of = |expression: &Arc<dyn PhysicalExpr>| {
            let moved = Arc::clone(expression).transform_down(|node| {
                let Some(column) = node.downcast_ref::<Column>() else {
                    return Ok(Transformed::no(node));
                };
                let place = place(column.index()).ok_or_else(missing)?;
                let at = places.binary_search(&place).map_err(|_| missing())?;
                Ok(Transformed::yes(Arc::new(Column::new(&names[at], at)) as _))
            });
            moved.map(|moved| moved.data)
        };
        let moved = expression_of(expression)?;
        if let Some(file) = projection.file().filter(|file| file.rows() > 0) {
            let known = columns.iter().all(|column| {
                of_types
                    .get(column.index())
                    .is_some_and(|of| of.0 != usize::MAX)
            });
            if known {
                let zoned = Zoned {
                    file,
                    columns: &of_types,
                };
                zones = zoned.test(expression).map_err(failed)?;
            }
            if let ([place], true) = (&places[..], is_simple)
                && let Some(set) = coded(file, *place, &moved, &schema, rows)?
            {
                if let Some(of_column) = file.zones(*place).map_err(failed)? {
                    zones = ZoneTest::Coded(of_column, Arc::clone(&set));
                }
                codes = Some(set);
            }
        }
        Ok(Self {
            expression: moved,
            schema,
            places,
            is_simple,
            zones,
            codes,
            numbers: NumberTest::new(expression, ids, projection),
        })
    }

    /// The columns that it reads.
    pub(super) fn places(&self) -> &[usize] {
        &self.places
    }

    /// Of each row of the file in a range whether it is true.
    pub(super) fn of_range(
        &self,
        file: &ProjectionFile,
        rows: Range<u64>,
    ) -> Result<BooleanBuffer> {
        if let Some(set) = &self.codes
            && let Some(codes) = file
                .codes(SomeRows::Range(rows.clone()), self.places[0])
                .map_err(failed)?
        {
            let values = codes.values();
            let passes = |code: u32| set.passes.get(code as usize) == Some(&true);
            return Ok(match codes.nulls() {
                None => BooleanBuffer::collect_bool(values.len(), |row| passes(values[row])),
                Some(nulls) => {
                    BooleanBuffer::collect_bool(values.len(), |row| match nulls.is_valid(row) {
                        true => passes(values[row]),
                        false => set.null_passes,
                    })
                }
            });
        }
        let count = (rows.end - rows.start) as usize;
        let columns = file.read(rows, &self.places).map_err(failed)?;
        self.of_columns(columns, count)
    }

    /// Of some rows of the file.
    pub(super) fn of_rows(&self, file: &ProjectionFile, rows: &[u64]) -> Result<BooleanBuffer> {
        let columns = file.take(rows, &self.places).map_err(failed)?;
        self.of_columns(columns, rows.len())
    }

    /// Of rows that are given with the columns that it reads.
    pub(super) fn of_columns(&self, columns: Vec<ArrayRef>, rows: usize) -> Result<BooleanBuffer> {
        evaluate(&self.expression, &self.schema, columns, rows)
    }
}

fn evaluate(
    expression: &Arc<dyn PhysicalExpr>,
    schema: &SchemaRef,
    columns: Vec<ArrayRef>,
    rows: usize,
) -> Result<BooleanBuffer> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    let batch = RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?;
    let value = expression.evaluate(&batch)?.into_array(rows)?;
    let Some(value) = value.as_boolean_opt() else {
        return Err(DataFusionError::Internal(
            "a condition is not a boolean".to_owned(),
        ));
    };
    Ok(is_true(value))
}

/// NULL is not true.
fn is_true(value: &BooleanArray) -> BooleanBuffer {
    match value.nulls() {
        Some(nulls) => value.values() & nulls.inner(),
        None => value.values().clone(),
    }
}

/// The codes of a column for which a condition on it alone is true, where all of its rows have
/// codes and these are few.
fn coded(
    file: &ProjectionFile,
    place: usize,
    expression: &Arc<dyn PhysicalExpr>,
    schema: &SchemaRef,
    rows: u64,
) -> Result<Option<Arc<CodeSet>>> {
    let Some(dictionary) = file.dictionary(place).map_err(failed)? else {
        return Ok(None);
    };
    if dictionary.len() as u64 * ROWS_PER_VALUE_MIN > rows {
        return Ok(None);
    }
    let nullable = |array: &ArrayRef| {
        let field = Field::new(schema.field(0).name(), array.data_type().clone(), true);
        Arc::new(Schema::new(vec![field]))
    };
    let values = dictionary.array();
    let null = new_null_array(values.data_type(), 1);
    let with_null = nullable(&null);
    let passes = evaluate(expression, &with_null, vec![values], dictionary.len())?;
    let null_passes = evaluate(expression, &with_null, vec![null], 1)?.value(0);
    let set = CodeSet::new(passes.iter().collect(), null_passes);
    Ok(Some(Arc::new(set)))
}

/// Whether a condition is cheap and cannot fail: a column compared with a value or a pattern, and
/// what is made of such.
fn is_simple(expression: &Arc<dyn PhysicalExpr>) -> bool {
    use datafusion::logical_expr::Operator;
    use datafusion::physical_expr::expressions::{BinaryExpr, NotExpr};
    let is_column = |arg: &Arc<dyn PhysicalExpr>| arg.downcast_ref::<Column>().is_some();
    let is_literal = |arg: &Arc<dyn PhysicalExpr>| arg.downcast_ref::<Literal>().is_some();
    if let Some(binary) = expression.downcast_ref::<BinaryExpr>() {
        return match binary.op() {
            Operator::And | Operator::Or => is_simple(binary.left()) && is_simple(binary.right()),
            Operator::Eq
            | Operator::NotEq
            | Operator::Lt
            | Operator::LtEq
            | Operator::Gt
            | Operator::GtEq => {
                comparison(expression).is_some()
                    || is_column(binary.left()) && is_column(binary.right())
            }
            _ => false,
        };
    }
    if let Some(not) = expression.downcast_ref::<NotExpr>() {
        return is_simple(not.arg());
    }
    if let Some(list) = expression.downcast_ref::<InListExpr>() {
        return is_column(list.expr()) && list.list().iter().all(is_literal);
    }
    if let Some(like) = expression.downcast_ref::<LikeExpr>() {
        return is_column(like.expr()) && is_literal(like.pattern());
    }
    let is_null = expression.downcast_ref::<IsNullExpr>();
    let not_null = expression.downcast_ref::<IsNotNullExpr>();
    is_null.is_some_and(|of| is_column(of.arg())) || not_null.is_some_and(|of| is_column(of.arg()))
}
