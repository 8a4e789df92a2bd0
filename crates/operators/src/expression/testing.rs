//! What the tests of expressions and aggregates share: small databases, batches of terms, and `spareval` as the oracle.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt64Array};
use arrow::datatypes::{DataType, Field, Schema};
use datafusion_physical_expr_common::physical_expr::PhysicalExpr;
use orrery_storage::build_small;
use orrery_term::{Direction, Term, TermId, Triple};
use oxiri::Iri;
use oxrdf::BaseDirection;
use spareval::{QueryEvaluator, QueryResults};
use spargebra::algebra::{Expression, GraphPattern};
use spargebra::term::{GroundTerm, GroundTriple, Literal, NamedNode, Variable};
use spargebra::{Query, SparqlParser};

use crate::context::{ContextOptions, QueryContext};
use crate::expression::TermExpression;
use crate::expression::of_terms::term_of_literal;

/// A context over a database whose dictionary has these terms, as far as they are not inline.
pub(crate) fn context(terms: &[Term<'static>]) -> Arc<QueryContext> {
    let directory = tempfile::tempdir().unwrap();
    let quads: Vec<_> = terms
        .iter()
        .map(|term| {
            let node = Term::iri("http://example.com/s");
            (node.clone(), node, term.clone(), None)
        })
        .collect();
    let database = build_small(directory.path(), &quads).unwrap();
    let options = ContextOptions {
        base_iri: Some("http://example.com/base/".to_owned()),
        now: Some("2026-11-21T08:00:00Z".parse().unwrap()),
        ..ContextOptions::default()
    };
    QueryContext::new(database.snapshot(), options).unwrap()
}

/// The schema of these variables.
pub(crate) fn schema(variables: &[&str]) -> Arc<Schema> {
    Arc::new(Schema::new(
        variables
            .iter()
            .map(|name| Field::new(*name, DataType::UInt64, true))
            .collect::<Vec<_>>(),
    ))
}

/// A batch of these solutions.
pub(crate) fn batch(
    variables: &[&str],
    rows: &[Vec<Option<Term<'static>>>],
    context: &QueryContext,
) -> RecordBatch {
    let columns = (0..variables.len())
        .map(|place| {
            let ids: UInt64Array = rows
                .iter()
                .map(|row| {
                    row[place]
                        .as_ref()
                        .map(|term| context.intern(term).unwrap().bits())
                })
                .collect();
            Arc::new(ids) as ArrayRef
        })
        .collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    RecordBatch::try_new_with_options(schema(variables), columns, &options).unwrap()
}

/// The terms of a column of ids.
pub(crate) fn terms(ids: &UInt64Array, context: &QueryContext) -> Vec<Option<Term<'static>>> {
    ids.iter()
        .map(|id| id.map(|id| context.term(TermId::from_bits(id)).unwrap()))
        .collect()
}

/// The value of an expression in each row.
pub(crate) fn evaluate(
    expression: &Expression,
    batch: &RecordBatch,
    context: &Arc<QueryContext>,
) -> Vec<Option<Term<'static>>> {
    let compiled = TermExpression::compile(expression, &batch.schema(), context).unwrap();
    let array = run(&compiled.into_value(), batch);
    terms(arrow::array::AsArray::as_primitive(&array), context)
}

/// The array that a physical expression gives.
pub(crate) fn run(expression: &Arc<dyn PhysicalExpr>, batch: &RecordBatch) -> ArrayRef {
    expression
        .evaluate(batch)
        .unwrap()
        .into_array(batch.num_rows())
        .unwrap()
}

