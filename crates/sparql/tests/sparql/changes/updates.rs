//! Tests of random updates against a set of quads, with `spareval` for the `WHERE`s.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeSet;
use std::sync::Arc;

use orrery_sparql::{Engine, EngineOptions, QueryError, QueryOptions, UpdateOptions};
use orrery_storage::{
    Asker, CommitOptions, Database, Durability, Error, GraphNames, Permutation, ReadScope,
    SmallQuad, Writer, WriterOptions, build_small,
};
use orrery_term::Term as TermOf;
use oxrdf::{Dataset, GraphName, NamedNode, Quad, Term};
use proptest::prelude::*;
use spareval::{QueryEvaluator, QueryResults};
use spargebra::SparqlParser;

/// A quad of the model, as N-Quads without blank nodes.
type Line = String;

fn iri(name: &str) -> String {
    format!("<http://e/{name}>")
}

/// The naive evaluator.
#[derive(Default)]
struct Model {
    dataset: Dataset,
}

impl Model {
    fn lines(&self) -> BTreeSet<Line> {
        self.dataset
            .iter()
            .map(|quad| format!("{quad} ."))
            .collect()
    }

    fn apply(&mut self, step: &Step) {
        match step {
            Step::Insert(quads) => {
                for quad in quads {
                    self.dataset.insert(&quad.parsed());
                }
            }
            Step::Delete(quads) => {
                for quad in quads {
                    self.dataset.remove(&quad.parsed());
                }
            }
            Step::Modify {
                from,
                graph,
                to,
                to_graph,
            } => {
                let solutions = self.solutions(&pattern(from, graph));
                let (mut gone, mut come) = (Vec::new(), Vec::new());
                for (s, o) in solutions {
                    let quad = |predicate: &str, graph: &Option<String>| {
                        let subject = NamedNode::new_unchecked(&s);
                        let predicate = NamedNode::new_unchecked(format!("http://e/{predicate}"));
                        Quad::new(subject, predicate, o.clone(), graph_name(graph))
                    };
                    gone.push(quad(from, graph));
                    come.push(quad(to, to_graph));
                }
                for quad in &gone {
                    self.dataset.remove(quad);
                }
                for quad in &come {
                    self.dataset.insert(quad);
                }
            }
            Step::Clear(target) | Step::DeleteAll(target) => {
                let all: Vec<Quad> = self.dataset.iter().map(|quad| quad.into_owned()).collect();
                for quad in all {
                    let is_named = quad.graph_name != GraphName::DefaultGraph;
                    let goes = match target {
                        Target::All => true,
                        Target::Named => is_named,
                        Target::Graph(graph) => quad.graph_name == graph_name(graph),
                    };
                    if goes {
                        self.dataset.remove(&quad);
                    }
                }
            }
        }
    }

    fn solutions(&self, pattern: &str) -> Vec<(String, Term)> {
        let text = format!("SELECT ?s ?o {{ {pattern} }}");
        let query = SparqlParser::new().parse_query(&text).unwrap();
        let evaluator = QueryEvaluator::new();
        let results = evaluator.prepare(&query).execute(&self.dataset).unwrap();
        let QueryResults::Solutions(solutions) = results else {
            panic!("a SELECT");
        };
        solutions
            .map(|solution| {
                let solution = solution.unwrap();
                let Some(Term::NamedNode(s)) = solution.get("s") else {
                    panic!("a subject");
                };
                (s.as_str().to_owned(), solution.get("o").unwrap().clone())
            })
            .collect()
    }
}

#[derive(Clone, Debug)]
struct Statement {
    subject: u8,
    predicate: u8,
    object: u8,
    graph: Option<String>,
}

impl Statement {
    fn parsed(&self) -> Quad {
        let object: Term = match self.object {
            n @ 0..4 => NamedNode::new_unchecked(format!("http://e/s{n}")).into(),
            n @ 4..8 => oxrdf::Literal::from(i64::from(n)).into(),
            n => {
                oxrdf::Literal::new_simple_literal(format!("a text that is long enough {n}")).into()
            }
        };
        Quad::new(
            NamedNode::new_unchecked(format!("http://e/s{}", self.subject)),
            NamedNode::new_unchecked(format!("http://e/p{}", self.predicate)),
            object,
            graph_name(&self.graph),
        )
    }

