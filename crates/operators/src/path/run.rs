//! The execution of a path: input rows in, rows with both ends bound out.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use arrow::array::{RecordBatch, UInt64Array};
use datafusion_common::{DataFusionError, Result};
use datafusion_execution::SendableRecordBatchStream;
use datafusion_execution::memory_pool::MemoryReservation;
use futures::StreamExt;
use orrery_term::TermId;

use super::compile::{Direction, Path};
use super::compiled::{CompiledPath, value};
use super::counted::{Nodes, Walks};
use super::dealt::StartsReader;
use super::edges::ActiveGraph;
use super::evaluate::Evaluator;
use super::meeting::is_connected;
use super::reached::{Reached, Repetition, SEEDS_PER_CALL_MAX, SEEDS_PER_WORD};
use super::search::Search;
use crate::graph_names::GraphNames;
use crate::node_metrics::NodeMetrics;
use crate::pattern::{GraphScope, Slot};
use crate::solutions::{gather, id_columns, solution_batch};

/// Seeds walked from at a time, at first, so that a `LIMIT` is reached soon; later as many as keep
/// the work small.
const SEEDS_PER_CALL_MIN: usize = SEEDS_PER_WORD;
/// Walks, or nodes of a search, beyond which fewer seeds are taken the next time.
const WORK_PER_CALL: usize = 1 << 18;
/// Pairs of bound ends that are searched from both ends, each pair by itself; with more, searches
/// that many seeds share are cheaper.
const PAIRS_MET_MAX: usize = 16;
/// Rows per output batch.
const ROWS_PER_BATCH: usize = 8_192;

/// Where the rows to walk from come from.
pub(super) enum PathInput {
    /// One row without variables, still to come.
    EmptyRow,
    /// The same, of which this partition walks from some of the nodes.
    Starts(ActiveGraph, StartsReader),
    /// A child plan.
    Stream(SendableRecordBatchStream),
    /// There is no more.
    Ended,
}

/// A run of a path plan.
pub(super) struct PathRun {
    plan: Arc<CompiledPath>,
    input: PathInput,
    columns: Vec<UInt64Array>,
    tasks: VecDeque<WalkTask>,
    current: Option<Walking>,
    reservation: MemoryReservation,
    baseline: NodeMetrics,
}

/// Input rows that are walked from in the same graph and direction.
struct WalkTask {
    graph: ActiveGraph,
    /// The value of the graph variable.
    graph_name: Option<TermId>,
    seeds: WalkSeeds,
}

/// Where the walks begin.
enum WalkSeeds {
    /// At a bound end: the node and the row, ascending.
    Bound(Direction, Vec<(u64, u32)>),
    /// Neither end of these rows is bound.
    Everywhere(Vec<u32>),
    /// Neither end of the one row without variables is bound, and other partitions walk from other
    /// nodes.
    Dealt(StartsReader),
}

/// A task being worked on.
struct Walking {
    graph_name: Option<TermId>,
    direction: Direction,
    evaluator: Evaluator,
    /// Nodes to walk from, ascending, and the rows that each stands for.
    nodes: Nodes,
    rows: RowsOfSeeds,
    /// Where further nodes come from.
    further: Option<StartsReader>,
    next_node: usize,
    seeds_per_call: usize,
    /// Fewer than usual where more did not fit into memory.
    seeds_per_call_max: usize,
    /// Whether each row's ends are searched for by themselves.
    meets: bool,
    /// The search from some of the nodes, if it is not yet at its end.
    search: Option<Search>,
    /// Finished walks of some of the nodes, being given out.
    walks: Walks,
    first_node: usize,
    next_walk: usize,
    next_row: usize,
    /// The rows of the seed of the walk that is given out.
    rows_of_seed: Option<(u32, Range<usize>)>,
}

enum RowsOfSeeds {
    /// Ascending by node, like `nodes`.
    PerNode(Vec<(u64, u32)>),
    /// Every row goes with every node.
    All(Vec<u32>),
}

/// Output rows: input row, start, end.
#[derive(Default)]
struct PathRows {
    rows: Vec<u32>,
    starts: Vec<u64>,
    ends: Vec<u64>,
}

