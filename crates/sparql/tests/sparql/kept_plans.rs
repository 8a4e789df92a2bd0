//! Tests of the plan cache: answers and plans are those of planning anew.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::common::{Answer, Fixture};
use orrery_sparql::{PreparedQuery, QueryOptions, Tuning};
use orrery_storage::Snapshot;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// Things of a few types with features, numbers, dates and texts; some have optional parts, some
/// have not.
fn data() -> String {
    let mut trig = String::from(
        "@prefix : <http://e/> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .\n",
    );
    for thing in 0..40_u32 {
        trig += &format!(
            ":t{thing} a :T{} ; :feature :f{} , :f{} ; :number {} ; :label \"thing {}\" ; :on \"2024-01-{:02}\"^^xsd:date .\n",
            thing % 3,
            thing % 5,
            thing % 7,
            thing * 7 % 30,
            thing % 11,
            thing % 28 + 1,
        );
        if thing % 4 == 0 {
            trig += &format!(":t{thing} :extra \"more {thing}\" .\n");
        }
        if thing % 3 == 1 {
            trig += &format!(":t{thing} :next :t{} .\n", (thing + 5) % 40);
        }
        trig += &format!(
            ":t{thing} :score {} ; :weight {}.{} ; :active {} .\n",
            thing % 30,
            thing % 6,
            thing % 4 * 25,
            thing % 2 == 0,
        );
    }
    trig += ":t1 :rare 1 . :t2 :rare 2 . :t3 :rare 4.5 .\n";
    trig += ":g1 { :t1 :number 1 . :t2 :feature :f1 . :t3 :next :g1 }\n";
    trig
}

/// Parts of groups; `%i` is an IRI, `%n` a number, `%t` a text, `%d` a date, `%c` a number as
/// decimal, `%b` a truth value.
const GROUPS: [&str; 36] = [
    "?a :feature %i .",
    "?a a %i ; :number ?n .",
    "%i :label ?l .",
    "%i :feature ?f .",
    "?a :number ?n FILTER(?n > %n)",
    "?a :number ?n FILTER(?n < %n || %n <= ?n)",
    "?a :label %t .",
    "?a :label ?l FILTER(?l != %t)",
    "?a :on ?d FILTER(?d >= %d && ?d < %d)",
    "OPTIONAL { ?a :extra ?x }",
    "OPTIONAL { %i :extra ?x }",
    "OPTIONAL { ?a :next ?m . ?m :number ?k FILTER(?k > %n) }",
    "FILTER(%i != ?a)",
    "FILTER NOT EXISTS { ?a :feature %i }",
    "MINUS { ?a a %i }",
    "{ ?a :feature %i } UNION { ?a :next %i }",
    "FILTER(?n = %n)",
    "VALUES ?a { %i %i }",
    "GRAPH :g1 { ?a :feature %i }",
    // One number in two runs of patterns, around parts that may leave variables unbound.
    "?a :number ?n . { ?a :next ?b } UNION { %i :extra ?x } ?b :score ?n FILTER(?n >= %n)",
    "?a :number ?n . { ?a :next ?b } UNION { %i :extra ?x } FILTER((?n > %n && ?x != %t) || ?n > %n)",
    "?a :score ?n . OPTIONAL { ?a :next ?b } ?b :number ?n FILTER(?n < %n)",
    "?a :active \"%b\"^^xsd:boolean .",
    "GRAPH ?g { ?a ?p ?f OPTIONAL { ?f :next ?g } }",
    "?a :weight ?w FILTER(?w >= %c || ?w < %n)",
    "{ ?a :number ?n FILTER(?n > %n) } UNION { ?b :rare ?m FILTER(?m > %c) }",
    // Paths, and searches for them.
    "%i :next+ ?a .",
    "?a (:next|^:next)* %i .",
    "?a :feature %i . ?a :next* ?m .",
    // From what no data have.
    ":nowhere (:next|!:next)* ?a .",
    "?a (:next/:next)* :nowhere .",
    "VALUES ?a { :nowhere :t1 }",
    "SERVICE path:search { [] path:findPath path:shortestPath ; path:sourceNode %i ; path:destinationNode ?m ; path:startNode ?u ; path:endNode ?v ; path:length ?k . SERVICE <urn:e> { ?u :next ?v } }",
    "SERVICE path:search { [] path:findPath path:allPaths ; path:sourceNode %i ; path:destinationNode %i ; path:maxPathLength 3 ; path:startNode ?u ; path:endNode ?v ; path:length ?k . SERVICE <urn:e> { { ?u :next ?v } UNION { ?v :next ?u } ?u :number ?n FILTER(?n > %n) } }",
    "?a :feature %i . SERVICE path:search { ?a :next+ ?m . [] path:length ?k }",
    // What several parts read.
    "{ SELECT ?a ?n { ?a :feature %i ; :number ?n } ORDER BY ?n ?a LIMIT 5 } { ?a :extra ?x } UNION { ?a :next ?m } { ?a :label ?l } UNION { ?a :next+ ?b }",
];

