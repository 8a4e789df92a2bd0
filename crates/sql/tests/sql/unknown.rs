//! Conditions that may be unknown: random ones against a naive evaluation.
//!
//! Comparisons of rows, `IN` lists of them, `IN` subqueries that name the row at hand or do not, and
//! `AND`, `OR`, `NOT`, `IS UNKNOWN` around them: in `WHERE`, among what is selected, in `ON`, in
//! `DELETE`. What they mean is PostgreSQL's (9.24, row and array comparisons; 9.23, subquery
//! expressions).

use std::cell::Cell;
use std::fmt::{self, Write as _};

use proptest::prelude::*;

use crate::common::{House, Numbers};

/// What SQL knows of a condition.
type Truth = Option<bool>;
/// A row of a table: columns `a` and `b` may be NULL, `n` may not.
type Row = [Option<i64>; 3];

const COLUMNS: [&str; 3] = ["a", "b", "n"];
const TABLES: [&str; 2] = ["t", "s"];

#[derive(Debug)]
enum Value {
    /// A column of a table that stands so many subqueries further out; its name there.
    Column {
        out: usize,
        name: String,
        of: usize,
    },
    Written(Option<i64>),
}

impl Value {
    /// `outer`: names of the tables that can be named, the innermost last.
    fn random(numbers: &mut Numbers, outer: &[String]) -> Self {
        if numbers.below(10) < 3 {
            let written = numbers.below(5);
            return Self::Written((written < 4).then_some(written as i64));
        }
        let out = numbers.below(outer.len() as u64) as usize;
        Self::Column {
            out,
            name: outer[outer.len() - 1 - out].clone(),
            of: numbers.below(3) as usize,
        }
    }

    fn row(numbers: &mut Numbers, outer: &[String], columns: usize) -> Vec<Self> {
        (0..columns).map(|_| Self::random(numbers, outer)).collect()
    }

    fn value(&self, rows: &[Row]) -> Option<i64> {
        match self {
            Self::Column { out, of, .. } => rows[rows.len() - 1 - out][*of],
            Self::Written(value) => *value,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Column { name, of, .. } => write!(f, "{name}.{}", COLUMNS[*of]),
            Self::Written(Some(value)) => write!(f, "{value}"),
            Self::Written(None) => write!(f, "null::int"),
        }
    }
}

fn written(row: &[Value]) -> String {
    let columns: Vec<String> = row.iter().map(Value::to_string).collect();
    format!("({})", columns.join(", "))
}

fn values(row: &[Value], rows: &[Row]) -> Vec<Option<i64>> {
    row.iter().map(|value| value.value(rows)).collect()
}

