//! A stop lets running requests end, and does not wait for ever.

use crate::client::{parse, query_path, request};
use crate::fixture::{ENDLESS_ROWS, ENDLESS_WORK, TestServer};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

async fn begin(server: &TestServer, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(&request("GET", path, &[])).await.unwrap();
    stream
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_server_stops_at_once_and_closes_kept_connections() {
    let mut server = TestServer::start().await;
    let mut idle = TcpStream::connect(server.address).await.unwrap();
    idle.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await
        .unwrap();
    let mut some = [0; 12];
    idle.read_exact(&mut some).await.unwrap();
    assert_eq!(&some, b"HTTP/1.1 200");
    let address = server.address;
    server.ask_to_stop();
    tokio::time::timeout(Duration::from_secs(5), server.stopped())
        .await
        .expect("a quick stop");
    let mut rest = Vec::new();
    idle.read_to_end(&mut rest).await.unwrap();
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn running_requests_end_in_their_own_time() {
    let mut server =
        TestServer::start_with(|options| options.grace = Duration::from_secs(30)).await;
    let path = format!("{}&timeout=1", query_path(ENDLESS_WORK));
    let mut running = begin(&server, &path).await;
    server.wait_until_running(1).await;
    server.ask_to_stop();
    let mut bytes = Vec::new();
    running.read_to_end(&mut bytes).await.unwrap();
    let answer = parse(&bytes, true);
    assert!(
        answer.status == 503 && answer.text().contains("limit of 1 s"),
        "{}",
        answer.text()
    );
    server.stopped().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_without_an_answer_after_the_grace_period_is_told_so() {
    let mut server =
        TestServer::start_with(|options| options.grace = Duration::from_millis(300)).await;
    let mut running = begin(&server, &query_path(ENDLESS_WORK)).await;
    server.wait_until_running(1).await;
    server.ask_to_stop();
    let mut bytes = Vec::new();
    running.read_to_end(&mut bytes).await.unwrap();
    let answer = parse(&bytes, true);
    assert!(answer.is_complete);
    assert_eq!(
        (answer.status, answer.text()),
        (503, "the server is stopping\n")
    );
    server.stopped().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_runs_after_the_grace_period_is_cancelled() {
    let mut server =
        TestServer::start_with(|options| options.grace = Duration::from_millis(300)).await;
    let mut running = begin(&server, &query_path(ENDLESS_ROWS)).await;
    let mut some = vec![0; 1000];
    running.read_exact(&mut some).await.unwrap();
    server.ask_to_stop();
    tokio::time::timeout(Duration::from_secs(10), server.stopped())
        .await
        .expect("a stop after the grace period");
    let mut rest = Vec::new();
    // Broken off, by a reset or by an end without the last chunk.
    if running.read_to_end(&mut rest).await.is_ok() {
        assert!(!rest.ends_with(b"0\r\n\r\n"));
    }
}
