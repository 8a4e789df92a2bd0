//! Generators, drivers, reports.

pub mod bsbm;
