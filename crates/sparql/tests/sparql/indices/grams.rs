//! Tests of the trigram index: the same answers as without it, in every state and for every asker.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test may fail on the spot"
)]

use std::collections::BTreeSet;

use orrery_sparql::{QueryOptions, Tuning};
use orrery_storage::text::TextRules;
use orrery_storage::{Asker, At, GraphNames, ReadScope, verify};
use orrery_term::Term;
use proptest::prelude::*;

use crate::common::{Answer, Fixture};

fn rules(predicates: &[&str], languages: &[&str]) -> TextRules {
    TextRules {
        predicates: predicates.iter().map(|p| format!("http://e/{p}")).collect(),
        languages: languages.iter().map(|&tag| tag.to_owned()).collect(),
        grams: true,
        ..TextRules::default()
    }
}

fn fixture(trig: &str, rules: TextRules) -> Fixture {
    let fixture = Fixture::new(trig);
    let database = fixture.engine.database();
    database.set_text_rules(Some(rules), Some(1 << 20)).unwrap();
    fixture
}

/// The index wherever it may be, never, where it pays; and the plain translation.
fn tunings() -> [Tuning; 4] {
    let usual = Tuning::default();
    [
        Tuning {
            reduces_always: true,
            ..usual
        },
        Tuning {
            looks_grams_up: false,
            ..usual
        },
        usual,
        Tuning {
            rewrites: false,
            ..usual
        },
    ]
}

/// The rows of a query, sorted; the same by all settings.
fn rows(fixture: &Fixture, query: &str, options: &QueryOptions) -> Vec<String> {
    let mut answers = tunings().into_iter().map(|tuning| {
        let options = QueryOptions {
            tuning,
            ..options.clone()
        };
        match fixture.ask_with(query, &options).unwrap() {
            Answer::Solutions(mut rows) => {
                rows.sort();
                rows
            }
            other => panic!("{other:?}"),
        }
    });
    let first = answers.next().unwrap();
    for (number, other) in answers.enumerate() {
        assert_eq!(first, other, "{number}: {query}");
    }
    first
}

/// How many literals the index gives a query, if it is used wherever it may.
fn looked_up(fixture: &Fixture, query: &str, options: &QueryOptions) -> Option<usize> {
    let plan = |looks_grams_up| {
        let tuning = Tuning {
            reduces_always: true,
            looks_grams_up,
            ..Tuning::default()
        };
        let options = QueryOptions {
            tuning,
            ..options.clone()
        };
        fixture.engine.prepare(query, &options).unwrap().explain()
    };
    let (with, without) = (plan(true), plan(false));
    if with == without {
        return None;
    }
    let values = with.lines().find(|line| line.contains("RowsExec"));
    let Some(values) = values else {
        // No literal: no solution.
        return Some(0);
    };
    let digits = |text: &str| {
        let digits: String = text.chars().filter(char::is_ascii_digit).collect();
        digits.parse().ok()
    };
    let count = values.split("rows").next().and_then(digits);
    Some(count.unwrap_or_else(|| panic!("{values}")))
}

fn needle() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "[abkß ]{2,5}",
        2 => "[ABKs]{1,4}",
        1 => prop::sample::select(&["İbk", "aſb", "abc", "12", "http"][..]).prop_map(str::to_owned),
    ]
}

/// A test of the text of `?l`.
fn text_test() -> impl Strategy<Value = String> {
    let subject = prop::sample::select(
        &[
            "?l",
            "?l",
            "STR(?l)",
            "LCASE(?l)",
            "UCASE(STR(?l))",
            "LCASE(UCASE(?l))",
        ][..],
    );
    let pattern = prop_oneof![
        needle(),
        (needle(), needle()).prop_map(|(one, other)| format!("{one}.*{other}")),
        (needle(), needle()).prop_map(|(one, other)| format!("^({one}|{other})[a-k]?b+")),
        needle().prop_map(|needle| format!("{needle}$")),
    ];
    let one = prop_oneof![
        2 => (subject.clone(), needle(), prop::sample::select(&["CONTAINS", "STRSTARTS", "STRENDS"][..]))
            .prop_map(|(subject, needle, function)| format!("{function}({subject}, \"{needle}\")")),
        2 => (subject, pattern, prop::sample::select(&["", ", \"i\"", ", \"q\"", ", \"m\""][..]))
            .prop_map(|(subject, pattern, flags)| format!("REGEX({subject}, \"{pattern}\"{flags})")),
    ];
    one.prop_recursive(2, 4, 2, |inner| {
        prop_oneof![
            2 => (inner.clone(), inner.clone()).prop_map(|(one, other)| format!("({one} || {other})")),
            2 => (inner.clone(), inner.clone()).prop_map(|(one, other)| format!("({one} && {other})")),
            1 => inner.clone().prop_map(|one| format!("(!{one})")),
            1 => inner.prop_map(|one| format!("({one} && LANG(?l) = \"en\")")),
        ]
    })
}

