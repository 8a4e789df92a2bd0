//! The parallelizer, which partitions a plan over the cores.
//!
//! A plan is made for one partition; then the patterns in it that are much work get several, which
//! take pieces of the first step's rows from one queue (`orrery_operators::dealing::Spread`). What
//! stands above keeps the partitions as long as it can work on each by itself:
//!
//! ```text
//! GroupExec: Final                 one partition
//!   CoalescePartitionsExec         runs its input's partitions, each as a task
//!     GroupExec: Partial           N partitions, a table of groups for each
//!       HashJoinExec               N of the probe side; the build side is collected once
//!         PatternExec ...          N
//! ```
//!
//! A property path whose ends are both unknown walks from all nodes that it can begin at: the
//! partitions take blocks of them from one queue, if there are enough of them, however much stands
//! above (what a path gives is not known before).
//!
//! A top-k is one for each partition, and their results are merged; everything else takes one
//! partition again. What is made two nodes of (aggregations, sorts), and what is spread itself
//! (patterns, paths), is known here by its type. Every other node is asked: whether it reads each
//! partition by itself (`input_distribution_requirements`), and if not, whether rows may come to it
//! in any order (`benefits_from_input_partitioning`). One that ends after its first rows (`fetch`)
//! wants them in the same order each time.
//!
//! **What must not change.** Answers are the same sets of solutions. Where the order in which rows
//! come decides what comes out, the plan stays in one partition, so that an answer does not change
//! from one run to the next: under a `LIMIT` without `ORDER BY`, under `SAMPLE` and `GROUP_CONCAT`,
//! with `BNODE(label)` and other functions that give something new for each row. Rows that
//! `ORDER BY` leaves equal come in the order of their ids. Sums of integers and decimals are exact;
//! of `xsd:double` and `xsd:float` the last digits depend on the order of additions, which differs
//! from run to run (SPARQL defines none).
//!
//! **What it costs.** Plans below [`WORK_MIN`] rows of work stay as they are.

use std::sync::Arc;

use arrow::compute::SortOptions;
use datafusion_physical_expr::Distribution;
use datafusion_physical_expr_common::sort_expr::{LexOrdering, PhysicalSortExpr};
use datafusion_physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion_physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion_physical_plan::expressions::Column;
use datafusion_physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion_physical_plan::limit::GlobalLimitExec;
use datafusion_physical_plan::sorts::sort::SortExec;
use datafusion_physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion_physical_plan::{ChildrenPropertiesMode, ExecutionPlan, ReplaceChildrenOptions};
use hashbrown::HashMap;
use orrery_expressions::for_each_child;
use orrery_operators::aggregate::{GroupExec, grouped};
use orrery_operators::dealing::{Dealing, Spread};
use orrery_operators::nodes::SharedExec;
use orrery_operators::path::PathExec;
use orrery_operators::pattern::PatternExec;
use spargebra::algebra::Expression;

use crate::error::Result;
use crate::plan::expected_rows::identity;
use crate::plan::planner::Planner;

type Plan = Arc<dyn ExecutionPlan>;

/// Rows that a pattern and what stands above it handle, from which spreading pays: some
/// milliseconds of work.
const WORK_MIN: f64 = 200_000.0;
/// Nodes that a path is walked from, at most, from which spreading pays: a walk is some look-ups at
/// least, and may reach all nodes.
const STARTS_MIN: u64 = 5_000;
/// What a row costs whose text is looked at, in rows.
const TEXT_ROWS: f64 = 20.0;
/// Rows of a morsel in tests that ask for partitions.
const DEALT_ROWS: u64 = 2;

impl Planner<'_> {
    /// The plan with its large parts in several partitions; it gives one.
    pub(crate) fn parallel(&mut self, plan: Plan) -> Result<Plan> {
        let (partitions, dealing) = match self.tuning.partitions {
            Some(partitions) => (partitions, Dealing::Turns(DEALT_ROWS)),
            None => (self.context.partitions(), Dealing::Queue),
        };
        if partitions < 2 || self.context.depends_on_row_order() {
            return Ok(plan);
        }
        let mut readers = HashMap::new();
        count_readers(&plan, &mut readers);
        let spread = Spread {
            partitions,
            dealing,
        };
        let mut spreading = Spreading {
            planner: self,
            spread,
            readers,
        };
        let parallel = spreading.node(&plan, Above::ROOT)?;
        Ok(spreading.single(parallel))
    }
}

/// Counts how many nodes read each node.
fn count_readers(plan: &Plan, readers: &mut HashMap<usize, usize>) {
    let count = readers.entry(identity(plan)).or_default();
    *count += 1;
    if *count == 1 {
        for child in plan.children() {
            count_readers(child, readers);
        }
    }
}

