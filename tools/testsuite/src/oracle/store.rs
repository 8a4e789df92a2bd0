//! Our engine over a small database, with all variants of running a query.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use orrery_distributed::InProcess;
use orrery_sparql::{
    Destination, Engine, EngineOptions, PreparedQuery, QueryError, QueryOptions, QueryResults,
    Tuning, term_to_oxrdf,
};
use orrery_storage::text::TextRules;
use orrery_storage::{
    Asker, At, CommitOptions, Database, Durability, GraphNames, ReadScope, SmallQuad, Snapshot,
    Transaction, Writer, WriterOptions, build_small,
};
use orrery_term::{Term, TermId, Triple};
use oxrdf::{GraphName, NamedOrBlankNode, Quad};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::answer::{Answer, Solutions};
use super::data::Arrival;
use super::derived::places;
use super::refusals::{REFUSED, message};
use super::rules::{Rules, Scopes, Secrets};
use super::siblings::siblings;
use super::sql_under_rules::{SqlAsker, classes};
use crate::Error;

/// A query that takes longer hangs.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// Queries of the same shape that are prepared before one. Two make the shape known.
const SIBLINGS: usize = 7;

/// Before and behind the other names of graphs.
const HIDDEN_GRAPHS: [&str; 2] = ["http://example.org/0", "http://example.org/z"];

/// Processes that divide queries.
const PROCESSES: usize = 3;

/// A query that is only asked for its estimates may be left out.
const ANALYSIS_TIME_LIMIT: Duration = Duration::from_secs(5);

/// How a query is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Variant {
    /// Whether the optimizer rewrites it.
    pub rewrites: bool,
    /// Rows in a vector; chosen by the operators if not given.
    pub vector_rows: Option<usize>,
    /// Whether patterns that bind the same variable are matched together.
    pub intersects: bool,
    /// Partitions of everything that can have several, with morsels of two rows.
    pub partitions: Option<usize>,
    /// Where the plan runs.
    pub place: Place,
}

/// Where a plan runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// Where it was made.
    Here,
    /// Written as bytes, and read as another process would that has opened the same files.
    Elsewhere,
    /// The same, and each partition reads a fixed share of the rows.
    ElsewhereInShares,
    /// Divided among three processes.
    ByWorkers,
    /// Where it was made, for an earlier query of the same shape, as far as one is kept.
    Again,
}

impl Variant {
    /// As users run it.
    pub const USUAL: Self = Self {
        rewrites: true,
        vector_rows: None,
        intersects: true,
        partitions: None,
        place: Place::Here,
    };
    /// The plain translation of the algebra.
    pub const PLAIN: Self = Self {
        rewrites: false,
        vector_rows: None,
        intersects: true,
        partitions: None,
        place: Place::Here,
    };
    /// Plans that are sent and run elsewhere.
    pub const TRAVELLING: [Self; 5] = [
        Self::elsewhere(Self::USUAL, Place::Elsewhere),
        Self::elsewhere(Self::PLAIN, Place::Elsewhere),
        Self::elsewhere(Self::with(true, 7), Place::Elsewhere),
        Self::elsewhere(Self::split(true, 3), Place::Elsewhere),
        Self::elsewhere(Self::split(true, 2), Place::ElsewhereInShares),
    ];
    /// Plans that three workers divide among them.
    pub const DIVIDED: [Self; 2] = [
        Self::elsewhere(Self::split(true, 7), Place::ByWorkers),
        Self::elsewhere(Self::split(false, 3), Place::ByWorkers),
    ];
    /// After queries of the same shape, whose plans are kept.
    pub const KEPT: Self = Self::elsewhere(Self::USUAL, Place::Again);
    /// Spread over partitions.
    pub const PARTITIONS: [Self; 3] = [
        Self::split(true, 2),
        Self::split(true, 3),
        Self::split(false, 2),
    ];
    /// The others.
    pub const OTHERS: [Self; 8] = [
        Self {
            intersects: false,
            ..Self::USUAL
        },
        Self {
            intersects: false,
            ..Self::with(true, 7)
        },
        Self::with(true, 1),
        Self::with(true, 7),
        Self::with(true, 1_024),
        Self::with(false, 1),
        Self::with(false, 7),
        Self::with(false, 1_024),
    ];

    const fn elsewhere(variant: Self, place: Place) -> Self {
        Self { place, ..variant }
    }

