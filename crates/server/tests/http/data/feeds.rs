//! Work has its turn before it begins: old states, and those who follow the changes.

use crate::client::{get, post, query_path, request};
use crate::fixture::{ENDLESS_WORK, TestServer};
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[tokio::test(flavor = "multi_thread")]
async fn an_old_state_is_looked_for_when_the_query_has_its_turn() {
    let server = TestServer::start_with(|options| {
        options.service.queries_running_max = 1;
        options.service.queries_waiting_max = 0;
    })
    .await;
    let mut heavy = TcpStream::connect(server.address).await.unwrap();
    let bytes = request("GET", &query_path(ENDLESS_WORK), &[]);
    heavy.write_all(&bytes).await.unwrap();
    server.wait_until_running(1).await;
    // Commit 99999 is not there, which is found out by looking for it.
    let query = format!("{}&at=99999", query_path("ASK {}"));
    for path in [
        query.as_str(),
        "/graphs?default&at=99999",
        "/graphs?graph=http://e/none",
    ] {
        let answer = get(server.address, path, &[]).await;
        assert_eq!(answer.status, 503, "{path} {}", answer.text());
    }
    drop(heavy);
    server.wait_until_running(0).await;
    assert_eq!(get(server.address, &query, &[]).await.status, 404);
}

async fn follow(address: SocketAddr, since: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let bytes = request("GET", &format!("{since}&follow=true"), &[]);
    stream.write_all(&bytes).await.unwrap();
    stream
}

/// Reads until this text has come.
async fn read_until(stream: &mut TcpStream, text: &str) -> String {
    let mut read = String::new();
    while !read.contains(text) {
        let mut buffer = [0; 4096];
        let length = stream.read(&mut buffer).await.unwrap();
        assert!(length > 0, "ended after {read}");
        read += std::str::from_utf8(&buffer[..length]).unwrap();
    }
    read
}

#[tokio::test(flavor = "multi_thread")]
async fn more_may_follow_than_there_are_threads_but_not_any_number() {
    const FEEDS: usize = 600;
    let server = TestServer::start_with(|options| options.service.feeds_max = FEEDS).await;
    let read = get(server.address, &query_path("ASK {}"), &["Accept: text/csv"]).await;
    let commit = read
        .header("ETag")
        .unwrap()
        .trim_matches('"')
        .split_once("-csv-")
        .unwrap()
        .0;
    let since = format!("/changes?since={commit}");
    let mut followers = Vec::new();
    for _ in 0..FEEDS {
        followers.push(follow(server.address, &since).await);
    }
    for follower in &mut followers {
        read_until(follower, "\r\n\r\n").await;
    }
    let refused = get(server.address, &since, &[]).await;
    assert_eq!(
        (refused.status, refused.header("Retry-After")),
        (503, Some("1"))
    );
    assert!(
        refused.text().starts_with("600 clients follow"),
        "{}",
        refused.text()
    );
    // What needs a thread that may block still finds one: followers hold none.
    assert_eq!(post(server.address, "/compact", &[], b"").await.status, 200);
    let update = "Content-Type: application/sparql-update";
    let insert = b"INSERT DATA { <http://e/s> <http://e/p> \"news\" }";
    let updated = post(server.address, "/sparql", &[update], insert).await;
    assert_eq!(updated.status, 200, "{}", updated.text());
    for follower in &mut followers {
        let patch = read_until(follower, "TC .").await;
        assert!(
            patch.contains("A <http://e/s> <http://e/p> \"news\" ."),
            "{patch}"
        );
    }
    drop(followers);
    let free = async {
        while get(server.address, &since, &[]).await.status == 503 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(30), free)
        .await
        .unwrap();
}
