//! The evaluation tree of an expression, evaluated a vector at a time.
//!
//! A [`Node`] takes an [`Input`], the ids of the variables it reads for some rows, and gives a
//! [`Column`]. Errors and unbound variables are absent elements, logic is three-valued (Kleene).
//! Each side of a connective is only evaluated for the rows that the sides before left open.
//!
//! [`Node::PerDistinct`] stands above a part that reads one variable and is not cheap (text
//! functions, regular expressions): the part is evaluated once per distinct id of that variable and
//! the result spread over the rows.

use std::sync::Arc;

use arrow::array::{Array, BooleanArray, UInt32Array, UInt64Array};
use arrow::compute::kernels::boolean::not;
use orrery_term::{Term, TermId, TermKind};

use crate::columns::calendar::{CalendarPart, parts_of_dates};
use crate::columns::column::{Column, Constant, DistinctIds, Operand, Reading, Values, take_ids};
use crate::columns::compare_columns::{compare_columns, same_term};
use crate::columns::inline_arithmetic::apply_inline;
use crate::columns::lexical_numbers::{NumberType, TextForm, numbers_of_texts};
use crate::columns::membership::{Members, or};
use crate::columns::plain_numbers::{apply_plain, cast_to_plain};
use crate::columns::triple::{TriplePart, parts_of_triples, triples};
use crate::context::ExpressionContext;
use crate::error::Result;
use crate::expression::text_search::test_of_terms;
use crate::functions::{Implementation, PureFunction, ScalarFunction, TextTest, call_places};
use crate::limits::Counted;
use crate::values::arithmetic::{negate, plus};
use crate::values::compare::{Comparison, TermComparison};
use crate::values::operator::Arithmetic;
use crate::values::value::Value;

/// A compiled expression; see the module's documentation.
pub(crate) enum Node {
    /// A variable, by its place in the input.
    Variable(usize),
    /// A constant term.
    Constant(Arc<Constant>),
    /// An error in every row: a variable that is never bound, or a wrong operation on constants.
    Error,
    /// Whether a variable is bound.
    Bound(usize),
    Or(Vec<Node>),
    And(Vec<Node>),
    Not(Box<Node>),
    Equal(Box<Node>, Box<Node>),
    Compare(Comparison, Box<Node>, Box<Node>),
    SameTerm(Box<Node>, Box<Node>),
    /// Equal to one of the others.
    In(Box<Node>, Option<Box<Members>>, Vec<Node>),
    Arithmetic(Arithmetic, Box<Node>, Box<Node>),
    /// A long chain of operations, from left to right, without a level of recursion for each.
    ArithmeticChain(Box<Node>, Vec<(Arithmetic, Node)>),
    Plus(Box<Node>),
    Negate(Box<Node>),
    If(Box<Node>, Box<Node>, Box<Node>),
    Coalesce(Vec<Node>),
    Call(ScalarFunction, Vec<Node>),
    /// The cast of something to a float or double, and how it is done to one value.
    Cast(NumberType, PureFunction, Box<Node>),
    /// The cast of a variable's text to a number.
    NumberOfText(NumberType, TextForm, usize),
    /// `YEAR`, `MONTH` or `DAY` of a variable, and how it is computed where that is not a date in
    /// each row's id.
    CalendarPart(CalendarPart, usize, Box<Node>),
    /// `isIRI`, `isBLANK`, `isLITERAL` or `isTRIPLE` of a variable.
    IsKind(NodeKind, usize),
    /// `TRIPLE`: the triple term of subject, predicate and object.
    Triple(Box<[Node; 3]>),
    /// `SUBJECT`, `PREDICATE` or `OBJECT` of a triple term.
    PartOfTriple(TriplePart, Box<Node>),
    /// `REGEX`, `CONTAINS` or the like with constants.
    TextTest(Box<TextTest>, Box<Node>),
    /// The part below, once per distinct id of this variable.
    PerDistinct(usize, Box<Node>),
}

/// What `isIRI` and its kin ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeKind {
    Iri,
    BlankNode,
    Literal,
    TripleTerm,
}

