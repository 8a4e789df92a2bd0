//! Estimates for a star of patterns around one subject, from characteristic sets.
//!
//! ```text
//! set {name, mail, age}: 10 subjects   \
//! set {name, mail}:       5 subjects   /  asked for name, mail: one group of 15 subjects that have both
//! set {name}:             3 subjects      a group of 3 that have the first only
//! ```
//!
//! Sets that look alike to the star become one group, so that the planner, which asks for each
//! subset of the patterns, goes over a few groups instead of thousands of sets. Of predicates that
//! very many sets have, only the sets with the most subjects are visited ([`VISITS_MAX`] in all)
//! and the others taken to be alike; where that leaves out half of the predicate's quads, there is
//! no star.
//!
//! Queries ask for the same stars again and again, so those that were asked for are kept
//! ([`STARS_MAX`]).

use std::sync::Arc;

use orrery_term::TermId;

use super::Statistics;
use super::known_stars::{STARS_MAX, Star, StarGroup};

/// Predicates of one star.
pub const STAR_PREDICATES_MAX: usize = 16;
/// Sets that are visited for one star: a few tens of microseconds.
const VISITS_MAX: usize = 2_000;
/// The share of a predicate's quads that must be in the sets that are visited.
const COVERED_MIN: f64 = 0.5;

impl Statistics {
    /// The star of some predicates, the same one perhaps several times. `None` where the sets that
    /// are kept do not tell enough of one of them, or where there are more than
    /// [`STAR_PREDICATES_MAX`].
    pub fn star(&self, predicates: &[TermId]) -> Option<Arc<Star>> {
        if predicates.is_empty() || predicates.len() > STAR_PREDICATES_MAX {
            return None;
        }
        if let Some(known) = self.stars.0.lock().get(predicates) {
            return known.clone();
        }
        let star = self.make_star(predicates).map(Arc::new);
        let mut stars = self.stars.0.lock();
        if stars.len() >= STARS_MAX {
            stars.clear();
        }
        stars.insert(predicates.into(), star.clone());
        star
    }

    fn make_star(&self, predicates: &[TermId]) -> Option<Star> {
        let mut visits = Vec::new();
        for &predicate in predicates {
            let place = self
                .predicates
                .binary_search_by_key(&predicate, |&(id, _)| id)
                .ok()?;
            // The sets with the most subjects come first.
            let sets = &self.sets_of_predicate[place];
            let visited = &sets[..sets.len().min(VISITS_MAX / predicates.len())];
            let quads: u64 = visited
                .iter()
                .map(|&set| self.characteristic_sets[set as usize].quads(predicate))
                .sum();
            let covered = quads as f64 / self.predicates[place].1.quads.max(1) as f64;
            if covered < COVERED_MIN {
                return None;
            }
            visits.extend_from_slice(visited);
        }
        visits.sort_unstable();
        visits.dedup();
        let mut star = Star { groups: Vec::new() };
        for set in visits {
            star.add(&self.characteristic_sets[set as usize], predicates);
        }
        Some(star)
    }
}

impl Star {
    fn add(&mut self, set: &super::CharacteristicSet, predicates: &[TermId]) {
        let quads: Vec<f64> = predicates
            .iter()
            .map(|&predicate| set.quads(predicate) as f64)
            .collect();
        let has = quads
            .iter()
            .enumerate()
            .fold(0_u32, |has, (number, &quads)| {
                has | u32::from(quads > 0.0) << number
            });
        let subjects = set.subjects as f64;
        match self.groups.iter_mut().find(|group| group.predicates == has) {
            Some(group) => {
                group.subjects += subjects;
                for (sum, quads) in group.quads.iter_mut().zip(quads) {
                    *sum += quads;
                }
            }
            None => self.groups.push(StarGroup {
                predicates: has,
                subjects,
                quads,
            }),
        }
    }
}
