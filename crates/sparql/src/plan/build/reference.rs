//! The reference plan: items in the order of the text, joined one by one.
//!
//! For queries that are run without rewrites ([`crate::options::Tuning`]). A test compares their
//! answers with those of the ordered, fused and reduced plans; so nothing here may be clever.

use crate::algebra::{Group, Item, VarSet};
use crate::error::Result;
use crate::plan::planner::Planner;
use crate::plan::relation::Relation;

impl Planner<'_> {
    /// Joins the items of a group to the seed, and filters the result.
    pub(in crate::plan) fn reference_items(
        &mut self,
        group: &Group,
        seed: Option<Relation>,
        needed: &VarSet,
    ) -> Result<Relation> {
        // What is needed of an item: also what other items share with it and filters read.
        let mut carried = needed.union(&group.visible);
        if let Some(seed) = &seed {
            carried.extend(&seed.variables());
        }
        let mut current = seed;
        for item in &group.items {
            let item = self.reference_item(item, &carried)?;
            current = Some(match current {
                Some(left) => self.join(left, item, &carried, None)?,
                None => item,
            });
        }
        let relation = match current {
            Some(relation) => relation,
            None => self.unit()?,
        };
        self.filter(relation, &group.filters)
    }

    fn reference_item(&mut self, item: &Item, needed: &VarSet) -> Result<Relation> {
        let is_nothing = match item {
            Item::Quad(quad) => quad.is_impossible(),
            Item::Graphs(scope) => self.lacks_graphs(scope)?,
            _ => false,
        };
        if is_nothing {
            return self.nothing(&item.visible());
        }
        self.whole_item(item, needed)
    }
}
