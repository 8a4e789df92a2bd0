//! Sampling by random walks through a join, which gives actual cardinalities per step.
//!
//! ```text
//! ?review reviewFor ?p   rows 3, 1,003, 2,003 ... of its range      weight 1,000 each
//! ?p producer ?m         look up ?p: 1 row                          weight 1,000 x 1
//! ?m country <GB>        look up ?m, <GB>: 0 or 1 row               weight 1,000 x 0 or 1
//! ```
//!
//! A walk takes one of the rows that match at each step, all equally likely, and multiplies its
//! weight by their exact number; the mean of the weights estimates the rows after the step without
//! bias, however the steps are correlated (Li, Wu, Yi, Zhao: "Wander join", SIGMOD 2016). Orders
//! are searched again with what was found, as long as they change (Wu, Naughton, Singh:
//! "Sampling-based query re-optimization", SIGMOD 2016).
//!
//! A look-up costs a microsecond or two, so there are walks only where the plan is expected to take
//! some fifty times as long, or where a step goes through hubs, whose mean says little; and all
//! samples of a query together have
//! [`SAMPLED_LOOKUPS_MAX`](crate::plan::planner::SAMPLED_LOOKUPS_MAX). Walks do not go where the
//! characteristic sets know the answer: to what a subject of the star has besides, if nothing goes
//! on from there. Each step looks its keys up in their order. Filters are not evaluated: their
//! guess stands as it was. The walks are the same each time.

use std::ops::Bound;

use orrery_storage::{Cursor, Permutation, ReadView, RowRange};
use orrery_term::TermId;

use super::join_order::Order;
use crate::algebra::{Group, Item, Quad, Slot, Var};
use crate::error::Result;
use crate::plan::estimate::cardinality::{Join, VARIABLES_MAX};
use crate::plan::planner::Planner;

/// Walks of one sample at most.
const WALKS_MAX: usize = 100;
/// With fewer a sample says too little.
const WALKS_MIN: usize = 32;
/// Walks of a plan that goes through hubs, however cheap it seems.
const HUB_WALKS: usize = 16;
/// Rows of a plan's cost that are worth one look-up.
const ROWS_PER_LOOKUP: f64 = 1_000.0;
/// Mean matches of a key from which on a plan is sampled however cheap it seems.
const HUB_MATCHES: f64 = 50.0;
/// Walks that must reach a step for its estimate to count.
const ARRIVALS_MIN: usize = 4;
/// How many orders are sampled.
const ROUNDS_MAX: usize = 2;
/// Estimates that were wrong by no more than this factor are no reason to look for another order.
const SURPRISE_MIN: f64 = 2.0;
/// Matches of a key up to which the mean says enough of what a subject has besides.
const BESIDES_MATCHES_MAX: f64 = 4.0;

impl Planner<'_> {
    /// Samples along the order, and looks for a better one with what was found.
    pub(in crate::plan) fn sampled(
        &self,
        group: &Group,
        join: &mut Join,
        order: Order,
    ) -> Result<Order> {
        let mut order = order;
        let mut tried: Vec<Vec<usize>> = Vec::new();
        for _ in 0..ROUNDS_MAX {
            let members = self.walkable(group, join, &order.members);
            if members.len() < 2 {
                break;
            }
            let left = self.lookups_left.get();
            let walks = match walks_worth(order.cost, left, members.len()) {
                worth if worth >= WALKS_MIN => worth,
                _ if has_hubs(join, &members) => HUB_WALKS.min(left / members.len()),
                _ => break,
            };
            if walks < ARRIVALS_MIN {
                break;
            }
            self.lookups_left.set(left - walks * members.len());
            let quads = members.iter().filter_map(|&member| quad_of(group, member));
            let quads: Vec<&Quad> = quads.collect();
            let found = walk(self.context.view(), &quads, walks)?;
            let surprise = join.learn(&members[..found.len()], &found);
            tried.push(order.members.clone());
            if surprise < SURPRISE_MIN {
                break;
            }
            order = join.order();
            if tried.contains(&order.members) {
                return Ok(order);
            }
        }
        // An order that was not looked at is better only for what is not known of it.
        let known = tried.into_iter().map(|members| join.follow(members));
        let best = known.min_by(|a, b| a.cost.total_cmp(&b.cost));
        Ok(best.unwrap_or(order))
    }

    /// The members that are worth walking through: patterns at the beginning of an order, without
    /// those of which the characteristic sets know what walks could find.
    fn walkable(&self, group: &Group, join: &Join, order: &[usize]) -> Vec<usize> {
        let mut members = Vec::with_capacity(order.len());
        let mut bound = 0;
        for &member in order.iter().filter(|&&member| member < VARIABLES_MAX) {
            let Some(quad) = quad_of(group, member) else {
                break;
            };
            let has_no_repetition = quad.occurrences() == quad.variables().iter().count();
            if !self.sees_all_graphs(quad) || !has_no_repetition {
                break;
            }
            let is_known =
                join.is_besides(member) && join.matches(member, bound) <= BESIDES_MATCHES_MAX;
            if members.is_empty() || !is_known {
                members.push(member);
            }
            bound |= join.members[member].variables;
        }
        members
    }
}

