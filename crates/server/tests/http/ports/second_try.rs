//! A query that ran out of memory beside others runs once more, whichever port it came by.

use crate::fixture::TestServer;
use crate::users::access::start_with;
use crate::users::flight_users;
use crate::users::postgres_users::{any_port, connected, make_tables, refused, users, value};
use orrery_flight::FlightOptions;
use orrery_postgres::PostgresOptions;
use std::time::Duration;
use tokio_postgres::Client;

const ROWS: usize = 40_000;
/// All of its rows are in one hash table.
const HEAVY: &str = "select length(string_agg(t, ','))::text from big";

async fn start() -> TestServer {
    let server = start_with(&users(), |options| {
        options.postgres = Some(PostgresOptions::new(any_port()));
        options.flight = Some(FlightOptions::new(any_port()));
        options.memory_bytes = 64 << 20;
    })
    .await;
    make_tables(&server).await;
    let root = connected(&server, "root").await;
    let made = "create table big (id int primary key, t text)";
    root.batch_execute(made).await.unwrap();
    for first in (0..ROWS).step_by(10_000) {
        let (first, last) = (first + 1, first + 10_000);
        let more = format!(
            "insert into big select i, 'text number ' || i || repeat('x', 50) from generate_series({first}, {last}) as s(i)"
        );
        root.batch_execute(&more).await.unwrap();
    }
    server
}

/// Holds as much of the memory as there is, in cursors that wait.
async fn hold_the_memory(client: &Client) {
    client.batch_execute("begin").await.unwrap();
    for number in 0..200 {
        let text =
            format!("declare c{number} cursor for select * from big; fetch 1 from c{number}");
        // A refusal would end the block, and all that it holds.
        let held = client.batch_execute("savepoint s").await;
        held.unwrap();
        let taken = client.batch_execute(&text).await;
        if taken.is_err() {
            assert_eq!(refused(taken).0, "53200");
            let back = client.batch_execute("rollback to s").await;
            return back.unwrap();
        }
    }
    panic!("200 cursors were not refused");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_that_ran_out_of_memory_beside_others_runs_once_more_at_the_ports() {
    let server = start().await;
    let (holder, client) = tokio::join!(connected(&server, "root"), connected(&server, "root"));
    let expected = value(&client, HEAVY).await;
    let prepared = client.prepare(HEAVY).await.unwrap();
    let mut flight = flight_users::connected(&server, "root").await;

    for door in ["simple", "extended", "flight"] {
        hold_the_memory(&holder).await;
        let gives_back = async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            holder.batch_execute("rollback").await.unwrap();
        };
        let asks = async {
            match door {
                "simple" => value(&client, HEAVY).await,
                "extended" => {
                    let row = client.query_one(&prepared, &[]).await.unwrap();
                    row.get::<_, String>(0)
                }
                _ => {
                    let batches = flight_users::rows(&mut flight, HEAVY).await.unwrap();
                    let column = batches[0].column(0);
                    arrow::util::display::array_value_to_string(column, 0).unwrap()
                }
            }
        };
        let (answer, ()) = tokio::join!(asks, gives_back);
        assert_eq!(answer, expected, "{door}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_of_a_port_that_others_leave_no_memory_for_is_refused() {
    let server = start().await;
    let (holder, client) = tokio::join!(connected(&server, "root"), connected(&server, "root"));
    hold_the_memory(&holder).await;
    let (code, message) = refused(client.query(HEAVY, &[]).await);
    assert_eq!(code, "53200", "{message}");
    // A transaction has failed with it, and its client is told why.
    for begins in ["begin", "select 1", "begin read only"] {
        let (code, message) = refused(client.batch_execute(&format!("{begins}; {HEAVY}")).await);
        assert_eq!(code, "53200", "{begins}: {message}");
        client.batch_execute("rollback").await.unwrap();
    }
    // The connection goes on, and so does the query once there is memory.
    holder.batch_execute("rollback").await.unwrap();
    client.query(HEAVY, &[]).await.unwrap();
}
