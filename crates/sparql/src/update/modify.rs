//! `DELETE`/`INSERT` ... `WHERE`: from rows of ids to deleted and inserted quads.
//!
//! Rows are turned into quads of both templates as they come and then forgotten. Equal quads are
//! dropped whenever their number has doubled, so what is held is about the size of the change.
//!
//! Ids of the query become ids of the transaction here: a term that only the query knows is
//! interned if it is to be inserted, and makes a quad that cannot be there if it is to be deleted;
//! a blank node that the query made (`BNODE()`, a label in a template) gets a number of the
//! transaction.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use arrow::array::RecordBatch;
use datafusion_execution::memory_pool::{MemoryConsumer, MemoryReservation};
use futures::StreamExt;
use orrery_operators::context::QueryContext;
use orrery_runtime::Pace;
use orrery_storage::Transaction;
use orrery_term::{LanguageTags, Term, TermId, TermKind, Triple};
use spargebra::algebra::{GraphPattern, QueryDataset};
use spargebra::term::{GroundQuadPattern, QuadPattern, Variable};

use super::paid::Paid;
use super::services::Services;
use super::{ParsedUpdate, UpdateOptions};
use crate::engine::Engine;
use crate::error::QueryError;
use crate::parse;
use crate::prepare;
use crate::results::{QuadTemplate, for_each_quad_variable};
use crate::touch_reader::TouchReader;
use crate::write_scope::WriteScope;

/// Fewer quads than this are not looked through for duplicates.
const DEDUP_QUADS_MIN: usize = 1 << 16;

/// So many insertions at a time leave the memory where a transaction can stage them.
const BULK_QUADS: usize = 1 << 18;

/// The parts of the operation.
pub(super) struct Modification<'u> {
    pub(super) delete: &'u [GroundQuadPattern],
    pub(super) insert: &'u [QuadPattern],
    pub(super) using: Option<&'u QueryDataset>,
    pub(super) pattern: &'u GraphPattern,
}

/// Computes all solutions on the transaction's state, then deletes, then inserts.
pub(super) async fn modify(
    engine: &Engine,
    update: &ParsedUpdate,
    modification: &Modification<'_>,
    options: &UpdateOptions,
    transaction: &mut Transaction,
) -> Result<(), QueryError> {
    let view = options.query.view_of(transaction.snapshot()?)?;
    let variables = modification.variables();
    let plan = || {
        let pattern = prepare::Pattern {
            pattern: modification.pattern,
            variables: &variables,
            using: modification.using,
            base_iri: update.base_iri.clone(),
            now: update.now,
            language_tags: &update.language_tags,
            service: update.services.as_ref().map(Services::options),
            is_set: modification.is_set(),
        };
        prepare::prepare_pattern(engine, Arc::clone(&view), &pattern, &options.query)
    };
    let prepared = if update.needs_large_stack {
        parse::on_large_stack("plan-update", plan)
    } else {
        plan()
    }
    .map_err(|error| error.with_limit(engine.options().memory_bytes))?;

    let column = |variable: &Variable| prepared.columns.get(variable.as_str()).copied();
    let context = &prepared.context;
    let delete: Vec<QuadPattern> = modification.delete.iter().map(quad_pattern).collect();
    let delete = QuadTemplate::compile(context, &delete, column)?;
    let insert = QuadTemplate::compile(context, modification.insert, column)?;
    let spending = options.query.spending.as_ref();
    let paid = Paid(spending.map(AsRef::as_ref));
    let mut changes = Changes {
        delete: QuadList::new(engine, "quads to delete"),
        insert: QuadList::new(engine, "quads to insert"),
        ids: Ids {
            context,
            first_new_blank_node: view.snapshot().next_blank_node(),
            own: HashMap::new(),
            tags: None,
            writes: (!options.are_of_all_graphs()).then_some(&options.writes),
            changeable: HashSet::new(),
        },
        paid,
    };
    let counted = spending.map(|spending| {
        let (plan, context) = (Arc::clone(&prepared.plan), Arc::clone(context));
        spending.watch(TouchReader::new(plan, context).of_run())
    });
    let added: Result<(), QueryError> = async {
        let mut rows = engine
            .run(
                (&prepared.plan, context),
                prepared.has_own_task,
                &options.query,
            )
            .await?;
        let mut pace = Pace::new();
        while let Some(batch) = rows.next().await {
            changes.add(&batch?, &delete, &insert, transaction)?;
            // Where a batch is always ready, whoever waits beside this to end it would never be
            // asked.
            if pace.must_give_way(Instant::now()) {
                tokio::task::yield_now().await;
            }
        }
        Ok(())
    }
    .await;
    drop(counted);
    if let Some(services) = &update.services {
        // Before errors: those of solutions that mean nothing mean nothing.
        services.check()?;
    }
    added?;
    let Changes { delete, insert, .. } = changes;
    delete.apply(paid, |quads| Ok(transaction.delete(quads)?))?;
    insert.apply(paid, |quads| Ok(transaction.insert(quads)?))
}

