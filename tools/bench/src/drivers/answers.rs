//! The comparison of two stores' answers, row by row.
//!
//! Solutions are read from SPARQL results in JSON and compared as multisets. Numbers count as
//! equal within a thousandth (stores sum floats in different orders and precision); other
//! terms by their text, for stores differ in how they spell plain strings.

use std::cmp::Ordering;

use serde_json::Value;

/// How far apart two numbers may be and still be the same.
const TOLERANCE: f64 = 1e-3;

/// One value of a solution.
#[derive(Clone, Debug, PartialEq)]
enum Cell {
    Unbound,
    Number(f64),
    Text(String),
}

/// The rows of an answer, sorted; cells in the order of the variables.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Rows(Vec<Vec<Cell>>);

impl Rows {
    /// Reads SPARQL results in JSON; `None` if they are not.
    pub(super) fn read(body: &[u8]) -> Option<Self> {
        let result: Value = serde_json::from_slice(body).ok()?;
        let variables = result.get("head")?.get("vars")?.as_array()?;
        let variables: Vec<&str> = variables.iter().filter_map(Value::as_str).collect();
        let bindings = result.get("results")?.get("bindings")?.as_array()?;
        let mut rows: Vec<Vec<Cell>> = bindings
            .iter()
            .map(|binding| {
                variables
                    .iter()
                    .map(|name| cell(binding.get(*name)))
                    .collect()
            })
            .collect();
        rows.sort_by(|left, right| compare_rows(left, right));
        Some(Self(rows))
    }

    /// Rows of a store that gives values without types: numbers, texts and nulls.
    pub(super) fn of_values(rows: &[Vec<Value>]) -> Self {
        let mut rows: Vec<Vec<Cell>> = rows
            .iter()
            .map(|row| row.iter().map(untyped_cell).collect())
            .collect();
        rows.sort_by(|left, right| compare_rows(left, right));
        Self(rows)
    }

    /// Number of rows.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Says where two answers differ, if they do.
    pub(super) fn difference(&self, other: &Self) -> Option<String> {
        if self.len() != other.len() {
            return Some(format!("{} rows, the peer has {}", self.len(), other.len()));
        }
        let mut pairs = self.0.iter().zip(&other.0);
        let (ours, theirs) = pairs.find(|(ours, theirs)| !are_same(ours, theirs))?;
        Some(format!("{ours:?}, the peer has {theirs:?}"))
    }
}

fn cell(term: Option<&Value>) -> Cell {
    let Some(term) = term else {
        return Cell::Unbound;
    };
    let text = term
        .get("value")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let datatype = term
        .get("datatype")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let is_number = ["integer", "int", "decimal", "float", "double"]
        .iter()
        .any(|name| datatype.strip_prefix("http://www.w3.org/2001/XMLSchema#") == Some(name));
    match text.parse() {
        Ok(number) if is_number => Cell::Number(number),
        _ => Cell::Text(text.to_owned()),
    }
}

fn untyped_cell(value: &Value) -> Cell {
    match value {
        Value::Null => Cell::Unbound,
        Value::Number(number) => number.as_f64().map_or(Cell::Unbound, Cell::Number),
        Value::String(text) => Cell::Text(text.clone()),
        other => Cell::Text(other.to_string()),
    }
}

/// Texts first, so that rows that differ only in how a number was rounded stand side by side.
fn compare_rows(left: &[Cell], right: &[Cell]) -> Ordering {
    let texts = |row: &[Cell]| -> Vec<String> {
        row.iter()
            .map(|cell| match cell {
                Cell::Text(text) => text.clone(),
                Cell::Unbound | Cell::Number(_) => String::new(),
            })
            .collect()
    };
    let numbers = |row: &[Cell]| -> Vec<f64> {
        row.iter()
            .filter_map(|cell| match cell {
                Cell::Number(number) => Some(*number),
                Cell::Unbound | Cell::Text(_) => None,
            })
            .collect()
    };
    texts(left).cmp(&texts(right)).then_with(|| {
        let pairs = numbers(left).into_iter().zip(numbers(right));
        pairs
            .map(|(left, right)| left.total_cmp(&right))
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal)
    })
}

fn are_near(left: f64, right: f64) -> bool {
    (left - right).abs() <= TOLERANCE * left.abs().max(right.abs())
}

fn are_same(left: &[Cell], right: &[Cell]) -> bool {
    left.len() == right.len()
        && left.iter().zip(right).all(|pair| match pair {
            (Cell::Number(left), Cell::Number(right)) => are_near(*left, *right),
            // A price with a datatype of its own is a number only for who knows it.
            (Cell::Text(text), Cell::Number(number)) | (Cell::Number(number), Cell::Text(text)) => {
                text.parse().is_ok_and(|text| are_near(text, *number))
            }
            (left, right) => left == right,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(cells: &[(&str, &str)]) -> Rows {
        let bindings: Vec<String> = cells
            .iter()
            .map(|(name, number)| {
                format!(
                    r#"{{"a":{{"type":"uri","value":"{name}"}},"n":{{"type":"literal","datatype":"http://www.w3.org/2001/XMLSchema#double","value":"{number}"}}}}"#
                )
            })
            .collect();
        let text = format!(
            r#"{{"head":{{"vars":["a","n"]}},"results":{{"bindings":[{}]}}}}"#,
            bindings.join(",")
        );
        Rows::read(text.as_bytes()).unwrap()
    }

    #[test]
    fn order_and_rounding_do_not_matter() {
        let ours = rows(&[("x:a", "1.00001"), ("x:b", "2")]);
        let theirs = rows(&[("x:b", "2.0E0"), ("x:a", "1")]);
        assert_eq!(ours.difference(&theirs), None);
    }

    #[test]
    fn values_without_types_are_read() {
        let ours = rows(&[("x:a", "1"), ("x:b", "2")]);
        let value = |text: &str, number: f64| vec![Value::from(text), Value::from(number)];
        let theirs = [value("x:b", 2.0), value("x:a", 1.0)];
        assert_eq!(ours.difference(&Rows::of_values(&theirs)), None);
        let text = |number: &str| vec![Value::from("x:a"), Value::from(number)];
        let theirs = [value("x:b", 2.0), text("1.00")];
        assert_eq!(ours.difference(&Rows::of_values(&theirs)), None);
        let theirs = [value("x:b", 2.0), text("one")];
        assert!(ours.difference(&Rows::of_values(&theirs)).is_some());
        let theirs = [value("x:b", 2.0), vec![Value::from("x:a"), Value::Null]];
        assert!(ours.difference(&Rows::of_values(&theirs)).is_some());
    }

    #[test]
    fn another_value_or_number_of_rows_is_seen() {
        let ours = rows(&[("x:a", "1"), ("x:b", "2")]);
        assert!(
            ours.difference(&rows(&[("x:a", "1"), ("x:b", "3")]))
                .is_some()
        );
        assert!(
            ours.difference(&rows(&[("x:a", "1"), ("x:c", "2")]))
                .is_some()
        );
        assert!(ours.difference(&rows(&[("x:a", "1")])).is_some());
    }

    #[test]
    fn what_is_no_result_is_refused() {
        assert_eq!(Rows::read(b"<html>"), None);
    }
}