fn and(left: Truth, right: Truth) -> Truth {
    match (left, right) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

fn not(of: Truth) -> Truth {
    of.map(|of| !of)
}

fn or(left: Truth, right: Truth) -> Truth {
    not(and(not(left), not(right)))
}

/// Of two rows the first pair that is not equal decides, or makes it unknown.
fn compared(left: &[Option<i64>], op: &str, right: &[Option<i64>]) -> Truth {
    let pairs = || left.iter().zip(right);
    let mut is_equal = Some(true);
    for (left, right) in pairs() {
        is_equal = and(
            is_equal,
            left.zip(*right).map(|(left, right)| left == right),
        );
    }
    match op {
        "=" => return is_equal,
        "<>" => return not(is_equal),
        _ => {}
    }
    for (left, right) in pairs() {
        let (left, right) = ((*left)?, (*right)?);
        if left != right {
            return Some((left < right) == op.starts_with('<'));
        }
    }
    Some(op.ends_with('='))
}

#[derive(Debug)]
enum Condition {
    Both(Box<Self>, Box<Self>),
    Either(Box<Self>, Box<Self>),
    Not(Box<Self>),
    /// `IS [NOT] TRUE`, `FALSE`, `UNKNOWN`.
    Is(Box<Self>, bool, Truth),
    Compared(Vec<Value>, &'static str, Vec<Value>),
    Distinct(Vec<Value>, bool, Vec<Value>),
    Null(Vec<Value>, bool),
    Between(Vec<Value>, bool, Vec<Value>, Vec<Value>),
    Listed(Vec<Value>, bool, Vec<Vec<Value>>),
    Found(Value, bool, Box<Query>),
}

/// `SELECT column FROM table WHERE condition`.
#[derive(Debug)]
struct Query {
    table: usize,
    name: String,
    column: usize,
    condition: Option<Condition>,
}

impl Condition {
    fn random(numbers: &mut Numbers, outer: &[String], depth: u32, may_ask: bool) -> Self {
        let deeper =
            |numbers: &mut Numbers| Box::new(Self::random(numbers, outer, depth + 1, may_ask));
        let is_negated = numbers.below(2) == 0;
        if depth < 3 && numbers.below(10) < 5 {
            return match numbers.below(6) {
                0 | 1 => Self::Both(deeper(numbers), deeper(numbers)),
                2 | 3 => Self::Either(deeper(numbers), deeper(numbers)),
                4 => Self::Not(deeper(numbers)),
                _ => {
                    let truth = [Some(true), Some(false), None][numbers.below(3) as usize];
                    Self::Is(deeper(numbers), is_negated, truth)
                }
            };
        }
        let columns = 2 + numbers.below(2) as usize;
        let row = |numbers: &mut Numbers| Value::row(numbers, outer, columns);
        match numbers.below(if may_ask { 12 } else { 8 }) {
            0 | 1 => {
                let op = ["=", "<>", "<", "<=", ">", ">="][numbers.below(6) as usize];
                Self::Compared(row(numbers), op, row(numbers))
            }
            2 => Self::Compared(
                vec![Value::random(numbers, outer)],
                "=",
                vec![Value::random(numbers, outer)],
            ),
            3 => Self::Distinct(row(numbers), is_negated, row(numbers)),
            4 => Self::Null(row(numbers), is_negated),
            5 => Self::Between(row(numbers), is_negated, row(numbers), row(numbers)),
            6 | 7 => {
                let length = [1, 2, 3, 20][numbers.below(4) as usize];
                let list = (0..length).map(|_| match length {
                    // Those of a long list are written down.
                    20 => (0..columns)
                        .map(|_| Value::Written(Some(numbers.below(4) as i64)))
                        .collect(),
                    _ => row(numbers),
                });
                let list = list.collect();
                Self::Listed(row(numbers), is_negated, list)
            }
            _ => {
                let value = Value::random(numbers, outer);
                Self::Found(value, is_negated, Box::new(Query::random(numbers, outer)))
            }
        }
    }

    fn truth(&self, data: &[Vec<Row>; 2], rows: &[Row]) -> Truth {
        let of = |row: &[Value]| values(row, rows);
        let not_if = |is_negated: bool, truth| if is_negated { not(truth) } else { truth };
        match self {
            Self::Both(left, right) => and(left.truth(data, rows), right.truth(data, rows)),
            Self::Either(left, right) => or(left.truth(data, rows), right.truth(data, rows)),
            Self::Not(of) => not(of.truth(data, rows)),
            Self::Is(of, is_negated, truth) => {
                Some((of.truth(data, rows) == *truth) != *is_negated)
            }
            Self::Compared(left, op, right) => compared(&of(left), op, &of(right)),
            Self::Distinct(left, is_negated, right) => Some((of(left) != of(right)) != *is_negated),
            Self::Null(row, is_negated) => {
                let is_null = |value: &Option<i64>| value.is_none() != *is_negated;
                Some(of(row).iter().all(is_null))
            }
            Self::Between(row, is_negated, low, high) => {
                let from = compared(&of(row), ">=", &of(low));
                let to = compared(&of(row), "<=", &of(high));
                not_if(*is_negated, and(from, to))
            }
            Self::Listed(row, is_negated, list) => {
                let tests = list.iter().map(|other| compared(&of(row), "=", &of(other)));
                not_if(*is_negated, tests.fold(Some(false), or))
            }
            Self::Found(value, is_negated, query) => {
                let value = value.value(rows);
                let found = query.found(data, rows);
                let tests = found
                    .iter()
                    .map(|other| value.zip(*other).map(|(a, b)| a == b));
                not_if(*is_negated, tests.fold(Some(false), or))
            }
        }
    }
}

impl Query {
    fn random(numbers: &mut Numbers, outer: &[String]) -> Self {
        let name = format!("q{}", outer.len());
        let here = std::slice::from_ref(&name);
        let condition = match numbers.below(5) {
            0 | 1 => None,
            // One comparison with the row at hand.
            2 | 3 => {
                let own = Value::Column {
                    out: 0,
                    name: name.clone(),
                    of: numbers.below(3) as usize,
                };
                let other = match Value::random(numbers, outer) {
                    Value::Column { out, name, of } => Value::Column {
                        out: out + 1,
                        name,
                        of,
                    },
                    other => other,
                };
                let op = ["=", "<", ">"][numbers.below(3) as usize];
                Some(Condition::Compared(vec![own], op, vec![other]))
            }
            _ => Some(Condition::random(numbers, here, 2, false)),
        };
        Self {
            table: numbers.below(2) as usize,
            name,
            column: numbers.below(3) as usize,
            condition,
        }
    }

    fn found(&self, data: &[Vec<Row>; 2], rows: &[Row]) -> Vec<Option<i64>> {
        let is_found = |row: &&Row| {
            let mut rows = rows.to_vec();
            rows.push(**row);
            let truth = self.condition.as_ref().map(|it| it.truth(data, &rows));
            truth.is_none_or(|truth| truth == Some(true))
        };
        let found = data[self.table].iter().filter(is_found);
        found.map(|row| row[self.column]).collect()
    }
}

impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            table,
            name,
            column,
            condition,
        } = self;
        let (column, table) = (COLUMNS[*column], TABLES[*table]);
        write!(f, "(select {name}.{column} from {table} {name}")?;
        if let Some(condition) = condition {
            write!(f, " where {condition}")?;
        }
        f.write_char(')')
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let no = |is_negated: &bool| if *is_negated { " not" } else { "" };
        // One column is a value, several are a row.
        let side = |row: &[Value]| match row {
            [one] => one.to_string(),
            row => written(row),
        };
        match self {
            Self::Both(left, right) => write!(f, "({left} and {right})"),
            Self::Either(left, right) => write!(f, "({left} or {right})"),
            Self::Not(of) => write!(f, "not ({of})"),
            Self::Is(of, is_negated, truth) => {
                let truth = truth.map_or("unknown".to_owned(), |truth| truth.to_string());
                write!(f, "({of}) is{} {truth}", no(is_negated))
            }
            Self::Compared(left, op, right) => write!(f, "{} {op} {}", side(left), side(right)),
            Self::Distinct(left, is_negated, right) => write!(
                f,
                "{} is{} distinct from row{}",
                written(left),
                no(is_negated),
                written(right)
            ),
            Self::Null(row, is_negated) => write!(f, "{} is{} null", written(row), no(is_negated)),
            Self::Between(row, is_negated, low, high) => write!(
                f,
                "{}{} between {} and {}",
                written(row),
                no(is_negated),
                written(low),
                written(high)
            ),
            Self::Listed(row, is_negated, list) => {
                let list: Vec<String> = list.iter().map(|row| written(row)).collect();
                let row = written(row);
                write!(f, "{row}{} in ({})", no(is_negated), list.join(", "))
            }
            Self::Found(value, is_negated, query) => {
                write!(f, "{value}{} in {query}", no(is_negated))
            }
        }
    }
}