impl Modification<'_> {
    /// Whether equal solutions make the same quads.
    fn is_set(&self) -> bool {
        let is_same = prepare::is_same_each_time;
        self.insert
            .iter()
            .all(|quad| is_same(&quad.subject) && is_same(&quad.object))
    }

    /// The variables of the templates, each once.
    fn variables(&self) -> Vec<Variable> {
        let mut variables: Vec<Variable> = Vec::new();
        let mut add = |variable: &Variable| {
            if !variables.contains(variable) {
                variables.push(variable.clone());
            }
        };
        for quad in self.delete {
            for_each_quad_variable(&quad_pattern(quad), &mut add);
        }
        for quad in self.insert {
            for_each_quad_variable(quad, &mut add);
        }
        variables
    }
}

/// A quad to delete is a quad pattern without blank nodes.
fn quad_pattern(quad: &GroundQuadPattern) -> QuadPattern {
    QuadPattern {
        subject: quad.subject.clone().into(),
        predicate: quad.predicate.clone(),
        object: quad.object.clone().into(),
        graph_name: quad.graph_name.clone(),
    }
}

/// The change in the making.
struct Changes<'c> {
    delete: QuadList,
    insert: QuadList,
    ids: Ids<'c>,
    paid: Paid<'c>,
}

impl Changes<'_> {
    /// Adds the quads of some solutions.
    fn add(
        &mut self,
        batch: &RecordBatch,
        delete: &QuadTemplate,
        insert: &QuadTemplate,
        transaction: &mut Transaction,
    ) -> Result<(), QueryError> {
        let Self {
            delete: to_delete,
            insert: to_insert,
            ids,
            paid,
        } = self;
        delete.for_each(batch, ids.context, |quad| {
            // Before it is looked at whether the database knows the quad's terms: it may know them
            // of hidden quads.
            ids.require_change(quad[3])?;
            match ids.may_exist(&quad) {
                true => to_delete.push(quad),
                false => Ok(()),
            }
        })?;
        ids.take_tags(transaction);
        insert.for_each(batch, ids.context, |mut quad| {
            ids.require_change(quad[3])?;
            for id in &mut quad {
                if ids.is_new(*id) {
                    *id = ids.own_id(*id, transaction)?;
                }
            }
            to_insert.push(quad)
        })?;
        // Deletions come first, and are of the state before: what is staged already stays inserted.
        if transaction.is_bulk() && to_insert.quads.len() >= BULK_QUADS {
            paid.changed(to_insert.quads.len() as u64)?;
            transaction.insert_staged(&to_insert.quads)?;
            to_insert.quads.clear();
            to_insert.distinct = 0;
        }
        Ok(())
    }
}

/// From ids of the query to ids of the transaction.
struct Ids<'c> {
    context: &'c QueryContext,
    /// Blank nodes from here on were made by the query.
    first_new_blank_node: u64,
    /// The ids that new terms got.
    own: HashMap<TermId, TermId>,
    /// The query's language tags that the transaction has.
    tags: Option<Arc<LanguageTags>>,
    /// The graphs that may be changed; none where all may be.
    writes: Option<&'c WriteScope>,
    /// Those among them that were asked for.
    changeable: HashSet<TermId>,
}

