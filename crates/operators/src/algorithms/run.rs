//! The execution of a graph algorithm: reads edges, computes on a thread, and returns a row per
//! node.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow::array::{Array, RecordBatch, UInt64Array};
use arrow::datatypes::SchemaRef;
use datafusion_common::{DataFusionError, Result};
use datafusion_execution::SendableRecordBatchStream;
use datafusion_execution::memory_pool::MemoryReservation;
use futures::StreamExt;

use super::communities::communities;
use super::components::components;
use super::pairs::{Edges, Pairs, ends};
use super::parallel::Crew;
use super::ranks::ranks;
use super::specification::{Algorithm, AlgorithmColumn, AlgorithmSpecification};
use super::triangles::triangles;
use crate::context::QueryContext;
use crate::solutions::{id_columns, solution_batch};
use crate::touch_counter::TouchCounter;

/// Rows of a batch.
const ROWS_PER_BATCH: usize = 8_192;
/// What the lists of neighbours take for each edge, and arrays of the algorithms for each node.
const LIST_BYTES: usize = 24;
const NODE_BYTES: usize = 40;

/// What a run needs of its node.
#[derive(Debug)]
pub(super) struct CompiledAlgorithm {
    pub(super) context: Arc<QueryContext>,
    pub(super) specification: AlgorithmSpecification,
    pub(super) schema: SchemaRef,
    pub(super) touches: TouchCounter,
}

/// What an algorithm found.
pub(super) struct Found {
    ids: Vec<u64>,
    values: Values,
    _reservation: MemoryReservation,
}

enum Values {
    Doubles(Vec<f64>),
    Counts(Vec<u64>),
    /// In, out.
    Degrees([Vec<u32>; 2]),
    Nodes(Vec<u32>),
}

/// Stops the thread that computes when nobody waits for it any more.
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Reads all edges, and computes.
pub(super) async fn compute(
    plan: Arc<CompiledAlgorithm>,
    mut edges: SendableRecordBatchStream,
    reservation: MemoryReservation,
) -> Result<Found> {
    let mut pairs = Pairs::new(reservation);
    while let Some(batch) = edges.next().await {
        let batch = batch?;
        let columns: Vec<UInt64Array> = id_columns(&batch)?;
        let [starts, ends] = columns.as_slice() else {
            return datafusion_common::internal_err!("edges have two columns");
        };
        pairs.reserve(batch.num_rows())?;
        for row in 0..batch.num_rows() {
            if starts.is_valid(row) && ends.is_valid(row) {
                pairs.add(starts.value(row), ends.value(row));
            }
        }
    }
    drop(edges);
    plan.touches.add(pairs.len() as u64);
    let is_stopped = Arc::new(AtomicBool::new(false));
    let _stop = StopOnDrop(Arc::clone(&is_stopped));
    let crew = Crew {
        workers: Arc::clone(plan.context.workers()),
        is_stopped,
    };
    let computing = tokio::task::spawn_blocking(move || {
        let edges = pairs.sorted()?;
        run(&plan, edges, &crew)
    });
    computing
        .await
        .map_err(|error| DataFusionError::External(Box::new(error)))?
}

fn run(plan: &CompiledAlgorithm, edges: Edges, crew: &Crew) -> Result<Found> {
    let Edges {
        ids,
        edges,
        reservation,
    } = edges;
    let nodes = ids.len();
    reservation.try_grow(edges.len() * LIST_BYTES + nodes * NODE_BYTES)?;
    let count = edges.len() as u64;
    let touches = |rounds: u32| plan.touches.add(count.saturating_mul(u64::from(rounds)));
    let values = match plan.specification.algorithm {
        Algorithm::PageRank {
            iterations,
            damping,
        } => {
            touches(iterations);
            Values::Doubles(ranks(nodes, edges, (iterations, damping), crew))
        }
        Algorithm::Components => {
            touches(1);
            Values::Nodes(components(nodes, &edges, crew))
        }
        Algorithm::Degree => {
            touches(1);
            let mut degrees = [vec![0; nodes], vec![0; nodes]];
            for &edge in &edges {
                let (start, end) = ends(edge);
                degrees[0][end as usize] += 1;
                degrees[1][start as usize] += 1;
            }
            Values::Degrees(degrees)
        }
        Algorithm::Triangles => {
            touches(2);
            Values::Counts(triangles(nodes, edges, crew))
        }
        Algorithm::Communities { iterations } => {
            touches(iterations);
            Values::Nodes(communities(nodes, edges, iterations, crew))
        }
    };
    Ok(Found {
        ids,
        values,
        _reservation: reservation,
    })
}

impl Found {
    /// The rows from one on; none behind the last.
    pub(super) fn batch(
        &self,
        plan: &CompiledAlgorithm,
        first: usize,
    ) -> Result<Option<RecordBatch>> {
        let end = self.ids.len().min(first + ROWS_PER_BATCH);
        if first >= end {
            return Ok(None);
        }
        let rows = first..end;
        let mut columns = Vec::with_capacity(plan.specification.output.len());
        for (_, column) in &plan.specification.output {
            let ids: Result<Vec<u64>> = rows
                .clone()
                .map(|node| self.value(plan, *column, node))
                .collect();
            columns.push(UInt64Array::from(ids?));
        }
        solution_batch(&plan.schema, columns, rows.len()).map(Some)
    }

    fn value(&self, plan: &CompiledAlgorithm, column: AlgorithmColumn, node: usize) -> Result<u64> {
        let integer = |count| -> Result<u64> { Ok(plan.context.intern_count(count)?.bits()) };
        match (column, &self.values) {
            (AlgorithmColumn::Node, _) => Ok(self.ids[node]),
            (AlgorithmColumn::Value, Values::Doubles(values)) => {
                Ok(plan.context.intern_double(values[node])?.bits())
            }
            (AlgorithmColumn::Value, Values::Counts(counts)) => integer(counts[node]),
            (AlgorithmColumn::Value, Values::Nodes(nodes)) => Ok(self.ids[nodes[node] as usize]),
            (column, Values::Degrees([incoming, outgoing])) => {
                let (incoming, outgoing) = (u64::from(incoming[node]), u64::from(outgoing[node]));
                match column {
                    AlgorithmColumn::InDegree => integer(incoming),
                    AlgorithmColumn::OutDegree => integer(outgoing),
                    AlgorithmColumn::Node | AlgorithmColumn::Value => integer(incoming + outgoing),
                }
            }
            (AlgorithmColumn::InDegree | AlgorithmColumn::OutDegree, _) => {
                datafusion_common::internal_err!("degrees that were not counted")
            }
        }
    }
}
