//! Exact counts without reading rows: `COUNT(*)` of one pattern, and `COUNT(DISTINCT ?s)` of one
//! predicate.

use std::fmt;
use std::sync::Arc;

use arrow::array::UInt64Array;
use arrow::datatypes::SchemaRef;
use datafusion_common::{Result, assert_or_internal_err};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use orrery_storage::statistics::Figures;
use orrery_storage::{Permutation, QuadPosition, ReadView};
use orrery_term::TermId;

use crate::context::QueryContext;
use crate::error::Error;
use crate::node_metrics::NodeMetrics;
use crate::pattern::{GraphScope, QuadPattern, Slot, describe_pattern};
use crate::solutions::{plan_properties, solution_batch, solution_schema};
use orrery_plan_node::node_methods;

/// The number of solutions of a pattern, if a range of some permutation has exactly that length.
///
/// That is so when the constants of the pattern lead one of the permutations and nothing else
/// restricts the rows: no variable stands twice, and the graph is either fixed, or does not matter.
pub fn exact_count(view: &ReadView, pattern: &QuadPattern) -> Result<Option<u64>, Error> {
    let slots = [&pattern.subject, &pattern.predicate, &pattern.object];
    let variables: Vec<_> = slots.iter().filter_map(|slot| slot.variable()).collect();
    let repeats = variables
        .iter()
        .enumerate()
        .any(|(number, name)| variables[..number].contains(name));
    let graph = match (&pattern.graph, view.has_named_graphs()) {
        (GraphScope::Default | GraphScope::AllUnion, false) => None,
        (GraphScope::Default, true) => Some(TermId::DEFAULT_GRAPH),
        (GraphScope::Named(graph), _) => Some(*graph),
        (GraphScope::Union(graphs), _) if graphs.len() == 1 => Some(graphs[0]),
        (GraphScope::AllUnion, true)
        | (GraphScope::Union(_) | GraphScope::NamedVariable { .. }, _) => return Ok(None),
    };
    if repeats {
        return Ok(None);
    }
    let constant = |slot: &Slot| match slot {
        Slot::Constant(term) => Some(*term),
        Slot::Variable(_) => None,
    };
    rows_of(view, slots.map(constant), graph)
}

/// The exact count of a pattern in the default graph by its constants, if its variables all differ.
pub fn exact_count_of_constants(
    view: &ReadView,
    constants: [Option<TermId>; 3],
) -> Result<Option<u64>, Error> {
    let graph = view.has_named_graphs().then_some(TermId::DEFAULT_GRAPH);
    rows_of(view, constants, graph)
}

fn rows_of(
    view: &ReadView,
    [subject, predicate, object]: [Option<TermId>; 3],
    graph: Option<TermId>,
) -> Result<Option<u64>, Error> {
    let constant = |position: QuadPosition| match position {
        QuadPosition::Subject => subject,
        QuadPosition::Predicate => predicate,
        QuadPosition::Object => object,
        QuadPosition::Graph => graph,
    };
    let constants = [subject, predicate, object, graph];
    let constants = constants.iter().flatten().count();
    for permutation in [
        Permutation::Psog,
        Permutation::Posg,
        Permutation::Spog,
        Permutation::Ospg,
        Permutation::Gspo,
    ] {
        let columns = permutation.columns();
        let mut prefix = [TermId::DEFAULT_GRAPH; 4];
        let mut known = 0;
        while let Some(term) = columns.get(known).and_then(|column| constant(*column)) {
            prefix[known] = term;
            known += 1;
        }
        if known == constants
            && let Some(index) = view.index(permutation)
        {
            return Ok(Some(index.range(&prefix[..known])?.len()));
        }
    }
    Ok(None)
}

