//! Tests of messages about typical input: column and words.

use orrery_syntax::{ParserOptions, parse_query, parse_update};

/// A text, the column of its error, and what the message says.
const QUERIES: [(&str, usize, &[&str]); 69] = [
    (
        "PATHS START ?x END ?y WEIGHT 1",
        30,
        &["VIA is missing", "the name of an edge weight"],
    ),
    (
        "PATHS ?x END ?y VIA ?p",
        7,
        &["START is missing before `?x`", "START ?x = <a>"],
    ),
    (
        "PATHS START ?x VIA ?p",
        16,
        &["END is missing before `VIA`"],
    ),
    (
        "PATHS START ?x END VIA ?p",
        20,
        &["a variable is missing before `VIA`", "END ?y"],
    ),
    (
        "PATHS START ?x END ?y { ?x ?p ?y }",
        35,
        &["VIA is missing at the end", "VIA { ?x :knows ?y }"],
    ),
    (
        "PATHS START ?x END ?y WHERE { ?x ?p ?y }",
        23,
        &["VIA is missing before `WHERE`", "VIA { ?x :knows ?y }"],
    ),
    (
        "PATHS START ?x END ?y VIA { ?x ?p ?z }",
        27,
        &["does not bind ?y"],
    ),
    (
        "PATHS START ?x { ?z ?p 1 } END ?y VIA ?p",
        16,
        &["does not bind ?x"],
    ),
    (
        "PATHS START ?x END ?x VIA ?p",
        20,
        &["?x", "cycles are found with CYCLIC"],
    ),
    (
        "PATHS ANY START ?x END ?y VIA ?p",
        11,
        &["SHORTEST is missing before `START`"],
    ),
    (
        "PATHS START ?x END ?y VIA ?p MAX LENGTH many",
        41,
        &["MAX LENGTH"],
    ),
    (
        "PATHS START ?x END ?y VIA ?p GROUP BY ?p",
        39,
        &["GROUP BY stands behind PATHS", "SERVICE"],
    ),
    (
        "SELECT ?s WHERE { ?s rdf:type ?o }",
        22,
        &[
            "the prefix `rdf:` is not declared",
            "add `PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>`",
        ],
    ),
    (
        "SELECT ?s WHERE { ?s foo:bar ?o }",
        22,
        &["the prefix `foo:` is not declared"],
    ),
    (
        "SELECT ?s, ?o WHERE { ?s ?p ?o }",
        10,
        &["no commas between variables"],
    ),
    ("SELECT s WHERE { ?s ?p ?o }", 8, &["write `?s`"]),
    (
        "SELET * WHERE { ?s ?p ?o }",
        1,
        &["unknown keyword SELET; SELECT?"],
    ),
    (
        "SELECT (COUNT(?o)) WHERE { ?s ?p ?o }",
        18,
        &["`AS ?name` is missing before `)`"],
    ),
    (
        "SELECT ?s COUNT(?o) WHERE { ?s ?p ?o }",
        11,
        &["write `(COUNT(?o) AS ?name)`"],
    ),
    (
        "SELECT (COUNT(?x) AS ?c { ?x ?p ?o }",
        24,
        &["`)` is missing after `?c`", "the `(` at column 8"],
    ),
    (
        "SELECT ?s (COUNT(?o) AS ?n) { ?s ?p ?o }",
        8,
        &["`?s`", "add `GROUP BY ?s`"],
    ),
    (
        "SELECT ?s (COUNT(?o) AS ?n) { ?s ?p ?o } GROUP BY ?p",
        8,
        &["`?s` is not in GROUP BY"],
    ),
    (
        "SELECT * { ?s ?p ?o FILTER ?o = 5 }",
        28,
        &["`(` is missing after FILTER"],
    ),
    (
        "SELECT * { ?s ?p ?o FILTER(?o == 5) }",
        31,
        &["`==`", "write `=`"],
    ),
    (
        "SELECT * { ?s ?p ?o FILTER(?o <> 5) }",
        31,
        &["`<>`", "write `!=`"],
    ),
    (
        "SELECT * { ?s ?p ?o FILTER(?o = 5 AND ?s = 6) }",
        35,
        &["`AND`", "write `&&`"],
    ),
    (
        "SELECT * { ?s ?p ?o FILTER(contains(?o \"x\")) }",
        40,
        &["a comma is missing between the arguments"],
    ),
    (
        "SELECT * { ?s ?p ?o FILTER(foo(?o)) }",
        28,
        &["there is no function `foo`"],
    ),
    (
        "SELECT * { ?s ?p ?o FILTER(length(?o) > 3) }",
        28,
        &["there is no function `length`", "STRLEN?"],
    ),
    (
        "SELECT (STRLEN(?o, 3) AS ?l) { ?s ?p ?o }",
        9,
        &["STRLEN takes one argument, not 2"],
    ),
    (
        "SELECT * { ?s ?p \"unclosed }",
        18,
        &["the string begun at column 18 is not closed"],
    ),
    (
        "SELECT * { ?s ?p 'it's' }",
        18,
        &["the string begun at column 18 is not closed"],
    ),
    (
        "SELECT * { ?s ?p <http://exa mple.org/x> }",
        29,
        &["a space in an IRI"],
    ),
    (
        "SELECT * { ?s ?p <http://example.org/x }",
        18,
        &["the IRI begun at column 18 is not closed"],
    ),
    (
        "SELECT * { ?s ?p ?o } LIMIT 10 ORDER BY ?s",
        32,
        &["ORDER BY comes before LIMIT"],
    ),
    (
        "SELECT * { ?s ?p ?o BIND(5 AS ?o) }",
        31,
        &["`?o` is bound already"],
    ),
    (
        "SELECT * { ?s ?p ?o } ORDER BY COUNT(?s)",
        32,
        &["an aggregate needs groups", "SELECT *"],
    ),
    (
        "@prefix ub: <http://x/> . SELECT * {}",
        1,
        &["`@prefix` is not SPARQL", "write `PREFIX ub: <http://x/>"],
    ),
    (
        "SELECT * { OPTIONAL ?s a ?o }",
        21,
        &["`{` is missing after OPTIONAL"],
    ),
    ("SELECT * { ?s ?p ?o } }", 23, &["`}` closes nothing"]),
    (
        "SELECT * { ?s ?p ?o } LIMIT -1",
        29,
        &["LIMIT takes a whole number from 0"],
    ),
    ("SELECT * { ?s ?p ?o } ORDER BY s", 32, &["write `?s`"]),
    ("SELECT * FROM table { ?s ?p ?o }", 15, &["write `<table>`"]),
    (
        "SELECT * { ?s <x> ?o }",
        15,
        &[
            "`<x>` is relative and there is no base",
            "`--base` or `BASE",
        ],
    ),
    ("-- all of it\nSELECT * {}", 1, &["comments begin with `#`"]),
    (
        "SELECT * { ?s ?p ?o",
        20,
        &["`}` is missing", "the `{` at column 10"],
    ),
    ("SELECT * { ?s ?p ?o . LIMIT 10", 23, &["`}` is missing"]),
    (
        "SELECT * { ?s ?p ?o ?a ?b ?c }",
        21,
        &["a `.` is missing before `?a`"],
    ),
    ("SELECT * { FILTER(NOT(?x)) }", 22, &["`!`"]),
    (
        "SELECT * { ?s ?p ?o FITLER(?o > 3) }",
        21,
        &["unknown keyword FITLER; FILTER?"],
    ),
    ("INSERT DATA { }", 1, &["this is an update, not a query"]),
    ("SELECT ?s (1 AS ?s) {}", 17, &["`?s` stands twice"]),
    (
        "SELECT * { VALUES (?a ?b) { (1) } }",
        29,
        &["1 term for 2 variables"],
    ),
    (
        "SELECT subject WHERE { FILTER(isIRI(?o)) }",
        8,
        &["write `?subject`"],
    ),
    (
        "SELECT SUM(STRLEN(?x)) { ?s ?p ?x }",
        8,
        &["write `(SUM(STRLEN(?x)) AS ?name)`"],
    ),
    ("SELECT ?x AS ?y { ?x ?p ?o }", 11, &["write `(?x AS ?y)`"]),
    (
        "SELECT * { ?x ?p ?o } ORDER BY ?x DESC",
        35,
        &["write `DESC(?x)`"],
    ),
    (
        "SELECT * { ?x ?p ?o } ORDER BY DESC ?x",
        32,
        &["write `DESC(?x)`"],
    ),
    (
        "ASK { ?s ?p http://example.org/x . }",
        13,
        &["write `<http://example.org/x>`"],
    ),
    (
        "ASK { ?s http://example.org/p ?o }",
        10,
        &["write `<http://example.org/p>`"],
    ),
    ("ASK { FILTER(a AND b) }", 14, &["write `?a`"]),
    ("SELECT a WHERE { ?a ?p ?o }", 8, &["write `?a`"]),
    ("ASK { ?s A ?o }", 10, &["write `a`"]),
    ("ASK { ?s ?p <http://ex/{id}> }", 24, &["`{` in an IRI"]),
    (
        "ASK {} LIMIT 99999999999999999999",
        14,
        &["LIMIT takes a whole number", "too large"],
    ),
    (
        "ASK { ?s ?p true ?a ?b ?c }",
        18,
        &["a `.` is missing before `?a`"],
    ),
    (
        "ASK { ?s ?p (1) ?a ?b ?c }",
        17,
        &["a `.` is missing before `?a`"],
    ),
    (
        "ASK { ?s ?p <<( ?x ?y 1 )>> ?a ?b ?c }",
        29,
        &["a `.` is missing before `?a`"],
    ),
    ("", 1, &["neither a query nor an update"]),
];

