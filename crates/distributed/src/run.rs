//! The coordinator: runs a query's plan on all workers.
//!
//! ```text
//! members -> cut -> Open at each -> the root runs here ── first rows ──> the answer
//!    ^                  | cannot          | lost            ── lost ────> the query fails
//!    └── without whoever was lost <───────┘
//!    └── after some attempts, or alone: the plan as it is, here
//! ```

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arrow::array::RecordBatch;
use bytes::Bytes;
use datafusion_common::{Result, assert_eq_or_internal_err};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_expr::Partitioning;
use datafusion_physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion_physical_plan::execution_plan::reset_plan_states;
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::TryStreamExt as _;
use futures::future::{BoxFuture, join_all};
use futures::stream::{self, BoxStream, StreamExt as _};
use parking_lot::Mutex;
use tokio::task::AbortHandle;

use crate::counts::Counts;
use crate::cut::{Among, cut};
use crate::error::{Error, of_network};
use crate::language::{OwnPart, OwnParts, Rules, Translation};
use crate::links::Links;
use crate::messages::Request;
use crate::network::{Answer, NetworkError};
use crate::pick::count;
use crate::stages::Stages;
use crate::worker::{Opened, Workers};
use orrery_plan_node::node_methods;

/// How often a query is begun with workers.
const ATTEMPTS: usize = 3;
/// So much of an answer is held back: as long as nothing is given out, the query can begin anew.
const HELD_BYTES_MAX: usize = 4 << 20;
/// How long a worker may take to make the plan.
const OPEN_WAIT: Duration = Duration::from_secs(5);
/// How often workers are asked what a query has cost so far.
const TOLD_EVERY: Duration = Duration::from_millis(250);
/// How long a worker is waited for that is to say what it did.
const CLOSE_WAIT: Duration = Duration::from_secs(1);

/// A query that workers may run.
pub struct Query {
    /// Who they are.
    pub workers: Arc<Workers>,
    /// The language of the description.
    pub language: &'static str,
    /// Those of them for whom the plan was described.
    pub members: Vec<String>,
    /// Partitions that each of them runs at once: its threads.
    pub streams: usize,
    /// How this process runs its part of the plan that it has; if nothing is said, it makes the
    /// plan of the description, as the others do.
    pub own: Option<OwnParts>,
    /// The description of the plan.
    pub description: Bytes,
    /// What the nodes are.
    pub rules: Rules,
    /// What rows mean here.
    pub translation: Arc<dyn Translation>,
    /// Takes touches that other processes counted.
    pub note_touches: Box<dyn Fn(u64) + Send + Sync>,
}

/// The numbers of queries, so that each has a name of its own.
static NUMBER: AtomicU64 = AtomicU64::new(0);

impl Query {
    /// Who may be asked now.
    fn members(&self) -> Vec<String> {
        let mut members = self.workers.members();
        members.retain(|member| self.members.contains(member));
        members
    }

    fn among<'m>(&self, members: &'m [String]) -> Among<'m> {
        Among {
            members,
            streams: self.streams,
        }
    }

    fn name(&self) -> String {
        let now = std::time::SystemTime::now();
        let since = now.duration_since(std::time::UNIX_EPOCH);
        let nanoseconds = since.map_or(0, |since| since.as_nanos());
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        format!("{}/{nanoseconds}/{number}", self.workers.network().here())
    }
}

/// The stages of a plan for these members.
struct Ready {
    members: Vec<String>,
    stages: Stages,
}

/// A plan that workers run together; it gives one partition.
#[derive(Clone)]
pub struct WorkersExec {
    plan: Arc<dyn ExecutionPlan>,
    query: Arc<Query>,
    /// The stages, until it is begun.
    ready: Arc<Mutex<Option<Ready>>>,
    properties: Arc<PlanProperties>,
}

impl WorkersExec {
    /// Over the whole plan of a query, if there is somebody to divide it among, and something to
    /// divide.
    pub fn over(plan: &Arc<dyn ExecutionPlan>, query: Query) -> Result<Option<Self>> {
        let members = query.members();
        if members.len() < 2 {
            return Ok(None);
        }
        let stages = cut(plan, &query.rules, query.among(&members))?;
        Ok(stages.map(|stages| {
            let made = Self::new(Arc::clone(plan), Arc::new(query));
            *made.ready.lock() = Some(Ready { members, stages });
            made
        }))
    }

    fn new(plan: Arc<dyn ExecutionPlan>, query: Arc<Query>) -> Self {
        let given = plan.properties().as_ref().clone();
        let partitioning = Partitioning::UnknownPartitioning(1);
        Self {
            properties: Arc::new(given.with_partitioning(partitioning)),
            plan,
            query,
            ready: Arc::default(),
        }
    }