impl PathRun {
    pub(super) fn new(
        plan: Arc<CompiledPath>,
        input: PathInput,
        reservation: MemoryReservation,
        baseline: NodeMetrics,
    ) -> Self {
        Self {
            plan,
            input,
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
                // The time of waiting is not this partition's own.
                if !walking
                    .next_block(&self.reservation, &self.baseline)
                    .await?
                {
                    self.current = None;
                }
            } else if let Some(task) = self.tasks.pop_front() {
                let start = Instant::now();
                let (plan, columns) = (&self.plan, &self.columns);
                let walking = Self::begin(plan, columns, &self.reservation, task).await?;
                self.current = Some(walking);
                self.baseline.elapsed_compute().add_elapsed(start);
            } else if !self.next_input().await? {
                return Ok(None);
            }
        }
    }

    /// Plans the tasks of the next input batch; `false` when there is none.
    async fn next_input(&mut self) -> Result<bool> {
        if let PathInput::Stream(input) = &mut self.input
            && let Some(batch) = input.next().await
        {
            let batch = batch?;
            self.columns = id_columns(&batch)?;
            self.plan_tasks(batch.num_rows())?;
            return Ok(true);
        }
        match std::mem::replace(&mut self.input, PathInput::Ended) {
            PathInput::EmptyRow => self.plan_tasks(1)?,
            PathInput::Starts(graph, starts) => self.tasks.push_back(WalkTask {
                graph,
                graph_name: None,
                seeds: WalkSeeds::Dealt(starts),
            }),
            PathInput::Stream(_) | PathInput::Ended => return Ok(false),
        }
        Ok(true)
    }

    fn plan_tasks(&mut self, rows: usize) -> Result<()> {
        let all: Vec<u32> = (0..rows as u32).collect();
        if let Some(graph) = self.plan.active_graph() {
            self.plan_ends(&graph, None, &all);
        } else if let GraphScope::NamedVariable { variable, allowed } =
            &self.plan.specification.graph
        {
            let (variable, allowed) = (Arc::clone(variable), allowed.clone());
            self.plan_graph_tasks(&variable, allowed.as_deref(), &all)?;
        }
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
        let mut both = Vec::new();
        let specification = &self.plan.specification;
        for &row in rows {
            let ends = [&specification.subject, &specification.object]
                .map(|slot| self.plan.value(&self.columns, slot, graph_name, row));
            match ends {
                [Some(subject), Some(object)] => both.push((subject, object, row)),
                [Some(subject), None] => subjects.push((subject, row)),
                [None, Some(object)] => objects.push((object, row)),
                [None, None] => neither.push(row),
            }
        }
        // From the side that has fewer nodes.
        let subject_count = distinct(both.iter().map(|both| both.0));
        let object_count = distinct(both.iter().map(|both| both.1));
        match subject_count <= object_count {
            true => subjects.extend(both.iter().map(|&(subject, _, row)| (subject, row))),
            false => objects.extend(both.iter().map(|&(_, object, row)| (object, row))),
        }
        subjects.sort_unstable();
        objects.sort_unstable();
        let tasks = [
            (!subjects.is_empty()).then_some(WalkSeeds::Bound(Direction::Forward, subjects)),
            (!objects.is_empty()).then_some(WalkSeeds::Bound(Direction::Backward, objects)),
            (!neither.is_empty()).then_some(WalkSeeds::Everywhere(neither)),
        ];
        for seeds in tasks.into_iter().flatten() {
            self.tasks.push_back(WalkTask {
                graph: graph.clone(),
                graph_name,
                seeds,
            });
        }
    }

    async fn begin(
        plan: &CompiledPath,
        columns: &[UInt64Array],
        reservation: &MemoryReservation,
        task: WalkTask,
    ) -> Result<Walking> {
        let edges = plan.edges(task.graph);
        let mut evaluator = Evaluator::new(edges, reservation.new_empty());
        let mut further = None;
        let (direction, nodes, rows) = match task.seeds {
            WalkSeeds::Bound(direction, pairs) => {
                let mut nodes: Vec<u64> = pairs.iter().map(|(node, _)| *node).collect();
                nodes.dedup();
                if plan.is_among_nodes() {
                    evaluator.retain_nodes(&mut nodes).await?;
                }
                let nodes = Nodes::of(nodes.into_iter(), reservation)?;
                (direction, nodes, RowsOfSeeds::PerNode(pairs))
            }
            WalkSeeds::Everywhere(rows) => {
                let nodes = evaluator.start_nodes(&plan.forward).await?;
                (Direction::Forward, nodes, RowsOfSeeds::All(rows))
            }
            WalkSeeds::Dealt(starts) => {
                further = Some(starts);
                let nodes = Nodes::new(reservation);
                (Direction::Forward, nodes, RowsOfSeeds::All(vec![0]))
            }
        };
        let meets = is_repeated(&plan.forward) && are_met(plan, columns, &rows, task.graph_name);
        Ok(Walking {
            graph_name: task.graph_name,
            direction,
            walks: Walks::new(evaluator.reservation()),
            evaluator,
            nodes,
            rows,
            further,
            next_node: 0,
            seeds_per_call: SEEDS_PER_CALL_MIN,
            seeds_per_call_max: SEEDS_PER_CALL_MAX,
            meets,
            search: None,
            first_node: 0,
            next_walk: 0,
            next_row: 0,
            rows_of_seed: None,
        })
    }

    /// The next batch of a task; none when it is done.
    async fn advance(
        plan: &CompiledPath,
        columns: &[UInt64Array],
        walking: &mut Walking,
    ) -> Result<Option<RecordBatch>> {
        loop {
            walking.evaluator.pause().await;
            let found = walking.give_out(plan, columns);
            if !found.rows.is_empty() {
                return output(plan, columns, walking.graph_name, found).map(Some);
            }
            if !walking.walk_on(plan, columns).await? {
                return Ok(None);
            }
        }
    }
}

