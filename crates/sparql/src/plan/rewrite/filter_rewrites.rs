//! The rewrite of filters into joins and ranges, before a group is planned.
//!
//! * `FILTER(?a = ?b)` between two variables of the group's patterns, of which one surely is a node
//!   (an IRI or a blank node): `=` is then identity of terms, so `?b` becomes `?a` in the patterns,
//!   a join instead of a product, and a step gives `?b` its value again. That a variable is a node
//!   is known of subjects, and of objects where the predicate has no literal at all, which one
//!   look-up in POSG tells.
//! * `FILTER(?a = <iri>)` says just as much: the IRI takes the variable's place, and the pattern is
//!   looked up by it.
//! * `FILTER(?o < 5)` or `FILTER(STRSTARTS(?o, "abc"))` on the object of a pattern with constant
//!   predicate: the ids that can pass are a few ranges of POSG
//!   ([`id_ranges`](crate::plan::estimate::id_ranges),
//!   [`text_prefixes`](crate::plan::estimate::text_prefixes)). The filter stays; the ranges bound
//!   what is read, and their exact length is the estimate.
//! * `FILTER(CONTAINS(?o, "abc"))` and `REGEX` are joins with literals where an index of trigrams
//!   finds few ([`gram_filters`](super::gram_filters)).
//! * `FILTER(geof:sfWithin(?place, "..."))` is a join with the literals that the index of places
//!   has ([`near_places`](super::near_places)); the filter stays.
//! * `FILTER(?a IN (<x>, <y>))`, or the same written with `||`, is a join with these IRIs, where
//!   the group would have much more to read without.
//!
//! All only where every solution binds the variables by patterns, so that no error or unbound value
//! can tell the difference.

use std::borrow::Cow;
use std::ops::Bound;

use orrery_operators::pattern::ObjectRanges;
use orrery_storage::Permutation;
use orrery_term::{Term, TermId, TermKind};
use spargebra::algebra::Expression;
use spargebra::term::{NamedNode, Variable};

use crate::algebra::expression::{map_children, variables};
use crate::algebra::{Group, Item, Quad, Slot, Step, StepKind, Values, Var, VarSet};
use crate::error::Result;
use crate::plan::estimate::id_ranges::passing_ids;
use crate::plan::estimate::text_prefixes::TextPrefix;
use crate::plan::planner::Planner;

/// Rows of the smallest pattern for each IRI that a filter names, from which on a join with the
/// IRIs is better than the filter.
const ROWS_PER_NAME: f64 = 50.0;

