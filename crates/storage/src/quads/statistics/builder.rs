//! The collector of statistics over sorted quads.
//!
//! Each permutation is observed in its own order and independently of the others, so that several
//! threads can each feed a builder of their own and [`StatisticsBuilder::merge`] them at the end.
//! Cost: a comparison or two per row, and per subject one look-up of its set.

use std::collections::HashMap;

use orrery_term::TermId;

use crate::quads::index::Permutation;

use super::{
    CHARACTERISTIC_SETS_MAX, CharacteristicSet, PredicateStatistics, RestOfSets, Statistics,
};

/// Distinct sets counted while collecting; sets that turn up later than that many others go to the
/// rest.
const SETS_COUNTED_MAX: usize = 20 * CHARACTERISTIC_SETS_MAX;
/// Predicates in a set that is kept.
const SET_PREDICATES_MAX: usize = 256;

/// Collects [`Statistics`]; rows are pushed in the permutation's order, in chunks of any size.
#[derive(Debug, Default)]
pub struct StatisticsBuilder {
    psog: PredicateRuns,
    posg: PredicateRuns,
    spog: SubjectRuns,
    ospg: DistinctFirst,
    gspo: DistinctFirst,
}

/// Per value of the first column: rows, and distinct values of the second.
#[derive(Debug, Default)]
struct PredicateRuns {
    last: Option<[u64; 2]>,
    /// Rows and distinct second values of the current first value.
    rows: u64,
    distinct: u64,
    finished: Vec<(u64, u64, u64)>,
}

impl PredicateRuns {
    fn observe(&mut self, rows: &[[u64; 4]]) {
        for &[first, second, ..] in rows {
            match self.last {
                Some([last_first, last_second]) if last_first == first => {
                    self.distinct += u64::from(last_second != second);
                }
                _ => {
                    self.end_run();
                    self.distinct = 1;
                }
            }
            self.rows += 1;
            self.last = Some([first, second]);
        }
    }

    fn end_run(&mut self) {
        if let Some([first, _]) = self.last.take() {
            self.finished.push((first, self.rows, self.distinct));
        }
        self.rows = 0;
        self.distinct = 0;
    }

    fn merge(&mut self, mut other: Self) {
        other.end_run();
        if !other.finished.is_empty() {
            self.end_run();
            self.finished.append(&mut other.finished);
        }
    }
}

/// Distinct values of the first column.
#[derive(Debug, Default)]
struct DistinctFirst {
    last: Option<u64>,
    distinct: u64,
}

impl DistinctFirst {
    fn observe(&mut self, rows: &[[u64; 4]]) {
        for &[first, ..] in rows {
            self.distinct += u64::from(self.last != Some(first));
            self.last = Some(first);
        }
    }
}

/// The characteristic sets.
#[derive(Debug, Default)]
struct SubjectRuns {
    rows: u64,
    subjects: u64,
    last_subject: Option<u64>,
    /// Predicates of the current subject, ascending, with their numbers of quads.
    predicates: Vec<u64>,
    counts: Vec<u64>,
    /// Place in `sets` by the set's predicates.
    places: HashMap<Box<[u64]>, usize>,
    /// Subjects, and quads per predicate.
    sets: Vec<(u64, Box<[u64]>)>,
    /// The place of the last subject's set: neighbours often have the same.
    last_place: Option<(Box<[u64]>, usize)>,
    rest: RestOfSets,
}

impl SubjectRuns {
    fn observe(&mut self, rows: &[[u64; 4]]) {
        self.rows += rows.len() as u64;
        for &[subject, predicate, ..] in rows {
            if self.last_subject != Some(subject) {
                self.end_subject();
                self.last_subject = Some(subject);
            } else if self.predicates.last() == Some(&predicate) {
                if let Some(count) = self.counts.last_mut() {
                    *count += 1;
                }
                continue;
            }
            self.predicates.push(predicate);
            self.counts.push(1);
        }
    }

    fn end_subject(&mut self) {
        if self.last_subject.take().is_none() {
            return;
        }
        self.subjects += 1;
        match self.place() {
            Some(place) => {
                let (subjects, counts) = &mut self.sets[place];
                *subjects += 1;
                for (sum, count) in counts.iter_mut().zip(&self.counts) {
                    *sum += count;
                }
            }
            None => {
                self.rest.subjects += 1;
                self.rest.quads += self.counts.iter().sum::<u64>();
            }
        }
        self.predicates.clear();
        self.counts.clear();
    }

    /// Where the current subject's set is counted; `None` if it goes to the rest.
    fn place(&mut self) -> Option<usize> {
        if let Some((predicates, place)) = &self.last_place
            && **predicates == *self.predicates
        {
            return Some(*place);
        }
        let place = match self.places.get(self.predicates.as_slice()) {
            Some(&place) => place,
            None => {
                if self.sets.len() >= SETS_COUNTED_MAX || self.predicates.len() > SET_PREDICATES_MAX
                {
                    return None;
                }
                let place = self.sets.len();
                let predicates: Box<[u64]> = self.predicates.as_slice().into();
                self.sets.push((0, vec![0; predicates.len()].into()));
                self.places.insert(predicates, place);
                place
            }
        };
        self.last_place = Some((self.predicates.as_slice().into(), place));
        Some(place)
    }