impl NodeKind {
    /// Whether an id is of this kind; a term that the query computed is looked at.
    fn holds(self, id: TermId, context: &ExpressionContext) -> Result<bool> {
        let found = match id.kind() {
            TermKind::Iri => Self::Iri,
            TermKind::BlankNode => Self::BlankNode,
            TermKind::QueryLocal | TermKind::Delta => match context.term(id)? {
                Term::Iri(_) => Self::Iri,
                Term::BlankNode(_) => Self::BlankNode,
                Term::Literal(_) => Self::Literal,
                Term::Triple(_) => Self::TripleTerm,
            },
            TermKind::TripleTerm => Self::TripleTerm,
            _ => Self::Literal,
        };
        Ok(self == found)
    }
}

/// The variables' ids for the rows to be evaluated.
#[derive(Clone)]
pub(crate) struct Input {
    /// One column a variable; empty for those that the part to be evaluated does not read.
    pub(crate) columns: Vec<UInt64Array>,
    /// Number of rows.
    pub(crate) rows: usize,
    /// The numbers of the rows among all that the expression has seen.
    pub(crate) numbers: RowNumbers,
}

/// Row numbers; they tell solutions apart for `BNODE(label)`.
#[derive(Clone)]
pub(crate) enum RowNumbers {
    /// Ascending by one from here.
    From(u64),
    /// One by one.
    List(Vec<u64>),
}

impl RowNumbers {
    fn get(&self, row: usize) -> u64 {
        match self {
            Self::From(first) => first + row as u64,
            Self::List(numbers) => numbers[row],
        }
    }
}

impl Input {
    /// So many rows of the input, from one on.
    pub(crate) fn slice(&self, from: usize, rows: usize) -> Self {
        let of_column = |column: &UInt64Array| match column.len() == self.rows {
            true => column.slice(from, rows),
            false => column.clone(),
        };
        Self {
            columns: self.columns.iter().map(of_column).collect(),
            rows,
            numbers: match &self.numbers {
                RowNumbers::From(first) => RowNumbers::From(first + from as u64),
                RowNumbers::List(numbers) => RowNumbers::List(numbers[from..from + rows].to_vec()),
            },
        }
    }

    /// The input at some of its rows.
    fn select(&self, rows: &[u32]) -> Result<Self> {
        let indices = UInt32Array::from(rows.to_vec());
        Ok(Self {
            columns: self
                .columns
                .iter()
                .map(|column| match column.len() == self.rows {
                    true => take_ids(column, &indices),
                    false => Ok(column.clone()),
                })
                .collect::<Result<_>>()?,
            rows: rows.len(),
            numbers: RowNumbers::List(
                rows.iter()
                    .map(|&row| self.numbers.get(row as usize))
                    .collect(),
            ),
        })
    }
}

impl Node {
    /// The type of all results, if they come as plain numbers.
    pub(crate) fn number_type(&self) -> Option<NumberType> {
        match self {
            Self::NumberOfText(number_type, ..) | Self::Cast(number_type, ..) => Some(*number_type),
            _ => None,
        }
    }

