//! The top-N of many hits, in memory for a small N.

use std::cmp::Ordering;

use orrery_term::TermId;

/// A literal that matches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Found {
    pub(super) id: TermId,
    pub(super) score: f32,
}

impl Found {
    /// By score, the greatest first; equal ones by id.
    fn order(&self, other: &Self) -> Ordering {
        let by_score = other.score.total_cmp(&self.score);
        by_score.then(self.id.cmp(&other.id))
    }
}

/// Keeps so many.
pub(super) struct Best {
    most: usize,
    kept: Vec<Found>,
    has_more: bool,
}

impl Best {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most: most.max(1),
            kept: Vec::new(),
            has_more: false,
        }
    }

    pub(super) fn add(&mut self, found: Found) {
        self.kept.push(found);
        // Twice as many as needed, so that each is moved a few times only.
        if self.kept.len() >= 2 * self.most {
            self.cut();
        }
    }

    fn cut(&mut self) {
        if self.kept.len() > self.most {
            self.kept
                .select_nth_unstable_by(self.most - 1, Found::order);
            self.kept.truncate(self.most);
            self.has_more = true;
        }
    }

    /// The best first, and whether there were more.
    pub(super) fn finish(mut self) -> (Vec<Found>, bool) {
        self.cut();
        self.kept.sort_unstable_by(Found::order);
        (self.kept, self.has_more)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_are_kept_and_equal_ones_by_id() {
        let mut best = Best::new(3);
        for number in 0..100_u64 {
            best.add(Found {
                id: TermId::literal(99 - number),
                score: (number % 10) as f32,
            });
        }
        let (kept, has_more) = best.finish();
        let ids: Vec<_> = kept.iter().map(|found| found.id).collect();
        assert_eq!(ids, [0, 10, 20].map(TermId::literal));
        assert!(has_more && kept.iter().all(|found| found.score == 9.0));
        assert_eq!(Best::new(5).finish(), (Vec::new(), false));
    }
}
