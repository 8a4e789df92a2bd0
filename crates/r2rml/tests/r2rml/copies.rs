//! Tests of mappings by the quads that `MATERIALIZE GRAPH` stores, and of refusals.

#![expect(clippy::unwrap_used, reason = "a test")]

use std::sync::Arc;

use crate::support::{Place, mapping};
use orrery_sparql::Touched as _;
use orrery_sql::Spending;

const TABLES: &str = "
    create table department (number int primary key, name text not null unique, place text);
    create table employee (
        id int primary key, \"Full Name\" text, salary numeric(10,2), rate double precision, hired date, seen timestamp,
        zoned timestamptz, active boolean, photo bytea, department int references department (number)
    );
    create table tag (employee int, word text);
    insert into department values (10, 'Research & Co', 'Gen\u{e8}ve'), (20, 'Sales', null);
    insert into employee values
        (1, 'Ann Lee', 1200.50, 80.25, '1981-10-10', '2009-10-10 12:12:22', '2009-10-10 12:12:22+02', true, '\\x0aff', 10),
        (2, 'Bo', 30, 1, null, null, null, false, null, null);
    insert into tag values (1, 'x'), (1, 'x'), (2, 'y');
";

async fn copied(text: &str) -> Vec<String> {
    let place = Place::new();
    place.run(TABLES).await.unwrap();
    let create = format!("create graph 'http://e/g' from mapping '{}'", mapping(text));
    place.run(&create).await.unwrap();
    let tag = place.run("materialize graph 'http://e/g'").await.unwrap();
    let lines = place
        .ask("SELECT ?s ?p ?o ?g { GRAPH ?g { ?s ?p ?o } }")
        .await
        .unwrap();
    assert_eq!(tag, format!("MATERIALIZE {}", lines.len()));
    let lines = lines.into_iter();
    let mut lines: Vec<String> = lines
        .map(|line| line.replace("http://e/", "").replace(" <g>", ""))
        .collect();
    lines.sort();
    lines
}

