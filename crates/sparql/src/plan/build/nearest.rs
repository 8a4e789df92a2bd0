//! What is nearest to a place that is given: `ORDER BY geof:distance(?place, "POINT(...)"^^geo:wktLiteral, uom:metre) LIMIT 10`, without the distance of all.
//!
//! ```text
//! FirstEnoughExec: 10 rows
//!   SortExec, the first 10:  the group, of whose places only those within a distance are looked at     the distance: as far as 40 places reach
//!   SortExec, the first 10:  the same within a larger one                                              640 places
//!   SortExec, the first 10:  the group
//! ```
//!
//! Where the group has ten solutions within a distance, all others are farther away. What has no distance at all is first in the order (SPARQL 1.1, 15.1), so all objects that may have none are
//! looked at, too: what is no geometry, and what came since the base was written. Which these are, and how far so many places reach, the index of places knows. Only
//! where the group's items are patterns, for who sees all graphs: how far so many places reach tells of all.

use std::sync::Arc;

use orrery_geo::Shape;
use orrery_operators::nodes::{FirstEnoughExec, ROWS_ASKED_MAX};
use orrery_operators::places::{NearestPlaces, PlacesIndex};
use oxrdf::Literal;
use spargebra::algebra::Expression;

use crate::algebra::{Group, Item, OrderKey, Slot, StepKind, Var, VarSet};
use crate::error::Result;
use crate::plan::nearness::{distance_of, given_place};
use crate::plan::planner::Planner;
use crate::plan::relation::Relation;

/// Places that are looked at for each row that is asked for, at first and then.
const PLACES_PER_ROW: [usize; 2] = [4, 64];
/// Places that are looked at in any case, and at most.
const PLACES_MIN: usize = 32;
const PLACES_MAX: usize = 2_048;
/// Rows below which a look at each is quick enough.
const ROWS_MIN: f64 = 1_000.0;
/// So much less than the index surely covers, for what is rounded on the way.
const SURE: f64 = 1.0 - 1e-9;

/// An order by the distance from a place.
struct ByDistance<'e> {
    call: &'e Expression,
    var: Var,
    place: Shape,
    unit_m: f64,
}

impl Planner<'_> {
    /// The first rows of a group by their distance from a given place, if that is the order and the index of places has them.
    pub(in crate::plan) fn nearest_first(
        &mut self,
        inner: &Group,
        keys: &[OrderKey],
        needed: &VarSet,
        fetch: Option<usize>,
    ) -> Result<Option<Relation>> {
        let (Some(first), Some(asked)) = (keys.first(), fetch) else {
            return Ok(None);
        };
        let is_asked = self.tuning.rewrites
            && self.tuning.uses_places_index
            && !first.is_descending
            && (1..=ROWS_ASKED_MAX).contains(&asked)
            && inner.items.iter().all(|it| matches!(it, Item::Quad(_)))
            && self.context.view().scope().graphs().is_none();
        if !is_asked {
            return Ok(None);
        }
        let Some(order) = self.by_distance(inner, first) else {
            return Ok(None);
        };
        let rows = self.rows_with_object(inner, order.var)?;
        let Some(rows) = rows.filter(|rows| *rows >= ROWS_MIN) else {
            return Ok(None);
        };
        self.asked_places.set(true);
        let Some(index) = PlacesIndex::of(&self.context, rows)? else {
            return Ok(None);
        };
        let mut groups = Vec::new();
        for places in PLACES_PER_ROW {
            let wanted = asked.saturating_mul(places).clamp(PLACES_MIN, PLACES_MAX);
            if let Some(nearest) = index.nearest(&order.place, wanted) {
                groups.extend(within(inner, &order, &nearest));
            }
        }
        let mut ways = Vec::with_capacity(groups.len());
        for group in &groups {
            let way = self.ordered_of_all(group, keys, needed, fetch)?;
            if !way.is_empty {
                ways.push(way);
            }
        }
        let last = self.ordered_of_all(inner, keys, needed, fetch)?;
        if ways.is_empty() || last.is_empty {
            return Ok(Some(last));
        }
        let mut plans = Vec::with_capacity(ways.len());
        for way in ways {
            plans.push(self.with_columns(way, last.columns.clone())?.plan);
        }
        let plan = FirstEnoughExec::new(plans, last.plan, asked);
        self.relation(Arc::new(plan), last.columns, last.certain, last.rows)
            .map(Some)
    }

    /// The distance that a group is ordered by, if it is one from a given place.
    fn by_distance<'e>(&self, inner: &'e Group, key: &'e OrderKey) -> Option<ByDistance<'e>> {
        let call = match &key.expression {
            Expression::Variable(variable) => {
                let var = self.table.get(variable.as_str())?;
                inner.steps.iter().find_map(|step| match &step.kind {
                    StepKind::Bind {
                        variable,
                        expression,
                        ..
                    } if *variable == var => Some(expression),
                    _ => None,
                })?
            }
            other => other,
        };
        let (arguments, unit_m) = distance_of(call)?;
        let (variable, place) = given_place(arguments)?;
        Some(ByDistance {
            call,
            var: self.table.get(variable)?,
            place,
            unit_m,
        })
    }
}

/// The group with those of its solutions that have no distance, or one that the index surely covers.
fn within(inner: &Group, order: &ByDistance<'_>, nearest: &NearestPlaces) -> Option<Group> {
    let mut group = inner.clone();
    let quad = group.items.iter_mut().find_map(|item| match item {
        Item::Quad(quad) if quad.object == Slot::Variable(order.var) => Some(quad),
        _ => None,
    })?;
    quad.object_ranges = Some(nearest.objects.clone());
    let most = Literal::from(nearest.metres * SURE / order.unit_m);
    let is_near = Expression::LessOrEqual(
        Box::new(order.call.clone()),
        Box::new(Expression::Literal(most)),
    );
    let has_none = Expression::Literal(Literal::from(true));
    group
        .filters
        .push(Expression::Coalesce(vec![is_near, has_none]));
    Some(group)
}
