//! Pattern matching (`LIKE`, `~`) over long texts that stops when its statement is canceled.
//!
//! An operator is no function that could be given slices of its batch
//! (`crate::functions::offered`): it stays one, for scans and indices know it as such. Where it is
//! computed, in filters, projections and conditions of joins, it is put within [`Sliced`], which
//! looks at the lengths of the texts: a batch of [`SLICE_BYTES`] and less, as nearly all are, goes
//! through as it is; of a larger one the rows are looked at in slices, between which it is asked
//! whether anybody still waits. A text alone is one slice.

use std::fmt::{self, Display, Formatter};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use datafusion::arrow::compute::concat;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::{ColumnarValue, Operator};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, LikeExpr, Literal};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};
use datafusion::physical_plan::projection::ProjectionExec;

use super::place::StopPlace;
use crate::execute::blocking::while_others_run;
use crate::plan::walk::Walk;
use crate::values::sizes::bytes_of_array;

/// Texts that are looked at without a pause: a millisecond's work, of the dearest short pattern
/// fifty. A pattern is read again for each slice.
const SLICE_BYTES: u64 = 512 << 10;

/// Filters and projections as ones whose patterns stop; any other node as it is.
pub(crate) fn patterns_that_stop(
    node: Arc<dyn ExecutionPlan>,
) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    if let Some(filter) = node.downcast_ref::<FilterExec>() {
        let predicate = sliced(Arc::clone(filter.predicate()))?;
        if predicate.transformed {
            let builder = FilterExecBuilder::from(filter).with_predicate(predicate.data);
            return Ok(Transformed::yes(Arc::new(builder.build()?)));
        }
    } else if let Some(projection) = node.downcast_ref::<ProjectionExec>() {
        let mut is_changed = false;
        let mut exprs = projection.expr().to_vec();
        for each in &mut exprs {
            let expr = sliced(Arc::clone(&each.expr))?;
            is_changed |= expr.transformed;
            each.expr = expr.data;
        }
        if is_changed {
            let changed = ProjectionExec::try_new(exprs, Arc::clone(projection.input()))?;
            return Ok(Transformed::yes(Arc::new(changed)));
        }
    }
    Ok(Transformed::no(node))
}

/// An expression whose patterns stop.
pub(super) fn sliced(expr: Arc<dyn PhysicalExpr>) -> Result<Transformed<Arc<dyn PhysicalExpr>>> {
    expr.transform_down_by(&mut |part| {
        let changed: Arc<dyn PhysicalExpr> = match looks_for_pattern(&part) {
            true => Arc::new(Sliced::new(part)?),
            false if part.is::<Sliced>() => part,
            false => return Ok(Transformed::no(part)),
        };
        Ok(Transformed::new(changed, true, TreeNodeRecursion::Jump))
    })
}

fn looks_for_pattern(expr: &Arc<dyn PhysicalExpr>) -> bool {
    if let Some(compared) = expr.downcast_ref::<BinaryExpr>() {
        return matches!(
            compared.op(),
            Operator::RegexMatch
                | Operator::RegexIMatch
                | Operator::RegexNotMatch
                | Operator::RegexNotIMatch
        );
    }
    expr.is::<LikeExpr>()
}

/// An operator of a pattern that looks at a batch in slices; see the module.
#[derive(Debug)]
pub(super) struct Sliced {
    operator: Arc<dyn PhysicalExpr>,
    /// What it looks at that is no constant.
    operands: Vec<Arc<dyn PhysicalExpr>>,
    /// The operator over a batch of these.
    over_operands: Arc<dyn PhysicalExpr>,
    pub(super) place: StopPlace,
}

impl Sliced {
    fn new(operator: Arc<dyn PhysicalExpr>) -> Result<Self> {
        let mut operands = Vec::new();
        let parts = operator.children().into_iter().map(|part| {
            if part.is::<Literal>() {
                return Arc::clone(part);
            }
            let column = Column::new("operand", operands.len());
            operands.push(Arc::clone(part));
            Arc::new(column) as Arc<dyn PhysicalExpr>
        });
        let parts: Vec<Arc<dyn PhysicalExpr>> = parts.collect();
        Ok(Self {
            over_operands: Arc::clone(&operator).with_new_children(parts)?,
            operator,
            operands,
            place: StopPlace::default(),
        })
    }

    fn of_slices(&self, operands: &RecordBatch, bytes: u64) -> Result<ColumnarValue> {
        let rows = operands.num_rows();
        let slices = usize::try_from(bytes.div_ceil(SLICE_BYTES)).unwrap_or(rows);
        let step = rows.div_ceil(slices.max(1)).max(1);
        let mut found: Vec<ArrayRef> = Vec::new();
        for begin in (0..rows).step_by(step) {
            self.place.require_somebody()?;
            let slice = operands.slice(begin, step.min(rows - begin));
            let of_slice = self.over_operands.evaluate(&slice)?;
            found.push(of_slice.into_array(slice.num_rows())?);
        }
        let found: Vec<&dyn Array> = found.iter().map(AsRef::as_ref).collect();
        Ok(ColumnarValue::Array(concat(&found)?))
    }
}

