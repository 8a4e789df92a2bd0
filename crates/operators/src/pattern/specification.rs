//! The specification of a pattern: quad patterns, graphs, bounds on objects, conditions.
//!
//! Names of variables and ids of terms only; how it is done is for
//! [`compile`](super::compiler::compile) to find out.

use std::sync::Arc;

use orrery_storage::QuadPosition;
use orrery_term::TermId;
use spargebra::algebra::Expression;

use super::found_ids::FoundIds;
use super::given_ids::GivenIds;

/// One position of a quad pattern.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Slot {
    /// This very term.
    Constant(TermId),
    /// Binds, or must equal, the variable of this name (without `?`).
    Variable(Arc<str>),
}

impl Slot {
    /// The name of the variable, if it is one.
    pub fn variable(&self) -> Option<&Arc<str>> {
        match self {
            Self::Constant(_) => None,
            Self::Variable(name) => Some(name),
        }
    }
}

/// The graphs that a pattern is matched in.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum GraphScope {
    /// The default graph only.
    Default,
    /// The merge of these graphs (`FROM`): a triple in several of them matches once.
    Union(Arc<[TermId]>),
    /// The merge of all graphs, the default graph among them.
    AllUnion,
    /// One named graph.
    Named(TermId),
    /// `GRAPH ?g`: any named graph, never the default graph; binds the variable.
    NamedVariable {
        /// The variable, without `?`.
        variable: Arc<str>,
        /// If given, only these graphs (`FROM NAMED`).
        allowed: Option<Arc<[TermId]>>,
    },
}

/// A triple pattern and the graphs to match it in.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct QuadPattern {
    /// The subject.
    pub subject: Slot,
    /// The predicate.
    pub predicate: Slot,
    /// The object.
    pub object: Slot,
    /// Where to look.
    pub graph: GraphScope,
}

impl QuadPattern {
    /// What stands at a position of the triple; the graph's is a scope and no slot.
    pub(crate) fn slot(&self, position: QuadPosition) -> Option<&Slot> {
        match position {
            QuadPosition::Subject => Some(&self.subject),
            QuadPosition::Predicate => Some(&self.predicate),
            QuadPosition::Object => Some(&self.object),
            QuadPosition::Graph => None,
        }
    }

    /// The names of the variables, in subject, predicate, object, graph order, each once.
    pub fn variables(&self) -> Vec<&Arc<str>> {
        let graph = match &self.graph {
            GraphScope::NamedVariable { variable, .. } => Some(variable),
            GraphScope::Default
            | GraphScope::Union(_)
            | GraphScope::AllUnion
            | GraphScope::Named(_) => None,
        };
        let slots = [&self.subject, &self.predicate, &self.object];
        let mut names: Vec<&Arc<str>> = Vec::with_capacity(4);
        for name in slots.into_iter().filter_map(Slot::variable).chain(graph) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }
}

/// Closed intervals of ids that the object of a pattern must fall into.
///
/// The planner makes them from comparisons with numbers and dates, and from conditions on the
/// beginning of a text: integers, decimals and doubles are different kinds of ids, so one
/// comparison gives several intervals. They are a condition of their own: rows outside are dropped
/// even if no filter repeats it. No interval at all matches nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectRanges(Vec<(TermId, TermId)>);

impl ObjectRanges {
    /// Takes intervals in any order, overlapping or not; an interval whose low end is above its
    /// high end is empty.
    pub fn new(mut intervals: Vec<(TermId, TermId)>) -> Self {
        intervals.retain(|(low, high)| low <= high);
        intervals.sort_unstable();
        let mut merged: Vec<(TermId, TermId)> = Vec::with_capacity(intervals.len());
        for (low, high) in intervals {
            match merged.last_mut() {
                Some(last) if low <= last.1 => last.1 = last.1.max(high),
                _ => merged.push((low, high)),
            }
        }
        Self(merged)
    }

    /// The intervals: disjoint, ascending, both ends included.
    pub fn intervals(&self) -> &[(TermId, TermId)] {
        &self.0
    }

