//! Tests that statements with slow planning end when they are canceled.

use std::time::{Duration, Instant};

use futures::FutureExt;

use crate::common::House;

/// How long who asks waits. Each of the statements takes many times as long to plan.
const TIME_MAX: Duration = Duration::from_millis(200);
/// What an answer, and the end of what nobody waits for, may take on a busy machine.
const MOMENT: Duration = Duration::from_secs(8);

fn house() -> House {
    let house = House::with_memory(1 << 30);
    house.done(
        &house.session(),
        "create table t (i int primary key, a int, b text);
         create table u (i int primary key, a int, b text);
         insert into t values (1, 1, 'a'); insert into u values (1, 1, 'a')",
    );
    house
}

/// `t` joined with itself and `u` so often.
fn joins(count: usize) -> String {
    let joins = (0..count).map(|number| {
        let table = if number % 2 == 0 { "u" } else { "t" };
        format!(" join {table} x{number} on x{number}.i = t.i")
    });
    format!("t{}", joins.collect::<String>())
}

fn crosswise(count: usize) -> String {
    let tables = (0..count).map(|number| format!(", u x{number}"));
    format!("t{}", tables.collect::<String>())
}

/// Statements that are planned for long, each in another way.
fn long() -> Vec<String> {
    let rows = ", (1, 2 + 1, 'c')".repeat(60_000);
    vec![
        format!("select count(*) from {}", joins(330)),
        format!("select count(*) from {}", crosswise(380)),
        format!("explain select count(*) from {}", joins(330)),
        format!("select count(*) from (values (1, 2, 'c'){rows}) v"),
        format!("insert into t select t.* from {}", joins(330)),
        format!("delete from t where i in (select t.i from {})", joins(330)),
        format!(
            "update t set a = 2 where exists (select 1 from {})",
            joins(330)
        ),
    ]
}

#[test]
fn planning_ends_when_the_time_of_its_statement_is_up() {
    for text in long() {
        let house = house();
        let session = house.session();
        let shown: String = text.chars().take(60).collect();
        let began = Instant::now();
        let statement = session.statements(&text).unwrap().remove(0);
        let read = began.elapsed();
        let began = Instant::now();
        let done = house.threads.block_on(async {
            let done = session.execute(&statement).map(|done| done.map(drop));
            tokio::time::timeout(TIME_MAX, done).await
        });
        let took = began.elapsed();
        assert!(done.is_err(), "{shown}: it is too short: {done:?}");
        assert!(took < TIME_MAX + MOMENT / 4, "{shown}: {took:?}");
        // The runtime waits for threads on which something goes on.
        let began = Instant::now();
        drop(house);
        let goes_on = began.elapsed();
        println!("{shown}: read in {read:?}, told after {took:?}, ended after {goes_on:?}");
        assert!(goes_on < MOMENT, "{shown}: it goes on for {goes_on:?}");
    }
}

#[test]
fn large_statements_are_answered_as_small_ones() {
    let house = house();
    let session = house.session();
    let many = joins(30);
    assert_eq!(
        house.rows(&session, &format!("select x0.b, x29.i from {many}")),
        ["a 1"]
    );
    let rows: String = (2..2_000)
        .map(|i| format!(", ({i}, null, '{i}')"))
        .collect();
    house.done(
        &session,
        &format!("insert into u values (3000, 1 + 1, 'x'){rows}"),
    );
    assert_eq!(
        house.rows(&session, "select count(*), count(a), min(b), max(i) from u"),
        ["2000 2 10 3000"]
    );
    let mixed = format!(
        "values (1, 1.5, 'a'), (null, 2, null){}",
        ", (3, 10.25, 'b')".repeat(1_000)
    );
    assert_eq!(
        house.rows(
            &session,
            &format!("select sum(column1), max(column2), count(column3) from ({mixed}) v")
        ),
        ["3001 10.25 1001"]
    );
    let (code, words) = house.refused(&session, &format!("select nothing from {many}"));
    assert_eq!(code, "42703", "{words}");
}

#[test]
fn joins_of_too_many_columns_are_refused_before_they_are_optimized() {
    let house = house();
    let columns: String = (0..300).map(|number| format!("c{number} int, ")).collect();
    let session = house.session();
    house.done(&session, &format!("create table wide ({columns} k int)"));
    let tables: String = (0..120).map(|number| format!(", wide w{number}")).collect();
    let (code, words) = house.refused(&session, &format!("select 1 from wide{tables}"));
    assert_eq!(code, "54001", "{words}");
    assert!(words.contains("columns together"), "{words}");
}

#[test]
fn expressions_near_the_bound_are_refused_where_there_are_many_of_them() {
    let house = house();
    let session = house.session();
    // Each level doubles the looks at what is within.
    let of = |depth: usize| {
        let open = "coalesce(".repeat(depth);
        let close = ", 1)".repeat(depth);
        format!("{open}y.a{close}")
    };
    let query = |depth: usize, columns: usize| {
        let all: Vec<String> = (0..columns)
            .map(|number| format!("{} as c{number}", of(depth)))
            .collect();
        // In two steps: a text by itself is bounded already.
        format!(
            "select {} from (select {} as a from t) y",
            all.join(", "),
            of(depth).replace("y.a", "a")
        )
    };
    assert_eq!(house.rows(&session, &query(5, 2)), ["1 1"]);
    let (code, words) = house.refused(&session, &query(6, 100));
    assert_eq!(code, "54001", "{words}");
}

