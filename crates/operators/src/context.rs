//! The context that all operators of one query share: view, memory, threads, touches.
//!
//! A [`QueryContext`] holds the view that the query reads through, what its expressions share
//! ([`ExpressionContext`]: the terms that it computes, `NOW()`, the base IRI), and what it shares
//! with other queries: threads, adjacencies. It is shared by `Arc` between all operators, on all
//! threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use datafusion_execution::memory_pool::{MemoryLimit, MemoryPool, UnboundedMemoryPool};
use orrery_expressions::columns::intern_value;
use orrery_expressions::context::WrittenTags;
use orrery_expressions::{ExpressionContext, ExpressionOptions, Value};
use orrery_runtime::{Adjacencies, Patience, Workers};
use orrery_storage::{ReadView, Snapshot};
use orrery_term::vocabulary::xsd;
use orrery_term::{LanguageTags, Term, TermId};
use oxsdatatypes::DateTime;

use crate::error::Result;

/// What one of the first rows of a sort takes beside its columns and keys: its place among them,
/// and rows near it that are no more wanted.
const FIRST_ROW_BYTES: usize = 64;
/// A key of a sort, as texts mostly are; one that is a number takes less.
const SORT_KEY_BYTES: usize = 96;
/// First rows may take one part of so many of what operators may keep: keys may be longer than they
/// mostly are.
const FIRST_ROWS_PART: usize = 8;

/// The initial settings of a query's context.
#[derive(Clone, Debug)]
pub struct ContextOptions {
    /// Relative IRIs given to `IRI()` are resolved against it.
    pub base_iri: Option<String>,
    /// What the query's own terms are counted against.
    pub memory_pool: Arc<dyn MemoryPool>,
    /// What is on its way between operators is counted against.
    pub on_the_way_pool: Arc<dyn MemoryPool>,
    /// What `NOW()` returns; the clock's time when absent.
    pub now: Option<DateTime>,
    /// The threads that the query shares with others.
    pub workers: Arc<Workers>,
    /// Partitions that a large plan is made for; as many as there are threads if that is not known.
    pub partitions: Option<usize>,
    /// The adjacencies in memory, which all queries share.
    pub adjacencies: Arc<Adjacencies>,
    /// How long the query may be planned.
    pub patience: Arc<Patience>,
}

impl Default for ContextOptions {
    /// No base IRI, no memory limit, the clock's time, all cores, adjacencies of its own.
    fn default() -> Self {
        Self {
            base_iri: None,
            memory_pool: Arc::new(UnboundedMemoryPool::default()),
            on_the_way_pool: Arc::new(UnboundedMemoryPool::default()),
            now: None,
            workers: Workers::of_machine(),
            partitions: None,
            adjacencies: Arc::default(),
            patience: Arc::default(),
        }
    }
}

/// The context that all operators of one query share; see the module's documentation.
#[derive(Debug)]
pub struct QueryContext {
    view: Arc<ReadView>,
    expressions: Arc<ExpressionContext>,
    on_the_way_pool: Arc<dyn MemoryPool>,
    /// What operators may keep, if that is bounded.
    memory_bytes: Option<usize>,
    partitions: usize,
    workers: Arc<Workers>,
    adjacencies: Arc<Adjacencies>,
    patience: Arc<Patience>,
    is_bound_to_commit: AtomicBool,
    has_plan_of_its_own: AtomicBool,
    touches: AtomicU64,
    planned_touches: AtomicU64,
}

impl QueryContext {
    /// A context for one run of one query.
    pub fn new(view: Arc<ReadView>, mut options: ContextOptions) -> Result<Arc<Self>> {
        let for_expressions = ExpressionOptions {
            base_iri: options.base_iri.take(),
            memory_pool: Arc::clone(&options.memory_pool),
            now: options.now,
        };
        let expressions = ExpressionContext::new(Arc::clone(view.snapshot()), for_expressions)?;
        Ok(Self::with_expressions(view, expressions, options))
    }

