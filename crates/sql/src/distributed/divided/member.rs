//! The worker's side: plans of statement parts that other processes send.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use datafusion::common::{DataFusionError, Result as EngineResult};
use datafusion::logical_expr::{LogicalPlan, Volatility};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use orrery_distributed::{AsTheyAre, Ends, Language, WorkerPlan, Workers};
use orrery_storage::table::TableNames;
use orrery_storage::{Asker, At, GraphNames, ReadScope, Snapshot};
use parking_lot::Mutex;
use tokio::runtime::Handle;

use super::description::{Description, Stated};
use super::rules::{RULES, gives_other_rows};
use super::{SQL, only_query, subqueries};
use crate::catalog::scope::SqlScope;
use crate::execute::stopping::{Stoppable, stoppable};
use crate::plan::counted::touches;
use crate::plan::planner::Planner;
use crate::plan::prepared::with_types;
use crate::session::client::Session;
use crate::settings::Scope;
use crate::{Error, Result};

/// Plans that a process keeps.
const KEPT_PLANS_MAX: usize = 32;
/// Plans of longer descriptions, whose parameters are large, are not kept.
const KEPT_DESCRIPTION_BYTES_MAX: usize = 64 << 10;
/// How long a process waits for a commit that another one has already.
const COMMIT_WAIT: Duration = Duration::from_secs(1);

impl Session {
    /// Distributes queries of such sessions over processes, and runs parts of theirs on those
    /// threads.
    pub fn divide_among(&self, processes: &Arc<Workers>, threads: Handle) {
        let mut session = self.clone();
        session.processes = None;
        let plans = SqlPlans {
            session,
            threads,
            kept: Arc::default(),
        };
        processes.learn(SQL, Arc::new(plans));
    }
}

/// Makes plans of statements that other processes were asked. Its session divides nothing itself.
struct SqlPlans {
    session: Session,
    threads: Handle,
    kept: Arc<KeptPlans>,
}

/// The optimized plans of the statements that came last, by their descriptions. They are of one
/// commit: a later one is likely to be asked for from then on, and what plans of an earlier one
/// hold is to go.
#[derive(Default)]
struct KeptPlans(Mutex<(u64, VecDeque<(Bytes, LogicalPlan)>)>);

impl KeptPlans {
    fn get(&self, description: &Bytes) -> Option<LogicalPlan> {
        let kept = self.0.lock();
        let mut plans = kept.1.iter();
        let found = plans.find(|(of, _)| of == description)?;
        Some(found.1.clone())
    }

    fn keep(&self, commit: u64, description: Bytes, plan: LogicalPlan) {
        let mut kept = self.0.lock();
        if kept.0 != commit {
            *kept = (commit, VecDeque::new());
        }
        if kept.1.len() == KEPT_PLANS_MAX {
            kept.1.pop_front();
        }
        kept.1.push_back((description, plan));
    }
}

impl Language for SqlPlans {
    fn plan(&self, description: Bytes, _: u32) -> BoxFuture<'static, EngineResult<WorkerPlan>> {
        let (session, kept) = (self.session.clone(), Arc::clone(&self.kept));
        let made = self
            .threads
            .spawn(async move { plan(&session, &kept, description).await });
        async move {
            match made.await {
                Ok(made) => made,
                Err(error) => Err(DataFusionError::External(Box::new(error))),
            }
        }
        .boxed()
    }

    fn threads(&self) -> Handle {
        self.threads.clone()
    }
}

async fn plan(session: &Session, kept: &KeptPlans, bytes: Bytes) -> EngineResult<WorkerPlan> {
    let description = Description::of_bytes(&bytes).map_err(other_plan)?;
    let session = asked_session(session, &description.stated);
    let snapshot = state(&session, description.stated.commit).await?;
    let planner = session.planner(&snapshot);
    let made = made(&planner, kept, description).await;
    made.map_err(other_plan)
}

