//! The query log: what is asked over HTTP is one line there, whatever its end was.

use crate::client::{Answer, ask, encode, get, post, query_path, request, send};
use crate::fixture::{ENDLESS_ROWS, ENDLESS_WORK, TestServer};
use orrery_query_log::{Entry, Kind, Line, Outcome, TEXT_BYTES_MAX};
use orrery_server::{QueryLogOptions, ServerOptions};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const AGENT: &str = "User-Agent: tests/1.0";
const UPDATE: &str = "Content-Type: application/sparql-update";
const SQL: &str = "Content-Type: application/sql";

/// A server that logs into `log` of a directory.
async fn start(directory: &Path, change: impl FnOnce(&mut ServerOptions)) -> TestServer {
    TestServer::start_with(|options| {
        options.service.query_log = Some(QueryLogOptions::new(directory.join("log")));
        change(options);
    })
    .await
}

/// Stops the server, and reads what its log has.
async fn stop(mut server: TestServer, directory: &Path, series: &str) -> Vec<Entry> {
    server.ask_to_stop();
    server.stopped().await;
    entries(directory, series)
}

fn text_of(directory: &Path, series: &str) -> String {
    let files = fs::read_dir(directory.join("log")).unwrap();
    let mut paths: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    paths.sort();
    let is_of = |path: &&std::path::PathBuf| {
        path.file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .starts_with(series)
    };
    let texts = paths.iter().filter(is_of).map(fs::read_to_string);
    texts.map(Result::unwrap).collect()
}

fn entries(directory: &Path, series: &str) -> Vec<Entry> {
    let text = text_of(directory, series);
    let lines = text
        .lines()
        .map(|line| Line::parse(line.as_bytes()).unwrap());
    let mut entries: Vec<Entry> = lines
        .map(|line| match line {
            Line::Entry(entry) => *entry,
            Line::Dropped(count) => panic!("{count} entries were lost"),
        })
        .collect();
    entries.sort_by_key(|entry| entry.time);
    entries
}

