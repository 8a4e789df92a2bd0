//! The nodes that a cached plan may have.

use std::fmt;
use std::sync::Arc;

use datafusion_common::{Result as EngineResult, internal_err};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_expr_common::sort_expr::{LexOrdering, PhysicalSortExpr};
use datafusion_physical_plan::aggregates::AggregateExec;
use datafusion_physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion_physical_plan::empty::EmptyExec;
use datafusion_physical_plan::filter::FilterExec;
use datafusion_physical_plan::limit::GlobalLimitExec;
use datafusion_physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion_physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion_physical_plan::sorts::sort::SortExec;
use datafusion_physical_plan::union::UnionExec;
use datafusion_physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, InputOrderMode,
    PhysicalExpr, PlanProperties, ReplaceChildrenOptions,
};
use orrery_expressions::KeptExpression;

use super::parameters::{
    Bindings, Parameter, ParameterEnds, PassingIds, has_parameter, has_stray_term, replace,
};
use super::pattern::KeptPattern;
use crate::aggregate::GroupExec;
use crate::algorithms::{AlgorithmExec, AlgorithmSpecification};
use crate::context::QueryContext;
use crate::error::Result;
use crate::join::{JoinSpecification, SolutionJoinExec};
use crate::nodes::{
    AppendExec, CandidatesExec, DistinctExec, LimitOfEachExec, OrderExec, SharedExec,
};
use crate::path::{PathExec, PathSpecification};
use crate::pattern::{ObjectRanges, PatternExec};
use crate::rows::RowsExec;
use crate::search::{FrontierExec, SearchExec, SearchInputs, SearchSpecification};
use crate::solutions::{plan_properties, schema_variables};
use orrery_plan_node::node_methods;

type Plan = Arc<dyn ExecutionPlan>;

/// A node without its query.
#[derive(Debug)]
pub(super) enum KeptNode {
    Pattern {
        pattern: Box<KeptPattern>,
        input: Option<Box<KeptNode>>,
    },
    SolutionJoin {
        specification: JoinSpecification,
        sides: Box<[KeptNode; 2]>,
    },
    Filter {
        predicate: KeptExpression,
        input: Box<KeptNode>,
    },
    Projection {
        columns: Vec<(KeptExpression, String)>,
        input: Box<KeptNode>,
    },
    Sort {
        /// Each key with what has to be computed for it.
        keys: Vec<(KeptExpression, arrow::compute::SortOptions)>,
        fetch: Option<usize>,
        properties: Arc<PlanProperties>,
        input: Box<KeptNode>,
    },
    Path {
        specification: Box<PathSpecification>,
        ends: ParameterEnds,
        input: Option<Box<KeptNode>>,
    },
    Search {
        specification: Box<SearchSpecification>,
        ends: ParameterEnds,
        /// Whether the first of the inputs binds ends.
        has_input: bool,
        inputs: Vec<KeptNode>,
    },
    /// The leaf of a plan of edges, and the variable that it binds.
    Frontier(Arc<str>),
    Algorithm {
        specification: Box<AlgorithmSpecification>,
        edges: Box<KeptNode>,
    },
    /// What several nodes read, where it is met first.
    Shared(Box<KeptNode>),
    /// The same where it is met again, by its place among those that are shared.
    SharedAgain(usize),
    /// A `RowsExec`.
    Rows(Plan),
    /// A node that holds nothing of a query, over stand-ins.
    Plain { node: Plan, inputs: Vec<KeptNode> },
}

/// What a plan is kept with.
pub(super) struct Keeping<'k, 'p> {
    pub(super) parameters: &'k [Parameter],
    pub(super) passing_ids: &'k mut PassingIds<'p>,
    pub(super) patterns: usize,
    /// Where the relations are in memory that several nodes read, in the order in which they are
    /// made again.
    pub(super) shared: Vec<*const ()>,
}

