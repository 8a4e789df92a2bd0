//! Tests of `SERVICE` in updates: its effect, concurrency, and refusals.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::endpoints;
use std::sync::Arc;

use endpoints::Endpoints;
use futures::FutureExt;
use futures::future::BoxFuture;
use orrery_sparql::service::{RemoteAnswer, RemoteEndpoints, RemoteFailure, ServiceOptions};
use orrery_sparql::{Engine, EngineOptions, QueryError, QueryOptions, QueryResults, UpdateOptions};
use orrery_storage::{CommitOptions, Database, Durability, Writer, WriterOptions};
use oxrdf::Dataset;
use oxttl::TriGParser;
use sparesults::QueryResultsFormat;

const PREFIX: &str = "PREFIX : <http://example.org/> ";
const REMOTE: &str = r#"
@prefix : <http://example.org/> .
:g1 { :a a :Old ; :q 1 . :b :q 2 . :c :q 3 . }
:g2 { :a :r :x . :x :r :y . :b :r :z . }
"#;

struct Store {
    _directory: tempfile::TempDir,
    engine: Engine,
    writer: Writer,
    runtime: tokio::runtime::Runtime,
}

/// What became of an update, and how often it was applied.
type Outcome = (Result<(), QueryError>, usize);

impl Store {
    fn new(service: Option<ServiceOptions>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let database = Arc::new(Database::create_or_open(directory.path()).unwrap());
        let writer = database.open_writer(WriterOptions::default()).unwrap();
        let options = EngineOptions {
            service,
            ..EngineOptions::default()
        };
        Self {
            engine: Engine::new(database, options).unwrap(),
            _directory: directory,
            writer,
            runtime: tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()
                .unwrap(),
        }
    }

    fn with_endpoints(configure: impl FnOnce(&mut ServiceOptions)) -> (Self, Arc<Endpoints>) {
        let quads = TriGParser::new().for_slice(REMOTE);
        let dataset: Dataset = quads.map(Result::unwrap).collect();
        let endpoints = Arc::new(Endpoints::new(dataset, QueryResultsFormat::Json));
        let asked = Arc::clone(&endpoints);
        let mut service = ServiceOptions::new(endpoints);
        configure(&mut service);
        (Self::new(Some(service)), asked)
    }

    /// Applies an update as servers do. Before each turn, others do what `meanwhile` says.
    fn try_update(&self, text: &str, mut meanwhile: impl FnMut(usize)) -> Outcome {
        let options = UpdateOptions::of_process();
        let text = format!("{PREFIX}{text}");
        let update = match self.engine.prepare_update(&text, &options) {
            Ok(update) => update,
            Err(error) => return (Err(error), 0),
        };
        for turn in 1.. {
            meanwhile(turn);
            let mut transaction = self.writer.begin().unwrap();
            let applied = self.engine.apply(&update, &options, &mut transaction);
            match self.runtime.block_on(applied) {
                Ok(()) => {
                    let options = CommitOptions {
                        durability: Durability::Relaxed,
                        ..CommitOptions::default()
                    };
                    transaction.commit(options).unwrap().wait().unwrap();
                    return (Ok(()), turn);
                }
                Err(QueryError::AskFirst) => {
                    drop(transaction);
                    let asked = self.engine.ask(&update, None);
                    if let Err(error) = self.runtime.block_on(asked) {
                        return (Err(error), turn);
                    }
                }
                Err(error) => return (Err(error), turn),
            }
        }
        unreachable!("turns do not end")
    }

    fn update(&self, text: &str) -> usize {
        let (done, turns) = self.try_update(text, |_| {});
        done.unwrap_or_else(|error| panic!("{error} in {text}"));
        turns
    }

    fn error(&self, text: &str) -> QueryError {
        self.try_update(text, |_| {}).0.expect_err(text)
    }

