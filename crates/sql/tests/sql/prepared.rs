//! Tests of statements with parameters.

use crate::common::House;
use futures::TryStreamExt;
use orrery_sql::{DataType, Kept, Outcome, Prepared, ScalarValue, Session};

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

#[test]
fn a_prepared_statement_cannot_execute_another_or_itself() {
    let house = House::new();
    let session = house.session();
    house.done(&session, "prepare a as select 1");
    for text in [
        "prepare b as execute a",
        "prepare b as prepare c as select 1",
    ] {
        assert_eq!(house.refused(&session, text).0, "42601", "{text}");
    }
    // As a client's message keeps it.
    let itself = house
        .threads
        .block_on(session.prepare("execute itself"))
        .unwrap();
    let kept = Kept {
        prepared: Some(itself.into()),
        types: None,
    };
    session.keep("itself", kept).unwrap();
    assert_eq!(house.refused(&session, "execute itself").0, "42601");
    assert_eq!(house.rows(&session, "execute a"), ["1"]);
}

#[test]
fn other_columns_than_were_told_are_refused() {
    let house = House::new();
    let session = house.session();
    house.done(&session, "create table t (a int); insert into t values (1)");
    let all = house
        .threads
        .block_on(session.prepare("select * from t"))
        .unwrap();
    let one = house
        .threads
        .block_on(session.prepare("select a from t"))
        .unwrap();
    house.done(&session, "alter table t add column b int");
    assert_eq!(rows(&house, &session, &one, &[]), 1);
    let error = house.threads.block_on(session.run(&all, &[])).unwrap_err();
    assert_eq!(error.state.code(), "0A000", "{error}");
    let tables = house
        .threads
        .block_on(session.prepare("show tables"))
        .unwrap();
    assert!(tables.columns().is_some());
    assert!(rows(&house, &session, &tables, &[]) > 0);
}

#[test]
fn parameters_keep_their_digits_their_bytes_and_their_elements() {
    let house = House::new();
    let session = house.session();
    house.done(
        &session,
        "create table t (a int, n numeric(38,20), b bytea); insert into t values (1, 0, '\\x0aff'), (2, 0, null), (3, 0, null)",
    );
    let told = |text: &str, types: &[Option<DataType>]| {
        let prepared = house.threads.block_on(session.prepare_told(text, types));
        prepared.unwrap().unwrap()
    };
    let numeric = [Some(DataType::Decimal128(38, 10))];
    let small = [ScalarValue::Decimal128(Some(1), 38, 12)];
    let update = told("update t set n = $1", &numeric);
    rows(&house, &session, &update, &small);
    assert_eq!(
        house.rows(&session, "select n from t where a = 1"),
        ["0.00000000000100000000"]
    );
    let equal = told("select a from t where n = $1", &numeric);
    assert_eq!(rows(&house, &session, &equal, &small), 3);
    // Cut to the digits of the column it would be equal.
    let inferred = told("select a from t where n::numeric(10,2) = $1", &[]);
    assert_eq!(rows(&house, &session, &inferred, &small), 0);
    let bytes = told("delete from t where b = $1", &[Some(DataType::Binary)]);
    rows(
        &house,
        &session,
        &bytes,
        &[ScalarValue::Binary(Some(vec![10, 255]))],
    );
    assert_eq!(house.rows(&session, "select count(*) from t"), ["2"]);
    // A text is read as bytes are written, not taken for them.
    house.done(
        &session,
        "prepare found (bytea) as select $1 = '\\x01fe'::bytea",
    );
    let found = house.rows(&session, "execute found ('\\x01fe')");
    assert_eq!(found, ["true"]);
    assert_eq!(house.refused(&session, "execute found ('\\x0')").0, "22P02");
    let list = |values: &[i32]| {
        let values: Vec<_> = values.iter().map(|it| ScalarValue::from(*it)).collect();
        ScalarValue::List(ScalarValue::new_list(&values, &DataType::Int32, true))
    };
    let any = told(
        "delete from t where a = any($1)",
        &[Some(list(&[]).data_type())],
    );
    rows(&house, &session, &any, &[list(&[])]);
    assert_eq!(house.rows(&session, "select count(*) from t"), ["2"]);
    rows(&house, &session, &any, &[list(&[2, 7])]);
    assert_eq!(house.rows(&session, "select a from t"), ["3"]);
}

