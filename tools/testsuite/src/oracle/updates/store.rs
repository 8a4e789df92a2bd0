//! Our engine over a changing database, with endpoints in memory.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use orrery_loader::{CompactOptions, Progress, Stage, compact};
use orrery_sparql::service::{RemoteAnswer, RemoteEndpoints, RemoteFailure, ServiceOptions};
use orrery_sparql::{Engine, EngineOptions, QueryError, UpdateOptions, term_to_oxrdf};
use orrery_storage::{
    At, CommitOptions, Database, Durability, ReadView, Snapshot, Writer, WriterOptions, build_small,
};
use orrery_term::Term;
use oxrdf::{Dataset, GraphName, Quad};
use sparesults::{QueryResultsFormat, QueryResultsSerializer};
use spareval::{QueryEvaluator, QueryResults};
use spargebra::SparqlParser;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::super::store::{found, small_quad};
use super::model::State;
use super::requests::DEAD;
use crate::Error;

/// Keys in one request to an endpoint: few, so that there are several requests.
const BLOCK_KEYS: usize = 3;
/// Turns of one update: more than it takes, whatever its services.
const TURNS_MAX: usize = 100;

pub(super) struct ChangingStore {
    engine: Engine,
    writer: Writer,
    runtime: Runtime,
    _directory: TempDir,
}

impl ChangingStore {
    pub(super) fn new(quads: &[Quad], endpoints: Vec<Quad>) -> Result<Self, Error> {
        let failed = |source| Error::Io {
            path: "a temporary directory".into(),
            source,
        };
        let shared_memory = Path::new("/dev/shm");
        let mut directory = tempfile::Builder::new();
        directory.prefix("oracle");
        let directory = match shared_memory.is_dir() {
            true => directory.tempdir_in(shared_memory),
            false => directory.tempdir(),
        };
        let directory = directory.map_err(failed)?;
        let quads = quads
            .iter()
            .map(small_quad)
            .collect::<Result<Vec<_>, _>>()?;
        let database: Arc<Database> = Arc::new(build_small(directory.path(), &quads)?);
        let writer = database.open_writer(WriterOptions::default())?;
        let mut service = ServiceOptions::new(Arc::new(Endpoints(endpoints)));
        service.block_keys_max = BLOCK_KEYS;
        let options = EngineOptions {
            service: Some(service),
            ..EngineOptions::default()
        };
        Ok(Self {
            engine: Engine::new(database, options)?,
            writer,
            runtime: tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .map_err(failed)?,
            _directory: directory,
        })
    }

    pub(super) fn commit(&self) -> u64 {
        self.engine.database().snapshot().commit()
    }

    /// Applies a request as servers do; without `is_kept` it is rolled back at the end.
    pub(super) fn update(&self, text: &str, is_kept: bool) -> Result<(), QueryError> {
        self.update_as(text, &UpdateOptions::of_process(), is_kept)
    }

    /// The same by somebody.
    pub(super) fn update_as(
        &self,
        text: &str,
        options: &UpdateOptions,
        is_kept: bool,
    ) -> Result<(), QueryError> {
        let update = self.engine.prepare_update(text, options)?;
        for _ in 0..TURNS_MAX {
            let mut transaction = self.writer.begin()?;
            let applied = self.engine.apply(&update, options, &mut transaction);
            match self.runtime.block_on(applied) {
                Ok(()) if !is_kept => return Ok(()),
                Ok(()) => {
                    let options = CommitOptions {
                        who: "oracle".to_owned(),
                        durability: Durability::Relaxed,
                        expected: None,
                        ..CommitOptions::default()
                    };
                    transaction.commit(options)?.wait()?;
                    return Ok(());
                }
                Err(QueryError::AskFirst) => {
                    drop(transaction);
                    self.runtime.block_on(self.engine.ask(&update, None))?;
                }
                Err(error) => return Err(error),
            }
        }
        Err(QueryError::Internal {
            message: format!("asked for {TURNS_MAX} turns"),
        })
    }

    pub(super) fn checkpoint(&self) -> Result<(), Error> {
        self.writer.checkpoint()?;
        Ok(())
    }

    /// Compacts; requests are made while that is under way. Returns the commit after each.
    pub(super) fn compact(&self, beside: &[String]) -> Result<Vec<u64>, Error> {
        let commits = Mutex::new(Vec::new());
        let failed = Mutex::new(None);
        let meanwhile = || {
            for text in beside {
                match self.update(text, true) {
                    Ok(()) => push(&commits, self.commit()),
                    Err(error) => {
                        if let Ok(mut failed) = failed.lock() {
                            *failed = Some(error);
                        }
                    }
                }
            }
        };
        let progress = Meanwhile {
            work: Mutex::new(Some(Box::new(meanwhile))),
        };
        let compacted = compact(&self.writer, &CompactOptions::default(), &progress);
        // Without changes there was nothing to do.
        progress.run();
        compacted.map_err(|error| Error::Reference(format!("compacting: {error}")))?;
        drop(progress);
        if let Ok(Some(error)) = failed.into_inner() {
            return Err(error.into());
        }
        Ok(commits.into_inner().unwrap_or_default())
    }

