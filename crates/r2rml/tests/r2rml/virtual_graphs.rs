//! Tests of mapped graphs in SPARQL: answers, plans, and agreement with a copy.

#![expect(clippy::unwrap_used, reason = "a test")]

use crate::support::{Place, mapping};
use orrery_sparql::QueryOptions;

const TABLES: &str = "
    create table department (number int primary key, name text not null unique, place text);
    create table employee (id int primary key, name text, salary numeric(10,2), department int references department (number));
    create table tag (employee int, word text);
    insert into department values (10, 'Research', 'Bern'), (20, 'Sales', null);
    insert into employee values (1, 'Ann', 1200.50, 10), (2, 'Bo', 30, null), (3, 'Cy', 700, 20), (4, null, 700, 20);
    insert into tag values (1, 'x'), (1, 'x'), (2, 'y'), (2, 'x'), (9, 'z');
";

const MAPPING: &str = r#"
<#E> rr:logicalTable [ rr:tableName "employee" ]; rr:subjectMap [ rr:template "http://e/employee/{id}"; rr:class e:Employee ];
   rr:predicateObjectMap [ rr:predicate e:name; rr:objectMap [ rr:column "name" ] ],
     [ rr:predicate e:salary; rr:objectMap [ rr:column "salary" ] ],
     [ rr:predicate e:department; rr:objectMap [ rr:parentTriplesMap <#D>; rr:joinCondition [ rr:child "department"; rr:parent "number" ] ] ] .
<#D> rr:logicalTable [ rr:tableName "department" ]; rr:subjectMap [ rr:template "http://e/department/{number}"; rr:class e:Department ];
   rr:predicateObjectMap [ rr:predicate e:name; rr:objectMap [ rr:column "name" ] ],
     [ rr:predicate e:place; rr:objectMap [ rr:column "place"; rr:language "de" ]; rr:graph e:places, rr:defaultGraph ] .
<#T> rr:logicalTable [ rr:tableName "tag" ]; rr:subjectMap [ rr:template "http://e/employee/{employee}" ];
   rr:predicateObjectMap [ rr:predicate e:tag; rr:objectMap [ rr:column "word" ] ],
     [ rr:predicate e:note; rr:objectMap [ rr:template "{employee}-{word}"; rr:termType rr:BlankNode ] ] .
"#;

async fn place() -> Place {
    let place = Place::new();
    place.run(TABLES).await.unwrap();
    let create = format!(
        "create graph 'http://e/g' from mapping '{}'",
        mapping(MAPPING)
    );
    place.run(&create).await.unwrap();
    place
}

async fn ask(place: &Place, pattern: &str) -> Vec<String> {
    let query = format!("PREFIX e: <http://e/> {pattern}");
    let lines = place.ask(&query).await.unwrap();
    let lines = lines.into_iter();
    let mut lines: Vec<String> = lines.map(|line| line.replace("http://e/", "")).collect();
    lines.sort();
    lines
}

fn plan(place: &Place, pattern: &str) -> String {
    let query = format!("PREFIX e: <http://e/> {pattern}");
    let prepared = place
        .engine
        .prepare(&query, &QueryOptions::of_process())
        .unwrap();
    prepared.explain()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_star_over_a_key_reads_each_row_once() {
    let place = place().await;
    let star = "SELECT ?name ?salary { GRAPH <http://e/g> { ?s a e:Employee ; e:name ?name ; e:salary ?salary } }";
    assert_eq!(
        ask(&place, star).await,
        [
            "\"Ann\" \"1200.5\"^^<http://www.w3.org/2001/XMLSchema#decimal>",
            "\"Bo\" \"30\"^^<http://www.w3.org/2001/XMLSchema#decimal>",
            "\"Cy\" \"700\"^^<http://www.w3.org/2001/XMLSchema#decimal>"
        ]
    );
    let plan = plan(&place, star);
    assert_eq!(plan.matches("SourceExec").count(), 1, "{plan}");
    assert!(
        plan.contains(
            "SELECT t0.\"name\" AS c0, t0.\"salary\" AS c1 FROM \"public\".\"employee\" AS t0"
        ),
        "{plan}"
    );
    assert!(
        !plan.contains("JOIN") && !plan.contains("Distinct"),
        "{plan}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn constants_and_filters_become_conditions_of_sql() {
    let place = place().await;
    let of_key = "SELECT ?p ?o { GRAPH <http://e/g> { <http://e/department/10> ?p ?o } }";
    assert_eq!(
        ask(&place, of_key).await,
        [
            "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <Department>",
            "<name> \"Research\"",
            "<place> \"Bern\"@de"
        ]
    );
    let plan_of_key = plan(&place, of_key);
    assert!(plan_of_key.contains("t0.\"number\" = 10"), "{plan_of_key}");
    assert!(!plan_of_key.contains("employee"), "{plan_of_key}");
    for (filter, test, found) in [
        ("?salary > 100.5", "t0.\"salary\" > 100.5", 3),
        ("700 = ?salary", "t0.\"salary\" = 700", 2),
        ("?s = <http://e/employee/3>", "t0.\"id\" = 3", 1),
        ("sameTerm(?s, <http://e/employee/03>)", "false", 0),
        ("?s = <http://e/nobody>", "false", 0),
    ] {
        let query = format!(
            "SELECT ?s {{ GRAPH <http://e/g> {{ ?s e:salary ?salary FILTER({filter}) }} }}"
        );
        assert_eq!(ask(&place, &query).await.len(), found, "{filter}");
        let shown = plan(&place, &query);
        assert!(shown.contains(test), "{shown}");
    }
    let word = "SELECT ?s { GRAPH <http://e/g> { ?s e:tag \"x\" } }";
    assert_eq!(ask(&place, word).await, ["<employee/1>", "<employee/2>"]);
    assert!(plan(&place, word).contains("t0.\"word\" = 'x'"));
    let never = "SELECT ?s { GRAPH <http://e/g> { ?s e:name \"Ann\"@en } }";
    assert_eq!(ask(&place, never).await.len(), 0);
    assert!(
        !plan(&place, never).contains("SourceExec"),
        "{}",
        plan(&place, never)
    );
}

/// Quads of a load that does not look lie beneath the graph.
#[tokio::test(flavor = "multi_thread")]
async fn no_quad_comes_into_a_mapped_graph_for_one_that_goes() {
    let place = place().await;
    let beneath = |name: &'static str| [name, "http://e/p", "http://e/o", "http://e/places"];
    let (first, second) = (beneath("http://e/first"), beneath("http://e/second"));
    place.change_unseen(&[], &[first]);
    let data = |name: &str| format!("DATA {{ GRAPH e:places {{ e:{name} e:p e:o }} }}");
    let swap = format!(
        "PREFIX e: <http://e/> DELETE {} ; INSERT {}",
        data("first"),
        data("second")
    );
    let modify = "PREFIX e: <http://e/> WITH e:places DELETE { e:first e:p ?o } INSERT { e:second e:p ?o } USING e:stored WHERE { ?s e:p ?o }";
    let stored = "PREFIX e: <http://e/> INSERT DATA { GRAPH e:stored { e:s e:p e:o } }";
    // What was there before does not keep others from changing something else.
    place.update(stored).await.unwrap();
    // In the changes over the files, and in the files; with a graph that goes as a whole.
    for clears in ["", "CLEAR GRAPH <http://e/stored> ; "] {
        for request in [swap.as_str(), modify] {
            let refused = place.update(&format!("{clears}{request}")).await;
            // A graph that is cleared gives the modification nothing to insert.
            match clears.is_empty() || request == swap {
                true => {
                    let refused = refused.unwrap_err();
                    assert!(refused.contains("is mapped from tables"), "{refused}");
                }
                false => refused.unwrap(),
            }
        }
        place.compact();
    }
    let before = place.state();
    place.update(stored).await.unwrap();
    place.compact();
    let looked = |before| {
        place
            .engine
            .refuse_quads_of_mapped_graphs(before, &place.state())
    };
    looked(&before).unwrap();
    place.change_unseen(&[first], &[second]);
    place.compact();
    let refused = looked(&before).unwrap_err().to_string();
    assert!(refused.contains("is mapped from tables"), "{refused}");
    // What is there from before may go.
    let delete = format!("PREFIX e: <http://e/> DELETE {}", data("second"));
    place.update(&delete).await.unwrap();
    let insert = format!("PREFIX e: <http://e/> INSERT {}", data("second"));
    let refused = place.update(&insert).await.unwrap_err();
    assert!(refused.contains("is mapped from tables"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn mapped_graphs_are_graphs_among_others() {
    let place = place().await;
    let insert = "INSERT DATA { GRAPH <http://e/stored> { <http://e/employee/1> <http://e/boss> <http://e/employee/3> } }";
    place.update(insert).await.unwrap();
    let refused = place
        .update(&insert.replace("stored", "places"))
        .await
        .unwrap_err();
    assert!(refused.contains("is mapped from tables"), "{refused}");
    let joined = "SELECT ?who ?name { GRAPH <http://e/stored> { ?who e:boss ?boss } GRAPH <http://e/g> { ?boss e:name ?name } }";
    assert_eq!(ask(&place, joined).await, ["<employee/1> \"Cy\""]);
    assert_eq!(
        ask(&place, "SELECT ?g { GRAPH ?g {} }").await,
        ["<g>", "<places>", "<stored>"]
    );
    assert_eq!(
        ask(
            &place,
            "SELECT ?g ?o { GRAPH ?g { <http://e/department/10> e:place ?o } }"
        )
        .await,
        ["<g> \"Bern\"@de", "<places> \"Bern\"@de"]
    );
    assert_eq!(
        ask(
            &place,
            "SELECT ?g (COUNT(*) AS ?n) { GRAPH ?g { ?s ?p ?o } } GROUP BY ?g"
        )
        .await,
        [
            "<g> \"27\"^^<http://www.w3.org/2001/XMLSchema#integer>",
            "<places> \"1\"^^<http://www.w3.org/2001/XMLSchema#integer>",
            "<stored> \"1\"^^<http://www.w3.org/2001/XMLSchema#integer>"
        ]
    );
    // The merge of graphs is a set, too.
    assert_eq!(
        ask(
            &place,
            "SELECT ?o FROM e:g FROM e:places FROM e:stored { <http://e/department/10> e:place ?o }"
        )
        .await,
        ["\"Bern\"@de"]
    );
    assert_eq!(
        ask(
            &place,
            "SELECT ?name FROM e:g FROM e:stored { ?who e:boss/e:name ?name }"
        )
        .await,
        ["\"Cy\""]
    );
    assert_eq!(
        ask(
            &place,
            "SELECT ?g FROM NAMED e:g { GRAPH ?g { ?s e:place ?o } }"
        )
        .await,
        ["<g>"]
    );
    assert_eq!(
        ask(
            &place,
            "ASK FROM NAMED e:stored { GRAPH e:g { ?s e:place ?o } }"
        )
        .await,
        ["false"]
    );
    assert_eq!(
        ask(&place, "SELECT ?s { ?s ?p ?o }").await,
        [""; 0],
        "the default graph has none of it"
    );
    let refused = place
        .ask("SELECT * { GRAPH <http://e/g> { ?a <http://e/boss>* ?b } }")
        .await;
    assert!(refused.unwrap_err().contains("a path with *"));
    // A list is such a path, and not a predicate that nothing has.
    let refused = place
        .ask("SELECT * { GRAPH <http://e/g> { ?l <http://jena.apache.org/ARQ/list#member> ?m } }")
        .await;
    assert!(refused.unwrap_err().contains("a path with *"));
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_are_read_as_they_are_in_the_state_that_is_asked() {
    let place = place().await;
    let query = "SELECT ?name { GRAPH e:g { ?s a e:Department ; e:name ?name } }";
    assert_eq!(ask(&place, query).await, ["\"Research\"", "\"Sales\""]);
    let before = place.engine.database().snapshot();
    place.run("insert into department values (30, 'Press', null); update department set name = 'Labs' where number = 10").await.unwrap();
    assert_eq!(
        ask(&place, query).await,
        ["\"Labs\"", "\"Press\"", "\"Sales\""]
    );
    let options = QueryOptions {
        snapshot: Some(before),
        ..QueryOptions::of_process()
    };
    let of_then = place
        .ask_with(&format!("PREFIX e: <http://e/> {query}"), &options)
        .await
        .unwrap();
    assert_eq!(of_then, ["\"Research\"", "\"Sales\""]);
    // What does not fit any more says so; what is gone is no graph.
    place.run("drop table tag").await.unwrap();
    let refused = place
        .ask(&format!("PREFIX e: <http://e/> {query}"))
        .await
        .unwrap_err();
    assert!(
        refused.contains("there is no table public.tag"),
        "{refused}"
    );
    place.run("drop graph mapping 'http://e/g'").await.unwrap();
    assert_eq!(ask(&place, query).await, [""; 0]);
    assert_eq!(ask(&place, "SELECT ?g { GRAPH ?g {} }").await, [""; 0]);
}

/// Small numbers, always the same.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }

    fn of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }
}

/// A basic graph pattern, with filters and optional parts.
fn random_pattern(numbers: &mut Numbers) -> String {
    const VARIABLES: [&str; 4] = ["?a", "?b", "?c", "?d"];
    const PREDICATES: [&str; 9] = [
        "e:name",
        "e:salary",
        "e:department",
        "e:place",
        "e:tag",
        "e:note",
        "a",
        "?p",
        "e:none",
    ];
    const SUBJECTS: [&str; 4] = [
        "e:employee\\/1",
        "e:employee\\/2",
        "e:department\\/20",
        "e:nobody",
    ];
    const OBJECTS: [&str; 8] = [
        "\"Ann\"",
        "700",
        "\"700\"^^xsd:decimal",
        "\"x\"",
        "\"Bern\"@de",
        "e:department\\/20",
        "e:Employee",
        "\"Sales\"",
    ];
    const FILTERS: [&str; 9] = [
        "?b > 100",
        "?b = \"x\"",
        "?a = e:employee\\/1",
        "?c != ?b",
        "isIRI(?b)",
        "sameTerm(?a, ?a)",
        "STRLEN(STR(?b)) > 2",
        "700 >= ?c",
        "BOUND(?d)",
    ];
    let mut text = String::new();
    let triples = |numbers: &mut Numbers, text: &mut String| {
        for _ in 0..=numbers.below(3) {
            let subject = match numbers.below(6) {
                0 => numbers.of(&SUBJECTS),
                1 => numbers.of(&VARIABLES),
                _ => "?a",
            };
            let object = match numbers.below(4) {
                0 => numbers.of(&OBJECTS),
                _ => numbers.of(&VARIABLES),
            };
            text.push_str(&format!(
                "{subject} {} {object} . ",
                numbers.of(&PREDICATES)
            ));
        }
    };
    triples(numbers, &mut text);
    if numbers.below(3) == 0 {
        text.push_str("OPTIONAL { ");
        triples(numbers, &mut text);
        if numbers.below(2) == 0 {
            text.push_str(&format!("FILTER({}) ", numbers.of(&FILTERS)));
        }
        text.push_str("} ");
    }
    if numbers.below(4) == 0 {
        text.push_str("{ ");
        triples(numbers, &mut text);
        text.push_str("} UNION { ");
        triples(numbers, &mut text);
        text.push_str("} ");
    }
    if numbers.below(5) == 0 {
        text.push_str("FILTER NOT EXISTS { ");
        triples(numbers, &mut text);
        text.push_str("} ");
    }
    if numbers.below(2) == 0 {
        text.push_str(&format!("FILTER({}) ", numbers.of(&FILTERS)));
    }
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_answers_as_the_mapped_graph_does() {
    const QUERIES: usize = 400;
    let mut numbers = Numbers(7);
    for round in 0..3 {
        let place = place().await;
        for id in 5..30 {
            let name = ["'Ann'", "'x'", "null", "'Sales'"][numbers.below(4)];
            let (salary, department) = (
                numbers.below(4) * 350,
                ["10", "20", "null"][numbers.below(3)],
            );
            let (employee, word) = (numbers.below(8), numbers.of(&["x", "y", "Ann"]));
            place
                .run(&format!(
                    "insert into employee values ({id}, {name}, {salary}, {department}); insert into tag values ({employee}, '{word}')"
                ))
                .await
                .unwrap();
        }
        place
            .run("materialize graph 'http://e/g' into 'http://e/copy'")
            .await
            .unwrap();
        for number in 0..QUERIES {
            let pattern = random_pattern(&mut numbers);
            let distinct = if numbers.below(4) == 0 {
                "DISTINCT "
            } else {
                ""
            };
            let of = |graph: &str| {
                format!(
                    "PREFIX e: <http://e/> SELECT {distinct}?a ?b ?c ?d ?p {{ GRAPH <http://e/{graph}> {{ {pattern} }} }}"
                )
            };
            let (mapped, copy) = (place.ask(&of("g")).await, place.ask(&of("copy")).await);
            assert_eq!(mapped, copy, "round {round}, query {number}: {pattern}");
        }
    }
}
