//! Construction of edge weight tables, and their incremental update.
//!
//! The plans are those of any query, over the view of the process. They run on a thread of their
//! own, because a query that is being planned must not wait in its runtime. The query waits for the
//! update of a table, and for the table of a small database; the table of a large one is made in
//! the background, while queries go on without it.

use std::sync::Arc;
use std::time::Duration;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::UInt64Type;
use datafusion_execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion_physical_plan::ExecutionPlan;
use futures::StreamExt;
use hashbrown::{HashMap, HashSet};
use orrery_operators::context::{ContextOptions, QueryContext};
use orrery_operators::weights::{Weight, WeightTable};
use orrery_runtime::Patience;
use orrery_storage::ReadView;
use orrery_term::{TermId, TermKind};

use super::affected::{has_followed_steps, is_followed, taking_part};
use super::definition::EdgeWeight;
use super::kept::{Known, TableOfState};
use crate::algebra::{
    Dataset, Group, Item, Modifier, Normaliser, Scope, Values, Var, VarSet, weighed,
};
use crate::dataset::named_graphs;
use crate::engine::Engine;
use crate::error::{QueryError, Result};
use crate::options::{QueryOptions, Tuning};
use crate::plan::{Planner, compile_patterns};
use crate::statistics::Estimator;

/// Quads of a database whose tables are waited for.
const QUADS_AT_ONCE_MAX: u64 = 50_000;
/// Pairs that are computed anew one by one, beside a part of all.
const PAIRS_MIN: usize = 1_000;
/// A table with fewer pairs for each that is to be computed anew is made as a whole.
const PAIRS_PER_CHANGE: usize = 4;
/// How long making a table may take: in the background, and where it is waited for.
const WHOLE_TIME_MAX: Duration = Duration::from_secs(3_600);
const STEP_TIME_MAX: Duration = Duration::from_secs(5);
/// As much as what is planned on the threads of a runtime.
const STACK_BYTES: usize = 8 << 20;
/// What a pair takes while a table is made.
const PAIR_BYTES: usize = 3 * size_of::<(Pair, Weight)>();

type Pair = [u64; 2];

/// The weights of a state as a table, if they are in memory or can be had soon; else the definition
/// says what they are.
pub(crate) fn table(
    engine: &Engine,
    view: &Arc<ReadView>,
    weight: &EdgeWeight,
    scope: &Scope,
    limit: Option<Duration>,
) -> Option<Arc<WeightTable>> {
    let snapshot = view.snapshot();
    let key = key(weight, scope)?;
    let sees_all = view.scope().graphs().is_none();
    if !sees_all || !weight.is_steady {
        return None;
    }
    let state = snapshot.committed()?;
    let waited = limit.map_or(STEP_TIME_MAX, |limit| limit.min(STEP_TIME_MAX));
    let (tables, adjacencies) = (engine.weights(), engine.runtime().adjacencies());
    match tables.look(&key, &state, adjacencies.now()) {
        Known::Here(table) => return Some(table),
        Known::Behind(earlier) => {
            let work = Work::of(engine, view, weight, scope, waited);
            let brought = on_own_thread(|| block_on(work.later(&earlier)));
            match brought {
                Ok(Some(table)) => {
                    let table = Arc::new(table);
                    let of_state = (Arc::clone(snapshot), Arc::clone(&table));
                    tables.keep(&key, of_state, adjacencies);
                    return Some(table);
                }
                // Who has less time leaves it to others.
                Err(_) if waited < STEP_TIME_MAX => return None,
                Ok(None) | Err(_) => tables.forget(&key),
            }
        }
        Known::Nothing => {}
    }
    // Nobody asks for old states so often that a table would pay.
    let is_newest = engine.database().snapshot().committed().as_ref() == Some(&state);
    if !is_newest || !tables.begins(&key, &state) {
        return None;
    }
    if view.quad_count() <= QUADS_AT_ONCE_MAX {
        let work = Work::of(engine, view, weight, scope, waited);
        let made = on_own_thread(|| block_on(work.whole()));
        if made.is_err() && waited < STEP_TIME_MAX {
            tables.reopens(&key);
        }
        let table = Arc::new(made.ok().flatten()?);
        let of_state = (Arc::clone(snapshot), Arc::clone(&table));
        tables.keep(&key, of_state, adjacencies);
        return Some(table);
    }
    let (engine, view) = (engine.beside(), Arc::clone(view));
    let (weight, scope, of) = (weight.clone(), scope.clone(), Arc::clone(&key));
    let workers = Arc::clone(engine.runtime().workers());
    let begun = Arc::clone(adjacencies).in_background(&workers, move || {
        let work = Work::of(&engine, &view, &weight, &scope, WHOLE_TIME_MAX);
        let made = on_own_thread(|| block_on(work.whole()));
        let newest = engine.database().snapshot();
        // Ids are others after a compaction or a load.
        if let Ok(Some(table)) = made
            && newest.base_name() == view.snapshot().base_name()
        {
            let of_state = (Arc::clone(view.snapshot()), Arc::new(table));
            engine
                .weights()
                .keep(&of, of_state, engine.runtime().adjacencies());
        }
    });
    if !begun {
        tables.reopens(&key);
    }
    None
}