/// What stands above a node.
#[derive(Clone, Copy)]
struct Above {
    /// Rows that nodes above handle on the same thread.
    work: f64,
    /// Whether the rows may come in any order.
    is_any_order: bool,
}

impl Above {
    const ROOT: Self = Self {
        work: 0.0,
        is_any_order: true,
    };

    /// The same with more work.
    fn and(self, work: f64) -> Self {
        Self {
            work: self.work + work,
            ..self
        }
    }
}

struct Spreading<'p, 's> {
    planner: &'p mut Planner<'s>,
    spread: Spread,
    readers: HashMap<usize, usize>,
}

impl Spreading<'_, '_> {
    /// The node in several partitions if that is right and pays; else as it is.
    fn node(&mut self, plan: &Plan, above: Above) -> Result<Plan> {
        // Each reader would have its own morsels.
        if self.readers.get(&identity(plan)).copied().unwrap_or(0) > 1 {
            return Ok(Arc::clone(plan));
        }
        // Kept for a second reader that did not come.
        if let Some(shared) = plan.downcast_ref::<SharedExec>() {
            return self.node(shared.input(), above);
        }
        let spread = self.changed(plan, above)?;
        if let Some(spread) = &spread {
            self.planner.estimates.carry(plan, spread);
        }
        Ok(spread.unwrap_or_else(|| Arc::clone(plan)))
    }

