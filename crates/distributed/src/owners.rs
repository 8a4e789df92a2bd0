//! The assignment of partitions to workers.
//!
//! By rendezvous: each partition of a stage ranks the workers by a hash of the stage's leaf, its
//! own number and the worker's name, and goes to the first one that has not enough yet. So the same
//! rows go to the same worker in one query after another, whose caches have them then; a worker
//! that comes or goes moves about its own share; and none has more than one partition above the
//! even number.

use std::hash::BuildHasher;

/// Partitions that the work of a stage is divided into for so many workers, of so many threads
/// each: a power of two, so that few workers more or less do not change which rows a partition has,
/// and enough of them that each thread has one, and what is left over is a fifth of a worker's part
/// at most.
pub fn partitions_for(workers: usize, threads: usize) -> usize {
    (threads.max(4) * workers).next_power_of_two()
}

/// Partitions that a worker runs one after another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    /// The worker, by its place among the members.
    pub(crate) owner: usize,
    /// They ascend.
    pub(crate) partitions: Vec<usize>,
}

/// The partitions of each worker in so many groups, or one for each if they are fewer. Both groups
/// and what is in them ascend: rows that are in order within partitions, and from one to the next,
/// are so in groups.
pub(crate) fn grouped(owners: &[usize], streams: usize) -> Vec<Group> {
    let members = owners.iter().max().map_or(0, |last| last + 1);
    let groups = (0..members).flat_map(|owner| {
        let own = owners.iter().enumerate().filter(|(_, of)| **of == owner);
        let own: Vec<usize> = own.map(|(partition, _)| partition).collect();
        let groups = streams.min(own.len());
        (0..groups).map(move |group| {
            let range = group * own.len() / groups..(group + 1) * own.len() / groups;
            Group {
                owner,
                partitions: own[range].to_vec(),
            }
        })
    });
    let mut groups: Vec<Group> = groups.collect();
    groups.sort_by_key(|group| group.partitions.first().copied());
    groups
}

/// All partitions at one worker, each by itself.
pub(crate) fn together_at(owner: usize, partitions: usize) -> Vec<Group> {
    let group = |partition| Group {
        owner,
        partitions: vec![partition],
    };
    (0..partitions).map(group).collect()
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
            let partitions = partitions_for(workers, 1);
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
    fn groups_have_each_partition_once_with_its_owner_in_order() {
        let owners = owners("psog 17", 16, &names(0..3));
        for streams in [1, 2, 5, 16] {
            let groups = grouped(&owners, streams);
            let mut all: Vec<usize> = Vec::new();
            for group in &groups {
                assert!(group.partitions.is_sorted());
                assert!(group.partitions.iter().all(|of| owners[*of] == group.owner));
                all.extend(&group.partitions);
            }
            all.sort_unstable();
            assert_eq!(all, (0..16).collect::<Vec<_>>());
            let of_each = |owner| groups.iter().filter(|group| group.owner == owner).count();
            assert!(
                (0..3).all(|owner| (streams.min(5)..=streams.min(6)).contains(&of_each(owner)))
            );
        }
        // Where each is by itself, they are in order.
        let singles: Vec<usize> = grouped(&owners, 16)
            .iter()
            .map(|it| it.partitions[0])
            .collect();
        assert!(singles.is_sorted());
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
