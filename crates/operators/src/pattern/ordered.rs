//! Top-N over a pattern without matching all of it.
//!
//! ```text
//! ORDER BY DESC(?date) LIMIT 10       POSG of the predicate:  .. | third piece | second | first |
//!                                                                                       <- until ten rows have come
//! ```
//!
//! Numbers and dates ascend with their ids within a kind. So where all objects of a predicate are
//! of one such kind, the last ten in the order of the objects are the last ten of its POSG, if each
//! has a match. The pattern is matched piece by piece, each piece a range of objects, until there
//! are as many rows as are asked for. A piece ends between two values, so all rows equal to the
//! last one come too, and a sort by further keys on top of it sees all it has to see. Pieces grow,
//! so a wrong guess of how many rows it takes costs a factor, and the last piece takes all that is
//! left.
//!
//! What is between the pattern and the sort may be optional parts, conditions and filters: whatever
//! works on each row by itself. Rows come in no order within a piece.

use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

use datafusion_common::{Result, internal_err};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::filter::FilterExec;
use datafusion_physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties,
    ReplaceChildrenOptions, execute_stream,
};
use futures::{StreamExt, TryStreamExt};
use orrery_storage::{Cursor, IndexView, Permutation, RowRange};
use orrery_term::{TermId, TermKind};

use super::plan::PatternExec;
use super::specification::{ObjectRanges, PatternMode, PatternStep, Slot};
use crate::error::Error;
use crate::node_metrics::NodeMetrics;
use crate::solutions::{plan_properties, storage_error};
use orrery_plan_node::{Inputs, node_methods};

/// Rows of the first piece, at least: what is read at once anyway.
const FIRST_PIECE_ROWS_MIN: f64 = if cfg!(test) { 1.0 } else { 1_024.0 };
/// The first piece has so many times the rows that are expected to be enough.
const FIRST_PIECE_MARGIN: f64 = 2.0;
/// The rows of a piece, in those of the piece before it.
const PIECE_GROWTH: u64 = if cfg!(test) { 2 } else { 8 };
/// Pieces are worth it if the first one is this small a part of what would be matched.
const SHARE_MAX: f64 = if cfg!(test) { 1.0 } else { 0.25 };
/// The column of POSG that holds the objects.
const OBJECT_COLUMN: usize = 1;

/// The wanted rows of an order.
#[derive(Clone, Debug)]
pub struct FirstRows {
    /// The variable of the first sort key.
    pub variable: Arc<str>,
    /// Whether the largest come first.
    pub is_descending: bool,
    /// How many rows.
    pub rows: usize,
    /// The planner's estimate of all rows there are.
    pub rows_in_all: f64,
}

