//! Changes over HTTP: updates, the graph store protocol, old states, the change feed.

use crate::client::{self, Answer, encode, exchange, get, post, query_path};
use crate::fixture::TestServer;
use std::net::SocketAddr;

const UPDATE: &str = "Content-Type: application/sparql-update";
const TURTLE: &str = "Content-Type: text/turtle";

async fn update(address: SocketAddr, text: &str, headers: &[&str]) -> Answer {
    let headers: Vec<&str> = headers.iter().copied().chain([UPDATE]).collect();
    post(address, "/sparql", &headers, text.as_bytes()).await
}

async fn send(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[&str],
    body: &str,
) -> Answer {
    client::send(address, method, path, headers, body.as_bytes()).await
}

async fn holds(address: SocketAddr, pattern: &str) -> bool {
    let answer = get(address, &query_path(&format!("ASK {{ {pattern} }}")), &[]).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.text().contains("true")
}

fn report(answer: &Answer) -> (u64, u64, u64) {
    assert!(answer.status < 300, "{} {}", answer.status, answer.text());
    let json: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
    let number = |name: &str| json[name].as_u64().unwrap();
    assert_eq!(
        answer.header("ETag").unwrap(),
        format!("\"{}\"", number("commit"))
    );
    (number("commit"), number("added"), number("removed"))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_is_seen_by_the_next_query() {
    let server = TestServer::start().await;
    let address = server.address;
    let first = report(&update(address, "INSERT DATA { <s> <p> 1, 2 }", &[]).await);
    assert_eq!((first.1, first.2), (2, 0));
    assert!(holds(address, "<http://localhost/s> <http://localhost/p> 2").await);
    let second = update(
        address,
        "DELETE { ?s ?p 1 } INSERT { ?s ?p 3, 2 } WHERE { ?s ?p 1 . ?s ?p 2 }",
        &[],
    );
    assert_eq!(report(&second.await), (first.0 + 1, 1, 1));
    assert!(!holds(address, "?s <http://localhost/p> 1").await);
    // Nothing to do is no commit.
    let nothing = update(address, "DELETE DATA { <s> <p> 1 }", &[]).await;
    assert_eq!(report(&nothing), (first.0 + 1, 0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_done_whole_or_not_at_all() {
    let server = TestServer::start().await;
    let address = server.address;
    let failing = "INSERT DATA { <http://e/s> <http://e/p> 1 } ; \
                   CREATE GRAPH <http://example.com/g1>";
    let answer = update(address, failing, &[]).await;
    assert_eq!(answer.status, 400);
    assert!(
        answer.text().contains("nothing was changed"),
        "{}",
        answer.text()
    );
    assert!(!holds(address, "<http://e/s> ?p ?o").await);
    let broken = update(address, "INSERT DATA { <http://e/s>\n<http://e/p> }", &[]).await;
    assert_eq!(broken.status, 400);
    assert!(broken.text().contains("line 2"), "{}", broken.text());
    let load = update(address, "LOAD <file:///etc/passwd>", &[]).await;
    assert_eq!(load.status, 400);
    let silent = update(address, "LOAD SILENT <file:///etc/passwd>", &[]).await;
    assert_eq!(report(&silent).1, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn if_match_loses_against_a_later_commit() {
    let server = TestServer::start().await;
    let address = server.address;
    let read = get(address, &query_path("ASK {}"), &[]).await;
    let tag = read.header("ETag").unwrap().to_owned();
    let condition = format!("If-Match: {tag}");
    let insert = |n: u32| format!("INSERT DATA {{ <http://e/s> <http://e/p> {n} }}");
    report(&update(address, &insert(1), &[&condition]).await);
    let lost = update(address, &insert(2), &[&condition]).await;
    assert_eq!(lost.status, 412, "{}", lost.text());
    assert!(!holds(address, "<http://e/s> ?p 2").await);
    report(&update(address, &insert(3), &["If-Match: *"]).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn old_states_and_changes_can_be_read() {
    let server = TestServer::start().await;
    let address = server.address;
    let relaxed = post(
        address,
        "/sparql?durability=relaxed",
        &[UPDATE],
        b"INSERT DATA { <http://e/s> <http://e/p> 1 }",
    );
    let (first, ..) = report(&relaxed.await);
    let change = "DELETE DATA { <http://e/s> <http://e/p> 1 } ; \
                  INSERT DATA { GRAPH <http://e/g> { <http://e/s> <http://e/p> \"x\" } }";
    let (second, ..) = report(&update(address, change, &[]).await);
    let path = format!("{}&at={first}", query_path("ASK { <http://e/s> ?p 1 }"));
    let old = get(address, &path, &[]).await;
    assert!(old.text().contains("true"), "{}", old.text());
    let tag = old.header("ETag").unwrap();
    assert!(tag.starts_with(&format!("\"{first}-json-")), "{tag}");
    let future = format!("{}&at={}", query_path("ASK {}"), second + 1);
    assert_eq!(get(address, &future, &[]).await.status, 404);
    let patch = get(address, &format!("/changes?since={first}"), &[]).await;
    assert_eq!(patch.header("Content-Type"), Some("application/rdf-patch"));
    let integer = "http://www.w3.org/2001/XMLSchema#integer";
    let expected = format!(
        "H id <urn:x-orrery:commit:{second}> .\nH prev <urn:x-orrery:commit:{first}> .\nTX .\n\
         D <http://e/s> <http://e/p> \"1\"^^<{integer}> .\n\
         A <http://e/s> <http://e/p> \"x\" <http://e/g> .\nTC .\n"
    );
    assert_eq!(patch.text(), expected);
    let none = get(address, &format!("/changes?since={second}"), &[]).await;
    assert_eq!((none.status, none.text()), (200, ""));
    for (path, status) in [
        ("/changes", 400),
        ("/changes?since=x", 400),
        ("/changes?since=99999", 404),
    ] {
        assert_eq!(get(address, path, &[]).await.status, status, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn graphs_are_put_read_patched_and_deleted() {
    let server = TestServer::start().await;
    let address = server.address;
    let graph = format!("/graphs?graph={}", encode("http://e/g"));
    assert_eq!(get(address, &graph, &[]).await.status, 404);
    let put = send(address, "PUT", &graph, &[TURTLE], "<s> <http://e/p> 1 .").await;
    assert_eq!((put.status, report(&put).1), (201, 1));
    let again = send(address, "PUT", &graph, &[TURTLE], "<s> <http://e/p> 2 .").await;
    assert_eq!((again.status, report(&again).2), (200, 1));
    let posted = send(address, "POST", &graph, &[TURTLE], "<s> <http://e/p> 3 .").await;
    assert_eq!((posted.status, report(&posted).1), (200, 1));
    let patch = "DELETE { ?s ?p 2 } INSERT { ?s ?p 4 } WHERE { ?s ?p 2 }";
    let patched = send(address, "PATCH", &graph, &[UPDATE], patch).await;
    assert_eq!(report(&patched).1, 1);
    let foreign = "INSERT DATA { GRAPH <http://e/other> { <s> <http://e/p> 1 } }";
    assert_eq!(
        send(address, "PATCH", &graph, &[UPDATE], foreign)
            .await
            .status,
        422
    );
    let read = get(address, &graph, &["Accept: application/n-triples"]).await;
    let mut lines: Vec<&str> = read.text().lines().collect();
    lines.sort_unstable();
    let integer = "http://www.w3.org/2001/XMLSchema#integer";
    let line = |n: u32| format!("<http://e/s> <http://e/p> \"{n}\"^^<{integer}> .");
    assert_eq!(lines, [line(3), line(4)]);
    assert_eq!(send(address, "DELETE", &graph, &[], "").await.status, 200);
    assert_eq!(send(address, "DELETE", &graph, &[], "").await.status, 404);
    assert_eq!(get(address, &graph, &[]).await.status, 404);
    let wrong = send(address, "PUT", &graph, &["Content-Type: image/png"], "x").await;
    assert_eq!(wrong.status, 415);
    let broken = send(address, "PUT", &graph, &[TURTLE], "<s> <p>").await;
    assert_eq!(broken.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn quads_go_where_they_say() {
    let server = TestServer::start().await;
    let address = server.address;
    let quads = "<http://e/s> <http://e/p> <http://e/o> <http://e/g> .\n\
                 <http://e/s> <http://e/p> _:b .\n";
    let nquads = "Content-Type: application/n-quads";
    let posted = send(address, "POST", "/graphs", &[nquads], quads).await;
    assert_eq!((posted.status, report(&posted).1), (200, 2));
    let broken = send(address, "POST", "/graphs", &[nquads], "<http://e/s> .").await;
    assert_eq!(broken.status, 400);
    let place = "the request's body:1:";
    assert!(broken.text().starts_with(place), "{}", broken.text());
    assert!(
        holds(
            address,
            "GRAPH <http://e/g> { ?s ?p <http://e/o> } <http://e/s> ?q ?b"
        )
        .await
    );
    // A graph of the request and others of the document do not go together.
    let refused = send(address, "POST", "/graphs?default", &[nquads], quads).await;
    assert_eq!(refused.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_may_not_write() {
    let server = TestServer::start().await;
    let address = server.address;
    let insert = "INSERT DATA { <http://e/s> <http://e/p> 1 }";
    for header in [
        "Origin: http://evil.example",
        "Origin: null",
        "Sec-Fetch-Site: cross-site",
    ] {
        let answer = update(address, insert, &[header]).await;
        assert_eq!(answer.status, 403, "{header}");
        let put = send(address, "PUT", "/graphs?default", &[TURTLE, header], "").await;
        assert_eq!(put.status, 403, "{header}");
    }
    let rebound = format!(
        "POST /sparql HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n{UPDATE}\r\n\
         Content-Length: {}\r\n\r\n{insert}",
        insert.len()
    );
    assert_eq!(exchange(address, rebound.as_bytes()).await.status, 403);
    assert!(!holds(address, "<http://e/s> ?p ?o").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_server_says_so() {
    let server = TestServer::start_with(|options| options.is_read_only = true).await;
    let answer = update(server.address, "CLEAR ALL", &[]).await;
    assert_eq!(answer.status, 503);
    assert!(answer.text().contains("--read-only"), "{}", answer.text());
    assert_eq!(
        get(server.address, &query_path("ASK {}"), &[]).await.status,
        200
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_answer_is_of_one_state() {
    let server = TestServer::start().await;
    let address = server.address;
    // Many clients insert pairs; whoever reads sees whole pairs only.
    let writers = (0..4).map(|client| async move {
        for n in 0..10 {
            let text = format!(
                "INSERT DATA {{ <http://e/{client}-{n}> <http://e/left> 1 ; <http://e/right> 1 }}"
            );
            report(&update(address, &text, &[]).await);
        }
    });
    let odd = "?s <http://e/left> 1 FILTER NOT EXISTS { ?s <http://e/right> 1 }";
    let reader = async {
        for _ in 0..20 {
            assert!(!holds(address, odd).await);
        }
    };
    futures::future::join(futures::future::join_all(writers), reader).await;
    let count = "SELECT (COUNT(*) AS ?n) { ?s <http://e/left> 1 . ?s <http://e/right> 1 }";
    let answer = get(address, &query_path(count), &["Accept: text/csv"]).await;
    assert_eq!(answer.text(), "n\r\n40\r\n");
}
