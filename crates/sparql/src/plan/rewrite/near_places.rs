//! Filters by a place that is given: `FILTER(geof:sfWithin(?place, "POLYGON((...))"^^geo:wktLiteral))`, `FILTER(geof:distance(?place, "POINT(...)"^^geo:wktLiteral, uom:metre) < 500)`.
//!
//! ```text
//! { ?x geo:asWKT ?place . FILTER(...) }  -->  { VALUES ?place { what the index has around it } ?x geo:asWKT ?place . FILTER(...) }
//! ```
//!
//! The filter stays: the index says only what cannot be. So the answers are the same, and the order of joins is found as for all values. Of who does not see all graphs, literals that
//! stand in no quad that they see are left out before anything depends on how many there are. Not where the values would be more than half of what the group's smallest pattern has,
//! or more than [`VALUES_MAX`].

use orrery_operators::places::{PlaceSearch, PlacesIndex};
use orrery_storage::Permutation;
use orrery_term::TermId;
use spargebra::algebra::Expression;

use crate::algebra::{Group, Item, Slot, Values, Var, VarSet};
use crate::error::Result;
use crate::plan::nearness::{given_place, nearness_of};
use crate::plan::planner::Planner;

/// Values of one filter: some 100 bytes each.
const VALUES_MAX: usize = 1 << 17;
/// Rows of the group's smallest pattern below which the filter is asked of each.
const ROWS_MIN: f64 = 16.0;
/// Rows of the smallest pattern for each value: to look at a literal costs more than to join with it.
const ROWS_PER_VALUE: f64 = 2.0;

impl Planner<'_> {
    /// The values of the variable of a filter by a given place, if the filter is one and there are few.
    pub(in crate::plan) fn near_values(
        &self,
        group: &Group,
        filter: &Expression,
        outside: &VarSet,
    ) -> Result<Option<Values>> {
        if !self.tuning.uses_places_index {
            return Ok(None);
        }
        let Some((arguments, nearness)) = nearness_of(filter) else {
            return Ok(None);
        };
        let Some((variable, place)) = given_place(arguments) else {
            return Ok(None);
        };
        let var = self.table.get(variable);
        let Some(var) = var.filter(|var| !outside.contains(*var)) else {
            return Ok(None);
        };
        let Some(rows) = self.rows_with_object(group, var)? else {
            return Ok(None);
        };
        let Some(search) = PlaceSearch::new(nearness, &place) else {
            return Ok(None);
        };
        self.asked_places.set(true);
        let Some(index) = PlacesIndex::of(&self.context, rows)? else {
            return Ok(None);
        };
        let most = ((rows / ROWS_PER_VALUE) as usize).min(VALUES_MAX);
        let ids = match self.context.view().scope().graphs() {
            None => index.candidates(&search, most),
            Some(_) => match index.candidates(&search, usize::MAX) {
                Some(ids) => Some(self.seen(ids)?).filter(|ids| ids.len() <= most),
                None => None,
            },
        };
        let Some(ids) = ids else {
            return Ok(None);
        };
        self.context.note_touches(ids.len() as u64);
        Ok(Some(Values {
            variables: vec![var],
            rows: ids.into_iter().map(|id| vec![Some(id)]).collect(),
        }))
    }

    /// Rows of the smallest pattern of a group, if one of its patterns binds a variable as its object, and there is enough to do.
    pub(in crate::plan) fn rows_with_object(&self, group: &Group, var: Var) -> Result<Option<f64>> {
        let is_object = |item: &Item| match item {
            Item::Quad(quad) => quad.object == Slot::Variable(var),
            _ => false,
        };
        if !group.items.iter().any(is_object) {
            return Ok(None);
        }
        let mut fewest = f64::INFINITY;
        for item in &group.items {
            if let Item::Quad(_) = item {
                fewest = fewest.min(self.estimate(item)?.rows);
            }
        }
        Ok((fewest >= ROWS_MIN).then_some(fewest))
    }

    /// Those that stand in a quad that is seen.
    fn seen(&self, ids: Vec<TermId>) -> Result<Vec<TermId>> {
        let Some(index) = self.context.view().index(Permutation::Ospg) else {
            return Ok(Vec::new());
        };
        let mut cursor = index.cursor();
        let mut seen = Vec::new();
        for id in ids {
            self.context.patience().check()?;
            if !cursor.seek(&[id])?.is_empty() {
                seen.push(id);
            }
        }
        Ok(seen)
    }
}
