//! Tests of queries of thousands of parts: planned or given up in time, without stack overflow.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::common::{Answer, Fixture, PREFIXES};
use orrery_sparql::{QueryError, QueryOptions};

const DATA: &str = "@prefix : <http://example.org/> . :a :p :b . :b :p :a . :a :v 2 . :b :v 1 .";

fn rows(fixture: &Fixture, query: &str) -> Vec<String> {
    match fixture.ask(&format!("{PREFIXES}{query}")) {
        Ok(Answer::Solutions(rows)) => rows,
        other => panic!("{other:?}"),
    }
}

fn integer(number: usize) -> String {
    format!("x=\"{number}\"^^<http://www.w3.org/2001/XMLSchema#integer>")
}

fn sum_of(term: &str, terms: usize) -> String {
    vec![term; terms].join("+")
}

#[test]
fn a_path_of_three_thousand_steps_is_planned_and_followed() {
    let fixture = Fixture::new(DATA);
    let path = vec![":p"; 3_000].join("/");
    let rows = rows(&fixture, &format!("SELECT ?o {{ :a {path} ?o }}"));
    assert_eq!(rows, ["o=<http://example.org/a>"]);
}

#[test]
fn thousand_terms_are_added_up() {
    let fixture = Fixture::new(DATA);
    for terms in [16, 17, 1_000, 4_000] {
        let constant = format!("SELECT ({} AS ?x) {{}}", sum_of("1", terms));
        assert_eq!(rows(&fixture, &constant), [integer(terms)]);
        let variable = format!("SELECT ({} AS ?x) {{ :a :v ?v }}", sum_of("?v", terms));
        assert_eq!(rows(&fixture, &variable), [integer(2 * terms)]);
        let filter = format!(
            "SELECT (1 AS ?x) {{ ?s :v ?v FILTER({} = {terms}) }}",
            sum_of("?v", terms)
        );
        assert_eq!(rows(&fixture, &filter), [integer(1)]);
    }
    // From left to right, as it is written.
    let mixed = format!("SELECT (100{} * 2 / 4 AS ?x) {{}}", "-1*1+0".repeat(20));
    let expected = "x=\"80.5\"^^<http://www.w3.org/2001/XMLSchema#decimal>";
    let value = rows(&fixture, &mixed);
    assert!(
        value == [expected] || value == [expected.replace("80.5", "80")],
        "{value:?}"
    );
}

#[test]
fn five_thousand_branches_of_a_union_are_answered() {
    let fixture = Fixture::new(DATA);
    let mut branches: Vec<String> = (0..5_000)
        .map(|number| format!("{{ ?s :p :n{number} }}"))
        .collect();
    branches.push("{ ?s :p :a }".to_owned());
    branches.push("{ ?s :p ?o }".to_owned());
    let query = format!("SELECT ?s {{ {} }}", branches.join(" UNION "));
    assert_eq!(rows(&fixture, &query).len(), 3);
    // Branches that are all there.
    let branches = vec!["{ ?s :v ?v }"; 5_000].join(" UNION ");
    let query = format!("SELECT (COUNT(*) AS ?x) {{ {branches} }}");
    assert_eq!(rows(&fixture, &query), [integer(10_000)]);
    let path = vec![":p"; 5_000].join("|");
    let query = format!("SELECT (COUNT(*) AS ?x) {{ :a ({path}) ?o }}");
    assert_eq!(rows(&fixture, &query), [integer(5_000)]);
}

#[test]
fn planning_ends_with_its_time_and_with_those_who_wait() {
    let fixture = Fixture::new(DATA);
    let chain: String = (0..500)
        .map(|number| format!("?n{number} :p ?n{} . ", number + 1))
        .collect();
    let unions = vec!["{ ?s :v ?v }"; 300].join(" UNION ");
    let path = vec![":p"; 500].join("/");
    for query in [
        format!("SELECT * {{ {chain} }}"),
        format!("SELECT * {{ {unions} }}"),
        format!("SELECT * {{ ?s {path} ?o }}"),
    ] {
        let text = format!("{PREFIXES}{query}");
        let waiting = Arc::new(());
        let hour = Some(Duration::from_secs(3_600));
        let options = |timeout, planning_timeout, waiting| QueryOptions {
            timeout,
            planning_timeout,
            waiting,
            ..QueryOptions::of_process()
        };
        let plan = |options| fixture.engine.prepare(&text, &options).map(drop);
        let late = plan(options(Some(Duration::ZERO), None, None)).unwrap_err();
        assert!(matches!(late, QueryError::Timeout { .. }), "{late}");
        let late = plan(options(None, Some(Duration::ZERO), None)).unwrap_err();
        assert!(matches!(late, QueryError::Timeout { .. }), "{late}");
        let gone = plan(options(hour, None, Some(Weak::new()))).unwrap_err();
        assert!(matches!(gone, QueryError::Timeout { .. }), "{gone}");
        plan(options(hour, None, Some(Arc::downgrade(&waiting)))).unwrap();
        plan(options(Some(Duration::ZERO), hour, None)).unwrap();
    }
}
