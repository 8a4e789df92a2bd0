//! Queries of SQL that are divided among processes (`orrery_workers`).
//!
//! ```text
//! Session::query     many rows -> planned again for more partitions, in shares -> WorkersExec with the statement's text
//! SqlPlans::plan     text, settings, commit -> the same plan over this process's tables
//! ```
//!
//! Plans of DataFusion's have no description here, so the text travels and is planned again where it runs, over the same commit and with the same settings. The fingerprint of
//! the stages tells whether the same came of it; where not (`now()` is another time), the query stays in the process that was asked. That one runs its own part of the plan that it has, and the others keep what the
//! optimizer made of a statement for when it comes again.
//!
//! What is not divided: statements in transactions that change something, of users who may not read everything, with parameters, about graphs, files or other servers, with functions that give something else each
//! time, with scalar subqueries (their values are in one process) or recursion.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use datafusion::common::tree_node::{TreeNode as _, TreeNodeRecursion};
use datafusion::common::{DataFusionError, Result as EngineResult};
use datafusion::logical_expr::{Expr, LogicalPlan, Volatility};
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode, SortMergeJoinExec};
use datafusion::physical_plan::limit::LocalLimitExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::recursive_query::RecursiveQueryExec;
use datafusion::physical_plan::scalar_subquery::ScalarSubqueryExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::unnest::UnnestExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion::physical_plan::work_table::WorkTableExec;
use datafusion::physical_plan::{ExecutionPlan, displayable};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use orrery_storage::{At, Snapshot};
use orrery_workers::{
    AsTheyAre, Language, OwnPart, Query, Rules, WorkerPlan, Workers, WorkersExec, partitions_for,
};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;

use crate::counted::{touches, touches_beside, touches_known};
use crate::planner::Planner;
use crate::session::Session;
use crate::settings::Scope;
use crate::statement::{parse, parse_one};
use crate::{Error, Result};

type Plan = Arc<dyn ExecutionPlan>;

/// The name of the language between processes.
const SQL: &str = "sql";
/// Plans that a process keeps.
const KEPT_PLANS_MAX: usize = 32;
/// How long a process waits for a commit that another one has already.
const COMMIT_WAIT: Duration = Duration::from_secs(1);

/// What a process needs to make the plan again.
#[derive(Debug, Serialize, Deserialize)]
struct Description {
    text: String,
    commit: u64,
    partitions: usize,
    user: String,
    settings: Vec<(String, String)>,
}

const RULES: Rules = Rules {
    is_leaf: orrery_tables::reads_by_itself,
    is_dealt: orrery_tables::is_in_shares,
    is_by_partition,
    is_with_reader: orrery_tables::tells_keys,
    rows,
    label,
    extent: label,
    may_divide_by_hash: true,
};

fn is_by_partition(node: &Plan) -> bool {
    if let Some(join) = node.downcast_ref::<HashJoinExec>() {
        return *join.partition_mode() == PartitionMode::Partitioned;
    }
    if let Some(sort) = node.downcast_ref::<SortExec>() {
        return sort.preserve_partitioning();
    }
    node.is::<AggregateExec>()
        || node.is::<ProjectionExec>()
        || node.is::<FilterExec>()
        || node.is::<SortMergeJoinExec>()
        || node.is::<LocalLimitExec>()
        || node.is::<UnnestExec>()
        || node.is::<WindowAggExec>()
        || node.is::<BoundedWindowAggExec>()
        || orrery_tables::tells_keys(node)
}

/// The rows that a node gives, where that is known.
fn rows(node: &Plan) -> f64 {
    let told = StatisticsContext::new().compute(node.as_ref(), &StatisticsArgs::new());
    let told = told.ok();
    let told = told.and_then(|told| told.num_rows.get_value().copied());
    match told {
        Some(rows) => rows as f64,
        // No more than it reads, as a rule.
        None => {
            let below = node.children().into_iter().map(rows);
            below.fold(0.0, f64::max)
        }
    }
}

/// A node in words, without what it finds out while it runs.
fn label(node: &Plan) -> String {
    let mut text = displayable(node.as_ref()).one_line().to_string();
    for found in [", hints=", ", filter=[", "DynamicFilter"] {
        if let Some(at) = text.find(found) {
            text.truncate(at);
        }
    }
    text
}