impl Ids<'_> {
    fn is_new(&self, id: TermId) -> bool {
        match id.kind() {
            TermKind::QueryLocal => true,
            TermKind::BlankNode => id.payload() >= self.first_new_blank_node,
            _ => false,
        }
    }

    /// Refuses a graph that may not be changed.
    fn require_change(&mut self, graph: TermId) -> Result<(), QueryError> {
        let Some(writes) = self.writes else {
            return Ok(());
        };
        if self.changeable.contains(&graph) {
            return Ok(());
        }
        match graph {
            TermId::DEFAULT_GRAPH => writes.require(None)?,
            named => writes.require(Some(&self.context.term(named)?))?,
        }
        self.changeable.insert(graph);
        Ok(())
    }

    /// Whether the database can have this quad at all.
    fn may_exist(&self, quad: &[TermId; 4]) -> bool {
        !quad.iter().any(|&id| self.is_new(id))
    }

    /// Tells the transaction how the query writes language tags, if there are new ones: those of a
    /// batch are noted before it comes.
    fn take_tags(&mut self, transaction: &mut Transaction) {
        let Some(tags) = self.context.own_language_tags() else {
            return;
        };
        let is_taken = |taken: &Arc<LanguageTags>| Arc::ptr_eq(taken, &tags);
        if !self.tags.as_ref().is_some_and(is_taken) {
            transaction.add_language_tags(&tags);
            self.tags = Some(tags);
        }
    }

    /// The transaction's id of a term that only the query knows.
    fn own_id(&mut self, id: TermId, transaction: &mut Transaction) -> Result<TermId, QueryError> {
        if id.kind() == TermKind::BlankNode {
            // The query's numbers begin where the transaction's end, so they are free; there may be
            // one a row, too many to be remembered.
            return Ok(transaction.intern(&Term::BlankNode(id.payload()))?);
        }
        if let Some(&known) = self.own.get(&id) {
            return Ok(known);
        }
        let term = self.own_term(self.context.term(id)?, transaction)?;
        let own = transaction.intern(&term)?;
        self.own.insert(id, own);
        Ok(own)
    }

    /// The same term with the transaction's numbers for new blank nodes inside of it.
    fn own_term(
        &mut self,
        term: Term<'static>,
        transaction: &mut Transaction,
    ) -> Result<Term<'static>, QueryError> {
        match term {
            Term::BlankNode(number) if number >= self.first_new_blank_node => {
                let own = self.own_id(TermId::blank_node(number), transaction)?;
                Ok(Term::BlankNode(own.payload()))
            }
            Term::Triple(triple) => {
                let [subject, predicate, object] = triple
                    .into_parts()
                    .map(|part| self.own_term(part, transaction));
                let triple = Triple::new(subject?, predicate?, object?);
                let triple = triple.map_err(|error| QueryError::internal(error.to_string()))?;
                Ok(triple.into())
            }
            term @ (Term::BlankNode(_) | Term::Iri(_) | Term::Literal(_)) => Ok(term),
        }
    }
}

/// Quads, now and then without duplicates, counted against the memory of the engine.
struct QuadList {
    quads: Vec<[TermId; 4]>,
    /// How many there were after duplicates were dropped last.
    distinct: usize,
    reservation: MemoryReservation,
    limit_bytes: u64,
}

impl QuadList {
    fn new(engine: &Engine, name: &'static str) -> Self {
        Self {
            quads: Vec::new(),
            distinct: 0,
            reservation: MemoryConsumer::new(name).register(engine.memory_pool()),
            limit_bytes: engine.options().memory_bytes,
        }
    }

    fn push(&mut self, quad: [TermId; 4]) -> Result<(), QueryError> {
        if self.quads.len() == self.quads.capacity() {
            self.make_room()?;
        }
        self.quads.push(quad);
        Ok(())
    }

    fn make_room(&mut self) -> Result<(), QueryError> {
        if self.quads.len() >= DEDUP_QUADS_MIN.max(2 * self.distinct) {
            self.quads.sort_unstable();
            self.quads.dedup();
            self.distinct = self.quads.len();
        }
        if self.quads.len() > self.quads.capacity() / 2 {
            let more = self.quads.capacity().max(64);
            let bytes = more * size_of::<[TermId; 4]>();
            // The same refusal as of the transaction itself: both are its changes.
            self.reservation.try_grow(bytes).map_err(|_refused| {
                orrery_storage::Error::TransactionMemory {
                    needed_bytes: (self.quads.capacity() * size_of::<[TermId; 4]>() + bytes) as u64,
                    limit_bytes: self.limit_bytes,
                }
            })?;
            self.quads
                .reserve_exact(self.quads.capacity() - self.quads.len() + more);
        }
        Ok(())
    }

    fn apply(
        mut self,
        paid: Paid<'_>,
        change: impl FnMut(&mut Vec<[TermId; 4]>) -> Result<u64, QueryError>,
    ) -> Result<(), QueryError> {
        match self.quads.is_empty() {
            true => Ok(()),
            false => paid.for_all(&mut self.quads, change),
        }
    }
}
