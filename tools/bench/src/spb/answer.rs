//! Answers as sets of triples or rows, numbers compared by value.

use std::collections::BTreeSet;
use std::str::FromStr as _;

use oxrdf::{Literal, NamedNode, Term};
use oxttl::NTriplesParser;
use serde_json::Value;

const XSD: &str = "http://www.w3.org/2001/XMLSchema#";
const NUMBERS: [&str; 3] = ["integer", "decimal", "double"];

/// What a query gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A graph, a line each triple.
    Graph(BTreeSet<String>),
    /// Rows in their order.
    Ordered(Vec<Vec<String>>),
    /// Rows in any order.
    Unordered(Vec<Vec<String>>),
}

impl Answer {
    /// Rows in any order, sorted, so that two can be compared.
    pub fn unordered(mut rows: Vec<Vec<String>>) -> Self {
        rows.sort();
        Self::Unordered(rows)
    }

    /// Triples or rows.
    pub fn len(&self) -> usize {
        match self {
            Self::Graph(triples) => triples.len(),
            Self::Ordered(rows) | Self::Unordered(rows) => rows.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The first line that one has and the other does not, or that stands elsewhere, for people:
    /// expected and actual.
    pub fn difference(&self, actual: &Self) -> (String, String) {
        let lines = |answer: &Self| match answer {
            Self::Graph(triples) => triples.iter().cloned().collect::<Vec<_>>(),
            Self::Ordered(rows) | Self::Unordered(rows) => {
                rows.iter().map(|row| row.join(" ")).collect()
            }
        };
        let (expected, actual) = (lines(self), lines(actual));
        let length = expected.len().max(actual.len());
        let first = (0..length).find(|line| expected.get(*line) != actual.get(*line));
        let shown = |lines: &[String]| {
            let line = first.and_then(|line| lines.get(line));
            let line = line.map_or("nothing", String::as_str);
            format!("{} lines; {line}", lines.len())
        };
        (shown(&expected), shown(&actual))
    }
}

/// A number in a form that is the same for equal numbers.
pub fn number(value: f64) -> String {
    format!("{value:?}")
}

/// A term of a row, numbers by value.
fn canonical(term: &Term) -> String {
    if let Term::Literal(literal) = term {
        let datatype = literal.datatype().as_str().strip_prefix(XSD);
        if datatype.is_some_and(|datatype| NUMBERS.contains(&datatype))
            && let Ok(value) = literal.value().parse()
        {
            return number(value);
        }
    }
    term.to_string()
}

/// A cell of SPARQL results in JSON; empty if nothing is bound.
fn cell(binding: &Value, name: &str) -> Option<String> {
    let Some(cell) = binding.get(name) else {
        return Some(String::new());
    };
    let text = |name: &str| cell.get(name).and_then(Value::as_str);
    let value = text("value")?;
    let term: Term = match text("type")? {
        "uri" => NamedNode::new(value).ok()?.into(),
        "literal" | "typed-literal" => match (text("xml:lang"), text("datatype")) {
            (Some(language), _) => Literal::new_language_tagged_literal(value, language)
                .ok()?
                .into(),
            (None, Some(datatype)) => {
                Literal::new_typed_literal(value, NamedNode::new(datatype).ok()?).into()
            }
            (None, None) => Literal::new_simple_literal(value).into(),
        },
        _ => return None,
    };
    Some(canonical(&term))
}

impl Answer {
    /// The rows of SPARQL results in JSON; none if it is no such thing.
    pub fn of_results(body: &[u8], is_ordered: bool) -> Option<Self> {
        let results: Value = serde_json::from_slice(body).ok()?;
        let names = results.get("head")?.get("vars")?.as_array()?;
        let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
        let bindings = results.get("results")?.get("bindings")?.as_array()?;
        let row = |binding: &Value| names.iter().map(|name| cell(binding, name)).collect();
        let rows: Option<Vec<Vec<String>>> = bindings.iter().map(row).collect();
        let rows = rows?;
        Some(match is_ordered {
            true => Self::Ordered(rows),
            false => Self::unordered(rows),
        })
    }

    /// The triples of N-Triples; none if it is no such thing.
    pub fn of_triples(body: &[u8]) -> Option<Self> {
        let triples = NTriplesParser::new().for_slice(body);
        let lines: Result<BTreeSet<String>, _> = triples
            .map(|triple| Ok::<_, ()>(triple.map_err(|_| ())?.to_string()))
            .collect();
        Some(Self::Graph(lines.ok()?))
    }
}

/// A literal of N-Triples as its value.
pub(super) fn lexical(literal: &str) -> Option<String> {
    Some(Literal::from_str(literal).ok()?.value().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_and_numbers_compared_by_value() {
        let body = br#"{"head":{"vars":["a","b","c"]},"results":{"bindings":[
            {"a":{"type":"uri","value":"http://x/"},"b":{"type":"literal","value":"a \"b\"","xml:lang":"en"}},
            {"a":{"type":"literal","value":"7.50","datatype":"http://www.w3.org/2001/XMLSchema#decimal"},
             "b":{"type":"literal","value":"x"},"c":{"type":"literal","value":"2","datatype":"http://www.w3.org/2001/XMLSchema#integer"}}]}}"#;
        let answer = Answer::of_results(body, true).unwrap();
        let expected = vec![
            vec!["<http://x/>", r#""a \"b\""@en"#, ""],
            vec!["7.5", "\"x\"", "2.0"],
        ];
        let expected = expected.into_iter();
        let expected = expected.map(|row| row.into_iter().map(str::to_owned).collect());
        assert_eq!(answer, Answer::Ordered(expected.collect()));
        assert_eq!(Answer::of_results(b"{}", true), None);
    }

    #[test]
    fn a_difference_is_the_first_line_that_is_not_the_same() {
        let one = Answer::of_triples(b"<http://a> <http://p> \"1\" .\n").unwrap();
        let none = Answer::of_triples(b"").unwrap();
        let (expected, actual) = one.difference(&none);
        assert_eq!(expected, "1 lines; <http://a> <http://p> \"1\"");
        assert_eq!(actual, "0 lines; nothing");
        assert_eq!(Answer::of_triples(b"no triple"), None);
    }
}
