//! Statistics of the data for the query planner.
//!
//! Per predicate: quads, distinct subjects, distinct objects. And the characteristic sets
//! (Neumann, Moerkotte: "Characteristic sets", ICDE 2011): which sets of predicates
//! subjects have, how many subjects each, and how many quads per predicate; from
//! these the size of a star of patterns around one subject is known well even
//! where predicates are correlated.
//!
//! Exact for a snapshot; collected by a [`StatisticsBuilder`] from the sorted streams while a
//! segment is written. The most frequent [`CHARACTERISTIC_SETS_MAX`] sets are kept, of the others
//! how many subjects and quads they have. In memory some 16 bytes per predicate of a set.

use orrery_term::TermId;

mod builder;
mod counted;
mod figures;
mod file;
mod known_stars;
mod sampled;
mod star;

pub use builder::StatisticsBuilder;
pub(crate) use counted::counted;
pub use figures::Figures;
pub(crate) use file::{STATISTICS_KIND, read, write};
use known_stars::KnownStars;
pub use known_stars::{Star, StarGroup};
pub use sampled::Sampled;
pub(crate) use sampled::SampledStatistics;
pub use star::STAR_PREDICATES_MAX;

/// Number of characteristic sets that are kept.
pub const CHARACTERISTIC_SETS_MAX: usize = 10_000;

/// Figures about one snapshot.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Statistics {
    pub(crate) quads: u64,
    pub(crate) distinct_subjects: u64,
    pub(crate) distinct_objects: u64,
    pub(crate) distinct_graphs: u64,
    /// Sorted by predicate.
    pub(crate) predicates: Vec<(TermId, PredicateStatistics)>,
    /// The most subjects first.
    pub(crate) characteristic_sets: Vec<CharacteristicSet>,
    pub(crate) rest: RestOfSets,
    /// For each of `predicates` the places of the sets that contain it.
    sets_of_predicate: Vec<Vec<u32>>,
    stars: KnownStars,
}

/// Figures about the quads with one predicate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PredicateStatistics {
    /// Number of quads.
    pub quads: u64,
    /// Number of distinct subjects.
    pub distinct_subjects: u64,
    /// Number of distinct objects.
    pub distinct_objects: u64,
}

/// A set of predicates, and the subjects that have exactly these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CharacteristicSet {
    /// The predicates in ascending order, each with the number of quads these subjects have with
    /// it.
    pub predicates: Box<[(TermId, u64)]>,
    /// Number of subjects.
    pub subjects: u64,
}

/// The characteristic sets that are not kept one by one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RestOfSets {
    /// Number of subjects.
    pub subjects: u64,
    /// Number of their quads.
    pub quads: u64,
}

impl Statistics {
    /// Number of quads.
    pub fn quads(&self) -> u64 {
        self.quads
    }

    /// Number of distinct subjects.
    pub fn distinct_subjects(&self) -> u64 {
        self.distinct_subjects
    }

    /// Number of distinct objects.
    pub fn distinct_objects(&self) -> u64 {
        self.distinct_objects
    }

    /// The totals over all quads.
    pub fn all(&self) -> PredicateStatistics {
        PredicateStatistics {
            quads: self.quads,
            distinct_subjects: self.distinct_subjects,
            distinct_objects: self.distinct_objects,
        }
    }

    /// Number of distinct graphs, the default graph among them if it has quads.
    pub fn distinct_graphs(&self) -> u64 {
        self.distinct_graphs
    }

    /// Figures about one predicate; `None` if no quad has it.
    pub fn predicate(&self, predicate: TermId) -> Option<&PredicateStatistics> {
        let place = self
            .predicates
            .binary_search_by_key(&predicate, |&(id, _)| id)
            .ok()?;
        Some(&self.predicates[place].1)
    }

    /// All predicates in ascending order.
    pub fn predicates(&self) -> &[(TermId, PredicateStatistics)] {
        &self.predicates
    }

    /// The characteristic sets that are kept, those with the most subjects first.
    pub fn characteristic_sets(&self) -> &[CharacteristicSet] {
        &self.characteristic_sets
    }

    /// The subjects whose sets are not kept.
    pub fn rest_of_sets(&self) -> RestOfSets {
        self.rest
    }

    /// Fills `sets_of_predicate` from the other fields.
    fn with_sets_by_predicate(mut self) -> Self {
        self.stars = KnownStars::default();
        self.sets_of_predicate = vec![Vec::new(); self.predicates.len()];
        for (place, set) in self.characteristic_sets.iter().enumerate() {
            for (predicate, _) in &set.predicates {
                let found = self
                    .predicates
                    .binary_search_by_key(predicate, |&(id, _)| id);
                if let Ok(predicate_place) = found {
                    self.sets_of_predicate[predicate_place].push(place as u32);
                }
            }
        }
        self
    }
}

impl CharacteristicSet {
    /// Number of quads that the subjects of this set have with a predicate; 0 if it is not in the
    /// set.
    pub fn quads(&self, predicate: TermId) -> u64 {
        self.predicates
            .binary_search_by_key(&predicate, |&(id, _)| id)
            .map_or(0, |place| self.predicates[place].1)
    }
}

/// Name of the file with the statistics.
pub(crate) const STATISTICS_FILE: &str = "statistics.bin";

#[cfg(test)]
mod tests;