fn quad_of(group: &Group, member: usize) -> Option<&Quad> {
    match &group.items[member] {
        Item::Quad(quad) => Some(quad),
        _ => None,
    }
}

/// Whether a step may find very many matches: where the mean is that large, some keys have far more
/// (instances of a class), and a plan that seems cheap may not be.
fn has_hubs(join: &Join, order: &[usize]) -> bool {
    let mut bound = 0;
    order.iter().enumerate().any(|(number, &member)| {
        let matches = join.matches(member, bound);
        bound |= join.members[member].variables;
        number > 0 && matches >= HUB_MATCHES
    })
}

/// Walks that a plan of this cost is worth, through so many steps, with so many look-ups left.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped"
)]
fn walks_worth(cost: f64, lookups_left: usize, steps: usize) -> usize {
    // Clamped: the cast of a number that is too large would saturate anyway.
    let lookups = (cost / ROWS_PER_LOOKUP).clamp(0.0, 1e6) as usize;
    (lookups.min(lookups_left) / steps.max(1)).min(WALKS_MAX)
}

/// One walk: what its variables are bound to, and what it stands for.
struct Walk {
    bindings: Vec<(Var, TermId)>,
    weight: f64,
}

impl Walk {
    fn value(&self, slot: Slot) -> Option<TermId> {
        match slot {
            Slot::Constant(term) => Some(term),
            Slot::Variable(var) => {
                let binding = self.bindings.iter().find(|(bound, _)| *bound == var);
                binding.map(|(_, term)| *term)
            }
            Slot::Absent => None,
        }
    }
}

/// Rows after each step, as far as enough walks arrive.
fn walk(view: &ReadView, quads: &[&Quad], count: usize) -> Result<Vec<f64>> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut walks: Vec<Walk> = Vec::new();
    let mut started = 0;
    let mut found = Vec::with_capacity(quads.len());
    for (number, quad) in quads.iter().enumerate() {
        let start = Walk {
            bindings: Vec::new(),
            weight: 1.0,
        };
        let Some(mut look_up) = LookUp::new(view, quad, walks.first().unwrap_or(&start)) else {
            break;
        };
        if number == 0 {
            let ranges = look_up.ranges(&start)?;
            let rows = length(&ranges);
            walks = look_up.spread(&ranges, &start, count, &mut random)?;
            started = walks.len().max(1);
            found.push(as_rows(rows));
        } else {
            // Neighbours in the permutation are often in the same vector, which is decoded once.
            walks.sort_by_cached_key(|walk| look_up.key(walk));
            let mut next = Vec::with_capacity(walks.len());
            for walk in &walks {
                let ranges = look_up.ranges(walk)?;
                next.extend(look_up.spread(&ranges, walk, 1, &mut random)?);
            }
            walks = next;
            let sum: f64 = walks.iter().map(|walk| walk.weight).sum();
            if walks.len() < ARRIVALS_MIN.min(started) {
                break;
            }
            found.push(sum);
        }
    }
    Ok(found)
}

/// Finds the rows of a pattern for a walk.
struct LookUp<'q> {
    quad: &'q Quad,
    cursor: Cursor,
    /// The known positions, in the permutation's order.
    prefix: Vec<Slot>,
    /// The positions that a row binds: column of the permutation and variable.
    binds: Vec<(usize, Var)>,
    /// Whether the column after the prefix is the object, and within ranges.
    is_ranged: bool,
}

impl<'q> LookUp<'q> {
    /// For walks that have bound the same variables as this one.
    fn new(view: &ReadView, quad: &'q Quad, walk: &Walk) -> Option<Self> {
        let (s, p, o) = (quad.subject, quad.predicate, quad.object);
        let known = [s, p, o].map(|slot| walk.value(slot).is_some());
        let is_ranged = quad.object_ranges.is_some() && !known[2];
        let (permutation, prefix) = match known {
            [true, true, true] => (Permutation::Psog, vec![p, s, o]),
            [true, true, false] => (Permutation::Psog, vec![p, s]),
            [false, true, true] => (Permutation::Posg, vec![p, o]),
            [false, true, false] if is_ranged => (Permutation::Posg, vec![p]),
            [false, true, false] => (Permutation::Psog, vec![p]),
            [true, false, true] => (Permutation::Ospg, vec![o, s]),
            [true, false, false] => (Permutation::Spog, vec![s]),
            [false, false, true] => (Permutation::Ospg, vec![o]),
            [false, false, false] => (Permutation::Spog, Vec::new()),
        };
        use orrery_storage::QuadPosition::{Object, Predicate, Subject};
        let positions = [
            (Subject, s, known[0]),
            (Predicate, p, known[1]),
            (Object, o, known[2]),
        ];
        let binds = positions.into_iter().filter(|(_, _, is_known)| !is_known);
        let binds = binds
            .filter_map(|(position, slot, _)| {
                Some((permutation.column_of(position), slot.variable()?))
            })
            .collect();
        // Ranges with a free predicate are not made.
        if is_ranged && !known[1] {
            return None;
        }
        Some(Self {
            quad,
            cursor: view.index(permutation)?.cursor(),
            prefix,
            binds,
            is_ranged,
        })
    }