    fn text(&self) -> String {
        let quad = self.parsed();
        let triple = format!("{} {} {} .", quad.subject, quad.predicate, quad.object);
        in_graph(&triple, &self.graph)
    }
}

fn graph_name(graph: &Option<String>) -> GraphName {
    match graph {
        Some(name) => NamedNode::new_unchecked(format!("http://e/{name}")).into(),
        None => GraphName::DefaultGraph,
    }
}

fn in_graph(triples: &str, graph: &Option<String>) -> String {
    match graph {
        Some(name) => format!("GRAPH {} {{ {triples} }}", iri(name)),
        None => triples.to_owned(),
    }
}

fn pattern(predicate: &str, graph: &Option<String>) -> String {
    in_graph(&format!("?s {} ?o .", iri(predicate)), graph)
}

#[derive(Clone, Debug)]
enum Target {
    All,
    Named,
    Graph(Option<String>),
}

#[derive(Clone, Debug)]
enum Step {
    Insert(Vec<Statement>),
    Delete(Vec<Statement>),
    /// Statements of one predicate and graph become those of another.
    Modify {
        from: String,
        graph: Option<String>,
        to: String,
        to_graph: Option<String>,
    },
    Clear(Target),
    /// The same by patterns that match everything.
    DeleteAll(Target),
}

impl Step {
    fn text(&self) -> String {
        let block = |quads: &[Statement]| {
            let lines: Vec<String> = quads.iter().map(Statement::text).collect();
            lines.join("\n")
        };
        match self {
            Self::Insert(quads) => format!("INSERT DATA {{ {} }}", block(quads)),
            Self::Delete(quads) => format!("DELETE DATA {{ {} }}", block(quads)),
            Self::Modify {
                from,
                graph,
                to,
                to_graph,
            } => format!(
                "DELETE {{ {} }} INSERT {{ {} }} WHERE {{ {} }}",
                pattern(from, graph),
                pattern(to, to_graph),
                pattern(from, graph)
            ),
            Self::Clear(Target::All) => "CLEAR ALL".to_owned(),
            Self::Clear(Target::Named) => "DROP NAMED".to_owned(),
            Self::Clear(Target::Graph(None)) => "CLEAR DEFAULT".to_owned(),
            Self::Clear(Target::Graph(Some(name))) => format!("DROP GRAPH {}", iri(name)),
            Self::DeleteAll(Target::All) => {
                "DELETE WHERE { ?s ?p ?o } ; DELETE WHERE { GRAPH ?g { ?s ?p ?o } }".to_owned()
            }
            Self::DeleteAll(Target::Named) => {
                "DELETE { GRAPH ?g { ?a ?b ?c } } WHERE { GRAPH ?g { ?a ?b ?c } }".to_owned()
            }
            Self::DeleteAll(Target::Graph(graph)) => {
                format!("DELETE WHERE {{ {} }}", in_graph("?s ?p ?o", graph))
            }
        }
    }
}

fn graph() -> impl Strategy<Value = Option<String>> {
    prop_oneof![
        Just(None),
        Just(Some("g1".to_owned())),
        Just(Some("g2".to_owned()))
    ]
}

fn statements() -> impl Strategy<Value = Vec<Statement>> {
    let statement = (0..4_u8, 0..3_u8, 0..12_u8, graph()).prop_map(|(s, p, o, graph)| Statement {
        subject: s,
        predicate: p,
        object: o,
        graph,
    });
    prop::collection::vec(statement, 0..12)
}

fn step() -> impl Strategy<Value = Step> {
    let predicate = || (0..3_u8).prop_map(|n| format!("p{n}"));
    prop_oneof![
        4 => statements().prop_map(Step::Insert),
        2 => statements().prop_map(Step::Delete),
        2 => (predicate(), graph(), predicate(), graph()).prop_map(|(from, graph, to, to_graph)| {
            Step::Modify { from, graph, to, to_graph }
        }),
        1 => prop_oneof![
            Just(Target::All),
            Just(Target::Named),
            graph().prop_map(Target::Graph)
        ].prop_flat_map(|target| prop_oneof![
            Just(Step::Clear(target.clone())),
            Just(Step::DeleteAll(target)),
        ]),
    ]
}

