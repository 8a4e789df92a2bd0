//! `serve --memory`: texts that queries make of short ones, and answers of long ones.

use std::sync::atomic::Ordering;

use crate::common::{succeed, text};
use crate::limits::server_memory::{most_held, send};
use crate::serve::Server;

const MEMORY_BYTES: u64 = 256 << 20;
const SHORT_ROWS: usize = 2_000;
const LONG_ROWS: usize = 600;
const LONG_BYTES: usize = 400_000;

/// Some 400 kB that are made of a subject.
fn made() -> String {
    let (letters, beside) = ("a".repeat(5_000), "b".repeat(60));
    format!("REPLACE(\"{letters}\",\"a\",CONCAT(STR(?s),\"{beside}\"))")
}

/// `?x30` is 2^30 times as long as an object.
fn doubled() -> String {
    let bind = |at: usize| format!("BIND(CONCAT(?x{at},?x{at}) AS ?x{}) ", at + 1);
    let binds: String = (0..30).map(bind).collect();
    format!("SELECT (STRLEN(?x30) AS ?n) {{ <a:s1> <a:short> ?x0 {binds} }}")
}

#[test]
#[cfg(target_os = "linux")]
fn long_texts_that_queries_make_or_give_stay_within_the_memory() {
    let home = tempfile::tempdir().unwrap();
    let (database, data) = (home.path().join("db"), home.path().join("1.nt"));
    let short = (0..SHORT_ROWS).map(|row| format!("<a:s{row}> <a:short> \"text {row}\" .\n"));
    let long = (0..LONG_ROWS).map(|row| {
        format!(
            "<a:l{row}> <a:long> \"{row} {}\" .\n",
            "x".repeat(LONG_BYTES)
        )
    });
    std::fs::write(&data, short.chain(long).collect::<String>()).unwrap();
    succeed(&["load", "--db", text(&database), text(&data)]);
    let server = Server::start_with(text(&database), &["--memory", "256M"]);
    let made = made();
    let four = format!("CONCAT({made},{made},{made},{made})");
    let all_long = LONG_ROWS * LONG_BYTES;
    most_held(server.process.id(), |most| {
        for (query, status, bytes_min) in [
            (
                format!("SELECT ?s {{ ?s <a:short> ?x FILTER(STRLEN({four}) = 1) }}"),
                "200",
                0,
            ),
            (
                format!("SELECT (SUM(STRLEN({made})) AS ?n) {{ ?s <a:short> ?x }}"),
                "200",
                0,
            ),
            (
                format!("SELECT ?s {{ ?s <a:short> ?x }} ORDER BY {made}"),
                "507",
                0,
            ),
            (doubled(), "507", 0),
            ("SELECT * { ?s <a:long> ?x }".to_owned(), "200", all_long),
            (
                "SELECT * { ?s <a:long> ?x FILTER(STRLEN(?x) > 7) }".to_owned(),
                "200",
                all_long,
            ),
            (
                "CONSTRUCT { ?s <a:p> ?x } { ?s <a:long> ?x }".to_owned(),
                "200",
                all_long,
            ),
            (
                "CONSTRUCT { GRAPH ?s { ?s <a:p> ?x } } { ?s <a:long> ?x }".to_owned(),
                "200",
                all_long,
            ),
            ("DESCRIBE ?s { ?s <a:long> ?x }".to_owned(), "200", all_long),
        ] {
            let head = "POST /sparql HTTP/1.1\r\nContent-Type: application/sparql-query";
            let answer = send(&server.address, head, query.as_bytes());
            let shown: String = answer.chars().take(600).collect();
            let asked: String = query.chars().take(80).collect();
            let ok = answer.starts_with(&format!("HTTP/1.1 {status}"));
            assert!(ok, "{asked}: {shown}");
            assert!(
                answer.len() >= bytes_min,
                "{asked}: {} bytes, {shown}",
                answer.len()
            );
            let most = most.load(Ordering::Relaxed);
            assert!(most < MEMORY_BYTES, "{asked}: {most} bytes at the most");
        }
    });
}
