//! Tests of deeply nested statements: read and planned, or refused, within moments.

use std::time::{Duration, Instant};

use crate::common::House;

/// For a statement that takes milliseconds where the machine does nothing else.
const MOMENT: Duration = Duration::from_secs(3);

fn nested(depth: usize, open: &str, innermost: &str, close: &str) -> String {
    let (open, close) = (open.repeat(depth), close.repeat(depth));
    format!("{open}{innermost}{close}")
}

/// Runs a statement; its code if it fails. Both within a moment.
fn soon(house: &House, sql: &str) -> Option<String> {
    let session = house.session();
    let begin = Instant::now();
    let answer = house.run(&session, sql);
    let took = begin.elapsed();
    let shown: String = sql.chars().take(80).collect();
    assert!(took < MOMENT, "{shown}: {took:?}");
    answer.err().map(|error| error.state.code().to_owned())
}

#[test]
fn calls_as_deep_as_the_parser_lets_in_are_answered_within_moments() {
    let house = House::new();
    house.done(&house.session(), "create table t (a bigint, s text)");
    house.done(&house.session(), "insert into t values (1, 'a')");
    let shapes = [
        ("abs(", "1", "a", ")"),
        ("upper(", "'a'", "s", ")"),
        ("coalesce(", "1", "a", ", 1)"),
        ("greatest(", "1", "a", ", 1)"),
        ("nullif(", "1", "a", ", 2)"),
        ("round(", "1.5", "a", ")"),
        ("concat(", "'a'", "s", ", 'b')"),
        ("cast(", "1", "a", " as bigint)"),
        ("case when true then ", "1", "a", " else 2 end"),
        ("abs(case when a = 1 then ", "1", "a", " end)"),
        ("case ", "1", "a", " when 1 then 1 else 2 end"),
        ("(", "1", "a", " + 1)"),
        ("('a' || ", "'a'", "s", ")"),
        ("not (", "true", "a = 1", ")"),
        ("(", "true", "a = 1", " between false and true)"),
        ("(", "1", "a", " in (1, 2))"),
        ("position('a' in ", "'a'", "s", ")"),
        ("position(", "'a'", "s", ", 'a')"),
        ("(select ", "1", "a", ")"),
        ("exists(select ", "1", "a", ")"),
        ("array[", "1", "a", "]"),
        ("trim(", "'a'", "s", ")"),
        ("substring(", "'a'", "s", " from 1)"),
        ("extract(year from ", "date '2020-01-01'", "a", ")"),
    ];
    for (open, constant, column, close) in shapes {
        for depth in [10, 20, 45, 95, 200] {
            let of_constant = nested(depth, open, constant, close);
            let of_column = nested(depth, open, column, close);
            let failed = soon(&house, &format!("select {of_constant}"));
            assert_ne!(failed.as_deref(), Some("57014"), "{open}");
            soon(&house, &format!("select {of_column} from t"));
            soon(
                &house,
                &format!("select 1 from t where {of_column} is null"),
            );
        }
    }
}

#[test]
fn depths_that_are_in_use_are_answered() {
    let house = House::new();
    for (depth, open, innermost, close) in [
        (40, "abs(", "1", ")"),
        (40, "upper(", "'a'", ")"),
        (40, "greatest(", "1", ", 1)"),
        (40, "round(", "1.5", ")"),
        (40, "(", "1", " + 1)"),
        (40, "case when true then ", "1", " else 2 end"),
        (8, "coalesce(", "1", ", 1)"),
        (8, "nullif(", "1", ", 2)"),
        (8, "abs(case when true then ", "1", " end)"),
        (8, "(select ", "1", ")"),
    ] {
        let sql = format!("select {}", nested(depth, open, innermost, close));
        assert_eq!(soon(&house, &sql), None, "{sql}");
    }
}

#[test]
fn calls_in_definitions_and_prepared_statements_are_read_within_moments() {
    let house = House::new();
    let deep = nested(40, "abs(", "1", ")");
    let of_column = nested(40, "abs(", "a", ")");
    for sql in [
        format!("prepare p as select {deep}"),
        format!("create table d (a bigint default {deep})"),
        format!("create table c (a bigint check ({of_column} > 0))"),
        format!("create view v as select {deep} as x"),
    ] {
        assert_eq!(soon(&house, &sql), None, "{sql}");
    }
}

#[test]
fn texts_that_the_parser_reads_in_several_ways_end_with_an_error() {
    let house = House::new();
    for sql in [
        // A derived table first, then a join in brackets.
        format!(
            "select * from {}",
            nested(
                24,
                "((select * from ",
                "(select 1) as i",
                ") as x cross join (select 1) as y)"
            )
        ),
        format!(
            "select * from {}",
            nested(
                24,
                "((select from ",
                "(select 1) as i",
                ") as x cross join (select 1) as y)"
            )
        ),
    ] {
        let failed = soon(&house, &sql);
        assert_eq!(failed.as_deref(), Some("54001"), "{sql}");
    }
}

#[test]
fn expressions_that_grow_with_each_subquery_are_planned_or_refused_within_moments() {
    let house = House::new();
    house.done(&house.session(), "create table t (a bigint)");
    for expr in [
        "abs(case when a = 1 then a end)",
        "coalesce(a, 1)",
        "nullif(a, 2)",
    ] {
        for depth in [4, 10, 13, 40] {
            let inner = format!("(select {expr} as a from ");
            let from = nested(depth, &inner, "t", ") q");
            let sql = format!("select 1 from {from} where a > 1");
            let failed = soon(&house, &sql);
            assert!(
                matches!(failed.as_deref(), None | Some("54001")),
                "{failed:?}"
            );
            assert!(depth > 4 || failed.is_none(), "{expr}");
        }
    }
}

#[test]
fn named_arguments_are_parsed_and_other_expressions_before_an_arrow_refused() {
    let house = House::new();
    let failed = soon(&house, "select abs(x => 1)");
    assert_ne!(failed.as_deref(), Some("42601"), "a name of an argument");
    for sql in ["select abs(1 + 1, => 2)", "select abs(1 => 2)"] {
        assert_eq!(soon(&house, sql).as_deref(), Some("42601"), "{sql}");
    }
}

#[test]
fn chains_of_operators_are_planned_within_moments() {
    let house = House::new();
    for (first, more) in [
        ("1", "+1"),
        ("1", "-1"),
        ("'a'", "||'a'"),
        ("true", " and true"),
    ] {
        let sql = format!("select {first}{}", more.repeat(489));
        soon(&house, &sql);
    }
}
