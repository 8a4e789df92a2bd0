//! The rewrite of aggregates over non-matching pairs, which avoids the product.
//!
//! ```text
//! GROUP BY ?feature                                     ComplementExec by ?feature
//!     |                                                  /        |          \
//! NOT EXISTS { ?product :feature ?feature }        features   products    ?product :feature ?feature
//!     |                                                       with prices  from the products
//! features x products with prices
//! ```
//!
//! Where a group joins two parts that share nothing, a `NOT EXISTS` over one variable of each is
//! all that comes after, the aggregates read one part and the key is the other's variable, nobody
//! needs the pairs: each key gets the aggregate of all members but its matches
//! ([`orrery_operators::complement`]).

use std::sync::Arc;

use orrery_operators::complement::{ComplementExec, ComplementInputs, can_be_complemented};
use spargebra::algebra::AggregateExpression;

use crate::algebra::expression::{is_volatile, variables};
use crate::algebra::{Group, Item, StepKind, Var, VarSet};
use crate::error::Result;
use crate::plan::planner::Planner;
use crate::plan::relation::Relation;

/// Pairs from which on a tree of states is worth its making.
const PAIRS_MIN: f64 = 100_000.0;
/// So many times as many pairs as matches there must be.
const PAIRS_PER_MATCH_MIN: f64 = 8.0;

/// An aggregation taken apart.
struct Parts<'g> {
    groups: Group,
    members: Group,
    member: Var,
    pattern: &'g Group,
}

impl Planner<'_> {
    /// Plans an aggregation over a product without matches, if it is one and that pays.
    pub(in crate::plan) fn aggregate_complement(
        &mut self,
        inner: &Group,
        keys: &[Var],
        aggregates: &[(Var, AggregateExpression)],
    ) -> Result<Option<Relation>> {
        let &[key] = keys else { return Ok(None) };
        let Some(parts) = self.parts(inner, key, aggregates) else {
            return Ok(None);
        };
        if !self.tuning.aggregates_early && !self.pays(&parts)? {
            return Ok(None);
        }
        self.complement(&parts, key, aggregates)
    }

    /// Whether an aggregation is one over what a pattern does not match.
    pub(super) fn is_over_complement(
        &self,
        inner: &Group,
        keys: &[Var],
        aggregates: &[(Var, AggregateExpression)],
    ) -> bool {
        matches!(keys, &[key] if self.parts(inner, key, aggregates).is_some())
    }

    fn parts<'g>(
        &self,
        inner: &'g Group,
        key: Var,
        aggregates: &[(Var, AggregateExpression)],
    ) -> Option<Parts<'g>> {
        let [step] = inner.steps.as_slice() else {
            return None;
        };
        let StepKind::Exists {
            group: pattern,
            filters,
            is_negated: true,
        } = &step.kind
        else {
            return None;
        };
        let is_plain = filters.is_empty()
            && !inner.filters.iter().any(is_volatile)
            && inner.outer.is_empty()
            && pattern.filters.is_empty()
            && pattern.outer.is_empty()
            && pattern.is_patterns_only();
        let shared = pattern.visible.intersection(&inner.visible);
        let only_key = VarSet::of([key]);
        let mut others = shared.difference(&only_key).iter().collect::<Vec<_>>();
        let (Some(member), true) = (others.pop(), others.is_empty()) else {
            return None;
        };
        if !is_plain || !shared.contains(key) || !shared.is_subset(&inner.items_certain) {
            return None;
        }
        let (members, groups) = hanging_together(&inner.items, member);
        let (mut members, mut groups) = (Group::join_of(&members), Group::join_of(&groups));
        for filter in &inner.filters {
            let seen = variables(filter, &self.table);
            let side = [&mut members, &mut groups]
                .into_iter()
                .find(|side| seen.is_subset(&side.visible))?;
            side.filters.push(filter.clone());
        }
        let mut read = VarSet::default();
        for (_, aggregate) in aggregates {
            if let AggregateExpression::FunctionCall { expr, .. } = aggregate {
                if is_volatile(expr) {
                    return None;
                }
                read.extend(&variables(expr, &self.table));
            }
        }
        let is_apart = !members.visible.contains(key) && read.is_subset(&members.visible);
        is_apart.then_some(Parts {
            groups,
            members,
            member,
            pattern,
        })
    }

    fn pays(&self, parts: &Parts<'_>) -> Result<bool> {
        let groups = self.group_rows(&parts.groups)?;
        let members = self.group_rows(&parts.members)?;
        let mut matched = parts.members.clone();
        for item in &parts.pattern.items {
            matched.push(item.clone());
        }
        let matches = self.group_rows(&matched)?;
        let pairs = groups * members;
        Ok(pairs >= PAIRS_MIN && pairs >= PAIRS_PER_MATCH_MIN * matches)
    }

    fn complement(
        &mut self,
        parts: &Parts<'_>,
        key: Var,
        aggregates: &[(Var, AggregateExpression)],
    ) -> Result<Option<Relation>> {
        let member = parts.member;
        let mut needed = VarSet::of([member]);
        for (_, aggregate) in aggregates {
            if let AggregateExpression::FunctionCall { expr, .. } = aggregate {
                needed.extend(&variables(expr, &self.table));
            }
        }
        let groups = self.group(&parts.groups, None, &VarSet::of([key]), None)?;
        let members = self.group(&parts.members, None, &needed, None)?;
        if groups.is_empty || members.is_empty {
            let results = VarSet::of(aggregates.iter().map(|(var, _)| *var));
            return self.nothing(&results.union(&VarSet::of([key]))).map(Some);
        }
        let named: Vec<(String, AggregateExpression)> = aggregates
            .iter()
            .map(|(var, aggregate)| (self.table.name(*var).to_string(), aggregate.clone()))
            .collect();
        let schema = members.plan.schema();
        let functions = orrery_operators::aggregate::plan(&named, &schema, &self.context)?;
        if !functions.iter().all(|it| can_be_complemented(it)) {
            return Ok(None);
        }
        let (members, matches) = self.matches(parts, members, &VarSet::of([key, member]))?;
        if matches.is_empty {
            return Ok(None);
        }
        let rows = self.different(&parts.groups, &VarSet::of([key]), groups.rows)?;
        let names = [key, member].map(|var| Arc::clone(self.table.name(var)));
        let inputs = ComplementInputs {
            groups: groups.plan,
            members: members.plan,
            matches: matches.plan,
        };
        let plan = ComplementExec::try_new(inputs, (&names[0], &names[1]), functions)?;
        let results = aggregates.iter().map(|(var, _)| *var);
        let columns = std::iter::once(key).chain(results).collect();
        self.relation(plan, columns, VarSet::of([key]), rows)
            .map(Some)
    }
}

