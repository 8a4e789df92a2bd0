//! Attacks by strangers: to bring a server down, to reach what is behind it, or to make it say more
//! than it should. After every test the server answers and holds no memory (`docs/security.md` has
//! the list).

mod addresses;
mod connections;
mod documents;
mod endpoint;
mod headers;
mod hostile_text;
mod paths;
mod patterns;
mod sizes;
mod slow;
mod unknown_users;

use super::client::{Answer, ask, get, post};
use super::fixture::TestServer;
use std::net::SocketAddr;

const CSV: &str = "Accept: text/csv";
const UPDATE: &str = "Content-Type: application/sparql-update";

/// The server is as it was before: nothing runs, no memory is held, it answers.
async fn assert_unharmed(server: &TestServer) {
    server.wait_until_running(0).await;
    let held = || async {
        let health = get(server.address, "/health", &[]).await;
        let health: serde_json::Value = serde_json::from_slice(&health.body).unwrap();
        health["query_memory_bytes"].as_u64().unwrap()
    };
    // What a client left behind is given back a moment later.
    let given_back = async { while held().await != 0 {} };
    let given_back = tokio::time::timeout(std::time::Duration::from_secs(20), given_back).await;
    assert!(given_back.is_ok(), "memory is still held");
    let point = "SELECT ?n WHERE { <http://example.com/s7> <http://example.com/number> ?n }";
    let answer = ask(server.address, point, &[CSV]).await;
    assert_eq!(answer.text(), "n\r\n7\r\n");
}

async fn update(address: SocketAddr, text: &str) -> Answer {
    post(address, "/sparql", &[UPDATE], text.as_bytes()).await
}

/// The beginning of an answer's text.
fn beginning(answer: &Answer) -> String {
    let text = String::from_utf8_lossy(&answer.body);
    text.chars().take(400).collect()
}
