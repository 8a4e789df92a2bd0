//! Runs a path: input rows in, rows with both ends bound out.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use arrow::array::{Array, RecordBatch, UInt64Array};
use datafusion_common::Result;
use datafusion_execution::SendableRecordBatchStream;
use datafusion_execution::memory_pool::MemoryReservation;
use datafusion_physical_plan::metrics::BaselineMetrics;
use futures::StreamExt;
use orrery_term::TermId;

use super::compile::{Direction, Path};
use super::edges::{ActiveGraph, Edges};
use super::evaluate::{Evaluator, Walk};
use super::plan::PathPlan;
use crate::graph_names::GraphNames;
use crate::pattern::{GraphScope, Slot};
use crate::solutions::{gather, id_columns, solution_batch};

/// Seeds walked from at a time.
const SEEDS_PER_CALL: usize = 256;
/// Rows per output batch.
const ROWS_PER_BATCH: usize = 8_192;

/// A run of a path plan.
pub(super) struct PathRun {
    plan: Arc<PathPlan>,
    /// The input; `None` is one row without variables.
    input: Option<SendableRecordBatchStream>,
    is_input_ended: bool,
    columns: Vec<UInt64Array>,
    tasks: VecDeque<Task>,
    current: Option<Walking>,
    reservation: MemoryReservation,
    baseline: BaselineMetrics,
}

/// Input rows that are walked from in the same graph and direction.
struct Task {
    graph: ActiveGraph,
    /// The value of the graph variable.
    graph_name: Option<TermId>,
    seeds: Seeds,
}

/// Where the walks begin.
enum Seeds {
    /// At a bound end: the node and the row, ascending.
    Bound(Direction, Vec<(u64, u32)>),
    /// Neither end of these rows is bound.
    Everywhere(Vec<u32>),
}

/// A task being worked on.
struct Walking {
    graph_name: Option<TermId>,
    direction: Direction,
    evaluator: Evaluator,
    /// Nodes to walk from, ascending, and the rows that each stands for.
    nodes: Vec<u64>,
    rows: RowsOfSeeds,
    next_node: usize,
    /// Finished walks of some of the nodes, being given out.
    walks: Vec<Walk>,
    first_node: usize,
    next_walk: usize,
    next_row: usize,
}

enum RowsOfSeeds {
    /// Ascending by node, like `nodes`.
    PerNode(Vec<(u64, u32)>),
    /// Every row goes with every node.
    All(Vec<u32>),
}

/// Output rows: input row, start, end.
#[derive(Default)]
struct Found {
    rows: Vec<u32>,
    starts: Vec<u64>,
    ends: Vec<u64>,
}

impl PathRun {
    pub(super) fn new(
        plan: Arc<PathPlan>,
        input: Option<SendableRecordBatchStream>,
        reservation: MemoryReservation,
        baseline: BaselineMetrics,
    ) -> Self {
        Self {
            plan,
            input,
            is_input_ended: false,
            columns: Vec::new(),
            tasks: VecDeque::new(),
            current: None,
            reservation,
            baseline,
        }
    }