/// What tells tables apart: the same definition gives others where the default graph is all graphs.
fn key(weight: &EdgeWeight, scope: &Scope) -> Option<Arc<str>> {
    match scope {
        Scope::Default => Some(Arc::clone(&weight.text)),
        // No definition begins so.
        Scope::AllUnion => Some(format!(") {}", weight.text).into()),
        Scope::Union(_) | Scope::Named(_) | Scope::NamedVariable { .. } => None,
    }
}

fn on_own_thread<T: Send>(work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("edge-weights".to_owned())
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, work)
            .map_err(|error| QueryError::internal(format!("no thread: {error}")))?;
        let panicked = || Err(QueryError::internal("computing edge weights panicked"));
        thread.join().unwrap_or_else(|_| panicked())
    })
}

fn block_on<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .map_err(|error| QueryError::internal(format!("no runtime: {error}")))?;
    runtime.block_on(future)
}

/// The weights of one state.
struct Work<'w> {
    engine: &'w Engine,
    view: &'w Arc<ReadView>,
    weight: &'w EdgeWeight,
    scope: &'w Scope,
    /// How long a plan may run.
    limit: Duration,
}

/// A plan that is run once.
struct Planned {
    plan: Arc<dyn ExecutionPlan>,
    has_own_task: bool,
    context: Arc<QueryContext>,
    columns: Vec<usize>,
}

/// Weights by their pairs.
type Weights = HashMap<Pair, Weight>;

impl<'w> Work<'w> {
    fn of(
        engine: &'w Engine,
        view: &'w Arc<ReadView>,
        weight: &'w EdgeWeight,
        scope: &'w Scope,
        limit: Duration,
    ) -> Self {
        Self {
            engine,
            view,
            weight,
            scope,
            limit,
        }
    }

    /// The table from the beginning. `None` where it cannot be one.
    async fn whole(&self) -> Result<Option<WeightTable>> {
        let planned = self.planned(|group, columns| Some((group, columns.to_vec())))?;
        let Some(planned) = planned else {
            return Ok(None);
        };
        let weights = self.weights(&planned).await?;
        Ok(weights.and_then(|weights| WeightTable::of(weights.into_iter().collect())))
    }

