//! From groups to physical plans.
//!
//! Every plan node gives solutions as columns of ids, in one partition; where the whole plan is much
//! work, its parts are spread over several at the end ([`parallel`]). A
//! [`Relation`] is such a plan with what the planner knows of it. A group is planned
//! in two parts: its items are ordered ([`expectations`], [`cardinality`], [`join_order`], [`sampling`], [`order_cache`]) and joined ([`items`]), runs of patterns becoming
//! one fused `PatternExec`; then its steps are put on top, one after the other
//! ([`optional_order`], [`optional`], [`exists`]). Where a group on the right side of a step is too much to compute
//! whole, it is *reduced* first: it starts from the distinct values that the left side has
//! for the shared variables ([`reduce`]).
//!
//! Only columns that something above needs are carried.

mod aggregate;
mod cardinality;
mod chain;
mod common;
mod complement;
mod correlate;
mod early;
mod exists;
mod expectations;
mod items;
mod join;
mod join_order;
mod modifiers;
mod operators;
mod optional;
mod optional_order;
mod order_cache;
mod overlap;
mod parallel;
mod plain;
mod prefixes;
mod ranges;
mod reduce;
mod sampling;
mod service;
mod sharpen;
mod skip;

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::empty::EmptyExec;
use datafusion_physical_plan::filter::FilterExec;
use orrery_operators::context::QueryContext;
use orrery_operators::expression::TermExpression;
use orrery_operators::rows::RowsExec;
use orrery_operators::service::ServiceOptions;
use spargebra::algebra::Expression;

use crate::algebra::{Group, Step, StepKind, Var, VarSet, VariableTable};
use crate::error::QueryError;
use crate::options::Tuning;
use crate::statistics::Estimator;

pub(crate) use order_cache::OrderCache;
pub use order_cache::OrderCounts;

pub(crate) type Result<T> = std::result::Result<T, QueryError>;

/// Nodes of one plan.
const NODES_MAX: usize = 20_000;
/// Nodes of one plan that stand above each other; what is beyond would be too deep to run.
const PLAN_DEPTH_MAX: usize = 2_000;

/// A plan and what is known of its solutions.
#[derive(Clone, Debug)]
pub(crate) struct Relation {
    pub(crate) plan: Arc<dyn ExecutionPlan>,
    /// The variable of each column.
    pub(crate) columns: Vec<Var>,
    /// Columns that are never null.
    pub(crate) certain: VarSet,
    /// Expected number of rows.
    pub(crate) rows: f64,
    /// Whether it is known to have no rows.
    pub(crate) is_empty: bool,
}

impl Relation {
    pub(crate) fn variables(&self) -> VarSet {
        VarSet::of(self.columns.iter().copied())
    }

    pub(crate) fn column(&self, var: Var) -> Option<usize> {
        self.columns.iter().position(|column| *column == var)
    }
}

/// The expected rows of plan nodes, by their address.
pub(crate) type Estimates = HashMap<usize, f64>;

/// The address under which a node's estimate is kept.
pub(crate) fn address(plan: &Arc<dyn ExecutionPlan>) -> usize {
    Arc::as_ptr(plan).cast::<()>() as usize
}

/// How many nodes stand above each other, at most; `known` has those of the nodes that were seen, for several may read one.
fn depth(plan: &Arc<dyn ExecutionPlan>, known: &mut HashMap<usize, usize>) -> usize {
    if let Some(depth) = known.get(&address(plan)) {
        return *depth;
    }
    let children = plan.children().into_iter();
    let below = children.map(|child| depth(child, known)).max();
    let depth = below.unwrap_or_default() + 1;
    known.insert(address(plan), depth);
    depth
}