    /// What a node becomes, if it does not stay what it is.
    fn changed(&mut self, plan: &Plan, above: Above) -> Result<Option<Plan>> {
        if let Some(pattern) = plan.downcast_ref::<PatternExec>() {
            return self.pattern(plan, pattern, above);
        }
        if let Some(path) = plan.downcast_ref::<PathExec>()
            && plan.children().is_empty()
        {
            return self.path(path, above);
        }
        if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
            return self.aggregate(plan, aggregate, above);
        }
        if let Some(group) = plan.downcast_ref::<GroupExec>() {
            return self.aggregate(plan, group.aggregate(), above);
        }
        if let Some(sort) = plan.downcast_ref::<SortExec>() {
            return self.sort(sort);
        }
        if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
            return self.hash_join(plan, join, above);
        }
        if let Some(coalesce) = plan.downcast_ref::<CoalescePartitionsExec>() {
            return self.coalesce(plan, coalesce, above);
        }
        if plan.is::<GlobalLimitExec>() {
            // Which rows are the first ones is to be the same each time.
            let above = Above {
                work: 0.0,
                is_any_order: false,
            };
            return self.children(plan, above);
        }
        if takes_any_order(plan) {
            return self.children(plan, above.and(self.rows(plan)));
        }
        // Other nodes compute once and number their rows, or have nothing to read.
        Ok(None)
    }

    /// A node over what its children become, each in one partition if the node takes no more.
    fn children(&mut self, plan: &Plan, above: Above) -> Result<Option<Plan>> {
        let requirements = plan.input_distribution_requirements();
        let mut is_changed = false;
        let mut children = Vec::new();
        for (child, wanted) in plan
            .children()
            .into_iter()
            .zip(requirements.per_child_distributions())
        {
            let is_single = matches!(wanted, Distribution::SinglePartition);
            // What reads all rows in one partition does its own work, and all above it, there.
            let above = match is_single {
                true => Above { work: 0.0, ..above },
                false => above,
            };
            let mut new = self.node(child, above)?;
            is_changed |= !Arc::ptr_eq(&new, child);
            if is_single {
                new = self.single(new);
            }
            children.push(new);
        }
        if !is_changed {
            return Ok(None);
        }
        Ok(Some(over(plan, children)?))
    }

    fn pattern(
        &mut self,
        plan: &Plan,
        pattern: &PatternExec,
        above: Above,
    ) -> Result<Option<Plan>> {
        let work = work_of(pattern);
        if !plan.children().is_empty() {
            let is_any_order = above.is_any_order && pattern.specification().fetch.is_none();
            let above = Above {
                is_any_order,
                ..above.and(work)
            };
            return self.children(plan, above);
        }
        if !above.is_any_order {
            return Ok(None);
        }
        let is_forced = self.spread.dealing != Dealing::Queue;
        // The estimate first: it is there already.
        let may_pay = is_forced || above.work + work >= WORK_MIN / 4.0;
        let Some(rows) = may_pay
            .then(|| pattern.spreadable_rows())
            .transpose()?
            .flatten()
        else {
            return Ok(None);
        };
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let work = above.work + work.max(rows as f64 * work_of_a_row(pattern));
        if rows < 2 || !(is_forced || work >= WORK_MIN) {
            return Ok(None);
        }
        Ok(Some(pattern.spread(self.spread)?))
    }

    /// A path from everywhere. What it gives is not known; how many nodes it is walked from is, at
    /// most.
    fn path(&self, path: &PathExec, above: Above) -> Result<Option<Plan>> {
        if !above.is_any_order {
            return Ok(None);
        }
        let Some(starts) = path.spreadable_starts()? else {
            return Ok(None);
        };
        let is_forced = self.spread.dealing != Dealing::Queue;
        if !is_forced && starts < STARTS_MIN {
            return Ok(None);
        }
        Ok(Some(path.spread(self.spread)?))
    }

    /// One aggregation for each partition, whose states the last one merges. What keeps large
    /// states (`COUNT(DISTINCT ?x)`) is one aggregation over the rows of all partitions.
    fn aggregate(
        &mut self,
        plan: &Plan,
        aggregate: &AggregateExec,
        above: Above,
    ) -> Result<Option<Plan>> {
        let functions = aggregate.aggr_expr();
        let merges = functions
            .iter()
            .all(|function| orrery_operators::aggregate::is_order_free(function));
        let below = Above {
            work: self.rows(aggregate.input()),
            is_any_order: above.is_any_order && merges,
        };
        let input = self.node(aggregate.input(), below)?;
        if Arc::ptr_eq(&input, aggregate.input()) {
            return Ok(None);
        }
        // Merging large states would be the same work once more, and by one thread.
        let is_split = functions
            .iter()
            .all(|function| orrery_operators::aggregate::has_small_states(function));
        let is_split = is_split && *aggregate.mode() == AggregateMode::Single;
        if partitions(&input) == 1 || !is_split {
            let input = self.single(input);
            return Ok(Some(over(plan, vec![input])?));
        }
        let partial = AggregateExec::try_new(
            AggregateMode::Partial,
            aggregate.group_expr().clone(),
            functions.to_vec(),
            aggregate.filter_expr().to_vec(),
            input,
            aggregate.input_schema(),
        )?;
        let merged = self.single(grouped(partial));
        let last = AggregateExec::try_new(
            AggregateMode::Final,
            aggregate.group_expr().as_final(),
            functions.to_vec(),
            aggregate.filter_expr().to_vec(),
            merged,
            aggregate.input_schema(),
        )?;
        Ok(Some(grouped(last)))
    }

    /// A sort; under a limit one for each partition, merged. Rows that are equal by the keys are
    /// put in the order of their ids, because they come in another order each time.
    fn sort(&mut self, sort: &SortExec) -> Result<Option<Plan>> {
        let below = Above {
            work: self.rows(sort.input()),
            is_any_order: true,
        };
        let input = self.node(sort.input(), below)?;
        if Arc::ptr_eq(&input, sort.input()) {
            return Ok(None);
        }
        let mut keys: Vec<PhysicalSortExpr> = sort.expr().iter().cloned().collect();
        let schema = input.schema();
        keys.extend(schema.fields().iter().enumerate().map(|(at, field)| {
            let column = Arc::new(Column::new(field.name(), at));
            PhysicalSortExpr {
                expr: column,
                options: SortOptions::default(),
            }
        }));
        let Some(keys) = LexOrdering::new(keys) else {
            return Ok(None);
        };
        let Some(fetch) = sort.fetch() else {
            let input = self.single(input);
            return Ok(Some(Arc::new(SortExec::new(keys, input))));
        };
        let is_split = partitions(&input) > 1;
        let first = SortExec::new(keys.clone(), input)
            .with_preserve_partitioning(is_split)
            .with_fetch(Some(fetch));
        if !is_split {
            return Ok(Some(Arc::new(first)));
        }
        let merge = SortPreservingMergeExec::new(keys, Arc::new(first)).with_fetch(Some(fetch));
        Ok(Some(Arc::new(merge)))
    }

    /// The probe side keeps its partitions, the build side is collected into one table.
    fn hash_join(
        &mut self,
        plan: &Plan,
        join: &HashJoinExec,
        above: Above,
    ) -> Result<Option<Plan>> {
        if *join.partition_mode() != PartitionMode::CollectLeft {
            return Ok(None);
        }
        let build_above = Above {
            work: self.rows(join.left()),
            is_any_order: above.is_any_order,
        };
        let probe_above = above.and(self.rows(plan));
        let build = self.node(join.left(), build_above)?;
        let probe = self.node(join.right(), probe_above)?;
        if Arc::ptr_eq(&build, join.left()) && Arc::ptr_eq(&probe, join.right()) {
            return Ok(None);
        }
        let children = vec![self.single(build), probe];
        Ok(Some(over(plan, children)?))
    }

    /// The branches of a union are partitions already; what reads them may take them as they are.
    fn coalesce(
        &mut self,
        plan: &Plan,
        coalesce: &CoalescePartitionsExec,
        above: Above,
    ) -> Result<Option<Plan>> {
        let input = self.node(coalesce.input(), above)?;
        if Arc::ptr_eq(&input, coalesce.input()) {
            return Ok(None);
        }
        let is_few = partitions(&input) <= 2 * self.spread.partitions;
        if is_few && above.is_any_order && coalesce.fetch().is_none() {
            return Ok(Some(input));
        }
        Ok(Some(over(plan, vec![input])?))
    }

    /// The plan in one partition.
    fn single(&mut self, plan: Plan) -> Plan {
        if partitions(&plan) == 1 {
            return plan;
        }
        let single: Plan = Arc::new(CoalescePartitionsExec::new(Arc::clone(&plan)));
        self.planner.estimates.carry(&plan, &single);
        single
    }

    /// Expected rows of a node of the plan.
    fn rows(&self, plan: &Plan) -> f64 {
        self.planner.estimates.get(plan).unwrap_or(0.0)
    }
}

