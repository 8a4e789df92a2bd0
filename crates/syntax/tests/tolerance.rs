//! Going on behind errors, and what may stand at a place.

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