fn pattern(test: &str, number: usize) -> String {
    match number % 10 {
        8 => format!("?s :p1 ?l ; a :C0 FILTER({test})"),
        9 => format!("GRAPH :g1 {{ ?s :p1 ?l . ?s a :C0 FILTER({test}) }}"),
        0 => format!("?s :p1 ?l FILTER({test})"),
        1 => format!("?s :p1 ?l . ?s :p2 ?m FILTER({test})"),
        2 => format!("?s ?p ?l FILTER({test})"),
        3 => format!("?s :p2 ?m OPTIONAL {{ ?s :p1 ?l FILTER({test}) }}"),
        4 => format!("?s :p2 ?m OPTIONAL {{ ?s :p1 ?l }} FILTER({test})"),
        5 => format!("{{ ?s :p1 ?l }} UNION {{ ?s :p2 ?l }} FILTER({test})"),
        6 => format!("?s :p1 ?m FILTER NOT EXISTS {{ ?s :p2 ?l FILTER({test}) }}"),
        _ => {
            format!("GRAPH ?g {{ ?s :p1 ?l }} MINUS {{ ?s :p2 ?l FILTER({test}) }} FILTER({test})")
        }
    }
}

/// Statements as TriG; short strings are in ids, some objects are no strings.
fn quad() -> impl Strategy<Value = String> {
    let text = prop_oneof![
        4 => "[abkß ]{0,12}",
        2 => "[aAbBkKsSſİ\u{212a}]{0,10}",
        1 => prop::sample::select(&["abcabc", "the abc 123", "ABC", "http://e/abk"][..]).prop_map(str::to_owned),
    ];
    let object = (text, 0..8_u8).prop_map(|(text, kind)| match kind {
        0 | 1 => format!("\"{text}\"@en"),
        2 => format!("\"{text}\"@de-at"),
        3 => format!("\"{text}\"^^:type"),
        4 => ["123", "1.5", ":abk", "true", "\"2012-12-12\"^^xsd:date"][text.len() % 5].to_owned(),
        _ => format!("\"{text}\""),
    });
    (0..6_u8, 0..3_u8, object, 0..3_u8).prop_map(|(s, p, object, graph)| {
        let triple = match p {
            0 => format!(":s{s} a :C{}", object.len() % 2),
            _ => format!(":s{s} :p{p} {object}"),
        };
        match graph {
            0 => format!("{triple} ."),
            _ => format!(":g{graph} {{ {triple} }}"),
        }
    })
}