    /// A context whose expressions share what was made for them already; of the options only those
    /// of the process count.
    pub(crate) fn with_expressions(
        view: Arc<ReadView>,
        expressions: Arc<ExpressionContext>,
        options: ContextOptions,
    ) -> Arc<Self> {
        Arc::new(Self {
            expressions,
            view,
            on_the_way_pool: options.on_the_way_pool,
            memory_bytes: match options.memory_pool.memory_limit() {
                MemoryLimit::Finite(bytes) => Some(bytes),
                MemoryLimit::Infinite | MemoryLimit::Unknown => None,
            },
            partitions: options
                .partitions
                .unwrap_or_else(|| options.workers.threads()),
            workers: options.workers,
            adjacencies: options.adjacencies,
            patience: options.patience,
            is_bound_to_commit: AtomicBool::new(false),
            has_plan_of_its_own: AtomicBool::new(false),
            touches: AtomicU64::new(0),
            planned_touches: AtomicU64::new(0),
        })
    }

    /// The read view, through which the query reads all permutations.
    pub fn view(&self) -> &Arc<ReadView> {
        &self.view
    }

    /// The terms of the state that the query reads.
    pub fn snapshot(&self) -> &Arc<Snapshot> {
        self.view.snapshot()
    }

    /// The context of the query's expressions.
    pub fn expressions(&self) -> &Arc<ExpressionContext> {
        &self.expressions
    }

    /// What chunks and batches on their way are counted against.
    pub(crate) fn on_the_way_pool(&self) -> &Arc<dyn MemoryPool> {
        &self.on_the_way_pool
    }

    /// The planning deadline.
    pub fn patience(&self) -> &Arc<Patience> {
        &self.patience
    }

    /// The threads that the query shares with others.
    pub fn workers(&self) -> &Arc<Workers> {
        &self.workers
    }

    /// Whether so many first rows may be kept in memory while the rest is read: keeping them cannot
    /// spill, and each partition keeps its own. With more memory the bound is higher by as much, so
    /// what spills with little is kept with much.
    pub fn fits_while_sorting(&self, rows: usize, columns: usize, keys: usize) -> bool {
        let Some(limit_bytes) = self.memory_bytes else {
            return true;
        };
        let row_bytes = FIRST_ROW_BYTES + columns * size_of::<u64>() + keys * SORT_KEY_BYTES;
        let bytes = rows.saturating_mul(row_bytes * self.partitions().max(1));
        bytes <= limit_bytes / FIRST_ROWS_PART
    }

    /// Partitions that a large plan is made for.
    pub fn partitions(&self) -> usize {
        self.partitions
    }

    /// The adjacencies in memory.
    pub fn adjacencies(&self) -> &Arc<Adjacencies> {
        &self.adjacencies
    }

    /// Notes an expression with a new value for each evaluation
    /// ([`ExpressionContext::note_volatile`]).
    pub fn note_volatile(&self) {
        self.expressions.note_volatile();
    }

    /// Counts what no node of the plan does, such as terms of the answer
    /// ([`touches()`](crate::touches())).
    pub fn note_touches(&self, touches: u64) {
        self.touches.fetch_add(touches, Ordering::Relaxed);
    }

    /// Counts what was done while the query is planned, which is paid for at once; in portions of
    /// some hundreds where there may be many.
    ///
    /// # Errors
    /// When whoever asks has nothing left.
    pub fn spend_planning(&self, touches: u64) -> Result<()> {
        self.note_touches(touches);
        self.planned_touches.fetch_add(touches, Ordering::Relaxed);
        Ok(self.patience.spend(touches)?)
    }

    /// The touches of planning, part of [`QueryContext::touches`].
    pub fn planned_touches(&self) -> u64 {
        self.planned_touches.load(Ordering::Relaxed)
    }

