//! Tests of concurrent transactions, and of a database closed in the middle of one.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::House;
use datafusion::arrow::util::pretty::pretty_format_batches;
use futures::TryStreamExt;
use orrery_sql::{
    Outcome, Session, SessionOptions, SqlState, TransactionStatus, WriterPlace, WriterSource,
};
use orrery_storage::Writer;

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
fn a_transaction_reads_an_old_state_by_its_commit_or_by_a_time() {
    let mut house = House::new();
    let session = house.session();
    house.done(&session, "create table t (a int primary key)");
    let created = house.commit();
    house.done(&session, "insert into t values (1), (2)");
    let inserted = house.commit();
    house.done(
        &session,
        "delete from t where a = 1; alter table t add column b int default 7; create table u (c int)",
    );
    drop(session);
    let count = "select count(*), sum(a) from t";
    for is_opened_anew in [false, true] {
        if is_opened_anew {
            house.open();
        }
        let session = house.session();
        let at = |state: &str| {
            let set = format!("begin; set transaction snapshot '{state}'");
            house.done(&session, &set);
        };
        at(&inserted.to_string());
        assert_eq!(house.rows(&session, count), ["2 3"]);
        // Its columns and tables are those of then.
        assert_eq!(house.rows(&session, "select * from t"), ["1", "2"]);
        assert_eq!(house.refused(&session, "select * from u").0, "42P01");
        house.done(&session, "rollback");
        at(&created.to_string());
        assert_eq!(house.rows(&session, count), ["0 NULL"]);
        // Nothing is changed in it.
        let refused = house.refused(&session, "insert into t values (9)");
        assert_eq!(refused.0, "25006", "{}", refused.1);
        house.done(&session, "rollback");
        at("9999-12-31");
        assert_eq!(house.rows(&session, count), ["1 2"]);
        house.done(&session, "commit");
        assert_eq!(house.rows(&session, "select * from t"), ["2 7"]);
    }
    let session = house.session();
    // What is not there, what is no state, and what comes too late.
    for (statements, code) in [
        ("begin; set transaction snapshot '1000000'", "72000"),
        ("begin; set transaction snapshot '1971-01-01'", "72000"),
        ("begin; set transaction snapshot 'yesterday'", "22023"),
        ("set transaction snapshot '1'", "25P01"),
        ("begin; select 1; set transaction snapshot '1'", "25001"),
    ] {
        let (found, message) = house.refused(&session, statements);
        assert_eq!(found, code, "{statements}: {message}");
        house.done(&session, "rollback");
    }
}

#[test]
fn an_index_of_many_rows_is_in_a_file_and_not_in_memory() {
    let mut house = House::new();
    let session = house.session();
    house.done(
        &session,
        "create table t (a int primary key, b int, c text);
         create index first on t (b);
         insert into t select value, value % 7, 'c' || value / 2 from generate_series(1, 20000);
         delete from t where a > 19990",
    );
    let (code, message) = house.refused(&session, "create unique index second on t (c)");
    assert_eq!(code, "23505", "{message}");
    assert!(
        message.starts_with("could not create unique index \"second\"; Key (c)=("),
        "{message}"
    );
    assert!(message.contains(") is duplicated."), "{message}");
    let counted = "select count(*), sum(a), count(distinct c) from t";
    let before = house.rows(&session, counted);
    assert_eq!(before, ["19990 199810045 9996"]);
    house.done(
        &session,
        "begin; insert into t values (0, 1, 'c0'); create index second on t (c) include (b); commit",
    );
    drop(session);
    for is_opened_anew in [false, true] {
        if is_opened_anew {
            house.open();
        }
        let snapshot = house.writer.as_ref().unwrap().database().snapshot();
        let table = snapshot.tables().table_named("public", "t").unwrap();
        assert_eq!(table.indexes().count(), 2);
        assert_eq!(table.changes(), 0);
        let session = house.session();
        assert_eq!(house.rows(&session, counted), ["19991 199810045 9996"]);
        let found = "select a, b from t where c = 'c0' order by a";
        assert_eq!(house.rows(&session, found), ["0 1", "1 1"]);
        // All projections take part in changes.
        house.done(&session, "begin; delete from t where c = 'c0'");
        assert_eq!(house.rows(&session, found), [""; 0]);
        house.done(&session, "rollback");
    }
}