    fn merge(&mut self, mut other: Self) {
        other.end_subject();
        if other.subjects == 0 {
            return;
        }
        self.end_subject();
        self.rows += other.rows;
        self.subjects += other.subjects;
        self.rest.subjects += other.rest.subjects;
        self.rest.quads += other.rest.quads;
        for (predicates, place) in other.places {
            let (subjects, counts) = &other.sets[place];
            match self.places.get(&predicates) {
                Some(&mine) => {
                    let (sum, sums) = &mut self.sets[mine];
                    *sum += subjects;
                    for (sum, count) in sums.iter_mut().zip(counts) {
                        *sum += count;
                    }
                }
                None => {
                    self.places.insert(predicates, self.sets.len());
                    self.sets.push((*subjects, counts.clone()));
                }
            }
        }
    }

    /// The sets with the most subjects, and what is left.
    fn finish(mut self) -> (Vec<CharacteristicSet>, RestOfSets) {
        self.end_subject();
        let mut sets: Vec<CharacteristicSet> = self
            .places
            .iter()
            .map(|(predicates, &place)| {
                let (subjects, counts) = &self.sets[place];
                let ids = predicates.iter().map(|&bits| TermId::from_bits(bits));
                CharacteristicSet {
                    predicates: ids.zip(counts.iter().copied()).collect(),
                    subjects: *subjects,
                }
            })
            .collect();
        sets.sort_unstable_by(|left, right| {
            let by_subjects = right.subjects.cmp(&left.subjects);
            by_subjects.then_with(|| left.predicates.cmp(&right.predicates))
        });
        for set in sets.drain(CHARACTERISTIC_SETS_MAX.min(sets.len())..) {
            self.rest.subjects += set.subjects;
            self.rest.quads += set.predicates.iter().map(|&(_, quads)| quads).sum::<u64>();
        }
        (sets, self.rest)
    }
}

impl StatisticsBuilder {
    /// Rows in the order predicate, subject, object, graph.
    pub fn observe_psog(&mut self, rows: &[[u64; 4]]) {
        self.psog.observe(rows);
    }

    /// Rows in the order predicate, object, subject, graph.
    pub fn observe_posg(&mut self, rows: &[[u64; 4]]) {
        self.posg.observe(rows);
    }

    /// Rows in the order subject, predicate, object, graph.
    pub fn observe_spog(&mut self, rows: &[[u64; 4]]) {
        self.spog.observe(rows);
    }

    /// Rows in the order object, subject, predicate, graph.
    pub fn observe_ospg(&mut self, rows: &[[u64; 4]]) {
        self.ospg.observe(rows);
    }

    /// Rows in the order graph, subject, predicate, object; not needed while there are no named
    /// graphs.
    pub fn observe_gspo(&mut self, rows: &[[u64; 4]]) {
        self.gspo.observe(rows);
    }

    /// Rows in the order of a permutation.
    pub fn observe(&mut self, permutation: Permutation, rows: &[[u64; 4]]) {
        match permutation {
            Permutation::Psog => self.observe_psog(rows),
            Permutation::Posg => self.observe_posg(rows),
            Permutation::Spog => self.observe_spog(rows),
            Permutation::Ospg => self.observe_ospg(rows),
            Permutation::Gspo => self.observe_gspo(rows),
        }
    }

    /// Adds what another builder has seen. Each permutation may be cut at a change of its first
    /// column only.
    pub fn merge(&mut self, other: Self) {
        self.psog.merge(other.psog);
        self.posg.merge(other.posg);
        self.spog.merge(other.spog);
        self.ospg.distinct += other.ospg.distinct;
        self.gspo.distinct += other.gspo.distinct;
    }

    /// The statistics of all rows seen.
    pub fn finish(mut self) -> Statistics {
        self.psog.end_run();
        self.posg.end_run();
        self.spog.end_subject();
        let mut by_object = self.posg.finished;
        by_object.sort_unstable();
        let distinct_objects = |predicate: u64| {
            by_object
                .binary_search_by_key(&predicate, |&(first, _, _)| first)
                .map_or(0, |place| by_object[place].2)
        };
        let mut predicates: Vec<(TermId, PredicateStatistics)> = self
            .psog
            .finished
            .iter()
            .map(|&(predicate, quads, distinct_subjects)| {
                let figures = PredicateStatistics {
                    quads,
                    distinct_subjects,
                    distinct_objects: distinct_objects(predicate),
                };
                (TermId::from_bits(predicate), figures)
            })
            .collect();
        predicates.sort_unstable_by_key(|&(id, _)| id);
        let quads = self.spog.rows;
        let distinct_subjects = self.spog.subjects;
        let (characteristic_sets, rest) = self.spog.finish();
        Statistics {
            quads,
            distinct_subjects,
            distinct_objects: self.ospg.distinct,
            distinct_graphs: self.gspo.distinct.max(u64::from(quads > 0)),
            predicates,
            characteristic_sets,
            rest,
            ..Statistics::default()
        }
        .with_sets_by_predicate()
    }
}
