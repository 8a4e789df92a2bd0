//! Queries at the bounds of their memory: what they can do with less they can do with more, and
//! what cannot be had spills.

use std::fmt::Write;

use crate::common::{Answer, Fixture, PREFIXES};
use orrery_sparql::EngineOptions;

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

fn within(turtle: &str, memory_bytes: u64) -> Fixture {
    let options = EngineOptions {
        memory_bytes,
        threads: 1,
        ..EngineOptions::default()
    };
    Fixture::with_options(turtle, options)
}

fn rows(fixture: &Fixture, query: &str) -> Result<Vec<String>, String> {
    match fixture.ask(&format!("{PREFIXES}{query}")) {
        Ok(Answer::Solutions(rows)) => Ok(rows),
        Ok(other) => panic!("{query}: {other:?}"),
        Err(error) => Err(error.to_string()),
    }
}

/// The states of the groups fit from some point on, and what these become is as large.
#[test]
fn joined_texts_of_many_groups_have_room_from_some_memory_on() {
    const THINGS: usize = 12_000;
    let turtle = texts(THINGS, 5);
    let query =
        "SELECT ?s (GROUP_CONCAT(?o; separator='|') AS ?all) { ?s ?p ?o } GROUP BY ?s LIMIT 10";
    // Not so below: 56 MiB are enough, for it spills, and 64 to 96 are not, where the states fit and the answer has no room beside them.
    for mebibytes in [112, 128, 160, 192, 256, 384] {
        let fixture = within(&turtle, mebibytes << 20);
        let found = rows(&fixture, query).map(|rows| rows.len());
        assert_eq!(found, Ok(10), "{mebibytes} MiB");
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