#[test]
fn the_function_that_is_suggested_is_always_the_same() {
    let house = house();
    for text in [
        "select xyz(1)",
        "select qqq(i) from t",
        "create table d (a bigint default xyz(1))",
    ] {
        let told = || house.refused(&house.session(), text);
        let (code, words) = told();
        assert_eq!(code, "42883", "{words}");
        assert!(words.contains("Did you mean"), "{words}");
        for _ in 0..8 {
            assert_eq!(told().1, words);
        }
    }
    let long = format!("select {}(1)", "x".repeat(100_000));
    let (code, words) = house.refused(&house.session(), &long);
    assert_eq!(code, "42883");
    assert!(words.len() < 2_000, "{}", words.len());
}

#[test]
fn long_invalid_values_are_cut_in_messages() {
    let house = house();
    let session = house.session();
    house.done(&session, "create table k (a text primary key)");
    house.done(&session, "insert into k values (repeat('x', 100000))");
    for text in [
        "select repeat('x', 1000000)::int",
        "select cast(repeat(b, 1000000) as date) from t",
        "insert into t values (2, repeat('x', 1000000)::int, 'b')",
        "insert into k values (repeat('x', 100000))",
    ] {
        let (_, words) = house.refused(&session, text);
        assert!(words.len() < 4_000, "{text}: {} bytes", words.len());
    }
}

#[test]
fn correlated_subqueries_of_one_expression_are_inlined() {
    let house = house();
    let session = house.session();
    for (text, rows) in [
        ("select (select (select (select a + 1))) as n from t", "2"),
        (
            "select (select t.b) from t where (select (select i)) = 1",
            "a",
        ),
        (
            "select b, (select a), count(*) from t group by b, a",
            "a 1 1",
        ),
        (
            "select (select max(u.i) from u where u.i = t.i), (select a) from t",
            "1 1",
        ),
        ("select (select 7) as n from t order by (select 1)", "7"),
        ("select sum((select a)) from t", "1"),
    ] {
        assert_eq!(house.rows(&session, text), [rows], "{text}");
    }
    let (code, words) = house.refused(&session, "select (select nothing) from t");
    assert_eq!(code, "42703", "{words}");
}

#[test]
fn unsupported_types_and_subqueries_are_reported_without_datafusions_words() {
    let house = house();
    for (text, code) in [
        ("select (a = 1 between false and true) from t", "42883"),
        (
            "select ((a = 1 between false and true) between false and true) from t",
            "42883",
        ),
        (
            "select 1 from t where extract(year from a) is null",
            "42883",
        ),
        ("select exists(select exists(select a)) from t", "0A000"),
    ] {
        let (told, words) = house.refused(&house.session(), text);
        assert_eq!(told, code, "{text}: {words}");
        for of_library in ["DataFusion", "Physical plan", "Exists("] {
            assert!(!words.contains(of_library), "{text}: {words}");
        }
    }
}

#[test]
fn unsupported_features_are_reported_without_datafusions_words() {
    let house = house();
    house.done(
        &house.session(),
        "create table v (i int primary key, x double precision, d date);
         insert into v values (1, 1, '2026-01-01'), (2, 2, null), (3, 3, null), (4, 4, null)",
    );
    for (text, code, words) in [
        (
            "select sum(b) from t",
            "42883",
            "function sum(text) does not exist",
        ),
        (
            "select avg(d) from v",
            "42883",
            "function avg(date) does not exist",
        ),
        (
            "select abs(b) from t",
            "42883",
            "function abs(text) does not exist",
        ),
        (
            "select d + b from v, t",
            "42883",
            "operator does not exist: date + text",
        ),
        (
            "select i from v where d = x",
            "42883",
            "operator does not exist: date = double precision",
        ),
        (
            "with gone as (delete from t returning i) select * from gone",
            "0A000",
            "DELETE within a query is not supported",
        ),
        (
            "with changed as (update t set b = 'x' returning i) select * from changed",
            "0A000",
            "UPDATE within a query is not supported",
        ),
        (
            "select i from v order by i fetch first 1 row only",
            "0A000",
            "FETCH FIRST is not supported",
        ),
    ] {
        let (told, found) = house.refused(&house.session(), text);
        assert_eq!(told, code, "{text}: {found}");
        assert!(found.starts_with(words), "{text}: {found}");
    }
    // Which of them take rows away is the engine's to say.
    let mut refused = Vec::new();
    for call in [
        "median(x)",
        "approx_distinct(i)",
        "approx_median(x)",
        "corr(x, i)",
        "array_agg(i)",
        "string_agg(d::text, ',')",
        "bool_and(i > 0)",
        "bit_and(i)",
        "sum(distinct x)",
        "count(distinct x)",
        "var_pop(x)",
        "first_value(i)",
    ] {
        let text = format!(
            "select {call} over (order by i rows between 1 preceding and current row) from v"
        );
        if let Err(error) = house.run(&house.session(), &text) {
            let end = "over a window frame that moves is not supported";
            assert_eq!(error.state.code(), "0A000", "{text}: {error}");
            assert!(error.message.ends_with(end), "{text}: {error}");
            assert!(error.message.starts_with(&call[..4]), "{text}: {error}");
            refused.push(call);
        }
    }
    assert!(!refused.is_empty());
}