/// The plan node that returns at least the first rows of an order; see the [module](self)'s
/// documentation.
#[derive(Debug)]
pub struct OrderedExec {
    /// All rows.
    input: Arc<dyn ExecutionPlan>,
    way: Arc<PieceWay>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

/// How pieces of the rows are made.
#[derive(Debug)]
struct PieceWay {
    /// The nodes from the whole down to the pattern, without the pattern.
    chain: Vec<Arc<dyn ExecutionPlan>>,
    pattern: Arc<dyn ExecutionPlan>,
    wanted: FirstRows,
    objects: OrderedObjects,
    first_piece_rows: u64,
}

/// The objects of the predicate that are ordered by.
#[derive(Clone, Debug)]
struct OrderedObjects {
    posg: IndexView,
    predicate: TermId,
    kind: TermKind,
    rows: RowRange,
}

impl OrderedExec {
    /// Replaces `input`, where the first rows of the order can be found this way with less work.
    pub fn try_new(
        input: &Arc<dyn ExecutionPlan>,
        wanted: FirstRows,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>, Error> {
        let Some((chain, leaf)) = chain_of(input) else {
            return Ok(None);
        };
        let Some(pattern) = leaf.downcast_ref::<PatternExec>() else {
            return Ok(None);
        };
        let specification = pattern.specification();
        let Some((step, predicate)) = ordered_step(&specification.steps, &wanted.variable) else {
            return Ok(None);
        };
        let view = pattern.plan.context.view();
        let objects = match view.index(Permutation::Posg) {
            Some(posg) => OrderedObjects::of(&posg, predicate)?,
            None => None,
        };
        let Some(objects) = objects.filter(|_| specification.mode == PatternMode::Inner) else {
            return Ok(None);
        };
        let Some(first_piece_rows) = first_piece(&specification.steps, &wanted, &objects) else {
            return Ok(None);
        };
        let mut specification = specification.clone();
        specification.steps = beginning_with(&specification.steps, step);
        // All there is, but so that the plan that is shown walks what the pieces walk.
        let all_objects = ObjectRanges::new(vec![(
            TermId::first_of(objects.kind),
            TermId::last_of(objects.kind),
        )]);
        let first = &mut specification.steps[0];
        first.object_ranges = Some(match &first.object_ranges {
            Some(bounds) => bounds.intersection(&all_objects),
            None => all_objects,
        });
        let context = Arc::clone(&pattern.plan.context);
        let pattern = PatternExec::try_new(context, None, specification)?;
        Ok(Some(Arc::new(Self {
            input: over(&chain, Arc::clone(&pattern))?,
            properties: plan_properties(&input.schema()),
            way: Arc::new(PieceWay {
                chain,
                pattern,
                wanted,
                objects,
                first_piece_rows,
            }),
            metrics: ExecutionPlanMetricsSet::new(),
        })))
    }
}

impl OrderedExec {
    /// What is asked for, and the objects of the first piece.
    pub(crate) fn wanted(&self) -> (&FirstRows, u64) {
        (&self.way.wanted, self.way.first_piece_rows)
    }

