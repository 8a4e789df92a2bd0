//! More changing clients than places for statements: a statement that waits for the writers' turn
//! takes no place from the one that has it.

use crate::client::{get, post};
use crate::fixture::TestServer;
use crate::users::postgres_users::{any_port, connect};
use arrow_flight::sql::EndTransaction;
use arrow_flight::sql::client::FlightSqlServiceClient;
use orrery_flight::FlightOptions;
use orrery_postgres::PostgresOptions;
use std::net::SocketAddr;
use tokio::task::JoinSet;

/// Statements that run at the same time.
const PLACES: usize = 2;
const CLIENTS: usize = 24;
const TRANSACTIONS: usize = 3;

async fn start() -> TestServer {
    let server = TestServer::start_with(|options| {
        options.service.queries_running_max = PLACES;
        options.postgres = Some(PostgresOptions::new(any_port()));
        options.flight = Some(FlightOptions::new(any_port()));
    })
    .await;
    sql(server.address, "create table t (client int, number int)").await;
    server
}

async fn sql(address: SocketAddr, text: &str) -> String {
    let headers = ["Content-Type: application/sql", "Accept: text/csv"];
    let answer = post(address, "/sql", &headers, text.as_bytes()).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.text().trim().replace("\r\n", "|")
}

fn insertion(client: usize, number: usize) -> String {
    format!("insert into t values ({client}, {number})")
}

/// Rows that all clients together have inserted, two a transaction.
async fn all_are_there(server: &TestServer) {
    let counted = sql(server.address, "select count(*) as n from t").await;
    assert_eq!(counted, format!("n|{}", CLIENTS * TRANSACTIONS * 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_of_postgresql_with_transactions_may_be_more_than_there_are_places() {
    let server = start().await;
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS {
        let connected = connect(&server, "any", "none").await.unwrap();
        clients.spawn(async move {
            for number in 0..TRANSACTIONS {
                let transaction = ["begin", &insertion(client, number), "select 1"];
                for statement in transaction {
                    connected.simple_query(statement).await.unwrap();
                }
                // Prepared ones, too.
                let prepared = connected.prepare("insert into t values ($1, $2)").await;
                let values = [client as i32, number as i32];
                let values: [&(dyn tokio_postgres::types::ToSql + Sync); 2] =
                    [&values[0], &values[1]];
                connected
                    .execute(&prepared.unwrap(), &values)
                    .await
                    .unwrap();
                connected.simple_query("commit").await.unwrap();
            }
        });
    }
    // Readers are not kept waiting by them either.
    let asked = get(server.address, "/sparql?query=ASK%7B%7D", &[]).await;
    assert_eq!(asked.status, 200);
    while let Some(done) = clients.join_next().await {
        done.unwrap();
    }
    all_are_there(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_of_flight_sql_with_transactions_may_be_more_than_there_are_places() {
    let server = start().await;
    let address = format!("http://{}", server.flight.unwrap());
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS {
        let channel = tonic::transport::Channel::from_shared(address.clone()).unwrap();
        clients.spawn(async move {
            let mut flight = FlightSqlServiceClient::new(channel.connect().await.unwrap());
            for number in 0..TRANSACTIONS {
                let transaction = flight.begin_transaction().await.unwrap();
                for _ in 0..2 {
                    let changed = insertion(client, number);
                    let changed = flight.execute_update(changed, Some(transaction.clone()));
                    assert_eq!(changed.await.unwrap(), 1);
                }
                let ended = flight.end_transaction(transaction, EndTransaction::Commit);
                ended.await.unwrap();
            }
        });
    }
    while let Some(done) = clients.join_next().await {
        done.unwrap();
    }
    all_are_there(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_of_all_protocols_may_be_more_than_there_are_places() {
    let server = start().await;
    let address = server.address;
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS {
        let connected = connect(&server, "any", "none").await.unwrap();
        clients.spawn(async move {
            for number in 0..TRANSACTIONS {
                connected
                    .simple_query(&insertion(client, number))
                    .await
                    .unwrap();
            }
        });
        clients.spawn(async move {
            for number in 0..TRANSACTIONS {
                sql(address, &insertion(client, number)).await;
                let update = format!("INSERT DATA {{ <http://e/{client}> <http://e/p> {number} }}");
                let headers = ["Content-Type: application/sparql-update"];
                let answer = post(address, "/sparql", &headers, update.as_bytes()).await;
                assert_eq!(answer.status, 200, "{}", answer.text());
            }
        });
    }
    while let Some(done) = clients.join_next().await {
        done.unwrap();
    }
    all_are_there(&server).await;
}
