//! Statements at the PostgreSQL and Flight SQL ports in the list of running statements, the query
//! log and the audit log.

use crate::client::send;
use crate::fixture::TestServer;
use crate::users::access::{PASSWORD, basic, start_with};
use crate::users::flight_users;
use crate::users::postgres_users::{
    any_port, connect, connected, listed, make_tables, refused, users, wait_until_listed,
};
use futures::TryStreamExt;
use orrery_flight::FlightOptions;
use orrery_postgres::PostgresOptions;
use orrery_query_log::{Entry, Kind, Line, Outcome};
use orrery_server::QueryLogOptions;
use serde_json::Value;
use std::path::Path;

const ENDLESS: &str = "select count(*) from generate_series(1, 1000000) as a(x), generate_series(1, 1000000) as b(y) where x + y = 7";

async fn start(directory: &Path) -> TestServer {
    let server = start_with(&users(), |options| {
        options.postgres = Some(PostgresOptions::new(any_port()));
        options.flight = Some(FlightOptions::new(any_port()));
        options.service.query_log = Some(QueryLogOptions::new(directory.join("log")));
        options.service.audit_log = Some(directory.join("audit.jsonl"));
    })
    .await;
    make_tables(&server).await;
    server
}

/// Stops the server, and reads what was asked of tables.
pub(crate) async fn stop(mut server: TestServer, directory: &Path) -> Vec<Entry> {
    server.ask_to_stop();
    server.stopped().await;
    let files = std::fs::read_dir(directory.join("log")).unwrap();
    let texts = files.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap());
    let text: String = texts.collect();
    let lines = text
        .lines()
        .map(|line| Line::parse(line.as_bytes()).unwrap());
    let entries = lines.map(|line| match line {
        Line::Entry(entry) => *entry,
        Line::Dropped(count) => panic!("{count} entries were lost"),
    });
    let mut entries: Vec<Entry> = entries
        .filter(|entry| !entry.text.starts_with("create table"))
        .collect();
    entries.sort_by_key(|entry| entry.time);
    entries
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_are_lines_of_the_query_log() {
    let directory = tempfile::tempdir().unwrap();
    let server = start(directory.path()).await;
    let ann = connected(&server, "ann").await;
    let many = "select id from item; select name from item where id < 5";
    ann.simple_query(many).await.unwrap();
    let one = "select name from item where id = $1";
    ann.query(one, &[&7_i32]).await.unwrap();
    refused(ann.simple_query("selekt 1").await);
    refused(ann.simple_query("delete from item").await);
    refused(ann.query("select * from salary", &[]).await);
    let copied = "copy (select id from item where id < 5) to stdout with (format csv, header)";
    let sent = ann.copy_out(copied).await.unwrap();
    let sent: Vec<_> = sent.try_collect().await.unwrap();
    assert_eq!(sent.concat(), b"id\n1\n2\n3\n4\n");
    let mut flight = flight_users::connected(&server, "ann").await;
    let counted = "select count(*) from item";
    flight_users::rows(&mut flight, counted).await.unwrap();
    flight_users::refused(flight_users::rows(&mut flight, "select * from salary").await);
    drop((ann, flight));
    let entries = stop(server, directory.path()).await;
    let told: Vec<_> = entries
        .iter()
        .map(|entry| (entry.text.as_str(), entry.outcome, entry.rows))
        .collect();
    assert_eq!(
        told,
        [
            (many, Outcome::Ok, 2_004),
            (one, Outcome::Ok, 1),
            ("selekt 1", Outcome::Syntax, 0),
            ("delete from item", Outcome::Refused, 0),
            ("select * from salary", Outcome::Syntax, 0),
            (copied, Outcome::Ok, 4),
            (counted, Outcome::Ok, 1),
            ("select * from salary", Outcome::Syntax, 0),
        ]
    );
    for (place, entry) in entries.iter().enumerate() {
        assert_eq!(entry.kind, Kind::Sql);
        assert_eq!(entry.user.as_deref(), Some("ann"));
        assert_eq!(entry.client.unwrap().to_string(), "127.0.0.1");
        let agent = entry.agent.as_deref().unwrap();
        match place {
            0..6 => assert_eq!(agent, "tests of users"),
            _ => assert!(agent.contains("tonic"), "{agent}"),
        }
    }
    assert!(entries[0].bytes > 2_004, "{}", entries[0].bytes);
    // A number of 64 bits.
    assert_eq!(entries[6].bytes, 8);
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_are_listed_and_ended_from_outside() {
    let directory = tempfile::tempdir().unwrap();
    let server = start(directory.path()).await;
    let ann = connected(&server, "ann").await;
    let mut flight = flight_users::connected(&server, "ann").await;
    let running = tokio::spawn(async move { ann.simple_query(ENDLESS).await.map(drop) });
    let other = tokio::spawn(async move { flight_users::rows(&mut flight, ENDLESS).await });
    wait_until_listed(&server, 2).await;
    let queries = listed(&server).await;
    assert_eq!(queries.len(), 2, "{queries:?}");
    for query in queries {
        assert_eq!(
            (&query["user"], &query["text"]),
            (&"ann".into(), &ENDLESS.into())
        );
        assert_eq!(query["kind"], "sql");
        let path = format!("/queries/{}", query["id"]);
        let root = basic("root", PASSWORD);
        let killed = send(server.admin.unwrap(), "DELETE", &path, &[&root], b"").await;
        assert_eq!(killed.status, 200, "{}", killed.text());
    }
    let (code, message) = refused(running.await.unwrap());
    assert_eq!(code, "57014");
    assert!(message.contains("an administrator"), "{message}");
    let (_, message) = flight_users::refused(other.await.unwrap());
    assert!(message.contains("an administrator"), "{message}");
    assert_eq!(listed(&server).await, Vec::<Value>::new());
    let entries = stop(server, directory.path()).await;
    let outcomes: Vec<Outcome> = entries.iter().map(|entry| entry.outcome).collect();
    assert_eq!(outcomes, [Outcome::Cancelled, Outcome::Cancelled]);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_not_let_in_stands_in_the_audit_log() {
    let directory = tempfile::tempdir().unwrap();
    let server = start(directory.path()).await;
    refused(connect(&server, "nobody", PASSWORD).await.map(drop));
    let mut flight = flight_users::with(&server, "Bearer orr_abcdefghijkl_no").await;
    flight_users::refused(flight_users::rows(&mut flight, "select 1").await);
    let text = std::fs::read_to_string(directory.path().join("audit.jsonl")).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    let denied: Vec<Value> = lines
        .filter(|line: &Value| line["event"] == "denied")
        .collect();
    let told: Vec<_> = denied
        .iter()
        .map(|line| {
            (
                line["method"].as_str().unwrap(),
                line["path"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(told, [("postgresql", "log in"), ("flight", "log in")]);
    for line in denied {
        assert_eq!(
            (&line["status"], &line["client"]),
            (&401.into(), &"127.0.0.1".into())
        );
    }
}
