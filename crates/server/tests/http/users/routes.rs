//! Tests of every row of the table of routes: who may ask, what counts, and what the documentation
//! says.
//!
//! The rows are read from the table itself, so a new route is held to the same here.

use crate::client::{Answer, ask, send};
use crate::fixture::TestServer;
use crate::usage::metering::limit;
use crate::users::access::{PASSWORD, basic, grant, some_users, start};
use orrery_http::{Forwarding, Metering, RouteRow, Who, route_rows};
use serde_json::json;
use std::fmt::Write as _;
use std::net::SocketAddr;

const POINT: &str = "SELECT ?o { ?s ?p ?o } LIMIT 5";

/// A path that a row stands for.
fn example(pattern: &str) -> String {
    let plain = pattern.replace("{*graph}", "some/graph");
    plain.replace("{id}", "17")
}

/// A request as its path and method want it; `query` is what it asks, where it asks anything.
async fn make(address: SocketAddr, method: &str, path: &str, headers: &[&str]) -> Answer {
    let query = "SELECT%20%2A%20%7B%20%3Fs%20%3Fp%20%3Fo%20%7D%20LIMIT%203";
    let (address_part, content_type, body) = match (method, path) {
        ("GET", "/sparql" | "/sparql/" | "/explain") => (format!("{path}?query={query}"), "", ""),
        ("POST", "/sparql" | "/sparql/" | "/explain") => (
            path.to_owned(),
            "application/sparql-query",
            "SELECT * { ?s ?p ?o } LIMIT 3",
        ),
        ("POST", "/sql") => (path.to_owned(), "application/sql", "SELECT 1"),
        ("GET", "/changes") => (format!("{path}?since=0"), "", ""),
        ("GET" | "DELETE", "/graphs" | "/graphs/") => (format!("{path}?default"), "", ""),
        ("PUT" | "POST", path) if path.starts_with("/graphs") => {
            let named = match path {
                "/graphs" | "/graphs/" => format!("{path}?default"),
                path => path.to_owned(),
            };
            (named, "text/turtle", "<x:s> <x:p> 1 .")
        }
        ("PATCH", path) if path.starts_with("/graphs") => {
            let named = match path {
                "/graphs" | "/graphs/" => format!("{path}?default"),
                path => path.to_owned(),
            };
            let update = "INSERT DATA { <x:s> <x:p> 1 }";
            (named, "application/sparql-update", update)
        }
        _ => (path.to_owned(), "", ""),
    };
    let content_type = format!("Content-Type: {content_type}");
    let mut headers = headers.to_vec();
    if !body.is_empty() {
        headers.push(&content_type);
    }
    send(address, method, &address_part, &headers, body.as_bytes()).await
}

/// All rows, each with the address that answers them.
fn rows(server: &TestServer) -> Vec<(SocketAddr, RouteRow)> {
    let [public, admin] = route_rows();
    let public = public.into_iter().map(|row| (server.address, row));
    let admin = admin.into_iter().map(|row| (server.admin.unwrap(), row));
    public.chain(admin).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_route_asks_for_its_right_before_anything_else() {
    let server = start(&some_users()).await;
    let ann = basic("ann", PASSWORD);
    for (address, row) in rows(&server) {
        for path in row.paths {
            let told = format!("{} {path}", row.method);
            let path = example(path);
            let unknown = make(address, row.method.as_str(), &path, &[]).await;
            let is_open = row.right.who == Who::Nobody;
            assert_eq!(unknown.status != 401, is_open, "{told}: {}", unknown.text());
            let answer = make(address, row.method.as_str(), &path, &[&ann]).await;
            match row.right.who {
                Who::Nobody | Who::Reader => {
                    let is_refused = matches!(answer.status, 401 | 403);
                    assert!(!is_refused, "{told}: {}", answer.text());
                }
                // A command that is none.
                Who::User(_) => assert_eq!(answer.status, 415, "{told}: {}", answer.text()),
                Who::Changer | Who::Scraper | Who::Administrator(_) => {
                    assert_eq!(answer.status, 403, "{told}: {}", answer.text());
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_of_each_route_are_not_taken_from_pages_of_others() {
    let server = start(&some_users()).await;
    let root = basic("root", PASSWORD);
    for (address, row) in rows(&server) {
        let path = example(row.paths[0]);
        let headers = [root.as_str(), "Origin: http://evil.example"];
        if row.right.is_change {
            let answer = make(address, row.method.as_str(), &path, &headers).await;
            let told = (row.method.as_str(), &path, answer.text());
            assert_eq!(answer.status, 403, "{told:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_route_that_counts_is_refused_to_who_has_spent_what_they_may() {
    let mut commands = some_users();
    commands.push(grant(json!({"user": "ann"}), "write", json!("all_graphs")));
    let cost = json!({"cost": {"touches": 10, "seconds": 86_400}});
    commands.push(limit(json!({"user": "ann"}), cost));
    let server = start(&commands).await;
    let ann = basic("ann", PASSWORD);
    let mut is_spent = false;
    for _ in 0..20 {
        is_spent |= ask(server.address, POINT, &[&ann]).await.status == 429;
    }
    assert!(is_spent);
    for (address, row) in rows(&server) {
        for path in row.paths {
            let answer = make(address, row.method.as_str(), &example(path), &[&ann]).await;
            let told = format!("{} {path}: {}", row.method, answer.text());
            let is_counted = row.metering == Metering::Counted;
            assert_eq!(answer.status == 429, is_counted, "{told}");
        }
    }
}

/// The table in `docs/security.md`.
fn table() -> String {
    let [public, admin] = route_rows();
    let mut table = String::from(
        "| path | method | who may ask | counts in accounts | at a server that does not write |\n\
         | --- | --- | --- | --- | --- |\n",
    );
    let public = public.into_iter().map(|row| ("", row));
    let admin = admin.into_iter().map(|row| (" (admin socket)", row));
    for (listener, row) in public.chain(admin) {
        let paths: Vec<_> = row.paths.iter().map(|path| format!("`{path}`")).collect();
        let counts = match row.metering {
            Metering::Free => "no",
            Metering::Counted => "yes",
        };
        let goes = match row.forwarding {
            Forwarding::Here => "answered there",
            Forwarding::Writer => "goes to the writer",
            Forwarding::ByText => "goes to the writer if it changes something",
        };
        let (paths, method, right) = (paths.join(", "), &row.method, row.right);
        writeln!(
            table,
            "| {paths}{listener} | {method} | {right} | {counts} | {goes} |"
        )
        .unwrap();
    }
    table
}

#[test]
fn the_documentation_has_the_table_of_routes() {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/security.md");
    let text = std::fs::read_to_string(docs).unwrap();
    let table = table();
    assert!(
        text.contains(&table),
        "docs/security.md should have\n{table}"
    );
}
