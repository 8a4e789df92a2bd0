//! The parts of a group that can be aggregated before they are joined.
//!
//! Without the variables of a *separator* the items of a group fall apart into components, which
//! meet in the separator only. A component whose own variables nothing else needs is a part.
//! Separators are single variables, what one item or step has in common with all others, and
//! nothing at all: what is not connected is a part as well. Patterns whose variables are all in the
//! separator say which of its values there are; they stand on both sides, for it matters not how
//! often they are joined.
//!
//! Steps (`EXISTS`, `MINUS`, `OPTIONAL`, `BIND` ...) hang together with what binds the variables
//! that they mention, and are steps of the part then: a semi join with one part leaves the other
//! parts alone. One that mentions the separator only stays above.
//!
//! Components of one pattern each around one variable are one part if each has the variable's
//! values as runs in a permutation: their counts are the products of run lengths.

use orrery_operators::run_counts::has_runs;

use super::totals::{Side, Total};
use crate::algebra::expression::variables;
use crate::algebra::{Group, Item, Var, VarSet, VariableTable};
use crate::plan::planner::Planner;
use crate::statistics::operator_pattern;

/// Items of a group that is taken apart, at most: what there is to try grows with their square.
const ITEMS_MAX: usize = 16;

/// A part of a group, and the rest.
pub(super) struct Part {
    /// The variables that it shares with the rest.
    pub(super) separator: Vec<Var>,
    pub(super) below: Group,
    pub(super) above: Group,
    /// Whether its solutions are counted without being made.
    pub(super) is_counted_by_runs: bool,
}

impl Part {
    /// The variables that only the part has.
    pub(super) fn own_variables(&self) -> VarSet {
        let separator = VarSet::of(self.separator.iter().copied());
        self.below.visible.difference(&separator)
    }
}

/// Which variables may separate a part from the rest: those that items share, or also those that an
/// item shares with a step.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Separators {
    OfItems,
    OfItemsAndSteps,
}

/// Whether a group is a join on which all else treats equal solutions equally, so that there may be
/// parts: what steps do with a solution depends on the variables that they mention, and on nothing
/// else. (Solutions that are grouped see no rows from outside, of `EXISTS` for instance; who
/// divides others has to know that, too.)
pub(super) fn is_dividable(group: &Group) -> bool {
    let members = group.items.len() + group.steps.len();
    !group.items.is_empty() && (2..=ITEMS_MAX).contains(&members) && group.is_steady()
}

/// The parts of a group of which totals by keys are asked.
pub(super) fn parts(
    group: &Group,
    keys: &[Var],
    totals: &[(Var, Total)],
    (by, planner): (Separators, &Planner<'_>),
) -> Vec<Part> {
    let mut visible: Vec<VarSet> = group.items.iter().map(Item::visible).collect();
    let introduced = group
        .steps
        .iter()
        .fold(VarSet::default(), |all, step| all.union(&step.introduces));
    // Other variables of a step are its own, even where two steps have the same.
    let bound = visible
        .iter()
        .fold(introduced.clone(), |all, more| all.union(more));
    visible.extend(group.steps.iter().map(|step| {
        let mentioned = step.mentioned(&planner.table).union(&step.introduces);
        mentioned.intersection(&bound)
    }));
    let division = Division {
        group,
        visible,
        introduced,
        keys: VarSet::of(keys.iter().copied()),
        filters: group
            .filters
            .iter()
            .map(|filter| variables(filter, &planner.table))
            .collect(),
        totals,
        table: &planner.table,
    };
    let mut found = Vec::new();
    for separator in division.separators(by) {
        let components = division.components(&separator);
        division.add_star(&separator, &components, planner, &mut found);
        for component in &components {
            found.extend(division.part(&separator, component, false));
        }
    }
    found
}

/// A group to be divided, and what depends on its variables.
struct Division<'g> {
    group: &'g Group,
    /// The variables of each item, then those that each step shares with items and other steps.
    /// Members are numbered as they are here.
    visible: Vec<VarSet>,
    /// Variables that steps bind.
    introduced: VarSet,
    keys: VarSet,
    /// The variables of each filter.
    filters: Vec<VarSet>,
    totals: &'g [(Var, Total)],
    table: &'g VariableTable,
}

