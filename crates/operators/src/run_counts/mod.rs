//! Grouped `COUNT(*)` from run lengths in permutations, without reading rows one by one.
//!
//! The constants of a pattern lead a permutation and the variable comes next, so equal values stand
//! together: a group is a run of rows. Short runs are counted as the column is read, long ones are
//! jumped over by one search. Cost: a search a predicate for
//! `SELECT ?p (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?p`, one column in sequence at worst; no hash
//! table, nothing kept. So are the quads of each named graph, in GSPO.
//!
//! ```text
//! ?a :knows ?b    runs of POSG   ?b: 3 3 3 5 7 7          3 rows of 3, one of 5, two of 7
//! ?b :knows ?c    runs of PSOG   ?b: 1 3 3 7              one of 1, two of 3, one of 7
//! product by ?b                                           3: 6, 7: 2
//! ```
//!
//! The solutions of patterns that share one variable and no other are, for each of its values, the
//! product of their rows: the runs are merged as sets are intersected, whoever is behind leaps to
//! the value of the others. So a join of a million rows with a million is counted by reading two
//! columns, however many rows it has. A product that 64 bits do not hold is exact too. Where the
//! adjacency of a predicate is in memory, its rows are the lengths of lists instead (`lists`): the
//! pattern with the fewest rows gives the keys, and leaps over those that lie between keys of the
//! lists.
//!
//! Where there are named graphs a triple may have several rows. They differ in the last column
//! only, so that the first row of each counts for the merge of all graphs, and the rows whose last
//! column is the graph for one graph; these columns are read as well then, long runs too.
//!
//! However few groups there are among however many rows, a turn reads no more than some hundred
//! thousand rows, and then gives way.
//!
//! Gives the groups in ascending order of ids, which nobody may rely on.

mod lists;
mod runs;
mod source;

use std::fmt;
use std::sync::Arc;
use std::task::Poll;

use arrow::array::UInt64Array;
use arrow::datatypes::SchemaRef;
use datafusion_common::{Result, assert_or_internal_err, internal_err};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::coop::cooperative;
use datafusion_physical_plan::metrics::{Count, ExecutionPlanMetricsSet, MetricBuilder};
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use orrery_expressions::columns::intern_value;
use orrery_expressions::{Arithmetic, Value};
use orrery_term::TermId;

use crate::context::QueryContext;
use crate::error::Error;
use crate::node_metrics::NodeMetrics;
use crate::pattern::{QuadPattern, describe_pattern};
use crate::solutions::{plan_properties, solution_batch, solution_schema, storage_error};
use orrery_plan_node::node_methods;

use lists::Lists;
use runs::{Reached, Runs, Turn};
use source::runs_of;

pub(crate) use source::{CountedRows, RunSource};

/// The metric that tells how many keys were looked up in adjacencies in memory.
const IN_MEMORY: &str = "in_memory";
/// Groups per batch.
const GROUPS_PER_BATCH: usize = 8_192;
/// Patterns that are counted together: each has windows of its own.
pub(crate) const PATTERNS_MAX: usize = 16;

/// The specification of a [`RunCountsExec`].
#[derive(Clone, Debug)]
pub struct RunCountsSpecification {
    /// Patterns that have the key, and no other variable in common.
    pub patterns: Vec<QuadPattern>,
    /// A variable, bound to each value that it has in all patterns.
    pub key: Arc<str>,
    /// Variables, each bound to the number of solutions with the value; none gives the different
    /// values.
    pub counts: Vec<Arc<str>>,
}

impl RunCountsSpecification {
    /// The patterns, for people.
    fn text(&self, context: &QueryContext) -> String {
        let patterns = self.patterns.iter();
        let patterns: Vec<String> = patterns.map(|it| describe_pattern(context, it)).collect();
        format!("{} by ?{}", patterns.join(" . "), self.key)
    }

    /// Where the runs of each pattern are. `None` if some pattern's are nowhere: a variable stands
    /// twice, some graphs of several matter, the key is not next to the constants in any
    /// permutation.
    fn sources(&self, context: &QueryContext) -> Option<Vec<RunSource>> {
        let mut known: Vec<Arc<str>> = Vec::new();
        for pattern in &self.patterns {
            let variables = pattern.variables();
            for name in variables.into_iter().filter(|name| **name != self.key) {
                if known.contains(name) {
                    return None;
                }
                known.push(Arc::clone(name));
            }
        }
        match self.patterns.as_slice() {
            [] => None,
            patterns if patterns.len() > PATTERNS_MAX => None,
            patterns => patterns
                .iter()
                .map(|pattern| runs_of(context, pattern, &self.key))
                .collect(),
        }
    }
}

