//! Which worker takes which partition.
//!
//! By rendezvous: each partition of a stage ranks the workers by a hash of the stage's leaf, its own number and the worker's name, and goes to the first
//! one that has not enough yet. So the same rows go to the same worker in one query after another, whose caches have them then; a worker that comes or
//! goes moves about its own share; and none has more than one partition above the even number.

use std::hash::BuildHasher;

/// Partitions that the work of a stage is divided into for so many workers: a power of two, so that few workers more or less do not change which rows
/// a partition has, and enough of them that what is left over is a fifth of a worker's part at most.
pub fn partitions_for(workers: usize) -> usize {
    (4 * workers).next_power_of_two()
}

/// The worker, by its place among the members, of each partition of a stage.
pub(crate) fn owners(key: &str, partitions: usize, members: &[String]) -> Vec<usize> {
    let most = partitions.div_ceil(members.len().max(1));
    // So that as many as possible have the rounded down number.
    let mut with_most = match partitions % members.len().max(1) {
        0 => members.len(),
        more => more,
    };
    let mut taken = vec![0; members.len()];
    let hasher = foldhash::fast::FixedState::default();
    (0..partitions)
        .map(|partition| {
            let mut ranked: Vec<usize> = (0..members.len()).collect();
            let rank = |&at: &usize| hasher.hash_one((key, partition, &members[at]));
            ranked.sort_by_cached_key(rank);
            let has_room =
                |&&at: &&usize| taken[at] + 1 < most || (taken[at] + 1 == most && with_most > 0);
            let chosen = ranked.iter().find(has_room).copied().unwrap_or(0);
            taken[chosen] += 1;
            if taken[chosen] == most {
                with_most -= 1;
            }
            chosen
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(numbers: std::ops::Range<usize>) -> Vec<String> {
        numbers.map(|number| format!("node {number}")).collect()
    }

    #[test]
    fn every_worker_has_its_part() {
        for workers in 1..20 {
            let partitions = partitions_for(workers);
            for key in ["psog 17", "posg 3 9", ""] {
                let mut counts = vec![0; workers];
                for owner in owners(key, partitions, &names(0..workers)) {
                    counts[owner] += 1;
                }
                let least = counts.iter().min().unwrap();
                let most = counts.iter().max().unwrap();
                assert!(most - least <= 1, "{workers} workers: {counts:?}");
            }
        }
    }

    #[test]
    fn a_worker_that_comes_moves_little() {
        let (mut moved, mut all) = (0, 0);
        for number in 0..50 {
            let key = format!("leaf {number}");
            let before = owners(&key, 32, &names(0..5));
            let after = owners(&key, 32, &names(0..6));
            moved += before.iter().zip(&after).filter(|(a, b)| a != b).count();
            all += 32;
        }
        // A sixth has to move; dealt by remainders five sixths would.
        assert!(moved * 100 < all * 45, "{moved} of {all}");
    }
}
