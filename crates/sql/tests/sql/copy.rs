//! Tests of `COPY` from and to clients and files, and of its errors.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::House;
use bytes::Bytes;
use orrery_sql::{CopyIn, Error, FileAccess, Outcome, Session, SessionOptions, TransactionStatus};

fn begin(house: &House, session: &Session, text: &str) -> Result<CopyIn, Error> {
    let statement = session.statements(text)?.remove(0);
    house.threads.block_on(async {
        match session.execute(&statement).await? {
            Outcome::CopyIn(copy) => Ok(copy),
            other => panic!("{text}: {other:?}"),
        }
    })
}

/// Sends some chunks, and says what was done.
fn copy_in<'c>(
    house: &House,
    session: &Session,
    text: &str,
    chunks: impl IntoIterator<Item = &'c str>,
) -> Result<String, Error> {
    let mut copy = begin(house, session, text)?;
    house.threads.block_on(async {
        for chunk in chunks {
            copy.send(Bytes::copy_from_slice(chunk.as_bytes())).await?;
        }
        Ok(copy.finish().await?.to_string())
    })
}

fn copy_out(house: &House, session: &Session, text: &str) -> String {
    let statement = session.statements(text).unwrap().remove(0);
    house.threads.block_on(async {
        let outcome = session.execute(&statement).await;
        let Outcome::CopyOut(mut copy) = outcome.unwrap_or_else(|error| panic!("{text}: {error}"))
        else {
            panic!("{text} gives bytes");
        };
        let mut all = Vec::new();
        while let Some(rows) = copy.next().await {
            let rows = rows.unwrap();
            let each: Vec<u8> = rows.each().flatten().collect();
            assert_eq!(each, rows.bytes().to_vec());
            all.extend(each);
        }
        String::from_utf8(all).unwrap()
    })
}

fn with_files(house: &House) -> Session {
    house.session_with(SessionOptions {
        files: FileAccess::allowed([]),
        ..SessionOptions::default()
    })
}

