//! Tests of `SERVICE` against `GRAPH` over the same data, and of its failures.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::endpoints;
use crate::random;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::{Answer, Fixture, PREFIXES};
use endpoints::Endpoints;
use futures::future::BoxFuture;
use orrery_sparql::service::{RemoteAnswer, RemoteEndpoints, RemoteFailure, ServiceOptions};
use orrery_sparql::{EngineOptions, QueryError};
use random::Random;
use sparesults::QueryResultsFormat;
use tokio::sync::Barrier;

const DATA: &str = r#"
@prefix : <http://example.org/> .
:a :p :b, :c ; :q 1 ; :r :a ; :at :g1 .
:b :p :c ; :q 2 ; :r :c ; :at :g1, :g2 .
:c :p :a ; :q 3, 1 ; :name "quote \" and \\ and \n", "hi"@en-GB .
:d :q 2 ; :r :b, :d ; :at "text" .
:e :p :e ; :s 1, 2 .
_:x :p :c ; :q 5 .
:g1 { :a :p :b ; :q 3 . :b :r :d ; :p _:y . _:y :q 3 . :c :name "quote \" and \\ and \n" ; :q 1 . }
:g2 { :a :p :c . :c :q 1 ; :s 2 ; :name "hi"@en-GB, "hi" . :b :p _:z . _:z :q 4 . }
"#;

fn fixture(
    configure: impl FnOnce(&mut Endpoints, &mut ServiceOptions),
) -> (Fixture, Arc<Endpoints>) {
    let dataset = Fixture::new(DATA).dataset;
    let mut endpoints = Endpoints::new(dataset, QueryResultsFormat::Json);
    let mut service = ServiceOptions::new(Arc::new(Endpoints::new(
        oxrdf::Dataset::new(),
        QueryResultsFormat::Json,
    )));
    configure(&mut endpoints, &mut service);
    let endpoints = Arc::new(endpoints);
    let asked = Arc::clone(&endpoints);
    service.endpoints = endpoints;
    let options = EngineOptions {
        service: Some(service),
        ..EngineOptions::default()
    };
    (Fixture::with_options(DATA, options), asked)
}

fn query(text: &str) -> String {
    format!("{PREFIXES}{text}")
}

/// Blank nodes of an answer are new ones: their labels do not count.
fn without_labels(answer: Answer) -> Answer {
    let Answer::Solutions(rows) = answer.sorted() else {
        panic!("no solutions");
    };
    let rows = rows.into_iter().map(|row| {
        let words = row.split(' ').map(|word| match word.find("=_:") {
            Some(at) => word[..at + 3].to_owned(),
            None => word.to_owned(),
        });
        words.collect::<Vec<_>>().join(" ")
    });
    Answer::Solutions(rows.collect()).sorted()
}

/// Our answer, and that of the oracle over the same data as graphs.
fn compare(fixture: &Fixture, text: &str) -> Result<(), String> {
    let text = query(text);
    let ours = fixture
        .ask(&text)
        .map_err(|error| format!("{error} in {text}"))?;
    let oracle = fixture.oracle(&text.replace("SERVICE", "GRAPH"));
    let (ours, oracle) = (without_labels(ours), without_labels(oracle));
    if ours == oracle {
        return Ok(());
    }
    let plan = fixture.analyze(&text).unwrap_or_default();
    Err(format!(
        "{text}\nours {ours:#?}\noracle {oracle:#?}\n{plan}"
    ))
}

