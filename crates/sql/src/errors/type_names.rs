//! The translation of type names in the engine's messages to SQL's.
//!
//! ```text
//! Cannot cast string 'x' to value of Int64 type     ->    ... to value of bigint type
//! ... does not support type 'List(Utf8View)'        ->    ... does not support type 'text[]'
//! ```
//!
//! Text in quotes is a value or a user's name, unless the words before it say that it is a type.

use std::borrow::Cow;

use datafusion::arrow::datatypes::DataType;

/// Types that are nothing but a word, and no word of a sentence.
const WORDS: [&str; 19] = [
    "Boolean",
    "Int8",
    "Int16",
    "Int32",
    "Int64",
    "UInt8",
    "UInt16",
    "UInt32",
    "UInt64",
    "Float16",
    "Float32",
    "Float64",
    "Utf8",
    "LargeUtf8",
    "Utf8View",
    "LargeBinary",
    "BinaryView",
    "Date32",
    "Date64",
];
/// Types with more behind them, in parentheses.
const WITH_PARTS: [&str; 15] = [
    "Timestamp",
    "Time32",
    "Time64",
    "Duration",
    "Interval",
    "FixedSizeBinary",
    "List",
    "LargeList",
    "ListView",
    "FixedSizeList",
    "Struct",
    "Dictionary",
    "Decimal64",
    "Decimal128",
    "Decimal256",
];

/// Words with the types of SQL.
pub(super) fn with_type_names(words: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let (mut at, mut copied) = (0, 0);
    let mut before = None;
    while let Some(letter) = words[at..].chars().next() {
        let rest = &words[at..];
        if matches!(letter, '\'' | '"') {
            let within = rest[1..].split(letter).next().unwrap_or_default();
            let is_type = words[..at].ends_with("type ");
            // With its quotes; without a second one it goes to the end.
            let length = (within.len() + 2).min(rest.len());
            if is_type && type_here(within).is_some_and(|length| length == within.len()) {
                out.push_str(&words[copied..=at]);
                out.push_str(&named_type(within));
                copied = at + 1 + within.len();
            }
            (at, before) = (at + length, None);
            continue;
        }
        let begins = !before.is_some_and(|it: char| it.is_alphanumeric() || "_.".contains(it));
        match type_here(rest).filter(|_| begins) {
            Some(length) => {
                out.push_str(&words[copied..at]);
                out.push_str(&named_type(&rest[..length]));
                (at, before) = (at + length, Some(')'));
                copied = at;
            }
            None => (at, before) = (at + letter.len_utf8(), Some(letter)),
        }
    }
    match copied {
        0 => Cow::Borrowed(words),
        _ => Cow::Owned(out + &words[copied..]),
    }
}

/// The bytes of a type that begins here.
pub(super) fn type_here(words: &str) -> Option<usize> {
    let end = words.find(|it: char| !it.is_ascii_alphanumeric());
    let (word, rest) = words.split_at(end.unwrap_or(words.len()));
    if WITH_PARTS.contains(&word) {
        let parts = within_parentheses(rest.strip_prefix('(')?)?;
        return Some(word.len() + parts.len() + 2);
    }
    let goes_on = ["_", "::", "("].iter().any(|it| rest.starts_with(it));
    (WORDS.contains(&word) && !goes_on).then_some(word.len())
}

/// A type as SQL calls it.
pub(super) fn named_type(words: &str) -> String {
    let words = words.trim();
    match words.parse::<DataType>() {
        Ok(of) => name_of(&of),
        Err(_) => name_by_word(words),
    }
}

/// The same of a type as only those write it who look for faults in the engine.
fn name_by_word(words: &str) -> String {
    let (word, parts) = words.split_once('(').unwrap_or((words, ""));
    match word {
        "List" | "LargeList" | "ListView" | "FixedSizeList" => {
            let of = parts.split_once("data_type: ").map(|(_, of)| of);
            let of = of.and_then(|of| Some(named_type(&of[..type_here(of)?])));
            format!("{}[]", of.unwrap_or_else(|| "any".to_owned()))
        }
        "Struct" => "record".to_owned(),
        "Timestamp" if parts.contains("None") => "timestamp".to_owned(),
        "Timestamp" => "timestamp with time zone".to_owned(),
        "Time32" | "Time64" => "time".to_owned(),
        "Interval" | "Duration" => "interval".to_owned(),
        _ => words.to_owned(),
    }
}

fn name_of(of: &DataType) -> String {
    match of {
        DataType::Null => "unknown".to_owned(),
        DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _) => {
            format!("{}[]", name_of(field.data_type()))
        }
        DataType::Struct(_) => "record".to_owned(),
        DataType::Interval(_) | DataType::Duration(_) => "interval".to_owned(),
        DataType::Time32(_) | DataType::Time64(_) => "time".to_owned(),
        DataType::Boolean => "boolean".to_owned(),
        DataType::Int8 | DataType::Int16 | DataType::UInt8 => "smallint".to_owned(),
        DataType::Int32 | DataType::UInt16 => "integer".to_owned(),
        DataType::Int64 | DataType::UInt32 | DataType::UInt64 => "bigint".to_owned(),
        DataType::Float16 | DataType::Float32 => "real".to_owned(),
        DataType::Float64 => "double precision".to_owned(),
        DataType::Decimal32(..)
        | DataType::Decimal64(..)
        | DataType::Decimal128(..)
        | DataType::Decimal256(..) => "numeric".to_owned(),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "text".to_owned(),
        DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => "bytea".to_owned(),
        DataType::Date32 | DataType::Date64 => "date".to_owned(),
        DataType::Timestamp(_, None) => "timestamp".to_owned(),
        DataType::Timestamp(_, Some(_)) => "timestamp with time zone".to_owned(),
        DataType::Dictionary(_, values) => name_of(values),
        other => other.to_string(),
    }
}

/// What stands before the parenthesis that closes one that is open.
pub(super) fn within_parentheses(words: &str) -> Option<&str> {
    let mut depth = 1_usize;
    let end = words.find(|it| {
        match it {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        depth == 0
    });
    end.map(|end| &words[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_in_words_are_those_of_sql() {
        for (words, expected) in [
            (
                "Cannot cast string 'Int64' to value of Int64 type",
                "Cannot cast string 'Int64' to value of bigint type",
            ),
            (
                "array_sort does not support type 'List(Utf8View)'.",
                "array_sort does not support type 'text[]'.",
            ),
            (
                "from Timestamp(ns, \"+00:00\") to Decimal128(10, 2), List(List(Int64))",
                "from timestamp with time zone to numeric, bigint[][]",
            ),
            (
                "of List(Field { name: \"item\", data_type: Utf8, nullable: true }) and Timestamp(Nanosecond, None)",
                "of text[] and timestamp",
            ),
            (
                "column \"Int64\" is no Date32",
                "column \"Int64\" is no date",
            ),
            (
                "MyInt64, Int64_a, List of Utf8::x, it's Boolean",
                "MyInt64, Int64_a, List of Utf8::x, it's Boolean",
            ),
            ("", ""),
        ] {
            assert_eq!(with_type_names(words), expected);
        }
    }
}