/// The rows that are read of stored tables; none where the plan must not be divided.
fn read_rows(plan: &Plan) -> Option<f64> {
    if plan.is::<ScalarSubqueryExec>()
        || plan.is::<RecursiveQueryExec>()
        || plan.is::<WorkTableExec>()
    {
        return None;
    }
    let mut children = plan.children().into_iter();
    if children.len() == 0 {
        return Some(rows(plan));
    }
    children.try_fold(0.0, |sum, child| Some(sum + read_rows(child)?))
}

/// Whether a plan has a function that may give something else from one row, or from one statement, to the next.
fn gives_other_rows(plan: &LogicalPlan, from: Volatility) -> bool {
    let is_of = |expr: &Expr| match expr {
        Expr::ScalarFunction(call) => call.func.signature().volatility >= from,
        _ => false,
    };
    let mut found = false;
    let looked = plan.apply_with_subqueries(|node| {
        for expr in node.expressions() {
            found |= expr.exists(|expr| Ok(is_of(expr)))?;
        }
        Ok(TreeNodeRecursion::Continue)
    });
    found || looked.is_err()
}

impl Session {
    /// The plan of a query over a commit divided among processes, if there are some, it reads many rows, and it can be divided. Its plans are the logical one, that as the
    /// optimizer leaves it, and the physical one.
    pub(crate) async fn divided(
        &self,
        planner: &Planner,
        (logical, optimized, physical): (&LogicalPlan, &LogicalPlan, &Plan),
        (text, commit): (&str, u64),
    ) -> Result<Option<Plan>> {
        let Some(workers) = &self.processes else {
            return Ok(None);
        };
        let members = workers.members();
        let is_large = || read_rows(physical).is_some_and(|rows| rows >= workers.least_rows());
        let may_be_divided = members.len() > 1
            && is_large()
            && self.sight.is_none()
            && !self.block().lock().holds_turn()
            && !planner.reads_graphs()
            && !matches!(logical, LogicalPlan::Explain(_) | LogicalPlan::Analyze(_))
            && !gives_other_rows(logical, Volatility::Volatile)
            && parse(text)?.len() == 1;
        if !may_be_divided {
            return Ok(None);
        }
        let settings = self.settings.lock().all().into_iter();
        let threads = self.state.config().target_partitions();
        let description = Description {
            text: text.to_owned(),
            commit,
            partitions: partitions_for(members.len(), threads),
            user: self.options.user.clone(),
            settings: settings
                .map(|(name, value, _)| (name.to_owned(), value))
                .collect(),
        };
        let planner = planner.in_shares(description.partitions);
        let plan = planner.physical_of(optimized, text).await?;
        let description = serde_json::to_vec(&description)
            .map_err(|error| Error::of_run(&DataFusionError::External(Box::new(error))))?;
        let spending = self.spending();
        let known = touches_known(&plan);
        let query = Query {
            workers: Arc::clone(workers),
            members,
            streams: threads,
            own: Some(OwnPart {
                task: planner.task(),
                touches: Arc::new(move |parts| {
                    let parts = parts.iter().map(|part| touches_beside(part, &known));
                    parts.fold(0, u64::saturating_add)
                }),
            }),
            language: SQL,
            description: description.into(),
            rules: RULES,
            translation: Arc::new(AsTheyAre),
            note_touches: Box::new(move |touches| {
                if let Some(spending) = &spending {
                    spending.add(touches);
                }
            }),
        };
        let divided = WorkersExec::over(&plan, query);
        let divided = divided.map_err(|error| Error::of_run(&error))?;
        Ok(divided.map(|divided| Arc::new(divided) as Plan))
    }

    /// Lets processes divide queries of sessions like this one, and runs parts of theirs on those threads.
    pub fn divide_among(&self, processes: &Arc<Workers>, threads: Handle) {
        let mut session = self.clone();
        session.processes = None;
        let plans = SqlPlans {
            session,
            threads,
            kept: Arc::default(),
        };
        processes.learn(SQL, Arc::new(plans));
    }
}

/// Makes plans of statements that other processes were asked. Its session divides nothing itself.
struct SqlPlans {
    session: Session,
    threads: Handle,
    kept: Arc<KeptPlans>,
}

/// The optimized plans of the statements that came last, by their descriptions. They are of one commit: a later one is likely to be asked for from then on, and what plans of an
/// earlier one hold is to go.
#[derive(Default)]
struct KeptPlans(Mutex<(u64, VecDeque<(Bytes, LogicalPlan)>)>);

