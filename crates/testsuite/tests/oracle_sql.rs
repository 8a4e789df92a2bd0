//! Random queries of SQL have the answers that DuckDB gives.
#![allow(clippy::unwrap_used, reason = "a test may fail on the spot")]

use orrery_testsuite::oracle::{SqlOptions, run_sql};

#[test]
fn random_queries_of_sql_answer_as_duckdb() {
    let options = SqlOptions {
        queries: 500,
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
    assert!(report.compared > 450, "{report}");
    assert!(report.with_rows > 100, "{report}");
    let not_supported: u64 = report.not_supported.values().sum();
    assert!(not_supported < 30, "{report}");
}