#[test]
fn begin_takes_no_writer_lock_and_a_failed_block_releases_it() {
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
fn an_idle_block_with_the_writer_lock_is_ended() {
    let house = House::new();
    let options = SessionOptions {
        idle_max: Duration::from_millis(1),
        ..SessionOptions::default()
    };
    let (one, two) = (house.session_with(options), house.session());
    house.done(&two, "create table t (a int primary key)");
    house.done(&two, "insert into t values (0)");
    house.done(&one, "begin");
    // Whether the limit is reached before or after the statement's own end, the turn is given back,
    // or this would wait for ever.
    let _ = house.run(&one, "insert into t values (1)");
    house.done(&two, "insert into t values (1)");
    let (code, message) = house.refused(&one, "select * from t");
    assert_eq!(code, "25P03", "{message}");
    house.done(&one, "rollback");
    assert_eq!(house.rows(&one, "select count(*) from t"), ["2"]);
}

#[test]
fn a_block_that_waits_for_rows_does_not_idle() {
    let house = House::new();
    let options = SessionOptions {
        idle_max: Duration::from_millis(200),
        ..SessionOptions::default()
    };
    let (one, two) = (house.session_with(options), house.session());
    house.done(&two, "create table t (a bigint primary key)");
    house.done(&one, "begin; insert into t values (1)");
    // It gives its first row when all are sorted, long after the limit.
    let long = "select max(a) from (select value as a, row_number() over (order by value * 7919 % 3000017) as n
        from generate_series(1, 3000000)) t where n % 2 = 0";
    let before = std::time::Instant::now();
    house.done(&one, long);
    let took = before.elapsed();
    assert!(
        took > Duration::from_millis(400),
        "{took:?} is no long query"
    );
    house.done(&one, "commit");
    assert_eq!(house.rows(&two, "select count(*) from t"), ["1"]);
}

#[test]
fn the_commit_of_a_block_that_was_ended_fails() {
    let house = House::new();
    let options = SessionOptions {
        idle_max: Duration::from_millis(1),
        ..SessionOptions::default()
    };
    let (one, two) = (house.session_with(options), house.session());
    house.done(&two, "create table t (a int primary key)");
    house.done(&one, "begin; insert into t values (1)");
    // Waits for the turn, so until the block is over.
    house.done(&two, "insert into t values (2)");
    let (code, message) = house.refused(&one, "commit");
    assert_eq!(code, "25P03", "{message}");
    assert_eq!(one.transaction_status(), TransactionStatus::Idle);
    assert_eq!(house.rows(&one, "select a from t"), ["2"]);
}

#[test]
fn a_block_ends_with_the_turn_of_its_server_to_write() {
    let mut house = House::new();
    let setup = house.session();
    house.done(&setup, "create table t (a int primary key)");
    let sessions: Vec<_> = (0..3).map(|_| house.session()).collect();
    let [changed, unchanged, reading] = &sessions[..] else {
        panic!("three");
    };
    house.done(unchanged, "begin; delete from t; commit");
    house.done(reading, "begin; select a from t");
    house.done(changed, "begin; insert into t values (1)");
    let writer = house.writer.take().unwrap();
    let database = std::sync::Arc::clone(writer.database());
    writer.end_turn("another node leads");
    // Another may write at once, whoever says nothing here.
    let next = database.open_writer(orrery_storage::WriterOptions::default());
    house.writer = Some(next.unwrap());
    house.done(&house.session(), "insert into t values (2)");
    let (code, message) = house.refused(changed, "select a from t");
    assert_eq!(code, "40001", "{message}");
    assert_eq!(changed.transaction_status(), TransactionStatus::Failed);
    house.done(changed, "rollback");
    assert_eq!(house.rows(reading, "select a from t"), [""; 0]);
    assert_eq!(house.rows(&house.session(), "select a from t"), ["2"]);
}

