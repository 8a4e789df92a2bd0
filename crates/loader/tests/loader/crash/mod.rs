//! Crash tests: power cuts, failing calls, flipped bits and a full disk under every kind of write.
//! A third of the transactions changes rows of a table, too, some of them by writing all of its
//! files.
//!
//! Everything goes on a disk in memory that records each change, so that a state after a power cut
//! costs microseconds. The answers are compared with plain sets of quads and rows, one for each
//! commit.
//!
//! `ORRERY_CRASH_STATES`, `ORRERY_FAULT_RUNS` and `ORRERY_FLIPS` say how much is tried;
//! `make crash` sets them high.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test may fail on the spot"
)]

mod bit_flips;
mod full_disk;
mod model;
mod power_cuts;
mod single_faults;
mod workload;
mod world;

/// A number from the environment, or the default.
fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).map_or(default, |text| {
        text.parse()
            .unwrap_or_else(|_| panic!("{name} is a number, not {text:?}"))
    })
}
