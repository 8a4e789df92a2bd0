//! Rules about graphs that queries find: data says who may read it.

use crate::client::{Answer, ask, get, post, query_path};
use crate::fixture::TestServer;
use crate::users::access::{
    CSV, OBJECTS, PASSWORD, add_user, basic, command, grant, start, start_with,
};
use crate::users::postgres_users::{any_port, connected, table, value};
use orrery_postgres::PostgresOptions;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::Notify;

/// Far from what a busy machine needs.
const PATIENCE: Duration = Duration::from_secs(60);
const UPDATE: &str = "Content-Type: application/sparql-update";
const LISTED: &str = "SELECT ?g { GRAPH <http://example.com/lists> { ?g <x:attendee> ?user } }";
const ANN_COMES: &str = "<http://example.com/g1> <x:attendee> <https://ann.example/#me>";

/// `ann` has an identity, `bob` a name alone.
fn users() -> Vec<Value> {
    let ann = json!({
        "do": "add_user", "user": "ann", "password": {"given": PASSWORD}, "identities": ["https://ann.example/#me"],
    });
    vec![add_user("root", true), ann, add_user("bob", false)]
}

fn listed(to: Value, right: &str) -> Value {
    grant(to, right, json!({ "graphs_of": LISTED }))
}

async fn update(server: &TestServer, who: &str, text: &str) -> Answer {
    let who = basic(who, PASSWORD);
    post(server.address, "/sparql", &[&who, UPDATE], text.as_bytes()).await
}

/// An update of the administrator.
async fn done(server: &TestServer, text: &str) -> u64 {
    let answer = update(server, "root", text).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let answer: Value = serde_json::from_str(answer.text()).unwrap();
    answer["commit"].as_u64().unwrap()
}

