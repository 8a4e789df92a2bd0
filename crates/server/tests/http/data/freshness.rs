//! A server that follows another waits for the commit that a client asks for.

use crate::client::{Answer, encode, get, post};
use crate::fixture::TestServer;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

async fn insert(address: SocketAddr, object: usize) -> u64 {
    let update = format!("INSERT DATA {{ <http://e/s> <http://e/p> {object} }}");
    let headers = ["Content-Type: application/sparql-update"];
    let answer = post(address, "/sparql", &headers, update.as_bytes()).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let json: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
    json["commit"].as_u64().unwrap()
}

fn is_there(object: usize) -> String {
    let query = format!("ASK {{ <http://e/s> <http://e/p> {object} }}");
    format!("/sparql?query={}", encode(&query))
}

fn holds(answer: &Answer) -> bool {
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.text().contains("true")
}

#[tokio::test(flavor = "multi_thread")]
async fn who_reads_elsewhere_sees_what_they_wrote() {
    let leader = TestServer::start().await;
    let db = leader.directory().join("db");
    let follower = TestServer::start_with(|options| {
        options.db = db;
        options.is_read_only = true;
    })
    .await;
    for number in 0..20 {
        let commit = insert(leader.address, number).await;
        let header = format!("Orrery-Min-Commit: {commit}");
        let answer = match number % 2 {
            0 => get(follower.address, &is_there(number), &[&header]).await,
            _ => {
                let path = format!("{}&min-commit={commit}", is_there(number));
                get(follower.address, &path, &[]).await
            }
        };
        assert!(holds(&answer), "{number}");
    }
    // The other ways to read, by the header.
    let commit = insert(leader.address, 100).await;
    let header = format!("Orrery-Min-Commit: {commit}");
    let graph = get(follower.address, "/graphs?default", &[&header]).await;
    assert!(graph.text().contains("100"), "{}", graph.text());
    // One that waits for a commit that comes meanwhile.
    let path = format!("{}&min-commit={}", is_there(101), commit + 1);
    let waiting = tokio::spawn(async move { get(follower.address, &path, &[]).await });
    tokio::time::sleep(Duration::from_millis(100)).await;
    insert(leader.address, 101).await;
    assert!(holds(&waiting.await.unwrap()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_does_not_come_is_told_and_one_that_is_none_is_refused() {
    let server = TestServer::start().await;
    let commit = insert(server.address, 1).await;
    let begun = Instant::now();
    let path = format!("{}&min-commit={}", is_there(1), commit + 1);
    let answer = get(server.address, &path, &[]).await;
    assert_eq!(answer.status, 503);
    assert_eq!(answer.header("Retry-After"), Some("1"));
    let told = format!(
        "commit {commit} is the newest here, and {} was asked",
        commit + 1
    );
    assert!(answer.text().contains(&told), "{}", answer.text());
    assert!(begun.elapsed() >= Duration::from_secs(5));
    let wrong = get(server.address, &is_there(1), &["Orrery-Min-Commit: x"]).await;
    assert_eq!(wrong.status, 400);
    let form = ["Content-Type: application/x-www-form-urlencoded"];
    let body = b"query=ASK%7B%7D&min-commit=1";
    let in_body = post(server.address, "/sparql", &form, body).await;
    assert_eq!(in_body.status, 400);
    assert!(
        in_body.text().contains("in the address"),
        "{}",
        in_body.text()
    );
}