const FORMS: [(&str, &str); 7] = [
    ("SELECT * {", "}"),
    ("SELECT DISTINCT ?a ?l {", "} ORDER BY ?l ?a LIMIT 7"),
    (
        "SELECT ?a ?n ?l {",
        "} ORDER BY DESC(?n) ?a ?l LIMIT 5 OFFSET 1",
    ),
    ("SELECT ?a (STR(?l) AS ?s) {", "}"),
    ("ASK {", "}"),
    ("CONSTRUCT { ?a :is %i . %i :has ?n } {", "}"),
    ("SELECT (COUNT(*) AS ?c) {", "}"),
];

/// The text of a shape with constants.
fn text(form: usize, groups: &[usize], draws: &mut impl Iterator<Item = u8>) -> String {
    let (head, tail) = FORMS[form % FORMS.len()];
    let mut parts = vec![head];
    parts.extend(groups.iter().map(|group| GROUPS[group % GROUPS.len()]));
    parts.push(tail);
    let mut text = String::from(
        "PREFIX : <http://e/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> PREFIX path: <https://orrery-db.org/path#>\n",
    );
    let template = parts.join(" ");
    let mut rest = template.as_str();
    while let Some((before, after)) = rest.split_once('%') {
        let draw = draws.next().unwrap_or_default();
        text += before;
        text += &match after.as_bytes()[0] {
            b'n' => (draw % 32).to_string(),
            b'c' => format!("\"{}.{}\"^^xsd:decimal", draw % 7, draw / 8 % 2 * 5),
            b'b' => draw.is_multiple_of(2).to_string(),
            b't' => format!("\"thing {}\"", draw % 13),
            b'd' => format!("\"2024-01-{:02}\"^^xsd:date", draw % 28 + 1),
            // Some are unknown.
            _ => match draw % 4 {
                0 => format!("<http://e/T{}>", draw / 4 % 4),
                1 => format!("<http://e/f{}>", draw / 4 % 9),
                _ => format!("<http://e/t{}>", draw / 4 % 44),
            },
        };
        rest = &after[1..];
    }
    text + rest
}

fn options(keeps_plans: bool) -> QueryOptions {
    QueryOptions {
        tuning: Tuning {
            keeps_plans,
            ..Tuning::default()
        },
        ..QueryOptions::of_process()
    }
}

/// The plan without its estimates, which are those that it was made with.
fn described(prepared: &PreparedQuery) -> String {
    let mut described = String::new();
    for line in prepared.explain().lines() {
        described += line.split("  [~").next().unwrap_or_default();
        described.push('\n');
    }
    described
}

/// The names of the nodes of a plan that were read with, whatever their order is: a join's
/// variables follow from what was joined before it.
fn operators(described: &str) -> BTreeSet<String> {
    let lines = described.lines().map(str::trim_start);
    let parts = lines.flat_map(|line| line.trim_start_matches(". ").split(" & "));
    let name = |part: &str| {
        let read = part.split(" via ").next().unwrap_or_default();
        match read.split_once(" on ") {
            Some((join, _)) if join.starts_with("SolutionJoinExec") => join.to_owned(),
            _ => read.to_owned(),
        }
    };
    parts.map(name).collect()
}