async fn seen(server: &TestServer, who: &str) -> String {
    let answer = ask(server.address, OBJECTS, &[&basic(who, PASSWORD), CSV]).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.text().replace("\r\n", " ")
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_in_a_list_sees_the_graph_and_not_the_list() {
    let mut commands = users();
    commands.push(listed(json!("authenticated"), "read"));
    let server = start(&commands).await;
    let lists = |what: &str, list: &str| {
        format!("{what} DATA {{ GRAPH <http://example.com/lists> {{ {list} }} }}")
    };
    for name in ["ann", "bob"] {
        assert_eq!(seen(&server, name).await, "g,o ");
    }
    let bob_comes = "<http://example.com/g2> <x:attendee> \"bob\"";
    let both = done(
        &server,
        &lists("INSERT", &format!("{ANN_COMES} . {bob_comes}")),
    )
    .await;
    // The next question knows.
    assert_eq!(seen(&server, "ann").await, "g,o http://example.com/g1,g1 ");
    assert_eq!(seen(&server, "bob").await, "g,o http://example.com/g2,g2 ");
    let (address, ann) = (server.address, basic("ann", PASSWORD));
    for (graph, status) in [("g1", 200), ("g2", 404), ("lists", 404)] {
        let path = format!("/graphs?graph=http%3A%2F%2Fexample.com%2F{graph}");
        assert_eq!(get(address, &path, &[&ann]).await.status, status, "{graph}");
    }
    assert_eq!(ask(address, OBJECTS, &[]).await.status, 401);
    // Rights to read are none to write.
    let insertion = "INSERT DATA { GRAPH <http://example.com/g1> { <x:s> <x:p> 1 } }";
    assert_eq!(update(&server, "ann", insertion).await.status, 403);

    done(&server, &lists("DELETE", ANN_COMES)).await;
    assert_eq!(seen(&server, "ann").await, "g,o ");
    assert_eq!(seen(&server, "bob").await, "g,o http://example.com/g2,g2 ");
    // Old states are read by what holds now.
    let old = format!("{}&at={both}", query_path(OBJECTS));
    let answer = get(address, &old, &[&ann, CSV]).await;
    assert_eq!((answer.status, answer.text()), (200, "g,o\r\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_of_joins_stay_known_while_commits_change_nothing_of_what_is_found() {
    let mut commands = users();
    commands.push(listed(json!("authenticated"), "read"));
    let server = start(&commands).await;
    let list =
        |user: &str| format!("INSERT DATA {{ GRAPH <http://example.com/lists> {{ {user} }} }}");
    let (ann, root) = (basic("ann", PASSWORD), basic("root", PASSWORD));
    // A query of another shape each time, so that no plan is kept; the join is the same.
    let orders = async |name: u32| {
        let query = format!("SELECT ?v{name} {{ GRAPH ?v{name} {{ ?s ?p ?o . ?s ?q ?r }} }}");
        assert_eq!(ask(server.address, &query, &[&ann]).await.status, 200);
        let page = get(server.address, "/metrics", &[&root]).await;
        let mut lines = page.text().lines();
        let entries = "orrery_cache_entries{cache=\"join_orders\"} ";
        let kept = lines.find_map(|line| line.strip_prefix(entries));
        kept.unwrap().parse::<u64>().unwrap()
    };
    done(&server, &list(ANN_COMES)).await;
    let known = orders(0).await;
    assert!(known > 0);
    for number in 1..5 {
        let elsewhere = format!("INSERT DATA {{ <x:s> <x:p> {number} }}");
        done(&server, &elsewhere).await;
        assert_eq!(orders(number).await, known, "after commit {number}");
    }
    // Another list of graphs is another key.
    done(&server, &list(&ANN_COMES.replace("g1", "g2"))).await;
    assert!(orders(5).await > known);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_in_a_list_writes_where_the_rule_says_so() {
    let mut commands = users();
    commands.push(listed(json!({"user": "ann"}), "write"));
    let server = start(&commands).await;
    let come = format!("INSERT DATA {{ GRAPH <http://example.com/lists> {{ {ANN_COMES} }} }}");
    let insertion = |graph: &str| {
        format!("INSERT DATA {{ GRAPH <http://example.com/{graph}> {{ <x:s> <x:p> \"new\" }} }}")
    };
    assert_eq!(update(&server, "ann", &insertion("g1")).await.status, 403);
    let came = done(&server, &come).await;
    assert_eq!(update(&server, "ann", &insertion("g1")).await.status, 200);
    for graph in ["g2", "lists"] {
        assert_eq!(update(&server, "ann", &insertion(graph)).await.status, 403);
    }
    assert_eq!(
        seen(&server, "ann").await,
        "g,o http://example.com/g1,g1 http://example.com/g1,new "
    );
    // What it may see changes with each commit: nobody looks at each.
    let path = format!("/changes?since={came}&format=patch");
    let ann = basic("ann", PASSWORD);
    let changes = get(server.address, &path, &[&ann]).await;
    assert_eq!(changes.status, 200, "{}", changes.text());
    let followed = get(server.address, &format!("{path}&follow=true"), &[&ann]).await;
    assert_eq!(followed.status, 403, "{}", followed.text());
}

/// Somebody who asks beside the commits of a test, and tells of each answer that has the right.
#[derive(Default)]
struct Beside {
    has_right: Notify,
    is_over: AtomicBool,
}

impl Beside {
    fn goes_on(&self) -> bool {
        !self.is_over.load(Ordering::Relaxed)
    }

    /// Until there is such an answer; without one the test would show nothing.
    async fn wait_for_right(&self) {
        let told = tokio::time::timeout(PATIENCE, self.has_right.notified());
        told.await.expect("it never got what it may");
    }

    fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// Reads again and again, while each commit that takes the reader's right also inserts a secret: no
/// answer has the secret. `may` is in the answers that were read with the right.
async fn sees_one_state<F>(ask: impl Fn(Arc<TestServer>) -> F + Send + 'static, may: &'static str)
where
    F: Future<Output = String> + Send,
{
    let mut commands = users();
    commands.push(listed(json!({"user": "ann"}), "read"));
    let server = Arc::new(start(&commands).await);
    let secret = "GRAPH <http://example.com/g1> { <x:s> <x:p> \"secret\" }";
    let list = format!("GRAPH <http://example.com/lists> {{ {ANN_COMES} }}");
    let beside = Arc::new(Beside::default());
    let reader = {
        let (server, beside) = (Arc::clone(&server), Arc::clone(&beside));
        tokio::spawn(async move {
            while beside.goes_on() {
                let seen = ask(Arc::clone(&server)).await;
                assert!(!seen.contains("secret"), "{seen}");
                if seen.contains(may) {
                    beside.has_right.notify_one();
                }
            }
        })
    };
    for round in 0..150 {
        done(
            &server,
            &format!("DELETE DATA {{ {secret} }} ; INSERT DATA {{ {list} }}"),
        )
        .await;
        if round == 0 {
            beside.wait_for_right().await;
        }
        done(
            &server,
            &format!("DELETE DATA {{ {list} }} ; INSERT DATA {{ {secret} }}"),
        )
        .await;
    }
    beside.end();
    reader.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_and_data_are_of_one_state() {
    sees_one_state(|server| async move { seen(&server, "ann").await }, "g1,g1").await;
}

/// Objects in graphs, by SQL.
async fn seen_by_sql(server: &TestServer, who: &str) -> String {
    let statement = "SELECT * FROM sparql('SELECT ?o { GRAPH ?g { ?s ?p ?o } }') ORDER BY 1";
    let headers = [&basic(who, PASSWORD), CSV, "Content-Type: application/sql"];
    let answer = post(server.address, "/sql", &headers, statement.as_bytes()).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.text().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_and_what_sql_reads_are_of_one_state() {
    sees_one_state(
        |server| async move { seen_by_sql(&server, "ann").await },
        "g1",
    )
    .await;
}

/// A right that a commit has taken permits no change after that commit, even if the request came
/// before.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_goes_by_the_rules_of_the_state_that_it_changes() {
    const WRITERS: usize = 4;
    let mut commands = users();
    commands.push(listed(json!({"user": "ann"}), "write"));
    let server = Arc::new(start(&commands).await);
    let list = format!("GRAPH <http://example.com/lists> {{ {ANN_COMES} }}");
    let beside = Arc::new(Beside::default());
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let (server, beside) = (Arc::clone(&server), Arc::clone(&beside));
            tokio::spawn(async move {
                let mut number = 0;
                while beside.goes_on() {
                    number += 1;
                    let object = format!("\"{writer}-{number}\"");
                    let text = format!(
                        "INSERT DATA {{ GRAPH <http://example.com/g1> {{ <x:s> <x:p> {object} }} }}"
                    );
                    let status = update(&server, "ann", &text).await.status;
                    assert!([200, 403].contains(&status), "{status}");
                    if status == 200 {
                        beside.has_right.notify_one();
                    }
                }
            })
        })
        .collect();
    for round in 0..60 {
        done(&server, &format!("INSERT DATA {{ {list} }}")).await;
        match round {
            0 => beside.wait_for_right().await,
            _ => drop(seen(&server, "root").await),
        }
        // What was written until then is counted in the commit that takes the right.
        let taken = format!(
            "DELETE DATA {{ {list} }} ; DELETE {{ <x:count> <x:is> ?old }} INSERT {{ <x:count> <x:is> ?n }} WHERE {{ {{ SELECT (COUNT(*) AS ?n) {{ GRAPH <http://example.com/g1> {{ ?s ?p ?o }} }} }} OPTIONAL {{ <x:count> <x:is> ?old }} }}"
        );
        done(&server, &taken).await;
        for _ in 0..3 {
            let same = "ASK { { SELECT (COUNT(*) AS ?n) { GRAPH <http://example.com/g1> { ?s ?p ?o } } } <x:count> <x:is> ?n }";
            let answer = ask(server.address, same, &[&basic("root", PASSWORD), CSV]).await;
            assert!(answer.text().contains("true"), "{}", answer.text());
        }
    }
    beside.end();
    for writer in writers {
        writer.await.unwrap();
    }
}

/// A server with PostgreSQL's port, and a table that `ann`, who has a rule by query, may change.
async fn start_with_notes() -> TestServer {
    let mut commands = users();
    commands.push(listed(json!({"user": "ann"}), "read"));
    commands.push(grant(json!({"user": "ann"}), "write", table("note")));
    let server = start_with(&commands, |options| {
        options.postgres = Some(PostgresOptions::new(any_port()));
    })
    .await;
    let headers = [&basic("root", PASSWORD), "Content-Type: application/sql"];
    let made = post(
        server.address,
        "/sql",
        &headers,
        b"create table note (o text)",
    );
    let made = made.await;
    assert_eq!(made.status, 200, "{}", made.text());
    server
}

/// A change that waited for a commit which takes its right and inserts a secret does not read the
/// secret.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_at_postgresqls_port_reads_what_the_rules_of_the_state_that_it_changes_allow() {
    const CLIENTS: usize = 3;
    let server = start_with_notes().await;
    let secret = "GRAPH <http://example.com/g1> { <x:s> <x:p> \"secret\" }";
    let list = format!("GRAPH <http://example.com/lists> {{ {ANN_COMES} }}");
    let is_over = Arc::new(AtomicBool::new(false));
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        let (ann, is_over) = (connected(&server, "ann").await, Arc::clone(&is_over));
        clients.push(tokio::spawn(async move {
            let takes = "insert into note select o from sparql('SELECT ?o { GRAPH <http://example.com/g1> { ?s ?p ?o } }', 'o text')";
            while !is_over.load(Ordering::Relaxed) {
                ann.simple_query(takes).await.unwrap();
            }
        }));
    }
    for _ in 0..60 {
        done(
            &server,
            &format!("DELETE DATA {{ {secret} }} ; INSERT DATA {{ {list} }}"),
        )
        .await;
        done(
            &server,
            &format!("DELETE DATA {{ {list} }} ; INSERT DATA {{ {secret} }}"),
        )
        .await;
    }
    is_over.store(true, Ordering::Relaxed);
    for client in clients {
        client.await.unwrap();
    }
    let root = connected(&server, "root").await;
    let told = "select string_agg(distinct o, ',') from note";
    assert_eq!(value(&root, told).await, "g1");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_nothing_at_postgresqls_port_keeps_no_state() {
    let server = start_with_notes().await;
    let ann = connected(&server, "ann").await;
    assert_eq!(value(&ann, "select count(*) from note").await, "0");
    let prepared = ann.prepare("select count(*) from note").await.unwrap();
    ann.query_one(&prepared, &[]).await.unwrap();
    let list = format!("GRAPH <http://example.com/lists> {{ {ANN_COMES} }}");
    done(&server, &format!("INSERT DATA {{ {list} }}")).await;
    let root = basic("root", PASSWORD);
    let no_state_is_held = async {
        loop {
            let page = get(server.address, "/metrics", &[&root]).await;
            if page
                .text()
                .contains("\norrery_oldest_snapshot_age_seconds 0\n")
            {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    // Requests before it let go of theirs a moment after they are answered.
    let ended = tokio::time::timeout(Duration::from_secs(20), no_state_is_held).await;
    ended.expect("an old state is held");
    drop(ann);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_that_fails_allows_nothing_and_is_in_the_audit_log() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("audit.jsonl");
    let asks = "SELECT ?g { GRAPH ?g { ?s ?p ?o } SERVICE <http://127.0.0.1:9/> { ?g ?q ?user } }";
    let mut commands = users();
    commands.extend([
        grant(json!({"user": "ann"}), "read", json!({ "graphs_of": asks })),
        grant(
            json!({"user": "ann"}),
            "read",
            json!({ "graph": "http://example.com/g2" }),
        ),
    ]);
    let server = start_with(&commands, |options| {
        options.service.audit_log = Some(path.clone());
    })
    .await;
    // What other rules say holds.
    assert_eq!(seen(&server, "ann").await, "g,o http://example.com/g2,g2 ");
    let text = std::fs::read_to_string(&path).unwrap();
    let line: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!(line["event"], "rule_failed", "{line}");
    assert_eq!(line["user"], "ann");
    assert_eq!(line["query"], asks);
    assert!(!line["why"].as_str().unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_that_can_be_no_rule_are_refused() {
    let server = start(&users()).await;
    let root = basic("root", PASSWORD);
    for (right, query, why) in [
        ("read", "SELECT ?g {", "line 1, column 12"),
        ("read", "ASK {}", "a SELECT"),
        ("read", "SELECT * { GRAPH ?g { ?s ?p ?o } }", "one variable"),
        ("administer", LISTED, "not administered"),
    ] {
        let rule = grant(json!("anyone"), right, json!({ "graphs_of": query }));
        let answer = command(&server, &root, &rule).await;
        assert_eq!(answer.status, 400, "{}", answer.text());
        assert!(answer.text().contains(why), "{query}: {}", answer.text());
    }
}
