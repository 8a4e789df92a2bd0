//! The cost of updates, SQL statements and memory for the asker, and the asker's address behind a
//! proxy.

use crate::client::{Answer, ask, get, post, send};
use crate::fixture::TestServer;
use crate::usage::metering::{ann, limit, server};
use crate::users::access::{PASSWORD, add_user, basic, command, grant, start_with};
use orrery_server::{QueryLogOptions, ServerOptions, TrustedProxies};
use serde_json::{Value, json};
use std::time::Duration;

const JSON: &str = "Accept: application/sparql-results+json";
const CSV: &str = "Accept: text/csv";
const UPDATE: &str = "Content-Type: application/sparql-update";
const SQL: &str = "Content-Type: application/sql";
const POINT: &str = "SELECT * { <http://example.com/s7> ?p ?o }";
const NUMBERS: &str = "SELECT * { ?s <http://example.com/number> ?o }";

/// The same user, who may read and change all tables, too.
async fn with_tables(limits: Value, change: impl FnOnce(&mut ServerOptions)) -> TestServer {
    let commands = [
        add_user("root", true),
        add_user("ann", false),
        grant(json!("anyone"), "read", json!("default_graph")),
        grant(json!({"user": "ann"}), "write", json!("default_graph")),
        grant(json!({"user": "ann"}), "write", json!("all_tables")),
        limit(json!({"user": "ann"}), limits),
    ];
    let server = start_with(&commands, change).await;
    let root = basic("root", PASSWORD);
    let statements = "create table item (id int primary key, price int, name text);
        insert into item select n, n * 13 % 1000, 'item ' || n from generate_series(1, 50000) as s(n)";
    let made = sql(&server, &root, "", statements).await;
    assert_eq!(made.status, 200, "{}", made.text());
    server
}

async fn sql(server: &TestServer, who: &str, parameters: &str, text: &str) -> Answer {
    let path = format!("/sql?{parameters}");
    post(server.address, &path, &[who, SQL], text.as_bytes()).await
}

async fn update(server: &TestServer, who: &str, text: &str) -> Answer {
    post(server.address, "/sparql", &[who, UPDATE], text.as_bytes()).await
}

fn cost(answer: &Answer) -> u64 {
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.header("Orrery-Cost").unwrap().parse().unwrap()
}

const JOIN: &str = "DELETE { ?s <x:p> ?n } INSERT { ?s <x:p> ?m } WHERE { ?s <http://example.com/number> ?n . ?t <http://example.com/number> ?m FILTER(?n + ?m < 0) }";

#[tokio::test(flavor = "multi_thread")]
async fn what_updates_read_is_paid_for_and_ends_them() {
    let budget = |touches: u64| json!({"cost": {"touches": touches, "seconds": 86_400}});
    let server = server(budget(30_000_000)).await;
    let (address, root) = (server.address, basic("root", PASSWORD));
    // Nothing changes, and a million pairs are looked at; the same each time.
    let costs = [
        cost(&update(&server, &ann(), JOIN).await),
        cost(&update(&server, &ann(), JOIN).await),
    ];
    assert_eq!(costs[0], costs[1]);
    assert!(costs[0] > 1_000_000, "{costs:?}");
    // Reads a thousand, removes a thousand, adds a thousand.
    let moved = "DELETE { ?s <http://example.com/number> ?n } INSERT { ?s <x:n> ?n } WHERE { ?s <http://example.com/number> ?n }";
    let whole = cost(&update(&server, &ann(), moved).await);
    assert!((3_000..20_000).contains(&whole), "{whole}");
    let other = JOIN.replace("example.com/number", "none");
    let path = "/graphs?default";
    let patch = send(address, "PATCH", path, &[&ann(), UPDATE], other.as_bytes()).await;
    assert!(cost(&patch) < 100);

    // One that would never end is ended, and nothing of it is done.
    let left = costs[0] + costs[1] + whole + 500_000;
    let little = limit(json!({"user": "ann"}), budget(left));
    assert_eq!(command(&server, &root, &little).await.status, 200);
    let endless = "INSERT { <x:a> <x:b> ?i } WHERE { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }";
    let refused = update(&server, &ann(), endless).await;
    assert_eq!(refused.status, 429, "{}", refused.text());
    assert!(refused.text().contains("touches"), "{}", refused.text());
    assert!(refused.header("Retry-After").is_some());
    let larger = limit(json!({"user": "ann"}), budget(40_000_000));
    assert_eq!(command(&server, &root, &larger).await.status, 200);
    let done = ask(address, "ASK { <x:a> <x:b> ?i }", &[&root, JSON]).await;
    assert!(done.text().contains("false"), "{}", done.text());
    // Whoever has nothing left reads nothing either; others write on.
    assert_eq!(
        cost(&update(&server, &root, "INSERT DATA { <x:a> <x:b> 1 }").await),
        1
    );
}

