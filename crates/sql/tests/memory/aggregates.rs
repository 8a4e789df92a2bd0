//! Memory tests of aggregates with `DISTINCT` and `ORDER BY`.

use std::time::{Duration, Instant};

use crate::common::House;
use crate::{Peak, alone};

const MEMORY_BYTES: usize = 64 << 20;

/// 14,000 groups of (dt, a, f), and 50 texts.
const TABLE: &str = "create table y (dt date, a int, f boolean, t text);
    insert into y select date '2020-01-01' + (g * 7919 % 1400)::int, g % 11 - 5, g % 2 = 0, 'word' || (g % 50) from generate_series(1, 20000) as s(g)";

/// Runs each over memory of 64 MB: it answers, or says that there is too little.
fn stay_within(house: &House, calls: &[String]) -> usize {
    let session = house.session();
    let mut answered = 0;
    for text in calls {
        match house.run(&session, text) {
            Ok(_) => answered += 1,
            Err(error) => assert_eq!(error.state.code(), "53200", "{text}: {error}"),
        }
    }
    // What other threads do for what has failed ends a little later.
    let end = Instant::now() + Duration::from_secs(10);
    while house.runtime.memory().operators().reserved() > 0 {
        assert!(Instant::now() < end, "memory is not given back");
        std::thread::sleep(Duration::from_millis(5));
    }
    answered
}

#[test]
fn different_texts_of_many_groups_are_within_the_memory() {
    let peak = Peak::since(alone());
    let house = House::with_memory(MEMORY_BYTES as u64);
    house.done(&house.session(), TABLE);
    let calls = [
        "select dt, a, f, count(distinct t) from y group by cube (dt, a, f)",
        "select dt, a, f, count(distinct t), count(distinct t || 'x') from y group by dt, a, f",
        "select dt, a, count(distinct t) filter (where f) from y group by dt, a",
        "select dt, a, f, count(distinct t), count(distinct dt) from y group by rollup (dt, a, f)",
    ];
    let answered = stay_within(&house, &calls.map(str::to_owned));
    assert_eq!(answered, calls.len(), "they keep little");
    peak.require_at_most(MEMORY_BYTES);
}

#[test]
fn ordered_rows_of_groups_are_bounded() {
    let peak = Peak::since(alone());
    let house = House::with_memory(MEMORY_BYTES as u64);
    let rows =
        "(select g, g % 10 x, 'word' || (g % 50) t from generate_series(1, 1000000) as s(g)) y";
    let mut calls = Vec::new();
    for call in [
        "string_agg(t, ',' order by g)",
        "array_agg(t order by g desc)",
        "nth_value(t, 3 order by g)",
        "string_agg(distinct t || g, ',')",
    ] {
        for by in ["group by x", "group by rollup (x)", ""] {
            calls.push(format!("select {call} from {rows} {by}"));
        }
    }
    stay_within(&house, &calls);
    // States of sets of groups that were spilled come back a group at a time.
    peak.require_at_most(4 * MEMORY_BYTES);
}

#[test]
fn ordered_texts_answer_within_more_memory() {
    const MORE_BYTES: usize = 256 << 20;
    let peak = Peak::since(alone());
    let house = House::with_memory(MORE_BYTES as u64);
    let rows =
        "(select g, g % 10 x, 'word' || (g % 50) t from generate_series(1, 2000000) as s(g)) y";
    let calls = ["x", "rollup (x)"].map(|by| {
        format!("select x, length(string_agg(t, ',' order by g)) from {rows} group by {by}")
    });
    stay_within(&house, &calls);
    let session = house.session();
    let few = calls[0].replace("2000000", "100000");
    let answer = house.rows(&session, &few);
    assert_eq!(answer.len(), 10);
    peak.require_at_most(MORE_BYTES);
}

#[test]
fn every_aggregate_that_keeps_rows_is_within_the_memory() {
    let peak = Peak::since(alone());
    let house = House::with_memory(MEMORY_BYTES as u64);
    house.done(&house.session(), TABLE);
    let mut calls = Vec::new();
    for call in [
        "array_agg(distinct t)",
        "array_agg(distinct t order by t)",
        "array_agg(t order by a, t)",
        "avg(distinct a)",
        "bit_xor(distinct a)",
        "count(distinct a)",
        "count(distinct a::float8)",
        "count(distinct dt)",
        "sum(distinct a::numeric)",
        "median(distinct a)",
        "percentile_cont(0.5) within group (order by a)",
        "first_value(t order by a)",
        "last_value(t order by a)",
        "nth_value(t, 2 order by a)",
        "string_agg(distinct t, ',' order by t)",
        "string_agg(t, ',' order by a)",
        "min(distinct t)",
        "max(distinct t)",
        "sum(distinct a)",
    ] {
        for by in ["dt, a, f", "cube (dt, a, f)"] {
            calls.push(format!("select dt, a, f, {call} from y group by {by}"));
        }
    }
    stay_within(&house, &calls);
    peak.require_at_most(MEMORY_BYTES);
}

