//! The planner's statistics: rows of patterns, and distinct values per variable.
//!
//! Constants are counted exactly: the length of a range in a permutation that starts
//! with them costs about a microsecond. What the ranges cannot say (how many
//! distinct subjects a predicate has) comes from the statistics that the loader
//! gathered. Filters get a guess by their form.

use std::cell::{Cell, RefCell};
use std::ops::Bound;
use std::sync::Arc;

use hashbrown::HashMap;
use orrery_operators::count::{exact_count, exact_count_of_constants};
use orrery_operators::pattern::{GraphScope, ObjectRanges, QuadPattern, Slot as PatternSlot};
use orrery_storage::statistics::{Figures, PredicateStatistics, Star};
use orrery_storage::{Permutation, ReadView};
use orrery_term::TermId;
use spargebra::algebra::Expression;

use crate::algebra::{PathItem, Quad, Scope, Slot, Var, VariableTable};
use crate::error::QueryError;

/// Distinct predicates that are expected where all data came by updates.
const PREDICATES_UNKNOWN: u64 = 10;

/// Named graphs that are expected where all of them came by updates.
const GRAPHS_UNKNOWN: u64 = 100;

/// What is expected of one member of a join.
#[derive(Clone, Debug, Default)]
pub(crate) struct Estimate {
    pub(crate) rows: f64,
    pub(crate) distinct: Vec<(Var, f64)>,
    /// Rows that are gone through to have all of these, where those are more.
    pub(crate) work: f64,
}

/// Estimates over one snapshot, for one planning: what was counted is remembered.
pub(crate) struct Estimator<'s> {
    view: &'s ReadView,
    quads: f64,
    /// Rows of patterns by their constants, where the graph does not matter.
    counted: RefCell<HashMap<[Option<TermId>; 3], f64>>,
    /// Quads of predicates whose objects are within ranges.
    ranged: RefCell<Vec<(TermId, ObjectRanges, f64)>>,
    grown: RefCell<HashMap<TermId, PredicateStatistics>>,
    /// Whether patterns with constants were counted that `counted` does not tell.
    has_uncounted: Cell<bool>,
    /// Whether anything else was told of the data that another commit may change.
    is_of_commit: Cell<bool>,
}

/// What was counted for a plan.
#[derive(Clone, Debug)]
pub(crate) struct Counts {
    /// Rows of patterns by their constants.
    pub(crate) patterns: Vec<([Option<TermId>; 3], f64)>,
    /// Quads of predicates whose objects are within ranges.
    pub(crate) ranged: Vec<(TermId, ObjectRanges, f64)>,
    /// Whether the plan follows from more than these, so that the same counts over another commit
    /// do not make it right there.
    pub(crate) are_of_commit: bool,
}

impl<'s> Estimator<'s> {
    pub(crate) fn new(view: &'s ReadView) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let quads = view.quad_count() as f64;
        Self {
            view,
            quads,
            counted: RefCell::default(),
            ranged: RefCell::default(),
            grown: RefCell::default(),
            has_uncounted: Cell::new(false),
            is_of_commit: Cell::new(false),
        }
    }

    /// All that was counted; nothing if not all of what has constants as subject or object is known
    /// by its constants.
    pub(crate) fn counts(&self) -> Option<Counts> {
        if self.has_uncounted.get() {
            return None;
        }
        let counted = self.counted.borrow();
        let patterns = counted.iter();
        Some(Counts {
            patterns: patterns
                .map(|(constants, rows)| (*constants, *rows))
                .collect(),
            ranged: self.ranged.borrow().clone(),
            are_of_commit: self.is_of_commit.get(),
        })
    }

