//! SPARQL answers in the official driver's form, and their comparison.
//!
//! A query names its columns as the driver names its fields. Times become milliseconds, lists come
//! as lines of one text. Where the specification leaves an order open, of a person's addresses for
//! example, or of ways of the same weight, results agree in any; all else has to be the same, order
//! of rows included.

use serde_json::{Map, Number, Value};

use super::operation::Kind;
use super::terms;

/// Columns that are lists of texts, one a line.
const LISTS: [&str; 3] = ["friendEmails", "friendLanguages", "tagNames"];
/// Columns that are lists of organizations: name, year and place with tabs between them, one a
/// line.
const ORGANIZATIONS: [&str; 2] = ["friendUniversities", "friendCompanies"];
/// The column of complex read 7 that the driver does not have.
const MESSAGE_DATE: &str = "messageCreationDate";

/// The rows of SPARQL results in JSON.
pub fn bindings(body: &[u8]) -> Option<Vec<Value>> {
    let mut results: Value = serde_json::from_slice(body).ok()?;
    match results.get_mut("results")?.get_mut("bindings")?.take() {
        Value::Array(bindings) => Some(bindings),
        _ => None,
    }
}

/// The value of a cell as text.
pub fn text<'a>(binding: &'a Value, name: &str) -> Option<&'a str> {
    binding.get(name)?.get("value")?.as_str()
}

/// A result as the driver has it: a list of objects, or one object where the operation has one;
/// several rows of such an operation stay a list, which agrees with no object. `None` if a cell is
/// not what it should be.
pub fn result(kind: Kind, bindings: &[Value]) -> Option<Value> {
    match (kind, bindings) {
        (Kind::Short(1 | 4 | 5 | 6), []) => Some(Value::Null),
        (Kind::Short(1 | 4 | 5 | 6), [only]) => row(kind, only),
        _ => bindings.iter().map(|binding| row(kind, binding)).collect(),
    }
}

fn row(kind: Kind, binding: &Value) -> Option<Value> {
    let mut row = Map::new();
    for (name, cell) in binding.as_object()? {
        row.insert(name.clone(), value(name, cell)?);
    }
    if kind == Kind::Complex(7) {
        let message = row.remove(MESSAGE_DATE)?.as_i64()?;
        let like = row.get("likeCreationDate")?.as_i64()?;
        let minutes = (like - message).div_euclid(60_000);
        row.insert("minutesLatency".to_owned(), minutes.into());
    }
    Some(Value::Object(row))
}

fn value(name: &str, cell: &Value) -> Option<Value> {
    let text = cell.get("value")?.as_str()?;
    if LISTS.contains(&name) {
        let lines = text.lines().filter(|line| !line.is_empty());
        return Some(lines.map(Value::from).collect());
    }
    if ORGANIZATIONS.contains(&name) {
        let lines = text.lines().filter(|line| !line.is_empty());
        return lines.map(organization).collect();
    }
    let datatype = cell.get("datatype").and_then(Value::as_str);
    let datatype = datatype.and_then(|datatype| datatype.rsplit('#').next());
    Some(match datatype {
        Some("date" | "dateTime") => terms::milliseconds(text)?.into(),
        Some("integer" | "int" | "long") => text.parse::<i64>().ok()?.into(),
        Some("decimal" | "double") => Value::Number(Number::from_f64(text.parse::<f64>().ok()?)?),
        Some("boolean") => Value::Bool(text == "true"),
        _ => text.into(),
    })
}

fn organization(line: &str) -> Option<Value> {
    let mut parts = line.splitn(3, '\t');
    let (name, year, place) = (parts.next()?, parts.next()?, parts.next()?);
    let year: i64 = year.parse().ok()?;
    Some(serde_json::json!({ "organizationName": name, "year": year, "placeName": place }))
}

/// Whether a result is the one that is expected.
pub fn agree(kind: Kind, expected: &Value, actual: &Value) -> bool {
    match kind {
        Kind::Insert(_) => true,
        _ => normal(kind, expected) == normal(kind, actual),
    }
}

/// The same result with an order where there is none, and numbers of one kind.
fn normal(kind: Kind, result: &Value) -> Value {
    match result {
        Value::Array(rows) => {
            let mut rows: Vec<Value> = rows.iter().map(normal_row).collect();
            if kind == Kind::Complex(14) {
                let weight = |row: &Value| row.get("pathWeight").cloned();
                for ways in rows.chunk_by_mut(|one, next| weight(one) == weight(next)) {
                    ways.sort_by_cached_key(Value::to_string);
                }
            }
            Value::Array(rows)
        }
        row => normal_row(row),
    }
}