struct Store {
    _directory: tempfile::TempDir,
    engine: Engine,
    writer: Writer,
    runtime: tokio::runtime::Runtime,
}

impl Store {
    fn new() -> Self {
        Self::over(&[], WriterOptions::default(), EngineOptions::default())
    }

    /// A base with some quads.
    fn over(quads: &[SmallQuad], options: WriterOptions, engine: EngineOptions) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let database = Arc::new(build_small(directory.path(), quads).unwrap());
        let writer = database.open_writer(options).unwrap();
        Self {
            engine: Engine::new(database, engine).unwrap(),
            _directory: directory,
            writer,
            runtime: tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap(),
        }
    }

    /// Commits, or rolls back.
    fn apply(&self, text: &str, is_committed: bool) {
        self.try_apply(text, is_committed).expect(text);
    }

    fn try_apply(&self, text: &str, is_committed: bool) -> Result<(), QueryError> {
        let options = UpdateOptions::of_process();
        let update = self.engine.prepare_update(text, &options)?;
        let mut transaction = self.writer.begin().unwrap();
        self.runtime
            .block_on(self.engine.apply(&update, &options, &mut transaction))?;
        if is_committed {
            let options = CommitOptions {
                durability: Durability::Relaxed,
                ..CommitOptions::default()
            };
            transaction.commit(options).unwrap().wait().unwrap();
        }
        Ok(())
    }

    fn lines(&self) -> BTreeSet<Line> {
        let view = self.engine.database().view_of_process();
        let mut lines = BTreeSet::new();
        let mut quads = view.quads().unwrap();
        while let Some(batch) = quads.next_batch().unwrap() {
            for quad in batch.iter() {
                let graph = quad
                    .graph
                    .map(|graph| format!(" {graph}"))
                    .unwrap_or_default();
                lines.insert(format!(
                    "{} {} {}{graph} .",
                    quad.subject, quad.predicate, quad.object
                ));
            }
        }
        assert_eq!(lines.len() as u64, view.quad_count());
        lines
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Requests of one to three operations; each is committed, or rolled back and then leaves no
    /// trace.
    #[test]
    fn random_updates_do_what_the_model_does(
        requests in prop::collection::vec((prop::collection::vec(step(), 1..4), prop::bool::weighted(0.8)), 1..12),
        are_graphs_cleared_as_a_whole in any::<bool>(),
    ) {
        let mut options = WriterOptions::default();
        if are_graphs_cleared_as_a_whole {
            options.whole_graph_quads = 1;
        }
        let store = Store::over(&[], options, EngineOptions::default());
        let mut model = Model::default();
        for (steps, is_committed) in &requests {
            let text: Vec<String> = steps.iter().map(Step::text).collect();
            let text = text.join(" ;\n");
            store.apply(&text, *is_committed);
            if *is_committed {
                steps.iter().for_each(|step| model.apply(step));
            }
            prop_assert_eq!(store.lines(), model.lines(), "after {}", text);
        }
    }
}

#[test]
fn blank_nodes_are_new_where_the_specification_says_so() {
    let store = Store::new();
    let count = |text: &str| {
        store.runtime.block_on(async {
            let prepared = store
                .engine
                .prepare(text, &QueryOptions::of_process())
                .unwrap();
            match prepared.execute().await.unwrap() {
                orrery_sparql::QueryResults::Boolean(value) => value,
                _ => panic!("an ASK"),
            }
        })
    };
    // One node in one block, whichever graph; another in the next request.
    store.apply(
        "INSERT DATA { _:a <http://e/p> 1 GRAPH <http://e/g> { _:a <http://e/p> 2 } }",
        true,
    );
    assert!(count(
        "ASK { ?x <http://e/p> 1 GRAPH <http://e/g> { ?x <http://e/p> 2 } }"
    ));
    store.apply("INSERT DATA { _:a <http://e/p> 3 }", true);
    assert!(!count("ASK { ?x <http://e/p> 1, 3 }"));
    // One for each solution, shared by the template's triples, also inside of triple terms.
    store.apply(
        "INSERT { _:n <http://e/of> ?o . _:n <http://e/says> <<( _:n <http://e/q> ?b )>> } \
         WHERE { ?s <http://e/p> ?o BIND(BNODE() AS ?b) }",
        true,
    );
    assert!(count(
        "ASK { ?n <http://e/of> 1 ; <http://e/says> <<( ?n <http://e/q> ?b )>> }"
    ));
    assert!(!count("ASK { ?n <http://e/of> 1, 3 }"));
    assert!(!count(
        "ASK { ?n <http://e/says> <<( ?n <http://e/q> ?n )>> }"
    ));
}