    /// The touches so far, from [`QueryContext::note_touches`].
    pub fn touches(&self) -> u64 {
        self.touches.load(Ordering::Relaxed)
    }

    /// Says that the plan follows from something in the data that counts of its patterns do not
    /// tell: that a term is unknown, which graphs or predicates there are. A plan that is kept is
    /// none for another commit then.
    pub fn note_bound_to_commit(&self) {
        self.is_bound_to_commit.store(true, Ordering::Relaxed);
    }

    /// Whether [`QueryContext::note_bound_to_commit`] was called.
    pub fn is_bound_to_commit(&self) -> bool {
        self.is_bound_to_commit.load(Ordering::Relaxed)
    }

    /// Notes that the plan has an id that is valid for this query alone, or hidden from its asker.
    /// It is not kept then: another query has other terms, and whether a plan is kept must not tell
    /// hidden terms from unknown ones.
    pub fn note_plan_of_its_own(&self) {
        self.has_plan_of_its_own.store(true, Ordering::Relaxed);
    }

    /// Whether [`QueryContext::note_plan_of_its_own`] was called.
    pub fn has_plan_of_its_own(&self) -> bool {
        self.has_plan_of_its_own.load(Ordering::Relaxed)
    }

    /// Whether the order in which rows come may change what the query's expressions give
    /// ([`ExpressionContext::depends_on_row_order`]).
    pub fn depends_on_row_order(&self) -> bool {
        self.expressions.depends_on_row_order()
    }

    /// The number of a blank node that nothing else has.
    pub fn fresh_blank_node(&self) -> u64 {
        self.expressions.fresh_blank_node()
    }

    /// The one id of a term ([`ExpressionContext::intern`]).
    #[inline]
    pub fn intern(&self, term: &Term<'_>) -> Result<TermId> {
        Ok(self.expressions.intern(term)?)
    }

    /// The id of a number that was counted.
    pub(crate) fn intern_count(&self, count: u64) -> Result<TermId> {
        match i64::try_from(count).ok().and_then(TermId::integer) {
            Some(id) => Ok(id),
            None => self.intern(&Term::typed(count.to_string(), xsd::INTEGER)),
        }
    }

    /// The id of a double that was computed, in canonical form.
    pub(crate) fn intern_double(&self, number: f64) -> Result<TermId> {
        let value = Value::Double(number.into());
        Ok(intern_value(&value, &self.expressions)?)
    }

    /// The id of a term that is known to be neither inline nor in the state that the query reads
    /// ([`ExpressionContext::intern_own`]).
    pub fn intern_own(&self, term: &Term<'_>) -> Result<TermId> {
        Ok(self.expressions.intern_own(term)?)
    }

    /// The term of an id, with text of its own.
    #[inline]
    pub fn term(&self, id: TermId) -> Result<Term<'static>> {
        Ok(self.expressions.term(id)?)
    }

    /// Calls `f` with the place and the term of each id; the ids are strictly ascending
    /// ([`ExpressionContext::terms`]).
    #[inline]
    pub fn terms(&self, ids: &[TermId], f: impl FnMut(usize, Term<'_>)) -> Result<()> {
        Ok(self.expressions.terms(ids, f)?)
    }

    /// Notes the spelling of language tags that the query or an endpoint's answer brings
    /// ([`ExpressionContext::note_language_tags`]).
    pub fn note_language_tags(&self, tags: &LanguageTags) {
        self.expressions.note_language_tags(tags);
    }

    /// The spelling of language tags in results: the database's, where it knows the tag.
    pub fn language_tags(&self) -> WrittenTags<'_> {
        self.expressions.language_tags()
    }

    /// The spelling of tags that only the query brings, if one has capitals
    /// ([`ExpressionContext::own_language_tags`]).
    pub fn own_language_tags(&self) -> Option<Arc<LanguageTags>> {
        self.expressions.own_language_tags()
    }
}