    /// All quads of the default graph, in short.
    fn lines(&self) -> Vec<String> {
        let text = "SELECT * { ?s ?p ?o }";
        let prepared = self
            .engine
            .prepare(text, &QueryOptions::of_process())
            .unwrap();
        let mut lines = Vec::new();
        self.runtime.block_on(async {
            let QueryResults::Solutions(mut stream) = prepared.execute().await.unwrap() else {
                panic!("a SELECT");
            };
            while let Some(batch) = stream.next().await {
                let batch = batch.unwrap();
                for row in 0..batch.rows() {
                    let term = |column| batch.term(row, column).unwrap().to_string();
                    let line = format!("{} {} {}", term(0), term(1), term(2));
                    lines.push(line.replace("http://example.org/", ""));
                }
            }
        });
        for line in &mut lines {
            *line = line.replace("^^<http://www.w3.org/2001/XMLSchema#integer>", "");
            *line = line.replace(['<', '>', '"'], "");
        }
        lines.sort();
        lines
    }
}

const LOCAL: &str = "INSERT DATA { :a :p :b . :b :p :c . :d :p :d }";

#[test]
fn what_an_endpoint_knows_is_deleted_and_inserted() {
    let (store, _) = Store::with_endpoints(|_| {});
    store.update(LOCAL);
    store.update("DELETE { ?s ?p ?o } WHERE { ?s ?p ?o SERVICE SILENT :g1 { ?s a :Old } }");
    assert_eq!(store.lines(), ["b p c", "d p d"]);
    store.update("INSERT { ?s :n ?n } WHERE { ?s :p ?o SERVICE :g1 { ?s :q ?n } }");
    assert_eq!(store.lines(), ["b n 2", "b p c", "d p d"]);
    store.update(
        "DELETE WHERE { ?s :p :d } ; INSERT { ?s :all ?n } WHERE { SERVICE :g1 { ?s :q ?n } }",
    );
    let expected = ["a all 1", "b all 2", "b n 2", "b p c", "c all 3"];
    assert_eq!(store.lines(), expected);
}

#[test]
fn later_operations_ask_about_what_earlier_ones_left() {
    let (store, endpoints) = Store::with_endpoints(|_| {});
    let turns = store.update(
        "INSERT DATA { :a :is :here } ;
         INSERT { ?o :is :here } WHERE { ?s :is :here SERVICE :g2 { ?s :r ?o } } ;
         INSERT { ?o :is :here } WHERE { ?s :is :here SERVICE :g2 { ?s :r ?o } } ;
         DELETE { ?s :is :here } WHERE { ?s :is :here SERVICE :g1 { ?s a :Old } }",
    );
    assert_eq!(store.lines(), ["x is here", "y is here"]);
    // Three that ask, each once what the one before has left is known, and the last turn.
    assert_eq!(turns, 4);
    assert_eq!(endpoints.asked.lock().unwrap().len(), 3);
}

#[test]
fn what_commits_while_others_are_asked_counts() {
    let (store, endpoints) = Store::with_endpoints(|_| {});
    store.update(LOCAL);
    let insert = "INSERT { ?s :n ?n } WHERE { ?s :p ?o SERVICE :g1 { ?s :q ?n } }";
    let (done, turns) = store.try_update(insert, |turn| {
        if turn == 2 {
            store.update("DELETE DATA { :b :p :c } ; INSERT DATA { :c :p :c }");
        }
    });
    done.unwrap();
    assert_eq!(turns, 3);
    let expected = ["a n 1", "a p b", "c n 3", "c p c", "d p d"];
    assert_eq!(store.lines(), expected);
    assert_eq!(endpoints.asked.lock().unwrap().len(), 2);
}

#[test]
fn data_that_keep_changing_are_asked_about_under_the_writer_lock_in_the_end() {
    let (store, _) = Store::with_endpoints(|_| {});
    store.update("INSERT DATA { :b :p :c }");
    let insert = "INSERT { ?s :n ?n } WHERE { ?s :p ?o SERVICE :g1 { ?s :q ?n } }";
    let (done, turns) = store.try_update(insert, |turn| {
        store.update(&format!("INSERT DATA {{ :new{turn} :p :c }}"));
    });
    done.unwrap();
    assert_eq!(turns, 6);
    assert!(store.lines().contains(&"b n 2".to_owned()));
}

