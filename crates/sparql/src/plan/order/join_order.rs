//! The join order search.
//!
//! Greedy first. Where that plan costs more than the search itself, dynamic programming: over all
//! subsets of the members that hang together, if they are no more than a thousand (chains of any
//! length up to a dozen, stars of ten); else over windows of neighbours in the greedy order, from
//! its end to its beginning, so that a member that filters moves forward from window to window.
//!
//! Plans are left-deep: each member is joined to what came before, a pattern by looking up its
//! bound positions. The rows of a subset do not depend on the order
//! ([`cardinality`](crate::plan::estimate::cardinality)), so they are computed once a subset.
//!
//! Cost is counted in rows: what goes into a step, and what comes out. A look-up costs less where
//! the keys come in order: after a scan or a look-up by the same variable, neighbours are near each
//! other in the permutation. With more keys than one chunk sorts, others are scattered (measured: 9
//! ns against 73 ns and more, decision 0008). Members that share nothing with what is there come
//! only when nothing else is left, or if they are tiny: a single row may be what a filter waits
//! for.

use crate::plan::estimate::cardinality::{Access, Join, Rows};

/// Members up to which all orders are searched.
const SEARCH_MAX: usize = 12;
/// Subsets up to which all orders are searched: some 0.2 ms.
const SUBSETS_MAX: usize = 1_024;
/// Members of which all orders are searched where those of all members are too many.
const WINDOW: usize = 6;
/// Members that one window has in common with the next.
const WINDOW_OVERLAP: usize = 3;
/// With more members than this, the greedy order stays as it is.
const WINDOWS_MEMBERS_MAX: usize = 24;
/// What looking at one subset of the members takes, in rows of a plan's cost: some tens of
/// nanoseconds a member, against half a microsecond for a row that is looked up.
const SUBSET_COST: f64 = 0.3;
/// Starting members that the greedy search tries.
const GREEDY_STARTS: usize = 4;
/// With more members than this, greedy begins with the smallest only.
const GREEDY_STARTS_MEMBERS_MAX: usize = 24;
/// With more members than this, a greedy step multiplies by what each candidate alone would add,
/// instead of estimating all that is joined so far again: a query of thousands of patterns is
/// planned in quadratic time, not cubic.
const GREEDY_EXACT_MEMBERS_MAX: usize = 64;
/// Cost of looking up a key, in output rows.
const LOOKUP_COST: f64 = 2.0;
/// The same where keys are scattered.
const SCATTERED_COST: f64 = 8.0;
/// More keys than this do not fit into a chunk that is sorted as a whole.
const SCATTERED_ROWS: f64 = 131_072.0;
/// Cost of a row that is shared with and looked up in one branch of a union.
const SEEDED_COST: f64 = 4.0;
/// Factor on the cost of a step that shares no variable with what came before.
const UNCONNECTED_PENALTY: f64 = 20.0;
/// Members of so many rows may be joined before they are connected.
const UNCONNECTED_ROWS_MAX: f64 = 16.0;

/// The order, with the estimated rows after each member.
#[derive(Clone, Debug, Default)]
pub(crate) struct Order {
    pub(crate) members: Vec<usize>,
    pub(crate) rows: Vec<f64>,
    pub(crate) cost: f64,
}

impl Order {
    /// The order of one member with so many rows.
    pub(crate) fn of_one(rows: f64) -> Self {
        Self {
            members: vec![0],
            rows: vec![rows],
            cost: rows,
        }
    }
}

/// Members that are joined already.
#[derive(Clone, Copy, Debug)]
struct Prefix {
    rows: Rows,
    /// The variables by any of which the rows may come sorted.
    sorted: u128,
    is_empty: bool,
}

/// The best way to a subset.
#[derive(Clone, Copy, Debug)]
struct Best {
    cost: f64,
    prefix: Prefix,
    last: usize,
}

