//! Tests of random SQL queries against DuckDB.
#![allow(clippy::unwrap_used, reason = "a test may fail on the spot")]

use orrery_testsuite::oracle::{SqlOptions, run_sql, sql_plans_with};

#[test]
fn random_queries_of_sql_answer_as_duckdb() {
    let options = SqlOptions {
        queries: 1_000,
        seed: 1,
        threads: 2,
        differences_max: 5,
    };
    let report = run_sql(options, &|_| {}).unwrap();
    if report.version.is_empty() {
        eprintln!("skipped: Python has no DuckDB (`make setup` installs it)");
        return;
    }
    assert!(report.differences.is_empty(), "{report}");
    // The comparison says something only if there is something to compare.
    assert!(report.compared > 850, "{report}");
    assert!(report.with_rows > 300, "{report}");
    let not_supported: u64 = report.not_supported.values().sum();
    assert!(not_supported < 100, "{report}");
}

#[test]
fn the_queries_take_the_ways_of_scans_that_are_easily_wrong() {
    // Tables of groups, and keys of joins that scans are told; of 400 queries at least so many.
    let wanted = [("DenseAggregateExec", 5), ("keys of joins", 20)];
    let words = wanted.map(|(word, _)| word);
    let mut found = std::collections::BTreeMap::new();
    for number in 0..8 {
        for (word, count) in sql_plans_with(&words, 1, number).unwrap() {
            *found.entry(word).or_insert(0) += count;
        }
    }
    for (word, least) in wanted {
        let count = found.get(word).copied().unwrap_or(0);
        assert!(count >= least, "{word}: {found:?}");
    }
}
