//! Tests of values, counts and the order of solutions.

use super::{DATA, rows};
use crate::common::{Answer, Fixture, PREFIXES};

const NUMBERS: &str = "
    @prefix : <http://example.org/> .
    @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
    :small :n 5 . :byte :n \"5\"^^xsd:byte . :odd :n \"05\"^^xsd:integer .
    :toolarge :n \"300\"^^xsd:byte . :negative :n \"-1\"^^xsd:unsignedInt . :word :n \"inf\"^^xsd:double .
    :nan :n \"NaN\"^^xsd:double . :infinite :n \"INF\"^^xsd:double .
    :i63 :n 9223372036854775808 . :i64 :n 18446744073709551616 . :below :n -9223372036854775809 .
    :fine :n 9223372036854775808.000000000000000001 . :long :n 0.1234567890123456789 .
";

#[test]
fn dates_are_compared_by_value() {
    let fixture = Fixture::new(DATA);
    let query = "SELECT ?s { ?s :born ?d FILTER(?d < \"1995-01-01\"^^xsd:date) }";
    assert_eq!(rows(&fixture, query), ["s=<alice>"]);
}

#[test]
fn a_distinct_count_sees_only_the_variables_of_a_solution() {
    let fixture = Fixture::new(DATA);
    let query = "SELECT (COUNT(DISTINCT *) AS ?c) \
                 { ?s a :Person . { SELECT ?s { ?s :knows ?o } } ?s :knows [] }";
    let integer = "^^<http://www.w3.org/2001/XMLSchema#integer>";
    assert_eq!(rows(&fixture, query), [format!("c=\"4\"{integer}")]);
}

#[test]
fn a_distinct_count_in_a_subquery_sees_the_variables_that_it_hides() {
    let fixture = Fixture::new("");
    let query = "SELECT ?c { { SELECT (COUNT(DISTINCT *) AS ?c) { VALUES ?x { 1 2 2 } } } }";
    let integer = "^^<http://www.w3.org/2001/XMLSchema#integer>";
    assert_eq!(rows(&fixture, query), [format!("c=\"2\"{integer}")]);
}

#[test]
fn a_solution_without_variables_can_be_ordered() {
    let fixture = Fixture::new("");
    assert_eq!(rows(&fixture, "SELECT * { } ORDER BY ?x"), [""]);
    assert_eq!(
        rows(&fixture, "SELECT ?y { } ORDER BY (?x + 1) LIMIT 2"),
        [""]
    );
}

/// The local names of `?s`, in the order of the answer.
fn subjects(fixture: &Fixture, pattern: &str) -> Vec<String> {
    let (pattern, order) = pattern.split_once(" ORDER").unwrap_or((pattern, ""));
    let order = if order.is_empty() {
        ""
    } else {
        &format!("ORDER{order}")
    };
    match fixture.ask(&format!("{PREFIXES}SELECT ?s {{ {pattern} }} {order}")) {
        Ok(Answer::Solutions(rows)) => rows
            .into_iter()
            .map(|row| row.replace("s=<http://example.org/", "").replace('>', ""))
            .collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn numbers_of_any_size_are_compared_and_ordered() {
    let fixture = Fixture::new(NUMBERS);
    let sorted = |pattern: &str| {
        let mut found = subjects(&fixture, pattern);
        found.sort();
        found
    };
    assert_eq!(
        sorted("?s :n ?n FILTER(?n > 1000)"),
        ["fine", "i63", "i64", "infinite"]
    );
    assert_eq!(sorted("?s :n ?n FILTER(?n = 5)"), ["byte", "odd", "small"]);
    assert_eq!(sorted("?s :n ?n FILTER(?n = 9223372036854775808)"), ["i63"]);
    assert_eq!(sorted("?s :n ?n FILTER(?n < -1)"), ["below"]);
    // What is no number is neither less nor not less; NaN is not less.
    assert_eq!(
        sorted("?s :n ?n FILTER(!(?n < 1000))"),
        ["fine", "i63", "i64", "infinite", "nan"]
    );
    assert_eq!(
        sorted("?s :n ?n FILTER(!isNumeric(?n))"),
        ["negative", "toolarge", "word"]
    );
    assert_eq!(
        subjects(
            &fixture,
            "?s :n ?n FILTER(isNumeric(?n) && ?n != 5) ORDER BY ?n"
        ),
        ["nan", "below", "long", "i63", "fine", "i64", "infinite"]
    );
}

#[test]
fn strdt_makes_the_term_of_the_data() {
    let fixture = Fixture::new(NUMBERS);
    for (text, datatype, subject) in [
        ("5", "byte", "byte"),
        ("5", "integer", "small"),
        ("05", "integer", "odd"),
        ("300", "byte", "toolarge"),
        ("0.1234567890123456789", "decimal", "long"),
    ] {
        let bind = format!("BIND(STRDT(\"{text}\", xsd:{datatype}) AS ?n) ?s :n ?n");
        assert_eq!(subjects(&fixture, &bind), [subject], "{bind}");
    }
}

#[test]
fn sums_go_beyond_64_bits() {
    let fixture = Fixture::new(NUMBERS);
    let query = "SELECT (SUM(?n) AS ?sum) { VALUES ?s { :i63 :i64 :small } ?s :n ?n }";
    assert_eq!(
        rows(&fixture, query),
        ["sum=\"27670116110564327429\"^^<http://www.w3.org/2001/XMLSchema#integer>"]
    );
    let query = "SELECT (MAX(?n) AS ?max) { VALUES ?s { :i63 :i64 :small :fine } ?s :n ?n }";
    assert_eq!(
        rows(&fixture, query),
        ["max=\"18446744073709551616\"^^<http://www.w3.org/2001/XMLSchema#integer>"]
    );
}