impl Join {
    /// The cheapest order found.
    pub(crate) fn order(&self) -> Order {
        match self.members.len() {
            0 => Order::default(),
            1 => self.follow(vec![0]),
            count => {
                let greedy = self.greedy();
                // A search can save no more than the whole plan takes: a star around one product
                // runs in less time than all its orders are looked at.
                let pays = |subsets: usize| {
                    #[expect(clippy::cast_precision_loss, reason = "a cost")]
                    let searching = subsets as f64 * SUBSET_COST;
                    greedy.cost > searching
                };
                let found = match self.connected_subsets() {
                    Some(subsets) if pays(subsets) => self.search(),
                    None if count <= WINDOWS_MEMBERS_MAX && pays(windows(count) << WINDOW) => {
                        self.search_windows(&greedy.members)
                    }
                    Some(_) | None => return greedy,
                };
                // Of rows that come in order only the last step is known.
                if found.cost < greedy.cost {
                    found
                } else {
                    greedy
                }
            }
        }
    }

    /// How many subsets of the members a search goes through; `None` where they are more than
    /// [`SUBSETS_MAX`], or the members more than [`SEARCH_MAX`].
    fn connected_subsets(&self) -> Option<usize> {
        let count = self.members.len();
        if count > SEARCH_MAX {
            return None;
        }
        // What is bound after a subset that can be reached.
        let mut bound: Vec<Option<u128>> = vec![None; 1 << count];
        bound[0] = Some(self.seed_variables);
        let mut subsets = 0;
        for subset in 0..bound.len() {
            let Some(before) = bound[subset] else {
                continue;
            };
            subsets += 1;
            if subsets > SUBSETS_MAX {
                return None;
            }
            let is_first = subset == 0 && self.seed_rows.is_none();
            for (next, member) in self.members.iter().enumerate() {
                let is_near = is_first
                    || before & member.variables != 0
                    || member.rows <= UNCONNECTED_ROWS_MAX;
                if subset & (1 << next) == 0 && is_near {
                    bound[subset | 1 << next] = Some(before | member.variables);
                }
            }
        }
        Some(subsets)
    }

    fn start(&self) -> Prefix {
        Prefix {
            rows: self.rows(&[]),
            sorted: 0,
            is_empty: self.seed_rows.is_none(),
        }
    }

    /// Joins one member more, with what is known of the rows after it: the new prefix and the cost
    /// of the step.
    fn step(&self, prefix: &Prefix, next: usize, after: Rows) -> (Prefix, f64) {
        let member = &self.members[next];
        let shared = prefix.rows.bound & member.variables;
        // What comes out before the filters that this step makes possible.
        let share = prefix.rows.filtered / prefix.rows.joined.max(f64::MIN_POSITIVE);
        let matches = after.joined * share;
        let before = prefix.rows.filtered.max(1.0);
        let is_sorted = shared & prefix.sorted != 0 || before <= SCATTERED_ROWS;
        let lookup = if is_sorted {
            LOOKUP_COST
        } else {
            SCATTERED_COST
        };
        let whole = before + member.work * LOOKUP_COST + matches;
        // What a subquery groups, it goes through for each of its rows.
        let gone_through = matches * (member.work / member.rows).max(1.0);
        let cost = match member.access {
            _ if prefix.is_empty => member.work,
            Access::Lookup => before * lookup + matches,
            #[expect(clippy::cast_precision_loss, reason = "a cost")]
            Access::Seeded(branches) if shared != 0 => {
                whole.min(before * (SEEDED_COST + lookup * branches as f64) + gone_through)
            }
            Access::Seeded(_) | Access::Whole => whole,
        };
        let is_unconnected = !prefix.is_empty && shared == 0 && member.rows > 1.0;
        let cost = if is_unconnected {
            (cost + before * member.rows) * UNCONNECTED_PENALTY
        } else {
            cost
        };
        let prefix = Prefix {
            rows: after,
            // The first member can be read in the order of any of its variables.
            sorted: if prefix.is_empty {
                member.variables
            } else {
                shared
            },
            is_empty: false,
        };
        (prefix, cost)
    }

    /// Whether a member may come next.
    fn may_follow(&self, prefix: &Prefix, next: usize) -> bool {
        let member = &self.members[next];
        prefix.is_empty
            || prefix.rows.bound & member.variables != 0
            || member.rows <= UNCONNECTED_ROWS_MAX
    }

