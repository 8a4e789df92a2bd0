//! Expected and actual answers, and their comparison.
//!
//! All result formats come down to the same three forms: a truth value, solutions, a graph.
//! Formats: XML, JSON, CSV and TSV results, graphs in any RDF syntax, and the result set
//! vocabulary of the SPARQL 1.0 tests, which writes solutions as a graph.

use oxrdf::vocab::rdf;
use oxrdf::{Graph, NamedNode, NamedOrBlankNodeRef, Quad, Term, TermRef, Variable};
use oxrdfio::{RdfFormat, RdfParser};
use sparesults::{QueryResultsFormat, QueryResultsParser, SliceQueryResultsParserOutput};

use super::isomorphism::{Numbers, Table};

const RS: &str = "http://www.w3.org/2001/sw/DataAccess/tests/result-set#";

/// Lines of each side that a message shows.
const SHOWN_LINES_MAX: usize = 4;

/// An answer to a query.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Boolean(bool),
    Solutions(Solutions),
    Graph(Vec<Quad>),
}

/// Solutions as read from a file.
#[derive(Clone, Debug)]
pub(crate) struct Solutions {
    variables: Vec<String>,
    rows: Vec<Vec<Option<Term>>>,
    /// Whether the file says that the order matters.
    is_ordered: bool,
}

/// Reads quads in the syntax that the ending of the IRI tells.
pub(crate) fn parse_quads(iri: &str, bytes: &[u8]) -> Result<Vec<Quad>, String> {
    let extension = iri.rsplit_once('.').map_or("", |(_, extension)| extension);
    let format =
        RdfFormat::from_extension(extension).ok_or_else(|| format!("{iri}: no known format"))?;
    RdfParser::from_format(format)
        .with_base_iri(iri)
        .map_err(|error| format!("{iri}: {error}"))?
        .for_slice(bytes)
        .collect::<Result<_, _>>()
        .map_err(|error| format!("{iri}: {error}"))
}

/// Reads an answer in the format that the ending of the IRI tells.
pub(crate) fn parse_answer(iri: &str, bytes: &[u8]) -> Result<Answer, String> {
    let format = match iri.rsplit_once('.').map_or("", |(_, extension)| extension) {
        "srx" => QueryResultsFormat::Xml,
        "srj" => QueryResultsFormat::Json,
        "tsv" => QueryResultsFormat::Tsv,
        "csv" => return parse_csv(bytes).map(Answer::Solutions),
        _ => return from_graph(parse_quads(iri, bytes)?),
    };
    let wrong = |error: &dyn std::fmt::Display| format!("{iri}: {error}");
    let parser = QueryResultsParser::from_format(format);
    match parser.for_slice(bytes).map_err(|error| wrong(&error))? {
        SliceQueryResultsParserOutput::Boolean(value) => Ok(Answer::Boolean(value)),
        SliceQueryResultsParserOutput::Solutions(solutions) => {
            let variables: Vec<Variable> = solutions.variables().to_vec();
            let mut rows = Vec::new();
            for solution in solutions {
                let solution = solution.map_err(|error| wrong(&error))?;
                rows.push(variables.iter().map(|v| solution.get(v).cloned()).collect());
            }
            Ok(Answer::Solutions(Solutions {
                variables: variables.iter().map(|v| v.as_str().to_owned()).collect(),
                rows,
                is_ordered: false,
            }))
        }
    }
}

/// RFC 4180. CSV results have no types: all values but blank nodes are taken as strings.
fn parse_csv(bytes: &[u8]) -> Result<Solutions, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    let mut records = csv_records(text).into_iter();
    let variables = records.next().ok_or("CSV without a header")?;
    let rows = records
        .map(|record| record.into_iter().map(csv_term).collect())
        .collect();
    Ok(Solutions {
        variables,
        rows,
        is_ordered: false,
    })
}

fn csv_term(field: String) -> Option<Term> {
    if field.is_empty() {
        return None;
    }
    Some(match field.strip_prefix("_:") {
        Some(label) => oxrdf::BlankNode::new_unchecked(label).into(),
        None => oxrdf::Literal::new_simple_literal(field).into(),
    })
}

