//! The worker: queries that other processes have opened here.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use bytes::Bytes;
use datafusion_common::{DataFusionError, Result};
use datafusion_execution::TaskContext;
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::display::DisplayableExecutionPlan;
use datafusion_physical_plan::repartition::RepartitionExec;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream, StreamExt as _};
use parking_lot::Mutex;
use tokio::runtime::Handle;

use crate::counts::{Counts, Figures};
use crate::cut::{Among, cut};
use crate::error::Error;
use crate::language::{Ends, Incoming, Language, OfParts, OwnPart, Rules, Translation};
use crate::links::{Links, RowsHere};
use crate::messages::Request;
use crate::network::{Network, NetworkError};
use crate::outputs::{Kept, Source, for_one, for_one_here};
use crate::owners::partitions_for;
use crate::pick::{Picks, picked};
use crate::stages::Stages;

/// For how long a member that was lost is not asked.
const LOST_FOR: Duration = Duration::from_secs(10);

/// This process among the workers: what it has open for others, and which of them it has lost.
pub struct Workers {
    network: Arc<dyn Network>,
    languages: Mutex<HashMap<String, Arc<dyn Language>>>,
    open: Mutex<HashMap<String, Arc<OpenQuery>>>,
    lost: Mutex<HashMap<String, Instant>>,
    /// How many members there were, and when.
    known: Mutex<Option<(Instant, usize)>>,
    least_rows: f64,
    counts: Arc<Counts>,
}

impl fmt::Debug for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workers")
            .field("network", &self.network)
            .finish_non_exhaustive()
    }
}

/// For how long it is not looked again how many members there are.
const KNOWN_FOR: Duration = Duration::from_secs(1);

type Messages = BoxStream<'static, std::result::Result<Bytes, NetworkError>>;

impl Workers {
    /// Over a network. Queries that handle fewer rows than `least_rows` stay where they are asked.
    pub fn new(network: Arc<dyn Network>, least_rows: f64) -> Arc<Self> {
        Arc::new(Self {
            network,
            languages: Mutex::default(),
            open: Mutex::default(),
            lost: Mutex::default(),
            known: Mutex::default(),
            counts: Arc::default(),
            least_rows,
        })
    }

    /// The number of rows from which a query is distributed.
    pub fn least_rows(&self) -> f64 {
        self.least_rows
    }

    /// Adds a language, whose plan descriptions it then decodes.
    pub fn learn(&self, name: &str, language: Arc<dyn Language>) {
        self.languages.lock().insert(name.to_owned(), language);
    }

    /// How queries reach the others.
    pub(crate) fn network(&self) -> &Arc<dyn Network> {
        &self.network
    }

    /// The reachable members now, in the same order at each.
    pub fn members(&self) -> Vec<String> {
        let mut members = self.network.members();
        let mut lost = self.lost.lock();
        lost.retain(|_, since| since.elapsed() < LOST_FOR);
        members.retain(|member| !lost.contains_key(member));
        members.sort_unstable();
        members
    }

    /// How many partitions a large plan is made for, where each member has so many threads; less
    /// than two if there is nobody to divide it among. As many members as there were within the
    /// last second: it is asked for each query that is planned.
    pub fn partitions(&self, threads: usize) -> usize {
        let mut known = self.known.lock();
        let members = match *known {
            Some((since, members)) if since.elapsed() < KNOWN_FOR => members,
            _ => {
                let members = self.members().len();
                *known = Some((Instant::now(), members));
                members
            }
        };
        match members {
            0 | 1 => 1,
            _ => partitions_for(members, threads),
        }
    }

    /// Says that a member cannot be asked for now.
    pub(crate) fn note_lost(&self, member: &str) {
        self.lost.lock().insert(member.to_owned(), Instant::now());
    }

    pub(crate) fn counts(&self) -> &Arc<Counts> {
        &self.counts
    }

    /// The counters so far.
    pub fn figures(&self) -> Figures {
        self.counts.figures(self.open.lock().len() as u64)
    }

