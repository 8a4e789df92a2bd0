//! Access rules by query: runs the queries that find a user's graphs, over the state that the user
//! reads.
//!
//! ```text
//! rules by query of a user -> current state -> cached for it?
//!     else run the queries, over all graphs -> graph names
//! ```
//!
//! Results are cached for the two states that were used last: a change that has its turn uses a
//! newer state than a query that began before. Concurrent callers for the same user wait for one
//! run. If two states have the same graphs, the value made of them is shared: join orders are
//! cached by it. A query that fails grants nothing, which the audit log records, and is run again a
//! second later.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use orrery_access::{GraphQuery, Name, Right};
use orrery_sparql::{Engine, QueryOptions, QueryResults};
use orrery_storage::{GraphNames, Snapshot};
use orrery_term::Term;
use tokio::runtime::Handle;
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use crate::audit::AuditLog;

/// Time limit of all of a user's queries together: a change waits for them in its turn, and others
/// behind it.
const TIME_MAX: Duration = Duration::from_secs(2);
/// Maximum of graphs that a rule's query may find.
const GRAPHS_MAX: usize = 100_000;
/// How long a failure is cached.
const FAILURE_AGE_MAX: Duration = Duration::from_secs(1);
/// Number of states whose results are cached.
const STATES_MAX: usize = 2;

/// The engine and threads that run rules' queries.
#[derive(Debug)]
pub struct GraphRules {
    /// The engine.
    pub engine: Arc<Engine>,
    /// The threads that the queries run on.
    pub threads: Handle,
    /// The log of failed queries.
    pub audit: Option<Arc<AuditLog>>,
}

/// A user's rules by query, and their cached results.
#[derive(Debug)]
pub struct Queries<T> {
    user: Option<Name>,
    queries: Vec<GraphQuery>,
    /// The state that was used last comes first.
    kept: Mutex<Vec<Kept<T>>>,
}

/// The result for one state.
#[derive(Debug)]
struct Kept<T> {
    /// Identified by reference, not by commit: a commit that was lost with a change of leader had
    /// the number of a later one.
    state: Weak<Snapshot>,
    failed: Option<Instant>,
    found: FoundGraphs,
    /// The value made of the result.
    made: T,
}

/// Graphs that were found, by right.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct FoundGraphs {
    /// Graphs that may be read.
    pub reads: GraphNames,
    /// Graphs that may be changed.
    pub writes: GraphNames,
}

impl<T: Clone> Queries<T> {
    /// None if there are no such rules.
    pub fn of(user: Option<&Name>, queries: Vec<GraphQuery>) -> Option<Arc<Self>> {
        (!queries.is_empty()).then(|| {
            Arc::new(Self {
                user: user.cloned(),
                queries,
                kept: Mutex::default(),
            })
        })
    }

    /// The value made of the graphs that the queries find in a state.
    pub async fn made(
        &self,
        rules: &GraphRules,
        snapshot: &Arc<Snapshot>,
        make: impl FnOnce(&FoundGraphs) -> T,
    ) -> T {
        let state = Arc::downgrade(snapshot);
        let mut kept = self.kept.lock().await;
        let place = kept.iter().position(|it| it.state.ptr_eq(&state));
        if let Some(place) = place {
            let is_over = |failed: Instant| failed.elapsed() > FAILURE_AGE_MAX;
            if !kept[place].failed.is_some_and(is_over) {
                kept[..=place].rotate_right(1);
                return kept[0].made.clone();
            }
        }
        let (found, has_failed) = self.find(rules, snapshot).await;
        let alike = kept.iter().find(|it| it.found == found);
        let made = alike.map_or_else(|| make(&found), |it| it.made.clone());
        kept.retain(|it| !it.state.ptr_eq(&state));
        kept.truncate(STATES_MAX - 1);
        let now = Kept {
            state,
            failed: has_failed.then(Instant::now),
            found,
            made: made.clone(),
        };
        kept.insert(0, now);
        made
    }

    /// Runs the queries; returns the graphs, and whether a query failed.
    async fn find(&self, rules: &GraphRules, snapshot: &Arc<Snapshot>) -> (FoundGraphs, bool) {
        let (mut found, mut has_failed) = (FoundGraphs::default(), false);
        let until = Instant::now() + TIME_MAX;
        for query in &self.queries {
            for text in &query.texts {
                match rules.run(text.clone(), Arc::clone(snapshot), until).await {
                    Ok(names) => {
                        if query.right >= Right::Write {
                            found.writes.named.extend(names.iter().cloned());
                        }
                        found.reads.named.extend(names);
                    }
                    Err(why) => {
                        has_failed = true;
                        rules.tell(self.user.as_ref(), &query.text, &why);
                    }
                }
            }
        }
        (found, has_failed)
    }
}

impl GraphRules {
    async fn run(
        &self,
        text: String,
        snapshot: Arc<Snapshot>,
        until: Instant,
    ) -> Result<Vec<Term<'static>>, String> {
        let takes_long = || {
            let seconds = TIME_MAX.as_secs();
            format!("the queries of all rules about who asks take more than {seconds} s")
        };
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(takes_long());
        }
        let engine = Arc::clone(&self.engine);
        // Cancelled with the request.
        let mut running = JoinSet::new();
        running.spawn_on(
            async move { names(&engine, &text, snapshot, left).await },
            &self.threads,
        );
        let ended = tokio::time::timeout(left, running.join_next()).await;
        match ended {
            Ok(Some(Ok(names))) => names,
            Ok(Some(Err(_)) | None) => Err("it panicked".to_owned()),
            Err(_elapsed) => Err(takes_long()),
        }
    }

    fn tell(&self, user: Option<&Name>, query: &str, why: &str) {
        tracing::warn!(query, why, "the query of a rule failed, and allows nothing");
        if let Some(audit) = &self.audit {
            audit.rule_failed(user.map(Name::as_str), query, why);
        }
    }
}

