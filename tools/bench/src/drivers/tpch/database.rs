//! An in-process database, queried through sessions.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::RecordBatch;
use futures::TryStreamExt;
use orrery_runtime::{Runtime, RuntimeOptions};
use orrery_sql::{FileAccess, Outcome, Session, SessionOptions, Tag};
use orrery_storage::{Database, Writer, WriterOptions};

use super::files::{DELETED_KEY, RefreshFiles, TpchFiles};
use crate::drivers::BenchError;
use crate::drivers::load::remove;
use crate::tpch::{Answer, TpchTable};

/// Rows in a batch between operators: what the server and `orrery sql` take.
const BATCH_ROWS: usize = 8_192;

/// A database, and what runs queries on it.
pub(in crate::drivers) struct TpchDatabase {
    threads: tokio::runtime::Runtime,
    runtime: Runtime,
    writer: Writer,
}

/// One client.
pub(in crate::drivers) struct Client<'d> {
    session: Session,
    threads: &'d tokio::runtime::Runtime,
}

impl TpchDatabase {
    /// A new one in the place of what is there.
    pub(in crate::drivers) fn create(
        directory: &Path,
        threads: usize,
        memory_bytes: u64,
    ) -> Result<Self, BenchError> {
        remove(directory)?;
        let database = Arc::new(Database::create_or_open(directory)?);
        let writer = database.open_writer(WriterOptions::default())?;
        let temp_dir: PathBuf = std::env::temp_dir();
        let runtime = Runtime::new(&RuntimeOptions {
            memory_bytes,
            is_process_bound: false,
            temp_dir,
            batch_rows: BATCH_ROWS,
            threads,
        });
        let runtime = runtime.map_err(|error| BenchError::Engine {
            message: error.to_string(),
        })?;
        let tokio = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads)
            .enable_all()
            .build();
        Ok(Self {
            threads: tokio.map_err(|error| BenchError::Engine {
                message: error.to_string(),
            })?,
            runtime,
            writer,
        })
    }

    /// Another client of it.
    pub(in crate::drivers) fn client(&self) -> Client<'_> {
        let database = Arc::clone(self.writer.database());
        let options = SessionOptions {
            who: "orrery bench tpch".to_owned(),
            files: FileAccess::allowed([]),
            ..SessionOptions::default()
        };
        Client {
            session: Session::new(&self.runtime, database, Some(self.writer.clone()), options),
            threads: &self.threads,
        }
    }
}

impl Client<'_> {
    /// Makes the tables and loads them.
    pub(in crate::drivers) fn load(&self, files: &TpchFiles) -> Result<(), BenchError> {
        for table in TpchTable::ALL {
            self.run(table.definition())?;
        }
        for table in TpchTable::ALL {
            let file = literal(&files.table(table));
            self.run(&format!(
                "insert into {} select * from {file}",
                table.name()
            ))?;
        }
        Ok(())
    }

    /// Runs one statement.
    pub(in crate::drivers) fn run(
        &self,
        text: &str,
    ) -> Result<(Vec<RecordBatch>, Tag), BenchError> {
        let failed = |error: orrery_sql::Error| BenchError::Sql {
            statement: text.chars().take(STATEMENT_SHOWN_MAX).collect(),
            error: Box::new(error),
        };
        let run = async {
            let statements = self.session.statements(text)?;
            let mut done = (Vec::new(), Tag::Select(0));
            for statement in &statements {
                done = match self.session.execute(statement).await? {
                    Outcome::Query(rows) => {
                        let rows: Result<Vec<RecordBatch>, _> = rows.try_collect().await;
                        let rows = rows.map_err(|error| orrery_sql::Error::of_run(&error))?;
                        let count = rows.iter().map(|batch| batch.num_rows() as u64).sum();
                        (rows, Tag::Select(count))
                    }
                    Outcome::Returned(_, tag) | Outcome::Done(tag) => (Vec::new(), tag),
                    // The benchmark has no COPY from or to a client.
                    Outcome::CopyIn(_) | Outcome::CopyOut(_) => (Vec::new(), Tag::Copy(0)),
                };
            }
            Ok::<_, orrery_sql::Error>(done)
        };
        self.threads.block_on(run).map_err(failed)
    }

    /// Asks a query.
    pub(in crate::drivers) fn ask(&self, text: &str) -> Result<Answer, BenchError> {
        let (rows, _) = self.run(text)?;
        Ok(Answer::of_batches(&rows).map_err(crate::tpch::TpchError::from)?)
    }

    /// The first refresh function: new orders and their lines, in one transaction. Returns how many
    /// lines came.
    pub(super) fn insert(&self, files: &RefreshFiles) -> Result<u64, BenchError> {
        let (orders, lines) = (literal(&files.orders), literal(&files.lines));
        self.run("begin")?;
        self.run(&format!("insert into orders select * from {orders}"))?;
        let (_, tag) = self.run(&format!("insert into lineitem select * from {lines}"))?;
        self.run("commit")?;
        Ok(rows_of(tag))
    }

    /// The second one: old orders go with their lines. Returns how many lines went.
    pub(super) fn delete(&self, files: &RefreshFiles) -> Result<u64, BenchError> {
        let keys = format!("select {DELETED_KEY} from {}", literal(&files.deleted));
        self.run("begin")?;
        let (_, tag) = self.run(&format!(
            "delete from lineitem where l_orderkey in ({keys})"
        ))?;
        self.run(&format!("delete from orders where o_orderkey in ({keys})"))?;
        self.run("commit")?;
        Ok(rows_of(tag))
    }

    /// The one number that a query gives.
    pub(super) fn number(&self, text: &str) -> Result<u64, BenchError> {
        let answer = self.ask(text)?;
        answer.number().ok_or_else(|| BenchError::Output {
            command: text.to_owned(),
            what: "it is no number".to_owned(),
        })
    }
}

/// Characters of a statement that are shown with what it failed of.
const STATEMENT_SHOWN_MAX: usize = 80;

/// A path as SQL names a file.
fn literal(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', "''"))
}

fn rows_of(tag: Tag) -> u64 {
    match tag {
        Tag::Select(rows)
        | Tag::Insert(rows)
        | Tag::Update(rows)
        | Tag::Delete(rows)
        | Tag::Fetch(rows)
        | Tag::Copy(rows)
        | Tag::Materialize(rows) => rows,
        Tag::Words(_) => 0,
    }
}