fn file(house: &House, name: &str) -> PathBuf {
    house.directory.path().join(name)
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// What is said of data that are wrong.
#[track_caller]
fn refused(house: &House, session: &Session, statement: &str, data: &str) -> (String, String) {
    let error = copy_in(house, session, statement, [data]).unwrap_err();
    (
        error.state.code().to_owned(),
        format!("{} | {}", error.message, error.context.unwrap_or_default()),
    )
}

#[test]
fn rows_come_in_chunks_that_are_cut_anywhere() {
    let house = House::new();
    let session = house.session();
    house.done(
        &session,
        "create table t (id int primary key, name text, price numeric(10,2) default 7, born date)",
    );
    let data = "3,\"a \"\"b\"\",\nc\",1.5,2026-01-02\r\n1,,2,\n2,\"\",,1999-12-31\n";
    let bytes: Vec<String> = data.chars().map(String::from).collect();
    let done = copy_in(
        &house,
        &session,
        "copy t from stdin with (format csv)",
        bytes.iter().map(String::as_str),
    );
    assert_eq!(done.unwrap(), "COPY 3");
    assert_eq!(
        house.rows(&session, "select id, name, price, born from t order by id"),
        [
            "1 NULL 2.00 NULL",
            "2 (empty) NULL 1999-12-31",
            "3 a \"b\",\nc 1.50 2026-01-02"
        ]
    );
    // In the form of text, with some of the columns; the others have their defaults.
    let done = copy_in(
        &house,
        &session,
        "copy t (name, id) from stdin",
        [
            "a\\tb\\\\\\x41\\101\t4\n\\N\t5\n\\\\N\t6\n\\.\nnothing of this",
            " is read",
        ],
    );
    assert_eq!(done.unwrap(), "COPY 3");
    assert_eq!(
        house.rows(
            &session,
            "select name, price from t where id > 3 order by id"
        ),
        ["a\tb\\AA 7.00", "NULL 7.00", "\\N 7.00"]
    );
}

#[test]
fn options_are_those_of_postgresql_in_both_of_its_forms() {
    let house = House::new();
    let session = house.session();
    house.done(&session, "create table t (a int, b text)");
    for (statement, data) in [
        (
            "copy t from stdin csv header delimiter as ';' null as '-'",
            "x;y\n1;-\n",
        ),
        (
            "copy t from stdin (format csv, delimiter ';', header true, null '-', quote '|', escape '/')",
            "x;y\n1;-\n2;|a/|b//|\n",
        ),
        (
            "copy t from stdin with delimiter '|' null 'none'",
            "1|none\n",
        ),
        (
            "copy t from stdin (format csv, force_null (b), force_not_null (a))",
            "1,\"\"\n",
        ),
    ] {
        copy_in(&house, &session, statement, [data]).unwrap();
    }
    assert_eq!(
        house.rows(&session, "select a, b from t order by a, b"),
        ["1 NULL", "1 NULL", "1 NULL", "1 NULL", "2 a|b/"]
    );
    for (statement, code) in [
        ("copy t from stdin (format binary)", "0A000"),
        ("copy t from stdin binary", "0A000"),
        ("copy t from stdin (header match)", "0A000"),
        ("copy t from stdin (on_error ignore)", "0A000"),
        ("copy t from stdin (colour 'red')", "42601"),
        ("copy t from stdin (quote 'x')", "22023"),
        ("copy t from stdin (format csv, format csv)", "42601"),
        ("copy t from program 'cat /etc/passwd'", "0A000"),
        ("copy (select 1) from stdin", "42601"),
        ("copy t from", "42601"),
        ("copy missing from stdin", "42P01"),
        ("copy t (c) from stdin", "42703"),
        ("copy t (a, a) from stdin", "42701"),
        ("copy t from stdin where a > 1", "0A000"),
    ] {
        let error = session
            .statements(statement)
            .and_then(|_| begin(&house, &session, statement))
            .expect_err(statement);
        assert_eq!(error.state.code(), code, "{statement}: {error}");
    }
}

#[test]
fn what_is_wrong_is_told_with_line_and_column_and_leaves_nothing() {
    let house = House::new();
    let session = house.session();
    house.done(
        &session,
        "create table t (id int primary key, n smallint check (n < 1000), s varchar(3) not null)",
    );
    let csv = "copy t from stdin csv";
    for (data, code, words) in [
        (
            "1,2,a\n2,x,b\n",
            "22P02",
            "invalid input syntax for type smallint: \"x\" | COPY t, line 2, column n: \"x\"",
        ),
        (
            "1,2,a\n2,99999,b\n",
            "22003",
            "value \"99999\" is out of range for type smallint | COPY t, line 2, column n: \"99999\"",
        ),
        (
            "1,2,\"a\nb\"\n2,3,long\n",
            "22001",
            "value too long for type character varying(3) | COPY t, line 3, column s: \"long\"",
        ),
        (
            "1,2,a\n2,3\n",
            "22P04",
            "missing data for column \"s\" | COPY t, line 2",
        ),
        (
            "1,2,a\n2,3,b,c\n",
            "22P04",
            "extra data after last expected column | COPY t, line 2, character 7",
        ),
        (
            "1,2,a\n2,3,\"b\n",
            "22P04",
            "unterminated CSV quoted field | COPY t, line 2",
        ),
        (
            "1,2,a\n2,2000,b\n",
            "23514",
            "new row for relation \"t\" violates check constraint \"t_n_check\" | COPY t, line 2",
        ),
        (
            "1,2,a\n1,3,b\n",
            "23505",
            "duplicate key value violates unique constraint \"t_pkey\" | ",
        ),
        (
            "1,2,\n",
            "23502",
            "null value in column \"s\" of relation \"t\" violates not-null constraint | COPY t, line 1",
        ),
    ] {
        assert_eq!(
            refused(&house, &session, csv, data),
            (code.to_owned(), words.to_owned())
        );
        assert_eq!(house.rows(&session, "select count(*) from t"), ["0"]);
    }
    let mut copy = begin(&house, &session, csv).unwrap();
    let error = house.threads.block_on(async {
        copy.send(Bytes::from_static(b"1,2,a\n2,3,\xff\n"))
            .await
            .unwrap();
        copy.finish().await.unwrap_err()
    });
    assert_eq!(error.state.code(), "22021");
    assert_eq!(
        error.context.as_deref(),
        Some("COPY t, line 2, character 5")
    );
}

#[test]
fn a_client_that_goes_away_or_gives_up_leaves_nothing() {
    let house = House::new();
    let (session, other) = (house.session(), house.session());
    house.done(&session, "create table t (id int primary key)");
    let rows: String = (0..150_000).map(|id| format!("{id}\n")).collect();
    // Few rows, and so many that they go to new files of the table.
    for sent in ["1\n2\n", rows.as_str()] {
        let mut copy = begin(&house, &session, "copy t from stdin").unwrap();
        house.threads.block_on(async {
            copy.send(Bytes::copy_from_slice(sent.as_bytes()))
                .await
                .unwrap();
            drop(copy);
        });
        // It waits for its turn, so until the other is undone.
        house.done(&other, "insert into t values (1); delete from t");
        let mut copy = begin(&house, &session, "copy t from stdin").unwrap();
        let error = house.threads.block_on(async {
            copy.send(Bytes::copy_from_slice(sent.as_bytes()))
                .await
                .unwrap();
            copy.fail("no more").await
        });
        assert_eq!(error.to_string(), "COPY from stdin failed: no more");
        assert_eq!(error.state.code(), "57014");
        assert_eq!(house.rows(&other, "select count(*) from t"), ["0"]);
    }
    // Within a block, which has failed then.
    house.done(&session, "begin; insert into t values (1)");
    let copy = begin(&house, &session, "copy t from stdin").unwrap();
    let error = house.threads.block_on(copy.fail("no more"));
    assert_eq!(error.state.code(), "57014");
    assert_eq!(session.transaction_status(), TransactionStatus::Failed);
    house.done(&session, "rollback");
    house.done(&session, "begin; insert into t values (1)");
    assert_eq!(
        copy_in(&house, &session, "copy t from stdin", ["2\n"]).unwrap(),
        "COPY 1"
    );
    house.done(&session, "commit");
    assert_eq!(house.rows(&other, "select count(*) from t"), ["2"]);
}

#[test]
fn many_rows_are_loaded_in_bulk_and_sorted() {
    let house = House::new();
    let session = with_files(&house);
    house.done(
        &session,
        "create table t (id bigint primary key, s text); create index on t (s); insert into t values (-1, 'old')",
    );
    let rows: String = (0..200_000_u64)
        .map(|id| format!("{},s{}\n", id * 7_919 % 200_000, id % 1_000))
        .collect();
    let chunks: Vec<&str> = rows
        .as_bytes()
        .chunks(60_000)
        .map(|it| std::str::from_utf8(it).unwrap())
        .collect();
    assert_eq!(
        copy_in(&house, &session, "copy t from stdin csv", chunks).unwrap(),
        "COPY 200000"
    );
    let asked = "select count(*), min(id), max(id), count(distinct s) from t";
    assert_eq!(house.rows(&session, asked), ["200001 -1 199999 1001"]);
    assert_eq!(
        house
            .rows(
                &session,
                "select id from t where s = 's7' order by id limit 2"
            )
            .len(),
        2
    );
    // The same from a file; a row that is wrong undoes all.
    house.done(&session, "delete from t where id >= 0");
    let path = file(&house, "rows.csv");
    fs::write(&path, &rows).unwrap();
    let statement = format!("copy t from '{}' (format csv)", text(&path));
    assert_eq!(
        house.done(&session, &statement).tag.to_string(),
        "COPY 200000"
    );
    assert_eq!(house.rows(&session, asked), ["200001 -1 199999 1001"]);
    house.done(&session, "delete from t where id >= 0");
    fs::write(&path, format!("{rows}x,y\n")).unwrap();
    let (code, message) = house.refused(&session, &statement);
    assert_eq!(code, "22P02");
    assert!(
        message.contains("rows.csv, line 200001, column id: \"x\""),
        "{message}"
    );
    assert_eq!(house.rows(&session, asked), ["1 -1 -1 1"]);
}

#[test]
fn rows_go_out_as_text_and_csv_and_come_back_the_same() {
    let house = House::new();
    let session = house.session();
    house.done(
        &session,
        r#"create table t (id int primary key, s text, b boolean, d bytea);
           insert into t values (1, E'a\tb\\c\nd', true, '\x00ff'), (2, null, false, null), (3, '', null, ''), (4, 'say "x", y', true, null)"#,
    );
    assert_eq!(
        copy_out(&house, &session, "copy t to stdout"),
        "1\ta\\tb\\\\c\\nd\tt\t\\\\x00ff\n2\t\\N\tf\t\\N\n3\t\t\\N\t\\\\x\n4\tsay \"x\", y\tt\t\\N\n"
    );
    assert_eq!(
        copy_out(
            &house,
            &session,
            "copy (select id, s from t where id > 1 order by id) to stdout (format csv, header, force_quote (id))"
        ),
        "id,s\n\"2\",\n\"3\",\"\"\n\"4\",\"say \"\"x\"\", y\"\n"
    );
    assert_eq!(
        copy_out(
            &house,
            &session,
            "copy t (b, id) to stdout (format csv, delimiter ';', null '-')"
        ),
        "t;1\nf;2\n-;3\nt;4\n"
    );
    house.done(
        &session,
        "create table copied (id int primary key, s text, b boolean, d bytea)",
    );
    for options in [
        "",
        "(format csv)",
        "(format csv, quote '|', escape '/', null 'x')",
    ] {
        let out = copy_out(&house, &session, &format!("copy t to stdout {options}"));
        house.done(&session, "truncate copied");
        let done = copy_in(
            &house,
            &session,
            &format!("copy copied from stdin {options}"),
            [out.as_str()],
        );
        assert_eq!(done.unwrap(), "COPY 4");
        assert_eq!(
            house.rows(
                &session,
                "select count(*) from (select * from t except select * from copied) x"
            ),
            ["0"],
            "{options}"
        );
    }
}

#[test]
fn files_are_for_sessions_that_may_use_them() {
    let house = House::new();
    let (allowed, session) = (with_files(&house), house.session());
    house.done(
        &allowed,
        "create table t (id int primary key, s text); insert into t values (1, 'a'), (2, null)",
    );
    let path = file(&house, "out.csv");
    let parquet = file(&house, "out.parquet");
    for statement in [
        format!("copy t to '{}'", text(&path)),
        "copy t from '/etc/passwd'".to_owned(),
        "select * from '/etc/passwd.csv'".to_owned(),
        "insert into t select * from 's3://bucket/x.parquet'".to_owned(),
        "create external table e stored as csv location '/etc/passwd'".to_owned(),
    ] {
        let (code, message) = house.refused(&session, &statement);
        assert_eq!(code, "42501", "{statement}: {message}");
    }
    assert!(!path.exists());
    let done = |statement: String| house.done(&allowed, &statement).tag.to_string();
    assert_eq!(
        done(format!("copy t to '{}' (format csv, header)", text(&path))),
        "COPY 2"
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), "id,s\n1,a\n2,\n");
    assert_eq!(
        done(format!("copy t to '{}' (format parquet)", text(&parquet))),
        "COPY 2"
    );
    house.done(&allowed, "delete from t");
    assert_eq!(
        done(format!(
            "copy t from '{}' (format csv, header)",
            text(&path)
        )),
        "COPY 2"
    );
    house.done(&allowed, "delete from t");
    assert_eq!(
        done(format!("copy t from '{}' (format parquet)", text(&parquet))),
        "COPY 2"
    );
    assert_eq!(
        house.rows(&allowed, "select * from t order by id"),
        ["1 a", "2 NULL"]
    );
    let missing = file(&house, "missing.csv");
    let (code, message) = house.refused(&allowed, &format!("copy t from '{}'", text(&missing)));
    assert_eq!(code, "58P01", "{message}");
    // A query that fails on its way leaves no file.
    let broken = file(&house, "broken.csv");
    let statement = format!("copy (select 1 / (id - 2) from t) to '{}'", text(&broken));
    assert_eq!(house.refused(&allowed, &statement).0, "22012");
    assert!(!broken.exists());
}