fn csv_records(text: &str) -> Vec<Vec<String>> {
    let mut records = Vec::new();
    let (mut record, mut field, mut is_quoted) = (Vec::new(), String::new(), false);
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if is_quoted && letters.peek() == Some(&'"') => {
                letters.next();
                field.push('"');
            }
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => record.push(std::mem::take(&mut field)),
            '\n' if !is_quoted => {
                record.push(std::mem::take(&mut field));
                records.push(std::mem::take(&mut record));
            }
            '\r' if !is_quoted => {}
            other => field.push(other),
        }
    }
    if !record.is_empty() || !field.is_empty() {
        record.push(field);
        records.push(record);
    }
    records
}

fn rs(name: &str) -> NamedNode {
    NamedNode::new_unchecked(format!("{RS}{name}"))
}

/// A graph, unless it speaks of a result set.
fn from_graph(quads: Vec<Quad>) -> Result<Answer, String> {
    let graph: Graph = quads.iter().cloned().map(oxrdf::Triple::from).collect();
    let Some(root) = graph.subject_for_predicate_object(rdf::TYPE, &rs("ResultSet")) else {
        return Ok(Answer::Graph(quads));
    };
    let value = |node: NamedOrBlankNodeRef<'_>, name: &str| -> Option<Term> {
        graph
            .object_for_subject_predicate(node, &rs(name))
            .map(TermRef::into_owned)
    };
    let values = |node: NamedOrBlankNodeRef<'_>, name: &str| -> Vec<Term> {
        graph
            .objects_for_subject_predicate(node, &rs(name))
            .map(TermRef::into_owned)
            .collect()
    };
    if let Some(Term::Literal(boolean)) = value(root, "boolean") {
        return Ok(Answer::Boolean(boolean.value() == "true"));
    }
    let variables: Vec<String> = values(root, "resultVariable")
        .iter()
        .map(text)
        .collect::<Result<_, _>>()?;
    let mut rows = Vec::new();
    for solution in values(root, "solution") {
        let solution = node(&solution)?;
        let mut row = vec![None; variables.len()];
        for binding in values(solution, "binding") {
            let binding = node(&binding)?;
            let name = value(binding, "variable").ok_or("a binding without variable")?;
            let name = text(&name)?;
            let column = variables.iter().position(|variable| *variable == name);
            let column = column.ok_or_else(|| format!("{name} is no result variable"))?;
            row[column] = value(binding, "value");
        }
        let index = match value(solution, "index") {
            Some(index) => Some(text(&index)?.parse::<usize>().map_err(|e| e.to_string())?),
            None => None,
        };
        rows.push((index, row));
    }
    let is_ordered = !rows.is_empty() && rows.iter().all(|(index, _)| index.is_some());
    rows.sort_by_key(|(index, _)| *index);
    Ok(Answer::Solutions(Solutions {
        variables,
        rows: rows.into_iter().map(|(_, row)| row).collect(),
        is_ordered,
    }))
}

fn node(term: &Term) -> Result<NamedOrBlankNodeRef<'_>, String> {
    match term {
        Term::NamedNode(node) => Ok(node.into()),
        Term::BlankNode(node) => Ok(node.into()),
        other => Err(format!("{other} stands where a node should")),
    }
}

fn text(term: &Term) -> Result<String, String> {
    match term {
        Term::Literal(literal) => Ok(literal.value().to_owned()),
        other => Err(format!("{other} stands where a text should")),
    }
}

/// Says how an answer differs from the expected one, if it does.
///
/// With `is_lax`, duplicate solutions may be missing, as `REDUCED` allows. Computed decimals and
/// doubles may be written otherwise.
pub(crate) fn compare(expected: &Answer, actual: &Answer, is_lax: bool) -> Result<(), String> {
    match (expected, actual) {
        (Answer::Boolean(expected), Answer::Boolean(actual)) if expected == actual => Ok(()),
        (Answer::Boolean(expected), Answer::Boolean(actual)) => {
            Err(format!("expected {expected}, found {actual}"))
        }
        (Answer::Graph(expected), Answer::Graph(actual)) => compare_quads(expected, actual),
        (Answer::Solutions(expected), Answer::Solutions(actual)) => {
            compare_solutions(expected, actual, is_lax, Numbers::Exact).or_else(|message| {
                // The tests agree on no form of computed numbers: `3.21E4` here, `2.0` there.
                let by_value = compare_solutions(expected, actual, is_lax, Numbers::ByValue);
                by_value.map_err(|_| message)
            })
        }
        (Answer::Boolean(_) | Answer::Graph(_) | Answer::Solutions(_), _) => {
            Err("the answer has another form than the expected one".to_owned())
        }
    }
}