fn trig<'t>(quads: impl IntoIterator<Item = &'t String>) -> String {
    let quads: Vec<&str> = quads.into_iter().map(String::as_str).collect();
    format!(
        "@prefix : <http://e/> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .\n{}",
        quads.join("\n")
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// After loads, commits, checkpoints, in old states, and for who sees one graph.
    #[test]
    fn answers_are_those_without_the_index(
        base in prop::collection::btree_set(quad(), 1..30),
        changes in prop::collection::vec((prop::collection::btree_set(quad(), 0..8), any::<u64>(), any::<bool>()), 0..3),
        (predicates, languages) in prop::sample::select(vec![
            (&[][..], &[][..]), (&["p1"][..], &[][..]), (&["p1", "p2"][..], &["en"][..]), (&[][..], &["", "de"][..]),
        ]),
        classes in prop::sample::select(vec![&[][..], &[][..], &["http://e/C0"][..]]),
        graphs in prop::sample::select(vec![&[][..], &[][..], &[""][..], &["http://e/g1"][..]]),
        tests in prop::collection::vec((text_test(), 0..10_usize), 6),
    ) {
        let owned = |iris: &[&str]| iris.iter().map(|&iri| iri.to_owned()).collect();
        let rules = TextRules { classes: owned(classes), graphs: owned(graphs), ..rules(predicates, languages) };
        let fixture = fixture(&trig(&base), rules);
        let writer = fixture.writer();
        let mut states = vec![fixture.engine.database().snapshot()];
        let mut now: BTreeSet<String> = base;
        for (inserted, seed, checkpoints) in changes {
            let chosen = now.iter().enumerate().filter(|(at, _)| seed >> (at % 64) & 3 == 0);
            let deleted: BTreeSet<String> = chosen.map(|(_, quad)| quad.clone()).collect();
            Fixture::commit(&writer, &trig(&deleted), false);
            Fixture::commit(&writer, &trig(&inserted), true);
            now = now.difference(&deleted).chain(&inserted).cloned().collect();
            if checkpoints {
                writer.checkpoint().unwrap();
            }
            states.push(fixture.engine.database().snapshot());
        }
        let mut names = GraphNames::default();
        names.named.insert(Term::iri("http://e/g1".to_owned()));
        let one_graph = ReadScope::only(Asker::Process, names);
        for (test, number) in &tests {
            let query = format!("PREFIX : <http://e/> SELECT * {{ {} }}", pattern(test, *number));
            for snapshot in states.iter().rev() {
                let snapshot = Some(std::sync::Arc::clone(snapshot));
                rows(&fixture, &query, &QueryOptions { snapshot, ..QueryOptions::of_process() });
            }
            let union = QueryOptions { union_default_graph: true, ..QueryOptions::of_process() };
            rows(&fixture, &query, &union);
            rows(&fixture, &query, &QueryOptions { scope: one_graph.clone(), ..union });
        }
    }
}

const LABELS: &str = "@prefix : <http://e/> .
    :a :label \"a singing bird was heard\"@en . :b :label \"Sailing ships\" . :c :label \"short\" .
    :d :label 5 . :e :label \"singen und tanzen\"@de . :f :note \"singing in the rain\" .
    :hidden { :h :label \"singing, but hidden\" , \"singing in the rain\" }";

#[test]
fn the_index_is_used_where_it_has_all_that_can_pass() {
    let all = fixture(LABELS, rules(&[], &[]));
    let labels = fixture(LABELS, rules(&["label"], &[]));
    let english = fixture(LABELS, rules(&["label"], &["en"]));
    let process = QueryOptions::of_process();
    for (pattern, expected) in [
        // Labels of all graphs, of which the pattern finds its own.
        (
            "?s :label ?l FILTER(CONTAINS(?l, \"singing\"))",
            [Some(3), Some(3), None],
        ),
        (
            "?s :label ?l FILTER(REGEX(?l, \"SING.*HEARD\", \"i\"))",
            [Some(1), Some(1), None],
        ),
        (
            "?s :label ?l FILTER(STRENDS(LCASE(?l), \"ships\"))",
            [Some(1), Some(1), None],
        ),
        (
            "?s :label ?l FILTER(CONTAINS(?l, \"singing\") && LANG(?l) = \"en\")",
            [Some(3), Some(3), Some(1)],
        ),
        (
            "?s :label ?l FILTER(CONTAINS(?l, \"sing\") && LANGMATCHES(LANG(?l), \"de\"))",
            [Some(4), Some(4), None],
        ),
        // The number too, which is no string.
        (
            "?s :label ?l FILTER(CONTAINS(STR(?l), \"hips\"))",
            [Some(2), Some(2), None],
        ),
        (
            "?s :note ?l FILTER(CONTAINS(?l, \"singing\"))",
            [Some(1), None, None],
        ),
        (
            "?s ?p ?l FILTER(CONTAINS(?l, \"singing\"))",
            [Some(3), None, None],
        ),
        (
            "?s ?p ?l FILTER(CONTAINS(STR(?l), \"singing\"))",
            [None, None, None],
        ),
        (
            "?s :label ?l FILTER(CONTAINS(?l, \"si\"))",
            [None, None, None],
        ),
        (
            "?s :label ?l FILTER(!CONTAINS(?l, \"singing\"))",
            [None, None, None],
        ),
        // The filter lets no row through that the optional part did not match, so it is not
        // optional.
        (
            "?s :label ?m OPTIONAL { ?s :note ?l } FILTER(CONTAINS(?l, \"singing\"))",
            [Some(1), None, None],
        ),
        (
            "?l :label ?m FILTER(CONTAINS(?l, \"singing\"))",
            [None, None, None],
        ),
        (
            "?s :label ?l FILTER(CONTAINS(?l, \"nowhere to be found\"))",
            [Some(0), Some(0), None],
        ),
    ] {
        let query = format!("PREFIX : <http://e/> SELECT * {{ {pattern} }}");
        let found = [&all, &labels, &english].map(|fixture| {
            rows(fixture, &query, &process);
            looked_up(fixture, &query, &process)
        });
        assert_eq!(found, expected, "{pattern}");
    }
}

#[test]
fn an_index_of_a_class_or_a_graph_is_used_where_the_pattern_asks_for_it() {
    let data = format!("{LABELS} :a a :Bird . :b a :Ship . :hidden {{ :h a :Bird }}");
    let owned = |iri: &str| vec![iri.to_owned()];
    let of_class = TextRules {
        classes: owned("http://e/Bird"),
        ..rules(&[], &[])
    };
    let of_graph = TextRules {
        graphs: owned("http://e/hidden"),
        ..rules(&[], &[])
    };
    let of_default = TextRules {
        graphs: owned(""),
        ..rules(&[], &[])
    };
    let stores = [of_class, of_graph, of_default].map(|rules| fixture(&data, rules));
    for (pattern, expected) in [
        ("?s :label ?l", [None, None, Some(2)]),
        ("?s :label ?l . ?s a :Bird", [Some(3), None, Some(2)]),
        ("?s :label ?l . ?s a :Ship", [None, None, Some(2)]),
        ("?s :label ?l . ?t a :Bird", [None, None, Some(2)]),
        ("GRAPH :hidden { ?s :label ?l }", [None, Some(2), None]),
        (
            "GRAPH :hidden { ?s :label ?l . ?s a :Bird }",
            [Some(3), Some(2), None],
        ),
        ("GRAPH ?g { ?s :label ?l }", [None, None, None]),
    ] {
        let query = format!(
            "PREFIX : <http://e/> SELECT * {{ {pattern} FILTER(CONTAINS(?l, \"singing\")) }}"
        );
        let process = QueryOptions::of_process();
        let found = [0, 1, 2].map(|at| {
            rows(&stores[at], &query, &process);
            looked_up(&stores[at], &query, &process)
        });
        assert_eq!(found, expected, "{pattern}");
    }
}

#[test]
fn who_sees_some_graphs_is_told_of_no_other_literals() {
    let labels = fixture(LABELS, rules(&["label"], &[]));
    let query = "PREFIX : <http://e/> SELECT * { ?s :label ?l FILTER(CONTAINS(?l, \"singing\")) }";
    let names = GraphNames {
        has_default: true,
        ..GraphNames::default()
    };
    let options = QueryOptions {
        scope: ReadScope::only(Asker::Process, names),
        ..QueryOptions::of_process()
    };
    // Neither the hidden label, nor the note that is a label where it is hidden.
    assert_eq!(looked_up(&labels, query, &options), Some(1));
    assert_eq!(rows(&labels, query, &options).len(), 1);
}

#[test]
fn small_patterns_and_common_needles_are_filtered() {
    let many: String = (0..4_000)
        .map(|n| format!(":s{n} :label \"the label of thing number {n}\" .\n"))
        .collect();
    let fixture = fixture(&format!("@prefix : <http://e/> .\n{many}"), rules(&[], &[]));
    let touches = |filter: &str, pattern: &str| {
        let query = format!("PREFIX : <http://e/> SELECT * {{ {pattern} FILTER({filter}) }}");
        rows(&fixture, &query, &QueryOptions::of_process());
        let options = QueryOptions::of_process();
        let plan = fixture.engine.prepare(&query, &options).unwrap().explain();
        plan.contains("RowsExec")
    };
    let label = "?s :label ?l";
    assert!(touches("CONTAINS(?l, \"number 3456\")", label));
    assert!(touches("REGEX(?l, \"NUMBER.*3456$\", \"i\")", label));
    assert!(!touches("CONTAINS(?l, \"number\")", label));
    assert!(!touches(
        "CONTAINS(?l, \"number 3456\")",
        ":s3456 :label ?l"
    ));
    // The same shape with another constant is planned by itself.
    assert!(touches("CONTAINS(?l, \"number 3457\")", label));
    assert!(!touches("CONTAINS(?l, \"label\")", label));
}

#[test]
fn an_index_with_grams_is_verified_and_says_so() {
    let fixture = fixture(LABELS, rules(&["label"], &[]));
    let database = fixture.engine.database();
    assert!(verify(database.directory(), |_| {}).unwrap().is_empty());
    let rules = database.snapshot().text_rules().cloned().unwrap();
    assert!(rules.grams);
    let old = database.snapshot_at(At::Commit(database.snapshot().commit()));
    assert!(old.is_ok());
}
