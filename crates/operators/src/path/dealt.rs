//! The queue of start nodes that the partitions of one execution share.
//!
//! ```text
//! start nodes, made once:  [ block 0 | block 1 | block 2 | ... ]    taken from one queue (`crate::dealing`)
//! ```
//!
//! The first partition that is polled makes the list, in steps; the others wait for it, and make it
//! if the first one is dropped. The list is there as long as a partition reads it.

use std::fmt;
use std::future::poll_fn;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use datafusion_common::{DataFusionError, Result};
use datafusion_execution::memory_pool::MemoryReservation;
use futures::FutureExt;
use futures::future::{BoxFuture, Shared, WeakShared};
use parking_lot::Mutex;

use super::compiled::CompiledPath;
use super::counted::Nodes;
use super::edges::ActiveGraph;
use super::evaluate::Evaluator;
use super::reached::{SEEDS_PER_CALL_MAX, SEEDS_PER_WORD};
use crate::dealing::{Dealing, PieceReader, Pieces, Spread};
use crate::node_metrics::NodeMetrics;

/// Blocks for each partition, where the nodes are few: seeds of one block share their search, so
/// that short blocks cost more.
const BLOCKS_PER_PARTITION: usize = 2;

/// The list of nodes, being made or made.
type Making = Shared<BoxFuture<'static, Result<Arc<Nodes>, Arc<DataFusionError>>>>;
type WeakMaking = WeakShared<BoxFuture<'static, Result<Arc<Nodes>, Arc<DataFusionError>>>>;

/// The nodes that one execution of a path walks from.
pub(super) struct Starts {
    plan: Arc<CompiledPath>,
    graph: ActiveGraph,
    spread: Spread,
    nodes: Mutex<Option<WeakMaking>>,
    pieces: OnceLock<Arc<Pieces>>,
}

impl Starts {
    /// Of an execution in one graph, or merge of graphs.
    pub(super) fn new(plan: Arc<CompiledPath>, graph: ActiveGraph, spread: Spread) -> Self {
        Self {
            plan,
            graph,
            spread,
            nodes: Mutex::default(),
            pieces: OnceLock::new(),
        }
    }

    /// The list. The caller's time and memory count if it is not there yet.
    fn making(&self, reservation: &MemoryReservation, metrics: &NodeMetrics) -> Making {
        let mut nodes = self.nodes.lock();
        if let Some(making) = nodes.as_ref().and_then(WeakMaking::upgrade) {
            return making;
        }
        let plan = Arc::clone(&self.plan);
        let edges = plan.edges(self.graph.clone());
        let mut evaluator = Evaluator::new(edges, reservation.new_empty());
        let metrics = metrics.clone();
        let making = async move {
            let start = Instant::now();
            let nodes = evaluator.start_nodes(&plan.forward).await;
            metrics.elapsed_compute().add_elapsed(start);
            nodes.map(Arc::new).map_err(Arc::new)
        };
        let making = making.boxed().shared();
        *nodes = making.downgrade();
        making
    }

    fn pieces(&self, nodes: usize) -> Arc<Pieces> {
        let pieces = self.pieces.get_or_init(|| {
            let workers = Arc::clone(self.plan.context.workers());
            let dealt_to = match self.spread.dealing {
                Dealing::Queue => None,
                Dealing::Turns(_) | Dealing::Shares => Some(self.spread.partitions),
            };
            let blocks = nodes.div_ceil(block_nodes(nodes, self.spread));
            Pieces::new(blocks, workers, dealt_to)
        });
        Arc::clone(pieces)
    }

    /// Whether there is nothing left to walk from.
    fn are_taken(&self) -> bool {
        self.pieces.get().is_some_and(|pieces| pieces.are_taken())
    }
}

impl fmt::Debug for Starts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Starts");
        shown.field("graph", &self.graph);
        shown.field("spread", &self.spread).finish_non_exhaustive()
    }
}

/// How many nodes a block has: as many as are walked from together, if there are enough for all
/// partitions.
fn block_nodes(nodes: usize, spread: Spread) -> usize {
    match spread.dealing {
        Dealing::Turns(rows) => usize::try_from(rows).unwrap_or(usize::MAX).max(1),
        Dealing::Queue | Dealing::Shares => nodes
            .div_ceil(spread.partitions.max(1) * BLOCKS_PER_PARTITION)
            .clamp(SEEDS_PER_WORD, SEEDS_PER_CALL_MAX),
    }
}

/// The blocks that one partition takes.
pub(super) struct StartsReader {
    starts: Arc<Starts>,
    partition: usize,
    state: ReaderState,
}

enum ReaderState {
    /// It has not asked yet.
    New,
    Reading {
        nodes: Arc<Nodes>,
        pieces: PieceReader,
        /// As long as this is there, others need not make the list again.
        _making: Making,
    },
    Ended,
}

impl StartsReader {
    /// For a partition; of the same one of an execution there may not be two.
    pub(super) fn new(starts: Arc<Starts>, partition: usize) -> Self {
        Self {
            starts,
            partition,
            state: ReaderState::New,
        }
    }

    /// Takes the next block into a list; `false` if there is none. Waits while the engine has no
    /// thread for this partition.
    pub(super) async fn next_block(
        &mut self,
        out: &mut Nodes,
        reservation: &MemoryReservation,
        metrics: &NodeMetrics,
    ) -> Result<bool> {
        if matches!(self.state, ReaderState::New) && !self.starts.are_taken() {
            let making = self.starts.making(reservation, metrics);
            let nodes = making.clone().await.map_err(DataFusionError::Shared)?;
            let pieces = self.starts.pieces(nodes.as_slice().len());
            self.state = ReaderState::Reading {
                nodes,
                pieces: PieceReader::new(pieces, self.partition),
                _making: making,
            };
        }
        let ReaderState::Reading { nodes, pieces, .. } = &mut self.state else {
            return Ok(false);
        };
        let Some(piece) = poll_fn(|cx| pieces.poll_next(cx)).await else {
            self.state = ReaderState::Ended;
            return Ok(false);
        };
        let nodes = nodes.as_slice();
        let block = block_nodes(nodes.len(), self.starts.spread);
        let block: Range<usize> = piece * block..nodes.len().min((piece + 1) * block);
        out.clear();
        out.extend(nodes[block].iter().copied())?;
        Ok(true)
    }
}