impl KeptPlans {
    fn get(&self, description: &Bytes) -> Option<LogicalPlan> {
        let kept = self.0.lock();
        let mut plans = kept.1.iter();
        let found = plans.find(|(of, _)| of == description)?;
        Some(found.1.clone())
    }

    fn keep(&self, commit: u64, description: Bytes, plan: LogicalPlan) {
        let mut kept = self.0.lock();
        if kept.0 != commit {
            *kept = (commit, VecDeque::new());
        }
        if kept.1.len() == KEPT_PLANS_MAX {
            kept.1.pop_front();
        }
        kept.1.push_back((description, plan));
    }
}

impl Language for SqlPlans {
    fn plan(&self, description: Bytes, _: u32) -> BoxFuture<'static, EngineResult<WorkerPlan>> {
        let (session, kept) = (self.session.clone(), Arc::clone(&self.kept));
        let made = self
            .threads
            .spawn(async move { plan(&session, &kept, description).await });
        async move {
            match made.await {
                Ok(made) => made,
                Err(error) => Err(DataFusionError::External(Box::new(error))),
            }
        }
        .boxed()
    }

    fn threads(&self) -> Handle {
        self.threads.clone()
    }
}

async fn plan(session: &Session, kept: &KeptPlans, bytes: Bytes) -> EngineResult<WorkerPlan> {
    let description: Description = serde_json::from_slice(&bytes)
        .map_err(|error| DataFusionError::External(Box::new(error)))?;
    let session = session.another_of(&description.user, String::new());
    {
        let mut settings = session.settings.lock();
        for (name, value) in &description.settings {
            // One that cannot be set is as it is: the fingerprint tells whether that matters.
            _ = settings.set(name, Some(value), Scope::Session);
        }
    }
    let snapshot = state(&session, description.commit).await?;
    let planner = session.planner(&snapshot);
    let text = &description.text;
    let of_sql = |error: Error| DataFusionError::External(Box::new(error));
    let optimized = match kept.get(&bytes) {
        Some(optimized) => optimized,
        None => {
            let statement = parse_one(text).map_err(of_sql)?;
            let logical = planner.logical(statement, text).await.map_err(of_sql)?;
            let optimized = planner.optimized(&logical, text);
            let optimized = optimized.map_err(of_sql)?;
            if !gives_other_rows(&logical, Volatility::Stable) {
                kept.keep(description.commit, bytes, optimized.clone());
            }
            optimized
        }
    };
    let planner = planner.in_shares(description.partitions);
    let plan = planner.physical_of(&optimized, text).await;
    let plan = plan.map_err(of_sql)?;
    Ok(WorkerPlan {
        plan,
        task: planner.task(),
        rules: RULES,
        translation: Arc::new(AsTheyAre),
        touches: Arc::new(|parts| parts.iter().map(touches).sum()),
    })
}

/// The state of a commit, which may have to come here yet, or be past.
async fn state(session: &Session, commit: u64) -> EngineResult<Arc<Snapshot>> {
    let database = &session.database;
    let began = Instant::now();
    while database.snapshot().commit() < commit && began.elapsed() < COMMIT_WAIT {
        tokio::time::sleep(COMMIT_WAIT / 50).await;
    }
    let present = database.snapshot();
    if present.commit() == commit {
        return Ok(present);
    }
    let database = Arc::clone(database);
    let past = tokio::task::spawn_blocking(move || database.snapshot_at(At::Commit(commit)));
    let lost = |text: String| {
        DataFusionError::from(orrery_workers::Error::Lost(format!(
            "a worker does not have commit {commit}: {text}"
        )))
    };
    let past = past.await.map_err(|error| lost(error.to_string()))?;
    past.map_err(|error| lost(error.to_string()))
}

#[cfg(test)]
mod tests {
    use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;

    use super::*;

    #[test]
    fn what_a_node_finds_out_is_not_in_its_label() {
        let schema = datafusion::arrow::datatypes::Schema::empty();
        let empty = datafusion::physical_plan::empty::EmptyExec::new(Arc::new(schema));
        let plan: Plan = Arc::new(CoalescePartitionsExec::new(Arc::new(empty)));
        assert_eq!(label(&plan), "CoalescePartitionsExec\n");
    }
}
