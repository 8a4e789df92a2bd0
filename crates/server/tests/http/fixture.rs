//! A small database and a server over it.

use super::client::get;
use axum::Router;
use orrery_server::{ServeError, Server, ServerOptions};
use orrery_storage::{SmallQuad, build_small};
use orrery_term::Term;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Subjects in the default graph; each has three statements.
pub const SUBJECTS: usize = 1000;

/// A server that runs until it is told to stop.
pub struct TestServer {
    pub address: SocketAddr,
    /// Of the admin socket, where there is one.
    pub admin: Option<SocketAddr>,
    /// Of PostgreSQL's clients, and of Flight SQL, where they are served.
    pub postgres: Option<SocketAddr>,
    pub flight: Option<SocketAddr>,
    stop: Option<oneshot::Sender<()>>,
    running: JoinHandle<Result<(), ServeError>>,
    directory: TempDir,
}

impl TestServer {
    pub async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    pub async fn start_with(change: impl FnOnce(&mut ServerOptions)) -> Self {
        Self::start_around(change, |router| router).await
    }

    /// With something around all that it answers.
    pub async fn start_around(
        change: impl FnOnce(&mut ServerOptions),
        layer: impl FnOnce(Router) -> Router,
    ) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let db = directory.path().join("db");
        build_small(&db, &example_quads()).unwrap();
        let mut options = ServerOptions::new(db);
        options.listen.set_port(0);
        options.temp_dir = directory.path().to_owned();
        change(&mut options);
        let server = Server::bind(options).await.unwrap().around(layer);
        let address = server.local_addr().unwrap();
        let admin = server.admin_addr().map(Result::unwrap);
        let postgres = server.postgres_addr().map(Result::unwrap);
        let flight = server.flight_addr().map(Result::unwrap);
        let (stop, stopped) = oneshot::channel();
        let running = tokio::spawn(server.run(async {
            // A dropped server stops too.
            let _ = stopped.await;
        }));
        Self {
            address,
            admin,
            postgres,
            flight,
            stop: Some(stop),
            running,
            directory,
        }
    }

    /// Where its database and its temporary files are.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The names of its temporary files.
    pub fn temporary_files(&self) -> Vec<String> {
        let below = |directory: &Path| -> Vec<_> {
            let entries = std::fs::read_dir(directory).unwrap();
            entries.map(|entry| entry.unwrap().path()).collect()
        };
        let is_own = |path: &PathBuf| path.to_string_lossy().contains("orrery-temporary-");
        let directories = below(self.directory()).into_iter().filter(is_own);
        let files = directories.flat_map(|directory| below(&directory));
        let names = files.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()));
        names.collect()
    }

    /// Asks the server to stop, as a signal would.
    pub fn ask_to_stop(&mut self) {
        let _ = self.stop.take().unwrap().send(());
    }

    pub async fn stopped(self) {
        self.stopped_but_for_its_directory().await;
    }

    /// The same, with the directory, for others who use it.
    pub async fn stopped_but_for_its_directory(self) -> TempDir {
        self.running.await.unwrap().unwrap();
        self.directory
    }

    /// Queries that the server counts as running.
    pub async fn queries_running(&self) -> u64 {
        let health = get(self.address, "/health", &[]).await;
        let health: serde_json::Value = serde_json::from_slice(&health.body).unwrap();
        health["queries_running"].as_u64().unwrap()
    }

    /// Waits until as many queries run; fails if that takes too long.
    pub async fn wait_until_running(&self, expected: u64) {
        let reached = async {
            while self.queries_running().await != expected {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), reached)
            .await
            .unwrap_or_else(|_| panic!("there were never {expected} queries running"));
    }
}

fn example_quads() -> Vec<SmallQuad> {
    let node = |name: String| Term::iri(format!("http://example.com/{name}"));
    let named = |name: &str| node(name.to_owned());
    let mut quads = Vec::new();
    for number in 0..SUBJECTS {
        let subject = || node(format!("s{number}"));
        let integer = "http://www.w3.org/2001/XMLSchema#integer";
        let name = format!("the thing whose number is {number}");
        let next = node(format!("s{}", (number + 1) % SUBJECTS));
        quads.push((
            subject(),
            named("number"),
            Term::typed(number.to_string(), integer),
            None,
        ));
        quads.push((subject(), named("name"), Term::language(name, "en"), None));
        quads.push((subject(), named("next"), next, None));
    }
    for graph in ["g1", "g2"] {
        let object = Term::string(graph);
        quads.push((named("x"), named("in"), object, Some(named(graph))));
    }
    quads
}

/// Rows without end, for all practical purposes: 27 billion.
pub const ENDLESS_ROWS: &str = "SELECT * WHERE { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }";

/// Work without end and without a row.
pub const ENDLESS_WORK: &str = "SELECT (COUNT(*) AS ?n) WHERE { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i \
     FILTER(CONCAT(STR(?c), STR(?f), STR(?i)) = \"never\") }";
