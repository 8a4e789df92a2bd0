//! Changes of tables and quads in one feed.

use crate::client::{get, post};
use crate::fixture::TestServer;

const SQL: &str = "Content-Type: application/sql";
const UPDATE: &str = "Content-Type: application/sparql-update";

/// The lines of a feed without what differs from run to run.
async fn lines(server: &TestServer, since: u64) -> Vec<String> {
    let path = format!("/changes?since={since}&format=json");
    let feed = get(server.address, &path, &[]).await;
    assert_eq!(feed.status, 200, "{}", feed.text());
    assert_eq!(feed.header("Content-Type"), Some("application/x-ndjson"));
    let lines = feed.text().lines().map(|line| {
        let mut line: serde_json::Value = serde_json::from_str(line).unwrap();
        let object = line.as_object_mut().unwrap();
        let number = object.remove("commit").unwrap().as_u64().unwrap();
        object.remove("time");
        object.remove("previous");
        // How tables are defined is long.
        if let Some(define) = object.get_mut("define") {
            let kind = define.as_object().unwrap().keys().next().unwrap().clone();
            *define = kind.into();
        }
        format!("{} {line}", number - since)
    });
    lines.collect()
}

async fn sql(server: &TestServer, text: &str) {
    let done = post(server.address, "/sql", &[SQL], text.as_bytes()).await;
    assert_eq!(done.status, 200, "{text}: {}", done.text());
}

async fn newest(server: &TestServer) -> u64 {
    let asked = get(server.address, "/sparql?query=ASK%20%7B%7D", &[]).await;
    let tag = asked.header("ETag").unwrap().trim_start_matches('"');
    tag.split('-').next().unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_of_tables_and_quads_come_in_one_order() {
    let server = TestServer::start().await;
    let since = newest(&server).await;
    sql(
        &server,
        "create table t (b text, a int primary key, c numeric(6,2)); insert into t values ('x', 1, 1.5), (null, 2, null)",
    )
    .await;
    let change = b"INSERT DATA { <http://e/s> <http://e/p> \"new\" }";
    let done = post(server.address, "/sparql", &[UPDATE], change).await;
    assert_eq!(done.status, 200);
    sql(&server, "update t set b = 'y \"z\"' where a = 2").await;
    sql(
        &server,
        "delete from t where a = 1; create table free (v boolean); insert into free values (true)",
    )
    .await;
    sql(&server, "truncate t; delete from free").await;
    let expected = [
        r#"1 {"who":"..."}"#,
        r#"1 {"define":"create_table"}"#,
        r#"1 {"insert":"row","key":{"a":1},"row":{"a":1,"b":"x","c":1.5},"table":"public.t"}"#,
        r#"1 {"insert":"row","key":{"a":2},"row":{"a":2,"b":null,"c":null},"table":"public.t"}"#,
        r#"1 {"end":true}"#,
        r#"2 {"who":"..."}"#,
        r#"2 {"insert":"quad","quad":"<http://e/s> <http://e/p> \"new\" ."}"#,
        r#"2 {"end":true}"#,
        r#"3 {"who":"..."}"#,
        r#"3 {"delete":"row","key":{"a":2},"table":"public.t"}"#,
        r#"3 {"insert":"row","key":{"a":2},"row":{"a":2,"b":"y \"z\"","c":null},"table":"public.t"}"#,
        r#"3 {"end":true}"#,
        r#"4 {"who":"..."}"#,
        r#"4 {"delete":"row","key":{"a":1},"table":"public.t"}"#,
        r#"4 {"define":"create_table"}"#,
        r#"4 {"insert":"row","key":{"":0},"row":{"v":true},"table":"public.free"}"#,
        r#"4 {"end":true}"#,
        r#"5 {"who":"..."}"#,
        r#"5 {"table":"public.t","truncate":"table"}"#,
        r#"5 {"delete":"row","key":{"":0},"table":"public.free"}"#,
        r#"5 {"end":true}"#,
    ];
    let found = lines(&server, since).await;
    let found: Vec<String> = found
        .into_iter()
        .map(|line| match line.split_once(" {\"who\":") {
            Some((number, _)) => format!("{number} {{\"who\":\"...\"}}"),
            None => line,
        })
        .collect();
    assert_eq!(found, expected);
    // From any commit on: the definitions of then are known, whether any has changed since or not.
    for (first, commit) in [(2, 3), (3, 4), (4, 5)] {
        let rest = lines(&server, since + first).await;
        let expected = expected
            .iter()
            .filter(|line| line[..1].parse::<u64>().unwrap() > first);
        assert_eq!(rest.len(), expected.count(), "{commit}: {rest:?}");
    }
    // A patch has quads alone.
    let patch = get(server.address, &format!("/changes?since={since}"), &[]).await;
    assert_eq!(patch.header("Content-Type"), Some("application/rdf-patch"));
    assert_eq!(patch.text().matches("\nA ").count(), 1);
    let wrong = get(server.address, "/changes?since=0&format=csv", &[]).await;
    assert_eq!(wrong.status, 400);
}