fn check(fixture: &Fixture, text: &str) -> Result<bool, TestCaseError> {
    let hits = || fixture.engine.plan_counts().hits;
    let before = hits();
    let kept = fixture.engine.prepare(text, &options(true));
    let is_hit = hits() > before;
    let fresh = fixture.engine.prepare(text, &options(false));
    let (kept, fresh) = match (kept, fresh) {
        (Ok(kept), Ok(fresh)) => (kept, fresh),
        (Err(kept), Err(fresh)) => {
            prop_assert_eq!(kept.to_string(), fresh.to_string());
            return Ok(false);
        }
        (kept, fresh) => {
            return Err(TestCaseError::fail(format!(
                "{text}: {:?}, {:?}",
                kept.err(),
                fresh.err()
            )));
        }
    };
    if is_hit {
        // Where counts differ by less than a factor of two, another order may be chosen, or a join
        // for look-ups; else the parts are the same.
        let (kept, fresh) = (described(&kept), described(&fresh));
        let size = |plan: &str| {
            let joins = plan.matches("SolutionJoinExec").count();
            (plan.lines().count(), joins)
        };
        if size(&kept) == size(&fresh) {
            prop_assert_eq!(operators(&kept), operators(&fresh), "{}\n{}", text, kept);
        }
    }
    let answer = |prepared: &PreparedQuery| {
        fixture
            .run(prepared)
            .unwrap_or_else(|error| panic!("{error}"))
    };
    let (kept, fresh): (Answer, Answer) = (answer(&kept), answer(&fresh));
    // What has an order is ordered by all that it gives.
    prop_assert_eq!(kept.sorted(), fresh.sorted(), "{}", text);
    Ok(is_hit)
}

