//! Tests of aggregates over joins, against aggregates over the solutions.

use orrery_sparql::{QueryOptions, Tuning};

use super::{rows, rows_both_ways, rows_with};
use crate::common::{Fixture, PREFIXES};

/// People who know each other, have ages, cities and tags; one age is no number, some have none.
fn data() -> String {
    let mut data = "@prefix : <http://example.org/> .\n".to_owned();
    for person in 0..14 {
        data += &format!(":p{person} a :C{} ; :city :c{} .\n", person % 3, person % 4);
        for other in 0..14 {
            if (person * 3 + other * 5) % 7 < 2 {
                data += &format!(":p{person} :knows :p{other} .\n");
            }
        }
        for tag in 0..person % 4 {
            data += &format!(":p{person} :tag :t{} .\n", (person + tag) % 5);
        }
        match person {
            3 => data += ":p3 :age \"unknown\" .\n",
            5 => data += ":p5 :age 1.5, 20 .\n",
            _ if person % 5 == 4 => {}
            _ => data += &format!(":p{person} :age {} .\n", 20 + person),
        }
    }
    for city in 0..4 {
        data += &format!(
            ":c{city} :in :country{} ; :size {} .\n",
            city % 2,
            city * 1_000
        );
    }
    data
}

const PATTERNS: [&str; 43] = [
    "?a :city ?t . ?b :city ?t",
    "?a a ?t . ?b a ?t . ?c a ?t",
    "?a :knows ?b . ?b :knows ?c",
    "?a :knows ?b . ?b :knows ?c . ?c :knows ?d",
    "?a :knows ?b . ?b :knows ?c . ?c :knows ?a",
    "?a :knows ?b . ?b :city ?t . ?t :in ?u . ?a :tag ?g",
    "?a :city ?t ; :tag ?g . ?b :city ?t ; :tag ?g",
    "?a :city ?t ; :tag ?g ; :knows ?b . ?b :tag ?h",
    "?a :knows ?b . ?c :in ?d",
    "?a :knows ?b . ?c :nothing ?d",
    "?a a :C1 ; :knows ?b . ?b a :C2 ; :tag ?g",
    "?a ?p ?b . ?c ?p ?d . ?b :in ?e",
    "?a :knows ?b . ?b :age ?x . FILTER(?x > 22)",
    "?a :knows ?b . ?b :age ?x . ?a :age ?y . FILTER(?x > ?y)",
    "?a :knows ?b . ?b :tag ?g . FILTER NOT EXISTS { ?a :knows ?a }",
    "?a :knows ?b . ?b :tag ?g . FILTER EXISTS { ?b :knows ?c }",
    "?a :knows ?b . VALUES (?b ?v) { (:p1 1) (:p1 2) (:p2 UNDEF) } ?b :tag ?g",
    "?a :knows ?b . ?b :age ?x . ?a :tag ?g",
    "?a :knows ?b OPTIONAL { ?b :tag ?g }",
    "?a :knows ?b OPTIONAL { ?b :age ?x }",
    "?a :knows ?b OPTIONAL { ?b :tag ?g } OPTIONAL { ?b :age ?x FILTER(?x > 22) } ?b :city ?t",
    "?a :knows ?b . ?b :knows ?c OPTIONAL { ?c :tag ?g . ?d :tag ?g }",
    "?a :knows ?b OPTIONAL { ?b :tag ?g OPTIONAL { ?d :tag ?g } } ?c :knows ?a",
    "?a :knows ?b . ?b :tag ?g MINUS { ?b :city :c1 . ?x :knows ?b }",
    "{ ?a :knows ?b } UNION { ?b :tag ?g }",
    "{ ?a :knows ?b . ?b :tag ?g } UNION { ?a :city ?t . ?b :city ?t } UNION { ?b :age ?x }",
    "?a :knows ?b { ?b :tag ?g } UNION { ?b :knows ?c . ?c :tag ?g }",
    "?a :knows ?b . ?b :age ?y . BIND(?y + 1 AS ?x) ?b :tag ?g",
    "?a :knows+ ?b . ?b :tag ?g . ?b :age ?x",
    "?a :city ?t { ?b :city ?t } UNION { ?t :in ?u } UNION { ?t :size ?x FILTER(?x > 1000) }",
    "?a :knows ?b { ?b :tag ?g } UNION { ?b :age ?x } { ?c :knows ?b } UNION { ?b :knows ?c }",
    "?a :knows ?b . ?b a :C1 { ?c :knows ?b } UNION { ?b :tag ?g . ?d :tag ?g }",
    "?a :knows ?b { ?c :knows ?d } UNION { ?d :tag ?g }",
    "?a :knows ?b { ?b :tag ?g } UNION { ?b :knows ?c OPTIONAL { ?c :tag ?g } }",
    "?a :knows ?b FILTER EXISTS { ?b :tag ?g }",
    "?a :knows ?b FILTER NOT EXISTS { ?b :tag ?g . ?c :city ?t }",
    "?a :knows ?b . ?b :tag ?g FILTER NOT EXISTS { ?a :age ?x } FILTER EXISTS { ?h :tag ?g . ?h a :C1 }",
    "?a :knows ?b . ?b :knows ?c MINUS { ?c :tag ?g . ?g :nothing ?d } MINUS { ?a :city :c1 }",
    "?a :knows ?b . ?c :knows ?d FILTER EXISTS { ?a :city ?t } FILTER NOT EXISTS { ?d :tag ?g }",
    "?a :knows ?b . ?b :city ?t OPTIONAL { ?a :tag ?g } FILTER NOT EXISTS { ?c :tag ?g }",
    "?a :knows ?b . ?b :city ?t . ?a :age ?y BIND(?y + 1 AS ?x) FILTER EXISTS { ?t :size ?z FILTER(?z < ?x * 50) }",
    "?a :knows ?b . ?c :tag ?g FILTER EXISTS { ?d :in ?u }",
    "?a :knows ?b . ?b :tag ?g { ?b :age ?x MINUS { ?b :city :c1 } }",
];

