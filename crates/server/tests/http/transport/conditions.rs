//! `If-Match`, `If-None-Match`, `If-Unmodified-Since`: on graphs, queries, updates and compaction.

use crate::client::{Answer, encode, exchange, get, post, query_path, request, send};
use crate::fixture::TestServer;
use std::net::SocketAddr;

const UPDATE: &str = "Content-Type: application/sparql-update";
const TURTLE: &str = "Content-Type: text/turtle";
const GRAPH: &str = "/graphs?graph=http%3A%2F%2Fe%2Fg";
const LONG_AGO: &str = "If-Unmodified-Since: Sun, 06 Nov 1994 08:49:37 GMT";
const LATER: &str = "If-Unmodified-Since: Sun, 06 Nov 2061 08:49:37 GMT";

async fn put(address: SocketAddr, object: u32, headers: &[&str]) -> Answer {
    let headers: Vec<&str> = headers.iter().copied().chain([TURTLE]).collect();
    let body = format!("<http://e/s> <http://e/p> {object} .");
    send(address, "PUT", GRAPH, &headers, body.as_bytes()).await
}

fn tag(answer: &Answer) -> String {
    assert!(answer.status < 300, "{} {}", answer.status, answer.text());
    answer.header("ETag").unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_graph_that_is_there_is_not_overwritten_by_who_wants_to_make_it() {
    let server = TestServer::start().await;
    let address = server.address;
    let make = "If-None-Match: *";
    assert_eq!(put(address, 1, &["If-Match: *"]).await.status, 412);
    assert_eq!(put(address, 1, &[make]).await.status, 201);
    let refused = put(address, 2, &[make]).await;
    assert_eq!(refused.status, 412, "{}", refused.text());
    let read = get(address, GRAPH, &["Accept: application/n-triples"]).await;
    assert!(read.text().contains("\"1\"^^"), "{}", read.text());
    assert_eq!(put(address, 3, &["If-Match: *"]).await.status, 200);
    for method in ["POST", "DELETE"] {
        let refused = send(address, method, GRAPH, &[TURTLE, make], b"").await;
        assert_eq!(refused.status, 412, "{method} {}", refused.text());
    }
    // The default graph and the endpoint always are there.
    let default = send(address, "PUT", "/graphs?default", &[TURTLE, make], b"").await;
    assert_eq!(default.status, 412);
    let update = post(address, "/sparql", &[UPDATE, make], b"CLEAR ALL").await;
    assert_eq!(update.status, 412);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_the_answer_already_gets_304() {
    let server = TestServer::start().await;
    let address = server.address;
    put(address, 1, &[]).await;
    let query = query_path("SELECT * { ?s <http://example.com/number> 7 }");
    for (path, accepts) in [
        (GRAPH, ["application/n-triples", "text/turtle"]),
        (query.as_str(), ["text/csv", "application/json"]),
    ] {
        let accepts = accepts.map(|media_type| format!("Accept: {media_type}"));
        let first = get(address, path, &[&accepts[0]]).await;
        let known = format!("If-None-Match: \"x\", {}", tag(&first));
        let weak = format!("If-None-Match: W/{}", tag(&first));
        for condition in [&known, &weak] {
            let again = get(address, path, &[&accepts[0], condition]).await;
            assert_eq!((again.status, again.body.len()), (304, 0), "{path}");
            assert_eq!(again.header("ETag"), first.header("ETag"));
            assert_eq!(again.header("Content-Type"), None);
            assert!(
                again
                    .header("Vary")
                    .unwrap()
                    .to_lowercase()
                    .contains("accept")
            );
        }
        let head = exchange(address, &request("HEAD", path, &[&accepts[0], &known])).await;
        assert_eq!(head.status, 304);
        // Another format is another representation, with a tag of its own.
        let other = get(address, path, &[&accepts[1], &known]).await;
        assert_eq!(other.status, 200);
        assert_ne!(other.header("ETag"), first.header("ETag"));
    }
    let read = get(address, &query, &[]).await;
    let known = format!("If-None-Match: {}", tag(&read));
    put(address, 2, &[]).await;
    assert_eq!(get(address, &query, &[&known]).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn compressed_answers_have_tags_of_their_own() {
    let server = TestServer::start().await;
    let path = query_path("SELECT * { ?s ?p ?o } LIMIT 500");
    let plain = get(server.address, &path, &[]).await;
    let gzip = get(server.address, &path, &["Accept-Encoding: gzip"]).await;
    assert_eq!(gzip.header("Content-Encoding"), Some("gzip"));
    assert_ne!(tag(&plain), tag(&gzip));
    let known = format!("If-None-Match: {}", tag(&gzip));
    let again = get(server.address, &path, &["Accept-Encoding: gzip", &known]).await;
    assert_eq!(again.status, 304);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_differs_each_time_is_always_sent() {
    let server = TestServer::start().await;
    for query in [
        "SELECT (now() AS ?t) {}",
        "SELECT (RAND() AS ?x) {}",
        "SELECT (struuid() AS ?x) {}",
    ] {
        let path = query_path(query);
        let known = format!(
            "If-None-Match: {}",
            tag(&get(server.address, &path, &[]).await)
        );
        assert_eq!(
            get(server.address, &path, &[&known]).await.status,
            200,
            "{query}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_and_compactions_keep_conditions_too() {
    let server = TestServer::start().await;
    let address = server.address;
    let ask = query_path("ASK {}");
    let old = format!("If-Match: {}", tag(&get(address, &ask, &[]).await));
    put(address, 1, &[]).await;
    let current = format!(
        "If-Match: {}",
        tag(&get(address, &ask, &["Accept: text/csv"]).await)
    );
    for path in ["/compact", "/checkpoint"] {
        let refused = post(address, path, &[&old], b"").await;
        assert_eq!(refused.status, 412, "{path} {}", refused.text());
        assert_eq!(
            post(address, path, &[LONG_AGO], b"").await.status,
            412,
            "{path}"
        );
        assert_eq!(
            post(address, path, &[&current], b"").await.status,
            200,
            "{path}"
        );
    }
    for path in [ask.as_str(), GRAPH] {
        assert_eq!(get(address, path, &[&old]).await.status, 412, "{path}");
        assert_eq!(get(address, path, &[&current]).await.status, 200, "{path}");
        assert_eq!(get(address, path, &[LONG_AGO]).await.status, 412, "{path}");
        assert_eq!(get(address, path, &[LATER]).await.status, 200, "{path}");
    }
    let path = "/sparql?query=".to_owned() + &encode("ASK {}");
    assert_eq!(get(address, &path, &[&old]).await.status, 412);
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_are_made_only_of_what_was_not_modified() {
    let server = TestServer::start().await;
    let address = server.address;
    put(address, 1, &[]).await;
    assert_eq!(put(address, 2, &[LONG_AGO]).await.status, 412);
    let insert = b"INSERT DATA { <http://e/s> <http://e/p> 5 }";
    let update = post(address, "/sparql", &[UPDATE, LONG_AGO], insert).await;
    assert_eq!(update.status, 412, "{}", update.text());
    assert_eq!(put(address, 2, &[LATER]).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tag_without_quotes_is_refused_with_how_it_is_written() {
    let server = TestServer::start().await;
    for condition in ["If-Match: 17", "If-None-Match: 17", "If-Match: \"17"] {
        let answer = put(server.address, 1, &[condition]).await;
        assert_eq!(answer.status, 400, "{condition}");
        assert!(
            answer.text().contains("with its quotes: \"17\""),
            "{}",
            answer.text()
        );
        let read = get(server.address, &query_path("ASK {}"), &[condition]).await;
        assert_eq!(read.status, 400, "{condition}");
    }
}
