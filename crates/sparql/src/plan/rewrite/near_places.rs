//! The rewrite of filters by a given place to look-ups in the spatial index.
//!
//! ```text
//! { ?x geo:asWKT ?place . FILTER(...) }  -->  { VALUES ?place { what the index has around it } ?x geo:asWKT ?place . FILTER(...) }
//! ```
//!
//! Where the place of a quad is a pair of numbers, made into a point by Jena's function, the filter
//! says between which numbers they are, and these are looked up in the permutations:
//!
//! ```text
//! { ?x wgs:lat ?lat ; wgs:long ?long . FILTER(spatialF:nearby(spatialF:convertLatLon(?lat, ?long), ...)) }
//!     -->  { ... FILTER(?lat >= 48.7) FILTER(?lat <= 49.0) FILTER(?long >= ...) ... }
//! ```
//!
//! The filter stays: the index says only what cannot be. So the answers are the same, and the order
//! of joins is found as for all values. Who does not see all graphs does without it. Not where the
//! values would be more than half of what the group's smallest pattern has, or more than
//! [`VALUES_MAX`].

use orrery_geo::surroundings;
use orrery_operators::places::{Nearness, PlaceSearch, PlacesIndex};
use oxrdf::vocab::xsd;
use oxrdf::{Literal, Variable};
use spargebra::algebra::Expression;

use crate::algebra::{Group, Item, Slot, Values, Var, VarSet};
use crate::error::Result;
use crate::plan::nearness::{given_place, given_place_and_pair, nearness_of};
use crate::plan::planner::Planner;

/// Values of one filter: some 100 bytes each.
const VALUES_MAX: usize = 1 << 17;
/// Rows of the group's smallest pattern below which the filter is asked of each.
const ROWS_MIN: f64 = 16.0;
/// Decimals are inside ids with so many digits, and what is sorted by them is a range.
const ROUNDED: f64 = 2e-6;
/// Rows of the smallest pattern for each value: to look at a literal costs more than to join with
/// it.
const ROWS_PER_VALUE: f64 = 2.0;

impl Planner<'_> {
    /// Whether the index of places may be used. Not of who does not see all graphs: whether it is
    /// there, and what it has, depends on the places of all, and so would the cost.
    pub(in crate::plan) fn may_look_places_up(&self) -> bool {
        self.tuning.uses_places_index && self.context.view().scope().graphs().is_none()
    }

    /// The values of the variable of a filter by a given place, if the filter is one and there are
    /// few.
    pub(in crate::plan) fn near_values(
        &self,
        group: &Group,
        filter: &Expression,
        outside: &VarSet,
    ) -> Result<Option<Values>> {
        if !self.may_look_places_up() {
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
        let ids = index.candidates(&search, most);
        let Some(ids) = ids else {
            return Ok(None);
        };
        self.context.spend_planning(ids.len() as u64)?;
        Ok(Some(Values {
            variables: vec![var],
            rows: ids.into_iter().map(|id| vec![Some(id)]).collect(),
        }))
    }

    /// What a filter by a given place says of the latitude and the longitude that its other place
    /// is made of: between which numbers they are.
    pub(in crate::plan) fn near_ranges(
        &self,
        group: &Group,
        filter: &Expression,
        outside: &VarSet,
    ) -> Vec<Expression> {
        let Some((arguments, nearness)) = nearness_of(filter) else {
            return Vec::new();
        };
        let Some((pair, place)) = given_place_and_pair(arguments) else {
            return Vec::new();
        };
        let is_looked_up = self.tuning.uses_places_index
            && pair.iter().all(|variable| {
                let var = self.table.get(variable);
                var.is_some_and(|var| !outside.contains(var) && is_object(group, var))
            })
            && PlaceSearch::new(nearness, &place).is_some();
        let bounds = match nearness {
            _ if !is_looked_up => None,
            Nearness::Relation(_) => place.bounds(),
            Nearness::Within {
                distance, unit_m, ..
            } => surroundings(&place, distance * unit_m),
        };
        let Some(bounds) = bounds else {
            return Vec::new();
        };
        // The numbers are of this query's constants.
        self.asked_places.set(true);
        let (least, most) = (bounds.min(), bounds.max());
        let mut ranges = Vec::with_capacity(4);
        let mut between = |variable: &str, least: f64, most: f64| {
            let value = || Box::new(Variable::new_unchecked(variable).into());
            let number = |number: f64| Box::new(Expression::Literal(decimal(number)));
            let from = number(least - ROUNDED);
            ranges.push(Expression::GreaterOrEqual(value(), from));
            let to = number(most + ROUNDED);
            ranges.push(Expression::LessOrEqual(value(), to));
        };
        between(pair[0], least.y, most.y);
        // What goes on behind the date line is two ranges.
        let is_within_turn = -180.0 <= least.x && most.x <= 180.0;
        if is_within_turn || matches!(nearness, Nearness::Relation(_)) {
            between(pair[1], least.x, most.x);
        }
        ranges
    }

    /// Rows of the smallest pattern of a group, if one of its patterns binds a variable as its
    /// object, and there is enough to do.
    pub(in crate::plan) fn rows_with_object(&self, group: &Group, var: Var) -> Result<Option<f64>> {
        if !is_object(group, var) {
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
}

/// Whether a pattern of the group binds a variable as its object.
fn is_object(group: &Group, var: Var) -> bool {
    group.items.iter().any(|item| match item {
        Item::Quad(quad) => quad.object == Slot::Variable(var),
        _ => false,
    })
}

fn decimal(number: f64) -> Literal {
    Literal::new_typed_literal(format!("{number:.6}"), xsd::DECIMAL)
}
