//! Tests of error recovery and completion.

use orrery_syntax::{
    Keyword, ParserOptions, Thing, completion, parse_query, read_query, read_update,
};

#[test]
fn all_errors_are_found_and_the_rest_is_read() {
    let text = "SELECT ?s WHERE {\n  ?s e:p ?o .\n  FILTER(?o == 5)\n  ?s ?p .\n  OPTIONAL { ?s <http://e/q> ?q }\n  BIND(1 + AS ?b)\n}";
    let reading = read_query(text, &ParserOptions::default());
    let lines: Vec<usize> = reading.errors.iter().map(|error| error.line).collect();
    assert_eq!(lines, [2, 3, 4, 6], "{:?}", reading.errors);
    let tree = reading.tree.expect("the query was closed").to_string();
    assert!(tree.contains("<http://e/q>"), "{tree}");
    let text = "INSERT DATA { <http://a> } ; CLEAR EVERYTHING ; CLEAR ALL";
    let reading = read_update(text, &ParserOptions::default());
    assert_eq!(reading.errors.len(), 2, "{:?}", reading.errors);
    assert_eq!(reading.tree.expect("operations").operations.len(), 2);
}

#[test]
fn what_is_right_is_read_without_errors() {
    let text = "SELECT ?s (COUNT(?o) AS ?n) { ?s ?p ?o } GROUP BY ?s";
    let reading = read_query(text, &ParserOptions::default());
    assert!(reading.errors.is_empty(), "{:?}", reading.errors);
    let strict = parse_query(text, &ParserOptions::default()).expect("right");
    assert_eq!(reading.tree, Some(strict.0));
}

/// The tree of a text with so many errors.
fn tree_of(text: &str, errors: usize) -> String {
    let text = format!("PREFIX : <http://e/> {text}");
    let reading = read_query(&text, &ParserOptions::default());
    assert_eq!(reading.errors.len(), errors, "{text}: {:?}", reading.errors);
    let tree = reading.tree.unwrap_or_else(|| panic!("no tree of {text}"));
    tree.to_string()
}

#[test]
fn what_was_said_in_brackets_before_an_error_stays() {
    let reified = tree_of("SELECT * { << :s :p :o >> :q 1 ; :r }", 1);
    for kept in ["reifies", "<http://e/q>"] {
        assert!(reified.contains(kept), "{kept} in {reified}");
    }
    let annotated = tree_of("SELECT * { :s :p :o {| :a 1 ; :b |} ; :c 2 . }", 1);
    for kept in ["reifies", "<http://e/p>", "<http://e/a>", "<http://e/c>"] {
        assert!(annotated.contains(kept), "{kept} in {annotated}");
    }
    for text in [
        "SELECT * { ?s :p [ :q 1 ; :r ] ; :t 5 . ?u :v 6 }",
        "SELECT * { ?s :p [ :q 1 ; :r 3 4 ] ; :t 5 . ?u :v 6 }",
        "SELECT * { ?s :p ( [ :q 1 ; :r ] 7 ) ; :t 5 . ?u :v 6 }",
    ] {
        let tree = tree_of(text, 1);
        for kept in [
            "<http://e/p>",
            "<http://e/q>",
            "<http://e/t>",
            "<http://e/v>",
        ] {
            assert!(tree.contains(kept), "{kept} in {tree}");
        }
    }
}

#[test]
fn branches_behind_a_wrong_one_are_read() {
    let tree = tree_of(
        "SELECT * { { SELECT ?a ?b+ { ?a :p ?b } WRONG } UNION { ?a :q ?c } ?a :r ?d }",
        2,
    );
    for kept in ["<http://e/q>", "<http://e/r>"] {
        assert!(tree.contains(kept), "{kept} in {tree}");
    }
}

#[test]
fn what_stands_behind_an_update_costs_none_of_it() {
    let text = "INSERT DATA { <http://a> <http://b> 1 } }";
    let reading = read_update(text, &ParserOptions::default());
    assert_eq!(reading.errors.len(), 1, "{:?}", reading.errors);
    assert_eq!(reading.tree.expect("the operation").operations.len(), 1);
}

