//! The reference answer of `spareval`, without its optimizer, `ORDER BY` and `LIMIT`.
//!
//! The optimizer is off because the oracle shall be as near to the definitions as there is:
//! bottom-up, operator by operator. What stays to be adapted:
//!
//! - `FROM` and `FROM NAMED`: it reads the graphs one after another and gives a triple of two of
//!   them twice; by 13.2 of SPARQL 1.1 the default graph is their merge. We build the dataset for
//!   it.
//! - `DESCRIBE`: what it gives is for each engine to choose (16.4). The described terms are asked
//!   for, and what our engine has chosen is made of them here.
//! - Paths: it drops duplicates of an alternative inside of another path; by 18.4 an alternative is
//!   a union. Alternatives, sequences and inverses are taken apart as 18.2.2.4 does. So are negated
//!   sets, of which it gives one solution between constants, not one for each triple. A path that
//!   may have length zero leads from a constant to itself even if no graph has it (18.4); it asks
//!   for a node of the graph. That step is added.
//! - `GRAPH`: it gives one solution in place of one for each graph (or none) where nothing inside
//!   reads quads. The pattern is joined with its graph's name, for a variable as a union over the
//!   graphs (18.6).
//! - `COUNT(DISTINCT *)`: it counts blank nodes of patterns as variables; they are projected away.
//! - Numbers: it converts doubles to decimals and integers by way of a rounded product, cuts
//!   quotients where it may round, and gives up on products with more than eighteen digits after
//!   the point and on integers beyond 64 bits. Arithmetic, casts, `SUM` and `AVG` are those of
//!   [`exact`](super::exact).
//! - Truth values: it calls that of an ill-typed number an error (17.2.2: false). They are asked of
//!   `exact` too.
//! - `GROUP_CONCAT`: it takes strings only, we take what `STR` takes. It gets the strings.
//! - `REDUCED`: it drops neighbours, we drop nothing; both are allowed (18.5). It is taken out.
//! - `ORDER BY` without `LIMIT`, in a subquery: means nothing, is taken out, because its sort may
//!   panic over terms that are in no order.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use oxrdf::{
    Dataset, GraphName, GraphNameRef, Literal, NamedNode, NamedOrBlankNode, Quad, Term, Triple,
    Variable,
};
use spareval::{AggregateFunctionAccumulator, QueryEvaluator, QueryResults};
use spargebra::Query;
use spargebra::algebra::{GraphPattern, OrderExpression, QueryDataset};

use super::answer::{Answer, Solutions};
use super::exact::{Number, Operator, cast, truth};
use super::rewrite::{FUNCTIONS, Rewriter};

/// Rows beyond which a query is left out.
const ROWS_MAX: usize = 5_000;
/// Prefix of the variables that hold sort keys.
const KEY_PREFIX: &str = "orderKey";

/// What the comparison needs to know of the outermost modifiers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Modifiers {
    pub(crate) offset: usize,
    pub(crate) limit: Option<usize>,
    /// Of each sort key, whether it is descending.
    pub(crate) descending: Vec<bool>,
}

/// A query taken apart: the answer of `whole` holds all rows, with the sort keys as last columns.
pub(crate) struct Question {
    pub(crate) whole: Query,
    pub(crate) modifiers: Modifiers,
}

/// Why there is no answer to compare with.
#[derive(Debug)]
pub(crate) enum NoAnswer {
    /// Too many rows.
    TooLarge,
    /// The question cannot be written as text.
    NoQuery,
    /// An error, or a panic.
    Failed(String),
}

impl Question {
    /// Takes a query apart.
    pub(crate) fn of(query: &Query, quads: &[Quad]) -> Self {
        let mut whole = query.clone();
        let modifiers = take_modifiers(&mut whole);
        let named_graphs = named_graphs(&selected(quads, query.dataset()));
        match &mut whole {
            Query::Select { pattern, .. }
            | Query::Construct { pattern, .. }
            | Query::Describe { pattern, .. }
            | Query::Ask { pattern, .. } => {
                let taken = std::mem::take(pattern);
                *pattern = Rewriter::new(named_graphs).pattern(taken);
            }
        }
        Self { whole, modifiers }
    }