/// The number of different values of a variable of a pattern, if it was counted when the rows were
/// written, and none have changed since.
///
/// That is so for the subjects and objects of everything, and of one predicate, for who sees all
/// graphs.
pub fn exact_distinct_count(view: &ReadView, pattern: &QuadPattern, key: &str) -> Option<u64> {
    let sees_all = match pattern.graph {
        GraphScope::Default => !view.has_named_graphs(),
        GraphScope::AllUnion => true,
        GraphScope::Named(_) | GraphScope::Union(_) | GraphScope::NamedVariable { .. } => false,
    };
    let is_key = |slot: &Slot| slot.variable().is_some_and(|name| **name == *key);
    let index = view.index(Permutation::Psog)?;
    let slots = [&pattern.subject, &pattern.predicate, &pattern.object];
    let occurrences = slots.iter().filter(|slot| slot.variable().is_some());
    if !sees_all || !index.is_unchanged() || occurrences.count() != pattern.variables().len() {
        return None;
    }
    let Figures::Counted(statistics) = view.figures() else {
        return None;
    };
    let (is_subject, is_object) = (is_key(&pattern.subject), is_key(&pattern.object));
    match (&pattern.subject, &pattern.predicate, &pattern.object) {
        (Slot::Variable(_), Slot::Constant(predicate), Slot::Variable(_)) => {
            let figures = statistics.predicate(*predicate);
            let figures = figures.copied().unwrap_or_default();
            match (is_subject, is_object) {
                (true, _) => Some(figures.distinct_subjects),
                (_, true) => Some(figures.distinct_objects),
                (false, false) => None,
            }
        }
        (Slot::Variable(_), Slot::Variable(_), Slot::Variable(_)) => {
            match (is_subject, is_object) {
                (true, _) => Some(statistics.distinct_subjects()),
                (_, true) => Some(statistics.distinct_objects()),
                (false, false) => None,
            }
        }
        _ => None,
    }
}

/// The plan node that returns the number of matches of a pattern as one solution, an `xsd:integer`.
#[derive(Debug)]
pub struct CountExec {
    pub(crate) text: String,
    pub(crate) count: TermId,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl CountExec {
    /// Binds the variable to the count, if [`exact_count`] knows it.
    pub fn try_new(
        context: &Arc<QueryContext>,
        pattern: &QuadPattern,
        variable: Arc<str>,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>, Error> {
        let Some(count) = exact_count(context.view(), pattern)? else {
            return Ok(None);
        };
        let text = format!("rows of {{ {} }}", describe_pattern(context, pattern));
        Ok(Self::of_number(text, count, &variable))
    }

    /// Binds the variable to the number of different values of `key`, if [`exact_distinct_count`]
    /// knows it.
    pub fn of_values(
        context: &Arc<QueryContext>,
        pattern: &QuadPattern,
        key: &str,
        variable: Arc<str>,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>, Error> {
        let Some(count) = exact_distinct_count(context.view(), pattern, key) else {
            return Ok(None);
        };
        let pattern = describe_pattern(context, pattern);
        let text = format!("different ?{key} of {{ {pattern} }}");
        Ok(Self::of_number(text, count, &variable))
    }

    fn of_number(text: String, count: u64, variable: &Arc<str>) -> Option<Arc<dyn ExecutionPlan>> {
        let count = i64::try_from(count).ok().and_then(TermId::integer)?;
        Some(Arc::new(Self::of(text, count, variable)))
    }

    /// Binds the variable to this count, of what the text shows.
    pub(crate) fn of(text: String, count: TermId, variable: &Arc<str>) -> Self {
        let schema = solution_schema([variable]);
        Self {
            text,
            count,
            properties: plan_properties(&schema),
            schema,
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }
}

impl DisplayAs for CountExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CountExec: {}", self.text)
    }
}

impl ExecutionPlan for CountExec {
    node_methods!("CountExec", leaf);

    fn execute(&self, partition: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        assert_or_internal_err!(partition == 0, "CountExec has one partition");
        NodeMetrics::new(&self.metrics, partition).record_output(1);
        let column = UInt64Array::from(vec![self.count.bits()]);
        let batch = solution_batch(&self.schema, vec![column], 1);
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            Arc::clone(&self.schema),
            futures::stream::iter([batch]),
        )))
    }
}