    /// The node over a plan whose pattern begins with what is ordered by.
    pub(crate) fn over(
        input: Arc<dyn ExecutionPlan>,
        wanted: FirstRows,
        first_piece_rows: u64,
    ) -> Result<Self> {
        let way = PieceWay::over(&input, wanted, first_piece_rows)?;
        Ok(Self {
            properties: plan_properties(&input.schema()),
            input,
            way: Arc::new(way),
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }
}

impl PieceWay {
    /// The way for a plan whose pattern begins with what is ordered by.
    fn over(
        input: &Arc<dyn ExecutionPlan>,
        wanted: FirstRows,
        first_piece_rows: u64,
    ) -> Result<Self> {
        let Some((chain, leaf)) = chain_of(input) else {
            return internal_err!("the child of OrderedExec is no pattern");
        };
        let objects = match leaf.downcast_ref::<PatternExec>() {
            Some(pattern) => {
                let steps = &pattern.specification().steps;
                let context = &pattern.plan.context;
                match (
                    ordered_step(steps, &wanted.variable),
                    context.view().index(Permutation::Posg),
                ) {
                    (Some((0, predicate)), Some(posg)) => OrderedObjects::of(&posg, predicate)?,
                    _ => None,
                }
            }
            None => None,
        };
        let Some(objects) = objects else {
            return internal_err!("the child of OrderedExec does not begin with what it orders by");
        };
        Ok(Self {
            chain,
            pattern: leaf,
            wanted,
            objects,
            first_piece_rows,
        })
    }

    /// The plan for a range of objects.
    fn piece(&self, objects: (TermId, TermId)) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(pattern) = self.pattern.downcast_ref::<PatternExec>() else {
            return over(&self.chain, Arc::clone(&self.pattern)); // not reached: it was made as one
        };
        let ranges = ObjectRanges::new(vec![objects]);
        over(&self.chain, pattern.narrowed(0, &ranges)?)
    }
}

/// Nodes, the outermost first, and the pattern below them.
type ChainAndLeaf = (Vec<Arc<dyn ExecutionPlan>>, Arc<dyn ExecutionPlan>);

/// The nodes from a plan down to a pattern without input, the outermost first, and the pattern;
/// only nodes whose rows are those of pieces of the pattern, one after the other.
fn chain_of(plan: &Arc<dyn ExecutionPlan>) -> Option<ChainAndLeaf> {
    let mut chain = Vec::new();
    let mut node = Arc::clone(plan);
    loop {
        let pattern = node.downcast_ref::<PatternExec>();
        match pattern {
            Some(pattern) if pattern.fetch().is_some() => return None,
            Some(pattern) if pattern.input.is_none() => return Some((chain, node)),
            Some(_) => {}
            None if node.is::<FilterExec>() => {}
            None => return None,
        }
        let [below] = node.children()[..] else {
            return None;
        };
        let below = Arc::clone(below);
        chain.push(node);
        node = below;
    }
}

/// The nodes of a chain, the outermost first, over another plan.
fn over(
    chain: &[Arc<dyn ExecutionPlan>],
    plan: Arc<dyn ExecutionPlan>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let mut nodes = chain.iter().rev();
    nodes.try_fold(plan, |plan, node| {
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        Arc::clone(node).replace_children(vec![plan], options)
    })
}

/// The step whose object is the variable, and its predicate.
fn ordered_step(steps: &[PatternStep], variable: &Arc<str>) -> Option<(usize, TermId)> {
    let mut steps = steps.iter().enumerate();
    steps.find_map(|(number, step)| match &step.pattern.predicate {
        Slot::Constant(predicate) if step.pattern.object.variable() == Some(variable) => {
            Some((number, *predicate))
        }
        Slot::Constant(_) | Slot::Variable(_) => None,
    })
}

/// The steps with one of them first; each further one shares a variable with those before it, if
/// there is such a one.
fn beginning_with(steps: &[PatternStep], first: usize) -> Vec<PatternStep> {
    let mut rest: Vec<PatternStep> = steps.to_vec();
    let mut ordered: Vec<PatternStep> = vec![rest.remove(first)];
    while !rest.is_empty() {
        let is_connected = |step: &PatternStep| {
            let variables = step.pattern.variables();
            let mut before = ordered.iter().flat_map(|step| step.pattern.variables());
            before.any(|variable| variables.contains(&variable))
        };
        let next = rest.iter().position(is_connected).unwrap_or(0);
        ordered.push(rest.remove(next));
    }
    if first > 0 {
        // They were made for another order.
        for step in &mut ordered {
            step.estimated_rows = None;
        }
    }
    ordered
}

/// How many objects to begin with; nothing if the usual way is expected to do no more.
fn first_piece(steps: &[PatternStep], wanted: &FirstRows, objects: &OrderedObjects) -> Option<u64> {
    let objects_in_all = objects.rows.len() as f64;
    let objects_per_row = (objects_in_all / wanted.rows_in_all.max(1.0)).max(1.0);
    let rows =
        (wanted.rows as f64 * objects_per_row * FIRST_PIECE_MARGIN).max(FIRST_PIECE_ROWS_MIN);
    let usual = steps.iter().filter_map(|step| step.estimated_rows);
    let usual = usual.fold(wanted.rows_in_all, f64::max);
    (rows <= usual.min(objects_in_all) * SHARE_MAX).then_some(rows as u64)
}

impl OrderedObjects {
    /// The objects of a predicate, if they are of one kind in which ids ascend with values.
    fn of(posg: &IndexView, predicate: TermId) -> Result<Option<Self>, Error> {
        let mut cursor = posg.cursor();
        let rows = cursor.seek(&[predicate])?;
        if rows.is_empty() {
            return Ok(None);
        }
        let mut kind_at = |row| -> Result<Option<TermKind>, Error> {
            let row = cursor.row(row)?;
            Ok(row.and_then(|row| TermId::from_bits(row[OBJECT_COLUMN]).checked_kind()))
        };
        let (first, last) = (kind_at(rows.start)?, kind_at(rows.end - 1)?);
        let kind = first.filter(|kind| last == Some(*kind) && form_bits(*kind).is_some());
        Ok(kind.map(|kind| Self {
            posg: posg.clone(),
            predicate,
            kind,
            rows,
        }))
    }
}

/// How many of the lowest bits of an id tell only the form of the value: its datatype, digits, time
/// zone (see [`orrery_term::inline`]). `None` where ids do not ascend with values, or not all
/// values of the type are in ids of the kind.
const fn form_bits(kind: TermKind) -> Option<u32> {
    match kind {
        TermKind::Integer | TermKind::Decimal => Some(4),
        TermKind::Date => Some(11),
        TermKind::DateTime => Some(13),
        TermKind::Special
        | TermKind::BlankNode
        | TermKind::Iri
        | TermKind::Literal
        | TermKind::TripleTerm
        | TermKind::Boolean
        | TermKind::Double
        | TermKind::DoublePlain
        | TermKind::ShortString
        | TermKind::Delta
        | TermKind::QueryLocal => None,
    }
}

/// Ranges of objects, from one end to the other.
struct ObjectPieces {
    cursor: Cursor,
    objects: OrderedObjects,
    is_descending: bool,
    /// Rows that are left, and the ids that they have.
    rows: RowRange,
    ids: (TermId, TermId),
    piece_rows: u64,
}

impl ObjectPieces {
    fn new(objects: &OrderedObjects, is_descending: bool, first_piece_rows: u64) -> Self {
        Self {
            cursor: objects.posg.cursor(),
            is_descending,
            rows: objects.rows,
            ids: (
                TermId::first_of(objects.kind),
                TermId::last_of(objects.kind),
            ),
            piece_rows: first_piece_rows,
            objects: objects.clone(),
        }
    }

