//! The translation of DataFusion's messages: SQL names of types, no names of its code.
//!
//! DataFusion has one kind of error for many faults, so that they are told apart by its words
//! alone. Those that a user can come to are known here, each with a test; any other loses what is
//! plainly of its code.

use crate::SqlState;
use crate::errors::told::Told;
use crate::errors::type_names::{named_type, type_here, within_parentheses};
use crate::errors::value_words::of_value;
use crate::names::DEFAULT_PREFIX;

/// The planner has one kind of error for most of what can be wrong with a text.
pub(super) fn of_plan(words: &str) -> Told {
    let words = words.trim_start_matches("Error during planning: ");
    let told = of_value(words).or_else(|| of_function(words));
    if let Some(told) = told.or_else(|| of_operator(words)) {
        return told;
    }
    let (words, hint) = match words.split_once('\n') {
        Some((words, hint)) if hint.starts_with("Did you mean") => {
            (words.trim_end_matches('.'), Some(hint))
        }
        _ => (words, None),
    };
    let quoted = |words: &str| words.split('\'').nth(1).unwrap_or_default().to_owned();
    if words.starts_with("table '") && words.ends_with("' not found") {
        let name = quoted(words);
        let name = name.strip_prefix(DEFAULT_PREFIX).unwrap_or(&name);
        return Told::new(
            SqlState::UndefinedTable,
            format!("relation \"{name}\" does not exist"),
        );
    }
    if words.starts_with("Invalid function '") {
        let told = Told::new(
            SqlState::UndefinedFunction,
            format!("function {} does not exist", quoted(words)),
        );
        return match hint {
            Some(hint) => told.with_hint(hint),
            None => told,
        };
    }
    if words.starts_with("Plan: [") && words.contains("] does not satisfy ") {
        // The engine has contradicted itself, and shows the whole plan.
        let what =
            "no plan was found that keeps the orders in which this query's aggregates take rows";
        return Told::new(SqlState::FeatureNotSupported, what)
            .with_hint("Take ORDER BY out of the aggregate, or LIMIT and conditions out of the subquery below it.");
    }
    Told::new(state_of_plan(words), words)
}

fn state_of_plan(words: &str) -> SqlState {
    const STATES: &[(&str, SqlState)] = &[
        (
            "could not be resolved from available columns",
            SqlState::GroupingError,
        ),
        (
            "must appear in the GROUP BY clause",
            SqlState::GroupingError,
        ),
        (
            "Cannot infer common argument type",
            SqlState::UndefinedFunction,
        ),
        (
            "Cannot coerce arithmetic expression",
            SqlState::UndefinedFunction,
        ),
        (
            "Failed to coerce arguments to satisfy a call to",
            SqlState::UndefinedFunction,
        ),
        (
            "No function matches the given name and argument types",
            SqlState::UndefinedFunction,
        ),
        (
            "does not support zero arguments",
            SqlState::UndefinedFunction,
        ),
        (
            "Cannot create filter with non-boolean predicate",
            SqlState::DatatypeMismatch,
        ),
        ("more than one row", SqlState::CardinalityViolation),
        ("have different number of columns", SqlState::SyntaxError),
        (
            "must have the same number of columns",
            SqlState::SyntaxError,
        ),
        ("Arithmetic Overflow", SqlState::NumericValueOutOfRange),
        ("Correlated scalar subquery", SqlState::FeatureNotSupported),
        (
            "The subquery should only return one column",
            SqlState::FeatureNotSupported,
        ),
        ("not supported", SqlState::FeatureNotSupported),
    ];
    let known = STATES.iter().find(|(part, _)| words.contains(part));
    known.map_or(SqlState::SyntaxErrorOrAccessRuleViolation, |(_, state)| {
        *state
    })
}

/// What the engine takes for a fault of its own. Types that do not go together are none.
pub(super) fn of_internal(words: &str) -> Told {
    let types = words
        .strip_prefix("Failed to coerce types ")
        .and_then(|rest| rest.split_once(" in BETWEEN expression"));
    if let Some((types, _)) = types {
        let types: Vec<String> = types.split(" and ").map(named_type).collect();
        return Told::new(
            SqlState::UndefinedFunction,
            format!("BETWEEN does not compare {}", types.join(" and ")),
        )
        .with_hint("Cast one of them: operators of comparison bind less tightly than BETWEEN.");
    }
    if let Some(told) = of_value(words).or_else(|| of_function(words)) {
        return told;
    }
    if let Some((_, of)) = words.split_once("Min/Max accumulator not implemented for type ") {
        let of = of.split("\nThis issue was").next().unwrap_or(of);
        let of = named_type(of.trim_end_matches('.'));
        return Told::unsupported(format!("min or max of {of}"));
    }
    if words.starts_with("Retract should be implemented for aggregate functions") {
        return moving("an aggregate");
    }
    let words = words.split("\nThis issue was likely caused by").next();
    let words = words.unwrap_or_default().trim_end_matches('.');
    Told::new(SqlState::InternalError, format!("internal error: {words}"))
}

