//! How PostgreSQL's clients find the writing server, and what they and Flight SQL's clients are
//! told elsewhere.

use crate::client::post;
use crate::fixture::TestServer;
use crate::users::postgres_users::{any_port, refused};
use arrow_flight::sql::client::FlightSqlServiceClient;
use orrery_flight::FlightOptions;
use orrery_object_store::{CacheOptions, ObjectOptions};
use orrery_postgres::PostgresOptions;
use orrery_storage::Database;
use std::path::Path;
use std::time::Duration;
use tokio_postgres::config::TargetSessionAttrs;
use tokio_postgres::{
    Client, Config, Connection, NoTls, SimpleQueryMessage, Socket, tls::NoTlsStream,
};

type Line = Connection<Socket, NoTlsStream>;

async fn connect(server: &TestServer) -> (Client, Line) {
    connect_to(&[server], TargetSessionAttrs::Any).await
}

/// The first of several servers that is as it is wanted.
async fn connect_to(servers: &[&TestServer], wanted: TargetSessionAttrs) -> (Client, Line) {
    let mut config = Config::new();
    config.user("tester").dbname("orrery");
    config.target_session_attrs(wanted);
    for server in servers {
        let address = server.postgres.unwrap();
        config.host(address.ip().to_string()).port(address.port());
    }
    config.connect(NoTls).await.unwrap()
}

/// Asks, while the connection is here to be asked for what the server has told.
async fn ask(
    client: &Client,
    line: &mut Line,
    text: &str,
) -> Result<String, tokio_postgres::Error> {
    let asked = client.simple_query(text);
    let answered = tokio::select! {
        answered = asked => answered?,
        ended = line => panic!("the connection ended: {ended:?}"),
    };
    let rows = answered.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or_default().to_owned()),
        _ => None,
    });
    Ok(rows.unwrap_or_default())
}

async fn sql(server: &TestServer, text: &str) -> String {
    let headers = ["Content-Type: application/sql", "Accept: text/csv"];
    let answer = post(server.address, "/sql", &headers, text.as_bytes()).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.text().trim().replace("\r\n", "|")
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_are_told_which_server_writes_and_when_another_takes_over() {
    let writing = TestServer::start_with(|options| {
        options.postgres = Some(PostgresOptions::new(any_port()));
    })
    .await;
    let db = writing.directory().join("db");
    let standing_by = TestServer::start_with(|options| {
        options.db = db;
        options.stands_by = true;
        options.postgres = Some(PostgresOptions::new(any_port()));
    })
    .await;
    let (first, mut of_first) = connect(&writing).await;
    assert_eq!(of_first.parameter("in_hot_standby"), Some("off"));
    assert_eq!(
        of_first.parameter("default_transaction_read_only"),
        Some("off")
    );
    ask(&first, &mut of_first, "create table t (a int)")
        .await
        .unwrap();
    for (text, here, there) in [
        ("show transaction_read_only", "off", "on"),
        ("select pg_catalog.pg_is_in_recovery()", "f", "t"),
    ] {
        let (second, mut of_second) = connect(&standing_by).await;
        assert_eq!(of_second.parameter("in_hot_standby"), Some("on"));
        assert_eq!(ask(&first, &mut of_first, text).await.unwrap(), here);
        assert_eq!(ask(&second, &mut of_second, text).await.unwrap(), there);
    }
    for (wanted, found) in [
        (TargetSessionAttrs::ReadWrite, "f"),
        (TargetSessionAttrs::ReadOnly, "t"),
    ] {
        for hosts in [[&writing, &standing_by], [&standing_by, &writing]] {
            let (client, mut line) = connect_to(&hosts, wanted).await;
            let asked = "select pg_is_in_recovery()";
            assert_eq!(ask(&client, &mut line, asked).await.unwrap(), found);
        }
    }
    let asked = "select pg_is_in_recovery() as x";
    assert_eq!(sql(&writing, asked).await, "x|f");
    assert_eq!(sql(&standing_by, asked).await, "x|t");
    let unit = "insert into t values (1); select pg_is_in_recovery() as x";
    assert_eq!(sql(&writing, unit).await, "x|f");

    // A connection that is there hears of it with the next answer.
    let (second, mut of_second) = connect(&standing_by).await;
    let insert = "insert into t values (2)";
    let (code, _) = refused(ask(&second, &mut of_second, insert).await);
    assert_eq!(code, "25006");
    drop(first);
    drop(of_first);
    let mut writing = writing;
    writing.ask_to_stop();
    let kept = writing.stopped_but_for_its_directory().await;
    let taken_over = async {
        while ask(&second, &mut of_second, insert).await.is_err() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), taken_over)
        .await
        .expect("nobody took over");
    assert_eq!(of_second.parameter("in_hot_standby"), Some("off"));
    let recovers = "select pg_is_in_recovery()";
    assert_eq!(ask(&second, &mut of_second, recovers).await.unwrap(), "f");
    drop(kept);
}

/// One of several servers that stand by over a directory which they share as a bucket.
async fn one_of_several(home: &Path, name: &str, port: u16) -> TestServer {
    let cache = CacheOptions {
        directory: home.join(name),
        bytes: 64 << 20,
    };
    let address = format!("file://{}", home.join("bucket").display());
    let opening = move || {
        let (files, root) = orrery_object_store::open(&address, &ObjectOptions { cache }).unwrap();
        Database::create_or_open_with(files.clone(), &root).unwrap();
        (files, root)
    };
    let (files, root) = tokio::task::spawn_blocking(opening).await.unwrap();
    TestServer::start_with(|options| {
        options.db = root;
        options.objects = Some(files);
        options.stands_by = true;
        options.advertise = Some(format!("http://127.0.0.1:{port}"));
        options.postgres = Some(PostgresOptions::new(any_port()));
        options.flight = Some(FlightOptions::new(any_port()));
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_is_refused_names_the_server_that_writes() {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join("bucket")).unwrap();
    let writing = one_of_several(home.path(), "first", 7001).await;
    let standing_by = one_of_several(home.path(), "second", 7002).await;
    let (client, mut line) = connect(&writing).await;
    ask(&client, &mut line, "create table t (a int)")
        .await
        .unwrap();
    let (client, mut line) = connect(&standing_by).await;
    assert_eq!(line.parameter("in_hot_standby"), Some("on"));
    let named = "http://127.0.0.1:7001";
    // It may not have looked yet who writes.
    let told = async {
        loop {
            let refused = ask(&client, &mut line, "insert into t values (1)").await;
            let error = refused.expect_err("it does not write");
            let error = error.as_db_error().unwrap();
            assert_eq!(error.code().code(), "25006");
            if let Some(hint) = error.hint() {
                return hint.to_owned();
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let hint = tokio::time::timeout(Duration::from_secs(30), told).await;
    let hint = hint.expect("it never knew");
    assert!(hint.contains(named), "{hint}");
    // What is read only by its own wish is another matter.
    ask(&client, &mut line, "begin read only").await.unwrap();
    let refused = ask(&client, &mut line, "insert into t values (1)").await;
    assert_eq!(refused.unwrap_err().as_db_error().unwrap().hint(), None);

    let address = format!("http://{}", standing_by.flight.unwrap());
    let channel = tonic::transport::Channel::from_shared(address).unwrap();
    let mut flight = FlightSqlServiceClient::new(channel.connect().await.unwrap());
    let change = "insert into t values (1)".to_owned();
    let refused = flight.execute_update(change, None).await.unwrap_err();
    let refused = refused.to_string();
    assert!(refused.contains("SQLSTATE 25006"), "{refused}");
    assert!(refused.contains(named), "{refused}");
}
