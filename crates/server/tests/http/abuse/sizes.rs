//! Large requests: literals of 100 MB, heads that are too long, thousands of connections, texts
//! that double themselves.

use super::{assert_unharmed, beginning, update};
use crate::client::{ask, encode, exchange, get, post, request, send};
use crate::fixture::TestServer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const LONG_BYTES: usize = 100 << 20;

#[tokio::test(flavor = "multi_thread")]
async fn a_literal_of_100_mb_is_refused_or_loaded_and_the_server_answers() {
    let server = TestServer::start_with(|options| options.memory_bytes = 1 << 30).await;
    let literal = |before: &str, after: &str| format!("{before}{}{after}", "x".repeat(LONG_BYTES));
    let triple = literal("<http://e/long> <http://e/p> \"", "\" .\n");
    let put = "/graphs?graph=http://e/g";
    for content_type in ["application/n-triples", "text/turtle"] {
        let content_type = format!("Content-Type: {content_type}");
        let answer = send(
            server.address,
            "PUT",
            put,
            &[&content_type],
            triple.as_bytes(),
        )
        .await;
        assert_eq!(answer.status, 413, "{}", beginning(&answer));
    }
    // As a load: a Turtle statement has to fit in memory, an N-Triples statement may have any
    // length.
    let post_to = "/graphs?default";
    let turtle = ["Content-Type: text/turtle"];
    let answer = post(server.address, post_to, &turtle, triple.as_bytes()).await;
    assert_eq!(answer.status, 413, "{}", beginning(&answer));
    let lines = ["Content-Type: application/n-triples"];
    let answer = post(server.address, post_to, &lines, triple.as_bytes()).await;
    assert_eq!(answer.status, 200, "{}", beginning(&answer));
    let length = "SELECT (STRLEN(?o) AS ?n) { <http://e/long> ?p ?o }";
    let length = ask(server.address, length, &["Accept: text/csv"]).await;
    assert_eq!(length.text(), format!("n\r\n{LONG_BYTES}\r\n"));
    drop(triple);
    for (content_type, text) in [
        (
            "application/sparql-query",
            literal("ASK { ?s ?p \"", "\" }"),
        ),
        (
            "application/sparql-update",
            literal("INSERT DATA { <http://e/s> <http://e/p> \"", "\" }"),
        ),
        (
            "application/x-www-form-urlencoded",
            literal("query=ASK+%7B+?s+?p+%22", "%22+%7D"),
        ),
    ] {
        let content_type = format!("Content-Type: {content_type}");
        let answer = post(server.address, "/sparql", &[&content_type], text.as_bytes()).await;
        assert_eq!(answer.status, 413, "{}", beginning(&answer));
    }
    let sql = literal("select '", "'");
    let answer = post(
        server.address,
        "/sql",
        &["Content-Type: application/sql"],
        sql.as_bytes(),
    )
    .await;
    assert_eq!(answer.status, 413, "{}", beginning(&answer));
    assert_unharmed(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_that_double_themselves_meet_the_memory() {
    let server = TestServer::start_with(|options| options.memory_bytes = 64 << 20).await;
    let doubled = |function: &str, times: usize| {
        let mut query = "SELECT (STRLEN(?x0) AS ?n) { BIND(\"0123456789\" AS ?x0)".to_owned();
        for step in 1..=times {
            let before = step - 1;
            let call = function.replace('X', &format!("?x{before}"));
            query.push_str(&format!(" BIND({call} AS ?x{step})"));
        }
        format!("{query} FILTER(STRLEN(?x{times}) > 0) }}")
    };
    for query in [
        doubled("CONCAT(X, X)", 40),
        doubled("REPLACE(X, \".\", \"$0$0\")", 40),
        doubled("ENCODE_FOR_URI(CONCAT(X, \"ä\", X))", 40),
        doubled("STR(CONCAT(X, X, X, X))", 30),
    ] {
        let answer = ask(server.address, &query, &[]).await;
        assert!(
            [503, 507].contains(&answer.status),
            "{} {}",
            answer.status,
            beginning(&answer)
        );
    }
    let insert = doubled("CONCAT(X, X)", 40).replace(
        "SELECT (STRLEN(?x0) AS ?n)",
        "INSERT { <http://e/s> <http://e/p> ?x40 } WHERE",
    );
    let answer = update(server.address, &insert).await;
    assert!(
        [503, 507].contains(&answer.status),
        "{}",
        beginning(&answer)
    );
    assert_unharmed(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn heads_that_are_too_long_are_refused_by_their_kind() {
    let server = TestServer::start().await;
    let query = format!(
        "/sparql?query={}",
        encode(&format!("ASK {{}} #{}", "x".repeat(90_000)))
    );
    let cookies = format!("Cookie: {}", "a=b; ".repeat(200_000));
    let headers: Vec<String> = (0..200).map(|number| format!("X-{number}: y")).collect();
    let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
    for (bytes, status) in [
        (request("GET", &query, &[]), 414),
        (request("GET", "/health", &[&cookies]), 431),
        (request("GET", "/health", &headers), 431),
        (request(&"G".repeat(100_000), "/health", &[]), 405),
    ] {
        let answer = exchange(server.address, &bytes).await;
        assert_eq!(answer.status, status, "{}", beginning(&answer));
        assert_eq!(answer.header("X-Content-Type-Options"), Some("nosniff"));
    }
    assert_unharmed(&server).await;
}

/// Two lengths, or a length and chunks, are how one request is smuggled in another.
#[tokio::test(flavor = "multi_thread")]
async fn a_body_has_one_length() {
    let server = TestServer::start().await;
    for lengths in [
        "Content-Length: 6\r\nContent-Length: 7",
        "Content-Length: 6, 7",
        "Content-Length: -1",
        "Content-Length: +6",
        "Content-Length: 6\r\nTransfer-Encoding: gzip",
        "Transfer-Encoding: chunked, gzip",
        "Content-Length: 99999999999999999999999999",
    ] {
        let bytes = format!(
            "POST /sparql HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/sparql-query\r\n{lengths}\r\n\r\nASK {{}}"
        );
        let answer = exchange(server.address, bytes.as_bytes()).await;
        assert_eq!(answer.status, 400, "{lengths}: {}", beginning(&answer));
    }
    // With both, chunks count, and the connection ends: what comes behind is nobody's request.
    let both = b"POST /sparql HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/sparql-query\r\nContent-Length: 4\r\n\
                 Transfer-Encoding: chunked\r\n\r\n6\r\nASK {}\r\n0\r\n\r\nGET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(both).await.unwrap();
    let mut text = String::new();
    let _ = stream.read_to_string(&mut text).await;
    assert_eq!(text.matches("HTTP/1.1 ").count(), 1, "{text}");
    assert_unharmed(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_connections_that_say_nothing_do_not_matter() {
    let server = TestServer::start().await;
    let mut idle = Vec::new();
    for number in 0..1000 {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        if number % 2 == 0 {
            stream
                .write_all(b"GET /health HTTP/1.1\r\nHo")
                .await
                .unwrap();
        }
        idle.push(stream);
    }
    assert_eq!(get(server.address, "/health", &[]).await.status, 200);
    assert_unharmed(&server).await;
    drop(idle);
    assert_unharmed(&server).await;
}
