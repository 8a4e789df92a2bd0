//! Tests of answers against spareval's, over a small dataset with named graphs.

use crate::common::{Answer, Fixture, queries};
use orrery_sparql::QueryError;

const DATA: &str = include_str!("oracle/data.trig");

/// Over data that were loaded at once, and that came by updates.
fn compare(file: &str, is_ordered: bool) {
    compare_data(DATA, file, is_ordered);
}

fn compare_data(data: &str, file: &str, is_ordered: bool) {
    compare_over(&Fixture::new(data), file, is_ordered);
    for seed in 0..4 {
        compare_over(&Fixture::by_updates(data, seed), file, is_ordered);
    }
}

type Ask = fn(&Fixture, &str) -> Result<Answer, QueryError>;

/// By plans that run where they were made, and by plans that were sent to another process.
fn compare_over(fixture: &Fixture, file: &str, is_ordered: bool) {
    for ask in [Fixture::ask as Ask, Fixture::ask_elsewhere] {
        compare_asking(fixture, ask, file, is_ordered);
    }
}

fn compare_asking(fixture: &Fixture, ask: Ask, file: &str, is_ordered: bool) {
    let only = std::env::var("ORACLE_QUERY").ok();
    let mut failures = Vec::new();
    for (name, query) in queries(file) {
        if only
            .as_ref()
            .is_some_and(|only| !name.contains(only.as_str()))
        {
            continue;
        }
        let run = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| ask(fixture, &query)));
        let ours = match run {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => {
                failures.push(format!("{name}: {error}"));
                continue;
            }
            Err(_) => {
                failures.push(format!("{name}: panicked"));
                continue;
            }
        };
        let oracle = fixture.oracle(&query);
        let (ours, oracle) = if is_ordered {
            (ours, oracle)
        } else {
            (ours.sorted(), oracle.sorted())
        };
        if ours != oracle {
            let plan = fixture.analyze(&query).unwrap_or_default();
            failures.push(format!(
                "{name}: {query}\n ours: {ours:#?}\n oracle: {oracle:#?}\n{plan}"
            ));
        }
    }
    assert!(
        failures.is_empty(),
        "{} queries differ:\n{}",
        failures.len(),
        failures.join("\n\n")
    );
}

#[test]
fn solutions_are_those_of_spareval() {
    compare(include_str!("oracle/queries.txt"), false);
}

#[test]
fn ordered_solutions_come_in_the_order_of_spareval() {
    compare(include_str!("oracle/ordered.txt"), true);
}

#[test]
fn ask_construct_and_describe_answer_as_spareval() {
    compare(include_str!("oracle/forms.txt"), false);
}

#[test]
fn triple_terms_and_base_directions_are_answered_as_by_spareval() {
    let data = include_str!("oracle/triple_terms.trig");
    compare_data(data, include_str!("oracle/triple_terms.txt"), false);
    compare_data(data, include_str!("oracle/triple_terms_forms.txt"), false);
}