#[test]
fn a_copy_that_a_crash_cuts_off_is_not_there() {
    let mut house = House::new();
    let session = house.session();
    house.done(
        &session,
        "create table t (id int primary key); insert into t values (-1)",
    );
    let rows: String = (0..150_000).map(|id| format!("{id}\n")).collect();
    let mut copy = begin(&house, &session, "copy t from stdin").unwrap();
    let crashed = house.directory.path().join("crashed");
    house.threads.block_on(async {
        copy.send(Bytes::from(rows)).await.unwrap();
        copy.send(Bytes::from_static(b"150001\n")).await.unwrap();
    });
    // What is on the disk now is what a kill at this moment leaves.
    let copied = std::process::Command::new("cp")
        .args(["-r", text(&house.path()), text(&crashed)])
        .status()
        .unwrap();
    assert!(copied.success());
    let error = house.threads.block_on(copy.fail("the server is gone"));
    assert_eq!(error.state.code(), "57014");
    drop(session);
    house.writer = None;
    fs::remove_dir_all(house.path()).unwrap();
    fs::rename(&crashed, house.path()).unwrap();
    house.open();
    let session = house.session();
    assert_eq!(house.rows(&session, "select id from t"), ["-1"]);
    assert_eq!(
        copy_in(&house, &session, "copy t from stdin", ["1\n"]).unwrap(),
        "COPY 1"
    );
}

#[test]
fn a_zero_byte_is_no_text() {
    let house = House::new();
    let session = house.session();
    house.done(&session, "create table t (a int, b text)");
    for (statement, data, context) in [
        (
            "copy t from stdin csv",
            "1,a\n2,b\0c\n",
            "COPY t, line 2, character 4",
        ),
        (
            "copy t from stdin csv",
            "1,\"a\0\"\n",
            "COPY t, line 1, character 5",
        ),
        (
            "copy t from stdin",
            "1\ta\0\n",
            "COPY t, line 1, character 4",
        ),
        (
            "copy t from stdin",
            "1\ta\\000\n",
            "COPY t, line 1, character 3",
        ),
        (
            "copy t from stdin",
            "1\ta\\x00b\n",
            "COPY t, line 1, character 3",
        ),
    ] {
        let error = copy_in(&house, &session, statement, [data]).unwrap_err();
        assert_eq!(error.state.code(), "22021", "{statement}: {error}");
        assert_eq!(
            error.message,
            "invalid byte sequence for encoding \"UTF8\": 0x00"
        );
        assert_eq!(error.context.as_deref(), Some(context), "{data:?}");
    }
    assert_eq!(house.rows(&session, "select count(*) from t"), ["0"]);
}
