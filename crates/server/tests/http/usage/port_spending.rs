//! The cost of statements at the PostgreSQL and Flight SQL ports, in touches and memory: one budget
//! with HTTP, and no port bypasses it.

use crate::fixture::TestServer;
use crate::usage::metering::limit;
use crate::users::access::{grant, start_with};
use crate::users::postgres_users::{any_port, connected, done, make_tables, refused, table, users};
use crate::{ports::port_statements, users::flight_users};
use arrow::array::{ArrayRef, Int32Array, RecordBatch};
use arrow_flight::sql::CommandStatementIngest;
use bytes::Bytes;
use futures::{SinkExt, StreamExt, TryStreamExt};
use orrery_flight::FlightOptions;
use orrery_postgres::PostgresOptions;
use orrery_query_log::Outcome;
use orrery_server::QueryLogOptions;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};
use tonic::Code;

/// 8,000,000,000 triples of rows, of which none comes out.
const ENDLESS: &str = "select count(*) from item a, item b, item c where a.id + b.id + c.id < 0";
/// A hash table of 2,000 texts of 20,000 bytes.
const LARGE: &str = "select count(*) from (select id, repeat(name, 2000) as long from item) a
    join (select id, repeat(name, 2000) as long from item) b on a.long = b.long";
const ROWS: &str = "select s.i from generate_series(1, 100000000) as s(i)";

fn ann(limits: Value) -> Value {
    limit(json!({"user": "ann"}), limits)
}

fn budget(touches: u64) -> Value {
    ann(json!({"cost": {"touches": touches, "seconds": 86_400}}))
}

/// Ann has these limits, `root` none.
async fn start(limits: &Value, directory: Option<&Path>) -> TestServer {
    let mut commands = users();
    commands.push(limits.clone());
    for user in ["ann", "bob"] {
        commands.push(grant(json!({ "user": user }), "write", table("salary")));
    }
    let server = start_with(&commands, |options| {
        options.postgres = Some(PostgresOptions::new(any_port()));
        options.flight = Some(FlightOptions::new(any_port()));
        let log = directory.map(|directory| QueryLogOptions::new(directory.join("log")));
        options.service.query_log = log;
    })
    .await;
    make_tables(&server).await;
    server
}

/// That the budget ended it, or did not let it begin.
#[track_caller]
fn used_up<T>(result: Result<T, tokio_postgres::Error>) {
    let (code, message) = refused(result);
    assert_eq!(code, "53400", "{message}");
    assert!(message.contains("retry after "), "{message}");
    assert!(message.contains(" touches in 86400 s"), "{message}");
}