#[test]
fn aggregates_that_keep_rows_answer_as_before() {
    let _alone = alone();
    let house = House::new();
    let session = house.session();
    house.done(
        &session,
        "create table v (x int, n int, t text);
        insert into v values (1, 3, 'c'), (1, 1, 'a'), (1, 2, 'b'), (1, 4, 'a'), (2, 2, NULL), (2, 1, 'z'), (2, 3, 'z'), (3, 1, NULL)",
    );
    for (call, expected) in [
        ("count(distinct t)", ["3", "1", "0"]),
        ("count(distinct t) filter (where n > 1)", ["3", "1", "0"]),
        ("string_agg(t, '-' order by n)", ["a-b-c-a", "z-z", "NULL"]),
        (
            "string_agg(t, '-' order by n desc)",
            ["a-c-b-a", "z-z", "NULL"],
        ),
        (
            "string_agg(t, '-' order by t desc, n)",
            ["c-b-a-a", "z-z", "NULL"],
        ),
        (
            "string_agg(distinct t, '-' order by t desc)",
            ["c-b-a", "z", "NULL"],
        ),
        (
            "array_agg(n order by t, n)",
            ["[1, 4, 2, 3]", "[1, 3, 2]", "[1]"],
        ),
        (
            "array_agg(t order by n)",
            ["[a, b, c, a]", "[z, , z]", "[]"],
        ),
        ("nth_value(t, 2 order by n)", ["b", "NULL", "NULL"]),
        ("sum(distinct n % 2)", ["1", "1", "1"]),
        (
            "sum(distinct n::numeric) filter (where n > 2)",
            ["7.0000000000", "3.0000000000", "NULL"],
        ),
        ("sum(distinct n) filter (where n > 2)", ["7", "3", "NULL"]),
        (
            "avg(distinct n) filter (where n > 2)",
            ["3.5", "3.0", "NULL"],
        ),
        ("count(distinct n) filter (where n > 2)", ["2", "1", "0"]),
        (
            "string_agg(t, '-' order by n) filter (where n > 2)",
            ["c-a", "z", "NULL"],
        ),
        ("avg(distinct n)", ["2.5", "2.0", "1.0"]),
        ("first_value(t order by n desc)", ["a", "z", "NULL"]),
    ] {
        let text = format!("select {call} from v group by x order by x");
        assert_eq!(house.rows(&session, &text), expected, "{call}");
        // Beside one of another order, and with sets of groups, of which the last is all rows.
        let text = format!(
            "select {call} as c, string_agg(t, '' order by n desc) from v group by rollup (x) order by x nulls last"
        );
        let rows = house.rows(&session, &text);
        assert_eq!(rows.len(), 4, "{rows:?}");
        for (row, expected) in rows.iter().zip(expected) {
            assert!(row.starts_with(expected), "{call}: {rows:?}");
        }
        let whole = house.rows(&session, &format!("select {call} as c from v"));
        assert!(rows[3].starts_with(&whole[0]), "{call}: {rows:?} {whole:?}");
    }
    // Many groups on more than one thread, in parts that are merged.
    house.done(&session, TABLE);
    let counted = "select sum(c) from (select dt, a, count(distinct t) c, count(distinct t || 'x') from y group by dt, a) s";
    let expected = "select count(*) from (select distinct dt, a, t from y) s";
    assert_eq!(
        house.rows(&session, counted),
        house.rows(&session, expected)
    );
    let ordered = "select sum(length(c)) from (select string_agg(t, ',' order by dt) c from y group by dt, a) s";
    let expected =
        "select sum(c) from (select sum(length(t)) + count(*) - 1 as c from y group by dt, a) s";
    assert_eq!(
        house.rows(&session, ordered),
        house.rows(&session, expected)
    );
}

/// `DISTINCT` gives what a subquery with that word gives.
#[test]
fn aggregates_of_different_values_are_those_of_a_subquery_of_them() {
    let _alone = alone();
    let house = House::new();
    let session = house.session();
    house.done(
        &session,
        "create table d (x int, a float8, b float8, n int);
        insert into d select g % 5, g % 4, g % 6, g % 3 from generate_series(1, 50) as s(g);
        insert into d values (1, null, 2, 1), (1, null, 2, 1), (2, 3, null, null), (2, 3, null, null), (9, null, null, null)",
    );
    for (call, arguments) in [
        ("approx_percentile_cont(@, 0.25)", "a"),
        ("approx_distinct(@)", "n"),
        ("avg(@)", "a"),
        ("bit_and(@)", "n"),
        ("bit_or(@)", "n"),
        ("bit_xor(@)", "n"),
        ("corr(@)", "a, b"),
        ("count(@)", "a"),
        ("covar_pop(@)", "a, b"),
        ("covar_samp(@)", "a, b"),
        ("max(@)", "a"),
        ("median(@)", "a"),
        ("min(@)", "a"),
        ("regr_avgx(@)", "a, b"),
        ("regr_avgy(@)", "a, b"),
        ("regr_count(@)", "a, b"),
        ("regr_intercept(@)", "a, b"),
        ("regr_r2(@)", "a, b"),
        ("regr_slope(@)", "a, b"),
        ("regr_sxx(@)", "a, b"),
        ("regr_sxy(@)", "a, b"),
        ("regr_syy(@)", "a, b"),
        ("stddev(@)", "a"),
        ("stddev_pop(@)", "a"),
        ("sum(@)", "a"),
        ("var(@)", "a"),
        ("var_pop(@)", "a"),
    ] {
        let distinct = call.replace('@', &format!("distinct {arguments}"));
        let plain = call.replace('@', arguments);
        for by in ["x", "x % 2", "1"] {
            // The order of the rows may change the last digits.
            let of = |call: &str, from: &str| {
                let text = format!(
                    "select x, round(({call})::float8 * 1000000) from {from} t group by x order by x"
                );
                house.rows(&session, &text)
            };
            let found = of(
                &distinct,
                &format!("(select {by} as x, {arguments} from d)"),
            );
            let expected = of(
                &plain,
                &format!("(select distinct {by} as x, {arguments} from d)"),
            );
            assert_eq!(found, expected, "{call} by {by}");
        }
    }
}
