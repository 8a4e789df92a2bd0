//! Deterministic simulation of clusters: one thread, in-memory disks and network, simulated time,
//! seeded faults.
//!
//! A schedule is run again by its seed: `QUORUM_FIRST_SEED=S QUORUM_SCHEDULES=1 cargo test -p
//! orrery-raft-store --features simulation schedules`. openraft leaves a little to chance (which of
//! two events that are ready goes first), so that a rare failure may want some runs of its seed.
//!
//! Time is simulated by tokio's `test-util`, which would make another tokio, and another everything
//! that stands on it, for the tests of the whole workspace. So the schedules run with the feature
//! `simulation` alone: `make test-cluster`.
#![allow(clippy::unwrap_used, clippy::expect_used)]
#![cfg_attr(
    not(feature = "simulation"),
    allow(dead_code, reason = "only the disk is used then")
)]

pub(crate) mod cluster;
pub(crate) mod disk;
pub(crate) mod history;
pub(crate) mod network;
pub(crate) mod random;
pub(crate) mod schedule;

#[cfg(feature = "simulation")]
mod tests;
