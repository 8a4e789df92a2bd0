//! Tests of statements by sqllogictest files, one per kind of statement, in `statements/`.
//!
//! ```text
//! statement ok              a statement that is done
//! statement count 2         one that inserts, changes or deletes two rows
//! statement error 23505: .* one that fails; a regular expression over PostgreSQL's code and the message
//! query ITR rowsort         a query, or a statement that returns rows: integers, texts, other numbers; behind ---- the rows
//! ```
//!
//! Values are written as PostgreSQL writes them, NULL as NULL, a text without characters as
//! (empty). A name of a connection is a session: `connection two`. Each file has a database of its
//! own. `UPDATE_STATEMENTS=1` writes what is answered into the files.

use std::fmt;
use std::fs;
use std::path::Path;

use crate::common::{Answer, House};
use datafusion::arrow::datatypes::DataType;
use orrery_sql::{Session, Tag, ValueTexts};
use sqllogictest::{
    DB, DBOutput, DefaultColumnType, Runner, default_normalizer, default_validator,
};

/// One session of a house.
struct Client {
    house: std::sync::Arc<House>,
    session: Session,
}

/// What failed, its code before the words.
#[derive(Debug)]
struct Failed(String, orrery_sql::Error);

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0, self.1)
    }
}

impl std::error::Error for Failed {}

impl DB for Client {
    type Error = Failed;
    type ColumnType = DefaultColumnType;

    fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Failed> {
        let answer = self.house.run(&self.session, sql);
        let answer = answer.map_err(|error| Failed(error.state.code().to_owned(), error))?;
        says_what_it_did(sql, &answer.tag);
        if !answer.is_of_rows {
            return Ok(DBOutput::StatementComplete(rows_of(&answer.tag)));
        }
        Ok(DBOutput::Rows {
            types: column_types(&answer),
            rows: texts_of_rows(&answer),
        })
    }

    fn engine_name(&self) -> &str {
        "orrery"
    }
}

/// The tag of a statement of definition or change begins with its first word.
fn says_what_it_did(sql: &str, tag: &Tag) {
    let first = sql.split_whitespace().next().unwrap().to_uppercase();
    let is_named = matches!(
        first.as_str(),
        "CREATE" | "ALTER" | "DROP" | "TRUNCATE" | "INSERT" | "UPDATE" | "DELETE" | "SAVEPOINT"
    );
    if is_named && !sql.contains(';') && !sql.to_lowercase().contains(" as ") {
        assert!(tag.to_string().starts_with(&first), "{sql}: {tag}");
    }
}

fn rows_of(tag: &Tag) -> u64 {
    let tag = tag.to_string();
    let last = tag.rsplit(' ').next().unwrap();
    last.parse().unwrap_or(0)
}

fn column_types(answer: &Answer) -> Vec<DefaultColumnType> {
    let fields = answer.schema.fields().iter();
    let types = fields.map(|field| match field.data_type() {
        of if of.is_integer() => DefaultColumnType::Integer,
        DataType::Float32 | DataType::Float64 | DataType::Decimal128(..) => {
            DefaultColumnType::FloatingPoint
        }
        _ => DefaultColumnType::Text,
    });
    types.collect()
}

/// Values as a file of statements has them.
pub(crate) fn texts_of_rows(answer: &Answer) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for batch in &answer.batches {
        let columns = batch.columns().iter();
        let columns: Vec<_> = columns.map(|it| ValueTexts::new(it).unwrap()).collect();
        for row in 0..batch.num_rows() {
            let values = columns.iter().map(|column| {
                let mut text = String::new();
                match column.write(row, &mut text).unwrap() {
                    false => "NULL".to_owned(),
                    true if text.is_empty() => "(empty)".to_owned(),
                    true => text,
                }
            });
            rows.push(values.collect());
        }
    }
    rows
}

fn run(path: &Path) {
    let house = std::sync::Arc::new(House::new());
    let connect = || {
        let client = Client {
            session: house.session(),
            house: std::sync::Arc::clone(&house),
        };
        std::future::ready(Ok::<_, Failed>(client))
    };
    let mut runner = Runner::new(connect);
    runner.with_column_validator(sqllogictest::strict_column_validator);
    if std::env::var_os("UPDATE_STATEMENTS").is_some() {
        let updated = runner.update_test_file(
            path,
            " ",
            default_validator,
            default_normalizer,
            sqllogictest::strict_column_validator,
        );
        futures::executor::block_on(updated).unwrap();
        return;
    }
    if let Err(error) = runner.run_file(path) {
        panic!("{}", error.display(false));
    }
}

macro_rules! files {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            let path = concat!("tests/statements/", stringify!($name), ".slt");
            run(&Path::new(env!("CARGO_MANIFEST_DIR")).join(path));
        })*

        #[test]
        fn every_file_is_run() {
            let names = [$(stringify!($name)),*];
            let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/statements");
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
                assert!(names.contains(&name.as_str()), "{name}");
            }
        }
    };
}

files! {
    create_table
    insert
    update_delete
    foreign_keys
    alter_table
    rows
    indexes_views_schemas
    conflict
    transactions
    arithmetic
    types
    keys
    joins
    select
    subqueries
    sets
    numbers
    mended_plans
    messages
    explain
    information_schema
}