    /// The rows of a pattern of the default graph with these constants; beside named graphs no
    /// permutation tells those of some, which get the rows of whatever graph instead.
    pub(crate) fn count_of(&self, constants: [Option<TermId>; 3]) -> Result<f64, QueryError> {
        if let Some(known) = self.counted.borrow().get(&constants) {
            return Ok(*known);
        }
        let rows = match self.quads_by_statistics(constants)? {
            Some(quads) => Some(quads),
            None => exact_count_of_constants(self.view, constants)?,
        };
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let rows = match rows {
            Some(exact) => exact as f64,
            None => self.bound(constants)?,
        };
        self.counted.borrow_mut().insert(constants, rows);
        Ok(rows)
    }

    /// The quads of a predicate, where the statistics know them. Only that there are none is worth
    /// a look, for it makes an answer empty.
    fn quads_by_statistics(
        &self,
        constants: [Option<TermId>; 3],
    ) -> Result<Option<u64>, QueryError> {
        match constants {
            [None, Some(predicate), None] if !self.view.has_named_graphs() => {
                let quads = self.predicate(predicate)?.quads;
                Ok(Some(quads).filter(|quads| *quads > 0))
            }
            _ => Ok(None),
        }
    }

    /// Rows and distinct values of a pattern by itself.
    pub(crate) fn quad(&self, quad: &Quad, table: &VariableTable) -> Result<Estimate, QueryError> {
        if quad.is_impossible() {
            return Ok(Estimate::default());
        }
        let rows = self.rows(quad, table)?;
        let mut distinct = Vec::with_capacity(3);
        let of_predicate = match quad.predicate {
            Slot::Constant(predicate) => Some(self.predicate(predicate)?),
            Slot::Variable(_) | Slot::Absent => None,
        };
        let of_all = self.all()?;
        if let Some(var) = quad.subject.variable() {
            let all = match (of_predicate, quad.object) {
                (Some(predicate), Slot::Variable(_)) => predicate.distinct_subjects,
                (None, Slot::Variable(_)) => of_all.distinct_subjects,
                (_, Slot::Constant(_) | Slot::Absent) => u64::MAX,
            };
            distinct.push((var, within(all, rows)));
        }
        if let Some(var) = quad.predicate.variable() {
            let all = match self.view.figures() {
                Figures::Counted(statistics) => statistics.predicates().len() as u64,
                Figures::Sampled(sampled) => sampled.predicate_count()?,
            };
            let all = match all {
                0 => PREDICATES_UNKNOWN,
                predicates => predicates,
            };
            distinct.push((var, within(all, rows)));
        }
        if let Some(var) = quad.object.variable() {
            let all = match (of_predicate, quad.subject) {
                (Some(predicate), Slot::Variable(_)) => predicate.distinct_objects,
                (None, Slot::Variable(_)) => of_all.distinct_objects,
                (_, Slot::Constant(_) | Slot::Absent) => u64::MAX,
            };
            distinct.push((var, within(all, rows)));
        }
        if let Some(var) = quad.scope.variable() {
            distinct.push((var, within(self.graphs()?, rows)));
        }
        Ok(Estimate {
            rows,
            distinct,
            work: rows,
        })
    }

    /// How many names a variable for a graph is expected to have.
    pub(crate) fn graph_names(&self, scope: &Scope) -> Result<f64, QueryError> {
        let Scope::NamedVariable { allowed, .. } = scope else {
            return Ok(1.0);
        };
        let known = match self.graphs()? {
            _ if !self.view.has_named_graphs() => 0,
            // All came by updates.
            0 | 1 => GRAPHS_UNKNOWN,
            graphs => graphs,
        };
        let named = allowed
            .as_ref()
            .map_or(known, |list| known.min(list.len() as u64));
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let names = named.max(1) as f64;
        Ok(names)
    }

    /// How many graphs are known, the default graph among them.
    fn graphs(&self) -> Result<u64, QueryError> {
        Ok(match self.view.figures() {
            Figures::Counted(statistics) => statistics.distinct_graphs(),
            Figures::Sampled(sampled) => sampled.graph_count()?,
        })
    }

