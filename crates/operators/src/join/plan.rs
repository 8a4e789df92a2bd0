//! The plan node of a join of solutions.

use std::fmt;
use std::sync::Arc;

use arrow::array::{Array, UInt64Array};
use arrow::datatypes::SchemaRef;
use datafusion_common::{Result, assert_or_internal_err};
use datafusion_execution::memory_pool::MemoryConsumer;
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::metrics::{
    BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet, SpillMetrics,
};
use datafusion_physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties,
    ReplaceChildrenOptions,
};

use super::build::{SHARED_VARIABLES_MAX, VariableSet, all_of};
use super::spill::Spill;
use super::stream::JoinStream;
use super::{JoinMode, JoinSpecification, Uncounted};
use crate::context::QueryContext;
use crate::error::Error;
use crate::node_face_methods;
use crate::pattern::{ChunkFilter, expression_variables};
use crate::solutions::{plan_properties, schema_variables, solution_schema};

/// Where a variable of a merged solution comes from.
#[derive(Clone, Copy, Debug)]
pub(super) enum MergedColumn {
    /// Only the left side has it.
    Left(usize),
    /// Only the right side has it.
    Right(usize),
    /// Both have it: the left value, or the right one if that is unbound.
    Both { left: usize, right: usize },
}

/// Where an output variable comes from when a left solution is not merged with a right one.
#[derive(Clone, Copy, Debug)]
pub(super) enum OutputColumn {
    /// The left side.
    Left(usize),
    /// Whether there was a match.
    Mark,
    /// It is unbound.
    NotLeft,
}

/// A compiled join.
#[derive(Debug)]
pub(super) struct JoinPlan {
    pub(super) specification: JoinSpecification,
    pub(super) schema: SchemaRef,
    /// The columns of the shared variables on either side, in the same order.
    pub(super) left_shared: Vec<usize>,
    pub(super) right_shared: Vec<usize>,
    pub(super) right_columns: usize,
    /// The variables of merged solutions that the output and the filters read.
    pub(super) merged: Vec<MergedColumn>,
    pub(super) filters: Vec<ChunkFilter>,
    /// For every output variable its place in `merged`.
    pub(super) merged_output: Vec<Option<usize>>,
    pub(super) output: Vec<OutputColumn>,
    pub(super) counted: Counted,
}

/// Which shared variables `MINUS` counts, by their places among the shared ones.
#[derive(Debug, Default)]
pub(super) struct Counted {
    /// In every row.
    pub(super) always: VariableSet,
    /// In rows where this column of the left side is null.
    pub(super) unless: Vec<(VariableSet, usize)>,
}

impl Counted {
    fn new(mode: &JoinMode, shared: &[&str], left: &[Arc<str>]) -> Self {
        let mut counted = Self {
            always: all_of(shared.len()),
            unless: Vec::new(),
        };
        let JoinMode::Minus(uncounted) = mode else {
            return counted;
        };
        for Uncounted { variable, witness } in uncounted {
            let Some(at) = shared.iter().position(|name| *name == &**variable) else {
                continue;
            };
            counted.always &= !(1 << at);
            let witness = witness.as_deref().and_then(|name| place(name, left));
            counted
                .unless
                .extend(witness.map(|column| (1 << at, column)));
        }
        counted
    }

    /// The variables that count for a left row.
    pub(super) fn in_row(&self, left: &[UInt64Array], row: usize) -> VariableSet {
        let unless = self.unless.iter();
        let more = unless.filter(|(_, witness)| left[*witness].is_null(row));
        more.fold(self.always, |counted, (variable, _)| counted | variable)
    }
}

fn place(name: &str, variables: &[Arc<str>]) -> Option<usize> {
    variables.iter().position(|variable| **variable == *name)
}

impl JoinPlan {
    fn new(
        context: &Arc<QueryContext>,
        left: &[Arc<str>],
        right: &[Arc<str>],
        specification: JoinSpecification,
    ) -> Result<Self, Error> {
        let (left_shared, right_shared): (Vec<usize>, Vec<usize>) = left
            .iter()
            .enumerate()
            .filter_map(|(column, name)| Some((column, place(name, right)?)))
            .unzip();
        if left_shared.len() > SHARED_VARIABLES_MAX {
            return Err(Error::Unsupported(format!(
                "a join on {} variables, at most {SHARED_VARIABLES_MAX} are possible",
                left_shared.len()
            )));
        }
        let (names, merged) = merged_columns(&specification, left, right);
        let filters = specification
            .filters
            .iter()
            .map(|filter| ChunkFilter::compile(filter, &names, context))
            .collect::<Result<_>>()?;
        let output = specification
            .output
            .iter()
            .map(|name| match (&specification.mode, place(name, left)) {
                (JoinMode::Mark(mark), _) if mark == name => OutputColumn::Mark,
                (_, Some(column)) => OutputColumn::Left(column),
                (_, None) => OutputColumn::NotLeft,
            })
            .collect();
        let merged_output = specification.output.iter();
        let shared: Vec<&str> = left_shared.iter().map(|&column| &*left[column]).collect();
        let counted = Counted::new(&specification.mode, &shared, left);
        Ok(Self {
            schema: solution_schema(&specification.output),
            merged_output: merged_output.map(|name| place(name, &names)).collect(),
            left_shared,
            right_shared,
            right_columns: right.len(),
            merged,
            filters,
            output,
            counted,
            specification,
        })
    }
}

