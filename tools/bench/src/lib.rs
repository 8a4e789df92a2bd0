//! Generators, drivers and reports of the program `orrery-bench`, which `orrery bench` starts.
//!
//! [`orrery_bsbm`], [`snb`], [`spb`] and [`tpch`] make data and queries, [`drivers`] measure the
//! `orrery` binary and its server from outside, [`report`] sums up and shows. The program is one of
//! its own, so that the product is built without it.

pub mod drivers;
pub mod files;
pub mod http_client;
pub mod report;
pub mod snb;
pub mod spb;
pub mod tpch;