async fn made(
    planner: &Planner,
    kept: &KeptPlans,
    description: Description,
) -> EngineResult<WorkerPlan> {
    let of_sql = |error: Error| DataFusionError::External(Box::new(error));
    let key = &description.key;
    let optimized = match kept.get(key) {
        Some(optimized) => optimized,
        None => {
            let (optimized, may_keep) = optimized(planner, &description).await.map_err(of_sql)?;
            if may_keep && key.len() <= KEPT_DESCRIPTION_BYTES_MAX {
                // A copy: the whole description is longer.
                let key = Bytes::copy_from_slice(key);
                kept.keep(description.stated.commit, key, optimized.clone());
            }
            optimized
        }
    };
    let part = subqueries::at(optimized, &description.part.path)?;
    let planner = planner.in_shares(description.part.partitions);
    let plan = planner.physical_of(&part, &description.stated.text).await;
    let plan = plan.map_err(of_sql)?;
    let plan = subqueries::with_values(plan, &description.values)?;
    // Parts run on tasks of their own.
    let Stoppable { task, stop, .. } = stoppable(&plan, planner.task());
    Ok(WorkerPlan {
        plan,
        task,
        rules: RULES,
        translation: Arc::new(AsTheyAre),
        touches: Arc::new(|parts| parts.iter().map(touches).sum()),
        ends: stop.map(|stop| Box::new(stop) as Ends),
    })
}

/// Whoever was asked could make the plan, and can run it: this process may have another version.
fn other_plan(error: DataFusionError) -> DataFusionError {
    tracing::warn!("a part of another process's statement cannot be planned: {error}");
    let member = "that was told of it".to_owned();
    orrery_distributed::Error::OtherPlan { member }.into()
}

/// A session that plans as that of who asked does, over the tables that they may read.
fn asked_session(session: &Session, stated: &Stated) -> Session {
    let mut session = session.another_of(&stated.user, String::new());
    if let Some((schemas, tables)) = &stated.reads {
        let reads = TableNames {
            schemas: schemas.clone(),
            tables: tables.clone(),
        };
        // What is divided reads no graphs, and changes nothing.
        session.set_scope(Some(Arc::new(SqlScope {
            reads: Some(reads),
            writes: Some(TableNames::default()),
            graphs: ReadScope::only(Asker::Anonymous, GraphNames::default()),
            writes_all_graphs: false,
        })));
    }
    let mut settings = session.settings.lock();
    for (name, value) in &stated.settings {
        // One that cannot be set is as it is: the fingerprint tells whether that matters.
        _ = settings.set(name, Some(value), Scope::Session);
    }
    drop(settings);
    session
}

/// What the optimizer makes of the statement with the values of its parameters, and whether it is
/// the same the next time.
async fn optimized(planner: &Planner, description: &Description) -> Result<(LogicalPlan, bool)> {
    let text = &description.stated.text;
    let Some(statement) = only_query(text)? else {
        return Err(Error::unsupported("a text of several statements"));
    };
    let logical = planner.logical(statement, text).await?;
    let logical = with_types(logical, &description.told, text)?;
    let logical = logical
        .with_param_values(description.parameters.clone())
        .map_err(|error| Error::of_engine(&error, text))?;
    let may_keep = !gives_other_rows(&logical, Volatility::Stable);
    Ok((planner.optimized(&logical, text).await?, may_keep))
}

/// The state of a commit, which may have to come here yet, or be past.
async fn state(session: &Session, commit: u64) -> EngineResult<Arc<Snapshot>> {
    let database = &session.database;
    let began = Instant::now();
    while database.snapshot().commit() < commit && began.elapsed() < COMMIT_WAIT {
        tokio::time::sleep(COMMIT_WAIT / 50).await;
    }
    let present = database.snapshot();
    if present.commit() == commit {
        return Ok(present);
    }
    let database = Arc::clone(database);
    let past = tokio::task::spawn_blocking(move || database.snapshot_at(At::Commit(commit)));
    let lost = |text: String| {
        DataFusionError::from(orrery_distributed::Error::Lost(format!(
            "a worker does not have commit {commit}: {text}"
        )))
    };
    let past = past.await.map_err(|error| lost(error.to_string()))?;
    past.map_err(|error| lost(error.to_string()))
}