    const fn with(rewrites: bool, vector_rows: usize) -> Self {
        Self {
            rewrites,
            vector_rows: Some(vector_rows),
            intersects: true,
            partitions: None,
            place: Place::Here,
        }
    }

    const fn split(rewrites: bool, partitions: usize) -> Self {
        Self {
            rewrites,
            vector_rows: None,
            intersects: true,
            partitions: Some(partitions),
            place: Place::Here,
        }
    }
}

impl std::fmt::Display for Variant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let rewrites = if self.rewrites { "on" } else { "off" };
        match self.vector_rows {
            Some(rows) => write!(f, "rewrites {rewrites}, vectors of {rows}")?,
            None => write!(f, "rewrites {rewrites}, vectors of dynamic size")?,
        }
        match self.intersects {
            true => Ok(()),
            false => write!(f, ", each pattern by itself"),
        }?;
        if let Some(partitions) = self.partitions {
            write!(f, ", {partitions} partitions")?;
        }
        match self.place {
            Place::Here => Ok(()),
            Place::Elsewhere => f.write_str(", sent elsewhere"),
            Place::ElsewhereInShares => f.write_str(", sent elsewhere in shares"),
            Place::ByWorkers => f.write_str(", divided among three workers"),
            Place::Again => f.write_str(", after others of its shape"),
        }
    }
}

/// A database in a temporary directory.
pub(crate) struct Store {
    engine: Engine,
    /// Over the same files, as another process opens them.
    elsewhere: Engine,
    /// Three that divide queries among them, over the same files. The first one is asked.
    processes: Vec<Arc<Engine>>,
    /// What the asker may see.
    scope: ReadScope,
    /// The state that is asked for, if not the newest.
    past: Option<Arc<Snapshot>>,
    runtime: Runtime,
    writer: Option<Writer>,
    _directory: TempDir,
}

/// Two databases that differ only in what one asker does not see.
pub(super) struct Twins {
    stores: [Store; 2],
    /// In SQL, of each.
    sql: [SqlAsker; 2],
}

/// What somebody is told by both.
pub(super) struct Compared {
    /// Whether the first was no answer but an error.
    pub(super) is_refused: bool,
    pub(super) difference: Option<(String, String)>,
}

impl Compared {
    fn of([one, other]: [String; 2]) -> Self {
        Self {
            is_refused: one.contains(REFUSED),
            difference: (one != other).then_some((one, other)),
        }
    }
}

impl Twins {
    /// Of the data of the rules of a seed, and places and classes of some of their subjects.
    pub(super) fn new(quads: &[Quad], seed: u64) -> Result<Self, Error> {
        let quads = &[quads, &places(quads), &classes(quads)].concat();
        let rules = Rules::of(seed)?;
        let both = [Secrets::Like, Secrets::Other];
        let store = |secrets| Store::beside(quads, Arrival::UnderRules(seed), secrets);
        let stores = [store(both[0])?, store(both[1])?];
        let sql = |number: usize| stores[number].in_sql(rules.amount(both[number]));
        let sql = [sql(0)?, sql(1)?];
        Ok(Self { stores, sql })
    }

    /// What the sender of a statement of SQL is told otherwise by one than by the other.
    pub(super) fn difference_in_sql(&self, statement: &str) -> Compared {
        Compared::of(self.sql.each_ref().map(|asker| asker.told(statement)))
    }

    /// What the asker is told otherwise by one than by the other.
    pub(super) fn difference(&self, query: &str) -> Compared {
        // Also where indices are looked up however little that pays.
        let told = |store: &Store| {
            [false, true].map(|reduces_always| {
                let tuning = Tuning {
                    reduces_always,
                    ..Tuning::default()
                };
                store.told(query, tuning)
            })
        };
        Compared::of(self.stores.each_ref().map(|store| told(store).concat()))
    }
}

impl Store {
    /// A database of some quads. Their blank nodes are called `b` and a number.
    pub(crate) fn new(quads: &[Quad], arrival: Arrival) -> Result<Self, Error> {
        Self::beside(quads, arrival, Secrets::Like)
    }

