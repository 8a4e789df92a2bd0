//! Tests of sessions: answers, and errors of bad texts.

use crate::common::House;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::util::pretty::pretty_format_batches;
use futures::TryStreamExt;
use orrery_sql::{Error, SQL_BYTES_MAX, Session, SqlState};

struct Full {
    house: House,
    session: Session,
}

fn house(memory_bytes: u64) -> Full {
    let house = House::with_memory(memory_bytes);
    let session = house.session();
    house.done(
        &session,
        "create table person (id bigint, name text, born date);
         insert into person values (1, 'Ada', '1815-12-10'), (2, 'Blaise', '1623-06-19'), (3, null, '1970-01-01');
         create table \"Offer\" (person bigint, price numeric(15,2), number integer);
         insert into \"Offer\" values (1, 1, 2147483647), (1, 2.5, 0), (2, 0.01, 2);
         create table many (key bigint);
         insert into many select value * 7919 % 400000 from generate_series(0, 399999)",
    );
    Full { house, session }
}

impl Full {
    fn ask(&self, text: &str) -> Result<Vec<RecordBatch>, Error> {
        self.house.threads.block_on(async {
            let query = self.session.plan(text).await?;
            let batches = query.run()?.try_collect().await;
            batches.map_err(|error| Error::of_run(&error))
        })
    }

    fn table(&self, text: &str) -> String {
        let batches = self
            .ask(text)
            .unwrap_or_else(|error| panic!("{text}: {error}"));
        pretty_format_batches(&batches).unwrap().to_string()
    }

    /// Code, and the text from the place on.
    fn refused<'t>(&self, text: &'t str) -> (&'static str, &'t str, String) {
        let error = self.ask(text).expect_err(text);
        let place = error
            .position
            .map(|position| text.char_indices().nth(position - 1).unwrap().0);
        (
            error.state.code(),
            place.map_or("", |place| &text[place..]),
            error.message,
        )
    }
}

#[test]
fn a_query_tells_its_columns_before_it_is_run() {
    let house = house(256 << 20);
    let text = "SELECT p.NAME, sum(o.price) AS total FROM Person p JOIN \"Offer\" o ON o.person = p.id \
                GROUP BY p.name ORDER BY total DESC";
    let query = house
        .house
        .threads
        .block_on(house.session.plan(text))
        .unwrap();
    assert_eq!(query.schema().field(1).name(), "total");
    let _within = house.house.threads.enter();
    let batches = query.run().unwrap().try_collect::<Vec<_>>();
    let batches = house.house.threads.block_on(batches).unwrap();
    let expected = "\
+--------+-------+
| name   | total |
+--------+-------+
| Ada    | 3.50  |
| Blaise | 0.01  |
+--------+-------+";
    assert_eq!(
        pretty_format_batches(&batches).unwrap().to_string(),
        expected
    );
}

#[test]
fn numbers_names_and_nulls_are_as_in_postgresql() {
    let house = house(256 << 20);
    // 0.1 + 0.2 is a decimal, and so exact; NULL sorts last; || is concatenation, ~ a regular
    // expression.
    assert!(house.table("select 0.1 + 0.2 as x").contains("| 0.3 |"));
    let names = house.table("select name || '!' as n from person where id > 1 order by name");
    assert!(names.find("Blaise!") < names.rfind("|   "), "{names}");
    assert!(
        house
            .table("select name from person where name ~ '^A'")
            .contains("Ada")
    );
    assert!(
        house
            .table("select substring('abcdef' from 2 for 3) as s")
            .contains("bcd")
    );
    assert!(
        house
            .table("select extract(year from born) as y from person where id = 1")
            .contains("1815")
    );
    assert!(
        house
            .table("select \"Offer\".number from \"Offer\" limit 1")
            .contains("number")
    );
    let tables = house.table(
        "select table_name from information_schema.tables where table_schema = 'public' order by 1",
    );
    for name in ["Offer", "many", "person"] {
        assert!(tables.contains(name), "{tables}");
    }
}

