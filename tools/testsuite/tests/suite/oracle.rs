//! Tests of random queries against the reference, in all variants of plans.
#![allow(clippy::unwrap_used, reason = "a test may fail on the spot")]

use orrery_testsuite::oracle::{Options, UpdateOptions, numbers, run, run_updates};

/// Differences that are shown.
const SHOWN: usize = 5;

#[test]
fn random_queries_answer_as_the_reference_in_every_variant() {
    let options = Options {
        queries: 2_000,
        seed: 1,
        threads: 2,
        under_rules: false,
        only_set: None,
        differences_max: SHOWN,
    };
    let report = run(options, &|_| {}).unwrap();
    let shown: Vec<String> = report.differences.iter().map(ToString::to_string).collect();
    assert!(shown.is_empty(), "{}", shown.join("\n----\n"));
    // The comparison says something only if there is something to compare.
    assert!(report.with_reference > 1_000, "{report:?}");
    assert!(report.among_plans > 50, "{report:?}");
    assert!(report.with_rows > 600, "{report:?}");
    assert!(report.over_updates > 400, "{report:?}");
    assert!(report.among_hidden > 100, "{report:?}");
    assert!(report.plans_again > 500, "{report:?}");
    assert_eq!(report.variants.len(), 21, "{report:?}");
}

#[test]
fn queries_under_rules_answer_as_over_what_the_rules_let_their_asker_read() {
    let options = Options {
        queries: 2_000,
        seed: 1,
        threads: 2,
        under_rules: true,
        only_set: None,
        differences_max: SHOWN,
    };
    let report = run(options, &|_| {}).unwrap();
    let shown: Vec<String> = report.differences.iter().map(ToString::to_string).collect();
    assert!(shown.is_empty(), "{}", shown.join("\n----\n"));
    assert!(report.with_reference > 1_000, "{report:?}");
    assert!(report.under_rules > 1_500, "{report:?}");
    assert!(report.old_states > 200, "{report:?}");
    assert!(report.told_twice > 3_000, "{report:?}");
    assert!(report.of_derived > 1_500, "{report:?}");
    assert!(report.of_weights > 1_500, "{report:?}");
    assert!(report.in_sql > 1_500, "{report:?}");
    // Most are answered: of what is refused there is little to compare.
    assert!(report.refused_of_derived < 50, "{report:?}");
    assert!(report.refused_of_weights < 1_000, "{report:?}");
    assert!(report.refused_in_sql < 600, "{report:?}");
    assert!(report.updates.requests > 400, "{report:?}");
    assert!(report.updates.changed > 30, "{report:?}");
    assert!(report.updates.refused > 50, "{report:?}");
    assert!(report.with_rows > 400, "{report:?}");
}

#[test]
fn numbers_at_random_and_at_the_edges_are_those_of_exact_fractions() {
    let differences = numbers(400, 1, SHOWN).unwrap();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn random_updates_leave_what_the_model_has_and_old_states_stay_what_they_were() {
    let options = UpdateOptions {
        cases: 250,
        seed: 1,
        threads: 2,
        differences_max: SHOWN,
    };
    let report = run_updates(options, &|_| {}).unwrap();
    assert!(
        report.differences.is_empty(),
        "{}",
        report.differences.join("\n----\n")
    );
    assert!(report.requests > 1_000, "{report:?}");
    assert!(report.changed > 400, "{report:?}");
    assert!(report.with_service > 300, "{report:?}");
    assert!(report.left_out < 100, "{report:?}");
    assert!(report.compactions > 50, "{report:?}");
    assert!(report.beside_compactions > 20, "{report:?}");
    assert!(report.old_states > 500, "{report:?}");
}