#[cfg(test)]
mod tests {
    use datafusion::common::ScalarValue;
    use orrery_runtime::{Runtime, RuntimeOptions};
    use orrery_storage::{Database, WriterOptions, build_small};

    use super::*;
    use crate::SessionOptions;
    use crate::distributed::divided::description::{Part, Reads, part_bytes, statement_bytes};

    async fn session(directory: &std::path::Path) -> Session {
        build_small(directory.join("db"), &[]).unwrap();
        let database = Arc::new(Database::open(directory.join("db")).unwrap());
        let writer = database.open_writer(WriterOptions::default()).unwrap();
        let runtime = Runtime::new(&RuntimeOptions {
            memory_bytes: 64 << 20,
            is_process_bound: false,
            temp_dir: directory.to_owned(),
            batch_rows: 1_024,
            threads: 1,
        });
        let runtime = runtime.unwrap();
        let session = Session::new(&runtime, database, Some(writer), SessionOptions::default());
        let tables = "create table item (id int primary key);
            create table secret (id int primary key);
            create view shown as select id from item;
            create view told as select id from secret";
        for statement in session.statements(tables).unwrap() {
            session.execute(&statement).await.unwrap();
        }
        session
    }

    /// Told of a statement with one parameter by somebody who may read these, if not all.
    async fn planned(session: &Session, text: &str, reads: Option<&[&str]>) -> bool {
        let tables = |names: &[&str]| -> Reads {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            (Default::default(), [("public".to_owned(), names)].into())
        };
        let stated = Stated {
            text: text.to_owned(),
            commit: session.database.snapshot().commit(),
            user: "ann".to_owned(),
            settings: Vec::new(),
            reads: reads.map(tables),
        };
        let part = Part {
            partitions: 4,
            path: Vec::new(),
        };
        let values = [ScalarValue::from(7)];
        let statement = statement_bytes(&stated, &values, &[]).unwrap();
        let bytes = part_bytes(&statement, &part, &[]).unwrap();
        let made = plan(session, &KeptPlans::default(), bytes).await;
        if let Err(error) = &made {
            // Who asked is to run it alone.
            let error = error.to_string();
            assert!(error.contains("makes another plan"), "{error}");
        }
        made.is_ok()
    }

    #[tokio::test]
    async fn plans_are_over_what_the_user_may_read() {
        let directory = tempfile::tempdir().unwrap();
        let session = session(directory.path()).await;
        let all = ["item", "secret", "shown", "told"];
        for (table, reads, is_seen) in [
            ("item", None, true),
            ("secret", None, true),
            ("told", None, true),
            ("item", Some(&["item"][..]), true),
            ("secret", Some(&["item"][..]), false),
            ("shown", Some(&["item", "shown"][..]), true),
            // A right to the view is not one to what it reads.
            ("told", Some(&["item", "told"][..]), false),
            ("told", Some(&all[..]), true),
            ("item", Some(&[][..]), false),
        ] {
            let text = format!("select id from {table} where id = $1");
            let found = planned(&session, &text, reads).await;
            assert_eq!(found, is_seen, "{table} of {reads:?}");
        }
    }

    #[tokio::test]
    async fn the_statement_that_prepare_keeps_is_planned_and_no_several() {
        let directory = tempfile::tempdir().unwrap();
        let session = session(directory.path()).await;
        let prepare = "prepare p as select id from item where id = $1";
        assert!(planned(&session, prepare, None).await);
        assert!(!planned(&session, "select 1; select $1", None).await);
    }
}