    /// The cheapest of all orders.
    fn search(&self) -> Order {
        let all: Vec<usize> = (0..self.members.len()).collect();
        self.follow(self.search_among(&[], (0.0, self.start()), &all))
    }

    /// An order in which windows of neighbours have been put into their cheapest order, the last
    /// window first.
    fn search_windows(&self, order: &[usize]) -> Order {
        let mut members = order.to_vec();
        let mut end = members.len();
        loop {
            let start = end.saturating_sub(WINDOW);
            let (before, window) = members[..end].split_at(start);
            let prefix = self.after(before, |_| ());
            let window = self.search_among(before, prefix, window);
            members[start..end].copy_from_slice(&window);
            if start == 0 {
                return self.follow(members);
            }
            end = start + WINDOW_OVERLAP;
        }
    }

    /// The cheapest order of some members that come after others.
    fn search_among(
        &self,
        before: &[usize],
        (cost, prefix): (f64, Prefix),
        among: &[usize],
    ) -> Vec<usize> {
        let count = among.len();
        let full = (1_usize << count) - 1;
        let mut best: Vec<Option<Best>> = vec![None; full + 1];
        let mut rows: Vec<Option<Rows>> = vec![None; full + 1];
        best[0] = Some(Best {
            cost,
            prefix,
            last: usize::MAX,
        });
        let mut members = Vec::with_capacity(before.len() + count);
        for subset in 0..full {
            let Some(Best { cost, prefix, .. }) = best[subset] else {
                continue;
            };
            let is_open = |next: &usize| subset & (1 << next) == 0;
            let is_stuck = !(0..count)
                .filter(is_open)
                .any(|next| self.may_follow(&prefix, among[next]));
            for next in (0..count).filter(is_open) {
                if !is_stuck && !self.may_follow(&prefix, among[next]) {
                    continue;
                }
                let with = subset | 1 << next;
                let after = *rows[with].get_or_insert_with(|| {
                    members.clear();
                    members.extend_from_slice(before);
                    let chosen = (0..count).filter(|number| with & (1 << number) != 0);
                    members.extend(chosen.map(|number| among[number]));
                    self.rows(&members)
                });
                let (prefix, more) = self.step(&prefix, among[next], after);
                let total = cost + more;
                if best[with].is_none_or(|known| total < known.cost) {
                    best[with] = Some(Best {
                        cost: total,
                        prefix,
                        last: next,
                    });
                }
            }
        }
        let mut order = Vec::with_capacity(count);
        let mut subset = full;
        while let Some(Best { last, .. }) = best[subset] {
            if last == usize::MAX {
                break;
            }
            order.push(among[last]);
            subset &= !(1 << last);
        }
        order.reverse();
        order
    }

    fn greedy(&self) -> Order {
        let mut starts: Vec<(f64, usize)> = (0..self.members.len())
            .map(|member| {
                (
                    self.step(&self.start(), member, self.rows(&[member])).1,
                    member,
                )
            })
            .collect();
        starts.sort_by(|a, b| a.0.total_cmp(&b.0));
        let tried = match self.members.len() <= GREEDY_STARTS_MEMBERS_MAX {
            true => GREEDY_STARTS,
            false => 1,
        };
        starts
            .iter()
            .take(tried)
            .map(|&(_, first)| self.greedy_from(first))
            .min_by(|a, b| a.cost.total_cmp(&b.cost))
            .unwrap_or_default()
    }

