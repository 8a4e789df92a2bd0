//! The state shared by the searches of one execution, and their output.

use std::sync::Arc;

use arrow::array::RecordBatch;
use datafusion_common::Result;
use datafusion_execution::TaskContext;
use datafusion_execution::memory_pool::MemoryReservation;
use futures::channel::mpsc::Sender;

use super::compiled::CompiledSearch;
use super::edges::EdgeSource;
use super::emit::{Emitter, FoundPath};
use super::graph::Direction;
use crate::node_metrics::NodeMetrics;

/// Where a search begins, and where it may end.
#[derive(Clone, Copy)]
pub(super) struct Ends {
    pub(super) root: u32,
    pub(super) target: Option<u32>,
    /// Out: the root is the source.
    pub(super) direction: Direction,
    /// The input's row.
    pub(super) row: usize,
}

/// The searches of one run.
pub(super) struct Searching {
    pub(super) plan: Arc<CompiledSearch>,
    pub(super) edges: EdgeSource,
    pub(super) emitter: Emitter,
    /// How many there were.
    pub(super) searches: usize,
}

impl Searching {
    pub(super) fn new(
        plan: &Arc<CompiledSearch>,
        task: &Arc<TaskContext>,
        reservation: MemoryReservation,
        sender: Sender<RecordBatch>,
        metrics: NodeMetrics,
    ) -> Self {
        Self {
            plan: Arc::clone(plan),
            edges: EdgeSource::new(plan, task, reservation),
            emitter: Emitter::new(plan, sender, metrics),
            searches: 0,
        }
    }

    /// Gives a path between the root and a node out. Its edges come in the order of the search, or
    /// in the order back to the root.
    pub(super) async fn give(
        &mut self,
        ends: &Ends,
        node: u32,
        path: &[u32],
        is_back: bool,
    ) -> Result<()> {
        let graph = &self.edges.graph;
        let [root, node] = [ends.root, node].map(|it| graph.id(it));
        let (source, destination) = match ends.direction {
            Direction::Out => (root, node),
            Direction::In => (node, root),
        };
        let is_turned = is_back == (ends.direction == Direction::Out);
        let turned: Vec<u32>;
        let edges = match is_turned {
            true => {
                turned = path.iter().rev().copied().collect();
                &turned
            }
            false => path,
        };
        let found = FoundPath {
            edges,
            source,
            destination,
            row: ends.row,
        };
        self.emitter.path(graph, found).await
    }
}
