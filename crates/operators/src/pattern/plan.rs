//! The plan node of a basic graph pattern.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use datafusion_common::{Result, assert_or_internal_err};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::metrics::{
    Count, ExecutionPlanMetricsSet, Metric, MetricValue, MetricsSet,
};
use datafusion_physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use orrery_storage::Permutation;
use parking_lot::Mutex;

use super::display;
use super::found_ids::FoundIds;
use super::program::StepProgram;
use super::run::compiled::CompiledPattern;
use super::run::morsel::{MorselReader, Morsels, first_ranges};
use super::run::pipeline::StepCounters;
use super::run::stream::{PatternInput, PatternStream};
use super::specification::{ObjectRanges, PatternMode, PatternSpecification, PatternStep};
use crate::context::QueryContext;
use crate::dealing::{Dealing, Executions, Spread};
use crate::error::Error;
use crate::node_metrics::NodeMetrics;
use crate::solutions::{partitioned_plan_properties, schema_variables, solution_schema};
use orrery_plan_node::{Inputs, node_methods};

/// The partitions of an input, which are those of the output; without any, the first one tells what
/// is wrong.
fn partitions_of(plan: &Arc<dyn ExecutionPlan>) -> usize {
    plan.properties().partitioning.partition_count().max(1)
}

/// Evaluates a basic graph pattern for every row of its input, or once without an input; see the
/// [module](super)'s documentation.
#[derive(Debug)]
pub struct PatternExec {
    pub(super) input: Option<Arc<dyn ExecutionPlan>>,
    pub(super) plan: Arc<CompiledPattern>,
    /// How the rows of the first step are spread over partitions, if they are.
    pub(super) spread: Option<Spread>,
    pub(super) executions: Executions<Morsels>,
    pub(super) properties: Arc<PlanProperties>,
    pub(super) metrics: ExecutionPlanMetricsSet,
}

/// The report of one step of a [`PatternExec`]: its plan and its figures.
#[derive(Clone, Debug)]
pub struct StepReport {
    /// The patterns, as in SPARQL, and the way to each; several if they are intersected.
    pub patterns: Vec<PatternReport>,
    /// What the planner expected.
    pub estimated_rows: Option<f64>,
    /// Rows that came out, in all executions so far.
    pub rows: usize,
    /// Look-ups made in the permutation.
    pub seeks: usize,
    /// Look-ups made in memory.
    pub in_memory: usize,
}

/// The access path of one pattern of a step, when all input variables are bound.
#[derive(Clone, Debug)]
pub struct PatternReport {
    /// The pattern, as in SPARQL.
    pub text: String,
    /// The permutation that it walks.
    pub permutation: Permutation,
    /// How many leading columns of the permutation are known.
    pub prefix_columns: usize,
    /// Its values were made a set of so many ids, together with those of other patterns of the
    /// step, by which another one's rows are dropped in the scan.
    pub set_ids: Option<usize>,
}

impl PatternExec {
    /// A node that is to do this over the context's snapshot. The variables of the input are those
    /// of its schema; any of them may be unbound in some rows.
    ///
    /// Nothing is compiled yet: that is done where the node runs, or by [`PatternExec::compile`].
    pub fn try_new(
        context: Arc<QueryContext>,
        input: Option<Arc<dyn ExecutionPlan>>,
        specification: PatternSpecification,
    ) -> Result<Arc<dyn ExecutionPlan>, Error> {
        let counters = specification.steps.iter().map(|_| StepCounters::default());
        let counters = counters.collect();
        let metrics = ExecutionPlanMetricsSet::new();
        Self::counting(context, input, specification, (counters, metrics))
    }

    /// A pattern that counts what it does together with another one of as many steps.
    fn counting(
        context: Arc<QueryContext>,
        input: Option<Arc<dyn ExecutionPlan>>,
        specification: PatternSpecification,
        (counters, metrics): (Arc<[StepCounters]>, ExecutionPlanMetricsSet),
    ) -> Result<Arc<dyn ExecutionPlan>, Error> {
        let input_variables = input
            .as_ref()
            .map(|input| schema_variables(&input.schema()))
            .unwrap_or_default();
        let schema = solution_schema(&specification.output);
        let partitions = input.as_ref().map_or(1, partitions_of);
        let properties = partitioned_plan_properties(&schema, partitions);
        Ok(Arc::new(Self {
            input,
            spread: None,
            executions: Executions::default(),
            plan: Arc::new(CompiledPattern {
                context,
                specification,
                input_variables,
                schema,
                counters,
                arrangement: OnceLock::new(),
                bound: OnceLock::new(),
                others: Mutex::default(),
            }),
            properties,
            metrics,
        }))
    }

    /// Compiles the patterns and their conditions, if that was not done, so that what cannot be run
    /// is known before it is.
    pub fn compile(&self) -> Result<(), Error> {
        self.plan.bound_program()?;
        Ok(())
    }

