//! A fast path for prepared queries of one table, whose physical plan is cached.
//!
//! ```text
//! logical plan with $1 -> optimized, cached while no definition changes
//!                      -> values in the place of $1 -> scan -> projection -> limit -> rows
//! ```
//!
//! To plan costs many times what it costs to look a key up. Where the optimized plan is a scan of a
//! stored table with at most a projection and a limit above it, no rule of physical plans could
//! better it, so that each run makes these nodes by itself. All other queries are planned each
//! time, with their values.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::catalog::TableProvider as _;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, DFSchemaRef, DataFusionError, Result, ScalarValue};
use datafusion::datasource::{provider_as_source, source_as_provider};
use datafusion::execution::{SessionState, TaskContext};
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::utils::split_conjunction_owned;
use datafusion::logical_expr::{
    Expr, FetchType, LogicalPlan, SkipType, TableScan, Volatility, lit,
};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::projection::ProjectionExec;

use crate::plan::counted::environment_of;
use crate::plan::walk::Walk;
use crate::values::place::place_of;
use orrery_storage::table::Tables;
use orrery_table_scan::StoredTable;

/// A query that needs no more than its values.
#[derive(Debug, Clone)]
pub(crate) struct ReadyQuery {
    /// What it reads.
    tables: Arc<Tables>,
    scan: TableScan,
    /// Its filters, over columns without the table's name.
    filters: Vec<Expr>,
    /// The columns of the table, which filters name.
    of_table: DFSchemaRef,
    /// What is computed of the scan's columns, and how that is called.
    computed: Option<Vec<(Expr, String)>>,
    limit: Option<usize>,
}

impl ReadyQuery {
    /// Of an optimized plan over some tables; `None` if that is more than a scan.
    pub(crate) fn new(plan: LogicalPlan, tables: &Arc<Tables>) -> Option<Self> {
        let (mut computed, mut limit) = (None, None);
        let mut plan = plan;
        let scan = loop {
            plan = match plan {
                LogicalPlan::Limit(it) if limit.is_none() => {
                    let is_first = matches!(it.get_skip_type(), Ok(SkipType::Literal(0)));
                    match it.get_fetch_type() {
                        Ok(FetchType::Literal(Some(rows))) if is_first => limit = Some(rows),
                        _ => return None,
                    }
                    Arc::unwrap_or_clone(it.input)
                }
                LogicalPlan::Projection(it) if computed.is_none() => {
                    let names = it.schema.fields().iter().map(|field| field.name().clone());
                    computed = Some(it.expr.into_iter().zip(names).collect::<Vec<_>>());
                    Arc::unwrap_or_clone(it.input)
                }
                LogicalPlan::TableScan(scan) => break scan,
                _ => return None,
            };
        };
        let table = source_as_provider(&scan.source).ok()?;
        let table = (&*table as &dyn std::any::Any).downcast_ref::<StoredTable>()?;
        let named = computed.iter().flatten().map(|(expr, _)| expr);
        if !named.chain(&scan.filters).all(is_settled) {
            return None;
        }
        let of_table = DFSchema::try_from(table.schema()).ok()?;
        let filters =
            datafusion::logical_expr::expr_rewriter::unnormalize_cols(scan.filters.clone());
        Some(Self {
            filters: filters
                .into_iter()
                .flat_map(split_conjunction_owned)
                .collect(),
            of_table: Arc::new(of_table),
            tables: Arc::clone(tables),
            scan,
            computed,
            limit,
        })
    }

    /// Whether it reads these tables.
    pub(crate) fn is_over(&self, tables: &Arc<Tables>) -> bool {
        Arc::ptr_eq(&self.tables, tables)
    }

    /// The same with the rows that there are now; `None` if something is defined in another way.
    pub(crate) fn over(&self, tables: &Arc<Tables>) -> Option<Self> {
        if !self.tables.has_same_definitions(tables) {
            return None;
        }
        let table = source_as_provider(&self.scan.source).ok()?;
        let table = (&*table as &dyn std::any::Any).downcast_ref::<StoredTable>()?;
        let mut moved = self.clone();
        moved.scan.source = provider_as_source(Arc::new(table.over(tables)?));
        moved.tables = Arc::clone(tables);
        Some(moved)
    }

    /// The nodes that run it with these values, which have the types of its parameters.
    ///
    /// # Errors
    /// When an expression of values fails, or the table cannot be read.
    pub(crate) async fn plan(
        &self,
        state: &SessionState,
        values: &[ScalarValue],
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let context = SimplifyContext::builder()
            .with_schema(Arc::clone(&self.of_table))
            .with_config_options(Arc::clone(state.config_options()))
            .build();
        let simplifier = ExprSimplifier::new(context);
        let filters = self.filters.iter().map(|filter| {
            let placed = with_values(filter.clone(), values)?;
            match placed.transformed {
                true => simplifier.simplify(placed.data),
                false => Ok(placed.data),
            }
        });
        let filters: Vec<Expr> = filters.collect::<Result<_>>()?;
        let table = source_as_provider(&self.scan.source)?;
        let limit = self.scan.fetch;
        let mut plan = table
            .scan(state, self.scan.projection.as_ref(), &filters, limit)
            .await?;
        if let Some(rows) = self.limit {
            plan = Arc::new(CoalescePartitionsExec::new(plan));
            plan = Arc::new(GlobalLimitExec::new(plan, 0, Some(rows)));
        }
        let Some(computed) = &self.computed else {
            return Ok(plan);
        };
        let input = &self.scan.projected_schema;
        let computed = computed.iter().map(|(expr, name)| {
            let expr = with_values(expr.clone(), values)?.data;
            Ok((state.create_physical_expr(expr, input)?, name.clone()))
        });
        let computed = computed.collect::<Result<Vec<_>>>()?;
        Ok(Arc::new(ProjectionExec::try_new(computed, plan)?))
    }
}

