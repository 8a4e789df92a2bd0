//! Statements with parameters.

mod common;

use common::House;
use futures::TryStreamExt;
use orrery_sql::{DataType, Outcome, Prepared, ScalarValue, Session};

fn rows(house: &House, session: &Session, prepared: &Prepared, values: &[ScalarValue]) -> usize {
    house.threads.block_on(async {
        match session.run(prepared, values).await.unwrap() {
            Outcome::Query(rows) => {
                let batches: Vec<_> = rows.try_collect().await.unwrap();
                batches.iter().map(|batch| batch.num_rows()).sum()
            }
            _ => 0,
        }
    })
}

#[test]
fn a_prepared_statement_is_run_with_other_values_over_the_newest_tables() {
    let house = House::new();
    let session = house.session();
    house.done(
        &session,
        "create table t (a int primary key, b text, c numeric(6,2), d date, e bytea, f timestamptz, g double precision)",
    );
    let prepare = |text: &str| house.threads.block_on(session.prepare(text));
    let insert = prepare("insert into t values ($1, $2, $3, $4, $5, $6, $7)").unwrap();
    assert_eq!(insert.parameters()[0], Some(DataType::Int32));
    assert_eq!(insert.parameters()[2], Some(DataType::Decimal128(6, 2)));
    let select = prepare("select b, c from t where a = $1 and b = $2").unwrap();
    assert_eq!(select.parameters()[0], Some(DataType::Int32));
    assert_eq!(select.columns().unwrap().field(1).name(), "c");
    let asked = [ScalarValue::from(-7_i32), ScalarValue::from("it's")];
    assert_eq!(rows(&house, &session, &select, &asked), 0);
    let values = [
        ScalarValue::Int64(Some(-7)),
        ScalarValue::from("it's"),
        ScalarValue::from("-1.5"),
        ScalarValue::from("2026-01-02"),
        ScalarValue::Binary(Some(vec![0, 255])),
        ScalarValue::from("2026-01-02T03:04:05Z"),
        ScalarValue::Float64(Some(1e300)),
    ];
    rows(&house, &session, &insert, &values);
    // The plan that was kept saw no row.
    assert_eq!(rows(&house, &session, &select, &asked), 1);
    assert_eq!(rows(&house, &session, &select, &asked), 1);
    assert_eq!(
        house.rows(&session, "select * from t"),
        ["-7 it's -1.50 2026-01-02 00ff 2026-01-02T03:04:05Z 1e300"]
    );
    let update = prepare("update t set b = $1 where a < $2").unwrap();
    rows(
        &house,
        &session,
        &update,
        &[ScalarValue::Utf8(None), ScalarValue::from(0_i32)],
    );
    assert_eq!(house.rows(&session, "select b from t"), ["NULL"]);
}

#[test]
fn missing_values_and_wrong_ones_are_refused() {
    let house = House::new();
    let session = house.session();
    house.done(&session, "create table t (a int)");
    let insert = house
        .threads
        .block_on(session.prepare("insert into t values ($1)"))
        .unwrap();
    let run = |values: &[ScalarValue]| {
        let done = house.threads.block_on(session.run(&insert, values));
        done.unwrap_err().state.code()
    };
    assert_eq!(run(&[]), "42P02");
    assert_eq!(run(&[ScalarValue::Int64(Some(1 << 40))]), "22003");
    assert_eq!(house.refused(&session, "select $1").0, "42P02");
    assert_eq!(
        house.refused(&session, "insert into t values ($1)").0,
        "42P02"
    );
    assert_eq!(house.rows(&session, "select count(*) from t"), ["0"]);
}