#[tokio::test(flavor = "multi_thread")]
async fn each_kind_of_query_is_one_line() {
    let directory = tempfile::tempdir().unwrap();
    let server = start(directory.path(), |_| {}).await;
    let address = server.address;
    let select = "SELECT ?s { ?s <http://example.com/number> 7 }";
    let late_select = "SELECT ?s { ?s <http://example.com/number> 8 }";
    let insert = "INSERT DATA { <http://e/s> <http://e/p> 1 }";
    let patch = "INSERT DATA { <http://e/s> <http://e/p> 2 }";

    use Kind::{Ask, Construct, Describe, Query, Select, Sql, Update};
    use Outcome::{Ok, Refused, Syntax};
    // With status, commits after the first, and rows.
    let expected = [
        (select, Select, Ok, 200, Some(0), 1),
        ("ASK { ?s ?p 8 }", Ask, Ok, 200, Some(0), 1),
        (
            "CONSTRUCT { ?s ?p ?o } { ?s ?p ?o } LIMIT 5",
            Construct,
            Ok,
            200,
            Some(0),
            5,
        ),
        (
            "DESCRIBE <http://example.com/s1>",
            Describe,
            Ok,
            200,
            Some(0),
            3,
        ),
        ("SELECT ?s { ?s }", Query, Syntax, 400, None, 0),
        (insert, Update, Ok, 200, Some(1), 0),
        (patch, Update, Ok, 200, Some(2), 0),
        ("select 1 + 1 as two", Sql, Ok, 200, Some(2), 1),
        ("create table t (i int)", Sql, Ok, 200, Some(3), 0),
        ("selec 1", Sql, Syntax, 400, None, 0),
        (late_select, Query, Refused, 400, None, 0),
    ];
    let mut answers: Vec<Answer> = Vec::new();
    for (text, kind, ..) in expected {
        let body = text.as_bytes();
        let graph = format!("/graphs?graph={}", encode("http://e/g"));
        let late = format!("{}&timeout=1000000", query_path(text));
        answers.push(match kind {
            Sql => post(address, "/sql", &[AGENT, SQL], body).await,
            Update if text == insert => post(address, "/sparql", &[AGENT, UPDATE], body).await,
            Update => send(address, "PATCH", &graph, &[AGENT, UPDATE], body).await,
            _ if text == late_select => get(address, &late, &[AGENT]).await,
            _ => ask(address, text, &[AGENT]).await,
        });
    }
    // These are no queries.
    for path in [
        "/health",
        "/graphs?default",
        "/sparql",
        "/sparql?quary=ASK",
        "/",
    ] {
        get(address, path, &[AGENT]).await;
    }
    let explained = query_path(select).replace("/sparql", "/explain");
    get(address, &explained, &[]).await;
    let entries = stop(server, directory.path(), "queries").await;
    assert_eq!(entries.len(), expected.len(), "{entries:#?}");
    let found = |text: &str| entries.iter().find(|entry| entry.text == text).unwrap();
    let base = found(select).commit.unwrap();
    for (expected, answer) in expected.iter().zip(&answers) {
        let entry = found(expected.0);
        let (text, commit) = (
            entry.text.as_str(),
            entry.commit.map(|commit| commit - base),
        );
        let (status, rows) = (entry.status.unwrap(), entry.rows);
        assert_eq!(
            (text, entry.kind, entry.outcome, status, commit, rows),
            *expected
        );
        assert_eq!(status, answer.status);
        assert_eq!(entry.bytes, answer.body.len() as u64, "{entry:?}");
        assert_eq!(entry.agent.as_deref(), Some("tests/1.0"));
        assert_eq!(entry.client, Some(address.ip()));
        assert_eq!(entry.user, None);
        assert!(entry.first_byte_ms.unwrap() <= entry.ms);
        assert_eq!((entry.text_bytes, &entry.plan), (None, &None));
    }
    assert_eq!(found(select).shape, found(late_select).shape);
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_leave_are_cancelled_queries() {
    let directory = tempfile::tempdir().unwrap();
    let server = start(directory.path(), |_| {}).await;
    for query in [ENDLESS_ROWS, ENDLESS_WORK] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let asked = request("GET", &query_path(query), &[]);
        stream.write_all(&asked).await.unwrap();
        match query {
            ENDLESS_ROWS => {
                let mut bytes = [0; 100_000];
                stream.read_exact(&mut bytes).await.map(drop).unwrap();
            }
            _ => server.wait_until_running(1).await,
        }
        drop(stream);
        server.wait_until_running(0).await;
    }
    let entries = stop(server, directory.path(), "queries").await;
    let seen: Vec<_> = entries.iter().map(|it| (it.outcome, it.status)).collect();
    assert_eq!(
        seen,
        [(Outcome::Cancelled, Some(200)), (Outcome::Cancelled, None)]
    );
    assert!(
        entries[0].bytes >= 90_000 && entries[0].rows > 0,
        "{entries:?}"
    );
    assert_eq!((entries[1].bytes, entries[1].first_byte_ms), (0, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_queries_have_their_plan_in_a_log_of_their_own() {
    let directory = tempfile::tempdir().unwrap();
    let server = start(directory.path(), |options| {
        let log = options.service.query_log.as_mut().unwrap();
        log.slow = Some(Duration::from_millis(200));
    })
    .await;
    ask(server.address, "ASK {}", &[]).await;
    let slow = format!("{}&timeout=0.5", query_path(ENDLESS_WORK));
    assert_eq!(get(server.address, &slow, &[]).await.status, 503);
    // It is over a moment after its answer.
    server.wait_until_running(0).await;
    let all = stop(server, directory.path(), "queries").await;
    assert_eq!(all.len(), 2);
    assert!(all.iter().all(|entry| entry.plan.is_none()));
    let slow = entries(directory.path(), "slow");
    assert_eq!(slow.len(), 1);
    assert_eq!(slow[0].outcome, Outcome::Timeout);
    assert!(slow[0].ms > 400.0);
    let plan = slow[0].plan.as_deref().unwrap();
    assert!(plan.contains("?a ?b ?c"), "{plan}");
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_not_logged_and_the_files_are_the_owners() {
    let directory = tempfile::tempdir().unwrap();
    let server = start(directory.path(), |_| {}).await;
    let headers = [
        "Authorization: Basic c2VjcmV0OnNlY3JldA==",
        "X-Forwarded-For: 192.0.2.1",
    ];
    let service = "SELECT * { SERVICE <http://ann:secret@192.0.2.1/sparql> { ?s ?p ?o } }";
    ask(server.address, service, &headers).await;
    let sql =
        b"create external table x stored as postgres location 'postgres://ann:secret@192.0.2.1/d'";
    post(server.address, "/sql", &[SQL, headers[0]], sql).await;
    let long = format!("ASK {{}} # {}", "ä".repeat(TEXT_BYTES_MAX));
    let typed = "Content-Type: application/sparql-query";
    post(server.address, "/sparql", &[typed], long.as_bytes()).await;
    let entries = stop(server, directory.path(), "queries").await;
    let text = text_of(directory.path(), "queries");
    for secret in ["secret", "c2VjcmV0", "ann"] {
        assert!(!text.contains(secret), "{text}");
    }
    assert!(entries[0].text.contains("<http://***@192.0.2.1/sparql>"));
    assert!(
        entries
            .iter()
            .all(|entry| entry.client.unwrap().is_loopback())
    );
    let cut = &entries[2];
    assert!(cut.text.len() <= TEXT_BYTES_MAX && cut.text.len() > TEXT_BYTES_MAX - 2);
    assert_eq!(cut.text_bytes, Some(long.len() as u64));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let log = directory.path().join("log");
    assert_eq!(mode(&log), 0o700);
    for file in fs::read_dir(&log).unwrap() {
        assert_eq!(mode(&file.unwrap().path()), 0o600);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn users_are_named() {
    static ADMINISTRATOR: OnceLock<(String, String)> = OnceLock::new();
    let directory = tempfile::tempdir().unwrap();
    let server = start(directory.path(), |options| {
        options.auth = Some(|name, password| {
            let _ = ADMINISTRATOR.set((name.to_owned(), password.to_owned()));
        });
    })
    .await;
    let (name, password) = ADMINISTRATOR.get().unwrap();
    let credentials = format!("{name}:{password}");
    let credentials = base64(credentials.as_bytes());
    let header = format!("Authorization: Basic {credentials}");
    assert_eq!(ask(server.address, "ASK {}", &[&header]).await.status, 200);
    let sql = post(server.address, "/sql", &[&header, SQL], b"select 1").await;
    assert_eq!(sql.status, 200);
    // Nobody's query is not read.
    assert_eq!(ask(server.address, "ASK {}", &[]).await.status, 401);
    let entries = stop(server, directory.path(), "queries").await;
    assert_eq!(entries.len(), 2);
    assert!(
        entries
            .iter()
            .all(|entry| entry.user.as_ref() == Some(name))
    );
    assert!(!text_of(directory.path(), "queries").contains(password));
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_that_cannot_be_made_is_refused_at_the_start() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    let database = directory.path().join("db");
    orrery_storage::build_small(&database, &[]).unwrap();
    let mut options = ServerOptions::new(database);
    options.listen.set_port(0);
    options.service.query_log = Some(QueryLogOptions::new(file.join("log")));
    let error = orrery_server::Server::bind(options).await.unwrap_err();
    assert!(error.to_string().contains("the query log in"), "{error}");
}
