//! Golden tests of plans, as readable text.
//!
//! `UPDATE_PLANS=1 cargo test -p orrery-sparql --test sparql plans` writes them anew.

use std::fmt::Write;
use std::path::Path;

use crate::common::{Fixture, queries};
use orrery_sparql::{QueryOptions, Tuning};

/// What the names of queries end with that are planned as if their right sides were large.
const ALWAYS: &str = "(were it large)";
/// What the names of queries end with that are planned as if solutions were many, over data without
/// named graphs.
const MANY: &str = "(were its solutions many)";
/// People who know each other, and what they like.
const PLAIN: &str = "@prefix : <http://example.org/> .
    :alice a :Person ; :knows :bob, :carol ; :age 40 ; :likes :tea .
    :bob a :Person ; :knows :carol ; :age 30 ; :likes :tea, :milk .
    :carol a :Boss ; :knows :alice ; :likes :milk .";
const QUERIES: &str = include_str!("plans/queries.txt");

#[test]
fn plans_are_as_reviewed() {
    let with_graphs = Fixture::new(include_str!("oracle/data.trig"));
    let plain = Fixture::new(PLAIN);
    let mut actual = String::new();
    for (name, query) in queries(QUERIES) {
        let is_many = name.ends_with(MANY);
        let fixture = if is_many { &plain } else { &with_graphs };
        let tuning = Tuning {
            reduces_always: name.ends_with(ALWAYS),
            aggregates_early: is_many,
            ..Tuning::default()
        };
        let options = QueryOptions {
            tuning,
            ..QueryOptions::of_process()
        };
        let prepared = fixture
            .engine
            .prepare(&query, &options)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let text = query.lines().filter(|line| !line.starts_with("PREFIX"));
        let text = text.collect::<Vec<_>>().join("\n");
        let plan = prepared.explain();
        let there = fixture
            .elsewhere(&prepared)
            .unwrap_or_else(|error| panic!("{name} elsewhere: {error}"));
        assert_eq!(there.explain(), plan, "{name} elsewhere");
        let _ = write!(actual, "# {name}\n{}\n\n{plan}\n", text.trim());
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sparql/plans/plans.txt");
    if std::env::var_os("UPDATE_PLANS").is_some() {
        std::fs::write(&path, &actual).unwrap_or_else(|error| panic!("{error}"));
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    for (actual, expected) in actual.split("\n# ").zip(expected.split("\n# ")) {
        assert_eq!(actual, expected, "see the head of this file");
    }
    assert_eq!(
        actual.len(),
        expected.len(),
        "queries were added or removed"
    );
}
