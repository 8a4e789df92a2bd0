//! Runs a query on the query threads and turns its answer into a response.
//!
//! ```text
//!  HTTP threads                                query threads
//!  handler: prepare, execute, if that is little
//!     |    --- spawn ------------------------> job: prepare, execute
//!     ^                                          | batches -> bytes
//!     '--- head (once): error | whole | stream --'
//!  body <----- bounded channel of chunks --------'
//! ```
//!
//! - **Small queries** run where their request was read: waking a thread and being woken by it
//!   takes longer than a point query (`docs/decisions/0007-query-threads.md`). A short text is
//!   prepared there; if the planner expects at most [`ROWS_HERE_MAX`] rows on the way, it also
//!   starts there. When it first has to wait or yields (our operators do after a millisecond), it
//!   moves to the query threads as it is.
//! - **Small answers** (up to `CHUNK_BYTES`) are sent whole, with `Content-Length`. So an error
//!   anywhere in a small answer still gets its own status.
//! - **Large answers** are streamed in chunks through a channel of `CHUNKS_WAITING_MAX`: a client
//!   that reads slowly stops the query from running ahead. Rows that wait for `FLUSH_DELAY` are
//!   sent even if the chunk is not full.
//! - **An error in the middle** of a stream breaks the connection off, so that the client sees a
//!   truncated transfer and not a short answer. The channel ends with an explicit mark for the same
//!   reason: a job that vanishes is an error too.
//! - **A client that leaves** drops the body (or the handler), which closes the channel; the job
//!   sees that at its next wait and drops the engine's stream, which stops the query.
//! - **Time** counts while the query works, not while it waits for the client. A client that takes
//!   nothing for `CLIENT_STALL_MAX` is given up.
//!
//! The channel, the chunks and the clock are in `output`.

use crate::answer::output::{COST, Content, HeadSender, Output, Stop, begun};
use crate::answer::partial::{note_in_graph, note_in_solutions};
use crate::answer::second_try::{Tried, produce_within_memory};
use crate::answer::warnings::{header_of, warnings_of};
use crate::edge::access_log::AccessRecord;
use crate::request::conditions::{Conditions, State, etag_of_read, tag_of_prefixes, tag_of_scope};
use crate::request::negotiate::AcceptedFormats;
use crate::request::protocol::QueryRequest;
use axum::http::Method;
use axum::response::{IntoResponse as _, Response};
use orrery_formats::{GraphSerializer, SolutionSerializer};
use orrery_query_log::Kind;
use orrery_service::admission::AdmissionPermit;
use orrery_service::errors::ServiceError;
use orrery_service::metering::{CostWatch, Meter, Payment};
use orrery_service::time_limit::TimeLimit;
use orrery_sparql::{
    Engine, MemoryPool, OwnShare, PreparedQuery, QueryKind, QueryOptions, QueryResults,
    SolutionStream, Spending, TripleStream, WrittenStream,
};
use orrery_storage::{ReadScope, ReadView, Snapshot};
use std::future;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Weak};
use std::task::Poll;
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};

/// Most rows that a plan on the HTTP threads may pass on: about a millisecond's work.
const ROWS_HERE_MAX: f64 = 5_000.0;

/// A query on its way to the query threads.
pub(crate) struct Job {
    pub(crate) engine: Arc<Engine>,
    pub(crate) request: QueryRequest,
    pub(crate) union_default_graph: bool,
    pub(crate) strict_prefixes: bool,
    /// Base of the relative IRIs in the query.
    pub(crate) base_iri: Option<String>,
    /// The snapshot to read; the newest if none.
    pub(crate) snapshot: Option<Arc<Snapshot>>,
    /// The asker, and the graphs they may see.
    pub(crate) scope: ReadScope,
    /// The snapshot filtered to those graphs, if it was made already.
    pub(crate) view: Option<Arc<ReadView>>,
    pub(crate) method: Method,
    pub(crate) conditions: Conditions,
    pub(crate) accepted: AcceptedFormats,
    pub(crate) time: TimeLimit,
    pub(crate) record: Arc<AccessRecord>,
    /// Whether the cost is reported or limited.
    pub(crate) wants_cost: bool,
    /// Pays for planning, and names the memory pool if it is not the one of all requests.
    pub(crate) payment: Option<Arc<Payment>>,
    /// The memory account of a second try that no budget pays for.
    pub(crate) second_try: Option<Arc<Spending>>,
    /// The budget's meter; none where nothing is limited.
    pub(crate) meter: Option<Arc<Meter>>,
    /// Dropped when nobody waits for the head of the answer any more.
    pub(crate) waiting: Weak<()>,
    /// When the request was read and admitted.
    pub(crate) ready: std::time::Instant,
    /// Held until the job ends.
    pub(crate) turn: AdmissionPermit,
}

