//! The execution of path searches: input rows in, rows of paths out.

use std::sync::Arc;

use arrow::array::UInt64Array;
use datafusion_common::Result;
use datafusion_execution::SendableRecordBatchStream;
use futures::StreamExt;

use super::graph::Direction;
use super::searching::{Ends, Searching};
use super::specification::PathKind;
use crate::pattern::Slot;
use crate::solutions::{bits, id_columns};

/// Rows of an input that are searched for frontier by frontier; with more, all edges are computed.
const SEARCHES_MAX: usize = 64;

/// All searches, for each row of the input.
pub(super) async fn run_all(
    mut searching: Searching,
    input: Option<SendableRecordBatchStream>,
) -> Result<()> {
    match input {
        None => searching.row(0).await?,
        Some(mut input) => {
            while let Some(batch) = input.next().await {
                let batch = batch?;
                searching.emitter.input = id_columns(&batch)?;
                for row in 0..batch.num_rows() {
                    if searching.emitter.is_done() {
                        break;
                    }
                    searching.row(row).await?;
                }
                if searching.emitter.is_done() {
                    break;
                }
            }
        }
    }
    searching.emitter.flush(1).await
}

impl Searching {
    /// The value of an end in an input row.
    fn value(&self, slot: &Slot, column: Option<usize>, row: usize) -> Option<u64> {
        match slot {
            Slot::Constant(id) => Some(id.bits()),
            Slot::Variable(_) => {
                let columns: &[UInt64Array] = &self.emitter.input;
                let value = bits(columns.get(column?)?, row);
                (value != u64::MAX).then_some(value)
            }
        }
    }

    /// The searches of one row.
    async fn row(&mut self, row: usize) -> Result<()> {
        let plan = Arc::clone(&self.plan);
        let specification = &plan.specification;
        let [source, destination] = [
            self.value(&specification.source, plan.end_columns[0], row),
            self.value(&specification.destination, plan.end_columns[1], row),
        ];
        self.searches += 1;
        if self.searches > SEARCHES_MAX && !self.edges.is_direct() {
            self.edges.load_whole().await?;
        }
        let (source, destination) = match (source, destination, plan.is_loop()) {
            (Some(source), Some(destination), true) if source != destination => return Ok(()),
            (Some(end), _, true) | (None, Some(end), true) => (Some(end), Some(end)),
            (source, destination, _) => (source, destination),
        };
        match (source, destination) {
            (None, None) => self.everywhere(row).await,
            (Some(source), destination) => {
                let root = self.edges.node(source)?;
                let target = destination.map(|id| self.edges.node(id)).transpose()?;
                self.search(Ends {
                    root,
                    target,
                    direction: Direction::Out,
                    row,
                })
                .await
            }
            (None, Some(destination)) => {
                let root = self.edges.node(destination)?;
                self.search(Ends {
                    root,
                    target: None,
                    direction: Direction::In,
                    row,
                })
                .await
            }
        }
    }

    /// From each node.
    async fn everywhere(&mut self, row: usize) -> Result<()> {
        self.edges.load_whole().await?;
        let mut nodes: Vec<u32> = (0..self.edges.graph.nodes() as u32).collect();
        nodes.sort_unstable_by_key(|&node| self.edges.graph.id(node));
        let is_loop = self.plan.is_loop();
        for root in nodes {
            if self.emitter.is_done() {
                break;
            }
            let ends = Ends {
                root,
                target: is_loop.then_some(root),
                direction: Direction::Out,
                row,
            };
            self.search(ends).await?;
        }
        Ok(())
    }

    async fn search(&mut self, ends: Ends) -> Result<()> {
        let specification = &self.plan.specification;
        let kind = specification.kind;
        if specification.is_cyclic {
            return match kind {
                PathKind::Shortest { is_all } => {
                    let count = if is_all { usize::MAX } else { 1 };
                    self.simple(&ends, true, count).await
                }
                PathKind::All => self.simple(&ends, false, usize::MAX).await,
                PathKind::First(count) => self.simple(&ends, false, count).await,
            };
        }
        if specification.allows_empty && ends.target.is_none_or(|target| target == ends.root) {
            self.give(&ends, ends.root, &[], false).await?;
        }
        // No simple path leads from a node to itself.
        if ends.target == Some(ends.root) || self.emitter.is_done() {
            return Ok(());
        }
        match kind {
            PathKind::Shortest { is_all } => self.shortest(&ends, is_all).await,
            PathKind::All => self.simple(&ends, false, usize::MAX).await,
            PathKind::First(count) => self.first(&ends, count).await,
        }
    }
}