async fn runs(client: &Client, text: &str) {
    client.simple_query(text).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_of_postgresql_ends_with_the_budget() {
    let server = start(&budget(5_000_000), None).await;
    let ann = connected(&server, "ann").await;
    let root = connected(&server, "root").await;
    runs(&ann, "select count(*) from item").await;
    let running = root.simple_query(ENDLESS);
    let cancel = root.cancel_token();
    let of_ann = async {
        used_up(ann.simple_query(ENDLESS).await);
        // Prepared or not.
        used_up(ann.simple_query("select 1").await);
        used_up(ann.query("select 1", &[]).await);
        // Who has limits of their own goes on.
        cancel.cancel_query(NoTls).await.unwrap();
    };
    let (of_root, ()) = tokio::join!(running, of_ann);
    assert_eq!(refused(of_root).0, "57014");
    runs(&root, "select count(*) from item").await;
    let mut flight = flight_users::connected(&server, "ann").await;
    let other = flight_users::rows(&mut flight, "select 1").await;
    assert_eq!(flight_users::refused(other).0, Code::ResourceExhausted);

    done(&server, &budget(1_000_000_000_000)).await;
    runs(&ann, "select count(*) from item").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_taken_later_is_paid_for_when_it_is_taken() {
    let server = start(&budget(500_000), None).await;
    // A budget is made up for by a larger one.
    let refill = async |touches: u64| done(&server, &budget(touches)).await;

    let mut client = connected(&server, "ann").await;
    let block = client.transaction().await.unwrap();
    let portal = block.bind(ROWS, &[]).await.unwrap();
    let mut fetched = 0;
    let end = loop {
        match block.query_portal(&portal, 5_000).await {
            Ok(rows) => fetched += rows.len(),
            Err(error) => break error,
        }
    };
    used_up(Err::<(), _>(end));
    assert!((10_000..500_000).contains(&fetched), "{fetched}");
    drop(block);

    refill(2_000_000).await;
    let client = connected(&server, "ann").await;
    runs(&client, "begin").await;
    runs(&client, &format!("declare c cursor for {ENDLESS}")).await;
    used_up(client.simple_query("fetch 1 from c").await);

    // What a client sends is paid for when it is taken.
    let of_bob = json!({"cost": {"touches": 3_000, "seconds": 86_400}});
    done(&server, &limit(json!({"user": "bob"}), of_bob)).await;
    let client = connected(&server, "bob").await;
    let sink = client.copy_in("copy salary from stdin").await.unwrap();
    let mut sink = std::pin::pin!(sink);
    let lines: String = (10..5_010).map(|id| format!("{id}\t1\n")).collect();
    sink.send(Bytes::from(lines)).await.unwrap();
    used_up(sink.finish().await);
    used_up(client.simple_query("select 1").await);
    assert_eq!(counted(&connected(&server, "root").await, "true").await, 0);
}

/// Rows of `salary` that the tests have added.
async fn counted(client: &Client, condition: &str) -> i64 {
    let query = format!("select count(*) from salary where id >= 10 and {condition}");
    let row = client.query_one(&query, &[]).await.unwrap();
    row.get(0)
}

/// To read this costs less than the budget of the tests below, to change as much more than that.
const INSERT: &str = "insert into salary select i, 1 from generate_series(10, 40000) as s(i)";
const LITTLE: u64 = 60_000;

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_costs_more_than_there_is_is_not_committed_at_the_port_of_postgresql() {
    let server = start(&budget(LITTLE), None).await;
    let root = connected(&server, "root").await;
    let ann = connected(&server, "ann").await;
    used_up(ann.simple_query(INSERT).await);
    used_up(ann.simple_query("select 1").await);
    assert_eq!(counted(&root, "true").await, 0);

    // In a block, prepared: the statement is undone and the block has failed.
    let server = start(&budget(LITTLE), None).await;
    let root = connected(&server, "root").await;
    let ann = connected(&server, "ann").await;
    runs(&ann, "begin").await;
    runs(&ann, "insert into salary values (100000, 1)").await;
    used_up(ann.query(INSERT, &[]).await);
    done(&server, &budget(1_000_000_000)).await;
    let (code, message) = refused(ann.simple_query("select 1").await);
    assert_eq!(code, "25P02", "{message}");
    runs(&ann, "commit").await;
    assert_eq!(counted(&root, "true").await, 0);

    for change in ["update salary set amount = 2", "delete from salary"] {
        let server = start(&budget(LITTLE), None).await;
        let root = connected(&server, "root").await;
        runs(&root, INSERT).await;
        let before = counted(&root, "amount = 1").await;
        let ann = connected(&server, "ann").await;
        used_up(ann.simple_query(change).await);
        let after = counted(&root, "amount = 1").await;
        assert_eq!(after, before, "{change}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_costs_more_than_there_is_is_not_committed_at_the_port_of_flight() {
    let used_up = |(code, message): (Code, String)| {
        assert_eq!(code, Code::ResourceExhausted, "{message}");
        assert!(message.contains("SQLSTATE 53400"), "{message}");
        assert!(message.contains("retry after "), "{message}");
    };
    let server = start(&budget(LITTLE), None).await;
    let root = connected(&server, "root").await;
    let mut ann = flight_users::connected(&server, "ann").await;
    let changed = ann.execute_update(INSERT.to_owned(), None).await;
    used_up(flight_users::refused(changed));
    assert_eq!(counted(&root, "true").await, 0);

    // Rows that a client sends cost nothing but what is changed.
    let server = start(&budget(3_000), None).await;
    let root = connected(&server, "root").await;
    let mut ann = flight_users::connected(&server, "ann").await;
    let ids = (10..5_010).collect::<Int32Array>();
    let amounts = (10..5_010).collect::<Int32Array>();
    let columns: [(&str, ArrayRef); 2] = [("id", Arc::new(ids)), ("amount", Arc::new(amounts))];
    let rows = RecordBatch::try_from_iter(columns).unwrap();
    let command = CommandStatementIngest {
        table_definition_options: None,
        table: "salary".to_owned(),
        schema: None,
        catalog: None,
        temporary: false,
        transaction_id: None,
        options: HashMap::default(),
    };
    let sent = futures::stream::iter([Ok(rows)]);
    let ingested = ann.execute_ingest(command, sent).await;
    used_up(flight_users::refused(ingested));
    assert_eq!(counted(&root, "true").await, 0);
}

/// Definitions that go through 40,000 rows of `salary`.
const DEFINITIONS: [&str; 4] = [
    "create index by_amount on salary (amount)",
    "alter table salary add constraint u unique (amount, id)",
    "alter table salary add constraint c check (amount > 0)",
    "alter table salary alter column amount type bigint",
];

/// Ann may define what is there, and has so many touches, which are fewer than there are rows.
async fn start_with_rows() -> TestServer {
    let server = start(&budget(10_000), None).await;
    let all = json!("all_tables");
    done(&server, &grant(json!({"user": "ann"}), "write", all)).await;
    runs(&connected(&server, "root").await, INSERT).await;
    server
}

/// That nothing of a definition is there: it can be made.
async fn can_be_made(server: &TestServer, definition: &str) {
    let root = connected(server, "root").await;
    let kind = "select data_type from information_schema.columns where table_name = 'salary' and column_name = 'amount'";
    let row = root.query_one(kind, &[]).await.unwrap();
    assert_eq!(row.get::<_, &str>(0), "integer", "{definition}");
    runs(&root, definition).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_definition_that_costs_more_than_there_is_is_not_made_at_either_port() {
    for definition in DEFINITIONS {
        let server = start_with_rows().await;
        let ann = connected(&server, "ann").await;
        used_up(ann.simple_query(definition).await);
        used_up(ann.simple_query("select 1").await);
        can_be_made(&server, definition).await;
    }
    // In a block the statement is undone, and the block has failed.
    let server = start_with_rows().await;
    let ann = connected(&server, "ann").await;
    runs(&ann, "begin").await;
    runs(&ann, "create table mine (id int)").await;
    used_up(ann.query(DEFINITIONS[0], &[]).await);
    done(&server, &budget(1_000_000_000)).await;
    runs(&ann, "commit").await;
    can_be_made(&server, "create table mine (id int)").await;

    for definition in DEFINITIONS {
        let server = start_with_rows().await;
        let mut ann = flight_users::connected(&server, "ann").await;
        let changed = ann.execute_update(definition.to_owned(), None).await;
        let (code, message) = flight_users::refused(changed);
        assert_eq!(code, Code::ResourceExhausted, "{message}");
        assert!(message.contains("SQLSTATE 53400"), "{message}");
        can_be_made(&server, definition).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_definition_holds_is_memory_of_who_asks() {
    let server = start(&ann(json!({"memory": 2 << 20})), None).await;
    let all = json!("all_tables");
    done(&server, &grant(json!({"user": "ann"}), "write", all)).await;
    runs(&connected(&server, "root").await, INSERT).await;
    let rewritten = DEFINITIONS[3];
    let client = connected(&server, "ann").await;
    let (code, message) = refused(client.simple_query(rewritten).await);
    assert!(["53200", "53400"].contains(&&*code), "{code} {message}");
    let mut flight = flight_users::connected(&server, "ann").await;
    let changed = flight.execute_update(rewritten.to_owned(), None).await;
    let (code, message) = flight_users::refused(changed);
    assert_eq!(code, Code::ResourceExhausted, "{message}");
    can_be_made(&server, rewritten).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_of_flight_ends_with_the_budget() {
    let server = start(&budget(5_000_000), None).await;
    let mut ann = flight_users::connected(&server, "ann").await;
    let mut root = flight_users::connected(&server, "root").await;
    let used_up = |refused: (Code, String)| {
        let (code, message) = refused;
        assert_eq!(code, Code::ResourceExhausted, "{message}");
        assert!(message.contains("SQLSTATE 53400"), "{message}");
        assert!(message.contains(" touches in 86400 s"), "{message}");
    };
    let counted = "select count(*) from item";
    flight_users::rows(&mut ann, counted).await.unwrap();
    used_up(flight_users::refused(
        flight_users::rows(&mut ann, ENDLESS).await,
    ));
    used_up(flight_users::refused(
        flight_users::rows(&mut ann, "select 1").await,
    ));
    flight_users::rows(&mut root, counted).await.unwrap();

    // Rows that stream, and changes in a transaction.
    done(&server, &budget(20_000_000)).await;
    used_up(flight_users::refused(
        flight_users::rows(&mut ann, ROWS).await,
    ));
    done(&server, &budget(50_000_000)).await;
    let block = ann.begin_transaction().await.unwrap();
    let change = format!("insert into salary select 7, n from ({ENDLESS}) as t(n)");
    let changed = ann.execute_update(change, Some(block)).await;
    used_up(flight_users::refused(changed));
    done(&server, &budget(1_000_000_000_000)).await;
    flight_users::rows(&mut ann, counted).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_holds_so_much_memory_at_either_port() {
    let server = start(&ann(json!({"memory": 4 << 20})), None).await;
    let words = "4 MiB that your requests may hold";
    let client = connected(&server, "ann").await;
    let (code, message) = refused(client.simple_query(LARGE).await);
    assert_eq!(code, "53400", "{message}");
    assert!(message.contains(words), "{message}");
    let mut flight = flight_users::connected(&server, "ann").await;
    let (code, message) = flight_users::refused(flight_users::rows(&mut flight, LARGE).await);
    assert_eq!(code, Code::ResourceExhausted, "{message}");
    assert!(message.contains(words), "{message}");
    runs(&connected(&server, "root").await, LARGE).await;
    runs(&client, "select count(*) from item").await;
}

/// The rows that came before a refusal, and its code and words.
async fn until_refused(client: &Client, text: &str) -> (usize, String, String) {
    let rows = client.simple_query_raw(text).await.unwrap();
    let mut rows = std::pin::pin!(rows);
    let mut count = 0;
    loop {
        match rows.next().await {
            Some(Ok(SimpleQueryMessage::Row(_))) => count += 1,
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                let (code, message) = refused(Err::<(), _>(error));
                return (count, code, message);
            }
            None => panic!("{text}: all {count} rows came"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_has_as_many_rows_as_may_be_at_either_port() {
    let directory = tempfile::tempdir().unwrap();
    let server = start(&ann(json!({"rows": 100})), Some(directory.path())).await;
    let words = "more than the 100 rows that you may have";
    let (within, over) = (
        "select id from item where id <= 100",
        "select id from item where id <= 101",
    );
    let is_refused = |(code, message): (String, String)| {
        assert_eq!(code, "53400", "{message}");
        assert!(message.contains(words), "{message}");
    };
    let mut client = connected(&server, "ann").await;
    assert_eq!(client.query(within, &[]).await.unwrap().len(), 100);
    is_refused(refused(client.query(over, &[]).await));
    // What may be comes, and then why the rest does not.
    let (rows, code, message) = until_refused(&client, over).await;
    assert_eq!(rows, 100);
    is_refused((code, message));
    let out = |query: &str| format!("copy ({query}) to stdout");
    let copied = client.copy_out(&out(over)).await.unwrap();
    let copied: Result<Vec<Bytes>, _> = copied.try_collect().await;
    is_refused(refused(copied));
    let copied = client.copy_out(&out(within)).await.unwrap();
    copied.try_collect::<Vec<Bytes>>().await.unwrap();

    // Portions are one answer: of a portal,
    let block = client.transaction().await.unwrap();
    let portal = block.bind(over, &[]).await.unwrap();
    for expected in [60, 40] {
        let rows = block.query_portal(&portal, expected).await.unwrap();
        assert_eq!(rows.len(), expected as usize);
    }
    is_refused(refused(block.query_portal(&portal, 1).await));
    drop(block);
    // and of a cursor.
    runs(&client, "begin").await;
    runs(&client, &format!("declare c cursor for {over}")).await;
    assert_eq!(
        client.query("fetch 100 from c", &[]).await.unwrap().len(),
        100
    );
    is_refused(refused(client.query("fetch 1 from c", &[]).await));
    runs(&client, "rollback").await;

    // What a change gives back is no answer to a query.
    let given = "insert into salary select 1000 + id, 1 from item where id <= 200 returning id";
    assert_eq!(client.query(given, &[]).await.unwrap().len(), 200);
    let root = connected(&server, "root").await;
    assert!(root.query("select id from item", &[]).await.unwrap().len() > 100);

    let mut flight = flight_users::connected(&server, "ann").await;
    let rows = flight_users::rows(&mut flight, within).await.unwrap();
    let rows: usize = rows.iter().map(RecordBatch::num_rows).sum();
    assert_eq!(rows, 100);
    let (code, message) = flight_users::refused(flight_users::rows(&mut flight, over).await);
    assert_eq!(code, Code::ResourceExhausted, "{message}");
    assert!(
        message.contains(words) && message.contains("SQLSTATE 53400"),
        "{message}"
    );

    drop((client, root, flight));
    let entries = port_statements::stop(server, directory.path()).await;
    let of_over = entries.iter().filter(|entry| entry.text == over);
    let outcomes: Vec<_> = of_over.map(|entry| entry.outcome).collect();
    assert_eq!(outcomes, [Outcome::Exceeded; 4]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_has_as_many_bytes_as_may_be_at_either_port() {
    let server = start(&ann(json!({"bytes": 1_000})), None).await;
    let words = "more than the 1000 B that you may have";
    let text = |bytes: usize| format!("select repeat('x', {bytes}) as long");
    let client = connected(&server, "ann").await;
    let mut flight = flight_users::connected(&server, "ann").await;
    client.query(&text(1_000), &[]).await.unwrap();
    flight_users::rows(&mut flight, &text(1_000)).await.unwrap();
    let (code, message) = refused(client.query(&text(1_001), &[]).await);
    assert_eq!(code, "53400", "{message}");
    assert!(message.contains(words), "{message}");
    let (code, message) =
        flight_users::refused(flight_users::rows(&mut flight, &text(1_001)).await);
    assert_eq!(code, Code::ResourceExhausted, "{message}");
    assert!(message.contains(words), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_query_log_says_what_it_cost() {
    let directory = tempfile::tempdir().unwrap();
    let server = start(&budget(5_000_000), Some(directory.path())).await;
    let counted = "select count(*) from item";
    let client = connected(&server, "ann").await;
    runs(&client, counted).await;
    let mut flight = flight_users::connected(&server, "ann").await;
    flight_users::rows(&mut flight, counted).await.unwrap();
    let all = "select id from item";
    runs(&client, all).await;
    flight_users::rows(&mut flight, all).await.unwrap();
    used_up(client.simple_query(ENDLESS).await);
    drop((client, flight));
    let entries = port_statements::stop(server, directory.path()).await;
    let of = |text: &str| {
        let entries = entries.iter().filter(|entry| entry.text == text);
        let touches: Vec<u64> = entries.map(|entry| entry.touches.unwrap_or(0)).collect();
        touches
    };
    // The same at both ports: the rows that are looked at, and the values of the answer.
    for (text, expected) in [(counted, 1..4_000), (all, 4_000..4_001)] {
        let told = of(text);
        assert_eq!(told.len(), 2, "{text}");
        assert_eq!(told[0], told[1], "{text}");
        assert!(expected.contains(&told[0]), "{text}: {told:?}");
    }
    assert!(of(ENDLESS)[0] > 4_000_000);
    let last = entries.iter().find(|entry| entry.text == ENDLESS).unwrap();
    assert_eq!(last.outcome, Outcome::Exceeded);
}
