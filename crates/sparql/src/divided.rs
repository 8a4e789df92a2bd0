//! Distributed queries: plans cut for several processes (`orrery_distributed`).
//!
//! ```text
//! PreparedQuery::execute   much work, several partitions -> the plan as bytes (`travel`) -> WorkersExec
//! SparqlPlans::plan        the bytes -> the same plan over this process's engine, patterns with shares
//! ```
//!
//! What is little work stays where it is asked, without a hop. So does what cannot travel, and what
//! depends on the order of rows, which is one partition. A solution's computed terms go along
//! (`foreign_terms`).

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;
use datafusion_common::{DataFusionError, Result};
use datafusion_physical_expr::Distribution;
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::joins::{HashJoinExec, PartitionMode};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use orrery_distributed::{Error, Language, Query, Rules, WorkerPlan, WorkersExec};
use orrery_operators::codec::{self, CodecError, Destination, EncodedPlan};
use orrery_operators::join::KeysExec;
use orrery_operators::path::PathExec;
use orrery_operators::pattern::PatternExec;
use orrery_operators::rows::RowsExec;
use orrery_operators::touches;
use orrery_runtime::{Patience, Runtime};
use orrery_storage::Snapshot;

use crate::engine::Engine;
use crate::foreign_terms::ForeignTerms;
use crate::plan::compile_patterns;
use crate::prepared::PreparedQuery;

type Plan = Arc<dyn ExecutionPlan>;

/// How long a process waits for a commit that another one has already.
const COMMIT_WAIT: Duration = Duration::from_secs(1);

/// The name of the language between processes.
const SPARQL: &str = "sparql";

/// What the nodes of plans of SPARQL are. An id that a process made for a term of its own has
/// another hash elsewhere, so nothing is divided by hash.
const RULES: Rules = Rules {
    is_leaf: |_| false,
    is_dealt: |leaf| leaf.is::<PatternExec>() || leaf.is::<PathExec>(),
    is_by_partition,
    is_with_reader: |node| node.is::<KeysExec>(),
    rows,
    label: |node| node.name().to_owned(),
    extent,
    may_divide_by_hash: false,
};

fn is_by_partition(node: &Plan) -> bool {
    if let Some(join) = node.downcast_ref::<HashJoinExec>() {
        return *join.partition_mode() == PartitionMode::Partitioned;
    }
    let requirements = node.input_distribution_requirements();
    let wanted = requirements.per_child_distributions();
    let mut inputs = node.children().into_iter().zip(wanted);
    inputs.all(|(child, wanted)| {
        let partitions = child.properties().partitioning.partition_count();
        partitions == 1 || matches!(wanted, Distribution::UnspecifiedDistribution)
    })
}

/// The rows that a node handles, as far as it says so itself.
fn rows(node: &Plan) -> f64 {
    if let Some(pattern) = node.downcast_ref::<PatternExec>() {
        let steps = pattern.specification().steps.iter();
        return steps.filter_map(|step| step.estimated_rows).sum();
    }
    match node.children().is_empty() && !node.is::<RowsExec>() {
        // Paths, searches, algorithms: nobody knows.
        true => f64::INFINITY,
        false => 0.0,
    }
}

/// What a pattern begins with: whoever has these rows in its caches is asked for them again.
fn extent(leaf: &Plan) -> String {
    let pattern = leaf.downcast_ref::<PatternExec>();
    let first = pattern.and_then(|pattern| pattern.specification().steps.first());
    match first {
        Some(step) => format!("{:?} {:?}", step.pattern, step.object_ranges),
        None => leaf.name().to_owned(),
    }
}

