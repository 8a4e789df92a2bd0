//! The plan node of a path search.

use std::fmt;
use std::sync::Arc;

use datafusion_common::{Result, assert_or_internal_err, internal_err};
use datafusion_execution::memory_pool::MemoryConsumer;
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::StreamExt;
use futures::channel::mpsc;

use super::compiled::CompiledSearch;
use super::run::run_all;
use super::searching::Searching;
use super::specification::{PathKind, SearchColumn, SearchSpecification};
use crate::context::QueryContext;
use crate::error::Error;
use crate::node_metrics::NodeMetrics;
use crate::pattern::{Slot, describe_slot};
use crate::solutions::{plan_properties, schema_variables, solution_schema};
use crate::touch_counter::TouchCounter;
use orrery_plan_node::{Inputs, node_methods};

type Plan = Arc<dyn ExecutionPlan>;

/// The inputs of a search. The plans of edges have the same columns: the two nodes, the further
/// variables, the weight.
#[derive(Clone, Debug)]
pub struct SearchInputs {
    /// Rows that bind ends; one row without variables if there is none.
    pub input: Option<Plan>,
    /// All edges.
    pub edges: Plan,
    /// Those that leave the nodes of a [`FrontierExec`](super::FrontierExec), and those that reach
    /// them, where they can be asked for.
    pub by_frontier: Option<[Plan; 2]>,
}

impl SearchInputs {
    /// The inputs of a search, of which the first may bind ends; nothing where they are too few or
    /// too many.
    pub(crate) fn of(has_input: bool, plans: Vec<Plan>) -> Option<Self> {
        let mut plans = plans.into_iter();
        let input = match has_input {
            true => Some(plans.next()?),
            false => None,
        };
        let edges = plans.next()?;
        let by_frontier = match (plans.next(), plans.next(), plans.next()) {
            (None, None, None) => None,
            (Some(from), Some(to), None) => Some([from, to]),
            _ => return None,
        };
        Some(Self {
            input,
            edges,
            by_frontier,
        })
    }

    /// Whether the edges have the columns of such a search.
    pub(crate) fn are_edges_of(&self, specification: &SearchSpecification) -> bool {
        let columns = 2 + specification.exported + usize::from(specification.is_weighted);
        let by_frontier = self.by_frontier.iter().flatten();
        let mut plans = by_frontier.chain([&self.edges]);
        plans.all(|plan| plan.schema().fields().len() == columns)
    }
}

