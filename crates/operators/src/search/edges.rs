//! Edges of a path search that subplans find.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use arrow::array::UInt64Array;
use datafusion_common::{DataFusionError, Result};
use datafusion_execution::TaskContext;
use datafusion_execution::memory_pool::MemoryReservation;
use datafusion_physical_plan::ExecutionPlan;
use futures::StreamExt;
use orrery_expressions::Value;
use orrery_term::inline::InlineValue;
use orrery_term::{Term, TermId};

use super::compiled::CompiledSearch;
use super::direct::DirectEdges;
use super::frontier::task_with_frontier;
use super::graph::{Direction, Graph, NONE, refused};
use crate::context::QueryContext;
use crate::solutions::{bits, id_columns};
use crate::touch_counter::LocalTouches;

/// Levels that are asked for one by one before all edges are computed: by then the search has shown
/// that it goes far.
pub(super) const ROUNDS_MAX: usize = 256;
/// How long a search works before it gives way.
const WORK_TIME_MAX: Duration = Duration::from_millis(1);
/// Edges looked at between two glances at the clock.
const EDGES_PER_GLANCE: u32 = 512;
/// Nodes looked up between two glances at the clock.
const NODES_PER_GLANCE: usize = 64;

/// The graph, and how it grows.
pub(super) struct EdgeSource {
    plan: Arc<CompiledSearch>,
    task: Arc<TaskContext>,
    pub(super) graph: Graph,
    /// What looks edges up, where no plan is needed.
    direct: Option<DirectEdges>,
    /// Nodes whose edges of a direction are known, by number.
    expanded: [Vec<bool>; 2],
    is_whole: bool,
    rounds: usize,
    touches: LocalTouches,
    since_glance: u32,
    last_pause: Instant,
}

impl EdgeSource {
    pub(super) fn new(
        plan: &Arc<CompiledSearch>,
        task: &Arc<TaskContext>,
        reservation: MemoryReservation,
    ) -> Self {
        let specification = &plan.specification;
        Self {
            graph: Graph::new(
                specification.exported,
                specification.is_weighted,
                reservation,
            ),
            direct: DirectEdges::of(plan),
            touches: plan.touches.local(),
            plan: Arc::clone(plan),
            task: Arc::clone(task),
            expanded: Default::default(),
            is_whole: false,
            rounds: 0,
            since_glance: 0,
            last_pause: Instant::now(),
        }
    }

    /// The number of a term that a search begins or ends at, whether it has edges or not.
    pub(super) fn node(&mut self, id: u64) -> Result<u32> {
        self.graph.reserve(1, 0)?;
        Ok(self.graph.node(id))
    }

    /// Whether edges are looked up without a plan.
    pub(super) fn is_direct(&self) -> bool {
        self.direct.is_some()
    }

    /// Whether all edges are known.
    pub(super) fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Computes all edges.
    pub(super) async fn load_whole(&mut self) -> Result<()> {
        if !self.is_whole {
            let (plan, task) = (Arc::clone(&self.plan.edges), Arc::clone(&self.task));
            self.read(&plan, task).await?;
            self.is_whole = true;
        }
        Ok(())
    }

    /// Sees to it that the edges of these nodes are known.
    pub(super) async fn expand(&mut self, direction: Direction, nodes: &[u32]) -> Result<()> {
        if self.is_whole {
            return Ok(());
        }
        if let Some(direct) = self.direct.take() {
            let (direct, expanded) = self.look_up(direct, direction, nodes).await;
            self.direct = Some(direct);
            return expanded;
        }
        let (plan_out, plan_in) = (self.plan.from.clone(), self.plan.to.clone());
        let (Some(plan_out), Some(plan_in)) = (plan_out, plan_in) else {
            return self.load_whole().await;
        };
        let known = &mut self.expanded[direction as usize];
        known.resize(self.graph.nodes(), false);
        let new = nodes.iter().filter(|&&node| !known[node as usize]);
        let frontier: Vec<u64> = new.map(|&node| self.graph.id(node)).collect();
        if frontier.is_empty() {
            return Ok(());
        }
        self.rounds += 1;
        if self.rounds > ROUNDS_MAX || self.plan.specification.begins_whole {
            return self.load_whole().await;
        }
        let is_both_ways = self.plan.specification.is_bidirectional;
        let plans = match direction {
            Direction::Out => [(is_both_ways, plan_in), (true, plan_out)],
            Direction::In => [(is_both_ways, plan_out), (true, plan_in)],
        };
        for (_, plan) in plans.into_iter().filter(|(is_wanted, _)| *is_wanted) {
            let task = task_with_frontier(&self.task, frontier.clone());
            self.read(&plan, task).await?;
        }
        self.note_expanded(direction, nodes);
        Ok(())
    }

    fn note_expanded(&mut self, direction: Direction, nodes: &[u32]) {
        let is_both_ways = self.plan.specification.is_bidirectional;
        for (at, known) in self.expanded.iter_mut().enumerate() {
            if is_both_ways || at == direction as usize {
                known.resize(self.graph.nodes(), false);
                for &node in nodes {
                    known[node as usize] = true;
                }
            }
        }
    }

