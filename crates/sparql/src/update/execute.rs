//! The execution of an update's operations on a transaction.

use std::sync::Arc;

use futures::future::BoxFuture;
use orrery_storage::{Error as StorageError, ReadView, Snapshot, Transaction};
use orrery_term::{Term, TermId};
use spargebra::GraphUpdateOperation;

use super::paid::Paid;
use super::{
    Operation, ParsedUpdate, UpdateOptions, beneath_mapped, graphs, memory, modify, weights,
};
use crate::engine::Engine;
use crate::error::QueryError;

/// A change that takes less than this part of the engine's memory is small.
const SMALL_CHANGE_PART: u64 = 16;

impl Engine {
    /// Applies all operations of an update to a transaction, which the caller then commits; after
    /// an error the caller drops it, and nothing has happened. After [`QueryError::AskFirst`] it
    /// goes on with [`Engine::ask`] and another transaction.
    ///
    /// Fails before anything is done where the update names a graph that the options do not let it
    /// change.
    ///
    /// Blocks while it works; the streams of `WHERE`s run on the caller's tokio runtime.
    pub fn apply<'a>(
        &'a self,
        update: &'a ParsedUpdate,
        options: &'a UpdateOptions,
        transaction: &'a mut Transaction,
    ) -> BoxFuture<'a, Result<(), QueryError>> {
        Box::pin(async move {
            options.check_may_write()?;
            let paid = Paid(options.query.spending.as_deref());
            paid.begin();
            let mut operations = update.operations.iter();
            operations.try_for_each(|operation| operation.check(&options.writes))?;
            transaction.count_memory(|| Box::new(memory::EngineMemory::new(self)));
            if let Some(services) = &update.services {
                services.begin_pass();
            }
            transaction.add_language_tags(&update.language_tags);
            for operation in &update.operations {
                self.operation(operation, update, options, transaction)
                    .await
                    .map_err(|error| self.unless_others_hold_the_memory(error))?;
            }
            // What the last one has read was not asked for yet.
            paid.changed(0)?;
            if self.mapped_among(transaction.tables()).is_none() || transaction.is_bulk() {
                // Staged quads can be checked only once they are a base: the bulk commit checks
                // them.
                return Ok(());
            }
            let before = Arc::clone(transaction.start());
            self.refuse_quads_of_mapped_graphs(&before, &transaction.snapshot()?)
        })
    }

    /// Fails where a change has stored quads in a graph that is mapped, for nobody would see them
    /// there, however many it has taken away. Quads that were there before are no fault of it: who
    /// sends it may know nothing of that graph. They may be taken away.
    ///
    /// # Errors
    /// Names the graph, which the change was about.
    pub fn refuse_quads_of_mapped_graphs(
        &self,
        before: &Arc<Snapshot>,
        after: &Arc<Snapshot>,
    ) -> Result<(), QueryError> {
        let Some(mapped) = self.mapped_among(after.tables()) else {
            return Ok(());
        };
        let dataset = mapped.of_query(after)?;
        for name in dataset.names() {
            if beneath_mapped::has_come([before, after], name)? {
                return Err(QueryError::update_failed(format!(
                    "the graph {name} is mapped from tables, so no quads can be stored in it"
                )));
            }
        }
        Ok(())
    }

    /// Whether a graph of a state is mapped from tables.
    ///
    /// # Errors
    /// When definitions cannot be read.
    pub fn is_mapped(&self, state: &Arc<Snapshot>, graph: &str) -> Result<bool, QueryError> {
        let Some(mapped) = self.mapped_among(state.tables()) else {
            return Ok(false);
        };
        Ok(mapped.of_query(state)?.names().contains(&graph))
    }

    /// A small change that finds no memory because queries hold it is not for the bulk path, and
    /// not too large: it is to be tried again.
    fn unless_others_hold_the_memory(&self, error: QueryError) -> QueryError {
        let QueryError::Storage(StorageError::TransactionMemory { needed_bytes, .. }) = &error
        else {
            return error;
        };
        let small_bytes = self.options().memory_bytes / SMALL_CHANGE_PART;
        let others_bytes = (self.memory_held_bytes() as u64).saturating_sub(*needed_bytes);
        match *needed_bytes < small_bytes && others_bytes > self.options().memory_bytes / 2 {
            true => QueryError::Busy,
            false => error,
        }
    }

    async fn operation(
        &self,
        operation: &Operation,
        update: &ParsedUpdate,
        options: &UpdateOptions,
        transaction: &mut Transaction,
    ) -> Result<(), QueryError> {
        let paid = Paid(options.query.spending.as_deref());
        match operation {
            Operation::InsertData(data) | Operation::Loaded(data) => {
                transaction.add_language_tags(data.language_tags());
                // They are for all graphs.
                if options.writes.is_all() {
                    transaction.note_loaded_prefixes(data.prefixes());
                }
                let mut quads = data.intern(transaction)?;
                paid.for_all(&mut quads, |quads| Ok(transaction.insert(quads)?))
            }
            Operation::DeleteData(data) => {
                let mut quads = data.known_to(&*transaction.snapshot()?)?;
                paid.for_all(&mut quads, |quads| Ok(transaction.delete(quads)?))
            }
            Operation::Weight(statement) => weights::apply(statement, options, transaction),
            Operation::Other(GraphUpdateOperation::DeleteInsert {
                delete,
                insert,
                using,
                pattern,
            }) => {
                if insert.is_empty()
                    && let Some(target) =
                        graphs::cleared_by(delete, using.as_ref(), pattern, options)
                {
                    return graphs::clear(&target, options, transaction);
                }
                let modification = modify::Modification {
                    delete,
                    insert,
                    using: using.as_ref(),
                    pattern,
                };
                modify::modify(self, update, &modification, options, transaction).await
            }
            Operation::Other(
                GraphUpdateOperation::Clear { graph, .. }
                | GraphUpdateOperation::Drop { graph, .. },
            ) => {
                // Without empty graphs there is nothing that these could fail of.
                graphs::clear(graph, options, transaction)
            }
            Operation::Other(GraphUpdateOperation::Create { silent, graph }) => {
                let view = options.query.view_of(transaction.snapshot()?)?;
                if !silent && graph_exists(&view, Some(graph.as_str()))? {
                    return Err(QueryError::update_failed(format!(
                        "the graph {graph} exists already; CREATE SILENT lets it be"
                    )));
                }
                Ok(())
            }
            Operation::Other(
                GraphUpdateOperation::InsertData { .. }
                | GraphUpdateOperation::DeleteData { .. }
                | GraphUpdateOperation::Load { .. },
            ) => Err(QueryError::internal("an operation that was not prepared")),
        }
    }
}

/// Whether a graph has quads; without a name, the default graph.
pub fn graph_exists(view: &ReadView, graph: Option<&str>) -> Result<bool, QueryError> {
    let id = match graph {
        Some(name) => view.snapshot().term_id(&Term::iri(name))?,
        None => Some(TermId::DEFAULT_GRAPH),
    };
    id.map_or(Ok(false), |id| graphs::has_quads(view, id))
}