impl Keeping<'_, '_> {
    pub(super) fn node(&mut self, plan: &Plan, depth: usize) -> Option<KeptNode> {
        let depth = depth.checked_sub(1)?;
        // The inputs of a union come side by side; more than one partition has nothing else that is
        // kept.
        let has_one_partition = |plan: &Plan| plan.properties().partitioning.partition_count() == 1;
        let is_union = plan.is::<UnionExec>() && plan.children().into_iter().all(has_one_partition);
        if !is_union && !has_one_partition(plan) {
            return None;
        }
        let place = Arc::as_ptr(plan).cast::<()>();
        if let Some(known) = self.shared.iter().position(|shared| *shared == place) {
            return Some(KeptNode::SharedAgain(known));
        }
        let children = plan.children();
        let mut inputs = Vec::with_capacity(children.len());
        for child in children {
            inputs.push(self.node(child, depth)?);
        }
        if let Some(pattern) = plan.downcast_ref::<PatternExec>() {
            let kept = KeptPattern::of(
                pattern,
                self.parameters,
                self.passing_ids,
                &mut self.patterns,
            );
            return Some(KeptNode::Pattern {
                pattern: Box::new(kept?),
                input: inputs.pop().map(Box::new),
            });
        }
        if let Some(join) = plan.downcast_ref::<SolutionJoinExec>() {
            let mut filters = join.specification().filters.iter();
            if filters.any(|it| has_stray_term(it, self.parameters)) {
                return None;
            }
            return Some(KeptNode::SolutionJoin {
                specification: join.specification().clone(),
                sides: Box::new(inputs.try_into().ok()?),
            });
        }
        if let Some(rows) = plan.downcast_ref::<RowsExec>() {
            return Some(KeptNode::Rows(rows.again()?));
        }
        if plan.is::<SharedExec>() {
            let input = Box::new(inputs.pop()?);
            self.shared.push(place);
            return Some(KeptNode::Shared(input));
        }
        match self.search_node(plan, inputs) {
            Ok(kept) => kept,
            Err(inputs) => self.engine_node(plan, inputs),
        }
    }

    /// Paths, searches and algorithms; the inputs come back where it is none of these.
    fn search_node(
        &self,
        plan: &Plan,
        mut inputs: Vec<KeptNode>,
    ) -> std::result::Result<Option<KeptNode>, Vec<KeptNode>> {
        if let Some(path) = plan.downcast_ref::<PathExec>() {
            let specification = path.specification();
            let ends = [&specification.subject, &specification.object];
            // One share of the nodes to walk from is not the path.
            return Ok((path.spread_over().is_none()).then(|| KeptNode::Path {
                ends: ParameterEnds::of(ends, self.parameters),
                specification: Box::new(specification.clone()),
                input: inputs.pop().map(Box::new),
            }));
        }
        if let Some(search) = plan.downcast_ref::<SearchExec>() {
            let specification = search.specification();
            let ends = [&specification.source, &specification.destination];
            return Ok(Some(KeptNode::Search {
                ends: ParameterEnds::of(ends, self.parameters),
                specification: Box::new(specification.clone()),
                has_input: search.has_input(),
                inputs,
            }));
        }
        if plan.is::<FrontierExec>() {
            let variable = schema_variables(&plan.schema()).pop();
            return Ok(variable.map(KeptNode::Frontier));
        }
        if let Some(algorithm) = plan.downcast_ref::<AlgorithmExec>() {
            return Ok(inputs.pop().map(|edges| KeptNode::Algorithm {
                specification: Box::new(algorithm.specification().clone()),
                edges: Box::new(edges),
            }));
        }
        Err(inputs)
    }

    /// The nodes of DataFusion's, and those of ours that are like them.
    fn engine_node(&self, plan: &Plan, mut inputs: Vec<KeptNode>) -> Option<KeptNode> {
        let schema = plan.children().first().map(|child| child.schema());
        let kept = |expression: &Arc<dyn PhysicalExpr>| {
            let kept = KeptExpression::of(expression, schema.as_ref()?.as_ref())?;
            let algebra = kept.algebra();
            let is_stray = algebra.is_some_and(|it| has_stray_term(it, self.parameters));
            (!is_stray).then_some(kept)
        };
        if let Some(filter) = plan.downcast_ref::<FilterExec>() {
            let is_plain = filter.projection().is_none() && filter.fetch().is_none();
            let predicate = kept(filter.predicate()).filter(|_| is_plain)?;
            let input = Box::new(inputs.pop()?);
            return Some(KeptNode::Filter { predicate, input });
        }
        if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
            let columns = projection.expr().iter();
            let columns = columns.map(|it| Some((kept(&it.expr)?, it.alias.clone())));
            let columns: Vec<_> = columns.collect::<Option<_>>()?;
            if columns.iter().any(|(column, _)| column.algebra().is_some()) {
                let input = Box::new(inputs.pop()?);
                return Some(KeptNode::Projection { columns, input });
            }
        }
        if let Some(sort) = plan.downcast_ref::<SortExec>() {
            let keys = sort
                .expr()
                .iter()
                .map(|key| Some((kept(&key.expr)?, key.options)));
            let keys: Vec<_> = keys.collect::<Option<_>>()?;
            return Some(KeptNode::Sort {
                keys,
                fetch: sort.fetch(),
                properties: OrderExec::properties_of(schema.as_ref()?),
                input: Box::new(inputs.pop()?),
            });
        }
        let ours = plan.downcast_ref::<GroupExec>().map(GroupExec::aggregate);
        let is_plain = match ours.or_else(|| plan.downcast_ref::<AggregateExec>()) {
            Some(aggregate) => groups_by_columns(aggregate),
            None => {
                plan.is::<GlobalLimitExec>()
                    || plan.is::<ProjectionExec>()
                    || plan.is::<EmptyExec>()
                    || plan.is::<UnionExec>()
                    || plan.is::<CoalescePartitionsExec>()
                    || plan.is::<AppendExec>()
                    || plan.is::<CandidatesExec>()
                    || plan.is::<DistinctExec>()
                    || plan.is::<LimitOfEachExec>()
            }
        };
        let node = is_plain.then(|| over_stand_ins(plan))?.ok()?;
        Some(KeptNode::Plain { node, inputs })
    }
}