/// What the engine has not.
pub(super) fn of_missing(words: &str) -> Told {
    let words = words.trim_start_matches("This feature is not implemented: ");
    let words = words.split(" Hint: ").next().unwrap_or(words);
    if let Some((_, aggregate)) = words.split_once("`retract_batch` is not implemented: ") {
        return moving(&name_before_arguments(aggregate));
    }
    if let Some((aggregate, rest)) = words.split_once(" over sliding window frames is only") {
        let of_type = rest.split_once("got ").map(|(_, of)| named_type(of));
        let of_type = of_type.map(|of| format!(" of {of}")).unwrap_or_default();
        let aggregate = aggregate
            .to_ascii_lowercase()
            .replace("distinct", "DISTINCT");
        return moving(&format!("{aggregate}{of_type}"));
    }
    if let Some(query) = words.strip_prefix("Query ")
        && let Some(query) = query.strip_suffix(" not implemented yet")
    {
        let word = query.split_whitespace().next().unwrap_or("this");
        return Told::unsupported(format!("{} within a query", word.to_ascii_uppercase()))
            .with_hint("Changes are statements of their own; RETURNING gives their rows.");
    }
    if words.starts_with("FETCH clause is not supported") {
        return Told::unsupported("FETCH FIRST").with_hint("LIMIT does the same.");
    }
    if let Some((from, to)) = of_cast(words) {
        return Told::new(
            SqlState::CannotCoerce,
            format!("cannot cast type {from} to {to}"),
        );
    }
    if let Some(of_type) = words.strip_prefix("Unsupported SQL type ") {
        let of_type = of_type.to_ascii_lowercase();
        return Told::unsupported(format!("the type {of_type}"));
    }
    if let Some(called) = words.strip_prefix("Calling ")
        && let Some((name, what)) = called.split_once(": ")
    {
        let what = what.split(" not supported in").next().unwrap_or(what);
        return Told::unsupported(format!("{what} in the arguments of {name}"));
    }
    let kinds = [
        ("Unsupported ast node in sqltorel: ", "an expression"),
        ("Unsupported ast node ", "a table"),
        ("Unsupported binary operator: ", "an operator"),
        ("Unsupported SQL unary operator in interval ", "an operator"),
        ("Unsupported SQL unary operator ", "an operator"),
        ("Unsupported interval operator: ", "an operator"),
        ("Unsupported JOIN operator ", "a join"),
        (
            "Physical plan does not support logical expression ",
            "in this place an expression",
        ),
        ("Unsupported qualified wildcard argument: ", "*"),
    ];
    for (begin, what) in kinds {
        if let Some(node) = words.strip_prefix(begin) {
            let kind = spelled_out(node);
            return match kind.as_str() {
                "exists" | "in subquery" | "scalar subquery" => {
                    Told::unsupported("a subquery in this place")
                }
                _ => Told::unsupported(format!("{what} of the kind {kind}")),
            };
        }
    }
    plain(words)
}

/// An aggregate whose window frame takes rows away.
fn moving(aggregate: &str) -> Told {
    Told::unsupported(format!("{aggregate} over a window frame that moves")).with_hint(
        "Let the frame begin with UNBOUNDED PRECEDING, or compute it in a subquery over the rows of the frame.",
    )
}

/// The name before the arguments of a call.
fn name_before_arguments(call: &str) -> String {
    call.split('(').next().unwrap_or(call).trim().to_owned()
}

/// No function takes these types.
fn of_function(words: &str) -> Option<Told> {
    const CALL: &str = "No function matches the given name and argument types '";
    let refused = |name: &str, types: Vec<&str>| {
        let types: Vec<String> = types.into_iter().map(named_type).collect();
        let what = format!("function {name}({}) does not exist", types.join(", "));
        Told::new(SqlState::UndefinedFunction, what).with_hint(
            "No function matches the given name and argument types. You might need to add explicit type casts.",
        )
    };
    if let Some((_, call)) = words.split_once(CALL) {
        let call = call.split("'. You might").next().unwrap_or(call);
        let (name, types) = call.split_once('(')?;
        let types = types.strip_suffix(')').unwrap_or(types);
        return Some(refused(name, apart(types, ',')));
    }
    if let Some((_, call)) = words.split_once("to satisfy a call to '") {
        let (name, rest) = call.split_once('\'')?;
        let (_, types) = rest.split_once("coercion from ")?;
        let (types, _) = types.split_once(" to the signature")?;
        return Some(refused(name, apart(types, ',')));
    }
    if let Some((before, of)) = words.split_once(" does not support type") {
        let name = before.split_whitespace().next_back()?;
        return Some(refused(name, vec![type_at(of)?]));
    }
    if let Some((_, rest)) = words.split_once("nsupported data type ") {
        let of = type_at(rest)?;
        let (_, name) = rest.split_once(" for function ")?;
        let name = name.split(|it: char| !it.is_alphanumeric() && it != '_');
        let name = name.into_iter().find(|it| !it.is_empty())?;
        return Some(refused(name, vec![of]));
    }
    let (name, errors) = words
        .strip_prefix("Function '")?
        .split_once("' failed to match any signature")?;
    let mut types = errors.split("(DataType: ").skip(1);
    let types: Vec<&str> = types.by_ref().filter_map(within_parentheses).collect();
    // Each of its forms says it of the same argument.
    Some(match types.as_slice() {
        [first, rest @ ..] if rest.iter().all(|it| it == first) => refused(name, vec![first]),
        _ => Told::new(
            SqlState::UndefinedFunction,
            format!("function {name} does not take arguments of these types"),
        ),
    })
}