    /// What a query of a rule finds.
    pub(super) fn found(&self, text: &str) -> Result<Vec<Term<'static>>, Error> {
        found(&self.engine, &self.runtime, text)
    }

    /// The triples with the names of their graphs; the default graph has none.
    pub(super) fn by_graph(&self) -> Result<BTreeSet<(Option<Term<'static>>, String)>, Error> {
        let view = self.engine.database().view_of_process();
        let (mut state, mut quads) = (BTreeSet::new(), view.quads()?);
        while let Some(batch) = quads.next_batch()? {
            for quad in batch.iter() {
                let triple = format!("{} {} {}", quad.subject, quad.predicate, quad.object);
                state.insert((quad.graph.cloned(), triple));
            }
        }
        Ok(state)
    }

    pub(super) fn state(&self) -> Result<State, Error> {
        state_of(&self.engine.database().snapshot())
    }

    /// The state after a commit, if it is kept.
    pub(super) fn state_at(&self, commit: u64) -> Result<Option<State>, Error> {
        match self.engine.database().snapshot_at(At::Commit(commit)) {
            Ok(snapshot) => state_of(&snapshot).map(Some),
            Err(orrery_storage::Error::NoSuchCommit { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

fn push(commits: &Mutex<Vec<u64>>, commit: u64) {
    if let Ok(mut commits) = commits.lock() {
        commits.push(commit);
    }
}

fn state_of(snapshot: &Arc<Snapshot>) -> Result<State, Error> {
    let mut state = BTreeSet::new();
    let view = ReadView::of_process(Arc::clone(snapshot));
    let mut quads = view.quads()?;
    while let Some(batch) = quads.next_batch()? {
        for quad in batch.iter() {
            let graph = quad.graph.map(|graph| format!(" {}", term_to_oxrdf(graph)));
            state.insert(format!(
                "{} {} {}{}",
                term_to_oxrdf(quad.subject),
                term_to_oxrdf(quad.predicate),
                term_to_oxrdf(&quad.object),
                graph.unwrap_or_default()
            ));
        }
    }
    match state.len() as u64 == view.quad_count() {
        true => Ok(state),
        false => Err(Error::Reference(format!(
            "{} quads are counted, and {} are there",
            view.quad_count(),
            state.len()
        ))),
    }
}

/// Does its work when the first stage of a compaction begins.
struct Meanwhile<'w> {
    work: Mutex<Option<Box<dyn FnOnce() + Send + 'w>>>,
}

impl Meanwhile<'_> {
    fn run(&self) {
        let work = self.work.lock().ok().and_then(|mut work| work.take());
        if let Some(work) = work {
            work();
        }
    }
}

impl Progress for Meanwhile<'_> {
    fn begin(&self, _: Stage, _: Option<u64>) {
        self.run();
    }
}

/// The graphs of some quads as endpoints, answered by the reference.
#[derive(Debug)]
struct Endpoints(Vec<Quad>);

impl Endpoints {
    fn answer(&self, endpoint: &str, query: &str) -> Result<Vec<u8>, String> {
        let query = SparqlParser::new()
            .parse_query(query)
            .map_err(|error| error.to_string())?;
        let mut dataset = Dataset::new();
        for quad in &self.0 {
            if matches!(&quad.graph_name, GraphName::NamedNode(graph) if graph.as_str() == endpoint)
            {
                let mut own = quad.clone();
                own.graph_name = GraphName::DefaultGraph;
                dataset.insert(&own);
            }
        }
        let evaluator = QueryEvaluator::new().without_optimizations();
        let results = evaluator.prepare(&query).execute(&dataset);
        let Ok(QueryResults::Solutions(solutions)) = results else {
            return Err("it is no SELECT".to_owned());
        };
        let serializer = QueryResultsSerializer::from_format(QueryResultsFormat::Json);
        let variables = solutions.variables().to_vec();
        let mut writer = serializer
            .serialize_solutions_to_writer(Vec::new(), variables)
            .map_err(|error| error.to_string())?;
        for solution in solutions {
            let solution = solution.map_err(|error| error.to_string())?;
            writer
                .serialize(solution.iter())
                .map_err(|error| error.to_string())?;
        }
        writer.finish().map_err(|error| error.to_string())
    }
}

impl RemoteEndpoints for Endpoints {
    fn ask(
        &self,
        endpoint: &str,
        query: String,
        _: &'static str,
    ) -> BoxFuture<'static, Result<RemoteAnswer, RemoteFailure>> {
        let answer = match endpoint.ends_with(DEAD) {
            true => Err("nobody is there".to_owned()),
            false => self.answer(endpoint, &query),
        };
        let answer = answer.map_err(RemoteFailure::new);
        let answer = answer.map(|bytes| RemoteAnswer {
            content_type: Some("application/sparql-results+json".to_owned()),
            body: futures::stream::iter([Ok(bytes.into())]).boxed(),
        });
        futures::future::ready(answer).boxed()
    }
}
