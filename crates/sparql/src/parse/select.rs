//! `SELECT (COUNT(?v) AS ?n) (?n + 1 AS ?m)`: a variable of one expression used in a later one.
//!
//! SPARQL allows that (SPARQL 1.2, 18.2.4.4); spargebra refuses it where there are aggregates. For queries
//! that it refused for this reason, the text is written anew with the first expression in place
//! of the variable, which means the same unless each evaluation gives another value.

use std::borrow::Cow;

use hashbrown::HashMap;

use super::skip::{skip_comment, skip_iri, skip_string};
use super::tokens::is_name;

/// What spargebra says of such a query.
pub(super) const REFUSAL: &str = "an expression with a variable that is unbound";
/// A text that grows by more than this is given up: each expression may hold the one before twice.
const GROWTH_BYTES_MAX: usize = 1 << 20;
/// Functions whose value differs from one evaluation to the next.
const VOLATILE: [&str; 4] = ["RAND", "UUID", "STRUUID", "BNODE"];

/// The query with the variables of earlier expressions replaced in later ones, if there are any.
pub(super) fn with_expressions_for_variables(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut changed = String::new();
    let (mut copied, mut at) = (0, 0);
    while at < bytes.len() {
        let end = token_end(bytes, at);
        if text[at..end].eq_ignore_ascii_case("SELECT") {
            at = end;
            let mut known: HashMap<&str, String> = HashMap::new();
            while let Some(item) = next_item(text, &mut at) {
                let Some(item) = item else { continue };
                let expression = substituted(&text[item.start..item.end], &known)?;
                if let Cow::Owned(expression) = &expression {
                    changed.push_str(&text[copied..item.start]);
                    changed.push_str(expression);
                    copied = item.end;
                }
                if is_replaceable(&expression) {
                    known.insert(item.variable, format!("({expression})"));
                }
                if changed.len() > text.len() + GROWTH_BYTES_MAX {
                    return None;
                }
            }
        } else {
            at = end;
        }
    }
    if copied == 0 {
        return None;
    }
    changed.push_str(&text[copied..]);
    Some(changed)
}

/// `( expression AS ?variable )`.
struct Item<'t> {
    start: usize,
    end: usize,
    variable: &'t str,
}

/// The next member of a `SELECT` clause; `Some(None)` for a word or a variable by itself, `None` behind the clause.
fn next_item<'t>(text: &'t str, at: &mut usize) -> Option<Option<Item<'t>>> {
    let bytes = text.as_bytes();
    *at = skip_blanks(bytes, *at);
    match *bytes.get(*at)? {
        b'(' => {}
        b'?' | b'$' => {
            *at = variable_end(bytes, *at);
            return Some(None);
        }
        _ => {
            let end = token_end(bytes, *at);
            let word = &text[*at..end];
            let goes_on = ["DISTINCT", "REDUCED"]
                .iter()
                .any(|keyword| word.eq_ignore_ascii_case(keyword));
            *at = end;
            return goes_on.then_some(None);
        }
    }
    let start = *at + 1;
    let (mut depth, mut end) = (1_usize, None);
    *at = start;
    while depth > 0 {
        *at = skip_blanks(bytes, *at);
        let next = token_end(bytes, *at);
        match *bytes.get(*at)? {
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ if depth == 1 && text[*at..next].eq_ignore_ascii_case("AS") => end = Some(*at),
            _ => {}
        }
        *at = next;
    }
    let Some(end) = end else { return Some(None) };
    let variable = skip_blanks(bytes, end + 2);
    let is_variable = matches!(bytes.get(variable), Some(b'?' | b'$'));
    Some(is_variable.then(|| Item {
        start,
        end,
        variable: &text[variable + 1..variable_end(bytes, variable)],
    }))
}

