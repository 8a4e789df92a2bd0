//! Uploads of documents without a length, or too large for memory: the rights that they need, and
//! what they cost.

use crate::client::{Answer, exchange, get, post, request};
use crate::fixture::TestServer;
use crate::usage::metering::limit;
use crate::users::access::{PASSWORD, add_user, basic, grant, some_users, start, start_with};
use serde_json::json;
use std::net::SocketAddr;

const TURTLE: &str = "Content-Type: text/turtle";
const LINES: &str = "Content-Type: application/n-triples";
const G2: &str = "/graphs?graph=http://example.com/g2";
/// Bodies beyond are large, and so are statements that take more memory.
const LARGE_BYTES: usize = 256;

/// A POST that does not say how long it is.
async fn chunked(address: SocketAddr, path: &str, headers: &[&str], body: &[u8]) -> Answer {
    let headers: Vec<&str> = headers
        .iter()
        .copied()
        .chain(["Transfer-Encoding: chunked"])
        .collect();
    let mut bytes = request("POST", path, &headers);
    bytes.extend_from_slice(format!("{:x}\r\n", body.len()).as_bytes());
    bytes.extend_from_slice(body);
    bytes.extend_from_slice(b"\r\n0\r\n\r\n");
    exchange(address, &bytes).await
}

fn commit(answer: &Answer) -> u64 {
    assert!([200, 201].contains(&answer.status), "{}", answer.text());
    let json: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
    json["commit"].as_u64().unwrap()
}

/// A document that is loaded in bulk.
fn large(number: usize) -> Vec<u8> {
    let lines = (0..50).map(|line| format!("<http://e/s{line}> <http://e/p> \"{number}\" .\n"));
    lines.collect::<String>().into_bytes()
}

