//! Memory tests of `CUBE` and the like, which multiply rows.

use crate::common::House;
use crate::{Peak, alone};

const MEMORY_BYTES: usize = 128 << 20;
const ROWS: u64 = 1_000;

/// The rows of `CUBE (i % 1, ..., i % n)` over the numbers to 1,000.
fn counted_rows(elements: u64) -> String {
    let keys: Vec<_> = (1..=elements).map(|it| format!("i % {it}")).collect();
    format!(
        "select count(*) from (select count(*) from generate_series(1, {ROWS}) t(i) group by cube ({})) s",
        keys.join(", ")
    )
}

/// The same by arithmetic: the remainders of a subset are told by that of its least common
/// multiple.
fn expected_rows(elements: u64) -> u64 {
    fn divisor(a: u64, b: u64) -> u64 {
        if b == 0 { a } else { divisor(b, a % b) }
    }
    let subsets = 0..1_u64 << elements;
    let of_subset = |subset: u64| {
        let within = (1..=elements).filter(|it| subset >> (it - 1) & 1 == 1);
        within
            .fold(1, |multiple, it| multiple / divisor(multiple, it) * it)
            .min(ROWS)
    };
    subsets.map(of_subset).sum()
}

#[test]
fn many_grouping_sets_are_within_the_memory() {
    let peak = Peak::since(alone());
    let house = House::with_memory(MEMORY_BYTES as u64);
    let session = house.session();
    match house.run(&session, &counted_rows(12)) {
        Ok(answer) => assert_eq!(answer.lines(), [expected_rows(12).to_string()]),
        Err(error) => assert_eq!(error.state.code(), "53200", "{error}"),
    }
    peak.require_at_most(MEMORY_BYTES);
    assert_eq!(house.runtime.memory().operators().reserved(), 0);
}

#[test]
fn grouping_sets_over_few_rows_at_once_answer_as_before() {
    let _alone = alone();
    let house = House::new();
    let session = house.session();
    for elements in [2, 4, 5, 7] {
        let expected = [expected_rows(elements).to_string()];
        assert_eq!(house.rows(&session, &counted_rows(elements)), expected);
    }
    let plan = house.rows(&session, &format!("explain {}", counted_rows(7)));
    assert!(
        plan.join("\n").contains("FewRowsExec: rows=1024"),
        "{plan:?}"
    );
}

#[test]
fn more_grouping_sets_are_refused_as_postgresql_does() {
    let _alone = alone();
    let house = House::new();
    let session = house.session();
    let keys = |count: usize| vec!["i"; count].join(", ");
    let sets = |count: usize| vec!["(i)"; count].join(", ");
    for (by, expected) in [
        (format!("cube ({})", keys(13)), "54011"),
        (format!("cube ({}), rollup (i)", keys(12)), "54001"),
        (format!("cube ({}), cube ({})", keys(7), keys(6)), "54001"),
        (format!("grouping sets ({})", sets(4_097)), "54001"),
    ] {
        let within = format!(
            "select 1 from (select count(*) from generate_series(1, 2) t(i) group by {by}) s"
        );
        let (code, message) = house.refused(&session, &within);
        assert_eq!(code, expected, "{message}");
    }
}
