//! A small database for tests, changed by transactions of quads.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "shared by test files, of which each uses its part"
)]

use std::sync::Arc;

use orrery_sparql::{Engine, EngineOptions, QueryError, QueryOptions, QueryResults, UpdateOptions};
use orrery_storage::{
    CommitOptions, Database, Durability, SmallQuad, Transaction, Writer, WriterOptions, build_small,
};
use orrery_term::{Term, TermId};

/// A database in a temporary directory, with its writer.
pub struct Store {
    pub engine: Engine,
    pub writer: Writer,
    pub runtime: tokio::runtime::Runtime,
    pub directory: tempfile::TempDir,
}

impl Store {
    /// Of these quads.
    pub fn of(quads: &[SmallQuad]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let database = build_small(directory.path(), quads).unwrap();
        Self::over(database, directory)
    }

    /// Over the database of a directory.
    pub fn over(database: Database, directory: tempfile::TempDir) -> Self {
        Self::written_with(database, directory, WriterOptions::default())
    }

    /// The same, written with these options.
    pub fn written_with(
        database: Database,
        directory: tempfile::TempDir,
        options: WriterOptions,
    ) -> Self {
        let database = Arc::new(database);
        let writer = database.open_writer(options).unwrap();
        Self {
            engine: Engine::new(database, EngineOptions::default()).unwrap(),
            writer,
            runtime: tokio::runtime::Builder::new_current_thread()
                .enable_time()
                .build()
                .unwrap(),
            directory,
        }
    }

    /// Runs an update as one commit; what is wrong with it, as it is told.
    pub fn apply(&self, text: &str, options: &UpdateOptions) -> Result<(), String> {
        let applied = || -> Result<(), QueryError> {
            let update = self.engine.prepare_update(text, options)?;
            let mut transaction = self.writer.begin()?;
            let applied = self.engine.apply(&update, options, &mut transaction);
            self.runtime.block_on(applied)?;
            let options = CommitOptions {
                durability: Durability::Relaxed,
                ..CommitOptions::default()
            };
            transaction.commit(options)?.wait()?;
            Ok(())
        };
        applied().map_err(|error| error.to_string())
    }

    /// Deletes, then inserts, as one commit, whose number it gives.
    pub fn change<'q>(
        &self,
        inserted: impl IntoIterator<Item = &'q SmallQuad>,
        deleted: impl IntoIterator<Item = &'q SmallQuad>,
    ) -> u64 {
        let mut transaction = self.writer.begin().unwrap();
        let id_of = |transaction: &mut Transaction, (s, p, o, graph): &SmallQuad| {
            let mut id = |term: &Term<'_>| transaction.intern(term).unwrap();
            let graph = graph.as_ref().map_or(TermId::DEFAULT_GRAPH, &mut id);
            [id(s), id(p), id(o), graph]
        };
        let rows = deleted.into_iter();
        let mut rows: Vec<_> = rows.map(|quad| id_of(&mut transaction, quad)).collect();
        transaction.delete(&mut rows).unwrap();
        let rows = inserted.into_iter();
        let mut rows: Vec<_> = rows.map(|quad| id_of(&mut transaction, quad)).collect();
        transaction.insert(&mut rows).unwrap();
        let pending = transaction.commit(CommitOptions::default()).unwrap();
        pending.wait().unwrap()
    }

    /// The rows of a SELECT in their order: their terms with blanks between, `-` for what is
    /// unbound.
    pub fn rows(&self, query: &str, options: &QueryOptions) -> Vec<String> {
        let prepared = self.engine.prepare(query, options).unwrap();
        self.runtime.block_on(async {
            let QueryResults::Solutions(mut stream) = prepared.execute().await.unwrap() else {
                panic!("a SELECT");
            };
            let mut rows = Vec::new();
            while let Some(batch) = stream.next().await {
                let batch = batch.unwrap();
                for row in 0..batch.rows() {
                    let values = (0..batch.columns()).map(|column| {
                        let term = batch.term(row, column);
                        term.map_or("-".to_owned(), ToString::to_string)
                    });
                    rows.push(values.collect::<Vec<_>>().join(" "));
                }
            }
            rows
        })
    }
}
