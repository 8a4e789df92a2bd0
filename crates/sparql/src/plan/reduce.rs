//! Starting the right side of a join from what the left side has.
//!
//! A union of two large predicates joined to three rows must not scan the predicates. The left
//! side is computed once and shared ([`SharedExec`]); its distinct values for the shared
//! variables seed the right side, whose patterns are then looked up; at last both are joined.
//! That keeps the meaning if every seeded group surely binds the shared variables in its items:
//! then the seed only removes solutions that would find no partner.

use std::sync::Arc;

use datafusion_physical_plan::ExecutionPlan;

use super::correlate::depends_on;
use super::shared::SharedExec;
use super::{Planner, Relation, Result};
use crate::algebra::{Group, Item, VarSet};

/// Rows of a right side from which reducing is worth a second pass over the left.
const WORTH_ROWS: f64 = 1_000.0;
/// How many times larger than the left side the right must be.
const WORTH_RATIO: f64 = 4.0;

impl Planner<'_> {
    /// The shared left side and the seed for an item, if reducing it is right and pays.
    pub(super) fn seed_for(
        &mut self,
        left: &Relation,
        item: &Item,
        keys: &VarSet,
    ) -> Result<Option<(Relation, Relation)>> {
        let is_sound = match item {
            Item::Union(branches) => branches.iter().all(|b| keys.is_subset(&b.items_certain)),
            Item::Group(group) => keys.is_subset(&group.items_certain),
            Item::Quad(_)
            | Item::Path(_)
            | Item::Values(_)
            | Item::Graphs(_)
            | Item::Seed(_)
            | Item::Service(_)
            | Item::Derived(_) => false,
        };
        if !is_sound {
            return self.seed_for_services(left, item.groups(), keys);
        }
        let rows = self.estimate(item)?.rows;
        self.seed(left, keys, rows)
    }

    /// The branches of a union if each is to be joined with the left side by itself, from whose rows its patterns
    /// are then looked up. That needs neither the distinct keys nor a join at the end, but each branch must be nothing but patterns:
    /// a filter or a step in it would see the left side's variables.
    pub(super) fn joined_branches<'g>(
        &mut self,
        left: &Relation,
        item: &'g Item,
        keys: &VarSet,
    ) -> Result<Option<&'g [Group]>> {
        let Item::Union(branches) = item else {
            return Ok(None);
        };
        let has_patterns_only = |branch: &Group| {
            branch.is_join_of_items()
                && keys.is_subset(&branch.items_certain)
                && branch
                    .items
                    .iter()
                    .all(|item| matches!(item, Item::Quad(_)))
        };
        let is_right = branches.iter().all(has_patterns_only);
        let pays = is_right && self.pays_to_seed(left, keys, self.estimate(item)?.rows);
        Ok(pays.then_some(branches))
    }

    /// The shared left side and the seed for groups that ask other endpoints.
    ///
    /// A row of the left side is compatible with exactly one row of the seed, its own, so that
    /// it meets the same solutions as without, as long as nothing inside looks at a variable before
    /// it is bound there.
    fn seed_for_services(
        &mut self,
        left: &Relation,
        groups: &[Group],
        keys: &VarSet,
    ) -> Result<Option<(Relation, Relation)>> {
        let keys = keys.intersection(&left.certain);
        // A solution that leaves a key unbound meets several rows of the seed, and a volatile step would give it
        // a value for each.
        let is_sound = groups
            .iter()
            .all(|g| !depends_on(g, &keys, &self.table) && !g.is_volatile());
        if keys.is_empty() || left.is_empty || !is_sound || !groups.iter().any(asks_by_key) {
            return Ok(None);
        }
        self.seed_of(left, &keys).map(Some)
    }

    /// The shared left side and the seed for a group whose solutions are only looked at where they
    /// are compatible with a row of the left side, as [`Planner::seed_for_group`] else.
    pub(super) fn seed_for_compatible_group(
        &mut self,
        left: &Relation,
        group: &Group,
        keys: &VarSet,
    ) -> Result<Option<(Relation, Relation)>> {
        let seed = self.seed_for_services(left, std::slice::from_ref(group), keys)?;
        match seed {
            Some(seed) => Ok(Some(seed)),
            None => self.seed_for_group(left, group, keys),
        }
    }

    /// The shared left side and the seed for a group, if reducing it is right and pays.
    pub(super) fn seed_for_group(
        &mut self,
        left: &Relation,
        group: &Group,
        keys: &VarSet,
    ) -> Result<Option<(Relation, Relation)>> {
        if !keys.is_subset(&group.items_certain) {
            return Ok(None);
        }
        let rows = self.group_rows(group)?;
        self.seed(left, keys, rows)
    }

    fn seed(
        &mut self,
        left: &Relation,
        keys: &VarSet,
        rows: f64,
    ) -> Result<Option<(Relation, Relation)>> {
        match self.pays_to_seed(left, keys, rows) {
            true => self.seed_of(left, keys).map(Some),
            false => Ok(None),
        }
    }

    /// Whether a right side of so many rows is better started from the left side, which must bind the keys in every row.
    fn pays_to_seed(&self, left: &Relation, keys: &VarSet, rows: f64) -> bool {
        let is_worth = self.tuning.rewrites && rows > WORTH_ROWS && rows > left.rows * WORTH_RATIO;
        is_worth && !keys.is_empty() && keys.is_subset(&left.certain) && !left.is_empty
    }

    fn seed_of(&mut self, left: &Relation, keys: &VarSet) -> Result<(Relation, Relation)> {
        let shared = self.shared(left)?;
        let keyed = self.with_columns(shared.clone(), keys.iter().collect())?;
        let seed = self.distinct(keyed, left.rows)?;
        Ok((shared, seed))
    }

    /// The same relation, computed once however often it is read.
    pub(super) fn shared(&mut self, relation: &Relation) -> Result<Relation> {
        let plan: Arc<dyn ExecutionPlan> = Arc::new(SharedExec::new(Arc::clone(&relation.plan)));
        self.relation(
            plan,
            relation.columns.clone(),
            relation.certain.clone(),
            relation.rows,
        )
    }
}

/// Whether a group asks an endpoint for what belongs to keys.
fn asks_by_key(group: &Group) -> bool {
    let asks = |item: &Item| {
        matches!(item, Item::Service(service)
            if service.is_repeatable || service.endpoint_variable().is_some())
    };
    group.items.iter().any(asks) || group.inner_groups().any(asks_by_key)
}