    /// The query without its outermost modifiers but for `DISTINCT`, for our engine; none if it
    /// has none.
    pub(crate) fn unmodified(query: &Query) -> Option<Query> {
        let mut whole = query.clone();
        take_modifiers(&mut whole);
        (whole != *query).then_some(whole)
    }
}

fn take_modifiers(query: &mut Query) -> Modifiers {
    let mut modifiers = Modifiers::default();
    if let Query::Select { pattern, .. } = query {
        let taken = std::mem::take(pattern);
        *pattern = without_modifiers(taken, &mut modifiers);
    }
    modifiers
}

fn without_modifiers(pattern: GraphPattern, modifiers: &mut Modifiers) -> GraphPattern {
    match pattern {
        GraphPattern::Slice {
            inner,
            start,
            length,
        } => {
            modifiers.offset = start;
            modifiers.limit = length;
            without_modifiers(*inner, modifiers)
        }
        GraphPattern::Distinct { inner } => GraphPattern::Distinct {
            inner: Box::new(without_modifiers(*inner, modifiers)),
        },
        GraphPattern::Reduced { inner } => without_modifiers(*inner, modifiers),
        GraphPattern::Project { inner, variables } => with_keys(*inner, variables, modifiers),
        other => other,
    }
}

/// The projection with the sort keys as further variables.
fn with_keys(
    inner: GraphPattern,
    mut variables: Vec<Variable>,
    modifiers: &mut Modifiers,
) -> GraphPattern {
    let GraphPattern::OrderBy { inner, expression } = inner else {
        return GraphPattern::Project {
            inner: Box::new(inner),
            variables,
        };
    };
    let mut pattern = *inner;
    for (number, key) in expression.into_iter().enumerate() {
        let (expression, is_descending) = match key {
            OrderExpression::Asc(expression) => (expression, false),
            OrderExpression::Desc(expression) => (expression, true),
        };
        let variable = Variable::new_unchecked(format!("{KEY_PREFIX}{number}"));
        modifiers.descending.push(is_descending);
        variables.push(variable.clone());
        pattern = GraphPattern::Extend {
            inner: Box::new(pattern),
            variable,
            expression,
        };
    }
    GraphPattern::Project {
        inner: Box::new(pattern),
        variables,
    }
}

/// The reference's answer to a whole question.
pub(crate) fn answer(quads: &[Quad], query: &Query) -> Result<Answer, NoAnswer> {
    let run = || evaluate(quads, query);
    catch_unwind(AssertUnwindSafe(run))
        .unwrap_or_else(|_| Err(NoAnswer::Failed("the reference panicked".to_owned())))
}

fn evaluate(quads: &[Quad], query: &Query) -> Result<Answer, NoAnswer> {
    let mut query = query.clone();
    let dataset = match &mut query {
        Query::Select { dataset, .. }
        | Query::Construct { dataset, .. }
        | Query::Describe { dataset, .. }
        | Query::Ask { dataset, .. } => dataset.take(),
    };
    let data = selected(quads, dataset.as_ref());
    if let Query::Describe {
        pattern, base_iri, ..
    } = query
    {
        let terms = Query::Select {
            dataset: None,
            pattern,
            base_iri,
        };
        return Ok(Answer::Graph(described(
            &data,
            evaluate_over(&data, &terms)?,
        )));
    }
    evaluate_over(&data, &query)
}

fn evaluate_over(data: &Dataset, query: &Query) -> Result<Answer, NoAnswer> {
    let evaluator = with_numbers(QueryEvaluator::new().without_optimizations());
    let failed = |error: spareval::QueryEvaluationError| NoAnswer::Failed(error.to_string());
    let prepared = evaluator.prepare(query);
    match prepared.execute(data).map_err(failed)? {
        QueryResults::Boolean(value) => Ok(Answer::Boolean(value)),
        QueryResults::Solutions(solutions) => {
            let names = solutions.variables().iter();
            let variables = names.map(|name| name.as_str().to_owned()).collect();
            let mut rows = Vec::new();
            for solution in solutions {
                if rows.len() == ROWS_MAX {
                    return Err(NoAnswer::TooLarge);
                }
                rows.push(solution.map_err(failed)?.values().to_vec());
            }
            Ok(Answer::Solutions(Solutions { variables, rows }))
        }
        QueryResults::Graph(triples) => {
            let triples = triples.take(ROWS_MAX + 1).collect::<Result<Vec<_>, _>>();
            let triples = triples.map_err(failed)?;
            if triples.len() > ROWS_MAX {
                return Err(NoAnswer::TooLarge);
            }
            Ok(Answer::Graph(triples))
        }
    }
}