    /// Figures of a predicate: those of the base, grown as its quads have grown since; for who does
    /// not see all graphs, what some of its rows tell.
    fn predicate(&self, predicate: TermId) -> Result<PredicateStatistics, QueryError> {
        let in_base = match self.view.figures() {
            Figures::Counted(statistics) => statistics.predicate(predicate),
            Figures::Sampled(sampled) => return Ok(sampled.predicate(predicate)?),
        };
        let of_base = in_base.copied().unwrap_or_default();
        let Some(index) = self.view.index(Permutation::Psog) else {
            return Ok(of_base);
        };
        if index.is_unchanged() {
            return Ok(of_base);
        }
        if let Some(known) = self.grown.borrow().get(&predicate) {
            return Ok(*known);
        }
        // What the base has is known: to count it anew was a fourteenth of BSBM explore Q7 after an
        // update.
        let quads = match in_base {
            Some(in_base) if index.hidden_rows() == 0 => in_base
                .quads
                .saturating_add_signed(index.net(&[predicate])?),
            _ => index.range(&[predicate])?.len(),
        };
        let grown = grown(of_base, quads);
        self.grown.borrow_mut().insert(predicate, grown);
        Ok(grown)
    }

    /// What the characteristic sets say of the star of these predicates, or what some of its rows
    /// tell, and by which factor its quads have grown since.
    pub(crate) fn star(
        &self,
        predicates: &[TermId],
    ) -> Result<Option<(Arc<Star>, f64)>, QueryError> {
        let statistics = match self.view.figures() {
            Figures::Counted(statistics) => statistics,
            Figures::Sampled(sampled) => {
                return Ok(sampled.star(predicates)?.map(|star| (star, 1.0)));
            }
        };
        let Some(star) = statistics.star(predicates) else {
            return Ok(None);
        };
        let mut growth = f64::MAX;
        for predicate in predicates {
            let Some(of_base) = statistics.predicate(*predicate) else {
                return Ok(None);
            };
            let now = self.predicate(*predicate)?;
            #[expect(clippy::cast_precision_loss, reason = "an estimate")]
            let factor = now.quads as f64 / of_base.quads.max(1) as f64;
            growth = growth.min(factor);
        }
        Ok(Some((star, growth)))
    }

    /// The same of all quads.
    fn all(&self) -> Result<PredicateStatistics, QueryError> {
        Ok(match self.view.figures() {
            Figures::Counted(statistics) => grown(statistics.all(), self.view.quad_count()),
            Figures::Sampled(sampled) => sampled.all()?,
        })
    }

    fn rows(&self, quad: &Quad, table: &VariableTable) -> Result<f64, QueryError> {
        let rows = self.rows_of_any(quad, table)?;
        Ok(match self.ranged(quad)? {
            Some(ranged) => rows.min(ranged),
            None => rows,
        })
    }

    /// Quads of the predicate whose object is within the ranges, in whatever graph.
    fn ranged(&self, quad: &Quad) -> Result<Option<f64>, QueryError> {
        match (&quad.object_ranges, quad.predicate) {
            (Some(ranges), Slot::Constant(predicate)) => self.count_within(predicate, ranges),
            _ => Ok(None),
        }
    }

    /// The same of a predicate and ranges.
    pub(crate) fn count_within(
        &self,
        predicate: TermId,
        ranges: &ObjectRanges,
    ) -> Result<Option<f64>, QueryError> {
        let Some(index) = self.view.index(Permutation::Posg) else {
            return Ok(None);
        };
        let is_known =
            |known: &&(TermId, ObjectRanges, f64)| (known.0, &known.1) == (predicate, ranges);
        if let Some((_, _, rows)) = self.ranged.borrow().iter().find(is_known) {
            return Ok(Some(*rows));
        }
        let mut cursor = index.cursor();
        let mut rows = 0;
        for (low, high) in ranges.intervals() {
            let found =
                cursor.seek_between(&[predicate], Bound::Included(*low), Bound::Included(*high))?;
            rows += found.len();
        }
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let rows = rows as f64;
        let known = (predicate, ranges.clone(), rows);
        self.ranged.borrow_mut().push(known);
        Ok(Some(rows))
    }