/// Whether the rows of each value of a variable stand together in some permutation.
pub fn has_runs(context: &QueryContext, pattern: &QuadPattern, key: &Arc<str>) -> bool {
    runs_of(context, pattern, key).is_some()
}

/// The plan node that counts solutions per value of a variable; see the module's documentation.
#[derive(Debug)]
pub struct RunCountsExec {
    context: Arc<QueryContext>,
    pub(crate) text: String,
    /// Where the runs of each pattern are.
    pub(crate) sources: Vec<RunSource>,
    /// How often the count is given.
    counts: usize,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl RunCountsExec {
    /// The node, if permutations have the key's values of all patterns as runs.
    pub fn try_new(
        context: &Arc<QueryContext>,
        specification: RunCountsSpecification,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>, Error> {
        let Some(sources) = specification.sources(context) else {
            return Ok(None);
        };
        let text = specification.text(context);
        let RunCountsSpecification { key, counts, .. } = specification;
        let node = Self::over(context, text, sources, (&key, &counts));
        Ok(Some(Arc::new(node)))
    }

    /// Binds the key to each value that the columns after all prefixes have; `text` shows which
    /// patterns these are.
    pub(crate) fn over(
        context: &Arc<QueryContext>,
        text: String,
        sources: Vec<RunSource>,
        (key, counts): (&Arc<str>, &[Arc<str>]),
    ) -> Self {
        let schema = solution_schema(std::iter::once(key).chain(counts));
        Self {
            context: Arc::clone(context),
            text,
            sources,
            counts: counts.len(),
            properties: plan_properties(&schema),
            schema,
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }
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
        let baseline = NodeMetrics::new(&self.metrics, partition);
        let schema = Arc::clone(&self.schema);
        let copies = self.counts;
        let in_memory = MetricBuilder::new(&self.metrics).counter(IN_MEMORY, partition);
        let products = Products::new(&self.context, &self.sources, in_memory);
        let mut products = products?;
        let batches = futures::stream::poll_fn(move |context| {
            let (keys, counts) = match products.poll_groups() {
                Poll::Ready(Ok(Some(groups))) => groups,
                Poll::Ready(Ok(None)) => return Poll::Ready(None),
                Poll::Ready(Err(error)) => return Poll::Ready(Some(Err(error))),
                Poll::Pending => {
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
            };
            let rows = keys.len();
            baseline.record_output(rows);
            let counts = UInt64Array::from(counts);
            let mut columns = vec![UInt64Array::from(keys)];
            columns.resize(1 + copies, counts);
            Poll::Ready(Some(solution_batch(&schema, columns, rows)))
        });
        Ok(Box::pin(cooperative(RecordBatchStreamAdapter::new(
            Arc::clone(&self.schema),
            batches,
        ))))
    }
}

/// Ids and the ids of their counts.
type KeysAndCounts = (Vec<u64>, Vec<Option<u64>>);

/// The values that all patterns have, with the products of their rows.
struct Products {
    context: Arc<QueryContext>,
    /// The pattern with the fewest rows, to whose values the others leap.
    first: Runs,
    others: Vec<Side>,
    in_memory: Count,
    is_over: bool,
    /// Groups that were found and not given yet.
    keys: Vec<u64>,
    counts: Vec<Option<u64>>,
}

/// A pattern whose rows are asked for by values of another one.
enum Side {
    Runs(Runs),
    Lists(Lists),
}

impl Side {
    /// Goes on to the first value not below `key` that it may have, and gives it; at the key
    /// itself, it has it.
    #[inline]
    fn leap_to(&mut self, key: u64, turn: &mut Turn) -> orrery_storage::Result<Reached> {
        match self {
            Self::Runs(runs) => runs.leap_to(key, turn),
            Self::Lists(lists) => Ok(lists.leap_to(key)?.map_or(Reached::End, Reached::Key)),
        }
    }

    /// The rows of the value at which it stands.
    #[inline]
    fn run_rows(&self) -> u64 {
        match self {
            Self::Runs(runs) => runs.run_rows(),
            Self::Lists(lists) => lists.run_rows(),
        }
    }

    /// Goes on to the next value.
    #[inline]
    fn pass(&mut self) {
        match self {
            Self::Runs(runs) => runs.pass(),
            Self::Lists(_) => {}
        }
    }
}

impl Products {
    fn new(context: &Arc<QueryContext>, sources: &[RunSource], in_memory: Count) -> Result<Self> {
        let mut runs = Vec::with_capacity(sources.len());
        for source in sources {
            runs.push((Runs::new(source).map_err(storage_error)?, source));
        }
        runs.sort_by_key(|(runs, _)| runs.rows());
        let mut runs = runs.into_iter();
        let Some((first, _)) = runs.next() else {
            return internal_err!("counts of no pattern");
        };
        let side = |(runs, source): (Runs, &_)| {
            let lists = Lists::find(context, source, first.rows(), runs.rows());
            let lists = lists.map_err(storage_error)?;
            Ok(lists.map_or(Side::Runs(runs), Side::Lists))
        };
        let mut others = runs.map(side).collect::<Result<Vec<_>>>()?;
        // Who needs no search says first that it does not have a value.
        others.sort_by_key(|side| matches!(side, Side::Runs(_)));
        Ok(Self {
            context: Arc::clone(context),
            first,
            others,
            in_memory,
            is_over: false,
            keys: Vec::new(),
            counts: Vec::new(),
        })
    }

    /// Some further groups, `None` behind the last. Pending when the turn is over: whoever polls
    /// wakes itself.
    fn poll_groups(&mut self) -> Poll<Result<Option<KeysAndCounts>>> {
        let mut turn = Turn::new();
        while self.keys.len() < GROUPS_PER_BATCH && !self.is_over {
            match self.next_key(&mut turn).map_err(storage_error)? {
                Reached::Key(key) => {
                    let product = self.take_product()?;
                    self.keys.push(key);
                    self.counts.push(product);
                }
                Reached::Later => return Poll::Pending,
                Reached::End => self.end(),
            }
        }
        let groups = (
            std::mem::take(&mut self.keys),
            std::mem::take(&mut self.counts),
        );
        Poll::Ready(Ok((!groups.0.is_empty()).then_some(groups)))
    }

    /// Notes what was done.
    fn end(&mut self) {
        self.is_over = true;
        let looked_up = self.others.iter().map(|side| match side {
            Side::Runs(_) => 0,
            Side::Lists(lists) => lists.looked_up(),
        });
        self.in_memory.add(looked_up.sum());
    }

    /// The next value that all patterns have, at which all stand then. Where the turn is over, the
    /// next call goes on.
    fn next_key(&mut self, turn: &mut Turn) -> orrery_storage::Result<Reached> {
        'keys: loop {
            let key = match self.first.key(turn)? {
                Reached::Key(key) => key,
                reached @ (Reached::Later | Reached::End) => return Ok(reached),
            };
            for other in &mut self.others {
                match other.leap_to(key, turn)? {
                    Reached::Key(found) if found > key => match self.first.leap_to(found, turn)? {
                        Reached::Key(_) => continue 'keys,
                        reached @ (Reached::Later | Reached::End) => return Ok(reached),
                    },
                    Reached::Key(_) => {}
                    reached @ (Reached::Later | Reached::End) => return Ok(reached),
                }
            }
            return Ok(Reached::Key(key));
        }
    }

    /// The rows of each pattern with the value at which they stand.
    fn rows_of_each(&self) -> impl Iterator<Item = u64> {
        std::iter::once(self.first.run_rows()).chain(self.others.iter().map(Side::run_rows))
    }

    /// The product of the runs at which the patterns stand, as a term; they go on to the next ones.
    fn take_product(&mut self) -> Result<Option<u64>> {
        let mut product = Some(1_i64);
        for rows in self.rows_of_each() {
            let rows = i64::try_from(rows).ok();
            product = product.and_then(|product| product.checked_mul(rows?));
        }
        let id = match product.and_then(TermId::integer) {
            Some(id) => Some(id.bits()),
            None => self.large_product()?.map(TermId::bits),
        };
        self.first.pass();
        self.others.iter_mut().for_each(Side::pass);
        Ok(id)
    }

    #[cold]
    fn large_product(&self) -> Result<Option<TermId>> {
        let mut product = Some(Value::integer(1));
        for rows in self.rows_of_each() {
            let rows = i64::try_from(rows).ok().map(Value::integer);
            product = product.and_then(|product| Arithmetic::Multiply.apply(&product, &rows?));
        }
        let id = product.map(|product| intern_value(&product, self.context.expressions()));
        Ok(id.transpose().map_err(Error::from)?)
    }
}