/// Runs a query; returns when the head of the answer is known, time is up, or the server stops.
pub(crate) async fn answer(
    mut job: Job,
    query_threads: &Handle,
    is_over: &watch::Receiver<bool>,
) -> Result<Response, ServiceError> {
    let time = job.time;
    let waiting = Arc::new(());
    job.waiting = Arc::downgrade(&waiting);
    let (head_sender, head) = oneshot::channel();
    if job.engine.is_soon_prepared(&job.request.query) {
        begin_here(run(job, RunsOn::HttpThread, head_sender), query_threads).await;
    } else {
        query_threads.spawn(run(job, RunsOn::QueryThread, head_sender));
    }
    begun(head, time, is_over).await
}

/// Polls a job once on this thread, and moves the rest to the query threads.
async fn begin_here(job: impl Future<Output = ()> + Send + 'static, threads: &Handle) {
    let mut job = Box::pin(job);
    let polled = future::poll_fn(|context| {
        // Its timers and tasks belong to the query threads.
        let _entered = threads.enter();
        // On a task of its own a panic ends that task; here it would end the connection.
        let polled = panic::catch_unwind(AssertUnwindSafe(|| job.as_mut().poll(context)));
        Poll::Ready(polled.unwrap_or(Poll::Ready(())))
    });
    if polled.await.is_pending() {
        threads.spawn(job);
    }
}

/// Explains a query: its plan as text, and the cost: that of planning, and a touch for each line.
pub(crate) async fn explain(
    mut job: Job,
    query_threads: &Handle,
) -> Result<Response, ServiceError> {
    let time = job.time;
    let waiting = Arc::new(());
    job.waiting = Arc::downgrade(&waiting);
    let payment = job.payment.clone();
    let (sender, plan) = oneshot::channel();
    query_threads.spawn(async move {
        let text = prepare(&job).map(|prepared| prepared.explain());
        if let (Some(payment), Ok(text)) = (&job.payment, &text) {
            payment.charge(text.lines().count() as u64);
        }
        // A failed send means that the client has left.
        let _ = sender.send(text);
    });
    let text = match tokio::time::timeout(time.left(), plan).await {
        Ok(Ok(text)) => text?,
        Ok(Err(_dropped)) => {
            return Err(ServiceError::Internal {
                message: "planning ended without a plan".to_owned(),
            });
        }
        Err(_elapsed) => return Err(time.exceeded()),
    };
    let mut response = text.into_response();
    if let Some(payment) = payment {
        response
            .headers_mut()
            .insert(COST, payment.touches().into());
    }
    Ok(response)
}

/// The thread on which a job starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunsOn {
    /// The HTTP thread that has read the request.
    HttpThread,
    QueryThread,
}

/// Runs a job to its end, and releases its admission permit then.
async fn run(job: Job, runs_on: RunsOn, head: HeadSender) {
    let record = Arc::clone(&job.record);
    let _panics = record.watch_panics();
    let mut output = Output::new(head, job.ready, job.time);
    let mut begun = Begun { job, runs_on };
    let produced = produce_within_memory(&mut begun, &mut output);
    let produced = record.unless_killed(produced).await;
    record.set_stages(output.times.stages());
    match produced {
        Ok(()) => {}
        Err(Stop::ClientGone) => tracing::debug!("the client left; its query was stopped"),
        Err(Stop::Failed(error)) => {
            record.set_failure(error.failure());
            output.fail(error);
        }
    }
}

/// A job, and the thread on which its first try starts.
struct Begun {
    job: Job,
    runs_on: RunsOn,
}

impl Tried for Begun {
    fn turn(&self) -> &AdmissionPermit {
        &self.job.turn
    }

    fn memory(&self) -> Arc<dyn MemoryPool> {
        Arc::clone(self.job.engine.runtime().memory().operators())
    }