    /// The results for all rows of the input.
    pub(crate) fn evaluate(&self, input: &Input, context: &ExpressionContext) -> Result<Column> {
        let rows = input.rows;
        Ok(match self {
            Self::Variable(place) => Column::Ids(input.columns[*place].clone()),
            Self::Constant(constant) => Column::Constant(Some(Arc::clone(constant))),
            Self::Error => Column::Constant(None),
            Self::Bound(place) => {
                let column = &input.columns[*place];
                Column::Booleans((0..rows).map(|row| Some(column.is_valid(row))).collect())
            }
            Self::Or(parts) => Column::Booleans(connect(parts, true, input, context)?),
            Self::And(parts) => Column::Booleans(connect(parts, false, input, context)?),
            Self::Not(part) => {
                let value = part
                    .evaluate(input, context)?
                    .into_booleans(rows, context)?;
                Column::Booleans(not(&value).map_err(datafusion_common::DataFusionError::from)?)
            }
            Self::Equal(left, right) => {
                let left = left.evaluate(input, context)?;
                let right = right.evaluate(input, context)?;
                Column::Booleans(compare_columns(
                    TermComparison::Equal,
                    left,
                    right,
                    rows,
                    context,
                )?)
            }
            Self::Compare(comparison, left, right) => {
                let left = left.evaluate(input, context)?;
                let right = right.evaluate(input, context)?;
                let question = TermComparison::Order(*comparison);
                Column::Booleans(compare_columns(question, left, right, rows, context)?)
            }
            Self::SameTerm(left, right) => {
                let left = left.evaluate(input, context)?.into_ids(rows, context)?;
                let right = right.evaluate(input, context)?.into_ids(rows, context)?;
                Column::Booleans(same_term(&left, &right))
            }
            Self::In(needle, members, list) => {
                Column::Booleans(is_in(needle, members.as_deref(), list, input, context)?)
            }
            Self::Arithmetic(operator, left, right) => {
                let left = left.evaluate(input, context)?;
                let right = right.evaluate(input, context)?;
                compute(*operator, left, right, rows, context)?
            }
            Self::ArithmeticChain(first, others) => compute_chain(first, others, input, context)?,
            Self::Plus(part) => map_values(part, plus, input, context)?,
            Self::Negate(part) => map_values(part, negate, input, context)?,
            Self::If(condition, then, otherwise) => {
                evaluate_if(condition, then, otherwise, input, context)?
            }
            Self::Coalesce(parts) => coalesce(parts, input, context)?,
            Self::Call(function, arguments) => call(*function, arguments, input, context)?,
            Self::Cast(number_type, of_value, part) => {
                let part = part.evaluate(input, context)?;
                cast_to_plain(*number_type, *of_value, part, rows, context)?
            }
            Self::NumberOfText(number_type, form, place) => {
                numbers_of_texts(*number_type, *form, &input.columns[*place], context)?
            }
            Self::CalendarPart(part, place, general) => {
                match parts_of_dates(*part, &input.columns[*place]) {
                    Some(parts) => Column::Ids(parts),
                    None => general.evaluate(input, context)?,
                }
            }
            Self::IsKind(kind, place) => Column::Booleans(
                input.columns[*place]
                    .iter()
                    .map(|id| {
                        id.map(|id| kind.holds(TermId::from_bits(id), context))
                            .transpose()
                    })
                    .collect::<Result<_>>()?,
            ),
            Self::Triple(parts) => {
                let [subject, predicate, object] = parts.as_ref();
                let ids = |part: &Node| part.evaluate(input, context)?.into_ids(rows, context);
                let parts = [ids(subject)?, ids(predicate)?, ids(object)?];
                Column::Ids(triples(&parts, context)?)
            }
            Self::PartOfTriple(part, triple) => {
                let ids = triple.evaluate(input, context)?.into_ids(rows, context)?;
                Column::Ids(parts_of_triples(*part, &ids, context)?)
            }
            Self::TextTest(test, text) => Column::Booleans(match text.as_ref() {
                Self::Variable(place) => test_of_terms(test, &input.columns[*place], context)?,
                text => {
                    let texts = text.evaluate(input, context)?;
                    let texts = texts.into_operand(Reading::Value, context)?;
                    let answer = |row| test.of_value(texts.get(row)?);
                    (0..rows).map(answer).collect()
                }
            }),
            Self::PerDistinct(place, part) => per_distinct(*place, part, input, context)?,
        })
    }
}

// Apart, so that a level of recursion of `Node::evaluate` stays small.
#[inline(never)]
fn compute_chain(
    first: &Node,
    others: &[(Arithmetic, Node)],
    input: &Input,
    context: &ExpressionContext,
) -> Result<Column> {
    let mut result = first.evaluate(input, context)?;
    for (operator, other) in others {
        let other = other.evaluate(input, context)?;
        result = compute(*operator, result, other, input.rows, context)?;
    }
    Ok(result)
}

#[inline(never)]
fn compute(
    operator: Arithmetic,
    left: Column,
    right: Column,
    rows: usize,
    context: &ExpressionContext,
) -> Result<Column> {
    let quick = apply_inline(operator, &left, &right, rows)
        .map(Column::Ids)
        .or_else(|| apply_plain(operator, &left, &right));
    match quick {
        Some(results) => Ok(results),
        None => apply_to_values(operator, left, right, rows, context),
    }
}

fn apply_to_values(
    operator: Arithmetic,
    left: Column,
    right: Column,
    rows: usize,
    context: &ExpressionContext,
) -> Result<Column> {
    let left = left.into_operand(Reading::Value, context)?;
    let right = right.into_operand(Reading::Value, context)?;
    let apply = |row| operator.apply(left.get(row)?, right.get(row)?);
    counted_values((0..rows).map(apply), context)
}

