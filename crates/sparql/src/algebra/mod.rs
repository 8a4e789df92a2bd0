//! The planner's algebra: groups of joined items, followed by steps.
//!
//! spargebra's tree mirrors the text: a chain of `Join`, `LeftJoin`, `Filter` nodes
//! with BGPs scattered in it. [`normalise`] turns it into [`Group`]s: all that is
//! joined lies in one list without order, so that the planner is free to order it;
//! what depends on order (OPTIONAL, MINUS, BIND, EXISTS) follows as steps.
//!
//! Invariants, which make moving things safe:
//!
//! 1. A variable of a subquery that is not projected has a name of its own, so equal
//!    names always mean the same variable.
//! 2. An expression mentions only variables in its scope; a variable that SPARQL's
//!    scoping leaves unbound there was renamed to one that nothing binds.
//! 3. An item joins a group below its steps only if no step could see the difference
//!    (`Group::join`); else the group is nested as an item.

pub(crate) mod expression;
mod group;
mod lateral;
mod mapped;
mod normalise;
mod pushdown;
mod scope;
mod search;
mod service;
mod services;
mod text_rule;
mod variables;

use std::sync::Arc;

use orrery_operators::algorithms::{Algorithm, AlgorithmColumn};
use orrery_operators::pattern::ObjectRanges;
use orrery_operators::search::{PathKind, SearchColumn};
use orrery_operators::weights::WeightTable;
use orrery_term::TermId;
use spargebra::algebra::{AggregateExpression, Expression, PropertyPathExpression};

use self::expression::variables;

pub(crate) use lateral::{asks_limited, depends_on_row, sees_row_at_top};
pub(crate) use mapped::{Mapped, SeenMapped};
pub(crate) use normalise::{Normaliser, weighed};
pub(crate) use scope::{Dataset, Scope};
pub(crate) use service::{Service, ServiceEndpoint};
pub(crate) use services::{finds_paths, is_answered_here, names_end};
pub(crate) use text_rule::TextRule;
pub(crate) use variables::{Var, VarSet, VariableTable};

/// A position in a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    Variable(Var),
    Constant(TermId),
    /// A constant that the database does not know: nothing matches.
    Absent,
}

impl Slot {
    pub(crate) fn variable(self) -> Option<Var> {
        match self {
            Self::Variable(var) => Some(var),
            Self::Constant(_) | Self::Absent => None,
        }
    }
}

/// A triple pattern with the graphs to match it in.
#[derive(Clone, Debug)]
pub(crate) struct Quad {
    pub(crate) subject: Slot,
    pub(crate) predicate: Slot,
    pub(crate) object: Slot,
    pub(crate) scope: Scope,
    /// If the planner found some: the only ids that the object needs to be looked for.
    pub(crate) object_ranges: Option<ObjectRanges>,
}

impl Quad {
    pub(crate) fn variables(&self) -> VarSet {
        let slots = [self.subject, self.predicate, self.object];
        let graph = self.scope.variable();
        VarSet::of(slots.into_iter().filter_map(Slot::variable).chain(graph))
    }

    /// Positions that hold a variable.
    pub(crate) fn occurrences(&self) -> usize {
        let slots = [self.subject, self.predicate, self.object];
        let graph = usize::from(self.scope.variable().is_some());
        slots
            .iter()
            .filter(|slot| slot.variable().is_some())
            .count()
            + graph
    }

    /// Variables that stand for nodes of the graph.
    pub(crate) fn nodes(&self) -> VarSet {
        VarSet::of(
            [self.subject, self.object]
                .into_iter()
                .filter_map(Slot::variable),
        )
    }

    /// Whether a constant of the pattern is unknown to the database.
    pub(crate) fn is_impossible(&self) -> bool {
        [self.subject, self.predicate, self.object].contains(&Slot::Absent) || self.scope.is_empty()
    }
}

/// A property path that is not just a chain of triple patterns.
#[derive(Clone, Debug)]
pub(crate) struct PathItem {
    pub(crate) subject: PathEnd,
    pub(crate) path: PropertyPathExpression,
    pub(crate) object: PathEnd,
    pub(crate) scope: Scope,
}

