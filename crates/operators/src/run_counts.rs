//! `COUNT(*)` by one variable of one pattern, from the lengths of runs in a sorted permutation.
//!
//! The constants of the pattern lead a permutation and the variable comes next, so equal values stand together: a
//! group is a run of rows. Short runs are counted as the column is read, long ones are jumped over by one search. Cost: a search a
//! predicate for `SELECT ?p (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?p`, one column in sequence at worst; no hash table,
//! nothing kept. So are the quads of each named graph, in GSPO.
//!
//! Gives the groups in ascending order of ids, which nobody may rely on.

use std::fmt;
use std::sync::Arc;

use arrow::array::UInt64Array;
use arrow::datatypes::SchemaRef;
use datafusion_common::{Result, assert_or_internal_err};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::coop::cooperative;
use datafusion_physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet};
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use orrery_storage::{Cursor, IndexView, Permutation, RowRange};
use orrery_term::TermId;

use crate::context::QueryContext;
use crate::error::Error;
use crate::node::node_methods;
use crate::pattern::{GraphScope, QuadPattern, Slot, describe_pattern};
use crate::solutions::{plan_properties, solution_batch, solution_schema, storage_error};

/// Groups per batch.
const GROUPS_PER_BATCH: usize = 8_192;
/// Rows of the column that are read at a time; a run that fills them is jumped over.
const WINDOW_ROWS: u64 = 4_096;

/// Gives each value of a variable with the number of its rows; see the module's documentation.
#[derive(Debug)]
pub struct RunCountsExec {
    pub(crate) text: String,
    pub(crate) index: IndexView,
    pub(crate) prefix: Vec<TermId>,
    /// How often the count is given.
    counts: usize,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl RunCountsExec {
    /// Binds `key`, a variable of the pattern, to each of its values, and each of `counts` to the number
    /// of solutions with it. `None` if no permutation has them as runs: a variable stands twice, or graphs matter.
    pub fn try_new(
        context: &Arc<QueryContext>,
        pattern: &QuadPattern,
        key: &Arc<str>,
        counts: &[Arc<str>],
    ) -> Result<Option<Arc<dyn ExecutionPlan>>, Error> {
        let Some((permutation, prefix)) = runs_of(context, pattern, key) else {
            return Ok(None);
        };
        let Some(index) = context.view().index(permutation) else {
            return Ok(None);
        };
        let text = format!("{} by ?{key}", describe_pattern(context, pattern));
        let node = Self::over(text, (index, prefix), (key, counts));
        Ok(Some(Arc::new(node)))
    }

    /// Binds the key to each value of the column after the prefix; `text` shows which pattern that is.
    pub(crate) fn over(
        text: String,
        (index, prefix): (IndexView, Vec<TermId>),
        (key, counts): (&Arc<str>, &[Arc<str>]),
    ) -> Self {
        let schema = solution_schema(std::iter::once(key).chain(counts));
        Self {
            text,
            index,
            prefix,
            counts: counts.len(),
            properties: plan_properties(&schema),
            schema,
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }
}

/// The permutation in which the rows of each value stand together, and the constants that lead it.
fn runs_of(
    context: &QueryContext,
    pattern: &QuadPattern,
    key: &Arc<str>,
) -> Option<(Permutation, Vec<TermId>)> {
    match &pattern.graph {
        GraphScope::Default | GraphScope::AllUnion => {}
        GraphScope::NamedVariable {
            variable,
            allowed: None,
        } if variable == key => {
            return is_everything(pattern).then_some((Permutation::Gspo, Vec::new()));
        }
        GraphScope::Named(_) | GraphScope::Union(_) | GraphScope::NamedVariable { .. } => {
            return None;
        }
    }
    // With named graphs a triple may have several rows.
    let slots = [&pattern.subject, &pattern.predicate, &pattern.object];
    let occurrences = slots.iter().filter(|slot| slot.variable().is_some());
    if context.view().has_named_graphs() || pattern.variables().len() != occurrences.count() {
        return None;
    }
    let constants = slots.len() - pattern.variables().len();
    [
        Permutation::Psog,
        Permutation::Posg,
        Permutation::Spog,
        Permutation::Ospg,
    ]
    .into_iter()
    .find_map(|permutation| {
        let columns = permutation.columns().map(|position| pattern.slot(position));
        let prefix: Vec<TermId> = columns
            .iter()
            .map_while(|slot| match slot {
                Some(Slot::Constant(term)) => Some(*term),
                Some(Slot::Variable(_)) | None => None,
            })
            .collect();
        let next = columns.get(prefix.len()).copied().flatten();
        let is_run = prefix.len() == constants && next.and_then(Slot::variable) == Some(key);
        is_run.then_some((permutation, prefix))
    })
}

/// Whether a pattern in a graph matches all that is in it: all its variables are different.
fn is_everything(pattern: &QuadPattern) -> bool {
    pattern.variables().len() == 4
}

impl DisplayAs for RunCountsExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RunCountsExec: rows of {{ {} }}", self.text)
    }
}