    fn with_input(&self, plan: Arc<dyn ExecutionPlan>) -> Self {
        Self::new(plan, Arc::clone(&self.query))
    }
}

impl fmt::Debug for WorkersExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkersExec")
            .field("plan", &self.plan)
            .finish_non_exhaustive()
    }
}

impl DisplayAs for WorkersExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let members = self.query.workers.members().len();
        write!(f, "WorkersExec: {members} workers")
    }
}

impl ExecutionPlan for WorkersExec {
    node_methods!("WorkersExec", over plan);

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        assert_eq_or_internal_err!(partition, 0, "partitions of WorkersExec");
        let (plan, query) = (Arc::clone(&self.plan), Arc::clone(&self.query));
        let schema = self.schema();
        let ready = self.ready.lock().take();
        let rows = stream::once(begun(plan, ready, query, context)).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}

type Rows = BoxStream<'static, Result<RecordBatch>>;

/// Begins with the workers that there are, without those that are lost on the way, in the end here
/// alone. When this returns, the answer is there, or its first rows are.
async fn begun(
    plan: Arc<dyn ExecutionPlan>,
    mut ready: Option<Ready>,
    query: Arc<Query>,
    context: Arc<TaskContext>,
) -> Result<Rows> {
    for attempt in 0..ATTEMPTS {
        let members = query.members();
        if members.len() < 2 {
            break;
        }
        // What has run gives its rows no more.
        let (plan, own) = match attempt {
            0 => (
                Arc::clone(&plan),
                query.own.as_ref().map(|own| own(&context)),
            ),
            _ => (reset_plan_states(Arc::clone(&plan))?, None),
        };
        let stages = match ready.take() {
            Some(ready) if ready.members == members => Some(ready.stages),
            _ => cut(&plan, &query.rules, query.among(&members))?,
        };
        let Some(stages) = stages else { break };
        match attempted(stages, &query, members, own, &context).await {
            Ok(rows) => {
                Counts::one(&query.workers.counts().divided);
                return Ok(rows);
            }
            Err(error) => match Error::of(&error) {
                // The member is well: it may have another version, or the plan says when it was
                // made.
                Some(Error::OtherPlan { .. }) => {
                    tracing::debug!("a query runs here alone: {}", error.find_root());
                    break;
                }
                Some(Error::Lost(_)) => {
                    Counts::one(&query.workers.counts().begun_anew);
                    tracing::warn!("a query begins anew: {}", error.find_root());
                }
                Some(Error::Damaged(_)) | None => return Err(error),
            },
        }
    }
    Counts::one(&query.workers.counts().alone);
    Ok(whole(reset_plan_states(plan)?, context)?.boxed())
}

/// All rows of a plan that runs here.
fn whole(
    plan: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
) -> Result<SendableRecordBatchStream> {
    match count(&plan) {
        1 => plan.execute(0, context),
        _ => CoalescePartitionsExec::new(plan).execute(0, context),
    }
}

/// A query that is open at its workers, until this is dropped.
struct Open {
    told: Arc<Told>,
    following: AbortHandle,
    links: Arc<Links>,
    /// While they are held, the workers hold their plans.
    _answers: Vec<Answer>,
    _own: Option<Opened>,
}

async fn attempted(
    stages: Stages,
    query: &Arc<Query>,
    members: Vec<String>,
    own: Option<OwnPart>,
    context: &Arc<TaskContext>,
) -> Result<Rows> {
    let name = query.name();
    let request = Request::Open {
        query: name.clone(),
        language: query.language.to_owned(),
        members: members.clone(),
        streams: query.streams,
        fingerprint: stages.fingerprint(&query.rules),
    };
    let request = request.to_bytes(&query.description)?;
    let links = Links::new(
        (query.workers.network(), query.workers.counts()),
        query.workers.rows_here(),
        name.clone(),
        members.clone(),
        stages.shapes(),
        Arc::clone(&query.translation),
    );
    _ = stages.place.set(Arc::clone(&links));
    let root = Arc::clone(&stages.root);
    let own = own.and_then(|own| opened_here(query, (&name, &members), stages, own));
    let here = query.workers.network().here();
    let asked = members
        .iter()
        .filter(|member| own.is_none() || **member != here);
    let opening = asked.map(|member| open(query, member, &request));
    let answers = join_all(opening).await;
    let answers = answers.into_iter().collect::<Result<Vec<_>>>()?;
    let told = Told::new(query, &name, &members);
    let open = Open {
        following: tokio::spawn(Arc::clone(&told).follow()).abort_handle(),
        told,
        links,
        _answers: answers,
        _own: own,
    };
    let mut rows = whole(root, Arc::clone(context))?;
    let (mut held, mut bytes) = (Vec::new(), 0);
    let rows = loop {
        match rows.next().await {
            Some(batch) => {
                let batch = batch?;
                bytes += batch.get_array_memory_size();
                held.push(Ok(batch));
            }
            None => break None,
        }
        if bytes > HELD_BYTES_MAX {
            break Some(rows);
        }
    };
    let rest = stream::unfold(Some((rows, open)), |state| async move {
        let (rows, open) = state?;
        if let Some(mut rows) = rows
            && let Some(batch) = rows.next().await
        {
            return Some((batch, Some((Some(rows), open))));
        }
        open.close().await;
        None
    });
    Ok(stream::iter(held).chain(rest).boxed())
}

