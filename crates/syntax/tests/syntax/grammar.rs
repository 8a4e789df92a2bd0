//! Tests of easily misread parts of the grammar.

use orrery_syntax::{
    ErrorKind, Limits, ParserOptions, TokenKind, parse_query, parse_update, read_query,
};

fn query(text: &str) -> String {
    match parse_query(text, &ParserOptions::default()) {
        Ok((query, _)) => query.to_sse(),
        Err(error) => panic!("{text}: {error}"),
    }
}

#[test]
fn data_hold_no_subjects_that_statements_cannot_have() {
    for subject in ["'x'", "5", "<<(<u:a> <u:b> <u:c>)>>"] {
        for operation in ["INSERT", "DELETE"] {
            let text =
                format!("{operation} DATA {{ << {subject} <u:p> <u:o> ~ <u:r> >> <u:q> <u:z> }}");
            let error = parse_update(&text, &ParserOptions::default()).expect_err(&text);
            assert_eq!(error.kind, ErrorKind::InvalidSubject, "{text}");
            let column = format!("{operation} DATA {{ << ").len() + 1;
            assert_eq!(error.column, column, "{text}");
        }
    }
    let right = "INSERT DATA { << <u:s> <u:p> 'x' ~ <u:r> >> <u:q> <u:z> }";
    let (update, _) = parse_update(right, &ParserOptions::default()).expect(right);
    assert!(update.to_string().contains("reifies"), "{update}");
}

#[test]
fn the_sign_of_a_number_is_no_sign_of_a_path() {
    let tree = query("ASK { ?s <u:p> +1 , 2 }");
    assert!(tree.contains("(triple ?s <u:p> \"+1\"^^"), "{tree}");
    assert!(!tree.contains("path+"), "{tree}");
    for path in [
        "ASK { ?s <u:p>+ 1 }",
        "ASK { ?s <u:p>+?o }",
        "ASK { ?s (<u:p>)+ +1 }",
    ] {
        assert!(query(path).contains("path+"), "{path}: {}", query(path));
    }
}

#[test]
fn a_set_of_no_predicates_is_any_step() {
    let text = "ASK { ?s !() ?o }";
    assert!(query(text).contains("notoneof"), "{}", query(text));
}

#[test]
fn all_forms_of_queries_have_groups() {
    for text in [
        "ASK { ?s ?p ?o } GROUP BY ?s HAVING (COUNT(?o) > 1)",
        "ASK { ?s ?p ?o } HAVING (COUNT(*) > 1)",
        "CONSTRUCT { ?s <u:p> 1 } WHERE { ?s ?p ?o } GROUP BY ?s ORDER BY COUNT(?o)",
        "DESCRIBE ?s { ?s ?p ?o } GROUP BY ?s",
        "DESCRIBE * { ?s ?p ?o } GROUP BY ?s",
    ] {
        let tree = query(text);
        assert!(tree.contains("(group "), "{tree}");
        assert!(!tree.contains("(project (?o"), "{tree}");
    }
}

#[test]
fn a_variable_may_be_selected_twice() {
    for text in [
        "SELECT ?s ?o ?s { ?s ?p ?o }",
        "SELECT (1 AS ?n) ?n {}",
        "SELECT ?s ?s (COUNT(?o) AS ?n) { ?s ?p ?o } GROUP BY ?s",
        "DESCRIBE ?s ?s { ?s ?p ?o }",
    ] {
        let once = text
            .replacen("?s ?s", "?s", 1)
            .replacen("?o ?s", "?o", 1)
            .replacen(" ?n {", " {", 1);
        assert_eq!(query(text), query(&once), "{text}");
    }
    for text in ["SELECT ?n (1 AS ?n) {}", "SELECT (1 AS ?n) (2 AS ?n) {}"] {
        let error = parse_query(text, &ParserOptions::default()).expect_err(text);
        assert!(
            matches!(error.kind, ErrorKind::RepeatedVariable { .. }),
            "{error}"
        );
    }
}

