//! Clusters in one thread, whose disks and network are memory, whose time is simulated, and whose mishaps a seed decides.
#![allow(clippy::unwrap_used, clippy::expect_used)]

pub(crate) mod disk;
pub(crate) mod random;