/// Rows of an answer in order, or nothing where the statement is one that is refused with a word.
fn answered(house: &House, sql: &str) -> Option<Vec<String>> {
    match house.run(&house.session(), sql) {
        Ok(answer) => {
            let rows = crate::statements::texts_of_rows(&answer);
            let mut rows: Vec<String> = rows.into_iter().map(|row| row.join(",")).collect();
            rows.sort();
            Some(rows)
        }
        Err(error) => {
            assert_eq!(error.state.code(), "0A000", "{sql}: {error}");
            None
        }
    }
}

fn data(numbers: &mut Numbers) -> [Vec<Row>; 2] {
    let mut of_table = || {
        let rows = [0, 1, 3, 6][numbers.below(4) as usize];
        let mut value = |nulls: u64| {
            let value = numbers.below(4 + nulls);
            (value < 4).then_some(value as i64)
        };
        (0..rows).map(|_| [value(2), value(2), value(0)]).collect()
    };
    [of_table(), of_table()]
}

fn fill(house: &House, data: &[Vec<Row>; 2]) {
    let session = house.session();
    for (table, rows) in TABLES.iter().zip(data) {
        house.done(&session, &format!("delete from {table}"));
        for (id, row) in rows.iter().enumerate() {
            let texts = row.map(|it| it.map_or("null".to_owned(), |it| it.to_string()));
            let insert = format!("insert into {table} values ({id}, {})", texts.join(", "));
            house.done(&session, &insert);
        }
    }
}

