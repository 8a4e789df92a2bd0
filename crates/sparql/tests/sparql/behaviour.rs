//! Tests of behaviour where the oracle deviates from the specification, of limits, and of errors.
//! Many of them were found by the oracle (`tools/testsuite`).

mod construct;
mod counts;
mod exists;
mod forms;
mod geosparql;
mod graphs;
mod lateral;
mod limits;
mod lists;
mod paths;
mod places;
mod rewrites;
mod values;

use orrery_sparql::{QueryError, QueryOptions};

use crate::common::{Answer, Fixture, PREFIXES};

const DATA: &str = include_str!("oracle/data.trig");

fn rows(fixture: &Fixture, query: &str) -> Vec<String> {
    rows_with(fixture, query, &QueryOptions::of_process())
}

fn rows_with(fixture: &Fixture, query: &str, options: &QueryOptions) -> Vec<String> {
    let query = format!("{PREFIXES}{query}");
    match fixture.ask_with(&query, options).map(Answer::sorted) {
        Ok(Answer::Solutions(rows)) => rows
            .into_iter()
            .map(|row| row.replace("http://example.org/", ""))
            .collect(),
        other => panic!("{other:?}"),
    }
}

fn error(fixture: &Fixture, query: &str) -> QueryError {
    match fixture.ask(&format!("{PREFIXES}{query}")) {
        Err(error) => error,
        Ok(answer) => panic!("{answer:?}"),
    }
}

/// The answer with and without rewrites, which must be the same.
fn rows_both_ways(fixture: &Fixture, query: &str) -> Vec<String> {
    let plain = QueryOptions {
        tuning: orrery_sparql::Tuning {
            rewrites: false,
            ..orrery_sparql::Tuning::default()
        },
        ..QueryOptions::of_process()
    };
    let rewritten = rows(fixture, query);
    assert_eq!(rows_with(fixture, query, &plain), rewritten, "{query}");
    rewritten
}