#[test]
fn as_gives_a_value_only_to_what_has_none() {
    for marked in [
        "SELECT (COUNT(*) AS @?c) { ?s ?p ?c }",
        "SELECT (SUM(?s) AS @?s) { ?s ?p ?c } GROUP BY ?s",
        "SELECT (SUM(?c) AS @?c) { ?s ?p ?c }",
        "SELECT (1 AS @?s) { ?s ?p ?o }",
        "SELECT (COUNT(*) AS @?x) { VALUES ?x { 1 } }",
        "SELECT (COUNT(*) AS @?x) { BIND(1 AS ?x) }",
        "SELECT (COUNT(*) AS @?x) { { SELECT ?x { ?x ?y ?z } } }",
        "SELECT (COUNT(*) AS @?x) { OPTIONAL { ?x ?y ?z } }",
        "SELECT (MAX(?y) AS @?g) { ?x ?y ?z } GROUP BY (STR(?x) AS ?g)",
        "SELECT ?s { ?s ?p ?o } GROUP BY (STR(?o) AS @?s)",
        "SELECT ?g { ?s ?p ?o } GROUP BY (1 AS ?g) (2 AS @?g)",
        "SELECT ?n { { SELECT (COUNT(*) AS @?c) (1 AS ?n) { ?s ?p ?c } } }",
        "SELECT * { ?s ?p ?o BIND(1 AS @?s) }",
        "SELECT * { { SELECT (1 AS ?x) {} } BIND(2 AS @?x) }",
        "SELECT * { VALUES ?x { 1 } BIND(2 AS @?x) }",
        "ASK { ?s ?p ?o } GROUP BY (STR(?o) AS @?s)",
    ] {
        let (text, column) = (marked.replace('@', ""), marked.find('@').unwrap() + 1);
        let error = parse_query(&text, &ParserOptions::default()).expect_err(&text);
        assert!(
            matches!(error.kind, ErrorKind::AlreadyBound { .. }),
            "{text}: {error}"
        );
        assert_eq!(error.column, column, "{text}");
    }
    for text in [
        "SELECT (COUNT(*) AS ?c) { ?s ?p ?o }",
        // Groups hide what they do not name (the W3C's group-by-scope-1).
        "SELECT (123 AS ?z) { ?s ?p ?z } GROUP BY ?s",
        "SELECT (SUM(?z) AS ?z) { ?s ?p ?z } GROUP BY ?s",
        "SELECT (COUNT(*) AS ?c) { ?s ?p ?o FILTER EXISTS { ?a ?b ?c } }",
        "SELECT (COUNT(*) AS ?c) { ?s ?p ?o MINUS { ?a ?b ?c } }",
        "SELECT (COUNT(*) AS ?c) { { SELECT ?s { ?s ?p ?c } } }",
        "SELECT ?c { ?s ?p ?c { SELECT (COUNT(*) AS ?n) { ?a ?b ?d } } }",
        "SELECT (STR(?s) AS ?x) (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?s",
        "SELECT ?g (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY (STR(?o) AS ?g)",
    ] {
        query(text);
    }
}

#[test]
fn paths_are_a_select_over_the_service_that_finds_them() {
    for (text, parts) in [
        (
            "PATHS START ?x = <http://e/a> END ?y VIA ?p",
            &[
                "(project (?x ?p ?y ?path ?edge ?length)",
                "<https://orrery-db.org/path#sourceNode> <http://e/a>",
                "<https://orrery-db.org/path#findPath> <https://orrery-db.org/path#shortestPath>",
                "<https://orrery-db.org/path#exportBinding> ?p",
            ][..],
        ),
        (
            "paths all cyclic FROM <http://e/g> start ?path { ?path ?q 1 } end ?y via <http://e/p>|^<http://e/q> weight 2 max length 7 limit 3 offset 2",
            &[
                "path#cycle>",
                "(?path ?y ?path_ ?edge ?length ?cost)",
                "path#maxPathLength> \"7\"",
                "path#limit> \"3\"",
                "path#offset> \"2\"",
                "(distinct",
            ],
        ),
        (
            "PATHS SHORTEST 5 START ?x END ?y VIA { ?x <http://e/p> [ <http://e/q> ?y ] } ORDER BY ?path",
            &[
                "path#count> \"5\"",
                "path#firstPaths>",
                "(order (",
                "(project (?x ?y ?path",
            ],
        ),
        (
            "PATHS ANY SHORTEST START ?x END ?y VIA ?p",
            &["path#oneShortestPath>"],
        ),
        // It is a word there only.
        (
            "PREFIX paths: <http://e/> SELECT ?start { ?start paths:end ?via }",
            &["(project (?start)"],
        ),
    ] {
        let tree = query(text);
        for part in parts {
            assert!(tree.contains(part), "{text}: {part} in {tree}");
        }
    }
}

