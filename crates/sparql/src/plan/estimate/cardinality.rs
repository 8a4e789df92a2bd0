//! The cardinality estimate of a join, for any set of members in any order.
//!
//! Three sources, from the plain to the precise:
//!
//! * Two members that share a variable: `rows = |A| |B| / max(D(A), D(B))`, where `D` are the
//!   distinct values that each has for it (values of the one with fewer are taken to be among those
//!   of the other, as in System R). With more members on one variable, all but the smallest `D`
//!   divide.
//! * Patterns around one subject: the characteristic sets tell how many subjects have all their
//!   predicates and how often ([`Star`]). A constant object leaves its share of the predicate's
//!   quads *within these sets*. Several constants are rarely independent (features belong to
//!   types), so the second share counts by its square root, the third by its fourth root.
//! * What sampling found ([`sampling`](crate::plan::order::sampling)): the factor by which the rows
//!   of some members were wrong holds for every join that has these members.
//!
//! Then the filters whose variables are bound.

use std::sync::Arc;

use orrery_runtime::Patience;
use orrery_storage::statistics;

/// Variables of one join; what is beyond them is not told apart.
pub(crate) const VARIABLES_MAX: usize = 128;

/// Of two patterns with the same variables as subject and object: with 1 their objects would be
/// independent, with 0 always equal.
const PARALLEL_EXPONENT: f64 = 0.5;

/// How a member can be joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// By looking up bound variables.
    Lookup,
    /// By looking up bound variables in so many branches, after the left side was computed and
    /// shared; or by computing all of it.
    Seeded(usize),
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
    /// The rows that are gone through to compute all of it: at least its own, more where it groups.
    pub(crate) work: f64,
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

/// Patterns around one subject.
#[derive(Debug)]
pub(crate) struct Star {
    /// The subject's variable.
    pub(crate) subject: u32,
    /// The members, in the order of the star's predicates; of those before [`VARIABLES_MAX`].
    pub(crate) members: Vec<usize>,
    /// Bit `n`: the object of member number `n` is a constant or within ranges.
    pub(crate) selected: u32,
    pub(crate) sets: Arc<statistics::Star>,
    /// By which factor the predicates have grown since the sets were counted.
    pub(crate) growth: f64,
}

/// A factor that sampling found.
#[derive(Clone, Copy, Debug)]
pub(in crate::plan) struct Correction {
    /// The members that have it together; sampling goes through none beyond [`VARIABLES_MAX`].
    members: u128,
    factor: f64,
}

/// The members of a join and all that is known of them.
#[derive(Debug, Default)]
pub(crate) struct Join {
    pub(crate) members: Vec<Member>,
    pub(crate) conditions: Vec<Condition>,
    pub(crate) stars: Vec<Star>,
    /// Rows and variables of what is there before the first member.
    pub(crate) seed_rows: Option<f64>,
    pub(crate) seed_variables: u128,
    /// What sampling found.
    pub(in crate::plan) corrections: Vec<Correction>,
    /// When it is over, an order is no order: whoever asked for one looks.
    pub(in crate::plan) patience: Arc<Patience>,
}

/// Expected rows of a subset of the members.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rows {
    /// Before the filters.
    pub(crate) joined: f64,
    /// After them.
    pub(crate) filtered: f64,
    /// The variables that are bound.
    pub(crate) bound: u128,
}

/// Divides by the distinct values of shared variables.
struct Sharing {
    rows: f64,
    bound: u128,
    /// The fewest distinct values so far, of bound variables.
    smallest: [f64; VARIABLES_MAX],
}

impl Sharing {
    fn add(&mut self, variable: u32, distinct: f64) {
        self.add_with(variable, distinct, 1.0);
    }

    /// A variable, the share of whose equal values counts with an exponent.
    fn add_with(&mut self, variable: u32, distinct: f64, exponent: f64) {
        let smallest = &mut self.smallest[variable as usize];
        if self.bound & (1 << variable) == 0 {
            self.bound |= 1 << variable;
            *smallest = distinct;
            return;
        }
        self.rows /= smallest.max(distinct).powf(exponent);
        *smallest = smallest.min(distinct);
    }
}

impl Join {
    /// Expected rows of some members joined to the seed.
    pub(crate) fn rows(&self, members: &[usize]) -> Rows {
        let mut sharing = Sharing {
            rows: self.seed_rows.unwrap_or(1.0),
            bound: 0,
            smallest: [1.0; VARIABLES_MAX],
        };
        let mut seeded = self.seed_variables;
        while seeded != 0 {
            // How many different values the seed has is not known: few are taken to be in many.
            sharing.add(seeded.trailing_zeros(), 1.0);
            seeded &= seeded - 1;
        }
        let mut variables = self.seed_variables;
        let present = members
            .iter()
            .filter(|&&member| member < VARIABLES_MAX)
            .fold(0_u128, |present, &member| present | 1 << member);
        let mut in_stars = 0_u128;
        for star in &self.stars {
            in_stars |= self.add_star(star, present, &mut sharing);
        }
        for &number in members {
            let member = &self.members[number];
            variables |= member.variables;
            if number < VARIABLES_MAX && in_stars & (1 << number) != 0 {
                continue;
            }
            sharing.rows *= member.rows;
            for &(variable, distinct) in &member.distinct {
                sharing.add(variable, distinct);
            }
        }
        let mut joined = sharing.rows;
        for correction in &self.corrections {
            if correction.members & !present == 0 {
                joined *= correction.factor;
            }
        }
        let mut filtered = joined;
        for condition in &self.conditions {
            let is_new = condition.variables & !self.seed_variables != 0
                || (self.seed_rows.is_none() && !members.is_empty());
            if is_new && condition.variables & !variables == 0 {
                filtered *= condition.selectivity;
            }
        }
        Rows {
            joined,
            filtered,
            bound: variables,
        }
    }