/// The IRIs that a query selects.
async fn names(
    engine: &Engine,
    text: &str,
    snapshot: Arc<Snapshot>,
    time_max: Duration,
) -> Result<Vec<Term<'static>>, String> {
    let options = QueryOptions {
        snapshot: Some(snapshot),
        timeout: Some(time_max),
        strict_prefixes: true,
        // A request waits that must not wait for remote endpoints.
        asks_nobody: true,
        ..QueryOptions::of_process()
    };
    let told = |error: orrery_sparql::QueryError| error.to_string();
    let prepared = engine.prepare(text, &options).map_err(told)?;
    let QueryResults::Solutions(mut solutions) = prepared.execute().await.map_err(told)? else {
        return Err("it selects nothing".to_owned());
    };
    let mut names = Vec::new();
    while let Some(batch) = solutions.next().await {
        let batch = batch.map_err(told)?;
        let terms = (0..batch.rows()).filter_map(|row| batch.term(row, 0));
        names.extend(terms.filter(|term| matches!(term, Term::Iri(_))).cloned());
        if names.len() > GRAPHS_MAX {
            return Err(format!("it finds more than {GRAPHS_MAX} graphs"));
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use orrery_sparql::EngineOptions;
    use orrery_storage::{CommitOptions, Database, Writer, WriterOptions};
    use orrery_term::TermId;

    const LISTED: &str = "SELECT ?g { ?g <x:is> <x:listed> }";

    struct Fixture {
        rules: GraphRules,
        database: Arc<Database>,
        writer: Writer,
        _directory: tempfile::TempDir,
    }

    impl Fixture {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let database = Database::create_or_open(directory.path().join("db")).unwrap();
            let database = Arc::new(database);
            let writer = database.open_writer(WriterOptions::default()).unwrap();
            let engine = Engine::new(Arc::clone(&database), EngineOptions::default());
            let rules = GraphRules {
                engine: Arc::new(engine.unwrap()),
                threads: Handle::current(),
                audit: None,
            };
            Self {
                rules,
                database,
                writer,
                _directory: directory,
            }
        }

        /// Lists a graph, and returns the state after that.
        fn listing(&self, graph: &str) -> Arc<Snapshot> {
            let mut transaction = self.writer.begin().unwrap();
            let mut id = |iri: &str| transaction.intern(&Term::iri(iri)).unwrap();
            let quad = [id(graph), id("x:is"), id("x:listed"), TermId::DEFAULT_GRAPH];
            transaction.insert(&mut vec![quad]).unwrap();
            let pending = transaction.commit(CommitOptions::default()).unwrap();
            pending.wait().unwrap();
            self.database.snapshot()
        }
    }

    fn queries(texts: Vec<String>) -> Arc<Queries<usize>> {
        let query = GraphQuery {
            right: Right::Read,
            text: "as the rule has it".to_owned(),
            texts,
        };
        Queries::of(None, vec![query]).unwrap()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn an_older_state_and_a_newer_one_leave_each_other_what_was_found() {
        let fixture = Fixture::new();
        let queries = queries(vec![LISTED.to_owned()]);
        let older = fixture.listing("x:g1");
        let newer = fixture.listing("x:g2");
        let mut made = 0;
        for _ in 0..3 {
            for (state, graphs) in [(&older, 1), (&newer, 2)] {
                let count = |found: &FoundGraphs| {
                    made += 1;
                    found.reads.named.len()
                };
                let found = queries.made(&fixture.rules, state, count).await;
                assert_eq!(found, graphs);
            }
        }
        assert_eq!(made, 2);
        // The third state replaces the one used before the other two.
        let newest = fixture.listing("x:g3");
        let none = |_: &FoundGraphs| panic!("it was found before");
        let count = |found: &FoundGraphs| found.reads.named.len();
        assert_eq!(queries.made(&fixture.rules, &newest, count).await, 3);
        assert_eq!(queries.made(&fixture.rules, &newer, none).await, 2);
        assert_eq!(queries.made(&fixture.rules, &newest, none).await, 3);
        assert_eq!(queries.kept.lock().await.len(), STATES_MAX);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn two_states_with_one_number_are_two() {
        // One state has a relaxed commit that was lost with a change of leader, the other what was
        // committed instead.
        let (lost, real) = (Fixture::new(), Fixture::new());
        let queries = queries(vec![LISTED.to_owned()]);
        let before = lost.listing("x:secret");
        let after = real.listing("x:open");
        assert_eq!(before.commit(), after.commit());
        let secret = Term::iri("x:secret");
        let secrets = |found: &FoundGraphs| usize::from(found.reads.named.contains(&secret));
        assert_eq!(queries.made(&lost.rules, &before, secrets).await, 1);
        assert_eq!(queries.made(&real.rules, &after, secrets).await, 0);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn all_queries_together_have_one_time() {
        const QUERIES: usize = 20;
        let fixture = Fixture::new();
        let state = fixture.listing("x:g1");
        let ten = |number| format!("VALUES ?v{number} {{ 0 1 2 3 4 5 6 7 8 9 }}");
        let tens: String = (0..12).map(ten).collect();
        let endless = format!("SELECT ?g {{ {tens} }}");
        let texts = std::iter::repeat_n(endless, QUERIES);
        let queries = queries(texts.chain([LISTED.to_owned()]).collect());
        let begun = Instant::now();
        let count = |found: &FoundGraphs| found.reads.named.len();
        let found = queries.made(&fixture.rules, &state, count).await;
        assert_eq!(found, 0, "nothing is left for the last");
        assert!(begun.elapsed() < TIME_MAX * QUERIES as u32 / 2);
    }
}