#[test]
fn code_points_are_escaped_in_strings_and_iris_only() {
    // SPARQL 1.2, 19.2, and the W3C's codepoint-esc-01 to 04; SPARQL 1.1 had them everywhere.
    let tree = query("ASK { <http://e/\\u0061> ?p '\\u005Cn\\U0001F47E' }");
    assert!(tree.contains("<http://e/a>"), "{tree}");
    for text in [
        "\\u0041\\u0053\\u004B\\u0020\\u007B\\u007D",
        "PREFIX n: <http://e/> ASK { ?x n:a\\u0062c ?o }",
        "ASK { ?a\\u0062c ?p ?o }",
    ] {
        let error = parse_query(text, &ParserOptions::default()).expect_err(text);
        assert!(
            error.message().contains("escapes stand in strings"),
            "{error}"
        );
    }
}

#[test]
fn blanks_stand_where_two_tokens_would_be_one() {
    assert_eq!(
        query("SELECT * {}LIMIT10 OFFSET5"),
        query("SELECT * {} LIMIT 10 OFFSET 5")
    );
    for text in [
        "SELECT * {} LIMIT10x",
        "SELECT * {} LIMITS10",
        "SELECT * {} LIMIT_10",
    ] {
        assert!(
            parse_query(text, &ParserOptions::default()).is_err(),
            "{text}"
        );
    }
}

#[test]
fn filters_do_not_end_a_basic_graph_pattern() {
    query("ASK { _:a <u:p> ?x FILTER EXISTS { ?x <u:q> ?y } _:a <u:r> ?z }");
    for text in [
        "ASK { _:a <u:p> ?x FILTER EXISTS { _:a <u:q> ?y } }",
        "ASK { ?x <u:p> 1 FILTER EXISTS { _:a <u:q> ?y } OPTIONAL { _:a <u:r> ?z } }",
        "ASK { _:a <u:p> ?x OPTIONAL { ?x <u:q> ?y } _:a <u:r> ?z }",
    ] {
        let error = parse_query(text, &ParserOptions::default()).expect_err(text);
        assert!(
            matches!(error.kind, ErrorKind::SharedLabel { .. }),
            "{error}"
        );
    }
}

#[test]
fn each_operation_of_an_update_has_its_own_bound() {
    let options = ParserOptions {
        limits: Limits {
            nesting_max: 8,
            operators_max: 10,
        },
        ..ParserOptions::default()
    };
    let small = "INSERT { ?s <u:p> 1 } WHERE { ?s <u:q> ?o FILTER(?o + 1 > 2) } ; ".repeat(50);
    let (update, shape) = parse_update(&small, &options).expect("small operations");
    assert_eq!(update.operations.len(), 50);
    assert!((3..=10).contains(&shape.operators), "{shape:?}");
    let sum = "+ 1 ".repeat(10);
    let large = format!("INSERT {{ ?s <u:p> 1 }} WHERE {{ FILTER(1 {sum}) }} ; CLEAR ALL");
    let error = parse_update(&large, &options).expect_err("a large operation");
    assert!(
        matches!(error.kind, ErrorKind::TooManyOperators { .. }),
        "{error}"
    );
}

#[test]
fn errors_do_not_spread() {
    // The aggregates of a damaged SELECT are not those of the one around it.
    let text = "SELECT ?x { ?x ?p ?o { SELECT (COUNT(?y) AS ?n) { ?y ?q ?z } LIMIT many } }";
    let reading = read_query(text, &ParserOptions::default());
    assert_eq!(reading.errors.len(), 1, "{:?}", reading.errors);
    let text = "CONSTRUCT { ?s ?p . ?s <u:p> ?x . ?x . ?s <u:q> ?y } WHERE { ?s ?p ?x , ?y }";
    let reading = read_query(text, &ParserOptions::default());
    assert_eq!(reading.errors.len(), 2, "{:?}", reading.errors);
    let tree = reading.tree.expect("closed").to_string();
    assert!(tree.contains("<u:q> ?y"), "{tree}");
}

