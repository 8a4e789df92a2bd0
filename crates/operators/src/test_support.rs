//! Test helpers: small snapshots, runs of plans, and a naive evaluator.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::UInt64Type;
use datafusion_execution::TaskContext;
use datafusion_execution::memory_pool::GreedyMemoryPool;
use datafusion_physical_plan::{ExecutionPlan, collect};
use orrery_runtime::{Adjacencies, BuildThresholds};
use orrery_storage::{
    CommitOptions, Database, ReadView, SmallQuad, Snapshot, WriterOptions, build_small,
};
use orrery_term::{Term, TermId};
use tempfile::TempDir;

use crate::context::{ContextOptions, QueryContext};
use crate::pattern::{GraphScope, QuadPattern, Slot};

/// A quad: subject, predicate, object, graph.
pub(crate) type Quad = [TermId; 4];

/// A solution: the bound variables.
pub(crate) type Solution = BTreeMap<String, TermId>;

/// A term for tests: any number will do, and needs no dictionary.
pub(crate) fn term(number: i64) -> TermId {
    TermId::integer(number).unwrap()
}

/// A variable.
pub(crate) fn var(name: &str) -> Slot {
    Slot::Variable(Arc::from(name))
}

/// Variable names.
pub(crate) fn names(names: &[&str]) -> Vec<Arc<str>> {
    names.iter().map(|name| Arc::from(*name)).collect()
}

/// A context over a database with these quads. Everything is looked up in the permutations.
pub(crate) fn context_of(quads: &[Quad]) -> Arc<QueryContext> {
    context_of_terms(&small_quads(quads))
}

/// A context over a database whose dictionary has these terms, as far as they are not inline.
pub(crate) fn context_with(terms: &[Term<'static>]) -> Arc<QueryContext> {
    let node = Term::iri("http://example.com/s");
    let quad = |term: &Term<'static>| (node.clone(), node.clone(), term.clone(), None);
    let quads: Vec<SmallQuad> = terms.iter().map(quad).collect();
    context_of_terms(&quads)
}

/// A batch of these solutions.
pub(crate) fn batch(
    variables: &[&str],
    rows: &[Vec<Option<Term<'static>>>],
    context: &QueryContext,
) -> RecordBatch {
    crate::oracle::batch(variables, rows, |term| context.intern(term).unwrap())
}

/// A context over a database with these quads of any terms.
pub(crate) fn context_of_terms(quads: &[SmallQuad]) -> Arc<QueryContext> {
    // The files stay mapped when the directory is gone.
    let database = build_small(directory().path(), quads).unwrap();
    context_over(database.snapshot(), Adjacencies::new(0))
}

/// The ways to look up the same quads: in the permutations; in memory; in memory what later changes
/// did not touch.
pub(crate) fn contexts_of(quads: &[Quad]) -> [Arc<QueryContext>; 3] {
    let database = build_small(directory().path(), &small_quads(quads)).unwrap();
    let snapshot = database.snapshot();
    [
        context_over(Arc::clone(&snapshot), Adjacencies::new(0)),
        context_over(snapshot, eager_adjacencies()),
        context_over(changed_into(quads), eager_adjacencies()),
    ]
}

/// Looked up in memory, and what is on its way has so many bytes.
pub(crate) fn in_memory_with(quads: &[Quad], on_the_way_bytes: usize) -> Arc<QueryContext> {
    let database = build_small(directory().path(), &small_quads(quads)).unwrap();
    let options = ContextOptions {
        adjacencies: Arc::new(built_where_missed()),
        on_the_way_pool: Arc::new(GreedyMemoryPool::new(on_the_way_bytes)),
        ..ContextOptions::default()
    };
    QueryContext::new(ReadView::of_process(database.snapshot()), options).unwrap()
}

/// Looked up in memory, over a base with later changes.
pub(crate) fn in_memory_changed(
    base: &[Quad],
    deleted: &[Quad],
    inserted: &[Quad],
) -> Arc<QueryContext> {
    let directory = directory();
    drop(build_small(directory.path(), &small_quads(base)).unwrap());
    let database = Arc::new(Database::open(directory.path()).unwrap());
    let writer = database.open_writer(WriterOptions::default()).unwrap();
    let mut transaction = writer.begin().unwrap();
    transaction.delete(&mut deleted.to_vec()).unwrap();
    transaction.insert(&mut inserted.to_vec()).unwrap();
    let pending = transaction.commit(CommitOptions::default()).unwrap();
    pending.wait().unwrap();
    context_over(database.snapshot(), built_where_missed())
}

/// Built when they are missed.
fn eager_adjacencies() -> Adjacencies {
    Adjacencies::with_thresholds(64 << 20, BuildThresholds::AT_ONCE)
}

/// The same for predicates of any length: none is built in the background.
fn built_where_missed() -> Adjacencies {
    let thresholds = BuildThresholds {
        rows_at_once_max: u64::MAX,
        ..BuildThresholds::AT_ONCE
    };
    Adjacencies::with_thresholds(64 << 20, thresholds)
}

fn context_over(snapshot: Arc<Snapshot>, adjacencies: Adjacencies) -> Arc<QueryContext> {
    let options = ContextOptions {
        adjacencies: Arc::new(adjacencies),
        ..ContextOptions::default()
    };
    QueryContext::new(ReadView::of_process(snapshot), options).unwrap()
}

/// A snapshot with these quads over a base that lacks some of them and has others: some of the
/// changes are flushed, some in memory.
pub(crate) fn changed_into(quads: &[Quad]) -> Arc<Snapshot> {
    let others = quads.iter().map(|&[s, p, o, g]| [o, p, s, g]);
    let others: Vec<Quad> = others.filter(|quad| !quads.contains(quad)).collect();
    let (first, rest) = quads.split_at(quads.len() / 2);
    let (second, third) = rest.split_at(rest.len() / 2);
    let directory = directory();
    let base = small_quads(&[first, &others].concat());
    drop(build_small(directory.path(), &base).unwrap());
    let database = Arc::new(Database::open(directory.path()).unwrap());
    let writer = database.open_writer(WriterOptions::default()).unwrap();
    let (early, late) = others.split_at(others.len() / 3);
    for (deleted, inserted, is_flushed) in [(early, second, true), (late, third, false)] {
        let mut transaction = writer.begin().unwrap();
        transaction.delete(&mut deleted.to_vec()).unwrap();
        transaction.insert(&mut inserted.to_vec()).unwrap();
        let pending = transaction.commit(CommitOptions::default()).unwrap();
        pending.wait().unwrap();
        if is_flushed {
            writer.checkpoint().unwrap();
        }
    }
    database.snapshot()
}

/// Publishing syncs its files: a thousand random databases should not wait for the disk.
pub(crate) fn directory() -> TempDir {
    let in_memory = Path::new("/dev/shm");
    match in_memory.is_dir() {
        true => tempfile::tempdir_in(in_memory).unwrap(),
        false => tempfile::tempdir().unwrap(),
    }
}

pub(crate) fn small_quads(quads: &[Quad]) -> Vec<SmallQuad> {
    let of = |id: TermId| id.to_inline_term().unwrap();
    let small = quads.iter().map(|&[s, p, o, g]| {
        let graph = (g != TermId::DEFAULT_GRAPH).then(|| of(g));
        (of(s), of(p), of(o), graph)
    });
    small.collect()
}

/// Runs a plan to its end: its solutions, sorted.
pub(crate) fn run(plan: Arc<dyn ExecutionPlan>) -> Vec<Solution> {
    try_run(plan, Arc::new(TaskContext::default())).unwrap()
}

/// Runs a plan to its end or its failure.
pub(crate) fn try_run(
    plan: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
) -> datafusion_common::Result<Vec<Solution>> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    Ok(solutions(&runtime.block_on(collect(plan, context))?))
}

/// The solutions of batches, sorted.
pub(crate) fn solutions(batches: &[RecordBatch]) -> Vec<Solution> {
    let mut solutions = Vec::new();
    for batch in batches {
        for row in 0..batch.num_rows() {
            let mut solution = Solution::new();
            for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
                let column = column.as_primitive::<UInt64Type>();
                if column.is_valid(row) {
                    solution.insert(field.name().clone(), TermId::from_bits(column.value(row)));
                }
            }
            solutions.push(solution);
        }
    }
    solutions.sort();
    solutions
}