impl Planner<'_> {
    /// The group with its filters used as joins and ranges; `outside` are variables that have
    /// values already.
    pub(in crate::plan) fn with_filters_rewritten<'g>(
        &self,
        group: &'g Group,
        outside: &VarSet,
    ) -> Result<Cow<'g, Group>> {
        if group.filters.is_empty() || !self.tuning.rewrites {
            return Ok(Cow::Borrowed(group));
        }
        let mut with_filters_rewritten = Cow::Borrowed(group);
        while let Some((at, kept, replaced)) =
            self.find_equality(&with_filters_rewritten, outside)?
        {
            let (name, same) = (self.table.name(kept), Slot::Variable(kept));
            let same_value = Expression::Variable(Variable::new_unchecked(name.to_string()));
            unify(with_filters_rewritten.to_mut(), at, replaced, same);
            let (from, to) = (self.table.name(replaced), self.table.name(kept));
            for filter in &mut with_filters_rewritten.to_mut().filters {
                *filter = renamed(filter.clone(), from, to);
            }
            bind(with_filters_rewritten.to_mut(), replaced, same_value);
        }
        while let Some((at, replaced, iri)) = self.find_constant(&with_filters_rewritten, outside) {
            unify(
                with_filters_rewritten.to_mut(),
                at,
                replaced,
                self.constant(&iri)?,
            );
            bind(
                with_filters_rewritten.to_mut(),
                replaced,
                Expression::NamedNode(iri),
            );
        }
        for at in (0..with_filters_rewritten.filters.len()).rev() {
            self.context.patience().check()?;
            if let Some(values) = self.named_values(&with_filters_rewritten, at, outside)? {
                let with_filters_rewritten = with_filters_rewritten.to_mut();
                with_filters_rewritten.filters.remove(at);
                with_filters_rewritten.items.push(Item::Values(values));
            }
        }
        for at in 0..with_filters_rewritten.filters.len() {
            let filter = &with_filters_rewritten.filters[at];
            if let Some(values) = self.near_values(&with_filters_rewritten, filter, outside)? {
                let with_filters_rewritten = with_filters_rewritten.to_mut();
                with_filters_rewritten.items.push(Item::Values(values));
            }
        }
        let filters = with_filters_rewritten.filters.iter();
        let ranges = filters.flat_map(|it| self.near_ranges(&with_filters_rewritten, it, outside));
        let ranges: Vec<Expression> = ranges.collect();
        if !ranges.is_empty() {
            // They are asked first: a comparison costs less than a place.
            with_filters_rewritten.to_mut().filters.splice(0..0, ranges);
        }
        for at in 0..with_filters_rewritten.items.len() {
            let Item::Quad(quad) = &with_filters_rewritten.items[at] else {
                continue;
            };
            let (Slot::Constant(_), Slot::Variable(object)) = (quad.predicate, quad.object) else {
                continue;
            };
            self.context.patience().check()?;
            let name = self.table.name(object);
            let snapshot = self.context.snapshot();
            let mut texts = |prefix: &TextPrefix| prefix.passing_ids(snapshot);
            let mut ranges: Option<ObjectRanges> = quad.object_ranges.clone();
            for filter in &with_filters_rewritten.filters {
                if let Some(passing) = passing_ids(filter, name, &mut texts)? {
                    ranges = Some(match ranges {
                        Some(all) => all.intersection(&passing),
                        None => passing,
                    });
                }
            }
            if ranges.is_some()
                && let Item::Quad(quad) = &mut with_filters_rewritten.to_mut().items[at]
            {
                quad.object_ranges = ranges;
            }
        }
        // Last: ranges of ids may leave so little that nothing has to be looked up.
        if self.has_grams() {
            let values = self.gram_values(&with_filters_rewritten, outside)?;
            if !values.is_empty() {
                let items = &mut with_filters_rewritten.to_mut().items;
                items.extend(values.into_iter().map(Item::Values));
            }
        }
        Ok(with_filters_rewritten)
    }

    /// A filter that says that two variables are the same node: its place, and which variable
    /// replaces which.
    fn find_equality(&self, group: &Group, outside: &VarSet) -> Result<Option<(usize, Var, Var)>> {
        for (at, filter) in group.filters.iter().enumerate() {
            let (Expression::Equal(left, right) | Expression::SameTerm(left, right)) = filter
            else {
                continue;
            };
            let (Expression::Variable(left), Expression::Variable(right)) = (&**left, &**right)
            else {
                continue;
            };
            let (Some(left), Some(right)) = (
                self.table.get(left.as_str()),
                self.table.get(right.as_str()),
            ) else {
                continue;
            };
            if left == right || !binds_by_patterns(group, left) || !binds_by_patterns(group, right)
            {
                continue;
            }
            let is_identity = matches!(filter, Expression::SameTerm(..))
                || self.is_node(group, left)?
                || self.is_node(group, right)?;
            if !is_identity {
                continue;
            }
            for (kept, replaced) in [(left, right), (right, left)] {
                if !outside.contains(replaced) && occurs_in_nodes_only(group, replaced) {
                    return Ok(Some((at, kept, replaced)));
                }
            }
        }
        Ok(None)
    }

    /// A filter that says which IRI a variable is: its place, the variable and the IRI. No other
    /// filter reads the variable.
    fn find_constant(&self, group: &Group, outside: &VarSet) -> Option<(usize, Var, NamedNode)> {
        group.filters.iter().enumerate().find_map(|(at, filter)| {
            let (var, iri) = self.named(filter)?;
            let mut others = group.filters.iter().enumerate();
            let is_free = !outside.contains(var)
                && binds_by_patterns(group, var)
                && occurs_in_nodes_only(group, var)
                && others.all(|(other, filter)| {
                    other == at || !variables(filter, &self.table).contains(var)
                });
            is_free.then_some((at, var, iri))
        })
    }

    /// The IRIs that a filter leaves for a variable that patterns bind, if it does, and these have
    /// many more rows.
    fn named_values(&self, group: &Group, at: usize, outside: &VarSet) -> Result<Option<Values>> {
        let mut iris = Vec::new();
        let Some(var) = one_of(&group.filters[at], &mut iris) else {
            return Ok(None);
        };
        let Some(var) = self.table.get(var).filter(|var| !outside.contains(*var)) else {
            return Ok(None);
        };
        let mut fewest: Option<f64> = None;
        let mut is_bound = false;
        for item in &group.items {
            if let Item::Quad(quad) = item {
                let rows = self.estimate(item)?.rows;
                fewest = Some(fewest.map_or(rows, |fewest| fewest.min(rows)));
                is_bound |= quad.variables().contains(var);
            }
        }
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let is_worth = fewest.is_some_and(|rows| rows >= ROWS_PER_NAME * iris.len() as f64);
        if !is_bound || !(is_worth || self.tuning.reduces_always) {
            return Ok(None);
        }
        let mut ids = Vec::with_capacity(iris.len());
        for iri in iris {
            // What the dictionary does not know is in no pattern.
            if let Slot::Constant(id) = self.constant(iri)? {
                ids.push(id);
            }
        }
        ids.sort_unstable();
        ids.dedup();
        let rows = ids.into_iter().map(|id| vec![Some(id)]).collect();
        Ok(Some(Values {
            variables: vec![var],
            rows,
        }))
    }

    fn constant(&self, iri: &NamedNode) -> Result<Slot> {
        let id = self.context.view().id_in_quads(&Term::iri(iri.as_str()))?;
        if id.is_none() {
            self.context.note_bound_to_commit();
        }
        Ok(id.map_or(Slot::Absent, Slot::Constant))
    }

    /// The variable of a filter that says which IRI it is, and the IRI.
    fn named(&self, filter: &Expression) -> Option<(Var, NamedNode)> {
        // Against an IRI, `=` is identity, and never an error for what is bound.
        let (Expression::Equal(left, right) | Expression::SameTerm(left, right)) = filter else {
            return None;
        };
        let ((Expression::Variable(variable), Expression::NamedNode(iri))
        | (Expression::NamedNode(iri), Expression::Variable(variable))) = (&**left, &**right)
        else {
            return None;
        };
        Some((self.table.get(variable.as_str())?, iri.clone()))
    }

    /// The group of an `EXISTS` with IRIs in the place of variables that must be these; nothing but
    /// its own filters reads those.
    pub(in crate::plan) fn with_constants<'g>(
        &self,
        group: &'g Group,
        outside: &VarSet,
    ) -> Result<Cow<'g, Group>> {
        let mut group = Cow::Borrowed(group);
        while let Some((at, replaced, iri)) = self.find_constant(&group, outside) {
            unify(group.to_mut(), at, replaced, self.constant(&iri)?);
        }
        Ok(group)
    }

    /// Whether a pattern of the group binds the variable to nodes only.
    fn is_node(&self, group: &Group, var: Var) -> Result<bool> {
        for item in &group.items {
            let Item::Quad(quad) = item else { continue };
            if quad.subject == Slot::Variable(var) {
                return Ok(true);
            }
            if let (Slot::Constant(predicate), true) =
                (quad.predicate, quad.object == Slot::Variable(var))
                && !self.has_literals(predicate)?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn has_literals(&self, predicate: TermId) -> Result<bool> {
        let Some(index) = self.context.view().index(Permutation::Posg) else {
            return Ok(true);
        };
        let literals = index.cursor().seek_between(
            &[predicate],
            Bound::Included(TermId::first_of(TermKind::Literal)),
            Bound::Unbounded,
        )?;
        if literals.is_empty() {
            self.context.note_bound_to_commit();
        }
        Ok(!literals.is_empty())
    }
}

/// The variable that is one of some IRIs where a condition holds.
fn one_of<'e>(condition: &'e Expression, iris: &mut Vec<&'e NamedNode>) -> Option<&'e str> {
    match condition {
        Expression::Or(a, b) => {
            let (a, b) = (one_of(a, iris)?, one_of(b, iris)?);
            (a == b).then_some(a)
        }
        Expression::In(value, list) => {
            let Expression::Variable(variable) = &**value else {
                return None;
            };
            for member in list {
                let Expression::NamedNode(iri) = member else {
                    return None;
                };
                iris.push(iri);
            }
            Some(variable.as_str())
        }
        // Against an IRI, `=` is identity, and never an error for what is bound.
        Expression::Equal(a, b) | Expression::SameTerm(a, b) => match (&**a, &**b) {
            (Expression::Variable(variable), Expression::NamedNode(iri))
            | (Expression::NamedNode(iri), Expression::Variable(variable)) => {
                iris.push(iri);
                Some(variable.as_str())
            }
            _ => None,
        },
        _ => None,
    }
}

/// Puts something else in the place of a variable in the patterns, as a filter says, which then has
/// no more to say.
fn unify(group: &mut Group, at: usize, replaced: Var, same: Slot) {
    group.filters.remove(at);
    for item in &mut group.items {
        if let Item::Quad(quad) = item {
            for slot in [&mut quad.subject, &mut quad.object] {
                if *slot == Slot::Variable(replaced) {
                    *slot = same;
                }
            }
        }
    }
    group.items_certain = group.items_certain.difference(&VarSet::of([replaced]));
}

/// Gives a variable that is no more in the patterns its value again.
fn bind(group: &mut Group, variable: Var, expression: Expression) {
    group.steps.insert(
        0,
        Step {
            kind: StepKind::Bind {
                variable,
                expression,
                is_certain: true,
            },
            introduces: VarSet::of([variable]),
            touches: VarSet::default(),
        },
    );
}

fn binds_by_patterns(group: &Group, var: Var) -> bool {
    group
        .items
        .iter()
        .any(|item| matches!(item, Item::Quad(quad) if quad.nodes().contains(var)))
}

/// Whether the variable stands as subject or object of patterns, and nowhere else in the group's
/// items.
fn occurs_in_nodes_only(group: &Group, var: Var) -> bool {
    group.items.iter().all(|item| match item {
        Item::Quad(Quad {
            predicate, scope, ..
        }) => *predicate != Slot::Variable(var) && scope.variable() != Some(var),
        other => !other.visible().contains(var),
    })
}

fn renamed(expression: Expression, from: &str, to: &str) -> Expression {
    let new = |variable: Variable| match variable.as_str() == from {
        true => Variable::new_unchecked(to),
        false => variable,
    };
    match expression {
        Expression::Variable(variable) => Expression::Variable(new(variable)),
        Expression::Bound(variable) => Expression::Bound(new(variable)),
        other => {
            let mapped = map_children(other, &mut |child| {
                Ok::<_, std::convert::Infallible>(renamed(child, from, to))
            });
            match mapped {
                Ok(expression) => expression,
                Err(never) => match never {},
            }
        }
    }
}