fn ids(data: &[Vec<Row>; 2], condition: &Condition) -> Vec<String> {
    let chosen = data[0]
        .iter()
        .enumerate()
        .filter(|(_, row)| condition.truth(data, &[**row]) == Some(true));
    chosen.map(|(id, _)| id.to_string()).collect()
}

fn text(of: Truth) -> &'static str {
    match of {
        Some(true) => "t",
        Some(false) => "f",
        None => "NULL",
    }
}

#[test]
fn random_conditions_equal_a_naive_evaluation() {
    let house = House::new();
    for table in TABLES {
        let create =
            format!("create table {table} (id int primary key, a int, b int, n int not null)");
        house.done(&house.session(), &create);
    }
    let outer = ["x".to_owned()];
    let both = ["x".to_owned(), "y".to_owned()];
    let (answers, all) = (Cell::new(0), Cell::new(0));
    let config = ProptestConfig {
        cases: 40,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    proptest!(config, |(seed in any::<u64>())| {
        let numbers = &mut Numbers(seed);
        let data = data(numbers);
        fill(&house, &data);
        for _ in 0..6 {
            let condition = Condition::random(numbers, &outer, 0, true);
            let sql = format!("select x.id from t x where {condition}");
            all.set(all.get() + 1);
            if let Some(found) = answered(&house, &sql) {
                answers.set(answers.get() + 1);
                prop_assert_eq!(found, ids(&data, &condition), "{}", sql);
            }
            let shown = Condition::random(numbers, &outer, 1, false);
            let sql = format!("select x.id, {shown} from t x");
            let expected = data[0].iter().enumerate().map(|(id, row)| {
                format!("{id},{}", text(shown.truth(&data, &[*row])))
            });
            prop_assert_eq!(answered(&house, &sql), Some(expected.collect()), "{}", sql);
            let joined = Condition::random(numbers, &both, 1, true);
            let sql = format!("select x.id, y.id from t x join s y on {joined}");
            all.set(all.get() + 1);
            if let Some(found) = answered(&house, &sql) {
                answers.set(answers.get() + 1);
                let mut expected = Vec::new();
                for (id, left) in data[0].iter().enumerate() {
                    for (other, right) in data[1].iter().enumerate() {
                        if joined.truth(&data, &[*left, *right]) == Some(true) {
                            expected.push(format!("{id},{other}"));
                        }
                    }
                }
                prop_assert_eq!(found, expected, "{}", sql);
            }
        }
        // What is deleted is what is found.
        let condition = Condition::random(numbers, &outer, 0, true);
        let sql = format!("delete from t x where {condition}");
        let deleted = ids(&data, &condition);
        if house.run(&house.session(), &sql).is_ok() {
            let left = (0..data[0].len()).map(|id| id.to_string());
            let left = left.filter(|id| !deleted.contains(id)).collect();
            prop_assert_eq!(answered(&house, "select id from t"), Some(left), "{}", sql);
        }
    });
    // Subqueries about both sides of a join are refused.
    let (answers, all) = (answers.get(), all.get());
    assert!(answers * 10 > all * 8, "{answers} of {all}");
}