    fn beside(quads: &[Quad], arrival: Arrival, secrets: Secrets) -> Result<Self, Error> {
        let mut directory = tempfile::Builder::new();
        directory.prefix("oracle");
        let shared_memory = std::path::Path::new("/dev/shm");
        let directory = if shared_memory.is_dir() {
            directory.tempdir_in(shared_memory)
        } else {
            directory.tempdir()
        };
        let directory = directory.map_err(|source| Error::Io {
            path: "a temporary directory".into(),
            source,
        })?;
        let quads = quads
            .iter()
            .map(small_quad)
            .collect::<Result<Vec<_>, _>>()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|source| Error::Io {
                path: "tokio runtime".into(),
                source,
            })?;
        let mut scope = match arrival {
            Arrival::Built | Arrival::Updated | Arrival::UnderRules(_) => {
                ReadScope::all_graphs(Asker::Anonymous)
            }
            Arrival::AmongHidden => scope_of(&quads),
        };
        let mut past = None;
        let (database, writer) = match arrival {
            Arrival::Built => (Arc::new(build_small(directory.path(), &quads)?), None),
            Arrival::Updated => {
                let writer = updated(directory.path(), &quads)?;
                (Arc::clone(writer.database()), Some(writer))
            }
            Arrival::AmongHidden => {
                let writer = updated(directory.path(), &among_hidden(quads))?;
                (Arc::clone(writer.database()), Some(writer))
            }
            Arrival::UnderRules(seed) => {
                let rules = Rules::of(seed)?;
                let writer = updated_beside(directory.path(), &quads, &rules, secrets)?;
                if rules.is_about_old_state {
                    let commit = writer.database().snapshot().commit();
                    spoil(&writer, &quads, &rules)?;
                    past = Some(writer.database().snapshot_at(At::Commit(commit))?);
                }
                let database = Arc::clone(writer.database());
                let engine = Engine::new(Arc::clone(&database), EngineOptions::default())?;
                let Scopes { reads, .. } = rules.scopes(|text| found(&engine, &runtime, text))?;
                scope = reads;
                (database, Some(writer))
            }
        };
        let elsewhere = Arc::new(Database::open(directory.path())?);
        let (_, workers) = InProcess::members(PROCESSES, 0.0);
        let mut processes = Vec::with_capacity(PROCESSES);
        for workers in workers {
            let database = Arc::new(Database::open(directory.path())?);
            let engine = Arc::new(Engine::new(database, EngineOptions::default())?);
            engine.divide_among(&workers, runtime.handle().clone());
            processes.push(engine);
        }
        Ok(Self {
            processes,
            elsewhere: Engine::new(elsewhere, EngineOptions::default())?,
            engine: Engine::new(database, EngineOptions::default())?,
            scope,
            past,
            runtime,
            writer,
            _directory: directory,
        })
    }

    /// Tables beside the quads, and whoever asks in SQL.
    fn in_sql(&self, amount: Option<usize>) -> Result<SqlAsker, Error> {
        let Some(writer) = &self.writer else {
            return Err(Error::Reference("a database without a writer".to_owned()));
        };
        SqlAsker::new(writer, &self.scope, amount)
    }

    /// Our answer, or what went wrong; a panic is an error too.
    pub(crate) fn ask(&self, query: &str, variant: Variant) -> Result<Answer, String> {
        let run = || self.runtime.block_on(self.evaluate(query, variant));
        match catch_unwind(AssertUnwindSafe(run)) {
            Ok(answer) => answer.map_err(|error| error.to_string()),
            Err(panic) => Err(format!("panic: {}", message(&panic))),
        }
    }

    /// The plan of a query with estimates and actual rows, or what went wrong.
    pub(crate) fn analyzed(&self, query: &str) -> Result<serde_json::Value, String> {
        let options = QueryOptions {
            timeout: Some(ANALYSIS_TIME_LIMIT),
            scope: self.scope.clone(),
            ..QueryOptions::of_process()
        };
        let run = || {
            let prepared = self.engine.prepare(query, &options)?;
            self.runtime.block_on(prepared.analyzed_plan())
        };
        match catch_unwind(AssertUnwindSafe(run)) {
            Ok(Ok(plan)) => Ok(plan.to_json()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(panic) => Err(format!("panic: {}", message(&panic))),
        }
    }

    /// All that the asker is told about a query, but times: the plan, what a run counts of it, its
    /// cost, and the answer in the order in which it comes.
    fn told(&self, query: &str, tuning: Tuning) -> String {
        let options = QueryOptions {
            tuning,
            timeout: Some(TIME_LIMIT),
            scope: self.scope.clone(),
            snapshot: self.past.clone(),
            ..QueryOptions::of_process()
        };
        let run = || -> Result<String, QueryError> {
            let prepared = self.engine.prepare(query, &options)?;
            let mut told = prepared.explain();
            match self.runtime.block_on(answer(&prepared)) {
                Ok(answer) => told += &answer.to_string(),
                // What has failed costs what was done until then.
                Err(error) => {
                    told += &format!("{}\ncost {}\n", of_error(&error), prepared.touches());
                    return Ok(told);
                }
            }
            told += &format!("\ncost {}\n", prepared.touches());
            let again = self.engine.prepare(query, &options)?;
            let mut plan = self.runtime.block_on(again.analyzed_plan())?.to_json();
            without_times(&mut plan);
            told += &format!("{plan}\ncost {}\n", again.touches());
            Ok(told)
        };
        match catch_unwind(AssertUnwindSafe(run)) {
            Ok(told) => told.unwrap_or_else(|error| of_error(&error)),
            Err(panic) => format!("panic: {}", message(&panic)),
        }
    }

    /// How many plans were taken that were kept of earlier queries.
    pub(crate) fn plans_again(&self) -> u64 {
        self.engine.plan_counts().hits
    }

    /// The query where its plan is to run.
    fn sent(&self, prepared: PreparedQuery, place: Place) -> Result<PreparedQuery, QueryError> {
        let has_shares = match place {
            Place::Here | Place::Again | Place::ByWorkers => return Ok(prepared),
            Place::Elsewhere => false,
            Place::ElsewhereInShares => true,
        };
        let bytes = prepared.encoded_plan(Destination {
            processes: 1,
            has_shares,
        })?;
        prepared.with_encoded_plan(&self.elsewhere, &bytes, 1)
    }

    async fn evaluate(&self, query: &str, variant: Variant) -> Result<Answer, QueryError> {
        let options = QueryOptions {
            timeout: Some(TIME_LIMIT),
            scope: self.scope.clone(),
            snapshot: self.past.clone(),
            tuning: Tuning {
                rewrites: variant.rewrites,
                vector_rows: variant.vector_rows,
                intersects: variant.intersects,
                aggregates_early: variant.vector_rows.is_some(),
                reduces_always: variant.vector_rows.is_some(),
                keeps_orders: true,
                keeps_plans: true,
                looks_grams_up: true,
                partitions: variant.partitions,
                graph_branches_max: match variant.vector_rows {
                    Some(_) => 0,
                    None => Tuning::default().graph_branches_max,
                },
                uses_places_index: true,
            },
            ..QueryOptions::of_process()
        };
        let prepared = match variant.place {
            Place::Again => {
                let (own, siblings) = siblings(query, SIBLINGS);
                for sibling in siblings {
                    // Some are wrong, such as a group that binds a variable twice.
                    _ = self.engine.prepare(&sibling, &options);
                }
                self.engine.prepare(&own, &options)?
            }
            Place::ByWorkers => self.processes[0].prepare(query, &options)?,
            Place::Here | Place::Elsewhere | Place::ElsewhereInShares => {
                self.engine.prepare(query, &options)?
            }
        };
        let prepared = self.sent(prepared, variant.place)?;
        answer(&prepared).await
    }
}