/// Plans one query.
pub(crate) struct Planner<'s> {
    context: Arc<QueryContext>,
    estimator: Estimator<'s>,
    pub(crate) table: VariableTable,
    pub(crate) estimates: Estimates,
    /// Rows that [`Item::Seed`](crate::algebra::Item::Seed) stands for.
    seeds: Vec<Relation>,
    /// How many values variables of seeds are expected to have, by the number of the seed; as many as rows where it is not there.
    seed_values: HashMap<usize, Vec<(Var, f64)>>,
    nodes: usize,
    tuning: Tuning,
    /// How other endpoints are asked, if they are.
    service: Option<ServiceOptions>,
    /// Subqueries that the query has more than once; not looked for yet if `None`.
    common: Option<common::CommonSubqueries>,
    /// Whether it does not matter how often a solution of the group being planned comes.
    pub(crate) is_set: bool,
    /// Orders of earlier joins, if they are kept.
    orders: Option<Arc<OrderCache>>,
    /// Look-ups that sampling may still do.
    lookups_left: Cell<usize>,
}

impl<'s> Planner<'s> {
    pub(crate) fn new(
        context: Arc<QueryContext>,
        estimator: Estimator<'s>,
        table: VariableTable,
        tuning: Tuning,
    ) -> Self {
        Self {
            context,
            estimator,
            table,
            estimates: Estimates::new(),
            seeds: Vec::new(),
            seed_values: HashMap::new(),
            nodes: 0,
            tuning,
            service: None,
            common: None,
            is_set: false,
            orders: None,
            lookups_left: Cell::new(sampling::LOOKUPS_MAX),
        }
    }

    /// Lets `SERVICE` ask other endpoints.
    pub(crate) fn with_service(self, service: Option<ServiceOptions>) -> Self {
        Self { service, ..self }
    }

    /// Keeps the orders of joins, and uses those that are kept.
    pub(crate) fn with_orders(self, orders: &Arc<OrderCache>) -> Self {
        let orders = self.tuning.keeps_orders.then(|| Arc::clone(orders));
        Self { orders, ..self }
    }

    /// Plans a group: its solutions with the `needed` variables, as far as it binds them.
    ///
    /// With a `seed`, the group is joined to the seed's rows, and everything in it sees their
    /// columns. `fetch` says that no more rows will be read.
    pub(crate) fn group(
        &mut self,
        group: &Group,
        seed: Option<Relation>,
        needed: &VarSet,
        fetch: Option<usize>,
    ) -> Result<Relation> {
        self.find_common(group);
        let outside = seed.as_ref().map(Relation::variables).unwrap_or_default();
        let group = &*self.sharpened(group, &outside)?;
        let group = &*self.with_cheap_optionals_first(group)?;
        let mut needs = vec![needed.clone()];
        for step in group.steps.iter().rev() {
            let mut before = needs.last().cloned().unwrap_or_default();
            before.extend(&step.mentioned(&self.table));
            needs.push(before);
        }
        let below = needs.pop().unwrap_or_default();
        // Without a seed, which may have the variable already, a new value drops no row.
        let keeps_rows = |step: &Step| matches!(step.kind, StepKind::Bind { .. });
        let is_limited =
            group.steps.is_empty() || (seed.is_none() && group.steps.iter().all(keeps_rows));
        let fetch_below = fetch.filter(|_| is_limited);
        let was_set = self.is_set;
        self.is_set = was_set && !group.is_volatile();
        let relation = self.items(group, seed, &below, fetch_below);
        let relation = relation.and_then(|items| self.steps(group, items, needs, needed));
        self.is_set = was_set;
        relation
    }

    /// The steps of a group over its items; `needs` are the variables needed after each, the last one's first.
    fn steps(
        &mut self,
        group: &Group,
        items: Relation,
        mut needs: Vec<VarSet>,
        needed: &VarSet,
    ) -> Result<Relation> {
        let mut relation = items;
        for step in &group.steps {
            let after = needs.pop().unwrap_or_default();
            if self.says_nothing(step, &after) {
                continue;
            }
            relation = self.step(step, relation, &after)?;
            if relation.is_empty && self.tuning.rewrites {
                return self.nothing(&group.visible.intersection(needed));
            }
        }
        Ok(relation)
    }

