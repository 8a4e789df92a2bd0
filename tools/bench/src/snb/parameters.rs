//! Substitution parameters: `interactive_N_param.txt`, as the official generator chooses them for
//! its data, so that the runs of a query cost about the same.
//!
//! The first line has names, each other line the values of one run, with `|` between them.

use serde_json::{Map, Value};

use super::operation::Operation;
use super::validation;

/// The complex reads.
pub const COMPLEX_READS: u8 = 14;

/// The name of the file with the parameters of a complex read.
pub fn file_name(number: u8) -> String {
    format!("interactive_{number}_param.txt")
}

/// The runs of a complex read.
///
/// # Errors
/// At the first line that does not give one, with its number.
pub fn read(number: u8, text: &str) -> Result<Vec<Operation>, String> {
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap_or_default().split('|').collect();
    let rows = lines.enumerate().filter(|(_, line)| !line.is_empty());
    rows.map(|(row, line)| {
        operation(number, &names, line).map_err(|what| format!("line {}: {what}", row + 2))
    })
    .collect()
}

fn operation(number: u8, names: &[&str], line: &str) -> Result<Operation, String> {
    let values: Vec<&str> = line.split('|').collect();
    if values.len() != names.len() {
        return Err(format!(
            "{} values where {} are named",
            values.len(),
            names.len()
        ));
    }
    let mut fields = Map::new();
    for (name, value) in names.iter().zip(values) {
        let is_text = name.ends_with("Name");
        let value = match value.parse::<i64>() {
            Ok(value) if !is_text => Value::from(value),
            _ => Value::from(value),
        };
        fields.insert(driver_name(number, name), value);
    }
    let limit = match number {
        4 | 6 | 10 | 11 => 10,
        _ => 20,
    };
    fields.insert("limit".to_owned(), Value::from(limit));
    validation::operation(&fields)
}

/// What validation files call a parameter.
fn driver_name(number: u8, name: &str) -> String {
    match name {
        "personId" => format!("personIdQ{number}"),
        "person1Id" => format!("person1IdQ{number}StartNode"),
        "person2Id" => format!("person2IdQ{number}EndNode"),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::operation::Kind;
    use super::*;

    #[test]
    fn each_line_is_a_run() {
        let runs = read(6, "personId|tagName\n5|1984\n6|A b\n").unwrap();
        assert_eq!(runs.len(), 2);
        let Operation::Read { kind, parameters } = &runs[0] else {
            panic!("a read");
        };
        assert_eq!(*kind, Kind::Complex(6));
        assert_eq!(parameters["tagName"], "\"1984\"");
        assert_eq!(parameters["limit"], "10");
        let ways = read(14, "person1Id|person2Id\n5|6\n").unwrap();
        assert_eq!(ways, [Operation::Ways { from: 5, to: 6 }]);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let error = read(2, "personId|maxDate\n5|7\n5\n").unwrap_err();
        assert_eq!(error, "line 3: 1 values where 2 are named");
        let error = read(2, "personId|maxDate\n5|soon\n").unwrap_err();
        assert!(error.starts_with("line 2: `maxDate`"), "{error}");
    }
}