/// The words of an error, and its kind, which a server's status goes by.
fn of_error(error: &QueryError) -> String {
    format!("{REFUSED}{:?} {error}", std::mem::discriminant(error))
}

async fn answer(prepared: &PreparedQuery) -> Result<Answer, QueryError> {
    Ok(match prepared.execute().await? {
        QueryResults::Boolean(value) => Answer::Boolean(value),
        QueryResults::Solutions(mut stream) => {
            let variables = stream.variables().to_vec();
            let mut rows = Vec::new();
            while let Some(batch) = stream.next().await {
                let batch = batch?;
                let columns = variables.len();
                rows.extend((0..batch.rows()).map(|row| {
                    (0..columns)
                        .map(|column| batch.term(row, column).map(term_to_oxrdf))
                        .collect()
                }));
            }
            Answer::Solutions(Solutions { variables, rows })
        }
        QueryResults::Triples(mut stream) => {
            let mut triples = Vec::new();
            while let Some(batch) = stream.next().await {
                for (subject, predicate, object) in batch?.iter() {
                    let terms = [subject, predicate, object].map(term_to_oxrdf);
                    triples.push(triple(terms)?);
                }
            }
            Answer::Graph(triples)
        }
    })
}

/// Takes the times of a run out of a plan.
fn without_times(plan: &mut serde_json::Value) {
    match plan {
        serde_json::Value::Object(fields) => {
            fields.remove("elapsed_ns");
            fields.values_mut().for_each(without_times);
        }
        serde_json::Value::Array(values) => values.iter_mut().for_each(without_times),
        _ => {}
    }
}