    /// The next range, if there is one left.
    fn next(&mut self) -> Result<Option<(TermId, TermId)>> {
        if self.rows.is_empty() {
            return Ok(None);
        }
        let (low, high) = self.ids;
        if self.piece_rows >= self.rows.len() {
            self.rows.end = self.rows.start;
            return Ok(Some((low, high)));
        }
        let last = match self.is_descending {
            true => self.rows.end - self.piece_rows,
            false => self.rows.start + self.piece_rows - 1,
        };
        self.piece_rows = self.piece_rows.saturating_mul(PIECE_GROWTH);
        let row = self.cursor.row(last).map_err(storage_error)?;
        let Some(bits) = row.map(|row| row[OBJECT_COLUMN]) else {
            self.rows.end = self.rows.start;
            return Ok(Some((low, high))); // not reached: the row is one of the rows
        };
        let form = (1 << form_bits(self.objects.kind).unwrap_or(0)) - 1;
        let predicate = [self.objects.predicate];
        if self.is_descending {
            let end = TermId::from_bits(bits & !form);
            let rest = (Bound::Included(low), Bound::Excluded(end));
            self.rows = self.left(&predicate, rest)?;
            self.ids.1 = TermId::from_bits(end.bits().saturating_sub(1));
            Ok(Some((end, high)))
        } else {
            let end = TermId::from_bits(bits | form);
            let rest = (Bound::Excluded(end), Bound::Included(high));
            self.rows = self.left(&predicate, rest)?;
            self.ids.0 = TermId::from_bits(end.bits().saturating_add(1));
            Ok(Some((low, end)))
        }
    }

    fn left(
        &mut self,
        predicate: &[TermId],
        (low, high): (Bound<TermId>, Bound<TermId>),
    ) -> Result<RowRange> {
        let cursor = &mut self.cursor;
        cursor
            .seek_between(predicate, low, high)
            .map_err(storage_error)
    }
}

impl DisplayAs for OrderedExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FirstRows {
            variable,
            is_descending,
            rows,
            ..
        } = &self.way.wanted;
        let end = if *is_descending {
            "largest"
        } else {
            "smallest"
        };
        write!(
            f,
            "OrderedExec: from the {end} ?{variable} until {rows} rows, first {} objects",
            self.way.first_piece_rows
        )
    }
}

impl Inputs for OrderedExec {
    fn inputs(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn with_inputs(
        self: Arc<Self>,
        mut inputs: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let (wanted, first_piece_rows) = self.wanted();
        let input = inputs.swap_remove(0);
        let node = Self::over(input, wanted.clone(), first_piece_rows)?;
        Ok(Arc::new(node))
    }
}

impl ExecutionPlan for OrderedExec {
    node_methods!("OrderedExec");

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let baseline = NodeMetrics::new(&self.metrics, partition);
        let schema = self.input.schema();
        let mut work = OrderedRun {
            pieces: ObjectPieces::new(
                &self.way.objects,
                self.way.wanted.is_descending,
                self.way.first_piece_rows,
            ),
            way: Arc::clone(&self.way),
            current: None,
            rows: 0,
        };
        work.current = work.next_piece(&context)?;
        let batches = futures::stream::try_unfold(work, move |mut work| {
            let context = Arc::clone(&context);
            async move {
                while let Some(current) = &mut work.current {
                    if let Some(batch) = current.next().await {
                        let batch = batch?;
                        work.rows += batch.num_rows();
                        return Ok(Some((batch, work)));
                    }
                    work.current = match work.rows < work.way.wanted.rows {
                        true => work.next_piece(&context)?,
                        false => None,
                    };
                }
                Ok(None)
            }
        });
        let counted = batches.inspect_ok(move |batch| baseline.record_output(batch.num_rows()));
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, counted)))
    }
}

