//! The oracle of tests: `spareval`, and batches of terms; also a module of the tests of
//! `operators`.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt64Array};
use arrow::datatypes::{DataType, Field, Schema};
use orrery_term::{Direction, Term, TermId, Triple};
use oxiri::Iri;
use oxrdf::BaseDirection;
use spareval::{QueryEvaluator, QueryResults};
use spargebra::Query;
use spargebra::algebra::GraphPattern;
use spargebra::term::{GroundTerm, GroundTriple, Literal, NamedNode, Variable};

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
    intern: impl Fn(&Term<'static>) -> TermId,
) -> RecordBatch {
    let columns = (0..variables.len())
        .map(|place| {
            let ids: UInt64Array = rows
                .iter()
                .map(|row| row[place].as_ref().map(|term| intern(term).bits()))
                .collect();
            Arc::new(ids) as ArrayRef
        })
        .collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    RecordBatch::try_new_with_options(schema(variables), columns, &options).unwrap()
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
        spargebra::term::Term::Literal(literal) => from_oracle_literal(literal),
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

fn from_oracle_literal(literal: &Literal) -> Term<'static> {
    let lexical = literal.value().to_owned();
    let language = literal.language().map(str::to_owned);
    match (language, literal.direction()) {
        (None, _) => Term::typed(lexical, literal.datatype().as_str().to_owned()),
        (Some(language), None) => Term::language(lexical, language),
        (Some(language), Some(direction)) => {
            let direction = match direction {
                BaseDirection::Ltr => Direction::LeftToRight,
                BaseDirection::Rtl => Direction::RightToLeft,
            };
            Term::directional(lexical, language, direction)
        }
    }
}
