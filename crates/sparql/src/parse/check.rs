//! Errors of syntax that spargebra lets through.

use spargebra::algebra::{AggregateExpression, Expression, GraphPattern};

use super::skip::{error_at, skip_comment, skip_iri, skip_string};
use crate::algebra::expression::for_each_variable;
use crate::error::QueryError;

/// A triple term in an expression whose subject is a literal or a triple term (SPARQL 1.2, 19.8,
/// `ExprTripleTermSubject`). spargebra takes it for `TRIPLE(...)`, which may have any operands. In patterns
/// such subjects are allowed, and match nothing.
pub(super) fn triple_term_subjects(text: &str) -> Result<(), QueryError> {
    const OPENING: &[u8] = b"<<(";
    let bytes = text.as_bytes();
    let mut at = 0;
    // For each open bracket, whether expressions stand in it.
    let mut brackets: Vec<bool> = Vec::new();
    // Whether only blanks have come since the opening of a triple term in an expression.
    let mut is_subject = false;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let is_opening = rest.starts_with(OPENING);
        let is_literal = matches!(bytes[at], b'"' | b'\'' | b'0'..=b'9' | b'+' | b'-' | b'.')
            || is_boolean(rest);
        if is_subject && (is_opening || is_literal) {
            let what = "the subject of a triple term is a variable or an IRI";
            return Err(error_at(text, at, what.to_owned()));
        }
        if is_opening {
            is_subject = brackets.last().copied().unwrap_or(false);
            brackets.push(is_subject);
            at += OPENING.len();
            continue;
        }
        match bytes[at] {
            b' ' | b'\t' | b'\r' | b'\n' => {}
            b'#' => at = skip_comment(bytes, at),
            other => {
                is_subject = false;
                match other {
                    b'\\' => at += 1,
                    b'"' | b'\'' => at = skip_string(bytes, at),
                    b'<' => at = skip_iri(bytes, at),
                    b'(' => brackets.push(true),
                    b'{' | b'[' => brackets.push(false),
                    b')' | b'}' | b']' => {
                        brackets.pop();
                    }
                    _ => {}
                }
            }
        }
        at += 1;
    }
    Ok(())
}

/// Whether a text begins with `true` or `false` as a word of its own.
fn is_boolean(text: &[u8]) -> bool {
    ["true", "false"].into_iter().any(|keyword| {
        let (word, rest) = text.split_at(keyword.len().min(text.len()));
        let goes_on = rest
            .first()
            .is_some_and(|byte| super::tokens::is_name(*byte) || *byte == b':');
        word.eq_ignore_ascii_case(keyword.as_bytes()) && !goes_on
    })
}

/// An aggregate within an aggregate: spargebra gives each a variable in the same group.
pub(super) fn nested_aggregates(pattern: &GraphPattern) -> Result<(), QueryError> {
    let mut open = vec![pattern];
    while let Some(pattern) = open.pop() {
        match pattern {
            GraphPattern::Group {
                inner, aggregates, ..
            } => {
                let is_nested = aggregates.iter().any(|(_, aggregate)| match aggregate {
                    AggregateExpression::CountSolutions { .. } => false,
                    AggregateExpression::FunctionCall { expr, .. } => {
                        mentions_one(expr, aggregates)
                    }
                });
                if is_nested {
                    return Err(QueryError::Syntax {
                        message: "an aggregate stands inside another".to_owned(),
                        line: 1,
                        column: 1,
                    });
                }
                open.push(inner);
            }
            GraphPattern::Join { left, right }
            | GraphPattern::LeftJoin { left, right, .. }
            | GraphPattern::Union { left, right }
            | GraphPattern::Minus { left, right } => open.extend([&**left, &**right]),
            GraphPattern::Filter { inner, .. }
            | GraphPattern::Graph { inner, .. }
            | GraphPattern::Extend { inner, .. }
            | GraphPattern::OrderBy { inner, .. }
            | GraphPattern::Project { inner, .. }
            | GraphPattern::Distinct { inner }
            | GraphPattern::Reduced { inner }
            | GraphPattern::Slice { inner, .. }
            | GraphPattern::Service { inner, .. } => open.push(inner),
            GraphPattern::Bgp { .. } | GraphPattern::Path { .. } | GraphPattern::Values { .. } => {}
        }
    }
    Ok(())
}

fn mentions_one(
    expression: &Expression,
    aggregates: &[(spargebra::term::Variable, AggregateExpression)],
) -> bool {
    let mut found = false;
    for_each_variable(expression, &mut |variable| {
        found |= aggregates.iter().any(|(result, _)| result == variable);
    });
    found
}

#[cfg(test)]
mod tests {
    use super::super::parse;

    #[test]
    fn what_spargebra_lets_through_is_refused() {
        for text in [
            "SELECT (COUNT(COUNT(*)) AS ?c) {}",
            "SELECT * { { SELECT (SUM(1 + MAX(?x)) AS ?c) { ?x ?p ?o } } }",
            "SELECT * { BIND(<<( <<(<a:s> <a:p> 1)>> <a:p> 1 )>> AS ?t) }",
            "SELECT * { BIND(<<(# a comment\n 'x' <a:p> 1 )>> AS ?t) }",
            "SELECT * { BIND(<<( true <a:p> 1 )>> AS ?t) }",
            "SELECT * { FILTER(<<( -1 <a:p> 1 )>> = ?t) }",
        ] {
            assert!(parse(text, None).is_err(), "{text}");
        }
    }

    #[test]
    fn what_only_looks_like_it_passes() {
        for text in [
            "SELECT (COUNT(?x) AS ?c) (COUNT(?c) AS ?d) { SELECT (COUNT(*) AS ?x) {} }",
            "PREFIX true: <a:> SELECT * { BIND(<<( true:x <a:p> 'x' )>> AS ?t) }",
            "SELECT * { BIND(TRIPLE(TRIPLE(?a, ?b, ?c), <a:p>, 1) AS ?t) }",
            "SELECT * { ?s ?p <<( <<( ?a ?b ?c )>> <a:p> <<( 1 <a:p> 2 )>> )>> }",
            "SELECT ('<<( 1' AS ?t) { ?s ?p <<( _:a <a:p> <<( ?x <a:p> 1 )>> )>> } # <<( 1",
        ] {
            let parsed = parse(text, None);
            assert!(parsed.is_ok(), "{text}: {:?}", parsed.err());
        }
    }
}