/// The terms that a rule's query finds among all quads.
pub(super) fn found(
    engine: &Engine,
    runtime: &Runtime,
    text: &str,
) -> Result<Vec<Term<'static>>, Error> {
    let prepared = engine.prepare(text, &QueryOptions::of_process())?;
    runtime.block_on(async {
        let QueryResults::Solutions(mut solutions) = prepared.execute().await? else {
            return Err(Error::Reference(
                "the query of a rule is no SELECT".to_owned(),
            ));
        };
        let mut terms = Vec::new();
        while let Some(batch) = solutions.next().await {
            let batch = batch?;
            terms.extend((0..batch.rows()).filter_map(|row| batch.term(row, 0).cloned()));
        }
        Ok(terms)
    })
}

fn triple([subject, predicate, object]: [oxrdf::Term; 3]) -> Result<oxrdf::Triple, QueryError> {
    let wrong = |what: &str| QueryError::Internal {
        message: format!("{what} in a graph"),
    };
    let subject = NamedOrBlankNode::try_from(subject).map_err(|_| wrong("a literal as subject"))?;
    let oxrdf::Term::NamedNode(predicate) = predicate else {
        return Err(wrong("a predicate that is no IRI"));
    };
    Ok(oxrdf::Triple::new(subject, predicate, object))
}

pub(super) fn small_quad(quad: &Quad) -> Result<SmallQuad, Error> {
    let graph = match &quad.graph_name {
        GraphName::DefaultGraph => None,
        GraphName::NamedNode(node) => Some(term(&node.clone().into())?),
        GraphName::BlankNode(node) => Some(term(&node.clone().into())?),
    };
    Ok((
        term(&quad.subject.clone().into())?,
        term(&quad.predicate.clone().into())?,
        term(&quad.object)?,
        graph,
    ))
}

fn term(of: &oxrdf::Term) -> Result<Term<'static>, Error> {
    let unknown = || Error::Syntax(format!("{of} in the data of the oracle"));
    Ok(match of {
        oxrdf::Term::NamedNode(node) => Term::iri(node.as_str().to_owned()),
        oxrdf::Term::BlankNode(node) => {
            let number = node.as_str().strip_prefix('b');
            let number = number.and_then(|number| number.parse().ok());
            Term::BlankNode(number.ok_or_else(unknown)?)
        }
        oxrdf::Term::Literal(literal) => match literal.language() {
            Some(tag) => Term::language(literal.value().to_owned(), tag.to_owned()),
            None => Term::typed(
                literal.value().to_owned(),
                literal.datatype().as_str().to_owned(),
            ),
        },
        oxrdf::Term::Triple(triple) => {
            let subject = term(&triple.subject.clone().into())?;
            let predicate = term(&triple.predicate.clone().into())?;
            let triple = Triple::new(subject, predicate, term(&triple.object)?);
            Term::Triple(Box::new(triple.map_err(|_| unknown())?))
        }
    })
}

/// With an index of the trigrams of all texts, which tests of texts may look up.
fn with_grams(database: Database) -> Result<Arc<Database>, Error> {
    let rules = TextRules {
        grams: true,
        ..TextRules::default()
    };
    database.set_text_rules(Some(rules), Some(1 << 20))?;
    Ok(Arc::new(database))
}

/// A database of the quads, of which every second comes by an update.
fn updated(directory: &Path, quads: &[SmallQuad]) -> Result<Writer, Error> {
    let wrong = wrong_quads(quads);
    let first = quads.iter().step_by(2).chain(&wrong);
    let database = with_grams(build_small(directory, &first.cloned().collect::<Vec<_>>())?)?;
    let writer = database.open_writer(WriterOptions::default())?;
    let mut transaction = writer.begin()?;
    let mut gone = ids(
        &mut transaction,
        wrong.iter().chain(quads.iter().step_by(6)),
    )?;
    transaction.delete(&mut gone)?;
    commit(transaction)?;
    let mut transaction = writer.begin()?;
    // Also those that were deleted a moment ago.
    let mut inserted = ids(&mut transaction, quads.iter())?;
    transaction.insert(&mut inserted)?;
    commit(transaction)?;
    Ok(writer)
}