    /// What a walk looks up.
    fn key(&self, walk: &Walk) -> Vec<TermId> {
        let values = self.prefix.iter().map_while(|slot| walk.value(*slot));
        values.collect()
    }

    fn ranges(&mut self, walk: &Walk) -> Result<Vec<RowRange>> {
        let prefix = self.key(walk);
        if prefix.len() < self.prefix.len() {
            return Ok(Vec::new());
        }
        let Some(ranges) = self.quad.object_ranges.as_ref().filter(|_| self.is_ranged) else {
            return Ok(vec![self.cursor.seek(&prefix)?]);
        };
        let mut found = Vec::with_capacity(ranges.intervals().len());
        for (low, high) in ranges.intervals() {
            let (low, high) = (Bound::Included(*low), Bound::Included(*high));
            found.push(self.cursor.seek_between(&prefix, low, high)?);
        }
        Ok(found)
    }

    /// So many rows of the ranges, at equal distances from a random one on, each as the
    /// continuation of a walk.
    fn spread(
        &mut self,
        ranges: &[RowRange],
        walk: &Walk,
        count: usize,
        random: &mut Random,
    ) -> Result<Vec<Walk>> {
        let rows = length(ranges);
        let count = (count as u64).min(rows);
        let mut walks = Vec::with_capacity(usize::try_from(count).unwrap_or(0));
        for number in 0..count {
            // The number-th of `count` equal parts.
            let (from, to) = (part(rows, number, count), part(rows, number + 1, count));
            let row = nth(ranges, from + random.below(to - from));
            let mut bindings = walk.bindings.clone();
            let mut value = Vec::with_capacity(1);
            for &(column, var) in &self.binds {
                value.clear();
                self.cursor
                    .read(RowRange::new(row, row + 1), column, &mut value)?;
                bindings.extend(value.first().map(|bits| (var, TermId::from_bits(*bits))));
            }
            walks.push(Walk {
                bindings,
                weight: walk.weight * as_rows(rows) / as_rows(count),
            });
        }
        Ok(walks)
    }
}

fn part(rows: u64, number: u64, count: u64) -> u64 {
    let start = u128::from(rows) * u128::from(number) / u128::from(count);
    u64::try_from(start).unwrap_or(rows)
}

fn length(ranges: &[RowRange]) -> u64 {
    ranges.iter().map(|range| range.len()).sum()
}

/// The row of this number among those of the ranges.
fn nth(ranges: &[RowRange], number: u64) -> u64 {
    let mut left = number;
    for range in ranges {
        if left < range.len() {
            return range.start + left;
        }
        left -= range.len();
    }
    ranges.last().map_or(0, |range| range.end)
}

#[expect(clippy::cast_precision_loss, reason = "an estimate")]
fn as_rows(count: u64) -> f64 {
    count as f64
}

/// SplitMix64: plans must not change from one run to the next.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        let scaled = (u128::from(bits) * u128::from(bound)) >> 64;
        u64::try_from(scaled).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::planner::SAMPLED_LOOKUPS_MAX;

    #[test]
    fn cheap_plans_are_not_sampled_and_dear_ones_not_without_bound() {
        assert!(walks_worth(10_000.0, SAMPLED_LOOKUPS_MAX, 4) < WALKS_MIN);
        assert_eq!(walks_worth(1e12, SAMPLED_LOOKUPS_MAX, 2), WALKS_MAX);
        assert_eq!(walks_worth(1e12, SAMPLED_LOOKUPS_MAX, 6), 50);
        assert_eq!(walks_worth(1e12, 100, 4), 25);
        assert_eq!(walks_worth(200_000.0, SAMPLED_LOOKUPS_MAX, 4), 50);
    }

    #[test]
    fn parts_cover_all_rows_once() {
        let ends: Vec<u64> = (0..=7).map(|number| part(100, number, 7)).collect();
        assert_eq!((ends[0], ends[7]), (0, 100));
        assert!(ends.windows(2).all(|pair| pair[1] - pair[0] >= 14));
    }

    #[test]
    fn rows_are_numbered_through_all_ranges() {
        let ranges = [
            RowRange::new(10, 12),
            RowRange::new(20, 20),
            RowRange::new(30, 33),
        ];
        assert_eq!(length(&ranges), 5);
        let rows: Vec<u64> = (0..5).map(|number| nth(&ranges, number)).collect();
        assert_eq!(rows, [10, 11, 30, 31, 32]);
    }
}
