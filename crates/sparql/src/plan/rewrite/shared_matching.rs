//! The rewrite of patterns common to a group and its subquery, matched once.
//!
//! ```text
//! { SELECT (AVG(?s1) AS ?average) { ?p1 :producer :P . ?r1 :reviewFor ?p1 . ?r1 :rating ?s1 } }
//! ?p :producer :P . ?r :reviewFor ?p . ?r :rating ?s . ?r :reviewer ?reviewer           the first three are the same
//! ```
//!
//! A subquery that aggregates all solutions of its patterns has to match them. Where the group
//! around it joins the same patterns, written alike but for the names of their variables, their
//! solutions are kept ([`SharedExec`](orrery_operators::nodes::SharedExec)): the subquery
//! aggregates them, and the group goes on from them. What is matched twice is then matched once,
//! and the group has no more to read than the subquery anyway. Only while the solutions are
//! expected to fit into [`SHARED_BYTES_MAX`], and where nothing aggregates the subquery's patterns
//! without their solutions ([`eager_aggregation`](super::eager_aggregation)).

use spargebra::algebra::AggregateExpression;

use super::shared_subqueries::SHARED_BYTES_MAX;
use crate::algebra::expression::variables;
use crate::algebra::{Derived, Group, Item, Modifier, Quad, Seed, Slot, Var, VarSet};
use crate::error::Result;
use crate::plan::planner::Planner;
use crate::plan::relation::Relation;

/// Patterns that are compared with those of the group, at most: the search tries them in all ways.
const ITEMS_MAX: usize = 12;

/// A subquery of a group whose patterns are among those of the group.
struct Overlap<'g> {
    /// The number of the subquery among the items.
    subquery: usize,
    /// What it aggregates, and how.
    inner: &'g Group,
    keys: &'g [Var],
    aggregates: &'g [(Var, AggregateExpression)],
    solution: &'g VarSet,
    /// The numbers of the items that it has too.
    items: Vec<usize>,
    names: Renaming,
}

impl Planner<'_> {
    /// The group with what it has in common with a subquery as rows that are computed once, if it
    /// has.
    pub(in crate::plan) fn with_shared_matching(
        &mut self,
        group: &Group,
        needed: &VarSet,
    ) -> Result<Option<Group>> {
        for subquery in 0..group.items.len() {
            if let Some(overlap) = overlap_of(group, subquery)
                && let Some(rewritten) = self.share(group, &overlap, needed)?
            {
                return Ok(Some(rewritten));
            }
        }
        Ok(None)
    }

    fn share(
        &mut self,
        group: &Group,
        overlap: &Overlap<'_>,
        needed: &VarSet,
    ) -> Result<Option<Group>> {
        if self.is_aggregated_eagerly(overlap.inner, overlap.keys, overlap.aggregates)? {
            return Ok(None);
        }
        let mut common = Group::default();
        let mut read = needed.clone();
        for filter in &group.filters {
            read.extend(&variables(filter, &self.table));
        }
        for (number, item) in group.items.iter().enumerate() {
            match overlap.items.contains(&number) {
                true => common.push(item.clone()),
                false => read.extend(&item.visible()),
            }
        }
        let below = self.read_by(overlap.solution, overlap.keys, overlap.aggregates);
        read.extend(&VarSet::of(
            below.iter().filter_map(|var| overlap.names.outer(var)),
        ));
        let estimate = self.group_estimate(&common)?;
        let columns = common.visible.intersection(&read);
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let bytes = estimate.rows * (columns.iter().count() * size_of::<u64>()) as f64;
        if bytes > SHARED_BYTES_MAX || estimate.rows == 0.0 {
            return Ok(None);
        }
        let was_set = std::mem::replace(&mut self.is_set, false);
        let relation = self.group(&common, None, &read, None);
        self.is_set = was_set;
        let shared = self.shared(&relation?)?;
        let (inner, outer): (Vec<Var>, Vec<Var>) = overlap.names.pairs.iter().copied().unzip();
        let renamed = self.renamed(shared.clone(), &outer, &inner)?;
        let mut rows = Group::of(self.seed_item(shared, &estimate.distinct));
        let distinct = estimate.distinct.iter().filter_map(|(var, values)| {
            let inner = overlap.names.inner(*var)?;
            Some((inner, *values))
        });
        let distinct: Vec<(Var, f64)> = distinct.collect();
        let below = Group::of(self.seed_item(renamed, &distinct));
        for (number, item) in group.items.iter().enumerate() {
            match item {
                Item::Derived(derived) if number == overlap.subquery => {
                    rows.push(Item::Derived(Box::new(over(derived, below.clone()))));
                }
                _ if overlap.items.contains(&number) => {}
                other => rows.push(other.clone()),
            }
        }
        Ok(Some(Group {
            items: rows.items,
            ..group.clone()
        }))
    }

    /// Rows that the planner has as an item, with how many values their variables are expected to
    /// have.
    fn seed_item(&mut self, rows: Relation, distinct: &[(Var, f64)]) -> Item {
        let number = self.seeds.len();
        let visible = rows.variables();
        let known = distinct.iter().filter(|(var, _)| visible.contains(*var));
        self.seed_values.insert(number, known.copied().collect());
        let certain = rows.certain.clone();
        self.seeds.push(rows);
        Item::Seed(Seed {
            number,
            visible,
            certain,
            substituted: Vec::new(),
        })
    }
}

