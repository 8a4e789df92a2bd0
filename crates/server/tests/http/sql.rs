//! SQL statements over HTTP: formats, transactions of one request, who may change, errors with
//! their codes.

use super::client::{Answer, get, post};
use super::fixture::TestServer;
use axum::extract::Request;
use axum::middleware::{self, Next};
use orrery_storage::{Asker, GraphNames, ReadScope};
use std::net::SocketAddr;

const SQL: &str = "Content-Type: application/sql";
const FORM: &str = "Content-Type: application/x-www-form-urlencoded";
const CSV: &str = "Accept: text/csv";
const PROBLEM: &str = "Accept: */*, application/problem+json";

const ITEMS: &str = "create table item (id int primary key, name text not null, price numeric(10,2) check (price > 0));
    insert into item values (1, 'lamp', 19.90), (2, 'chair', 45), (3, 'a, \"b\"', null)";

async fn sql(address: SocketAddr, text: &str, headers: &[&str]) -> Answer {
    let headers: Vec<&str> = headers.iter().copied().chain([SQL]).collect();
    post(address, "/sql", &headers, text.as_bytes()).await
}

async fn csv(address: SocketAddr, text: &str) -> String {
    let answer = sql(address, text, &[CSV]).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(answer.is_complete);
    answer.text().replace("\r\n", "|")
}

fn json(answer: &Answer) -> serde_json::Value {
    serde_json::from_slice(&answer.body).unwrap()
}