#[tokio::test(flavor = "multi_thread")]
async fn values_become_literals_of_their_natural_datatypes() {
    let lines = copied(
        r#"<#E> rr:logicalTable [ rr:tableName "employee" ]; rr:subjectMap [ rr:template "http://e/{id}" ];
           rr:predicateObjectMap [ rr:predicate e:name; rr:objectMap [ rr:column "\"Full Name\"" ] ],
             [ rr:predicate e:salary; rr:objectMap [ rr:column "salary" ] ],
             [ rr:predicate e:rate; rr:objectMap [ rr:column "rate" ] ],
             [ rr:predicate e:hired; rr:objectMap [ rr:column "hired" ] ],
             [ rr:predicate e:seen; rr:objectMap [ rr:column "seen" ] ],
             [ rr:predicate e:zoned; rr:objectMap [ rr:column "zoned" ] ],
             [ rr:predicate e:active; rr:objectMap [ rr:column "active" ] ],
             [ rr:predicate e:photo; rr:objectMap [ rr:column "photo" ] ] ."#,
    )
    .await;
    let xsd = |name: &str| format!("^^<http://www.w3.org/2001/XMLSchema#{name}>");
    let mut expected = vec![
        "<1> <name> \"Ann Lee\"".to_owned(),
        format!("<1> <salary> \"1200.5\"{}", xsd("decimal")),
        format!("<1> <rate> \"8.025E1\"{}", xsd("double")),
        format!("<1> <hired> \"1981-10-10\"{}", xsd("date")),
        format!("<1> <seen> \"2009-10-10T12:12:22\"{}", xsd("dateTime")),
        format!("<1> <zoned> \"2009-10-10T10:12:22Z\"{}", xsd("dateTime")),
        format!("<1> <active> \"true\"{}", xsd("boolean")),
        format!("<1> <photo> \"0AFF\"{}", xsd("hexBinary")),
        "<2> <name> \"Bo\"".to_owned(),
        format!("<2> <salary> \"30\"{}", xsd("decimal")),
        format!("<2> <rate> \"1.0E0\"{}", xsd("double")),
        format!("<2> <active> \"false\"{}", xsd("boolean")),
    ];
    expected.sort();
    assert_eq!(lines, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn templates_types_languages_classes_and_graphs_are_as_they_are_said() {
    let lines = copied(
        r#"<#D> rr:logicalTable [ rr:tableName "department" ];
           rr:subjectMap [ rr:template "d/{number}/{name}"; rr:class e:Department ];
           rr:predicateObjectMap [ rr:predicate e:label; rr:objectMap [ rr:column "name"; rr:language "en-GB" ] ],
             [ rr:predicate e:text; rr:objectMap [ rr:template "{number}: {name}"; rr:termType rr:Literal ] ],
             [ rr:predicate e:code; rr:objectMap [ rr:column "number"; rr:datatype xsd:short ] ],
             [ rr:predicate e:page; rr:objectMap [ rr:column "number"; rr:termType rr:IRI ] ],
             [ rr:predicate e:kind; rr:object "K", e:K ],
             [ rr:predicate e:place; rr:objectMap [ rr:column "place" ];
               rr:graph e:places; rr:graphMap [ rr:template "http://e/places/{number}" ] ] ."#,
    )
    .await;
    assert_eq!(
        lines,
        [
            "<base/d/10/Research%20%26%20Co> <code> \"10\"^^<http://www.w3.org/2001/XMLSchema#short>",
            "<base/d/10/Research%20%26%20Co> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <Department>",
            "<base/d/10/Research%20%26%20Co> <kind> \"K\"",
            "<base/d/10/Research%20%26%20Co> <kind> <K>",
            "<base/d/10/Research%20%26%20Co> <label> \"Research & Co\"@en-GB",
            "<base/d/10/Research%20%26%20Co> <page> <base/10>",
            "<base/d/10/Research%20%26%20Co> <place> \"Gen\u{e8}ve\" <places/10>",
            "<base/d/10/Research%20%26%20Co> <place> \"Gen\u{e8}ve\" <places>",
            "<base/d/10/Research%20%26%20Co> <text> \"10: Research & Co\"",
            "<base/d/20/Sales> <code> \"20\"^^<http://www.w3.org/2001/XMLSchema#short>",
            "<base/d/20/Sales> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <Department>",
            "<base/d/20/Sales> <kind> \"K\"",
            "<base/d/20/Sales> <kind> <K>",
            "<base/d/20/Sales> <label> \"Sales\"@en-GB",
            "<base/d/20/Sales> <page> <base/20>",
            "<base/d/20/Sales> <text> \"20: Sales\"",
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_may_be_subjects_of_other_maps_and_queries_may_be_tables() {
    let lines = copied(
        r#"<#E> rr:logicalTable [ rr:sqlQuery "select id, department as d from employee -- all of them" ];
           rr:subjectMap [ rr:template "http://e/{id}" ];
           rr:predicateObjectMap [ rr:predicate e:in; rr:objectMap [ rr:parentTriplesMap <#D>;
             rr:joinCondition [ rr:child "d"; rr:parent "number" ] ] ] .
           <#D> rr:logicalTable [ rr:tableName "department" ]; rr:subjectMap [ rr:column "name"; rr:termType rr:BlankNode ];
           rr:predicateObjectMap [ rr:predicate e:self; rr:objectMap [ rr:parentTriplesMap <#D> ] ] .
           <#T> rr:logicalTable [ rr:tableName "tag" ]; rr:subjectMap [ rr:template "http://e/{employee}" ];
           rr:predicateObjectMap [ rr:predicate e:tag; rr:objectMap [ rr:column "word" ] ] ."#,
    )
    .await;
    assert_eq!(
        lines,
        [
            "<1> <in> _:",
            "<1> <tag> \"x\"",
            "<2> <tag> \"y\"",
            "_: <self> _:",
            "_: <self> _:"
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_direct_mapping_follows_keys() {
    let place = Place::new();
    place.run(TABLES).await.unwrap();
    place
        .run(
            "create table \"Ref T\" (id int primary key, department text references department (name));
             insert into \"Ref T\" values (1, 'Sales'), (2, null);
             create graph 'http://e/g' from tables base 'http://e/';
             materialize graph 'http://e/g'",
        )
        .await
        .unwrap();
    let short = |lines: Vec<String>| -> Vec<String> {
        lines
            .into_iter()
            .map(|line| line.replace("http://e/", ""))
            .collect()
    };
    let of = |table: &str| {
        format!(
            "SELECT ?s ?p ?o {{ GRAPH <http://e/g> {{ ?s ?p ?o ; a <http://e/{table}> }} FILTER(?p != rdf:type) }}"
        )
    };
    let departments = short(place.ask(&of("department")).await.unwrap());
    assert_eq!(
        departments,
        [
            "<department/number=10> <department#name> \"Research & Co\"",
            "<department/number=10> <department#number> \"10\"^^<http://www.w3.org/2001/XMLSchema#integer>",
            "<department/number=10> <department#place> \"Gen\u{e8}ve\"",
            "<department/number=20> <department#name> \"Sales\"",
            "<department/number=20> <department#number> \"20\"^^<http://www.w3.org/2001/XMLSchema#integer>",
        ]
    );
    let references = short(place.ask(&of("Ref%20T")).await.unwrap());
    assert_eq!(
        references,
        [
            "<Ref%20T/id=1> <Ref%20T#department> \"Sales\"",
            "<Ref%20T/id=1> <Ref%20T#id> \"1\"^^<http://www.w3.org/2001/XMLSchema#integer>",
            "<Ref%20T/id=1> <Ref%20T#ref-department> <department/number=20>",
            "<Ref%20T/id=2> <Ref%20T#id> \"2\"^^<http://www.w3.org/2001/XMLSchema#integer>",
        ]
    );
    let query = "SELECT ?s ?o { GRAPH <http://e/g> { ?s <http://e/employee#ref-department> ?o } }";
    assert_eq!(
        short(place.ask(query).await.unwrap()),
        ["<employee/id=1> <department/number=10>"]
    );
    // Each row of a table without a key is a blank node, also where others are equal.
    let query =
        "SELECT (COUNT(DISTINCT ?s) AS ?n) { GRAPH <http://e/g> { ?s <http://e/tag#word> ?w } }";
    assert_eq!(
        place.ask(query).await.unwrap(),
        ["\"3\"^^<http://www.w3.org/2001/XMLSchema#integer>"]
    );
    // It was materialized in its own place, so that the name is free again for a mapping once the
    // quads are gone.
    let refused = place
        .run("drop graph mapping 'http://e/g'")
        .await
        .unwrap_err();
    assert!(refused.starts_with("42704"), "{refused}");
    let refused = place
        .run("create graph 'http://e/g' from tables base 'http://e/'")
        .await
        .unwrap_err();
    assert!(
        refused.starts_with("42710") && refused.contains("are stored"),
        "{refused}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn mappings_that_are_none_are_refused_with_the_place() {
    let place = Place::new();
    place.run(TABLES).await.unwrap();
    let good = r#"rr:logicalTable [ rr:tableName "department" ]; rr:subjectMap [ rr:template "http://e/{number}" ]"#;
    let object = |map: &str| {
        format!("<#D> {good}; rr:predicateObjectMap [ rr:predicate e:p; rr:objectMap [ {map} ] ] .")
    };
    let cases = [
        ("<#D> rr:logicalTable [ rr:tableName \"department\" ]; rr:subjectMap [ rr:template \"x\" ".to_owned(), "line 2"),
        (String::new(), "no triples map"),
        ("<#D> rr:logicalTable [ rr:tableName \"department\" ] .".to_owned(), "rr:subjectMap: there is none"),
        (format!("<#D> {good}; rr:subjectMap [ rr:template \"http://e/x\" ] ."), "rr:subjectMap: there is more than one"),
        (format!("<#D> {good}; rr:subject e:x ."), "rr:subject as well"),
        ("<#D> rr:subjectMap [ rr:template \"http://e/x\" ] .".to_owned(), "rr:logicalTable: there is none"),
        ("<#D> rr:logicalTable [ rr:tableName \"nowhere\" ]; rr:subject e:x .".to_owned(), "there is no table public.nowhere"),
        ("<#D> rr:logicalTable [ rr:tableName \"department\"; rr:sqlQuery \"select 1\" ]; rr:subject e:x .".to_owned(), "both of"),
        ("<#D> rr:logicalTable [ rr:sqlQuery \"selec 1\" ]; rr:subject e:x .".to_owned(), "rr:sqlQuery"),
        ("<#D> rr:logicalTable [ rr:sqlQuery \"delete from tag\" ]; rr:subject e:x .".to_owned(), "no query"),
        ("<#D> rr:logicalTable [ rr:sqlQuery \"select number, number from department\" ]; rr:subject e:x .".to_owned(), "rr:sqlQuery"),
        ("<#D> rr:logicalTable [ rr:sqlQuery \"select 1 as a\"; rr:sqlVersion rr:SQL1979 ]; rr:subject e:x .".to_owned(), "rr:sqlVersion"),
        ("<#D> rr:logicalTable [ rr:tableName \"employee\" ]; rr:subjectMap [ rr:template \"http://e/{Full Name}\" ] .".to_owned(), "double quotes"),
        ("<#D> rr:logicalTable [ rr:tableName \"department\" ]; rr:subjectMap [ rr:template \"http://e/{num}\" ] .".to_owned(), "there is no column \"num\""),
        ("<#D> rr:logicalTable [ rr:tableName \"department\" ]; rr:subjectMap [ rr:template \"http://e/{number\" ] .".to_owned(), "{ without }"),
        ("<#D> rr:logicalTable [ rr:tableName \"department\" ]; rr:subjectMap [ rr:column \"name\"; rr:termType rr:Literal ] .".to_owned(), "a subject cannot be of this kind"),
        ("<#D> rr:logicalTable [ rr:tableName \"department\" ]; rr:subject \"x\" .".to_owned(), "a subject cannot be the literal"),
        (format!("<#D> {good}; rr:predicateObjectMap [ rr:object e:x ] ."), "it has no predicate"),
        (format!("<#D> {good}; rr:predicateObjectMap [ rr:predicate e:x ] ."), "it has no object"),
        (format!("<#D> {good}; rr:predicateObjectMap [ rr:predicate \"p\"; rr:object e:x ] ."), "a predicate cannot be the literal"),
        (format!("<#D> {good}; rr:predicateObjectMap [ rr:predicate e:p; rr:object e:x; rr:graph \"g\" ] ."), "a graph cannot be the literal"),
        (format!("<#D> {good}; rr:predicateObjectMap [ rr:predicate e:p; rr:object e:x; rr:graphMap [ rr:column \"name\"; rr:termType rr:BlankNode ] ] ."), "a graph cannot be of this kind"),
        (object(r#"rr:column "name"; rr:language "english""#), "no tag of a language"),
        (object(r#"rr:column "name"; rr:language "en"; rr:datatype xsd:string"#), "rr:language as well"),
        (object(r#"rr:column "name"; rr:termType rr:IRI; rr:datatype xsd:string"#), "for literals alone"),
        (object(r#"rr:column "name"; rr:template "{name}""#), "more than one of"),
        (object(r#"rr:column "name"; rr:column "place""#), "rr:column: there is more than one"),
        (object(r#"rr:termType rr:IRI"#), "neither rr:constant nor"),
        (object(r#"rr:column "name"; rr:termType rr:Thing"#), "neither rr:IRI"),
        (object(r#"rr:column "name"; rr:colour "red""#), "rr:colour: it has no place"),
        (object(r#"rr:parentTriplesMap <#X>"#), "<http://e/base/#X>"),
        (object(r#"rr:parentTriplesMap <#D>; rr:joinCondition [ rr:child "number" ]"#), "rr:parent: there is none"),
        (object(r#"rr:parentTriplesMap <#D>; rr:joinCondition [ rr:child "number"; rr:parent "nope" ]"#), "rr:parent: there is no column"),
        (object(r#"rr:joinCondition [ rr:child "number"; rr:parent "number" ]; rr:column "name""#), "no rr:parentTriplesMap"),
        (object(r#"rr:parentTriplesMap <#T>"#) + "<#T> rr:logicalTable [ rr:tableName \"tag\" ]; rr:subject e:t .", "another logical table"),
        (object(r#"rr:column "name"; rr:inverseExpression e:x"#), "no plain text"),
    ];
    for (text, words) in cases {
        let create = format!(
            "create graph 'http://e/g' from mapping '{}'",
            mapping(&text)
        );
        let refused = place.run(&create).await;
        let refused = refused.expect_err(&text);
        assert!(
            refused.starts_with("22023") && refused.contains(words),
            "{text}\n{refused}"
        );
    }
    let refused = place.run("create graph 'g' from tables").await.unwrap_err();
    assert!(refused.contains("no absolute IRI"), "{refused}");
    let refused = place
        .run("create graph 'http://e/g' from nothing")
        .await
        .unwrap_err();
    assert!(refused.starts_with("42601"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn values_that_are_no_terms_undo_the_copy() {
    for (map, words) in [
        (
            r#"rr:column "name"; rr:termType rr:IRI"#,
            "<http://e/base/Research & Co> is no IRI",
        ),
        (
            r#"rr:column "name"; rr:datatype xsd:integer"#,
            "is no value of <http://www.w3.org/2001/XMLSchema#integer>",
        ),
    ] {
        let place = Place::new();
        place.run(TABLES).await.unwrap();
        let text = format!(
            r#"<#D> rr:logicalTable [ rr:tableName "department" ]; rr:subjectMap [ rr:template "http://e/{{number}}"; rr:class e:D ];
               rr:predicateObjectMap [ rr:predicate e:p; rr:objectMap [ {map} ] ] ."#
        );
        place
            .run(&format!(
                "create graph 'http://e/g' from mapping '{}'",
                mapping(&text)
            ))
            .await
            .unwrap();
        let refused = place
            .run("begin; materialize graph 'http://e/g' into 'http://e/h'")
            .await
            .unwrap_err();
        assert!(
            refused.starts_with("22P02") && refused.contains(words),
            "{refused}"
        );
        assert_eq!(place.run("commit").await.unwrap(), "ROLLBACK");
        let left = place
            .ask("SELECT * { GRAPH <http://e/h> { ?s ?p ?o } }")
            .await
            .unwrap();
        assert_eq!(left, [""; 0]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn definitions_are_of_transactions_and_names_are_taken_once() {
    let place = Place::new();
    place.run(TABLES).await.unwrap();
    place
        .run("begin; create graph 'http://e/g' from tables; rollback")
        .await
        .unwrap();
    place
        .run("create graph 'http://e/g' from tables")
        .await
        .unwrap();
    let twice = place
        .run("create graph 'http://e/g' from tables")
        .await
        .unwrap_err();
    assert!(twice.starts_with("42710"), "{twice}");
    let refused = place
        .run("begin; savepoint a; materialize graph 'http://e/g' into 'http://e/h'")
        .await
        .unwrap_err();
    assert!(refused.starts_with("0A000"), "{refused}");
    place.run("rollback").await.unwrap();
    // Views and the list of relations know nothing of it, and tables may go.
    place
        .run("create view v as select * from tag; drop table tag cascade")
        .await
        .unwrap();
    place
        .run("drop graph mapping if exists 'http://e/none'; drop graph mapping 'http://e/g'")
        .await
        .unwrap();
    let gone = place
        .run("materialize graph 'http://e/g'")
        .await
        .unwrap_err();
    assert!(gone.starts_with("42704"), "{gone}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_costs_the_rows_that_are_read_and_the_triples_that_are_stored() {
    let mut place = Place::new();
    let tables = "create table thing (id int primary key, name text);
        insert into thing select i, 'thing ' || i from generate_series(1, 1000) as s(i);
        create graph 'http://e/g' from tables base 'http://e/'";
    place.run(tables).await.unwrap();
    let count = "SELECT (COUNT(*) AS ?n) { GRAPH <http://e/copy> { ?s ?p ?o } }";
    // For each row its class and two values.
    for (touches_max, is_made) in [(3_000, false), (100_000, true)] {
        let spending = Spending::new(None);
        spending.limit_by(move |touches| match touches <= touches_max {
            true => Ok(()),
            false => Err("the budget is used up".to_owned()),
        });
        place.session.set_spending(Some(Arc::clone(&spending)));
        let copied = place.run("materialize graph 'http://e/g' into 'http://e/copy'");
        let copied = copied.await;
        place.session.set_spending(None);
        assert_eq!(copied.is_ok(), is_made, "{copied:?}");
        let stored = if is_made { "3000" } else { "0" };
        let told = place.ask(count).await.unwrap();
        assert!(told[0].contains(&format!("\"{stored}\"")), "{told:?}");
        if is_made {
            assert_eq!(spending.changed(), 3_000);
            assert!((4_000..9_000).contains(&spending.touches()), "{spending:?}");
        } else {
            let refused = copied.unwrap_err();
            assert!(refused.contains("the budget is used up"), "{refused}");
        }
    }
}
