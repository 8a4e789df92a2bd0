//! Tests of our parser against spargebra's, with a list of reasoned differences.

use orrery_testsuite::oracle::{SyntaxReport, syntax_of_damaged, syntax_of_suites};

/// Damaged texts in `make test`; `make syntax-oracle` has a million.
const TEXTS: u64 = 20_000;

fn assert_explained(report: &SyntaxReport) {
    assert!(report.differences.is_empty(), "{report}");
    assert!(report.same > 0 && report.refused > 0, "{report}");
}

#[test]
fn the_texts_of_the_w3c_are_read_as_spargebra_reads_them() {
    let Some(report) = syntax_of_suites() else {
        return;
    };
    assert_explained(&report);
}

#[test]
fn damaged_texts_get_the_same_verdict_and_algebra() {
    assert_explained(&syntax_of_damaged(TEXTS, 1));
}