    fn begin_again(&mut self) -> Arc<OwnShare> {
        self.job.record.reset_rows();
        if let Some(payment) = &self.job.payment {
            return Arc::clone(payment.own_share());
        }
        let own = OwnShare::of(&self.memory());
        self.job.second_try = Some(Spending::new(Some(Arc::clone(&own) as _)));
        own
    }

    async fn produce(&self, output: &mut Output) -> Result<(), Stop> {
        produce(&self.job, self.runs_on, output).await
    }
}

fn prepare(job: &Job) -> Result<PreparedQuery, ServiceError> {
    let prepared = job.engine.prepare(&job.request.query, &query_options(job));
    prepared.map_err(|error| {
        let payment = job.payment.as_ref();
        match payment.and_then(|payment| payment.exceeded()) {
            Some(exceeded) => exceeded.into(),
            None => error.into(),
        }
    })
}

fn query_options(job: &Job) -> QueryOptions {
    QueryOptions {
        default_graphs: job.request.default_graphs.clone(),
        named_graphs: job.request.named_graphs.clone(),
        union_default_graph: job.union_default_graph,
        strict_prefixes: job.strict_prefixes,
        base_iri: job.base_iri.clone(),
        snapshot: job.snapshot.clone(),
        view: job.view.clone(),
        // The time of the run is counted elsewhere: only while the query works.
        planning_timeout: Some(job.time.limit),
        waiting: Some(job.waiting.clone()),
        spending: match &job.payment {
            Some(payment) => Some(Arc::clone(payment.spending())),
            None => job.second_try.clone(),
        },
        ..QueryOptions::of(job.scope.clone())
    }
}

/// Adds a warning to an empty answer that names the pattern without matches.
///
/// Not for askers with a budget: they pay for their query and for nothing else.
async fn hint(job: &Job, prepared: &PreparedQuery, output: &mut Output) -> Result<(), Stop> {
    if job.meter.is_some() {
        return Ok(());
    }
    let options = query_options(job);
    let engine = &job.engine;
    let empty = engine.why_empty(prepared, &job.request.query, &options);
    let empty = match output.wait(empty).await {
        Ok(empty) => empty,
        Err(Stop::ClientGone) => return Err(Stop::ClientGone),
        // The answer is complete without the warning.
        Err(Stop::Failed(_)) => return Ok(()),
    };
    let hints = empty.iter().filter_map(|hint| header_of(hint));
    output.warnings.extend(hints);
    Ok(())
}

async fn produce(job: &Job, runs_on: RunsOn, output: &mut Output) -> Result<(), Stop> {
    let prepared = prepare(job)?;
    let commit = prepared.snapshot().commit();
    job.record.set_prepared(kind_of(prepared.kind()), commit);
    let produced = produce_prepared(job, &prepared, runs_on, output).await;
    if let Some(entry) = job.record.entry() {
        // However it ended, this plan took the time.
        entry.note_plan(|| prepared.explain());
    }
    produced
}

/// The form of a query, as the query log has it.
fn kind_of(kind: QueryKind) -> Kind {
    match kind {
        QueryKind::Select => Kind::Select,
        QueryKind::Ask => Kind::Ask,
        QueryKind::Construct => Kind::Construct,
        QueryKind::Describe => Kind::Describe,
    }
}

