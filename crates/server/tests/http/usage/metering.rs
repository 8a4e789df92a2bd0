//! How much who asks may use: over it, requests are refused or end early, and say so.

use crate::client::{Answer, ask, encode, get, post, query_path};
use crate::fixture::{ENDLESS_ROWS, ENDLESS_WORK, TestServer};
use crate::users::access::{PASSWORD, add_user, basic, command, grant, start, start_with};
use orrery_server::QueryLogOptions;
use serde_json::{Value, json};
use std::time::Duration;

const JSON: &str = "Accept: application/sparql-results+json";
const XML: &str = "Accept: application/sparql-results+xml";
const CSV: &str = "Accept: text/csv";
const TRIPLES: &str = "Accept: application/n-triples";
const UPDATE: &str = "Content-Type: application/sparql-update";
const SQL: &str = "Content-Type: application/sql";
const POINT: &str = "SELECT * { <http://example.com/s7> ?p ?o }";
const NUMBERS: &str = "SELECT * { ?s <http://example.com/number> ?o }";
const TRIPLES_QUERY: &str = "CONSTRUCT { ?s ?s ?o } WHERE { ?s <http://example.com/number> ?o }";

pub(crate) fn limit(of: Value, limits: Value) -> Value {
    json!({ "do": "set_limits", "of": of, "limits": limits })
}

/// A server where `root` administers, `ann` reads and changes the default graph and has limits, and
/// everybody else reads it.
pub(crate) async fn server(limits: Value) -> TestServer {
    start(&[
        add_user("root", true),
        add_user("ann", false),
        grant(json!("anyone"), "read", json!("default_graph")),
        grant(json!({"user": "ann"}), "write", json!("default_graph")),
        limit(json!({"user": "ann"}), limits),
    ])
    .await
}

pub(crate) fn ann() -> String {
    basic("ann", PASSWORD)
}