/// Whether an aggregation gives distinct rows of columns, and computes nothing.
fn groups_by_columns(aggregate: &AggregateExec) -> bool {
    let keys = aggregate.group_expr();
    let mut columns = keys.expr().iter();
    let schema = aggregate.input().schema();
    // Over an input in no known order it is made anew.
    let takes_any_order = *aggregate.input_order_mode() == InputOrderMode::Linear;
    takes_any_order
        && aggregate.aggr_expr().is_empty()
        && keys.is_single()
        && aggregate.limit_options().is_none()
        && columns.all(|(key, _)| {
            matches!(
                KeptExpression::of(key, &schema),
                Some(KeptExpression::Same(_))
            )
        })
}

/// The same node over leaves that only have the columns of its inputs, with properties that follow
/// from these. Those of the plan may have the order of a sort in them, whose keys hold the context
/// of the query.
fn over_stand_ins(plan: &Plan) -> EngineResult<Plan> {
    let children = plan.children();
    if children.is_empty() {
        return Ok(Arc::clone(plan));
    }
    let stand_ins = children.into_iter().map(|child| {
        Arc::new(StandInExec {
            properties: plan_properties(&child.schema()),
            metrics: ExecutionPlanMetricsSet::new(),
        }) as Plan
    });
    let recompute = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    Arc::clone(plan).replace_children(stand_ins.collect(), recompute)
}

/// A node over other inputs, whose properties are those of its own.
fn over(plan: &Plan, inputs: Vec<Plan>) -> EngineResult<Plan> {
    let keep = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep);
    Arc::clone(plan).replace_children(inputs, keep)
}

impl KeptNode {
    fn inputs(&self) -> &[Self] {
        match self {
            Self::Pattern { input, .. } => match input {
                Some(input) => std::slice::from_ref(input),
                None => &[],
            },
            Self::Path { input, .. } => match input {
                Some(input) => std::slice::from_ref(input),
                None => &[],
            },
            Self::SolutionJoin { sides, .. } => sides.as_slice(),
            Self::Filter { input, .. }
            | Self::Projection { input, .. }
            | Self::Sort { input, .. }
            | Self::Algorithm { edges: input, .. }
            | Self::Shared(input) => std::slice::from_ref(input),
            Self::Rows(_) | Self::Frontier(_) | Self::SharedAgain(_) => &[],
            Self::Search { inputs, .. } | Self::Plain { inputs, .. } => inputs,
        }
    }

    /// Binds the patterns, in the order in which they were numbered.
    pub(super) fn bind(
        &self,
        bindings: &mut Bindings,
        replaced: &[Parameter],
        passing_ids: &mut PassingIds<'_>,
    ) -> Option<()> {
        for input in self.inputs() {
            input.bind(bindings, replaced, passing_ids)?;
        }
        if let Self::Pattern { pattern, .. } = self
            && pattern.place.is_some()
        {
            let parameters = (&bindings.parameters[..], replaced);
            let bound = pattern.bind(parameters, passing_ids)?;
            bindings.patterns.push(bound);
        }
        Some(())
    }