#[test]
fn terms_that_are_computed_get_the_ids_that_they_have_in_data() {
    let store = Store::new();
    store.apply(
        "INSERT DATA { <http://e/s> <http://e/p> \"a long text\" }",
        true,
    );
    store.apply(
        "INSERT { ?s <http://e/q> ?t . ?s ?u ?t } WHERE { ?s <http://e/p> ?o \
         BIND(CONCAT(?o, \" and more\") AS ?t) BIND(IRI(\"http://e/made\") AS ?u) }",
        true,
    );
    store.apply(
        "DELETE DATA { <http://e/s> <http://e/made> \"a long text and more\" }",
        true,
    );
    let lines: Vec<Line> = store.lines().into_iter().collect();
    assert_eq!(
        lines,
        [
            "<http://e/s> <http://e/p> \"a long text\" .",
            "<http://e/s> <http://e/q> \"a long text and more\" ."
        ]
    );
}

fn small_quads(count: u64) -> Vec<SmallQuad> {
    let iri = |name: String| orrery_term::Term::iri(format!("http://e/{name}"));
    (0..count)
        .map(|number| {
            let graph = (number % 3 > 0).then(|| iri(format!("g{}", number % 3)));
            let object = iri(format!("o{}", number / 5));
            let subject = iri(format!("s{}", number % 5));
            (subject, iri("p".to_owned()), object, graph)
        })
        .collect()
}

#[test]
fn deletes_of_everything_in_a_graph_clear_it_as_a_whole_and_others_do_not() {
    let everything = [
        ("DELETE WHERE { ?s ?p ?o }", 10),
        ("DELETE { ?x ?y ?z } WHERE { ?x ?y ?z }", 10),
        ("DELETE WHERE { GRAPH <http://e/g1> { ?s ?p ?o } }", 10),
        ("DELETE WHERE { GRAPH ?g { ?s ?p ?o } }", 20),
        ("CLEAR ALL", 30),
        ("DROP NAMED", 20),
    ];
    let not_everything = [
        ("DELETE WHERE { ?s ?p ?s }", 0),
        ("DELETE WHERE { ?s <http://e/p> ?o }", 10),
        ("DELETE { ?o ?p ?s } WHERE { ?s ?p ?o }", 0),
        (
            "DELETE { ?s ?p ?o } WHERE { ?s ?p ?o FILTER(?s = <http://e/s0>) }",
            2,
        ),
        ("DELETE { ?s ?p ?o } WHERE { ?s ?p ?o . ?o ?q ?r }", 0),
        (
            "DELETE { ?s ?p ?o } WHERE { GRAPH <http://e/g1> { ?s ?p ?o } }",
            0,
        ),
        (
            "DELETE { ?s ?p ?o } USING <http://e/g1> WHERE { ?s ?p ?o }",
            0,
        ),
        (
            "DELETE { ?s ?p ?o } INSERT { ?s ?p 1 } WHERE { ?s ?p ?o }",
            5,
        ),
        (
            "DELETE { GRAPH ?p { ?s ?p ?o } } WHERE { GRAPH ?p { ?s ?p ?o } }",
            0,
        ),
    ];
    let options = WriterOptions {
        whole_graph_quads: 1,
        ..WriterOptions::default()
    };
    for (is_whole, cases) in [(true, &everything[..]), (false, &not_everything)] {
        for &(text, gone) in cases {
            let store = Store::over(&small_quads(30), options.clone(), EngineOptions::default());
            store.apply(text, true);
            let view = store.engine.database().view_of_process();
            assert_eq!(view.quad_count(), 30 - gone, "{text}");
            let spog = view.index(Permutation::Spog).unwrap();
            let hidden = if is_whole { gone } else { 0 };
            assert_eq!(spog.hidden_rows(), hidden, "{text}");
        }
    }
}

