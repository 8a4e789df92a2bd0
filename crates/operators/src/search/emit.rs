//! The output rows of found paths.

use std::sync::Arc;

use arrow::array::{RecordBatch, UInt64Array};
use datafusion_common::Result;
use futures::SinkExt;
use futures::channel::mpsc::Sender;

use super::compiled::CompiledSearch;
use super::graph::Graph;
use super::specification::SearchColumn;
use crate::node_metrics::NodeMetrics;
use crate::solutions::{bits, solution_batch};

/// Rows of the first batch, so that a `LIMIT` is reached soon; each further one has twice as many,
const FIRST_ROWS: usize = 64;
/// up to this.
const ROWS_PER_BATCH: usize = 8_192;

/// A path that was found, its edges in order.
pub(super) struct FoundPath<'p> {
    pub(super) edges: &'p [u32],
    pub(super) source: u64,
    pub(super) destination: u64,
    /// The input's row.
    pub(super) row: usize,
}

/// Collects rows, and hands full batches on.
pub(super) struct Emitter {
    plan: Arc<CompiledSearch>,
    sender: Sender<RecordBatch>,
    /// The input's rows that are being searched for.
    pub(super) input: Vec<UInt64Array>,
    columns: Vec<Vec<u64>>,
    rows: usize,
    rows_per_batch: usize,
    /// Paths so far, those left out too.
    paths: u64,
    is_closed: bool,
    metrics: NodeMetrics,
}

impl Emitter {
    pub(super) fn new(
        plan: &Arc<CompiledSearch>,
        sender: Sender<RecordBatch>,
        metrics: NodeMetrics,
    ) -> Self {
        Self {
            columns: vec![Vec::new(); plan.specification.output.len()],
            plan: Arc::clone(plan),
            sender,
            input: Vec::new(),
            rows: 0,
            rows_per_batch: FIRST_ROWS,
            paths: 0,
            is_closed: false,
            metrics,
        }
    }

    /// Whether no further path is wanted.
    pub(super) fn is_done(&self) -> bool {
        let specification = &self.plan.specification;
        let end = specification
            .limit
            .map(|limit| limit.saturating_add(specification.offset));
        self.is_closed || end.is_some_and(|end| self.paths >= end)
    }

    /// Gives a path out, if it is long enough and none of those that are left out.
    pub(super) async fn path(&mut self, graph: &Graph, path: FoundPath<'_>) -> Result<()> {
        let specification = &self.plan.specification;
        if path.edges.len() < specification.length_min as usize || self.is_done() {
            return Ok(());
        }
        let number = self.paths;
        self.paths += 1;
        if number < specification.offset {
            return Ok(());
        }
        let number = number - specification.offset;
        // Once for all rows: to add it up takes as long as the path is.
        let mut columns = specification.output.iter();
        let cost = match columns.any(|(_, column)| *column == SearchColumn::Cost) {
            true => {
                let cost: f64 = path.edges.iter().map(|&edge| graph.weight(edge)).sum();
                self.plan.cost(cost, graph.is_integral)?
            }
            false => u64::MAX,
        };
        let numbers = (number, cost);
        if specification.is_by_path {
            self.row(graph, &path, numbers, None)?;
            return self.flush(self.rows_per_batch).await;
        }
        for at in 0..path.edges.len() {
            self.row(graph, &path, numbers, Some(at))?;
            self.flush(self.rows_per_batch).await?;
        }
        Ok(())
    }

    fn row(
        &mut self,
        graph: &Graph,
        path: &FoundPath<'_>,
        (number, cost): (u64, u64),
        at: Option<usize>,
    ) -> Result<()> {
        let plan = Arc::clone(&self.plan);
        let edge = at.map(|at| path.edges[at]);
        let [start, end] = edge.map_or([u64::MAX; 2], |edge| graph.ends(edge));
        let value = |variable| edge.map_or(u64::MAX, |edge| graph.value(edge, variable));
        for (place, (_, column)) in plan.specification.output.iter().enumerate() {
            let bits = match *column {
                SearchColumn::Input => match plan.input_columns[place] {
                    Some(column) => bits(&self.input[column], path.row),
                    None => u64::MAX,
                },
                SearchColumn::Source => path.source,
                SearchColumn::Destination => path.destination,
                SearchColumn::PathIndex => plan.integer(number)?,
                SearchColumn::EdgeIndex => plan.integer(at.unwrap_or_default() as u64)?,
                SearchColumn::Length => plan.integer(path.edges.len() as u64)?,
                SearchColumn::Cost => cost,
                SearchColumn::Start => start,
                SearchColumn::End => end,
                SearchColumn::Exported(variable) => value(variable),
                SearchColumn::Triple(variable) => plan.triple([start, value(variable), end])?,
            };
            self.columns[place].push(bits);
        }
        self.rows += 1;
        Ok(())
    }

    /// Hands on what there is, if it is so many rows.
    pub(super) async fn flush(&mut self, rows_min: usize) -> Result<()> {
        if self.rows < rows_min.max(1) {
            return Ok(());
        }
        let rows = std::mem::take(&mut self.rows);
        self.rows_per_batch = ROWS_PER_BATCH.min(2 * self.rows_per_batch);
        let columns = self.columns.iter_mut().map(|column| {
            let ids = std::mem::take(column);
            match ids.contains(&u64::MAX) {
                true => ids
                    .iter()
                    .map(|&id| (id != u64::MAX).then_some(id))
                    .collect(),
                false => UInt64Array::from(ids),
            }
        });
        let batch = solution_batch(&self.plan.schema, columns.collect(), rows)?;
        self.metrics.record_output(rows);
        // Nobody may be waiting any more.
        self.is_closed |= self.sender.send(batch).await.is_err();
        Ok(())
    }
}
