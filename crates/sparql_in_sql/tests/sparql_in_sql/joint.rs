//! Tests of tables and graphs in one query.

// Tests may unwrap; the lint spares `#[test]` functions only, not their fixtures.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use std::sync::Arc;

use crate::common::House;
use arrow::util::display::array_value_to_string;
use futures::TryStreamExt;
use orrery_sparql_in_sql::{EngineGraphs, Readings};
use orrery_sql::{GraphLimits, Outcome};

const DATA: &str = r#"
    PREFIX e: <http://e/>
    INSERT DATA {
        e:lamp a e:Product ; e:label "Lamp"@en ; e:price 19.90 ; e:stock 3 ; e:since "2020-02-29"^^<http://www.w3.org/2001/XMLSchema#date> .
        e:chair a e:Product ; e:label "Chair" ; e:price 45.0 ; e:stock 0 .
        e:table a e:Product ; e:label "Table" ; e:price "cheap" .
        GRAPH e:g { e:lamp e:seen true }
    }"#;

fn house() -> House {
    crate::common::house(DATA)
}

const PRICES: &str = "sparql('PREFIX e: <http://e/> SELECT ?s ?label ?price { ?s a e:Product ; e:label ?label ; e:price ?price }')";

#[test]
fn columns_are_text_unless_the_statement_or_the_query_says_a_type() {
    let house = house();
    house.check(
        &format!("select * from {PRICES} order by label"),
        &[
            "http://e/chair|Chair|45.0",
            "http://e/lamp|Lamp|19.90",
            "http://e/table|Table|cheap",
        ],
    );
    let typed = format!("{PRICES} as t(s text, label text, price numeric(10,2))");
    house.check(
        &format!("select label, price * 2 from {typed} where s <> 'http://e/table' and price < 40"),
        &["Lamp|39.80"],
    );
    let refused = house.rows(&format!("select * from {typed}")).unwrap_err();
    assert_eq!(refused.state.code(), "22P02");
    assert!(
        refused
            .message
            .contains("\"cheap\" of ?price is no value of the type numeric(10,2)"),
        "{refused}"
    );
    // A cast and a count say it in the query.
    house.check(
        "select n + 1, d + interval '1 day' from sparql('PREFIX e: <http://e/> SELECT (COUNT(*) AS ?n) { ?s a e:Product }'), \
         sparql('PREFIX e: <http://e/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> SELECT (xsd:date(?since) AS ?d) { e:lamp e:since ?since }')",
        &["4|2020-03-01"],
    );
    house.check(
        "select label, stock from sparql('PREFIX e: <http://e/> SELECT ?label ?stock { ?s e:label ?label OPTIONAL { ?s e:stock ?stock } }', 'label text, stock int') \
         where stock is null",
        &["Table|"],
    );
}

#[test]
fn filters_limits_and_needed_columns_travel_into_the_query() {
    let house = house();
    let typed = format!("{PRICES} as t(s text, label text, price numeric(10,2))");
    let plan = house.plan(&format!(
        "select label from {typed} where s = 'http://e/lamp' and price > 10 and label like 'L%'"
    ));
    assert!(
        plan.contains("?s IN (\"http://e/lamp\")") && plan.contains("?price >= "),
        "{plan}"
    );
    let plan = house.plan(&format!("select label from {PRICES} limit 2"));
    assert!(
        plan.contains("variables=[label]") && plan.contains("limit=2"),
        "{plan}"
    );
    house.check(&format!("select count(*) from {PRICES}"), &["3"]);
    house.check(
        &format!("select label from {PRICES} where s in ('http://e/lamp', 'http://e/nothing')"),
        &["Lamp"],
    );
    // Also below an order, groups and a limit of the query's own.
    let ordered = "sparql('PREFIX e: <http://e/> SELECT ?p (COUNT(?s) AS ?n) { ?s ?p ?o } GROUP BY ?p ORDER BY ?p LIMIT 2')";
    house.check(
        &format!("select p, n from {ordered} where n > 2 order by p"),
        &["http://e/label|3", "http://e/price|3"],
    );
    house.check(
        &format!("select n from {ordered} where p = 'http://e/stock'"),
        &[],
    );
}