/// An execution.
struct OrderedRun {
    way: Arc<PieceWay>,
    pieces: ObjectPieces,
    current: Option<SendableRecordBatchStream>,
    /// Rows given out.
    rows: usize,
}

impl OrderedRun {
    fn next_piece(
        &mut self,
        context: &Arc<TaskContext>,
    ) -> Result<Option<SendableRecordBatchStream>> {
        let Some(objects) = self.pieces.next()? else {
            return Ok(None);
        };
        let plan = self.way.piece(objects)?;
        execute_stream(plan, Arc::clone(context)).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use orrery_storage::SmallQuad;
    use orrery_term::{InlineValue, Term};
    use proptest::prelude::*;

    use super::super::specification::{GraphScope, PatternSpecification, QuadPattern};
    use super::*;
    use crate::context::QueryContext;
    use crate::test_support::{Solution, context_of_terms, names, run, var};

    const XSD: &str = "http://www.w3.org/2001/XMLSchema#";

    fn iri(name: &str) -> Term<'static> {
        Term::iri(format!("http://example.org/{name}"))
    }

    fn pattern(
        context: &QueryContext,
        subject: &str,
        predicate: &str,
        object: &str,
    ) -> PatternStep {
        let predicate = context.snapshot().term_id(&iri(predicate)).unwrap();
        let mut step = PatternStep::new(QuadPattern {
            subject: var(subject),
            predicate: Slot::Constant(predicate.unwrap_or(TermId::MAX)),
            object: var(object),
            graph: GraphScope::Default,
        });
        step.estimated_rows = Some(1e6);
        step
    }

