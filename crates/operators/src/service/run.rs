//! The execution of `SERVICE`: requests block by block, and the join with their answers.
//!
//! Up to [`REQUESTS_MAX`] requests are under way at a time, each received by a task of its own up
//! to where its bounded channel is full. Their answers are joined and given in the order in which
//! they were asked for. Until the first answer has ended only one block is asked for: a query with
//! a `LIMIT` may need no more.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow::array::{RecordBatch, UInt64Array};
use datafusion_common::{DataFusionError, Result};
use datafusion_execution::SendableRecordBatchStream;
use datafusion_execution::memory_pool::MemoryReservation;
use futures::future::BoxFuture;
use spargebra::term::Variable;
use tokio::task::JoinHandle;

use super::answer::{ACCEPT, AnswerChunk, AnswerError, ServiceAnswer};
use super::block::{BlockPart, BlockRows, RequestBlock, RequestBlocks};
use super::compiled::CompiledService;
use super::endpoints::{RemoteAnswer, RemoteFailure};
use super::query::request;
use crate::error::Error;
use crate::node_metrics::NodeMetrics;
use crate::solutions::{bits, solution_batch};

/// Requests that are under way at a time.
const REQUESTS_MAX: usize = 4;
/// Rows of an output batch.
const ROWS_PER_BATCH: usize = 8_192;
/// Compared pairs after which other tasks get their turn.
const PAIRS_PER_TURN: usize = 1 << 16;

/// The state of a run.
pub(super) struct ServiceRun {
    plan: Arc<CompiledService>,
    blocks: RequestBlocks,
    /// The last block, with the parts that were not asked for yet.
    block: Option<RequestBlock>,
    /// In the order in which they were sent.
    requests: VecDeque<PendingRequest>,
    current: Option<AskedPart>,
    /// Whether an answer has come to its end.
    has_answered: bool,
    /// Of which blocks and answers have theirs.
    reservation: MemoryReservation,
    baseline: NodeMetrics,
}

/// A request under way, which ends with this value.
struct PendingRequest(JoinHandle<Result<AskedPart>>);

/// A part whose answer is coming.
struct AskedPart {
    part: BlockPart,
    rows: Arc<BlockRows>,
    source: AnswerSource,
    chunk: AnswerChunk,
    /// The next row of the chunk, and the next of its candidates.
    next_row: usize,
    next_candidate: usize,
    /// The rows of the part, where a solution must be compared with all of them.
    all_rows: Option<Vec<u32>>,
}

/// Where the solutions come from.
enum AnswerSource {
    /// From the endpoint.
    Coming(ServiceAnswer),
    /// The silent answer is complete; what it holds is freed at its end.
    Kept(
        std::vec::IntoIter<AnswerChunk>,
        #[expect(dead_code, reason = "holds memory")] MemoryReservation,
    ),
    /// It failed silently: one solution without bindings.
    Failed { is_given: bool },
}

/// Pairs of an input row and a solution.
#[derive(Default)]
struct ComparedPairs {
    rows: Vec<u32>,
    /// The solution's place in the chunk.
    solutions: Vec<usize>,
}

impl ServiceRun {
    pub(super) fn new(
        plan: Arc<CompiledService>,
        input: Option<SendableRecordBatchStream>,
        reservation: MemoryReservation,
        baseline: NodeMetrics,
    ) -> Self {
        Self {
            blocks: RequestBlocks::new(input, plan.options.block_keys_max),
            plan,
            block: None,
            requests: VecDeque::new(),
            current: None,
            has_answered: false,
            reservation,
            baseline,
        }
    }