#[test]
fn kept_plans_answer_as_those_that_are_made_anew() {
    let fixture = Fixture::new(&data());
    let mut runner = TestRunner::new(Config::with_cases(400));
    let strategy = (
        0..FORMS.len(),
        proptest::collection::vec(0..GROUPS.len(), 1..4),
        proptest::collection::vec(proptest::collection::vec(any::<u8>(), 12), 9),
    );
    let hits = std::cell::Cell::new(0);
    let outcome = runner.run(&strategy, |(form, groups, draws)| {
        for draws in draws {
            let text = text(form, &groups, &mut draws.into_iter());
            hits.set(hits.get() + u64::from(check(&fixture, &text)?));
        }
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
    assert!(hits.get() > 300, "{} plans were taken again", hits.get());
}

/// Quads that come and go: what queries ask about and did not find, literals where there were none,
/// terms, predicates and graphs that are new.
const CHANGES: [&str; 14] = [
    ":t1 a :T3 . :t2 a :T3 . :t5 a :T3 .",
    ":t40 :label \"thing 3\" ; :number 5 ; :feature :f1 , :f6 .",
    ":t1 :feature :f5 , :f6 , :f7 . :t6 :feature :f8 .",
    ":t1 :extra \"new 1\" . :t2 :extra \"new 2\" . :t9 :extra \"new 9\" .",
    ":t0 :extra \"more 0\" . :t4 :extra \"more 4\" . :t8 :extra \"more 8\" .",
    ":t3 :feature \"no node\" , 7 . :t4 :next \"no node\" .",
    ":g1 { :t2 :feature :f1 . :t3 :next :g1 }",
    ":g2 { :t5 :next :g2 . :t1 :feature :f2 }",
    ":t1 :rare 1 . :t2 :rare 2 . :t3 :rare 4.5 .",
    ":t4 :rare 6.5 . :t9 :never :t1 .",
    ":t7 :is :T1 . :T1 :has 3 .",
    ":t1 a :T1 . :t4 a :T1 . :t7 a :T1 . :t10 a :T1 .",
    ":t5 :label \"thing 12\" . :t6 :on \"2024-01-29\"^^xsd:date .",
    ":t2 :number 31 . :t3 :number \"none\" .",
];

#[test]
fn kept_plans_answer_as_those_that_are_made_anew_after_commits() {
    let prefixes = "@prefix : <http://e/> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .\n";
    let mut runner = TestRunner::new(Config::with_cases(if cfg!(debug_assertions) {
        16
    } else {
        60
    }));
    let query = (
        0..FORMS.len(),
        proptest::collection::vec(0..GROUPS.len(), 1..4),
        proptest::collection::vec(any::<u8>(), 12),
    );
    let step = (
        proptest::collection::vec(any::<u8>(), 12),
        any::<u8>(),
        any::<bool>(),
    );
    let strategy = (
        proptest::collection::vec(query, 1..4),
        proptest::collection::vec(step, 8..40),
    );
    let (hits, after_commits) = (std::cell::Cell::new(0), std::cell::Cell::new(0));
    let outcome = runner.run(&strategy, |(queries, steps)| {
        let fixture = Fixture::new(&data());
        let writer = fixture.writer();
        let mut is_after_commit = vec![false; queries.len()];
        for (number, (draws, change, inserts)) in steps.into_iter().enumerate() {
            // The shape has to be known, and a plan be kept, before it matters.
            if number >= 4 && change % 3 == 0 {
                let change = CHANGES[usize::from(change / 3) % CHANGES.len()];
                Fixture::commit(&writer, &format!("{prefixes}{change}"), inserts);
                is_after_commit.fill(true);
            }
            for (at, (form, groups, first)) in queries.iter().enumerate() {
                // Some constants stay, some are others.
                let draws = first
                    .iter()
                    .zip(&draws)
                    .map(|(first, draw)| match draw % 3 {
                        0 => *draw,
                        _ => *first,
                    });
                let text = text(*form, groups, &mut draws.collect::<Vec<_>>().into_iter());
                let is_hit = check(&fixture, &text)?;
                hits.set(hits.get() + u64::from(is_hit));
                after_commits.set(after_commits.get() + u64::from(is_hit && is_after_commit[at]));
                is_after_commit[at] = false;
            }
        }
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
    let (hits, after_commits) = (hits.get(), after_commits.get());
    assert!(
        hits > 300 && after_commits > 50,
        "{hits} plans were taken again, {after_commits} of them first after a commit"
    );
}

#[test]
fn a_plan_is_taken_after_a_commit_that_changes_little() {
    let fixture = Fixture::new(&data());
    let writer = fixture.writer();
    let ask = |thing: u32, feature: u32| {
        let text = format!(
            "PREFIX : <http://e/> SELECT ?l ?b {{ <http://e/t{thing}> :label ?l ; :feature ?f . ?b :feature ?f , <http://e/f{feature}> ; :number ?n FILTER(?n > 0) }}"
        );
        let before = fixture.engine.plan_counts().hits;
        let asked = check(&fixture, &text);
        asked.unwrap_or_else(|error| panic!("{error}"));
        fixture.engine.plan_counts().hits > before
    };
    for thing in 0..4 {
        ask(thing, 1);
    }
    assert!(ask(5, 2));
    for (number, feature) in (0..8).zip([1, 2, 3].into_iter().cycle()) {
        let product = format!(
            "@prefix : <http://e/> . :new{number} :number {number} ; :feature :f{feature} ."
        );
        Fixture::commit(&writer, &product, true);
        assert!(ask(6, feature), "after commit {number}");
    }
}

#[test]
fn a_part_that_had_no_rows_before_a_commit_makes_another_plan() {
    let fixture = Fixture::new(&data());
    let writer = fixture.writer();
    let ask = |thing: u32| {
        let text = format!(
            "PREFIX : <http://e/> SELECT ?l ?x {{ <http://e/t{thing}> :label ?l OPTIONAL {{ ?a :feature :f9 ; :label ?x }} OPTIONAL {{ ?a :never ?y }} }}"
        );
        let answer = check(&fixture, &text);
        answer.unwrap_or_else(|error| panic!("{error}"))
    };
    let commit = |trig: &str, inserts| {
        Fixture::commit(&writer, &format!("@prefix : <http://e/> . {trig}"), inserts);
    };
    // Both terms are known, and have no rows.
    commit(":f9 :is :never .", true);
    commit(":t1 :never 1 ; :feature :f9 .", true);
    commit(":t1 :never 1 ; :feature :f9 .", false);
    for thing in 0..4 {
        ask(thing);
    }
    assert!(ask(5));
    commit(":t9 :number 77 .", true);
    assert!(ask(5), "another commit");
    commit(":t2 :feature :f9 .", true);
    assert!(!ask(5), "the first part finds something");
    commit(":t2 :never 2 .", true);
    assert!(!ask(5), "the other part, too");
}

/// Asks a query until its plan may be kept, then the same with other constants.
fn check_after(trig: &str, first: &str, others: &[&str]) -> bool {
    let fixture = Fixture::new(trig);
    let prefixes = "PREFIX : <http://e/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>";
    let ask = |text: &str| match check(&fixture, &format!("{prefixes} {text}")) {
        Ok(is_hit) => is_hit,
        Err(error) => panic!("{error}"),
    };
    for _ in 0..4 {
        ask(first);
    }
    others
        .iter()
        .fold(false, |was_hit, text| was_hit | ask(text))
}

/// Things with numbers up to 29, each before two others.
fn rows_of_things() -> String {
    let mut trig = String::from("@prefix : <http://e/> .\n");
    for thing in 0..60_u32 {
        let (number, next) = (thing % 30, [(thing + 5) % 60, (thing + 7) % 60]);
        trig += &format!(
            ":t{thing} :number {number} ; :score {number} ; :next :t{} , :t{} ; :extra \"m{}\" .\n",
            next[0],
            next[1],
            thing % 3
        );
    }
    trig
}

#[test]
fn bounds_from_a_condition_of_another_pattern_are_not_kept() {
    let query = |number: u32| {
        format!(
            "SELECT * {{ <http://e/t1> :next ?a . ?a :number ?n . {{ ?a :next ?b }} UNION {{ <http://e/t3> :extra ?x }}
             ?b :score ?n FILTER(?n >= {number}) }}"
        )
    };
    check_after(&rows_of_things(), &query(10), &[&query(1), &query(12)]);
}

#[test]
fn bounds_from_a_condition_above_the_pattern_are_not_kept() {
    let query = |number: u32| {
        format!(
            "SELECT * {{ <http://e/t1> :next ?a . ?a :number ?n . {{ ?a :next ?b }} UNION {{ <http://e/t3> :extra ?x }}
             FILTER((?n > {number} && ?x != 'q') || ?n > 12) }}"
        )
    };
    check_after(&rows_of_things(), &query(10), &[&query(1), &query(3)]);
}