    /// The next output batch; none after the last.
    pub(super) async fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(walking) = &mut self.current {
                let start = Instant::now();
                let batch = Self::advance(&self.plan, &self.columns, walking).await?;
                self.baseline.elapsed_compute().add_elapsed(start);
                if let Some(batch) = batch {
                    self.baseline.record_output(batch.num_rows());
                    return Ok(Some(batch));
                }
                self.current = None;
            } else if let Some(task) = self.tasks.pop_front() {
                self.current = Some(self.begin(task)?);
            } else if !self.next_input().await? {
                return Ok(None);
            }
        }
    }

    /// Plans the tasks of the next input batch; `false` when there is none.
    async fn next_input(&mut self) -> Result<bool> {
        if self.is_input_ended {
            return Ok(false);
        }
        let rows = match &mut self.input {
            None => {
                self.is_input_ended = true;
                1
            }
            Some(input) => match input.next().await {
                Some(batch) => {
                    let batch = batch?;
                    self.columns = id_columns(&batch)?;
                    batch.num_rows()
                }
                None => {
                    self.is_input_ended = true;
                    return Ok(false);
                }
            },
        };
        self.plan_tasks(rows)?;
        Ok(true)
    }

    fn plan_tasks(&mut self, rows: usize) -> Result<()> {
        let all: Vec<u32> = (0..rows as u32).collect();
        let has_named_graphs = self.plan.context.snapshot().has_named_graphs();
        let graph = match &self.plan.specification.graph {
            GraphScope::Default | GraphScope::AllUnion if !has_named_graphs => ActiveGraph::Only,
            GraphScope::Default => ActiveGraph::One(TermId::DEFAULT_GRAPH),
            GraphScope::AllUnion => ActiveGraph::MergeAll,
            GraphScope::Named(graph) => ActiveGraph::One(*graph),
            GraphScope::Union(graphs) => {
                let mut graphs = graphs.to_vec();
                graphs.sort_unstable();
                ActiveGraph::Merge(graphs.into())
            }
            GraphScope::NamedVariable { variable, allowed } => {
                let (variable, allowed) = (Arc::clone(variable), allowed.clone());
                return self.plan_graph_tasks(&variable, allowed.as_deref(), &all);
            }
        };
        self.plan_ends(&graph, None, &all);
        Ok(())
    }

    /// `GRAPH ?g`: in the graph that a row names, or in each one.
    fn plan_graph_tasks(
        &mut self,
        variable: &Arc<str>,
        allowed: Option<&[TermId]>,
        rows: &[u32],
    ) -> Result<()> {
        let column = self.plan.input_column(variable);
        let name_of = |row: u32| value(&self.columns, column, row);
        let named: Vec<(u64, u32)> = rows
            .iter()
            .filter_map(|&row| Some((name_of(row)?, row)))
            .collect();
        let unnamed: Vec<u32> = rows
            .iter()
            .copied()
            .filter(|&row| name_of(row).is_none())
            .collect();
        let mut names = GraphNames::new(&self.plan.context, allowed);
        while let Some(name) = names.next_name()? {
            let of_graph = named.iter().filter(|(graph, _)| *graph == name.bits());
            let mut rows: Vec<u32> = of_graph.map(|(_, row)| *row).collect();
            rows.extend(&unnamed);
            if !rows.is_empty() {
                self.plan_ends(&ActiveGraph::One(name), Some(name), &rows);
            }
        }
        Ok(())
    }

    /// Sorts rows by which ends are bound.
    fn plan_ends(&mut self, graph: &ActiveGraph, graph_name: Option<TermId>, rows: &[u32]) {
        let mut subjects = Vec::new();
        let mut objects = Vec::new();
        let mut neither = Vec::new();
        let specification = &self.plan.specification;
        for &row in rows {
            let ends = [&specification.subject, &specification.object]
                .map(|slot| self.plan.value(&self.columns, slot, graph_name, row));
            match ends {
                [Some(subject), _] => subjects.push((subject, row)),
                [None, Some(object)] => objects.push((object, row)),
                [None, None] => neither.push(row),
            }
        }
        subjects.sort_unstable();
        objects.sort_unstable();
        let tasks = [
            (!subjects.is_empty()).then_some(Seeds::Bound(Direction::Forward, subjects)),
            (!objects.is_empty()).then_some(Seeds::Bound(Direction::Backward, objects)),
            (!neither.is_empty()).then_some(Seeds::Everywhere(neither)),
        ];
        for seeds in tasks.into_iter().flatten() {
            self.tasks.push_back(Task {
                graph: graph.clone(),
                graph_name,
                seeds,
            });
        }
    }

    fn begin(&mut self, task: Task) -> Result<Walking> {
        let snapshot = Arc::clone(self.plan.context.snapshot());
        let edges = Edges::new(snapshot, task.graph);
        let mut evaluator = Evaluator::new(edges, self.reservation.new_empty());
        let (direction, nodes, rows) = match task.seeds {
            Seeds::Bound(direction, pairs) => {
                let mut nodes: Vec<u64> = pairs.iter().map(|(node, _)| *node).collect();
                nodes.dedup();
                if self.plan.is_among_nodes() {
                    evaluator.retain_nodes(&mut nodes)?;
                }
                (direction, nodes, RowsOfSeeds::PerNode(pairs))
            }
            Seeds::Everywhere(rows) => {
                let nodes = evaluator.start_nodes(&self.plan.forward)?;
                (Direction::Forward, nodes, RowsOfSeeds::All(rows))
            }
        };
        self.reservation
            .try_resize(nodes.len() * size_of::<u64>())?;
        Ok(Walking {
            graph_name: task.graph_name,
            direction,
            evaluator,
            nodes,
            rows,
            next_node: 0,
            walks: Vec::new(),
            first_node: 0,
            next_walk: 0,
            next_row: 0,
        })
    }

    /// The next batch of a task; none when it is done.
    async fn advance(
        plan: &PathPlan,
        columns: &[UInt64Array],
        walking: &mut Walking,
    ) -> Result<Option<RecordBatch>> {
        loop {
            walking.evaluator.pause().await;
            let found = walking.give_out(plan, columns);
            if !found.rows.is_empty() {
                return output(plan, columns, walking.graph_name, found).map(Some);
            }
            if walking.next_node == walking.nodes.len() {
                return Ok(None);
            }
            let path = match walking.direction {
                Direction::Forward => &plan.forward,
                Direction::Backward => &plan.backward,
            };
            walking.walk_on(path).await?;
        }
    }
}