impl ExecutionPlan for RunCountsExec {
    node_methods!("RunCountsExec", leaf);

    fn execute(&self, partition: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        assert_or_internal_err!(partition == 0, "RunCountsExec has one partition");
        let baseline = BaselineMetrics::new(&self.metrics, partition);
        let schema = Arc::clone(&self.schema);
        let copies = self.counts;
        let mut runs = Runs::new(&self.index, self.prefix.clone()).map_err(storage_error)?;
        let batches = std::iter::from_fn(move || {
            let (keys, counts) = match runs.next_groups().map_err(storage_error) {
                Ok(groups) => groups?,
                Err(error) => return Some(Err(error)),
            };
            let rows = keys.len();
            baseline.record_output(rows);
            let counts = UInt64Array::from(counts);
            let mut columns = vec![UInt64Array::from(keys)];
            columns.resize(1 + copies, counts);
            Some(solution_batch(&schema, columns, rows))
        });
        Ok(Box::pin(cooperative(RecordBatchStreamAdapter::new(
            Arc::clone(&self.schema),
            futures::stream::iter(batches),
        ))))
    }
}

/// Ids and the ids of their counts.
type KeysAndCounts = (Vec<u64>, Vec<Option<u64>>);

/// The runs of equal values in the column after a prefix.
struct Runs {
    cursor: Cursor,
    prefix: Vec<TermId>,
    /// Rows not counted yet; they begin with a run.
    rest: RowRange,
    window: Vec<u64>,
}

impl Runs {
    fn new(index: &IndexView, prefix: Vec<TermId>) -> orrery_storage::Result<Self> {
        let mut rest = index.range(&prefix)?;
        if index.permutation() == Permutation::Gspo {
            // The default graph, which has no name, comes first.
            let unnamed = index.range(&[TermId::DEFAULT_GRAPH])?;
            rest.start = rest.start.max(unnamed.end);
        }
        Ok(Self {
            rest,
            cursor: index.cursor(),
            prefix,
            window: Vec::new(),
        })
    }

    /// Some further groups, `None` behind the last.
    fn next_groups(&mut self) -> orrery_storage::Result<Option<KeysAndCounts>> {
        let (mut keys, mut counts) = KeysAndCounts::default();
        while keys.len() < GROUPS_PER_BATCH && !self.rest.is_empty() {
            self.count_window(|key, rows| {
                keys.push(key);
                let count = i64::try_from(rows).ok().and_then(TermId::integer);
                counts.push(count.map(TermId::bits));
            })?;
        }
        Ok((!keys.is_empty()).then_some((keys, counts)))
    }

    /// Counts the runs that end within a window of rows, or the one run that goes beyond it.
    fn count_window(&mut self, mut found: impl FnMut(u64, u64)) -> orrery_storage::Result<()> {
        let start = self.rest.start;
        let end = self.rest.end.min(start + WINDOW_ROWS);
        self.window.clear();
        let column = self.prefix.len();
        self.cursor
            .read(RowRange::new(start, end), column, &mut self.window)?;
        let mut run_start = 0;
        for row in 1..self.window.len() {
            if self.window[row] != self.window[row - 1] {
                found(self.window[run_start], (row - run_start) as u64);
                run_start = row;
            }
        }
        let last = self.window[run_start];
        self.rest.start = start + run_start as u64;
        if end == self.rest.end {
            found(last, end - self.rest.start);
            self.rest.start = end;
        } else if run_start == 0 {
            self.prefix.push(TermId::from_bits(last));
            let run = self.cursor.seek(&self.prefix);
            self.prefix.pop();
            let run_end = run?.end.clamp(end, self.rest.end);
            found(last, run_end - start);
            self.rest.start = run_end;
        }
        Ok(())
    }
}