    fn rows_of_any(&self, quad: &Quad, table: &VariableTable) -> Result<f64, QueryError> {
        let is_plain = quad.occurrences() == quad.variables().iter().count()
            && matches!(quad.scope, Scope::Default);
        if !is_plain {
            if quad.subject.variable().is_none() || quad.object.variable().is_none() {
                self.has_uncounted.set(true);
            }
            self.is_of_commit.set(true);
            return self.count(quad, table);
        }
        self.count_of(constants_of(quad))
    }

    fn count(&self, quad: &Quad, table: &VariableTable) -> Result<f64, QueryError> {
        let pattern = operator_pattern(quad, table);
        if let Some(exact) = exact_count(self.view, &pattern)? {
            #[expect(clippy::cast_precision_loss, reason = "an estimate")]
            return Ok(exact as f64);
        }
        // The graph, or a repeated variable, keeps the range from being exact:
        // it is an upper bound of the triple alone.
        let bound = self.bound(constants_of(quad))?;
        let in_graph = match &quad.scope {
            Scope::Named(graph) => self.range(Permutation::Gspo, &[*graph])?.unwrap_or(bound),
            Scope::Default | Scope::AllUnion | Scope::NamedVariable { .. } => bound,
            Scope::Union(graphs) => {
                let mut sum = 0.0;
                for graph in graphs.iter() {
                    sum += self.range(Permutation::Gspo, &[*graph])?.unwrap_or(bound);
                }
                sum
            }
        };
        Ok(bound.min(in_graph))
    }

    /// Quads with these constants, in whatever graph.
    fn bound(&self, constants: [Option<TermId>; 3]) -> Result<f64, QueryError> {
        let (permutation, prefix) = match constants {
            [Some(s), Some(p), Some(o)] => (Permutation::Psog, vec![p, s, o]),
            [Some(s), Some(p), None] => (Permutation::Psog, vec![p, s]),
            [None, Some(p), Some(o)] => (Permutation::Posg, vec![p, o]),
            [None, Some(p), None] => (Permutation::Psog, vec![p]),
            [Some(s), None, Some(o)] => (Permutation::Ospg, vec![o, s]),
            [Some(s), None, None] => (Permutation::Spog, vec![s]),
            [None, None, Some(o)] => (Permutation::Ospg, vec![o]),
            [None, None, None] => return Ok(self.quads),
        };
        Ok(self.range(permutation, &prefix)?.unwrap_or(self.quads))
    }

    fn range(
        &self,
        permutation: Permutation,
        prefix: &[TermId],
    ) -> Result<Option<f64>, QueryError> {
        let Some(index) = self.view.index(permutation) else {
            return Ok(None);
        };
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let rows = index.range(prefix)?.len() as f64;
        Ok(Some(rows))
    }

    /// Pairs of a path. Its closure is not known; a few hops from each subject are assumed.
    pub(crate) fn path(&self, path: &PathItem) -> Result<Estimate, QueryError> {
        const HOPS: f64 = 10.0;
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let subjects = (self.all()?.distinct_subjects as f64).max(1.0);
        let bound = |slot: Slot| matches!(slot, Slot::Constant(_));
        let rows = match (bound(path.subject), bound(path.object)) {
            (true, true) => 1.0,
            (true, false) | (false, true) => HOPS * HOPS,
            (false, false) => self.quads.max(subjects) * HOPS,
        };
        let distinct = path
            .variables()
            .iter()
            .map(|var| (var, subjects.min(rows)))
            .collect();
        Ok(Estimate {
            rows,
            distinct,
            work: rows,
        })
    }

