//! Askers who see only some graphs: what they read, their ETags, and that they change nothing. A
//! layer around the server sets the asker, in place of access control.

use crate::client::{Answer, exchange, get, post, query_path, request, send};
use crate::fixture::TestServer;
use axum::Router;
use axum::extract::Request;
use axum::middleware;
use orrery_storage::{Asker, GraphNames, ReadScope};
use orrery_term::Term;

const GRAPH: &str = "/graphs?graph=http%3A%2F%2Fexample.com%2Fg1";
const ALL: &str = "X-Sees: all";
const TURTLE: &str = "Content-Type: text/turtle";
const DATA: &[u8] = b"<http://e/s> <http://e/p> <http://e/o> .";

/// A header tells which graphs the request may see: names, and `default`.
fn scope_of(request: &Request) -> ReadScope {
    let sees = request.headers().get("X-Sees").unwrap().to_str().unwrap();
    if sees == "all" {
        return ReadScope::all_graphs(Asker::Anonymous);
    }
    let mut graphs = GraphNames::default();
    for name in sees.split(' ') {
        match name {
            "default" => graphs.has_default = true,
            name => {
                _ = graphs
                    .named
                    .insert(Term::iri(format!("http://example.com/{name}")))
            }
        }
    }
    ReadScope::only(Asker::Anonymous, graphs)
}

async fn start() -> TestServer {
    let layer = |router: Router| {
        router.layer(middleware::from_fn(
            |mut request: Request, next: middleware::Next| async move {
                let scope = scope_of(&request);
                request.extensions_mut().insert(scope);
                next.run(request).await
            },
        ))
    };
    TestServer::start_around(|_| {}, layer).await
}

fn tag(answer: &Answer) -> &str {
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.header("ETag").unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn who_sees_other_graphs_has_other_tags_and_gets_304_for_their_own_only() {
    let server = start().await;
    let address = server.address;
    let query = query_path("SELECT ?o { GRAPH ?g { ?s ?p ?o } } ORDER BY ?o");
    let csv = "Accept: text/csv";
    let seen = [
        (ALL, "o\r\ng1\r\ng2\r\n"),
        ("X-Sees: default", "o\r\n"),
        ("X-Sees: g1", "o\r\ng1\r\n"),
        ("X-Sees: g2", "o\r\ng2\r\n"),
        ("X-Sees: default g2", "o\r\ng2\r\n"),
    ];
    let mut tags: Vec<String> = Vec::new();
    for (sees, expected) in seen {
        let answer = get(address, &query, &[sees, csv]).await;
        assert_eq!(answer.text(), expected, "{sees}");
        let caches = answer.header("Cache-Control");
        let expected = (sees != ALL).then_some("private, no-cache");
        assert_eq!(caches, expected, "{sees}");
        tags.push(tag(&answer).to_owned());
    }
    for (asks, (sees, expected)) in seen.into_iter().enumerate() {
        for (known, known_tag) in tags.iter().enumerate() {
            let has = format!("If-None-Match: {known_tag}");
            let answer = get(address, &query, &[sees, csv, &has]).await;
            let expected = if asks == known {
                (304, "")
            } else {
                (200, expected)
            };
            assert_eq!((answer.status, answer.text()), expected, "{sees}, {has}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_graph_that_is_hidden_is_not_there() {
    let server = start().await;
    let address = server.address;
    for (sees, status) in [
        (ALL, 200),
        ("X-Sees: g1", 200),
        ("X-Sees: default", 404),
        ("X-Sees: g2 default", 404),
    ] {
        assert_eq!(get(address, GRAPH, &[sees]).await.status, status, "{sees}");
    }
    let change = "INSERT DATA { <http://e/s> <http://e/p> <http://e/new> . GRAPH <http://example.com/g1> { <http://e/s> <http://e/p> 1 } }";
    let update = "Content-Type: application/sparql-update";
    let commit = post(address, "/sparql", &[ALL, update], change.as_bytes()).await;
    assert_eq!(commit.status, 200, "{}", commit.text());
    for (sees, lines) in [
        (ALL, 2),
        ("X-Sees: g1", 1),
        ("X-Sees: default", 1),
        ("X-Sees: g2", 0),
    ] {
        let changes = get(address, "/changes?since=1", &[sees]).await;
        let added = changes.text().lines().filter(|line| line.starts_with("A "));
        assert_eq!(added.count(), lines, "{sees}: {}", changes.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_see_all_graphs_changes_nothing_by_any_way() {
    let server = start().await;
    let address = server.address;
    let sees = "X-Sees: default g1 g2";
    let update = "Content-Type: application/sparql-update";
    let before = get(address, "/graphs?default", &[ALL]).await;
    let chunked = |sees| {
        // A body of unknown length is a load.
        let headers = [sees, TURTLE, "Transfer-Encoding: chunked"];
        let mut bytes = request("POST", "/graphs?default", &headers);
        bytes.extend_from_slice(format!("{:x}\r\n", DATA.len()).as_bytes());
        bytes.extend_from_slice(DATA);
        bytes.extend_from_slice(b"\r\n0\r\n\r\n");
        bytes
    };
    let mut refused = vec![exchange(address, &chunked(sees)).await];
    for (method, path) in [
        ("POST", "/graphs?default"),
        ("PUT", GRAPH),
        ("DELETE", GRAPH),
    ] {
        refused.push(send(address, method, path, &[sees, TURTLE], DATA).await);
    }
    // Before anything is fetched, or read: a wrong text is not told.
    for text in ["CLEAR ALL", "LOAD <http://127.0.0.1:1/none>", "SILLY"] {
        refused.push(post(address, "/sparql", &[sees, update], text.as_bytes()).await);
    }
    refused.push(send(address, "PUT", GRAPH, &[sees, TURTLE], b"no Turtle").await);
    refused.push(
        send(
            address,
            "PATCH",
            GRAPH,
            &[sees, update],
            b"DELETE WHERE { ?s ?p ?o }",
        )
        .await,
    );
    for path in ["/checkpoint", "/compact"] {
        refused.push(post(address, path, &[sees], b"").await);
    }
    for answer in refused {
        assert_eq!(answer.status, 403, "{}", answer.text());
        let says_why = answer
            .text()
            .contains("may not change data: only who may read all graphs may");
        assert!(says_why, "{} {}", answer.status, answer.text());
    }
    let after = get(address, "/graphs?default", &[ALL]).await;
    assert_eq!(tag(&before), tag(&after), "nothing was committed");
    assert_eq!(exchange(address, &chunked(ALL)).await.status, 200);
    assert_ne!(
        tag(&get(address, "/graphs?default", &[ALL]).await),
        tag(&before)
    );
    drop(server);
}
