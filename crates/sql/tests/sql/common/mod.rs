//! Test helpers: a database in a temporary directory, and sessions over it.

#![allow(dead_code, reason = "each test takes what it needs")]

use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{Array, RecordBatch};
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::arrow::util::display::array_value_to_string;
use futures::TryStreamExt;
use orrery_runtime::{Runtime, RuntimeOptions};
use orrery_sql::{Error, Outcome, Session, SessionOptions, Tag};
use orrery_storage::{Database, Writer, WriterOptions, build_small};

pub(crate) struct House {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) runtime: Runtime,
    pub(crate) threads: tokio::runtime::Runtime,
    pub(crate) writer: Option<Writer>,
}

/// What a statement came to.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) batches: Vec<RecordBatch>,
    pub(crate) tag: Tag,
    pub(crate) schema: SchemaRef,
    /// Whether it is one of rows.
    pub(crate) is_of_rows: bool,
}

impl House {
    pub(crate) fn new() -> Self {
        Self::with_memory(256 << 20)
    }

    pub(crate) fn with_memory(memory_bytes: u64) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let database = directory.path().join("db");
        build_small(&database, &[]).unwrap();
        let runtime = runtime(directory.path(), memory_bytes, 2);
        let mut house = Self {
            runtime,
            threads: tokio::runtime::Runtime::new().unwrap(),
            writer: None,
            directory,
        };
        house.open();
        house
    }

    /// The same whose queries have one thread.
    pub(crate) fn on_one_thread(self) -> Self {
        Self {
            runtime: runtime(self.directory.path(), 1 << 30, 1),
            ..self
        }
    }

    pub(crate) fn path(&self) -> std::path::PathBuf {
        self.directory.path().join("db")
    }

    /// Opens the database for writing, after closing it without a word.
    pub(crate) fn open(&mut self) {
        self.writer = None;
        self.writer = Some(writer(&self.path()));
    }

    /// The number of the last commit.
    pub(crate) fn commit(&self) -> u64 {
        let writer = self.writer.as_ref().unwrap();
        writer.database().snapshot().commit()
    }

    /// Writes the rows of all tables to their files.
    pub(crate) fn compact(&self) {
        let writer = self.writer.as_ref().unwrap();
        let snapshot = writer.database().snapshot();
        for table in snapshot.tables().tables() {
            writer.compact_table(table.definition().id).unwrap();
        }
    }

    pub(crate) fn session(&self) -> Session {
        self.session_with(SessionOptions::default())
    }

    pub(crate) fn session_with(&self, options: SessionOptions) -> Session {
        let writer = self.writer.clone().unwrap();
        let database = Arc::clone(writer.database());
        Session::new(&self.runtime, database, Some(writer), options)
    }

    /// A session on an engine of its own, with so much memory.
    pub(crate) fn session_in(&self, memory_bytes: u64) -> Session {
        self.session_in_with(memory_bytes, SessionOptions::default())
    }

    pub(crate) fn session_in_with(&self, memory_bytes: u64, options: SessionOptions) -> Session {
        let runtime = runtime(self.directory.path(), memory_bytes, 2);
        let writer = self.writer.clone().unwrap();
        let database = Arc::clone(writer.database());
        Session::new(&runtime, database, Some(writer), options)
    }

    pub(crate) fn read_only(&self) -> Session {
        let database = Arc::clone(self.writer.as_ref().unwrap().database());
        Session::new(&self.runtime, database, None, SessionOptions::default())
    }

    /// Runs all statements of a text; the answer is that of the last one.
    pub(crate) fn run(&self, session: &Session, text: &str) -> Result<Answer, Error> {
        let mut last = None;
        for statement in session.statements(text)? {
            let answer = self.threads.block_on(async {
                let collected = |batches: Result<Vec<RecordBatch>, _>| {
                    batches.map_err(|error| Error::of_run(&error))
                };
                Ok::<_, Error>(match session.execute(&statement).await? {
                    Outcome::Query(rows) => {
                        let schema = rows.schema();
                        let batches = collected(rows.try_collect().await)?;
                        let count = batches.iter().map(|batch| batch.num_rows() as u64).sum();
                        Answer {
                            batches,
                            tag: Tag::Select(count),
                            schema,
                            is_of_rows: true,
                        }
                    }
                    Outcome::Returned(rows, tag) => Answer {
                        schema: rows.schema(),
                        is_of_rows: true,
                        batches: collected(rows.try_collect().await)?,
                        tag,
                    },
                    Outcome::CopyIn(_) | Outcome::CopyOut(_) => {
                        panic!("{text}: its bytes are for those who take them")
                    }
                    Outcome::Done(tag) => Answer {
                        batches: Vec::new(),
                        tag,
                        schema: Arc::new(Schema::empty()),
                        is_of_rows: false,
                    },
                })
            })?;
            last = Some(answer);
        }
        Ok(last.unwrap())
    }

    /// The same, where nothing may fail.
    pub(crate) fn done(&self, session: &Session, text: &str) -> Answer {
        self.run(session, text)
            .unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    /// The rows of a query, as lines.
    pub(crate) fn rows(&self, session: &Session, text: &str) -> Vec<String> {
        self.done(session, text).lines()
    }

    /// The code and the message of what fails.
    pub(crate) fn refused(&self, session: &Session, text: &str) -> (&'static str, String) {
        let error = self.run(session, text).expect_err(text);
        (error.state.code(), error.to_string())
    }
}

impl Answer {
    /// Rows as lines of values; NULL for a NULL, and (empty) for a text without characters.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for batch in &self.batches {
            for row in 0..batch.num_rows() {
                let values = batch.columns().iter().map(|column| {
                    if column.is_null(row) {
                        return "NULL".to_owned();
                    }
                    let value = array_value_to_string(column, row).unwrap();
                    match value.is_empty() {
                        true => "(empty)".to_owned(),
                        false => value,
                    }
                });
                lines.push(values.collect::<Vec<_>>().join(" "));
            }
        }
        lines
    }
}

pub(crate) fn writer(directory: &Path) -> Writer {
    let database = Arc::new(Database::open(directory).unwrap());
    database.open_writer(WriterOptions::default()).unwrap()
}

fn runtime(temp_dir: &Path, memory_bytes: u64, threads: usize) -> Runtime {
    Runtime::new(&RuntimeOptions {
        memory_bytes,
        is_process_bound: false,
        temp_dir: temp_dir.to_owned(),
        batch_rows: 1_024,
        threads,
    })
    .unwrap()
}

/// Numbers that follow from a seed.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn next(&mut self) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub(crate) fn some<T>(&mut self, value: impl FnOnce(&mut Self) -> T) -> Option<T> {
        (self.below(8) > 0).then(|| value(self))
    }

    pub(crate) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}