const AGGREGATES: [&str; 10] = [
    "(COUNT(*) AS ?n)",
    "(COUNT(?x) AS ?n) (SUM(?x) AS ?m)",
    "(SUM(?x) AS ?n) (AVG(?x) AS ?m) (MIN(?x) AS ?o) (MAX(?b) AS ?q)",
    "(MIN(?g) AS ?n) (MAX(?t) AS ?m)",
    "(COUNT(DISTINCT ?b) AS ?n) (COUNT(DISTINCT ?t) AS ?m)",
    "(COUNT(DISTINCT *) AS ?n) (COUNT(?a) AS ?m)",
    "(COUNT(STRLEN(?x)) AS ?n) (SUM(STRLEN(STR(?a))) AS ?m) (COUNT(?g) AS ?o)",
    "(SUM(?x + 1) AS ?n) (SUM(DISTINCT ?x) AS ?m) (COUNT(*) AS ?o)",
    "(AVG(?y) AS ?n)",
    "(SUM(IF(BOUND(?x), ?x, 0)) AS ?n) (AVG(IF(BOUND(?x), 1 / ?x, 0)) AS ?m)",
];

const KEYS: [&[&str]; 5] = [&[], &["?b"], &["?t"], &["?a", "?g"], &["?unknown"]];

fn forced() -> QueryOptions {
    QueryOptions {
        tuning: Tuning {
            aggregates_early: true,
            ..Tuning::default()
        },
        ..QueryOptions::of_process()
    }
}

fn plan_of(fixture: &Fixture, query: &str, options: &QueryOptions) -> String {
    let query = format!("{PREFIXES}{query}");
    match fixture.engine.prepare(&query, options) {
        Ok(prepared) => prepared.explain(),
        Err(error) => panic!("{query}: {error}"),
    }
}

#[test]
fn products_of_counts_are_counts_of_products() {
    let fixture = Fixture::new(&data());
    let (forced, mut divided) = (forced(), 0);
    for pattern in PATTERNS {
        for aggregates in AGGREGATES {
            for keys in KEYS {
                let mut query = format!("SELECT {} {aggregates} {{ {pattern} }}", keys.join(" "));
                if !keys.is_empty() {
                    query += &format!(" GROUP BY {}", keys.join(" "));
                }
                let plain = rows_both_ways(&fixture, &query);
                assert_eq!(rows_with(&fixture, &query, &forced), plain, "{query}");
                divided += usize::from(plan_of(&fixture, &query, &forced).contains(".weight"));
            }
        }
    }
    assert!(divided > 300, "{divided}");
}

#[test]
fn different_values_of_a_join_are_those_of_its_solutions() {
    let fixture = Fixture::new(&data());
    let forced = forced();
    for pattern in PATTERNS {
        for projected in ["?a", "?t", "?b ?g", "?x", "?d ?unknown"] {
            let query = format!("SELECT DISTINCT {projected} {{ {pattern} }}");
            let plain = rows_both_ways(&fixture, &query);
            assert_eq!(rows_with(&fixture, &query, &forced), plain, "{query}");
        }
    }
}

#[test]
fn a_variable_that_nothing_binds_has_no_values_beside_one_that_has() {
    let fixture = Fixture::new(&data());
    for query in [
        "SELECT (COUNT(DISTINCT ?age) AS ?n) (COUNT(DISTINCT ?z) AS ?m) { ?a :age ?age }",
        "SELECT (MAX(DISTINCT ?age) AS ?n) (COUNT(DISTINCT ?z) AS ?m) { ?a :age ?age }",
    ] {
        let found = rows_both_ways(&fixture, query).concat();
        assert!(found.contains("\"0\""), "{found}: {query}");
    }
}