/// How many things have a predicate.
async fn count(server: &TestServer, predicate: &str) -> String {
    let query = format!("SELECT (COUNT(*) AS ?n) {{ ?s <{predicate}> ?o }}");
    let root = basic("root", PASSWORD);
    let answer = ask(server.address, &query, &[&root, CSV]).await;
    answer.text().lines().nth(1).unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_costs_more_than_there_is_is_not_made() {
    let budget = |touches: u64| json!({"cost": {"touches": touches, "seconds": 86_400}});
    let server = server(budget(1_000)).await;
    let root = basic("root", PASSWORD);
    let data = |predicate: &str, count: u32| {
        let quads = (0..count).map(|number| format!("<x:s{number}> <{predicate}> {number} . "));
        quads.collect::<String>()
    };
    assert_eq!(
        cost(
            &update(
                &server,
                &ann(),
                &format!("INSERT DATA {{ {} }}", data("x:few", 300))
            )
            .await
        ),
        300
    );
    let refused = update(
        &server,
        &ann(),
        &format!("INSERT DATA {{ {} }}", data("x:many", 20_000)),
    )
    .await;
    assert_eq!(refused.status, 429, "{}", refused.text());
    assert!(refused.header("Retry-After").is_some());
    assert_eq!(count(&server, "x:many").await, "0");
    // The same by other ways, each with little left.
    let ways: [(&str, &str, &str, String); 6] = [
        (
            "POST",
            "/sparql",
            UPDATE,
            format!("INSERT DATA {{ {} }}", data("x:many", 20_000)),
        ),
        (
            "POST",
            "/sparql",
            UPDATE,
            format!(
                "INSERT DATA {{ <x:a> <x:many> 1 }} ; INSERT DATA {{ {} }}",
                data("x:many", 2_000)
            ),
        ),
        (
            "POST",
            "/sparql",
            UPDATE,
            "INSERT { ?s <x:many> ?n } WHERE { ?s <http://example.com/number> ?n }".to_owned(),
        ),
        (
            "POST",
            "/graphs?default",
            "Content-Type: text/turtle",
            data("x:many", 2_000),
        ),
        (
            "PATCH",
            "/graphs?default",
            UPDATE,
            format!("INSERT DATA {{ {} }}", data("x:many", 2_000)),
        ),
        (
            "POST",
            "/sparql",
            UPDATE,
            "DELETE WHERE { ?s <x:few> ?n }".to_owned(),
        ),
    ];
    for (method, path, kind, body) in ways {
        let name = format!(
            "{method} {path} {}",
            body.chars().take(40).collect::<String>()
        );
        let commands = [
            add_user("root", true),
            add_user("ann", false),
            grant(json!({"user": "ann"}), "write", json!("default_graph")),
            limit(json!({"user": "ann"}), budget(200)),
        ];
        let server = start_with(&commands, |_| {}).await;
        let made = format!("INSERT DATA {{ {} }}", data("x:few", 300));
        assert_eq!(cost(&update(&server, &root, &made).await), 300);
        let refused = send(
            server.address,
            method,
            path,
            &[&ann(), kind],
            body.as_bytes(),
        )
        .await;
        assert_eq!(refused.status, 429, "{name}: {}", refused.text());
        assert_eq!(count(&server, "x:many").await, "0", "{name}");
        assert_eq!(count(&server, "x:few").await, "300", "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_ends_where_nothing_is_left_and_plans_are_paid_for() {
    let budget = |touches: u64| json!({"cost": {"touches": touches, "seconds": 86_400}});
    let server = server(budget(1_000)).await;
    let (address, root) = (server.address, basic("root", PASSWORD));
    let labels = "INSERT { ?s <x:label> ?l } WHERE { ?s <http://example.com/number> ?a . VALUES ?b { 1 2 3 4 5 6 7 8 } BIND(CONCAT(\"red wine \", STR(?a), \" \", STR(?b)) AS ?l) }";
    cost(&update(&server, &root, labels).await);
    let made = post(address, "/text", &[&root], b"").await;
    assert_eq!(made.status, 200, "{}", made.text());
    let search = "SELECT (COUNT(*) AS ?n) { SERVICE text:search { [] text:query \"wine\" ; text:literal ?l } }";
    let path = format!("/explain?query={}", crate::client::encode(POINT));
    let plan = get(address, &path, &[&ann()]).await;
    assert!((1..40).contains(&cost(&plan)), "{}", plan.text());
    let whole = cost(&ask(address, search, &[&root]).await);
    assert!(whole > 8_000, "{whole}");
    // Without any budget left, the search and its plan end, and the next search does not begin.
    let refused = ask(address, search, &[&ann()]).await;
    assert_eq!(refused.status, 429, "{}", refused.text());
    assert!(refused.header("Retry-After").is_some());
    let refused = ask(address, POINT, &[&ann()]).await;
    assert_eq!(refused.status, 429, "{}", refused.text());
    let explained = get(address, &path, &[&ann()]).await;
    assert_eq!(explained.status, 429, "{}", explained.text());
    // The cost of the work until then was taken: a budget of so many more for the day is nearly
    // whole again.
    let more = limit(json!({"user": "ann"}), budget(3_000));
    assert_eq!(command(&server, &root, &more).await.status, 200);
    let path = format!("/explain?query={}", crate::client::encode(search));
    let explained = get(address, &path, &[&ann()]).await;
    assert_eq!(explained.status, 429, "{}", explained.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_of_sql_are_paid_for_and_end_with_the_budget() {
    let budget = |touches: u64| json!({"cost": {"touches": touches, "seconds": 86_400}});
    let server = with_tables(budget(4_000_000), |_| {}).await;
    let root = basic("root", PASSWORD);
    let scan = "select count(*) from item where name like '%99%'";
    let costs = [
        cost(&sql(&server, &ann(), "", scan).await),
        cost(&sql(&server, &root, "", scan).await),
    ];
    assert_eq!(costs[0], costs[1]);
    assert!((50_000..51_000).contains(&costs[0]), "{costs:?}");
    let point = cost(&sql(&server, &ann(), "", "select * from item where id = 7").await);
    assert!((3..20).contains(&point), "{point}");
    let changed = cost(
        &sql(
            &server,
            &ann(),
            "",
            "update item set price = 0 where id <= 1000",
        )
        .await,
    );
    assert!((2_000..8_000).contains(&changed), "{changed}");
    // Graphs within: a thousand solutions, and their terms.
    let graphs = "select count(*) from sparql('SELECT ?n { ?s <http://example.com/number> ?n FILTER(?n >= 0) }') as g(n)";
    let graphs = cost(&sql(&server, &ann(), "", graphs).await);
    assert!((2_000..8_000).contains(&graphs), "{graphs}");

    let endless = "select count(*) from item a, item b where a.price + b.price < 0";
    let refused = sql(&server, &ann(), "", endless).await;
    assert_eq!(refused.status, 429, "{}", refused.text());
    assert!(
        refused.text().contains("4000000 touches"),
        "{}",
        refused.text()
    );
    let refused = sql(&server, &ann(), "", scan).await;
    assert_eq!(refused.status, 429, "{}", refused.text());
    assert!(refused.header("Retry-After").is_some());
    // A change that uses up what there is changes nothing.
    let more = limit(json!({"user": "ann"}), budget(60_000_000));
    assert_eq!(command(&server, &root, &more).await.status, 200);
    let change = "update item set price = -1 where (select count(*) from item a, item b where a.price + b.price < 0) = 0";
    let refused = sql(&server, &ann(), "", change).await;
    assert_eq!(refused.status, 429, "{}", refused.text());
    let left = sql(
        &server,
        &root,
        "format=csv",
        "select count(*) from item where price = -1",
    )
    .await;
    assert_eq!(left.text().lines().last(), Some("0"), "{}", left.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn definitions_are_paid_for_and_end_with_the_budget() {
    let budget = |touches: u64| json!({"cost": {"touches": touches, "seconds": 86_400}});
    let server = with_tables(budget(4_000_000), |_| {}).await;
    let root = basic("root", PASSWORD);
    // 50,000 rows of the table and as many of the index are read and written.
    let index = "create index by_price on item (price)";
    let costs = [
        cost(&sql(&server, &ann(), "", index).await),
        cost(&sql(&server, &ann(), "", "drop index by_price").await),
        cost(&sql(&server, &root, "", index).await),
    ];
    assert_eq!(costs, [200_000, 1, 200_000]);
    let check = "alter table item add constraint c check (price >= 0)";
    let type_of = "alter table item alter column price type bigint";
    assert_eq!(cost(&sql(&server, &ann(), "", check).await), 50_000);

    let statements = [
        "create index by_name on item (name)",
        "create table copied as select * from item",
        "alter table item add constraint u unique (id, name)",
        "alter table item add constraint d check (price >= 0)",
        "alter table item add constraint f foreign key (id) references item (id)",
        "alter table item alter column name set not null",
        type_of,
    ];
    for (number, statement) in statements.into_iter().enumerate() {
        let name = format!("poor{number}");
        let user = json!({ "user": name });
        for made in [
            add_user(&name, false),
            grant(user.clone(), "write", json!("all_tables")),
            limit(user, budget(20_000)),
        ] {
            let made = command(&server, &root, &made).await;
            assert_eq!(made.status, 200, "{}", made.text());
        }
        let poor = basic(&name, PASSWORD);
        let refused = sql(&server, &poor, "", statement).await;
        assert_eq!(refused.status, 429, "{statement}: {}", refused.text());
        assert!(refused.text().contains("touches"), "{}", refused.text());
        // Not even the next one begins.
        let refused = sql(&server, &poor, "", "select 1").await;
        assert_eq!(refused.status, 429, "{statement}: {}", refused.text());
    }
    // Nothing of them is there.
    let columns = "select column_name, data_type, is_nullable from information_schema.columns where table_name = 'item' and column_name <> 'id' order by 1";
    let answer = sql(&server, &root, "format=csv", columns).await;
    let columns = answer.text();
    let columns: Vec<&str> = columns.lines().skip(1).collect();
    assert_eq!(columns, ["name,text,YES", "price,integer,YES"]);
    for statement in statements {
        let made = sql(&server, &root, "", statement).await;
        assert_eq!(made.status, 200, "{statement}: {}", made.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_of_an_answer_of_sql_says_that_it_is_one() {
    let server = with_tables(json!({"rows": 10}), |_| {}).await;
    let all = "select id from item order by id";
    let refused = sql(&server, &ann(), "format=csv", all).await;
    assert_eq!(refused.status, 429, "{}", refused.text());
    for (format, has_note) in [("json", true), ("srj", true), ("xml", true), ("csv", false)] {
        let asked = format!("format={format}&partial=true");
        let part = sql(&server, &ann(), &asked, all).await;
        assert_eq!(part.status, 200, "{}", part.text());
        let why = part.header("Orrery-Partial").unwrap();
        assert!(why.contains("10 rows"), "{why}");
        assert_eq!(part.header("ETag"), None);
        assert_eq!(part.text().contains("10 rows"), has_note, "{}", part.text());
        if format != "xml" && has_note {
            let json: Value = serde_json::from_slice(&part.body).unwrap();
            assert!(json["partial"].is_string(), "{json}");
        }
    }
    let whole = sql(
        &server,
        &ann(),
        "format=csv&partial=true",
        "select id from item where id <= 10",
    )
    .await;
    assert_eq!(whole.text().lines().count(), 11);
    assert_eq!(whole.header("Orrery-Partial"), None);
    let change = sql(&server, &ann(), "partial=true", "delete from item").await;
    assert_eq!(change.status, 400, "{}", change.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_query_log_has_what_updates_and_sql_cost() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("log");
    let server = with_tables(json!({"concurrent": 5}), |options| {
        options.service.query_log = Some(QueryLogOptions::new(log));
    })
    .await;
    let (admin, root) = (server.admin.unwrap(), basic("root", PASSWORD));
    let mut touches = cost(&update(&server, &ann(), JOIN).await);
    touches += cost(
        &sql(
            &server,
            &ann(),
            "",
            "select count(*) from item where price < 0",
        )
        .await,
    );
    touches += cost(&sql(&server, &ann(), "", "delete from item where id < 100").await);
    let logged = async {
        loop {
            let answer = get(admin, "/admin/usage?from=2026-01-01", &[&root]).await;
            let bill: Value = serde_json::from_slice(&answer.body).unwrap();
            let lines = bill["lines"].as_array().unwrap();
            let line = lines.iter().find(|line| line["user"] == "ann");
            if let Some(line) = line.filter(|line| line["requests"] == 3) {
                return line["touches"].as_u64().unwrap();
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let logged = tokio::time::timeout(Duration::from_secs(20), logged).await;
    assert_eq!(logged.unwrap(), touches);
}

/// Told which limit of whose memory it was.
fn require_out_of_memory(answer: &Answer) {
    let text = answer.text();
    assert_eq!(answer.status, 507, "{text}");
    assert!(
        text.contains("64 MiB that your requests may hold"),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_holds_so_much_memory_and_others_go_on() {
    let server = with_tables(json!({"memory": 64 << 20}), |_| {}).await;
    let (address, root) = (server.address, basic("root", PASSWORD));
    // What cannot spill: a hash table of 50,000 rows times long texts.
    let join = "select count(*) from (select id, repeat(name, 200) as long from item) a
        join (select id, repeat(name, 200) as long from item) b on a.long = b.long";
    let refused = sql(&server, &ann(), "", join).await;
    require_out_of_memory(&refused);
    let granted = sql(&server, &root, "", join).await;
    assert_eq!(granted.status, 200, "{}", granted.text());
    // A sort spills within it.
    let sort = "select id from (select id, repeat(name, 10) || s.n as long from item, generate_series(1, 12) as s(n)) as t order by long desc, id";
    let sorted = sql(&server, &ann(), "format=csv", sort).await;
    assert_eq!(sorted.status, 200, "{}", sorted.text());
    assert_eq!(sorted.text().lines().count(), 600_001);
    assert!(sorted.is_complete);

    // Of SPARQL: a million groups of long texts.
    let groups = "SELECT (COUNT(*) AS ?n) { SELECT DISTINCT ?k { ?s <http://example.com/name> ?a . ?t <http://example.com/name> ?b BIND(CONCAT(?a, ?b) AS ?k) } }";
    let refused = ask(address, groups, &[&ann(), JSON]).await;
    require_out_of_memory(&refused);
    let granted = ask(address, groups, &[&root, JSON]).await;
    assert_eq!(granted.status, 200, "{}", granted.text());
    assert!(granted.text().contains("1000000"), "{}", granted.text());
    let sort = "SELECT ?s ?t { ?s <http://example.com/number> ?a . ?t <http://example.com/number> ?b FILTER(?b < 600) } ORDER BY DESC(?b) ?t ?s";
    let sorted = ask(address, sort, &[&ann(), CSV]).await;
    let end = sorted.body.len().saturating_sub(200);
    let end = String::from_utf8_lossy(&sorted.body[end..]);
    assert_eq!((sorted.status, sorted.is_complete), (200, true), "{end}");
    assert_eq!(sorted.text().lines().count(), 600_001);
    // All is given back.
    assert_eq!(ask(address, POINT, &[&ann()]).await.status, 200);
    let few = limit(json!({"user": "ann"}), json!({"memory": 1}));
    assert_eq!(command(&server, &root, &few).await.status, 200);
    let texts =
        "SELECT DISTINCT ?k { ?s <http://example.com/name> ?a BIND(CONCAT(?a, 'x') AS ?k) }";
    let refused = ask(address, texts, &[&ann()]).await;
    assert_eq!(refused.status, 507, "{}", refused.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_word_of_a_trusted_proxy_is_taken_and_no_other() {
    let trusting = |trusted: &'static str| async move {
        let commands = [
            add_user("root", true),
            grant(json!("anyone"), "read", json!("default_graph")),
            limit(
                json!("anyone"),
                json!({"cost": {"touches": 100, "seconds": 86_400}}),
            ),
        ];
        start_with(&commands, |options| {
            options.trust_proxy = TrustedProxies::new([trusted]).unwrap();
        })
        .await
    };
    // More than there is; the next is told.
    let use_up = async |server: &TestServer| {
        let from = "X-Forwarded-For: 203.0.113.5";
        ask(server.address, NUMBERS, &[from, CSV]).await;
    };
    let server = trusting("127.0.0.0/8").await;
    use_up(&server).await;
    // Nothing is left for that address, whatever it writes before what the proxy adds.
    for head in [
        "X-Forwarded-For: 203.0.113.5",
        "X-Forwarded-For: 198.51.100.9, 203.0.113.5",
        "X-Forwarded-For: 127.0.0.7, 203.0.113.5, 127.0.0.9",
        "Forwarded: for=198.51.100.9, for=203.0.113.5;proto=https",
    ] {
        assert_eq!(
            ask(server.address, POINT, &[head]).await.status,
            429,
            "{head}"
        );
    }
    for head in [
        "X-Forwarded-For: 203.0.113.6",
        "Forwarded: for=\"[2001:db8::1]:80\"",
        "X-Nobody: 1",
    ] {
        assert_eq!(
            ask(server.address, POINT, &[head]).await.status,
            200,
            "{head}"
        );
    }
    // From elsewhere nothing of it is believed: all are one address.
    let server = trusting("192.0.2.1").await;
    use_up(&server).await;
    for head in [
        "X-Forwarded-For: 203.0.113.6",
        "Forwarded: for=203.0.113.7",
        "X-Nobody: 1",
    ] {
        assert_eq!(
            ask(server.address, POINT, &[head]).await.status,
            429,
            "{head}"
        );
    }
}