#[test]
fn tables_and_graphs_are_joined_and_the_keys_of_tables_go_into_the_query() {
    let house = house();
    house
        .rows("create table sold (product text primary key, n int); insert into sold values ('http://e/lamp', 2), ('http://e/none', 1)")
        .unwrap();
    let joined = format!("select label, n from sold join {PRICES} as p on p.s = sold.product");
    house.check(&joined, &["Lamp|2"]);
    let analyzed = house.plan(&format!("analyze {joined}"));
    // One solution was made, of three.
    let node = analyzed
        .lines()
        .find(|line| line.contains("GraphExec"))
        .unwrap();
    assert!(
        node.contains("hints=") && node.contains("output_rows=1"),
        "{analyzed}"
    );
    house
        .rows(&format!(
            "create table copied as select s, label from {PRICES}"
        ))
        .unwrap();
    house.check("select count(*) from copied", &["3"]);
    house
        .rows(&format!(
            "create view labels as select label from {PRICES} where s = 'http://e/chair'"
        ))
        .unwrap();
    house.check("select * from labels", &["Chair"]);
}

#[test]
fn the_quads_are_a_table() {
    let house = house();
    house.check("select count(*) from quads", &["13"]);
    house.check(
        "select s, o, g, datatype from quads where p = 'http://e/seen'",
        &["http://e/lamp|true|http://e/g|http://www.w3.org/2001/XMLSchema#boolean"],
    );
    house.check(
        "select o, language from quads where s = 'http://e/lamp' and p = 'http://e/label' and g is null",
        &["Lamp|en"],
    );
    let plan = house.plan("select s from quads where p = 'http://e/label' limit 1");
    assert!(
        plan.contains("variables=[s]") && plan.contains("?p IN") && plan.contains("limit=1"),
        "{plan}"
    );
    // A table of that name comes first.
    house.rows("create table quads (a int)").unwrap();
    house.check("select count(*) from quads", &["0"]);
}

#[test]
fn a_transaction_sees_one_state_of_both() {
    let house = house();
    let count = "select count(*) from quads";
    house.check(&format!("begin; {count}"), &["13"]);
    house.update("INSERT DATA { <http://e/new> <http://e/p> 1 }");
    house.check(count, &["13"]);
    house.check(&format!("commit; {count}"), &["14"]);
    let prepared = house
        .threads
        .block_on(house.session.prepare(count))
        .unwrap();
    house.update("INSERT DATA { <http://e/new> <http://e/p> 2 }");
    let outcome = house.threads.block_on(house.session.run(&prepared, &[]));
    let Ok(Outcome::Query(rows)) = outcome else {
        panic!("{outcome:?}");
    };
    let batches: Vec<arrow::array::RecordBatch> =
        house.threads.block_on(rows.try_collect()).unwrap();
    assert_eq!(
        array_value_to_string(batches[0].column(0), 0).unwrap(),
        "15"
    );
}

#[test]
fn what_is_wrong_is_told_with_its_code() {
    let house = house();
    for (text, code, words) in [
        (
            "select * from sparql('SELECT ?s { ?s ?p }')",
            "42601",
            "in SPARQL: ",
        ),
        (
            "select * from sparql('ASK {}')",
            "42809",
            "ASK have no columns",
        ),
        ("select * from sparql(1)", "42883", "constant texts"),
        (
            "select * from sparql('SELECT ?s { ?s ?p ?o }', 's text, x int')",
            "42P10",
            "1 variables",
        ),
        (
            "select * from sparql('SELECT ?s { ?s ?p ?o }', 's nonsense')",
            "0A000",
            "nonsense",
        ),
        (
            "select * from sparql('SELECT ?s { ?s ?p ?o }', 's text not null')",
            "42601",
            "no list of columns",
        ),
        ("select * from quads as q(s text, p text)", "42601", "alone"),
    ] {
        let error = house.rows(text).unwrap_err();
        assert_eq!(error.state.code(), code, "{text}: {error}");
        assert!(error.message.contains(words), "{text}: {error}");
    }
}