#[test]
fn a_boolean_constant_of_the_query_is_not_taken_for_one_of_the_planner() {
    let mut trig = String::from("@prefix : <http://e/> .\n");
    for thing in 0..40_u32 {
        trig += &format!(":t{thing} :active {} .\n", thing % 2 == 0);
        trig += &format!(":g{} {{ :t{thing} :of :t{} }}\n", thing % 3, thing + 1);
        if thing % 5 == 0 {
            trig += &format!(":g{} {{ :t{} :q :g{} }}\n", thing % 3, thing + 1, thing % 3);
        }
    }
    let query = |active: bool| {
        format!(
            "SELECT * {{ ?s :active \"{active}\"^^xsd:boolean . GRAPH ?g {{ ?s :of ?o OPTIONAL {{ ?o :q ?g }} }} }}"
        )
    };
    check_after(&trig, &query(true), &[&query(false), &query(true)]);
}

#[test]
fn a_cached_plan_keeps_equal_bounds_of_different_patterns_apart() {
    let mut trig = rows_of_things();
    trig += ":t1 :rare 1 . :t2 :rare 2 .\n";
    let query = |number: u32, decimal: u32| {
        format!(
            "SELECT * {{ {{ ?a :number ?n FILTER(?n > {number}) }} UNION
             {{ ?b :rare ?m FILTER(?m > \"{decimal}\"^^xsd:decimal) }} }}"
        )
    };
    check_after(&trig, &query(5, 5), &[&query(5, 1), &query(4, 1)]);
}

#[test]
fn a_plan_is_taken_for_other_constants_with_similar_counts() {
    let fixture = Fixture::new(&data());
    let ask = |thing: u32, number: u32| {
        let text = format!(
            "PREFIX : <http://e/> SELECT ?l ?n {{ <http://e/t{thing}> :label ?l ; :number ?n FILTER(?n >= {number}) }}"
        );
        let before = fixture.engine.plan_counts().hits;
        let prepared = fixture.engine.prepare(&text, &options(true));
        let rows = fixture
            .run(&prepared.unwrap_or_else(|error| panic!("{error}")))
            .unwrap_or_else(|error| panic!("{error}"));
        (fixture.engine.plan_counts().hits > before, rows)
    };
    for thing in 0..3 {
        assert!(!ask(thing, 0).0, "a shape has to be known first");
    }
    for thing in 3..40 {
        let (is_hit, rows) = ask(thing, 2);
        let number = thing * 7 % 30;
        let expected = match number >= 2 {
            true => vec![format!(
                "l=\"thing {}\" n=\"{number}\"^^<http://www.w3.org/2001/XMLSchema#integer>",
                thing % 11
            )],
            false => Vec::new(),
        };
        assert!(is_hit, "thing {thing}");
        let Answer::Solutions(rows) = rows else {
            panic!("a SELECT gives solutions");
        };
        assert_eq!(rows.len(), expected.len(), "thing {thing}: {rows:?}");
    }
    assert!(!ask(99, 2).0, "a thing that is not there");
}

#[test]
fn a_part_that_had_no_rows_makes_another_plan() {
    let fixture = Fixture::new(&data());
    let ask = |thing: u32| {
        let text = format!(
            "PREFIX : <http://e/> SELECT ?l ?x {{ <http://e/t{thing}> :label ?l OPTIONAL {{ <http://e/t{thing}> :extra ?x }} }}"
        );
        let before = fixture.engine.plan_counts().hits;
        let prepared = fixture.engine.prepare(&text, &options(true));
        let prepared = prepared.unwrap_or_else(|error| panic!("{error}"));
        let is_hit = fixture.engine.plan_counts().hits > before;
        let Answer::Solutions(rows) = fixture
            .run(&prepared)
            .unwrap_or_else(|error| panic!("{error}"))
        else {
            panic!("a SELECT gives solutions");
        };
        assert_eq!(rows.len(), 1);
        (is_hit, rows[0].contains("more"))
    };
    let without: Vec<(bool, bool)> = [1, 2, 3, 5].map(ask).to_vec();
    assert_eq!(
        without,
        [
            (false, false),
            (false, false),
            (false, false),
            (true, false)
        ]
    );
    let with: Vec<(bool, bool)> = [4, 8, 12].map(ask).to_vec();
    assert_eq!(with, [(false, true), (true, true), (true, true)]);
    assert_eq!(ask(6), (true, false), "the other plan is kept, too");
}

#[test]
fn a_plan_of_a_later_commit_is_not_taken_for_an_earlier_state() {
    let fixture = Fixture::new(&rows_of_things());
    let writer = fixture.writer();
    let earlier = fixture.engine.database().snapshot();
    Fixture::commit(&writer, "<http://e/new> <http://e/newer> 1 .", true);
    for text in [
        "SELECT ?x { VALUES ?x { <http://e/new> } }",
        "PREFIX : <http://e/> CONSTRUCT { ?s <http://e/new> ?n } { ?s :number ?n FILTER(?n < 3) }",
    ] {
        let ask = |snapshot: Option<&Arc<Snapshot>>| {
            let options = QueryOptions {
                snapshot: snapshot.cloned(),
                ..options(true)
            };
            let prepared = fixture.engine.prepare(text, &options);
            let prepared = prepared.unwrap_or_else(|error| panic!("{error}"));
            let answer = fixture.run(&prepared);
            answer
                .unwrap_or_else(|error| panic!("{text}: {error}"))
                .sorted()
        };
        let before = fixture.engine.plan_counts().hits;
        let now: Vec<_> = (0..4).map(|_| ask(None)).collect();
        assert!(fixture.engine.plan_counts().hits > before, "{text}");
        assert_eq!(ask(Some(&earlier)), now[0], "{text}");
    }
}

#[test]
fn old_states_of_growing_age_leave_one_plan_that_later_states_take() {
    const COMMITS: usize = 100;
    let fixture = Fixture::new(&rows_of_things());
    let writer = fixture.writer();
    let mut states = vec![fixture.engine.database().snapshot()];
    for number in 0..COMMITS {
        let quad = format!("<http://e/more{number}> <http://e/of> {number} .");
        Fixture::commit(&writer, &quad, true);
        states.push(fixture.engine.database().snapshot());
    }
    let ask = |state: &Arc<Snapshot>, thing: usize| {
        let text = format!(
            "PREFIX : <http://e/> SELECT ?l ?n {{ <http://e/t{thing}> :score ?l ; :number ?n FILTER(?n >= 0) }}"
        );
        let options = QueryOptions {
            snapshot: Some(Arc::clone(state)),
            ..options(true)
        };
        let before = fixture.engine.plan_counts().hits;
        let prepared = fixture.engine.prepare(&text, &options);
        let prepared = prepared.unwrap_or_else(|error| panic!("{error}"));
        let answer = fixture.run(&prepared);
        answer.unwrap_or_else(|error| panic!("{error}"));
        fixture.engine.plan_counts().hits > before
    };
    let newest = &states[COMMITS];
    for thing in 0..3 {
        ask(newest, thing);
    }
    assert!(ask(newest, 3));
    for (age, state) in states.iter().rev().enumerate().skip(1) {
        assert!(
            !ask(state, age % 40),
            "no plan is one for {age} commits ago"
        );
        assert_eq!(fixture.engine.plan_counts().kept, 1, "{age} commits ago");
        // Whoever asks for what is now has a plan all the same.
        assert!(ask(newest, age % 40), "after {age} commits ago");
    }
    for state in &states {
        assert!(ask(state, 5), "all of them take the one that is left");
    }
}