/// Searches for paths, for each row of its input or once; see the [module](super)'s documentation.
#[derive(Debug)]
pub struct SearchExec {
    inputs: SearchInputs,
    plan: Arc<CompiledSearch>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl SearchExec {
    /// A search over these edges.
    pub fn try_new(
        context: Arc<QueryContext>,
        inputs: SearchInputs,
        specification: SearchSpecification,
    ) -> Result<Arc<dyn ExecutionPlan>, Error> {
        assert!(inputs.are_edges_of(&specification), "columns of edges");
        let plan = Self::compiled(context, inputs.clone(), specification);
        Ok(Arc::new(Self {
            properties: plan_properties(&plan.schema),
            plan: Arc::new(plan),
            inputs,
            metrics: ExecutionPlanMetricsSet::new(),
        }))
    }

    fn compiled(
        context: Arc<QueryContext>,
        inputs: SearchInputs,
        specification: SearchSpecification,
    ) -> CompiledSearch {
        let schema = solution_schema(specification.output.iter().map(|(name, _)| name));
        let given = inputs
            .input
            .as_ref()
            .map(|it| schema_variables(&it.schema()));
        let given = given.unwrap_or_default();
        let column = |name: &Arc<str>| given.iter().position(|it| it == name);
        let end = |slot: &Slot| slot.variable().and_then(column);
        let input_columns = specification.output.iter();
        let input_columns = input_columns.map(|(name, _)| column(name)).collect();
        let variables = [&specification.source, &specification.destination];
        let variables = variables.map(Slot::variable);
        let [from, to] = match inputs.by_frontier {
            Some([from, to]) => [Some(from), Some(to)],
            None => [None, None],
        };
        CompiledSearch {
            context,
            schema,
            edges: inputs.edges,
            from,
            to,
            input_columns,
            end_columns: [end(&specification.source), end(&specification.destination)],
            has_one_end: variables[0].is_some() && variables[0] == variables[1],
            beginnings_max: None,
            touches: TouchCounter::default(),
            specification,
        }
    }

    /// The same search with room for so many beginnings of paths.
    #[cfg(test)]
    pub(super) fn with_room(search: &Plan, beginnings_max: Option<usize>) -> Plan {
        let Some(search) = search.downcast_ref::<Self>() else {
            return Arc::clone(search);
        };
        let CompiledSearch {
            context,
            specification,
            ..
        } = &*search.plan;
        let plan = Self::compiled(
            Arc::clone(context),
            search.inputs.clone(),
            specification.clone(),
        );
        Arc::new(Self {
            plan: Arc::new(CompiledSearch {
                beginnings_max,
                ..plan
            }),
            inputs: search.inputs.clone(),
            properties: Arc::clone(&search.properties),
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }

    /// What is looked for.
    pub(crate) fn specification(&self) -> &SearchSpecification {
        &self.plan.specification
    }

    /// Whether there are rows that bind ends.
    pub(crate) fn has_input(&self) -> bool {
        self.inputs.input.is_some()
    }

    /// Edges looked at in all executions so far.
    pub(crate) fn touches(&self) -> u64 {
        let rows = self.metrics.clone_inner().output_rows();
        self.plan.touches.total() + rows.unwrap_or(0) as u64
    }
}

impl DisplayAs for SearchExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CompiledSearch {
            context,
            specification,
            ..
        } = &*self.plan;
        write!(f, "SearchExec: ")?;
        let by = match specification.is_weighted {
            true => "cheapest",
            false => "shortest",
        };
        match specification.kind {
            PathKind::Shortest { is_all: true } => write!(f, "all {by} ")?,
            PathKind::Shortest { is_all: false } => write!(f, "one {by} ")?,
            PathKind::All => write!(f, "all simple ")?,
            PathKind::First(count) => write!(f, "the {count} {by} ")?,
        }
        write!(
            f,
            "{}",
            if specification.is_cyclic {
                "cycles"
            } else {
                "paths"
            }
        )?;
        write!(f, " from {}", describe_slot(context, &specification.source))?;
        write!(
            f,
            " to {}",
            describe_slot(context, &specification.destination)
        )?;
        if specification.length_min > 0 {
            write!(f, ", of {} edges at least", specification.length_min)?;
        }
        if let Some(length_max) = specification.length_max {
            write!(f, ", of {length_max} edges at most")?;
        }
        if specification.is_bidirectional {
            write!(f, ", edges both ways")?;
        }
        if let Some(limit) = specification.limit {
            write!(f, ", {limit} paths at most")?;
        }
        match self.plan.from {
            _ if specification.plain.is_some() => write!(f, ", edges looked up"),
            Some(_) if !specification.begins_whole => write!(f, ", edges by frontier"),
            _ => write!(f, ", edges computed once"),
        }?;
        let names = specification.output.iter();
        let own = names.filter(|(_, column)| *column != SearchColumn::Input);
        for (at, (name, _)) in own.enumerate() {
            write!(f, "{}?{name}", if at == 0 { "; gives " } else { " " })?;
        }
        Ok(())
    }
}

impl Inputs for SearchExec {
    fn inputs(&self) -> Vec<&Plan> {
        let by_frontier = self.inputs.by_frontier.iter().flatten();
        let input = self.inputs.input.iter();
        input
            .chain([&self.inputs.edges])
            .chain(by_frontier)
            .collect()
    }

    fn with_inputs(self: Arc<Self>, inputs: Vec<Plan>) -> Result<Plan> {
        let Some(inputs) = SearchInputs::of(self.has_input(), inputs) else {
            return internal_err!("a search over another number of inputs");
        };
        Ok(Self::try_new(
            Arc::clone(&self.plan.context),
            inputs,
            self.plan.specification.clone(),
        )?)
    }
}

impl ExecutionPlan for SearchExec {
    node_methods!("SearchExec");

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        assert_or_internal_err!(partition == 0, "SearchExec has one partition");
        let reservation = MemoryConsumer::new("search for paths").register(context.memory_pool());
        let input = match &self.inputs.input {
            Some(input) => Some(input.execute(0, Arc::clone(&context))?),
            None => None,
        };
        let metrics = NodeMetrics::new(&self.metrics, partition);
        // No batch waits beside the one that the searches hold.
        let (sender, batches) = mpsc::channel(0);
        let searching = Searching::new(&self.plan, &context, reservation, sender, metrics);
        let failure = futures::stream::once(run_all(searching, input));
        let failure = failure.filter_map(|result| std::future::ready(result.err().map(Err)));
        let batches = futures::stream::select(batches.map(Ok), failure);
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            Arc::clone(&self.plan.schema),
            batches,
        )))
    }
}
