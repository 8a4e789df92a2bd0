//! `orrery mapping`: graphs out of tables, from the command line and as a server has them.

use std::fs;

use crate::common::{run, succeed, text};

const MAPPING: &str = r#"
@prefix rr: <http://www.w3.org/ns/r2rml#> . @prefix e: <http://e/> . @base <http://e/> .
<#I> rr:logicalTable [ rr:tableName "item" ]; rr:subjectMap [ rr:template "http://e/item/{id}" ];
  rr:predicateObjectMap [ rr:predicate e:name; rr:objectMap [ rr:column "name" ] ] .
"#;

#[test]
fn a_mapped_graph_is_defined_asked_copied_and_dropped() {
    let home = tempfile::tempdir().unwrap();
    let database = home.path().join("db");
    let file = home.path().join("mapping.ttl");
    fs::write(&file, MAPPING).unwrap();
    let at = ["--db", text(&database)];
    let done = |words: &[&str], more: &[&str]| succeed(&[words, &at, more].concat());
    let tables = "create table item (id int primary key, name text); insert into item values (1, 'lamp'), (2, 'it''s')";
    done(&["sql"], &["-c", tables]);
    let add = done(&["mapping", "add"], &["http://e/g", "--file", text(&file)]);
    assert_eq!(add, "CREATE GRAPH\n");
    done(&["mapping", "add"], &["http://e/all", "--tables"]);
    assert_eq!(
        done(&["mapping", "list"], &[]),
        "http://e/g\tR2RML\nhttp://e/all\ttables of public\n"
    );
    assert_eq!(done(&["mapping", "show"], &["http://e/g"]), MAPPING);
    let query = |graph: &str| {
        format!("SELECT ?name {{ GRAPH <{graph}> {{ ?s <http://e/name> ?name }} }} ORDER BY ?name")
    };
    let csv = ["--format", "csv"];
    let asked = done(&["query"], &[&csv[..], &[&query("http://e/g")]].concat());
    assert_eq!(asked.replace('\r', ""), "name\nit's\nlamp\n");
    let count = "SELECT (COUNT(*) AS ?n) { GRAPH <http://e/all> { ?s ?p ?o } }";
    let counted = done(&["query"], &[&csv[..], &[count]].concat());
    assert_eq!(counted.replace('\r', ""), "n\n6\n");
    let copied = done(
        &["mapping", "materialize"],
        &["http://e/g", "--into", "http://e/copy"],
    );
    assert_eq!(copied, "MATERIALIZE 2\n");
    done(&["mapping", "drop"], &["http://e/g"]);
    let asked = done(&["query"], &[&csv[..], &[&query("http://e/g")]].concat());
    assert_eq!(asked.replace('\r', ""), "name\n");
    let asked = done(&["query"], &[&csv[..], &[&query("http://e/copy")]].concat());
    assert_eq!(asked.replace('\r', ""), "name\nit's\nlamp\n");
    // Both in one statement of SQL.
    let joined = "select i.id from item i join sparql('SELECT ?n { GRAPH <http://e/all> { ?s <http://e/all/item#name> ?n } }') as t(n text) on t.n = i.name order by 1";
    assert_eq!(
        done(&["sql"], &["--format", "csv", "-c", joined]),
        "id\n1\n2\n"
    );
    let wrong = home.path().join("wrong.ttl");
    fs::write(&wrong, MAPPING.replace("rr:column", "rr:colum")).unwrap();
    let refused = run(&[
        &["mapping", "add"][..],
        &at,
        &["http://e/w", "--file", text(&wrong)],
    ]
    .concat());
    assert_eq!(refused.status.code(), Some(1));
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(
        said.contains("rr:colum") && said.contains("<http://e/#I>"),
        "{said}"
    );
}

/// `docs/mapping.md` has this example.
const RELATIVE: &str = r#"@prefix rr: <http://www.w3.org/ns/r2rml#> . @prefix e: <http://example.com/> .
  <#Item> rr:logicalTable [ rr:tableName "item" ] ;
    rr:subjectMap [ rr:template "http://example.com/item/{id}" ; rr:class e:Item ] ;
    rr:predicateObjectMap [ rr:predicate e:name ; rr:objectMap [ rr:column "name" ] ] ."#;

#[test]
fn relative_names_of_a_mapping_are_those_of_its_file_or_its_graph() {
    let home = tempfile::tempdir().unwrap();
    let database = home.path().join("db");
    let file = home.path().join("shop.ttl");
    fs::write(&file, RELATIVE).unwrap();
    let at = ["--db", text(&database)];
    let done = |words: &[&str], more: &[&str]| succeed(&[words, &at, more].concat());
    let tables =
        "create table item (id int primary key, name text); insert into item values (1, 'lamp')";
    done(&["sql"], &["-c", tables]);
    let by_sql = format!("CREATE GRAPH 'http://e/sql' FROM MAPPING $${RELATIVE}$$");
    done(&["sql"], &["-c", &by_sql]);
    // What rows give is relative to the graph, if nothing else is said.
    let of_rows = RELATIVE.replace("http://example.com/item/{id}", "item/{id}");
    let of_rows = format!("CREATE GRAPH 'http://e/rows' FROM MAPPING $${of_rows}$$");
    done(&["sql"], &["-c", &of_rows]);
    done(
        &["mapping", "add"],
        &["http://e/file", "--file", text(&file)],
    );
    let base = [
        "http://e/based",
        "--file",
        text(&file),
        "--base",
        "http://b/",
    ];
    done(&["mapping", "add"], &base);
    for (graph, item) in [
        ("sql", "http://example.com/item/1"),
        ("rows", "http://e/rows/item/1"),
        ("file", "http://example.com/item/1"),
        ("based", "http://example.com/item/1"),
    ] {
        let query = format!(
            "SELECT ?s {{ GRAPH <http://e/{graph}> {{ ?s <http://example.com/name> 'lamp' }} }}"
        );
        let asked = done(&["query"], &["--format", "csv", &query]);
        assert_eq!(asked.replace('\r', ""), format!("s\n{item}\n"), "{graph}");
    }
    // Messages name a triples map as the file or the graph does.
    let wrong = RELATIVE.replace("rr:column", "rr:colum");
    fs::write(&file, &wrong).unwrap();
    let add = [
        &["mapping", "add"][..],
        &at,
        &["http://e/w", "--file", text(&file)],
    ]
    .concat();
    let said = String::from_utf8(run(&add).stderr).unwrap();
    assert!(said.contains("/shop.ttl#Item>"), "{said}");
}