async fn with_items() -> TestServer {
    let server = TestServer::start().await;
    let made = sql(server.address, ITEMS, &[]).await;
    assert_eq!(made.status, 200, "{}", made.text());
    assert_eq!(json(&made)["tag"], "INSERT 0 3");
    assert_eq!(made.header("Orrery-Tag"), Some("INSERT 0 3"));
    let tag = format!("\"{}\"", json(&made)["commit"]);
    assert_eq!(made.header("ETag"), Some(tag.as_str()));
    server
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_come_in_the_format_that_the_client_takes() {
    let server = with_items().await;
    let query = "select id, name, price from item order by id";
    let plain = sql(server.address, query, &[]).await;
    assert_eq!(plain.header("Content-Type"), Some("application/json"));
    let expected = serde_json::json!({
        "columns": [{"name": "id", "type": "integer"}, {"name": "name", "type": "text"}, {"name": "price", "type": "numeric(10,2)"}],
        "rows": [[1, "lamp", 19.90], [2, "chair", 45.00], [3, "a, \"b\"", null]],
    });
    assert_eq!(json(&plain), expected);
    assert_eq!(
        csv(server.address, query).await,
        "id,name,price|1,lamp,19.90|2,chair,45.00|3,\"a, \"\"b\"\"\",|"
    );
    for (format, content_type, starts) in [
        (
            "tsv",
            "text/tab-separated-values; charset=utf-8",
            "id\tname",
        ),
        ("srj", "application/sparql-results+json", "{\"head\""),
        ("xml", "application/sparql-results+xml", "<?xml"),
        ("table", "text/plain; charset=utf-8", "id"),
        ("parquet", "application/vnd.apache.parquet", "PAR1"),
    ] {
        let path = format!("/sql?format={format}");
        let answer = post(server.address, &path, &[SQL], query.as_bytes()).await;
        assert_eq!(answer.status, 200, "{format}");
        assert_eq!(answer.header("Content-Type"), Some(content_type));
        assert!(answer.body.starts_with(starts.as_bytes()), "{format}");
    }
    let arrow = "Accept: application/vnd.apache.arrow.stream";
    let answer = sql(server.address, query, &[arrow]).await;
    let reader = arrow::ipc::reader::StreamReader::try_new(&answer.body[..], None).unwrap();
    let rows: usize = reader.map(|batch| batch.unwrap().num_rows()).sum();
    assert_eq!(rows, 3);
    let image = sql(server.address, query, &["Accept: image/png"]).await;
    assert_eq!(image.status, 406, "{}", image.text());
    let form = post(
        server.address,
        "/sql",
        &[FORM, CSV],
        b"sql=select+1+%2B+1+as+two",
    )
    .await;
    assert_eq!(form.text(), "two\r\n2\r\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_statements_of_a_request_are_one_transaction() {
    let server = with_items().await;
    let address = server.address;
    let count = "select count(*) as n from item";
    let failing = "insert into item values (4, 'd', 1); insert into item values (1, 'again', 2)";
    let refused = sql(address, failing, &[PROBLEM]).await;
    assert_eq!(refused.status, 409, "{}", refused.text());
    assert_eq!(json(&refused)["sqlstate"], "23505");
    assert_eq!(json(&refused)["more"], "Key (id)=(1) already exists.");
    assert_eq!(csv(address, count).await, "n|3|");
    // A query behind changes sees them, and what fails in it undoes them.
    let divided = "insert into item values (4, 'd', 1); select 1 / (id - 4) from item";
    let refused = sql(address, divided, &[PROBLEM]).await;
    assert_eq!(json(&refused)["sqlstate"], "22012", "{}", refused.text());
    assert_eq!(csv(address, count).await, "n|3|");
    let seen = format!("insert into item values (4, 'd', 1); {count}");
    assert_eq!(csv(address, &seen).await, "n|4|");
    let returned = "update item set price = 2 where id = 4 returning id, price";
    let answer = sql(address, returned, &[CSV]).await;
    assert_eq!(answer.text(), "id,price\r\n4,2.00\r\n");
    assert_eq!(answer.header("Orrery-Tag"), Some("UPDATE 1"));
    for text in [
        "begin; select 1; commit",
        "insert into item values (9, 'x', 1); rollback",
    ] {
        let refused = sql(address, text, &[PROBLEM]).await;
        assert_eq!(json(&refused)["sqlstate"], "25001", "{}", refused.text());
    }
    let savepoints = "savepoint a; delete from item; rollback to a; select count(*) as n from item";
    assert_eq!(csv(address, savepoints).await, "n|4|");
    assert_eq!(csv(address, count).await, "n|4|");
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_have_code_line_and_column() {
    let server = with_items().await;
    let address = server.address;
    let missing = sql(address, "select id,\n  nam from item", &[PROBLEM]).await;
    assert_eq!(missing.status, 400);
    assert_eq!(
        missing.header("Content-Type"),
        Some("application/problem+json")
    );
    let problem = json(&missing);
    assert_eq!(problem["sqlstate"], "42703");
    assert_eq!(
        (&problem["line"], &problem["column"]),
        (&2.into(), &3.into())
    );
    assert_eq!(
        (&problem["position"], &problem["offset"]),
        (&14.into(), &13.into())
    );
    let plain = sql(address, "select id,\n  nam from item", &[]).await;
    assert!(
        plain
            .text()
            .starts_with("SQL error 42703 at line 2, column 3: "),
        "{}",
        plain.text()
    );
    for (text, status, code) in [
        ("selec 1", 400, "42601"),
        ("", 400, "42601"),
        ("select * from nowhere", 400, "42P01"),
        ("create table x (a int[])", 501, "0A000"),
        ("insert into item values (5, null, 1)", 409, "23502"),
        ("insert into item values (5, 'x', 0)", 409, "23514"),
        ("select cast('x' as int)", 400, "22P02"),
    ] {
        let answer = sql(address, text, &[PROBLEM]).await;
        assert_eq!(answer.status, status, "{text}: {}", answer.text());
        assert_eq!(json(&answer)["sqlstate"], code, "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_are_for_those_who_may_update() {
    let server = with_items().await;
    let address = server.address;
    let insert = "insert into item values (7, 'seven', 7)";
    for header in [
        "Origin: http://evil.example",
        "Sec-Fetch-Site: cross-site",
        "Origin: null",
    ] {
        let refused = sql(address, insert, &[header]).await;
        assert_eq!(refused.status, 403, "{header}: {}", refused.text());
        let read = sql(address, "select 1", &[header]).await;
        assert_eq!(read.status, 200);
    }
    assert_eq!(csv(address, "select count(*) as n from item").await, "n|3|");
    let by_get = get(address, "/sql?sql=select+1", &[]).await;
    assert_eq!(by_get.status, 405);
    assert_eq!(by_get.header("Allow"), Some("POST, OPTIONS"));
    let read_only = TestServer::start_with(|options| options.is_read_only = true).await;
    let refused = sql(read_only.address, "create table t (a int)", &[]).await;
    assert_eq!(refused.status, 503, "{}", refused.text());
    assert_eq!(csv(read_only.address, "select 2 as two").await, "two|2|");
    let elsewhere =
        TestServer::start_with(|options| options.listen.set_ip([0, 0, 0, 0].into())).await;
    let refused = sql(elsewhere.address, "create table t (a int)", &[]).await;
    assert_eq!(refused.status, 403, "{}", refused.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_made_under_its_conditions_only() {
    let server = with_items().await;
    let address = server.address;
    let read = sql(address, "select 1", &[]).await;
    let tag = format!("If-Match: {}", read.header("ETag").unwrap());
    let delete = "delete from item where id = 3";
    assert_eq!(sql(address, delete, &[tag.as_str()]).await.status, 200);
    let late = sql(address, "delete from item", &[tag.as_str()]).await;
    assert_eq!(late.status, 412, "{}", late.text());
    assert_eq!(csv(address, "select count(*) as n from item").await, "n|2|");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_see_all_graphs_sees_no_tables() {
    let scoped = |mut request: Request, next: Next| async move {
        if request.headers().contains_key("X-Scoped") {
            let graphs = GraphNames::default();
            let scope = ReadScope::only(Asker::Anonymous, graphs);
            request.extensions_mut().insert(scope);
        }
        next.run(request).await
    };
    let layer = |router: axum::Router| router.layer(middleware::from_fn(scoped));
    let server = TestServer::start_around(|_| {}, layer).await;
    let address = server.address;
    for text in ["select 1", "create table t (a int)", "nonsense"] {
        let refused = sql(address, text, &["X-Scoped: yes"]).await;
        assert_eq!(refused.status, 403, "{text}: {}", refused.text());
    }
    assert_eq!(csv(address, "select 1 as one").await, "one|1|");
}

#[tokio::test(flavor = "multi_thread")]
async fn long_answers_stream_and_limits_hold() {
    let server = TestServer::start().await;
    let address = server.address;
    let series = "select value as n from generate_series(1, 200000)";
    let answer = sql(address, series, &[CSV]).await;
    assert_eq!(answer.header("Transfer-Encoding"), Some("chunked"));
    assert!(answer.is_complete);
    assert_eq!(answer.text().lines().count(), 200_001);
    let endless = "select count(*) from generate_series(1, 100000) a, generate_series(1, 100000) b, generate_series(1, 100000) c";
    let late = post(address, "/sql?timeout=200ms", &[SQL], endless.as_bytes()).await;
    assert_eq!(late.status, 503, "{}", late.text());
    assert!(late.text().contains("0.2 s"), "{}", late.text());
    let changing = format!("create table n as {endless}");
    let late = post(address, "/sql?timeout=200ms", &[SQL], changing.as_bytes()).await;
    assert_eq!(late.status, 503, "{}", late.text());
    // The writer goes on.
    assert_eq!(
        sql(address, "create table n (a int)", &[]).await.status,
        200
    );
    for path in ["/sql?timeout=9999", "/sql?at=3"] {
        assert_eq!(post(address, path, &[SQL], b"select 1").await.status, 400);
    }
    let plain = post(address, "/sql", &["Content-Type: text/plain"], b"select 1").await;
    assert_eq!(plain.status, 415);
    // Broken off in the middle, and seen to be.
    let failing = "select 1 / (150000 - value) as n from generate_series(1, 200000)";
    let broken = sql(address, failing, &[CSV]).await;
    assert!(!broken.is_complete || broken.status == 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_written_into_the_answer_is_not_changed_either() {
    let server = with_items().await;
    let address = server.address;
    // Parquet has no intervals of months.
    let text = "insert into item values (9, 'nine', 9) returning id, interval '1 month'";
    let refused = post(address, "/sql?format=parquet", &[SQL], text.as_bytes()).await;
    assert_ne!(refused.status, 200, "{}", refused.text());
    assert_eq!(refused.header("ETag"), None);
    assert_eq!(csv(address, "select count(*) as n from item").await, "n|3|");
    let done = post(address, "/sql?format=csv", &[SQL], text.as_bytes()).await;
    assert_eq!(done.status, 200, "{}", done.text());
    assert_eq!(csv(address, "select count(*) as n from item").await, "n|4|");
}

#[tokio::test(flavor = "multi_thread")]
async fn sparql_within_sql_means_what_it_means_alone() {
    let server = TestServer::start_with(|options| options.service.union_default_graph = true).await;
    let count = "select n from sparql('SELECT (COUNT(*) AS ?n) { ?s ?p ?o }')";
    assert_eq!(csv(server.address, count).await, "n|3002|");
    let quads = "select count(*) as n from quads";
    assert_eq!(csv(server.address, quads).await, "n|3002|");
}

#[tokio::test(flavor = "multi_thread")]
async fn other_endpoints_are_asked_by_reads_alone_and_told_when_they_fail() {
    let allow = |options: &mut orrery_server::ServerOptions| {
        options.endpoints.allow = orrery_http_client::AllowList::parse(["127.0.0.1"]).unwrap();
    };
    let server = TestServer::start_with(allow).await;
    let address = server.address;
    let service =
        format!("sparql('SELECT ?s {{ SERVICE <http://{address}/nothing> {{ ?s ?p ?o }} }}')");
    let failed = sql(address, &format!("select * from {service}"), &[PROBLEM]).await;
    assert_eq!(failed.status, 502, "{}", failed.text());
    assert_eq!(json(&failed)["sqlstate"], "HV000");
    let changing = format!("create table t as select * from {service}");
    let refused = sql(address, &changing, &[PROBLEM]).await;
    assert_eq!(refused.status, 501, "{}", refused.text());
    assert_eq!(json(&refused)["sqlstate"], "0A000");
}