fn partial(query: &str) -> String {
    format!("{}&partial=true", query_path(query))
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_say_what_they_cost_where_there_are_users() {
    let server = server(json!({"concurrent": 100})).await;
    let mut costs = Vec::new();
    for who in [ann(), basic("root", PASSWORD), "X-Nobody: 1".to_owned()] {
        for _ in 0..2 {
            let answer = ask(server.address, POINT, &[&who]).await;
            assert_eq!(answer.status, 200, "{}", answer.text());
            costs.push(answer.header("Orrery-Cost").unwrap().to_owned());
        }
    }
    costs.dedup();
    let [cost] = costs.as_slice() else {
        panic!("{costs:?}");
    };
    let cost: u64 = cost.parse().unwrap();
    assert!((6..50).contains(&cost), "{cost}");
    let free = TestServer::start().await;
    let answer = ask(free.address, POINT, &[]).await;
    assert_eq!((answer.status, answer.header("Orrery-Cost")), (200, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_ends_a_query_and_refuses_the_next() {
    let budget = |touches: u64| json!({"cost": {"touches": touches, "seconds": 3_600}});
    let server = server(budget(50_000)).await;
    let (address, root) = (server.address, basic("root", PASSWORD));
    assert_eq!(ask(address, POINT, &[&ann()]).await.status, 200);
    for query in [ENDLESS_WORK, POINT] {
        let answer = ask(address, query, &[&ann()]).await;
        assert_eq!(answer.status, 429, "{}", answer.text());
        let wait: u64 = answer.header("Retry-After").unwrap().parse().unwrap();
        assert!((1..7_200_000).contains(&wait), "{wait}");
        assert!(answer.text().contains("50000 touches"), "{}", answer.text());
    }
    // What changes data, SQL and documents pay as well.
    let change = post(address, "/sparql", &[&ann(), UPDATE], b"CLEAR DEFAULT").await;
    assert_eq!(change.status, 429, "{}", change.text());
    let read = get(address, "/graphs?default", &[&ann()]).await;
    assert_eq!(read.status, 429);
    let answer = ask(address, NUMBERS, &[&root, CSV]).await;
    assert_eq!(answer.text().lines().count(), 1_001);
    // A larger budget holds at once.
    let larger = limit(json!({"user": "ann"}), budget(u64::from(u32::MAX) * 1_000));
    let done = command(&server, &root, &larger).await;
    assert_eq!(done.status, 200, "{}", done.text());
    assert_eq!(ask(address, POINT, &[&ann()]).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_and_keys_pay() {
    let cost = json!({"cost": {"touches": 100, "seconds": 86_400}});
    let server = server(cost).await;
    let (address, root) = (server.address, basic("root", PASSWORD));
    let quads: String = (0..200).map(|n| format!("<x:s> <x:p> {n} .")).collect();
    let some = "INSERT DATA { <x:s> <x:p> 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 }";
    let change = post(address, "/sparql", &[&ann(), UPDATE], some.as_bytes()).await;
    assert_eq!(change.status, 200, "{}", change.text());
    // One that costs more than there is is not made, and leaves nothing.
    let insert = format!("INSERT DATA {{ {quads} }}");
    let change = post(address, "/sparql", &[&ann(), UPDATE], insert.as_bytes()).await;
    assert_eq!(change.status, 429, "{}", change.text());
    let count = "SELECT ?o { <x:s> <x:p> ?o }";
    let answer = ask(address, count, &[&root, CSV]).await;
    assert_eq!(answer.text().lines().count(), 11);
    let again = post(address, "/sparql", &[&ann(), UPDATE], insert.as_bytes()).await;
    assert_eq!(again.status, 429, "{}", again.text());

    let add_key = json!({"do": "add_key", "user": "root"});
    let given: Value =
        serde_json::from_slice(&command(&server, &root, &add_key).await.body).unwrap();
    let key = given["key"].as_str().unwrap();
    let id = key.split('_').nth(1).unwrap();
    let bearer = format!("Authorization: Bearer {key}");
    assert_eq!(ask(address, NUMBERS, &[&bearer]).await.status, 200);
    let of_key = limit(json!({"key": id}), json!({"rows": 5}));
    assert_eq!(command(&server, &root, &of_key).await.status, 200);
    assert_eq!(ask(address, NUMBERS, &[&bearer]).await.status, 429);
    assert_eq!(ask(address, NUMBERS, &[&root]).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_has_as_many_rows_as_it_may_or_says_that_it_is_a_part() {
    let server = server(json!({"rows": 10})).await;
    let address = server.address;
    for (query, format) in [(NUMBERS, JSON), (NUMBERS, CSV), (TRIPLES_QUERY, TRIPLES)] {
        let refused = ask(address, query, &[&ann(), format]).await;
        assert_eq!(refused.status, 429, "{}", refused.text());
        assert_eq!(refused.header("Retry-After"), None);
        assert!(refused.text().contains("10 rows"), "{}", refused.text());
    }
    let whole = format!("{NUMBERS} LIMIT 10");
    let whole = get(address, &partial(&whole), &[&ann(), CSV]).await;
    assert_eq!((whole.status, whole.text().lines().count()), (200, 11));
    assert_eq!(whole.header("Orrery-Partial"), None);
    assert!(whole.header("ETag").is_some());

    let part = |query, format| {
        let path = partial(query);
        async move {
            let answer = get(address, &path, &[&ann(), format]).await;
            assert_eq!(answer.status, 200, "{}", answer.text());
            let why = answer.header("Orrery-Partial").unwrap();
            assert!(why.contains("10 rows"), "{why}");
            assert_eq!(answer.header("ETag"), None);
            answer.text().to_owned()
        }
    };
    assert_eq!(part(NUMBERS, CSV).await.lines().count(), 11);
    let json: Value = serde_json::from_str(&part(NUMBERS, JSON).await).unwrap();
    assert_eq!(json["results"]["bindings"].as_array().unwrap().len(), 10);
    assert!(json["partial"].as_str().unwrap().contains("10 rows"));
    let xml = part(NUMBERS, XML).await;
    assert_eq!(xml.matches("<result>").count(), 10);
    assert!(xml.contains("</sparql><!-- partial: "), "{xml}");
    let triples = part(TRIPLES_QUERY, TRIPLES).await;
    assert_eq!(triples.lines().count(), 11);
    assert!(triples.lines().last().unwrap().starts_with("# partial: "));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_a_budget_ends_says_so_where_its_format_can() {
    let server = server(json!({"cost": {"touches": 200_000, "seconds": 1}})).await;
    let address = server.address;
    let json = get(address, &partial(ENDLESS_ROWS), &[&ann(), JSON]).await;
    assert!(json.status == 200 && json.is_complete);
    let json: Value = serde_json::from_slice(&json.body).unwrap();
    assert!(!json["results"]["bindings"].as_array().unwrap().is_empty());
    assert!(json["partial"].as_str().unwrap().contains("200000 touches"));
    // It has no place for that, and without a word it would be taken for the whole.
    let wait = Duration::from_secs(3);
    tokio::time::sleep(wait).await;
    let csv = get(address, &partial(ENDLESS_ROWS), &[&ann(), CSV]).await;
    assert!(!csv.is_complete || csv.status == 429, "{}", csv.status);
    tokio::time::sleep(wait).await;
    let json = get(address, &query_path(ENDLESS_ROWS), &[&ann(), JSON]).await;
    assert!(!json.is_complete || json.status == 429, "{}", json.status);
}

#[tokio::test(flavor = "multi_thread")]
async fn as_many_requests_run_as_may_from_each_address_and_of_each_user() {
    let server = server(json!({"concurrent": 1, "time_ms": 60_000})).await;
    let (address, root) = (server.address, basic("root", PASSWORD));
    let of_anyone = limit(json!("anyone"), json!({"concurrent": 2}));
    assert_eq!(command(&server, &root, &of_anyone).await.status, 200);
    let run = |who: String| {
        tokio::spawn(async move {
            // The short questions beside it may have its place for a moment.
            while ask(address, ENDLESS_WORK, &[&who, CSV]).await.status == 429 {}
        })
    };
    let nobody = || "X-Nobody: 1".to_owned();
    let running = run(ann());
    let refused = until(&server, &ann(), 429).await;
    assert_eq!(refused.header("Retry-After"), Some("1"));
    // Others are not concerned.
    let statement = post(address, "/sql", &[&root, SQL], b"select 1").await;
    assert_eq!(statement.status, 200, "{}", statement.text());
    assert_eq!(ask(address, POINT, &[&nobody()]).await.status, 200);
    let others = [run(nobody()), run(nobody())];
    until(&server, &nobody(), 429).await;
    assert_eq!(ask(address, POINT, &[&root]).await.status, 200);
    running.abort();
    others.iter().for_each(tokio::task::JoinHandle::abort);
    until(&server, &ann(), 200).await;
    until(&server, &nobody(), 200).await;
}

/// Asks until the answer has a status; fails if that takes too long.
async fn until(server: &TestServer, who: &str, status: u16) -> Answer {
    let asked = async {
        loop {
            let answer = ask(server.address, POINT, &[who]).await;
            if answer.status == status {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let asked = tokio::time::timeout(Duration::from_secs(20), asked).await;
    asked.unwrap_or_else(|_| panic!("never {status}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn time_and_bytes_have_bounds_of_their_own() {
    let server = server(json!({"time_ms": 200, "bytes": 5_000})).await;
    let address = server.address;
    let slow = ask(address, ENDLESS_WORK, &[&ann()]).await;
    assert_eq!(slow.status, 503, "{}", slow.text());
    assert!(slow.text().contains("0.2 s"), "{}", slow.text());
    let asked = format!("{}&timeout=30", query_path(ENDLESS_WORK));
    assert_eq!(get(address, &asked, &[&ann()]).await.status, 503);
    let long = ask(address, NUMBERS, &[&ann(), JSON]).await;
    assert_eq!(long.status, 429, "{}", long.text());
    assert!(
        long.text().contains("5000 bytes") || long.text().contains("KiB"),
        "{}",
        long.text()
    );
    assert_eq!(ask(address, POINT, &[&ann()]).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn administrators_read_what_each_user_used() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("log");
    let commands = [
        add_user("root", true),
        add_user("ann", false),
        grant(json!({"user": "ann"}), "read", json!("default_graph")),
        limit(json!({"user": "ann"}), json!({"rows": 100})),
    ];
    let server = start_with(&commands, |options| {
        options.service.query_log = Some(QueryLogOptions::new(log));
    })
    .await;
    let (address, root) = (server.address, basic("root", PASSWORD));
    let mut touches = 0;
    for _ in 0..3 {
        let answer = ask(address, POINT, &[&ann()]).await;
        touches += answer
            .header("Orrery-Cost")
            .unwrap()
            .parse::<u64>()
            .unwrap();
    }
    assert_eq!(ask(address, NUMBERS, &[&ann()]).await.status, 429);
    assert_eq!(ask(address, NUMBERS, &[&root]).await.status, 200);
    // Who leaves pays for what was done.
    let who = ann();
    let left = tokio::spawn(async move { ask(address, ENDLESS_WORK, &[&who]).await });
    tokio::time::sleep(Duration::from_millis(500)).await;
    left.abort();

    let admin = server.admin.unwrap();
    assert_eq!(get(admin, "/admin/usage", &[&ann()]).await.status, 403);
    assert_eq!(get(admin, "/admin/usage", &[]).await.status, 401);
    for wrong in ["from=tomorrow", "format=xml", "day=1"] {
        let path = format!("/admin/usage?{wrong}");
        assert_eq!(get(admin, &path, &[&root]).await.status, 400, "{wrong}");
    }
    assert_eq!(get(address, "/admin/usage", &[&root]).await.status, 404);
    // The log gathers entries for a moment.
    let of_ann = async {
        loop {
            let answer = get(admin, "/admin/usage?from=2026-01-01", &[&root]).await;
            assert_eq!(answer.status, 200, "{}", answer.text());
            let bill: Value = serde_json::from_slice(&answer.body).unwrap();
            let lines = bill["lines"].as_array().unwrap().clone();
            let of = |user: &str| lines.iter().find(|line| line["user"] == user).cloned();
            match (of("ann"), of("root")) {
                (Some(ann), Some(_)) if ann["requests"] == 5 => return ann,
                _ => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    };
    let ann = tokio::time::timeout(Duration::from_secs(20), of_ann).await;
    let ann = ann.expect("a line of ann");
    assert_eq!(ann["failed"], 2);
    assert!(ann["touches"].as_u64().unwrap() > touches + 1_000, "{ann}");
    let csv = get(admin, "/admin/usage?format=csv", &[&root]).await;
    assert!(csv.header("Content-Type").unwrap().starts_with("text/csv"));
    assert!(
        csv.text().starts_with("day,user,requests,"),
        "{}",
        csv.text()
    );
    let none = get(admin, "/admin/usage?to=2020-01-01", &[&root]).await;
    assert_eq!(none.status, 200);
    let none: Value = serde_json::from_slice(&none.body).unwrap();
    assert_eq!(none["lines"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_parameters_and_limits_are_refused() {
    let server = server(json!({"rows": 10})).await;
    let (address, root) = (server.address, basic("root", PASSWORD));
    let path = format!("{}&partial=maybe", query_path(POINT));
    let answer = get(address, &path, &[&ann()]).await;
    assert_eq!(answer.status, 400, "{}", answer.text());
    let form = format!("update={}&partial=true", encode("CLEAR DEFAULT"));
    let form_type = "Content-Type: application/x-www-form-urlencoded";
    let answer = post(address, "/sparql", &[&ann(), form_type], form.as_bytes()).await;
    assert_eq!(answer.status, 400, "{}", answer.text());
    for (of, limits, status) in [
        (json!({"user": "nobody"}), json!({"rows": 1}), 422),
        (json!({"user": "ann"}), json!({"rows": 0}), 400),
        (json!({"user": "ann"}), json!({}), 400),
        (json!({"user": "ann"}), json!({"columns": 1}), 400),
        (json!("everybody"), json!({"rows": 1}), 400),
    ] {
        let answer = command(&server, &root, &limit(of, limits)).await;
        assert_eq!(answer.status, status, "{}", answer.text());
    }
    let own = limit(json!({"user": "ann"}), json!({"rows": 1_000}));
    assert_eq!(command(&server, &ann(), &own).await.status, 403);
    let gone = json!({"do": "remove_limits", "of": {"user": "ann"}});
    assert_eq!(command(&server, &root, &gone).await.status, 200);
    assert_eq!(command(&server, &root, &gone).await.status, 422);
    assert_eq!(ask(address, NUMBERS, &[&ann()]).await.status, 200);
}
