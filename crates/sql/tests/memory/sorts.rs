//! Memory tests of `ORDER BY` over texts.

use crate::common::House;
use crate::{Peak, alone};

const MEMORY_BYTES: usize = 256 << 20;

/// A text in the place of each number, as an expression of the sort: 200,000 of 4,000 characters,
/// which no column has.
#[test]
fn keys_of_a_sort_are_counted() {
    let peak = Peak::since(alone());
    let house = House::with_memory(MEMORY_BYTES as u64);
    let session = house.session();
    let (even, odd) = ("b".repeat(4_000), "a".repeat(4_000));
    let key = format!("case when i % 2 = 0 then '{even}' else '{odd}' end");
    for by in [format!("{key}, i"), format!("i % 2 desc, {key}, i desc")] {
        let text = format!("select i from generate_series(1, 200000) t(i) order by {by}");
        match house.run(&session, &text) {
            Ok(answer) => {
                let rows = answer.lines();
                let expected = match by.ends_with("desc") {
                    true => ["199999", "1", "200000", "2"],
                    false => ["1", "199999", "2", "200000"],
                };
                let found = [&rows[0], &rows[99_999], &rows[100_000], &rows[199_999]];
                assert_eq!((rows.len(), found.map(String::as_str)), (200_000, expected));
            }
            Err(error) => assert_eq!(error.state.code(), "53200", "{error}"),
        }
    }
    peak.require_at_most(MEMORY_BYTES);
}

/// As columns: 200,000 rows with 10 kB.
#[test]
fn long_texts_are_sorted_within_the_memory_or_not_at_all() {
    let peak = Peak::since(alone());
    let house = House::with_memory(MEMORY_BYTES as u64);
    let session = house.session();
    let text = "select i, length(t) from (select i, repeat(chr(65 + (i % 26)::int), 10000) as t from generate_series(1, 200000) t(i)) s order by t, i";
    match house.run(&session, text) {
        Ok(answer) => {
            let rows = answer.lines();
            assert_eq!(rows.len(), 200_000);
            assert_eq!((&*rows[0], &*rows[1]), ("26 10000", "52 10000"));
        }
        Err(error) => assert_eq!(error.state.code(), "53200", "{error}"),
    }
    peak.require_at_most(MEMORY_BYTES);
}

/// A text of a megabyte for each of many rows, as the key alone.
#[test]
fn a_long_text_that_is_computed_for_each_row_is_no_key_of_all_at_once() {
    let alone = alone();
    let house = House::with_memory(MEMORY_BYTES as u64);
    let session = house.session();
    house.done(
        &session,
        "create table long (t text); insert into long select repeat('x', 1000000)",
    );
    let peak = Peak::since(alone);
    let text = "select i from long, generate_series(1, 2000) s(i) order by i % 2, t || 'x', i desc";
    match house.run(&session, text) {
        Ok(answer) => {
            let rows = answer.lines();
            assert_eq!((rows.len(), &*rows[0], &*rows[1_999]), (2_000, "2000", "1"));
        }
        Err(error) => assert_eq!(error.state.code(), "53200", "{error}"),
    }
    // 2 GB of keys. Those of rows that are merged are there before they are counted.
    peak.require_at_most(2 * MEMORY_BYTES);
}

/// Orders are what they were, with and without LIMIT, in windows and in groups.
#[test]
fn sorts_by_texts_that_are_computed_answer_as_before() {
    let _alone = alone();
    let house = House::new();
    let session = house.session();
    house.done(
        &session,
        "create table t (a int, b text);
         insert into t values (1, 'Bc'), (2, 'aB'), (3, null), (4, 'ab'), (5, 'BC'), (6, '')",
    );
    for (text, expected) in [
        ("select a from t order by lower(b), a", "6 2 4 1 5 3"),
        (
            "select a from t order by lower(b) desc, a desc",
            "3 5 1 4 2 6",
        ),
        (
            "select a from t order by lower(b) nulls first, a limit 2",
            "3 6",
        ),
        (
            "select a from t order by lower(b), upper(b) desc, a offset 1 limit 3",
            "2 4 1",
        ),
        ("select a from t order by b || b, a", "6 5 1 2 4 3"),
        (
            "select a from t order by array[lower(b)], a limit 3",
            "6 2 4",
        ),
        (
            "select a from (select a, row_number() over (order by lower(b), a) n from t) s order by n",
            "6 2 4 1 5 3",
        ),
        (
            "select a from (select a, lower(b) l from t union all select a + 10, lower(b) from t) s order by l || 'x', a limit 4",
            "2 4 12 14",
        ),
        (
            "select distinct on (lower(b)) a from t order by lower(b), a",
            "6 2 1 3",
        ),
        (
            "select min(a) from t group by lower(b) order by lower(b) || '-'",
            "6 2 1 3",
        ),
    ] {
        assert_eq!(house.rows(&session, text).join(" "), expected, "{text}");
    }
    let many = "select lower(b || (i % 7)::text) from t, generate_series(1, 5000) s(i)";
    let rows = house.rows(
        &session,
        &format!("{many} order by lower(b || (i % 7)::text), i"),
    );
    let mut sorted = rows.clone();
    // NULL comes last, as it is written it would not.
    sorted.sort_by_key(|row| (row == "NULL", row.clone()));
    assert_eq!(rows, sorted);
    assert_eq!(rows.len(), 30_000);
}

/// As many groups as rows: each is sorted, and none is held.
#[test]
fn the_first_rows_of_many_groups_are_within_the_memory() {
    let peak = Peak::since(alone());
    let house = House::with_memory(MEMORY_BYTES as u64);
    let session = house.session();
    house.done(
        &session,
        "create table many (k int, a int, b bigint, c text, d date, e float8, f boolean);
         insert into many select i / 2, i, i, 'text ' || i, date '2020-01-01' + (i % 1000)::int, i, i % 3 = 0 from generate_series(1, 200000) t(i)",
    );
    for (text, expected) in [
        (
            "select distinct on (k) * from many order by k, a desc",
            ["0 1 1", "100000 200000 200000"],
        ),
        (
            "select distinct on (k) * from many where a % 2 = 0 order by k",
            ["1 2 2", "100000 200000 200000"],
        ),
    ] {
        let rows = house.rows(&session, text);
        let ends = [rows.first(), rows.last()].map(|row| row.cloned().unwrap_or_default());
        for (found, expected) in ends.iter().zip(expected) {
            assert!(found.starts_with(expected), "{text}: {found}");
        }
    }
    peak.require_at_most(MEMORY_BYTES);
}
