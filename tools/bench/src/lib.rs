//! Benchmark generators, drivers and reports, which `orrery bench` runs.
//!
//! [`bsbm`], [`snb`], [`spb`] and [`tpch`] make data and queries, [`drivers`] measure the `orrery`
//! binary and its server from outside, [`report`] sums up and shows. The crate depends on no other
//! of ours, so what it says of them it found as a user would.

pub mod bsbm;
pub mod drivers;
pub mod files;
pub mod http_client;
pub mod literals;
pub mod report;
pub mod snb;
pub mod spb;
pub mod tpch;
