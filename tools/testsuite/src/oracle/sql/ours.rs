//! Our side of the SQL oracle: a temporary database and a session.

use std::sync::Arc;
use std::time::Duration;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::datatypes::{DataType, Float32Type, Float64Type};
use datafusion::physical_plan::displayable;
use futures::TryStreamExt;
use orrery_runtime::{Runtime, RuntimeOptions};
use orrery_sql::{Error, Outcome, Session, SessionOptions, ValueTexts};
use orrery_storage::{Database, Writer, WriterOptions, build_small};

use super::SqlOracleError;
use super::duckdb::Rows;

pub(super) struct Ours {
    /// The last to go.
    _directory: tempfile::TempDir,
    _runtime: Runtime,
    threads: tokio::runtime::Runtime,
    writer: Writer,
    session: Session,
}

impl Ours {
    /// An empty database, on an engine with so many threads and vectors of so many rows.
    pub(super) fn new(threads: usize, batch_rows: usize) -> Result<Self, SqlOracleError> {
        let io = |error: std::io::Error| SqlOracleError::Ours(error.to_string());
        let directory = tempfile::tempdir().map_err(io)?;
        let path = directory.path().join("db");
        build_small(&path, &[])?;
        let runtime = Runtime::new(&RuntimeOptions {
            memory_bytes: 512 << 20,
            is_process_bound: false,
            temp_dir: directory.path().to_owned(),
            batch_rows,
            threads,
        });
        let runtime = runtime.map_err(|error| SqlOracleError::Ours(error.to_string()))?;
        let database = Arc::new(Database::open(&path)?);
        let writer = database.open_writer(WriterOptions::default())?;
        let options = SessionOptions {
            // Nothing is asked while DuckDB answers, which may take minutes.
            idle_max: Duration::from_secs(3_600),
            ..SessionOptions::default()
        };
        let session = Session::new(&runtime, database, Some(writer.clone()), options);
        Ok(Self {
            _directory: directory,
            _runtime: runtime,
            threads: tokio::runtime::Runtime::new().map_err(io)?,
            writer,
            session,
        })
    }

    /// The rows of the last of some statements.
    pub(super) fn ask(&self, sql: &str) -> Result<Rows, Error> {
        let mut rows = Vec::new();
        for statement in self.session.statements(sql)? {
            let batches = self.threads.block_on(async {
                match self.session.execute(&statement).await? {
                    Outcome::Query(rows) | Outcome::Returned(rows, _) => {
                        let batches = rows.try_collect::<Vec<_>>().await;
                        batches.map_err(|error| Error::of_run(&error))
                    }
                    Outcome::CopyIn(_) | Outcome::CopyOut(_) | Outcome::Done(_) => Ok(Vec::new()),
                }
            })?;
            rows.clear();
            for batch in batches {
                let columns = batch.columns().iter().map(column);
                let columns = columns.collect::<Result<Vec<_>, Error>>()?;
                rows.extend((0..batch.num_rows()).map(|row| {
                    let values = columns.iter().map(|column| column[row].clone());
                    values.collect()
                }));
            }
        }
        Ok(rows)
    }

    /// The operators of a query's plan, as `EXPLAIN` shows them.
    pub(super) fn plan(&self, sql: &str) -> Result<String, Error> {
        let planned = self.threads.block_on(self.session.plan(sql))?;
        Ok(displayable(planned.plan().as_ref())
            .indent(false)
            .to_string())
    }

    /// Brings the changes of a table into its files.
    pub(super) fn compact(&self, name: &str) -> Result<(), SqlOracleError> {
        let snapshot = self.writer.database().snapshot();
        let tables = snapshot.tables().tables();
        let table = tables
            .into_iter()
            .find(|table| table.definition().name == name);
        if let Some(table) = table {
            self.writer.compact_table(table.definition().id)?;
        }
        Ok(())
    }
}

/// Values with a letter for their kind before them.
fn column(values: &ArrayRef) -> Result<Vec<Option<String>>, Error> {
    let letter = match values.data_type() {
        of if of.is_integer() || of.is_decimal() => 'n',
        DataType::Float32 | DataType::Float64 => 'f',
        DataType::Boolean => 'b',
        DataType::Date32 => 'd',
        DataType::Timestamp(..) => 's',
        DataType::Binary | DataType::BinaryView => 'x',
        _ => 't',
    };
    let texts = ValueTexts::new(values)?;
    let mut column = Vec::with_capacity(values.len());
    for row in 0..values.len() {
        let mut text = String::from(letter);
        let has_value = texts.write(row, &mut text)?;
        column.push(has_value.then(|| match values.data_type() {
            DataType::Float64 => format!("f{:?}", values.as_primitive::<Float64Type>().value(row)),
            DataType::Float32 => format!(
                "f{:?}",
                f64::from(values.as_primitive::<Float32Type>().value(row))
            ),
            DataType::Boolean => format!("b{}", u8::from(values.as_boolean().value(row))),
            DataType::Binary | DataType::BinaryView => text.replace("\\x", ""),
            _ => text,
        }));
    }
    Ok(column)
}
