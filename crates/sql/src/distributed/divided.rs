//! Distributed SQL queries (`orrery_distributed`).
//!
//! ```text
//! Session::started   many rows -> Division: scalar subqueries first, each as a query of its own; their values in their places
//!                              -> planned again for more partitions, in shares -> WorkersExec with a description
//! SqlPlans::plan     the description (text, values of parameters and subqueries, names that may be read, settings,
//!                    commit) -> the same plan over this process's tables
//! ```
//!
//! DataFusion's plans have no serialized form here. So the text travels and is planned again by
//! each worker, over the same commit and with the same settings. A fingerprint of the stages shows
//! whether the plans are equal; where they differ (`now()` is another time), the query stays in the
//! process that was asked. That process runs its part with the plan that it has; the others cache
//! what the optimizer made of a statement for the next time.
//!
//! Uncorrelated scalar subqueries have their values in one process. All of them run before anything
//! else, as in a query that is not divided. Whether anything is large enough to be divided is
//! checked before that: other statements pay nothing.
//!
//! Not divided are: statements in transactions that change something, about graphs, files or other
//! servers, with volatile functions, or with recursion; queries that are ready to run without a
//! plan (`ready`), and cursors.

mod description;
mod member;
mod rules;
mod subqueries;

use std::sync::Arc;

use datafusion::common::{DataFusionError, ScalarValue, exec_datafusion_err};
use datafusion::logical_expr::{LogicalPlan, Volatility};
use datafusion::sql::parser::Statement as Parsed;
use futures::StreamExt as _;
use futures::future::{BoxFuture, try_join_all};
use orrery_distributed::{
    AsTheyAre, OfParts, OwnPart, Query, Workers, WorkersExec, partitions_for,
};

use self::description::{Part, Stated, part_bytes, statement_bytes};
use self::rules::{Plan, RULES, gives_other_rows, is_large, is_large_itself};
use crate::distributed::asked::Asked;
use crate::execute::stopping::ending_with;
use crate::parse::statement::{parse, prepared_in};
use crate::plan::counted::{counted_stream, touches_beside, touches_known};
use crate::plan::planner::Planner;
use crate::session::client::Session;
use crate::{Error, Result};

/// The name of the language between processes.
const SQL: &str = "sql";

/// The query of a text that has no other statement; that of PREPARE is the one that it keeps.
fn only_query(text: &str) -> Result<Option<Parsed>> {
    let mut statements = parse(text)?;
    let (Some(only), true) = (statements.pop_front(), statements.is_empty()) else {
        return Ok(None);
    };
    Ok(Some(prepared_in(only)))
}

impl Session {
    /// The plan of a query divided among processes, if there are some, it reads many rows, and it
    /// can be divided. Its plans are the logical one, that as the optimizer leaves it, and the
    /// physical one.
    pub(crate) async fn divided(
        &self,
        planner: &Planner,
        (logical, optimized, physical): (&LogicalPlan, &LogicalPlan, &Plan),
        asked: Asked<'_>,
    ) -> Result<Option<Plan>> {
        let Some(workers) = &self.processes else {
            return Ok(None);
        };
        let members = workers.members();
        let may_be_divided = members.len() > 1
            && is_large(physical, workers.least_rows())
            && !self.block().lock().holds_turn()
            && !planner.reads_graphs()
            && !matches!(logical, LogicalPlan::Explain(_) | LogicalPlan::Analyze(_))
            && !gives_other_rows(logical, Volatility::Volatile)
            && only_query(asked.text)?.is_some();
        if !may_be_divided {
            return Ok(None);
        }
        let statement = statement_bytes(&self.stated(asked), asked.values, asked.told);
        let streams = self.state.config().target_partitions();
        let partitions = partitions_for(members.len(), streams);
        let division = Division {
            session: self,
            workers,
            members,
            planner,
            in_shares: planner.in_shares(partitions),
            partitions,
            streams,
            text: asked.text,
            statement: statement.map_err(|error| Error::of_run(&error))?,
        };
        let plan = division.plan(Vec::new(), optimized, Arc::clone(physical));
        plan.await.map(Some)
    }

    /// What other processes are told of a statement.
    fn stated(&self, asked: Asked<'_>) -> Stated {
        let settings = self.settings.lock().all().into_iter();
        let reads = self.scope().and_then(|scope| scope.reads.as_ref());
        Stated {
            text: asked.text.to_owned(),
            commit: asked.commit,
            user: self.options.user.clone(),
            settings: settings
                .map(|(name, value, _)| (name.to_owned(), value))
                .collect(),
            reads: reads.map(|reads| (reads.schemas.clone(), reads.tables.clone())),
        }
    }
}

