//! What runs is listed on the admin socket, and ended there.

use super::client::{Answer, ask, get, post, send};
use super::fixture::TestServer;
use super::users::access::{CSV, PASSWORD, basic, some_users, start};
use serde_json::Value;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

const UPDATE: &str = "Content-Type: application/sparql-update";
const STATEMENT: &str = "Content-Type: application/sql";
/// Of 3,000 statements, it does not end within the time of a test.
const ENDLESS: &str =
    "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l FILTER(?c < ?l) }";

async fn listed(server: &TestServer, who: &str) -> Vec<Value> {
    let answer = get(server.admin.unwrap(), "/queries", &[&basic(who, PASSWORD)]).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.header("Cache-Control"), Some("no-store"));
    let listing: Value = serde_json::from_str(answer.text()).unwrap();
    listing["queries"].as_array().unwrap().clone()
}

async fn kill(server: &TestServer, who: &str, id: &str) -> Answer {
    let path = format!("/queries/{id}");
    send(
        server.admin.unwrap(),
        "DELETE",
        &path,
        &[&basic(who, PASSWORD)],
        b"",
    )
    .await
}

/// The one that runs, as soon as it does.
async fn running(server: &TestServer) -> Value {
    let started = Instant::now();
    loop {
        if let [one] = listed(server, "root").await.as_slice() {
            return one.clone();
        }
        assert!(started.elapsed() < Duration::from_secs(20), "nothing runs");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_administrator_sees_what_runs_and_ends_it() {
    let server = Arc::new(start(&some_users()).await);
    assert_eq!(listed(&server, "root").await, Vec::<Value>::new());
    let root = basic("root", PASSWORD);
    let update = format!("INSERT {{ <x:s> <x:p> ?n }} WHERE {{ {ENDLESS} }}");
    let statement = format!("SELECT * FROM sparql('{ENDLESS}')");
    for (path, kind, content_type, text) in [
        (
            "/sparql",
            "query",
            "Content-Type: application/sparql-query",
            ENDLESS,
        ),
        ("/sparql", "update", UPDATE, update.as_str()),
        ("/sql", "sql", STATEMENT, statement.as_str()),
    ] {
        let asking = {
            let (address, root, text) = (server.address, root.clone(), text.to_owned());
            tokio::spawn(async move {
                post(address, path, &[&root, content_type], text.as_bytes()).await
            })
        };
        let query = running(&server).await;
        assert_eq!(query["kind"], kind, "{query}");
        assert_eq!(query["text"], text);
        assert_eq!(
            (&query["user"], &query["client"]),
            (&"root".into(), &"127.0.0.1".into())
        );
        let id = query["id"].to_string();
        // Nobody else sees or ends it.
        assert_eq!(kill(&server, "ann", &id).await.status, 403);
        let ann = basic("ann", PASSWORD);
        assert_eq!(
            get(server.admin.unwrap(), "/queries", &[&ann]).await.status,
            403
        );
        assert!(!asking.is_finished());

        let killed = kill(&server, "root", &id).await;
        assert_eq!(
            (killed.status, killed.text()),
            (200, format!("{{\"killed\":{id}}}").as_str())
        );
        let ended = tokio::time::timeout(Duration::from_secs(20), asking).await;
        let answer = ended.unwrap().unwrap();
        assert_eq!(answer.status, 503, "{}", answer.text());
        assert!(
            answer.text().contains("an administrator has ended"),
            "{}",
            answer.text()
        );
        // Its answer may be here before the last who holds it lets go.
        let started = Instant::now();
        while !listed(&server, "root").await.is_empty() {
            assert!(started.elapsed() < Duration::from_secs(20), "it runs on");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(kill(&server, "root", &id).await.status, 404);
    }
    // Nothing of the update was made, and others go on.
    let made = ask(server.address, "ASK { <x:s> <x:p> ?n }", &[&root, CSV]).await;
    assert!(made.text().contains("false"), "{}", made.text());
    assert_eq!(kill(&server, "root", "x").await.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_public_port_lists_nothing() {
    let server = start(&some_users()).await;
    let root = basic("root", PASSWORD);
    assert_eq!(get(server.address, "/queries", &[&root]).await.status, 404);
    assert_eq!(
        send(server.address, "DELETE", "/queries/1", &[&root], b"")
            .await
            .status,
        404
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn without_users_programs_of_this_machine_end_queries_and_pages_do_not() {
    let server = TestServer::start_with(|options| {
        options.admin = Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    })
    .await;
    let admin = server.admin.unwrap();
    assert_eq!(get(admin, "/queries", &[]).await.text(), "{\"queries\":[]}");
    let page = "Origin: http://evil.example";
    assert_eq!(
        send(admin, "DELETE", "/queries/1", &[page], b"")
            .await
            .status,
        403
    );
    assert_eq!(
        send(admin, "DELETE", "/queries/1", &[], b"").await.status,
        404
    );
}