#[test]
fn a_byte_order_mark_is_no_part_of_a_word() {
    query("\u{feff}ASK {}");
    let first = orrery_syntax::Lexer::new("\u{feff}ASK").next_token();
    assert_eq!((first.start, first.end), (3, 6));
    assert_ne!(first.kind, TokenKind::Word);
}

#[test]
fn lateral_stands_before_a_group_and_takes_what_its_group_has_before_it() {
    for text in [
        "SELECT * { LATERAL {} }",
        "SELECT * { ?s ?p ?o LATERAL { SELECT ?x { ?s ?q ?x } LIMIT 2 } }",
        "SELECT * { ?s ?p ?o lateral { OPTIONAL { ?s ?q ?x } } . ?x ?y ?z }",
        "SELECT * { ?s ?p ?o LATERAL { SELECT ?s { BIND(123 AS ?o) } } }",
        "SELECT * { ?s ?p ?o LATERAL { SELECT ?s ?n { SELECT ?s ?n { VALUES ?o { 1 } ?s ?q ?n } GROUP BY ?s ?n } } }",
        "SELECT * { ?s ?p ?o LATERAL { FILTER EXISTS { BIND(1 AS ?o) } } }",
        "SELECT * { ?s ?p ?o { LATERAL { BIND(1 AS ?o) } } }",
        "SELECT * { OPTIONAL { ?s ?p ?o LATERAL { BIND(1 AS ?q) } } LATERAL { BIND(2 AS ?r) } }",
        "SELECT * { LATERAL { BIND(1 AS ?x) } LATERAL { ?x ?y ?z } }",
    ] {
        // The order of `*` is another one.
        let text = &text.replacen('*', "?s", 1);
        let ours = query(text);
        let theirs = spargebra::SparqlParser::new().parse_query(text);
        assert_eq!(ours, theirs.expect(text).to_sse(), "{text}");
    }
    for text in [
        "SELECT * { LATERAL }",
        "SELECT * { LATERAL OPTIONAL { ?s ?p ?o } }",
        "SELECT * { OPTIONAL LATERAL { ?s ?p ?o } }",
    ] {
        parse_query(text, &ParserOptions::default()).expect_err(text);
        spargebra::SparqlParser::new()
            .parse_query(text)
            .expect_err(text);
    }
    for (text, column) in [
        ("SELECT * { ?s ?p ?o LATERAL { BIND(123 AS ?o) } }", 43),
        (
            "SELECT * { ?s ?p ?o LATERAL { OPTIONAL { BIND(123 AS ?o) } } }",
            54,
        ),
        (
            "SELECT * { ?s ?p ?o LATERAL { ?s ?p ?o VALUES ?o { 123 456 } } }",
            47,
        ),
        (
            "SELECT * { ?s ?p ?o LATERAL { VALUES (?q ?o) { (1 2) } } }",
            42,
        ),
        (
            "SELECT * { ?s ?p ?o LATERAL { SELECT (123 AS ?o) {} } }",
            46,
        ),
        (
            "SELECT * { ?s ?p ?o LATERAL { SELECT * { BIND(123 AS ?o) } } }",
            54,
        ),
        (
            "SELECT * { ?s ?p ?o LATERAL { SELECT ?o { ?a ?b ?c } GROUP BY (?a AS ?o) } }",
            70,
        ),
        (
            "SELECT * { ?s ?p ?o LATERAL { LATERAL { BIND(1 AS ?o) } } }",
            51,
        ),
        (
            "SELECT * { ?s ?p ?o LATERAL { ?a ?b ?c MINUS { VALUES ?o { 1 } } } }",
            55,
        ),
    ] {
        let error = parse_query(text, &ParserOptions::default()).expect_err(text);
        assert!(
            matches!(error.kind, ErrorKind::AssignedInLateral { .. }),
            "{text}: {error}"
        );
        assert_eq!(error.column, column, "{text}: {error}");
        spargebra::SparqlParser::new()
            .parse_query(text)
            .expect_err(text);
    }
}