/// An end of a path. Unlike in a pattern, a constant need not stand in the data:
/// a path of length zero leads from any term to itself.
pub(crate) type PathEnd = Slot;

impl PathItem {
    pub(crate) fn variables(&self) -> VarSet {
        let ends = [self.subject, self.object];
        VarSet::of(
            ends.into_iter()
                .filter_map(Slot::variable)
                .chain(self.scope.variable()),
        )
    }

    /// Whether it may have length zero.
    pub(crate) fn can_be_empty(&self) -> bool {
        can_be_empty(&self.path)
    }
}

fn can_be_empty(path: &PropertyPathExpression) -> bool {
    match path {
        PropertyPathExpression::ZeroOrMore(_) | PropertyPathExpression::ZeroOrOne(_) => true,
        PropertyPathExpression::Reverse(inner) | PropertyPathExpression::OneOrMore(inner) => {
            can_be_empty(inner)
        }
        PropertyPathExpression::Sequence(a, b) => can_be_empty(a) && can_be_empty(b),
        PropertyPathExpression::Alternative(a, b) => can_be_empty(a) || can_be_empty(b),
        PropertyPathExpression::NamedNode(_) | PropertyPathExpression::NegatedPropertySet(_) => {
            false
        }
    }
}

/// Inline data.
#[derive(Clone, Debug)]
pub(crate) struct Values {
    pub(crate) variables: Vec<Var>,
    pub(crate) rows: Vec<Vec<Option<TermId>>>,
}

/// One member of a join.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    Quad(Quad),
    Path(PathItem),
    Values(Values),
    Union(Vec<Group>),
    /// The names of the named graphs.
    Graphs(Scope),
    /// A group that could not be merged.
    Group(Box<Group>),
    Derived(Box<Derived>),
    /// What another endpoint answers.
    Service(Box<Service>),
    /// Rows of a mapped graph.
    Mapped(Box<Mapped>),
    /// Paths over edges.
    Search(Box<PathSearch>),
    /// What an algorithm says of the nodes of a graph.
    Algorithm(Box<GraphAlgorithm>),
    /// Edge weights that are in memory.
    Weights(Box<KnownWeights>),
    /// Rows that the planner holds already, by their number (see `plan::build::exists`).
    Seed(Seed),
}

/// A search for paths.
#[derive(Clone, Debug)]
pub(crate) struct PathSearch {
    pub(crate) kind: PathKind,
    pub(crate) is_cyclic: bool,
    pub(crate) is_bidirectional: bool,
    pub(crate) allows_empty: bool,
    pub(crate) is_by_path: bool,
    pub(crate) length_min: u32,
    pub(crate) length_max: Option<u32>,
    pub(crate) offset: u64,
    pub(crate) limit: Option<u64>,
    /// The edges; its variables are its own.
    pub(crate) edges: Group,
    /// Which of these an edge leaves and reaches.
    pub(crate) ends: [Var; 2],
    /// Which of these are given out.
    pub(crate) exported: Vec<Var>,
    pub(crate) weight: Option<Var>,
    pub(crate) source: Slot,
    pub(crate) destination: Slot,
    /// What is given out, beside source and destination.
    pub(crate) output: Vec<(Var, SearchColumn)>,
}

/// An algorithm over the graph whose edges a group gives.
#[derive(Clone, Debug)]
pub(crate) struct GraphAlgorithm {
    pub(crate) algorithm: Algorithm,
    /// The edges; its variables are its own.
    pub(crate) edges: Group,
    /// Which of these an edge leaves and reaches.
    pub(crate) ends: [Var; 2],
    pub(crate) output: Vec<(Var, AlgorithmColumn)>,
}

/// Edge weights that are in memory.
#[derive(Clone, Debug)]
pub(crate) struct KnownWeights {
    /// Their name.
    pub(crate) name: Arc<str>,
    pub(crate) table: Arc<WeightTable>,
    /// What they bind: start, end, weight. Start and end may be the same.
    pub(crate) columns: [Var; 3],
}