    /// The rows that the first step walks, if they can be spread over partitions: there is no
    /// input, every match is a row of its own, and no limit ends the pattern early.
    pub fn spreadable_rows(&self) -> Result<Option<u64>, Error> {
        let specification = &self.plan.specification;
        let is_whole = self.input.is_none()
            && specification.mode == PatternMode::Inner
            && specification.fetch.is_none();
        if !is_whole {
            return Ok(None);
        }
        let Some(step) = self.plan.bound_program()?.steps.first() else {
            return Ok(None);
        };
        if step.intersection.is_some() {
            return Ok(None);
        }
        let ranges = first_ranges(step, &mut step.index.cursor())?;
        Ok(Some(ranges.iter().map(|range| range.len()).sum()))
    }

    /// The same pattern with the first step's rows spread over partitions. Only where there are
    /// [`PatternExec::spreadable_rows`].
    pub fn spread(&self, spread: Spread) -> Result<Arc<dyn ExecutionPlan>, Error> {
        if self.spreadable_rows()?.is_none() {
            return Err(Error::Unsupported(
                "this pattern in several partitions".to_owned(),
            ));
        }
        Ok(Arc::new(Self {
            input: None,
            plan: Arc::clone(&self.plan),
            spread: Some(spread),
            executions: Executions::default(),
            properties: partitioned_plan_properties(&self.plan.schema, spread.partitions),
            metrics: self.metrics.clone(),
        }))
    }

    /// The same pattern, filtered by ids that another node finds, where the reader would drop those
    /// rows anyway. Only of an inner match without limit that gives the variable, and does not bind
    /// it by its last step: there is nothing to save behind that one.
    pub fn thinned_by(&self, found: FoundIds) -> Result<Option<Arc<dyn ExecutionPlan>>, Error> {
        let specification = &self.plan.specification;
        let is_bound_before = |(_, steps): (_, &[PatternStep])| {
            let mut variables = steps.iter().flat_map(|step| step.pattern.variables());
            variables.any(|name| name == found.variable())
        };
        let can_be = specification.mode == PatternMode::Inner
            && specification.fetch.is_none()
            && self.spread.is_none()
            && specification.output.contains(found.variable())
            && specification
                .steps
                .split_last()
                .is_some_and(is_bound_before);
        if !can_be {
            return Ok(None);
        }
        let mut specification = specification.clone();
        specification.found.push(found);
        self.changed(self.input.clone(), specification).map(Some)
    }

    /// The spread of the first step's rows over partitions, if there is one.
    pub fn spread_over(&self) -> Option<Spread> {
        self.spread
    }

    /// Rows that its steps have touched in all executions so far.
    pub(crate) fn touches(&self) -> u64 {
        self.plan.counters.iter().map(StepCounters::touches).sum()
    }

    /// The specification of the node.
    pub fn specification(&self) -> &PatternSpecification {
        &self.plan.specification
    }

    /// The reports of the steps so far; none of a pattern that cannot be compiled.
    pub fn reports(&self) -> Vec<StepReport> {
        let program = self.plan.bound_program();
        let steps = program.iter().flat_map(|program| &program.steps);
        steps.map(|program| self.report(program)).collect()
    }

    fn report(&self, program: &StepProgram) -> StepReport {
        let plan = &self.plan;
        let steps = &plan.specification.steps;
        let way = |number: usize| match &program.intersection {
            None => (program.index.permutation(), program.prefix.len()),
            Some(intersection) => {
                let side = &intersection.sides[number];
                (side.index.permutation(), side.prefix.len())
            }
        };
        let patterns = program
            .members
            .iter()
            .enumerate()
            .map(|(number, &step)| {
                let (permutation, prefix_columns) = way(number);
                let set = program.set_scan().filter(|scan| scan.side != number);
                PatternReport {
                    set_ids: set.and_then(|scan| Some(scan.values.get()?.len())),
                    text: display::quad_pattern(&plan.context, &steps[step].pattern),
                    permutation,
                    prefix_columns,
                }
            })
            .collect();
        let counters = program.members.first().map(|&step| &plan.counters[step]);
        let count = |counter: fn(&StepCounters) -> &AtomicUsize| {
            counters.map_or(0, |counters| counter(counters).load(Ordering::Relaxed))
        };
        StepReport {
            patterns,
            estimated_rows: estimate_of(steps, &program.members),
            rows: count(|counters| &counters.rows),
            seeks: count(|counters| &counters.seeks),
            in_memory: count(|counters| &counters.in_memory),
        }
    }
}

/// The expected rows after a step. Those of the patterns that were taken from behind others tell of
/// those too.
fn estimate_of(steps: &[PatternStep], members: &[usize]) -> Option<f64> {
    let (&first, others) = members.split_first()?;
    let mut rows = steps[first].estimated_rows?;
    for &step in others {
        let before = steps[step.checked_sub(1)?].estimated_rows?;
        rows *= steps[step].estimated_rows? / before.max(f64::MIN_POSITIVE);
    }
    Some(rows)
}

