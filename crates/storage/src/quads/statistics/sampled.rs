//! Statistics of a read scope, estimated from a sample of its rows.
//!
//! ```text
//! rows of a predicate   . . x . . . . x . . . . x . .      some, at equal distances
//! each with the length of its run: n rows with the same subject -> 1/n of a subject
//!                                 subjects = rows x the mean of these shares
//! ```
//!
//! The statistics of a base are of all quads, so whoever does not see all of them is told nothing
//! that follows from these. What is shown here depends on visible rows alone: their number, and
//! which stands where among them. Where there are no more rows than are looked at, the figures are
//! exact.
//!
//! A figure is found when it is first asked for and kept with the state and its list of graphs. It
//! costs some [`ROWS_SAMPLED`] look-ups, a star about
//! [`STAR_LOOKUPS`]: a microsecond each.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use orrery_term::TermId;
use parking_lot::Mutex;

use super::PredicateStatistics;
use super::known_stars::{KnownStars, STARS_MAX, Star, StarGroup};
use super::star::STAR_PREDICATES_MAX;
use crate::Result;
use crate::quads::index::{Cursor, PerPermutation, Permutation, QuadIndex};

/// Rows that are looked at for a number of different values.
const ROWS_SAMPLED: u64 = 64;
/// Look-ups for one star, about.
const STAR_LOOKUPS: usize = 2_000;
/// Subjects of each predicate of a star that are looked at, at least and at most.
const STAR_ROWS: (usize, usize) = (4, 32);
/// Values that are counted one by one: predicates of all quads, graphs.
const COUNTED_MAX: u64 = 10_000;
/// Predicates whose figures are kept; beyond, all are forgotten.
const PREDICATES_MAX: usize = 4_096;

/// What was found so far.
#[derive(Debug, Default)]
pub(crate) struct SampledStatistics {
    predicates: Mutex<HashMap<TermId, PredicateStatistics>>,
    all: OnceLock<PredicateStatistics>,
    predicate_count: OnceLock<u64>,
    graph_count: OnceLock<u64>,
    stars: KnownStars,
}

/// Figures about what a scope shows of a state.
#[derive(Debug, Clone, Copy)]
pub struct Sampled<'s> {
    found: &'s SampledStatistics,
    /// Of the state without what is hidden.
    indexes: &'s PerPermutation<Arc<QuadIndex>>,
}

impl<'s> Sampled<'s> {
    pub(crate) fn new(
        found: &'s SampledStatistics,
        indexes: &'s PerPermutation<Arc<QuadIndex>>,
    ) -> Self {
        Self { found, indexes }
    }

    /// Figures about the quads with one predicate; the number of quads is exact.
    pub fn predicate(&self, predicate: TermId) -> Result<PredicateStatistics> {
        if let Some(known) = self.found.predicates.lock().get(&predicate) {
            return Ok(*known);
        }
        let (quads, distinct_subjects) = self.different(Permutation::Psog, &[predicate])?;
        let (_, distinct_objects) = self.different(Permutation::Posg, &[predicate])?;
        let figures = PredicateStatistics {
            quads,
            distinct_subjects,
            distinct_objects,
        };
        let mut known = self.found.predicates.lock();
        if known.len() >= PREDICATES_MAX {
            known.clear();
        }
        known.insert(predicate, figures);
        Ok(figures)
    }

    /// The totals over all quads.
    pub fn all(&self) -> Result<PredicateStatistics> {
        if let Some(known) = self.found.all.get() {
            return Ok(*known);
        }
        let (quads, distinct_subjects) = self.different(Permutation::Spog, &[])?;
        let (_, distinct_objects) = self.different(Permutation::Ospg, &[])?;
        Ok(*self.found.all.get_or_init(|| PredicateStatistics {
            quads,
            distinct_subjects,
            distinct_objects,
        }))
    }

    /// Number of predicates, up to some thousands.
    pub fn predicate_count(&self) -> Result<u64> {
        self.count(&self.found.predicate_count, Permutation::Psog)
    }

    /// Number of graphs, the default graph among them if it has quads, up to some thousands; none
    /// where there are no named ones.
    pub fn graph_count(&self) -> Result<u64> {
        self.count(&self.found.graph_count, Permutation::Gspo)
    }

    /// The star figures of some predicates, with repetitions; none where a predicate has no quads,
    /// or where there are more than [`STAR_PREDICATES_MAX`].
    pub fn star(&self, predicates: &[TermId]) -> Result<Option<Arc<Star>>> {
        if predicates.is_empty() || predicates.len() > STAR_PREDICATES_MAX {
            return Ok(None);
        }
        if let Some(known) = self.found.stars.0.lock().get(predicates) {
            return Ok(known.clone());
        }
        let star = self.look_at_star(predicates)?.map(Arc::new);
        let mut stars = self.found.stars.0.lock();
        if stars.len() >= STARS_MAX {
            stars.clear();
        }
        stars.insert(predicates.into(), star.clone());
        Ok(star)
    }

