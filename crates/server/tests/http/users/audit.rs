//! The audit log: what administrators do, and who was denied something.

use crate::client::{ask, get, post};
use crate::users::access::{PASSWORD, add_user, basic, command, grant, start_with};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt as _;

const UPDATE: &str = "Content-Type: application/sparql-update";

#[tokio::test(flavor = "multi_thread")]
async fn acts_and_denied_requests_are_lines_without_secrets() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("audit.jsonl");
    let commands = [
        add_user("root", true),
        add_user("ann", false),
        grant(json!({"user": "ann"}), "read", json!("default_graph")),
    ];
    let server = start_with(&commands, |options| {
        options.service.audit_log = Some(path.clone());
    })
    .await;
    let lines = || -> Vec<Value> {
        let text = std::fs::read_to_string(&path).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    };
    let (address, root, ann) = (
        server.address,
        basic("root", PASSWORD),
        basic("ann", PASSWORD),
    );
    assert_eq!(ask(address, "ASK {}", &[&ann]).await.status, 200);
    assert_eq!(lines(), Vec::<Value>::new());

    let secret = "a secret password";
    let bob = json!({"do": "add_user", "user": "bob", "password": {"given": secret}});
    assert_eq!(command(&server, &root, &bob).await.status, 200);
    // It is there as soon as the answer is.
    let acts = lines();
    let [act] = acts.as_slice() else {
        panic!("{acts:?}");
    };
    assert_eq!(
        (&act["event"], &act["act"]),
        (&json!("act"), &json!("add user bob"))
    );
    assert_eq!(
        (&act["user"], &act["outcome"]),
        (&json!("root"), &json!("done"))
    );
    assert_eq!(act["client"], "127.0.0.1");
    assert!(act["commit"].as_u64().unwrap() > 0);

    assert_eq!(command(&server, &root, &bob).await.status, 422);
    let mine = json!({"do": "grant", "to": "anyone", "right": "read", "on": "all_graphs"});
    assert_eq!(command(&server, &ann, &mine).await.status, 403);
    assert_eq!(
        get(address, "/sparql?query=ASK%20%7B%7D", &[]).await.status,
        401
    );
    let change = post(address, "/sparql", &[&ann, UPDATE], b"CLEAR ALL").await;
    assert_eq!(change.status, 403);
    assert_eq!(ask(address, "ASK {", &[&ann]).await.status, 400);
    let lines = lines();
    let told: Vec<[String; 3]> = lines[1..]
        .iter()
        .map(|line| {
            let text = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
            let rest = match line["event"].as_str() {
                Some("act") => text("outcome"),
                _ => format!("{} {} {}", text("method"), text("path"), line["status"]),
            };
            [text("event"), text("user"), rest]
        })
        .collect();
    let told: Vec<[&str; 3]> = told
        .iter()
        .map(|line| line.each_ref().map(String::as_str))
        .collect();
    assert_eq!(
        told,
        [
            [
                "act",
                "root",
                "`bob` is there already; users and groups share their names"
            ],
            [
                "act",
                "ann",
                "`ann` may not grant read on all graphs to anyone"
            ],
            ["denied", "ann", "POST /admin/access 403"],
            ["denied", "", "GET /sparql 401"],
            ["denied", "ann", "POST /sparql 403"],
        ]
    );
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(!text.contains(secret) && !text.contains("ASK"), "{text}");
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}