impl Walking {
    /// Goes on with further nodes, if there are any.
    async fn next_block(
        &mut self,
        reservation: &MemoryReservation,
        metrics: &NodeMetrics,
    ) -> Result<bool> {
        self.next_node = 0;
        match &mut self.further {
            Some(further) => {
                let nodes = &mut self.nodes;
                further.next_block(nodes, reservation, metrics).await
            }
            None => Ok(false),
        }
    }

    /// Finds some further walks; `false` if there are none.
    async fn walk_on(&mut self, plan: &CompiledPath, columns: &[UInt64Array]) -> Result<bool> {
        let path = match self.direction {
            Direction::Forward => &plan.forward,
            Direction::Backward => &plan.backward,
        };
        self.walks.clear();
        self.next_walk = 0;
        self.next_row = 0;
        self.rows_of_seed = None;
        if let Some(search) = self.search.take() {
            self.search_on(search, Repetition::of(path)).await?;
            return Ok(true);
        }
        if self.next_node == self.nodes.as_slice().len() {
            return Ok(false);
        }
        self.first_node = self.next_node;
        loop {
            let seeds_end = self.first_node + self.seeds_per_call;
            self.next_node = self.nodes.as_slice().len().min(seeds_end);
            match self.walk_from_seeds(plan, columns, path).await {
                // No walk of these seeds has been given out: fewer of them need less.
                Err(error) if is_exhausted(&error) && self.next_node - self.first_node > 1 => {
                    self.walks = Walks::new(self.evaluator.reservation());
                    self.seeds_per_call = (self.next_node - self.first_node) / 2;
                    self.seeds_per_call_max = self.seeds_per_call;
                }
                walked => return walked.map(|()| true),
            }
        }
    }

    /// Walks from the present seeds: to the end of their walks, or to the first results of a
    /// search.
    async fn walk_from_seeds(
        &mut self,
        plan: &CompiledPath,
        columns: &[UInt64Array],
        path: &Path,
    ) -> Result<()> {
        let nodes = &self.nodes.as_slice()[self.first_node..self.next_node];
        let seeds = Reached::of_seeds(nodes.iter().copied(), self.evaluator.reservation())?;
        if self.meets {
            self.meet(plan, columns).await?;
        } else if let Some(repetition) = Repetition::of(path) {
            let search = Search::new(repetition, seeds)?;
            self.search_on(search, Some(repetition)).await?;
        } else if plan.specification.is_set {
            let reached = self.evaluator.evaluate_set(path, seeds).await?;
            self.search_on(Search::ended(reached), None).await?;
        } else {
            let seeds = (0..nodes.len()).map(|seed| (seed as u32, nodes[seed]));
            let seeds = Walks::of(seeds, self.evaluator.reservation())?;
            self.walks = self.evaluator.evaluate(path, seeds).await?;
            self.adapt(self.walks.as_slice().len());
        }
        Ok(())
    }

    /// The next results of a search, which is kept if there may be more.
    async fn search_on(
        &mut self,
        mut search: Search,
        repetition: Option<Repetition<'_>>,
    ) -> Result<()> {
        let (evaluator, walks) = (&mut self.evaluator, &mut self.walks);
        let is_open = search
            .next(evaluator, repetition, walks, ROWS_PER_BATCH)
            .await?;
        if is_open {
            self.search = Some(search);
        } else {
            self.adapt(search.nodes());
        }
        Ok(())
    }

    /// Takes more or fewer seeds the next time.
    fn adapt(&mut self, work: usize) {
        let seeds = match work > WORK_PER_CALL {
            true => SEEDS_PER_CALL_MIN,
            false => 2 * self.seeds_per_call,
        };
        self.seeds_per_call = seeds.min(self.seeds_per_call_max);
    }

