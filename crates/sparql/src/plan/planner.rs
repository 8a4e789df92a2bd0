//! The planner's shared state: query context, estimates, bounds.

use std::cell::Cell;
use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::empty::EmptyExec;
use datafusion_physical_plan::filter::FilterExec;
use hashbrown::HashMap;
use orrery_expressions::TermExpression;
use orrery_operators::context::QueryContext;
use orrery_operators::pattern::{PatternExec, PatternSpecification};
use orrery_operators::rows::RowsExec;
use orrery_operators::service::ServiceOptions;
use spargebra::algebra::Expression;

use crate::algebra::expression::is_volatile;
use crate::algebra::{Var, VarSet, VariableTable};
use crate::error::{QueryError, Result};
use crate::options::Tuning;
use crate::plan::expected_rows::{NodeEstimates, identity};
use crate::plan::order::order_cache::OrderCache;
use crate::plan::relation::Relation;
use crate::plan::rewrite::repeated::RepeatedSubqueries;
use crate::plan::rewrite::text_tests::GramSearches;
use crate::statistics::{Counts, Estimator};

/// Nodes of one plan.
const NODES_MAX: usize = 20_000;
/// Nodes of one plan that stand above each other; what is beyond would be too deep to run.
const PLAN_DEPTH_MAX: usize = 2_000;
/// Look-ups of all samples of one query: half a millisecond.
pub(in crate::plan) const SAMPLED_LOOKUPS_MAX: usize = 300;

/// How many nodes stand above each other, at most; `known` has those of the nodes that were seen,
/// for several may read one.
fn depth(plan: &Arc<dyn ExecutionPlan>, known: &mut HashMap<usize, usize>) -> usize {
    if let Some(depth) = known.get(&identity(plan)) {
        return *depth;
    }
    let children = plan.children().into_iter();
    let below = children.map(|child| depth(child, known)).max();
    let depth = below.unwrap_or_default() + 1;
    known.insert(identity(plan), depth);
    depth
}

/// Plans one query.
pub(crate) struct Planner<'s> {
    pub(in crate::plan) context: Arc<QueryContext>,
    pub(in crate::plan) estimator: Estimator<'s>,
    pub(crate) table: VariableTable,
    pub(crate) estimates: NodeEstimates,
    /// Rows that [`Item::Seed`](crate::algebra::Item::Seed) stands for.
    pub(in crate::plan) seeds: Vec<Relation>,
    /// How many values variables of seeds are expected to have, by the number of the seed; as many
    /// as rows where it is not there.
    pub(in crate::plan) seed_values: HashMap<usize, Vec<(Var, f64)>>,
    pub(in crate::plan) nodes: usize,
    /// Places where joins publish keys.
    pub(in crate::plan) found_places: u32,
    pub(in crate::plan) tuning: Tuning,
    /// How other endpoints are asked, if they are.
    pub(in crate::plan) service: Option<ServiceOptions>,
    /// Subqueries that the query has more than once; not looked for yet if `None`.
    pub(in crate::plan) repeated: Option<RepeatedSubqueries>,
    /// Whether it does not matter how often a solution of the group being planned comes.
    pub(crate) is_set: bool,
    /// How many rows of the group being planned will be read; all if `None`.
    pub(in crate::plan) rows_asked: Option<usize>,
    /// Orders of earlier joins, if they are kept.
    pub(in crate::plan) orders: Option<Arc<OrderCache>>,
    /// What was looked up in an index of trigrams.
    pub(in crate::plan) grams: GramSearches,
    /// Look-ups that sampling may still do.
    pub(in crate::plan) lookups_left: Cell<usize>,
    /// Whether what the index of places has found, or has not yet, decided something: that is of
    /// one state, and of who asks.
    pub(crate) asked_places: Cell<bool>,
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
            estimates: NodeEstimates::default(),
            seeds: Vec::new(),
            seed_values: HashMap::new(),
            nodes: 0,
            found_places: 0,
            tuning,
            service: None,
            repeated: None,
            is_set: false,
            rows_asked: None,
            orders: None,
            grams: GramSearches::default(),
            lookups_left: Cell::new(SAMPLED_LOOKUPS_MAX),
            asked_places: Cell::new(false),
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

    /// What was counted for the plan, if all of it is known by constants, and nothing was looked up
    /// by texts.
    pub(crate) fn counts(&self) -> Option<Counts> {
        if self.grams.are_possible() {
            return None;
        }
        let counts = self.estimator.counts()?;
        Some(Counts {
            are_of_commit: counts.are_of_commit || self.context.is_bound_to_commit(),
            ..counts
        })
    }

    /// Registers a node with its estimate.
    pub(in crate::plan) fn relation(
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
        self.estimates.set(&plan, rows);
        Ok(Relation {
            plan,
            columns,
            certain,
            rows,
            is_empty: false,
        })
    }

    /// No solution.
    pub(in crate::plan) fn nothing(&mut self, variables: &VarSet) -> Result<Relation> {
        let columns: Vec<Var> = variables.iter().collect();
        let names: Vec<Arc<str>> = self.names(&columns);
        let schema = orrery_operators::solution_schema(&names);
        let plan: Arc<dyn ExecutionPlan> = Arc::new(EmptyExec::new(schema));
        let mut relation = self.relation(plan, columns, variables.clone(), 0.0)?;
        relation.is_empty = true;
        Ok(relation)
    }

    /// One solution that binds nothing.
    pub(in crate::plan) fn unit(&mut self) -> Result<Relation> {
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

    pub(in crate::plan) fn names(&self, variables: &[Var]) -> Vec<Arc<str>> {
        variables
            .iter()
            .map(|var| Arc::clone(self.table.name(*var)))
            .collect()
    }

    pub(in crate::plan) fn compile(
        &self,
        expression: &Expression,
        schema: &Schema,
    ) -> Result<TermExpression> {
        Ok(TermExpression::compile(
            expression,
            schema,
            self.context.expressions(),
        )?)
    }

    /// The node of a pattern. It is compiled only when the plan is finished, so whether its filters
    /// depend on the order of rows is noted here, for those who spread the plan before.
    pub(in crate::plan) fn pattern_node(
        &self,
        input: Option<Arc<dyn ExecutionPlan>>,
        specification: PatternSpecification,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if specification.filters.iter().any(is_volatile) {
            self.context.note_volatile();
        }
        let context = Arc::clone(&self.context);
        Ok(PatternExec::try_new(context, input, specification)?)
    }

    /// Keeps the rows for which all conditions are true.
    pub(in crate::plan) fn filter(
        &mut self,
        input: Relation,
        conditions: &[Expression],
    ) -> Result<Relation> {
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
