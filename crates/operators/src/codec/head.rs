//! The head of an encoded plan: database state, asker, and per-query settings.

use std::sync::Arc;

use orrery_expressions::codec::{ContextText, TermKeyText};
use orrery_storage::{
    Asker, At, Database, DatabaseIdentity, GraphNames, ReadScope, ReadView, Snapshot,
};
use serde::{Deserialize, Serialize};

use super::error::{CodecError, Result};
use crate::context::{ContextOptions, QueryContext};

/// The head of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct PlanHead {
    database: DatabaseIdentity,
    commit: u64,
    /// The files whose dictionary gives the ids. The same commit has other ids after a compaction.
    base: String,
    /// How many terms came after these files were written.
    delta_terms: u64,
    asker: AskerName,
    /// The graphs that may be seen; all if there is no list.
    graphs: Option<VisibleGraphs>,
    query: ContextText,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
enum AskerName {
    Anonymous,
    User(u64),
    Process,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct VisibleGraphs {
    has_default: bool,
    named: Vec<TermKeyText>,
    /// How the IRIs of others begin.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    below: Vec<String>,
}

impl PlanHead {
    /// The head of a query's plan, for so many other processes.
    pub(super) fn of(context: &QueryContext, parts: u32) -> Result<Self> {
        let snapshot = context.snapshot();
        let identity = snapshot.manifest().identity.clone();
        let scope = context.view().scope();
        Ok(Self {
            database: identity.ok_or(CodecError::NoIdentity)?,
            commit: snapshot.commit(),
            base: snapshot.segment_name().to_owned(),
            delta_terms: snapshot.delta_terms(),
            asker: match scope.asker() {
                Asker::Anonymous => AskerName::Anonymous,
                Asker::User(number) => AskerName::User(number),
                Asker::Process => AskerName::Process,
            },
            graphs: scope.graphs().map(|graphs| VisibleGraphs {
                has_default: graphs.has_default,
                named: graphs.named.iter().map(TermKeyText::of).collect(),
                below: graphs.below.iter().map(str::to_owned).collect(),
            }),
            query: ContextText::of(context.expressions(), parts)?,
        })
    }

    /// The commit that the plan reads.
    pub(super) fn commit(&self) -> u64 {
        self.commit
    }

    /// How many terms are the query's own.
    pub(super) fn own_terms(&self) -> u64 {
        self.query.own_terms()
    }

    /// The state of a database that the plan reads, present or past.
    pub(super) fn snapshot(&self, database: &Database) -> Result<Arc<Snapshot>> {
        let present = database.snapshot();
        // Of another database, no state is looked for.
        self.check_database(&present)?;
        match present.commit() == self.commit {
            true => Ok(present),
            false => Ok(database.snapshot_at(At::Commit(self.commit))?),
        }
    }

    fn check_database(&self, snapshot: &Snapshot) -> Result<()> {
        let found = &snapshot.manifest().identity;
        match found.as_ref() == Some(&self.database) {
            true => Ok(()),
            false => Err(CodecError::OtherDatabase {
                wanted: self.database.clone(),
                found: found.clone(),
            }),
        }
    }

    fn check(&self, snapshot: &Snapshot) -> Result<()> {
        self.check_database(snapshot)?;
        if snapshot.commit() != self.commit {
            return Err(CodecError::OtherCommit {
                wanted: self.commit,
                found: snapshot.commit(),
            });
        }
        let is_same =
            snapshot.segment_name() == self.base && snapshot.delta_terms() == self.delta_terms;
        match is_same {
            true => Ok(()),
            false => Err(CodecError::OtherIds {
                wanted: self.base.clone(),
                found: snapshot.segment_name().to_owned(),
            }),
        }
    }

    fn scope(&self) -> Result<ReadScope> {
        let asker = match self.asker {
            AskerName::Anonymous => Asker::Anonymous,
            AskerName::User(number) => Asker::User(number),
            AskerName::Process => Asker::Process,
        };
        let Some(graphs) = &self.graphs else {
            return Ok(ReadScope::all_graphs(asker));
        };
        let named = graphs.named.iter().map(TermKeyText::to_term);
        let graphs = GraphNames {
            has_default: graphs.has_default,
            named: named.collect::<std::result::Result<_, _>>()?,
            below: graphs.below.iter().cloned().collect(),
        };
        Ok(ReadScope::only(asker, graphs))
    }

    /// The context of one part of the query over that state.
    pub(super) fn context(
        &self,
        snapshot: Arc<Snapshot>,
        options: ContextOptions,
        part: u32,
    ) -> Result<Arc<QueryContext>> {
        self.check(&snapshot)?;
        let view = ReadView::new(snapshot, self.scope()?)?;
        let pool = Arc::clone(&options.memory_pool);
        let expressions = self.query.build(Arc::clone(view.snapshot()), pool, part)?;
        Ok(QueryContext::with_expressions(view, expressions, options))
    }
}
