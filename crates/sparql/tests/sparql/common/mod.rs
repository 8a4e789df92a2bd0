//! Test helpers: a small database from TriG, the same data for spareval, and comparable answers.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::expect_used,
    reason = "shared by test files, of which each uses its part"
)]

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use orrery_sparql::{
    Destination, Engine, EngineOptions, PreparedQuery, QueryError, QueryOptions, QueryResults,
    SolutionStream, SolutionWriter, term_to_oxrdf,
};
use orrery_storage::{
    CommitOptions, Database, SmallQuad, Transaction, Writer, WriterOptions, build_small,
};
use orrery_term::{Direction, Term, TermId, Triple};
use oxrdf::{Dataset, GraphName, Quad};
use oxttl::TriGParser;

/// A database in a temporary directory, and its data for the oracle.
pub struct Fixture {
    pub engine: Engine,
    pub dataset: Dataset,
    elsewhere: OnceLock<Engine>,
    runtime: tokio::runtime::Runtime,
    _directory: tempfile::TempDir,
}

/// An answer that two engines can be compared by.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    /// Rows of `variable=term` texts, sorted; duplicates count.
    Solutions(Vec<String>),
    Boolean(bool),
    /// Triples as text, sorted.
    Triples(Vec<String>),
}

/// The quads of TriG for us and for the oracle.
fn read(trig: &str) -> (Vec<SmallQuad>, Dataset) {
    let mut numbers: BTreeMap<String, u64> = BTreeMap::new();
    let mut quads = Vec::new();
    let mut dataset = Dataset::new();
    for quad in TriGParser::new().for_slice(trig) {
        let quad = quad.expect("the test data is TriG");
        let mut number = |label: &str| {
            let next = numbers.len() as u64 + 1;
            *numbers.entry(label.to_owned()).or_insert(next)
        };
        let subject = term_of(quad.subject.clone().into(), &mut number);
        let object = term_of(quad.object.clone(), &mut number);
        let graph = match &quad.graph_name {
            GraphName::DefaultGraph => None,
            GraphName::NamedNode(node) => Some(Term::iri(node.as_str().to_owned())),
            GraphName::BlankNode(node) => Some(Term::BlankNode(number(node.as_str()))),
        };
        let predicate = Term::iri(quad.predicate.as_str().to_owned());
        dataset.insert(&renumbered(&quad, &subject, &object));
        quads.push((subject, predicate, object, graph));
    }
    (quads, dataset)
}

type Change = fn(&mut Transaction, &mut Vec<[TermId; 4]>) -> orrery_storage::Result<u64>;

fn commit(writer: &Writer, quads: &[SmallQuad], change: Change) {
    let mut transaction = writer.begin().expect("a transaction");
    let mut id = |term: &Term<'_>| transaction.intern(term).expect("an id");
    let mut rows: Vec<[TermId; 4]> = quads
        .iter()
        .map(|(subject, predicate, object, graph)| {
            let graph = graph.as_ref().map_or(TermId::DEFAULT_GRAPH, &mut id);
            [id(subject), id(predicate), id(object), graph]
        })
        .collect();
    change(&mut transaction, &mut rows).expect("a change");
    let pending = transaction.commit(CommitOptions::default());
    pending.expect("a commit").wait().expect("durable");
}

async fn solutions(prepared: &PreparedQuery) -> Result<SolutionStream, QueryError> {
    match prepared.execute().await? {
        QueryResults::Solutions(stream) => Ok(stream),
        QueryResults::Boolean(_) | QueryResults::Triples(_) => panic!("a SELECT"),
    }
}