const QUERIES: &[&str] = &[
    "SELECT * { SERVICE :g1 { ?x :p ?y } }",
    "SELECT * { ?x :p ?y . SERVICE :g1 { ?x :q ?z } }",
    "SELECT ?x { ?x :p ?y . SERVICE :g1 { ?x ?b ?c } }",
    "SELECT * { ?x :name ?n . SERVICE :g2 { ?y :name ?n } }",
    "SELECT * { ?x :name ?n . SERVICE :g1 { ?y :name ?n } }",
    "SELECT * { SERVICE :g1 { ?x :p ?y } SERVICE :g2 { ?x :p ?z } }",
    "SELECT * { ?x :p ?y OPTIONAL { SERVICE :g1 { ?x :q ?z } } }",
    "SELECT * { ?x :p ?y OPTIONAL { SERVICE :g1 { ?x :q ?z } FILTER(?z > 2) } }",
    "SELECT * { ?x :p ?y OPTIONAL { ?y :q ?z . SERVICE :g1 { ?x :q ?z } } }",
    "SELECT * { ?x :p ?y OPTIONAL { ?x :s ?z } SERVICE :g1 { ?y :q ?z } }",
    "SELECT * { ?x :p ?y OPTIONAL { ?x :s ?z } SERVICE :g2 { ?y :p ?v OPTIONAL { ?y :s ?z } } }",
    "SELECT * { ?x :p ?y { SERVICE :g1 { ?x :q ?z } } UNION { SERVICE :g2 { ?y :q ?z } } }",
    "SELECT * { ?x :p ?y MINUS { SERVICE :g1 { ?x :p ?y } } }",
    "SELECT * { ?x :p ?y MINUS { SERVICE :g1 { ?x :q 3 OPTIONAL { ?x :p ?y } } } }",
    "SELECT * { ?x :p ?y FILTER EXISTS { SERVICE :g1 { ?x :q ?z } } }",
    "SELECT * { ?x :p ?y FILTER NOT EXISTS { SERVICE :g1 { ?x :q ?z } } }",
    "SELECT * { ?x :p ?y BIND(EXISTS { SERVICE :g1 { ?x :q ?z } } AS ?e) }",
    "SELECT * { ?x :p ?y { SELECT ?x { ?x :q ?h . SERVICE :g1 { ?x :q ?z } } } }",
    "SELECT * { ?x :p ?y { SELECT ?y { SERVICE :g1 { ?y :q ?x } } } }",
    "SELECT * { ?x :p ?y . SERVICE :g1 { SELECT ?x (COUNT(*) AS ?n) { ?x ?p ?o } GROUP BY ?x } }",
    "SELECT * { ?x :p ?y . SERVICE :g2 { SELECT DISTINCT ?x { { SELECT DISTINCT ?x ?p { ?x ?p ?o } } } } }",
    "SELECT * { ?x :p ?y . SERVICE :g2 { SELECT ?x (1 AS ?one) { { SELECT DISTINCT ?x { ?x ?p ?o } } } } }",
    "SELECT * { ?x :p ?y . SERVICE :g1 { SELECT ?x ?o { ?x ?p ?o } ORDER BY ?x ?o LIMIT 2 } }",
    "SELECT * { ?x :p ?y . SERVICE :g1 { ?x ?p ?z FILTER(isIRI(?z)) OPTIONAL { ?z :r ?w } } }",
    "SELECT * { ?x :p ?y . SERVICE :g1 { { ?x ?p ?z FILTER(bound(?w)) } OPTIONAL { ?z :r ?w } } }",
    "SELECT * { ?x :p ?y . SERVICE :g1 { { ?x ?p ?z FILTER(!bound(?w)) } ?w :q ?v } }",
    "SELECT * { ?x :p ?y . SERVICE :g1 { ?x ?p ?z { ?z ?q ?w OPTIONAL { ?w ?q ?x } } ?w ?r ?v } }",
    "SELECT * { ?x :p ?y . SERVICE :g1 { ?x ?p ?z OPTIONAL { { ?z ?q ?w FILTER(bound(?x)) } FILTER(bound(?x)) } } }",
    "SELECT * { ?x :p ?y . SERVICE :g1 { ?x ?p ?z MINUS { ?z ?q ?w FILTER(!bound(?x)) } } }",
    "SELECT * { ?x :p ?y . SERVICE :g1 { { ?x ?p ?z FILTER(!bound(?v)) } BIND(1 AS ?v) } }",
    "SELECT * { ?x :p ?y . SERVICE :g1 { ?x ?p ?z FILTER EXISTS { { ?z ?q ?w FILTER(!bound(?k)) } ?w :r ?k } } }",
    "SELECT * { ?x :p ?y . SERVICE :g1 { ?x ?p ?z . GRAPH :g2 { ?x ?q ?w } } }",
    "SELECT * { ?x :p ?y . SERVICE :g1 { ?x ?p ?z . SERVICE :g2 { ?x ?q ?w } } }",
    "SELECT * { ?x :p ?y . SERVICE :g1 { ?x :p/:q ?z } }",
    "SELECT * { ?x :p ?y . SERVICE :g1 { :a :p :b } }",
    "SELECT * { ?x :p ?y . SERVICE :g1 { :a :p :nothing } }",
    "SELECT * { VALUES (?x ?y) { (:a UNDEF) (UNDEF 3) (:a 3) (UNDEF UNDEF) } SERVICE :g1 { ?x :q ?y } }",
    "SELECT * { VALUES (?x ?y) { (:a 3) (:a 3) (:b 4) } SERVICE :g1 { ?x ?p ?o OPTIONAL { ?x :q ?y } } }",
    "SELECT * { SERVICE :g1 { VALUES (?x ?y) { (:a UNDEF) (UNDEF 1) } } ?x :q ?y }",
    "SELECT * { ?x :at ?g FILTER(isIRI(?g)) . { ?y :p ?z } . SERVICE :g1 { ?x :q ?w } FILTER(?w = 3) }",
    "SELECT (COUNT(*) AS ?n) { ?x :p ?y . SERVICE :g1 { ?x ?q ?z } }",
    "SELECT ?x (COUNT(?z) AS ?n) { ?x :p ?y OPTIONAL { SERVICE :g1 { ?x ?q ?z } } } GROUP BY ?x",
    "SELECT * { { ?x :at ?g FILTER(isIRI(?g)) } SERVICE ?g { ?x ?p ?o } }",
    "SELECT * { { ?x :at ?g FILTER(isIRI(?g)) } SERVICE ?g { ?z :q ?o } }",
    "SELECT * { BIND(:g2 AS ?g) SERVICE ?g { ?z :q ?o } }",
    "SELECT * { VALUES ?g { :g1 :g2 :g1 } SERVICE ?g { ?z :q ?o } }",
    "SELECT * { VALUES ?g { :g1 :g2 } { SERVICE ?g { ?z :q ?o } } UNION { SERVICE ?g { ?z :s ?o } } }",
];