    /// Searches from both ends of each row of the seeds.
    async fn meet(&mut self, plan: &CompiledPath, columns: &[UInt64Array]) -> Result<()> {
        let (Some(forward), Some(backward)) = (
            Repetition::of(&plan.forward),
            Repetition::of(&plan.backward),
        ) else {
            return Ok(());
        };
        let RowsOfSeeds::PerNode(pairs) = &self.rows else {
            return Ok(());
        };
        let other = match self.direction {
            Direction::Forward => &plan.specification.object,
            Direction::Backward => &plan.specification.subject,
        };
        for seed in 0..self.next_node - self.first_node {
            let node = self.nodes.as_slice()[self.first_node + seed];
            let rows = rows_of(pairs, node);
            let values = pairs[rows].iter().map(|(_, row)| *row);
            let mut others: Vec<u64> = values
                .filter_map(|row| plan.value(columns, other, self.graph_name, row))
                .collect();
            others.sort_unstable();
            others.dedup();
            for end in others {
                let ends = match self.direction {
                    Direction::Forward => [node, end],
                    Direction::Backward => [end, node],
                };
                if is_connected(&mut self.evaluator, [forward, backward], ends).await? {
                    self.walks.push((seed as u32, end))?;
                }
            }
        }
        Ok(())
    }

    /// Some of the finished walks, with the rows that they belong to.
    fn give_out(&mut self, plan: &CompiledPath, columns: &[UInt64Array]) -> PathRows {
        let mut found = PathRows::default();
        let specification = &plan.specification;
        let is_loop = specification.subject == specification.object;
        let other = match self.direction {
            Direction::Forward => &specification.object,
            Direction::Backward => &specification.subject,
        };
        let may_be_bound = plan.may_be_bound(other);
        while let Some(&(seed, reached)) = self.walks.as_slice().get(self.next_walk) {
            let node = self.nodes.as_slice()[self.first_node + seed as usize];
            let (first, rows) = match &self.rows_of_seed {
                Some((of, rows)) if *of == seed => (rows.start, rows.len()),
                Some(_) | None => {
                    let rows = match &self.rows {
                        RowsOfSeeds::PerNode(pairs) => rows_of(pairs, node),
                        RowsOfSeeds::All(rows) => 0..rows.len(),
                    };
                    self.rows_of_seed = Some((seed, rows.clone()));
                    (rows.start, rows.len())
                }
            };
            while self.next_row < rows {
                if found.rows.len() == ROWS_PER_BATCH {
                    return found;
                }
                let row = match &self.rows {
                    RowsOfSeeds::PerNode(pairs) => pairs[first + self.next_row].1,
                    RowsOfSeeds::All(all) => all[self.next_row],
                };
                self.next_row += 1;
                let bound = || plan.value(columns, other, self.graph_name, row);
                let is_elsewhere = may_be_bound && bound().is_some_and(|bound| bound != reached);
                if is_elsewhere || (is_loop && node != reached) {
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
}

/// Whether the rows are few, and have both ends bound.
fn are_met(
    plan: &CompiledPath,
    columns: &[UInt64Array],
    rows: &RowsOfSeeds,
    graph_name: Option<TermId>,
) -> bool {
    let RowsOfSeeds::PerNode(pairs) = rows else {
        return false;
    };
    let specification = &plan.specification;
    let mut ends = [&specification.subject, &specification.object].into_iter();
    pairs.len() <= PAIRS_MET_MAX
        && ends.all(|end| {
            let value = |row| plan.value(columns, end, graph_name, row);
            pairs.iter().all(|(_, row)| value(*row).is_some())
        })
}

/// The pairs of a node.
fn rows_of(pairs: &[(u64, u32)], node: u64) -> Range<usize> {
    let first = pairs.partition_point(|pair| pair.0 < node);
    let rows = pairs[first..].partition_point(|pair| pair.0 == node);
    first..first + rows
}

/// Whether an error says that there was no more memory.
fn is_exhausted(error: &DataFusionError) -> bool {
    matches!(error.find_root(), DataFusionError::ResourcesExhausted(_))
}

/// Whether a path leads on and on.
fn is_repeated(path: &Path) -> bool {
    Repetition::of(path).is_some_and(|repetition| repetition.many)
}

/// The number of distinct nodes.
fn distinct(nodes: impl Iterator<Item = u64>) -> usize {
    let mut nodes: Vec<u64> = nodes.collect();
    nodes.sort_unstable();
    nodes.dedup();
    nodes.len()
}

/// Builds an output batch.
fn output(
    plan: &CompiledPath,
    columns: &[UInt64Array],
    graph_name: Option<TermId>,
    found: PathRows,
) -> Result<RecordBatch> {
    let rows = found.rows.len();
    let (starts, ends) = (
        UInt64Array::from(found.starts),
        UInt64Array::from(found.ends),
    );
    let specification = &plan.specification;
    let is = |slot: &Slot, name: &Arc<str>| slot.variable() == Some(name);
    let output = specification.output.iter().map(|name| {
        if is(&specification.subject, name) {
            return Ok(starts.clone());
        }
        if is(&specification.object, name) {
            return Ok(ends.clone());
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