/// Opens a query here, with the stages that it has.
fn opened_here(
    query: &Query,
    (name, members): (&str, &[String]),
    stages: Stages,
    own: OwnPart,
) -> Option<Opened> {
    let meaning = (query.rules, Arc::clone(&query.translation));
    let name = (name, query.language);
    query
        .workers
        .opened_here(name, members.to_vec(), stages, meaning, own)
}

/// Opens a query at a worker; returns when it has the plan.
async fn open(query: &Query, member: &str, request: &Bytes) -> Result<Answer> {
    let network = query.workers.network();
    let opening = async {
        let mut answer = network.call(member, request.clone()).await?;
        match answer.next().await {
            Some(first) => first.map(|_| answer),
            None => Err(NetworkError::Lost {
                member: member.to_owned(),
                reason: "it did not answer".to_owned(),
            }),
        }
    };
    let opened = tokio::time::timeout(OPEN_WAIT, opening).await;
    let opened = opened.unwrap_or_else(|_| {
        Err(NetworkError::Lost {
            member: member.to_owned(),
            reason: format!("it has no plan after {} s", OPEN_WAIT.as_secs()),
        })
    });
    opened.map_err(|error| {
        let error = of_network(member, error);
        if matches!(Error::of(&error), Some(Error::Lost(_))) {
            query.workers.note_lost(member);
        }
        error
    })
}

/// What members have done of a query, as far as they have told.
struct Told {
    query: Arc<Query>,
    name: String,
    members: Vec<String>,
    touches: Mutex<Vec<u64>>,
}

impl Told {
    fn new(query: &Arc<Query>, name: &str, members: &[String]) -> Arc<Self> {
        Arc::new(Self {
            query: Arc::clone(query),
            name: name.to_owned(),
            members: members.to_vec(),
            touches: Mutex::new(vec![0; members.len()]),
        })
    }

    /// Asks all of them, and takes what is more than they have told before.
    async fn ask(&self, request: &Request, wait: Duration) {
        let Ok(request) = request.to_bytes(&[]) else {
            return;
        };
        let network = self.query.workers.network();
        let mut asked = Vec::with_capacity(self.members.len());
        for member in &self.members {
            let answer = first_message(network.call(member, request.clone()));
            asked.push(tokio::time::timeout(wait, answer));
        }
        let answers = join_all(asked).await;
        let mut more = 0;
        for (told, answer) in self.touches.lock().iter_mut().zip(answers) {
            let message = answer.ok().flatten();
            let bytes = message.as_ref().and_then(|it| it.get(..8)?.try_into().ok());
            let touches = bytes.map_or(0, u64::from_le_bytes);
            more += touches.saturating_sub(*told);
            *told = touches.max(*told);
        }
        (self.query.note_touches)(more);
    }

    /// Asks again and again, so that a limit of what a query may cost holds while it runs.
    async fn follow(self: Arc<Self>) {
        let request = Request::Touches {
            query: self.name.clone(),
        };
        loop {
            tokio::time::sleep(TOLD_EVERY).await;
            self.ask(&request, CLOSE_WAIT).await;
        }
    }

    /// Ends the query everywhere, and takes what it cost.
    async fn close(&self) {
        let request = Request::Close {
            query: self.name.clone(),
        };
        self.ask(&request, CLOSE_WAIT).await;
    }
}

async fn first_message(
    answer: BoxFuture<'static, std::result::Result<Answer, NetworkError>>,
) -> Option<Bytes> {
    answer.await.ok()?.next().await?.ok()
}

impl Open {
    /// Ends the query everywhere.
    async fn close(self) {
        self.following.abort();
        self.told.close().await;
        tracing::debug!(
            workers = self.told.members.len(),
            bytes = self.links.bytes(),
            touches = self.told.touches.lock().iter().sum::<u64>(),
            "a query over workers"
        );
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.following.abort();
    }
}