#[test]
fn bad_texts_get_postgresqls_code_and_the_place() {
    let house = house(256 << 20);
    for (text, code, place) in [
        ("select\n  1 +", "42601", ""),
        ("selekt 1", "42601", "selekt 1"),
        ("select 'open", "42601", "'open"),
        ("select 1 frm person where", "42601", "person where"),
        ("select 1; select 2", "42601", ""),
        ("  -- nothing\n", "42601", ""),
        ("select * from\n  missing", "42P01", "missing"),
        ("select * from other.missing", "42P01", "other.missing"),
        ("select nme from person", "42703", "nme from person"),
        ("select p.nme from person p", "42703", "p.nme from person p"),
        (
            "select id from person p join person q on p.id = q.id",
            "42702",
            "id from person p join person q on p.id = q.id",
        ),
        ("select sun(id) from person", "42883", "sun(id) from person"),
        (
            "select name, count(*) from person",
            "42803",
            "name, count(*) from person",
        ),
        ("select * from person where id", "42804", ""),
    ] {
        let (found, found_place, message) = house.refused(text);
        assert_eq!((found, found_place), (code, place), "{text}: {message}");
    }
    assert_eq!(
        house.refused("select * from missing").2,
        "relation \"missing\" does not exist"
    );
    assert_eq!(
        house.refused("select * from other.missing").2,
        "relation \"orrery.other.missing\" does not exist"
    );
    assert_eq!(
        house.refused("select nme from person").2,
        "column \"nme\" does not exist"
    );
    let error = house.ask("select coun(id) from person").unwrap_err();
    assert_eq!(error.message, "function coun does not exist");
    assert_eq!(error.hint.as_deref(), Some("Did you mean 'count'?"));
    assert_eq!(house.refused("select abs('x', 2, 3)").0, "42883");
}

#[test]
fn errors_at_run_time_have_postgresqls_code() {
    let house = house(256 << 20);
    for (text, code) in [
        ("select 1 / (id - 1) from person", "22012"),
        ("select cast(id * 1000000 as smallint) from person", "22003"),
        ("select cast(name as integer) from person", "22P02"),
        ("select cast(name as date) from person", "22007"),
    ] {
        let (found, _, message) = house.refused(text);
        assert_eq!(found, code, "{text}: {message}");
    }
}

#[test]
fn statements_that_are_no_queries_cannot_be_planned() {
    let house = house(256 << 20);
    for text in [
        "create table t (a int)",
        "insert into person values (1, 'x', null)",
        "delete from person",
        "explain analyze insert into person values (1, 'x', null)",
        "set datafusion.execution.batch_size = 1",
        "copy person to 'x.csv'",
        "drop table person",
        "create external table t stored as csv location '/etc/passwd'",
    ] {
        let (code, _, message) = house.refused(text);
        assert_eq!(code, "0A000", "{text}: {message}");
    }
    assert!(
        house
            .table("select count(*) as n from person")
            .contains("| 3 |")
    );
}

#[test]
fn there_is_a_limit_to_length_and_depth_of_a_text() {
    let house = house(256 << 20);
    let long = format!("select '{}'", "x".repeat(SQL_BYTES_MAX));
    assert_eq!(
        house.ask(&long).unwrap_err().state,
        SqlState::ProgramLimitExceeded
    );
    let deep = format!("select {}1{}", "(".repeat(5_000), ")".repeat(5_000));
    assert_eq!(
        house.ask(&deep).unwrap_err().state,
        SqlState::StatementTooComplex
    );
    let sum = |terms| format!("select {} as n", vec!["1"; terms].join(" + "));
    assert!(house.table(&sum(400)).contains("400"));
    for text in [sum(1_000), sum(100_000), format!("explain {}", sum(1_000))] {
        assert_eq!(
            house.ask(&text).unwrap_err().state,
            SqlState::StatementTooComplex
        );
    }
    // What is long without being deep is not refused.
    let list = format!(
        "select count(*) as n from many where key in ({})",
        vec!["7"; 20_000].join(", ")
    );
    assert!(house.table(&list).contains("| 1 |"));
}

#[test]
fn sql_keeps_within_the_memory_of_the_engine() {
    let mut house = house(1 << 30);
    assert!(
        house
            .table("select count(*) as n from (select distinct key from many) t")
            .contains("400000")
    );
    house.session = house.house.session_in(24 << 20);
    let (code, _, message) =
        house.refused("select count(*) from (select distinct a.key, b.key + 1 as k from many a join many b on a.key = b.key) t");
    assert_eq!(
        (code, message.contains("out of memory")),
        ("53200", true),
        "{message}"
    );
}