impl PartialEq for Sliced {
    fn eq(&self, other: &Self) -> bool {
        self.operator.eq(&other.operator)
    }
}

impl Eq for Sliced {}

impl Hash for Sliced {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.operator.hash(state);
    }
}

impl Display for Sliced {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Display::fmt(&self.operator, f)
    }
}

impl PhysicalExpr for Sliced {
    fn data_type(&self, schema: &Schema) -> Result<DataType> {
        self.operator.data_type(schema)
    }

    fn nullable(&self, schema: &Schema) -> Result<bool> {
        self.operator.nullable(schema)
    }

    fn return_field(&self, schema: &Schema) -> Result<FieldRef> {
        self.operator.return_field(schema)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let rows = batch.num_rows();
        let operands = self.operands.iter();
        let operands = operands.map(|operand| operand.evaluate(batch)?.into_array(rows));
        let operands = operands.collect::<Result<Vec<ArrayRef>>>()?;
        let fields = operands.iter().map(|it| it.data_type().clone());
        let fields = fields.map(|of| Field::new("operand", of, true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let bytes = operands.iter().map(bytes_of_array).sum();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let operands = RecordBatch::try_new_with_options(schema, operands, &options)?;
        match bytes > SLICE_BYTES {
            true => while_others_run(|| self.of_slices(&operands, bytes)),
            false => self.over_operands.evaluate(&operands),
        }
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.operator]
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        match (children.pop(), children.is_empty()) {
            (Some(operator), true) => Ok(Arc::new(Self {
                place: self.place.clone(),
                ..Self::new(operator)?
            })),
            _ => internal_err!("an operator is one"),
        }
    }

    fn fmt_sql(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.operator.fmt_sql(f)
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{AsArray, StringViewArray};
    use datafusion::physical_expr::expressions::{binary, like, lit};

    use super::*;
    use crate::execute::stopping::StopOnDrop;

    fn texts(rows: usize, bytes: usize) -> RecordBatch {
        let texts = (0..rows).map(|row| {
            (row % 5 != 3).then(|| {
                format!(
                    "{}{}",
                    "a".repeat(bytes),
                    if row % 3 == 0 { "b" } else { "c" }
                )
            })
        });
        let texts: StringViewArray = texts.collect();
        let field = Field::new("text", DataType::Utf8View, true);
        let schema = Arc::new(Schema::new(vec![field]));
        RecordBatch::try_new(schema, vec![Arc::new(texts)]).unwrap()
    }

    fn operators(schema: &Schema) -> [Arc<dyn PhysicalExpr>; 2] {
        let text = || Arc::new(Column::new("text", 0)) as Arc<dyn PhysicalExpr>;
        let pattern = |text: &str| {
            lit(datafusion::common::ScalarValue::Utf8View(Some(
                text.to_owned(),
            )))
        };
        [
            like(false, false, text(), pattern("%b"), schema).unwrap(),
            binary(text(), Operator::RegexMatch, pattern("a.*b$"), schema).unwrap(),
        ]
    }

    #[test]
    fn slices_give_what_the_batch_gives() {
        for (rows, bytes) in [(100, 5), (100, 100_000), (3, 1_000_000), (0, 0)] {
            let batch = texts(rows, bytes);
            for operator in operators(batch.schema_ref()) {
                let whole = operator.evaluate(&batch).unwrap().into_array(rows).unwrap();
                let sliced = sliced(operator).unwrap();
                assert!(sliced.transformed);
                let found = sliced.data.evaluate(&batch).unwrap();
                let found = found.into_array(rows).unwrap();
                assert_eq!(found.as_boolean(), whole.as_boolean(), "{rows} of {bytes}");
            }
        }
    }

    #[test]
    fn a_batch_of_long_texts_ends_where_nobody_waits_and_one_of_short_ones_is_not_asked() {
        let (long, short) = (texts(100, 100_000), texts(100, 5));
        for operator in operators(long.schema_ref()) {
            let sliced = Sliced::new(operator).unwrap();
            let stop = StopOnDrop::default();
            sliced.place.put(stop.stop());
            sliced.evaluate(&long).unwrap();
            drop(stop);
            let ended = sliced.evaluate(&long).unwrap_err().to_string();
            assert!(ended.contains("nobody waits"), "{ended}");
            sliced.evaluate(&short).unwrap();
        }
    }
}