#[test]
fn a_join_that_is_counted_makes_no_solutions() {
    // 300 subjects with one object: 90,000 pairs, 27 million triples of subjects.
    let mut data = "@prefix : <http://example.org/> .\n".to_owned();
    for subject in 0..300 {
        data += &format!(":s{subject} a :C ; :p :x ; :q :s{} .\n", subject % 7);
    }
    let fixture = Fixture::new(&data);
    for (query, count) in [
        ("SELECT (COUNT(*) AS ?n) { ?a a ?t . ?b a ?t }", 90_000),
        (
            "SELECT (COUNT(*) AS ?n) { ?a :p ?t . ?b :p ?t . ?c :p ?t }",
            27_000_000,
        ),
        (
            "SELECT (COUNT(?b) AS ?n) { ?a :p ?t . ?b :p ?t . ?b :q ?c . ?d :q ?c }",
            3_857_400,
        ),
        ("SELECT (COUNT(*) AS ?n) { ?a :p ?b . ?c :q ?d }", 90_000),
    ] {
        let number = rows(&fixture, query).concat();
        assert!(
            number.contains(&format!("\"{count}\"")),
            "{number}: {query}"
        );
        let most = fixture.most_rows(&format!("{PREFIXES}{query}"));
        assert!(most <= 600, "{most} rows: {query}");
    }
}

#[test]
fn conditions_and_unions_beside_counted_parts_make_no_solutions() {
    // 300 subjects with one object, of which two thirds have another property: 90,000 pairs.
    let mut data = "@prefix : <http://example.org/> .\n".to_owned();
    for subject in 0..300 {
        data += &format!(":s{subject} :p :x ; :q :y{} .\n", subject % 7);
        if subject % 3 > 0 {
            data += &format!(":s{subject} :r 1 .\n");
        }
    }
    let fixture = Fixture::new(&data);
    for (pattern, count) in [
        ("?a :p ?t . ?b :p ?t FILTER EXISTS { ?a :r ?v }", 60_000),
        ("?a :p ?t . ?b :p ?t FILTER NOT EXISTS { ?a :r ?v }", 30_000),
        ("?a :p ?t . ?b :p ?t MINUS { ?a :r ?v }", 30_000),
        (
            "?a :p ?t . ?b :p ?t FILTER EXISTS { ?b :r ?v } MINUS { ?a :r ?w }",
            20_000,
        ),
        ("?a :p ?t . ?b :p ?t FILTER EXISTS { ?t ^:p ?c }", 90_000),
        ("?a :p ?t { ?b :p ?t } UNION { ?c :p ?t }", 180_000),
        (
            "?a :p ?t { ?b :p ?t } UNION { ?c :p ?t . ?c :r ?v }",
            150_000,
        ),
        (
            "?a :p ?t . ?b :p ?t OPTIONAL { ?b :r ?v } FILTER(!BOUND(?v))",
            30_000,
        ),
        ("?a :p ?b . ?c :q ?d FILTER EXISTS { ?c :r ?v }", 60_000),
    ] {
        let query = format!("SELECT (COUNT(*) AS ?n) {{ {pattern} }}");
        let number = rows(&fixture, &query).concat();
        let most = fixture.most_rows(&format!("{PREFIXES}{query}"));
        let is_exact = number.contains(&format!("\"{count}\""));
        assert!(is_exact && most <= 1_000, "{most} rows, {number}: {query}");
    }
}

#[test]
fn counts_over_key_filtered_patterns_are_right_with_forced_rewrites() {
    let fixture = Fixture::new(super::DATA);
    let mut options = forced();
    options.tuning.reduces_always = true;
    for query in [
        "SELECT (SUM(DISTINCT 1) AS ?n) { GRAPH ?g { ?y ?v ?z . { SELECT * { } } } }",
        "SELECT (COUNT(*) AS ?n) { GRAPH ?g { ?y ?v ?z . { SELECT * { } } } }",
        "SELECT ?s (COUNT(*) AS ?n) { VALUES ?s { :alice :bob } ?s ?p ?o . ?o ?q ?r } GROUP BY ?s",
    ] {
        let plain = rows_both_ways(&fixture, query);
        assert_eq!(rows_with(&fixture, query, &options), plain, "{query}");
    }
}

#[test]
fn a_count_beyond_64_bits_is_exact() {
    let mut data = "@prefix : <http://example.org/> .\n".to_owned();
    for subject in 0..100 {
        data += &format!(":s{subject} :p :x .\n");
    }
    let fixture = Fixture::new(&data);
    let patterns: String = (0..11)
        .map(|number| format!("?v{number} :p ?x . "))
        .collect();
    let query = format!("SELECT (COUNT(*) AS ?n) {{ {patterns} }}");
    let number = rows(&fixture, &query).concat();
    assert!(
        number.contains(&format!("\"1{}\"", "0".repeat(22))),
        "{number}"
    );
}