fn normal_row(row: &Value) -> Value {
    let Value::Object(row) = row else {
        return row.clone();
    };
    let cells = row.iter().map(|(name, cell)| {
        let is_list = LISTS.contains(&name.as_str()) || ORGANIZATIONS.contains(&name.as_str());
        let cell = match cell {
            // PostgreSQL's driver may write no list for an empty one.
            Value::Null if is_list => Value::Array(Vec::new()),
            Value::Array(items) if is_list => {
                let mut items = items.clone();
                items.sort_by_cached_key(Value::to_string);
                Value::Array(items)
            }
            Value::Number(number) if number.is_f64() => Value::from(number.as_f64()),
            Value::Number(number) if name == "pathWeight" => Value::from(number.as_f64()),
            cell => cell.clone(),
        };
        (name.clone(), cell)
    });
    Value::Object(cells.collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn cells_become_what_the_driver_has() {
        let cell = |value: &str, datatype: &str| {
            json!({ "type": "literal", "value": value,
                    "datatype": format!("http://www.w3.org/2001/XMLSchema#{datatype}") })
        };
        let plain = |value: &str| json!({ "type": "literal", "value": value });
        let binding = json!({
            "friendId": cell("5", "long"),
            "friendBirthday": cell("1970-01-02", "date"),
            "friendEmails": plain("b\na\n\n"),
            "friendCompanies": plain("Air\t1999\tLand"),
        });
        let result = result(Kind::Complex(1), &[binding]).unwrap();
        let expected = json!([{
            "friendId": 5, "friendBirthday": 86_400_000, "friendEmails": ["a", "b"],
            "friendCompanies": [{ "organizationName": "Air", "year": 1999, "placeName": "Land" }],
        }]);
        assert!(agree(Kind::Complex(1), &expected, &result), "{result}");
        let other = json!([{ "friendId": 5, "friendBirthday": 86_400_000, "friendEmails": ["a"] }]);
        assert!(!agree(Kind::Complex(1), &other, &result));
    }

    #[test]
    fn a_latency_is_in_whole_minutes() {
        let time = |value: &str| {
            json!({ "type": "literal", "value": value,
                    "datatype": "http://www.w3.org/2001/XMLSchema#dateTime" })
        };
        let binding = json!({
            "likeCreationDate": time("2010-01-01T00:02:59.999Z"),
            "messageCreationDate": time("2010-01-01T00:00:00Z"),
        });
        let result = result(Kind::Complex(7), &[binding]).unwrap();
        assert_eq!(result[0]["minutesLatency"], 2);
    }

    #[test]
    fn ways_of_one_weight_come_in_any_order() {
        let way =
            |ids: &[u64], weight: f64| json!({ "personIdsInPath": ids, "pathWeight": weight });
        let one = json!([way(&[1, 2], 3.0), way(&[1, 3], 1.5), way(&[1, 4], 1.5)]);
        let other = json!([
            { "personIdsInPath": [1, 2], "pathWeight": 3 },
            way(&[1, 4], 1.5),
            way(&[1, 3], 1.5)
        ]);
        assert!(agree(Kind::Complex(14), &one, &other));
        let third = json!([way(&[1, 2], 3.0), way(&[1, 3], 1.5), way(&[1, 5], 1.5)]);
        assert!(!agree(Kind::Complex(14), &one, &third));
        let light_first = json!([way(&[1, 3], 1.5), way(&[1, 4], 1.5), way(&[1, 2], 3.0)]);
        assert!(!agree(Kind::Complex(14), &one, &light_first));
    }

    #[test]
    fn a_second_row_where_one_is_due_is_a_difference() {
        let row = |name: &str| json!({ "messageContent": { "type": "literal", "value": name } });
        let expected = json!({ "messageContent": "a" });
        let one = result(Kind::Short(4), &[row("a")]).unwrap();
        assert!(agree(Kind::Short(4), &expected, &one));
        let two = result(Kind::Short(4), &[row("a"), row("b")]).unwrap();
        assert!(!agree(Kind::Short(4), &expected, &two));
        let none = result(Kind::Short(4), &[]).unwrap();
        assert!(!agree(Kind::Short(4), &expected, &none));
    }

    #[test]
    fn rows_have_to_be_in_order() {
        let one = json!([{ "tagName": "a" }, { "tagName": "b" }]);
        let other = json!([{ "tagName": "b" }, { "tagName": "a" }]);
        assert!(!agree(Kind::Complex(4), &one, &other));
    }
}
