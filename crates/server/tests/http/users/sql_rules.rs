//! SQL over HTTP by asker: tables, views and graphs that they may read, and what they may change.

use crate::client::{Answer, ask, post};
use crate::fixture::TestServer;
use crate::users::access::{CSV, PASSWORD, add_user, basic, command, grant, start};
use serde_json::{Value, json};

const SQL: &str = "Content-Type: application/sql";
const PROBLEM: &str = "Accept: text/csv, application/problem+json";

/// What everybody's database has.
const SHOWN: &str = "create table item (id int primary key, name text);
    insert into item values (1, 'lamp'), (2, 'chair');
    create table box (id int primary key, item int references item (id));
    create schema own";
/// What only one has.
const HIDDEN: &str = "create table salary (id int primary key, amount int);
    insert into salary values (1, 1000);
    create schema dark; create table dark.item (id int primary key, of int references salary (id));
    create view dark.sum as select sum(amount) as sum from salary;
    create view sums as select item.name, salary.amount from item join salary on item.id = salary.id";

fn table(name: &str) -> Value {
    json!({"table": {"schema": "public", "name": name}})
}

fn users() -> Vec<Value> {
    let of = |user: &str| json!({ "user": user });
    vec![
        add_user("root", true),
        add_user("ann", false),
        add_user("bob", false),
        grant(of("ann"), "read", table("item")),
        grant(of("ann"), "read", table("sums")),
        grant(of("ann"), "write", table("box")),
        grant(of("ann"), "write", json!({"schema": "own"})),
        grant(of("ann"), "read", json!({"graph": "http://example.com/g1"})),
        grant(of("bob"), "read", json!({"graph": "http://example.com/g2"})),
        grant(of("bob"), "read", json!("all_tables")),
    ]
}

async fn sql(server: &TestServer, who: &str, text: &str) -> Answer {
    let who = basic(who, PASSWORD);
    post(
        server.address,
        "/sql",
        &[&who, SQL, PROBLEM],
        text.as_bytes(),
    )
    .await
}

async fn rows(server: &TestServer, who: &str, text: &str) -> String {
    let answer = sql(server, who, text).await;
    assert_eq!(answer.status, 200, "{text}: {}", answer.text());
    answer.text().replace("\r\n", "|")
}