    fn greedy_from(&self, first: usize) -> Order {
        let mut open: Vec<usize> = (0..self.members.len()).filter(|&m| m != first).collect();
        let mut members = vec![first];
        let (mut prefix, _) = self.step(&self.start(), first, self.rows(&members));
        while !open.is_empty() && !self.patience.is_over() {
            let is_stuck = !open.iter().any(|&next| self.may_follow(&prefix, next));
            let mut best: Option<(f64, usize, Prefix)> = None;
            for (at, &next) in open.iter().enumerate() {
                if !is_stuck && !self.may_follow(&prefix, next) {
                    continue;
                }
                let rows = if self.members.len() > GREEDY_EXACT_MEMBERS_MAX {
                    self.rows_with(&prefix.rows, next)
                } else {
                    members.push(next);
                    let rows = self.rows(&members);
                    members.pop();
                    rows
                };
                let (after, cost) = self.step(&prefix, next, rows);
                let cost = cost + after.rows.filtered;
                if best.as_ref().is_none_or(|(known, ..)| cost < *known) {
                    best = Some((cost, at, after));
                }
            }
            let Some((_, at, after)) = best else { break };
            members.push(open.remove(at));
            prefix = after;
        }
        self.follow(members)
    }

    /// Roughly the rows with one member more, without looking at those before.
    fn rows_with(&self, before: &Rows, next: usize) -> Rows {
        let rows = before.filtered * self.matches(next, before.bound);
        Rows {
            joined: rows,
            filtered: rows,
            bound: before.bound | self.members[next].variables,
        }
    }

    /// Estimates along a given order.
    pub(crate) fn follow(&self, members: Vec<usize>) -> Order {
        let mut rows = Vec::with_capacity(members.len());
        let (cost, _) = self.after(&members, |after| rows.push(after.filtered));
        Order {
            members,
            rows,
            cost,
        }
    }

    /// The cost of joining some members in their order, and what is there then; tells the rows
    /// after each.
    fn after(&self, members: &[usize], mut tell: impl FnMut(Rows)) -> (f64, Prefix) {
        let mut prefix = self.start();
        let mut cost = 0.0;
        for number in 0..members.len() {
            if self.patience.is_over() {
                break;
            }
            let after = self.rows(&members[..=number]);
            let (next, more) = self.step(&prefix, members[number], after);
            prefix = next;
            cost += more;
            tell(after);
        }
        (cost, prefix)
    }
}

