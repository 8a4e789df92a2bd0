//! The index of texts, made and given up by the server while others read and write.

use std::sync::atomic::{AtomicBool, Ordering};

use orrery_storage::verify;

use crate::client::{ask, get, post, send};
use crate::fixture::TestServer;

const SPARQL_UPDATE: &str = "Content-Type: application/sparql-update";
const SEARCH: &str =
    "SELECT ?e { SERVICE text:search { [] text:query \"wine\" ; text:entity ?e } }";

async fn update(server: &TestServer, update: &str) {
    let done = post(
        server.address,
        "/sparql",
        &[SPARQL_UPDATE],
        update.as_bytes(),
    )
    .await;
    assert!(done.status < 300, "{}", done.text());
}

/// How many a search finds.
async fn found(server: &TestServer) -> usize {
    let answer = ask(server.address, SEARCH, &["Accept: text/csv"]).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.text().lines().count() - 1
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_of_texts_is_made_and_given_up_while_the_server_runs() {
    let server = TestServer::start().await;
    let address = server.address;
    let listed = get(address, "/text", &[]).await;
    assert_eq!(listed.text(), "{\"index\":null}");
    for (method, path, status, message) in [
        ("POST", "/text?rebuild=true", 422, "no index of texts"),
        ("DELETE", "/text", 422, "no index of texts"),
        ("POST", "/text?property=label", 400, "no absolute IRI"),
        ("POST", "/text?color=red", 400, "`color`"),
        ("POST", "/text?grams=yes", 400, "true or false"),
        ("POST", "/text?rebuild=true&grams=true", 400, "rules"),
        ("PUT", "/text", 405, ""),
    ] {
        let refused = send(address, method, path, &[], b"").await;
        assert_eq!(refused.status, status, "{path}: {}", refused.text());
        assert!(refused.text().contains(message), "{}", refused.text());
    }
    update(
        &server,
        "INSERT DATA { <x:a> <x:label> \"a wine\" . <x:b> <x:note> \"another wine, from a cellar\"@en }",
    )
    .await;
    let made = post(address, "/text?property=x%3Alabel&language=", &[], b"").await;
    assert_eq!(made.status, 200, "{}", made.text());
    assert!(made.text().contains("\"seconds\""), "{}", made.text());
    assert_eq!(found(&server).await, 1);
    let wrong = ["If-Match: \"nothing\""];
    let refused = post(address, "/text?grams=true", &wrong, b"").await;
    assert_eq!(refused.status, 412, "{}", refused.text());
    let made = post(address, "/text?grams=true", &[], b"").await;
    assert_eq!(made.status, 200, "{}", made.text());
    assert_eq!(found(&server).await, 2);
    let given_up = send(address, "DELETE", "/text", &[], b"").await;
    assert_eq!(given_up.text(), "{\"dropped\":true}");
    let answer = ask(address, SEARCH, &[]).await;
    assert_eq!(answer.status, 501, "{}", answer.text());
}

/// Commits during the making of an index, with checkpoints and compactions between: every
/// acknowledged text is found at once, and none is lost.
#[tokio::test(flavor = "multi_thread")]
async fn commits_beside_the_making_of_an_index_are_found() {
    const ROUNDS: usize = 12;
    let server = TestServer::start().await;
    let address = server.address;
    let many: String = (0..3_000)
        .map(|n| format!("<x:old{n}> <x:label> \"an old wine of the year {n}\"@en . "))
        .collect();
    update(&server, &format!("INSERT DATA {{ {many} }}")).await;
    let made = post(address, "/text", &[], b"").await;
    assert_eq!(made.status, 200, "{}", made.text());
    let is_over = AtomicBool::new(false);
    let making = async {
        for round in 0..ROUNDS {
            let path = match round % 4 {
                0 => "/text?rebuild=true",
                1 => "/text?grams=true",
                2 => "/checkpoint",
                _ => "/compact",
            };
            let done = post(address, path, &[], b"").await;
            assert_eq!(done.status, 200, "{path}: {}", done.text());
        }
        is_over.store(true, Ordering::Relaxed);
    };
    let writing = async {
        let mut written = 0;
        while !is_over.load(Ordering::Relaxed) {
            let change = format!(
                "INSERT DATA {{ <x:new{written}> <x:label> \"new wine {written}\" }} ; DELETE WHERE {{ <x:old{written}> ?p ?o }}"
            );
            update(&server, &change).await;
            written += 1;
            assert_eq!(found(&server).await, written.max(3_000), "after {written}");
        }
        written
    };
    let ((), written) = tokio::join!(making, writing);
    assert!(written > 0);
    assert_eq!(found(&server).await, written.max(3_000));
    let damages = verify(server.directory().join("db"), |_| {}).unwrap();
    assert!(damages.is_empty(), "{damages:?}");
}
