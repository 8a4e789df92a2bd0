//! Portals and cursors of PostgreSQL's clients that wait for the next fetch: what they hold counts
//! towards the server's memory and their user's.

use crate::fixture::TestServer;
use crate::usage::metering::limit;
use crate::users::access::{grant, start_with};
use crate::users::postgres_users::{any_port, connected, done, make_tables, refused, table, users};
use orrery_postgres::PostgresOptions;
use serde_json::{Value, json};
use tokio_postgres::Client;

const ROWS: usize = 50_000;
const SELECT: &str = "select * from big";

async fn start(more: &[Value], memory_bytes: u64) -> TestServer {
    let mut commands = users();
    commands.push(grant(json!({"user": "ann"}), "write", table("big")));
    commands.extend_from_slice(more);
    let server = start_with(&commands, |options| {
        options.postgres = Some(PostgresOptions::new(any_port()));
        options.memory_bytes = memory_bytes;
    })
    .await;
    make_tables(&server).await;
    let root = connected(&server, "root").await;
    let made = format!(
        "create table big (id int primary key, t text);
         insert into big select i, 'text number ' || i from generate_series(1, {ROWS}) as s(i)"
    );
    root.batch_execute(&made).await.unwrap();
    server
}

async fn runs(client: &Client, text: &str) {
    client.batch_execute(text).await.unwrap();
}

/// Declares cursors and takes a row of each until one is refused: their number then, code and
/// message.
async fn cursors_until_refused(client: &Client, prefix: &str) -> (usize, String, String) {
    for number in 0..100 {
        let text =
            format!("declare {prefix}{number} cursor for {SELECT}; fetch 1 from {prefix}{number}");
        let taken = client.batch_execute(&text).await;
        if taken.is_err() {
            let (code, message) = refused(taken);
            return (number, code, message);
        }
    }
    panic!("100 cursors were not refused");
}

#[tokio::test(flavor = "multi_thread")]
async fn cursors_that_wait_are_within_the_memory_of_all_and_give_it_back() {
    let server = start(&[], 128 << 20).await;
    let client = connected(&server, "root").await;
    runs(&client, "begin").await;
    let (first, code, message) = cursors_until_refused(&client, "c").await;
    assert_eq!(code, "53200", "{message}");
    assert!(first > 0);
    // Others do what needs no more of it; and so does this one, once the block is over.
    let other = connected(&server, "ann").await;
    runs(&other, "select count(*) from big").await;
    runs(&client, "rollback; select count(*) from big").await;
    // All of it came back: as many as before.
    runs(&client, "begin").await;
    let (second, ..) = cursors_until_refused(&client, "d").await;
    assert_eq!(second, first);
    runs(&client, "rollback; begin").await;
    // A closed cursor, and one whose last row was given, hold nothing: many more come and go.
    for number in 0..2 * first {
        let declared = format!("declare e{number} cursor for {SELECT}; fetch 1 from e{number}");
        runs(&client, &declared).await;
        let end = match number % 2 {
            0 => format!("close e{number}"),
            _ => format!("fetch all from e{number}"),
        };
        runs(&client, &end).await;
    }
    runs(&client, "commit").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn portals_that_wait_are_within_the_memory_of_all_and_of_their_user() {
    let server = start(&[], 128 << 20).await;
    let of_ann = json!({"memory": 8 << 20});
    for (user, expected) in [("root", "53200"), ("ann", "53400")] {
        done(&server, &limit(json!({"user": "ann"}), of_ann.clone())).await;
        let mut client = connected(&server, user).await;
        let block = client.transaction().await.unwrap();
        let mut portals = Vec::new();
        let (code, message) = loop {
            let portal = block.bind(SELECT, &[]).await.unwrap();
            let taken = block.query_portal(&portal, 1).await;
            if taken.is_err() {
                break refused(taken);
            }
            portals.push(portal);
            assert!(portals.len() < 200, "{user}");
        };
        assert_eq!(code, expected, "{message}");
        drop((portals, block));
        runs(&client, "select count(*) from big").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_few_cursors_and_portals_are_read_in_pieces_to_their_ends() {
    let server = start(&[], 256 << 20).await;
    let mut client = connected(&server, "ann").await;
    runs(&client, "begin").await;
    for number in 0..10 {
        runs(&client, &format!("declare c{number} cursor for {SELECT}")).await;
    }
    let mut counts = [0; 10];
    for _ in 0..=ROWS / 10_000 {
        for (number, count) in counts.iter_mut().enumerate() {
            let fetch = format!("fetch 10000 from c{number}");
            *count += client.query(&fetch, &[]).await.unwrap().len();
        }
    }
    assert_eq!(counts, [ROWS; 10]);
    // Behind the end there is nothing, again and again.
    assert!(
        client
            .query("fetch 1 from c0", &[])
            .await
            .unwrap()
            .is_empty()
    );
    runs(&client, "commit").await;

    let block = client.transaction().await.unwrap();
    let portal = block.bind(SELECT, &[]).await.unwrap();
    let mut count = 0;
    loop {
        let rows = block.query_portal(&portal, 7_000).await.unwrap().len();
        count += rows;
        if rows < 7_000 {
            break;
        }
    }
    assert_eq!(count, ROWS);
}

#[tokio::test(flavor = "multi_thread")]
async fn portals_and_cursors_give_no_rows_in_a_transaction_that_has_failed() {
    let server = start(&[], 256 << 20).await;
    let mut client = connected(&server, "ann").await;
    let block = client.transaction().await.unwrap();
    let cursor = format!("declare c cursor for {SELECT}");
    block.batch_execute(&cursor).await.unwrap();
    let fetch = block.prepare("fetch 1 from c").await.unwrap();
    let begun = block.bind(SELECT, &[]).await.unwrap();
    let not_begun = block.bind(SELECT, &[]).await.unwrap();
    let of_cursor = block.bind(&fetch, &[]).await.unwrap();
    assert_eq!(block.query_portal(&begun, 10).await.unwrap().len(), 10);
    block.batch_execute("savepoint s").await.unwrap();
    assert!(block.batch_execute("select 1 / 0").await.is_err());
    for portal in [&begun, &not_begun, &of_cursor] {
        let (code, message) = refused(block.query_portal(portal, 10).await);
        assert_eq!(code, "25P02", "{message}");
    }
    let (code, message) = refused(block.query(&fetch, &[]).await);
    assert_eq!(code, "25P02", "{message}");
    let (code, message) = refused(block.batch_execute("fetch 1 from c").await);
    assert_eq!(code, "25P02", "{message}");
    // What began before the savepoint goes on behind it.
    block.batch_execute("rollback to s").await.unwrap();
    assert_eq!(block.query_portal(&begun, 10).await.unwrap().len(), 10);
    assert_eq!(block.query(&fetch, &[]).await.unwrap().len(), 1);
}