/// Trees that the parser makes without counting, plans that grow by each name: all of them are
/// refused, by a thread with the stack that servers' threads have.
#[test]
fn texts_of_any_shape_leave_the_process_alive() {
    let house = house(256 << 20);
    let doubled = |count: usize| {
        let tables = (1..count).map(|n| {
            let before = n - 1;
            format!(", w{n} as (select p.x from w{before} p, w{before} q)")
        });
        let last = count - 1;
        format!(
            "with w0 as (select 1 x){} select * from w{last}",
            tables.collect::<String>()
        )
    };
    let chained = |count: usize| {
        let tables = (1..count).map(|n| format!(", w{n} as (select x from w{})", n - 1));
        let last = count - 1;
        format!(
            "with w0 as (select 1 x){} select * from w{last}",
            tables.collect::<String>()
        )
    };
    let tables = |count: usize| {
        let tables = (0..count).map(|n| format!("person a{n}"));
        tables.collect::<Vec<_>>().join(", ")
    };
    for (text, code) in [
        (
            format!("select {}true", "1 in (1,1) or ".repeat(100_000)),
            "54001",
        ),
        (
            format!("select 1,1{}", " union all select 1,1".repeat(20_000)),
            "54001",
        ),
        (
            format!("select 1,1{}", " except select 1,1".repeat(20_000)),
            "54001",
        ),
        (format!("select 1 from {}", tables(50_000)), "54001"),
        (
            format!(
                "select 1 from person{}",
                " join person on true".repeat(20_000)
            ),
            "54001",
        ),
        (chained(20_000), "54001"),
        (doubled(41), "54001"),
        ("explain ".repeat(4_000) + "select 1", "42601"),
        (format!("select 1{}", ",1".repeat(1_900_000)), "54000"),
    ] {
        let error = house
            .house
            .run(&house.session, &text)
            .expect_err(&text[..60]);
        assert_eq!(error.state.code(), code, "{}: {error}", &text[..60]);
    }
    // And these are taken.
    let union = format!(
        "select count(*) from (select 1{}) q",
        " union all select 1".repeat(100)
    );
    assert_eq!(house.house.rows(&house.session, &union), ["101"]);
    assert_eq!(house.house.rows(&house.session, &doubled(6)), ["1"]);
    assert_eq!(house.house.rows(&house.session, &chained(60)), ["1"]);
    let list = format!("select 1 in (1{})", ",2".repeat(10_000));
    assert_eq!(house.house.rows(&house.session, &list), ["true"]);
}

#[test]
fn views_over_views_are_counted_as_often_as_they_are_named() {
    let house = house(256 << 20);
    let mut refused = None;
    house
        .house
        .done(&house.session, "create view v0 as select 1 as x");
    for n in 1..32 {
        let before = n - 1;
        let view = format!(
            "create view v{n} as select p.x from v{before} p join v{before} q on p.x = q.x"
        );
        if let Err(error) = house.house.run(&house.session, &view) {
            refused = Some((n, error.state.code()));
            break;
        }
    }
    let (deep, code) = refused.unwrap();
    assert!((10..20).contains(&deep), "{deep}");
    assert_eq!(code, "54001");
}

#[test]
fn expressions_and_types_are_counted_with_all_that_they_are_made_of() {
    let house = house(256 << 20);
    house.house.done(
        &house.session,
        "create table t (n int); insert into t values (1)",
    );
    let over = |levels: usize, column: &str| {
        let mut text = "with q0 as (select n as x from t)".to_owned();
        for level in 1..=levels {
            text += &format!(", q{level} as (select {column} as x from q{})", level - 1);
        }
        text
    };
    for text in [
        over(30, "x + x") + " select x from q30 where x > 0",
        over(11, "named_struct('p', x, 'q', x)") + " select 1 from q11",
    ] {
        let error = house.house.run(&house.session, &text).unwrap_err();
        assert_eq!(error.state.code(), "54001", "{error}");
    }
    let sums = over(8, "x + x") + " select x from q8 where x > 0";
    assert_eq!(house.house.rows(&house.session, &sums), ["256"]);
    // What an aggregate gives is computed once.
    let sums = over(10, "max(x + 1)") + " select x from q10 where x > 0";
    assert_eq!(house.house.rows(&house.session, &sums), ["11"]);
}
