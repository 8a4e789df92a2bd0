//! Clusters in one thread, whose disks and network are memory, whose time is simulated, and whose mishaps a seed decides.
//!
//! A schedule is run again by its seed: `QUORUM_FIRST_SEED=S QUORUM_SCHEDULES=1 cargo test -p orrery-quorum schedules`. openraft leaves a little to
//! chance (which of two events that are ready goes first), so that a rare failure may want some runs of its seed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

pub(crate) mod cluster;
pub(crate) mod disk;
pub(crate) mod history;
pub(crate) mod network;
pub(crate) mod random;
pub(crate) mod schedule;

use std::env;

fn setting(name: &str, default: u64) -> u64 {
    env::var(name).map_or(default, |text| {
        text.parse()
            .unwrap_or_else(|_| panic!("{name} is a number"))
    })
}

#[test]
fn histories_of_schedules_are_linearizable_and_no_acknowledged_put_is_lost() {
    let (first, number) = (
        setting("QUORUM_FIRST_SEED", 1),
        setting("QUORUM_SCHEDULES", 20),
    );
    let mut total = schedule::Seen::default();
    for seed in first..first + number {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        match runtime.block_on(schedule::run(seed)) {
            Ok(seen) => {
                total.operations += seen.operations;
                total.unknown += seen.unknown;
                total.crashes += seen.crashes;
                total.partitions += seen.partitions;
                total.member_changes += seen.member_changes;
            }
            Err(wrong) => panic!("QUORUM_FIRST_SEED={seed} QUORUM_SCHEDULES=1: {wrong}"),
        }
    }
    println!("{number} schedules: {total:?}");
    assert!(total.operations as u64 > number * 20, "{total:?}");
}
