//! In which order to join: dynamic programming over subsets, greedy for many.
//!
//! Plans are left-deep: each member is joined to what came before, a pattern by
//! looking up its bound positions. The estimate of a subset does not depend on the
//! order: `rows(S) = product of rows(i) / product over shared variables of D(v)` for
//! each occurrence but one, where `D(v)` is the largest number of distinct values
//! that any member has for `v` (containment of values, as in System R), times the
//! selectivity of the filters whose variables are bound.
//!
//! Cost is counted in rows: what goes into a step, and what comes out. The search
//! over all subsets of ten members takes about 50 us; beyond, greedy from the
//! few best starts.

/// Members up to which all orders are searched.
const SEARCH_MAX: usize = 10;
/// Starting members that the greedy search tries.
const GREEDY_STARTS: usize = 4;
/// Variables of one join; members with variables beyond are not told apart.
pub(crate) const VARIABLES_MAX: usize = 128;
/// Cost of looking up a key, in output rows.
const LOOKUP_COST: f64 = 2.0;
/// Factor on the cost of a step that shares no variable with what came before.
const UNCONNECTED_PENALTY: f64 = 20.0;

/// How a member can be joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// By looking up bound variables.
    Lookup,
    /// Only by computing all of it once.
    Whole,
}

/// One member of a join, as far as the order needs to know.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    /// Its variables, by their number in this join.
    pub(crate) variables: u128,
    /// Its rows, alone.
    pub(crate) rows: f64,
    /// Distinct values per variable.
    pub(crate) distinct: Vec<(u32, f64)>,
    pub(crate) access: Access,
}

/// A filter, as far as the order needs to know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Condition {
    pub(crate) variables: u128,
    pub(crate) selectivity: f64,
}

/// A join to be ordered.
#[derive(Debug, Default)]
pub(crate) struct Join {
    pub(crate) members: Vec<Member>,
    pub(crate) conditions: Vec<Condition>,
    /// Rows and variables of what is there before the first member.
    pub(crate) seed_rows: Option<f64>,
    pub(crate) seed_variables: u128,
}

/// The order, with the estimated rows after each member.
#[derive(Clone, Debug, Default)]
pub(crate) struct Order {
    pub(crate) members: Vec<usize>,
    pub(crate) rows: Vec<f64>,
    cost: f64,
}

/// A subset of members that is joined already.
#[derive(Clone, Copy)]
struct Prefix {
    rows: f64,
    bound: u128,
    is_empty: bool,
}

impl Join {
    /// The cheapest order found.
    pub(crate) fn order(&self) -> Order {
        let domains = self.domains();
        match self.members.len() {
            0 => Order::default(),
            1 => self.follow(&domains, vec![0]),
            count if count <= SEARCH_MAX => self.search(&domains),
            _ => self.greedy(&domains),
        }
    }

    /// Per variable the largest number of distinct values.
    fn domains(&self) -> [f64; VARIABLES_MAX] {
        let mut domains = [1.0_f64; VARIABLES_MAX];
        for member in &self.members {
            for &(var, distinct) in &member.distinct {
                let domain = &mut domains[var as usize];
                *domain = domain.max(distinct);
            }
        }
        domains
    }

    fn start(&self) -> Prefix {
        Prefix {
            rows: self.seed_rows.unwrap_or(1.0),
            bound: self.seed_variables,
            is_empty: self.seed_rows.is_none(),
        }
    }