/// The evaluator with our numbers; see [`Rewriter`].
fn with_numbers(mut evaluator: QueryEvaluator) -> QueryEvaluator {
    let name = |function: &str| NamedNode::new_unchecked(format!("{FUNCTIONS}{function}"));
    for (function, operator) in ["add", "subtract", "multiply", "divide"]
        .into_iter()
        .zip(Operator::ALL)
    {
        evaluator = evaluator.with_custom_function(name(function), move |arguments| {
            let [a, b] = arguments else {
                return None;
            };
            let result = Number::of(a)?.apply(operator, &Number::of(b)?)?;
            Some(result.to_term())
        });
    }
    for to in ["integer", "decimal", "float", "double", "boolean"] {
        evaluator = evaluator.with_custom_function(name(to), move |arguments| {
            let [term] = arguments else {
                return None;
            };
            cast(to, term)
        });
    }
    evaluator
        .with_custom_function(name("truth"), |arguments| {
            let [term] = arguments else {
                return None;
            };
            Some(Literal::from(truth(term)?).into())
        })
        .with_custom_aggregate_function(name("sum"), || Box::new(Total::new(false)))
        .with_custom_aggregate_function(name("avg"), || Box::new(Total::new(true)))
}

/// `SUM`, or `AVG`.
struct Total {
    is_average: bool,
    count: u64,
    sum: Option<Number>,
}

impl Total {
    fn new(is_average: bool) -> Self {
        Self {
            is_average,
            count: 0,
            sum: Some(Number::Integer(0.into())),
        }
    }
}

impl AggregateFunctionAccumulator for Total {
    fn accumulate(&mut self, element: Term) {
        self.count += 1;
        let sum = self.sum.take().zip(Number::of(&element));
        self.sum = sum.and_then(|(sum, number)| sum.apply(Operator::Add, &number));
    }

    fn finish(&mut self) -> Option<Term> {
        let sum = self.sum.take()?;
        if !self.is_average || self.count == 0 {
            return Some(sum.to_term());
        }
        let count = Number::Integer(self.count.into());
        Some(sum.apply(Operator::Divide, &count)?.to_term())
    }
}

fn named_graphs(data: &Dataset) -> Vec<NamedNode> {
    let mut names = BTreeSet::new();
    for quad in data {
        if let GraphNameRef::NamedNode(name) = quad.graph_name {
            names.insert(name.into_owned());
        }
    }
    names.into_iter().collect()
}

/// The RDF dataset of a query: the graphs of `FROM` merged, and those of `FROM NAMED`.
fn selected(quads: &[Quad], dataset: Option<&QueryDataset>) -> Dataset {
    let Some(dataset) = dataset else {
        return quads.iter().collect();
    };
    let mut selected = Dataset::new();
    for quad in quads {
        let GraphName::NamedNode(graph) = &quad.graph_name else {
            continue;
        };
        if dataset.default.contains(graph) {
            let mut merged = quad.clone();
            merged.graph_name = GraphName::DefaultGraph;
            selected.insert(&merged);
        }
        if dataset.named.iter().flatten().any(|named| named == graph) {
            selected.insert(quad);
        }
    }
    selected
}

/// The triples of all graphs with a described term as subject, and so on through blank nodes.
fn described(data: &Dataset, terms: Answer) -> Vec<Triple> {
    let Answer::Solutions(solutions) = terms else {
        return Vec::new();
    };
    let mut open: Vec<Term> = solutions.rows.into_iter().flatten().flatten().collect();
    let mut seen = BTreeSet::new();
    let mut triples = Vec::new();
    while let Some(term) = open.pop() {
        let subject = match &term {
            Term::NamedNode(node) => NamedOrBlankNode::from(node.clone()),
            Term::BlankNode(node) => node.clone().into(),
            Term::Literal(_) | Term::Triple(_) => continue,
        };
        if !seen.insert(term.to_string()) {
            continue;
        }
        for quad in data.quads_for_subject(&subject) {
            if quad.object.is_blank_node() {
                open.push(quad.object.into_owned());
            }
            triples.push(Triple::from(quad.into_owned()));
        }
    }
    triples
}