#[test]
fn many_service_blocks_take_the_writer_lock_few_times() {
    let (store, endpoints) = Store::with_endpoints(|service| service.block_keys_max = 1);
    let keys: String = (0..60).map(|n| format!(":k{n} :p {n} . ")).collect();
    store.update(&format!("INSERT DATA {{ {keys} }}"));
    let turns = store.update("INSERT { ?s :of ?n } WHERE { ?k :p ?n SERVICE :g1 { ?s :q ?n } }");
    let lines = store.lines();
    let found: Vec<&String> = lines.iter().filter(|line| line.contains(" of ")).collect();
    assert_eq!(found, ["a of 1", "b of 2", "c of 3"]);
    // 4, 8, 16 and 32 requests, and the turn that has all answers.
    assert_eq!(turns, 5);
    assert_eq!(endpoints.asked.lock().unwrap().len(), 60);
}

#[test]
fn an_endpoint_that_fails_counts_as_in_a_query() {
    let (store, _) = Store::with_endpoints(|_| {});
    store.update(LOCAL);
    let error = store.error("DELETE { ?s ?p ?o } WHERE { ?s ?p ?o SERVICE :dead { ?s a :Old } }");
    assert!(matches!(error, QueryError::Service { .. }), "{error}");
    assert_eq!(store.lines().len(), 3);
    store.update("INSERT { ?s :is 1 } WHERE { ?s :p :b SERVICE SILENT :dead { ?s a :Old } }");
    assert_eq!(store.lines().len(), 4);
}

/// An endpoint that the allow-list does not have.
#[derive(Debug)]
struct Forbidden;

impl RemoteEndpoints for Forbidden {
    fn ask(
        &self,
        _: &str,
        _: String,
        _: &'static str,
    ) -> BoxFuture<'static, Result<RemoteAnswer, RemoteFailure>> {
        let failure = RemoteFailure {
            is_forbidden: true,
            ..RemoteFailure::new("it may not be asked")
        };
        futures::future::ready(Err(failure)).boxed()
    }
}

#[test]
fn where_nobody_may_be_asked_an_update_fails_silent_or_not() {
    let nobody = Store::new(None);
    let forbidden = Store::new(Some(ServiceOptions::new(Arc::new(Forbidden))));
    for store in [nobody, forbidden] {
        store.update(LOCAL);
        for service in ["SERVICE", "SERVICE SILENT"] {
            for pattern in [
                format!("?s ?p ?o {service} :g1 {{ ?s a :Old }}"),
                format!("?s ?p ?o FILTER EXISTS {{ {service} :g1 {{ ?s a :Old }} }}"),
                format!("?s ?p ?o OPTIONAL {{ {service} :g1 {{ ?s :q ?q }} }} FILTER(!bound(?q))"),
            ] {
                let text = format!("DELETE {{ ?s ?p ?o }} WHERE {{ {pattern} }}");
                store.error(&text);
                assert_eq!(store.lines(), ["a p b", "b p c", "d p d"], "{text}");
            }
        }
    }
}

#[test]
fn a_large_where_is_spread_over_the_cores_as_a_query_is() {
    let (store, _) = Store::with_endpoints(|_| {});
    let rows: String = (0..2_000)
        .map(|n| format!(":n{n} :v {} . ", n % 7))
        .collect();
    store.update(&format!("INSERT DATA {{ {rows} }}"));
    let options = UpdateOptions {
        query: QueryOptions {
            tuning: orrery_sparql::Tuning {
                partitions: Some(3),
                ..Default::default()
            },
            ..QueryOptions::of_process()
        },
        ..UpdateOptions::of_process()
    };
    let text = format!("{PREFIX} INSERT {{ ?s :w ?v }} WHERE {{ ?s :v ?v . ?s :v ?u }}");
    let update = store.engine.prepare_update(&text, &options).unwrap();
    let mut transaction = store.writer.begin().unwrap();
    let applied = store.engine.apply(&update, &options, &mut transaction);
    store.runtime.block_on(applied).unwrap();
    assert_eq!(transaction.quad_count(), 4_000);
}
