//! Plans of nearest-neighbour queries: `ORDER BY geof:distance(?place,
//! "POINT(...)"^^geo:wktLiteral, uom:metre) LIMIT 10` by the spatial index.
//!
//! ```text
//! FirstEnoughExec: 10 rows
//!   SortExec, the first 10:  the group, with places within a distance only    the distance: as far as 40 places reach
//!   SortExec, the first 10:  the same within a larger distance                640 places
//!   SortExec, the first 10:  the group
//! ```
//!
//! Where the group has ten solutions within a distance, all others are farther away. What has no
//! distance at all is first in the order (SPARQL 1.1, 15.1), so all objects that may have none are
//! looked at, too: what is no geometry, and what came since the base was written. Which these are,
//! and how far so many places reach, the index of places knows. Only where the group's items are
//! patterns, for who sees all graphs: how far so many places reach tells of all.
//!
//! Of points that are made of a latitude and a longitude by Jena's function, the ways are by ranges
//! of these numbers, as filters have them (`rewrite/near_places`): as far as, by the rows in both
//! ranges, so many points would be if they lay evenly. Only where all values of both predicates are
//! numbers in ids that make a point: then each has a distance.

use std::ops::Bound;
use std::sync::Arc;

use orrery_geo::{Shape, surroundings};
use orrery_operators::nodes::{FirstEnoughExec, ROWS_ASKED_MAX};
use orrery_operators::pattern::ObjectRanges;
use orrery_operators::places::{NearestPlaces, PlacesIndex};
use orrery_storage::Permutation;
use oxrdf::Literal;
use spargebra::algebra::Expression;

use crate::algebra::{Group, Item, OrderKey, Slot, StepKind, Var, VarSet};
use crate::error::Result;
use crate::plan::estimate::id_ranges::numbers_between;
use crate::plan::nearness::{distance_of, given_place, given_place_and_pair};
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

/// Points that are wanted for each row that is asked for, by pairs of numbers: at first and then.
/// Where they do not lie evenly, there are more or fewer.
const PAIRS_PER_ROW: [f64; 3] = [8.0, 256.0, 8_192.0];
/// Pairs are looked up where the range of latitudes has fewer than one part of so many of all.
const PAIRS_PART: f64 = 2.0;
/// Where the distance to so many points is looked for: a metre, doubled until it is the earth's.
const NEAREST_M: f64 = 1.0;
const FARTHEST_M: f64 = 1e7;

/// Whose distance it is.
enum Of {
    /// A literal of a geometry.
    Literal(Var),
    /// A latitude and a longitude.
    Pair([Var; 2]),
}

/// An order by the distance from a place.
struct ByDistance<'e> {
    call: &'e Expression,
    of: Of,
    place: Shape,
    unit_m: f64,
}