#[test]
fn the_commit_of_a_block_whose_server_writes_no_more_fails() {
    let mut house = House::new();
    let session = house.session();
    house.done(&session, "create table t (a int primary key)");
    for changed in ["insert into t values (1)", "delete from t"] {
        let session = house.session();
        house.done(&session, "begin");
        house.done(&session, changed);
        house
            .writer
            .as_ref()
            .unwrap()
            .end_turn("another node leads");
        let (code, message) = house.refused(&session, "commit");
        assert_eq!(code, "40001", "{changed}: {message}");
        assert_eq!(session.transaction_status(), TransactionStatus::Idle);
        house.open();
    }
    assert_eq!(house.rows(&house.session(), "select a from t"), [""; 0]);
}

#[test]
fn a_block_is_ended_after_the_time_that_its_client_sets() {
    let house = House::new();
    let (one, two) = (house.session(), house.session());
    house.done(&one, "create table t (a int primary key)");
    let ended = |session: &orrery_sql::Session| {
        let begun = std::time::Instant::now();
        while session.transaction_status() != TransactionStatus::Failed {
            assert!(begun.elapsed() < Duration::from_secs(30), "it goes on");
            std::thread::yield_now();
        }
    };
    // One that reads, and one that others wait for.
    for statement in ["select a from t", "insert into t values (1)"] {
        house.done(&one, "begin");
        house.done(&one, statement);
        // Within it, too, where it was looked after for another time.
        house.done(&one, "set local idle_in_transaction_session_timeout = 1");
        ended(&one);
        assert_eq!(house.refused(&one, "select a from t").0, "25P03");
        house.done(&one, "rollback");
        house.done(&two, "delete from t");
    }
    // What was changed before a savepoint is gone with the turn: nothing brings the block back.
    for statement in ["select a from t", "insert into t values (1)"] {
        house.done(&one, "begin");
        house.done(&one, "savepoint first");
        house.done(&one, statement);
        house.done(&one, "savepoint second");
        house.done(&one, "set local idle_in_transaction_session_timeout = 1");
        ended(&one);
        for savepoint in ["second", "first"] {
            let text = format!("rollback to {savepoint}");
            assert_eq!(house.refused(&one, &text).0, "25P02");
        }
        house.done(&one, "rollback");
    }
    // Zero is the server's time.
    house.done(&one, "begin; select a from t");
    assert_eq!(house.rows(&one, "select a from t"), [""; 0]);
    house.done(&one, "commit");
}

#[test]
fn an_error_in_rows_of_an_ended_block_does_not_fail_a_later_block() {
    let house = House::new();
    let session = house.session();
    house.done(&session, "create table t (a int primary key)");
    house.done(&session, "begin");
    let text = "select 1 / (value - 200000) from generate_series(1, 300000)";
    let statement = session.statements(text).unwrap().remove(0);
    let rows = house.threads.block_on(session.execute(&statement)).unwrap();
    let orrery_sql::Outcome::Query(mut rows) = rows else {
        panic!("a query has rows");
    };
    house.done(&session, "commit; begin; insert into t values (1)");
    let failed = house.threads.block_on(async {
        use futures::StreamExt;
        loop {
            match rows.next().await {
                Some(Ok(_)) => {}
                Some(Err(_)) => return true,
                None => return false,
            }
        }
    });
    assert!(failed);
    assert_eq!(session.transaction_status(), TransactionStatus::Open);
    house.done(&session, "commit");
    assert_eq!(house.rows(&session, "select count(*) from t"), ["1"]);
}

