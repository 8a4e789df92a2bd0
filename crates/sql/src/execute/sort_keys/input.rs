//! The input of a text sort: rows with their keys, few at once where these are long.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::common::stats::ColumnStatistics;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result, Statistics, internal_err};
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::ChildrenPropertiesMode;
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::{StreamExt, TryStreamExt, stream};

use super::chunks::{Chunks, FIRST_ROWS};
use super::task::with_batches_of_input;

use orrery_plan_node::{Passing, passing_methods};

/// Keys to be computed, with their names.
pub(super) type Keys = Vec<(Arc<dyn PhysicalExpr>, String)>;

/// Rows with the keys that they are sorted by; see the module above.
#[derive(Debug, Clone)]
pub(super) struct SortInputExec {
    input: Arc<dyn ExecutionPlan>,
    keys: Keys,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
}

impl SortInputExec {
    pub(super) fn new(input: Arc<dyn ExecutionPlan>, keys: Keys) -> Result<Self> {
        let of_input = input.schema();
        if keys.is_empty() {
            return Ok(Self {
                properties: Arc::clone(input.properties()),
                schema: of_input,
                input,
                keys,
            });
        }
        let mut fields: Vec<_> = of_input.fields().iter().cloned().collect();
        for (key, name) in &keys {
            let data_type = key.data_type(&of_input)?;
            let field = Field::new(name, data_type, key.nullable(&of_input)?);
            fields.push(Arc::new(field));
        }
        let schema = Arc::new(Schema::new_with_metadata(
            fields,
            of_input.metadata().clone(),
        ));
        let nothing = EquivalenceProperties::new(Arc::clone(&schema));
        let properties = PlanProperties::clone(input.properties()).with_eq_properties(nothing);
        Ok(Self {
            input,
            keys,
            schema,
            properties: Arc::new(properties),
        })
    }
}

impl DisplayAs for SortInputExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SortInputExec")?;
        for (place, (key, name)) in self.keys.iter().enumerate() {
            let before = if place == 0 { ": " } else { ", " };
            write!(f, "{before}{name}={key}")?;
        }
        Ok(())
    }
}

impl Passing for SortInputExec {
    fn input(&self) -> &Arc<dyn ExecutionPlan> {
        &self.input
    }

    fn over(
        &self,
        input: Arc<dyn ExecutionPlan>,
        properties: ChildrenPropertiesMode,
    ) -> Result<Self> {
        Ok(match properties {
            ChildrenPropertiesMode::Keep => Self {
                input,
                keys: self.keys.clone(),
                schema: Arc::clone(&self.schema),
                properties: Arc::clone(&self.properties),
            },
            ChildrenPropertiesMode::Recompute => Self::new(input, self.keys.clone())?,
        })
    }
}

impl ExecutionPlan for SortInputExec {
    passing_methods!(|_| "SortInputExec", own rows);

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn apply_expressions(
        &self,
        look: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        for (key, _) in &self.keys {
            if look(key)? == TreeNodeRecursion::Stop {
                return Ok(TreeNodeRecursion::Stop);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(
        &self,
        partition: usize,
        task: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let pool = Arc::clone(task.memory_pool());
        let rows = self.input.execute(partition, with_batches_of_input(task))?;
        let schema = Arc::clone(&self.schema);
        let keys: Arc<[_]> = self.keys.iter().map(|(key, _)| Arc::clone(key)).collect();
        let rows_at_once = Arc::new(AtomicUsize::new(FIRST_ROWS));
        let rows = rows.map(move |batch| {
            let memory = MemoryConsumer::new("keys of a sort").register(&pool);
            let (schema, keys) = (Arc::clone(&schema), Arc::clone(&keys));
            let chunks = Chunks::new(batch?, schema, keys, Arc::clone(&rows_at_once), memory);
            Ok::<_, DataFusionError>(stream::iter(chunks))
        });
        let schema = Arc::clone(&self.schema);
        let rows = rows.try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }

    fn statistics_from_inputs(
        &self,
        of_input: &[Arc<Statistics>],
        _: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let Some(of_input) = of_input.first() else {
            return internal_err!("SortInputExec has one input");
        };
        let mut known = Statistics::clone(of_input);
        let unknown = self.keys.iter().map(|_| ColumnStatistics::new_unknown());
        known.column_statistics.extend(unknown);
        Ok(Arc::new(known))
    }
}
