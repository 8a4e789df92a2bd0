//! The choice of a join order: a cached one, or the best found and corrected by sampling.

use super::join_order::Order;
use super::order_cache::{KeptOrder, counts, is_kept, shape};
use crate::algebra::Group;
use crate::error::Result;
use crate::plan::estimate::cardinality::Join;
use crate::plan::planner::Planner;

impl Planner<'_> {
    /// The order of a join: the one that is kept, or the best that is found, with estimates for
    /// this join's counts.
    pub(in crate::plan) fn order_of(&self, group: &Group, join: &mut Join) -> Result<Order> {
        let order = self.known_or_chosen(group, join)?;
        // An order that was broken off is none.
        self.context.patience().check()?;
        Ok(order)
    }

    fn known_or_chosen(&self, group: &Group, join: &mut Join) -> Result<Order> {
        let Some(cache) = self.orders.as_ref().filter(|_| is_kept(join)) else {
            return self.chosen(group, join);
        };
        let scope = self.context.view().scope();
        let (key, counts) = (shape(group, join, scope), counts(join));
        let base = self.context.snapshot().base_name();
        if let Some(variant) = cache.find(&key, base, &counts) {
            join.corrections.clone_from(&variant.corrections);
            return Ok(join.follow(variant.members.clone()));
        }
        let order = self.chosen(group, join)?;
        let variant = KeptOrder {
            base: base.into(),
            counts,
            members: order.members.clone(),
            corrections: join.corrections.clone(),
        };
        cache.keep(key, variant);
        Ok(order)
    }

    fn chosen(&self, group: &Group, join: &mut Join) -> Result<Order> {
        let order = join.order();
        self.context.patience().check()?;
        match join.seed_rows {
            None => self.sampled(group, join, order),
            Some(_) => Ok(order),
        }
    }
}