#[test]
fn changes_beyond_the_memory_are_refused_with_the_budget_and_nothing_is_changed() {
    let options = EngineOptions {
        memory_bytes: 4 << 20,
        ..EngineOptions::default()
    };
    let quads = small_quads(60_000);
    let store = Store::over(&quads, WriterOptions::default(), options);
    let insert =
        "INSERT { GRAPH <http://e/copy> { ?s ?p ?o } } WHERE { GRAPH <http://e/g1> { ?s ?p ?o } }";
    let delete = "DELETE WHERE { ?s <http://e/p> ?o }";
    for text in [insert, delete, "COPY <http://e/g1> TO <http://e/copy>"] {
        let refused = store.try_apply(text, true).unwrap_err();
        assert!(refused.to_string().contains("4 MiB"), "{refused}");
        assert_eq!(
            store.engine.database().view_of_process().quad_count(),
            60_000,
            "{text}"
        );
    }
    // What was counted is given back, and a graph of any size can be cleared.
    store.apply("INSERT DATA { <http://e/a> <http://e/b> 1 }", true);
    store.apply("DELETE WHERE { <http://e/s1> ?p <http://e/o3> }", true);
    assert_eq!(store.engine.memory_held_bytes(), 0);
}

/// Nobody says what such an asker may change (see `update_rights` for those of whom somebody does).
#[test]
fn who_may_not_see_all_graphs_changes_nothing() {
    let store = Store::over(
        &small_quads(100),
        WriterOptions::default(),
        EngineOptions::default(),
    );
    let before = store.lines();
    let visible = GraphNames {
        has_default: true,
        named: [TermOf::iri("http://e/g1")].into(),
        ..GraphNames::default()
    };
    let options = UpdateOptions::of(ReadScope::only(Asker::Anonymous, visible));
    for text in [
        "CLEAR ALL",
        "CLEAR GRAPH <http://e/g1>",
        "DROP NAMED",
        "DELETE WHERE { GRAPH ?g { ?s ?p ?o } }",
        "DELETE WHERE { ?s ?p ?o }",
        "INSERT DATA { GRAPH <http://e/g2> { <http://e/a> <http://e/b> 1 } }",
        "DELETE DATA { <http://e/a> <http://e/b> 1 }",
        "CREATE GRAPH <http://e/g2>",
    ] {
        // Before documents are fetched, and where it is applied whoever read it.
        let is_refused = |error| match error {
            QueryError::Storage(Error::HiddenGraphs { .. }) => {}
            other => panic!("{text}: {other}"),
        };
        is_refused(store.engine.prepare_update(text, &options).expect_err(text));
        let update = store.engine.parse_update(text, &options).unwrap();
        let mut transaction = store.writer.begin().unwrap();
        let applied = store.engine.apply(&update, &options, &mut transaction);
        is_refused(store.runtime.block_on(applied).expect_err(text));
        transaction
            .commit(CommitOptions::default())
            .unwrap()
            .wait()
            .unwrap();
        assert_eq!(store.lines(), before, "{text}");
    }
}

/// Tags that a modification computes: each as it came first, unless the database or the update's
/// text has it already.
#[test]
fn language_tags_that_an_update_computes_are_kept_as_they_came_first() {
    let store = Store::new();
    store.apply("INSERT DATA { <http://e/s> <http://e/p> 'a'@it }", true);
    store.apply(
        "INSERT { <http://e/s> <http://e/p> ?o } WHERE { \
         VALUES (?t ?l) { ('a' 'fr-CA') ('b' 'FR-ca') ('c' 'fr-ca') ('d' 'IT') ('e' 'nl') ('f' 'NL') } \
         BIND(STRLANG(?t, ?l) AS ?o) }",
        true,
    );
    let expected = [
        "a\"@fr-CA",
        "b\"@fr-CA",
        "c\"@fr-CA",
        "a\"@it",
        "d\"@it",
        "e\"@nl",
        "f\"@nl",
    ]
    .map(|literal| Line::from(format!("<http://e/s> <http://e/p> \"{literal} .")));
    assert_eq!(store.lines(), expected.into());
    let snapshot = store.engine.database().snapshot();
    let known: Vec<&str> = snapshot.language_tags().iter().collect();
    assert_eq!(known, ["fr-CA", "it", "nl"]);
}