/// The type that words begin with, but for signs.
fn type_at(words: &str) -> Option<&str> {
    let words = words.trim_start_matches([':', ' ', '\'', '`']);
    Some(&words[..type_here(words)?])
}

/// No operator takes these types.
fn of_operator(words: &str) -> Option<Told> {
    const BEGINS: [&str; 8] = [
        "Cannot infer common argument type for comparison operation ",
        "Cannot infer common argument type for logical boolean operation ",
        "Cannot infer common argument type for regex operation ",
        "Cannot infer common argument type for bitwise operation ",
        "Cannot infer common argument type for AtAt operation ",
        "Cannot coerce arithmetic expression ",
        "Cannot get result type for temporal operation ",
        "Cannot get result type for arithmetic operation ",
    ];
    let begins = BEGINS
        .iter()
        .chain(&["Cannot infer common argument type for operation "]);
    let operation = begins
        .filter_map(|begin| words.split_once(begin))
        .map(|(_, operation)| operation)
        .next()?;
    let operation = operation.split(" to valid types").next()?;
    let operation = *apart(operation, ':').first()?;
    let parts = apart(operation, ' ');
    let [left, operator @ .., right] = parts.as_slice() else {
        return None;
    };
    let (left, operator, right) = (named_type(left), operator.join(" "), named_type(right));
    if matches!(operator.as_str(), "AND" | "OR") {
        let wrong = if left == "boolean" { right } else { left };
        return Some(Told::new(
            SqlState::DatatypeMismatch,
            format!("argument of {operator} must be type boolean, not type {wrong}"),
        ));
    }
    let what = format!("operator does not exist: {left} {operator} {right}");
    Some(Told::new(SqlState::UndefinedFunction, what).with_hint(
        "No operator matches the given name and argument types. You might need to add explicit type casts.",
    ))
}

/// The types of a cast that there is not.
fn of_cast(words: &str) -> Option<(String, String)> {
    let types = ["Unsupported CAST from ", "Unsupported TRY_CAST from "]
        .iter()
        .find_map(|begin| words.strip_prefix(begin))?;
    let (from, to) = types.split_once(" to ")?;
    Some((named_type(from), named_type(to)))
}

/// Words that stay, but for what only those know who know the engine.
fn plain(words: &str) -> Told {
    let words = match words.split_once(" not supported by ExprPlanner") {
        Some((what, _)) => what,
        None => words,
    };
    // A tree of its own, as it is for those who look for faults.
    let tree = ["{", "Ident(", "Expr(", "Value(", "Span("];
    let end = tree.iter().filter_map(|it| words.find(it)).min();
    let words = end.map_or(words, |end| &words[..end]);
    let words = words.trim_end_matches(|it: char| it.is_whitespace() || ".:(,".contains(it));
    let words = words.strip_suffix(" yet").unwrap_or(words);
    let says_so = [
        "support",
        "implement",
        "permit",
        "available",
        "cannot",
        "can not",
        "must",
        "requires",
    ];
    let says_so = says_so.iter().any(|it| words.contains(it));
    match says_so {
        true => Told::new(
            SqlState::FeatureNotSupported,
            words.replace("is not implemented", "is not supported"),
        ),
        false => Told::unsupported(words),
    }
}

/// The kind of a node of a tree, `AnyOp { .. }`, as words.
fn spelled_out(node: &str) -> String {
    let end = node.find(|it: char| !it.is_ascii_alphanumeric());
    let kind = &node[..end.unwrap_or(node.len())];
    let mut words = String::new();
    for letter in kind.chars() {
        let begins = letter.is_ascii_uppercase()
            && words.ends_with(|last: char| last.is_ascii_lowercase() || last.is_ascii_digit());
        if begins {
            words.push(' ');
        }
        words.push(letter);
    }
    match words.as_str() {
        "Any Op" => "ANY".to_owned(),
        "All Op" => "ALL".to_owned(),
        _ => words.to_ascii_lowercase(),
    }
}