impl Planner<'_> {
    /// The first rows of a group by their distance from a given place, if that is the order and the
    /// index of places has them.
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
        let var = match order.of {
            Of::Literal(var) | Of::Pair([var, _]) => var,
        };
        let rows = self.rows_with_object(inner, var)?;
        let Some(rows) = rows.filter(|rows| *rows >= ROWS_MIN) else {
            return Ok(None);
        };
        self.asked_places.set(true);
        let mut groups = Vec::new();
        match order.of {
            Of::Literal(var) => {
                let Some(index) = PlacesIndex::of(&self.context, rows)? else {
                    return Ok(None);
                };
                for places in PLACES_PER_ROW {
                    let wanted = asked.saturating_mul(places).clamp(PLACES_MIN, PLACES_MAX);
                    if let Some(nearest) = index.nearest(&order.place, wanted) {
                        groups.extend(within(inner, &order, var, &nearest));
                    }
                }
            }
            Of::Pair(pair) => {
                for metres in self.metres_to_pairs(inner, pair, &order.place, asked)? {
                    let mut group = inner.clone();
                    group.filters.push(order.is_within(metres));
                    groups.push(group);
                }
                if groups.is_empty() {
                    return Ok(None);
                }
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
        let (of, place) = match given_place(arguments) {
            Some((variable, place)) => (Of::Literal(self.table.get(variable)?), place),
            None => {
                let ([latitude, longitude], place) = given_place_and_pair(arguments)?;
                let pair = [self.table.get(latitude)?, self.table.get(longitude)?];
                (Of::Pair(pair), place)
            }
        };
        Some(ByDistance {
            call,
            of,
            place,
            unit_m,
        })
    }

    /// Distances within which there are, more or less, as many pairs as are wanted; none where that
    /// cannot be told, or is no better than a look at all.
    fn metres_to_pairs(
        &self,
        inner: &Group,
        pair: [Var; 2],
        place: &Shape,
        asked: usize,
    ) -> Result<Vec<f64>> {
        let predicates = pair.map(|var| {
            let mut quads = inner.items.iter();
            quads.find_map(|item| match item {
                Item::Quad(quad) if quad.object == Slot::Variable(var) => match quad.predicate {
                    Slot::Constant(predicate) => Some(predicate),
                    Slot::Variable(_) | Slot::Absent => None,
                },
                _ => None,
            })
        });
        let ([Some(latitude), Some(longitude)], Some(index)) =
            (predicates, self.context.view().index(Permutation::Posg))
        else {
            return Ok(Vec::new());
        };
        let mut cursor = index.cursor();
        let mut count = |predicate, low: f64, high: f64| -> Result<f64> {
            let ranges = numbers_between(low, high);
            let mut rows = 0;
            for (low, high) in ranges.iter().flat_map(ObjectRanges::intervals) {
                let (low, high) = (Bound::Included(*low), Bound::Included(*high));
                rows += cursor.seek_between(&[predicate], low, high)?.len();
            }
            Ok(rows as f64)
        };
        let latitudes = count(latitude, -90.0, 90.0)?;
        let longitudes = count(longitude, -180.0, 180.0)?;
        // What makes no point has no distance, and comes first.
        let are_all_points = latitudes == index.range(&[latitude])?.len() as f64
            && longitudes == index.range(&[longitude])?.len() as f64;
        if !are_all_points || latitudes == 0.0 || longitudes == 0.0 {
            return Ok(Vec::new());
        }
        let mut found = Vec::new();
        let mut wanted = PAIRS_PER_ROW.iter().map(|pairs| pairs * asked as f64);
        let mut next = wanted.next();
        let mut metres = NEAREST_M;
        while metres < FARTHEST_M {
            let Some(bounds) = surroundings(place, metres) else {
                break;
            };
            let (least, most) = (bounds.min(), bounds.max());
            let in_latitudes = count(latitude, least.y, most.y)?;
            if in_latitudes * PAIRS_PART > latitudes {
                break;
            }
            // As filters by the place do it.
            let is_within_turn = -180.0 <= least.x && most.x <= 180.0;
            let in_longitudes = match is_within_turn {
                true => count(longitude, least.x, most.x)? / longitudes,
                false => (most.x - least.x).min(360.0) / 360.0,
            };
            let expected = in_latitudes * in_longitudes;
            let mut is_enough = false;
            while next.is_some_and(|wanted| expected >= wanted) {
                is_enough = true;
                next = wanted.next();
            }
            if is_enough {
                found.push(metres);
            }
            if next.is_none() {
                break;
            }
            metres *= 2.0;
        }
        Ok(found)
    }
}

impl ByDistance<'_> {
    fn is_within(&self, metres: f64) -> Expression {
        let most = Literal::from(metres * SURE / self.unit_m);
        Expression::LessOrEqual(
            Box::new(self.call.clone()),
            Box::new(Expression::Literal(most)),
        )
    }
}

/// The group with those of its solutions that have no distance, or one that the index surely
/// covers.
fn within(
    inner: &Group,
    order: &ByDistance<'_>,
    var: Var,
    nearest: &NearestPlaces,
) -> Option<Group> {
    let mut group = inner.clone();
    let quad = group.items.iter_mut().find_map(|item| match item {
        Item::Quad(quad) if quad.object == Slot::Variable(var) => Some(quad),
        _ => None,
    })?;
    quad.object_ranges = Some(nearest.objects.clone());
    let is_near = order.is_within(nearest.metres);
    let has_none = Expression::Literal(Literal::from(true));
    group
        .filters
        .push(Expression::Coalesce(vec![is_near, has_none]));
    Some(group)
}