/// A statement of which something is to be divided.
struct Division<'s> {
    session: &'s Session,
    workers: &'s Arc<Workers>,
    members: Vec<String>,
    planner: &'s Planner,
    /// Makes the plans that are divided.
    in_shares: Planner,
    partitions: usize,
    streams: usize,
    text: &'s str,
    /// The first bytes of each description.
    statement: bytes::Bytes,
}

impl Division<'_> {
    /// The plan of a part of the statement, whose scalar subqueries have been run: divided, if that
    /// is large and can be.
    fn plan<'d>(
        &'d self,
        path: Vec<usize>,
        optimized: &'d LogicalPlan,
        physical: Plan,
    ) -> BoxFuture<'d, Result<Plan>> {
        let of_run = |error: DataFusionError| Error::of_run(&error);
        Box::pin(async move {
            let subqueries = subqueries::pairs(optimized, &physical).map_err(of_run)?;
            let Some(subqueries) = subqueries else {
                return Ok(physical);
            };
            let values = self.values(&path, &subqueries).await?;
            let physical = subqueries::with_values(physical, &values).map_err(of_run)?;
            if !is_large_itself(&physical, self.workers.least_rows()) {
                return Ok(physical);
            }
            let plan = self.in_shares.physical_of(optimized, self.text).await?;
            let plan = subqueries::with_values(plan, &values).map_err(of_run)?;
            let partitions = self.partitions;
            let description = part_bytes(&self.statement, &Part { partitions, path }, &values);
            let query = self.query(&plan, description.map_err(of_run)?);
            let divided = WorkersExec::over(&plan, query).map_err(of_run)?;
            Ok(divided.map_or(physical, |divided| Arc::new(divided)))
        })
    }

    /// Runs the scalar subqueries of a part, at the same time, as the engine does.
    async fn values(
        &self,
        path: &[usize],
        subqueries: &[(Arc<LogicalPlan>, Plan)],
    ) -> Result<Vec<ScalarValue>> {
        let values = subqueries.iter().enumerate();
        let values = values.map(|(place, (optimized, physical))| {
            let path = path.iter().copied().chain([place]).collect();
            self.value(path, optimized, Arc::clone(physical))
        });
        try_join_all(values).await
    }

    /// The value of a scalar subquery: NULL if it has no row.
    async fn value(
        &self,
        path: Vec<usize>,
        optimized: &LogicalPlan,
        physical: Plan,
    ) -> Result<ScalarValue> {
        let of_run = |error: DataFusionError| Error::of_run(&error);
        let plan = self.plan(path, optimized, physical).await?;
        let mut rows = counted_stream(plan, self.planner.task()).map_err(of_run)?;
        let mut value = None;
        while let Some(batch) = rows.next().await {
            let batch = batch.map_err(of_run)?;
            if batch.num_rows() == 0 {
                continue;
            }
            if value.is_some() || batch.num_rows() > 1 {
                // The engine's own words.
                let error = exec_datafusion_err!("Scalar subquery returned more than one row");
                return Err(of_run(error));
            }
            value = Some(ScalarValue::try_from_array(batch.column(0), 0).map_err(of_run)?);
        }
        let schema = rows.schema();
        match value {
            Some(value) => Ok(value),
            None => ScalarValue::try_from(schema.field(0).data_type()).map_err(of_run),
        }
    }

    fn query(&self, plan: &Plan, description: bytes::Bytes) -> Query {
        let spending = self.session.spending();
        let known = touches_known(plan);
        let task = self.in_shares.task();
        let touches: OfParts = Arc::new(move |parts| {
            let parts = parts.iter().map(|part| touches_beside(part, &known));
            parts.fold(0, u64::saturating_add)
        });
        Query {
            workers: Arc::clone(self.workers),
            members: self.members.clone(),
            streams: self.streams,
            own: Some(Box::new(move |execution| OwnPart {
                task: ending_with(&task, execution),
                touches: Arc::clone(&touches),
                ends: None,
            })),
            language: SQL,
            description,
            rules: RULES,
            translation: Arc::new(AsTheyAre),
            note_touches: Box::new(move |touches| {
                if let Some(spending) = &spending {
                    spending.add(touches);
                }
            }),
        }
    }
}