#[test]
fn every_beginning_of_a_text_ends() {
    let text = "PREFIX e: <http://e/> SELECT ?s (GROUP_CONCAT(?o ; SEPARATOR = ',') AS ?n) { ?s e:p/e:q* ?o , 'x'@en . \
                FILTER(!(?o IN (1, 2)) && EXISTS { << ?a ?b ?c ~ ?r >> ?d [ ?e (1 2) {| ?f ?g |} ] }) VALUES (?x) { (1) } } \
                GROUP BY ?s HAVING (COUNT(*) > 1) ORDER BY DESC(?n) LIMIT 1";
    for end in 0..=text.len() {
        let reading = read_query(&text[..end], &ParserOptions::default());
        assert_eq!(
            reading.errors.is_empty(),
            parse_query(&text[..end], &ParserOptions::default()).is_ok()
        );
        completion(text, end, false, &ParserOptions::default());
    }
    // Nor does anything left out in the middle keep it from its end.
    for start in 0..text.len() {
        let damaged = format!("{}{}", &text[..start], &text[(start + 3).min(text.len())..]);
        read_query(&damaged, &ParserOptions::default());
        read_update(&damaged, &ParserOptions::default());
    }
}

#[test]
fn what_may_stand_at_a_place_is_offered() {
    let options = ParserOptions::default();
    let at = |text: &str| completion(text, text.len(), false, &options);
    let beginning = at("SEL");
    assert_eq!(beginning.replaced, 0..3);
    for keyword in [Keyword::Select, Keyword::Ask, Keyword::Prefix] {
        assert!(beginning.expected.has_keyword(keyword), "{keyword:?}");
    }
    let predicate = at("PREFIX e: <http://e/> SELECT * { ?s ");
    assert!(predicate.expected.has_thing(Thing::Predicate));
    assert!(
        !predicate.expected.has_keyword(Keyword::Filter),
        "{}",
        predicate.expected
    );
    assert_eq!(predicate.variables, ["s"]);
    assert_eq!(predicate.prefixes, ["e"]);
    let element = at("SELECT * { ?s ?p ?o . FI");
    assert!(
        element.expected.has_keyword(Keyword::Filter),
        "{}",
        element.expected
    );
    assert!(element.expected.has_thing(Thing::Term));
    assert!(!element.expected.has_keyword(Keyword::Select));
    let filter = at("SELECT * { ?s ?p ?o FILTER(?o > ");
    assert!(
        filter.expected.has_thing(Thing::Expression),
        "{}",
        filter.expected
    );
    let behind = at("SELECT * { ?s ?p ?o } OR");
    assert!(
        behind.expected.has_keyword(Keyword::Order),
        "{}",
        behind.expected
    );
    assert!(behind.expected.has_keyword(Keyword::Limit));
    // Errors before the place do not matter.
    let mended = at("SELECT * { ?s ?p . FILTER(?x == 1) ?s ?p ?o . OPT");
    assert!(
        mended.expected.has_keyword(Keyword::Optional),
        "{}",
        mended.expected
    );
    let update = completion("INSERT DATA { } ; ", 18, true, &options);
    assert!(
        update.expected.has_keyword(Keyword::Delete),
        "{}",
        update.expected
    );
}

/// What was read of a query, in the notation of its algebra, with all that is wrong in it.
fn read_of(text: &str) -> (String, usize) {
    let reading = read_query(text, &ParserOptions::default());
    let tree = reading.tree.map(|tree| tree.to_sse());
    (tree.unwrap_or_default(), reading.errors.len())
}

#[test]
fn what_stands_before_an_error_of_the_same_triples_is_kept() {
    let text =
        "SELECT * { ?s <http://e/p> ?o . ?o <http://e/q> 1 ; <http://e/r> . ?s <http://e/t> 2 }";
    let (tree, errors) = read_of(text);
    assert_eq!(errors, 1);
    for kept in ["<http://e/p>", "<http://e/q>", "<http://e/t>"] {
        assert!(tree.contains(kept), "{tree}");
    }
    let text = "INSERT DATA { GRAPH <http://g> { <http://a> <http://b> 1 ; <http://c> } <http://d> <http://e> 2 }";
    let reading = read_update(text, &ParserOptions::default());
    assert_eq!(reading.errors.len(), 1, "{:?}", reading.errors);
    let tree = reading.tree.expect("an operation").to_string();
    let (inside, outside) = tree.split_once('}').expect("a graph");
    assert!(
        inside.contains("<http://b>") && outside.contains("<http://e>"),
        "{tree}"
    );
}