    /// Whether a named graph has any quad.
    pub(crate) fn has_graph(&self, graph: TermId) -> Result<bool, QueryError> {
        self.is_of_commit.set(true);
        let rows = self.range(Permutation::Gspo, &[graph])?;
        Ok(rows.is_some_and(|rows| rows > 0.0))
    }
}

/// The constants of a pattern: subject, predicate, object.
fn constants_of(quad: &Quad) -> [Option<TermId>; 3] {
    [quad.subject, quad.predicate, quad.object].map(|slot| match slot {
        Slot::Constant(term) => Some(term),
        Slot::Variable(_) | Slot::Absent => None,
    })
}

/// Figures for another number of quads than they were gathered from. Where there were none, all
/// values are taken to be distinct.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an estimate"
)]
fn grown(of_base: PredicateStatistics, quads: u64) -> PredicateStatistics {
    if of_base.quads == quads {
        return of_base;
    }
    let growth = quads as f64 / of_base.quads.max(1) as f64;
    let scale = |distinct: u64| match of_base.quads {
        0 => quads,
        _ => (distinct as f64 * growth).ceil() as u64,
    };
    PredicateStatistics {
        quads,
        distinct_subjects: scale(of_base.distinct_subjects),
        distinct_objects: scale(of_base.distinct_objects),
    }
}

#[expect(clippy::cast_precision_loss, reason = "an estimate")]
fn within(all: u64, rows: f64) -> f64 {
    (all as f64).min(rows).max(1.0)
}

/// The share of rows that a filter keeps, guessed by its form.
pub(crate) fn selectivity(filter: &Expression) -> f64 {
    match filter {
        Expression::Equal(..) | Expression::SameTerm(..) => 0.05,
        Expression::Greater(..)
        | Expression::GreaterOrEqual(..)
        | Expression::Less(..)
        | Expression::LessOrEqual(..) => 0.33,
        Expression::And(a, b) => selectivity(a) * selectivity(b),
        Expression::Or(a, b) => (selectivity(a) + selectivity(b)).min(1.0),
        Expression::Not(inner) => (1.0 - selectivity(inner)).max(0.05),
        Expression::In(_, list) => {
            #[expect(clippy::cast_precision_loss, reason = "an estimate")]
            let members = list.len() as f64;
            (0.05 * members).min(0.5)
        }
        Expression::FunctionCall(..) => 0.25,
        _ => 0.5,
    }
}

/// A pattern as the operators take it.
pub(crate) fn operator_pattern(quad: &Quad, table: &VariableTable) -> QuadPattern {
    QuadPattern {
        subject: operator_slot(quad.subject, table),
        predicate: operator_slot(quad.predicate, table),
        object: operator_slot(quad.object, table),
        graph: operator_scope(&quad.scope, table),
    }
}

/// A slot as the operators take it.
pub(crate) fn operator_slot(slot: Slot, table: &VariableTable) -> PatternSlot {
    match slot {
        Slot::Variable(var) => PatternSlot::Variable(Arc::clone(table.name(var))),
        Slot::Constant(id) => PatternSlot::Constant(id),
        // Never planned: the estimate of such a pattern is zero rows, its group is empty.
        Slot::Absent => PatternSlot::Constant(TermId::MAX),
    }
}

/// A scope as the operators take it.
pub(crate) fn operator_scope(scope: &Scope, table: &VariableTable) -> GraphScope {
    match scope {
        Scope::Default => GraphScope::Default,
        Scope::Union(graphs) => GraphScope::Union(Arc::clone(graphs)),
        Scope::AllUnion => GraphScope::AllUnion,
        Scope::Named(graph) => GraphScope::Named(*graph),
        Scope::NamedVariable { variable, allowed } => GraphScope::NamedVariable {
            variable: Arc::clone(table.name(*variable)),
            allowed: allowed.clone(),
        },
    }
}
