//! The report of a run: a table, and unexpected results.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::{KnownFailures, Outcome, SuiteReport};

/// Where the report is kept.
pub fn report_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/conformance.md")
}

struct Counts {
    tests: usize,
    passed: usize,
    failed: usize,
    waiting: usize,
}

impl SuiteReport {
    fn counts(&self) -> Counts {
        let count = |wanted: fn(&Outcome) -> bool| {
            self.outcomes
                .iter()
                .filter(|(_, outcome)| wanted(outcome))
                .count()
        };
        Counts {
            tests: self.outcomes.len(),
            passed: count(|outcome| matches!(outcome, Outcome::Passed)),
            failed: count(|outcome| matches!(outcome, Outcome::Failed(_))),
            waiting: count(|outcome| matches!(outcome, Outcome::Waiting(_))),
        }
    }

    /// What the waiting tests of the suite wait for.
    fn waiting_for(&self) -> BTreeSet<&'static str> {
        self.outcomes
            .iter()
            .filter_map(|(_, outcome)| match outcome {
                Outcome::Waiting(reason) => Some(*reason),
                Outcome::Passed | Outcome::Failed(_) => None,
            })
            .collect()
    }
}

/// The table of suites in Markdown.
pub fn table(reports: &[SuiteReport]) -> String {
    let mut text = String::from(
        "| suite | tests | passed | failed | waiting |\n| --- | ---: | ---: | ---: | --- |\n",
    );
    let mut total = Counts {
        tests: 0,
        passed: 0,
        failed: 0,
        waiting: 0,
    };
    for report in reports {
        let counts = report.counts();
        let reasons = Vec::from_iter(report.waiting_for()).join(", ");
        let waiting = match counts.waiting {
            0 => "0".to_owned(),
            number => format!("{number} (for {reasons})"),
        };
        push_row(&mut text, report.name, &counts, &waiting);
        total.tests += counts.tests;
        total.passed += counts.passed;
        total.failed += counts.failed;
        total.waiting += counts.waiting;
    }
    let waiting = total.waiting.to_string();
    push_row(&mut text, "**all**", &total, &waiting);
    text
}

fn push_row(text: &mut String, name: &str, counts: &Counts, waiting: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "| {name} | {} | {} | {} | {waiting} |",
        counts.tests, counts.passed, counts.failed
    );
}

/// The whole report in Markdown.
pub fn markdown(reports: &[SuiteReport], known: &KnownFailures) -> String {
    let mut text = String::from(
        "# Conformance\n\n\
         This page reports the results of the W3C's test suites. `make conformance` writes it; do not edit it.\n\n\
         The suites run through the loader, the engine and the server's\n\
         serializers. A test that loads data passes if the dump of the database is isomorphic to what\n\
         the test expects, or else to what an independent parser reads in the same file. Decimals,\n\
         floats and doubles of solutions may differ in form (`2` and `2.0`), for the suites agree on no\n\
         form of computed ones. A syntax test of SERVICE passes if the query is understood.\n\n",
    );
    text.push_str(&table(reports));
    text.push_str("\n## Known failures\n\n");
    let mut entries = known.iter().peekable();
    if entries.peek().is_none() {
        text.push_str("None.\n");
    }
    for (test, reason) in entries {
        let _ = writeln!(text, "- `{test}`: {reason}");
    }
    text
}

/// Suites in which nothing may fail, whatever the list of known failures says: their names begin
/// so.
const WITHOUT_FAILURES: &str = "SPARQL";

/// What is not as the list of known failures says, or below the bar of its suite, one message each.
pub fn unexpected(reports: &[SuiteReport], known: &KnownFailures) -> Vec<String> {
    let mut messages = Vec::new();
    let mut met = BTreeSet::new();
    let outcomes = reports.iter().flat_map(|report| {
        report
            .outcomes
            .iter()
            .map(move |entry| (report.name, entry))
    });
    for (suite, (test, outcome)) in outcomes {
        let listed = known
            .reason(&test.id)
            .filter(|_| !suite.starts_with(WITHOUT_FAILURES));
        met.insert(test.id.as_str());
        match (outcome, listed) {
            (Outcome::Failed(message), None) => messages.push(format!("{}: {message}", test.id)),
            (Outcome::Passed | Outcome::Waiting(_), Some(_)) => messages.push(format!(
                "{} is listed as a known failure, but does not fail: take it out",
                test.id
            )),
            (Outcome::Failed(_), Some(_)) | (Outcome::Passed | Outcome::Waiting(_), None) => {}
        }
    }
    for (test, _) in known.iter().filter(|(test, _)| !met.contains(test)) {
        messages.push(format!(
            "{test} is listed as a known failure, but there is no such test"
        ));
    }
    messages
}
