//! The final call of DataFusion's aggregate over distinct, sorted rows.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, BooleanArray, UInt32Array, new_empty_array};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::{FieldRef, Schema};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::{AggregateUDF, EmitTo};
use datafusion::physical_expr::{PhysicalExpr, PhysicalSortExpr};

/// The engine's function of rows that are different, and in order, already.
#[derive(Debug)]
pub(super) struct Plain {
    pub(super) of_engine: Arc<AggregateUDF>,
    pub(super) return_field: FieldRef,
    pub(super) schema: Schema,
    pub(super) ignore_nulls: bool,
    pub(super) order_bys: Vec<PhysicalSortExpr>,
    pub(super) is_reversed: bool,
    pub(super) name: String,
    pub(super) exprs: Vec<Arc<dyn PhysicalExpr>>,
    pub(super) expr_fields: Vec<FieldRef>,
}

impl Plain {
    fn args(&self) -> AccumulatorArgs<'_> {
        AccumulatorArgs {
            return_field: Arc::clone(&self.return_field),
            schema: &self.schema,
            ignore_nulls: self.ignore_nulls,
            order_bys: &self.order_bys,
            is_reversed: self.is_reversed,
            name: &self.name,
            is_distinct: false,
            exprs: &self.exprs,
            expr_fields: &self.expr_fields,
        }
    }

    /// The results of so many groups. The rows come sorted by their group.
    pub(super) fn results(
        &self,
        groups_count: usize,
        rows: impl Iterator<Item = Result<(Vec<ArrayRef>, Vec<usize>)>>,
    ) -> Result<ArrayRef> {
        if self.of_engine.groups_accumulator_supported(self.args()) {
            let mut all = self.of_engine.create_groups_accumulator(self.args())?;
            let fields = self.expr_fields.iter();
            let none: Vec<_> = fields.map(|it| new_empty_array(it.data_type())).collect();
            // It hears of groups without rows, too; without a filter it takes it that each has one.
            let nobody = BooleanArray::from(Vec::<bool>::new());
            all.update_batch(&none, &[], Some(&nobody), groups_count)?;
            for batch in rows {
                let (values, groups) = batch?;
                all.update_batch(&values, &groups, None, groups_count)?;
            }
            return all.evaluate(EmitTo::All);
        }
        // One after the other: what each begins with is there once.
        let mut results = Vec::with_capacity(groups_count);
        let mut current = self.of_engine.accumulator(self.args())?;
        for batch in rows {
            let (values, groups) = batch?;
            let mut begin = 0;
            for run in groups.chunk_by(|left, right| left == right) {
                while results.len() < run[0] {
                    results.push(current.evaluate()?);
                    current = self.of_engine.accumulator(self.args())?;
                }
                let places = UInt32Array::from_iter_values(begin..begin + run.len() as u32);
                begin += run.len() as u32;
                // A slice would hold all of the batch.
                let own = values.iter().map(|values| Ok(take(values, &places, None)?));
                current.update_batch(&own.collect::<Result<Vec<_>>>()?)?;
            }
        }
        while results.len() < groups_count {
            results.push(current.evaluate()?);
            current = self.of_engine.accumulator(self.args())?;
        }
        match results.is_empty() {
            true => Ok(new_empty_array(self.return_field.data_type())),
            false => ScalarValue::iter_to_array(results),
        }
    }
}