    pub(super) fn ranges<'r>(
        &'r self,
        bindings: &'r Bindings,
        pairs: &mut Vec<(&'r ObjectRanges, &'r ObjectRanges)>,
    ) {
        for input in self.inputs() {
            input.ranges(bindings, pairs);
        }
        if let Self::Pattern { pattern, .. } = self
            && let Some(bound) = pattern.place.and_then(|at| bindings.patterns.get(at))
        {
            pairs.extend(pattern.ranges(bound));
        }
    }

    /// The node for a query.
    pub(super) fn build(
        &self,
        bindings: &mut Bindings,
        replaced: &[Parameter],
        context: &Arc<QueryContext>,
    ) -> Result<Plan> {
        let mut built = Vec::with_capacity(self.inputs().len());
        for input in self.inputs() {
            built.push(input.build(bindings, replaced, context)?);
        }
        let parameters = &bindings.parameters;
        let change = |expression: &mut spargebra::algebra::Expression| {
            if has_parameter(expression, replaced) {
                replace(expression, replaced, parameters);
            }
        };
        let expressions = context.expressions();
        Ok(match self {
            Self::Pattern { pattern, .. } => {
                let bound = pattern.place.and_then(|at| bindings.patterns.get_mut(at));
                let bound = bound.map(std::mem::take);
                pattern.build(&bindings.parameters, bound, built.pop(), context)
            }
            Self::SolutionJoin { specification, .. } => {
                let mut specification = specification.clone();
                specification.filters.iter_mut().for_each(change);
                let [left, right] = two(built)?;
                SolutionJoinExec::try_new(Arc::clone(context), left, right, specification)?
            }
            Self::Filter { predicate, .. } => {
                let input = one(built)?;
                let predicate = predicate.build(&input.schema(), expressions, change)?;
                Arc::new(FilterExec::try_new(predicate, input)?)
            }
            Self::Projection { columns, .. } => {
                let input = one(built)?;
                let schema = input.schema();
                let column = |(column, alias): &(KeptExpression, String)| {
                    let expr = column.build(&schema, expressions, change)?;
                    let alias = alias.clone();
                    Ok(ProjectionExpr { expr, alias })
                };
                let columns = columns.iter().map(column).collect::<Result<Vec<_>>>()?;
                Arc::new(ProjectionExec::try_new(columns, input)?)
            }
            Self::Sort {
                keys,
                fetch,
                properties,
                ..
            } => {
                let input = one(built)?;
                let schema = input.schema();
                let key = |(key, options): &(KeptExpression, _)| {
                    let expr = key.build(&schema, expressions, change)?;
                    let options = *options;
                    Ok(PhysicalSortExpr { expr, options })
                };
                let keys = keys.iter().map(key).collect::<Result<Vec<_>>>()?;
                match LexOrdering::new(keys) {
                    Some(order) => {
                        let properties = Arc::clone(properties);
                        Arc::new(OrderExec::new(input, order, *fetch, properties))
                    }
                    None => input,
                }
            }
            Self::Path {
                specification,
                ends,
                ..
            } => {
                let mut specification = PathSpecification::clone(specification);
                let PathSpecification {
                    subject, object, ..
                } = &mut specification;
                ends.put([subject, object], parameters);
                PathExec::try_new(Arc::clone(context), built.pop(), specification)?
            }
            Self::Search {
                specification,
                ends,
                has_input,
                ..
            } => {
                let mut specification = SearchSpecification::clone(specification);
                let SearchSpecification {
                    source,
                    destination,
                    ..
                } = &mut specification;
                ends.put([source, destination], parameters);
                let inputs = SearchInputs::of(*has_input, built).ok_or_else(wrong_inputs)?;
                SearchExec::try_new(Arc::clone(context), inputs, specification)?
            }
            Self::Frontier(variable) => FrontierExec::leaf(variable),
            Self::Algorithm { specification, .. } => {
                let specification = AlgorithmSpecification::clone(specification);
                AlgorithmExec::over(Arc::clone(context), one(built)?, specification)
            }
            Self::Shared(_) => {
                let shared: Plan = Arc::new(SharedExec::new(one(built)?));
                bindings.shared.push(Arc::clone(&shared));
                shared
            }
            Self::SharedAgain(place) => {
                let shared = bindings.shared.get(*place).ok_or_else(wrong_inputs)?;
                Arc::clone(shared)
            }
            Self::Rows(rows) => {
                let again = rows.downcast_ref::<RowsExec>().and_then(RowsExec::again);
                again.ok_or_else(wrong_inputs)?
            }
            Self::Plain { node, .. } => over(node, built)?,
        })
    }
}

fn one(inputs: Vec<Plan>) -> Result<Plan> {
    let [input] = <[Plan; 1]>::try_from(inputs).map_err(|_| wrong_inputs())?;
    Ok(input)
}

fn two(inputs: Vec<Plan>) -> Result<[Plan; 2]> {
    inputs.try_into().map_err(|_| wrong_inputs())
}

fn wrong_inputs() -> crate::error::Error {
    crate::error::Error::Unsupported("a kept node over another number of inputs".to_owned())
}

/// Stands for an input of a node that is kept. It is never run.
#[derive(Debug)]
struct StandInExec {
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl DisplayAs for StandInExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StandInExec")
    }
}

impl ExecutionPlan for StandInExec {
    node_methods!("StandInExec", leaf);

    fn execute(&self, _: usize, _: Arc<TaskContext>) -> EngineResult<SendableRecordBatchStream> {
        internal_err!("a plan was kept and not put together again")
    }
}