/// What runs nodes whose functions were found already.
pub(crate) fn task_without_functions(state: &SessionState) -> Arc<TaskContext> {
    let environment = environment_of(state);
    Arc::new(TaskContext::new(
        None,
        state.session_id().to_owned(),
        state.config().clone(),
        HashMap::new(),
        HashMap::new(),
        HashMap::new(),
        HashMap::new(),
        environment,
    ))
}

/// Whether an expression means the same whenever it is computed, and its parameters have types that
/// their values are brought to. A decimal's value keeps the digits that it has, so that types
/// depend on it.
fn is_settled(expr: &Expr) -> bool {
    let unsettled = expr.exists(|part| {
        Ok(match part {
            Expr::Placeholder(it) => it.field.as_ref().is_none_or(|field| {
                matches!(
                    field.data_type(),
                    DataType::Decimal32(..)
                        | DataType::Decimal64(..)
                        | DataType::Decimal128(..)
                        | DataType::Decimal256(..)
                        | DataType::Null
                )
            }),
            Expr::ScalarFunction(it) => it.func.signature().volatility != Volatility::Immutable,
            Expr::Column(_)
            | Expr::Literal(..)
            | Expr::Alias(_)
            | Expr::BinaryExpr(_)
            | Expr::Not(_)
            | Expr::Negative(_)
            | Expr::IsNull(_)
            | Expr::IsNotNull(_)
            | Expr::IsTrue(_)
            | Expr::IsFalse(_)
            | Expr::IsUnknown(_)
            | Expr::IsNotTrue(_)
            | Expr::IsNotFalse(_)
            | Expr::IsNotUnknown(_)
            | Expr::Between(_)
            | Expr::Like(_)
            | Expr::SimilarTo(_)
            | Expr::Case(_)
            | Expr::Cast(_)
            | Expr::TryCast(_)
            | Expr::InList(_) => false,
            _ => true,
        })
    });
    matches!(unsettled, Ok(false))
}

/// Puts values in the place of parameters.
fn with_values(expr: Expr, values: &[ScalarValue]) -> Result<Transformed<Expr>> {
    expr.transform_up_by(&mut |part| {
        let Expr::Placeholder(placeholder) = &part else {
            return Ok(Transformed::no(part));
        };
        let value = place_of(&placeholder.id).and_then(|place| values.get(place));
        let value = value.ok_or_else(|| {
            DataFusionError::Internal(format!("there is no parameter {}", placeholder.id))
        })?;
        Ok(Transformed::yes(lit(value.clone())))
    })
}

#[cfg(test)]
mod tests {
    use orrery_runtime::{Runtime, RuntimeOptions};
    use orrery_storage::{Database, WriterOptions, build_small};

    use super::*;
    use crate::plan::prepared::Readiness;
    use crate::{Session, SessionOptions};

    /// Whether a query is ready when it was run twice.
    async fn is_ready(session: &Session, text: &str) -> bool {
        let prepared = session.prepare(text).await.unwrap();
        let values: Vec<ScalarValue> = prepared
            .parameters()
            .iter()
            .map(|of| {
                let of = of.as_ref().unwrap_or(&DataType::Int64);
                ScalarValue::from(1).cast_to(of).unwrap()
            })
            .collect();
        for _ in 0..2 {
            session.run(&prepared, &values).await.unwrap();
        }
        // Also with rows that come later.
        let more = "insert into t select coalesce(max(a), 0) + 10, 'x', 1 from t";
        for statement in session.statements(more).unwrap() {
            session.execute(&statement).await.unwrap();
        }
        matches!(
            prepared.readiness(&session.tables().unwrap()),
            Readiness::Yes(_)
        )
    }

    #[tokio::test]
    async fn scans_of_a_table_are_ready_and_other_queries_are_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("db");
        build_small(&path, &[]).unwrap();
        let runtime = Runtime::new(&RuntimeOptions {
            memory_bytes: 64 << 20,
            is_process_bound: false,
            temp_dir: directory.path().to_owned(),
            batch_rows: 1_024,
            threads: 2,
        });
        let database = Arc::new(Database::open(&path).unwrap());
        let writer = database.open_writer(WriterOptions::default()).unwrap();
        let options = SessionOptions::default();
        let session = Session::new(&runtime.unwrap(), database, Some(writer), options);
        let table =
            "create table t (a int primary key, b text, c numeric(9,2)); create table u (a int)";
        for statement in session.statements(table).unwrap() {
            session.execute(&statement).await.unwrap();
        }
        for (text, expected) in [
            ("select * from t where a = $1", true),
            ("select b, a + 1 from t where a = $1 and b like 'x%'", true),
            ("select upper(b) from t where a in ($1, $2) limit 3", true),
            // Its type is not known.
            ("select a from t where a = $1::bigint", false),
            ("select a, now() from t where a = $1", false),
            ("select a, random() from t where a = $1", false),
            ("select a from t where c = $1", false),
            ("select a from t where a = $1 order by b", false),
            ("select count(*) from t where a = $1", false),
            ("select a from t where a = $1 limit $2", false),
            (
                "select t.a from t join u on t.a = u.a where t.a = $1",
                false,
            ),
            (
                "select a from t where a = (select max(a) from u where a < $1)",
                false,
            ),
        ] {
            assert_eq!(is_ready(&session, text).await, expected, "{text}");
        }
    }
}