#[test]
fn templates_have_graphs() {
    for text in [
        "CONSTRUCT { GRAPH ?g { ?s ?p ?o } } WHERE { GRAPH ?g { ?s ?p ?o } }",
        "CONSTRUCT { ?s ?p ?o . GRAPH <u:g> { ?s ?p ?o . } . ?a ?b ?c GRAPH ?h { } } { ?s ?p ?o }",
        "CONSTRUCT WHERE { GRAPH ?g { ?s ?p ?o } ?s ?p ?o . GRAPH <u:g> { ?a ?b ?c } }",
        "CONSTRUCT WHERE { GRAPH ?g { _:a ?p ?o } GRAPH ?g { ?a ?b ?c } }",
    ] {
        let (query, _) = parse_query(text, &ParserOptions::default()).expect(text);
        let spargebra::Query::Construct { template, .. } = query else {
            panic!("{text}");
        };
        assert!(
            template
                .iter()
                .any(|it| orrery_syntax::template_graph(it).is_some()),
            "{text}"
        );
    }
    let short = "CONSTRUCT WHERE { GRAPH ?g { ?s ?p ?o } }";
    let standard = ParserOptions {
        is_standard: true,
        ..ParserOptions::default()
    };
    parse_query(short, &standard).expect_err(short);
    let plain = "CONSTRUCT { ?s ?p ?o } { ?s ?p ?o }";
    let theirs = spargebra::SparqlParser::new().parse_query(plain);
    assert_eq!(query(plain), theirs.expect(plain).to_sse());
    for text in [
        "CONSTRUCT { GRAPH { ?s ?p ?o } } { ?s ?p ?o }",
        "CONSTRUCT { GRAPH ?g ?s ?p ?o } { ?s ?p ?o }",
        "CONSTRUCT { GRAPH ?g { GRAPH ?h { ?s ?p ?o } } } { ?s ?p ?o }",
        "CONSTRUCT { GRAPH 'g' { ?s ?p ?o } } { ?s ?p ?o }",
        "CONSTRUCT { GRAPH ?g { ?s <u:p>/<u:q> ?o } } { ?s ?p ?o }",
        "CONSTRUCT WHERE { GRAPH ?g { ?s ?p ?o FILTER(?o > 1) } }",
        "CONSTRUCT WHERE { _:a ?q ?r GRAPH ?g { _:a ?p ?o } }",
    ] {
        parse_query(text, &ParserOptions::default()).expect_err(text);
    }
}

/// What is kept of the definition of an edge weight.
fn definition(text: &str) -> String {
    let options = ParserOptions {
        base: Some("http://e/base/"),
        ..ParserOptions::default()
    };
    let (update, _) = match parse_update(text, &options) {
        Ok(parsed) => parsed,
        Err(error) => panic!("{text}: {error}"),
    };
    match orrery_syntax::weight_statement(&update.operations[0]) {
        Some(orrery_syntax::WeightStatement::Create { definition, .. }) => definition,
        other => panic!("{other:?}"),
    }
}

#[test]
fn definitions_of_edge_weights_are_queries_with_all_that_they_need() {
    for (text, expected) in [
        (
            "PREFIX e: <http://e/> PREFIX f: <http://f/> CREATE EDGE WEIGHT e:w FROM { ?x e:p ?y } AS 2",
            "PREFIX e: <http://e/>\nSELECT ?x ?y (MIN(2) AS ?weight) WHERE { ?x e:p ?y } GROUP BY ?x ?y",
        ),
        (
            "CREATE OR REPLACE EDGE WEIGHT <w> START $a END ?b FROM { ?a <p> ?b ; <http://e/n> ?weight } AS SUM(?weight)",
            "BASE <http://e/base/>\nSELECT ?a ?b (SUM(?weight) AS ?weight_) WHERE { ?a <p> ?b ; <http://e/n> ?weight } GROUP BY ?a ?b",
        ),
        (
            "PREFIX : <http://e/> CREATE EDGE WEIGHT :w BOTH WAYS FROM { _:m :p ?x ; :q ?y FILTER(?x < ?y && '?x' != \"?y\") } AS :f(COUNT(*))",
            "PREFIX : <http://e/>\nSELECT ?x ?y (:f(COUNT(*)) AS ?weight) WHERE { { _:m :p ?x ; :q ?y FILTER(?x < ?y && '?x' != \"?y\") } UNION { { _:m_back :p ?y ; :q ?x FILTER(?y < ?x && '?x' != \"?y\") } FILTER(!sameTerm(?x, ?y)) } } GROUP BY ?x ?y",
        ),
    ] {
        let found = definition(text);
        assert_eq!(found, expected);
        parse_query(&found, &ParserOptions::default()).expect(&found);
    }
}