#[test]
fn service_answers_as_a_graph_of_the_same_data() {
    for format in [
        QueryResultsFormat::Json,
        QueryResultsFormat::Xml,
        QueryResultsFormat::Tsv,
    ] {
        for block_keys in [1, 2, 1000] {
            let (fixture, _) = fixture(|endpoints, options| {
                endpoints.format = format;
                options.block_keys_max = block_keys;
            });
            let failures: Vec<String> = QUERIES
                .iter()
                .filter_map(|text| compare(&fixture, text).err())
                .collect();
            assert!(
                failures.is_empty(),
                "{} differ, {format:?}, {block_keys} keys:\n{}",
                failures.len(),
                failures.join("\n\n")
            );
        }
    }
}

fn triple(random: &mut Random, text: &mut String) {
    let subject = random.pick(&["?v", "?w", "?x", "?x", ":a", ":b"]);
    let predicate = random.pick(&[":p", ":q", ":r", ":s"]);
    let object = random.pick(&["?v", "?w", "?y", "?y", "?x", ":c", "1"]);
    let _ = write!(text, "{subject} {predicate} {object} . ");
}

fn group(random: &mut Random, depth: usize, text: &mut String) {
    triple(random, text);
    for _ in 0..random.below(4) {
        let before: &[&str] = match random.below(if depth == 0 { 2 } else { 9 }) {
            0 => {
                triple(random, text);
                continue;
            }
            1 => {
                let name = random.pick(&["?v", "?w", "?x", "?y"]);
                let test = random.pick(&["bound", "isIRI", "!bound"]);
                let _ = write!(text, "FILTER({test}({name})) ");
                continue;
            }
            2 => &["OPTIONAL "],
            3 => &["MINUS "],
            4 => &["", "UNION "],
            5 => &["{ SELECT ?x ?y "],
            6 => &["OPTIONAL { SERVICE :g1 "],
            7 => &["SERVICE :g2 "],
            _ => &["SERVICE :g1 "],
        };
        for before in before {
            let _ = write!(text, "{before}{{ ");
            group(random, depth - 1, text);
            let ends = 1 + before.matches('{').count();
            let _ = write!(text, "{}", "} ".repeat(ends));
        }
    }
}

#[test]
fn random_queries_with_service_answer_as_with_graph() {
    let (fixture, endpoints) = fixture(|_, options| options.block_keys_max = 3);
    let mut failures = Vec::new();
    for run in 0..1_500 {
        let mut text = "SELECT * { ".to_owned();
        group(&mut Random(run << 20), 3, &mut text);
        text.push('}');
        if let Err(message) = compare(&fixture, &text) {
            failures.push(message);
        }
    }
    failures.sort_by_key(String::len);
    let count = failures.len();
    failures.truncate(5);
    assert!(count == 0, "{count} differ:\n{}", failures.join("\n\n"));
    assert!(
        endpoints.asked.lock().unwrap().len() > 500,
        "endpoints were asked"
    );
}

fn solutions(fixture: &Fixture, text: &str) -> Vec<String> {
    match fixture.ask(&query(text)).unwrap().sorted() {
        Answer::Solutions(rows) => rows,
        other => panic!("{other:?}"),
    }
}