/// The parts between these signs, but for those within parentheses, brackets and quotes.
fn apart(words: &str, sign: char) -> Vec<&str> {
    let (mut depth, mut in_quotes, mut begin) = (0_usize, false, 0);
    let mut parts = Vec::new();
    for (at, letter) in words.char_indices() {
        match letter {
            '"' => in_quotes = !in_quotes,
            '(' | '[' if !in_quotes => depth += 1,
            ')' | ']' if !in_quotes => depth = depth.saturating_sub(1),
            _ if letter == sign && depth == 0 && !in_quotes => {
                parts.push(words[begin..at].trim());
                begin = at + letter.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(words[begin..].trim());
    parts.retain(|part| !part.is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_and_operators_are_told_with_the_types_of_sql() {
        for (words, state, message) in [
            (
                "Internal error: Function 'sum' failed to match any signature, errors: x. No function matches the given name and argument types 'sum(Utf8View)'. You might need to add explicit type casts.\n\tCandidate functions:\n\tsum(Decimal)",
                "42883",
                "function sum(text) does not exist",
            ),
            (
                "Failed to coerce arguments to satisfy a call to 'f' function: coercion from Decimal128(10, 2), List(Int64), Null to the signature Any(1) failed",
                "42883",
                "function f(numeric, bigint[], unknown) does not exist",
            ),
            (
                "Cannot infer common argument type for comparison operation Timestamp(ns, \"+00:00\") = Int64",
                "42883",
                "operator does not exist: timestamp with time zone = bigint",
            ),
            (
                "Cannot coerce arithmetic expression Boolean + Utf8 to valid types",
                "42883",
                "operator does not exist: boolean + text",
            ),
            (
                "Cannot infer common argument type for logical boolean operation Boolean AND Int64",
                "42804",
                "argument of AND must be type boolean, not type bigint",
            ),
        ] {
            let told = of_plan(words);
            assert_eq!(told.state.code(), state, "{words}");
            assert_eq!(told.message, message);
        }
        for (words, message) in [
            (
                "array_product does not support type Utf8",
                "function array_product(text) does not exist",
            ),
            (
                "Execution error: array_max does not support type: List(Int64)",
                "function array_max(bigint[]) does not exist",
            ),
            (
                "Unsupported data type Boolean for function `to_hex`",
                "function to_hex(boolean) does not exist",
            ),
        ] {
            let told = of_plan(words);
            assert_eq!((told.state.code(), &*told.message), ("42883", message));
        }
        let told = of_internal(
            "Failed to coerce types Utf8View and Int64 in BETWEEN expression.\nThis issue was likely caused by",
        );
        assert_eq!(told.message, "BETWEEN does not compare text and bigint");
        let errors = "Error during planning: Function 'sum' requires Decimal, but received String (DataType: Utf8View).";
        let told = of_internal(&format!(
            "Function 'sum' failed to match any signature, errors: {errors},{errors}"
        ));
        assert_eq!(told.message, "function sum(text) does not exist");
    }

    #[test]
    fn what_there_is_not_is_told_without_names_of_the_engine() {
        for (words, message) in [
            (
                "Aggregate can not be used as a sliding accumulator because `retract_batch` is not implemented: median(t.a) ROWS BETWEEN 1 PRECEDING AND CURRENT ROW",
                "median over a window frame that moves is not supported",
            ),
            (
                "SUM(DISTINCT) over sliding window frames is only supported for Int64, got Float64",
                "sum(DISTINCT) of double precision over a window frame that moves is not supported",
            ),
            (
                "Query DELETE FROM t RETURNING a not implemented yet",
                "DELETE within a query is not supported",
            ),
            (
                "Unsupported ast node in sqltorel: AnyOp { left: Identifier(Ident { value: \"a\" }) }",
                "an expression of the kind ANY is not supported",
            ),
            (
                "Physical plan does not support logical expression InSubquery(InSubquery { expr: Column(a) })",
                "a subquery in this place is not supported",
            ),
            (
                "Unsupported CAST from Boolean to Date32",
                "cannot cast type boolean to date",
            ),
            ("CLUSTER BY", "CLUSTER BY is not supported"),
            (
                "UNNEST with ordinality is not supported yet",
                "UNNEST with ordinality is not supported",
            ),
            (
                "MAP not supported by ExprPlanner: RawMap { keys: [] }",
                "MAP is not supported",
            ),
            (
                "Calling sum: LIMIT not supported in function arguments: 1",
                "LIMIT in the arguments of sum is not supported",
            ),
        ] {
            assert_eq!(of_missing(words).message, message, "{words}");
        }
    }
}
