//! SPARQL 1.1 Update: from text to a changed database.
//!
//! ```text
//!   text --Engine::prepare_update--> operations; DATA blocks and the documents of LOAD as
//!              numbered statements; on any thread, without a lock
//!        --Engine::apply--> a storage transaction, operation by operation
//!              INSERT DATA, DELETE DATA, LOAD   statements -> ids -> insert, delete
//!              DELETE/INSERT WHERE              plan over the transaction's snapshot -> rows of ids
//!                                               -> all quads of both templates -> delete, insert
//!              CLEAR, DROP                      ranges of the graph's permutation -> delete
//!        --Engine::ask--> answers of other endpoints, without a transaction; only where there is a SERVICE
//! ```
//!
//! One request is one transaction: each operation sees what the earlier ones did, and whoever holds
//! the transaction commits all of them or none. The solutions of a `WHERE` are computed to their
//! end before anything changes; what is held of them is the quads that they make, as ids, 32 bytes
//! each, counted against the engine's memory.
//!
//! A graph without quads does not exist. So `CREATE` of a graph that has quads fails, of another it
//! does nothing, and `CLEAR` and `DROP` do the same, without an error where there is nothing to do
//! (SPARQL 1.1 Update, 3.2, on stores that do not record empty graphs).

mod ask;
mod beneath_mapped;
mod confine;
mod data;
mod execute;
mod graphs;
mod memory;
mod modify;
mod paid;
mod parse;
mod rights;
mod services;
pub(crate) use services::asks_others;
mod statements;
mod weights;

use std::sync::{Arc, Weak};

use orrery_syntax::WeightStatement;
use orrery_term::LanguageTags;
use oxsdatatypes::DateTime;
use spargebra::GraphUpdateOperation;

use crate::options::QueryOptions;
use crate::write_scope::WriteScope;
use orrery_storage::{Asker, ReadScope};

pub use execute::graph_exists;
pub use statements::{NumberedQuad, Statements, TermNumber, TooMuchText};

/// The source of documents for `LOAD`. The engine itself opens no file and no connection.
pub trait DocumentSource: Send + Sync {
    /// The statements of a document, or one sentence on why they cannot be had. Blocks, and gives
    /// up when no strong reference to `waiting` is left.
    fn load(&self, iri: &str, waiting: Option<&Weak<()>>) -> Result<Statements, String>;
}

/// Settings of one update, mostly what the SPARQL protocol can say beside the text.
#[derive(Clone)]
pub struct UpdateOptions {
    /// Base IRI, time limit of each `WHERE`, and the dataset of all `WHERE`s: `default_graphs` is
    /// `using-graph-uri`, `named_graphs` is `using-named-graph-uri`. Neither the snapshot nor the
    /// view is used.
    pub query: QueryOptions,
    /// The graphs that may be changed.
    pub writes: WriteScope,
    /// Where `LOAD` finds documents; without one, `LOAD` fails.
    pub documents: Option<Arc<dyn DocumentSource>>,
}

impl UpdateOptions {
    /// The protocol's defaults for an asker, who may change all graphs if all are readable, else
    /// none.
    pub fn of(scope: ReadScope) -> Self {
        Self {
            writes: WriteScope::of(&scope),
            query: QueryOptions::of(scope),
            documents: None,
        }
    }

    /// The protocol's defaults for the process itself, which sees all graphs.
    pub fn of_process() -> Self {
        Self::of(ReadScope::all_graphs(Asker::Process))
    }
}

impl std::fmt::Debug for UpdateOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UpdateOptions")
            .field("query", &self.query)
            .field("writes", &self.writes)
            .field("can_load", &self.documents.is_some())
            .finish()
    }
}

/// An update that was read and found well formed.
#[derive(Debug)]
pub struct ParsedUpdate {
    operations: Vec<Operation>,
    base_iri: Option<String>,
    /// Whether the trees of the operations are too deep for an ordinary stack.
    needs_large_stack: bool,
    /// How the text writes language tags.
    language_tags: LanguageTags,
    /// What `NOW()` gives, in all operations.
    now: DateTime,
    /// The answers of other endpoints, if an operation asks them.
    services: Option<Arc<services::Services>>,
}

/// One operation of a request.
#[derive(Debug)]
enum Operation {
    InsertData(Statements),
    DeleteData(Statements),
    /// A `LOAD` whose document is here.
    Loaded(Statements),
    /// About an edge weight.
    Weight(WeightStatement),
    Other(GraphUpdateOperation),
}

impl ParsedUpdate {
    /// An update that only inserts statements.
    pub fn insert(statements: Statements) -> Self {
        Self::plain(vec![Operation::InsertData(statements)])
    }

    /// An update that removes all quads of a graph and then inserts statements.
    pub fn replace(graph: Option<&str>, statements: Statements) -> Self {
        let mut update = Self::insert(statements);
        update.operations.insert(0, Operation::clear(graph));
        update
    }

    /// An update that removes all quads of a graph; without a name, of the default graph.
    pub fn clear(graph: Option<&str>) -> Self {
        Self::plain(vec![Operation::clear(graph)])
    }

    /// Operations without patterns.
    fn plain(operations: Vec<Operation>) -> Self {
        Self {
            operations,
            base_iri: None,
            needs_large_stack: false,
            // Plain data has its tags in lower case, documents bring theirs.
            language_tags: LanguageTags::default(),
            now: DateTime::now(),
            services: None,
        }
    }

    /// Whether an operation has a dataset of its own (`USING`, `WITH`).
    fn has_dataset(&self) -> bool {
        self.operations.iter().any(|operation| {
            matches!(
                operation,
                Operation::Other(GraphUpdateOperation::DeleteInsert { using: Some(_), .. })
            )
        })
    }
}

impl Drop for ParsedUpdate {
    /// A deep tree is also taken down where the stack is large.
    fn drop(&mut self) {
        if self.needs_large_stack {
            let operations = std::mem::take(&mut self.operations);
            // Without a thread the tree stays in memory: better than a crash.
            let leaked = std::mem::ManuallyDrop::new(operations);
            let _ = crate::parse::on_large_stack("drop-update", move || {
                drop(std::mem::ManuallyDrop::into_inner(leaked));
                Ok(())
            });
        }
    }
}