    /// Looks the edges of nodes up that are not known yet, in the order of their ids.
    async fn look_up(
        &mut self,
        mut direct: DirectEdges,
        direction: Direction,
        nodes: &[u32],
    ) -> (DirectEdges, Result<()>) {
        let known = &mut self.expanded[direction as usize];
        known.resize(self.graph.nodes(), false);
        let new = nodes.iter().filter(|&&node| !known[node as usize]);
        let mut frontier: Vec<u64> = new.map(|&node| self.graph.id(node)).collect();
        frontier.sort_unstable();
        let mut found = Vec::new();
        for (at, &node) in frontier.iter().enumerate() {
            if let Err(error) = direct.look_up(direction, node, &mut found) {
                return (direct, Err(error));
            }
            while let Some(rows) = found.last_mut() {
                match direct.read(rows, &mut self.graph) {
                    Ok(true) => self.pause().await,
                    Ok(false) => {
                        found.pop();
                    }
                    Err(error) => return (direct, Err(error)),
                }
            }
            if at % NODES_PER_GLANCE == NODES_PER_GLANCE - 1 {
                self.pause().await;
            }
        }
        self.note_expanded(direction, nodes);
        (direct, Ok(()))
    }

    /// Adds what a plan of edges gives.
    async fn read(&mut self, plan: &Arc<dyn ExecutionPlan>, task: Arc<TaskContext>) -> Result<()> {
        let specification = &self.plan.specification;
        let (exported, is_weighted) = (specification.exported, specification.is_weighted);
        let is_both_ways = specification.is_bidirectional;
        let mut batches = plan.execute(0, task)?;
        let mut values = vec![0; exported];
        while let Some(batch) = batches.next().await {
            let batch = batch?;
            let columns: Vec<UInt64Array> = id_columns(&batch)?;
            let rows = batch.num_rows();
            let ways = 1 + usize::from(is_both_ways);
            self.graph.reserve(2 * rows, ways * rows)?;
            for row in 0..rows {
                let [start, end] = [0, 1].map(|at| bits(&columns[at], row));
                if start == u64::MAX || end == u64::MAX {
                    continue;
                }
                for (variable, value) in values.iter_mut().enumerate() {
                    *value = bits(&columns[2 + variable], row);
                }
                let mut weight = 1.0;
                if is_weighted {
                    let id = bits(&columns[2 + exported], row);
                    let (number, is_integer) = weight_of(&self.plan.context, id)?;
                    self.graph.is_integral &= is_integer;
                    weight = number;
                }
                self.graph.add(start, end, &values, weight);
                if is_both_ways {
                    self.graph.add(end, start, &values, weight);
                }
            }
            self.pause().await;
        }
        Ok(())
    }

    /// Edges of a node, to be looked at one by one.
    pub(super) fn first(&self, direction: Direction, node: u32) -> u32 {
        self.graph.first(direction, node)
    }

    /// Whether a node has an edge.
    pub(super) fn has_edges(&self, direction: Direction, node: u32) -> bool {
        self.first(direction, node) != NONE
    }

    /// To be called for each edge that is looked at: counts it, and gives way now and then.
    #[inline]
    pub(super) async fn looked_at(&mut self) {
        self.since_glance += 1;
        if self.since_glance >= EDGES_PER_GLANCE {
            self.pause().await;
        }
    }

    /// Lets other tasks run, if it is time.
    pub(super) async fn pause(&mut self) {
        self.touches
            .add(u64::from(std::mem::take(&mut self.since_glance)));
        if self.last_pause.elapsed() < WORK_TIME_MAX {
            return;
        }
        give_way().await;
        self.last_pause = Instant::now();
    }
}

impl Drop for EdgeSource {
    fn drop(&mut self) {
        self.touches.add(u64::from(self.since_glance));
    }
}

/// Returns to the scheduler once.
async fn give_way() {
    let mut has_paused = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut has_paused, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// The number that a weight is, and whether it is an integer.
fn weight_of(context: &QueryContext, bits: u64) -> Result<(f64, bool), DataFusionError> {
    if bits == u64::MAX {
        return Err(refused(
            "an edge whose weight has no value; give it one with COALESCE, or leave it out with FILTER".to_owned(),
        ));
    }
    let id = TermId::from_bits(bits);
    #[expect(clippy::cast_precision_loss, reason = "weights are added as doubles")]
    let (number, is_integer) = match (id.integer_value(), id.inline_value()) {
        (Some(value), _) => (Some(value as f64), true),
        (None, Some(InlineValue::Double(value))) => (Some(value), false),
        _ => match context.term(id)? {
            term if !Value::from_term(&term).is_numeric() => (None, false),
            Term::Literal(literal) => {
                let is_integer = literal.datatype().ends_with("#integer");
                (literal.lexical.trim().parse().ok(), is_integer)
            }
            Term::Iri(_) | Term::BlankNode(_) | Term::Triple(_) => (None, false),
        },
    };
    match number.filter(|number| *number >= 0.0) {
        Some(number) => Ok((number, is_integer)),
        None => Err(refused(format!(
            "an edge of the weight {}: weights are numbers that are not below zero",
            context.term(id)?
        ))),
    }
}