async fn produce_prepared(
    job: &Job,
    prepared: &PreparedQuery,
    runs_on: RunsOn,
    output: &mut Output,
) -> Result<(), Stop> {
    output.times.prepared(prepared.preparation());
    // The first try's cost was charged when its watch ended.
    output.cost = job.wants_cost.then(|| {
        let (meter, record) = (job.meter.clone(), Some(Arc::clone(job.record.statement())));
        CostWatch::new(Box::new(prepared.touch_reader()), meter, record)
    });
    let rows_max = job.meter.as_ref().and_then(|meter| meter.rows_max());
    let limited = |results: QueryResults| match rows_max {
        Some(rows_max) => results.limited(rows_max),
        None => results,
    };
    output.warnings = warnings_of(&job.request.query);
    output.warnings.extend(job.request.passed_over.warnings());
    if prepared.has_unbound_variables() {
        let unbound = job
            .engine
            .never_bound(prepared, &job.request.query, &query_options(job));
        output
            .warnings
            .extend(unbound.iter().filter_map(|it| header_of(it)));
    }
    if runs_on == RunsOn::HttpThread && prepared.expected_rows() > ROWS_HERE_MAX {
        // Yielding moves the job to the query threads.
        tokio::task::yield_now().await;
    }
    // The format first: a client that cannot read the answer, or has it cached, should not wait for
    // it.
    match prepared.kind() {
        QueryKind::Select | QueryKind::Ask => {
            let chosen = job.accepted.solutions()?;
            output.content_type = Some(chosen.content_type());
            if is_known(job, prepared, chosen.format.name(), output)? {
                return output.send_head(Content::NotModified);
            }
            match limited(output.wait(prepared.execute()).await??) {
                QueryResults::Solutions(stream) => {
                    let (mut serializer, variables) = {
                        let variables = stream.variables();
                        let out = &mut output.buffer;
                        let serializer = SolutionSerializer::start(chosen.format, variables, out)
                            .spill_to(&job.engine.options().temp_dir)
                            .with_prefixes(prepared.snapshot().prefixes());
                        (serializer, variables.len())
                    };
                    let written =
                        write_solutions(job, output, stream, &mut serializer, variables).await;
                    take_part(job, output, written)?;
                    while !serializer.finish(&mut output.buffer)? {
                        output.flush_if_full().await?;
                        output.check_time()?;
                    }
                    output
                        .end_partial(|reason, out| note_in_solutions(chosen.format, reason, out))?;
                }
                QueryResults::Boolean(value) => {
                    output.times.ran();
                    SolutionSerializer::boolean(chosen.format, value, &mut output.buffer)?;
                    job.record.add_rows(1);
                }
                QueryResults::Triples(_) => return Err(mismatch()),
            }
        }
        QueryKind::Construct | QueryKind::Describe => {
            let chosen = match prepared.gives_quads() {
                true => job.accepted.dataset()?,
                false => job.accepted.graph()?,
            };
            output.content_type = Some(chosen.content_type());
            if is_known(job, prepared, chosen.format.name(), output)? {
                return output.send_head(Content::NotModified);
            }
            let QueryResults::Triples(stream) = limited(output.wait(prepared.execute()).await??)
            else {
                return Err(mismatch());
            };
            let prefixes = prepared.snapshot().prefixes().shortener();
            let mut serializer = GraphSerializer::with_prefixes(chosen.format, prefixes);
            let written = write_triples(job, output, stream, &mut serializer).await;
            take_part(job, output, written)?;
            serializer.finish(&mut output.buffer)?;
            output.end_partial(|reason, out| note_in_graph(chosen.format, reason, out))?;
        }
    }
    // An ASK is never empty.
    let is_empty = prepared.kind() != QueryKind::Ask && job.record.rows() == 0;
    if is_empty && output.partial.is_none() && output.can_restart() {
        if runs_on == RunsOn::HttpThread {
            // The search for the empty pattern may take a while.
            tokio::task::yield_now().await;
        }
        hint(job, prepared, output).await?;
    }
    output.finish().await
}

/// Makes the output partial if a limit ended it and the client accepts partial answers.
fn take_part(job: &Job, output: &mut Output, written: Result<(), Stop>) -> Result<(), Stop> {
    match written {
        Err(Stop::Failed(error)) if job.request.partial && error.leaves_a_part() => {
            job.record.set_failure(error.failure());
            output.partial = Some(error.line());
            // A partial answer belongs to no commit, so it has no tag.
            output.etag = None;
            Ok(())
        }
        written => written,
    }
}

/// Sets the entity tag of the answer in this format; true if the client has that very answer.
fn is_known(
    job: &Job,
    prepared: &PreparedQuery,
    format: &str,
    output: &mut Output,
) -> Result<bool, ServiceError> {
    let snapshot = prepared.snapshot();
    let commit = snapshot.commit();
    // Commit numbers repeat in a database that is loaded anew or restored at the same address;
    // commit times do not.
    let union = if job.union_default_graph { "u" } else { "" };
    let seen = tag_of_scope(&job.scope);
    let prefixes = match &job.request.at {
        Some(_) => tag_of_prefixes(snapshot.prefixes()),
        // A change of the prefixes is a commit.
        None => String::new(),
    };
    let time_us = snapshot.commit_time_us();
    let format = format!("{format}-{time_us:x}{union}{seen}{prefixes}");
    let format = format.as_str();
    output.etag = Some(etag_of_read(commit, format));
    if job.conditions.is_empty() {
        return Ok(false);
    }
    let state = State {
        commit,
        time_us: snapshot.commit_time_us(),
        exists: true,
    };
    let format = (!may_change(&job.request.query)).then_some(format);
    let known = job.conditions.check_read(&job.method, state, format)?;
    let is_known = known.is_some();
    output.etag = known.or(output.etag.take());
    Ok(is_known)
}