    /// Multiplies by the rows of a star, if at least two of its members are present; returns which
    /// members those are.
    fn add_star(&self, star: &Star, present: u128, sharing: &mut Sharing) -> u128 {
        let mut subset = 0_u32;
        for (number, &member) in star.members.iter().enumerate() {
            subset |= u32::from(present & (1 << member) != 0) << number;
        }
        if subset.count_ones() < 2 {
            return 0;
        }
        let (rows, subjects) = star.rows(subset, &self.members);
        sharing.rows *= rows;
        sharing.add(star.subject, subjects.max(1.0));
        let (mut taken, mut own) = (0_u128, 0_u128);
        for (number, &member) in star.members.iter().enumerate() {
            if subset & (1 << number) == 0 {
                continue;
            }
            taken |= 1 << member;
            for &(variable, distinct) in &self.members[member].distinct {
                if variable != star.subject {
                    // Two predicates with the same subject and object are there for a reason.
                    let is_parallel = own & (1 << variable) != 0;
                    let exponent = if is_parallel { PARALLEL_EXPONENT } else { 1.0 };
                    sharing.add_with(variable, distinct.min(rows).max(1.0), exponent);
                    own |= 1 << variable;
                }
            }
        }
        taken
    }

    /// Takes what sampling found: the rows before filters after each of the first members of an
    /// order. Returns the largest factor between what was expected and what was found.
    pub(crate) fn learn(&mut self, order: &[usize], found: &[f64]) -> f64 {
        let mut largest: f64 = 1.0;
        for (number, &rows) in found.iter().enumerate() {
            let members = &order[..=number];
            let expected = self.rows(members).joined.max(1e-3);
            let rows = rows.max(1e-3);
            largest = largest.max(expected.max(1.0) / rows.max(1.0));
            largest = largest.max(rows.max(1.0) / expected.max(1.0));
            let added = &self.members[order[number]];
            let touched = order[..number]
                .iter()
                .filter(|&&other| self.members[other].variables & added.variables != 0)
                .fold(1 << order[number], |all, &other| all | 1 << other);
            self.corrections.push(Correction {
                members: touched,
                factor: rows / expected,
            });
        }
        largest
    }
}

impl Join {
    /// Matches that a row is expected to find when the member comes after these variables.
    pub(crate) fn matches(&self, member: usize, bound: u128) -> f64 {
        let member = &self.members[member];
        let shared = member
            .distinct
            .iter()
            .filter(|(variable, _)| bound & (1 << variable) != 0);
        member.rows / shared.map(|(_, values)| *values).product::<f64>().max(1.0)
    }

    /// Whether a member only adds what the subjects of a star have besides: nothing selects its
    /// objects, and nothing goes on from them. The characteristic sets know how many those are.
    pub(in crate::plan) fn is_besides(&self, member: usize) -> bool {
        let star = self.stars.iter().find_map(|star| {
            let number = star.members.iter().position(|&other| other == member)?;
            (star.selected & 1 << number == 0).then_some(star)
        });
        let Some(star) = star else { return false };
        let own = self.members[member].variables & !(1 << star.subject);
        let others = self.members.iter().enumerate();
        let mut others = others.filter(|(number, _)| *number != member);
        others.all(|(_, other)| other.variables & own == 0)
    }
}

impl Star {
    /// Rows and distinct subjects of a subset of the members.
    fn rows(&self, subset: u32, members: &[Member]) -> (f64, f64) {
        let mut quads = [0.0; statistics::STAR_PREDICATES_MAX];
        let (mut subjects, mut rows) = (0.0, 0.0);
        for group in self.sets.groups_with(subset) {
            let mut matches = group.subjects;
            for (number, sum) in quads.iter_mut().enumerate().take(self.members.len()) {
                if subset & (1 << number) != 0 {
                    *sum += group.quads[number];
                    if self.selected & (1 << number) == 0 {
                        matches *= group.quads[number] / group.subjects;
                    }
                }
            }
            subjects += group.subjects;
            rows += matches;
        }
        if subjects == 0.0 {
            return (0.0, 0.0);
        }
        let mut shares = [1.0_f64; statistics::STAR_PREDICATES_MAX];
        let mut selected = subset & self.selected;
        let mut count = 0;
        while selected != 0 {
            let number = selected.trailing_zeros() as usize;
            selected &= selected - 1;
            let all = quads[number] * self.growth;
            let per_subject =
                members[self.members[number]].rows.min(all) / (subjects * self.growth);
            shares[count] = per_subject.min(1.0);
            rows *= per_subject.max(1.0);
            count += 1;
        }
        let share = backed_off(&mut shares[..count]);
        (rows * share * self.growth, subjects * share * self.growth)
    }
}