    /// Joins one member more: the new prefix and the cost of the step.
    fn step(&self, domains: &[f64; VARIABLES_MAX], prefix: Prefix, next: usize) -> (Prefix, f64) {
        let member = &self.members[next];
        let shared = prefix.bound & member.variables;
        let mut fanout = member.rows;
        for &(var, _) in &member.distinct {
            if shared & (1 << var) != 0 {
                fanout /= domains[var as usize];
            }
        }
        let bound = prefix.bound | member.variables;
        let mut rows = prefix.rows * fanout;
        let unfiltered = rows;
        for condition in &self.conditions {
            let is_new = condition.variables & !prefix.bound != 0 || prefix.is_empty;
            if is_new && condition.variables & !bound == 0 {
                rows *= condition.selectivity;
            }
        }
        let before = prefix.rows.max(1.0);
        let cost = match member.access {
            _ if prefix.is_empty => member.rows,
            Access::Lookup => before * LOOKUP_COST + unfiltered,
            Access::Whole => before + member.rows * LOOKUP_COST + unfiltered,
        };
        let is_unconnected = !prefix.is_empty && shared == 0 && member.rows > 1.0;
        let cost = if is_unconnected {
            (cost + before * member.rows) * UNCONNECTED_PENALTY
        } else {
            cost
        };
        let prefix = Prefix {
            rows,
            bound,
            is_empty: false,
        };
        (prefix, cost)
    }

    fn search(&self, domains: &[f64; VARIABLES_MAX]) -> Order {
        let count = self.members.len();
        let full = (1_usize << count) - 1;
        let mut best: Vec<Option<(f64, Prefix, usize)>> = vec![None; full + 1];
        best[0] = Some((0.0, self.start(), usize::MAX));
        for subset in 0..full {
            let Some((cost, prefix, _)) = best[subset] else {
                continue;
            };
            for next in 0..count {
                let with = subset | 1 << next;
                if with == subset {
                    continue;
                }
                let (after, more) = self.step(domains, prefix, next);
                let total = cost + more;
                if best[with].is_none_or(|(known, _, _)| total < known) {
                    best[with] = Some((total, after, next));
                }
            }
        }
        let mut members = Vec::with_capacity(count);
        let mut subset = full;
        while let Some((_, _, last)) = best[subset] {
            if last == usize::MAX {
                break;
            }
            members.push(last);
            subset &= !(1 << last);
        }
        members.reverse();
        self.follow(domains, members)
    }

    fn greedy(&self, domains: &[f64; VARIABLES_MAX]) -> Order {
        let mut starts: Vec<(f64, usize)> = (0..self.members.len())
            .map(|member| (self.step(domains, self.start(), member).1, member))
            .collect();
        starts.sort_by(|a, b| a.0.total_cmp(&b.0));
        starts
            .iter()
            .take(GREEDY_STARTS)
            .map(|&(_, first)| self.greedy_from(domains, first))
            .min_by(|a, b| a.cost.total_cmp(&b.cost))
            .unwrap_or_default()
    }

    fn greedy_from(&self, domains: &[f64; VARIABLES_MAX], first: usize) -> Order {
        let mut open: Vec<usize> = (0..self.members.len()).filter(|&m| m != first).collect();
        let mut members = vec![first];
        let (mut prefix, _) = self.step(domains, self.start(), first);
        while let Some((at, after)) = open
            .iter()
            .enumerate()
            .map(|(at, &member)| {
                let (after, cost) = self.step(domains, prefix, member);
                (at, after, cost + after.rows)
            })
            .min_by(|a, b| a.2.total_cmp(&b.2))
            .map(|(at, after, _)| (at, after))
        {
            members.push(open.remove(at));
            prefix = after;
        }
        self.follow(domains, members)
    }

    /// Estimates along a given order.
    fn follow(&self, domains: &[f64; VARIABLES_MAX], members: Vec<usize>) -> Order {
        let mut prefix = self.start();
        let mut rows = Vec::with_capacity(members.len());
        let mut cost = 0.0;
        for &member in &members {
            let (after, more) = self.step(domains, prefix, member);
            prefix = after;
            cost += more;
            rows.push(after.rows);
        }
        Order {
            members,
            rows,
            cost,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lookup(variables: u128, rows: f64, distinct: &[(u32, f64)]) -> Member {
        Member {
            variables,
            rows,
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