    /// Answers a request of another process, or of this one.
    pub fn answer(self: &Arc<Self>, request: Bytes) -> Messages {
        let (request, description) = match Request::from_bytes(request) {
            Ok(request) => request,
            Err(error) => return failed(&error),
        };
        match request {
            Request::Open {
                query,
                language,
                members,
                streams,
                fingerprint,
            } => {
                let workers = Arc::clone(self);
                let opened = async move {
                    let among = (members, streams);
                    let opened = workers
                        .opened(&query, &language, among, fingerprint, description)
                        .await;
                    match opened {
                        Ok(open) => {
                            let first = stream::iter([Ok(Bytes::from_static(b"open"))]);
                            let rest = stream::once(async move {
                                std::future::pending::<()>().await;
                                // Until the one who asked is gone.
                                drop(open);
                                Ok(Bytes::new())
                            });
                            first.chain(rest).boxed()
                        }
                        Err(error) => failed(&error),
                    }
                };
                stream::once(opened).flatten().boxed()
            }
            Request::Read {
                query,
                stage,
                partition,
            } => self.read(&query, stage, partition),
            Request::Touches { query } => {
                let open = self.open.lock().get(&query).cloned();
                number(open.map_or(0, |query| query.touches()))
            }
            Request::Close { query } => {
                let closed = self.open.lock().remove(&query);
                number(closed.map_or(0, |query| {
                    query.trace();
                    query.touches()
                }))
            }
        }
    }

    /// Makes the plan of a query, which is open until what is returned is dropped.
    async fn opened(
        self: &Arc<Self>,
        query: &str,
        language: &str,
        (members, streams): (Vec<String>, usize),
        fingerprint: u64,
        description: Bytes,
    ) -> Result<Opened> {
        let here = self.network.here();
        let other_plan = || Error::OtherPlan {
            member: here.clone(),
        };
        let known = self.languages.lock().get(language).cloned();
        let own = members.iter().position(|member| *member == here);
        let process = own.and_then(|own| u32::try_from(own + 1).ok());
        let process = process.ok_or_else(other_plan)?;
        let language = known.ok_or_else(other_plan)?;
        let made = language.plan(description, process).await?;
        let among = Among {
            members: &members,
            streams,
        };
        let stages = cut(&made.plan, &made.rules, among)?.ok_or_else(other_plan)?;
        if stages.fingerprint(&made.rules) != fingerprint {
            return Err(other_plan().into());
        }
        let part = OwnPart {
            task: made.task,
            touches: made.touches,
            ends: made.ends,
        };
        let meaning = (made.rules, made.translation);
        let threads = language.threads();
        Ok(self.open_stages(query, members, stages, meaning, (part, threads)))
    }

    /// The same of a query of this process, which has its stages already. Nothing if it does not
    /// run parts of queries in this language.
    pub(crate) fn opened_here(
        self: &Arc<Self>,
        (query, language): (&str, &str),
        members: Vec<String>,
        stages: Stages,
        meaning: (Rules, Arc<dyn Translation>),
        part: OwnPart,
    ) -> Option<Opened> {
        let threads = self.languages.lock().get(language)?.threads();
        Some(self.open_stages(query, members, stages, meaning, (part, threads)))
    }

    fn open_stages(
        self: &Arc<Self>,
        query: &str,
        members: Vec<String>,
        stages: Stages,
        meaning: (Rules, Arc<dyn Translation>),
        part: (OwnPart, Handle),
    ) -> Opened {
        let open = OpenQuery::new(self, query, members, stages, meaning, part);
        Counts::one(&self.counts.worked_for);
        self.open.lock().insert(query.to_owned(), Arc::new(open));
        Opened {
            workers: Arc::downgrade(self),
            query: query.to_owned(),
        }
    }