impl Walking {
    /// Walks from some further nodes.
    async fn walk_on(&mut self, path: &Path) -> Result<()> {
        self.evaluator.free();
        self.first_node = self.next_node;
        self.next_node = self.nodes.len().min(self.first_node + SEEDS_PER_CALL);
        let seeds = &self.nodes[self.first_node..self.next_node];
        let walks: Vec<Walk> = (0..).zip(seeds.iter().copied()).collect();
        self.walks = self.evaluator.evaluate(path, walks).await?;
        self.next_walk = 0;
        self.next_row = 0;
        Ok(())
    }

    /// Some of the finished walks, with the rows that they belong to.
    fn give_out(&mut self, plan: &PathPlan, columns: &[UInt64Array]) -> Found {
        let mut found = Found::default();
        let specification = &plan.specification;
        let is_loop = specification.subject == specification.object;
        let other = match self.direction {
            Direction::Forward => &specification.object,
            Direction::Backward => &specification.subject,
        };
        while let Some(&(seed, reached)) = self.walks.get(self.next_walk) {
            let node = self.nodes[self.first_node + seed as usize];
            let (first, rows) = self.rows_of(node);
            while self.next_row < rows {
                if found.rows.len() == ROWS_PER_BATCH {
                    return found;
                }
                let row = match &self.rows {
                    RowsOfSeeds::PerNode(pairs) => pairs[first + self.next_row].1,
                    RowsOfSeeds::All(all) => all[self.next_row],
                };
                self.next_row += 1;
                let bound = plan.value(columns, other, self.graph_name, row);
                if bound.is_some_and(|bound| bound != reached) || (is_loop && node != reached) {
                    continue;
                }
                let (start, end) = match self.direction {
                    Direction::Forward => (node, reached),
                    Direction::Backward => (reached, node),
                };
                found.rows.push(row);
                found.starts.push(start);
                found.ends.push(end);
            }
            self.next_walk += 1;
            self.next_row = 0;
        }
        found
    }

    /// Where the rows of a node begin, and how many there are.
    fn rows_of(&self, node: u64) -> (usize, usize) {
        match &self.rows {
            RowsOfSeeds::PerNode(pairs) => {
                let first = pairs.partition_point(|pair| pair.0 < node);
                let rows = pairs[first..].iter().take_while(|pair| pair.0 == node);
                (first, rows.count())
            }
            RowsOfSeeds::All(rows) => (0, rows.len()),
        }
    }
}

/// Builds an output batch.
fn output(
    plan: &PathPlan,
    columns: &[UInt64Array],
    graph_name: Option<TermId>,
    found: Found,
) -> Result<RecordBatch> {
    let rows = found.rows.len();
    let specification = &plan.specification;
    let is = |slot: &Slot, name: &Arc<str>| slot.variable() == Some(name);
    let output = specification.output.iter().map(|name| {
        if is(&specification.subject, name) {
            return Ok(UInt64Array::from(found.starts.clone()));
        }
        if is(&specification.object, name) {
            return Ok(UInt64Array::from(found.ends.clone()));
        }
        match (&specification.graph, graph_name) {
            (GraphScope::NamedVariable { variable, .. }, Some(graph)) if variable == name => {
                return Ok(UInt64Array::from(vec![graph.bits(); rows]));
            }
            _ => {}
        }
        match plan.input_column(name) {
            Some(column) => gather(&columns[column], &found.rows),
            None => Ok(UInt64Array::new_null(rows)),
        }
    });
    let output = output.collect::<Result<_>>()?;
    solution_batch(&plan.schema, output, rows)
}

/// The value of a column that may not be there.
pub(super) fn value(columns: &[UInt64Array], column: Option<usize>, row: u32) -> Option<u64> {
    let column = &columns[column?];
    let row = row as usize;
    column.is_valid(row).then(|| column.value(row))
}