/// Only these variables of a solution.
pub(crate) fn project(solution: &Solution, variables: &[Arc<str>]) -> Solution {
    solution
        .iter()
        .filter(|(name, _)| variables.iter().any(|variable| **variable == ***name))
        .map(|(name, term)| (name.clone(), *term))
        .collect()
}

/// The triples of a graph scope, with the graph where it is a variable. The simple way.
fn scope_quads(quads: &[Quad], scope: &GraphScope) -> Vec<Quad> {
    let mut chosen: Vec<Quad> = match scope {
        GraphScope::Default => filter(quads, |g| g == TermId::DEFAULT_GRAPH),
        GraphScope::Named(graph) => filter(quads, |g| g == *graph),
        GraphScope::Union(graphs) => filter(quads, |g| graphs.contains(&g)),
        GraphScope::AllUnion => quads.to_vec(),
        GraphScope::NamedVariable { allowed, .. } => filter(quads, |g| {
            g != TermId::DEFAULT_GRAPH && allowed.as_ref().is_none_or(|list| list.contains(&g))
        }),
    };
    if !matches!(scope, GraphScope::NamedVariable { .. }) {
        for quad in &mut chosen {
            quad[3] = TermId::DEFAULT_GRAPH;
        }
    }
    chosen.sort();
    chosen.dedup();
    chosen
}

fn filter(quads: &[Quad], keep: impl Fn(TermId) -> bool) -> Vec<Quad> {
    quads.iter().copied().filter(|quad| keep(quad[3])).collect()
}

/// The triples of a scope that is not a variable.
pub(crate) fn scope_triples(quads: &[Quad], scope: &GraphScope) -> Vec<[TermId; 3]> {
    scope_quads(quads, scope)
        .into_iter()
        .map(|[s, p, o, _]| [s, p, o])
        .collect()
}

/// All extensions of a solution by a pattern.
pub(crate) fn extend(solution: &Solution, pattern: &QuadPattern, quads: &[Quad]) -> Vec<Solution> {
    let mut slots = vec![&pattern.subject, &pattern.predicate, &pattern.object];
    let graph;
    if let GraphScope::NamedVariable { variable, .. } = &pattern.graph {
        graph = Slot::Variable(Arc::clone(variable));
        slots.push(&graph);
    }
    scope_quads(quads, &pattern.graph)
        .into_iter()
        .filter_map(|quad| {
            let mut extended = solution.clone();
            for (slot, value) in slots.iter().zip(quad) {
                if !unify(&mut extended, slot, value) {
                    return None;
                }
            }
            Some(extended)
        })
        .collect()
}

/// Binds a slot to a value, if it is not something else already.
pub(crate) fn unify(solution: &mut Solution, slot: &Slot, value: TermId) -> bool {
    match slot {
        Slot::Constant(term) => *term == value,
        Slot::Variable(name) => *solution.entry(name.to_string()).or_insert(value) == value,
    }
}
