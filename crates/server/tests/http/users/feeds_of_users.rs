//! Who follows the changes is asked again, and held to what they may use.

use crate::client::{get, post, request};
use crate::fixture::TestServer;
use crate::usage::metering::limit;
use crate::users::access::{PASSWORD, add_user, basic, command, grant, start_with};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const UPDATE: &str = "Content-Type: application/sparql-update";

fn users() -> Vec<Value> {
    vec![
        add_user("root", true),
        add_user("ann", false),
        add_user("eve", false),
        grant(json!({"user": "ann"}), "read", json!("default_graph")),
        grant(json!({"user": "eve"}), "read", json!("all_graphs")),
        grant(json!({"user": "eve"}), "read", json!("all_tables")),
    ]
}

async fn insert(server: &TestServer, object: &str) -> u64 {
    let text = format!("INSERT DATA {{ <http://e/s> <http://e/p> \"{object}\" }}");
    let root = basic("root", PASSWORD);
    let done = post(server.address, "/sparql", &[&root, UPDATE], text.as_bytes()).await;
    assert_eq!(done.status, 200, "{}", done.text());
    let json: Value = serde_json::from_slice(&done.body).unwrap();
    json["commit"].as_u64().unwrap()
}

async fn follow(server: &TestServer, who: &str, since: u64) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let path = format!("/changes?since={since}&follow=true");
    stream
        .write_all(&request("GET", &path, &[who]))
        .await
        .unwrap();
    stream
}

/// Reads until this text has come, or the feed has ended.
async fn read_until(stream: &mut TcpStream, text: &str) -> String {
    let mut read = String::new();
    while !read.contains(text) {
        let mut buffer = [0; 4096];
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => break,
            Ok(length) => read += &String::from_utf8_lossy(&buffer[..length]),
        }
    }
    read
}

#[tokio::test(flavor = "multi_thread")]
async fn a_feed_ends_with_the_rights_of_who_reads_it() {
    let root = basic("root", PASSWORD);
    for change in [
        json!({"do": "set_user", "user": "ann", "locked": true}),
        json!({"do": "remove_user", "user": "ann"}),
        json!({"do": "revoke"}),
        json!({"do": "set_user", "user": "ann", "password": {"given": "another long one"}}),
    ] {
        let mut commands = users();
        commands.remove(3);
        let server = start_with(&commands, |_| {}).await;
        let granted = grant(json!({"user": "ann"}), "read", json!("default_graph"));
        let granted = command(&server, &root, &granted).await;
        let granted: Value = serde_json::from_str(granted.text()).unwrap();
        let mut change = change;
        if change["do"] == "revoke" {
            change["rule"] = granted["rule"].clone();
        }
        let since = insert(&server, "before").await;
        let mut feed = follow(&server, &basic("ann", PASSWORD), since).await;
        read_until(&mut feed, "\r\n\r\n").await;
        insert(&server, "while she may").await;
        let read = read_until(&mut feed, "TC .").await;
        assert!(read.contains("while she may"), "{read}");
        let done = command(&server, &root, &change).await;
        assert_eq!(done.status, 200, "{change}: {}", done.text());
        insert(&server, "secret").await;
        let rest = read_until(&mut feed, "never there").await;
        assert!(!rest.contains("secret"), "{change}: {rest}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_made_a_commit_is_told_to_administrators_alone() {
    let server = start_with(&users(), |_| {}).await;
    let since = insert(&server, "before").await;
    let root = basic("root", PASSWORD);
    let secret = json!({"graph": "http://e/secret"});
    let granted = grant(json!({"user": "ann"}), "read", secret);
    assert_eq!(command(&server, &root, &granted).await.status, 200);
    let path = format!("/changes?since={since}&format=json");
    let to_root = get(server.address, &path, &[&root]).await;
    assert!(
        to_root.text().contains("http://e/secret"),
        "{}",
        to_root.text()
    );
    let to_eve = get(server.address, &path, &[&basic("eve", PASSWORD)]).await;
    assert_eq!(to_eve.status, 200, "{}", to_eve.text());
    assert!(
        !to_eve.text().contains("secret") && !to_eve.text().contains("who"),
        "{}",
        to_eve.text()
    );
    assert!(to_eve.text().contains("\"end\":true"), "{}", to_eve.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_feed_is_held_to_the_limits_of_who_reads_it() {
    for (limits, is_refused) in [
        (json!({"rows": 3}), true),
        (json!({"bytes": 200}), true),
        (json!({"cost": {"touches": 5, "seconds": 86_400}}), true),
        (json!({"rows": 100}), false),
    ] {
        let mut commands = users();
        commands.push(limit(json!({"user": "ann"}), limits.clone()));
        let server = start_with(&commands, |_| {}).await;
        let since = insert(&server, "before").await;
        for number in 0..5 {
            insert(&server, &format!("number {number}")).await;
        }
        let path = format!("/changes?since={since}");
        let read = get(server.address, &path, &[&basic("ann", PASSWORD)]).await;
        let is_whole = read.status == 200 && read.is_complete;
        assert_eq!(
            !is_whole,
            is_refused,
            "{limits}: {} {}",
            read.status,
            read.text()
        );
        if is_refused {
            assert!(
                !read.text().contains("number 4"),
                "{limits}: {}",
                read.text()
            );
        }
    }
    // One at a time, until it ends.
    let mut commands = users();
    commands.push(limit(json!({"user": "ann"}), json!({"concurrent": 1})));
    let server = start_with(&commands, |_| {}).await;
    let since = insert(&server, "before").await;
    let ann = basic("ann", PASSWORD);
    let mut feed = follow(&server, &ann, since).await;
    read_until(&mut feed, "\r\n\r\n").await;
    let beside = get(server.address, &format!("/changes?since={since}"), &[&ann]).await;
    assert_eq!(beside.status, 429, "{}", beside.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn one_user_leaves_feeds_for_others() {
    let server = start_with(&users(), |options| options.service.feeds_max = 8).await;
    let since = insert(&server, "before").await;
    let (ann, eve) = (basic("ann", PASSWORD), basic("eve", PASSWORD));
    let mut feeds = Vec::new();
    for _ in 0..2 {
        let mut feed = follow(&server, &ann, since).await;
        read_until(&mut feed, "\r\n\r\n").await;
        feeds.push(feed);
    }
    let path = format!("/changes?since={since}");
    let refused = get(server.address, &path, &[&ann]).await;
    assert_eq!(refused.status, 429, "{}", refused.text());
    let other = get(server.address, &path, &[&eve]).await;
    assert_eq!(other.status, 200, "{}", other.text());
}