    /// The next output batch; `None` after the last.
    pub(super) async fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(asked) = &mut self.current {
                if let Some(batch) = asked.next_batch(&self.plan).await? {
                    self.baseline.record_output(batch.num_rows());
                    return Ok(Some(batch));
                }
                self.current = None;
                self.has_answered = true;
            }
            self.send_requests().await?;
            let Some(request) = self.requests.pop_front() else {
                return Ok(None);
            };
            self.current = Some(request.answer().await?);
        }
    }

    /// Sends requests until enough are under way, or there is nothing left to ask.
    async fn send_requests(&mut self) -> Result<()> {
        while self.requests.len() < REQUESTS_MAX {
            let block = self.block.as_mut();
            let part = block.and_then(|block| Some((block.parts.pop_front()?, &block.rows)));
            if let Some((part, rows)) = part {
                let request = PendingRequest::send(&self.plan, &self.reservation, part, rows);
                self.requests.push_back(request);
            } else if self.has_answered || self.requests.is_empty() {
                self.block = self.blocks.next(&self.plan, &self.reservation).await?;
                if self.block.is_none() {
                    break;
                }
            } else {
                break;
            }
        }
        Ok(())
    }
}

impl PendingRequest {
    /// Sends the request for a part.
    fn send(
        plan: &Arc<CompiledService>,
        reservation: &MemoryReservation,
        mut part: BlockPart,
        rows: &Arc<BlockRows>,
    ) -> Self {
        let (plan, rows) = (Arc::clone(plan), Arc::clone(rows));
        let reservation = reservation.new_empty();
        // Here and not in the task: requests go out in the order of their blocks.
        let answer = begin(&plan, &mut part);
        Self(tokio::spawn(async move {
            let source = match AnswerSource::of(&plan, reservation, answer).await {
                Ok(source) => source,
                Err(AnswerError::Remote(_)) if plan.specification.is_silent => {
                    AnswerSource::Failed { is_given: false }
                }
                Err(error) => return Err(in_query(error, &part).into()),
            };
            Ok(AskedPart {
                part,
                rows,
                source,
                chunk: AnswerChunk::default(),
                next_row: 0,
                next_candidate: 0,
                all_rows: None,
            })
        }))
    }

    /// What comes back, when it begins to.
    async fn answer(mut self) -> Result<AskedPart> {
        let ended = (&mut self.0).await;
        ended.map_err(|error| DataFusionError::ExecutionJoin(Box::new(error)))?
    }
}

impl Drop for PendingRequest {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// An answer that may begin.
type Beginning = Result<BoxFuture<'static, Result<RemoteAnswer, RemoteFailure>>, RemoteFailure>;

/// Asks for a part.
fn begin(plan: &CompiledService, part: &mut BlockPart) -> Beginning {
    let specification = &plan.specification;
    let Some(endpoint) = &part.endpoint else {
        return Err(RemoteFailure::new("the endpoint is not an IRI"));
    };
    let variables = specification.variables.iter();
    let variables: Vec<Variable> = variables.map(|variable| variable.name.clone()).collect();
    let key_variables = part.sent.iter().map(|shared| shared.name.clone()).collect();
    let keys = std::mem::take(&mut part.keys);
    let query = request(&specification.pattern, &variables, key_variables, keys);
    Ok(plan.options.endpoints.ask(endpoint, query, ACCEPT))
}

impl AnswerSource {
    async fn of(
        plan: &Arc<CompiledService>,
        kept_reservation: MemoryReservation,
        beginning: Beginning,
    ) -> Result<Self, AnswerError> {
        let answer = beginning?.await?;
        let mut answer = ServiceAnswer::start(plan, answer, kept_reservation.new_empty())?;
        if !plan.specification.is_silent {
            return Ok(Self::Coming(answer));
        }
        let mut kept = Vec::new();
        while let Some(chunk) = answer.next().await? {
            let bytes = chunk.ids.capacity() * size_of::<u64>() + size_of::<AnswerChunk>();
            kept_reservation.try_grow(bytes).map_err(Error::from)?;
            kept.push(chunk);
        }
        Ok(Self::Kept(kept.into_iter(), kept_reservation))
    }
}

/// The error that ends the query.
fn in_query(error: AnswerError, part: &BlockPart) -> Error {
    match error {
        AnswerError::Local(error) => error,
        AnswerError::Remote(failure) => Error::Service {
            endpoint: part.endpoint.as_deref().unwrap_or("unbound").to_owned(),
            message: failure.message,
            is_timeout: failure.is_timeout,
        },
    }
}

impl AskedPart {
    /// The next batch of joined rows; `None` at the end of the answer.
    async fn next_batch(&mut self, plan: &CompiledService) -> Result<Option<RecordBatch>> {
        let rows = Arc::clone(&self.rows);
        let columns = rows.columns.as_slice();
        let mut compared = 0;
        loop {
            if self.next_row == self.chunk.rows {
                match self.next_chunk(plan).await? {
                    Some(chunk) => self.chunk = chunk,
                    None => return Ok(None),
                }
                self.next_row = 0;
                self.next_candidate = 0;
            }
            let pairs = self.join(plan, columns, &mut compared);
            if compared >= PAIRS_PER_TURN {
                compared = 0;
                tokio::task::yield_now().await;
            }
            if !pairs.rows.is_empty() {
                return self.output(plan, columns, &pairs).map(Some);
            }
        }
    }