/// Compares two sets of quads.
pub(crate) fn compare_quads(expected: &[Quad], actual: &[Quad]) -> Result<(), String> {
    let table = |quads: &[Quad]| {
        let mut table = Table::default();
        for quad in quads {
            let graph = match quad.graph_name.as_ref() {
                oxrdf::GraphNameRef::NamedNode(node) => Some(node.into()),
                oxrdf::GraphNameRef::BlankNode(node) => Some(node.into()),
                oxrdf::GraphNameRef::DefaultGraph => None,
            };
            let terms: [Option<TermRef<'_>>; 4] = [
                Some(quad.subject.as_ref().into()),
                Some(quad.predicate.as_ref().into()),
                Some(quad.object.as_ref()),
                graph,
            ];
            let row = table.row(terms);
            table.push(row);
        }
        // A parser may give a statement twice.
        table.dedup();
        table
    };
    compare_tables(&table(expected), &table(actual))
}

fn compare_solutions(
    expected: &Solutions,
    actual: &Solutions,
    is_lax: bool,
    numbers: Numbers,
) -> Result<(), String> {
    let sorted = |solutions: &Solutions| {
        let mut variables = solutions.variables.clone();
        variables.sort_unstable();
        variables
    };
    let variables = sorted(expected);
    if variables != sorted(actual) {
        return Err(format!(
            "expected variables {:?}, found {:?}",
            expected.variables, actual.variables
        ));
    }
    let mut expected_table = solution_table(expected, &variables, numbers);
    let mut actual_table = solution_table(actual, &variables, numbers);
    if expected.is_ordered {
        expected_table.number_rows();
        actual_table.number_rows();
    }
    if is_lax {
        if actual_table.len() > expected_table.len() {
            return Err(difference(&expected_table, &actual_table));
        }
        expected_table.dedup();
        actual_table.dedup();
    }
    compare_tables(&expected_table, &actual_table)
}

fn solution_table(solutions: &Solutions, variables: &[String], numbers: Numbers) -> Table {
    let mut table = Table::new(numbers);
    for row in &solutions.rows {
        let row = table.row(variables.iter().map(|variable| {
            let column = solutions.variables.iter().position(|v| v == variable);
            let term = column.and_then(|column| row.get(column)?.as_ref());
            term.map(Term::as_ref)
        }));
        table.push(row);
    }
    table
}

fn compare_tables(expected: &Table, actual: &Table) -> Result<(), String> {
    if expected.is_isomorphic(actual) {
        return Ok(());
    }
    Err(difference(expected, actual))
}

/// The first lines that only one side has.
fn difference(expected: &Table, actual: &Table) -> String {
    let (expected_lines, actual_lines) = (expected.lines(), actual.lines());
    let only = |of: &[String], other: &[String]| {
        let mut other = other.to_vec();
        let mut only = Vec::new();
        for line in of {
            match other.iter().position(|candidate| candidate == line) {
                Some(at) => drop(other.swap_remove(at)),
                None => only.push(line.clone()),
            }
        }
        only.truncate(SHOWN_LINES_MAX);
        only.join(" | ")
    };
    format!(
        "expected {} rows, found {}; missing: [{}]; too much: [{}]",
        expected.len(),
        actual.len(),
        only(&expected_lines, &actual_lines),
        only(&actual_lines, &expected_lines)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_fields_may_hold_commas_quotes_and_line_ends() {
        assert_eq!(
            csv_records("x,y\r\n\"a,\"\"b\",\"c\nd\"\r\n,\r\n"),
            [["x", "y"], ["a,\"b", "c\nd"], ["", ""]]
        );
    }
}