    fn read(&self, query: &str, stage: usize, partition: usize) -> Messages {
        let open = match self.open_here(query) {
            Ok(open) => open,
            Err(error) => return failed(&error),
        };
        let threads = open.threads.clone();
        // Not on the threads of the network.
        let begun = threads.spawn(async move { open.read(stage, partition) });
        let begun = async move {
            match begun.await {
                Ok(Ok(messages)) => messages,
                Ok(Err(error)) => failed(&error),
                Err(error) => failed(&DataFusionError::External(Box::new(error))),
            }
        };
        stream::once(begun).flatten().boxed()
    }

    /// This process for its own exchanges.
    pub(crate) fn rows_here(self: &Arc<Self>) -> Weak<dyn RowsHere> {
        let own: Weak<Self> = Arc::downgrade(self);
        own
    }

    fn open_here(&self, query: &str) -> Result<Arc<OpenQuery>> {
        let open = self.open.lock().get(query).cloned();
        open.ok_or_else(|| {
            let here = self.network.here();
            let text = format!("the worker {here} is lost: it does not have the query open");
            Error::Lost(text).into()
        })
    }
}

impl RowsHere for Workers {
    fn rows_here<'a>(
        &'a self,
        query: &'a str,
        (stage, partition): (usize, usize),
        incoming: Box<dyn Incoming>,
    ) -> BoxFuture<'a, Result<BoxStream<'static, Result<RecordBatch>>>> {
        async move {
            let open = self.open_here(query)?;
            let here = self.network.here();
            let threads = open.threads.clone();
            let rows = threads.spawn(async move {
                Ok(match open.readers(stage, partition)? {
                    0 | 1 => for_one_here(open.source(stage, partition)?, incoming),
                    _ => open.kept(stage, partition)?.read_here(here, incoming),
                })
            });
            match rows.await {
                Ok(rows) => rows,
                Err(error) => Err(DataFusionError::External(Box::new(error))),
            }
        }
        .boxed()
    }
}

fn number(number: u64) -> Messages {
    let message = Bytes::copy_from_slice(&number.to_le_bytes());
    stream::iter([Ok(message)]).boxed()
}

fn failed(error: &DataFusionError) -> Messages {
    stream::iter([Err(NetworkError::Said(Error::to_text(error)))]).boxed()
}

/// Closes a query when who opened it is gone.
pub(crate) struct Opened {
    workers: Weak<Workers>,
    query: String,
}

impl Drop for Opened {
    fn drop(&mut self) {
        if let Some(workers) = self.workers.upgrade() {
            let closed = workers.open.lock().remove(&self.query);
            // Not under the lock: it ends tasks.
            drop(closed);
        }
    }
}

/// A query that others have opened here.
struct OpenQuery {
    stages: Stages,
    /// The place of this process among the members.
    own: Option<usize>,
    rules: Rules,
    translation: Arc<dyn Translation>,
    task: Arc<TaskContext>,
    touches: OfParts,
    _ends: Option<Ends>,
    threads: Handle,
    /// What this process runs of a stage, made when it is first read.
    local: Mutex<HashMap<usize, LocalStage>>,
    kept: Mutex<HashMap<(usize, usize), Arc<Kept>>>,
    /// The partitions that were begun.
    begun: Mutex<HashSet<(usize, usize)>>,
}

#[derive(Clone)]
struct LocalStage {
    plan: Arc<dyn ExecutionPlan>,
    /// Which partition of the stage each of its own is, where it has some of them.
    picks: Option<Arc<[usize]>>,
}

impl OpenQuery {
    fn new(
        workers: &Arc<Workers>,
        query: &str,
        members: Vec<String>,
        stages: Stages,
        (rules, translation): (Rules, Arc<dyn Translation>),
        (part, threads): (OwnPart, Handle),
    ) -> Self {
        let here = workers.network.here();
        let own = members.iter().position(|member| *member == here);
        stages.place.get_or_init(|| {
            Links::new(
                (&workers.network, &workers.counts),
                workers.rows_here(),
                query.to_owned(),
                members,
                stages.shapes(),
                Arc::clone(&translation),
            )
        });
        Self {
            stages,
            own,
            rules,
            translation,
            task: part.task,
            touches: part.touches,
            _ends: part.ends,
            threads,
            local: Mutex::default(),
            kept: Mutex::default(),
            begun: Mutex::default(),
        }
    }

