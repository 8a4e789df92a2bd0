//! Tests of foreign tables as graphs: virtual, copied, and beside stored quads.

use orrery_sql::ForeignAccess;

use crate::foreign::cluster::{Source, source};
use crate::support::{Place, mapping};

const TABLES: &str =
    "create table employee (id int primary key, name text, salary numeric(10,2), department int);
    insert into employee values (1, 'Ann', 1200.50, 10), (2, 'Bo', 30, null), (3, 'Cy', 700, 20)";

const MAPPING: &str = r#"
<#E> rr:logicalTable [ rr:tableName "employee" ]; rr:subjectMap [ rr:template "http://e/employee/{id}"; rr:class e:Employee ];
   rr:predicateObjectMap [ rr:predicate e:name; rr:objectMap [ rr:column "name" ] ],
     [ rr:predicate e:department; rr:objectMap [ rr:parentTriplesMap <#D>; rr:joinCondition [ rr:child "department"; rr:parent "number" ] ] ] .
<#D> rr:logicalTable [ rr:tableName "department" ]; rr:subjectMap [ rr:template "http://e/department/{number}" ];
   rr:predicateObjectMap [ rr:predicate e:title; rr:objectMap [ rr:column "title" ] ] .
<#Q> rr:logicalTable [ rr:sqlQuery "select id, salary from employee where salary > 100" ]; rr:subjectMap [ rr:template "http://e/employee/{id}" ];
   rr:predicateObjectMap [ rr:predicate e:salary; rr:objectMap [ rr:column "salary" ] ] .
"#;

async fn place() -> Option<(Source, Place)> {
    let source = source()?;
    source.psql(TABLES);
    let place = Place::with_foreign(&ForeignAccess::anywhere(None));
    place.run(&source.create("employee", "")).await.unwrap();
    place
        .run("create table department (number int primary key, title text); insert into department values (10, 'Research'), (20, 'Sales')")
        .await
        .unwrap();
    Some((source, place))
}

const QUESTIONS: [&str; 3] = [
    "PREFIX e: <http://e/> SELECT ?name ?title { GRAPH ?g { ?s a e:Employee ; e:name ?name ; e:department ?d . ?d e:title ?title } FILTER(?g = <http://e/g>) }",
    "PREFIX e: <http://e/> SELECT ?s ?salary { GRAPH <http://e/g> { ?s e:salary ?salary } }",
    "PREFIX e: <http://e/> SELECT ?p ?o { GRAPH <http://e/g> { <http://e/employee/2> ?p ?o } }",
];

#[tokio::test(flavor = "multi_thread")]
async fn a_mapped_graph_of_another_server_answers_and_its_copy_does_the_same() {
    let Some((source, place)) = place().await else {
        return;
    };
    let create = format!(
        "create graph 'http://e/g' from mapping '{}'",
        mapping(MAPPING)
    );
    place.run(&create).await.unwrap();
    let mut answers = Vec::new();
    for question in QUESTIONS {
        answers.push(place.ask(question).await.unwrap());
    }
    assert_eq!(answers[0], ["\"Ann\" \"Research\"", "\"Cy\" \"Sales\""]);
    assert_eq!(answers[1].len(), 2);
    assert_eq!(answers[2].len(), 2);
    // A constant subject goes to the source as a key.
    let sent = source.cluster.logged("\"employee\"");
    assert!(
        sent.iter().any(|line| line.contains("(\"id\" = 2)")),
        "{sent:?}"
    );
    // Beside stored quads, in one query.
    place
        .update("INSERT DATA { <http://e/employee/3> <http://e/likes> \"tea\" }")
        .await
        .unwrap();
    let joined = place.ask("PREFIX e: <http://e/> SELECT ?name ?what { ?s e:likes ?what GRAPH <http://e/g> { ?s e:name ?name } }").await;
    assert_eq!(joined.unwrap(), ["\"Cy\" \"tea\""]);
    place.run("materialize graph 'http://e/g'").await.unwrap();
    source.psql("delete from employee");
    place.run("drop graph mapping 'http://e/g'").await.ok();
    for (question, answer) in QUESTIONS.iter().zip(&answers) {
        assert_eq!(place.ask(question).await.unwrap(), *answer, "{question}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_direct_mapping_makes_iris_of_the_key_of_the_source() {
    let Some((source, place)) = place().await else {
        return;
    };
    place
        .run("create graph 'http://e/d' from tables")
        .await
        .unwrap();
    let names = place
        .ask("SELECT ?s ?n { GRAPH <http://e/d> { ?s <http://e/d/employee#name> ?n } }")
        .await
        .unwrap();
    assert_eq!(
        names,
        [
            "<http://e/d/employee/id=1> \"Ann\"",
            "<http://e/d/employee/id=2> \"Bo\"",
            "<http://e/d/employee/id=3> \"Cy\""
        ]
    );
    let one = place.ask("SELECT ?n { GRAPH <http://e/d> { <http://e/d/employee/id=3> <http://e/d/employee#name> ?n } }").await;
    assert_eq!(one.unwrap(), ["\"Cy\""]);
    let sent = source.cluster.logged("\"employee\"");
    assert!(
        sent.iter().any(|line| line.contains("(\"id\" = 3)")),
        "{sent:?}"
    );
    // Without a key there is nothing to call its rows by.
    source.psql("create table plain (x int)");
    place.run("create schema other").await.unwrap();
    place
        .run(
            &source
                .create("other.plain", "")
                .replace("location", "options ('table' 'plain') location"),
        )
        .await
        .unwrap();
    let error = place
        .run("create graph 'http://e/o' from tables other")
        .await
        .unwrap_err();
    assert!(error.contains("primary key"), "{error}");
}