impl KnownWeights {
    pub(crate) fn visible(&self) -> VarSet {
        VarSet::of(self.columns)
    }

    pub(crate) fn expected_rows(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let rows = self.table.len() as f64;
        rows
    }
}

/// Rows from outside of a pattern that its parts are evaluated for.
#[derive(Clone, Debug)]
pub(crate) struct Seed {
    pub(crate) number: usize,
    pub(crate) visible: VarSet,
    pub(crate) certain: VarSet,
    /// Variables in whose place the rows put terms, so that they are variables no more.
    pub(crate) substituted: Vec<Substituted>,
}

/// A variable that a row from outside of a pattern replaces by a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Substituted {
    pub(crate) variable: Var,
    /// Bound in exactly those rows that replace the variable; without one, all do.
    pub(crate) witness: Option<Var>,
}

/// A group with a solution modifier on it.
#[derive(Clone, Debug)]
pub(crate) struct Derived {
    pub(crate) inner: Group,
    pub(crate) modifier: Modifier,
    pub(crate) visible: VarSet,
    pub(crate) certain: VarSet,
}

/// What makes a new sequence of solutions of another one.
#[derive(Clone, Debug)]
pub(crate) enum Modifier {
    Project(Vec<Var>),
    Distinct,
    Order(Vec<OrderKey>),
    Slice {
        offset: usize,
        limit: Option<usize>,
        /// Some of the solutions that have the same values here, instead of some of all: two at
        /// most.
        of_each: Vec<Var>,
    },
    Aggregate {
        keys: Vec<Var>,
        aggregates: Vec<(Var, AggregateExpression)>,
        /// The variables of the solutions that are grouped, without those that subqueries hide.
        solution: VarSet,
    },
}

/// One key of an `ORDER BY`.
#[derive(Clone, Debug)]
pub(crate) struct OrderKey {
    pub(crate) expression: Expression,
    pub(crate) is_descending: bool,
}

/// Something done to the solutions of a join, in order.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) kind: StepKind,
    /// Variables that this step may bind and that were not surely bound before.
    pub(crate) introduces: VarSet,
    /// Variables whose being bound earlier would change what the step does.
    pub(crate) touches: VarSet,
}

/// The kinds of steps.
#[derive(Clone, Debug)]
pub(crate) enum StepKind {
    /// `OPTIONAL`; the filters see both sides. With a guard, only rows that bind this
    /// variable take part: it stands for "the optional part around this one matched".
    Optional {
        group: Group,
        filters: Vec<Expression>,
        guard: Option<Var>,
    },
    /// `OPTIONAL` with a filter that has an `EXISTS`: the conditions are done on the joined
    /// solutions, as the steps of a group without items.
    OptionalIf {
        group: Group,
        conditions: Group,
    },
    /// Common variables that were replaced by terms are not counted as common.
    Minus {
        group: Group,
        substituted: Vec<Substituted>,
    },
    Bind {
        variable: Var,
        expression: Expression,
        /// Whether the expression has a value in every row.
        is_certain: bool,
    },
    Filter(Expression),
    /// Keeps the solutions for which the pattern has (`is_negated`: has no) solution.
    Exists {
        group: Group,
        filters: Vec<Expression>,
        is_negated: bool,
    },
    /// `LATERAL`: the solutions of the group for each solution that is there.
    Lateral {
        group: Group,
        /// Whether its subqueries start from these solutions even if they have the same ones by
        /// themselves.
        starts_from_rows: bool,
    },
    /// Binds `variable` to whether the pattern has a solution.
    Mark {
        variable: Var,
        group: Group,
    },
}

/// Joined items, a filter on the join, steps after it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Group {
    pub(crate) items: Vec<Item>,
    pub(crate) filters: Vec<Expression>,
    pub(crate) steps: Vec<Step>,
    /// Variables that a solution may bind.
    pub(crate) visible: VarSet,
    /// Variables that every solution binds.
    pub(crate) certain: VarSet,
    /// Variables that the items bind surely.
    pub(crate) items_certain: VarSet,
    /// Variables of enclosing patterns that expressions inside mention (EXISTS).
    pub(crate) outer: VarSet,
}