    async fn next_chunk(&mut self, plan: &CompiledService) -> Result<Option<AnswerChunk>> {
        match &mut self.source {
            AnswerSource::Coming(answer) => Ok(answer
                .next()
                .await
                .map_err(|error| in_query(error, &self.part))?),
            AnswerSource::Kept(chunks, _) => Ok(chunks.next()),
            AnswerSource::Failed { is_given } => {
                if std::mem::replace(is_given, true) {
                    return Ok(None);
                }
                Ok(Some(AnswerChunk {
                    ids: vec![u64::MAX; plan.specification.variables.len()],
                    rows: 1,
                }))
            }
        }
    }

    /// Pairs of compatible rows, from where the last call stopped.
    fn join(
        &mut self,
        plan: &CompiledService,
        columns: &[UInt64Array],
        compared: &mut usize,
    ) -> ComparedPairs {
        let mut pairs = ComparedPairs::default();
        let width = plan.specification.variables.len();
        let mut key = Vec::with_capacity(self.part.sent.len());
        while self.next_row < self.chunk.rows {
            let solution = &self.chunk.ids[self.next_row * width..][..width];
            key.clear();
            key.extend(self.part.sent.iter().map(|shared| solution[shared.answer]));
            let candidates: &[u32] = if key.contains(&u64::MAX) {
                // A solution that leaves a key unbound is compatible with every value of it.
                let part = &self.part;
                self.all_rows
                    .get_or_insert_with(|| part.all_rows().collect())
            } else {
                self.part
                    .rows
                    .get(key.as_slice())
                    .map_or(&[], Vec::as_slice)
            };
            while let Some(&row) = candidates.get(self.next_candidate) {
                if pairs.rows.len() == ROWS_PER_BATCH || *compared >= PAIRS_PER_TURN {
                    return pairs;
                }
                self.next_candidate += 1;
                *compared += 1;
                if is_compatible(plan, columns, row, solution) {
                    pairs.rows.push(row);
                    pairs.solutions.push(self.next_row);
                }
            }
            self.next_row += 1;
            self.next_candidate = 0;
            *compared += 1;
        }
        pairs
    }

    fn output(
        &self,
        plan: &CompiledService,
        columns: &[UInt64Array],
        pairs: &ComparedPairs,
    ) -> Result<RecordBatch> {
        let width = plan.specification.variables.len();
        let output = plan.output.iter().map(|column| {
            let values = pairs.rows.iter().zip(&pairs.solutions).map(|(&row, &at)| {
                let of_input = column
                    .input
                    .map_or(u64::MAX, |input| bits(&columns[input], row as usize));
                let id = match column.answer {
                    Some(answer) if of_input == u64::MAX => self.chunk.ids[at * width + answer],
                    _ => of_input,
                };
                (id != u64::MAX).then_some(id)
            });
            values.collect::<UInt64Array>()
        });
        solution_batch(&plan.schema, output.collect(), pairs.rows.len())
    }
}

/// Whether an input row and a solution agree on every variable that both bind.
fn is_compatible(
    plan: &CompiledService,
    columns: &[UInt64Array],
    row: u32,
    solution: &[u64],
) -> bool {
    plan.shared.iter().all(|shared| {
        let of_input = bits(&columns[shared.input], row as usize);
        let of_answer = solution[shared.answer];
        of_input == of_answer || of_input == u64::MAX || of_answer == u64::MAX
    })
}