const UPDATES: [(&str, usize, &[&str]); 7] = [
    (
        "INSERT DATA { <http://a/s> <http://a/p> ?x }",
        41,
        &["`?x`", "DATA holds no variables"],
    ),
    (
        "DELETE DATA { _:b <http://a/p> 1 }",
        15,
        &["`_:b`", "no blank nodes"],
    ),
    (
        "SELECT * { ?s ?p ?o }",
        1,
        &["this is a query, not an update"],
    ),
    (
        "INSERT DATA { <http://a/s> <http://a/p> 1 } INSERT DATA { }",
        45,
        &["`;` is missing between operations"],
    ),
    (
        "INSERT DATA { foo:a foo:b 1 }",
        15,
        &["the prefix `foo:` is not declared"],
    ),
    (
        "INSERT DATA { <http://a/s> <http://a/p> 1",
        42,
        &["`}` is missing"],
    ),
    (
        "INSERT DATA { _:a <http://a/p> 1 } ; INSERT DATA { _:a <http://a/p> 1 }",
        52,
        &["_:a"],
    ),
];

#[test]
fn common_mistakes_are_told_where_they_are_and_how_to_mend_them() {
    let options = ParserOptions::default();
    let queries = QUERIES
        .iter()
        .map(|(text, column, words)| (text, column, words, parse_query(text, &options).err()));
    let updates = UPDATES
        .iter()
        .map(|(text, column, words)| (text, column, words, parse_update(text, &options).err()));
    for (text, column, words, error) in queries.chain(updates) {
        let error = error.unwrap_or_else(|| panic!("read: {text}"));
        let message = error.message();
        assert_eq!(error.column, *column, "{text}\n{message}");
        for word in *words {
            assert!(message.contains(word), "{text}\n{message}");
        }
        assert!(!message.contains('\n'), "{message}");
    }
}