/// The product of shares that are hardly independent: the smallest counts whole, each further one
/// by the root of the root before.
fn backed_off(shares: &mut [f64]) -> f64 {
    shares.sort_unstable_by(f64::total_cmp);
    let (mut product, mut exponent) = (1.0, 1.0);
    for share in shares {
        product *= share.powf(exponent);
        exponent *= 0.5;
    }
    product
}

#[cfg(test)]
mod tests {
    use super::*;
    use orrery_storage::statistics::StatisticsBuilder;
    use orrery_term::TermId;

    fn member(rows: f64, distinct: &[(u32, f64)]) -> Member {
        Member {
            variables: distinct.iter().fold(0, |all, (var, _)| all | 1 << var),
            rows,
            work: rows,
            distinct: distinct.to_vec(),
            access: Access::Lookup,
        }
    }

    #[test]
    fn all_but_the_fewest_distinct_values_divide() {
        let join = Join {
            members: vec![
                member(100.0, &[(0, 100.0)]),
                member(10_000.0, &[(0, 10_000.0)]),
                member(2e6, &[(0, 1e6)]),
            ],
            ..Join::default()
        };
        assert_eq!(join.rows(&[0, 1]).joined, 100.0);
        assert_eq!(join.rows(&[2, 0, 1]).joined, 200.0);
        assert_eq!(join.rows(&[2, 0, 1]), join.rows(&[0, 1, 2]));
    }

    /// A hundred books with one title and two authors each, a hundred films with a title only.
    fn star(selected: u32, members: &[usize]) -> Star {
        let (title, author) = (TermId::from_bits(1), TermId::from_bits(2));
        let mut quads: Vec<[u64; 4]> = Vec::new();
        for book in 0..100 {
            quads.push([book, 1, 1_000 + book, 0]);
            quads.extend([[book, 2, 2_000, 0], [book, 2, 2_001 + book, 0]]);
        }
        for film in 100..200 {
            quads.push([film, 1, 1_000 + film, 0]);
        }
        let mut builder = StatisticsBuilder::default();
        builder.observe_spog(&quads);
        let mut by_predicate: Vec<[u64; 4]> =
            quads.iter().map(|&[s, p, o, g]| [p, s, o, g]).collect();
        by_predicate.sort_unstable();
        builder.observe_psog(&by_predicate);
        let sets = builder.finish().star(&[title, author]).expect("a star");
        Star {
            subject: 0,
            members: members.to_vec(),
            selected,
            sets,
            growth: 1.0,
        }
    }

    #[test]
    fn a_star_knows_which_predicates_go_together() {
        let join = Join {
            members: vec![
                member(200.0, &[(0, 200.0), (1, 200.0)]),
                member(200.0, &[(0, 100.0), (2, 101.0)]),
            ],
            stars: vec![star(0, &[0, 1])],
            ..Join::default()
        };
        assert_eq!(join.rows(&[0, 1]).joined, 200.0);
        assert_eq!(join.rows(&[0]).joined, 200.0);
    }

    #[test]
    fn a_constant_takes_its_share_of_the_subjects_that_have_all_predicates() {
        // An author of five books.
        let join = Join {
            members: vec![
                member(200.0, &[(0, 200.0), (1, 200.0)]),
                member(5.0, &[(0, 5.0)]),
            ],
            stars: vec![star(0b10, &[0, 1])],
            ..Join::default()
        };
        let rows = join.rows(&[0, 1]).joined;
        assert!((rows - 5.0).abs() < 1e-9, "{rows}");
    }

    #[test]
    fn what_was_found_holds_for_joins_with_the_same_members() {
        let mut join = Join {
            members: vec![
                member(100.0, &[(0, 100.0)]),
                member(1_000.0, &[(0, 100.0), (1, 1_000.0)]),
                member(1_000.0, &[(1, 1_000.0)]),
            ],
            ..Join::default()
        };
        assert_eq!(join.learn(&[0, 1], &[100.0, 50_000.0]), 50.0);
        assert_eq!(join.rows(&[0, 1]).joined, 50_000.0);
        assert_eq!(join.rows(&[0, 1, 2]).joined, 50_000.0);
        assert_eq!(join.rows(&[1, 2]).joined, 1_000.0);
        assert_eq!(join.learn(&[0, 1], &[100.0, 50_000.0]), 1.0);
    }

    #[test]
    fn shares_after_the_first_count_less() {
        assert_eq!(backed_off(&mut [0.01, 0.0001]), 0.0001 * 0.1);
        assert_eq!(backed_off(&mut []), 1.0);
    }
}
