//! Test helpers: a database with tables and graphs.

#![allow(clippy::unwrap_used, clippy::panic, unreachable_pub)]

use std::sync::Arc;

use arrow::util::display::array_value_to_string;
use futures::TryStreamExt;
use orrery_sparql::{Engine, EngineOptions, UpdateOptions};
use orrery_sparql_in_sql::EngineGraphs;
use orrery_sql::{Error, Outcome, Session, SessionOptions};
use orrery_storage::text::TextRules;
use orrery_storage::{CommitOptions, Database, Writer, WriterOptions, build_small};

/// A database of both, and who asks.
pub struct House {
    _directory: tempfile::TempDir,
    pub threads: tokio::runtime::Runtime,
    pub engine: Arc<Engine>,
    writer: Writer,
    pub session: Session,
}

/// A database with these data, and a session over it.
pub fn house(data: &str) -> House {
    house_with(data, None)
}

/// The same with an index of the texts that rules select.
pub fn house_with(data: &str, rules: Option<TextRules>) -> House {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("db");
    build_small(&path, &[]).unwrap();
    let database = Arc::new(Database::open(&path).unwrap());
    if rules.is_some() {
        database.set_text_rules(rules, None).unwrap();
    }
    let writer = database.open_writer(WriterOptions::default()).unwrap();
    let engine = Arc::new(Engine::new(Arc::clone(&database), EngineOptions::default()).unwrap());
    let graphs = EngineGraphs::new(Arc::clone(&engine));
    let session = Session::new(
        engine.runtime(),
        database,
        Some(writer.clone()),
        SessionOptions::default(),
    );
    let house = House {
        session: session.with_graphs(Arc::new(graphs)),
        _directory: directory,
        threads: tokio::runtime::Runtime::new().unwrap(),
        engine,
        writer,
    };
    house.update(data);
    house
}

impl House {
    /// The same that is asked through another session.
    pub fn with_session(self, session: Session) -> Self {
        Self { session, ..self }
    }

    pub fn update(&self, text: &str) {
        let options = UpdateOptions::of_process();
        let update = self.engine.prepare_update(text, &options).unwrap();
        let mut transaction = self.writer.begin().unwrap();
        let applied = self.engine.apply(&update, &options, &mut transaction);
        self.threads.block_on(applied).unwrap();
        let committed = transaction.commit(CommitOptions::default()).unwrap();
        committed.wait().unwrap();
    }

    /// The rows of the last statement, as lines.
    pub fn rows(&self, text: &str) -> Result<Vec<String>, Error> {
        let mut lines = Vec::new();
        for statement in self.session.statements(text)? {
            lines.clear();
            let batches = self.threads.block_on(async {
                Ok::<_, Error>(match self.session.execute(&statement).await? {
                    Outcome::Query(rows) | Outcome::Returned(rows, _) => {
                        let collected: Result<Vec<_>, _> = rows.try_collect().await;
                        collected.map_err(|error| Error::of_run(&error))?
                    }
                    Outcome::CopyIn(_) | Outcome::CopyOut(_) | Outcome::Done(_) => Vec::new(),
                })
            })?;
            for batch in batches {
                for row in 0..batch.num_rows() {
                    let cells = batch.columns().iter();
                    let cells = cells.map(|column| array_value_to_string(column, row).unwrap());
                    lines.push(cells.collect::<Vec<_>>().join("|"));
                }
            }
        }
        Ok(lines)
    }

    #[track_caller]
    pub fn check(&self, text: &str, expected: &[&str]) {
        assert_eq!(self.rows(text).unwrap(), expected, "{text}");
    }

    pub fn plan(&self, text: &str) -> String {
        self.rows(&format!("explain {text}")).unwrap().join("\n")
    }
}