#[test]
fn every_unfinished_text_has_a_tree() {
    let beginnings = [
        ("SELECT * { ?s <http://e/p> ?o", "<http://e/p>"),
        ("SELECT * { ?s <http://e/p> ?o . ?o ?q", "<http://e/p>"),
        ("SELECT * { ?s <http://e/p> ?o FILTER(?o >", "<http://e/p>"),
        (
            "SELECT * { ?s <http://e/p> ?o OPTIONAL { ?o <http://e/q> ?q . ?q ",
            "leftjoin",
        ),
        (
            "SELECT * { ?s <http://e/p> ?o . { SELECT ?x { ?x ?y ?z",
            "(project (?x)",
        ),
        (
            "SELECT * { ?s <http://e/p> ?o . GRAPH ?g { ?x ?y ",
            "<http://e/p>",
        ),
        ("SELECT * { { ?s <http://e/p> ?o } UNION", "<http://e/p>"),
        (
            "SELECT * { ?s <http://e/p> [ <http://e/q> 1 ; ",
            "<http://e/q>",
        ),
        (
            "SELECT * { ?s <http://e/p> ?o . VALUES ?x { 1 2",
            "<http://e/p>",
        ),
        ("SELECT * { ?s <http://e/p> ?o } ORDER BY", "<http://e/p>"),
        (
            "SELECT * { ?s <http://e/p> ?o } ORDER BY ?s LIMIT",
            "(asc ?s)",
        ),
        (
            "SELECT * { ?s <http://e/p> ?o } GROUP BY ?s HAVING",
            "(group (?s)",
        ),
        ("SELECT ?s (COUNT(?o) AS", "(project (?s)"),
        ("SELECT", "project"),
        ("ASK", "ask"),
        ("DESCRIBE", "describe"),
        ("CONSTRUCT { ?s <http://e/p> ?o . ?o ?q", "<http://e/p>"),
    ];
    for (text, kept) in beginnings {
        let (tree, errors) = read_of(text);
        assert!(tree.contains(kept), "{text}: {tree}");
        assert!(errors > 0, "{text}");
    }
    for text in [
        "INSERT DATA { <http://a> <http://b> 1 . <http://c> ",
        "INSERT DATA { GRAPH <http://g> { <http://a> <http://b> 1",
        "DELETE { ?s <http://b> ?o } WHERE { ?s ?p ",
        "DELETE WHERE { ?s <http://b> ?o ",
        "INSERT { ?s <http://b> 1 } ",
    ] {
        let reading = read_update(text, &ParserOptions::default());
        let tree = reading.tree.map(|tree| tree.to_string());
        let tree = tree.unwrap_or_default();
        assert!(tree.contains("<http://b>"), "{text}: {tree}");
    }
}

#[test]
fn a_wrong_clause_costs_itself_only() {
    let cases = [
        ("SELECT * { ?s ?p ?o } LIMIT x OFFSET 3", "(slice 3"),
        ("SELECT * { ?s ?p ?o } LIMIT 10 ORDER BY ?s", "(asc ?s)"),
        ("SELECT * { ?s ?p ?o } ORDER BY LIMIT 7", "(slice 0 7"),
        ("SELECT * { ?s ?p ?o } } ORDER BY ?s", "?p"),
        ("SELECT * WHER { ?s ?p ?o }", "(triple ?s ?p ?o)"),
        ("SELECT * FROM { ?s ?p ?o }", "(triple ?s ?p ?o)"),
        ("SELECT (COUNT(?o) AS ?n { ?s ?p ?o }", "(count ?o)"),
        (
            "SELECT * { GRAPH { ?s ?p ?o } ?a ?b ?c }",
            "(triple ?s ?p ?o) (triple ?a ?b ?c)",
        ),
        (
            "SELECT * { ?a ?b ?c BIND(5 ?x) ?d ?e ?f }",
            "(triple ?d ?e ?f)",
        ),
        (
            "CONSTRUCT { ?s ?p ?o FILTER(?o > 1) . ?o ?q 1 } WHERE { ?s ?p ?o }",
            "(triple ?o ?q",
        ),
    ];
    for (text, kept) in cases {
        let (tree, errors) = read_of(text);
        assert!(tree.contains(kept), "{text}: {tree}");
        assert_eq!(errors, 1, "{text}");
    }
}