fn error(fixture: &Fixture, text: &str) -> QueryError {
    fixture.ask(&query(text)).unwrap_err()
}

#[test]
fn a_silent_failure_is_one_solution_without_bindings() {
    let (fixture, _) = fixture(|endpoints, _| endpoints.cut_bytes = 150);
    for endpoint in [":dead", ":broken"] {
        let text = format!("SELECT * {{ ?x :s ?y . SERVICE SILENT {endpoint} {{ ?x ?p ?o }} }}");
        let rows = solutions(&fixture, &text);
        assert_eq!(
            rows,
            solutions(&fixture, "SELECT * { ?x :s ?y }"),
            "{endpoint}"
        );
        let text = format!("SELECT * {{ SERVICE SILENT {endpoint} {{ ?x ?p ?o }} }}");
        assert_eq!(solutions(&fixture, &text), [""], "{endpoint}");
        let loud = text.replace("SILENT ", "");
        let error = error(&fixture, &loud);
        assert!(matches!(error, QueryError::Service { .. }), "{error}");
        assert!(error.to_string().contains(&endpoint[1..]), "{error}");
    }
    // Only the rows of the endpoint that failed are without.
    let rows = solutions(
        &fixture,
        "SELECT ?g ?n { VALUES ?g { :g1 :dead 7 } SERVICE SILENT ?g { :c :q ?n } }",
    );
    let g = "g=<http://example.org/";
    let integer = "\"^^<http://www.w3.org/2001/XMLSchema#integer>";
    let expected = [
        format!("g=\"7{integer}"),
        format!("{g}dead>"),
        format!("{g}g1> n=\"1{integer}"),
    ];
    assert_eq!(rows, expected);
    // MINUS of a failure removes nothing, for it shares no variable.
    let rows = solutions(
        &fixture,
        "SELECT * { ?x :s ?y MINUS { SERVICE SILENT :dead { ?x ?p ?o } } }",
    );
    assert_eq!(rows.len(), 2);
}

#[test]
fn a_failure_inside_of_a_shared_part_is_still_told_as_such() {
    let (fixture, _) = fixture(|_, _| {});
    let text = "SELECT * { ?x :p ?y OPTIONAL { SERVICE :dead { ?x :q ?z } } }";
    let error = error(&fixture, text);
    assert!(matches!(error, QueryError::Service { .. }), "{error}");
    let text = "SELECT * { SERVICE :dead { ?x :q ?z } OPTIONAL { SERVICE :g1 { ?x :q ?z } } }";
    let error = fixture.ask(&query(text)).unwrap_err();
    assert!(matches!(error, QueryError::Service { .. }), "{error}");
}

#[test]
fn keys_are_sent_in_blocks_that_grow() {
    let (fixture, endpoints) = fixture(|_, options| options.block_keys_max = 20);
    let values: String = (0..50).map(|n| format!("{n} {n} ")).collect();
    let text = format!("SELECT * {{ VALUES ?n {{ {values} }} SERVICE :g1 {{ ?x :q ?n }} }}");
    assert_eq!(solutions(&fixture, &text).len(), 6);
    let asked = endpoints.asked.lock().unwrap();
    let keys: Vec<usize> = asked
        .iter()
        .map(|text| text.matches("XMLSchema#").count())
        .collect();
    let sum: usize = keys.iter().sum();
    assert_eq!(sum, 50, "each distinct key is sent once: {asked:?}");
    assert_eq!(keys, [2, 4, 8, 16, 20]);
}

/// Answers the first request at once, and each further one with three others that are under way.
#[derive(Debug)]
struct ByFour {
    inner: Endpoints,
    asked: AtomicUsize,
    waiting: Arc<AtomicUsize>,
    waiting_max: AtomicUsize,
    four: Arc<Barrier>,
}

impl RemoteEndpoints for ByFour {
    fn ask(
        &self,
        endpoint: &str,
        query: String,
        accept: &'static str,
    ) -> BoxFuture<'static, Result<RemoteAnswer, RemoteFailure>> {
        let answer = self.inner.ask(endpoint, query, accept);
        if self.asked.fetch_add(1, Ordering::SeqCst) == 0 {
            return answer;
        }
        let waiting = Arc::clone(&self.waiting);
        let now = waiting.fetch_add(1, Ordering::SeqCst) + 1;
        self.waiting_max.fetch_max(now, Ordering::SeqCst);
        let four = Arc::clone(&self.four);
        Box::pin(async move {
            let met = tokio::time::timeout(Duration::from_secs(20), four.wait()).await;
            waiting.fetch_sub(1, Ordering::SeqCst);
            met.map_err(|_| RemoteFailure::new("there were never four requests"))?;
            answer.await
        })
    }
}