    /// The rows behind a prefix, and about how many different values stand behind it.
    fn different(&self, permutation: Permutation, prefix: &[TermId]) -> Result<(u64, u64)> {
        let Some(index) = self.indexes.get(permutation) else {
            return Ok((0, 0));
        };
        let mut cursor = index.cursor();
        let range = cursor.seek(prefix)?;
        let rows = range.len();
        let (mut looked_at, mut shares) = (0_u64, 0.0);
        for row in spread(rows, ROWS_SAMPLED) {
            if let Some(run) = run_of(&mut cursor, prefix, range.start + row)? {
                looked_at += 1;
                shares += 1.0 / run.rows;
            }
        }
        Ok((rows, scaled(shares, rows, looked_at)))
    }

    fn count(&self, known: &OnceLock<u64>, permutation: Permutation) -> Result<u64> {
        if let Some(known) = known.get() {
            return Ok(*known);
        }
        let (mut values, mut last) = (0, None);
        if let Some(index) = self.indexes.get(permutation) {
            let mut cursor = index.cursor();
            while values < COUNTED_MAX
                && let Some(value) = cursor.distinct_next(&[], last)?
            {
                values += 1;
                last = Some(value);
            }
        }
        Ok(*known.get_or_init(|| values))
    }

    /// Looks at some subjects of each predicate. One that has several of them is counted with the
    /// first that it has.
    fn look_at_star(&self, predicates: &[TermId]) -> Result<Option<Star>> {
        let Some(psog) = self.indexes.get(Permutation::Psog) else {
            return Ok(None);
        };
        let count = predicates.len();
        let per_predicate = (STAR_LOOKUPS / (count * count)).clamp(STAR_ROWS.0, STAR_ROWS.1) as u64;
        let mut star = Star { groups: Vec::new() };
        for (number, &predicate) in predicates.iter().enumerate() {
            // Subjects ascend, so each of these searches forward.
            let mut cursors: Vec<Cursor> = predicates.iter().map(|_| psog.cursor()).collect();
            let range = cursors[number].seek(&[predicate])?;
            if range.is_empty() {
                return Ok(None);
            }
            let looked_at = spread(range.len(), per_predicate);
            let rows_each = range.len() as f64 / looked_at.len() as f64;
            for row in looked_at {
                let Some(run) = run_of(&mut cursors[number], &[predicate], range.start + row)?
                else {
                    continue;
                };
                let mut quads = vec![0.0; count];
                for (other, quads) in quads.iter_mut().enumerate() {
                    let found = cursors[other].seek(&[predicates[other], run.value])?;
                    *quads = found.len() as f64;
                }
                if quads[..number].iter().all(|quads| *quads == 0.0) {
                    add(&mut star, &quads, rows_each / run.rows);
                }
            }
        }
        Ok(Some(star))
    }
}

/// Rows of the same value.
struct Run {
    value: TermId,
    rows: f64,
}

/// The run of a row among those behind a prefix.
fn run_of(cursor: &mut Cursor, prefix: &[TermId], row: u64) -> Result<Option<Run>> {
    let mut value = Vec::with_capacity(1);
    let one = crate::quads::index::RowRange::new(row, row + 1);
    cursor.read(one, prefix.len(), &mut value)?;
    let Some(value) = value.first().map(|bits| TermId::from_bits(*bits)) else {
        return Ok(None);
    };
    let mut key = Vec::with_capacity(prefix.len() + 1);
    key.extend_from_slice(prefix);
    key.push(value);
    let rows = cursor.seek(&key)?.len().max(1) as f64;
    Ok(Some(Run { value, rows }))
}

/// At most so many rows of some, the middles of equal parts.
fn spread(rows: u64, most: u64) -> impl ExactSizeIterator<Item = u64> {
    let count = rows.min(most);
    (0..count as u32).map(move |number| {
        let middle = u128::from(rows) * u128::from(2 * number + 1) / u128::from(2 * count);
        u64::try_from(middle).unwrap_or(rows)
    })
}

/// The shares of some rows, taken to be those of all.
fn scaled(shares: f64, rows: u64, looked_at: u64) -> u64 {
    if looked_at == 0 {
        return 0;
    }
    let values = (shares * rows as f64 / looked_at as f64).round();
    (values as u64).clamp(1, rows)
}

/// Counts a subject as so many.
fn add(star: &mut Star, quads: &[f64], subjects: f64) {
    let has = quads.iter().enumerate();
    let has = has.fold(0_u32, |has, (number, &quads)| {
        has | u32::from(quads > 0.0) << number
    });
    let place = star.groups.iter().position(|it| it.predicates == has);
    let place = place.unwrap_or_else(|| {
        star.groups.push(StarGroup {
            predicates: has,
            subjects: 0.0,
            quads: vec![0.0; quads.len()],
        });
        star.groups.len() - 1
    });
    let group = &mut star.groups[place];
    group.subjects += subjects;
    for (sum, quads) in group.quads.iter_mut().zip(quads) {
        *sum += subjects * quads;
    }
}