async fn small_memory() -> TestServer {
    TestServer::start_with(|options| options.http.update_bytes_max = LARGE_BYTES).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_of_unknown_length_is_a_change_like_any_other() {
    let server = start(&some_users()).await;
    let (address, bob, root) = (
        server.address,
        basic("bob", PASSWORD),
        basic("root", PASSWORD),
    );
    let mut commits = Vec::new();
    for number in 0..5 {
        let text = format!("@prefix mine: <http://evil.example/> . mine:s mine:p {number} .");
        commits.push(commit(
            &chunked(address, G2, &[&bob, TURTLE], text.as_bytes()).await,
        ));
    }
    // Each is in the log: all old states are there, and the change feed tells all of them.
    let first = commits[0];
    let old = format!("{G2}&at={first}");
    let old = get(address, &old, &[&root, "Accept: application/n-triples"]).await;
    assert_eq!(old.status, 200, "{}", old.text());
    assert_eq!(
        old.text().matches("evil.example/p").count(),
        1,
        "{}",
        old.text()
    );
    let changes = get(address, &format!("/changes?since={}", first - 1), &[&root]).await;
    assert_eq!(changes.status, 200, "{}", changes.text());
    assert_eq!(
        changes.text().matches("\nA ").count(),
        5,
        "{}",
        changes.text()
    );
    // What all read, none of them has given a prefix.
    let prefixes = get(address, "/prefixes", &[&root]).await;
    assert!(
        !prefixes.text().contains("evil.example"),
        "{}",
        prefixes.text()
    );
    // And conditions hold.
    let condition = format!("If-Match: \"{first}\"");
    let text = b"<http://e/s> <http://e/p> 1 .";
    let late = chunked(address, G2, &[&bob, TURTLE, &condition], text).await;
    assert_eq!(late.status, 412, "{}", late.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_body_of_few_statements_is_no_load_in_bulk() {
    let server = TestServer::start_with(|options| options.http.update_bytes_max = 8 << 20).await;
    let address = server.address;
    let mut body = vec![b'\n'; 9 << 20];
    body.extend_from_slice(b"<http://e/s> <http://e/p> \"one\" .\n");
    let number = commit(&post(address, "/graphs?default", &[LINES], &body).await);
    let changes = get(address, &format!("/changes?since={}", number - 1), &[]).await;
    assert_eq!(changes.status, 200, "{}", changes.text());
    assert_eq!(changes.text().matches("\nA ").count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn loads_in_bulk_give_up_old_states_only_where_that_is_asked_for() {
    let server = small_memory().await;
    let address = server.address;
    let first = commit(&post(address, "/graphs?default", &[LINES], &large(0)).await);
    commit(&post(address, "/graphs?default", &[LINES], &large(1)).await);
    let path = "/graphs?default";
    let refused = post(address, path, &[LINES], &large(2)).await;
    assert_eq!(refused.status, 422, "{}", refused.text());
    let says = refused.text().contains("forget-history=true");
    assert!(
        says && refused.text().contains(&format!("commit {first}")),
        "{}",
        refused.text()
    );
    // It was not loaded, and the state before the loads is there.
    let before = get(address, &format!("{path}&at={}", first - 1), &[]).await;
    assert_eq!(before.status, 200, "{}", before.text());
    let asked = "/graphs?default&forget-history=true";
    commit(&post(address, asked, &[LINES], &large(2)).await);
    let before = get(address, &format!("{path}&at={}", first - 1), &[]).await;
    assert_eq!(before.status, 404, "{}", before.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_load_in_bulk_is_a_line_of_the_feed_which_goes_on_behind_it() {
    let server = small_memory().await;
    let address = server.address;
    let sql = "Content-Type: application/sql";
    let path = "/graphs?default";
    let few = |number: u32| format!("<http://e/s> <http://e/p> \"few {number}\" .\n").into_bytes();
    let first = commit(&post(address, path, &[LINES], &few(1)).await);
    commit(&post(address, path, &[LINES], &large(1)).await);
    let made = post(
        address,
        "/sql",
        &[sql],
        b"create table t (a int primary key); insert into t values (7)",
    )
    .await;
    assert_eq!(made.status, 200, "{}", made.text());
    commit(&post(address, path, &[LINES], &few(2)).await);
    let last = commit(&post(address, path, &[LINES], &large(2)).await);
    // Of each commit the lines between its first and its last, without what differs.
    let feed = async |since: u64| {
        let path = format!("/changes?since={since}&format=json");
        let feed = get(address, &path, &[]).await;
        assert_eq!(feed.status, 200, "{}", feed.text());
        let mut lines = Vec::new();
        for line in feed.text().lines() {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            let number = line["commit"].as_u64().unwrap() - first;
            let what = ["replace", "insert", "define", "end"];
            let what = what.iter().find(|what| !line[**what].is_null());
            lines.push(match what {
                Some(&"define") => format!("{number} define"),
                Some(what) => format!("{number} {what} {}", line[*what]),
                None => format!(
                    "{number} of {}",
                    line["previous"].as_u64().unwrap() + 1 - first
                ),
            });
        }
        lines
    };
    let expected = [
        "1 of 1",
        "1 replace \"quads\"",
        "1 end true",
        "2 of 2",
        "2 define",
        "2 insert \"row\"",
        "2 end true",
        "3 of 3",
        "3 insert \"quad\"",
        "3 end true",
        "4 of 4",
        "4 replace \"quads\"",
        "4 end true",
    ];
    assert_eq!(feed(first).await, expected);
    assert_eq!(feed(first + 1).await, expected[3..]);
    assert_eq!(feed(last - 1).await, expected[10..]);
    assert_eq!(feed(last).await, Vec::<String>::new());
    // What has become of the base meanwhile changes nothing.
    let compacted = post(address, "/compact", &[], b"").await;
    assert_eq!(compacted.status, 200, "{}", compacted.text());
    let with_compaction = [&expected[..], &["5 of 5", "5 end true"]].concat();
    assert_eq!(feed(first).await, with_compaction);
    // A patch cannot say so.
    for (since, status) in [(first, 404), (first + 1, 404), (last, 200), (last + 1, 200)] {
        let patch = get(address, &format!("/changes?since={since}"), &[]).await;
        assert_eq!(patch.status, status, "{}", patch.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_who_administers_gives_up_old_states() {
    let bob_writes = [
        add_user("root", true),
        add_user("bob", false),
        grant(json!({"user": "bob"}), "write", json!("default_graph")),
    ];
    let server = start_with(&bob_writes, |options| {
        options.http.update_bytes_max = LARGE_BYTES;
    })
    .await;
    let (bob, path) = (
        basic("bob", PASSWORD),
        "/graphs?default&forget-history=true",
    );
    let refused = post(server.address, path, &[&bob, LINES], &large(0)).await;
    assert_eq!(refused.status, 403, "{}", refused.text());
    // Where nothing is given up, he may load.
    commit(&post(server.address, "/graphs?default", &[&bob, LINES], &large(0)).await);
    let root = basic("root", PASSWORD);
    commit(&post(server.address, path, &[&root, LINES], &large(1)).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_way_of_loading_puts_quads_into_a_mapped_graph() {
    let server = small_memory().await;
    let address = server.address;
    let mapped =
        "create table item (id int primary key, name text); insert into item values (1, 'lamp');
        create graph 'http://e/mapped' from tables base 'http://e/'";
    let sql = "Content-Type: application/sql";
    let made = post(address, "/sql", &[sql], mapped.as_bytes()).await;
    assert_eq!(made.status, 200, "{}", made.text());
    let path = "/graphs?graph=http://e/mapped";
    let quads = "Content-Type: application/n-quads";
    let in_quads: Vec<u8> = (0..50)
        .map(|line| format!("<http://e/s{line}> <http://e/p> \"x\" <http://e/mapped> .\n"))
        .collect::<String>()
        .into_bytes();
    let few = b"<http://e/s> <http://e/p> \"x\" .\n";
    let refused = [
        post(address, path, &[LINES], &large(0)).await,
        post(address, path, &[LINES], few).await,
        chunked(address, path, &[LINES], &large(0)).await,
        chunked(address, path, &[LINES], few).await,
        post(address, "/graphs", &[quads], &in_quads).await,
        chunked(address, "/graphs", &[quads], &in_quads).await,
    ];
    for answer in refused {
        assert_eq!(answer.status, 400, "{}", answer.text());
        assert!(
            answer.text().contains("is mapped from tables"),
            "{}",
            answer.text()
        );
    }
    // Others go on.
    commit(&post(address, "/graphs?default", &[LINES], few).await);
    commit(&chunked(address, "/graphs?default", &[LINES], &large(0)).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_load_in_bulk_is_not_done_where_it_costs_more_than_is_left() {
    let commands = |touches: u64| {
        [
            add_user("root", true),
            add_user("ann", false),
            grant(json!({"user": "ann"}), "write", json!("default_graph")),
            grant(json!({"user": "ann"}), "read", json!("default_graph")),
            limit(
                json!({"user": "ann"}),
                json!({"cost": {"touches": touches, "seconds": 86_400}}),
            ),
        ]
    };
    let ann = basic("ann", PASSWORD);
    // Three thousand quads are there to be written anew, and fifty come.
    for (touches, expected) in [(2_000, 429), (10_000, 200)] {
        let server = start_with(&commands(touches), |options| {
            options.http.update_bytes_max = LARGE_BYTES;
        })
        .await;
        let path = "/graphs?default";
        let loaded = post(server.address, path, &[&ann, LINES], &large(0)).await;
        assert_eq!(loaded.status, expected, "{touches}: {}", loaded.text());
        let root = basic("root", PASSWORD);
        let after = get(
            server.address,
            path,
            &[&root, "Accept: application/n-triples"],
        )
        .await;
        let came = after.text().matches("<http://e/p>").count();
        assert_eq!(came, if expected == 200 { 50 } else { 0 });
        if expected == 200 {
            let cost: u64 = loaded.header("Orrery-Cost").unwrap().parse().unwrap();
            assert!((3_050..4_000).contains(&cost), "{cost}");
        }
    }
}
