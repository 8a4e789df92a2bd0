//! The translation of the engine's errors about values to PostgreSQL's messages and codes.
//!
//! The engine reports such an error while it plans, for a constant, or while it runs; the kind of
//! error differs.

use crate::SqlState;
use crate::errors::told::Told;
use crate::errors::type_names::named_type;

/// Part of the engine's words, the code, PostgreSQL's words.
const VALUES: &[(&str, SqlState, &str)] = &[
    (
        "LIMIT must be >=",
        SqlState::InvalidRowCountInLimitClause,
        "LIMIT must not be negative",
    ),
    (
        "OFFSET must be >=",
        SqlState::InvalidRowCountInResultOffsetClause,
        "OFFSET must not be negative",
    ),
    (
        "negative count not allowed",
        SqlState::SubstringError,
        "negative substring length not allowed",
    ),
    (
        "start position overflow",
        SqlState::NumericValueOutOfRange,
        "integer out of range",
    ),
    (
        "field position must not be zero",
        SqlState::InvalidParameterValue,
        "field position must not be zero",
    ),
    (
        "zero raised to a negative power",
        SqlState::InvalidArgumentForPowerFunction,
        "zero raised to a negative power is undefined",
    ),
    (
        "square root of a negative number",
        SqlState::InvalidArgumentForPowerFunction,
        "cannot take square root of a negative number",
    ),
    (
        "factorial of a negative number",
        SqlState::NumericValueOutOfRange,
        "factorial of a negative number is undefined",
    ),
    (
        "Overflow happened on FACTORIAL",
        SqlState::NumericValueOutOfRange,
        "value overflows numeric format",
    ),
    (
        "NTILE requires a positive integer",
        SqlState::InvalidArgumentForNtile,
        "argument of ntile must be greater than zero",
    ),
    (
        "Nth value indices are 1 based",
        SqlState::InvalidArgumentForNthValue,
        "argument of nth_value must be greater than zero",
    ),
    (
        "SELECT DISTINCT ON expressions must match",
        SqlState::InvalidColumnReference,
        "SELECT DISTINCT ON expressions must match initial ORDER BY expressions",
    ),
];

/// What is told of a value, if the words are about one.
pub(super) fn of_value(words: &str) -> Option<Told> {
    // The engine's words, or those of the library below it.
    let broken = ["Regular expression did not compile", "regex parse error"];
    let why = broken.iter().find_map(|part| words.split_once(part));
    if let Some((_, why)) = why {
        return Some(Told::new(
            SqlState::InvalidRegularExpression,
            format!("invalid regular expression: {}", of_pattern(why)),
        ));
    }
    let known = VALUES.iter().find(|(part, ..)| words.contains(part));
    known.map(|(_, state, message)| Told::new(*state, *message))
}

/// What is told of a text that is no value of a type, if the words are about one.
pub(super) fn of_text(words: &str) -> Option<Told> {
    let rest = words.strip_prefix("Cannot cast string '")?;
    let (text, of) = rest.rsplit_once("' to value of ")?;
    let of = named_type(of.strip_suffix(" type")?);
    let digits = text.trim().trim_start_matches(['+', '-']);
    let is_number = !digits.is_empty() && digits.bytes().all(|it| it.is_ascii_digit());
    if is_number && matches!(of.as_str(), "smallint" | "integer" | "bigint") {
        return Some(Told::new(
            SqlState::NumericValueOutOfRange,
            format!("value \"{text}\" is out of range for type {of}"),
        ));
    }
    let is_of_time = ["date", "time"].iter().any(|it| of.starts_with(it));
    let state = match is_of_time {
        true => SqlState::InvalidDatetimeFormat,
        false => SqlState::InvalidTextRepresentation,
    };
    let what = format!("invalid input syntax for type {of}: \"{text}\"");
    Some(Told::new(state, what))
}

/// What is wrong with a pattern: the library draws it over several lines, and says it in the last.
fn of_pattern(why: &str) -> String {
    let Some((_, said)) = why.split_once("error: ") else {
        return why.trim_start_matches([':', ' ']).to_owned();
    };
    let end = said.find(['\n', '\\', '"']).unwrap_or(said.len());
    said[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_no_value_or_out_of_range() {
        for (words, code, message) in [
            (
                "Cannot cast string 'it's Int64' to value of Int32 type",
                "22P02",
                "invalid input syntax for type integer: \"it's Int64\"",
            ),
            (
                "Cannot cast string '99999999999' to value of Int32 type",
                "22003",
                "value \"99999999999\" is out of range for type integer",
            ),
            (
                "Cannot cast string '1x' to value of Date32 type",
                "22007",
                "invalid input syntax for type date: \"1x\"",
            ),
        ] {
            let told = of_text(words).unwrap();
            assert_eq!((told.state.code(), &*told.message), (code, message));
        }
    }

    #[test]
    fn a_pattern_is_told_by_what_is_wrong_with_it() {
        for (words, message) in [
            (
                "Regular expression did not compile: Syntax(\n~~~~\nregex parse error:\n    (\n    ^\nerror: unclosed group\n~~~~\n)",
                "invalid regular expression: unclosed group",
            ),
            (
                "Regular expression did not compile: Syntax(\"regex parse error:\\n (\\nerror: unclosed group\")",
                "invalid regular expression: unclosed group",
            ),
            (
                "Regular expression did not compile: (",
                "invalid regular expression: (",
            ),
        ] {
            let told = of_value(words).unwrap();
            assert_eq!((told.state.code(), &*told.message), ("2201B", message));
        }
    }
}