#[test]
fn waiting_writers_take_no_thread_from_the_one_with_the_writer_lock() {
    let mut house = House::new();
    house.threads = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(3)
        .enable_all()
        .build()
        .unwrap();
    let holder = house.session();
    house.done(&holder, "create table t (a int primary key)");
    house.done(&holder, "begin; insert into t values (0)");
    let waiting: Vec<_> = (1..=8)
        .map(|number| {
            let session = house.session();
            let text = format!("insert into t values ({number})");
            let statement = session.statements(&text).unwrap().remove(0);
            house
                .threads
                .spawn(async move { session.execute(&statement).await.map(|_| ()) })
        })
        .collect();
    let statements = holder
        .statements("insert into t values (9); commit")
        .unwrap();
    house.threads.block_on(async {
        // All of them wait now; two of them go.
        for waiting in &waiting[..2] {
            while !waiting.is_finished() {
                waiting.abort();
                tokio::task::yield_now().await;
            }
        }
        let committed = async {
            for statement in &statements {
                holder.execute(statement).await.unwrap();
            }
            for waiting in waiting.into_iter().skip(2) {
                waiting.await.unwrap().unwrap();
            }
        };
        let limit = Duration::from_secs(60);
        let done = tokio::time::timeout(limit, committed).await;
        done.expect("the holder of the turn gets a thread");
    });
    assert_eq!(house.rows(&holder, "select count(*) from t"), ["8"]);
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

/// A writer's place that is left and taken.
struct Place(Mutex<Option<Writer>>);

impl WriterPlace for Place {
    fn writer(&self) -> Option<Writer> {
        self.0.lock().unwrap().clone()
    }

    fn is_here(&self) -> bool {
        self.0.lock().unwrap().is_some()
    }

    fn address(&self) -> Option<String> {
        (!self.is_here()).then(|| "http://10.0.0.7:7878".to_owned())
    }
}

fn on_or_off(house: &House, session: &Session) -> Vec<String> {
    let texts = [
        "show in_hot_standby",
        "show transaction_read_only",
        "select current_setting('transaction_read_only')",
        "select setting from pg_settings where name = 'in_hot_standby'",
        "select case when pg_is_in_recovery() then 'on' else 'off' end",
        "show default_transaction_read_only",
    ];
    let rows = texts.iter().flat_map(|text| house.rows(session, text));
    rows.collect()
}

#[test]
fn a_session_says_whether_its_server_writes_now() {
    let house = House::new();
    house.done(&house.session(), "create table t (a int)");
    let place = Arc::new(Place(Mutex::new(None)));
    let session = house
        .read_only()
        .with_writer_of(WriterSource::Changing(Arc::clone(&place) as _));
    let told = session.reported_settings();
    assert!(told.contains(&("in_hot_standby".to_owned(), "on".to_owned())));
    assert!(session.changed_settings().is_empty());
    // The last is what the session has set, as in PostgreSQL.
    let standing_by = ["on", "on", "on", "on", "on", "off"];
    assert_eq!(on_or_off(&house, &session), standing_by);
    assert_eq!(on_or_off(&house, &session.another()), standing_by);
    let refused = house.run(&session, "insert into t values (1)").unwrap_err();
    assert_eq!(refused.state, SqlState::ReadOnlySqlTransaction);
    let hint = refused.hint.unwrap();
    assert!(hint.contains("http://10.0.0.7:7878"), "{hint}");
    let asked = "select pg_is_in_recovery(), count(*) from t";
    let prepared = house.threads.block_on(session.prepare(asked)).unwrap();
    let kept = |session: &Session| {
        let ran = house.threads.block_on(session.run(&prepared, &[]));
        let Outcome::Query(rows) = ran.unwrap() else {
            panic!("it is a query");
        };
        let rows: Vec<_> = house.threads.block_on(rows.try_collect()).unwrap();
        pretty_format_batches(&rows).unwrap().to_string()
    };
    assert!(kept(&session).contains("true") && kept(&session).contains("true"));

    // It takes over, while a block is open.
    house.done(&session, "begin");
    place.0.lock().unwrap().clone_from(&house.writer);
    assert_eq!(on_or_off(&house, &session), ["off"; 6]);
    house.done(&session, "insert into t values (1); commit");
    assert!(kept(&session).contains("false"));
    let off = [("in_hot_standby".to_owned(), "off".to_owned())];
    assert_eq!(session.changed_settings(), off);
    assert!(session.changed_settings().is_empty());

    // And loses it.
    place.0.lock().unwrap().take();
    assert_eq!(on_or_off(&house, &session), standing_by);
    assert_eq!(session.changed_settings()[0].1, "on");
}

#[test]
fn whether_a_transaction_is_read_only_is_its_own_setting() {
    let house = House::new();
    let session = house.session();
    house.done(&session, "create table t (a int)");
    let shown = |expected: &str| {
        let rows = house.rows(&session, "show transaction_read_only");
        assert_eq!(rows, [expected]);
    };
    let refused = |text: &str, code: &str| {
        assert_eq!(house.refused(&session, text).0, code, "{text}");
    };
    shown("off");
    for begin in [
        "begin read only",
        "begin; set transaction read only",
        "begin; set transaction_read_only = on; reset all",
        "begin; set local transaction_read_only to on",
    ] {
        house.done(&session, begin);
        shown("on");
        refused("insert into t values (1)", "25006");
        house.done(&session, "rollback");
        shown("off");
    }
    house.done(&session, "begin read only");
    refused("set transaction read write", "25001");
    house.done(&session, "rollback");
    // Outside of a block it is over with its statement.
    house.done(&session, "set transaction_read_only = on");
    shown("off");
    house.done(&session, "insert into t values (1)");
    house.done(&session, "set default_transaction_read_only = on");
    shown("on");
    refused("insert into t values (1)", "25006");
    house.done(&session, "reset default_transaction_read_only");
    house.done(&session, "insert into t values (1)");
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

#[test]
fn preparing_binds_a_block_to_no_state_and_a_failed_one_can_be_left() {
    let house = House::new();
    let (one, two) = (house.session(), house.session());
    house.done(&one, "create table t (a int primary key)");
    let prepare = |text: &str| house.threads.block_on(one.prepare(text));
    house.done(&one, "begin");
    let insert = prepare("insert into t values (1)").unwrap();
    let select = prepare("select * from t").unwrap();
    house.done(&two, "insert into t values (10)");
    // Nothing was read yet.
    house.threads.block_on(one.run(&insert, &[])).unwrap();
    house
        .threads
        .block_on(one.run(&select, &[]))
        .map(drop)
        .unwrap();
    let twice = house.threads.block_on(one.run(&insert, &[])).unwrap_err();
    assert_eq!(twice.state.code(), "23505");
    house.done(&two, "insert into t values (11)");
    assert_eq!(prepare("select 1").unwrap_err().state.code(), "25P02");
    let rollback = prepare("rollback").unwrap();
    house.threads.block_on(one.run(&rollback, &[])).unwrap();
    assert_eq!(one.transaction_status(), TransactionStatus::Idle);
    assert_eq!(house.rows(&one, "select count(*) from t"), ["2"]);
}

#[test]
fn a_block_that_has_failed_is_not_told_as_committed() {
    let house = House::new();
    let session = house.session();
    house.done(&session, "create table t (a int)");
    session.begin_block();
    house.done(&session, "insert into t values (1)");
    session.fail();
    let error = house.threads.block_on(session.end_block(true)).unwrap_err();
    assert_eq!(error.state.code(), "25P02");
    assert_eq!(session.transaction_status(), TransactionStatus::Idle);
    assert_eq!(house.rows(&session, "select count(*) from t"), ["0"]);
}

#[test]
fn a_commit_is_seen_to_have_begun_and_settings_end_with_it_though_nobody_waits() {
    let house = House::new();
    let session = house.session();
    house.done(&session, "create table t (a int)");
    house.done(
        &session,
        "begin; set local statement_timeout = '7s'; insert into t values (1)",
    );
    let commit = session.statements("commit").unwrap();
    let committing = session.committing();
    assert!(!committing.is_begun());
    house.threads.block_on(async {
        let mut done = Box::pin(session.execute(&commit[0]));
        let is_pending = futures::poll!(&mut done).is_pending();
        assert_eq!(committing.is_begun(), is_pending);
        drop(done);
    });
    assert!(!committing.is_begun());
    assert_eq!(session.statement_timeout(), None);
    assert_eq!(session.transaction_status(), TransactionStatus::Idle);
    // The next change waits for it.
    house.done(&session, "insert into t values (2)");
    assert_eq!(house.rows(&session, "select count(*) from t"), ["2"]);
}

#[test]
fn one_table_is_read_as_it_was_beside_others_as_they_are() {
    let house = House::new();
    let one = house.session();
    house.done(
        &one,
        "create table t (a int primary key, b text); create table u (a int primary key); insert into u values (1), (2)",
    );
    house.done(&one, "insert into t values (1, 'x'), (2, 'y')");
    let first = house.commit();
    house.done(&one, "update t set b = 'z' where a = 1");
    house.done(
        &one,
        "alter table t add column c int default 7; delete from t where a = 2",
    );
    let old = format!("t for system_time as of '{first}'");
    let check = |text: String, expected: &[&str]| {
        assert_eq!(house.rows(&one, &text), expected, "{text}");
    };
    check(format!("select * from {old} order by a"), &["1 x", "2 y"]);
    check(
        format!(
            "select t.b, now.b, u.a from {old}, t as now join u on u.a = now.a where now.a = t.a"
        ),
        &["x z 1"],
    );
    check(
        format!("select old.b from u join {old} old on old.a = u.a where u.a = 2"),
        &["y"],
    );
    check("select * from t".to_owned(), &["1 z 7"]);
    // What was deleted comes back.
    house.done(
        &one,
        &format!("insert into t (a, b) select a, b from {old} where a not in (select a from t)"),
    );
    check("select * from t order by a".to_owned(), &["1 z 7", "2 y 7"]);
    // In a transaction, too, whatever that has read and changed.
    house.done(&one, "begin; delete from t");
    check(format!("select count(*) from {old}"), &["2"]);
    house.done(&one, "rollback");
    let later = "2999-01-01T00:00:00Z";
    check(
        format!("select count(*) from public.t for system_time as of timestamp '{later}'"),
        &["2"],
    );
    for (text, expected) in [
        (format!("select c from {old}"), "42703"),
        (
            "select * from t for system_time as of '1999-01-01'".to_owned(),
            "72000",
        ),
        (
            "select * from t for system_time as of 'then'".to_owned(),
            "22023",
        ),
        (
            "select * from t for system_time as of 0".to_owned(),
            "72000",
        ),
        (format!("create view v as select * from {old}"), "0A000"),
    ] {
        assert_eq!(house.refused(&one, &text).0, expected, "{text}");
    }
}

#[test]
fn cursors_go_forward_and_say_so() {
    let house = House::new();
    let session = house.session();
    house.done(&session, "create table n (a int primary key)");
    house.done(
        &session,
        "insert into n values (1), (2), (3), (4), (5), (6)",
    );
    for backward in [
        "fetch -1 from c",
        "fetch - 2 in c",
        "fetch backward from c",
        "fetch backward 2 from c",
        "fetch backward all from c",
        "fetch prior from c",
        "fetch forward -1 from c",
        "fetch relative -1 from c",
        "fetch absolute -1 from c",
    ] {
        house.done(&session, "begin");
        house.done(&session, "declare c cursor for select a from n order by a");
        let error = house.run(&session, backward).unwrap_err();
        assert_eq!(error.state.code(), "55000", "{backward}: {error}");
        assert_eq!(error.message, "cursor can only scan forward");
        assert!(error.hint.is_some_and(|hint| hint.contains("SCROLL")));
        house.done(&session, "rollback");
    }
    house.done(&session, "begin");
    house.done(&session, "declare c cursor for select a from n order by a");
    for (forward, rows) in [
        ("fetch c", &["1"][..]),
        ("fetch +1 c", &["2"]),
        ("fetch forward in c", &["3"]),
        ("fetch backward -1 from c", &["4"]),
        ("fetch all c", &["5", "6"]),
    ] {
        assert_eq!(house.rows(&session, forward), rows, "{forward}");
    }
    house.done(&session, "commit");
    assert_eq!(house.refused(&session, "fetch -x from c").0, "42601");
    assert_eq!(house.refused(&session, "fetch").0, "42601");
}