/// An expression as written in a query; `xsd:` and `:` (http://example.com/) are known.
pub(crate) fn parse(text: &str) -> Expression {
    let query = SparqlParser::new()
        .with_prefix("xsd", orrery_term::vocabulary::xsd::NAMESPACE)
        .unwrap()
        .with_prefix("", "http://example.com/")
        .unwrap()
        .parse_query(&format!("SELECT ({text} AS ?result) {{}}"))
        .unwrap_or_else(|error| panic!("{text}: {error}"));
    let Query::Select { pattern, .. } = query else {
        panic!("no SELECT query")
    };
    let GraphPattern::Project { inner, .. } = pattern else {
        panic!("no projection")
    };
    let GraphPattern::Extend { expression, .. } = *inner else {
        panic!("no extension")
    };
    expression
}

/// A term of this crate as one of the oracle's. Blank nodes cannot stand in VALUES.
fn ground(term: &Term<'_>) -> GroundTerm {
    match term {
        Term::Iri(_) => named(term).into(),
        Term::Literal(literal) => oxrdf_literal(literal).into(),
        Term::BlankNode(_) => panic!("a blank node in VALUES"),
        Term::Triple(triple) => GroundTriple {
            subject: named(triple.subject()),
            predicate: named(triple.predicate()),
            object: ground(triple.object()),
        }
        .into(),
    }
}

fn named(term: &Term<'_>) -> NamedNode {
    match term {
        Term::Iri(iri) => NamedNode::new_unchecked(iri.as_ref()),
        other => panic!("{other} where only an IRI may stand"),
    }
}

/// A literal of this crate as one of the oracle's.
pub(crate) fn oxrdf_literal(literal: &orrery_term::Literal<'_>) -> Literal {
    let lexical = literal.lexical.as_ref();
    match (literal.language_tag(), literal.direction()) {
        (Some(tag), None) => Literal::new_language_tagged_literal_unchecked(lexical, tag),
        (Some(tag), Some(direction)) => {
            let direction = match direction {
                Direction::LeftToRight => BaseDirection::Ltr,
                Direction::RightToLeft => BaseDirection::Rtl,
            };
            Literal::new_directional_language_tagged_literal_unchecked(lexical, tag, direction)
        }
        (None, _) => {
            Literal::new_typed_literal(lexical, NamedNode::new_unchecked(literal.datatype()))
        }
    }
}

/// A term of the oracle as one of this crate.
fn from_oracle(term: &spargebra::term::Term) -> Term<'static> {
    match term {
        spargebra::term::Term::NamedNode(iri) => Term::iri(iri.as_str().to_owned()),
        spargebra::term::Term::BlankNode(_) => Term::BlankNode(0),
        spargebra::term::Term::Literal(literal) => term_of_literal(literal),
        spargebra::term::Term::Triple(triple) => Triple::new(
            from_oracle(&triple.subject.clone().into()),
            Term::iri(triple.predicate.as_str().to_owned()),
            from_oracle(&triple.object),
        )
        .unwrap()
        .into(),
    }
}

/// The same solutions as the oracle's VALUES.
pub(crate) fn values(variables: &[&str], rows: &[Vec<Option<Term<'static>>>]) -> GraphPattern {
    GraphPattern::Values {
        variables: variables
            .iter()
            .map(|name| Variable::new_unchecked(*name))
            .collect(),
        bindings: rows
            .iter()
            .map(|row| row.iter().map(|term| term.as_ref().map(ground)).collect())
            .collect(),
    }
}

/// What the oracle finds for a variable, in each solution of a pattern.
pub(crate) fn oracle(pattern: GraphPattern, variable: &str) -> Vec<Option<Term<'static>>> {
    let query = Query::Select {
        dataset: None,
        pattern,
        base_iri: Some(Iri::parse("http://example.com/base/".to_owned()).unwrap()),
    };
    let dataset = oxrdf::Dataset::new();
    let evaluator = QueryEvaluator::new().without_optimizations();
    let results = evaluator.prepare(&query).execute(&dataset).unwrap();
    let QueryResults::Solutions(solutions) = results else {
        panic!("no solutions")
    };
    solutions
        .map(|solution| solution.unwrap().get(variable).map(from_oracle))
        .collect()
}
