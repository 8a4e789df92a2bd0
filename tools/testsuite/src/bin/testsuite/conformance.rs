//! The program that runs the W3C's test suites and writes `docs/conformance.md`.
//!
//! `make conformance`; or `testsuite conformance NAME` for the tests whose name contains NAME, with
//! the details of each failure and without a report.

use std::process::ExitCode;

use orrery_testsuite::w3c::Outcome;
use orrery_testsuite::w3c::{
    Files, KnownFailures, known_failures_path, markdown, report_path, run, table, unexpected,
};

pub(crate) fn main(filter: Option<String>) -> ExitCode {
    match conformance(filter) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("conformance: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Whether everything went as the list of known failures says.
fn conformance(filter: Option<String>) -> Result<bool, String> {
    let Some(files) = Files::find() else {
        return Ok(true);
    };
    let reports = run(&files, filter.as_deref().unwrap_or_default())?;
    if filter.is_some() {
        let outcomes = reports.iter().flat_map(|report| &report.outcomes);
        for (test, outcome) in outcomes {
            match outcome {
                Outcome::Passed => println!("passed   {}", test.id),
                Outcome::Waiting(reason) => println!("waiting  {} for {reason}", test.id),
                Outcome::Failed(message) => println!("FAILED   {}: {message}", test.id),
            }
        }
        return Ok(true);
    }
    let known = KnownFailures::read(&known_failures_path())?;
    let path = report_path();
    std::fs::write(&path, markdown(&reports, &known))
        .map_err(|error| format!("{}: {error}", path.display()))?;
    println!("{}", table(&reports));
    let messages = unexpected(&reports, &known);
    for message in &messages {
        println!("{message}");
    }
    Ok(messages.is_empty())
}
