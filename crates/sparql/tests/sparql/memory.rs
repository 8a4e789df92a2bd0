//! Tests of queries at their memory limit: more memory never fails, and spilling replaces memory.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fmt::Write;
use std::sync::Arc;

use crate::common::{Answer, Fixture, PREFIXES};
use orrery_sparql::{Engine, EngineOptions};

/// Things with texts of 200 characters, several each.
fn texts(things: usize, of_each: usize) -> String {
    let mut turtle = String::from("@prefix : <http://example.org/> .\n");
    for thing in 0..things {
        for number in 0..of_each {
            let key = (thing * 7_919 + number * 104_729) % 1_000_003;
            let _ = writeln!(
                turtle,
                ":s{thing} :p{number} \"{key:07} {}\" .",
                "x".repeat(200)
            );
        }
    }
    turtle
}

fn options(memory_bytes: u64) -> EngineOptions {
    EngineOptions {
        memory_bytes,
        threads: 1,
        ..EngineOptions::default()
    }
}

fn within(turtle: &str, memory_bytes: u64) -> Fixture {
    Fixture::with_options(turtle, options(memory_bytes))
}

fn rows(fixture: &Fixture, query: &str) -> Result<Vec<String>, String> {
    match fixture.ask(&format!("{PREFIXES}{query}")) {
        Ok(Answer::Solutions(rows)) => Ok(rows),
        Ok(other) => panic!("{query}: {other:?}"),
        Err(error) => Err(error.to_string()),
    }
}

/// The least memory with which a query works, which has to be at most so much. With each larger
/// one, in steps of an eighth up to a gibibyte, it gives the same.
fn works_from(fixture: &mut Fixture, query: &str, least_max_mebibytes: u64) {
    let mut run = |memory_bytes: u64| {
        let database = Arc::clone(fixture.engine.database());
        fixture.engine = Engine::new(database, options(memory_bytes)).unwrap();
        rows(fixture, query)
    };
    let expected = run(4 << 30).unwrap();
    let mut least = None;
    let mut memory_bytes = 16 << 20;
    while memory_bytes <= 1 << 30 {
        match run(memory_bytes) {
            Ok(found) => {
                least.get_or_insert(memory_bytes);
                assert_eq!(found.len(), expected.len(), "{query}: {memory_bytes} bytes");
                if query.contains("ORDER BY") {
                    assert!(found == expected, "{query}: {memory_bytes} bytes");
                } else if !query.contains("LIMIT") {
                    // Which groups a LIMIT leaves is open, and so is their order.
                    let (found, expected) = (in_parts(&found), in_parts(&expected));
                    let other = found
                        .iter()
                        .zip(&expected)
                        .find(|(one, other)| one != other);
                    assert_eq!(other, None, "{query}: {memory_bytes} bytes");
                }
            }
            Err(error) => assert_eq!(
                least, None,
                "{query}: works with so many bytes, and not with {memory_bytes}: {error}"
            ),
        }
        memory_bytes += memory_bytes / 8;
    }
    let least = least.unwrap_or(u64::MAX) >> 20;
    assert!(least <= least_max_mebibytes, "{query}: from {least} MiB on");
}

/// In which order texts are joined is open.
fn in_parts(rows: &[String]) -> Vec<Vec<&str>> {
    let parts = rows.iter().map(|row| row.split(['|', '"']).collect());
    let mut rows: Vec<Vec<&str>> = parts.collect();
    rows.iter_mut().for_each(|parts| parts.sort_unstable());
    rows.sort_unstable();
    rows
}

const JOINED: &str = "SELECT ?s (GROUP_CONCAT(?o; separator='|') AS ?all) { ?s ?p ?o } GROUP BY ?s";

#[test]
fn group_concat_that_fits_some_memory_fits_any_larger_one() {
    let mut fixture = Fixture::new(&texts(6_000, 5));
    works_from(&mut fixture, &format!("{JOINED} LIMIT 10"), 32);
    works_from(&mut fixture, JOINED, 96);
    // As ids they are small, and texts at the end only.
    let distinct = JOINED.replace("?o;", "DISTINCT ?o;");
    works_from(&mut fixture, &format!("{distinct} LIMIT 10"), 32);
    works_from(&mut fixture, &distinct, 96);
}

#[test]
fn groupings_that_fit_some_memory_fit_any_larger_one() {
    let mut fixture = Fixture::new(&texts(6_000, 5));
    for query in [
        "SELECT ?s (COUNT(DISTINCT ?o) AS ?n) { ?s ?p ?o } GROUP BY ?s",
        "SELECT ?s (SAMPLE(?o) AS ?one) { ?s ?p ?o } GROUP BY ?s",
        "SELECT ?o (AVG(STRLEN(?o) / 7) AS ?n) { ?s ?p ?o } GROUP BY ?o",
        "SELECT ?s ?p (MAX(?o) AS ?most) { ?s ?p ?o } GROUP BY ?s ?p",
        "SELECT DISTINCT ?s ?o { ?s ?p ?o }",
    ] {
        works_from(&mut fixture, query, 64);
    }
}

#[test]
fn sorts_that_fit_some_memory_fit_any_larger_one() {
    let mut fixture = Fixture::new(&texts(6_000, 5));
    for query in [
        "SELECT ?s ?o { ?s ?p ?o } ORDER BY ?o",
        "SELECT ?s ?o { ?s ?p ?o } ORDER BY DESC(?o) ?s LIMIT 25000",
        "SELECT DISTINCT ?o { ?s ?p ?o } ORDER BY ?o OFFSET 1000",
    ] {
        works_from(&mut fixture, query, 64);
    }
}

#[test]
fn rows_far_behind_the_first_are_sorted_on_the_disk_where_they_do_not_fit() {
    let turtle = texts(40_000, 2);
    let query = "SELECT ?s ?p ?o { ?s ?p ?o } ORDER BY ?o LIMIT 10 OFFSET 70000";
    let expected = rows(&within(&turtle, 4 << 30), query).unwrap();
    assert_eq!(expected.len(), 10);
    for mebibytes in [48, 64, 128] {
        let fixture = within(&turtle, mebibytes << 20);
        assert_eq!(
            rows(&fixture, query).as_ref(),
            Ok(&expected),
            "{mebibytes} MiB"
        );
    }
}