/// Whether the answer may change while the database stays the same.
fn may_change(query: &str) -> bool {
    // Such a word in a name or a string only costs an answer that could have been 304.
    let query = query.to_ascii_uppercase();
    ["NOW", "RAND", "UUID", "BNODE", "SERVICE"]
        .iter()
        .any(|word| query.contains(word))
}

fn mismatch() -> Stop {
    Stop::Failed(ServiceError::Internal {
        message: "the engine's answer does not fit the form of the query".to_owned(),
    })
}

async fn write_solutions(
    job: &Job,
    output: &mut Output,
    mut stream: SolutionStream,
    serializer: &mut SolutionSerializer,
    variables: usize,
) -> Result<(), Stop> {
    if let Some(writer) = serializer.row_writer() {
        return write_rows(job, output, stream.written(writer)).await;
    }
    while let Some(batch) = output.next(&mut stream).await? {
        output.times.ran();
        for row in 0..batch.rows() {
            let terms = (0..variables).map(|column| batch.term(row, column));
            serializer.row(terms, &mut output.buffer)?;
            output.flush_if_full().await?;
        }
        job.record.add_rows(batch.rows() as u64);
        // Some formats hold their rows back.
        output.has_rows |= batch.rows() > 0 && !output.buffer.is_empty();
        output.times.serialized();
    }
    output.times.ran();
    Ok(())
}

/// Sends solutions that the engine has serialized already.
async fn write_rows(job: &Job, output: &mut Output, mut stream: WrittenStream) -> Result<(), Stop> {
    while let Some(mut rows) = output.next(&mut stream).await? {
        output.times.ran();
        job.record.add_rows(rows.rows() as u64);
        output.has_rows |= rows.rows() > 0;
        while let Some(piece) = rows.next_piece() {
            output.add(piece).await?;
        }
        output.times.serialized();
    }
    output.times.ran();
    Ok(())
}

async fn write_triples(
    job: &Job,
    output: &mut Output,
    mut stream: TripleStream,
    serializer: &mut GraphSerializer,
) -> Result<(), Stop> {
    while let Some(batch) = output.next(&mut stream).await? {
        output.times.ran();
        for (subject, predicate, object, graph) in batch.quads() {
            serializer.quad(subject, predicate, object, graph, &mut output.buffer)?;
            output.flush_if_full().await?;
        }
        job.record.add_rows(batch.len() as u64);
        output.has_rows |= !batch.is_empty();
        output.times.serialized();
    }
    output.times.ran();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use orrery_service::query_threads::QueryThreads;

    fn thread_name() -> String {
        std::thread::current().name().unwrap_or_default().to_owned()
    }

    #[tokio::test]
    async fn a_job_that_waits_goes_on_on_the_query_threads() {
        let threads = QueryThreads::start(1).unwrap();
        let (sender, names) = oneshot::channel();
        let job = async move {
            let first = thread_name();
            tokio::task::yield_now().await;
            let _ = sender.send((first, thread_name()));
        };
        begin_here(job, threads.handle()).await;
        let (first, second) = names.await.unwrap();
        assert_eq!(first, thread_name());
        assert_eq!(second, "orrery-query");
    }

    #[tokio::test]
    async fn a_job_that_panics_ends_alone() {
        let threads = QueryThreads::start(1).unwrap();
        let (sender, answer) = oneshot::channel::<()>();
        let job = async move {
            let _sender = sender;
            panic!("meant to");
        };
        begin_here(job, threads.handle()).await;
        assert!(answer.await.is_err());
    }

    #[tokio::test]
    async fn tasks_of_a_job_belong_to_the_query_threads() {
        let threads = QueryThreads::start(1).unwrap();
        let (sender, name) = oneshot::channel();
        let job = async move {
            tokio::spawn(async move { sender.send(thread_name()) });
        };
        begin_here(job, threads.handle()).await;
        assert_eq!(name.await.unwrap(), "orrery-query");
    }
}
