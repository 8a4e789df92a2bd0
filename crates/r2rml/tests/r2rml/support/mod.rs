//! Test helpers: a database in a temporary directory, its session and engine.

#![expect(clippy::unwrap_used, reason = "a test")]

use std::sync::Arc;

use arrow::util::display::array_value_to_string;
use futures::StreamExt as _;
use orrery_r2rml::TableMappings;
use orrery_sparql::{Engine, EngineOptions, QueryOptions, QueryResults, UpdateOptions};
use orrery_sql::{Error, FileAccess, ForeignAccess, Outcome, Rows, Session, SessionOptions};
use orrery_storage::{CommitOptions, Database, Snapshot, Writer, WriterOptions};
use orrery_term::Term;

pub(crate) struct Place {
    pub(crate) engine: Arc<Engine>,
    pub(crate) session: Session,
    writer: Writer,
    directory: Arc<tempfile::TempDir>,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self::with_foreign(&ForeignAccess::refused())
    }

    /// One that may read tables of other servers.
    pub(crate) fn with_foreign(foreign: &ForeignAccess) -> Self {
        let directory = Arc::new(tempfile::tempdir().unwrap());
        let database = Database::create_or_open(directory.path().join("db")).unwrap();
        let database = Arc::new(database);
        let writer = database.open_writer(WriterOptions::default()).unwrap();
        Self::over(directory, database, writer, foreign)
    }

    /// The same database in a process that may go elsewhere.
    pub(crate) fn opened_with(&self, foreign: &ForeignAccess) -> Self {
        let database = Arc::clone(self.engine.database());
        Self::over(
            Arc::clone(&self.directory),
            database,
            self.writer.clone(),
            foreign,
        )
    }

    fn over(
        directory: Arc<tempfile::TempDir>,
        database: Arc<Database>,
        writer: Writer,
        foreign: &ForeignAccess,
    ) -> Self {
        let options = EngineOptions {
            memory_bytes: 256 << 20,
            ..EngineOptions::default()
        };
        let engine = Engine::new(Arc::clone(&database), options).unwrap();
        let mappings = Arc::new(TableMappings::new(engine.runtime(), foreign));
        let engine = Arc::new(orrery_r2rml::mapped(engine, foreign));
        let options = SessionOptions {
            files: FileAccess::allowed([]),
            foreign: foreign.clone(),
            ..SessionOptions::default()
        };
        let session = Session::new(engine.runtime(), database, Some(writer.clone()), options)
            .with_mappings(mappings);
        Self {
            engine,
            session,
            writer,
            directory,
        }
    }

    /// Runs statements; the error of the first that fails, with its code.
    pub(crate) async fn run(&self, text: &str) -> Result<String, String> {
        let mut last = String::new();
        for statement in self.session.statements(text).map_err(told)? {
            match self.session.execute(&statement).await.map_err(told)? {
                Outcome::Done(tag) => last = tag.to_string(),
                other => last = format!("{other:?}"),
            }
        }
        Ok(last)
    }

    /// The rows of a statement as they come, until the first failure.
    pub(crate) async fn stream(&self, text: &str) -> Result<Rows, String> {
        let mut statements = self.session.statements(text).map_err(told)?.into_iter();
        let statement = statements.next().ok_or("no statement")?;
        match self.session.execute(&statement).await.map_err(told)? {
            Outcome::Query(rows) => Ok(rows),
            _ => Err("no rows".to_owned()),
        }
    }

    /// The rows of a query, a line each.
    pub(crate) async fn rows(&self, text: &str) -> Result<Vec<String>, String> {
        let mut rows = self.stream(text).await?;
        let mut lines = Vec::new();
        while let Some(batch) = rows.next().await {
            let batch = batch.map_err(|error| told(Error::of_run(&error)))?;
            for row in 0..batch.num_rows() {
                let values = batch
                    .columns()
                    .iter()
                    .map(|values| match values.is_null(row) {
                        true => "NULL".to_owned(),
                        false => array_value_to_string(values, row).unwrap(),
                    });
                lines.push(values.collect::<Vec<_>>().join(" "));
            }
        }
        Ok(lines)
    }

    /// The solutions of a query, a line each, sorted.
    pub(crate) async fn ask(&self, query: &str) -> Result<Vec<String>, String> {
        self.ask_with(query, &QueryOptions::of_process()).await
    }

    /// Applies an update and commits it.
    pub(crate) async fn update(&self, text: &str) -> Result<(), String> {
        let told = |error: &dyn std::fmt::Display| error.to_string();
        let options = UpdateOptions::of_process();
        let update = self.engine.prepare_update(text, &options);
        let update = update.map_err(|error| told(&error))?;
        let mut transaction = self.writer.begin().map_err(|error| told(&error))?;
        let applied = self.engine.apply(&update, &options, &mut transaction).await;
        applied.map_err(|error| told(&error))?;
        let commit = transaction.commit(CommitOptions::default());
        let commit = commit.and_then(|pending| pending.wait());
        commit.map(drop).map_err(|error| told(&error))
    }

    /// Brings quads of IRIs into the database, and takes others away, without any look at what they
    /// are about: as a load that does not look.
    pub(crate) fn change_unseen(&self, gone: &[[&str; 4]], come: &[[&str; 4]]) {
        let mut transaction = self.writer.begin().unwrap();
        let mut ids = |quads: &[[&str; 4]]| -> Vec<_> {
            let mut id = |iri: &str| transaction.intern(&Term::iri(iri.to_owned())).unwrap();
            quads.iter().map(|quad| quad.map(&mut id)).collect()
        };
        let (mut gone, mut come) = (ids(gone), ids(come));
        transaction.delete(&mut gone).unwrap();
        transaction.insert(&mut come).unwrap();
        let commit = transaction.commit(CommitOptions::default()).unwrap();
        commit.wait().unwrap();
    }

    /// Writes all quads into new files, in which terms have other ids.
    pub(crate) fn compact(&self) {
        let options = orrery_loader::CompactOptions::default();
        orrery_loader::compact(&self.writer, &options, &orrery_loader::SilentProgress).unwrap();
    }

    pub(crate) fn state(&self) -> Arc<Snapshot> {
        self.engine.database().snapshot()
    }

    /// The same in another state, say.
    pub(crate) async fn ask_with(
        &self,
        query: &str,
        options: &QueryOptions,
    ) -> Result<Vec<String>, String> {
        let prepared = self.engine.prepare(query, options);
        let prepared = prepared.map_err(|error| error.to_string())?;
        let columns = prepared.variables().len();
        let results = prepared.execute().await;
        let mut lines = Vec::new();
        match results.map_err(|error| error.to_string())? {
            QueryResults::Solutions(mut solutions) => {
                while let Some(batch) = solutions.next().await {
                    let batch = batch.map_err(|error| error.to_string())?;
                    for row in 0..batch.rows() {
                        let terms = (0..columns).map(|column| match batch.term(row, column) {
                            Some(Term::BlankNode(_)) => "_:".to_owned(),
                            Some(term) => term.to_string(),
                            None => "-".to_owned(),
                        });
                        lines.push(terms.collect::<Vec<_>>().join(" "));
                    }
                }
            }
            QueryResults::Boolean(value) => lines.push(value.to_string()),
            QueryResults::Triples(_) => return Err("triples".to_owned()),
        }
        lines.sort();
        Ok(lines)
    }
}

fn told(error: Error) -> String {
    format!("{} {error}", error.state.code())
}

/// A mapping with the prefixes that tests use.
pub(crate) fn mapping(text: &str) -> String {
    let prefixes = "@prefix rr: <http://www.w3.org/ns/r2rml#> . @prefix e: <http://e/> . \
        @prefix xsd: <http://www.w3.org/2001/XMLSchema#> . @base <http://e/base/> .\n";
    format!("{prefixes}{text}").replace('\'', "''")
}
