//! The independent reference: `spareval` over an in-memory data set.

use std::io::Read;

use orrery_term::{Direction, Term};
use oxrdf::{BaseDirection, Dataset, GraphName};
use oxttl::{NQuadsParser, TurtleParser};
use spareval::{QueryEvaluator, QueryResults};
use spargebra::SparqlParser;

use crate::Error;
use crate::answer::{Answer, Row, term_text, triple_text};

/// Reads N-Triples or N-Quads.
pub fn read_nquads(reader: impl Read) -> Result<Dataset, Error> {
    NQuadsParser::new()
        .for_reader(reader)
        .collect::<Result<Dataset, _>>()
        .map_err(|error| Error::Syntax(error.to_string()))
}

/// Reads Turtle into a graph of a data set.
pub fn read_turtle(
    reader: impl Read,
    graph: GraphName,
    dataset: &mut Dataset,
) -> Result<(), Error> {
    for triple in TurtleParser::new().for_reader(reader) {
        let triple = triple.map_err(|error| Error::Syntax(error.to_string()))?;
        dataset.insert(&triple.in_graph(graph.clone()));
    }
    Ok(())
}

/// What the reference evaluator answers.
pub fn evaluate(dataset: &Dataset, query: &str) -> Result<Answer, Error> {
    let query = SparqlParser::new()
        .parse_query(query)
        .map_err(|error| Error::Syntax(error.to_string()))?;
    let evaluator = QueryEvaluator::new();
    let failed = |error: spareval::QueryEvaluationError| Error::Reference(error.to_string());
    let results = evaluator.prepare(&query).execute(dataset).map_err(failed)?;
    Ok(match results {
        QueryResults::Boolean(value) => Answer::Boolean(value),
        QueryResults::Solutions(solutions) => {
            let mut rows = Vec::new();
            for solution in solutions {
                let solution = solution.map_err(failed)?;
                rows.push(
                    solution
                        .iter()
                        .map(|(variable, term)| (variable.as_str().to_owned(), text(term)))
                        .collect::<Row>(),
                );
            }
            Answer::Solutions(rows)
        }
        QueryResults::Graph(triples) => {
            let mut lines = Vec::new();
            for triple in triples {
                let triple = triple.map_err(failed)?;
                lines.push(format!(
                    "{} {} {} .",
                    text(&triple.subject.into()),
                    text(&triple.predicate.into()),
                    text(&triple.object)
                ));
            }
            Answer::Triples(lines)
        }
    })
}

fn text(term: &oxrdf::Term) -> String {
    match term {
        oxrdf::Term::NamedNode(node) => term_text(&Term::iri(node.as_str())),
        oxrdf::Term::BlankNode(_) => term_text(&Term::BlankNode(0)),
        oxrdf::Term::Literal(literal) => {
            term_text(&match (literal.language(), literal.direction()) {
                (Some(tag), None) => Term::language(literal.value(), tag),
                (Some(tag), Some(BaseDirection::Ltr)) => {
                    Term::directional(literal.value(), tag, Direction::LeftToRight)
                }
                (Some(tag), Some(BaseDirection::Rtl)) => {
                    Term::directional(literal.value(), tag, Direction::RightToLeft)
                }
                (None, _) => Term::typed(literal.value(), literal.datatype().as_str()),
            })
        }
        oxrdf::Term::Triple(triple) => triple_text(
            &text(&triple.subject.clone().into()),
            &text(&triple.predicate.clone().into()),
            &text(&triple.object),
        ),
    }
}