    fn step(&mut self, step: &Step, left: Relation, needed: &VarSet) -> Result<Relation> {
        match &step.kind {
            StepKind::Optional {
                group,
                filters,
                guard,
            } => self.optional(left, group, filters, *guard, needed),
            StepKind::OptionalIf { group, conditions } => {
                self.optional_if(left, group, conditions, needed)
            }
            StepKind::Minus { group, substituted } => self.minus(left, group, substituted, needed),
            StepKind::Bind {
                variable,
                expression,
                is_certain,
            } => {
                let mut relation = self.bind(left, *variable, expression, needed)?;
                if *is_certain && relation.column(*variable).is_some() {
                    relation.certain.insert(*variable);
                }
                Ok(relation)
            }
            StepKind::Filter(expression) => self.filter(left, std::slice::from_ref(expression)),
            StepKind::Exists {
                group,
                filters,
                is_negated,
            } => self.exists(left, group, filters, *is_negated, needed),
            StepKind::Mark { variable, group } => self.mark(left, *variable, group, needed),
        }
    }

    /// Registers a node with its estimate.
    fn relation(
        &mut self,
        plan: Arc<dyn ExecutionPlan>,
        columns: Vec<Var>,
        certain: VarSet,
        rows: f64,
    ) -> Result<Relation> {
        self.context.patience().check()?;
        self.nodes += 1;
        if self.nodes > NODES_MAX {
            return Err(QueryError::unsupported(format!(
                "a query whose plan has more than {NODES_MAX} nodes"
            )));
        }
        debug_assert_eq!(plan.schema().fields().len(), columns.len());
        self.estimates.insert(address(&plan), rows);
        Ok(Relation {
            plan,
            columns,
            certain,
            rows,
            is_empty: false,
        })
    }

    /// No solution.
    fn nothing(&mut self, variables: &VarSet) -> Result<Relation> {
        let columns: Vec<Var> = variables.iter().collect();
        let names: Vec<Arc<str>> = self.names(&columns);
        let schema = orrery_operators::solution_schema(&names);
        let plan: Arc<dyn ExecutionPlan> = Arc::new(EmptyExec::new(schema));
        let mut relation = self.relation(plan, columns, variables.clone(), 0.0)?;
        relation.is_empty = true;
        Ok(relation)
    }

    /// One solution that binds nothing.
    fn unit(&mut self) -> Result<Relation> {
        let plan = RowsExec::single_empty_row()?;
        self.relation(plan, Vec::new(), VarSet::default(), 1.0)
    }

    /// Refuses a plan that would need more stack to run than there is.
    pub(crate) fn check_depth(&self, plan: &Arc<dyn ExecutionPlan>) -> Result<()> {
        if self.nodes <= PLAN_DEPTH_MAX || depth(plan, &mut HashMap::new()) <= PLAN_DEPTH_MAX {
            return Ok(());
        }
        Err(QueryError::unsupported(format!(
            "a query whose plan is more than {PLAN_DEPTH_MAX} nodes deep"
        )))
    }

    fn names(&self, variables: &[Var]) -> Vec<Arc<str>> {
        variables
            .iter()
            .map(|var| Arc::clone(self.table.name(*var)))
            .collect()
    }

    fn compile(&self, expression: &Expression, schema: &Schema) -> Result<TermExpression> {
        Ok(TermExpression::compile(expression, schema, &self.context)?)
    }

    /// Keeps the rows for which all conditions are true.
    fn filter(&mut self, input: Relation, conditions: &[Expression]) -> Result<Relation> {
        let mut relation = input;
        for condition in conditions {
            let predicate = self
                .compile(condition, &relation.plan.schema())?
                .into_filter();
            let plan = Arc::new(FilterExec::try_new(predicate, Arc::clone(&relation.plan))?);
            let rows = relation.rows * crate::statistics::selectivity(condition);
            relation = self.relation(plan, relation.columns, relation.certain, rows)?;
        }
        Ok(relation)
    }
}
