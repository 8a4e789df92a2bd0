//! Tests of common mistakes and their messages, listed in `docs/messages.md`.
//!
//! `UPDATE_MESSAGES=1 cargo test --release --workspace --test syntax mistakes` writes that file
//! anew. The test also checks that each text is refused, at a place in the text, with a message of
//! one line, and that the suggested changes make it right, but for a few that are listed.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test may fail on the spot"
)]

use orrery_syntax::{ParserOptions, SyntaxError, parse_query, parse_update};
use std::fmt::Write as _;

/// A kind of mistakes, and texts with them.
type Chapter = (&'static str, &'static [&'static str]);

/// Changes of one text that are tried.
const ROUNDS_MAX: usize = 4;

const QUERIES: &[Chapter] = &[
    (
        "Prefixes and IRIs",
        &[
            "SELECT ?s WHERE { ?s rdf:type ?o }",
            "SELECT ?s WHERE { ?s foo:bar ?o }",
            "SELECT ?s WHERE { ?s dbo:birthPlace ?o }",
            "@prefix ub: <http://example.org/> .\nSELECT * { ?s a ub:Student }",
            "PREFIX ex <http://example.org/> SELECT * { ?s a ex:T }",
            "PREFIX ex: http://example.org/ SELECT * { ?s a ex:T }",
            "PREFIX ex: <http://example.org/> . SELECT * { ?s a ex:T }",
            "PREFIX ex: <http://example.org/>; SELECT * { ?s a ex:T }",
            "PREFX ex: <http://example.org/> SELECT * { ?s a ex:T }",
            "SELECT * { ?s a <http://exa mple.org/x> }",
            "SELECT * { ?s a <http://example.org/x }",
            "SELECT * { ?s a <http://example.org/{x}> }",
            "SELECT * { ?s a <relative> }",
            "SELECT * { ?s a http://example.org/T }",
            "SELECT * FROM table { ?s ?p ?o }",
            "SELECT * FROM <http://example.org/a>, <http://example.org/b> { ?s ?p ?o }",
        ],
    ),
    (
        "SELECT and its columns",
        &[
            "SELET * WHERE { ?s ?p ?o }",
            "SELECT ?s, ?o WHERE { ?s ?p ?o }",
            "SELECT s WHERE { ?s ?p ?o }",
            "SELECT 's' WHERE { ?s ?p ?o }",
            "SELECT (COUNT(?o)) WHERE { ?s ?p ?o }",
            "SELECT ?s COUNT(?o) WHERE { ?s ?p ?o } GROUP BY ?s",
            "SELECT COUNT(*) WHERE { ?s ?p ?o }",
            "SELECT COUNT(?x) AS ?c { ?x ?p ?o }",
            "SELECT ?x COUNT(?o) AS total { ?x ?p ?o } GROUP BY ?x",
            "SELECT COUNT(\n  ?o) { ?s ?p ?o }",
            "SELECT GROUP_CONCAT(DISTINCT ?o; SEPARATOR = ', and then, after all that, also ') { ?s ?p ?o }",
            "SELECT (COUNT(?x) AS ?c { ?x ?p ?o }",
            "SELECT (COUNT(?x) AS c) { ?x ?p ?o }",
            "SELECT (?x ?y) { ?x ?p ?y }",
            "SELECT (COUNT(?x) ?c) { ?x ?p ?o }",
            "SELECT (?n + 1 AS ?m { ?s ?p ?n }",
            "SELECT ?n AS ?m { ?s ?p ?n }",
            "SELECT WHERE { ?s ?p ?o }",
            "SELECT ?s DISTINCT WHERE { ?s ?p ?o }",
            "SELECT DISTINCT(?s) WHERE { ?s ?p ?o }",
            "SELECT DISTNCT ?s WHERE { ?s ?p ?o }",
            "SELECT * ?s WHERE { ?s ?p ?o }",
            "SELECT ?s WERE { ?s ?p ?o }",
            "SELECT ?s WHERE ?s ?p ?o",
            "SELECT TOP 10 ?s WHERE { ?s ?p ?o }",
            "SELECT ?s ORDER BY ?s WHERE { ?s ?p ?o }",
            "SELECT ?s { ?s ?p ?o } FROM <http://e/g>",
            "{ ?s ?p ?o }",
            "SELECT ?s { ?s ?p ?o } SELECT ?t { ?t ?p ?o }",
        ],
    ),
    (
        "Groups and aggregates",
        &[
            "SELECT ?s (COUNT(?o) AS ?n) { ?s ?p ?o }",
            "SELECT ?s ?p (COUNT(?o) AS ?n) { ?s ?p ?o } GROUP BY ?s",
            "SELECT * { ?s ?p ?o } GROUP BY ?s",
            "SELECT * { ?s ?p ?o } ORDER BY COUNT(?s)",
            "SELECT ?s { ?s ?p ?o FILTER(COUNT(?o) > 1) } GROUP BY ?s",
            "SELECT (SUM(COUNT(?o)) AS ?n) { ?s ?p ?o }",
            "SELECT ?s { ?s ?p ?o } GROUP ?s",
            "SELECT ?s { ?s ?p ?o } GROUP BY s",
            "SELECT ?s { ?s ?p ?o } GROUP BY ?s, ?p",
            "SELECT ?s { ?s ?p ?o } GROUP BY ?s HAVING COUNT(?o) > 1",
            "SELECT ?s { ?s ?p ?o } HAVING (COUNT(?o) > 1) GROUP BY ?s",
            "SELECT (COUNT(DISTINCT ?a, ?b) AS ?n) { ?a ?p ?b }",
            "SELECT (GROUP_CONCAT(?o, ', ') AS ?all) { ?s ?p ?o }",
            "SELECT (AVERAGE(?o) AS ?a) { ?s ?p ?o }",
        ],
    ),
    (
        "Order and limits",
        &[
            "SELECT ?s { ?s ?p ?o } LIMIT 10 ORDER BY ?s",
            "SELECT ?s { ?s ?p ?o } ORDER BY s",
            "SELECT ?s { ?s ?p ?o } ORDER BY ?s DESC",
            "SELECT ?s { ?s ?p ?o } ORDER BY DESC ?s",
            "SELECT ?s { ?s ?p ?o } ORDER BY ?s, ?o",
            "SELECT ?s { ?s ?p ?o } ORDER ?s",
            "SELECT ?s { ?s ?p ?o } SORT BY ?s",
            "SELECT ?s { ?s ?p ?o } LIMIT -1",
            "SELECT ?s { ?s ?p ?o } LIMIT 10, 5",
            "SELECT ?s { ?s ?p ?o } LIMIT ten",
            "SELECT ?s { ?s ?p ?o } LIMT 10",
            "SELECT ?s { ?s ?p ?o LIMIT 10 }",
        ],
    ),
    (
        "Brackets, dots, patterns",
        &[
            "SELECT * { ?s ?p ?o",
            "SELECT * { ?s ?p ?o } }",
            "SELECT * { ?s ?p ?o ?s ?q ?r }",
            "SELECT * { ?s a ?t\n  ?s ?q ?r }",
            "SELECT * { ?s ?p }",
            "SELECT * { ?s ?p ?o, }",
            "SELECT * { ?s ?p ?o ; ?q }",
            "SELECT * { ?s }",
            "SELECT * { ?s ?p (1, 2) }",
            "SELECT * { ?s ?p (1 2 . ?s ?q 1 }",
            "SELECT * { ?s ?p ?o UNION { ?s ?q ?r } }",
            "SELECT * { ?s ?p ?o } UNION { ?s ?q ?r }",
            "SELECT * { ?s ?p ?o } FILTER(?o > 1)",
            "SELECT * { ?s ?p ?o . SELECT ?x { ?x ?q ?r } }",
            "SELECT * { ?s ?p ?o )",
            "SELECT * { OPTIONAL ?s a ?o }",
            "SELECT * { ?s ?p ?o OPTIONNAL { ?s ?q ?r } }",
            "SELECT * { { ?s ?p ?o } UNION ?s ?q ?r }",
            "SELECT * { { ?s ?p ?o } OR { ?s ?q ?r } }",
            "SELECT * { GRAPH { ?s ?p ?o } }",
            "SELECT * { ?s 'p' ?o }",
            "SELECT * { ?s name ?o }",
            "SELECT * { ?s ?p 'it's' }",
            "SELECT * { ?s ?p \"unclosed }",
            "SELECT * { ?s ?p “curly” }",
            "SELECT * { ?s ?p 'colour'@en_GB }",
            "SELECT * { ?s ?p '1'^^integer }",
            "SELECT * { ?s ?p 'C:\\data' }",
            "SELECT * { VALUES ?x { ?y } }",
            "SELECT * { VALUES (?x ?y) { (1) } }",
            "SELECT * { VALUES ?x (1 2) }",
            "SELECT * { VALUES ?x { (1) (2) } }",
            "SELECT * { VALUES ?x { 1, 2 } }",
            "SELECT * { VALUES (?x) { 1 2 } }",
            "SELECT * { VALUES ?x { red } }",
            "SELECT * { BIND(5 AS ?o) ?s ?p ?o . BIND(6 AS ?o) }",
            "SELECT * { ?s ?p ?o BIND ?o + 1 AS ?n }",
            "SELECT * { BIND(?o = 5) }",
            "SELECT * { ?s <http://e/p>/ ?o }",
            "SELECT * { ?s ?p/<http://e/p> ?o }",
            "SELECT * { ?s <http://e/p>{1,3} ?o }",
            "SELECT * { ?s !?p ?o }",
            "CONSTRUCT { ?s ?p ?o FILTER(?o > 1) } WHERE { ?s ?p ?o }",
            "DESCRIBE WHERE { ?s ?p ?o }",
        ],
    ),
    (
        "FILTER and expressions",
        &[
            "SELECT * { ?s ?p ?o FILTER ?o = 5 }",
            "SELECT * { ?s ?p ?o FILTER(?o == 5) }",
            "SELECT * { ?s ?p ?o FILTER(?o <> 5) }",
            "SELECT * { ?s ?p ?o FILTER(?o =< 5) }",
            "SELECT * { ?s ?p ?o FILTER(?o > 1 AND ?o < 5) }",
            "SELECT * { ?s ?p ?o FILTER(?o > 1 & ?o < 5) }",
            "SELECT * { ?s ?p ?o FILTER(NOT ?o = 5) }",
            "SELECT * { ?s ?p ?o FILTER(?o LIKE 'a%') }",
            "SELECT * { ?s ?p ?o FILTER(?o IS NULL) }",
            "SELECT * { ?s ?p ?o FILTER(?o BETWEEN 1 AND 5) }",
            "SELECT * { ?s ?p ?o FILTER(?o % 2 = 0) }",
            "SELECT * { ?s ?p ?o FILTER(contains(?o \"x\")) }",
            "SELECT * { ?s ?p ?o FILTER(foo(?o)) }",
            "SELECT * { ?s ?p ?o FILTER(LENGTH(?o) > 3) }",
            "SELECT * { ?s ?p ?o FILTER(STRLEN(?o, 3) > 1) }",
            "SELECT * { ?s ?p ?o FILTER(STARTSWITH(?o, 'a')) }",
            "SELECT * { ?s ?p ?o FILTER(regex(?o)) }",
            "SELECT * { ?s ?p ?o FILTER(?o IN 1, 2) }",
            "SELECT * { ?s ?p ?o FILTER(?o > 5 }",
            "SELECT * { ?s ?p ?o FILTER(lang(?o) = en) }",
            "SELECT * { ?s ?p ?o FILTER(!EXISTS { ?s ?q ?o )) }",
            "SELECT * { ?s ?p ?o FILTR(?o = 5) }",
            "SELECT * { ?s ?p ?o WHERE ?o > 5 }",
            "SELECT * { ?s ?p ?o . ?o > 5 }",
            "SELECT * { ?s ?p ?o . regex(?o, 'a') }",
            "SELECT * { ?s ?p ?o NOT EXISTS { ?s ?q ?r } }",
            "SELECT * { ?s ?p ?o FILTER STRLEN(?o) > 3 }",
            "SELECT * { ?s ?p ?o FILTER() }",
            "SELECT * { ?s ?p ?o FILTER(?o > 5 AND) }",
            "SELECT * { ?s ?p ?o FILTER(?o IS NOT NULL) }",
            "SELECT * { ?s ?p ?o FILTER(?o > 5 . ?s ?q ?r }",
            "SELECT * { ?s ?p ?o FILTER(?o ≥ 5) }",
            "SELECT * { ?s ?p ?o FILTER(?o –5 > 0) }",
            "SELECT *\u{a0}{ ?s ?p ?o }",
            "SELECT * { ?s ?p ?o\u{200b} }",
        ],
    ),
    (
        "SQL, and what other stores have",
        &[
            "SELECT name FROM people WHERE age > 5",
            "SELECT * FROM people",
            "SELECT ?a { ?a ?p ?b } JOIN { ?b ?q ?c }",
            "SELECT * { ?s ?p ?o } -- a comment",
            "-- a comment\nSELECT * { ?s ?p ?o }",
            "// a comment\nSELECT * { ?s ?p ?o }",
            "SELECT * { ?s ?p ?o };",
            "define input:inference 'rules' SELECT * { ?s ?p ?o }",
            "SPARQL SELECT * { ?s ?p ?o }",
            "SELECT * { ?s bif:contains 'x' }",
            "SELECT * { hint:Query hint:optimizer 'None' . ?s ?p ?o }",
            "EXPLAIN SELECT * { ?s ?p ?o }",
            "MATCH (n) RETURN n",
            "",
            "INSERT DATA { <http://e/s> <http://e/p> 1 }",
        ],
    ),
];

const UPDATES: &[Chapter] = &[
    (
        "Updates",
        &[
            "INSERT DATA { ex:a ex:b ex:c }",
            "INSERT DATA { <http://e/s> <http://e/p> 1 } DELETE DATA { <http://e/s> <http://e/p> 2 }",
            "INSERT DATA { ?x <http://e/p> 1 }",
            "DELETE DATA { _:b <http://e/p> 1 }",
            "INSERT { ?s <http://e/p> 1 }",
            "INSERT { <http://e/s> <http://e/p> 1 } WHERE ?s ?p ?o",
            "DELETE { ?s <http://e/p> 1 } { ?s <http://e/p> 1 }",
            "INSERT INTO people VALUES (1, 2)",
            "INSERT DATA <http://e/s> <http://e/p> 1",
            "DELETE WHERE { ?s ?p ?o FILTER(?o > 1) }",
            "DELETE { ?s ?p ?o }",
            "DELETE FROM <http://e/g> { ?s ?p ?o }",
            "UPDATE { ?s ?p ?o } WHERE { ?s ?p ?o }",
            "CLEAR <http://e/g>",
            "DROP GRAPH g",
            "LOAD file.ttl",
            "SELECT * { ?s ?p ?o }",
            "WITH <http://e/g> INSERT DATA { <http://e/s> <http://e/p> 1 }",
            "UPDATE people SET age = 5",
            "DELETE FROM people WHERE age > 5",
            "COPY <http://e/a> <http://e/b>",
            "CREATE <http://e/g>",
            "INSERT DATA { <http://e/s> <http://e/p> 'a' . <http://e/q> 'b' }",
            "INSERT DATA { GRAPH ?g { <http://e/s> <http://e/p> 1 } }",
            "INSERT DATA { 'x' <http://e/p> 1 }",
            "INSERT DATA { _:a <http://e/p> 1 } ; INSERT DATA { _:a <http://e/p> 2 }",
        ],
    ),
    (
        "Edge weights",
        &[
            "CREATE EDGE WEIGHT <http://e/w> FROM { ?x <http://e/p> ?z } AS 1",
            "CREATE EDGE WEIGHT <http://e/w> START ?a END ?a FROM { ?a <http://e/p> ?b } AS 1",
            "CREATE EDGE WEIGHT <http://e/w> START ?a FROM { ?a <http://e/p> ?b } AS 1",
            "CREATE EDGE WEIGHT <http://e/w> BOTH FROM { ?x <http://e/p> ?y } AS 1",
            "CREATE EDGE WEIGHT <http://e/w> { ?x <http://e/p> ?y } AS 1",
            "CREATE EDGE WEIGHT <http://e/w> FROM { ?x <http://e/p> ?y }",
            "CREATE EDGE WEIGHT FROM { ?x <http://e/p> ?y } AS 1",
            "CREATE EDGE <http://e/w> FROM { ?x <http://e/p> ?y } AS 1",
            "CREATE OR EDGE WEIGHT <http://e/w> FROM { ?x <http://e/p> ?y } AS 1",
            "CREATE EDGE WEIGHT <http://e/w> FROM { ?x <http://e/p> ?y ; <http://e/n> ?n } AS SUM(?n) + ?n",
            "DROP EDGE <http://e/w>",
        ],
    ),
];

/// Texts that the suggested changes leave wrong, and why that is as it should be.
const LEFT_WRONG: &[(&str, &str)] = &[
    ("SELECT * FROM table { ?s ?p ?o }", IS_RELATIVE),
    ("DROP GRAPH g", IS_RELATIVE),
    ("LOAD file.ttl", IS_RELATIVE),
    (
        "SELECT * { ?s ?p ?o FILTER(!EXISTS { ?s ?q ?o )) }",
        "where the brace belongs is known, not which of the brackets was meant for it",
    ),
    (
        "SELECT * { ?s ?p ?o FILTER(?o > 5 AND) }",
        "only who wrote it knows the other condition",
    ),
];
const IS_RELATIVE: &str = "right as soon as a base is given, which is no part of the text";

const HEAD: &str = "\
# Messages about wrong queries and updates

This page lists common mistakes in SPARQL with the message that each gets, and says in which form messages come.

The command line shows the line with carets under the place, and the message below it; the console likewise, with a button that makes the
suggested change. Clients that accept `application/problem+json` or `application/json` get these fields (RFC 9457), beside `status` and the whole line as `detail`:

| field | |
| --- | --- |
| `message` | the message without its place |
| `line`, `column` | from 1, in characters |
| `offset`, `length` | what is wrong, in bytes of the text in UTF-8 (without a byte-order mark); no length at the text's end |
| `found` | what stands there, 40 characters at most |
| `expected` | a list of what may stand there |
| `hint` | the likely fix, if there is one |
| `suggestion` | the fix as a change of the text, if it is one: `offset`, `length`, and the `text` that stands there then |

What is valid and surely not meant (a constant pattern of `REGEX` or `REPLACE` that is none, a flag that there is not, with which a FILTER finds
nothing; a constant of which `IRI` makes none, with which a template adds nothing) is reported as a warning with its place: on the command line, in a header `Orrery-Warning` of the answer (four at most), in `warnings` of an update's answer.

So are a selected variable that occurs in no pattern, and, of a query whose answer is empty, the first pattern that nothing matches by itself: which of its IRIs no statement
has, and which one was probably meant (`http` for `https`, a misspelled name of a predicate or a class, a prefix that the text does not declare), or that all
data are in named graphs. It is reported on standard error, in the console, and in `Orrery-Warning`, from the graphs that the asker may read. There is no such warning for `ASK`, for users with limits (who pay for their own query alone), and
after the first eight empty answers in a second. Patterns that match one by one and not together are not reported.

Below are common mistakes, each with its line, the message, and what the suggested changes make of it, where they make it right; with strict prefixes and
no base. Written by `UPDATE_MESSAGES=1 cargo test --release --workspace --test syntax mistakes`; `crates/loader/tests/loader/messages.md` has those of wrong data.
";

fn read(text: &str, is_update: bool) -> Result<(), Box<SyntaxError>> {
    let options = ParserOptions::default();
    match is_update {
        true => parse_update(text, &options).map(drop),
        false => parse_query(text, &options).map(drop),
    }
}

fn write_chapters(chapters: &[Chapter], is_update: bool, all: &mut String) -> usize {
    for (title, texts) in chapters {
        writeln!(all, "\n## {title}").unwrap();
        for text in *texts {
            let Err(error) = read(text, is_update) else {
                panic!("this is right: {text}");
            };
            let message = error.message();
            assert!(
                !message.is_empty() && !message.contains('\n'),
                "{text}: {message}"
            );
            assert!(error.span.end <= text.len(), "{text}: {:?}", error.span);
            let drawn = error.drawn(text);
            let drawn: Vec<&str> = drawn.lines().map(str::trim_end).collect();
            writeln!(all, "\n```text\n{}\n{error}\n```", drawn.join("\n")).unwrap();
            let comes_right = mended(text, &error, is_update);
            let is_excepted = LEFT_WRONG.iter().any(|(excepted, _)| excepted == text);
            match comes_right {
                Mended::Right(mended) => {
                    writeln!(all, "Mended: `{mended}`").unwrap();
                    assert!(!is_excepted, "this is mended: {text}");
                }
                Mended::NothingSuggested => assert!(!is_excepted, "nothing is suggested: {text}"),
                Mended::Wrong(left) => {
                    assert!(is_excepted, "the suggestions make of {text}: {left}");
                }
            }
        }
    }
    chapters.iter().map(|(_, texts)| texts.len()).sum()
}

/// What the changes that messages suggest, one after the other, make of a text.
enum Mended {
    /// It is right then, and this.
    Right(String),
    /// The first message has none.
    NothingSuggested,
    /// It is still wrong where no more is suggested: the text, and what is said of it.
    Wrong(String),
}

/// Makes the suggested changes. Each must bring the reader further: what is said next is another
/// error.
fn mended(text: &str, error: &SyntaxError, is_update: bool) -> Mended {
    let mut text = text.to_owned();
    let mut error = error.clone();
    for round in 0..ROUNDS_MAX {
        let Some(suggestion) = error.suggestion() else {
            return match round {
                0 => Mended::NothingSuggested,
                _ => Mended::Wrong(format!("{text}: {error}")),
            };
        };
        let left = text.len() - suggestion.span.end;
        text.replace_range(suggestion.span, &suggestion.text);
        let Err(next) = read(&text, is_update) else {
            return Mended::Right(text.replace('\n', "\\n"));
        };
        // Counted from the end, for what stands before has another length now.
        let still_wrong = text.len().saturating_sub(next.span.end);
        assert!(
            next.kind != error.kind || still_wrong <= left,
            "{text}: {error}, then {next}"
        );
        error = *next;
    }
    Mended::Wrong(format!("{text}: {error}"))
}

#[test]
fn declarations_are_suggested_behind_a_byte_order_mark() {
    let text = "\u{feff}SELECT * { ?s rdf:type ?o }";
    let error = read(text, false).unwrap_err();
    let Mended::Right(mended) = mended(text, &error, false) else {
        panic!("it is still wrong");
    };
    assert!(mended.starts_with("\u{feff}PREFIX rdf: <"), "{mended}");
}

#[test]
fn a_hundred_common_mistakes_have_their_messages() {
    let mut all = HEAD.to_owned();
    let count = write_chapters(QUERIES, false, &mut all) + write_chapters(UPDATES, true, &mut all);
    assert!(count >= 150, "{count}");
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/messages.md");
    if std::env::var_os("UPDATE_MESSAGES").is_some() {
        std::fs::write(&path, &all).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap();
    for (found, expected) in all.lines().zip(expected.lines()) {
        assert_eq!(found, expected);
    }
    assert_eq!(all.lines().count(), expected.lines().count());
}

/// A word without end is no mend, and no message.
#[test]
fn what_is_said_of_a_long_word_is_short() {
    let long = "w".repeat(900_000);
    let texts = [
        format!("{long} * {{ ?s ?p ?o }}"),
        format!("SELECT {long} {{ ?s ?p ?o }}"),
        format!("SELECT ?{long} AS ?x {{ ?s ?p ?o }}"),
        format!("SELECT COUNT(?x) AS ?{long} {{ ?x ?p ?o }}"),
        format!("SELECT COUNT(?x) AS {long} {{ ?x ?p ?o }}"),
        format!("SELECT COUNT(?{long}) {{ ?x ?p ?o }}"),
        format!("SELECT '{long}' {{ ?s ?p ?o }}"),
        format!("SELECT ?{long} (COUNT(?o) AS ?n) {{ ?s ?p ?o }}"),
        format!("SELECT ?{long} (COUNT(?o) AS ?n) {{ ?s ?p ?o }} GROUP BY ?s"),
        format!("SELECT ?{long} ?{long} (1 AS ?{long}) {{ ?s ?p ?{long} }}"),
        format!("SELECT * {{ ?s ?p ?o BIND(1 AS ?{long}) BIND(1 AS ?{long}) }}"),
        format!("SELECT * {{ VALUES (?{long} ?{long}) {{ }} }}"),
        format!("SELECT * {{ VALUES ?x {{ {long} }} }}"),
        format!("ASK {{ ?s {long} ?o }}"),
        format!("ASK {{ ?s ?p {long} }}"),
        format!("ASK {{ {long} ?p ?o }}"),
        format!("ASK {{ ?s ?p '1'^^{long} }}"),
        format!("ASK {{ ?s ?p 'x'@{long} }}"),
        format!("ASK {{ ?s <{long}> ?o }}"),
        format!("ASK {{ ?s <http://e/{long} ?o }}"),
        format!("ASK {{ ?s <http://e/%{long}> ?o }}"),
        format!("ASK {{ ?s http://e/{long} ?o }}"),
        format!("ASK {{ ?s {long}:p ?o }}"),
        format!("PREFIX {long} <http://e/> ASK {{ ?s ?p ?o }}"),
        format!("PREFIX e: {long} ASK {{ ?s ?p ?o }}"),
        format!("@prefix {long}: <http://e/> . ASK {{ ?s ?p ?o }}"),
        format!("@prefix e: <http://e/{long}> . ASK {{ ?s ?p ?o }}"),
        format!("ASK {{ ?s ?p ?o FILTER {long}(?o) }}"),
        format!("ASK {{ ?s ?p ?o FILTER({long}(?o)) }}"),
        format!("ASK {{ ?s ?p ?o FILTER(?{long} IS NULL) }}"),
        format!("ASK {{ ?s ?p ?o FILTER(?o = {long}) }}"),
        format!("ASK {{ ?s ?p ?o FILTER(STRLEN(?o ?{long})) }}"),
        format!("ASK {{ ?s ?p ?o . {long} {{ }} }}"),
        format!("ASK {{ {{ _:{long} ?p ?o }} {{ _:{long} ?p ?o }} }}"),
        format!("ASK {{ GRAPH {long} {{ }} }}"),
        format!("SELECT * {{ ?s ?p ?o }} {long}"),
        format!("SELECT * {{ ?s ?p ?o }} LIMIT {long}"),
        format!("SELECT * {{ ?s ?p ?o }} LIMIT 1, {}", "1".repeat(900_000)),
        format!("SELECT * {{ ?s ?p ?o }} ORDER BY {long}"),
        format!("SELECT * {{ ?s ?p ?o }} ORDER BY ?{long} DESC"),
        format!("SELECT * {{ ?s ?p ?o }} ORDER BY DESC ?{long}"),
        format!("SELECT (GROUP_CONCAT(?o, '{long}') AS ?all) {{ ?s ?p ?o }}"),
        format!("SELECT * {{ ?s ?p “{long}” }}"),
        format!("{{ ?s ?p {long} }}"),
        format!("MATCH {long}"),
        long.clone(),
    ];
    for text in &texts {
        let start = &text[..text.len().min(60)];
        let queries = read(text, false).err();
        let updates = read(text, true).err();
        let tolerant = orrery_syntax::read_query(text, &ParserOptions::default()).errors;
        assert!(queries.is_some() && updates.is_some(), "{start}");
        let found = queries.into_iter().chain(updates).map(|it| *it);
        for error in found.chain(tolerant) {
            let suggested = error.suggestion().map_or(0, |it| it.text.len());
            let drawn = error.drawn(text).len();
            let (message, mend) = (error.message(), error.mend().unwrap_or_default());
            let sizes = [message.len(), mend.len(), suggested, drawn];
            assert!(sizes.iter().all(|size| *size <= 600), "{start}: {sizes:?}");
        }
    }
}