/// How many windows a search of so many members goes through.
fn windows(members: usize) -> usize {
    members
        .saturating_sub(WINDOW_OVERLAP)
        .div_ceil(WINDOW - WINDOW_OVERLAP)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::estimate::cardinality::{Condition, Member};

    fn lookup(variables: u128, rows: f64, distinct: &[(u32, f64)]) -> Member {
        Member {
            variables,
            rows,
            work: rows,
            distinct: distinct.to_vec(),
            access: Access::Lookup,
        }
    }

    #[test]
    fn a_chain_starts_at_its_constant() {
        // ?a knows ?b (1M), ?b name ?c (1M), ?a email "x" (1)
        let join = Join {
            members: vec![
                lookup(0b011, 1e6, &[(0, 1e5), (1, 1e5)]),
                lookup(0b110, 1e6, &[(1, 1e6), (2, 1e6)]),
                lookup(0b001, 1.0, &[(0, 1.0)]),
            ],
            ..Join::default()
        };
        assert_eq!(join.order().members, [2, 0, 1]);
    }

    #[test]
    fn a_chain_of_thousands_starts_at_its_constant_and_follows_it() {
        let links = 3_000;
        let mut members: Vec<Member> = (0..links)
            .map(|link| lookup(0b11 << (link % 100), 1e6, &[]))
            .collect();
        let last = members.len() - 1;
        members[last] = lookup(1 << (last % 100), 1.0, &[]);
        let order = Join {
            members,
            ..Join::default()
        }
        .order();
        assert_eq!(order.members.len(), links);
        assert_eq!(order.members[0], last);
    }

    #[test]
    fn unconnected_members_of_one_row_come_before_the_filter_that_needs_them() {
        // ?p value ?v (1000), ?q other ?w (1 row), filter on ?v and ?w
        let join = Join {
            members: vec![
                lookup(0b0011, 1000.0, &[(0, 1000.0), (1, 500.0)]),
                lookup(0b1100, 1.0, &[(2, 1.0), (3, 1.0)]),
                lookup(0b10001, 1000.0, &[(0, 1000.0), (4, 1000.0)]),
            ],
            conditions: vec![Condition {
                variables: 0b1010,
                selectivity: 0.01,
            }],
            ..Join::default()
        };
        let order = join.order();
        assert_eq!(*order.members.last().expect("three members"), 2);
    }

    #[test]
    fn members_that_share_nothing_come_when_nothing_else_is_left() {
        let join = Join {
            members: vec![
                lookup(0b0011, 100.0, &[(0, 100.0), (1, 100.0)]),
                lookup(0b1100, 100.0, &[(2, 100.0), (3, 100.0)]),
                lookup(0b0010, 1e6, &[(1, 1e6)]),
            ],
            ..Join::default()
        };
        assert_eq!(join.order().members, [0, 2, 1]);
    }

    /// Twelve members around one variable: `base` rows, nine that multiply them by 1.1 each, and
    /// two that double them but bring a filter that keeps a thousandth.
    fn star_with_a_late_filter(base: f64) -> Join {
        let arm = |own: u32, fan_out: f64| {
            let rows = base * fan_out;
            lookup(1 | 1 << own, rows, &[(0, base), (own, rows)])
        };
        let mut members = vec![lookup(1, base, &[(0, base)])];
        members.extend((1..10).map(|own| arm(own, 1.1)));
        members.extend([arm(10, 2.0), arm(11, 2.0)]);
        Join {
            members,
            conditions: vec![Condition {
                variables: 0b1100_0000_0000,
                selectivity: 0.001,
            }],
            ..Join::default()
        }
    }

    #[test]
    fn a_cheap_star_is_not_searched_and_a_dear_one_is() {
        let cheap = star_with_a_late_filter(0.5);
        assert!(cheap.search().cost < cheap.greedy().cost);
        assert_eq!(cheap.order().members, cheap.greedy().members);
        let dear = star_with_a_late_filter(10_000.0);
        assert!(dear.search().cost < 0.5 * dear.greedy().cost);
        let order = dear.order();
        assert!(order.cost <= 1.01 * dear.search().cost, "{order:?}");
        let first_three = &order.members[..3];
        assert!(first_three.contains(&10) && first_three.contains(&11));
    }

    #[test]
    fn subsets_are_counted_as_far_as_they_hang_together() {
        let chain = |links: u32| Join {
            members: (0..links).map(|n| lookup(0b11 << n, 1e6, &[])).collect(),
            ..Join::default()
        };
        // Nothing, and from each link on to each.
        assert_eq!(chain(12).connected_subsets(), Some(1 + 12 * 13 / 2));
        assert_eq!(chain(13).connected_subsets(), None);
        let star = |arms: u32| Join {
            members: (0..arms).map(|n| lookup(1 | 2 << n, 1e6, &[])).collect(),
            ..Join::default()
        };
        assert_eq!(star(10).connected_subsets(), Some(1024));
        assert_eq!(star(11).connected_subsets(), None);
    }

    #[test]
    fn many_keys_that_come_in_order_are_used_before_others() {
        // Two patterns more around each end of ?a link ?b, all of a million rows.
        let around = |own: u32, other: u32| {
            let distinct = [(own, 1e6), (other, 1e6)];
            lookup(1 << own | 1 << other, 1e6, &distinct)
        };
        let join = Join {
            members: vec![
                around(0, 1),
                around(0, 2),
                around(1, 3),
                around(0, 4),
                around(1, 5),
            ],
            ..Join::default()
        };
        let members = join.order().members;
        let around_a = |member: &usize| matches!(member, 1 | 3);
        let ends = members.iter().filter(|member| **member != 0).map(around_a);
        let ends: Vec<bool> = ends.collect();
        let changes = ends.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert_eq!(changes, 1, "{members:?}");
    }

    #[test]
    fn many_members_are_ordered_greedily_and_connected() {
        let members = (0..20_u32)
            .map(|n| lookup(0b11 << n, 1000.0, &[(n, 1000.0), (n + 1, 1000.0)]))
            .collect();
        let order = Join {
            members,
            ..Join::default()
        }
        .order();
        assert_eq!(order.members.len(), 20);
        assert!(order.rows.iter().all(|&rows| rows <= 1000.5));
    }
}