    /// The table of this state from that of an earlier one. `None` where it has to be made as a
    /// whole.
    async fn later(&self, (earlier, table): &TableOfState) -> Result<Option<WeightTable>> {
        let Some(changes) = self.view.snapshot().quads_changed_since(earlier)? else {
            return Ok(None);
        };
        let changed = |is_insertion| {
            let changes = changes.iter().filter(|it| it.is_insertion == is_insertion);
            let quads = changes.map(|it| it.row.map(TermId::from_bits));
            quads.collect::<Vec<_>>()
        };
        let before = ReadView::of_process(Arc::clone(earlier));
        let mut pairs = HashSet::new();
        let pairs_max = PAIRS_MIN.max(table.len() / PAIRS_PER_CHANGE);
        for (view, quads) in [(self.view, changed(true)), (&before, changed(false))] {
            let of_state = Work { view, ..*self };
            match of_state.affected(&quads, pairs_max).await? {
                Some(found) => pairs.extend(found),
                None => return Ok(None),
            }
        }
        if pairs.is_empty() {
            return Ok(Some(WeightTable::clone(table)));
        }
        if pairs.len() > pairs_max {
            return Ok(None);
        }
        let planned = self.planned(|mut group, columns| {
            let rows = pairs
                .iter()
                .map(|pair| pair.map(|id| Some(TermId::from_bits(id))));
            let of_pairs = Item::Values(Values {
                variables: columns[..2].to_vec(),
                rows: rows.map(Vec::from).collect(),
            });
            matched(&mut group, columns)?.push(of_pairs);
            Some((group, columns.to_vec()))
        })?;
        let Some(planned) = planned else {
            return Ok(None);
        };
        let Some(mut weights) = self.weights(&planned).await? else {
            return Ok(None);
        };
        let changes = pairs.into_iter().map(|pair| (pair, weights.remove(&pair)));
        Ok(table.with(changes))
    }

    /// The pairs of the solutions that quads take part in. `None` if the definition is not followed
    /// so, or they are more than so many.
    async fn affected(
        &self,
        quads: &[[TermId; 4]],
        pairs_max: usize,
    ) -> Result<Option<HashSet<Pair>>> {
        let mut pairs = HashSet::new();
        let mut is_nothing = false;
        let planned = self.planned(|mut group, columns| {
            let matched = matched(&mut group, columns)?;
            let parts = taking_part(matched, quads)?;
            is_nothing = parts.is_empty();
            let union = Group::of(Item::Union(parts));
            (!is_nothing).then_some((union, columns[..2].to_vec()))
        })?;
        let Some(planned) = planned else {
            return Ok(is_nothing.then_some(pairs));
        };
        let is_known = self
            .run(&planned, |row| {
                let [start, end] = [row[0], row[1]];
                // A solution without an end is none of a pair.
                if start != u64::MAX && end != u64::MAX {
                    pairs.insert([start, end]);
                }
                pairs.len() <= pairs_max && are_stored([start, end])
            })
            .await?;
        Ok(is_known.then_some(pairs))
    }

    /// What a plan gives. `None` where an end is a term that no quad can have, or a pair comes
    /// twice.
    async fn weights(&self, planned: &Planned) -> Result<Option<Weights>> {
        let mut weights = Weights::new();
        let pool = self.engine.memory_pool();
        let reservation = MemoryConsumer::new("edge weights").register(pool);
        let mut failed = None;
        let is_known = self
            .run(planned, |row| {
                let [start, end, weight] = [row[0], row[1], row[2]];
                if [start, end, weight].contains(&u64::MAX) {
                    return true;
                }
                let weight = counted(&mut weights, &reservation)
                    .and_then(|()| weight_of(&planned.context, weight));
                match weight {
                    // A pair that comes twice has no one weight: a table cannot say what the
                    // definition gives.
                    Ok(weight) => {
                        let is_new = weights.insert([start, end], weight).is_none();
                        is_new && are_stored([start, end])
                    }
                    Err(error) => {
                        failed = Some(error);
                        false
                    }
                }
            })
            .await?;
        match failed {
            Some(error) => Err(error),
            None => Ok(is_known.then_some(weights)),
        }
    }

