//! Plans of spatial joins: filters by place between parts of a group without a shared variable.
//!
//! ```text
//! { ?p geo:asWKT ?point . ?a geo:asWKT ?area . FILTER(geof:sfWithin(?point, ?area)) }
//!   -->  PlacesJoinExec over the patterns of ?p and those of ?a, each planned for itself
//! ```
//!
//! Otherwise the filter would stand above the product of both.

use std::sync::Arc;

use orrery_operators::places::{Nearness, PlacesCondition, PlacesJoinExec};
use spargebra::algebra::Expression;

use crate::algebra::expression::variables;
use crate::algebra::{Group, Item, Var, VarSet};
use crate::error::Result;
use crate::plan::nearness::nearness_of;
use crate::plan::planner::Planner;
use crate::plan::relation::Relation;

/// A filter that a join can do.
struct Condition {
    /// Its place among the group's filters.
    filter: usize,
    one: Var,
    other: Var,
    nearness: Nearness,
}

impl Planner<'_> {
    /// The items of a group and its filters as a join by place, if that is what they come to.
    pub(in crate::plan) fn places_join(
        &mut self,
        group: &Group,
        needed: &VarSet,
    ) -> Result<Option<Relation>> {
        if group.items.len() < 2 || group.filters.is_empty() {
            return Ok(None);
        }
        // What is done row by row for rows that are there already stays where it is.
        let is_bound_to_rows =
            |item: &Item| matches!(item, Item::Seed(_) | Item::Service(_) | Item::Graphs(_));
        if group.items.iter().any(is_bound_to_rows) {
            return Ok(None);
        }
        let conditions = group.filters.iter().enumerate();
        let conditions = conditions.filter_map(|(place, filter)| self.condition(place, filter));
        let conditions: Vec<Condition> = conditions.collect();
        if conditions.is_empty() {
            return Ok(None);
        }
        let parts = parts(group);
        let part_of = |var: Var| {
            let item = group.items.iter().position(|it| it.visible().contains(var));
            item.map(|item| parts[item])
        };
        let apart = conditions.into_iter().find_map(|condition| {
            let (one, other) = (part_of(condition.one)?, part_of(condition.other)?);
            (one != other).then_some((condition, other))
        });
        let Some((condition, other)) = apart else {
            return Ok(None);
        };
        self.joined_by(group, &condition, (&parts, other), needed)
            .map(Some)
    }

    /// Plans the items of one part and all others by themselves, and joins them.
    fn joined_by(
        &mut self,
        group: &Group,
        condition: &Condition,
        (parts, part): (&[usize], usize),
        needed: &VarSet,
    ) -> Result<Relation> {
        let mut wanted = needed.clone();
        for filter in &group.filters {
            wanted.extend(&variables(filter, &self.table));
        }
        let mut one = part_of(group, parts, |it| it != part);
        let mut other = part_of(group, parts, |it| it == part);
        let mut above = Vec::new();
        for (place, filter) in group.filters.iter().enumerate() {
            let reads = variables(filter, &self.table);
            if place == condition.filter {
                continue;
            } else if reads.is_subset(&one.visible) {
                one.filters.push(filter.clone());
            } else if reads.is_subset(&other.visible) {
                other.filters.push(filter.clone());
            } else {
                above.push(filter.clone());
            }
        }
        let one = self.items(&one, None, &wanted, None)?;
        let other = self.items(&other, None, &wanted, None)?;
        if one.is_empty || other.is_empty {
            return self.nothing(&group.visible.intersection(needed));
        }
        let rows = one.rows.max(other.rows);
        let certain = one.certain.union(&other.certain);
        let all = one.variables().union(&other.variables());
        let columns: Vec<Var> = all.intersection(&wanted).iter().collect();
        // The smaller side is kept in memory.
        let is_turned = one.rows < other.rows;
        let (left, right) = match is_turned {
            false => ((one, condition.one), (other, condition.other)),
            true => ((other, condition.other), (one, condition.one)),
        };
        let certain = certain.intersection(&VarSet::of(columns.iter().copied()));
        let plan = PlacesJoinExec::try_new(
            Arc::clone(&self.context),
            left.0.plan,
            right.0.plan,
            PlacesCondition {
                left: Arc::clone(self.table.name(left.1)),
                right: Arc::clone(self.table.name(right.1)),
                nearness: condition.nearness,
                is_turned,
            },
            &self.names(&columns),
        )?;
        let relation = self.relation(plan, columns, certain, rows)?;
        self.filter(relation, &above)
    }

    /// What a filter says of two places.
    fn condition(&self, filter: usize, expression: &Expression) -> Option<Condition> {
        let (arguments, nearness) = nearness_of(expression)?;
        let variable = |argument: &Expression| match argument {
            Expression::Variable(variable) => self.table.get(variable.as_str()),
            _ => None,
        };
        let [one, other, ..] = arguments else {
            return None;
        };
        Some(Condition {
            filter,
            one: variable(one)?,
            other: variable(other)?,
            nearness,
        })
    }
}

/// For each item the number of its part: items of different parts share no variable.
fn parts(group: &Group) -> Vec<usize> {
    let mut parts: Vec<usize> = (0..group.items.len()).collect();
    for (place, item) in group.items.iter().enumerate() {
        for earlier in 0..place {
            let shared = group.items[earlier].visible().intersection(&item.visible());
            let (from, to) = (parts[place], parts[earlier]);
            if !shared.is_empty() && from != to {
                parts
                    .iter_mut()
                    .filter(|it| **it == from)
                    .for_each(|it| *it = to);
            }
        }
    }
    parts
}

/// The items of some parts, without filters.
fn part_of(group: &Group, parts: &[usize], is_wanted: impl Fn(usize) -> bool) -> Group {
    let items = group.items.iter().zip(parts);
    let items = items.filter(|(_, part)| is_wanted(**part));
    let items: Vec<Item> = items.map(|(item, _)| item.clone()).collect();
    let (mut visible, mut certain) = (VarSet::default(), VarSet::default());
    for item in &items {
        visible.extend(&item.visible());
        certain.extend(&item.certain());
    }
    Group {
        items,
        filters: Vec::new(),
        steps: Vec::new(),
        items_certain: certain.clone(),
        visible,
        certain,
        outer: group.outer.clone(),
    }
}