/// The records of commits bring new tags; what is rolled back brings none.
#[test]
fn language_tags_are_kept_as_written_and_compared_without_case() {
    let store = Store::new();
    store.apply(
        "INSERT DATA { <http://e/s> <http://e/p> \"x\"@DE-at }",
        false,
    );
    store.apply(
        "INSERT DATA { <http://e/s> <http://e/p> \"colour\"@en-GB }",
        true,
    );
    store.apply(
        "INSERT DATA { <http://e/t> <http://e/p> \"colour\"@EN-gb, \"hue\"@en-gb, \"x\"@de-AT }",
        true,
    );
    let expected: BTreeSet<Line> = [
        "<http://e/s> <http://e/p> \"colour\"@en-GB .",
        "<http://e/t> <http://e/p> \"colour\"@en-GB .",
        "<http://e/t> <http://e/p> \"hue\"@en-GB .",
        "<http://e/t> <http://e/p> \"x\"@de-AT .",
    ]
    .map(Line::from)
    .into();
    assert_eq!(store.lines(), expected);
    let snapshot = store.engine.database().snapshot();
    let known: Vec<&str> = snapshot.language_tags().iter().collect();
    assert_eq!(known, ["de-AT", "en-GB"]);
    // Who follows is told what is written, and who opens the database anew reads it, from the log
    // or from a checkpoint.
    let database = store.engine.database();
    // What was committed without waiting for the disk is told when it is there.
    while database.lasting_commit() < snapshot.commit() {
        std::thread::yield_now();
    }
    let mut followed = BTreeSet::new();
    let seen = database.changes(&ReadScope::all_graphs(Asker::Process), 1, |commit| {
        commit.added(|quad| {
            followed.insert(quad.object.to_string());
            Ok(())
        })
    });
    seen.unwrap();
    let objects = ["\"colour\"@en-GB", "\"hue\"@en-GB", "\"x\"@de-AT"].map(str::to_owned);
    assert_eq!(followed, objects.clone().into());
    for is_flushed in [false, true] {
        if is_flushed {
            store.writer.checkpoint().unwrap();
        }
        let other = Database::open(database.directory()).unwrap();
        let known = other.snapshot();
        assert_eq!(known.language_tags(), snapshot.language_tags());
    }
    let rows = |text: &str| {
        store.runtime.block_on(async {
            let prepared = store
                .engine
                .prepare(text, &QueryOptions::of_process())
                .unwrap();
            let orrery_sparql::QueryResults::Solutions(mut stream) =
                prepared.execute().await.unwrap()
            else {
                panic!("{text}")
            };
            let mut rows = Vec::new();
            while let Some(batch) = stream.next().await {
                let batch = batch.unwrap();
                for row in 0..batch.rows() {
                    rows.push(batch.term(row, 0).unwrap().to_string());
                }
            }
            rows
        })
    };
    let joined = "SELECT ?o { <http://e/s> <http://e/p> ?o . <http://e/t> <http://e/p> ?o }";
    assert_eq!(rows(joined), ["\"colour\"@en-GB"]);
    let found = "SELECT ?s { ?s <http://e/p> \"colour\"@EN-GB } ORDER BY ?s";
    assert_eq!(rows(found), ["<http://e/s>", "<http://e/t>"]);
    let distinct = "SELECT DISTINCT ?o { { ?s ?p ?o } UNION { BIND(STRLANG(\"hue\", \"EN-GB\") AS ?o) } \
                    FILTER(LANGMATCHES(LANG(?o), \"EN\")) } ORDER BY ?o";
    assert_eq!(rows(distinct), ["\"colour\"@en-GB", "\"hue\"@en-GB"]);
    store.apply(
        "DELETE DATA { <http://e/t> <http://e/p> \"hue\"@EN-GB }",
        true,
    );
    assert_eq!(store.lines().len(), 3);
}
