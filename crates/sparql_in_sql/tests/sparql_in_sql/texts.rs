//! Tests of full-text search as a table.

#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use crate::common::house_with;
use orrery_storage::text::TextRules;

const WINES: &str = "PREFIX : <http://e/> PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#> INSERT DATA {
    :a rdfs:label \"red wine\"@en . :b rdfs:label \"red wines of an \\\"old\\\" cellar\"@en . :c rdfs:label \"white wine\" ; :note \"red as wine\" }";

#[test]
fn a_search_is_a_table_that_joins_with_others() {
    let house = house_with(WINES, Some(TextRules::default()));
    house.check(
        "select entity, property from text_search('red wine', 10) order by entity",
        &[
            "http://e/a|http://www.w3.org/2000/01/rdf-schema#label",
            "http://e/b|http://www.w3.org/2000/01/rdf-schema#label",
            "http://e/c|http://e/note",
        ],
    );
    house.check(
        "select entity, literal from text_search('\"red wine\"', 10, 'http://www.w3.org/2000/01/rdf-schema#label', 'http://e/note') \
         where score > 0.0 order by entity",
        &["http://e/a|red wine", "http://e/b|red wines of an \"old\" cellar"],
    );
    house.check("select count(*) from text_search('red', 2)", &["2"]);
    house.check(
        "select highlight from text_search('white', 5)",
        &["<b>white</b> wine"],
    );
    house
        .rows("create table cellar (iri text, bottles int); insert into cellar values ('http://e/b', 12), ('http://e/c', 3)")
        .unwrap();
    house.check(
        "select c.bottles, t.literal from cellar c join text_search('red OR white', 100, 'http://www.w3.org/2000/01/rdf-schema#label') t \
         on t.entity = c.iri where c.bottles > 5",
        &["12|red wines of an \"old\" cellar"],
    );
    // No quotation mark of somebody's ends the query's own.
    house.check(
        "select count(*) from text_search('white \\ } \"wine\"', 10)",
        &["1"],
    );
}

#[test]
fn mistakes_are_told_as_those_of_sql() {
    let house = house_with(WINES, Some(TextRules::default()));
    for (text, code) in [
        ("select * from text_search('red')", "42883"),
        ("select * from text_search('red', 'many')", "42883"),
        ("select * from text_search(7, 10)", "42883"),
        ("select * from text_search('red', 10, 'label')", "22023"),
    ] {
        let error = house.rows(text).unwrap_err();
        assert_eq!(error.state.code(), code, "{text}: {error}");
    }
    for text in [
        "select * from text_search('red', 0)",
        "select * from text_search('red OR', 5)",
    ] {
        let error = house.rows(text).unwrap_err().to_string();
        assert!(error.contains("text:"), "{text}: {error}");
    }
    let without = crate::common::house(WINES);
    let error = without
        .rows("select * from text_search('red', 5)")
        .unwrap_err();
    assert!(error.to_string().contains("orrery text create"), "{error}");
}