impl Planner<'_> {
    /// The pairs that match, of all members and perhaps of others, which do no harm: where patterns
    /// say what a member is, they are matched a second time, else the members are computed once for
    /// both.
    fn matches(
        &mut self,
        parts: &Parts<'_>,
        members: Relation,
        pair: &VarSet,
    ) -> Result<(Relation, Relation)> {
        let member = VarSet::of([parts.member]);
        let says_what = |item: &&Item| match item {
            Item::Quad(_) => item.visible().is_subset(&member),
            _ => false,
        };
        let mut matching = parts.members.items.iter().filter(says_what).cloned();
        if let Some(first) = matching.next() {
            let mut group = Group::of(first);
            for item in matching.chain(parts.pattern.items.iter().cloned()) {
                group.push(item);
            }
            let matches = self.group(&group, None, pair, None)?;
            return Ok((members, matches));
        }
        let members = self.shared(&members)?;
        let seed = self.with_columns(members.clone(), member.iter().collect())?;
        let seed = self.distinct(seed, members.rows)?;
        let matches = self.group(parts.pattern, Some(seed), pair, None)?;
        Ok((members, matches))
    }
}

/// The items that share variables with one another and with `member`, and the others.
fn hanging_together(items: &[Item], member: Var) -> (Vec<Item>, Vec<Item>) {
    let mut inside = VarSet::of([member]);
    loop {
        let before = inside.clone();
        for item in items {
            let visible = item.visible();
            if visible.intersects(&inside) {
                inside.extend(&visible);
            }
        }
        if inside.is_subset(&before) {
            break;
        }
    }
    let items = items.iter().cloned();
    items.partition(|item| item.visible().intersects(&inside))
}