impl DisplayAs for PatternExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let specification = &self.plan.specification;
        write!(f, "PatternExec: ")?;
        match &specification.mode {
            PatternMode::Inner => write!(f, "inner")?,
            PatternMode::Optional => write!(f, "optional")?,
            PatternMode::Semi => write!(f, "semi")?,
            PatternMode::Anti => write!(f, "anti")?,
            PatternMode::Mark(variable) => write!(f, "mark ?{variable}")?,
        }
        if let Some(fetch) = specification.fetch {
            write!(f, ", fetch={fetch}")?;
        }
        // The steps are told by `reports`.
        for filter in &specification.filters {
            write!(f, ", filter {filter}")?;
        }
        for given in &specification.given {
            let (name, ids) = (given.variable(), given.ids().len());
            write!(f, ", ?{name} among {ids} ids")?;
        }
        for found in &specification.found {
            write!(f, ", ?{} among keys of the join", found.variable())?;
        }
        if let Some(spread) = self.spread {
            write!(f, ", {spread}")?;
        }
        Ok(())
    }
}

impl PatternExec {
    /// The same with the object of a step within bounds. What it does counts here, too.
    pub(super) fn narrowed(
        &self,
        step: usize,
        ranges: &ObjectRanges,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let mut specification = self.plan.specification.clone();
        if let Some(step) = specification.steps.get_mut(step) {
            step.object_ranges = Some(match &step.object_ranges {
                Some(bounds) => bounds.intersection(ranges),
                None => ranges.clone(),
            });
        }
        Ok(self.changed(self.input.clone(), specification)?)
    }

    fn changed(
        &self,
        input: Option<Arc<dyn ExecutionPlan>>,
        specification: PatternSpecification,
    ) -> Result<Arc<dyn ExecutionPlan>, Error> {
        let counted = (Arc::clone(&self.plan.counters), self.metrics.clone());
        Self::counting(
            Arc::clone(&self.plan.context),
            input,
            specification,
            counted,
        )
    }
}

impl Inputs for PatternExec {
    /// A limit holds for all partitions together.
    fn reads_partitions(&self) -> bool {
        self.plan.specification.fetch.is_none()
    }

    fn inputs(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.input.iter().collect()
    }

    fn with_inputs(
        self: Arc<Self>,
        mut inputs: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let input = inputs.pop();
        if let (None, Some(spread)) = (&input, self.spread) {
            return Ok(self.spread(spread)?);
        }
        let specification = self.plan.specification.clone();
        Ok(self.changed(input, specification)?)
    }
}

impl ExecutionPlan for PatternExec {
    node_methods!("PatternExec", own metrics);

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let partitions = self.properties.partitioning.partition_count();
        assert_or_internal_err!(
            partition < partitions,
            "PatternExec has {partitions} partitions, not {partition}"
        );
        let input = match (&self.input, self.spread) {
            (Some(input), _) => {
                PatternInput::Stream(input.execute(partition, Arc::clone(&context))?)
            }
            (None, None) => PatternInput::EmptyRow,
            (None, Some(spread)) => {
                let place = (partition, partitions);
                PatternInput::Morsels(match spread.dealing {
                    Dealing::Shares => self.plan.share(place)?,
                    Dealing::Queue | Dealing::Turns(_) => {
                        let cut = || self.plan.cut(spread);
                        let morsels = self.executions.claim(&context, place, cut)?;
                        MorselReader::new(morsels, partition)
                    }
                })
            }
        };
        let baseline = NodeMetrics::new(&self.metrics, partition);
        let places = self.plan.specification.found.iter();
        let found = places.map(|found| found.of(&context)).collect();
        let stream = PatternStream::new(Arc::clone(&self.plan), found, input, baseline)?;
        Ok(Box::pin(stream))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        let mut metrics = self.metrics.clone_inner();
        for (number, counters) in self.plan.counters.iter().enumerate() {
            let step = number + 1;
            let counts = [
                ("rows", &counters.rows),
                ("seeks", &counters.seeks),
                ("in_memory", &counters.in_memory),
            ];
            for (name, value) in counts {
                let count = Count::new();
                count.add(value.load(Ordering::Relaxed));
                let name = format!("step{step}_{name}").into();
                metrics.push(Arc::new(Metric::new(
                    MetricValue::Count { name, count },
                    Some(0),
                )));
            }
        }
        Some(metrics)
    }

    fn fetch(&self) -> Option<usize> {
        self.plan.specification.fetch
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        // A limit holds for all partitions together.
        if limit.is_some() && self.properties.partitioning.partition_count() > 1 {
            return None;
        }
        let mut specification = self.plan.specification.clone();
        specification.fetch = limit;
        let context = Arc::clone(&self.plan.context);
        Self::try_new(context, self.input.clone(), specification).ok()
    }
}
