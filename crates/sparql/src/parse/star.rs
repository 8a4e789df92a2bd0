//! The columns of `SELECT *` in the order in which the query names them.
//!
//! SPARQL does not say in which order they come, and spargebra gives them by their names. Who reads a table expects
//! what was asked first to stand first.

use hashbrown::HashMap;
use spargebra::Query;
use spargebra::algebra::GraphPattern;
use spargebra::term::Variable;

use super::skip::{skip_comment, skip_iri, skip_string};
use super::tokens::{end_of_name, is_name, stands_alone};

/// The query; if it is a `SELECT *`, with its variables as they appear in the text.
pub(super) fn in_order_of_appearance(text: &str, mut query: Query) -> Query {
    if let Query::Select { pattern, .. } = &mut query
        && let Some(variables) = projected(pattern)
        && variables.len() > 1
        && let Some(places) = places(text)
    {
        variables.sort_by_key(|variable| places.get(variable.as_str()).copied());
    }
    query
}

/// What the outermost projection keeps.
fn projected(pattern: &mut GraphPattern) -> Option<&mut Vec<Variable>> {
    match pattern {
        GraphPattern::Project { variables, .. } => Some(variables),
        GraphPattern::Distinct { inner }
        | GraphPattern::Reduced { inner }
        | GraphPattern::Slice { inner, .. } => projected(inner),
        _ => None,
    }
}

/// Where each variable is named first, if the text begins with `SELECT *`.
fn places(text: &str) -> Option<HashMap<&str, usize>> {
    let bytes = text.as_bytes();
    let mut places = HashMap::new();
    let (mut at, mut is_after_select, mut has_star) = (0, false, false);
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            b'#' => at = skip_comment(bytes, at),
            b'"' | b'\'' => at = skip_string(bytes, at),
            b'<' => at = skip_iri(bytes, at),
            b'*' if is_after_select => has_star = true,
            b'(' if is_after_select && !has_star => return None,
            b'?' | b'$' => {
                if !has_star {
                    return None;
                }
                let end = end_of_name(bytes, at + 1);
                places.entry(&text[at + 1..end]).or_insert(at);
                at = end - 1;
            }
            byte if is_name(byte) => {
                let end = end_of_name(bytes, at);
                let word = &text[at..end];
                is_after_select |=
                    word.eq_ignore_ascii_case("SELECT") && stands_alone(bytes, at, end);
                at = end - 1;
            }
            _ => {}
        }
        at += 1;
    }
    has_star.then_some(places)
}

#[cfg(test)]
mod tests {
    fn columns(text: &str) -> Vec<String> {
        let query = super::super::parse(text, Some("http://example.com/")).unwrap();
        let spargebra::Query::Select { mut pattern, .. } = query else {
            panic!("a SELECT");
        };
        let variables = super::projected(&mut pattern).unwrap();
        variables.iter().map(|it| it.as_str().to_owned()).collect()
    }

    #[test]
    fn columns_of_a_star_come_as_the_query_names_them() {
        let text = "PREFIX select: <http://e/?c*> # ?b *\nSELECT DISTINCT * { ?z select:p \"?a\" ; <?b> $y . { SELECT * { ?m ?b ?a } } } LIMIT 2";
        assert_eq!(columns(text), ["z", "y", "m", "b", "a"]);
    }

    #[test]
    fn columns_that_are_named_stay_in_their_order() {
        assert_eq!(
            columns("SELECT ?b ?a { { SELECT * { ?a ?c ?b } } }"),
            ["b", "a"]
        );
        assert_eq!(
            columns("SELECT (COUNT(*) AS ?n) ?a { ?b ?c ?a } GROUP BY ?a"),
            ["n", "a"]
        );
        assert_eq!(columns("SELECT (2 * ?a AS ?n) ?a { ?b ?c ?a }"), ["n", "a"]);
    }
}