#[test]
fn a_cached_prepared_query_answers_as_the_first_time() {
    let house = House::new();
    let session = house.session();
    house.done(
        &session,
        "create table t (a int, b text, c double precision, d date, primary key (a, b));
         insert into t select g, 'x' || g % 3, g / 4.0, date '2026-01-01' + g::int from generate_series(1, 400) as s(g);
         insert into t values (7, 'y', null, null), (-2147483648, '', 0, '1969-12-31')",
    );
    let asked = [
        (
            "select * from t where a = $1",
            "int",
            vec!["7", "-2147483648", "401", "null"],
        ),
        (
            "select a from t where a = $1",
            "bigint",
            vec!["7", "3000000000", "-2147483648"],
        ),
        (
            "select b, c * 2 from t where a = 7 and b = $1",
            "text",
            vec!["'x1'", "'y'", "''", "null"],
        ),
        (
            "select a from t where a > $1",
            "int",
            vec!["398", "400", "-2147483648"],
        ),
        (
            "select a, b from t where $1 between a and a + 2",
            "int",
            vec!["7", "0"],
        ),
        (
            "select a from t where d = $1",
            "date",
            vec!["date '2026-01-08'", "date '1969-12-31'"],
        ),
        (
            "select 10 / (a - 7) from t where a = $1",
            "int",
            vec!["8", "9"],
        ),
        (
            "select c is null from t where a = 7 and c is not distinct from $1",
            "double precision",
            vec!["1.75", "null"],
        ),
        (
            "select coalesce(c, $1) from t where a = 7",
            "double precision",
            vec!["1.5", "null"],
        ),
    ];
    for (number, (text, of, values)) in asked.iter().enumerate() {
        house.done(&session, &format!("prepare q{number} ({of}) as {text}"));
        for round in 0..3 {
            for value in values {
                let expected = text.replace("$1", &format!("({value})::{of}"));
                let mut expected = house.rows(&session, &expected);
                let mut found = house.rows(&session, &format!("execute q{number} ({value})"));
                expected.sort();
                found.sort();
                assert_eq!(found, expected, "{text} {value} {round}");
            }
        }
    }
    // What fails fails each time, and what others commit is seen.
    for _ in 0..3 {
        assert_eq!(house.refused(&session, "execute q6 (7)").0, "22012");
    }
    house.done(
        &house.session(),
        "delete from t where a = 7 and b = 'y'; insert into t values (1000, 'z', 1, null)",
    );
    for _ in 0..3 {
        assert_eq!(
            house.rows(&session, "execute q0 (7)"),
            ["7 x1 1.75 2026-01-08"]
        );
        assert_eq!(
            house.rows(&session, "execute q0 (1000)"),
            ["1000 z 1.0 NULL"]
        );
    }
    house.done(&session, "begin; insert into t values (2000, '', 1, null)");
    for _ in 0..3 {
        assert_eq!(house.rows(&session, "execute q3 (1000)"), ["2000"]);
    }
    house.done(&session, "rollback");
    assert!(house.rows(&session, "execute q3 (1000)").is_empty());
    for number in 3000..3005 {
        house.done(
            &session,
            &format!("insert into t values ({number}, 'w', 0, null)"),
        );
        let asked = format!("execute q0 ({number})");
        assert_eq!(
            house.rows(&session, &asked),
            [format!("{number} w 0.0 NULL")]
        );
        house.done(&session, &format!("delete from t where a = {number}"));
        assert!(house.rows(&session, &asked).is_empty());
    }
    house.done(&session, "create index on t (d)");
    for _ in 0..3 {
        let day = "execute q5 (date '1969-12-31')";
        assert_eq!(house.rows(&session, day), ["-2147483648"]);
    }
    // Another table of the same name.
    house.done(
        &session,
        "alter table t rename to old; create table t (a int, b text, c double precision, d date)",
    );
    for _ in 0..3 {
        assert!(house.rows(&session, "execute q3 (-1)").is_empty());
        assert_eq!(
            house.rows(&session, "select count(*) > 300 from old"),
            ["true"]
        );
    }
}

#[test]
fn new_rows_are_found_by_their_keys() {
    let house = House::new();
    let session = house.session();
    house.done(
        &session,
        "create table t (a int, b int, c text, primary key (a, b)); create index i on t (c) include (b)",
    );
    let check = |rows: usize| {
        for text in [
            "select a, b from t where a = 17",
            "select a, b from t where a = 17 and b > 1",
            "select a, b from t where a = 17 and b >= 1 and b < 2",
            "select a, b from t where a in (17, 18, 5000) and b in (2, 0)",
            "select a, b from t where a > 98 and a < 100",
            "select a, b, c from t where c = 'c7'",
            "select b from t where c >= 'c8' and c < 'c81'",
        ] {
            let slow = text.replace("where ", "where random() < 2 and ");
            let slow = slow.replace("a ", "a + 0 ").replace("c ", "c || '' ");
            let mut expected = house.rows(&session, &slow);
            let mut found = house.rows(&session, text);
            expected.sort();
            found.sort();
            assert_eq!(found, expected, "{rows} {text}");
        }
    };
    let insert = |from: usize, to: usize, b: usize| {
        let text = format!(
            "insert into t select g, {b}, 'c' || g % 90 from generate_series({from}, {to}) as s(g)"
        );
        house.done(&session, &text);
    };
    insert(1, 100, 1);
    check(100);
    insert(1, 100, 2);
    insert(5_000, 5_100, 0);
    check(301);
    house.done(&session, "delete from t where a % 17 = 0 and b = 1");
    check(290);
    insert(101, 70_000, 1);
    check(70_000);
    insert(1, 3_000, 3);
    house.done(
        &session,
        "update t set b = b + 10 where a = 17; delete from t where a = 18",
    );
    check(73_000);
}