    /// Values with several forms, so that different ids are equal in the order.
    fn any_value(is_date: bool) -> BoxedStrategy<Term<'static>> {
        let typed =
            |lexical: String, datatype: &str| Term::typed(lexical, format!("{XSD}{datatype}"));
        if is_date {
            let zone = proptest::sample::select(&["", "Z", "+01:00", "-05:00"][..]);
            return (1..9_u32, 0..24_u32, zone)
                .prop_map(move |(day, hour, zone)| {
                    typed(format!("2020-01-0{day}T{hour:02}:00:00{zone}"), "dateTime")
                })
                .boxed();
        }
        let datatype = proptest::sample::select(&["integer", "int", "byte"][..]);
        (-6..6_i64, datatype)
            .prop_map(move |(value, datatype)| typed(value.to_string(), datatype))
            .boxed()
    }

    /// What a value is ordered by.
    fn place(id: TermId) -> i64 {
        match id.inline_value() {
            Some(InlineValue::Integer(value, _)) => value,
            Some(InlineValue::DateTime(time)) => time.instant_ms,
            other => panic!("not made here: {other:?}"),
        }
    }

    fn any_data() -> impl Strategy<Value = Vec<SmallQuad>> {
        any::<bool>().prop_flat_map(|is_date| {
            let value = (0..12_u32, any_value(is_date)).prop_map(|(subject, value)| {
                (iri(&format!("s{subject}")), iri("value"), value, None)
            });
            let link = (0..12_u32, 0..3_u32).prop_map(|(from, to)| {
                (
                    iri(&format!("s{from}")),
                    iri("link"),
                    iri(&format!("t{to}")),
                    None,
                )
            });
            (
                proptest::collection::vec(value, 1..40),
                proptest::collection::vec(link, 0..20),
            )
                .prop_map(|(values, links)| [values, links].concat())
        })
    }

    proptest! {
        #[test]
        fn no_row_is_missing_that_comes_before_the_last_one_asked_for(
            quads in any_data(),
            rows in 1_usize..12,
            is_descending in any::<bool>(),
            steps in proptest::sample::select(vec![1_usize, 2]),
        ) {
            let context = context_of_terms(&quads);
            let both = [pattern(&context, "s", "link", "t"), pattern(&context, "s", "value", "v")];
            let steps = both[2 - steps..].to_vec();
            let mut specification = PatternSpecification::inner(Vec::new(), names(&["s", "v", "t"]));
            specification.steps = steps;
            let all = PatternExec::try_new(Arc::clone(&context), None, specification).unwrap();
            let wanted = FirstRows {
                variable: Arc::from("v"),
                is_descending,
                rows,
                rows_in_all: 1e6,
            };
            let first = OrderedExec::try_new(&all, wanted).unwrap();
            let mut expected = run(all);
            let Some(first) = first else {
                let objects: std::collections::BTreeSet<String> = quads
                    .iter()
                    .filter(|quad| quad.1 == iri("value"))
                    .map(|quad| format!("{} {}", quad.0, quad.2))
                    .collect();
                prop_assert!(objects.len() < 2 * rows, "one piece is not all there is");
                return Ok(());
            };
            let found = run(first);
            let place = |row: &Solution| match is_descending {
                true => -place(row["v"]),
                false => place(row["v"]),
            };
            expected.sort_by_key(place);
            let last = expected.get(rows - 1).or(expected.last()).map(place);
            let needed: Vec<&Solution> = expected
                .iter()
                .filter(|row| Some(place(row)) <= last)
                .collect();
            prop_assert!(needed.iter().all(|row| found.contains(row)));
            prop_assert!(found.len() >= needed.len() && found.len() <= expected.len());
            for row in &found {
                let copies = |rows: &[Solution]| rows.iter().filter(|other| *other == row).count();
                prop_assert_eq!(copies(&found), copies(&expected));
            }
        }
    }

    /// The first rows of `?s :value ?v` by `?v`, the largest first, where the values are these;
    /// nothing if their order is not that of the ids.
    fn largest(values: &[(String, &str)], rows: usize) -> Option<Arc<dyn ExecutionPlan>> {
        let quads: Vec<SmallQuad> = values
            .iter()
            .enumerate()
            .map(|(number, (value, datatype))| {
                let value = Term::typed(value.clone(), format!("{XSD}{datatype}"));
                (iri(&format!("s{number}")), iri("value"), value, None)
            })
            .collect();
        let context = context_of_terms(&quads);
        let mut specification = PatternSpecification::inner(Vec::new(), names(&["s", "v"]));
        specification.steps = vec![pattern(&context, "s", "value", "v")];
        let all = PatternExec::try_new(context, None, specification).unwrap();
        let wanted = FirstRows {
            variable: Arc::from("v"),
            is_descending: true,
            rows,
            rows_in_all: 1_000.0,
        };
        OrderedExec::try_new(&all, wanted).unwrap()
    }

    #[test]
    fn the_rest_is_not_matched() {
        let values: Vec<_> = (0..1_000)
            .map(|n: i64| (n.to_string(), "integer"))
            .collect();
        let first = largest(&values, 5).unwrap();
        assert_eq!(run(Arc::clone(&first)).len(), 10);
        let text = datafusion_physical_plan::displayable(&*first)
            .one_line()
            .to_string();
        assert!(
            text.starts_with("OrderedExec: from the largest ?v until 5 rows"),
            "{text}"
        );
    }

    #[test]
    fn objects_of_several_kinds_have_no_order_by_id() {
        let values = [("1".to_owned(), "integer"), ("0.5".to_owned(), "decimal")];
        assert!(largest(&values, 1).is_none());
    }
}