/// The same node over other children.
fn over(plan: &Plan, children: Vec<Plan>) -> Result<Plan> {
    let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    Ok(Arc::clone(plan).replace_children(children, options)?)
}

/// Whether a node gives the same solutions in whatever order it gets rows, as it says itself: it
/// works on each partition, or is better off with several that are merged for it, and does not end
/// after the first rows that it gives.
fn takes_any_order(plan: &Plan) -> bool {
    if plan.fetch().is_some() {
        return false;
    }
    let requirements = plan.input_distribution_requirements();
    let wanted = requirements.per_child_distributions();
    let mut inputs = wanted.zip(plan.benefits_from_input_partitioning());
    inputs.all(|(wanted, benefits)| benefits || !matches!(wanted, Distribution::SinglePartition))
}

fn partitions(plan: &Plan) -> usize {
    plan.properties().partitioning.partition_count()
}

/// The rows that a pattern handles, as far as estimated.
fn work_of(pattern: &PatternExec) -> f64 {
    let steps = pattern.specification().steps.iter();
    let rows: f64 = steps.filter_map(|step| step.estimated_rows).sum();
    rows * work_of_a_row(pattern)
}

/// What the conditions of a pattern make of a row.
fn work_of_a_row(pattern: &PatternExec) -> f64 {
    let filters = &pattern.specification().filters;
    match filters.iter().any(reads_text) {
        true => TEXT_ROWS,
        false => 1.0,
    }
}

fn reads_text(expression: &Expression) -> bool {
    let mut found = matches!(expression, Expression::FunctionCall(..));
    for_each_child(expression, &mut |child| found |= reads_text(child));
    found
}

#[cfg(test)]
mod tests {
    use datafusion_physical_plan::limit::LocalLimitExec;
    use datafusion_physical_plan::union::UnionExec;
    use orrery_operators::nodes::{AppendExec, CandidatesExec, DistinctExec, NumberedExec};
    use orrery_operators::rows::RowsExec;

    use super::*;

    #[test]
    fn nodes_say_themselves_whether_rows_may_come_in_any_order() {
        let leaf = || {
            let rows = [vec![None], vec![None]];
            RowsExec::try_new(&[Arc::from("x")], &rows).unwrap()
        };
        let distinct: Plan = Arc::new(DistinctExec::new(leaf()));
        let candidates: Plan = Arc::new(CandidatesExec::new(leaf(), 0, false, 1));
        let union = UnionExec::try_new(vec![leaf(), leaf()]).unwrap();
        for plan in [&distinct, &candidates, &union] {
            assert!(takes_any_order(plan), "{}", plan.name());
        }
        let numbered: Plan = Arc::new(NumberedExec::new(leaf(), "row"));
        let append: Plan = Arc::new(AppendExec::new(leaf(), [leaf()]));
        let limit: Plan = Arc::new(GlobalLimitExec::new(leaf(), 0, Some(1)));
        let first: Plan = Arc::new(LocalLimitExec::new(leaf(), 1));
        for plan in [&numbered, &append, &limit, &first] {
            assert!(!takes_any_order(plan), "{}", plan.name());
        }
    }

    #[test]
    fn a_function_makes_a_row_dearer() {
        let of = |filter: &str| {
            let query = format!("SELECT * {{ ?s ?p ?o FILTER({filter}) }}");
            match spargebra::SparqlParser::new().parse_query(&query).unwrap() {
                spargebra::Query::Select { pattern, .. } => match pattern {
                    spargebra::algebra::GraphPattern::Project { inner, .. } => match *inner {
                        spargebra::algebra::GraphPattern::Filter { expr, .. } => reads_text(&expr),
                        other => panic!("{other}"),
                    },
                    other => panic!("{other}"),
                },
                other => panic!("{other}"),
            }
        };
        assert!(of("?o > 1 && REGEX(STR(?s), \"a\")"));
        assert!(!of("?o > 1 && ?s != ?o"));
    }
}