/// The variables of merged solutions that something reads, and where they come from.
fn merged_columns(
    specification: &JoinSpecification,
    left: &[Arc<str>],
    right: &[Arc<str>],
) -> (Vec<Arc<str>>, Vec<MergedColumn>) {
    let gives_merged = !specification.mode.is_existence();
    let for_output = specification.output.iter().map(|name| &**name);
    let for_filters = specification.filters.iter().flat_map(expression_variables);
    let mut names: Vec<Arc<str>> = Vec::new();
    let mut merged = Vec::new();
    for name in for_output.filter(|_| gives_merged).chain(for_filters) {
        let column = match (place(name, left), place(name, right)) {
            (Some(left), Some(right)) => MergedColumn::Both { left, right },
            (Some(left), None) => MergedColumn::Left(left),
            (None, Some(right)) => MergedColumn::Right(right),
            (None, None) => continue,
        };
        if place(name, &names).is_none() {
            names.push(Arc::from(name));
            merged.push(column);
        }
    }
    (names, merged)
}

/// Joins two inputs by the compatibility of their solutions; see the [module](super)'s documentation.
#[derive(Debug)]
pub struct SolutionJoinExec {
    context: Arc<QueryContext>,
    left: Arc<dyn ExecutionPlan>,
    right: Arc<dyn ExecutionPlan>,
    plan: Arc<JoinPlan>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl SolutionJoinExec {
    /// Joins the left input, which streams, with the right input, which is collected in memory, or on disk if it does
    /// not fit.
    pub fn try_new(
        context: Arc<QueryContext>,
        left: Arc<dyn ExecutionPlan>,
        right: Arc<dyn ExecutionPlan>,
        specification: JoinSpecification,
    ) -> Result<Arc<dyn ExecutionPlan>, Error> {
        let left_variables = schema_variables(&left.schema());
        let right_variables = schema_variables(&right.schema());
        let plan = JoinPlan::new(&context, &left_variables, &right_variables, specification)?;
        Ok(Arc::new(Self {
            context,
            left,
            right,
            properties: plan_properties(&plan.schema),
            plan: Arc::new(plan),
            metrics: ExecutionPlanMetricsSet::new(),
        }))
    }
}

impl DisplayAs for SolutionJoinExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SolutionJoinExec: ")?;
        match &self.plan.specification.mode {
            JoinMode::Inner => write!(f, "inner")?,
            JoinMode::Left => write!(f, "left")?,
            JoinMode::Anti => write!(f, "anti")?,
            JoinMode::Semi => write!(f, "semi")?,
            JoinMode::Minus(uncounted) => {
                write!(f, "minus")?;
                for uncounted in uncounted {
                    write!(f, " without ?{}", uncounted.variable)?;
                }
            }
            JoinMode::Mark(variable) => write!(f, "mark ?{variable}")?,
        }
        write!(f, " on")?;
        let left = self.left.schema();
        for &column in &self.plan.left_shared {
            write!(f, " ?{}", left.field(column).name())?;
        }
        for filter in &self.plan.specification.filters {
            write!(f, ", filter {filter}")?;
        }
        Ok(())
    }
}

impl ExecutionPlan for SolutionJoinExec {
    node_face_methods!("SolutionJoinExec");

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.left, &self.right]
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        assert_or_internal_err!(children.len() == 2, "SolutionJoinExec has two children");
        Ok(Self::try_new(
            Arc::clone(&self.context),
            Arc::clone(&children[0]),
            Arc::clone(&children[1]),
            self.plan.specification.clone(),
        )?)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(
            children,
            ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute),
        )
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        assert_or_internal_err!(partition == 0, "SolutionJoinExec has one partition");
        let reservation = MemoryConsumer::new("join of solutions")
            .with_can_spill(true)
            .register(context.memory_pool());
        let spill = Spill::new(
            context.runtime_env(),
            SpillMetrics::new(&self.metrics, partition),
            [self.left.schema(), self.right.schema()],
        );
        Ok(Box::pin(JoinStream::new(
            Arc::clone(&self.plan),
            self.left.execute(0, Arc::clone(&context))?,
            self.right.execute(0, context)?,
            spill,
            reservation,
            BaselineMetrics::new(&self.metrics, partition),
        )))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}
