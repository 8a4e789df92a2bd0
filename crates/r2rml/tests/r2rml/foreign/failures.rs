//! Tests of foreign servers that change, refuse or go away.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use orrery_sql::{Error, ForeignAccess};

use crate::foreign::cluster::{Cluster, Source, source};
use crate::support::Place;

fn place() -> Place {
    Place::with_foreign(&ForeignAccess::anywhere(None))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_has_changed_is_told() {
    let Some(source) = source() else { return };
    source.psql(
        "create table t (id int primary key, x int, y text); insert into t values (1, 2, 'a')",
    );
    let place = place();
    place.run(&source.create("t", "")).await.unwrap();
    assert_eq!(place.rows("select * from t").await.unwrap(), ["1 2 a"]);
    // What is new there is not seen; what is not read may change.
    source
        .psql("alter table t add column z int; alter table t alter column x type double precision");
    assert_eq!(place.rows("select id, y from t").await.unwrap(), ["1 a"]);
    let error = place.rows("select * from t").await.unwrap_err();
    assert!(
        error.starts_with("HV000")
            && error.contains("column \"x\" was of the type int4, and is of float8"),
        "{error}"
    );
    source.psql("alter table t drop column x; alter table t alter column y drop not null; update t set y = null");
    let error = place.rows("select x from t").await.unwrap_err();
    assert!(
        error.contains("has changed at its source") && error.contains("42703"),
        "{error}"
    );
    assert_eq!(place.rows("select y from t").await.unwrap(), ["NULL"]);
    source.psql("drop table t");
    let error = place.rows("select id from t").await.unwrap_err();
    assert!(error.contains("42P01"), "{error}");
    // And it can be forgotten.
    place.run("drop table t").await.unwrap();
    assert!(
        place
            .rows("select id from t")
            .await
            .unwrap_err()
            .starts_with("42P01")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_within_the_rows_come_with_the_code_of_the_source() {
    let Some(source) = source() else { return };
    source.psql(
        "create view v as select i, 10 / (50000 - i) as q from generate_series(1, 60000) as i",
    );
    let place = place();
    place.run(&source.create("v", "")).await.unwrap();
    let error = place.rows("select i, q from v").await.unwrap_err();
    assert!(
        error.starts_with("HV000 external table \"v\"")
            && error.contains("22012")
            && error.contains("division by zero"),
        "{error}"
    );
    // The same session goes on.
    assert_eq!(
        place.rows("select i from v where i = 3").await.unwrap(),
        ["3"]
    );
    let error = place.run("insert into v values (1, 2)").await.unwrap_err();
    assert!(
        error.starts_with("42809") && error.contains("for reading"),
        "{error}"
    );
    for change in ["update v set q = 1", "delete from v", "truncate v"] {
        assert!(place.run(change).await.is_err(), "{change}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_that_nobody_waits_for_is_cancelled() {
    let Some(source) = source() else { return };
    source.psql("create view v as select i, repeat('x', 1000) as x from generate_series(1, 100000000) as i; create view slow as select 1 as i from pg_sleep(600)");
    let place = place();
    for name in ["v", "slow"] {
        place.run(&source.create(name, "")).await.unwrap();
    }
    let mut rows = place.stream("select * from v").await.unwrap();
    assert!(rows.next().await.unwrap().is_ok());
    let running = "select count(*) from pg_stat_activity where application_name = 'orrery' and state = 'active' and datname = current_database()";
    assert_eq!(source.psql(running), "1");
    drop(rows);
    let mut rows = place.stream("select * from slow").await.unwrap();
    assert!(
        tokio::time::timeout(Duration::from_millis(300), rows.next())
            .await
            .is_err()
    );
    drop(rows);
    for _ in 0..200 {
        if source.psql(running) == "0" {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!(
        "a statement still runs: {}",
        source.psql("select query from pg_stat_activity")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_goes_within_the_rows_is_an_error_and_no_end() {
    let Some(cluster) = Cluster::start(&[]) else {
        return;
    };
    let source = Source::in_cluster(Arc::new(cluster));
    source.psql("create view v as select i, repeat('x', 500) as x from generate_series(1, 2000000) as i; create table t as select 1 as i");
    let place = place();
    for name in ["v", "t"] {
        place.run(&source.create(name, "")).await.unwrap();
    }
    // A connection that is kept, and broken when it is wanted again.
    assert_eq!(place.rows("select i from t").await.unwrap(), ["1"]);
    source.psql(
        "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'orrery'",
    );
    assert_eq!(place.rows("select i from t").await.unwrap(), ["1"]);
    let mut rows = place.stream("select * from v").await.unwrap();
    let mut seen = rows.next().await.unwrap().unwrap().num_rows();
    source.cluster.kill();
    let error = loop {
        match rows.next().await {
            Some(Ok(batch)) => seen += batch.num_rows(),
            Some(Err(error)) => break Error::of_run(&error).to_string(),
            None => panic!("an end after {seen} rows"),
        }
    };
    assert!(
        seen < 2_000_000 && error.contains("external table \"v\""),
        "{seen}: {error}"
    );
    let error = place.rows("select i from t").await.unwrap_err();
    assert!(error.starts_with("HV00N"), "{error}");
}
