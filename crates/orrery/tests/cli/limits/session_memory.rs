//! What a PostgreSQL connection holds is within the server's memory: values that wait, prepared
//! statements, rows that a change returns.

use crate::limits::server_memory::most_held;
use crate::ports::postgres::{PostgresServer, RawClient};

const MEMORY_BYTES: u64 = 256 << 20;

#[track_caller]
fn assert_within(held: u64) {
    assert!(
        held < MEMORY_BYTES + MEMORY_BYTES / 10,
        "{} MiB",
        held >> 20
    );
}

/// A message that binds a text of so many bytes to the portal of a number.
fn bind(portal: usize, bytes: usize) -> Vec<u8> {
    let mut body = format!("p{portal}\0s\0").into_bytes();
    body.extend([0, 0, 0, 1]);
    body.extend((bytes as u32).to_be_bytes());
    body.resize(body.len() + bytes, b'x');
    body.extend([0, 0]);
    body
}

#[test]
#[cfg(target_os = "linux")]
fn values_that_wait_for_their_statement_are_within_the_memory() {
    let server = PostgresServer::start(&["--memory", "256M"]);
    let mut client = RawClient::connect(&server);
    assert_eq!(
        client.ask(&[(b'P', b"s\0select length($1)\0\0\0"), (b'S', b"")]),
        "1Z"
    );
    let held = most_held(server.process(), |_| {
        for portal in 0..20 {
            client.send(&[(b'B', &bind(portal, 30 << 20))]);
        }
        // Sync ends the transaction and with it its portals, so none comes between.
        let told = client.ask(&[(b'S', b"")]);
        assert!(told.starts_with('2') && told.ends_with("E53200Z"), "{told}");
        // What was held is given back.
        assert_eq!(client.query("select 1"), "TDCZ");
    });
    assert_within(held);
}

#[test]
#[cfg(target_os = "linux")]
fn prepared_statements_are_within_the_memory() {
    let server = PostgresServer::start(&["--memory", "256M"]);
    let mut client = RawClient::connect(&server);
    let columns: Vec<String> = (0..1_500).map(|number| format!("c{number} int")).collect();
    let create = format!(
        "create table wide (id int primary key, {})",
        columns.join(", ")
    );
    assert_eq!(client.query(&create), "CZ");
    let held = most_held(server.process(), |_| {
        for number in 0..150 {
            let parse = format!(
                "s{number}\0select * from wide a join wide b on a.id = b.id where a.c1 = $1\0\0\0"
            );
            let told = client.ask(&[(b'P', parse.as_bytes()), (b'S', b"")]);
            assert!(["1Z", "E53200Z"].contains(&told.as_str()), "{told}");
        }
    });
    assert_within(held);
}

#[test]
#[cfg(target_os = "linux")]
fn many_small_prepared_statements_are_within_the_memory() {
    const AT_ONCE: usize = 100;
    let server = PostgresServer::start(&["--memory", "256M"]);
    let mut client = RawClient::connect(&server);
    assert_eq!(
        client.query("create table t (a int primary key, b text)"),
        "CZ"
    );
    let held = most_held(server.process(), |_| {
        // As many as a session may keep.
        for first in (0..10_000).step_by(AT_ONCE) {
            let parses = (first..first + AT_ONCE).map(|number| {
                format!("s{number}\0select a, b from t where a = $1 and b <> '{number}'\0\0\0")
            });
            let parses: Vec<String> = parses.collect();
            let messages = parses.iter().map(|parse| (b'P', parse.as_bytes()));
            let messages: Vec<_> = messages.chain([(b'S', &b""[..])]).collect();
            let told = client.ask(&messages);
            if told != format!("{}Z", "1".repeat(AT_ONCE)) {
                assert!(told.ends_with("E53200Z"), "{told}");
                break;
            }
        }
    });
    assert_within(held);
}

#[test]
#[cfg(target_os = "linux")]
fn rows_that_a_change_gives_back_are_within_the_memory() {
    let server = PostgresServer::start(&["--memory", "256M"]);
    let mut client = RawClient::connect(&server);
    assert_eq!(client.query("create table t (a int primary key)"), "CZ");
    let held = most_held(server.process(), |_| {
        let text = "insert into t select value from generate_series(1, 20000) returning repeat('x', 50000)";
        assert_eq!(client.query(text), "E53200Z");
        assert_eq!(client.query("select count(*) from t"), "TDCZ");
        let text =
            "insert into t select value from generate_series(1, 20000) returning repeat('x', 1000)";
        assert!(client.query(text).ends_with("CZ"));
    });
    assert_within(held);
}