    /// The parts that ran here, each node with what it counted.
    fn trace(&self) {
        if !tracing::enabled!(tracing::Level::TRACE) {
            return;
        }
        for (stage, local) in self.local.lock().iter() {
            let shown = DisplayableExecutionPlan::with_metrics(local.plan.as_ref());
            tracing::trace!(stage, own = self.own, "ran here:\n{}", shown.indent(false));
        }
    }

    fn touches(&self) -> u64 {
        let parts = self.local.lock();
        let parts: Vec<_> = parts
            .values()
            .map(|local| Arc::clone(&local.plan))
            .collect();
        (self.touches)(&parts)
    }

    /// How often a partition is read.
    fn readers(&self, stage: usize, partition: usize) -> Result<usize> {
        let known = self.stages.stages.get(stage);
        let known = known.ok_or_else(|| {
            Error::Damaged(format!(
                "there is no partition {partition} of stage {stage}"
            ))
        })?;
        Ok(known.readers)
    }

    fn read(&self, stage: usize, partition: usize) -> Result<Messages> {
        if self.readers(stage, partition)? < 2 {
            return Ok(for_one(self.source(stage, partition)?));
        }
        Ok(self.kept(stage, partition)?.read())
    }

    /// A partition that several read.
    fn kept(&self, stage: usize, partition: usize) -> Result<Arc<Kept>> {
        let mut kept = self.kept.lock();
        if let Some(kept) = kept.get(&(stage, partition)) {
            return Ok(Arc::clone(kept));
        }
        let begun = Arc::new(Kept::begin(self.source(stage, partition)?));
        kept.insert((stage, partition), Arc::clone(&begun));
        Ok(begun)
    }

    /// The rows of a partition.
    fn source(&self, stage: usize, partition: usize) -> Result<Source> {
        let local = self.local(stage)?;
        let at = match &local.picks {
            None => Some(partition),
            Some(picks) => picks.iter().position(|pick| *pick == partition),
        };
        let at = at.filter(|at| *at < crate::pick::count(&local.plan));
        let at = at.ok_or_else(|| {
            Error::Damaged(format!(
                "partition {partition} of stage {stage} is elsewhere"
            ))
        })?;
        // Nodes give their rows once: run again, a partition would have none, without a word.
        if !self.begun.lock().insert((stage, partition)) {
            return Err(Error::Damaged(format!(
                "partition {partition} of stage {stage} is read more often than was counted"
            ))
            .into());
        }
        // Nodes begin tasks of their own when they are executed.
        let _entered = self.threads.enter();
        Ok(Source {
            rows: local.plan.execute(at, Arc::clone(&self.task))?,
            translation: Arc::clone(&self.translation),
            pool: Arc::clone(self.task.memory_pool()),
            threads: self.threads.clone(),
        })
    }

    fn local(&self, number: usize) -> Result<LocalStage> {
        let mut made = self.local.lock();
        if let Some(local) = made.get(&number) {
            return Ok(local.clone());
        }
        let stage = &self.stages.stages[number];
        let groups = stage.groups.iter().enumerate();
        let own = groups.filter(|(_, group)| Some(group.owner) == self.own);
        let (own, picks): (Vec<usize>, Vec<Picks>) = own
            .map(|(at, group)| (at, group.partitions.clone()))
            .unzip();
        if own.is_empty() {
            return Err(Error::Damaged(format!("stage {number} is elsewhere")).into());
        }
        let plan = match stage.is_divided {
            true => picked(&stage.plan, &picks, &self.rules)?,
            false => Arc::clone(&stage.plan),
        };
        let local = match &stage.division {
            None => LocalStage {
                plan,
                picks: stage.is_divided.then(|| own.into()),
            },
            Some(division) => LocalStage {
                plan: Arc::new(RepartitionExec::try_new(plan, division.clone())?),
                picks: None,
            },
        };
        made.insert(number, local.clone());
        Ok(local)
    }
}