/// The expression with known variables replaced. Nothing is replaced within braces.
fn substituted<'t>(expression: &'t str, known: &HashMap<&str, String>) -> Option<Cow<'t, str>> {
    let bytes = expression.as_bytes();
    let mut changed = String::new();
    let (mut copied, mut at) = (0, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'{' => return Some(Cow::Borrowed(expression)),
            b'?' | b'$' => {
                let end = variable_end(bytes, at);
                if let Some(replacement) = known.get(&expression[at + 1..end]) {
                    changed.push_str(&expression[copied..at]);
                    changed.push_str(replacement);
                    copied = end;
                }
                at = end;
            }
            _ => at = token_end(bytes, at),
        }
        if changed.len() > expression.len() + GROWTH_BYTES_MAX {
            return None;
        }
    }
    if copied == 0 {
        return Some(Cow::Borrowed(expression));
    }
    changed.push_str(&expression[copied..]);
    Some(Cow::Owned(changed))
}

fn is_replaceable(expression: &str) -> bool {
    let bytes = expression.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let end = token_end(bytes, at);
        let word = &expression[at..end];
        // A comment would hide the bracket that follows.
        if matches!(bytes[at], b'{' | b'#') || VOLATILE.iter().any(|v| word.eq_ignore_ascii_case(v))
        {
            return false;
        }
        at = end;
    }
    true
}

/// Where the token at `at`, a word or a character, ends; strings, IRIs and comments are one each.
fn token_end(bytes: &[u8], at: usize) -> usize {
    let Some(&byte) = bytes.get(at) else {
        return bytes.len();
    };
    let end = match byte {
        b'\\' => at + 2,
        b'#' => skip_comment(bytes, at) + 1,
        b'"' | b'\'' => skip_string(bytes, at) + 1,
        b'<' => skip_iri(bytes, at) + 1,
        byte if is_name(byte) => {
            at + bytes[at..]
                .iter()
                .take_while(|byte| is_name(**byte))
                .count()
        }
        _ => at + 1,
    };
    end.min(bytes.len())
}

fn skip_blanks(bytes: &[u8], mut at: usize) -> usize {
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'#' => at = (skip_comment(bytes, at) + 1).min(bytes.len()),
            b' ' | b'\t' | b'\r' | b'\n' => at += 1,
            _ => break,
        }
    }
    at
}

/// Where the variable whose mark stands at `at` ends.
fn variable_end(bytes: &[u8], at: usize) -> usize {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte >= 0x80;
    at + 1
        + bytes[at + 1..]
            .iter()
            .take_while(|byte| is_part(byte))
            .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earlier_expressions_stand_for_their_variables() {
        let text = "SELECT DISTINCT ?g (COUNT(?v) AS ?n) # (\n (?n + 1 as $m) (STR(?m) AS ?s) { ?v ?p ?n }";
        assert_eq!(
            with_expressions_for_variables(text).unwrap(),
            "SELECT DISTINCT ?g (COUNT(?v) AS ?n) # (\n ((COUNT(?v) ) + 1 as $m) (STR(((COUNT(?v) ) + 1 )) AS ?s) { ?v ?p ?n }"
        );
    }

    #[test]
    fn what_may_change_its_value_is_left_alone() {
        for text in [
            "SELECT (RAND() AS ?n) (?n + COUNT(*) AS ?m) {}",
            "SELECT (COUNT(*) AS ?n) (?nn + ?m AS ?x) {}",
            "SELECT (COUNT(*) AS ?n) ('?n' AS ?x) (<?n> AS ?y) {}",
            "SELECT (COUNT(*) AS ?n) (EXISTS { ?n ?p ?o } AS ?m) {}",
            "SELECT (COUNT(*) AS",
            "SELECT * { ?s ?p ?o }",
            "SELECT (",
        ] {
            assert_eq!(with_expressions_for_variables(text), None, "{text}");
        }
    }

    #[test]
    fn doubling_ends() {
        let mut text = "SELECT (COUNT(*) AS ?v0)".to_owned();
        for n in 0..60 {
            text += &format!(" (?v{n} + ?v{n} AS ?v{})", n + 1);
        }
        assert_eq!(with_expressions_for_variables(&text), None);
    }
}
