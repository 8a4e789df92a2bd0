//! Transactions of several sessions, and of a database that is closed in the middle of one.

mod common;

use std::time::Duration;

use common::House;
use orrery_sql::{SessionOptions, TransactionStatus};

#[test]
fn what_is_committed_is_there_after_opening_anew_and_nothing_else() {
    let mut house = House::new();
    let session = house.session();
    house.done(
        &session,
        "create table t (a int primary key, b text default 'x', check (a > 0));
         create index on t (b) include (a);
         create view v as select b, count(*) as n from t group by b;
         insert into t select value, 'b' || value % 3 from generate_series(1, 5000);
         delete from t where a % 2 = 0",
    );
    let asked = "select sum(a), min(t.b), max(n) from t, v where t.b = v.b";
    let before = house.rows(&session, asked);
    house.done(
        &session,
        "begin; delete from t; create table u (a int); insert into u values (1)",
    );
    drop(session);
    house.open();
    let session = house.session();
    assert_eq!(house.rows(&session, asked), before);
    assert_eq!(house.refused(&session, "select * from u").0, "42P01");
    assert_eq!(
        house.refused(&session, "insert into t values (0)").0,
        "23514"
    );
    assert_eq!(
        house.refused(&session, "insert into t values (1)").0,
        "23505"
    );
    house.done(&session, "insert into t values (2)");
    assert_eq!(house.rows(&session, "select b from t where a = 2"), ["x"]);
}

#[test]
fn readers_see_what_is_committed_and_a_block_sees_one_state() {
    let house = House::new();
    let (one, two) = (house.session(), house.session());
    house.done(&one, "create table t (a int)");
    house.done(&one, "begin; insert into t values (1)");
    assert_eq!(house.rows(&one, "select count(*) from t"), ["1"]);
    assert_eq!(house.rows(&two, "select count(*) from t"), ["0"]);
    house.done(&two, "begin");
    assert_eq!(house.rows(&two, "select count(*) from t"), ["0"]);
    house.done(&one, "commit");
    // Still the state that it saw first.
    assert_eq!(house.rows(&two, "select count(*) from t"), ["0"]);
    let (code, message) = house.refused(&two, "insert into t values (2)");
    assert_eq!(code, "40001", "{message}");
    assert_eq!(two.transaction_status(), TransactionStatus::Failed);
    house.done(&two, "rollback; begin; insert into t values (2); commit");
    assert_eq!(house.rows(&one, "select count(*) from t"), ["2"]);
}

#[test]
fn beginning_takes_no_turn_and_a_block_that_failed_gives_it_back() {
    let house = House::new();
    let (one, two) = (house.session(), house.session());
    house.done(&one, "create table t (a int primary key)");
    house.done(&one, "begin");
    house.done(&two, "insert into t values (1)");
    house.done(&one, "insert into t values (2)");
    assert_eq!(house.refused(&one, "insert into t values (1)").0, "23505");
    // The first one has not said ROLLBACK yet.
    house.done(&two, "insert into t values (2)");
    assert_eq!(house.refused(&one, "commit; select x").0, "42703");
    assert_eq!(house.rows(&one, "select count(*) from t"), ["2"]);
}

#[test]
fn a_block_that_idles_with_the_turn_is_ended() {
    let house = House::new();
    let options = SessionOptions {
        idle_max: Duration::from_millis(1),
        ..SessionOptions::default()
    };
    let (one, two) = (house.session_with(options), house.session());
    house.done(&two, "create table t (a int primary key)");
    house.done(&two, "insert into t values (0)");
    house.done(&one, "begin");
    // Whether the limit is reached before or after the statement's own end, the turn is given back, or this would wait for ever.
    let _ = house.run(&one, "insert into t values (1)");
    house.done(&two, "insert into t values (1)");
    let (code, message) = house.refused(&one, "select * from t");
    assert_eq!(code, "25P03", "{message}");
    house.done(&one, "rollback");
    assert_eq!(house.rows(&one, "select count(*) from t"), ["2"]);
}

#[test]
fn a_statement_that_is_stopped_leaves_nothing() {
    let house = House::new();
    let session = house.session();
    house.done(&session, "create table t (a bigint primary key)");
    house.done(&session, "begin; insert into t values (-1)");
    let statement = session
        .statements("insert into t select value from generate_series(0, 3000000)")
        .unwrap()
        .remove(0);
    house.threads.block_on(async {
        let running = std::pin::pin!(session.execute(&statement));
        // It begins, and is dropped where it first waits.
        assert!(futures::poll!(running).is_pending());
    });
    assert_eq!(session.transaction_status(), TransactionStatus::Failed);
    house.done(&session, "rollback");
    assert_eq!(house.rows(&session, "select count(*) from t"), ["0"]);
    // Nobody keeps the turn.
    house.done(&session, "insert into t values (1)");
}

#[test]
fn without_a_writer_nothing_is_changed() {
    let house = House::new();
    house.done(&house.session(), "create table t (a int)");
    let session = house.read_only();
    assert_eq!(house.rows(&session, "select count(*) from t"), ["0"]);
    for text in [
        "insert into t values (1)",
        "drop table t",
        "create view v as select 1 as a",
    ] {
        assert_eq!(house.refused(&session, text).0, "25006", "{text}");
    }
}

#[test]
fn more_rows_than_memory_are_refused_and_leave_nothing() {
    let house = House::with_memory(24 << 20);
    let session = house.session();
    house.done(&session, "create table t (a bigint, b text)");
    let (code, message) = house.refused(
        &session,
        "insert into t select value, repeat('x', 100) from generate_series(1, 1000000)",
    );
    assert_eq!(code, "53200", "{message}");
    assert_eq!(house.rows(&session, "select count(*) from t"), ["0"]);
    house.done(&session, "insert into t values (1, 'y')");
}