/// What a group has in common with one of its items, a subquery that aggregates nothing but
/// patterns.
fn overlap_of(group: &Group, subquery: usize) -> Option<Overlap<'_>> {
    let Item::Derived(derived) = &group.items[subquery] else {
        return None;
    };
    let mut aggregation = derived;
    let (keys, aggregates, solution) = loop {
        match (&aggregation.modifier, aggregation.inner.items.as_slice()) {
            (
                Modifier::Aggregate {
                    keys,
                    aggregates,
                    solution,
                },
                _,
            ) => break (keys, aggregates, solution),
            (Modifier::Project(_), [Item::Derived(below)]) => aggregation = below,
            _ => return None,
        }
    };
    let inner = &aggregation.inner;
    let is_small = (2..=ITEMS_MAX).contains(&inner.items.len()) && group.items.len() <= ITEMS_MAX;
    if !is_small || !inner.is_join_of_items() {
        return None;
    }
    let mut overlap = Overlap {
        subquery,
        inner,
        keys,
        aggregates,
        solution,
        items: Vec::new(),
        names: Renaming::default(),
    };
    assign(&inner.items, group, &mut overlap.items, &mut overlap.names).then_some(overlap)
}

/// Finds each of the items among those of the group that are not taken yet.
fn assign(items: &[Item], group: &Group, taken: &mut Vec<usize>, names: &mut Renaming) -> bool {
    let Some((item, rest)) = items.split_first() else {
        return true;
    };
    for number in 0..group.items.len() {
        let known = names.pairs.len();
        if !taken.contains(&number) && names.items(item, &group.items[number]) {
            taken.push(number);
            if assign(rest, group, taken, names) {
                return true;
            }
            taken.pop();
        }
        names.pairs.truncate(known);
    }
    false
}

/// The subquery over other rows.
fn over(derived: &Derived, rows: Group) -> Derived {
    let inner = match (&derived.modifier, derived.inner.items.as_slice()) {
        (Modifier::Project(_), [Item::Derived(below)]) => Group {
            items: vec![Item::Derived(Box::new(over(below, rows)))],
            ..derived.inner.clone()
        },
        _ => rows,
    };
    Derived {
        inner,
        ..derived.clone()
    }
}

/// Which variable of the subquery stands for which one of the group, one for one.
#[derive(Default)]
struct Renaming {
    /// Variables of the subquery and of the group.
    pairs: Vec<(Var, Var)>,
}

impl Renaming {
    fn outer(&self, inner: Var) -> Option<Var> {
        let mut pairs = self.pairs.iter();
        pairs.find(|pair| pair.0 == inner).map(|pair| pair.1)
    }

    fn inner(&self, outer: Var) -> Option<Var> {
        let mut pairs = self.pairs.iter();
        pairs.find(|pair| pair.1 == outer).map(|pair| pair.0)
    }

    /// Whether two items are the same under the names so far, which grow.
    fn items(&mut self, inner: &Item, outer: &Item) -> bool {
        match (inner, outer) {
            (Item::Quad(inner), Item::Quad(outer)) => self.quads(inner, outer),
            (Item::Union(inner), Item::Union(outer)) => {
                inner.len() == outer.len()
                    && inner.iter().zip(outer).all(|(inner, outer)| {
                        inner.is_join_of_items()
                            && outer.is_join_of_items()
                            && inner.items.len() == outer.items.len()
                            && inner
                                .items
                                .iter()
                                .zip(&outer.items)
                                .all(|(a, b)| self.items(a, b))
                    })
            }
            _ => false,
        }
    }

    fn quads(&mut self, inner: &Quad, outer: &Quad) -> bool {
        inner.scope == outer.scope
            && inner.scope.variable().is_none()
            && inner.object_ranges == outer.object_ranges
            && self.slots(inner.subject, outer.subject)
            && self.slots(inner.predicate, outer.predicate)
            && self.slots(inner.object, outer.object)
    }

    fn slots(&mut self, inner: Slot, outer: Slot) -> bool {
        match (inner, outer) {
            (Slot::Variable(inner), Slot::Variable(outer)) => {
                match (self.outer(inner), self.inner(outer)) {
                    (None, None) => {
                        self.pairs.push((inner, outer));
                        true
                    }
                    (known, _) => known == Some(outer),
                }
            }
            (inner, outer) => inner == outer,
        }
    }
}