const XSD: &str = "PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>";

#[test]
fn bounds_lose_no_numbers() {
    let house = house();
    // SQL has NaN above all numbers.
    let numbers = format!(
        "sparql('{XSD} SELECT (xsd:double(?x) AS ?v) {{ VALUES ?x {{ \"NaN\" 1 7 \"INF\" \"-INF\" }} }}')"
    );
    for (filter, expected) in [
        ("v > 5", "3"),
        ("v >= 7", "3"),
        ("5 < v", "3"),
        ("v between 5 and 8", "1"),
        ("v < 5", "2"),
        ("v = 7", "1"),
    ] {
        house.check(
            &format!("select count(*) from {numbers} where {filter}"),
            &[expected],
        );
    }
    let small = format!(
        "sparql('{XSD} SELECT (xsd:double(?x) AS ?v) {{ VALUES ?x {{ 6.62607015e-34 3.4e-18 -1e-30 5e-324 1e300 0.0001234567890123 }} }}')"
    );
    for (filter, expected) in [
        ("v < '1e-30'::double precision", "3"),
        ("v = '6.62607015e-34'::double precision", "1"),
        ("v = '3.4e-18'::double precision", "1"),
        ("v > '-1e-29'::double precision and v < 0", "1"),
        ("v = '5e-324'::double precision", "1"),
        ("v = '1e300'::double precision", "1"),
        ("v < '1e301'::double precision", "6"),
        ("v > '1e299'::double precision", "1"),
        ("v = '0.0001234567890123'::double precision", "1"),
    ] {
        house.check(
            &format!("select count(*) from {small} where {filter}"),
            &[expected],
        );
    }
}

#[test]
fn texts_are_read_as_whoever_runs_the_engine_chose() {
    let house = house();
    let count = "select * from sparql('SELECT (COUNT(*) AS ?n) { ?s ?p ?o }')";
    house.check(count, &["12"]);
    let readings = Readings {
        union_default_graph: true,
        strict_prefixes: true,
    };
    let graphs = EngineGraphs::new(Arc::clone(&house.engine)).with_readings(readings);
    let session = house.session.clone().with_graphs(Arc::new(graphs));
    let house = house.with_session(session);
    house.check(count, &["13"]);
    // Those of named graphs are there once all the same.
    house.check("select count(*) from quads", &["13"]);
    let undeclared = "select * from sparql('SELECT ?s { ?s rdf:type ?t }')";
    let error = house.rows(undeclared).unwrap_err();
    assert_eq!(error.state.code(), "42601", "{error}");
}

#[test]
fn nobody_else_is_asked_while_other_writers_wait() {
    let house = house();
    let service = "sparql('SELECT ?s { SERVICE SILENT <http://127.0.0.1:9/> { ?s ?p ?o } }')";
    house.rows("create table t (s text)").unwrap();
    // A view is only planned.
    house
        .rows(&format!("create view v as select * from {service}"))
        .unwrap();
    for text in [
        format!("insert into t select s from {service}"),
        "insert into t select s from v".to_owned(),
        format!("begin; insert into t values ('a'); select * from {service}"),
    ] {
        let error = house.rows(&text).unwrap_err();
        assert_eq!(error.state.code(), "0A000", "{text}: {error}");
        assert!(error.message.contains("SERVICE while"), "{text}: {error}");
        house.rows("rollback").unwrap();
    }
    house.check(&format!("select * from {service}"), &[""]);
}

#[test]
fn queries_are_not_planned_for_those_who_have_gone() {
    let house = house();
    let session = house.session.clone();
    let with_limits =
        |limits| self::house().with_session(session.clone().with_graph_limits(limits));
    let waiting = Arc::new(());
    let limits = GraphLimits {
        waiting: Some(Arc::downgrade(&waiting)),
        ..GraphLimits::default()
    };
    let asked = with_limits(limits);
    let query = "select count(*) from sparql('SELECT ?s { ?s ?p ?o }')";
    asked.check(query, &["12"]);
    drop(waiting);
    let error = asked.rows(query).unwrap_err();
    assert_eq!(error.state.code(), "57014", "{error}");
}