    /// Runs a plan, and gives each row out until one is not wanted. Whether all were.
    async fn run(&self, planned: &Planned, mut each: impl FnMut(&[u64]) -> bool) -> Result<bool> {
        let options = QueryOptions {
            timeout: Some(self.limit),
            ..QueryOptions::of_process()
        };
        let mut batches = self
            .engine
            .run(
                (&planned.plan, &planned.context),
                planned.has_own_task,
                &options,
            )
            .await?;
        let mut row = vec![0; planned.columns.len()];
        while let Some(batch) = batches.next().await {
            let batch = batch?;
            for at in 0..batch.num_rows() {
                for (value, &column) in row.iter_mut().zip(&planned.columns) {
                    *value = value_of(&batch, column, at);
                }
                if !each(&row) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Plans what is made of the definition's group and its columns. `None` if nothing is.
    fn planned(
        &self,
        made: impl FnOnce(Group, [Var; 3]) -> Option<(Group, Vec<Var>)>,
    ) -> Result<Option<Planned>> {
        let engine = self.engine;
        let patience = Arc::new(Patience::new(Some(self.limit), None));
        let options: ContextOptions = engine.context_options(patience, None);
        let context = QueryContext::new(Arc::clone(self.view), options)?;
        let dataset = Dataset {
            default: self.scope.clone(),
            named: None,
        };
        let named_graphs = |most| named_graphs(self.view, most);
        let tuning = Tuning::default();
        let mut normaliser = Normaliser::new(&context, &dataset, &named_graphs, tuning);
        normaliser.is_in_definition = true;
        let group = normaliser.query(&weighed(self.weight))?;
        let columns = self.weight.columns.each_ref();
        let columns = columns.map(|variable| normaliser.variable(variable));
        if normaliser.has_texts {
            return Ok(None);
        }
        let Some((group, wanted)) = made(group, columns) else {
            return Ok(None);
        };
        let estimator = Estimator::new(self.view);
        let table = normaliser.table;
        let mut planner = Planner::new(Arc::clone(&context), estimator, table, tuning);
        planner.is_set = wanted.len() == 2;
        let needed = VarSet::of(wanted.iter().copied());
        let relation = planner.group(&group, None, &needed, None)?;
        planner.check_depth(&relation.plan)?;
        let has_own_task = compile_patterns(relation.plan.as_ref())?;
        context.patience().end_planning();
        let places = wanted.iter().map(|var| relation.column(*var));
        // A column that is not there is one that nothing binds.
        let Some(columns) = places.collect::<Option<Vec<usize>>>() else {
            return Ok(None);
        };
        Ok(Some(Planned {
            plan: relation.plan,
            has_own_task,
            context,
            columns,
        }))
    }
}

/// The group whose solutions are aggregated, if it is followed by its quads and surely binds both
/// ends.
fn matched(group: &mut Group, [start, end, _]: [Var; 3]) -> Option<&mut Group> {
    let mut group = group;
    loop {
        let is_plain_around = has_followed_steps(group);
        let [Item::Derived(derived)] = group.items.as_mut_slice() else {
            return None;
        };
        // What is around the aggregate may only compute with what it gives.
        if !is_plain_around {
            return None;
        }
        let is_aggregate =
            matches!(&derived.modifier, Modifier::Aggregate { keys, .. } if *keys == [start, end]);
        if !is_aggregate && !matches!(derived.modifier, Modifier::Project(_)) {
            return None;
        }
        group = &mut derived.inner;
        if is_aggregate {
            let ends = VarSet::of([start, end]);
            let is_sound = ends.is_subset(&group.items_certain) && is_followed(group);
            return is_sound.then_some(group);
        }
    }
}

fn value_of(batch: &RecordBatch, column: usize, row: usize) -> u64 {
    match batch.column(column).as_primitive_opt::<UInt64Type>() {
        Some(values) if values.is_valid(row) => values.value(row),
        _ => u64::MAX,
    }
}

/// Whether ids are the same in all queries.
fn are_stored(ids: [u64; 2]) -> bool {
    let is_own = |id: u64| id != u64::MAX && TermId::from_bits(id).kind() == TermKind::QueryLocal;
    !ids.into_iter().any(is_own)
}

fn weight_of(context: &QueryContext, bits: u64) -> Result<Weight> {
    let id = TermId::from_bits(bits);
    Ok(match id.kind() {
        TermKind::QueryLocal => Weight::Own(context.term(id)?),
        _ => Weight::Id(id),
    })
}

/// Counts the memory of one more.
fn counted(weights: &mut Weights, reservation: &MemoryReservation) -> Result<()> {
    if weights.len() == weights.capacity() {
        let capacity = (2 * weights.len()).max(64);
        let held = reservation.try_resize(2 * capacity * PAIR_BYTES);
        held.map_err(|error| QueryError::from_datafusion(error, 0))?;
        weights.reserve(capacity - weights.len());
    }
    Ok(())
}
