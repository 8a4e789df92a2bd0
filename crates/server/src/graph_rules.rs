//! Rules about graphs that queries find: run for who asks, over the state that is read then.
//!
//! ```text
//! rules by query of somebody -> state of now -> found before in it? else the queries, over all graphs -> names of graphs
//! ```
//!
//! What was found for somebody is kept until the next commit; others who ask as the same wait for it. A query that fails gives nothing, which the audit log tells, and is
//! run again a second later.

use std::sync::Arc;
use std::time::{Duration, Instant};

use orrery_guard::{GraphQuery, Name, Right};
use orrery_sparql::{Engine, QueryOptions, QueryResults};
use orrery_storage::{GraphNames, Snapshot};
use orrery_term::Term;
use tokio::runtime::Handle;
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use crate::audit::AuditLog;

/// How long a query of a rule may take.
const TIME_MAX: Duration = Duration::from_secs(2);
/// Graphs that a query of a rule may find.
const GRAPHS_MAX: usize = 100_000;
/// How long a failure is good.
const FAILURE_AGE_MAX: Duration = Duration::from_secs(1);

/// What runs queries of rules.
#[derive(Debug)]
pub(crate) struct GraphRules {
    pub(crate) engine: Arc<Engine>,
    pub(crate) threads: Handle,
    pub(crate) audit: Option<Arc<AuditLog>>,
}

/// The rules by query of somebody, and what they found last.
#[derive(Debug)]
pub(crate) struct Queries<T> {
    user: Option<Name>,
    queries: Vec<GraphQuery>,
    last: Mutex<Option<Last<T>>>,
}

#[derive(Debug)]
struct Last<T> {
    commit: u64,
    failed: Option<Instant>,
    /// What was made of what was found.
    made: T,
}

/// Graphs that were found, by what may be done with them.
#[derive(Debug, Default)]
pub(crate) struct FoundGraphs {
    pub(crate) reads: GraphNames,
    pub(crate) writes: GraphNames,
}

impl<T: Clone> Queries<T> {
    /// None where there are no such rules.
    pub(crate) fn of(user: Option<&Name>, queries: Vec<GraphQuery>) -> Option<Arc<Self>> {
        (!queries.is_empty()).then(|| {
            Arc::new(Self {
                user: user.cloned(),
                queries,
                last: Mutex::default(),
            })
        })
    }

    /// What is made of what they find in a state.
    pub(crate) async fn made(
        &self,
        rules: &GraphRules,
        snapshot: &Arc<Snapshot>,
        make: impl FnOnce(&FoundGraphs) -> T,
    ) -> T {
        let mut last = self.last.lock().await;
        let is_good = |last: &&Last<T>| {
            let is_over = |failed: Instant| failed.elapsed() > FAILURE_AGE_MAX;
            last.commit == snapshot.commit() && !last.failed.is_some_and(is_over)
        };
        if let Some(last) = last.as_ref().filter(is_good) {
            return last.made.clone();
        }
        let (found, has_failed) = self.find(rules, snapshot).await;
        let made = make(&found);
        *last = Some(Last {
            commit: snapshot.commit(),
            failed: has_failed.then(Instant::now),
            made: made.clone(),
        });
        made
    }

    /// What they find, and whether one of them failed.
    async fn find(&self, rules: &GraphRules, snapshot: &Arc<Snapshot>) -> (FoundGraphs, bool) {
        let (mut found, mut has_failed) = (FoundGraphs::default(), false);
        for query in &self.queries {
            for text in &query.texts {
                match rules.run(text.clone(), Arc::clone(snapshot)).await {
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
    ) -> Result<Vec<Term<'static>>, String> {
        let engine = Arc::clone(&self.engine);
        // Given up with the request.
        let mut running = JoinSet::new();
        running.spawn_on(
            async move { names(&engine, &text, snapshot).await },
            &self.threads,
        );
        let ended = tokio::time::timeout(TIME_MAX, running.join_next()).await;
        match ended {
            Ok(Some(Ok(names))) => names,
            Ok(Some(Err(_)) | None) => Err("it panicked".to_owned()),
            Err(_elapsed) => Err(format!("it takes more than {} s", TIME_MAX.as_secs())),
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
) -> Result<Vec<Term<'static>>, String> {
    let options = QueryOptions {
        snapshot: Some(snapshot),
        timeout: Some(TIME_MAX),
        strict_prefixes: true,
        // Somebody waits who should not wait for others.
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