/// As `updated`, beside what rules hide. What is seen comes in the same way whatever is hidden: its
/// terms are in the same dictionaries, in the same order.
fn updated_beside(
    directory: &Path,
    quads: &[SmallQuad],
    rules: &Rules,
    secrets: Secrets,
) -> Result<Writer, Error> {
    let wrong = wrong_quads(quads);
    let first: Vec<SmallQuad> = quads.iter().step_by(2).cloned().collect();
    let hidden = rules.hidden_quads((&first, &wrong), secrets);
    let base = [&first[..], &wrong, &hidden].concat();
    let database = with_grams(build_small(directory, &base)?)?;
    let writer = database.open_writer(WriterOptions::default())?;
    let mut transaction = writer.begin()?;
    let gone = wrong.iter().chain(quads.iter().step_by(6));
    let mut gone = ids(&mut transaction, gone.chain(hidden.iter().step_by(5)))?;
    transaction.delete(&mut gone)?;
    commit(transaction)?;
    let hidden = rules.hidden_quads((quads, &wrong), secrets);
    let mut transaction = writer.begin()?;
    let mut inserted = ids(&mut transaction, quads.iter().chain(&hidden))?;
    transaction.insert(&mut inserted)?;
    commit(transaction)?;
    Ok(writer)
}

/// Makes the newest state another one, but for the lists of who reads what.
fn spoil(writer: &Writer, quads: &[SmallQuad], rules: &Rules) -> Result<(), Error> {
    let lists = rules.list_quads();
    let mut transaction = writer.begin()?;
    let gone = quads.iter().step_by(2).filter(|quad| !lists.contains(quad));
    let mut gone = ids(&mut transaction, gone)?;
    transaction.delete(&mut gone)?;
    let wrong = wrong_quads(quads);
    let wrong = wrong.iter().filter(|quad| !rules.is_of_lists(quad));
    let mut inserted = ids(&mut transaction, wrong)?;
    transaction.insert(&mut inserted)?;
    commit(transaction)
}

/// The graphs of these quads, and the default graph.
fn scope_of(quads: &[SmallQuad]) -> ReadScope {
    let named = quads.iter().filter_map(|quad| quad.3.clone());
    let graphs = GraphNames {
        has_default: true,
        named: named.collect(),
        ..GraphNames::default()
    };
    ReadScope::only(Asker::Anonymous, graphs)
}

/// The quads, and in two other graphs the same triples and wrong ones.
fn among_hidden(quads: Vec<SmallQuad>) -> Vec<SmallQuad> {
    let wrong = wrong_quads(&quads);
    let graphs = [HIDDEN_GRAPHS[0], HIDDEN_GRAPHS[1]].map(|name| Some(Term::iri(name)));
    let hidden = [&quads, &wrong].into_iter().zip(&graphs);
    let hidden = hidden.flat_map(|(quads, graph)| {
        let of_graph = |(s, p, o, _): &SmallQuad| (s.clone(), p.clone(), o.clone(), graph.clone());
        quads.iter().map(of_graph)
    });
    let hidden: Vec<SmallQuad> = hidden.collect();
    quads.into_iter().chain(hidden).collect()
}

/// Quads of the same terms that are not among the given ones.
pub(super) fn wrong_quads(quads: &[SmallQuad]) -> Vec<SmallQuad> {
    let others = quads.iter().cycle().skip(1);
    quads
        .iter()
        .zip(others)
        .map(|(quad, other)| {
            (
                quad.0.clone(),
                quad.1.clone(),
                other.2.clone(),
                quad.3.clone(),
            )
        })
        .filter(|quad| !quads.contains(quad))
        .collect()
}

fn ids<'q>(
    transaction: &mut Transaction,
    quads: impl Iterator<Item = &'q SmallQuad>,
) -> Result<Vec<[TermId; 4]>, Error> {
    let mut rows = Vec::new();
    for (subject, predicate, object, graph) in quads {
        let graph = match graph {
            Some(graph) => transaction.intern(graph)?,
            None => TermId::DEFAULT_GRAPH,
        };
        let subject = transaction.intern(subject)?;
        let predicate = transaction.intern(predicate)?;
        rows.push([subject, predicate, transaction.intern(object)?, graph]);
    }
    Ok(rows)
}

fn commit(transaction: Transaction) -> Result<(), Error> {
    let options = CommitOptions {
        who: "oracle".to_owned(),
        durability: Durability::Relaxed,
        expected: None,
        ..CommitOptions::default()
    };
    transaction.commit(options)?.wait()?;
    Ok(())
}

/// How often each variant was run.
pub type VariantCounts = BTreeMap<Variant, u64>;