#[test]
fn the_mark_stands_under_what_is_wrong() {
    let text = "SELECT *\n{ ?grüße fo:x ?o }";
    let error = parse_query(text, &ParserOptions::default()).expect_err("no such prefix");
    assert_eq!((error.line, error.column), (2, 10));
    assert_eq!(error.drawn(text), "{ ?grüße fo:x ?o }\n         ^^^^");
    let long = format!("SELECT * {{ {} fo:x ?o }}", "?s ?p ?o . ".repeat(100));
    let error = parse_query(&long, &ParserOptions::default()).expect_err("no predicate");
    let drawn = error.drawn(&long);
    assert!(
        drawn.lines().all(|line| line.chars().count() <= 120),
        "{drawn}"
    );
    let place = drawn
        .lines()
        .nth(1)
        .map_or(0, |marks| marks.find('^').unwrap_or(0));
    assert!(drawn[place..].starts_with("fo:x"), "{drawn}");
}

#[test]
fn declared_prefixes_win_over_assumed_ones() {
    let assumed = |prefix: &str| (prefix == "e").then(|| "http://assumed/".to_owned());
    let options = ParserOptions {
        prefixes: Some(&assumed),
        ..ParserOptions::default()
    };
    let read = |text: &str| parse_query(text, &options).map(|(query, _)| query.to_string());
    assert!(
        read("ASK { ?s e:p ?o }")
            .unwrap()
            .contains("<http://assumed/p>")
    );
    let declared = read("PREFIX e: <http://declared/> ASK { ?s e:p ?o }").unwrap();
    assert!(declared.contains("<http://declared/p>"), "{declared}");
    assert!(read("ASK { ?s f:p ?o }").is_err());
}