    /// The ids that fall into an interval of both.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let mut shared = Vec::new();
        for (low, high) in &self.0 {
            for (other_low, other_high) in &other.0 {
                shared.push((*low.max(other_low), *high.min(other_high)));
            }
        }
        Self::new(shared)
    }

    /// The ids that fall into an interval of either.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        Self::new([&self.0[..], &other.0[..]].concat())
    }

    /// Whether an id falls into one of the intervals.
    pub fn contains(&self, id: TermId) -> bool {
        self.0.iter().any(|(low, high)| *low <= id && id <= *high)
    }
}

/// The effect of a pattern's matches on an input row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatternMode {
    /// One output row per match.
    Inner,
    /// As inner, and a row without match comes through with the new variables unbound.
    Optional,
    /// The rows that have a match, once each.
    Semi,
    /// The rows that have none.
    Anti,
    /// Every row, with this further variable: whether it has a match, as an `xsd:boolean`.
    Mark(Arc<str>),
}

impl PatternMode {
    /// Whether only the existence of a match counts.
    pub(super) fn is_existence(&self) -> bool {
        match self {
            Self::Inner | Self::Optional => false,
            Self::Semi | Self::Anti | Self::Mark(_) => true,
        }
    }
}

/// One pattern of a [`PatternSpecification`].
#[derive(Clone, Debug)]
pub struct PatternStep {
    /// What to match.
    pub pattern: QuadPattern,
    /// Bounds on the object, if the planner found some.
    pub object_ranges: Option<ObjectRanges>,
    /// The planner's estimate of the rows after this step, for `explain`.
    pub estimated_rows: Option<f64>,
}

impl PatternStep {
    /// A step without bounds and without estimate.
    pub fn new(pattern: QuadPattern) -> Self {
        Self {
            pattern,
            object_ranges: None,
            estimated_rows: None,
        }
    }
}

/// The specification of a [`PatternExec`](super::PatternExec).
#[derive(Clone, Debug)]
pub struct PatternSpecification {
    /// What becomes of the input rows.
    pub mode: PatternMode,
    /// The patterns, in the order of execution. May be empty: then only the filters work.
    pub steps: Vec<PatternStep>,
    /// Conditions on a match; each is applied at the earliest step where its variables are bound.
    /// They may use input variables. Under [`PatternMode::Optional`] they are part of the match, as
    /// the filter of a SPARQL `OPTIONAL` is.
    pub filters: Vec<Expression>,
    /// Ids that variables may have, from outside: conditions on a match as the filters are. A
    /// variable that is bound nowhere has none of them.
    pub given: Vec<GivenIds>,
    /// Ids that other nodes find of variables of the output while the query runs. Only of inner
    /// matches without limit ([`PatternExec::thinned_by`](super::PatternExec::thinned_by)).
    pub found: Vec<FoundIds>,
    /// The variables of the output, in order. One that is bound nowhere gives a column of nulls.
    /// [`PatternMode::Semi`], [`PatternMode::Anti`] and [`PatternMode::Mark`] can only give input
    /// variables (and the mark).
    pub output: Vec<Arc<str>>,
    /// Stop after this many rows.
    pub fetch: Option<usize>,
    /// Rows per chunk, for tests; `None` lets the operator choose and adapt.
    pub vector_rows: Option<usize>,
    /// Whether patterns that bind the same variable are matched together, by an intersection.
    pub intersects: bool,
}

impl PatternSpecification {
    /// An inner match of the patterns, without filters and limits.
    pub fn inner(patterns: Vec<QuadPattern>, output: Vec<Arc<str>>) -> Self {
        Self {
            mode: PatternMode::Inner,
            steps: patterns.into_iter().map(PatternStep::new).collect(),
            filters: Vec::new(),
            given: Vec::new(),
            found: Vec::new(),
            output,
            fetch: None,
            vector_rows: None,
            intersects: true,
        }
    }
}