async fn done(server: &TestServer, who: &str, text: &str) {
    let answer = sql(server, who, text).await;
    assert_eq!(answer.status, 200, "{text}: {}", answer.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_not_be_read_is_answered_as_what_is_not_there() {
    let (whole, part) = (start(&users()).await, start(&users()).await);
    done(&whole, "root", SHOWN).await;
    done(&whole, "root", HIDDEN).await;
    done(&part, "root", SHOWN).await;
    for (status, text) in [
        (200, "select * from item order by id"),
        (200, "select count(*) from information_schema.tables"),
        (
            200,
            "select table_schema, table_name from information_schema.tables order by 1, 2",
        ),
        (
            200,
            "select schema_name from information_schema.schemata order by 1",
        ),
        (200, "select relname from pg_class order by 1"),
        (200, "select conname from pg_constraint order by 1"),
        (200, "select * from orrery_catalog.columns order by 1, 2, 3"),
        (200, "explain select * from item where id = 1"),
        (200, "insert into box values (1, 1)"),
        (200, "drop table if exists salary"),
        (400, "select * from salary"),
        (400, "select * from salar"),
        (400, "select * from dark.item"),
        (400, "select * from nowhere.item"),
        (400, "select amount from item"),
        (400, "select * from sums"),
        (
            400,
            "select * from item where id in (select id from salary)",
        ),
        (400, "with q as (select * from salary) select * from q"),
        (400, "insert into salary values (1, 1)"),
        (400, "insert into box select id, id from salary"),
        (400, "update salary set amount = 0"),
        (400, "delete from box using salary"),
        (400, "truncate box, salary"),
        (400, "create view own.v as select * from salary"),
        (400, "create table own.t (a int references salary (id))"),
        (400, "drop table salary"),
        (400, "drop schema dark cascade"),
        (400, "alter table salary add column b int"),
        (403, "insert into item values (3, 'bed')"),
        (403, "create table salary (a int)"),
        (403, "create schema dark"),
        (403, "create table new (a int)"),
        (400, "create table dark.item (a int)"),
    ] {
        let (one, other) = (
            sql(&whole, "ann", text).await,
            sql(&part, "ann", text).await,
        );
        assert_eq!(one.status, status, "{text}: {}", one.text());
        assert_eq!(one.status, other.status, "{text}");
        let head = |answer: &Answer| {
            let names = [
                "Content-Type",
                "Orrery-Tag",
                "Cache-Control",
                "Vary",
                "Content-Length",
            ];
            names.map(|name| answer.header(name).map(str::to_owned))
        };
        assert_eq!(head(&one), head(&other), "{text}");
        match one.header("Content-Type") {
            // `{"commit":17,"tag":...}`: how many commits there were is told.
            Some("application/json") => {}
            _ => assert_eq!(one.text(), other.text(), "{text}"),
        }
    }
    assert_eq!(
        rows(&whole, "root", "select amount from sums").await,
        "amount|1000|"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_and_schemas_are_changed_by_those_who_may_and_rights_that_go_are_gone() {
    let server = start(&users()).await;
    done(&server, "root", SHOWN).await;
    done(&server, "root", HIDDEN).await;
    done(
        &server,
        "ann",
        "insert into box select id, id from item; update box set item = 1 where id = 2",
    )
    .await;
    done(
        &server,
        "ann",
        "create table own.t as select name from item; create view own.v as select * from own.t",
    )
    .await;
    assert_eq!(
        rows(&server, "ann", "select count(*) as n from own.v").await,
        "n|2|"
    );
    assert_eq!(
        rows(
            &server,
            "ann",
            "delete from box where id = 1 returning item"
        )
        .await,
        "item|1|"
    );
    // All of a request or nothing, whichever of it is denied.
    let denied = sql(
        &server,
        "ann",
        "insert into box values (7, 1); delete from item",
    )
    .await;
    assert_eq!(denied.status, 403, "{}", denied.text());
    let problem: Value = serde_json::from_slice(&denied.body).unwrap();
    assert_eq!(problem["sqlstate"], "42501");
    assert_eq!(problem["message"], "permission denied for table item");
    assert_eq!(rows(&server, "ann", "select id from box").await, "id|2|");
    // Who may change no table waits for no turn, and is told nothing.
    for text in ["insert into item values (3, 'bed')", "drop table nothing"] {
        let denied = sql(&server, "bob", text).await;
        assert_eq!(denied.status, 403, "{}", denied.text());
        assert!(
            denied.text().contains("`bob` may not change any table"),
            "{}",
            denied.text()
        );
    }
    assert_eq!(
        rows(&server, "bob", "select amount from sums").await,
        "amount|1000|"
    );

    let root = basic("root", PASSWORD);
    let more = grant(json!({"user": "ann"}), "write", table("item"));
    let given = command(&server, &root, &more).await;
    let given: Value = serde_json::from_slice(&given.body).unwrap();
    done(&server, "ann", "insert into item values (3, 'bed')").await;
    let revoke = json!({"do": "revoke", "rule": given["rule"]});
    assert_eq!(command(&server, &root, &revoke).await.status, 200);
    let gone = sql(&server, "ann", "insert into item values (4, 'desk')").await;
    assert_eq!(gone.status, 403, "{}", gone.text());
    let unknown = post(server.address, "/sql", &[SQL], b"select 1").await;
    assert_eq!(unknown.status, 401);
    let open = grant(json!("anyone"), "read", table("item"));
    assert_eq!(command(&server, &root, &open).await.status, 200);
    let known = post(
        server.address,
        "/sql",
        &[SQL, CSV],
        b"select count(*) as n from item",
    )
    .await;
    assert_eq!(known.text(), "n\r\n3\r\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn graphs_within_sql_are_those_of_who_asks() {
    let server = start(&users()).await;
    let quads = "select o, g from quads where o like 'g%'";
    let solutions = "select o from sparql('SELECT ?o { GRAPH ?g { ?s ?p ?o } }')";
    let counted = "select n from sparql('SELECT (COUNT(*) AS ?n) { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }', 'n bigint')";
    let view = "create view own.g as select o, g from quads";
    done(&server, "root", "create schema own").await;
    done(&server, "ann", view).await;
    done(
        &server,
        "ann",
        "create table own.copy as select * from quads",
    )
    .await;
    for (who, graph) in [("ann", "g1"), ("bob", "g2")] {
        let whole = format!("o,g|{graph},http://example.com/{graph}|");
        assert_eq!(rows(&server, who, quads).await, whole);
        assert_eq!(rows(&server, who, solutions).await, format!("o|{graph}|"));
        assert_eq!(rows(&server, who, counted).await, "n|1|");
        // A view shows what its reader may read, whoever made it.
        assert_eq!(rows(&server, who, "select * from own.g").await, whole);
        assert_eq!(
            rows(&server, who, "select count(*) as n from classes()").await,
            "n|0|"
        );
    }
    assert_eq!(
        rows(&server, "bob", "select o from own.copy").await,
        "o|g1|"
    );
    // What was read of a state by one is not what another has read, and the address keeps neither.
    let tag = |answer: &Answer| answer.header("ETag").unwrap().to_owned();
    let (ann, bob) = (
        sql(&server, "ann", quads).await,
        sql(&server, "bob", quads).await,
    );
    let again = sql(&server, "ann", quads).await;
    assert_ne!(tag(&ann), tag(&bob));
    assert_eq!(tag(&ann), tag(&again));
    assert_eq!(ann.header("Cache-Control"), Some("private, no-cache"));
    let graph = sql(&server, "ann", "materialize graph 'http://example.com/m'").await;
    assert_eq!(graph.status, 403, "{}", graph.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn mapped_graphs_are_seen_by_rules_about_them() {
    let mut commands = users();
    let of = |user: &str| json!({ "user": user });
    commands.push(grant(
        of("ann"),
        "read",
        json!({"graph": "http://example.com/items"}),
    ));
    let server = start(&commands).await;
    done(&server, "root", SHOWN).await;
    done(
        &server,
        "root",
        "create table own.secret (id int primary key); insert into own.secret values (5)",
    )
    .await;
    done(
        &server,
        "root",
        "create graph 'http://example.com/items' from tables public",
    )
    .await;
    done(
        &server,
        "root",
        "create graph 'http://example.com/secrets' from tables own",
    )
    .await;
    let count = |from: &str| format!("SELECT (COUNT(*) AS ?n) {{ GRAPH {from} {{ ?s a ?c }} }}");
    for (who, items, secrets, all) in [("ann", 2, 0, 2), ("bob", 0, 0, 0), ("root", 2, 1, 3)] {
        let header = basic(who, PASSWORD);
        for (from, n) in [
            ("<http://example.com/items>", items),
            ("<http://example.com/secrets>", secrets),
            ("?g", all),
        ] {
            // Twice, for plans that are kept.
            for _ in 0..2 {
                let answer = ask(server.address, &count(from), &[&header, CSV]).await;
                assert_eq!(answer.text(), format!("n\r\n{n}\r\n"), "{who} {from}");
            }
        }
        let from = "SELECT (COUNT(*) AS ?n) FROM <http://example.com/secrets> { ?s a ?c }";
        let answer = ask(server.address, from, &[&header, CSV]).await;
        assert_eq!(answer.text(), format!("n\r\n{secrets}\r\n"), "{who}");
        let names = "SELECT ?g { GRAPH ?g { } } ORDER BY ?g";
        let answer = ask(server.address, names, &[&header, CSV]).await;
        assert_eq!(
            answer.text().contains("/items"),
            items > 0,
            "{who}: {}",
            answer.text()
        );
        assert_eq!(
            answer.text().contains("/secrets"),
            secrets > 0,
            "{who}: {}",
            answer.text()
        );
        let within = format!("select n from sparql('{}', 'n bigint')", count("?g"));
        assert_eq!(
            rows(&server, who, &within).await,
            format!("n|{all}|"),
            "{who}"
        );
    }
}