impl Division<'_> {
    /// Sets of variables that no step binds, each of which every item that has it surely binds.
    fn separators(&self, by: Separators) -> Vec<VarSet> {
        let members = match by {
            Separators::OfItems => &self.visible[..self.group.items.len()],
            Separators::OfItemsAndSteps => &self.visible,
        };
        let mut shared = VarSet::default();
        let mut seen = VarSet::default();
        for visible in members {
            shared.extend(&seen.intersection(visible));
            seen.extend(visible);
        }
        let certain: Vec<VarSet> = self.group.items.iter().map(Item::certain).collect();
        let is_certain = |var: &Var| {
            let mut items = self.visible.iter().zip(&certain);
            !self.introduced.contains(*var)
                && items.all(|(visible, certain)| !visible.contains(*var) || certain.contains(*var))
        };
        let certain = VarSet::of(shared.iter().filter(is_certain));
        let mut separators: Vec<VarSet> = certain.iter().map(|var| VarSet::of([var])).collect();
        for visible in members {
            let common = visible.intersection(&shared);
            let is_new = !separators.iter().any(|it| is_same(it, &common));
            if common.is_subset(&certain) && is_new {
                separators.push(common);
            }
        }
        if !separators.iter().any(VarSet::is_empty) {
            separators.push(VarSet::default());
        }
        separators
    }

    /// The members that hang together without the separator, by their numbers. What has no other
    /// variables is in none.
    fn components(&self, separator: &VarSet) -> Vec<Vec<usize>> {
        let mut components: Vec<(VarSet, Vec<usize>)> = Vec::new();
        for (number, visible) in self.visible.iter().enumerate() {
            let mut own = visible.difference(separator);
            if own.is_empty() {
                continue;
            }
            let mut members = vec![number];
            components.retain(|(others, numbers)| {
                let hangs_together = others.intersects(&own);
                if hangs_together {
                    own.extend(others);
                    members.extend(numbers);
                }
                !hangs_together
            });
            members.sort_unstable();
            components.push((own, members));
        }
        components.into_iter().map(|(_, members)| members).collect()
    }

    /// The components that are counted by runs together.
    fn add_star(
        &self,
        separator: &VarSet,
        components: &[Vec<usize>],
        planner: &Planner<'_>,
        found: &mut Vec<Part>,
    ) {
        let mut variables = separator.iter();
        let (Some(key), None) = (variables.next(), variables.next()) else {
            return;
        };
        let has_runs = |number: usize| match self.group.items.get(number) {
            Some(Item::Quad(quad)) if !quad.is_impossible() && quad.variables().contains(key) => {
                let pattern = operator_pattern(quad, self.table);
                has_runs(&planner.context, &pattern, self.table.name(key))
            }
            _ => false,
        };
        let mut star: Vec<usize> = Vec::new();
        for component in components {
            if let &[number] = component.as_slice()
                && has_runs(number)
                && self.is_only_counted(number, separator)
                && self.part(separator, component, true).is_some()
            {
                star.push(number);
            }
        }
        let pure = self.pure(separator);
        if star.is_empty() || !pure.iter().all(|number| has_runs(*number)) {
            return;
        }
        found.extend(self.part(separator, &star, true));
    }

    /// Whether nothing but the number of its rows is asked of an item.
    fn is_only_counted(&self, number: usize, separator: &VarSet) -> bool {
        let own = self.visible[number].difference(separator);
        let is_filtered = self.filters.iter().any(|filter| filter.intersects(&own));
        let stays_above = |(_, total): &(Var, Total)| {
            total.side(&own, separator, self.table) == Some(Side::Above)
        };
        !is_filtered && self.totals.iter().all(stays_above)
    }

    /// The patterns that have variables of the separator only.
    fn pure(&self, separator: &VarSet) -> Vec<usize> {
        let items = self.group.items.iter().enumerate();
        items
            .filter(|(number, item)| {
                let visible = &self.visible[*number];
                matches!(item, Item::Quad(_)) && !visible.is_empty() && visible.is_subset(separator)
            })
            .map(|(number, _)| number)
            .collect()
    }

    /// Some components as a part, if they can be one.
    fn part(&self, separator: &VarSet, members: &[usize], is_star: bool) -> Option<Part> {
        let (items, steps): (Vec<usize>, Vec<usize>) = members
            .iter()
            .partition(|number| **number < self.group.items.len());
        let steps: Vec<usize> = steps
            .iter()
            .map(|number| number - self.group.items.len())
            .collect();
        let mut has_rows = false;
        for &number in &items {
            let item = &self.group.items[number];
            match item {
                Item::Quad(quad) if quad.is_impossible() => return None,
                Item::Quad(_) => has_rows = true,
                Item::Union(_) | Item::Group(_) => {
                    if !item.groups().iter().all(can_be_counted) {
                        return None;
                    }
                    has_rows = true;
                }
                Item::Derived(_) | Item::Values(_) | Item::Path(_) => {}
                Item::Graphs(_)
                | Item::Service(_)
                | Item::Mapped(_)
                | Item::Search(_)
                | Item::Algorithm(_)
                | Item::Weights(_)
                | Item::Seed(_) => {
                    return None;
                }
            }
        }
        let all = members.iter().fold(VarSet::default(), |all, number| {
            all.union(&self.visible[*number])
        });
        let own = all.difference(separator);
        let of_items = items.iter().fold(VarSet::default(), |all, number| {
            all.union(&self.visible[*number])
        });
        let common = of_items.intersection(separator);
        if !has_rows || !is_same(&common, separator) || own.intersects(&self.keys) {
            return None;
        }
        let sides = self
            .totals
            .iter()
            .map(|(_, total)| total.side(&own, separator, self.table));
        if sides.into_iter().any(|side| side.is_none()) {
            return None;
        }
        let inside = own.union(separator);
        let divided = self.filters.iter();
        let is_divided = |it: &VarSet| it.intersects(&own) && !it.is_subset(&inside);
        if divided.clone().any(is_divided) {
            return None;
        }
        let pure = self.pure(separator);
        let is_left = |number: &usize| !items.contains(number) && !pure.contains(number);
        let mut above: Vec<usize> = (0..self.group.items.len()).filter(is_left).collect();
        // A group by finer keys is no step towards one by these, unless there is a rest; by none it
        // is the same.
        let has_rest = !above.is_empty() || steps.len() < self.group.steps.len();
        if !has_rest && (!self.keys.is_empty() || separator.is_empty()) {
            return None;
        }
        // A part that was started from the values of its separator would be started from them
        // again.
        let is_seed = |number: &usize| matches!(self.group.items[*number], Item::Seed(_));
        if above.iter().all(is_seed) && is_same(separator, &self.keys) {
            return None;
        }
        if !above.is_empty() {
            above.extend(&pure);
            above.sort_unstable();
        }
        let group_of = |numbers: &[usize]| {
            let items: Vec<Item> = numbers
                .iter()
                .map(|it| self.group.items[*it].clone())
                .collect();
            Group::join_of(&items)
        };
        let mut below = group_of(&[items.as_slice(), &pure].concat());
        let mut above = group_of(&above);
        for (filter, seen) in self.group.filters.iter().zip(divided) {
            match seen.intersects(&own) {
                true => below.filters.push(filter.clone()),
                false => above.filters.push(filter.clone()),
            }
        }
        for (number, step) in self.group.steps.iter().enumerate() {
            let group = match steps.contains(&number) {
                true => &mut below,
                false => &mut above,
            };
            group.visible.extend(&step.introduces);
            group.steps.push(step.clone());
        }
        Some(Part {
            separator: separator.iter().collect(),
            below,
            above,
            is_counted_by_runs: is_star,
        })
    }
}

/// Whether the solutions of a group that is an item can be counted: nothing in it asks other
/// endpoints, or depends on rows outside.
fn can_be_counted(group: &Group) -> bool {
    let of_item = |item: &Item| match item {
        Item::Service(_)
        | Item::Mapped(_)
        | Item::Search(_)
        | Item::Algorithm(_)
        | Item::Weights(_)
        | Item::Seed(_) => false,
        other => other.groups().iter().all(can_be_counted),
    };
    group.items.iter().all(of_item)
}

fn is_same(a: &VarSet, b: &VarSet) -> bool {
    a.is_subset(b) && b.is_subset(a)
}