fn map_values(
    part: &Node,
    function: impl Fn(&Value) -> Option<Value>,
    input: &Input,
    context: &ExpressionContext,
) -> Result<Column> {
    let operand = part
        .evaluate(input, context)?
        .into_operand(Reading::Value, context)?;
    let apply = |row| function(operand.get(row)?);
    counted_values((0..input.rows).map(apply), context)
}

/// A column of the values of rows.
fn counted_values(
    values: impl ExactSizeIterator<Item = Option<Value>>,
    context: &ExpressionContext,
) -> Result<Column> {
    let mut counted = context.count_rows(values.len());
    let mut list = Vec::with_capacity(values.len());
    for value in values {
        if let Some(value) = &value {
            counted.add(value)?;
        }
        list.push(value);
    }
    Ok(Column::Values(Values::counted(list, counted)))
}

/// `||` (deciding value true) and `&&` (deciding value false): a deciding side decides, even beside
/// an error; else an error is an error.
fn connect(
    parts: &[Node],
    deciding: bool,
    input: &Input,
    context: &ExpressionContext,
) -> Result<BooleanArray> {
    let mut answers = vec![Some(!deciding); input.rows];
    let mut open: Vec<u32> = (0..input.rows as u32).collect();
    for part in parts {
        if open.is_empty() {
            break;
        }
        let selected;
        let part_input = if open.len() == input.rows {
            input
        } else {
            selected = input.select(&open)?;
            &selected
        };
        let values = part
            .evaluate(part_input, context)?
            .into_booleans(open.len(), context)?;
        let mut at = 0;
        open.retain(|&row| {
            let value = values.is_valid(at).then(|| values.value(at));
            at += 1;
            match value {
                Some(value) if value == deciding => {
                    answers[row as usize] = Some(deciding);
                    false
                }
                Some(_) => true,
                None => {
                    answers[row as usize] = None;
                    true
                }
            }
        });
    }
    Ok(BooleanArray::from(answers))
}

/// `IN`: like `||` over `=` (SPARQL 1.1, 17.4.1.9), with the left side evaluated once.
fn is_in(
    needle: &Node,
    members: Option<&Members>,
    list: &[Node],
    input: &Input,
    context: &ExpressionContext,
) -> Result<BooleanArray> {
    let rows = input.rows;
    // Computed values meet the list as ids: those are cheap to share between its items.
    let needle = match needle.evaluate(input, context)? {
        constant @ Column::Constant(_) if members.is_none() => constant,
        other => Column::Ids(other.into_ids(rows, context)?),
    };
    let mut answers: Vec<Option<bool>> = match (members, &needle) {
        (Some(members), Column::Ids(ids)) => members.contain(ids, context)?.iter().collect(),
        _ => vec![Some(false); rows],
    };
    for item in list {
        let item = item.evaluate(input, context)?;
        let equal = compare_columns(TermComparison::Equal, needle.clone(), item, rows, context)?;
        for (answer, equal) in answers.iter_mut().zip(&equal) {
            *answer = or(*answer, equal);
        }
    }
    Ok(BooleanArray::from(answers))
}

fn evaluate_if(
    condition: &Node,
    then: &Node,
    otherwise: &Node,
    input: &Input,
    context: &ExpressionContext,
) -> Result<Column> {
    let condition = condition
        .evaluate(input, context)?
        .into_booleans(input.rows, context)?;
    let rows_where = |wanted: bool| -> Vec<u32> {
        (0..input.rows)
            .filter(|&row| condition.is_valid(row) && condition.value(row) == wanted)
            .map(|row| row as u32)
            .collect()
    };
    let mut merged = MergedBranches::new(input.rows);
    merged.fill(then, &rows_where(true), input, context)?;
    merged.fill(otherwise, &rows_where(false), input, context)?;
    Ok(merged.finish())
}

fn coalesce(parts: &[Node], input: &Input, context: &ExpressionContext) -> Result<Column> {
    let mut merged = MergedBranches::new(input.rows);
    let mut open: Vec<u32> = (0..input.rows as u32).collect();
    for part in parts {
        merged.fill(part, &open, input, context)?;
        open.retain(|&row| merged.ids[row as usize].is_none());
    }
    Ok(merged.finish())
}

