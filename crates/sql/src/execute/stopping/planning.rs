//! Planning that stops when its statement is canceled.
//!
//! The library's rules ask nobody, and a pass of one over hundreds of joins takes a tenth of a
//! second. So each rule is one that asks first ([`Asking`]): a rule for nodes is asked for each
//! node, one for whole plans once. Plans that are large are made on a thread of their own
//! (`crate::plan::long_planning`), to which the Stop is named that is asked for here.
//!
//! Rows that are written down as they are (`VALUES (1, 'a'), ...`) are passed over by rules for
//! nodes: there is nothing to better in numbers and texts, and each rule would look at each of a
//! hundred thousand rows.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{AnalyzerRule, OptimizerConfig, OptimizerRule};
use datafusion::physical_optimizer::{PhysicalOptimizerContext, PhysicalOptimizerRule};
use datafusion::physical_plan::ExecutionPlan;

use super::stop::require_somebody_here;

/// A rule that asks whether somebody waits before it does what it does.
#[derive(Debug)]
pub(crate) struct Asking<R: ?Sized>(Arc<R>);

/// Rules that ask.
pub(crate) trait ThatAsk {
    /// The same rules, each of which asks first.
    fn that_ask(self) -> Self;
}

impl ThatAsk for Vec<Arc<dyn AnalyzerRule + Send + Sync>> {
    fn that_ask(self) -> Self {
        let asking = self.into_iter().map(|rule| Arc::new(Asking(rule)) as _);
        asking.collect()
    }
}

impl ThatAsk for Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    fn that_ask(self) -> Self {
        let asking = self.into_iter().map(|rule| Arc::new(Asking(rule)) as _);
        asking.collect()
    }
}

impl ThatAsk for Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    fn that_ask(self) -> Self {
        let asking = self.into_iter().map(|rule| Arc::new(Asking(rule)) as _);
        asking.collect()
    }
}

impl AnalyzerRule for Asking<dyn AnalyzerRule + Send + Sync> {
    fn analyze(&self, plan: LogicalPlan, options: &ConfigOptions) -> Result<LogicalPlan> {
        require_somebody_here()?;
        self.0.analyze(plan, options)
    }

    fn name(&self) -> &str {
        self.0.name()
    }
}

impl OptimizerRule for Asking<dyn OptimizerRule + Send + Sync> {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        require_somebody_here()?;
        match is_written_down(&plan) {
            true => Ok(Transformed::no(plan)),
            false => self.0.rewrite(plan, config),
        }
    }
}

impl PhysicalOptimizerRule for Asking<dyn PhysicalOptimizerRule + Send + Sync> {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        options: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        require_somebody_here()?;
        self.0.optimize(plan, options)
    }

    fn optimize_with_context(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        context: &dyn PhysicalOptimizerContext,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        require_somebody_here()?;
        self.0.optimize_with_context(plan, context)
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }
}

/// Whether a node is rows of numbers, texts, true and false, and NULL alone: of what no rule makes
/// anything else.
pub(crate) fn is_written_down(plan: &LogicalPlan) -> bool {
    let is_plain = |expr: &Expr| {
        matches!(
            expr,
            Expr::Literal(
                ScalarValue::Null
                    | ScalarValue::Boolean(_)
                    | ScalarValue::Int32(_)
                    | ScalarValue::Int64(_)
                    | ScalarValue::UInt64(_)
                    | ScalarValue::Float64(_)
                    | ScalarValue::Decimal128(..)
                    | ScalarValue::Utf8(_)
                    | ScalarValue::Utf8View(_),
                _
            )
        )
    };
    match plan {
        LogicalPlan::Values(values) => values.values.iter().flatten().all(is_plain),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::Schema;
    use datafusion::logical_expr::LogicalPlanBuilder;
    use datafusion::physical_plan::empty::EmptyExec;
    use orrery_postgres_tables::ForeignAccess;
    use orrery_runtime::{Runtime, RuntimeOptions};

    use super::*;
    use crate::execute::stopping::StopOnDrop;
    use crate::files::FileAccess;
    use crate::plan::engine_state::engine_state;

    /// A rule that is added to the engine without asking would go on for nobody.
    #[test]
    fn each_rule_of_the_engine_ends_when_nobody_waits() {
        let directory = tempfile::tempdir().unwrap();
        let runtime = Runtime::new(&RuntimeOptions {
            memory_bytes: 64 << 20,
            is_process_bound: false,
            temp_dir: directory.path().to_owned(),
            batch_rows: 1_024,
            threads: 1,
        });
        let runtime = runtime.unwrap();
        let access = (FileAccess::refused(), ForeignAccess::refused());
        let state = engine_state(&runtime, &access.0, &access.1);
        let plan = LogicalPlanBuilder::empty(true).build().unwrap();
        let nodes = Arc::new(EmptyExec::new(Arc::new(Schema::empty())));
        let stop = StopOnDrop::default();
        let to_name = stop.to_name();
        let _named = to_name.named();
        let ended = |stop: &str| {
            let mut answers = Vec::new();
            let options = state.config_options();
            for rule in &state.analyzer().rules {
                let done = rule.analyze(plan.clone(), options).is_err();
                answers.push((rule.name().to_owned(), done));
            }
            for rule in state.optimizers() {
                let done = rule.rewrite(plan.clone(), &state).is_err();
                answers.push((rule.name().to_owned(), done));
            }
            for rule in state.physical_optimizers() {
                let done = rule.optimize(Arc::clone(&nodes) as _, options).is_err();
                answers.push((rule.name().to_owned(), done));
            }
            assert!(answers.len() > 50, "{stop}");
            answers
        };
        for (name, is_ended) in ended("before") {
            assert!(!is_ended, "{name}");
        }
        drop(stop);
        for (name, is_ended) in ended("after") {
            assert!(is_ended, "{name}");
        }
    }

    #[test]
    fn rows_of_numbers_and_texts_are_written_down_and_calls_are_not() {
        use datafusion::logical_expr::lit;
        let rows = |last: Expr| {
            let rows = vec![vec![lit(1_i64), lit("a")], vec![lit(2_i64), last]];
            LogicalPlanBuilder::values(rows).unwrap().build().unwrap()
        };
        assert!(is_written_down(&rows(lit("b"))));
        assert!(is_written_down(&rows(lit(ScalarValue::Null))));
        let computed = datafusion::prelude::concat(vec![lit("b"), lit("c")]);
        assert!(!is_written_down(&rows(computed)));
    }
}