#[test]
fn four_requests_are_under_way_at_a_time() {
    let by_four = Arc::new(ByFour {
        inner: Endpoints::new(Fixture::new(DATA).dataset, QueryResultsFormat::Json),
        asked: AtomicUsize::new(0),
        waiting: Arc::default(),
        waiting_max: AtomicUsize::new(0),
        four: Arc::new(Barrier::new(4)),
    });
    let mut service = ServiceOptions::new(Arc::clone(&by_four) as Arc<dyn RemoteEndpoints>);
    service.block_keys_max = 10;
    let options = EngineOptions {
        service: Some(service),
        ..EngineOptions::default()
    };
    let fixture = Fixture::with_options(DATA, options);
    // Blocks of 1, 2, 4, 8 and five times 10 keys: one request, and twice four.
    let values: String = (0..65).map(|n| format!("{n} ")).collect();
    let text = format!("SELECT * {{ VALUES ?n {{ {values} }} SERVICE :g1 {{ ?x :q ?n }} }}");
    assert_eq!(solutions(&fixture, &text).len(), 3);
    assert_eq!(by_four.asked.load(Ordering::SeqCst), 9);
    assert_eq!(by_four.waiting_max.load(Ordering::SeqCst), 4);
}

#[test]
fn blank_nodes_are_neither_sent_nor_mixed_up() {
    let (fixture, endpoints) = fixture(|_, _| {});
    // Our _:x meets no blank node of theirs, and is not asked for.
    let rows = solutions(&fixture, "SELECT * { ?x :q 5 . SERVICE :g1 { ?x :q ?z } }");
    assert!(rows.is_empty(), "{rows:?}");
    assert!(endpoints.asked.lock().unwrap().is_empty());
    // Theirs are the same node within one answer, and none of another one.
    let one = "SELECT * { SERVICE :g1 { ?s :p ?b . ?b :q ?n } FILTER isBlank(?b) }";
    assert_eq!(solutions(&fixture, one).len(), 1);
    let two = "SELECT * { SERVICE :g1 { ?s :p ?b } SERVICE :g1 { ?b :q ?n } FILTER isBlank(?b) }";
    assert!(solutions(&fixture, two).is_empty());
    let ours = "SELECT * { SERVICE :g1 { ?s :p ?b } ?b :q ?n FILTER isBlank(?b) }";
    assert!(solutions(&fixture, ours).is_empty());
}

#[test]
fn what_cannot_be_asked_is_an_error_that_says_why() {
    let (fixture, _) = fixture(|_, options| options.answer_rows_max = 3);
    let message = error(&fixture, "SELECT * { SERVICE :g1 { ?x ?p ?o } }").to_string();
    assert!(message.contains("more than 3 solutions"), "{message}");
    let message = error(&fixture, "SELECT * { SERVICE ?g { ?x ?p ?o } }").to_string();
    assert!(message.contains("nothing before it binds ?g"), "{message}");
    let message = error(&fixture, "SELECT * { :d :at ?g SERVICE ?g { :a :p ?o } }").to_string();
    assert!(message.contains("not an IRI"), "{message}");
    let off = Fixture::new(DATA);
    let message = error(&off, "SELECT * { SERVICE :g1 { ?x ?p ?o } }").to_string();
    assert!(message.contains("--service-allow"), "{message}");
    let silent = "SELECT * { ?x :s ?y SERVICE SILENT :g1 { ?x ?p ?o } }";
    assert_eq!(solutions(&off, silent).len(), 2);
}

#[test]
fn a_limit_stops_asking() {
    let (fixture, endpoints) = fixture(|_, options| options.block_keys_max = 10);
    let text = "SELECT * { VALUES ?n { 1 2 3 4 5 6 7 8 } SERVICE :g1 { ?x :q ?n } } LIMIT 1";
    assert_eq!(solutions(&fixture, text).len(), 1);
    assert_eq!(endpoints.asked.lock().unwrap().len(), 1);
}

#[test]
fn a_plan_shows_whom_it_asks_and_what_it_sends() {
    let (fixture, _) = fixture(|_, _| {});
    let text = query("SELECT * { ?x :p ?y . SERVICE SILENT :g1 { ?x :q ?z } }");
    let plan = fixture.analyze(&text).unwrap();
    let line = plan
        .lines()
        .find(|line| line.contains("ServiceExec"))
        .unwrap();
    assert!(line.contains("silent :g1, sends ?x, { ?x :q ?z"), "{plan}");
}
