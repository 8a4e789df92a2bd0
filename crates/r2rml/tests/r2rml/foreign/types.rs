//! Tests of foreign values of all types.

use orrery_sql::ForeignAccess;

use crate::foreign::cluster::source;
use crate::support::Place;

const ALL: &str = "
    create type mood as enum ('sad', 'glad');
    create domain amount as numeric(8,3);
    create table t (
      id integer primary key, b boolean, s smallint, l bigint, r real, d double precision, n numeric(10,2), u numeric, a amount,
      x text, v varchar(5), c char(4), y bytea, day date, at timestamp, \"At Z\" timestamptz, g uuid, j jsonb, m mood, h time, k inet);
    insert into t values
      (1, true, -2, 9007199254740993, 1.5, -0.0, 12.30, 0.1234567890, 1.125, 'it''s \\ ö', 'ab', 'ab', '\\x00ff', '2024-02-29',
       '1999-12-31 23:59:59.999999', '2024-01-01 00:00:00+02', '00112233-4455-6677-8899-aabbccddeeff', '{\"a\": [1]}', 'glad', '01:02:03', '10.0.0.1/8'),
      (2, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null),
      (3, false, 32767, -9223372036854775808, 'NaN', 'Infinity', -99999999.99, -12345678901234567890.5, -0.001, '', '', '', '', '0001-01-01',
       '1970-01-01', '1969-12-31 23:59:59.5+00', '00000000-0000-0000-0000-000000000000', '[]', 'sad', '00:00', '::1')";

#[tokio::test(flavor = "multi_thread")]
async fn values_and_nulls_of_all_types_come_as_they_are() {
    let Some(source) = source() else { return };
    source.psql(ALL);
    let place = Place::with_foreign(&ForeignAccess::anywhere(None));
    place.run(&source.create("t", "")).await.unwrap();
    let rows = place.rows("select * from t order by id").await.unwrap();
    let nulls = "2".to_owned() + &" NULL".repeat(20);
    assert_eq!(
        rows,
        [
            "1 true -2 9007199254740993 1.5 0.0 12.30 0.1234567890 1.125 it's \\ ö ab ab 00ff 2024-02-29 1999-12-31T23:59:59.999999 \
             2023-12-31T22:00:00Z 00112233-4455-6677-8899-aabbccddeeff {\"a\": [1]} glad 01:02:03 10.0.0.1/8",
            nulls.as_str(),
            "3 false 32767 -9223372036854775808 NaN inf -99999999.99 -12345678901234567890.5000000000 -0.001     0001-01-01 \
             1970-01-01T00:00:00 1969-12-31T23:59:59.500Z 00000000-0000-0000-0000-000000000000 [] sad 00:00:00 ::1/128"
        ]
    );
    // A column alone, in another order, none at all.
    assert_eq!(
        place
            .rows("select c, id from t where id = 1")
            .await
            .unwrap(),
        ["ab 1"]
    );
    assert_eq!(place.rows("select count(*) from t").await.unwrap(), ["3"]);
    assert_eq!(
        place
            .rows("select \"At Z\" from t where day = date '0001-01-01'")
            .await
            .unwrap(),
        ["1969-12-31T23:59:59.500Z"]
    );
    // What the catalog tells is kept with the definition: nobody is asked for it. Like those of
    // views, columns are told without NOT NULL and lengths.
    let columns = "select column_name, data_type, is_nullable from information_schema.columns \
        where table_name = 't' and ordinal_position in (1, 7, 11) order by ordinal_position";
    assert_eq!(
        place.rows(columns).await.unwrap(),
        ["id integer YES", "n numeric YES", "v text YES"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn values_that_our_types_do_not_have_are_errors_with_table_and_column() {
    let Some(source) = source() else { return };
    source.psql(
        "create table t (id int primary key, n numeric(5,2), u numeric, d date, at timestamptz);
         insert into t values (1, 'NaN', 1, '2020-01-01', '2020-01-01'), (2, 1, 0.12345678901, '2020-01-01', '2020-01-01'),
           (3, 1, 1, 'infinity', '2020-01-01'), (4, 1, 1, '2020-01-01', '-infinity'), (5, 1, 'Infinity', '2020-01-01', '2020-01-01')",
    );
    let place = Place::with_foreign(&ForeignAccess::anywhere(None));
    place.run(&source.create("t", "")).await.unwrap();
    for (id, column, word) in [
        (1, "n", "NaN"),
        (2, "u", "0.12345678901"),
        (3, "d", "infinity"),
        (4, "at", "-infinity"),
        (5, "u", "Infinity"),
    ] {
        let error = place
            .rows(&format!("select * from t where id = {id}"))
            .await;
        let error = error.unwrap_err();
        let expected = format!("HV000 external table \"t\", column \"{column}\": ");
        assert!(
            error.starts_with(&expected) && error.contains(word),
            "{error}"
        );
        // What is not read is no matter.
        let rows = place
            .rows(&format!("select id from t where id = {id}"))
            .await;
        assert_eq!(rows.unwrap(), [id.to_string()]);
    }
    // Another number of digits, for who knows them.
    place
        .run(
            &source
                .create("wide", "(id int, u numeric(38,20))")
                .replace("location", "options ('table' 't') location"),
        )
        .await
        .unwrap();
    assert_eq!(
        place.rows("select u from wide where id = 2").await.unwrap(),
        ["0.12345678901000000000"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn types_that_are_not_read_are_refused_by_name_and_can_be_left_out() {
    let Some(source) = source() else { return };
    source.psql("create table t (id int, tags int[], pay money, x text)");
    let place = Place::with_foreign(&ForeignAccess::anywhere(None));
    let error = place.run(&source.create("t", "")).await.unwrap_err();
    assert!(
        error.starts_with("0A000") && error.contains("\"tags\"") && error.contains("integer[]"),
        "{error}"
    );
    place
        .run(&source.create("t", "(x text, id int not null, primary key (id))"))
        .await
        .unwrap();
    source.psql("insert into t values (1, '{1}', 2, 'a')");
    assert_eq!(place.rows("select * from t").await.unwrap(), ["a 1"]);
    let error = place
        .run(
            &source
                .create("t2", "(id text)")
                .replace("location", "options ('table' 't') location"),
        )
        .await
        .unwrap_err();
    assert!(
        error.starts_with("22023") && error.contains("integer"),
        "{error}"
    );
    let error = place
        .run(
            &source
                .create("t3", "(nothing int)")
                .replace("location", "options ('table' 't') location"),
        )
        .await
        .unwrap_err();
    assert!(error.contains("no column \"nothing\""), "{error}");
    let error = place.run(&source.create("t4", "")).await.unwrap_err();
    assert!(error.starts_with("42P01"), "{error}");
}
