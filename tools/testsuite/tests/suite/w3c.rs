//! Tests of the W3C's suites: every test passes, or is listed with its reason.

use orrery_testsuite::w3c::{Files, KnownFailures, known_failures_path, run, table, unexpected};

#[test]
fn every_test_of_the_w3c_passes_or_is_listed_with_its_reason() {
    let Some(files) = Files::find() else { return };
    let known = KnownFailures::read(&known_failures_path()).unwrap();
    let reports = run(&files, "").unwrap();
    let messages = unexpected(&reports, &known);
    assert!(
        messages.is_empty(),
        "{}\n{}",
        table(&reports),
        messages.join("\n")
    );
}