/// Results that come from different parts for different rows. They meet as ids: a term that a
/// variable passes on must stay the very term it was.
struct MergedBranches {
    ids: Vec<Option<u64>>,
}

impl MergedBranches {
    fn new(rows: usize) -> Self {
        Self {
            ids: vec![None; rows],
        }
    }

    fn fill(
        &mut self,
        part: &Node,
        rows: &[u32],
        input: &Input,
        context: &ExpressionContext,
    ) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let selected;
        let part_input = if rows.len() == input.rows {
            input
        } else {
            selected = input.select(rows)?;
            &selected
        };
        let ids = part
            .evaluate(part_input, context)?
            .into_ids(rows.len(), context)?;
        for (&row, id) in rows.iter().zip(&ids) {
            self.ids[row as usize] = id;
        }
        Ok(())
    }

    fn finish(self) -> Column {
        Column::Ids(UInt64Array::from(self.ids))
    }
}

fn call(
    function: ScalarFunction,
    arguments: &[Node],
    input: &Input,
    context: &ExpressionContext,
) -> Result<Column> {
    let operands = arguments
        .iter()
        .map(|argument| {
            argument
                .evaluate(input, context)?
                .into_operand(function.reading, context)
        })
        .collect::<Result<Vec<_>>>()?;
    let rows = input.rows;
    Ok(match function.implementation {
        Implementation::Pure(pure) => {
            values_by_row(&operands, rows, context, |_, values| Ok(pure(values)))?
        }
        Implementation::Places(function) => {
            Column::Values(call_places(function, &operands, rows, context)?)
        }
        Implementation::OfQuery(function) | Implementation::Volatile(function) => {
            let call = |row, values: &[&Value]| function(values, context, input.numbers.get(row));
            values_by_row(&operands, rows, context, call)?
        }
        Implementation::Term(make) => {
            let id = |_, values: &[&Value]| match make(values) {
                Some(term) => Ok(Some(context.intern(&term)?.bits())),
                None => Ok(None),
            };
            let mut counted = context.count_rows(rows);
            Column::Ids(call_by_row(&operands, rows, &mut counted, id, |_, _| Ok(()))?.into())
        }
    })
}

/// The values that a function gives by row.
fn values_by_row(
    operands: &[Operand],
    rows: usize,
    context: &ExpressionContext,
    call: impl Fn(usize, &[&Value]) -> Result<Option<Value>>,
) -> Result<Column> {
    let mut counted = context.count_rows(rows);
    let values = call_by_row(operands, rows, &mut counted, call, Counted::add)?;
    Ok(Column::Values(Values::counted(values, counted)))
}

/// The results of a function by row, and what `count` does with each; an error in an argument is an
/// error.
fn call_by_row<'c, R>(
    operands: &[Operand],
    rows: usize,
    counted: &mut Counted<'c>,
    call: impl Fn(usize, &[&Value]) -> Result<Option<R>>,
    count: impl Fn(&mut Counted<'c>, &R) -> Result<()>,
) -> Result<Vec<Option<R>>> {
    let mut results = Vec::with_capacity(rows);
    let mut values: Vec<&Value> = Vec::with_capacity(operands.len());
    for row in 0..rows {
        values.clear();
        values.extend(operands.iter().filter_map(|operand| operand.get(row)));
        if values.len() < operands.len() {
            results.push(None);
            continue;
        }
        counted.begin(values.iter().map(|value| value.heap_bytes()).sum())?;
        let result = call(row, &values)?;
        if let Some(result) = &result {
            count(counted, result)?;
        }
        results.push(result);
    }
    Ok(results)
}

fn per_distinct(
    place: usize,
    part: &Node,
    input: &Input,
    context: &ExpressionContext,
) -> Result<Column> {
    let distinct = DistinctIds::of(&input.columns[place]);
    let ids = distinct.ids.iter().copied().map(TermId::bits).map(Some);
    // A null is a value of its own for BOUND and COALESCE.
    let column: UInt64Array = ids.chain(distinct.has_null.then_some(None)).collect();
    let rows = column.len();
    let mut columns = vec![UInt64Array::new_null(0); input.columns.len()];
    columns[place] = column;
    let distinct_input = Input {
        columns,
        rows,
        numbers: RowNumbers::From(0),
    };
    part.evaluate(&distinct_input, context)?
        .spread(distinct.index)
}