impl Fixture {
    /// The same data, of which a random part came by updates: a base with some of the quads and
    /// some others, then transactions that insert the rest and delete the others, with a checkpoint
    /// among them. With seed 0 the base is empty.
    pub fn by_updates(trig: &str, seed: u64) -> Self {
        let (quads, dataset) = read(trig);
        let mut random = seed;
        let mut next = |limit: u64| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % limit
        };
        let mut others = Vec::new();
        for number in 0..20 {
            let (subject, predicate, ..) = &quads[next(quads.len() as u64) as usize];
            let object = Term::string(format!("soon deleted again, as number {number}"));
            let graph =
                (number % 3 == 0).then(|| Term::iri(format!("http://example.org/x{number}")));
            others.push((subject.clone(), predicate.clone(), object, graph));
        }
        let (base, later): (Vec<SmallQuad>, Vec<SmallQuad>) = match seed {
            0 => (Vec::new(), [quads, others.clone()].concat()),
            _ => [quads, others.clone()]
                .concat()
                .into_iter()
                .partition(|_| next(2) == 0),
        };
        let directory = tempfile::tempdir().expect("a temporary directory");
        let database = build_small(directory.path(), &base).expect("a database");
        let database = Arc::new(database);
        let writer = database.open_writer(WriterOptions::default());
        let writer = writer.expect("the writer");
        let parts: Vec<&[SmallQuad]> = later.chunks(later.len() / 3 + 1).collect();
        for (number, part) in parts.into_iter().enumerate() {
            if number == 1 {
                writer.checkpoint().expect("a checkpoint");
            }
            commit(&writer, part, Transaction::insert);
        }
        commit(&writer, &others, Transaction::delete);
        drop(writer);
        Self::over(database, directory, dataset, EngineOptions::default())
    }

    fn over(
        database: Arc<Database>,
        directory: tempfile::TempDir,
        dataset: Dataset,
        options: EngineOptions,
    ) -> Self {
        Self {
            engine: Engine::new(database, options).expect("an engine"),
            dataset,
            elsewhere: OnceLock::new(),
            runtime: tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_time()
                .build()
                .expect("a runtime"),
            _directory: directory,
        }
    }

    /// Loads TriG. Blank nodes are numbered in the order in which they come, as `_:b1`, `_:b2` ...
    pub fn new(trig: &str) -> Self {
        Self::with_options(trig, EngineOptions::default())
    }

    pub fn with_options(trig: &str, options: EngineOptions) -> Self {
        let (quads, dataset) = read(trig);
        let directory = tempfile::tempdir().expect("a temporary directory");
        let database = build_small(directory.path(), &quads).expect("a database");
        Self::over(Arc::new(database), directory, dataset, options)
    }

    /// The writer of the database.
    pub fn writer(&self) -> Writer {
        let writer = self.engine.database().open_writer(WriterOptions::default());
        writer.expect("the writer")
    }

    /// Inserts the quads of TriG without blank nodes, or deletes them, as one commit. The oracle
    /// does not hear of it.
    pub fn commit(writer: &Writer, trig: &str, inserts: bool) {
        let change: Change = match inserts {
            true => Transaction::insert,
            false => Transaction::delete,
        };
        commit(writer, &read(trig).0, change);
    }

    /// Our answer.
    pub fn ask(&self, query: &str) -> Result<Answer, QueryError> {
        self.ask_with(query, &QueryOptions::of_process())
    }

    pub fn ask_with(&self, query: &str, options: &QueryOptions) -> Result<Answer, QueryError> {
        self.run(&self.engine.prepare(query, options)?)
    }

    /// The rows of a query that come before an error, and how many batches and errors the stream
    /// gives after it.
    pub fn around_error(&self, query: &str) -> Result<(usize, usize), QueryError> {
        let prepared = self.engine.prepare(query, &QueryOptions::of_process())?;
        self.runtime.block_on(async {
            let mut stream = solutions(&prepared).await?;
            let mut rows = 0;
            while let Ok(batch) = stream.next().await.expect("an error") {
                rows += batch.rows();
            }
            let mut after = 0;
            for _ in 0..4 {
                after += usize::from(stream.next().await.is_some());
            }
            Ok((rows, after))
        })
    }

    /// Our answer by a plan that was sent to another process.
    pub fn ask_elsewhere(&self, query: &str) -> Result<Answer, QueryError> {
        let prepared = self.engine.prepare(query, &QueryOptions::of_process())?;
        self.run(&self.elsewhere(&prepared)?)
    }

    pub fn run(&self, prepared: &PreparedQuery) -> Result<Answer, QueryError> {
        self.runtime.block_on(async {
            Ok(match prepared.execute().await? {
                QueryResults::Solutions(mut stream) => {
                    let variables = stream.variables().to_vec();
                    let mut rows = Vec::new();
                    while let Some(batch) = stream.next().await {
                        let batch = batch?;
                        for row in 0..batch.rows() {
                            let bindings = variables.iter().enumerate().filter_map(|(at, name)| {
                                let term = batch.term(row, at)?;
                                Some((name.clone(), term_to_oxrdf(term)))
                            });
                            rows.push(row_text(bindings));
                        }
                    }
                    Answer::Solutions(rows)
                }
                QueryResults::Boolean(value) => Answer::Boolean(value),
                QueryResults::Triples(mut stream) => {
                    let mut triples = Vec::new();
                    while let Some(batch) = stream.next().await {
                        for (subject, predicate, object, graph) in batch?.quads() {
                            let graph = graph.map(|graph| format!(" {graph}"));
                            let graph = graph.unwrap_or_default();
                            triples.push(format!("{subject} {predicate} {object}{graph}"));
                        }
                    }
                    Answer::Triples(triples)
                }
            })
        })
    }

    /// The solutions of a SELECT in their order, as a format writes them from their terms, and as
    /// they come written.
    pub fn written_both_ways(
        &self,
        query: &str,
        writer: &Arc<impl SolutionWriter + 'static>,
        write_row: impl Fn(&[Option<&Term<'_>>], &mut Vec<u8>),
    ) -> Result<[Vec<u8>; 2], QueryError> {
        self.written_piece_by_piece(query, writer, write_row, |_| {})
    }

    /// The same; `taken` is told of the bytes of each piece that came written.
    pub fn written_piece_by_piece(
        &self,
        query: &str,
        writer: &Arc<impl SolutionWriter + 'static>,
        write_row: impl Fn(&[Option<&Term<'_>>], &mut Vec<u8>),
        mut taken: impl FnMut(usize),
    ) -> Result<[Vec<u8>; 2], QueryError> {
        let prepared = self.engine.prepare(query, &QueryOptions::of_process())?;
        self.runtime.block_on(async {
            let mut from_terms = Vec::new();
            let mut stream = solutions(&prepared).await?;
            while let Some(batch) = stream.next().await {
                let batch = batch?;
                for row in 0..batch.rows() {
                    let terms = (0..batch.columns()).map(|column| batch.term(row, column));
                    write_row(&terms.collect::<Vec<_>>(), &mut from_terms);
                }
            }
            let mut written = Vec::new();
            let writer = Arc::clone(writer);
            let mut stream = solutions(&prepared).await?.written(writer);
            while let Some(rows) = stream.next().await {
                let mut rows = rows?;
                while let Some(piece) = rows.next_piece() {
                    taken(piece.len());
                    written.extend_from_slice(&piece);
                }
            }
            Ok([from_terms, written])
        })
    }

    /// The query with its plan as another process reads it that has opened the same files.
    pub fn elsewhere(&self, prepared: &PreparedQuery) -> Result<PreparedQuery, QueryError> {
        let engine = self.elsewhere.get_or_init(|| {
            let database = Database::open(self._directory.path()).expect("the same database");
            let options = self.engine.options().clone();
            Engine::new(Arc::new(database), options).expect("another engine")
        });
        let bytes = prepared.encoded_plan(Destination {
            processes: 1,
            has_shares: false,
        })?;
        prepared.with_encoded_plan(engine, &bytes, 1)
    }

    /// How many triples each batch of a CONSTRUCT or DESCRIBE has.
    pub fn triple_batches(&self, query: &str) -> Result<Vec<usize>, QueryError> {
        let prepared = self.engine.prepare(query, &QueryOptions::of_process())?;
        self.runtime.block_on(async {
            let QueryResults::Triples(mut stream) = prepared.execute().await? else {
                panic!("triples");
            };
            let mut batches = Vec::new();
            while let Some(batch) = stream.next().await {
                batches.push(batch?.len());
            }
            Ok(batches)
        })
    }

    /// The most rows that a node of the plan gives.
    pub fn most_rows(&self, query: &str) -> usize {
        let plan = self.analyze(query).expect("a plan with actual rows");
        let actual = |line: &str| {
            let (_, after) = line.rsplit_once("rows; ").or(line.rsplit_once('['))?;
            after.split(' ').next()?.parse::<usize>().ok()
        };
        let most = plan.lines().filter_map(actual).max();
        most.unwrap_or_else(|| panic!("no rows in {plan}"))
    }

    /// The plan with actual rows.
    pub fn analyze(&self, query: &str) -> Result<String, QueryError> {
        let prepared = self.engine.prepare(query, &QueryOptions::of_process())?;
        self.runtime.block_on(prepared.analyze())
    }

    /// spareval's answer.
    pub fn oracle(&self, query: &str) -> Answer {
        let parsed = spargebra::SparqlParser::new()
            .parse_query(query)
            .unwrap_or_else(|error| panic!("{error} in\n{query}"));
        // Where it knows LATERAL, its optimizer makes that of joins, and a branch of a union then
        // sees variables that are not in its scope.
        let evaluator = spareval::QueryEvaluator::new().without_optimizations();
        let results = evaluator
            .prepare(&parsed)
            .execute(&self.dataset)
            .unwrap_or_else(|error| panic!("the oracle: {error} in\n{query}"));
        match results {
            spareval::QueryResults::Solutions(solutions) => {
                Answer::Solutions(
                    solutions
                        .map(|solution| {
                            let solution = solution.expect("a solution");
                            row_text(solution.iter().map(|(variable, term)| {
                                (variable.as_str().to_owned(), term.clone())
                            }))
                        })
                        .collect(),
                )
            }
            spareval::QueryResults::Boolean(value) => Answer::Boolean(value),
            spareval::QueryResults::Graph(triples) => Answer::Triples(
                triples
                    .map(|triple| triple.expect("a triple").to_string())
                    .collect(),
            ),
        }
    }
}

impl Answer {
    /// Without order.
    pub fn sorted(self) -> Self {
        match self {
            Self::Solutions(mut rows) => {
                rows.sort();
                Self::Solutions(rows)
            }
            Self::Triples(mut triples) => {
                triples.sort();
                triples.dedup();
                Self::Triples(triples)
            }
            Self::Boolean(value) => Self::Boolean(value),
        }
    }
}

fn row_text(bindings: impl Iterator<Item = (String, oxrdf::Term)>) -> String {
    let mut bindings: Vec<String> = bindings
        .map(|(name, term)| format!("{name}={term}"))
        .collect();
    bindings.sort();
    bindings.join(" ")
}

fn term_of(term: oxrdf::Term, number: &mut impl FnMut(&str) -> u64) -> Term<'static> {
    match term {
        oxrdf::Term::NamedNode(node) => Term::iri(node.into_string()),
        oxrdf::Term::BlankNode(node) => Term::BlankNode(number(node.as_str())),
        oxrdf::Term::Literal(literal) => match (literal.language(), literal.direction()) {
            (Some(tag), None) => Term::language(literal.value().to_owned(), tag.to_owned()),
            (Some(tag), Some(direction)) => {
                let direction = match direction {
                    oxrdf::BaseDirection::Ltr => Direction::LeftToRight,
                    oxrdf::BaseDirection::Rtl => Direction::RightToLeft,
                };
                Term::directional(literal.value().to_owned(), tag.to_owned(), direction)
            }
            (None, _) => Term::typed(
                literal.value().to_owned(),
                literal.datatype().as_str().to_owned(),
            ),
        },
        oxrdf::Term::Triple(triple) => {
            let subject = term_of(triple.subject.into(), number);
            let predicate = term_of(triple.predicate.into(), number);
            let object = term_of(triple.object, number);
            Triple::new(subject, predicate, object)
                .expect("a triple term")
                .into()
        }
    }
}

/// The quad with blank nodes called as our answers call them.
fn renumbered(quad: &Quad, subject: &Term<'_>, object: &Term<'_>) -> Quad {
    let subject = match subject {
        Term::BlankNode(number) => oxrdf::BlankNode::new_unchecked(format!("b{number}")).into(),
        _ => quad.subject.clone(),
    };
    Quad::new(
        subject,
        quad.predicate.clone(),
        term_to_oxrdf(object),
        quad.graph_name.clone(),
    )
}

/// The named queries of a file: `# name` lines start one.
pub fn queries(text: &str) -> Vec<(String, String)> {
    let mut queries: Vec<(String, String)> = Vec::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("# ") {
            queries.push((name.to_owned(), PREFIXES.to_owned()));
        } else if let Some((_, query)) = queries.last_mut() {
            query.push_str(line);
            query.push('\n');
        }
    }
    queries
}

/// Prefixes of all test queries.
pub const PREFIXES: &str = "PREFIX : <http://example.org/>
PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>
PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
";