impl PreparedQuery {
    /// The plan divided among processes, if there are some, it is much work, and it can be divided.
    pub(crate) fn divided(&self) -> Option<Plan> {
        let workers = self.runtime.processes()?;
        if !self.is_parallel || self.expected_rows() < workers.least_rows() {
            return None;
        }
        let members = workers.members();
        if members.len() < 2 {
            return None;
        }
        let to = Destination {
            processes: u32::try_from(members.len()).ok()?,
            has_shares: true,
        };
        let common = self.context.expressions().own_term_count();
        let description = codec::encode(&self.plan, &self.context, to);
        // What stays here is no error, but one to look at where somebody wonders.
        let description = description
            .inspect_err(|error| tracing::debug!("a query stays in this process: {error}"))
            .ok()?;
        let context = Arc::clone(&self.context);
        let query = Query {
            workers: Arc::clone(workers),
            language: SPARQL,
            members,
            streams: self.runtime.workers().threads(),
            // What is decoded has its own ids of terms.
            own: None,
            description: description.into(),
            rules: RULES,
            translation: ForeignTerms::new(&self.context, common),
            note_touches: Box::new(move |touches| context.note_touches(touches)),
        };
        let divided = WorkersExec::over(&self.plan, query);
        let divided = divided
            .inspect_err(|error| tracing::debug!("a query stays in this process: {error}"))
            .ok()??;
        Some(Arc::new(divided))
    }
}

/// Makes plans of queries that other processes have prepared.
struct SparqlPlans {
    /// The engine knows the processes, and these know this.
    engine: Weak<Engine>,
    threads: tokio::runtime::Handle,
}

impl Engine {
    /// Distributes the engine's large queries over these processes, and runs parts of theirs on
    /// those threads.
    pub fn divide_among(
        self: &Arc<Self>,
        processes: &Arc<orrery_distributed::Workers>,
        threads: tokio::runtime::Handle,
    ) {
        let plans = SparqlPlans {
            engine: Arc::downgrade(self),
            threads,
        };
        processes.learn(SPARQL, Arc::new(plans));
        self.runtime().divide_among(Arc::clone(processes));
    }
}

impl Language for SparqlPlans {
    fn plan(&self, description: Bytes, process: u32) -> BoxFuture<'static, Result<WorkerPlan>> {
        let (engine, threads) = (Weak::clone(&self.engine), self.threads.clone());
        let made = threads.spawn_blocking(move || match engine.upgrade() {
            Some(engine) => plan(&engine, &description, process),
            None => Err(Error::Lost("a worker ends".to_owned()).into()),
        });
        let made = made.map(|made| match made {
            Ok(made) => made,
            Err(error) => Err(DataFusionError::External(Box::new(error))),
        });
        made.boxed()
    }

    fn threads(&self) -> tokio::runtime::Handle {
        self.threads.clone()
    }
}

fn plan(engine: &Engine, description: &[u8], process: u32) -> Result<WorkerPlan> {
    let encoded = EncodedPlan::read(description).map_err(of_codec)?;
    let snapshot = snapshot(engine, &encoded)?;
    let options = engine.context_options(Arc::new(Patience::default()), None);
    let service = engine.options().service.as_ref();
    let decoded = encoded.build(snapshot, options, service, process);
    let decoded = decoded.map_err(of_codec)?;
    compile_patterns(decoded.plan.as_ref())
        .map_err(|error| DataFusionError::External(Box::new(error)))?;
    let context = decoded.context;
    let common = encoded.own_terms();
    Ok(WorkerPlan {
        plan: decoded.plan,
        task: Runtime::task_of_its_own(&engine.runtime().task(None)),
        rules: RULES,
        translation: ForeignTerms::new(&context, common),
        touches: Arc::new(move |parts| {
            let parts = parts.iter().map(touches);
            parts.fold(context.touches(), u64::saturating_add)
        }),
        // Its nodes look at the clock themselves.
        ends: None,
    })
}

/// The state that a plan reads, which may have to come here yet.
fn snapshot(engine: &Engine, plan: &EncodedPlan) -> Result<Arc<Snapshot>> {
    let began = Instant::now();
    while engine.database().snapshot().commit() < plan.commit() && began.elapsed() < COMMIT_WAIT {
        std::thread::sleep(COMMIT_WAIT / 50);
    }
    // Whatever is wrong with it here, it is not with all others.
    plan.snapshot(engine.database())
        .map_err(|error| lost(&error))
}

fn lost(error: &CodecError) -> DataFusionError {
    Error::Lost(format!("a worker cannot make the plan: {error}")).into()
}

/// A plan for a state that is not here: another process has it.
fn of_codec(error: CodecError) -> DataFusionError {
    match error {
        CodecError::OtherDatabase { .. }
        | CodecError::OtherCommit { .. }
        | CodecError::OtherIds { .. }
        | CodecError::OtherVersion { .. } => lost(&error),
        other => DataFusionError::External(Box::new(other)),
    }
}
