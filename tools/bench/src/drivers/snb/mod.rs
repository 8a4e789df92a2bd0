//! The Social Network Benchmark: validation, and the mix.

mod clients;
mod mix;
mod schedule;
mod validate;
mod walk;

pub use mix::{KindTimes, SnbOptions, SnbReport, SnbRun, snb};
pub use validate::{Difference, KindReport, ValidationReport, validate};
