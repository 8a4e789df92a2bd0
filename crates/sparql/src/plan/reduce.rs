//! Starting the right side of a join from what the left side has.
//!
//! A union of two large predicates joined to three rows must not scan the predicates. The left
//! side is computed once and shared ([`SharedExec`]); its distinct values for the shared
//! variables seed the right side, whose patterns are then looked up; at last both are joined.
//! That keeps the meaning if every seeded group surely binds the shared variables in its items:
//! then the seed only removes solutions that would find no partner.

use std::sync::Arc;

use datafusion_physical_plan::ExecutionPlan;

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
            | Item::Derived(_) => false,
        };
        if !is_sound {
            return Ok(None);
        }
        let rows = self.estimate(item)?.rows;
        self.seed(left, keys, rows)
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
        let is_worth = self.tuning.rewrites && rows > WORTH_ROWS && rows > left.rows * WORTH_RATIO;
        if keys.is_empty() || !keys.is_subset(&left.certain) || !is_worth || left.is_empty {
            return Ok(None);
        }
        let shared = self.shared(left)?;
        let keyed = self.with_columns(shared.clone(), keys.iter().collect())?;
        let seed = self.distinct(keyed)?;
        Ok(Some((shared, seed)))
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