impl Step {
    /// Variables that the step may read, whether they are bound before it or by its own patterns.
    pub(crate) fn mentioned(&self, table: &VariableTable) -> VarSet {
        let of_group = |group: &Group| group.visible.union(&group.outer);
        let with_filters = |group: &Group, filters: &[Expression]| {
            let mut seen = of_group(group);
            for filter in filters {
                seen.extend(&variables(filter, table));
            }
            seen
        };
        match &self.kind {
            StepKind::Optional {
                group,
                filters,
                guard,
            } => {
                let mut seen = with_filters(group, filters);
                if let Some(guard) = guard {
                    seen.insert(*guard);
                }
                seen
            }
            StepKind::OptionalIf { group, conditions } => {
                let mut seen = with_filters(group, &conditions.filters);
                for step in &conditions.steps {
                    seen.extend(&step.mentioned(table));
                }
                seen
            }
            StepKind::Exists { group, filters, .. } => with_filters(group, filters),
            StepKind::Minus { group, substituted } => {
                let mut seen = of_group(group);
                for replaced in substituted {
                    seen.extend(&VarSet::of(replaced.witness));
                }
                seen
            }
            StepKind::Mark { group, .. } | StepKind::Lateral { group, .. } => of_group(group),
            StepKind::Bind {
                variable,
                expression,
                ..
            } => {
                // The variable itself may come with a seed.
                let mut seen = variables(expression, table);
                seen.insert(*variable);
                seen
            }
            StepKind::Filter(expression) => variables(expression, table),
        }
    }
}

impl Item {
    /// The groups that it is made of as they are: the branches of a union, or a group.
    pub(crate) fn groups(&self) -> &[Group] {
        match self {
            Self::Union(branches) => branches,
            Self::Group(group) => std::slice::from_ref(group),
            Self::Quad(_)
            | Self::Path(_)
            | Self::Values(_)
            | Self::Graphs(_)
            | Self::Seed(_)
            | Self::Service(_)
            | Self::Search(_)
            | Self::Algorithm(_)
            | Self::Weights(_)
            | Self::Mapped(_)
            | Self::Derived(_) => &[],
        }
    }

    pub(crate) fn visible(&self) -> VarSet {
        match self {
            Self::Quad(quad) => quad.variables(),
            Self::Path(path) => path.variables(),
            Self::Values(values) => VarSet::of(values.variables.iter().copied()),
            Self::Union(branches) => {
                let mut visible = VarSet::default();
                for branch in branches {
                    visible.extend(&branch.visible);
                }
                visible
            }
            Self::Graphs(scope) => VarSet::of(scope.variable()),
            Self::Group(group) => group.visible.clone(),
            Self::Derived(derived) => derived.visible.clone(),
            Self::Service(service) => service.visible(),
            Self::Mapped(mapped) => mapped.visible(),
            Self::Search(search) => search.visible(),
            Self::Algorithm(algorithm) => algorithm.visible(),
            Self::Weights(weights) => weights.visible(),
            Self::Seed(seed) => seed.visible.clone(),
        }
    }

    pub(crate) fn certain(&self) -> VarSet {
        match self {
            Self::Quad(_) | Self::Path(_) | Self::Graphs(_) | Self::Mapped(_) => self.visible(),
            Self::Values(values) => VarSet::of(
                values
                    .variables
                    .iter()
                    .enumerate()
                    .filter(|(at, _)| values.rows.iter().all(|row| row[*at].is_some()))
                    .map(|(_, var)| *var),
            ),
            Self::Union(branches) => branches
                .iter()
                .map(|branch| branch.certain.clone())
                .reduce(|all, more| all.intersection(&more))
                .unwrap_or_default(),
            Self::Group(group) => group.certain.clone(),
            Self::Derived(derived) => derived.certain.clone(),
            Self::Service(service) => service.certain(),
            Self::Search(search) => search.certain(),
            Self::Algorithm(algorithm) => algorithm.visible(),
            Self::Weights(weights) => weights.visible(),
            Self::Seed(seed) => seed.certain.clone(),
        }
    }
}
